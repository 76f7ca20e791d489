"""Risk-based calibration (RC): the statistics move until the soft error stops falling."""

from __future__ import annotations

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from riskbayes.engines.base import Scan
from riskbayes.learners.base import Learner, Step
from riskbayes.models.base import GenerativeModel
from riskbayes.statistics import Array, Statistics


def label_minus_posterior(P: Array, y: Array) -> Array:
    """E[i, k] = 1[y_i = k] - P[i, k], in place of P. Its rows sum to zero."""
    E = np.negative(P, out=P)
    E[np.arange(len(y)), y] += 1.0
    return E


class FixedStep(Step):
    """S <- S + lr dS; the first step that does not help is the last."""

    def __init__(self, lr: float):
        self.lr = lr

    def propose(self, S: Statistics, scan: Scan) -> Statistics:
        """S + lr (s(X, Y) - s(X, h))."""
        return S + self.lr * scan.dS  # type: ignore[operator]


class RC(Learner):
    """Risk-based calibration: strengthen the statistics of the label, weaken those of the posterior.

    One iteration is S <- S + lr * (s(X, Y) - s(X, h)), where s(X, h) are the statistics under the
    posterior of the present model. It goes on until the soft 0-1 error of the training rows rises,
    and returns the last good model.

    Parameters
    ----------
    lr : float, default=0.1
        The learning rate.
    max_iter : int, default=64
        The most scans of the data after that of the closed form.
    tol : float, default=0.0
        Stop when the soft error falls by less than this.

    References
    ----------
    A. Pérez, C. Echegoyen, G. Santafé, "Risk-based Calibration for Generative Classifiers".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import QuadraticDiscriminantAnalysis
    >>> from riskbayes.learners import RC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = QuadraticDiscriminantAnalysis(learner=RC(lr=0.5)).fit(X, y)
    >>> path = clf.history_["soft_error"]
    >>> bool(path[-1] < path[0])
    True
    """

    name: ClassVar[str] = "rc"
    residual = staticmethod(label_minus_posterior)

    _parameter_constraints: ClassVar[dict] = {
        "lr": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, lr: float = 0.1, max_iter: int = 64, tol: float = 0.0):
        self.lr = lr
        self.max_iter = max_iter
        self.tol = tol

    @classmethod
    def paper(cls) -> RC:
        """The setting of the paper's experiments."""
        return cls(lr=0.1, max_iter=64, tol=0.0)

    def begin(self, model: GenerativeModel, S: Statistics) -> Step:
        """A fixed step."""
        return FixedStep(self.lr)
