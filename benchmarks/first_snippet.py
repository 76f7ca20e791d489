"""README's first snippet, run as it stands: its held-out figures on breast cancer, written below it.

python benchmarks/first_snippet.py --doc README.md

X and y of the snippet are the training rows of `train_test_split(test_size=.25, random_state=0..7)`. Beside
it stand the closed form, which is scikit-learn's where the rows determine it, and RC without the prior.
"""

import argparse
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from study import measures

from riskbayes import QuadraticDiscriminantAnalysis

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = (f"<!-- {part}: made by `python benchmarks/first_snippet.py` -->" for part in ("begin", "end"))
SPLITS = range(8)


def run_snippet(X: np.ndarray, y: np.ndarray) -> Any:
    """Return `clf` after README's first snippet."""
    found: dict[str, Any] = {"X": X, "y": y}
    exec(re.search("```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[1], found)
    return found["clf"]


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    'the closed form, `learner="closed_form"`': QuadraticDiscriminantAnalysis(learner="closed_form").fit,
    "RC without a prior, `prior=None`": QuadraticDiscriminantAnalysis(prior=None).fit,
    "as above: RC with a prior, the default": run_snippet,
}


def main() -> None:
    """Print the table, and put it between the marks of a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--doc", type=Path, help="a page with the marks")
    doc = parser.parse_args().doc
    X, y = load_breast_cancer(return_X_y=True)
    lines = ["| | held-out error, % | log loss |", "| --- | ---: | ---: |"]
    for name, fit in METHODS.items():
        found = []
        for split in SPLITS:
            X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=split)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(measures(fit(X_train, y_train).predict_proba(X_test), y_test))
        error, loss = (np.mean([each[figure] for each in found]) for figure in ("error", "log_loss"))
        lines.append(f"| {name} | {100 * error:.2f} | {loss:.3f} |")
    print("\n".join(lines))
    if doc is not None:
        text = doc.read_text(encoding="utf-8")
        before, after = text[: text.index(BEGIN)], text[text.index(END) :]
        doc.write_text("\n\n".join([before + BEGIN, "\n".join(lines), after]), encoding="utf-8")


if __name__ == "__main__":
    main()
