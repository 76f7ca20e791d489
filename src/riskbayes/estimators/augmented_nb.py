"""Naive Bayes with dependences between features: a tree, or up to k parents of each feature."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.categorical_nb import CategoricalInput
from riskbayes.learners.rc import RC
from riskbayes.models.augmented_nb import Parents, TreeModel


class AugmentedNB(CategoricalInput):
    """Base class of the two: tables of each feature given its parents, which the data's counts determine."""

    _parameter_constraints: ClassVar[dict] = {
        **BaseGenerativeClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "backoff": [Interval(Real, 0, None, closed="left")],
        "class_alpha": [Interval(Real, 0, None, closed="left")],
        "min_categories": [None, "array-like", Interval(Integral, 1, None, closed="left")],
    }

    # Tables of pairs overfit after about eight scans.
    _named_learners: ClassVar = {RC.name: RC(step="adaptive", max_iter=8)}

    alpha: float
    backoff: float
    class_alpha: float
    _structure: Any
    """How the parents are chosen: "tree", or their largest number, as in the model."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags

    def _make_model(self) -> TreeModel:
        least = self._least_categories(self.n_features_in_)
        smoothing = self.alpha, self.backoff, self.class_alpha
        return TreeModel(None, *smoothing, min_categories=least, structure=self._structure)

    @property
    def parents_(self) -> Parents:
        """The parents of each feature."""
        return self.statistics_.frame.parent_lists


class TreeAugmentedNB(AugmentedNB):
    """Tree-augmented naive Bayes (TAN), trained by risk-based calibration.

    Beside the class each feature has one parent: Chow and Liu's tree of largest mutual information given
    the class. Takes what :class:`CategoricalNB` takes; continuous columns go through
    :class:`riskbayes.preprocessing.KMeansBins`. The tree comes from all rows: there is no `partial_fit`.

    The factor of a missing cell drops out, and a missing parent counts as a value of its own, smoothed to
    p(x | y) by `backoff`. This is the exact marginal where no parent is missing; elsewhere it is a model of
    the cells that are present, not the sum over the missing parents.

    Mutual informations that agree in nine decimals are ties, which are broken by the values of the columns,
    not by their positions. A permutation of the columns therefore changes no prediction, except for rows in
    which two columns differ that were equal in training, up to the names of their categories.

    Parameters
    ----------
    alpha : float, default=1.0
        Dirichlet pseudo-counts of each cell of p(x | y).
    backoff : float, default=5.0
        Number of rows that p(x | y) counts as when it smooths p(x | parent, y).
    class_alpha : float, default=0.0
        Pseudo-counts of each class for p(y).
    min_categories : int or array-like of shape (n_features,), default=None
        Least number of categories of each feature.
    learner : str or Learner, default="rc"
        How the statistics are trained. "rc" is RC with adaptive steps and at most 8 scans: with more, such
        tables overfit.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply `sample_weight`.
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit; the tree must be the same.
    verbose : int, default=0
        If positive, print the risks of each iteration.

    Attributes
    ----------
    parents_ : tuple of tuples of int
        The parents of each feature.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

    Examples
    --------
    >>> from riskbayes import TreeAugmentedNB
    >>> X = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 5
    >>> clf = TreeAugmentedNB().fit(X, [0, 0, 1, 1] * 5)
    >>> clf.predict([["a", "a"], ["b", "a"]])
    array([0, 1])
    """

    _structure = "tree"

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        backoff: float = 5.0,
        class_alpha: float = 0.0,
        min_categories: Any = None,
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.alpha = alpha
        self.backoff = backoff
        self.class_alpha = class_alpha
        self.min_categories = min_categories
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose


class KDependenceNB(AugmentedNB):
    """k-dependence naive Bayes (k-DB), trained by risk-based calibration.

    Features are ordered by their mutual information with the class. The parents of a feature are those k
    features before it that have the largest mutual information with it given the class; ties are broken as in
    :class:`TreeAugmentedNB`. Takes what :class:`CategoricalNB` takes; missing cells are treated as in
    :class:`TreeAugmentedNB`. The structure comes from all rows: there is no `partial_fit`.

    Parameters
    ----------
    k : int, default=2
        The most parents of a feature, beside the class. A table has a cell for each combination of values.
    alpha, backoff, class_alpha, min_categories, learner, class_weight, warm_start, verbose
        As in :class:`TreeAugmentedNB`.

    Attributes
    ----------
    parents_ : tuple of tuples of int
        The parents of each feature.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
        As in :class:`GenerativeClassifier`.

    Examples
    --------
    >>> from riskbayes import KDependenceNB
    >>> X = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 5
    >>> KDependenceNB(k=1).fit(X, [0, 0, 1, 1] * 5).parents_
    ((), (0,))
    """

    _parameter_constraints: ClassVar[dict] = {
        **AugmentedNB._parameter_constraints,
        "k": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        k: int = 2,
        *,
        alpha: float = 1.0,
        backoff: float = 5.0,
        class_alpha: float = 0.0,
        min_categories: Any = None,
        learner: Any = "rc",
        class_weight: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ):
        self.k = k
        self.alpha = alpha
        self.backoff = backoff
        self.class_alpha = class_alpha
        self.min_categories = min_categories
        self.learner = learner
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose

    @property
    def _structure(self) -> int:
        return self.k
