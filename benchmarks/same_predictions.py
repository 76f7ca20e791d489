"""Does a refactoring leave every prediction as it was? Fit everything before and after it, and compare.

"demo": every estimator of `riskbayes.__all__` by every learner of `riskbayes.learners.__all__` and by further
settings, on the sets of `riskbayes demo`, cut to 500 rows; estimators of categories read k-means bins.
"family": the three strategies of `RiskBayesClassifier` on the sets of `benchmarks/family.py`, split 3, cut to
2000 rows. Log joints (of `RiskBayesClassifier`, log posteriors) of the held-out quarter are stored, with how
the fit ended, what it warned of, or the error by which it was refused. Seeds are fixed and BLAS has one
thread: the same code gives the same bits on the same machine.

    python benchmarks/same_predictions.py --write before.npz      # at the old commit
    python benchmarks/same_predictions.py --compare before.npz    # at the new one; exit code 1 if they differ
    RISKBAYES_DATA=<folder> python benchmarks/same_predictions.py --only family --write family.npz
"""

import argparse
import json
import os
import sys
import warnings
from functools import partial
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from rich.console import Console
from rich.table import Table
from sklearn.base import ClassifierMixin
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import riskbayes
from riskbayes import GenerativeClassifier, RiskBayesClassifier, learners
from riskbayes.learners import DFE, GD, RC, Learner
from riskbayes.models import LDAModel
from riskbayes.preprocessing import KMeansBins
from riskbayes_paper.datasets import BUNDLED, PAPER_TABULAR, load_bundled, load_csv

TOLERANCE = 1e-9
"""Largest |difference| / (1 + |value|) that counts as the same."""

SMALL = {
    "max_iter": 16,
    "cv": 3,
    "generative_weights": (0, 0.1),
    "objectives": ("log_loss",),
    "random_state": 0,
}
"""Parameters of the learners that have them: repeatable fits that take little time."""

STRATEGIES = ("single", "cv", "ensemble")


class Unit(NamedTuple):
    """A classifier to be fitted, and its rows."""

    name: str
    clf: Any
    X: np.ndarray
    X_test: np.ndarray
    y: np.ndarray


class Result(NamedTuple):
    """Scores of the test rows, none where the fit was refused, and how the fit ended."""

    scores: np.ndarray
    facts: dict[str, str]


def demo_units() -> list[Unit]:
    units = []
    for name in BUNDLED:
        data = load_bundled(name).cut(500)
        X, X_test, y, _ = train_test_split(data.X, data.y, test_size=0.25, stratify=data.y, random_state=0)
        bins = KMeansBins().fit(X)
        for kind in public(riskbayes, ClassifierMixin):
            for setting, clf in settings(kind, len(np.unique(y))).items():
                codes = clf.__sklearn_tags__().input_tags.categorical
                rows = (bins.transform(X), bins.transform(X_test)) if codes else (X, X_test)
                units.append(Unit(f"demo: {name}, {kind.__name__}, {setting}", clf, *rows, y))
    return units


def family_units(folder: Path) -> list[Unit]:
    units = []
    for name in PAPER_TABULAR:
        data = load_csv(name, folder).cut(2000)
        X, X_test, y, _ = train_test_split(data.X, data.y, test_size=0.25, random_state=3)
        for setting, clf in settings(RiskBayesClassifier, 0).items():
            units.append(Unit(f"family: {name}, {setting}", clf, X, X_test, y))
    return units


def public(module: ModuleType, base: type) -> list[type]:
    """Subclasses of a class among a module's public names."""
    found = (getattr(module, name) for name in sorted(module.__all__))
    return [kind for kind in found if isinstance(kind, type) and issubclass(kind, base) and kind is not base]


def settings(kind: type, n_classes: int) -> dict[str, Any]:
    """The classifiers to fit of an estimator: one a learner, and one with weights."""
    if kind is RiskBayesClassifier:
        return {strategy: kind(strategy, random_state=0) for strategy in STRATEGIES}
    make = partial(kind, LDAModel()) if kind is GenerativeClassifier else kind
    if "random_state" in make().get_params(deep=False):
        make = partial(make, random_state=0)
    found = {name: make(learner=learner) for name, learner in learner_settings(n_classes).items()}
    if "class_weight" not in make().get_params():
        return found
    return found | {"rc, class weights": make(class_weight={0: 3.0})}


def learner_settings(n_classes: int) -> dict[str, Any]:
    """Every public learner, and settings that take other paths through the code."""
    kinds = public(learners, Learner)
    known = {kind: SMALL.keys() & kind().get_params().keys() for kind in kinds}
    costs = 1.0 - np.eye(n_classes)
    costs[0] *= 5
    return {kind.__name__: kind(**{name: SMALL[name] for name in known[kind]}) for kind in kinds} | {
        "rc": "rc",
        "RC.paper": RC.paper(),
        "RC, early stopping": RC(step="adaptive", early_stopping=True, random_state=0),
        "RC, refit": RC(early_stopping=True, refit=True, max_iter=16, random_state=0),
        "RC, restart": RC(n_restarts=1, max_iter=16, random_state=0),
        "RC, batches": RC(batch_size=32, max_iter=16, random_state=0),
        "RC, soft error": RC(objective="soft_error", step="adaptive", max_iter=16),
        "RC, costs": RC(objective=costs, step="adaptive", generative_weight=0.1, max_iter=16),
        "DFE, online": DFE(mode="online", shuffle=True, max_iter=2, random_state=0),
        "GD, softmax": GD(projection="softmax", max_iter=16),
    }


