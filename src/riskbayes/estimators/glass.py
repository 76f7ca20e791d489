"""`strategy="glass"`: the recipe, corrected by tables of columns and of pairs of columns.

What is taken is decided by held-out rows: a power of the recipe below one, then tables, and then pairs, must
gain more than one standard error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from riskbayes.arrays import Array
from riskbayes.estimators.explanation import Contributions
from riskbayes.estimators.kinds import Kinds
from riskbayes.estimators.member import ComposedMember
from riskbayes.estimators.prediction import Finish, finish_rows
from riskbayes.loaded import require
from riskbayes.models.base import Fitted
from riskbayes.models.cells import PairBins, TableCells
from riskbayes.models.correction import LEAST, Correction, Gain, Ridge, correct, to_offset
from riskbayes.models.pairs import best_pairs, pair_gains
from riskbayes.onnx_export import Formula
from riskbayes.risks import log_posterior

TABLES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
PAIRS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
"""Strengths that are tried, strong ones first: each fit starts from the one before."""

PAIRS_PER_COLUMN, MOST_COLUMNS = 3, 64
"""The most pairs for each column, and the most columns that are paired: those whose tables say most."""


class GlassClassifier(ComposedMember):
    """A classifier, the recipe, to a power and corrected by tables of given strengths.

    Parameters
    ----------
    estimator : ProductOfExperts
        The unfitted recipe.
    kinds : Kinds
        The columns that are numbers, categories and marks.
    power : float, default=1.0
        What the log-odds of the recipe beyond those of the class frequencies are multiplied by.
    tables : float or None, default=None
        Strength of the ridge on tables of columns, from `TABLES`; None for no tables.
    pairs : float or None, default=None
        Strength of the ridge on tables of pairs, from `PAIRS`; None for no pairs.

    Attributes
    ----------
    estimator_ : ProductOfExperts
        The fitted recipe.
    correction_ : Correction
        What is added to its log posteriors.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        The number of columns.
    history_, n_iter_, best_iteration_, status_
        Those of the recipe.
    """

    no_density = "its member is a product whose posteriors tables correct"

    def __init__(
        self,
        estimator: Any,
        kinds: Kinds,
        power: float = 1.0,
        tables: float | None = None,
        pairs: float | None = None,
    ):
        self.estimator = estimator
        self.kinds = kinds
        self.power = power
        self.tables = tables
        self.pairs = pairs

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Fit the recipe, then the tables from the strongest ridge on, as in the folds of the search."""
        walk = Walk(self.estimator, self.kinds, X, y, sample_weight, int(y.max()) + 1)
        walk.set_power(self.power)
        if self.tables is not None:
            for strength in TABLES[: TABLES.index(self.tables) + 1]:
                walk.to(Ridge(strength))
            if self.pairs is not None:
                walk.add_pairs()
                for strength in PAIRS[: PAIRS.index(self.pairs) + 1]:
                    walk.to(Ridge(self.tables, strength))
        self._keep(walk.recipe)
        self.correction_, self.n_features_in_ = walk.correction(), X.shape[1]
        return self

    def check_loaded(self, size: int) -> None:
        """Require a correction of the columns and classes of the recipe."""
        cells = self.correction_.cells
        read = np.concatenate([cells.numbers, cells.codes])
        read = read if cells.bins is None else np.concatenate([read, cells.bins.columns])
        require(len(self.correction_.log_prior) == len(self.estimator_.classes_), "classes of the correction")
        require(read.max(initial=-1) < self.n_features_in_, "columns of the correction")

    def _finish_rows(self, X: Array, formula: str, finish: Finish) -> Array:
        offset = self.estimator_._finish_rows(X, "scores", log_posterior)  # first: it refuses what overflows
        return finish(self.correction_.log_joint(self.correction_.cells.encode(X), offset))

    def _contributions(self, X: Array) -> Contributions:
        """Return what each column, and each pair of columns, adds to the log joint."""
        found = self.estimator_._contributions(X)
        assert found is not None
        of_columns, of_pairs = self.correction_.contributions(X)
        power, log_prior = self.correction_.power, self.correction_.log_prior
        values, baseline = power * found.values + of_columns, power * found.baseline + log_prior
        return Contributions(values, baseline, self.pairs_, of_pairs)

    def _reads(self, n: int) -> Array:
        """Return a mask of the columns that the recipe or a table reads."""
        cells = self.correction_.cells
        return self.estimator_._reads(n) | np.isin(np.arange(n), [*cells.numbers, *cells.codes])

    def _formula(self) -> Formula:
        """Return the recipe and its correction for a graph."""
        return replace(self.estimator_._formula(), correction=self.correction_)

    @property
    def pairs_(self) -> list[tuple[int, int]]:
        """The columns of each pair."""
        cells = self.correction_.cells
        if cells.bins is None:
            return []
        return [(int(a), int(b)) for a, b in cells.bins.columns[cells.pairs]]


