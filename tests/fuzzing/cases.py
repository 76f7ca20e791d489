"""One case: an estimator, a table, and how its answers are compared."""

from __future__ import annotations

import linecache
import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.utils
from numpy.linalg import LinAlgError
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import riskbayes
from fuzzing.estimators import ESTIMATORS, hyper_parameters, random_estimator, random_kind, uses
from fuzzing.tables import EPS, Array, Table, random_table
from riskbayes.learners import RC, ClosedForm

HELD, ROUNDING, UNDECIDED, REFUSED = "held", "rounding", "undecided", "refused"
"""How a law ends that is not violated: the answers agree; they differ by no more than rounding of the input
makes them; rounding of the input decides the answer, or the rows do not suit the law; there is no answer."""

TRIALS = 6
"""Perturbed inputs that are fitted before a difference is held against the estimator."""

ROUNDINGS = 100.0
"""An answer may differ by so many times what moving the input by its rounding does."""

SPACINGS = 8.0
"""A standard deviation of so many roundings of its cells is taken for their rounding."""

COVARIANCES = {
    "GaussianNB": "diagonal",
    "LinearDiscriminantAnalysis": "tied",
    "QuadraticDiscriminantAnalysis": "full",
}
"""Estimators whose closed form has one Gaussian a class, and its covariance."""


SPEAKING = (Path(riskbayes.__file__).parent, Path(sklearn.utils.__file__).parent)
"""Where a refusal comes from: this package, and scikit-learn's validation of what it is given."""


class Violation(Exception):
    """A law does not hold."""


@dataclass(frozen=True)
class Refusal:
    """A sentence in place of an answer."""

    message: str


def attempt(work: Callable[[], Any]) -> Any:
    """Return what `work` returns, or a Refusal; another error, or a warning of NumPy's, is a Violation."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = work()
        except Exception as error:
            if is_deliberate(error):
                return Refusal(str(error))
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = place(last.filename, last.lineno)
            raise Violation(f"{type(error).__name__}: {error} ({where})") from error
    for warning in caught:
        if warning.category not in (UserWarning, riskbayes.FlooredWarning, ConvergenceWarning):
            where = place(warning.filename, warning.lineno)
            raise Violation(f"{warning.category.__name__}: {warning.message} ({where})")
    return found


def place(filename: str, line: int | None) -> str:
    return f"{Path(filename).name}:{line}"


def is_deliberate(error: Exception) -> bool:
    """True if the package, or scikit-learn's validation, raised the error in a statement of its own."""
    if not isinstance(error, ValueError | TypeError | NotImplementedError) or isinstance(error, LinAlgError):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    stated = "raise" in linecache.getline(last.filename, last.lineno or 0)
    ours = any(Path(last.filename).is_relative_to(folder) for folder in SPEAKING)
    made = "contains NaN" in str(error)  # the tables have none: whoever finds it made it
    return ours and stated and not made