def fit(unit: Unit) -> Result:
    """Fit, and score the test rows by log joints, or by log posteriors where there are no joints."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            clf = unit.clf.fit(unit.X, unit.y)
            predict = getattr(clf, "predict_joint_log_proba", None) or clf.predict_log_proba
            scores = predict(unit.X_test)
        except Exception as error:  # one unit that fails after a change must not hide the others
            return Result(np.empty((0, 0)), {"refused": f"{type(error).__name__}: {error}"})
    kinds = sorted({warning.category.__name__ for warning in caught})
    return Result(scores, {"n_iter": join(clf.n_iter_), "status": join(clf.status_), "warnings": join(kinds)})


def join(values: Any) -> str:
    return ", ".join(map(str, values if isinstance(values, list) else [values]))


def fit_all(units: list[Unit]) -> dict[str, Result]:
    results = {}
    with threadpool_limits(1):
        for i, unit in enumerate(units, 1):
            start = perf_counter()
            found = results[unit.name] = fit(unit)
            end = found.facts.get("refused") or f"{found.facts['n_iter']} iterations, {found.facts['status']}"
            print(f"[{i}/{len(units)}] {unit.name}: {perf_counter() - start:.2f} s, {end[:80]}", flush=True)
    return results


def versions() -> str:
    return f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"


def write(path: Path, results: dict[str, Result]) -> None:
    about = json.dumps([versions(), {name: result.facts for name, result in results.items()}])
    with path.open("wb") as file:
        np.savez_compressed(file, about=about, **{name: result.scores for name, result in results.items()})


def read(path: Path) -> tuple[str, dict[str, Result]]:
    with np.load(path) as stored:
        made_by, facts = json.loads(str(stored["about"]))
        return made_by, {name: Result(stored[name], facts[name]) for name in facts}


def gap(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Largest |difference| of scores, and largest of it over 1 + |value|; inf for a score that is nan."""
    if a.shape != b.shape:
        return np.inf, np.inf
    with np.errstate(invalid="ignore"):
        difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    difference[np.isnan(difference)] = np.inf
    least = np.nan_to_num(np.fmin(np.abs(a), np.abs(b)), posinf=0.0)
    return difference.max(initial=0.0), (difference / (1.0 + least)).max(initial=0.0)


def compare(before: dict[str, Result], after: dict[str, Result]) -> bool:
    """Print what differs; return whether anything does. Refusals are compared by type, not by text."""
    table = Table("unit", "difference", "relative", "facts, before -> now")
    largest = 0.0
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            table.add_row(name, "", "", "is gone" if name in before else "is new")
            continue
        (old, was), (new, now) = before[name], after[name]
        absolute, relative = gap(old, new)
        largest = max(largest, absolute)
        facts = [
            f"{fact}: {was.get(fact) or 'none'} -> {now.get(fact) or 'none'}"
            for fact in sorted(was.keys() | now.keys())
            if was.get(fact, "").split(":")[0] != now.get(fact, "").split(":")[0]
        ]
        if relative > TOLERANCE or facts:
            table.add_row(name, f"{absolute:.3g}", f"{relative:.3g}", "\n".join(facts))
    if table.row_count:
        Console(width=160).print(table)
    refused = sum("refused" in result.facts for result in after.values())
    print(f"{len(after)} units, {refused} of them refused: {table.row_count} differ. ", end="")
    print(f"The largest difference of a score is {largest:.3g}.")
    return bool(table.row_count)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--write", type=Path, help="fit, and write the scores to this file")
    task.add_argument("--compare", type=Path, help="fit, and compare with the scores of this file")
    parser.add_argument("--only", choices=("demo", "family"), help="default: what the file has, or both")
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("RISKBAYES_DATA"))
    options = parser.parse_args()
    if options.write and not options.write.absolute().parent.is_dir():
        parser.error(f"There is no folder {options.write.parent} to write to.")
    parts, before = {"demo", "family"} if options.data_dir else {"demo"}, {}
    if options.compare:
        made_by, before = read(options.compare)
        parts = {name.split(":")[0] for name in before}
        if made_by != versions():
            print(f"{options.compare} was made by {made_by}; this is {versions()}.")
    parts = {options.only} if options.only else parts
    units = demo_units() if "demo" in parts else []
    units += family_units(options.data_dir) if "family" in parts else []
    print(f"{len(units)} units: {', '.join(sorted(parts))}", flush=True)
    after = fit_all(units)
    if options.write:
        write(options.write, after)
    else:
        wanted = {name: result for name, result in before.items() if name.split(":")[0] in parts}
        sys.exit(compare(wanted, after))


if __name__ == "__main__":
    main()
