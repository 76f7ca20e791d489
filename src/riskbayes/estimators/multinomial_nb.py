"""Naive Bayes of word counts: multinomial, and complement."""

import riskbayes.estimators.counts as counts
import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.models.multinomial import ComplementModel, MultinomialModel


@p.estimator
class MultinomialNB(BaseGenerativeClassifier):
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
    {force_alpha fit_prior class_prior learner warm_start verbose}

    Attributes
    ----------
    {feature_count_ class_count_ class_log_prior_}
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Calibrated log p(word | y).
    {classes_ statistics_}

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

    alpha: p.PseudoCounts = 1.0
    force_alpha: p.Flag = True
    fit_prior: p.Flag = True
    class_prior: p.Numbers = None
    learner: p.LearnerOrName = "rc"
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _input = counts.CountInput()
    _named_learners = counts.COUNT_LEARNERS
    _adds_up = True
    _poor_score = True
    _normalised = _has_decision_function = False

    def _make_model(self) -> MultinomialModel:
        return MultinomialModel(counts.pseudo_counts(self), counts.fixed_prior(self))

    feature_count_ = property(counts.feature_count)
    class_count_ = property(counts.class_count)
    class_log_prior_ = property(counts.class_log_prior)

    @property
    def feature_log_prob_(self) -> Array:
        """Calibrated log p(word | y)."""
        return self.parameters_.log_prob


@p.estimator
class ComplementNB(BaseGenerativeClassifier):
    """Complement naive Bayes for word counts (Rennie et al. 2003), trained by risk-based calibration.

    A class is scored by the words of all other classes. Statistics are those of :class:`MultinomialNB`, and
    calibration steps are the same; only the parameters are computed differently. Its scores are no log
    probabilities: `score_samples` has no meaning of its own, and there is no `sample`.

    Parameters
    ----------
    {alpha force_alpha fit_prior}
    class_prior : array-like of shape (n_classes,), default=None
        Fixed p(y); it enters the scores only if there is a single class.
    norm : bool, default=False
        If True, the weights of each class are divided by their sum.
    {learner warm_start verbose}

    Attributes
    ----------
    {feature_count_ class_count_ class_log_prior_}
    feature_all_ : ndarray of shape (n_features,)
        Sum of each column in the data.
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Calibrated weights of the words.
    {classes_ statistics_}

    Examples
    --------
    >>> from riskbayes import ComplementNB
    >>> clf = ComplementNB().fit([[2, 0, 1], [0, 3, 1], [1, 0, 0]], [0, 1, 0])
    >>> clf.predict([[1, 0, 1]])
    array([0])
    """

    alpha: p.PseudoCounts = 1.0
    force_alpha: p.Flag = True
    fit_prior: p.Flag = True
    class_prior: p.Numbers = None
    norm: p.Flag = False
    learner: p.LearnerOrName = "rc"
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _input = counts.CountInput()
    _named_learners = counts.FREE_LEARNERS
    _adds_up = True
    _poor_score = True
    _normalised = _has_decision_function = False

    def _make_model(self) -> ComplementModel:
        return ComplementModel(counts.pseudo_counts(self), counts.fixed_prior(self), self.norm)

    feature_count_ = property(counts.feature_count)
    class_count_ = property(counts.class_count)
    class_log_prior_ = property(counts.class_log_prior)

    @property
    def feature_all_(self) -> Array:
        """Sum of each column in the data."""
        return self.data_statistics_["counts"].sum(axis=0)

    @property
    def feature_log_prob_(self) -> Array:
        """Calibrated weights of the words."""
        return self.parameters_.word_weights
