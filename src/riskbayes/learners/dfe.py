"""DFE (Su et al. 2008): discriminative frequency estimate, in batch and online form."""

from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from riskbayes.arrays import Array, at_labels, namespace, one_hot
from riskbayes.declared import Count, Flag, NotNegative, Positive, declared
from riskbayes.learners.base import Learner
from riskbayes.learners.steps import FixedStep
from riskbayes.loop import Step
from riskbayes.models.base import GenerativeModel
from riskbayes.objectives import Objective
from riskbayes.risks import log_posterior
from riskbayes.statistics import Statistics
from riskbayes.task import Iteration, Task


class LabelSoftError(Objective):
    """The soft error, with a residual that strengthens the label and weakens no other class.

    It is not a gradient: its rows do not sum to zero, so the sample size grows.
    """

    risk = "soft_error"
    saturates = True

    def residual(self, P: Array, y: Array) -> Array:
        """Return E[i, k] = 1[y = k] (1 - P[y])."""
        return one_hot(y, P.shape[1], 1.0 - at_labels(P, y), P.dtype)


class OnlineStep(FixedStep):
    """A pass row by row: each adds its soft error under the model of the rows before it."""

    def __init__(self, task: Task, lr: float, random: np.random.RandomState | None):
        super().__init__(LabelSoftError(), "soft_error", lr)
        self.task, self.random = task, random

    def propose(self, good: Iteration) -> Statistics:
        """Return S after one pass: S <- S + lr (1 - p(y | x)) s(x, y) for each row."""
        model, S = self.task.model, good.fitted.S
        for Z, y, w in self.task.engine.one_by_one(model, S.frame, self.random):
            joint = model.scores(Z, model.parameters(S))
            missing = self.lr * w * (1.0 - namespace(joint).exp(at_labels(log_posterior(joint), y)))
            S = S + model.statistics(Z, one_hot(y, joint.shape[1], missing, joint.dtype))
        return S


@declared
class DFE(Learner):
    """Discriminative frequency estimate: s <- s + (1 - p(y | x)) s(x, y), for discrete models.

    Unlike RC it does not weaken the statistics of wrong labels, so the equivalent sample size grows by
    the soft error of each iteration.

    Parameters
    ----------
    lr : float, default=1.0
        Length of a step; one in both papers.
    max_iter : int, default=64
        The most iterations: scans of the data after that of the closed form.
    mode : {"batch", "online"}, default="batch"
        "batch" adds all rows under one model, as in the RC paper; "online" goes row by row, as in Su et al.
        The online form is sequential: it is not for data on several machines.
    shuffle : bool, default=False
        In online mode, take the rows in a new random order in each iteration.
    tol : float, default=0.0
        Stop when the soft error falls by less than this.
    random_state : int, RandomState instance or None, default=None
        For `shuffle`.

    References
    ----------
    J. Su, H. Zhang, C. X. Ling, S. Matwin, "Discriminative parameter learning for Bayesian networks",
    ICML 2008.

    Examples
    --------
    >>> from riskbayes import CategoricalNB
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]]
    >>> clf = CategoricalNB(learner="dfe").fit(X, [0, 0, 0, 1, 1])
    >>> bool(clf.statistics_.total > clf.data_statistics_.total)
    True
    """

    name: ClassVar[str] = "dfe"

    lr: Positive = 1.0
    max_iter: Count = 64
    mode: Annotated[str, StrOptions({"batch", "online"})] = "batch"
    shuffle: Flag = False
    tol: NotNegative = 0.0
    random_state: Annotated[Any, "random_state"] = None

    @property
    def goes_row_by_row(self) -> bool:  # type: ignore[override]
        """True in online mode."""
        return self.mode == "online"

    picks_rows = goes_row_by_row

    def check(self, model: GenerativeModel, n_classes: int) -> None:
        """Raise an error for a model whose statistics are not counts: DFE adds to counts."""
        super().check(model, n_classes)
        if model.traits.support not in ("categories", "counts"):
            raise TypeError(
                f"DFE is defined for discrete Bayesian networks, whose statistics are counts; "
                f"{type(model).__name__} has {model.traits.support} features. Take RC or TM, or cut the "
                "columns into categories by riskbayes.preprocessing.KMeansBins and use CategoricalNB."
            )

    def begin(self, task: Task) -> Step:
        """Return the batch or the online step."""
        if self.mode == "batch":
            return FixedStep(LabelSoftError(), "soft_error", self.lr)
        return OnlineStep(task, self.lr, check_random_state(self.random_state) if self.shuffle else None)
