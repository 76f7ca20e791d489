"""RC whose number of iterations, anchor and objective are selected by cross-validation."""

from __future__ import annotations

from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from riskbayes.arrays import Array
from riskbayes.learners.base import Learner
from riskbayes.learners.rc import RC
from riskbayes.loop import run
from riskbayes.models.base import GenerativeModel
from riskbayes.search import mean_paths, walk_folds
from riskbayes.task import Outcome, Status, Task


class RCCV(Learner):
    """Risk-based calibration with cross-validated iterations, anchor and objective.

    Each fold learns everything from its own rows, trains every setting once, and scores every iteration on
    its held-out rows. The setting and the iteration of least error (then of least soft error, then the
    fewest iterations) are refitted on all rows. If all objectives are cost matrices, the least cost decides.

    Parameters
    ----------
    cv : int, default=5
        Number of stratified folds.
    generative_weights : sequence of float, default=(0, 0.03, 0.1, 0.3)
        Anchors to try.
    objectives : sequence, default=("log_loss", "soft_error")
        Objectives to try.
    lr, max_iter, step, monitor
        As in :class:`RC`, except that the objective is monitored: held-out rows say when to stop.
    n_jobs : int or None, default=None
        Folds trained at the same time, in threads.
    random_state : int, RandomState instance or None, default=None
        For the folds.

    Attributes
    ----------
    On `clf.learner_` after a fit: `generative_weight_`, `objective_`, `n_iter_`, `settings_` (all that were
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
        """Return an RC for every setting."""
        common: dict[str, Any] = {name: getattr(self, name) for name in ("lr", "max_iter", "step", "monitor")}
        return [
            # All max_iter iterations are scored: iterations without improvement do not end a fit.
            RC(objective=objective, generative_weight=weight, n_iter_no_change=self.max_iter + 1, **common)
            for objective, weight in product(self.objectives, self.generative_weights)
        ]

    def check(self, model: GenerativeModel, n_classes: int) -> None:
        """Raise an error for wrong parameters, of RCCV or of the RC of any setting."""
        super().check(model, n_classes)
        if len(self.objectives) == 0 or len(self.generative_weights) == 0:
            raise ValueError("RCCV needs at least one of objectives and one of generative_weights.")
        for learner in self._learners():
            learner.check(model, n_classes)

    def check_stream(self) -> None:
        """Raise an error: folds are parts of the same rows."""
        raise ValueError(
            "partial_fit takes one step on each batch, and RCCV selects by folds of all rows. Set learner to "
            "an RC, or call fit with all rows."
        )

    @property
    def cost_matrix(self) -> Array | None:  # type: ignore[override]
        """The selected objective, if it is a cost matrix."""
        return RC(objective=getattr(self, "objective_", self.objectives[0])).cost_matrix

    def fit_statistics(self, task: Task) -> Outcome:
        """Train every setting in every fold, select, and refit the selected setting on all rows."""
        learners, fewest = self._learners(), int(task.engine.class_counts().min())
        if fewest < 2:
            raise ValueError("RCCV needs two rows of weight or more of each class.")
        try:
            walks, masses = walk_folds(task, learners, min(self.cv, fewest), self.random_state, self.n_jobs)
        except KeyboardInterrupt:
            return run(task, learners[0], max_iter=0)._replace(status=Status.INTERRUPTED)
        # Objectives that are all cost matrices are compared by their costs.
        main = "cost" if all("val_cost" in history for fold in walks for history in fold) else "error"
        error, soft = (mean_paths(walks, masses, name, self.max_iter) for name in (main, "soft_error"))
        # Sorted by the number of iterations first, so that ties go to the fewest.
        number, setting = np.unravel_index(
            np.lexsort((soft.T.ravel(), error.T.ravel().round(12)))[0], error.T.shape
        )
        chosen = learners[setting]
        self.generative_weight_, self.objective_ = chosen.generative_weight, chosen.objective
        self.n_iter_, self.cv_error_ = int(number), error
        self.settings_ = [(learner.objective, learner.generative_weight) for learner in learners]
        outcome = run(task, chosen, max_iter=self.n_iter_)
        if outcome.status is Status.MAX_ITER and self.n_iter_ < self.max_iter:
            return outcome._replace(status=Status.VALIDATION)  # the held-out rows set the number
        return outcome