class Walk:
    """The recipe fitted to rows, and its correction as it goes from strong ridges to weak ones."""

    def __init__(self, estimator: Any, kinds: Kinds, X: Array, y: Array, w: Array | None, r: int):
        self.X, self.n_classes = X, r
        self.numbers = np.array(kinds.numbers, dtype=np.int64)
        self.categories = np.array(kinds.categories, dtype=np.int64)
        codes = np.concatenate([self.categories, np.array(kinds.marks, dtype=np.int64)])
        self.recipe = clone(estimator).fit(X, y, w)
        cells = TableCells.learn(X, w, self.numbers, codes)
        masses = np.bincount(y, w, r)
        self.log_prior = np.log(np.maximum(masses / masses.sum(), LEAST))
        self.trained = self.scores(X)  # of the training rows, which every power reads
        self.gain = Gain(cells.encode(X), cells, to_offset(self.trained), y, w)
        self.W, self.power = np.zeros((1 + int(cells.first[-1]), r)), 1.0

    def scores(self, X: Array) -> Array:
        """Return the log posteriors of the recipe, for all classes."""
        found = np.full((len(X), self.n_classes), np.log(LEAST))
        found[:, self.recipe.classes_] = self.recipe.predict_log_proba(X)
        return found

    def closed_form(self, X: Array) -> Array:
        """Return the log posteriors of the closed form of the recipe, for all classes."""
        clf, found = self.recipe, np.full((len(X), self.n_classes), np.log(LEAST))
        fitted = Fitted.of(clf.model_, clf.data_statistics_)
        found[:, clf.classes_] = finish_rows(clf, X, "scores", log_posterior, fitted)
        return found

    def set_power(self, power: float) -> None:
        """Take another power of the recipe."""
        self.power = power
        offset = power * self.trained + (1.0 - power) * self.log_prior
        self.gain.offset = to_offset(log_posterior(offset))

    def correction(self) -> Correction:
        """Return the correction of the recipe."""
        log_prior = self.W[0] + (1.0 - self.power) * self.log_prior
        return Correction(self.gain.cells, log_prior, self.W[1:].copy(), self.power)

    def to(self, ridge: Ridge) -> None:
        """Correct with another ridge."""
        self.W = correct(self.gain, ridge, self.W)

    def add_pairs(self) -> None:
        """Add cells of the pairs that the residuals ask for."""
        gain, cells = self.gain, self.gain.cells
        numbers, categories = self.numbers, self.categories
        if len(numbers) + len(categories) > MOST_COLUMNS:
            ranked = np.concatenate([cells.numbers, cells.codes])[np.argsort(-self.effects())]
            ranked = ranked[np.isin(ranked, [*numbers, *categories])]
            kept = list(dict.fromkeys(ranked.tolist()))[:MOST_COLUMNS]
            numbers, categories = np.intersect1d(numbers, kept), np.intersect1d(categories, kept)
        bins = PairBins.learn(self.X, numbers, categories)
        Z, P = bins.encode(self.X), gain.posterior(self.W)
        _, E = gain.residual(self.W)
        V = P * (1.0 - P) if gain.w is None else (P * (1.0 - P)) * gain.w[:, None]
        pairs = best_pairs(pair_gains(Z, bins.sizes, E, V), PAIRS_PER_COLUMN * Z.shape[1])
        cells = cells.with_pairs(bins, Z, pairs)
        self.gain = Gain(cells.encode(self.X), cells, gain.offset, gain.y, gain.w)

    def effects(self) -> Array:
        """Return the mean square of what the table of each column adds."""
        squares = self.gain.Z.mean(axis=0) * (self.W[1:] ** 2).sum(axis=1)
        return np.add.reduceat(squares, self.gain.cells.first[:-1])
