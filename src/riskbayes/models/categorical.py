"""Naive Bayes of categorical features: psi(x) = (1, one-hot of each feature)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from riskbayes.models.base import (
    GenerativeModel,
    Residual,
    draw_classes,
    invert_class_prior,
    log_class_prior,
)
from riskbayes.models.kernels.categorical import Groups, is_worth_it
from riskbayes.risks import Risks
from riskbayes.statistics import Array, Categories, Statistics

COUNT_FLOOR = 1e-9
"""Cell counts are floored at this share of the total weight."""


class Codes:
    """Integer codes of a table, one byte a cell where they fit, with the categories they index.

    Large tables carry their codes a second time, jointly for a few features each, for compiled scans.
    """

    def __init__(
        self, codes: Array, frame: Categories, groups: Groups | None = None, joint: Array | None = None
    ):
        self.codes, self.frame, self.groups, self.joint = codes, frame, groups, joint
        self.shape = codes.shape
        self.releases_gil = joint is not None
        # What a scan holds for each row: a one-hot row, or nothing but its scores.
        self.width = 4 if self.releases_gil else codes.shape[1]

    def __len__(self) -> int:
        return self.codes.shape[0]

    def __getitem__(self, rows: slice | Array) -> Codes:
        joint = None if self.joint is None else self.joint[:, rows]
        return Codes(self.codes[rows], self.frame, self.groups, joint)

    @cached_property
    def one_hot(self) -> csr_array:
        """One row of ones and zeros a row of codes; made for a chunk at a time."""
        m, n = self.shape
        columns = self.codes.astype(np.int32)
        columns += self.frame.offsets.astype(np.int32)
        width = int(self.frame.n_categories.sum())
        pointers = np.arange(0, m * n + 1, n, dtype=np.int32)
        return csr_array((np.ones(m * n), columns.ravel(), pointers), shape=(m, width))


def check_codes(X: Array) -> None:
    """Refuse what is no code, column by column: a table may be large."""
    if X.dtype.kind == "u" or (X.dtype.kind in "ib" and X.min(initial=0) >= 0):
        return
    for j in range(X.shape[1]):
        bad = X[:, j] < 0
        if X.dtype.kind == "f":
            bad |= X[:, j] != np.floor(X[:, j])
        if bad.any():
            raise ValueError(
                f"column {j} holds {X[bad, j][0]}, which is no code: categories are whole numbers from 0."
            )


@dataclass(frozen=True)
class CategoricalParameters:
    """Logarithms of p(y), of p(x_i | y) in the columns of `frame`, and of an unseen category."""

    log_prior: Array
    log_prob: Array
    log_unseen: Array
    frame: Categories
    floored: Array


@dataclass(frozen=True)
class CategoricalModel(GenerativeModel):
    """Categorical features, independent given the class.

    Parameters
    ----------
    alpha : float
        Dirichlet pseudo-counts a cell; 0 is maximum likelihood.
    class_alpha : float
        Pseudo-counts a class for p(y).
    class_prior : array of shape (n_classes,), optional
        A fixed p(y).
    min_categories : int or array, optional
        At least so many categories a feature, observed or not.
    """

    support: ClassVar[str] = "categories"

    alpha: float = 0.0
    class_alpha: float = 0.0
    class_prior: Array | None = None
    min_categories: Array | int | None = None

    def prepare(self, X: Array, sample_weight: Array | None = None) -> Codes:
        """Codes in the smallest unsigned type; category K-1 is the largest code seen."""
        X = np.asarray(X)
        check_codes(X)
        top = X.max(axis=0).astype(np.int64) + 1
        if self.min_categories is not None:
            top = np.maximum(top, self.min_categories)
        frame, codes = Categories(top), X.astype(np.min_scalar_type(int(X.max(initial=0))), copy=False)
        if not is_worth_it(*X.shape):
            return Codes(codes, frame)
        groups = Groups(frame)
        if 2 * len(groups.sizes) > X.shape[1]:  # wide features stand alone: a second copy of X for little
            return Codes(codes, frame)
        return Codes(codes, frame, groups, groups.encode(codes, frame))

    def rows(self, X: Array, theta: CategoricalParameters) -> Codes:
        """Codes, in the categories of theta where it knows them all."""
        check_codes(X)
        Z = Codes(X, Categories(X.max(axis=0, initial=0).astype(np.int64) + 1))
        known = (Z.frame.n_categories <= theta.frame.n_categories).all()
        return Codes(Z.codes, theta.frame) if known else Z

    def statistics(self, Z: Codes, W: Array) -> Statistics:
        """Weighted counts of classes and of (class, feature, category)."""
        counts = (Z.one_hot.T @ W).T
        return Statistics({"s0": W.sum(axis=0), "counts": counts}, Z.frame)

    def label_statistics(self, Z: Codes, y: Array, w: Array | None, n_classes: int) -> Statistics:
        """Counts of labelled rows."""
        if Z.groups is None:
            return super().label_statistics(Z, y, w, n_classes)
        s0 = np.bincount(y, weights=w, minlength=n_classes).astype(np.float64)
        return Statistics({"s0": s0, "counts": Z.groups.label_counts(Z.joint, y, w, n_classes)}, Z.frame)

    def scan_chunk(
        self, Z: Codes, y: Array, w: Array | None, theta: CategoricalParameters, residual: Residual | None
    ) -> tuple[Statistics | None, Risks]:
        """By compiled code, where there is some for this table and this residual."""
        power = getattr(residual, "power", None)
        if Z.groups is None or power is None or Z.frame != theta.frame:
            return super().scan_chunk(Z, y, w, theta, residual)
        s0, counts, risks = Z.groups.scan(Z.joint, y, w, theta, power)
        return Statistics({"s0": s0, "counts": counts}, Z.frame), risks

    def parameters(self, S: Statistics) -> CategoricalParameters:
        """p(x_i = v | y) = (s_ivy + alpha) / sum_v (s_ivy + alpha), each numerator floored."""
        frame: Categories = S.frame
        counts = S["counts"] + self.alpha
        floor = COUNT_FLOOR * max(S.total, np.finfo(float).tiny)
        floored = counts < floor
        counts = np.maximum(counts, floor)
        sums = np.add.reduceat(counts, frame.offsets, axis=1)
        log_sums = np.log(sums)
        log_prob = np.log(counts) - np.repeat(log_sums, frame.n_categories, axis=1)
        # Without pseudo-counts nothing is known of an unseen category: it says nothing of the class.
        log_unseen = np.log(self.alpha) - log_sums if self.alpha > 0 else np.zeros_like(log_sums)
        log_prior = log_class_prior(S["s0"], self.class_alpha, self.class_prior)
        return CategoricalParameters(log_prior, log_prob, log_unseen, frame, floored.sum(axis=1))

    def is_legal(self, S: Statistics) -> bool:
        """Every class keeps a mass; cells are floored."""
        return S.is_finite() and bool((S["s0"] + self.class_alpha > 0).all())

    def log_joint(self, Z: Codes, theta: CategoricalParameters) -> Array:
        """log p(y) + sum_i log p(x_i | y)."""
        if Z.frame is theta.frame or Z.frame == theta.frame:
            return Z.one_hot @ theta.log_prob.T + theta.log_prior
        unseen = Z.codes >= theta.frame.n_categories
        known = Codes(np.where(unseen, 0, Z.codes), theta.frame).one_hot
        known.data = (~unseen).ravel().astype(np.float64)
        return known @ theta.log_prob.T + unseen @ theta.log_unseen.T + theta.log_prior

    def sample(self, theta: CategoricalParameters, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """A class, then each feature by inverting its cumulative distribution."""
        y = draw_classes(theta.log_prior, n, rng)
        X = np.empty((n, len(theta.frame.n_categories)), dtype=np.int64)
        cells = np.split(np.exp(theta.log_prob), theta.frame.offsets[1:], axis=1)
        for j, p in enumerate(cells):
            below = np.cumsum(p, axis=1)[:, :-1]
            X[:, j] = (rng.random(n)[:, None] > below[y]).sum(axis=1)
        return X, y

    def expected_statistics(self, theta: CategoricalParameters, total: float) -> Statistics:
        """Counts of `total` rows: total p(y) p(x_i | y)."""
        s0 = total * np.exp(theta.log_prior)
        return Statistics({"s0": s0, "counts": s0[:, None] * np.exp(theta.log_prob)}, theta.frame)

    def log_likelihood(self, S: Statistics, theta: CategoricalParameters) -> float:
        """sum_y s0 log p(y) + sum_iy s_iy log p(x_i | y)."""
        counts = S.to_frame(theta.frame)["counts"]
        return float(S["s0"] @ theta.log_prior + (counts * theta.log_prob).sum())

    def inverse_parameters(self, theta: CategoricalParameters, total: float) -> Statistics:
        """Counts whose smoothed frequencies are theta."""
        alpha = self.class_alpha if self.class_prior is None else 0.0
        s0 = invert_class_prior(theta.log_prior, total, alpha)
        cells = np.repeat(theta.frame.n_categories, theta.frame.n_categories)
        counts = np.exp(theta.log_prob) * (s0[:, None] + self.alpha * cells) - self.alpha
        return Statistics({"s0": s0, "counts": counts}, theta.frame)

    def to_natural(self, theta: CategoricalParameters) -> dict[str, Array]:
        """log p(y) and log p(x_i | y); the log-partition is zero."""
        return {"eta0": theta.log_prior, "eta": theta.log_prob}

    def natural_gradient(self, dS: Statistics, theta: CategoricalParameters) -> dict[str, Array]:
        """The statistics themselves."""
        dS, fixed = dS.to_frame(theta.frame), self.class_prior is not None
        return {"eta0": np.zeros_like(dS["s0"]) if fixed else dS["s0"], "eta": dS["counts"]}

    def from_natural(
        self, eta: dict[str, Array], theta: CategoricalParameters, simplex: Any, floor: float
    ) -> CategoricalParameters:
        """Each distribution brought back to probabilities."""
        cells = np.split(eta["eta"], theta.frame.offsets[1:], axis=1)
        log_prob = np.concatenate([simplex(cell) for cell in cells], axis=1)
        return replace(theta, log_prior=simplex(eta["eta0"]), log_prob=log_prob)
