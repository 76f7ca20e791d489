"""GD: gradient ascent of the conditional log-likelihood in the paper's natural parameters."""

from typing import Annotated, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from riskbayes.arrays import Array, like, max_of, namespace
from riskbayes.declared import Count, NotNegative, Positive, declared
from riskbayes.learners.base import Learner
from riskbayes.loop import Step
from riskbayes.models.natural import NaturalModel
from riskbayes.objectives import LogLoss
from riskbayes.statistics import Statistics
from riskbayes.task import Iteration, Task

LEAST_PROBABILITY = 1e-9
"""Lower bound on projected probabilities: on the border of the simplex there is no logarithm."""

LARGEST = 1e100
"""Upper bound on natural parameters: their squares and products with statistics must not overflow."""


def project_on_simplex(logarithms: Array) -> Array:
    """Return the logarithms of the probabilities nearest (Euclidean) to exp(logarithms), on the last axis."""
    xp = namespace(logarithms)
    with np.errstate(over="ignore"):
        v = xp.clip(xp.exp(logarithms), max=1e12)
    ordered = -xp.sort(-v, axis=-1)
    excess = xp.cumulative_sum(ordered, axis=-1) - 1.0
    places = xp.arange(1, v.shape[-1] + 1, **like(v))
    positive = ordered - excess / places > 0
    last = xp.sum(xp.astype(positive, xp.int64), axis=-1, keepdims=True) - 1
    shift = xp.take_along_axis(excess, last, axis=-1) / xp.astype(last + 1, v.dtype)
    p = xp.clip(v - shift, min=LEAST_PROBABILITY)
    return xp.log(p / xp.sum(p, axis=-1, keepdims=True))


def normalise(logarithms: Array) -> Array:
    """Return the logarithm of the softmax over the last axis."""
    xp = namespace(logarithms)
    centred = logarithms - xp.max(logarithms, axis=-1, keepdims=True)
    return centred - xp.log(xp.sum(xp.exp(centred), axis=-1, keepdims=True))


SIMPLEX = {"simplex": project_on_simplex, "softmax": normalise}


class GradientStep(Step):
    """eta <- eta + lr/m gradient, then the projection on the parameters of the model."""

    def __init__(self, task: Task, learner: "GD"):
        self.objective = LogLoss()
        self.model: NaturalModel = task.model  # type: ignore[assignment]  # the learner checked it
        self.total, self.lr, self.learner = task.S.total, learner.lr, learner

    def risk(self, risks: dict[str, float]) -> float:
        """Return the monitored risk."""
        return risks[self.learner.monitor]

    def propose(self, good: Iteration) -> Statistics:
        """Return the statistics of the parameters after a step: the loop moves statistics only."""
        (_, S, theta), dS = good.fitted, good.scan.dS
        assert dS is not None
        gradient = self.model.natural_gradient(dS, theta)
        eta = {
            name: old + self.lr / self.total * gradient[name]
            for name, old in self.model.to_natural(theta).items()
        }
        try:
            stepped = self.model.from_natural(
                eta, theta, SIMPLEX[self.learner.projection], self.learner.eigenvalue_floor
            )
        except Exception as error:
            if "LinAlgError" not in type(error).__name__:  # each library has its own
                raise
            return float("nan") * S  # eta2 is singular; NaN is not legal
        return self.model.inverse_parameters(stepped, self.total)


@declared
class GD(Learner):
    """Projected gradient ascent of the mean conditional log-likelihood, as in the paper's appendix.

    The parameters are eta0 = log p(y) and the natural ones of p(x | y): log p(x_i | y) for naive
    Bayes, Sigma^-1 mu and -Sigma^-1 / 2 for Gaussians, in the units of the data. The printed gradient
    has `tr(eta2^-1)` where the matrix eta2^-1 is meant, and none for eta0: both are corrected here.

    Parameters
    ----------
    lr : float, default=0.1
        The step is lr / m times the gradient.
    max_iter : int, default=64
        The most scans of the data after that of the closed form.
    projection : {"simplex", "softmax"}, default="simplex"
        How exp(eta) becomes probabilities: by the nearest point of the simplex, or normalised.
    eigenvalue_floor : float, default=1e-2
        Lower bound on the eigenvalues of covariances and on variances.
    monitor : {"soft_error", "log_loss"}, default="soft_error"
        The risk that must not rise.
    tol : float, default=0.0
        Stop when the monitored risk falls by less than this.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GaussianNB(learner="gd").fit(X, y)
    >>> bool(clf.history_["soft_error"][-1] <= clf.history_["soft_error"][0])
    True
    """

    name: ClassVar[str] = "gd"
    picks_rows = False
    needs: ClassVar[tuple[str, ...]] = (
        "to_natural",
        "natural_gradient",
        "from_natural",
        "inverse_parameters",
    )

    lr: Positive = 0.1
    max_iter: Count = 64
    projection: Annotated[str, StrOptions(set(SIMPLEX))] = "simplex"
    eigenvalue_floor: Positive = 1e-2
    monitor: Annotated[str, StrOptions({"soft_error", "log_loss"})] = "soft_error"
    tol: NotNegative = 0.0

    def begin(self, task: Task) -> Step:
        """Return a gradient step; refuse natural parameters that cannot be squared."""
        step = GradientStep(task, self)
        for value in step.model.to_natural(task.model.parameters(task.S)).values():
            if not float(max_of(namespace(value).abs(value))) < LARGEST:
                raise ValueError(
                    "GD steps in the units of the data, and the natural parameters of these rows are too "
                    "large to be squared. Scale the columns, for instance by "
                    "sklearn.preprocessing.StandardScaler, or take another learner."
                )
        return step
