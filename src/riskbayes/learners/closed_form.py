"""The learner that does not calibrate: it keeps the closed form of the data."""

from __future__ import annotations

from typing import ClassVar

from riskbayes.learners.base import Learner


class ClosedForm(Learner):
    """Maximum likelihood, or MAP if the model has a prior: one pass over the rows, no iterations.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianNB(learner="closed_form").fit(X, y).n_iter_
    0
    """

    name: ClassVar[str] = "closed_form"
    picks_rows = False
    _parameter_constraints: ClassVar[dict] = {}
