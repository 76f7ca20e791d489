"""Naive Bayes of word counts: multinomial, and complement."""

from __future__ import annotations

from typing import Any, ClassVar

from riskbayes.arrays import Array
from riskbayes.estimators.counts import NonNegativeClassifier
from riskbayes.models.multinomial import ComplementModel, MultinomialModel


class MultinomialNB(NonNegativeClassifier):
    """Multinomial naive Bayes for word counts, trained by risk-based calibration.

    Takes counts, or fractions such as tf-idf, as a dense array or as CSR, of which no dense copy is made;
    other sparse formats are converted to CSR once. With `learner="dfe"` it is the text classifier of Su et
    al. (2008).

    The length of a row is given, not modelled: `score_samples` is the log probability of the words of a row
    in one order, without the multinomial coefficient. `sample` draws, for each row, as many words as the
    rows of its class have on average, rounded up or down at random, and returns a dense array.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Dirichlet pseudo-counts of each word. 0 is maximum likelihood, with counts of at least 1e-9 of the
        total weight.
    force_alpha : bool, default=True
        If False, an `alpha` below 1e-10 is set to 1e-10, with a warning.
    fit_prior : bool, default=True
        If True, p(y) is estimated; otherwise it is uniform.
    class_prior : array-like of shape (n_classes,), default=None
        Fixed p(y).
    learner : str or Learner, default="rc"
        How the statistics are trained; "closed_form" gives scikit-learn's results.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    feature_count_ : ndarray of shape (n_classes, n_features)
        Sum of each column in the data, by class.
    class_count_ : ndarray of shape (n_classes,)
        Weight of each class in the data.
    class_log_prior_ : ndarray of shape (n_classes,)
        Calibrated log p(y).
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Calibrated log p(word | y).
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

    References
    ----------
    J. Su, H. Zhang, C. X. Ling, S. Matwin, "Discriminative parameter learning for Bayesian networks",
    ICML 2008.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from riskbayes import MultinomialNB
    >>> X = CountVectorizer().fit_transform(["goal goal win", "win vote", "vote law", "goal match"])
    >>> clf = MultinomialNB().fit(X, ["sport", "state", "state", "sport"])
    >>> clf.predict(X).tolist()
    ['sport', 'state', 'state', 'sport']
    """

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        learner: Any = "rc",
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.learner = learner
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.normalised_density = False
        return tags

    def _make_model(self) -> MultinomialModel:
        return MultinomialModel(self._pseudo_counts(), self._prior())

    @property
    def feature_log_prob_(self) -> Array:
        """Calibrated log p(word | y)."""
        return self.parameters_.log_prob


class ComplementNB(NonNegativeClassifier):
    """Complement naive Bayes for word counts (Rennie et al. 2003), trained by risk-based calibration.

    A class is scored by the words of all other classes. Statistics are those of :class:`MultinomialNB`, and
    calibration steps are the same; only the parameters are computed differently. Its scores are no log
    probabilities: `score_samples` has no meaning of its own, and there is no `sample`.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-counts of each word.
    force_alpha : bool, default=True
        If False, an `alpha` below 1e-10 is set to 1e-10, with a warning.
    fit_prior : bool, default=True
        If True, p(y) is estimated; otherwise it is uniform.
    class_prior : array-like of shape (n_classes,), default=None
        Fixed p(y); it enters the scores only if there is a single class.
    norm : bool, default=False
        If True, the weights of each class are divided by their sum.
    learner : str or Learner, default="rc"
        How the statistics are trained; "closed_form" gives scikit-learn's results.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    feature_count_ : ndarray of shape (n_classes, n_features)
        Sum of each column in the data, by class.
    class_count_ : ndarray of shape (n_classes,)
        Weight of each class in the data.
    class_log_prior_ : ndarray of shape (n_classes,)
        Calibrated log p(y).
    feature_all_ : ndarray of shape (n_features,)
        Sum of each column in the data.
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Calibrated weights of the words.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

    Examples
    --------
    >>> from riskbayes import ComplementNB
    >>> clf = ComplementNB().fit([[2, 0, 1], [0, 3, 1], [1, 0, 0]], [0, 1, 0])
    >>> clf.predict([[1, 0, 1]])
    array([0])
    """

    _parameter_constraints: ClassVar[dict] = {
        **NonNegativeClassifier._parameter_constraints,
        "norm": ["boolean"],
    }

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
        learner: Any = "rc",
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.norm = norm
        self.learner = learner
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.normalised_density = False
        return tags

    def _make_model(self) -> ComplementModel:
        return ComplementModel(self._pseudo_counts(), self._prior(), self.norm)

    @property
    def feature_all_(self) -> Array:
        """Sum of each column in the data."""
        return self.data_statistics_["counts"].sum(axis=0)

    @property
    def feature_log_prob_(self) -> Array:
        """Calibrated weights of the words."""
        return self.parameters_.word_weights
