"""The demo: models of riskbayes beside those of scikit-learn on five tables, judged on held-out rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from sklearn import datasets as bundled
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from riskbayes.compare import Report, compare
from riskbayes.compare.contenders import MOST_INDICATORS, Candidate, candidates
from riskbayes.compare.data import Data
from riskbayes.compare.report import SplitSummary
from riskbayes.compare.splits import Split
from riskbayes.compare.study import Study, run_study
from riskbayes.datasets import TARGET, adult_sample_csv, frame_library, load_adult_sample
from riskbayes.estimators.kinds import Kinds
from riskbayes.preprocessing.encoder import TableEncoder
from riskbayes.progress import progress_bar

ADULT = "adult_sample"
DATA_SETS = ("iris", "wine", "breast_cancer", "digits", ADULT)
SPLITS, TEST_SIZE, SEED = 2, 0.25, 0
MOST_ROWS = 1000
"""Rows of a bundled set at most: 1000 trees of boosting on all of digits would take half of the time."""

FOREST = "random forest"
NUMBERS = " of the numbers"
"""What the name of a model says that reads the columns of numbers only."""


@dataclass(frozen=True)
class SetErrors:
    """Test errors of all models on one data set.

    Parameters
    ----------
    data_set : str
        Its name, in words.
    n_test : int
        Number of held-out rows of a split.
    errors : dict of tuples
        Names of the models to their errors in percent, split by split; of one that failed, none.
    """

    data_set: str
    n_test: int
    errors: dict[str, tuple[float, ...]]

    def mean(self, model: str) -> float:
        """Return the mean error of a model; NaN if it failed or was not there."""
        found = self.errors.get(model, ())
        return float(np.mean(found)) if found else float("nan")


def run_demo(data_sets: Sequence[str] = DATA_SETS, n_splits: int = SPLITS) -> list[SetErrors]:
    """Fit every model on stratified splits of every data set, and test on the rows held out."""
    bar = TextColumn("{task.description:<46}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    # The sets are small: several threads would only wait for one another.
    with progress_bar(*bar) as show, threadpool_limits(1):
        return [set_errors(name, n_splits, show) for name in data_sets]


def set_errors(name: str, n_splits: int, show: Callable[..., None]) -> SetErrors:
    """Return the test errors of all models on a data set; `show` updates a progress bar."""
    words = name.replace("_", " ")
    table, target = load_table(name)
    data = Data.of(table, target, time_column=None, group=None, max_rows=10**6, seed=SEED)
    splitter = StratifiedShuffleSplit(n_splits, test_size=TEST_SIZE, random_state=SEED)
    parts = list(splitter.split(np.zeros(len(data.codes)), data.codes))
    train, test = map(len, parts[0])
    split = Split(parts, SplitSummary("holdout", n_splits, train, test, "", seed=SEED))
    models = candidates(data, ("single",), SEED)
    models.insert(-2, Candidate(FOREST, "peer", "", forest, False))
    study = run_study(
        data,
        split,
        models,
        lambda model, done, total: show(description=f"{words}: {model}", completed=done, total=total),
    )
    return SetErrors(words, test, errors_of(study))


def errors_of(study: Study) -> dict[str, tuple[float, ...]]:
    """Return the errors of all models in percent, split by split."""
    found = {}
    for trial in study.trials:
        wrong = 100.0 * (trial.P.argmax(axis=1) != study.held)
        ends = np.cumsum([len(held) for _, held in study.split.parts])[:-1]
        errors = tuple(float(part.mean()) for part in np.split(wrong, ends))
        found[trial.candidate.name.replace(NUMBERS, "")] = () if trial.failed else errors
    return found


def forest(encoder: TableEncoder) -> Any:
    """Return a random forest of numbers, missing ones included, and of indicators of categories."""
    kinds = Kinds.of(encoder.kinds)
    words = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_INDICATORS)
    before = make_column_transformer(
        (words, list(kinds.categories)), ("passthrough", [*kinds.numbers, *kinds.marks])
    )
    return make_pipeline(before, RandomForestClassifier(random_state=SEED))


def load_table(name: str) -> tuple[Any, str]:
    """Return a data set as a data frame, and the name of its target."""
    if name == ADULT:
        return load_adult_sample(), TARGET
    X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
    if len(y) > MOST_ROWS:
        kept = np.random.default_rng(SEED).permutation(len(y))[:MOST_ROWS]
        X, y = X[kept], y[kept]
    columns = {f"x{j}": column for j, column in enumerate(X.T)}
    return nw.from_dict({**columns, "class": y}, backend=frame_library()).to_native(), "class"


def adult_report(command: str) -> Report:
    """Return the report of the comparison on the sample of adult; `command` makes it again."""
    digest = hashlib.sha256(adult_sample_csv()).hexdigest()
    name = f"{ADULT}.csv"
    with threadpool_limits(1):
        return compare(load_adult_sample(), TARGET, name=name, command=command, sha256=digest).report
