"""What the Gaussian models share: rows seen from an origin, the prior, the floor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from riskbayes.arrays import (
    Array,
    as_kind,
    converted,
    is_all,
    like,
    max_of,
    namespace,
    own_precision,
    rows_above,
    sent_to,
    sum_of,
    take_rows,
    to_numpy,
    widened,
)
from riskbayes.exceptions import ColumnError
from riskbayes.frames import Origin
from riskbayes.models.base import GenerativeModel, invert_class_prior, log_class_prior
from riskbayes.statistics import Statistics

LOG_2PI = float(np.log(2 * np.pi))

EPS = float(np.finfo(float).eps)

MOMENT_ROUNDING = 1e-10
"""What sums of many rows, added and subtracted, may err by, as a share of all that was ever summed."""

LARGEST_ROOT = 1e140
"""What can be squared, and multiplied again."""

SMALLEST_VARIANCE, SMALLEST_SINGLE = 1e-290, 1e-24
"""Least variances of columns of float64 and of float32: there must be room for classes of less."""

PAD = 4
"""Columns before those of X in a design: a one, and zeros that keep the rows aligned."""


class Centred:
    """Rows of X seen from an origin, in the user's precision. Differences are taken a chunk at a time."""

    releases_gil = True  # products and differences of NumPy do
    memory: Any = None
    """What scans remember of the rows, where a model keeps something; chunks have none."""
    start: int | None = 0
    """Where in the whole table these rows begin; None where they were picked."""

    def __init__(self, X: Array, frame: Origin, width: float | None = None, dtype: Any = None):
        self.X, self.frame = X, frame
        self.shape = X.shape
        self.dtype = own_precision(X) if dtype is None else dtype
        self.width = X.shape[1] if width is None else width

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows: slice | Array) -> Centred:
        if is_all(rows, self.shape[0]) and isinstance(self.X, np.ndarray):
            return self  # a table of one chunk keeps what was computed of it
        together = isinstance(rows, slice)
        X = self.X[rows, ...] if together else take_rows(self.X, rows)
        part = Centred(X, self.frame, self.width, self.dtype)
        part.start = self.start + (rows.start or 0) if together and self.start is not None else None
        return part

    @cached_property
    def exact(self) -> Array:
        """X - origin in the widest precision, for statistics: second moments lose half of the digits."""
        return widened(self.X) - self.frame.origin[None, :]

    @cached_property
    def values(self) -> Array:
        """X - origin in the precision of the rows, for scores."""
        return as_kind(self.exact, self.dtype)

    @cached_property
    def squares(self) -> Array:
        """(X - origin)^2 in the precision of the rows."""
        return self.values * self.values

    @cached_property
    def design(self) -> Array:
        """[1, 0, 0, 0, X - origin]: a product with it adds a constant too."""
        xp, m = namespace(self.X), self.shape[0]
        if xp is np:
            D = np.empty((m, PAD + self.shape[1]), dtype=self.dtype)
            D[:, 0], D[:, 1:PAD] = 1.0, 0.0
            np.subtract(self.X, self.frame.origin, out=D[:, PAD:], casting="same_kind")
            return D
        constant = xp.ones((m, 1), **like(self.values))
        return xp.concat([constant, xp.zeros((m, PAD - 1), **like(self.values)), self.values], axis=1)

    def about(self, frame: Origin) -> Centred:
        """The same rows, seen from another origin."""
        return self if self.frame is frame else Centred(self.X, frame, self.width, self.dtype)


@dataclass(frozen=True)
class Bound:
    """What a fit freezes: scales of the columns, the prior's centre, and the closed form's covariances."""

    origin: Array
    variance: Array
    """Total variance of each column; zero where it is constant."""
    scale: Array
    """Its root; of a constant column the largest of the others, or one."""
    mean: Array
    """The prior's mean relative to `origin`, where it does not lose digits."""
    covariance: Array
    """The prior's covariance."""
    completion: Array | None = None
    """What is added to each covariance in the directions that the rows do not determine; None: nothing."""
    missing: Array | None = None
    """How many such directions each covariance has."""
    reference: Array | None = None
    """The closed form's covariances: calibration leaves at least a share of them."""

    @cached_property
    def widest(self) -> float:
        """The largest variance."""
        return float(namespace(self.variance).max(self.variance))

    def completed(self, C: Array) -> Array:
        """Covariances with what the rows do not determine of them."""
        return C if self.completion is None else C + self.completion

    def least(self, floor: float) -> Array:
        """The least variances that calibration leaves, where they are stored as diagonals."""
        return floor * self.reference  # type: ignore[operator]

    def uncompleted(self, C: Array) -> Array:
        """The inverse of `completed`."""
        return C if self.completion is None else C - self.completion


