"""Naive Bayes for categorical features."""

from typing import Self

import numpy as np

import riskbayes.estimators.counts as counts
import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array, namespace, to_device
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.estimators.codes import CodeInput, by_column, least_categories
from riskbayes.frames import Categories
from riskbayes.models.categorical import CategoricalModel
from riskbayes.preprocessing.encoder import CategoryEncoder, as_array
from riskbayes.statistics import Statistics
from riskbayes.tables import column_name


@p.estimator
class CategoricalNB(BaseGenerativeClassifier):
    """Naive Bayes for categorical features, trained by risk-based calibration.

    Takes integer codes as scikit-learn's `CategoricalNB` does (categories 0 to the largest code), and
    negative numbers, strings, booleans and categorical columns of pandas or polars by value. Codes far larger
    than the number of rows, as identifiers are, are refused unless `min_categories` declares them. In
    predictions, a category that was not seen in training has the probability alpha / (n_y + alpha K), where
    n_y is the weight of the class's rows that have the feature; with `alpha=0` that feature of the row is
    ignored.

    NaN, None, null, NA, NaT and empty strings are missing cells, in training and in predictions. They drop
    out of the joint and of the counts, so that a posterior is that of the features which a row has.

    Parameters
    ----------
    alpha : float, default=1.0
        Dirichlet pseudo-counts of each cell. 0 is maximum likelihood, with cells of at least 1e-9 of the
        total weight.
    {force_alpha fit_prior class_prior min_categories class_alpha learner class_weight warm_start verbose}

    Attributes
    ----------
    categories_ : list of ndarray
        The values of each feature, in the order of the columns of `feature_log_prob_`.
    category_count_ : list of ndarray of shape (n_classes, n_categories)
        Counts in the data, by feature.
    {class_count_ class_log_prior_}
    feature_log_prob_ : list of ndarray of shape (n_classes, n_categories)
        Calibrated log p(x_i | y), by feature.
    n_categories_ : ndarray of shape (n_features,)
        Number of categories of each feature.
    {classes_ statistics_}

    Examples
    --------
    >>> from riskbayes import CategoricalNB
    >>> X = [["red", "small"], ["red", "large"], ["blue", "small"], ["blue", "large"]]
    >>> clf = CategoricalNB().fit(X, [0, 0, 1, 1])
    >>> clf.predict([["blue", "medium"]])
    array([1])
    """

    alpha: p.Strength = 1.0
    force_alpha: p.Flag = True
    fit_prior: p.Flag = True
    class_prior: p.Numbers = None
    min_categories: p.LeastCategories = None
    class_alpha: p.Strength = 0.0
    learner: p.LearnerOrName = "rc"
    class_weight: p.ClassWeight = None
    warm_start: p.Flag = False
    verbose: p.Verbose = 0

    _input = CodeInput()
    _adds_up = True
    _takes_missing = True

    def _make_model(self) -> CategoricalModel:
        least = least_categories(self, self.n_features_in_)
        return CategoricalModel(
            counts.pseudo_counts(self), float(self.class_alpha), counts.fixed_prior(self), least
        )

    def _statistics_of(self, other: Self, S: Statistics) -> tuple[Statistics, Statistics]:
        """Return the other's counts in the order of this one's categories, which take in the other's."""
        theirs, columns, n_categories, places = other._encoder.columns, [], [], []
        for j, (column, known, k) in enumerate(
            zip(theirs, self._encoder.columns, other.n_categories_.tolist(), strict=True)
        ):
            if known.is_open:
                known = column
            elif column.is_open and known.categories is None:
                column = known
            if (column.categories is None) != (known.categories is None):
                raise ValueError(
                    f"{column_name(self, j)} holds integer codes in one of two models, and other values in "
                    "the other: they have no common categories."
                )
            union = known.extended(column.categories or ())
            columns.append(union)
            position = {
                value: code
                for code, value in enumerate(range(k) if union.categories is None else union.categories)
            }
            named = list(range(k) if column.categories is None else column.categories)
            own, total = [position[value] for value in named], max(len(position), k)
            # Categories that only `min_categories` asks for have no value. Values that only this model knows
            # take their places, as values of further rows would: so a merge has the categories of one fit.
            unnamed = sorted(set(range(total)) - set(own))[: k - len(named)]
            places.append([*own, *unnamed])
            n_categories.append(total)
        self._encoder = CategoryEncoder(tuple(columns))
        frame = Categories(np.array(n_categories))
        place = np.concatenate(
            [offset + np.array(p) for offset, p in zip(frame.offsets, places, strict=True)]
        )
        # The column of their counts for each of our cells; a column of zeros for cells that they lack.
        source = np.full(int(frame.n_categories.sum()), len(place))
        source[place] = np.arange(len(place))

        def moved(theirs: Statistics) -> Statistics:
            counts = theirs.to_frame(other.statistics_.frame)["counts"]
            xp = namespace(counts)
            padded = xp.concat([counts, xp.zeros_like(counts[:, :1])], axis=1)
            return Statistics(
                {"s0": theirs["s0"], "counts": xp.take(padded, to_device(source, counts), axis=1)}, frame
            )

        return moved(other.data_statistics_), moved(other.statistics_)

    class_count_ = property(counts.class_count)
    class_log_prior_ = property(counts.class_log_prior)

    @property
    def categories_(self) -> list[Array]:
        """The values of each feature, in the order of the columns of `feature_log_prob_`."""
        return [
            np.arange(k) if column.categories is None else as_array(column.categories)
            for k, column in zip(self.n_categories_, self._encoder.columns, strict=True)
        ]

    @property
    def n_categories_(self) -> Array:
        """Number of categories of each feature."""
        return self.statistics_.frame.n_categories

    @property
    def category_count_(self) -> list[Array]:
        """Counts in the data, by feature."""
        return by_column(self.data_statistics_["counts"], self.statistics_.frame)

    @property
    def feature_log_prob_(self) -> list[Array]:
        """Calibrated log p(x_i | y), by feature."""
        return by_column(self.parameters_.log_prob, self.statistics_.frame)
