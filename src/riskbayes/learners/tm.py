"""TM (Edwards and Lauritzen 2001): ascent of the conditional likelihood by steps of length one."""

from typing import Annotated, ClassVar

from sklearn.utils._param_validation import StrOptions

from riskbayes.declared import Count, NotNegative, declared
from riskbayes.learners.base import Learner
from riskbayes.learners.steps import AdaptiveStep
from riskbayes.loop import Step
from riskbayes.objectives import LogLoss
from riskbayes.task import Task


class UnitStep(AdaptiveStep):
    """A step that starts at length one and is halved until it is legal and does not raise the risk."""

    def on_success(self) -> None:
        """Start the next step at length one."""
        self.lr = 1.0


@declared
class TM(Learner):
    """The TM algorithm: u <- u + u(X, Y) - u(X, h), for the statistics u that depend on the class.

    It is RC with a learning rate of one: statistics that do not depend on the class never change, since the
    rows of the residual sum to zero. A step that leaves the domain of the closed form or raises the
    monitored risk is halved.

    Parameters
    ----------
    max_iter : int, default=64
        The most scans of the data after that of the closed form.
    monitor : {"log_loss", "soft_error"}, default="log_loss"
        The risk that must not rise.
    tol : float, default=0.0
        Stop when the monitored risk falls by less than this.

    References
    ----------
    D. Edwards, S. L. Lauritzen, "The TM algorithm for maximising a conditional likelihood function",
    Biometrika 88 (2001).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearDiscriminantAnalysis(learner="tm").fit(X, y)
    >>> bool(clf.history_["log_loss"].min() < 0.1)
    True
    """

    name: ClassVar[str] = "tm"
    picks_rows = False

    max_iter: Count = 64
    monitor: Annotated[str, StrOptions({"log_loss", "soft_error"})] = "log_loss"
    tol: NotNegative = 0.0

    def begin(self, task: Task) -> Step:
        """Return a step of length one."""
        return UnitStep(LogLoss(), self.monitor, 1.0)