@dataclass(frozen=True)
class GaussianModel(GenerativeModel):
    """Hyper-parameters of every Gaussian model; its subclasses differ in the second moments.

    Parameters
    ----------
    mean_strength, covariance_strength : float
        m1 and m2, the equivalent sample sizes of the prior on means and on covariances; 0 is ML.
    prior_mean, prior_covariance : array, optional
        The prior's centre; by default the pooled mean and the pooled within-class covariance.
    diagonal_mix : float
        Share of its own diagonal in the default prior covariance.
    prior_form : {"exact", "paper"}
        "exact" is the mode of the normal / inverse-Wishart posterior; "paper" leaves out what the
        shift of the mean adds to the covariance.
    covariance_floor : float
        The least share of its closed form's variance that calibration leaves a class, in every direction.
    class_alpha, class_prior
        As in :class:`CategoricalModel`.
    bound : Bound, optional
        Set by `bind`.
    """

    floor_warning: ClassVar[str | None] = (
        "The rows do not determine the covariance of class {classes}: up to {most} of its eigenvalues were "
        "set to a small share of the total variance. Add a prior (covariance_strength > 0) or shrinkage, or "
        "drop constant and collinear columns."
    )

    array_api: ClassVar[bool] = True
    widest: ClassVar[float] = np.inf
    """Rows of more columns than this go as many at once as if they had so many."""

    mean_strength: float = 0.0
    covariance_strength: float = 0.0
    prior_mean: Array | None = None
    prior_covariance: Array | None = None
    diagonal_mix: float = 0.0
    prior_form: str = "exact"
    covariance_floor: float = 1e-2
    class_alpha: float = 0.0
    class_prior: Array | None = None
    bound: Bound | None = None

    def prepare(self, X: Array, sample_weight: Array | None = None) -> Centred:
        """Rows seen from their weighted mean; X itself is not copied."""
        return Centred(X, Origin(mean_of(X, sample_weight), eps_of(X)), min(X.shape[1], self.widest))

    def rows(self, X: Array, theta: Any) -> Centred:
        """Rows seen from where the parameters are."""
        return Centred(X, theta.frame, min(X.shape[1], self.widest))

    def for_scan(self, theta: Any, Z: Centred) -> Any:
        """theta in the precision of the rows; where they are seen from stays exact."""
        if Z.dtype == theta.means.dtype:
            return theta
        xp = namespace(theta.means)
        frame = theta.frame

        def narrowed(x: Array) -> Array:
            return as_kind(x, Z.dtype) if xp.isdtype(x.dtype, "real floating") else x

        with np.errstate(over="ignore"):  # a covariance, which scans do not read, may be too large
            return replace(converted(replace(theta, frame=None), narrowed), frame=frame)

    def label_statistics(self, Z: Centred, y: Array, w: Array | None, n_classes: int) -> Statistics:
        """s(X, Y); squares that overflow are refused by `bind`, which names the column."""
        with np.errstate(over="ignore", invalid="ignore"):
            return super().label_statistics(Z, y, w, n_classes)

    def scatter(self, S: Statistics) -> tuple[Array, Array]:
        """Total and within-class scatter about the means, in the shape of this model's covariance."""
        raise NotImplementedError

    def covariances(self, S: Statistics, bound: Bound) -> Array:
        """The closed form of each covariance, or of each class's variances, before any floor."""
        raise NotImplementedError

    def completion(self, S: Statistics, bound: Bound, C: Array, pooled: Array) -> tuple[Array | None, Array]:
        """What to add to the closed form C where the rows do not determine it, and in how many directions.

        `pooled` is the within-class covariance.
        """
        raise NotImplementedError

    def moment_matrices(self, S: Statistics, size: Array) -> Array:
        """A stack of matrices of moments, sum_i w_i v_i v_i^T with v_i = (1, x_i / size), of NumPy's S."""
        raise NotImplementedError

    def could_be_counted(self, S: Statistics, ever: Statistics) -> bool:
        """False if a matrix of moments is indefinite: then no rows of non-negative weight have these moments.

        It is so where a scatter about the mean is, or where a mean lies further out than the scatter allows.
        Rows moved by little, or with labels of a class nearby, may leave moments that other rows could have.
        """
        if not super().could_be_counted(S, ever):
            return False
        S, ever = (value.converted(to_numpy) for value in (S, ever))
        total = max(ever.total, np.finfo(float).tiny)
        # Of all classes: batches are recentred by as much as the rows of other classes lie away.
        squares = diagonal(self.scatter(ever)[0]) / total + (ever["s1"].sum(axis=0) / total) ** 2
        spacing = float(np.finfo(np.float32).eps) * np.abs(ever.origin)
        size = np.maximum(np.sqrt(np.abs(squares)) + spacing, 1e-146)  # smaller squares have lost digits
        M = self.moment_matrices(S, size) / total
        return bool(np.linalg.eigvalsh(M).min() >= -MOMENT_ROUNDING * M.shape[-1] ** 0.5)

    def bind(self, S: Statistics) -> Self:
        """Freeze the scale of the columns, the pooled prior, and the covariances of the closed form."""
        total = max(S.total, np.finfo(float).tiny)
        with np.errstate(over="ignore", invalid="ignore"):
            total_scatter, within = self.scatter(S)
        variance = check_range(diagonal(total_scatter) / total, S)
        mean = sum_of(S["s1"], axis=0) / total
        xp = namespace(variance)
        with np.errstate(over="ignore"):
            constant = variance <= rounding(variance + mean * mean, S.frame)
        variance = xp.where(constant, 0.0, variance)
        widest = max_of(variance)
        scale = xp.sqrt(xp.where(constant, xp.where(widest > 0, widest, 1.0), variance))
        pooled = within / total
        prior = (1 - self.diagonal_mix) * pooled + self.diagonal_mix * keep_diagonal(pooled)
        bound = Bound(
            S.origin,
            variance,
            scale,
            mean if self.prior_mean is None else sent_to(self.prior_mean, mean) - S.origin,
            prior if self.prior_covariance is None else sent_to(self.prior_covariance, mean),
        )
        with np.errstate(over="ignore", invalid="ignore"):
            C = self.covariances(S, bound)
            if not bool(xp.all(xp.isfinite(C))):
                raise overflowing(to_numpy(scale) == to_numpy(max_of(scale)))
            completion, missing = self.completion(S, bound, C, pooled)
        bound = replace(bound, completion=completion, missing=missing)
        return replace(self, bound=replace(bound, reference=bound.completed(C)))

    def means(self, S: Statistics, bound: Bound) -> tuple[Array, Array, Array]:
        """MAP means relative to S's origin, the masses they carry, and the prior's mean."""
        mu0 = bound.mean if bound.origin is S.origin else bound.mean + (bound.origin - S.origin)
        kappa = S["s0"] + self.mean_strength
        mass = namespace(kappa).where(kappa > 0, kappa, 1.0)  # a class still without rows, in partial_fit
        s1 = S["s1"] + self.mean_strength * mu0[None, :] if self.mean_strength else S["s1"]
        return s1 / mass[:, None], kappa, mu0

    def is_legal(self, S: Statistics) -> bool:
        """Every class keeps a mass, after the prior; covariances are floored."""
        by_prior = min(self.mean_strength, self.covariance_strength) if self.prior_form == "exact" else 0.0
        by_class = np.inf if self.class_prior is not None else self.class_alpha
        return S.least_mass() + min(by_prior, by_class) > 0

    def second_moments(self, n: int) -> float:
        """How many second moments a class of n features has of its own."""
        raise NotImplementedError

    def degrees_of_freedom(self, S: Statistics) -> float:
        """By class, 1 + n means + second moments, each by the data's share in its estimate."""
        s0, n = np.maximum(to_numpy(S["s0"]), 0.0), S["s1"].shape[1]
        with np.errstate(invalid="ignore"):
            mean, second = (
                np.nan_to_num(s0 / (s0 + m)) for m in (self.mean_strength, self.covariance_strength)
            )
        return float((1 + n * mean + self.second_moments(n) * second).sum())

    def log_class_prior(self, S: Statistics) -> Array:
        """log p(y)."""
        return log_class_prior(S["s0"], self.class_alpha, self.class_prior)

    def invert_means(self, theta: Any, total: float) -> tuple[Array, Array, Array, Bound]:
        """s0, s1, the prior's mean and what is bound, for `inverse_parameters`."""
        bound = self.bound
        if bound is None:
            raise ValueError("inverse_parameters needs a bound model: call bind(S) first.")
        alpha = self.class_alpha if self.class_prior is None else 0.0
        s0 = invert_class_prior(theta.log_prior, total, alpha)
        mu0 = bound.mean + (bound.origin - theta.frame.origin)
        s1 = theta.means * (s0 + self.mean_strength)[:, None] - self.mean_strength * mu0[None, :]
        return s0, s1, mu0, bound

    def first_gradient(self, dS: Statistics, theta: Any) -> tuple[Array, Array]:
        """Gradients in eta0 and eta1: dS0 and dS1 - mu dS0, the same about every origin."""
        s0 = dS["s0"]
        gradient0 = s0 if self.class_prior is None else 0.0 * s0
        return gradient0, dS["s1"] - theta.means * s0[:, None]

    def bound_to(self, S: Statistics) -> Bound:
        """What `bind` froze, or what S itself says."""
        return self.bound or self.bind(S).bound  # type: ignore[return-value]