@dataclass
class Case:
    """What a seed and a number stand for."""

    seed: int
    number: int
    name: str = field(init=False)
    """The estimator's."""

    def __post_init__(self) -> None:
        self.name = list(ESTIMATORS)[self.rng(0).integers(len(ESTIMATORS))]

    def rng(self, *purpose: int) -> np.random.Generator:
        """A generator of the case's own for each purpose."""
        return np.random.default_rng([self.seed, self.number, *purpose])

    @cached_property
    def _drawn(self) -> tuple[Table, Array, Any]:
        rng = self.rng(1)
        kind, model = random_kind(self.name, rng)
        table = random_table(kind, model is not None, rng)
        labels = random_classes(table.n_classes, rng)
        return table, labels, random_estimator(self.name, model, table, labels, rng)

    @property
    def table(self) -> Table:
        return self._drawn[0]

    @property
    def labels(self) -> Array:
        """The label of each class code, in ascending order."""
        return self._drawn[1]

    @property
    def estimator(self) -> Any:
        return self._drawn[2]

    @property
    def learner(self) -> Any:
        """A learner or its name; None where the estimator takes none."""
        return getattr(self.estimator, "learner", None)

    @cached_property
    def closed_form(self) -> Any:
        """The estimator by closed form."""
        return clone(self.estimator).set_params(learner=ClosedForm.name)

    @cached_property
    def fitted(self) -> Any:
        """The estimator fitted on the table, or a Refusal."""
        return self.fit(self.estimator, self.table)

    @cached_property
    def answer(self) -> Any:
        """P of the near rows, or a Refusal."""
        return self.posterior(self.fitted, self.table)

    def fit(self, estimator: Any, table: Table, labels: Array | None = None) -> Any:
        """A clone fitted on a table, or a Refusal, after which the estimator must be as it was."""
        found, X = clone(estimator), table.held(table.X)
        before, labels = set(vars(found)), self.labels if labels is None else labels
        refused = attempt(lambda: found.fit(X, labels[table.y], **fit_arguments(found, table, labels)))
        if table.has_names and not X.equals(table.held(table.X)):
            raise Violation("a fit changes the data frame that it is given")
        if not isinstance(refused, Refusal):
            return found
        left = {name for name in vars(found) if not name.startswith(("_callback", "_skl"))} - before
        if left:
            raise Violation(f"a refused fit leaves {sorted(left)} behind")
        return refused

    def posterior(self, found: Any, table: Table, rows: Array | None = None) -> Any:
        """P of the table's near rows, or of others, or a Refusal."""
        if isinstance(found, Refusal):
            return found
        return attempt(lambda: found.predict_proba(table.held(table.near if rows is None else rows)))

    def same_answer(self, table: Table, first: Table | None = None, estimator: Any = None) -> str:
        """How a fit on a transformed table agrees with one on the first, by default the case's own."""
        P = self.answer if first is None else self.posterior(self.fit(self.estimator, first), first)
        Q = self.posterior(self.fit(self.estimator if estimator is None else estimator, table), table)
        return self.compare(P, Q, self.estimator, self.table if first is None else first)

    def compare(self, P: Any, Q: Any, estimator: Any, table: Table, bound: float | None = None) -> str:
        """How two answers agree that an estimator fitted on a table has for the near rows.

        Where no bound on their difference is known, it is compared with what the rounding of the input does
        to the answer, as float64 shows it: iterations amplify rounding, and branch where two risks tie.
        """
        if isinstance(P, Refusal) and isinstance(Q, Refusal):
            return REFUSED
        for one in (P, Q):
            if isinstance(one, Refusal):
                if re.search("(over|under)flow", one.message) and {"scaled", "weights of a size"} & set(
                    table.traits
                ):
                    return UNDECIDED  # at the end of the range of floats, the order of a sum decides
                raise Violation(f"one is refused ({one.message}), the other answered")
        gap = float(np.abs(P - Q).max())
        bound = self.bound(estimator, table) if bound is None else bound
        if bound is not None:
            if gap <= bound:
                return HELD
            raise Violation(f"posteriors differ by {gap:.3g}; rounding explains {bound:.3g}")
        if gap <= self.tolerance(table):
            return HELD
        return UNDECIDED if self.is_noise_of_float32(table) else self.explain(gap, estimator, table)

    def tolerance(self, table: Table) -> float:
        """What two answers may differ by, before one asks for the reason.

        A risk that rises by 1e-12 counts as the same, and one of float32 rows has the noise of their
        rounding: near a minimum, a step is as long as the root of what it does to the risk. Directions in
        which rows do not vary have a floor for a variance, and rounding is divided by it. An objective with
        an anchor has a log-likelihood in it, and so the logarithms of the units: in others it is rounded
        elsewhere, which moving the rows does not show.
        """
        if table.eps > EPS:  # a search by halves ends where the noise of risks says
            return 5e-3 if getattr(self.estimator, "learner", None) == ClosedForm.name else 2e-2
        gaussian = table.kind == "real" and self.name != "SmoothNB"
        learner = getattr(self.estimator, "learner", None)
        if learner == RC.name or getattr(learner, "generative_weight", 0) not in (0, 0.0):
            return 1e-3
        return 1e-3 if gaussian and np.isinf(table.condition(COVARIANCES.get(self.name, "full"))) else 1e-5

    def explain(self, gap: float, estimator: Any, table: Table) -> str:
        """How a difference compares with what rounding of the input does."""
        if self.name == "MixtureDiscriminantAnalysis" and self.has_undetermined_components(table):
            return UNDECIDED  # EM goes where their last digits say
        exact = table.with_(holder="float64") if table.eps > EPS else table
        here, moved = self.posterior(self.fit(estimator, exact), exact), 0.0
        for trial in range(TRIALS):
            other = table.perturbed(self.rng(2, trial)).with_(holder=exact.holder)
            there = self.posterior(self.fit(estimator, other), other)
            if isinstance(here, Refusal) or isinstance(there, Refusal):
                return UNDECIDED
            moved = max(moved, float(np.abs(here - there).max()))
            # The steps of EM branch, where those of a closed form do not.
            if gap <= (10 if self.name == "MixtureDiscriminantAnalysis" else 1) * ROUNDINGS * moved:
                return ROUNDING if moved < 1e-3 else UNDECIDED
        raise Violation(f"posteriors differ by {gap:.3g}; rounding of the input moves them by {moved:.3g}")

    def has_undetermined_components(self, table: Table) -> bool:
        """True if components may have fewer rows than columns, or the rows of a class are collinear."""
        rows, enough = np.bincount(table.y), self.estimator.n_components * (table.X.shape[1] + 1)
        return bool(np.isinf(table.condition("full")) or (rows < enough).any())

    def bound(self, estimator: Any, table: Table) -> float | None:
        """How far rounding may move P, where the rows tell; None where only a trial can.

        They tell it of closed forms. Those of counts are sums of positive numbers; those of Gaussians amplify
        rounding by the condition number. A mixture is started by k-means and EM, whose steps branch; so do
        calibrated models; and what rows do not determine is held by floors.
        """
        if getattr(estimator, "learner", None) != ClosedForm.name:
            return None
        if table.kind == "categories" or self.name == "SmoothNB":
            return 1e-9 + 1e3 * table.eps
        if self.name not in COVARIANCES:
            return None
        found = 1e-9 + 1e3 * table.eps * table.condition(COVARIANCES[self.name])
        return found if found < 1e-3 else None

    def is_noise_of_float32(self, table: Table) -> bool:
        """True for float32 rows that leave covariances to rounding.

        Sums of float32 have noise in directions where the rows do not vary, unless a prior does there, and
        where squares of the means cancel. Rows that are moved still do not vary there, and do not show it.
        """
        if table.eps == EPS:
            return False
        mixed = uses(self.estimator, "covariance_strength") and uses(self.estimator, "diagonal_mix")
        named = uses(self.estimator, "prior") and not any(
            name in ("covariance_strength", "diagonal_mix") and value == 0
            for name, value in hyper_parameters(self.estimator)
        )
        held = mixed or named or uses(self.estimator, "shrinkage", "reg_param", "prior_covariance")
        by_default = self.name in ("RiskBayesClassifier", "SmoothNB")
        covariance = "diagonal" if held or by_default else COVARIANCES.get(self.name, "full")
        return table.eps * table.condition(covariance) > 1e-2

    def is_within_float32(self, table: Table) -> bool:
        """True if a variance of a class may be within the rounding of float32 cells, where models take it for
        zero: of the same cells as float64 it is a variance.
        """
        rounded = SPACINGS * table.rounding()
        return bool(rounded**2 * table.condition(COVARIANCES.get(self.name, "full")) > 1.0)

    def __str__(self) -> str:
        (m, n), table = self.table.X.shape, self.table
        validation = () if table.validation is None else ("validation rows",)
        traits = (f"{m} x {n} {table.holder}", f"{table.n_classes} classes", *table.traits, *validation)
        return f"{' '.join(repr(self.estimator).split())} on {', '.join(traits)}"


def random_classes(r: int, rng: np.random.Generator) -> Array:
    """Ascending labels of some kind."""
    numbers = np.sort(rng.choice(200, size=r, replace=False)) - 50
    return [np.arange(r), numbers, np.array([f"class {n + 50:03d}" for n in numbers])][rng.integers(3)]


def fit_arguments(estimator: Any, table: Table, labels: Array) -> dict[str, Any]:
    """Weights, and validation rows where the estimator takes them."""
    found: dict[str, Any] = {}
    if table.w is not None:
        found["sample_weight"] = table.w.copy()
        found["sample_weight"].setflags(write=False)
    if table.validation is not None and hasattr(estimator, "learner"):
        X, y = table.validation
        found |= {"X_val": table.held(X), "y_val": labels[y]}
    return found
