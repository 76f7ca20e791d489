"""RC whose strength, from the class frequencies to the optimum of the risk, held-out rows select."""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from riskbayes.arrays import Array
from riskbayes.declared import Count, declared
from riskbayes.engines.base import Engine
from riskbayes.learners.base import Learner
from riskbayes.learners.rc import RC, anchor_unit
from riskbayes.loop import run
from riskbayes.models.base import Fitted, GenerativeModel
from riskbayes.objectives import resolve_objective
from riskbayes.search import check_finished, comparable, run_path, walk_folds
from riskbayes.statistics import Statistics
from riskbayes.task import Outcome, Status, Task

SHARES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
"""Anchors to try, in units of degrees of freedom / total weight, for `generative_weights="auto"`."""

POOLED_SHARES = (1.0, 0.9, 0.7, 0.3)
"""Shares of pooled statistics to try: where most columns are noise the closed form itself is too sure."""

STANDARD_ERRORS = 2.0
"""The class frequencies are kept unless the least score is lower by so many standard errors."""


@declared
class RCCV(Learner):
    """Risk-based calibration whose anchor and objective are chosen on held-out rows.

    No anchor is right everywhere: a strong one leaves the closed form as it is, a weak one overfits small
    tables. So every fold walks a path from the class frequencies over the closed form and strong anchors to
    weak ones, each fit going on from where the one before ended, and scores each on its held-out rows, by
    error plus log loss. The path is then walked on all rows up to the anchor of the least score; of equal
    ones the strongest. If all objectives are cost matrices, the least cost decides.

    Between the class frequencies and the closed form are the statistics (1 - t) S + t P, where the parameters
    of P are those of all classes together: their posterior is p(y), but for :class:`ComplementNB`, whose
    scores leave p(y) out. The held-out score must be below that of p(y) by two standard errors, unless it is
    a cost: labels that are noise give p(y).

    Parameters
    ----------
    cv : int, default=5
        Number of stratified folds.
    generative_weights : "auto" or sequence of float, default="auto"
        Anchors to try. "auto" are 10, 3, 1, 0.3, 0.1, 0.03 and 0.01 times the model's degrees of freedom over
        the total weight; 0 for a model that has no `log_likelihood`.
    objectives : sequence, default=("log_loss",)
        Objectives to try, as in :class:`RC`: a path each.
    max_iter : int, default=64
        The most scans for one anchor.
    n_jobs : int or None, default=None
        Folds trained at the same time, in threads.
    random_state : int, RandomState instance or None, default=None
        For the folds.

    Attributes
    ----------
    On `clf.learner_` after a fit: `generative_weight_` (infinite for the closed form and stronger),
    `objective_` and `pooled_share_` (t; zero from the closed form on) of what was chosen; `settings_` (pairs
    of an objective and an anchor, all that were tried, the class frequencies first) and `pooled_shares_`,
    `cv_error_`, `cv_log_loss_` and `cv_score_`, an entry for each of them: means over the folds; the last is
    what they were chosen by.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import QuadraticDiscriminantAnalysis
    >>> from riskbayes.learners import RCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = QuadraticDiscriminantAnalysis(learner=RCCV(random_state=0)).fit(X, y)
    >>> clf.learner_.cv_error_.shape
    (12,)
    """

    name: ClassVar[str] = "rc_cv"

    cv: Annotated[int, Interval(Integral, 2, None, closed="left")] = 5
    generative_weights: Annotated[Any, StrOptions({"auto"}), "array-like"] = "auto"
    objectives: Annotated[Any, list, tuple] = ("log_loss",)
    max_iter: Count = 64
    n_jobs: Annotated[int | None, Integral, None] = None
    random_state: Annotated[Any, "random_state"] = None

    def _paths(self, weights: Sequence[float]) -> list[list[RC]]:
        """Return the learners of each objective, for anchors from strong to weak."""
        return [
            [RC(objective=each, generative_weight=g, max_iter=self.max_iter) for g in weights]
            for each in self.objectives
        ]

    def _weights(self, task: Task) -> list[float]:
        """Return the anchors to try, from strong to weak."""
        if not isinstance(self.generative_weights, str):
            return sorted(self.generative_weights, reverse=True)
        unit = anchor_unit(task)
        return [share * unit for share in SHARES] if unit > 0 else [0.0]

    def check(self, model: GenerativeModel, n_classes: int) -> None:
        """Raise an error for wrong parameters, of RCCV or of the RC of any setting."""
        super().check(model, n_classes)
        weights = [0.0] if isinstance(self.generative_weights, str) else list(self.generative_weights)
        if len(self.objectives) == 0 or len(weights) == 0:
            raise ValueError("RCCV needs at least one of objectives and one of generative_weights.")
        for path in self._paths(weights):
            for learner in path:
                learner.check(model, n_classes)

    def check_stream(self) -> None:
        """Raise an error: folds are parts of the same rows."""
        raise ValueError(
            "partial_fit takes one step on each batch, and RCCV selects by folds of all rows. Set learner to "
            "an RC, or call fit with all rows."
        )

    @property
    def most_iterations(self) -> int:
        """The most iterations of the path that is walked on all rows."""
        auto = isinstance(self.generative_weights, str)
        return self.max_iter * len(SHARES if auto else self.generative_weights) + 1

    @property
    def cost_matrix(self) -> Array | None:  # type: ignore[override]
        """The selected objective, if it is a cost matrix."""
        return RC(objective=getattr(self, "objective_", self.objectives[0])).cost_matrix

    def fit_statistics(self, task: Task) -> Outcome:
        """Walk the paths in every fold, select, and walk the selected one on all rows."""
        fewest, n_classes = int(task.engine.class_counts().min()), task.S["s0"].shape[0]
        if fewest < 2:
            raise ValueError("RCCV needs two rows of weight or more of each class.")
        weights = self._weights(task)
        paths = self._paths(weights)

        def work(part: Task, held: Engine) -> list[dict[str, float]]:
            fits = [(Fitted.of(part.model, S), self.objectives[0]) for S in shrunk(part)]
            for objective, path in zip(self.objectives, paths, strict=True):
                for outcome in run_path(part, path):
                    check_finished(outcome.status)
                    fits.append((outcome.fitted, objective))
            with np.errstate(over="ignore", invalid="ignore"):
                return [
                    held.scan(fitted, resolve_objective(objective, n_classes), risks_only=True).risks.mean()
                    for fitted, objective in fits
                ]

        try:
            found = walk_folds(task, work, min(self.cv, fewest), self.random_state, self.n_jobs)
        except KeyboardInterrupt:
            return run(task, paths[0][0], max_iter=0)._replace(status=Status.INTERRUPTED)
        n_closed, n_fits = 1 + len(POOLED_SHARES), len(self.objectives) * len(weights)
        self.pooled_shares_ = np.array([*POOLED_SHARES, *np.zeros(1 + n_fits)])
        self.settings_ = [(self.objectives[0], np.inf)] * n_closed
        self.settings_ += [(objective, g) for objective in self.objectives for g in weights]
        number = self._choose(found, task.engine.n_rows)
        self.objective_, self.generative_weight_ = self.settings_[number]
        self.pooled_share_ = float(self.pooled_shares_[number])
        if number < n_closed:
            own = replace(task, start=shrunk(task)[number])
            return run(own, paths[0][0], max_iter=0)._replace(status=Status.VALIDATION)
        place, last = divmod(number - n_closed, len(weights))
        return joined(list(run_path(task, paths[place][: last + 1])))

    def _choose(self, found: Sequence[dict[str, float]], n_rows: int) -> int:
        """Return the place of the least score; of equal ones the first, which is the strongest anchor's.

        But the class frequencies, if the least score is not lower than theirs by more than chance; costs are
        not asked. `spread` is the standard error of the difference of two errors that fall on different rows.
        """
        self.cv_error_ = np.array([risks["error"] for risks in found])
        self.cv_log_loss_ = np.array([risks["log_loss"] for risks in found])
        costs = [risks.get("cost", np.nan) for risks in found]
        # Objectives that are all cost matrices are compared by their costs.
        by_cost = not np.isnan(costs).any()
        self.cv_score_ = comparable(np.array(costs) if by_cost else self.cv_error_ + self.cv_log_loss_)
        best = int(self.cv_score_.argmin())
        spread = np.sqrt((self.cv_error_[0] + self.cv_error_[best]) / n_rows)
        told = by_cost or self.cv_score_[0] - self.cv_score_[best] > STANDARD_ERRORS * spread
        return best if told else 0


def shrunk(task: Task) -> list[Statistics]:
    """Return the statistics of the class frequencies, those between, and those that the fit starts from."""
    start = task.S if task.start is None else task.start
    pooled = task.model.coordinates(task.S).independent()
    return [*(Statistics.combined((1.0 - t, start), (t, pooled)) for t in POOLED_SHARES), start]


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of a path: the model of its last fit, and the history of all of them."""
    first, last = outcomes[0], outcomes[-1]
    history = {
        name: np.concatenate([first.history[name], *(each.history[name][1:] for each in outcomes[1:])])
        for name in first.history
    }
    before = sum(len(each.history["accepted"]) - 1 for each in outcomes[:-1])
    number = (
        before + last.number
        if last.number
        else max((i for i in range(before + 1) if history["accepted"][i]), default=0)
    )
    return last._replace(history=history, number=number, floored=first.floored)
