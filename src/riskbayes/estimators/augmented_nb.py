"""Naive Bayes with dependences between features: trees, and k parents."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.categorical_input import CategoricalInput
from riskbayes.learners.base import Learner
from riskbayes.learners.rc import RC
from riskbayes.models.augmented_nb import Parents, TreeModel

FEW_ITERATIONS = 8
"""Scans of `learner="rc"`: tables of pairs overfit after that."""


class AugmentedNB(CategoricalInput):
    """What the two share: tables of a feature and its parents, and the structure from the data's counts."""

    _parameter_constraints: ClassVar[dict] = {
        **BaseGenerativeClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "backoff": [Interval(Real, 0, None, closed="left")],
        "class_alpha": [Interval(Real, 0, None, closed="left")],
        "min_categories": [None, "array-like", Interval(Integral, 1, None, closed="left")],
    }

    alpha: float
    backoff: float
    class_alpha: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags

    def _resolved_learner(self) -> Learner:
        if isinstance(self.learner, str) and self.learner == RC.name:
            return RC(step="adaptive", max_iter=FEW_ITERATIONS)
        return super()._resolved_learner()

    @property
    def _structure(self) -> str | int:
        """How the parents are chosen, in the model's terms."""
        raise NotImplementedError

    def _make_model(self) -> TreeModel:
        least = self._least_categories(self.n_features_in_)
        return TreeModel(
            None,
            self.alpha,
            self.backoff,
            self.class_alpha,
            min_categories=least,
            structure=self._structure,
        )

    @property
    def parents_(self) -> Parents:
        """The parents of each feature."""
        return self.statistics_.frame.parent_lists


class TreeAugmentedNB(AugmentedNB):
    """Tree-augmented naive Bayes (TAN), trained by risk-based calibration.

    Beside the class each feature has one parent: Chow and Liu's tree of largest mutual information given
    the class. Takes what :class:`CategoricalNB` takes; continuous columns go through
    :class:`riskbayes.preprocessing.KMeansBins`. The tree comes from all rows: there is no `partial_fit`.

    Mutual informations that agree in nine decimals tie. What the columns hold then decides, not where they
    stand: a permutation of the columns changes no prediction, but of rows in which columns differ that held
    the same in training, up to the names of their categories.

    Parameters
    ----------
    alpha : float, default=1.0
        Dirichlet pseudo-counts a cell of p(x | y).
    backoff : float, default=5.0
        Rows' worth of p(x | y) that p(x | parent, y) is smoothed by.
    class_alpha : float, default=0.0
        Pseudo-counts a class for p(y).
    min_categories : int or array-like of shape (n_features,), default=None
        At least so many categories a feature.
    learner : str or Learner, default="rc"
        How the statistics are trained; "rc" is RC with adaptive steps and 8 scans at most, after which such
        tables overfit.
    class_weight : dict, "balanced" or None, default=None
        Multiplies `sample_weight`.
    warm_start : bool, default=False
        Begin a fit where the last one ended; the tree must be the same.
    verbose : int, default=0
        Print each iteration.

    Attributes
    ----------
    parents_ : tuple of tuples of int
        The parents of each feature.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_ : Statistics
        Calibrated, and as counted from the data.
    history_, n_iter_, best_iteration_, status_
        Risks of the training rows (and of validation rows, `val_*`) by iteration, number of scans after the
        first, the iteration that was returned (0: the closed form), how the fit ended.

    Examples
    --------
    >>> from riskbayes import TreeAugmentedNB
    >>> X = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 5
    >>> clf = TreeAugmentedNB().fit(X, [0, 0, 1, 1] * 5)
    >>> clf.predict([["a", "a"], ["b", "a"]])
    array([0, 1])
    """

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

    @property
    def _structure(self) -> str:
        return "tree"


class KDependenceNB(AugmentedNB):
    """k-dependence naive Bayes (k-DB), trained by risk-based calibration.

    Features are ordered by what they tell of the class; each has as parents the k features before it that
    tell most of it given the class; ties are broken as in :class:`TreeAugmentedNB`. Takes what
    :class:`CategoricalNB` takes. The structure comes from all rows: there is no `partial_fit`.

    Parameters
    ----------
    k : int, default=2
        The most parents of a feature, beside the class; a table has as many cells as their values make.
    alpha, backoff, class_alpha, min_categories, learner, class_weight, warm_start, verbose
        As in :class:`TreeAugmentedNB`.

    Attributes
    ----------
    parents_ : tuple of tuples of int
        The parents of each feature.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    statistics_, data_statistics_ : Statistics
        Calibrated, and as counted from the data.
    history_, n_iter_, best_iteration_, status_
        Risks of the training rows (and of validation rows, `val_*`) by iteration, number of scans after the
        first, the iteration that was returned (0: the closed form), how the fit ended.

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
