"""Class frequencies that differ from those of the training rows: set them, or estimate them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, to_numpy
from riskbayes.estimators.checks import check_class_prior, listed
from riskbayes.exceptions import warn


class PriorsMixin:
    """`with_priors` and `estimate_priors` of a classifier with `classes_` and `predict_proba`."""

    classes_: Array
    _priors: Array | None = None
    """The class frequencies that `with_priors` set; None for those of the training rows."""

    def _training_prior(self) -> Array:
        """Return the class frequencies that the posteriors of the fit are for."""
        raise NotImplementedError

    def _set_log_ratio(self, log_ratio: Array) -> None:
        """Add log p'(y) / p(y) to the log joint of every class."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> Array:
        """Return the posterior."""
        raise NotImplementedError

    def _current_prior(self) -> Array:
        return self._training_prior() if self._priors is None else to_numpy(self._priors)

    def with_priors(self, p: Any) -> Self:
        """Return a copy of this classifier for rows with other class frequencies.

        p(x | y) stays, and log p(y) changes by log p(y) - log of the frequency in the training rows. For the
        closed form that sets p(y) = p. Calibration moves p(y) together with p(x | y); after it the posterior
        of the training frequencies is kept, and is weighted by p over them.

        The copy is for predictions. What counts rows again (`fit`, `partial_fit`, `merge`, `forget`,
        `calibrate`) returns to the frequencies of these rows.

        Parameters
        ----------
        p : dict or array-like of shape (n_classes,)
            The class frequencies, by label or in the order of `classes_`. They sum to one.

        Returns
        -------
        classifier : object
            A fitted copy; this classifier does not change.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from riskbayes import GaussianNB
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> clf = GaussianNB().fit(X, y)
        >>> rare = clf.with_priors({0: 0.01, 1: 0.99})
        >>> bool(rare.predict_proba(X)[:, 0].mean() < clf.predict_proba(X)[:, 0].mean())
        True
        """
        check_is_fitted(self)
        wanted = self._checked_priors(p)
        found = copy(self)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(wanted) - np.log(self._current_prior())
        found._set_log_ratio(np.where(wanted > 0, ratio, -np.inf))
        found._priors = wanted
        return found

    def _checked_priors(self, p: Any) -> Array:
        """Return class frequencies in the order of `classes_`."""
        if isinstance(p, Mapping):
            labels = to_numpy(self.classes_).tolist()
            odd = [label for label in p if label not in labels] or [k for k in labels if k not in p]
            if odd:
                raise ValueError(
                    f"p must have one frequency for each of the classes {listed(self.classes_)}; "
                    f"{odd[0]!r} is {'missing' if odd[0] in labels else 'none of them'}."
                )
            p = [p[label] for label in labels]
        found = check_class_prior(p, self.classes_.shape[0], "p")
        unseen = (found > 0) & (self._current_prior() <= 0)
        if unseen.any():
            raise ValueError(
                f"Class {listed(to_numpy(self.classes_)[unseen])} had probability zero so far: nothing is "
                "known of it, and p must be zero there."
            )
        return found

    def estimate_priors(self, X: Any, *, tol: float = 1e-6, max_iter: int = 1000) -> Array:
        """Return the class frequencies of rows without labels, by the EM algorithm of Saerens et al. (2002).

        It assumes that p(x | y) is that of the training rows, and that only the class frequencies differ. The
        posteriors of the rows are averaged, weighted by the new frequencies, and so on until they change by
        less than `tol`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        tol : float, default=1e-6
            The least change of a frequency to go on.
        max_iter : int, default=1000
            The most iterations; a warning says if they were not enough.

        Returns
        -------
        p : ndarray of shape (n_classes,)
            Frequencies in the order of `classes_`, for `with_priors`.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from riskbayes import GaussianNB
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> clf = GaussianNB().fit(X, y)
        >>> clf.estimate_priors(X[y == 1]).round(1)
        array([0., 1.])
        """
        check_is_fitted(self)
        known = self._current_prior()
        self.with_priors(known)  # refused where the posteriors do not contain p(y)
        P = to_numpy(self.predict_proba(X)).astype(np.float64)
        ratios = np.divide(P, known, out=np.zeros_like(P), where=known > 0)  # p(x | y) up to a constant
        p = known
        for _ in range(max_iter):
            joint = ratios * p
            new = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
            change, p = np.abs(new - p).max(), new
            if change < tol:
                return p
        warn(
            f"estimate_priors changed a frequency by {change:.1g} in the last of {max_iter} iterations, more "
            f"than tol={tol:g}. Raise max_iter."
        )
        return p
