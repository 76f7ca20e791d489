"""Naive Bayes with dependences between features: a tree, or up to k parents of each feature."""

from dataclasses import field
from numbers import Integral
from typing import Annotated, Any

from sklearn.utils._param_validation import Interval

import riskbayes.estimators.parameters as p
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.codes import CodeInput, least_categories
from riskbayes.models.augmented_nb import Parents, TreeModel


def tables_given_parents(clf: Any, structure: Any) -> TreeModel:
    """Return the model with the parents that are chosen by `structure`: "tree", or their largest number."""
    least = least_categories(clf, clf.n_features_in_)
    return TreeModel(None, clf.alpha, clf.backoff, clf.class_alpha, min_categories=least, structure=structure)


def parents(clf: Any) -> Parents:
    """The parents of each feature."""
    return clf.statistics_.frame.parent_lists


@p.estimator
class TreeAugmentedNB(BaseGenerativeClassifier):
    """Tree-augmented naive Bayes (TAN), trained by risk-based calibration.

    Beside the class each feature has one parent: Chow and Liu's tree of largest mutual information given
    the class. Takes what :class:`CategoricalNB` takes; continuous columns go through
    :class:`riskbayes.preprocessing.KMeansBins`. The tree comes from all rows: there is no `partial_fit`.

    Missing cells are summed over: the joint is the exact marginal of the cells that a row has, and the counts
    are expected ones given these, so that the closed form is found by EM.

    Mutual informations that agree in nine decimals are ties, which are broken by the values of the columns,
    not by their positions. A permutation of the columns therefore changes no prediction, except for rows in
    which two columns differ that were equal in training, up to the names of their categories.

    Parameters
    ----------
    alpha : float, default=1.0
        Dirichlet pseudo-counts of each cell of p(x | y).
    {backoff class_alpha min_categories}
    learner : str or Learner, default="rc"
        How the statistics are trained. Where tables are large for the rows, "rc_cv" may be better.
    {class_weight}
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit; the tree must be the same.
    {verbose}

    Attributes
    ----------
    {parents_ classes_ statistics_}

    Examples
    --------
    >>> from riskbayes import TreeAugmentedNB
    >>> X = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 5
    >>> clf = TreeAugmentedNB().fit(X, [0, 0, 1, 1] * 5)
    >>> clf.predict([["a", "a"], ["b", "a"]])
    array([0, 1])
    """

    alpha: p.Strength = 1.0
    backoff: p.Strength = 5.0
    class_alpha: p.Strength = 0.0
    min_categories: p.LeastCategories = None
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _input = CodeInput()
    _takes_missing = True
    _array_api = False

    def _make_model(self) -> TreeModel:
        return tables_given_parents(self, "tree")

    parents_ = property(parents)


@p.estimator
class KDependenceNB(BaseGenerativeClassifier):
    """k-dependence naive Bayes (k-DB), trained by risk-based calibration.

    Features are ordered by their mutual information with the class. The parents of a feature are those k
    features before it that have the largest mutual information with it given the class; ties are broken as in
    :class:`TreeAugmentedNB`. Takes what :class:`CategoricalNB` takes. The structure comes from all rows:
    there is no `partial_fit`.

    The factor of a missing cell drops out. For `k` above 1 a missing parent counts as a value of its own,
    smoothed to p(x | y) by `backoff`: this is the exact marginal where no parent is missing; elsewhere it is
    a model of the cells that are present, not the sum over the missing parents.

    Parameters
    ----------
    k : int, default=2
        The most parents of a feature, beside the class. A table has a cell for each combination of values.
    alpha : float, default=1.0
        Dirichlet pseudo-counts of each cell of p(x | y).
    {backoff class_alpha min_categories}
    learner : str or Learner, default="rc"
        How the statistics are trained, as in :class:`TreeAugmentedNB`.
    {class_weight}
    warm_start : bool, default=False
        If True, `fit` starts from the statistics of the last fit; the parents must be the same.
    {verbose}

    Attributes
    ----------
    {parents_ classes_ statistics_}

    Examples
    --------
    >>> from riskbayes import KDependenceNB
    >>> X = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 5
    >>> KDependenceNB(k=1).fit(X, [0, 0, 1, 1] * 5).parents_
    ((), (0,))
    """

    k: Annotated[int, Interval(Integral, 0, None, closed="left")] = field(default=2, kw_only=False)
    alpha: p.Strength = 1.0
    backoff: p.Strength = 5.0
    class_alpha: p.Strength = 0.0
    min_categories: p.LeastCategories = None
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _input = CodeInput()
    _takes_missing = True
    _array_api = False

    def _make_model(self) -> TreeModel:
        return tables_given_parents(self, self.k)

    parents_ = property(parents)