def mean_of(X: Array, w: Array | None) -> Array:
    """The weighted mean of each column, in the widest precision; of a constant column exactly its value."""
    xp, m = namespace(X), X.shape[0]
    total = m if w is None else sum_of(w)
    if xp is np:
        # Not all at once: a product of two precisions would copy X.
        step = m if X.dtype == np.float64 else 4096
        parts = [slice(start, start + step) for start in range(0, m, step)]
        weights = np.ones(m) if w is None else w
        mean = sum(weights[part] @ X[part].astype(np.float64, copy=False) for part in parts) / total
    else:
        dtype = own_precision(X)
        weights = xp.ones((m,), **{**like(X), "dtype": dtype}) if w is None else as_kind(w, dtype)
        mean = widened(weights @ as_kind(X, dtype)) / total
    first = widened(X[0, :])
    return xp.where(xp.abs(mean - first) <= m * float(eps_of(X)) * xp.abs(first), first, mean)


def eps_of(X: Array) -> Array:
    """Relative spacing of the numbers that rows are computed in."""
    return np.array(float(namespace(X).finfo(own_precision(X)).eps))


def check_range(variance: Array, S: Statistics) -> Array:
    """Refuse a column whose squares are too large or too small for the precision of its rows."""
    found, s1 = to_numpy(variance), to_numpy(S["s1"])
    single = S.frame.eps > EPS
    wider = ", or pass it as float64" if single else ""
    large = ~(np.abs(found) <= np.finfo(np.float32 if single else np.float64).max / max(S.total, 1.0))
    if large.any():
        raise overflowing(large, wider)
    # The first moments of a constant column are exactly zero, or their squares are numbers.
    least = SMALLEST_SINGLE if single else SMALLEST_VARIANCE
    first = np.abs(s1).max(axis=0) / max(S.total, 1.0)
    small = (np.abs(found) < least) & (first > 0) & (first < least**0.5)
    if small.any():
        raise ColumnError(
            int(np.flatnonzero(small)[0]),
            "has values whose squares underflow: they differ by too little. Multiply it by a power of "
            f"ten{wider}.",
        )
    return variance


