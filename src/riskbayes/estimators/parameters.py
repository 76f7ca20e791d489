"""Parameters of the estimators: each is declared once, as an annotated attribute of its class.

`alpha: Strength = 1.0` says all that there is to say of a parameter: its name, its type and default, for mypy
and editors too, and by the alias, the constraints that scikit-learn checks. `@estimator` makes of these
lines the `__init__` whose signature scikit-learn reads, and fills in the texts that docstrings share.
"""

from __future__ import annotations

import re
from dataclasses import field
from numbers import Integral, Real
from typing import Annotated, Any, dataclass_transform

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

import riskbayes.declared as declared
from riskbayes.learners.base import Learner

Strength = declared.NotNegative
Positive = declared.Positive
Count = declared.Count
Flag = declared.Flag
Share = Annotated[float, Interval(Real, 0, 1, closed="both")]
Numbers = Annotated[Any, "array-like", None]
"""An array, or None."""
Shrinkage = Annotated[Any, StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None]
CovarianceEstimator = Annotated[Any, HasMethods("fit"), None]
PseudoCounts = Annotated[Any, "array-like", Interval(Real, 0, None, closed="left")]
LeastCategories = Annotated[Any, None, "array-like", Interval(Integral, 1, None, closed="left")]
Prior = Annotated[str | None, StrOptions({"auto", "recommended"}), None]
StrengthOrPrior = Annotated[float | None, Interval(Real, 0, None, closed="left"), None]
"""The strength of a prior; None: as the parameter `prior` says."""
ShareOrPrior = Annotated[float | None, Interval(Real, 0, 1, closed="both"), None]
PriorForm = Annotated[str, StrOptions({"exact", "paper"})]
LearnerOrName = Annotated[Any, str, Learner]
ClassWeight = Annotated[Any, dict, StrOptions({"balanced"}), None]
Verbose = Annotated[int, "verbose"]
CategoricalFeatures = Annotated[Any, "array-like", StrOptions({"from_dtype"}), None]
ColumnKinds = Annotated[dict | None, dict, None]
Missing = Annotated[str, StrOptions({"ignore", "informative"})]
Unseen = Annotated[str, StrOptions({"missing", "other", "error"})]


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(kind: declared.T) -> declared.T:
    """Make the `__init__`, the constraints and the docstring of an estimator, a class decorator.

    Parameters are declared as for :func:`riskbayes.declared.declared`; they are keyword-only unless their
    default is `field(kw_only=False)`.
    """
    declared.with_parameters(kind, kw_only=True)
    if kind.__doc__ is not None:  # it is with python -OO
        kind.__doc__ = re.sub(r"^    \{([\w ]+)\}$", shared_texts, kind.__doc__, flags=re.MULTILINE)
    return kind


def shared_texts(names: re.Match) -> str:
    """Return the texts of the parameters or attributes that a line of a docstring names, indented."""
    return "\n".join(re.sub("^", "    ", TEXTS[name], flags=re.MULTILINE) for name in names[1].split())


SHARED_TEXTS = """
alpha : float or array-like of shape (n_features,), default=1.0
    Pseudo-counts of each word.
force_alpha : bool, default=True
    If False, an `alpha` below 1e-10 is set to 1e-10, with a warning.
fit_prior : bool, default=True
    If True, p(y) is estimated; otherwise it is uniform.
class_prior : array-like of shape (n_classes,), default=None
    Fixed p(y).
class_alpha : float, default=0.0
    Pseudo-counts of each class for p(y).
min_categories : int or array-like of shape (n_features,), default=None
    Least number of categories of each feature.
backoff : float, default=5.0
    Number of rows that p(x | y) counts as when it smooths p(x | parents, y).
shrinkage : "auto", float or None, default=None
    A float between 0 and 1 mixes each covariance with its mean variance; "auto" (Ledoit-Wolf)
    works only with `learner="closed_form"`.
priors : array-like of shape (n_classes,), default=None
    Fixed p(y).
covariance_estimator : estimator, default=None
    Estimator of the covariance; only with `learner="closed_form"`.
prior_mean : array-like of shape (n_features,), default=None
    Centre of the prior on means; by default the pooled mean.
prior_covariance : array-like of shape (n_features, n_features), default=None
    Centre of the prior on covariances; by default the pooled within-class one.
prior : "auto", "recommended" or None, default="auto"
    "recommended" shrinks each covariance towards the mean of the pooled one and its diagonal, with the
    weight of 20 rows per column: `covariance_strength=20 * n_features` and `diagonal_mix=0.5`, unless one
    of these is given. The means have no prior. "auto" is None with `learner="closed_form"` and where the
    covariances are regularised by other parameters; else "recommended".
covariance_strength : float or None, default=None
    Equivalent sample size of the prior on covariances; 0 is maximum likelihood. None: as `prior` says,
    else 0.
diagonal_mix : float or None, default=None
    Share of the diagonal matrix of pooled variances in the default prior covariance. Where cells are
    missing, it is multiplied by the share of the pairs of cells that are observed. None: as `prior` says,
    else 0.
prior_form : {"exact", "paper"}, default="exact"
    The exact mode of the posterior, or the paper's form with two strengths.
covariance_floor : float, default=1e-2
    Calibration keeps the variance in every direction above this share of the closed form's.
categorical_features : "from_dtype", array-like of names, indices or a mask, default="from_dtype"
    Columns of categories. By default those of strings, categoricals, booleans and objects; columns that
    are named here are categories whatever they hold, and never left out as identifiers.
columns : dict of column to kind, default=None
    What columns are, where their cells do not say it: "number", "category" or "date"; "text", "id" and
    "drop" leave a column out. Keys are names, or indices of an array.
unseen : {"missing", "other", "error"}, default="missing"
    A category that was not in training is missing, has the probability of a category without rows, or
    raises an error.
learner : str or Learner, default="rc"
    How the statistics are trained: the name of a learner, or an instance such as `RC(lr=0.1)`. With
    "closed_form" they are not, which gives scikit-learn's results where it has the estimator.
class_weight : dict, "balanced" or None, default=None
    Weights of the classes, which multiply `sample_weight`.
warm_start : bool, default=False
    If True, `fit` starts from the statistics of the last fit.
verbose : int, default=0
    If positive, print the risks of each iteration.
means_, priors_ : ndarray
    Calibrated means of the classes, and p(y).
columns_ : list of Column
    For each column of the table its kind, what was made of it, and why it was left out.
parents_ : tuple of tuples of int
    The parents of each feature.
feature_count_ : ndarray of shape (n_classes, n_features)
    Sum of each column in the data, by class.
class_count_ : ndarray of shape (n_classes,)
    Weight of each class in the data.
class_log_prior_ : ndarray of shape (n_classes,)
    Calibrated log p(y).
classes_ : ndarray of shape (n_classes,)
    Class labels.
statistics_, data_statistics_, history_, n_iter_, best_iteration_, status_
    As in :class:`GenerativeClassifier`.
"""

TEXTS = {re.split(r"\W", text)[0]: text for text in re.split(r"\n(?=\w)", SHARED_TEXTS.strip())}
"""What the docstrings of several estimators say of a parameter or attribute, by its (first) name."""
