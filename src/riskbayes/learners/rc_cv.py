"""RC whose iterations, anchor and objective are chosen by cross-validation, one path a fold."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from riskbayes.arrays import Array, to_numpy
from riskbayes.engines.base import Engine
from riskbayes.learners.base import Learner, Step
from riskbayes.learners.rc import RC, judged_by, positive_rows
from riskbayes.models.base import GenerativeModel
from riskbayes.statistics import Statistics

if TYPE_CHECKING:
    from riskbayes.loop import Outcome, Task


class RCCV(Learner):
    """Risk-based calibration with cross-validated iterations, anchor and objective.

    Each fold learns everything from its own rows, walks each path once and scores every iteration of it on
    its held-out rows; the setting and the iteration of least error (then of least soft error, then the
    fewest iterations) are refitted on all rows. Where only costs are tried, the least cost decides.

    Parameters
    ----------
    cv : int, default=5
        Number of stratified folds.
    generative_weights : sequence of float, default=(0, 0.03, 0.1, 0.3)
        Anchors to try.
    objectives : sequence, default=("log_loss", "soft_error")
        Objectives to try.
    lr, max_iter, step, monitor
        As in :class:`RC`, but that the objective is monitored: held-out rows say when to stop.
    n_jobs : int or None, default=None
        Folds walked at the same time, in threads.
    random_state : int, RandomState instance or None, default=None
        For the folds.

    Attributes
    ----------
    On `clf.learner_` after a fit: `generative_weight_`, `objective_`, `n_iter_`, `settings_` (what was
    tried) and `cv_error_` (settings x iterations, mean held-out error of the folds).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import QuadraticDiscriminantAnalysis
    >>> from riskbayes.learners import RCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = QuadraticDiscriminantAnalysis(learner=RCCV(random_state=0)).fit(X, y)
    >>> clf.learner_.cv_error_.shape
    (8, 65)
    """

    name: ClassVar[str] = "rc_cv"

    _parameter_constraints: ClassVar[dict] = {
        "cv": [Interval(Integral, 2, None, closed="left")],
        "generative_weights": ["array-like"],
        "objectives": [list, tuple],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "step": [StrOptions({"fixed", "adaptive"})],
        "monitor": [StrOptions({"soft_error", "log_loss", "objective"}), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        cv: int = 5,
        generative_weights: Any = (0, 0.03, 0.1, 0.3),
        objectives: Any = ("log_loss", "soft_error"),
        lr: float = 0.1,
        max_iter: int = 64,
        step: str = "fixed",
        monitor: str | None = "objective",
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.cv = cv
        self.generative_weights = generative_weights
        self.objectives = objectives
        self.lr = lr
        self.max_iter = max_iter
        self.step = step
        self.monitor = monitor
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learners(self) -> list[RC]:
        common: dict[str, Any] = {name: getattr(self, name) for name in ("lr", "max_iter", "step", "monitor")}
        return [
            # The whole path is wanted: no iteration without improvement ends it.
            RC(objective=objective, generative_weight=weight, n_iter_no_change=self.max_iter + 1, **common)
            for objective, weight in product(self.objectives, self.generative_weights)
        ]

    def check(self, model: GenerativeModel, n_classes: int) -> None:
        """Every setting must be one of RC's."""
        super().check(model, n_classes)
        if len(self.objectives) == 0 or len(self.generative_weights) == 0:
            raise ValueError("RCCV needs at least one of objectives and one of generative_weights.")
        for learner in self._learners():
            learner.check(model, n_classes)

    def begin(self, model: GenerativeModel, engine: Engine, S: Statistics) -> Step:
        """Where there is no path to choose on, as in `partial_fit`: the first setting."""
        return self._learners()[0].begin(model, engine, S)

    def cost_matrix(self, n_classes: int) -> Array | None:
        """That of the objective chosen."""
        chosen = getattr(self, "objective_", self.objectives[0])
        return None if isinstance(chosen, str) else np.asarray(chosen, dtype=np.float64)

    def fit_statistics(self, task: Task) -> Outcome:
        """Walk the paths, choose, and walk the chosen one on all rows."""
        from sklearn.model_selection import StratifiedKFold  # here: slow to import

        from riskbayes.loop import Status, nobody, run

        learners, rows = self._learners(), positive_rows(task.engine)
        y = to_numpy(task.engine.y)[rows]
        fewest = int(np.bincount(y, minlength=task.S["s0"].shape[0]).min())
        if fewest < 2:
            raise ValueError("RCCV needs two rows of weight or more of each class.")
        folds = StratifiedKFold(min(self.cv, fewest), shuffle=True, random_state=self.random_state)
        quiet, empty = replace(task, on_iteration=nobody), np.empty((len(y), 0))
        splits = [(rows[kept], rows[held]) for kept, held in folds.split(empty, y)]
        jobs = effective_n_jobs(self.n_jobs)
        try:
            # Threads of our own or of BLAS, never both.
            with threadpool_limits(limits=1 if jobs > 1 else None):
                found = Parallel(n_jobs=jobs, prefer="threads")(
                    delayed(walk_fold)(quiet, kept, held, learners) for kept, held in splits
                )
        except KeyboardInterrupt:
            return run(task, learners[0], max_iter=0)._replace(status=Status.INTERRUPTED)
        walks, mass = [histories for histories, _ in found], [weight for _, weight in found]
        # Costs are compared by costs, where nothing else is tried.
        main = "cost" if all("val_cost" in history for fold in walks for history in fold) else "error"
        error, soft = (
            np.average(
                [[held_path(history, f"val_{name}", self.max_iter) for history in fold] for fold in walks],
                axis=0,
                weights=mass,
            )
            for name in (main, "soft_error")
        )
        # Fewest iterations first, so that ties go to them.
        number, setting = np.unravel_index(
            np.lexsort((soft.T.ravel(), error.T.ravel().round(12)))[0], error.T.shape
        )
        chosen = learners[setting]
        self.generative_weight_, self.objective_ = chosen.generative_weight, chosen.objective
        self.n_iter_, self.cv_error_ = int(number), error
        self.settings_ = [(learner.objective, learner.generative_weight) for learner in learners]
        outcome = run(task, chosen, max_iter=self.n_iter_)
        if outcome.status is Status.MAX_ITER and self.n_iter_ < self.max_iter:
            return outcome._replace(status=Status.VALIDATION)  # the held rows said how far to go
        return outcome


def walk_fold(
    task: Task, kept: Array, held: Array, learners: list[RC]
) -> tuple[list[dict[str, Array]], float]:
    """The histories of every learner's path in one fold, and the weight of its held rows."""
    part = judged_by(task, kept, held)
    assert part.validation is not None
    return [walk(part, learner) for learner in learners], part.validation.mass


def walk(part: Task, learner: RC) -> dict[str, Array]:
    """The history of one path; an interrupt ends all of them."""
    from riskbayes.loop import Status, run

    found = run(part, learner)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found.history


def held_path(history: dict[str, Array], name: str, max_iter: int) -> Array:
    """A risk by scan: that of the last good model, to the end of the path."""
    values, accepted = history[name], history["accepted"]
    last = np.maximum.accumulate(np.where(accepted, np.arange(len(values)), 0))
    return values[last][np.minimum(np.arange(max_iter + 1), len(values) - 1)]