def overflowing(columns: Array, wider: str = "") -> ColumnError:
    """The error for the first of these columns, whose squares are no numbers."""
    return ColumnError(
        int(np.flatnonzero(columns)[0]),
        f"has values whose squares overflow. Scale it{wider}, or treat such values as missing.",
    )


def rounding(second: Array, frame: Origin, terms: int = 1) -> Array:
    """Variances below which nothing is known: what rounding does to moments about the frame's origin.

    `second` are second moments about it. Sums and differences of `terms` such products, here and where they
    were recentred from, err by their share in the last digit of float64; the values themselves are known to
    the last digit of the rows.
    """
    xp, eps = namespace(second), 8 * float(frame.eps)
    resolved = xp.clip(eps * xp.abs(frame.origin), max=LARGEST_ROOT)  # of a constant column it may be huge
    moved = sent_to(np.minimum(frame.moved, LARGEST_ROOT) ** 2, second)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by `bind`
        return 16 * terms * EPS * (xp.abs(second) + moved) + eps**2 * second + resolved * resolved


def noise_of(second: Array, frame: Origin, bound: Bound) -> Array:
    """The rounding of a class's variances in its closed form; of a constant column as of one that varies."""
    n, xp = second.shape[-1], namespace(second)
    found, usual = rounding(second, frame, n), 16 * n * EPS * bound.scale * bound.scale
    return xp.where((bound.variance > 0) | (found > usual), found, usual)


def diagonal(C: Array) -> Array:
    """The diagonals of covariances, one or a stack of them, that may be stored as diagonals."""
    return C if C.ndim == 1 else namespace(C).linalg.diagonal(C)


def keep_diagonal(C: Array) -> Array:
    """C without what lies off its diagonal."""
    return C if C.ndim == 1 else eye_like(C) * C


def eye_like(C: Array) -> Array:
    """The identity, in the size and kind of C."""
    return namespace(C).eye(C.shape[-1], **like(C))


def spread(C: Array) -> Array:
    """tr(C) / n, for each of a stack."""
    return namespace(C).linalg.trace(C) / C.shape[-1]


def outer(v: Array) -> Array:
    """v v^T, for each row of v."""
    return v[..., :, None] * v[..., None, :]


def rows_that_count(weights: Array) -> Array | None:
    """Indices of the rows that count, or None when most of them do."""
    xp = namespace(weights)
    size = xp.abs(weights)
    return rows_above(size, 1e-12 * max_of(size)) if size.shape[0] else None
