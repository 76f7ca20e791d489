"""Up to how many rows is the default the ensemble? Seconds and held-out error of strategies by rows.

    RISKBAYES_DATA=<folder> python benchmarks/auto_rows.py    # prints benchmarks/results/auto_rows.txt

Rows of adult, as they are, held out by a split for composing, and Gaussian rows of 20 columns and two
classes. Seconds are those of the processor, in one thread.
"""

import warnings
from collections.abc import Iterator
from time import process_time

import numpy as np
from mixed import Mixed
from study import print_table
from threadpoolctl import threadpool_limits

from riskbayes import RiskBayesClassifier

STRATEGIES = ("single", "glass", "ensemble")
ADULT, GAUSSIAN = (2000, 8000, 36631), (30_000, 100_000, 200_000)


def cases() -> Iterator[tuple[str, tuple, tuple | None]]:
    """Yield names, training rows with labels, and test rows with labels."""
    study = Mixed()
    study.most_rows = None
    part = study.part("adult", 100)
    for m in ADULT:
        yield f"adult, {m}", (part.X[:m], part.y[:m]), (part.X_test, part.y_test)
    rng = np.random.default_rng(0)
    for m in GAUSSIAN:
        y = rng.integers(2, size=m)
        yield f"Gaussian, {m}", (rng.standard_normal((m, 20)) + y[:, None] / 4, y), None


def main() -> None:
    """Fit and print."""
    rows = []
    for name, train, test in cases():
        seconds, errors = [], []
        for strategy in STRATEGIES:
            start = process_time()
            clf = RiskBayesClassifier(strategy, random_state=0).fit(*train)
            seconds.append(f"{process_time() - start:.1f}")
            errors.append("" if test is None else f"{100 * (1 - clf.score(*test)):.2f}")
        rows.append([name, *seconds, *errors])
    heads = ("rows", *(f"{s}, s" for s in STRATEGIES), *(f"{s}, %" for s in STRATEGIES))
    print_table("Seconds of a fit, and held-out error", heads, rows, 110)


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
