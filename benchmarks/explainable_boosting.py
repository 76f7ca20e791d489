"""The explainable boosting machine on the splits of `benchmarks/family.py`: held-out error and log loss.

A fit takes minutes on sets of several classes, so units run in parallel, small sets first, until a limit;
those that ended are appended to the table. Run it before `family.py --doc`.

    RISKBAYES_DATA=<folder> python benchmarks/explainable_boosting.py FILE.csv --seconds 400
"""

import argparse
import csv
import os
import signal
import warnings
from multiprocessing import Pool
from pathlib import Path
from time import perf_counter

from default_rc import MOST_ROWS, measures
from interpret.glassbox import ExplainableBoostingClassifier
from sklearn.model_selection import train_test_split

from riskbayes_paper.datasets import PAPER_TABULAR, load_csv

FIELDS = ("set", "split", "method", "error", "log_loss", "brier", "calibration_error", "seconds")


def fit(unit: tuple[str, int]) -> dict:
    """One fit with the defaults, in one thread."""
    name, split = unit
    data = load_csv(name).cut(MOST_ROWS)
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.25, random_state=split)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = ExplainableBoostingClassifier(n_jobs=1, random_state=0).fit(X, y)
    seconds = perf_counter() - start
    found = measures(clf.predict_proba(X_test), y_test)
    return {"set": name, "split": split, "method": "explainable boosting", **found, "seconds": seconds}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--splits", default="8,9,10,11,12")
    given = parser.parse_args()
    several = ("vehicle", "redwine", "satellite", "optdigits")  # of more than three classes: the slowest
    sets = sorted(PAPER_TABULAR, key=lambda name: several.index(name) if name in several else -1)
    todo = [(name, int(split)) for name in sets for split in given.splits.split(",")]
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.alarm(given.seconds)
    with given.file.open("a", newline="") as file, Pool(os.cpu_count()) as pool:
        writer = csv.DictWriter(file, FIELDS)
        for row in pool.imap_unordered(fit, todo):
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
            file.flush()
            print(row["set"], row["split"], f"{100 * row['error']:.2f} %, {row['seconds']:.0f} s", flush=True)
