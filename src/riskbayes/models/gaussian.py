"""The base class of the Gaussian models: the prior, and the floor of covariances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from riskbayes.arrays import (
    Array,
    astype,
    converted,
    eps_of,
    eye_like,
    max_of,
    namespace,
    outer,
    positive,
    sum_of,
    to_device,
    to_numpy,
)
from riskbayes.frames import Frame
from riskbayes.models.base import Described, Fitted, GenerativeModel, Sample
from riskbayes.models.centred import Centred, Origin, mean_of, observed_mean, observed_of
from riskbayes.models.coordinates import LEAST_SHARE, Coordinates, Point, invert_class_prior
from riskbayes.models.missing import Holes
from riskbayes.models.settled import Settled, check_range, overflowing, rounding
from riskbayes.models.traits import Traits
from riskbayes.models.whitening import SMALL
from riskbayes.scanners import Scanner
from riskbayes.statistics import Statistics

LOG_2PI = float(np.log(2 * np.pi))

MOMENT_ROUNDING = 1e-10
"""Largest rounding error of moments after additions and subtractions, relative to all that was summed."""

UNSEEN = 1e20
"""Factor of the variance of a column whose moments are zero in all classes: no row has a cell in it."""


@dataclass(frozen=True)
class GaussianModel(GenerativeModel):
    """Base class with the hyper-parameters of every Gaussian model; subclasses differ in second moments.

    Parameters
    ----------
    mean_strength, covariance_strength : float
        m1 and m2, the equivalent sample sizes of the prior on means and on covariances; 0 is ML.
    prior_mean, prior_covariance : array, optional
        The prior's centre; by default the pooled mean and the pooled within-class covariance.
    diagonal_mix : float
        Share of its own diagonal in the default prior covariance. Where cells are missing it is multiplied by
        the share of the pairs of cells that are observed: what is known of a missing cell is by dependences.
    prior_form : {"exact", "paper"}
        "exact" is the mode of the normal / inverse-Wishart posterior; "paper" leaves out what the
        shift of the mean adds to the covariance.
    covariance_floor : float
        Least variance of a class during calibration, in every direction, as a share of its closed form's.
    class_alpha, class_prior
        As in :class:`CategoricalModel`.
    covariance_estimator : object with `fit` and `covariance_`, optional
        Estimates the covariances of the classes for the closed form, in place of the statistics.
    standardise : bool
        True to fit the estimator on columns of mean zero and variance one.
    """

    floor_message: ClassVar[str] = (
        "The rows do not determine the covariance of class {classes}: up to {most} of its eigenvalues were "
        "set to a small share of the total variance."
    )
    """What the warning for floored parameters says first."""
    floor_cures: ClassVar[dict[str, str]] = {
        "covariance_strength": "covariance_strength (a prior)",
        "shrinkage": "shrinkage",
    }
    """Parameters of the model that help against it, as the estimator calls them."""
    floor_columns: ClassVar[str] = "constant and collinear columns"

    traits: ClassVar[Traits] = Traits(array_api=True, takes_missing=True, encode_copies=False)
    frame_kind: ClassVar[type[Origin]]
    """The class of the frame, which defines how second moments are recentred."""
    second: ClassVar[str]
    """Name of the second moments."""
    own_moments: ClassVar[str] = "none"
    """Which second moments each class has of its own: of "pairs" of columns, of "columns", or "none"."""

    mean_strength: float = 0.0
    covariance_strength: float = 0.0
    prior_mean: Array | None = None
    prior_covariance: Array | None = None
    diagonal_mix: float = 0.0
    prior_form: str = "exact"
    covariance_floor: float = 1e-2
    class_alpha: float = 0.0
    class_prior: Array | None = None
    covariance_estimator: Any = None
    standardise: bool = False

    @property
    def floor_warning(self) -> str:  # type: ignore[override]
        """The warning for floored parameters; it proposes those cures that are not in use."""
        cures = " or ".join(cure for name, cure in self.floor_cures.items() if not getattr(self, name))
        advice = f"Set {cures} above zero, or drop" if cures else "Drop"
        return f"{self.floor_message} {advice} {self.floor_columns}."

    def learn(self, sample: Sample) -> Frame:
        """Return the frame whose origin is the mean of the rows: any point among them will do."""
        frame = self.frame_kind(mean_of(sample.X, sample.w), np.array(eps_of(sample.X)))
        origin = frame.origin  # NaN in columns with missing cells
        if isinstance(origin, np.ndarray) and np.isnan(origin).any() and Holes.of(sample.X) is not None:
            if sample.w is not None and not sample.w.all():  # only rows that do not count may lack cells
                rows = np.flatnonzero(sample.w)
                return self.learn(replace(sample, X=sample.X[rows], y=sample.y[rows], w=sample.w[rows]))
            if self.covariance_estimator is not None:
                raise ValueError(
                    "shrinkage='auto' and covariance_estimator need complete rows, and X has missing cells: "
                    "fill them in, or use a prior (covariance_strength) in their place."
                )
            observed = observed_of(sample.X, sample.w)
            frame = replace(frame, origin=observed_mean(sample.X, sample.w), observed=observed)
            return self.learn_missing(sample, frame)
        return frame if self.covariance_estimator is None else replace(frame, given=self.estimated(sample))

    def learn_missing(self, sample: Sample, frame: Origin) -> Origin:
        """Return the frame with what the model needs to count rows with missing cells."""
        raise NotImplementedError

    def estimated(self, sample: Sample) -> Array:
        """Return the covariances of the classes by the user's estimator."""
        name = "shrinkage='auto'" if self.standardise else "covariance_estimator"
        if not isinstance(sample.X, np.ndarray):
            raise ValueError(f"{name} reads NumPy arrays only: pass those, or a shrinkage between 0 and 1.")
        if sample.w is not None:
            raise ValueError(f"{name} does not take weights: leave out sample_weight and class_weight.")
        found = []
        for k in range(sample.n_classes):
            rows = sample.X[sample.y == k]
            # Ledoit-Wolf on standardised columns, as scikit-learn does.
            scale = positive(rows.std(axis=0)) if self.standardise else np.ones(rows.shape[1])
            fitted = clone(self.covariance_estimator, safe=False)  # any object with fit and covariance_
            fitted.fit((rows - rows.mean(axis=0) * self.standardise) / scale)
            if not hasattr(fitted, "covariance_"):
                raise ValueError(f"{type(fitted).__name__} does not have a covariance_ attribute.")
            found.append(fitted.covariance_ * np.outer(scale, scale))
        return np.stack(found)

    def encode(self, X: Array, frame: Frame) -> Centred:
        """Return the rows with the frame's origin; X itself is not copied."""
        return Centred(X, frame, holes=Holes.of(X))  # type: ignore[arg-type]

    def cast(self, theta: Any, Z: Centred) -> Any:
        """Return theta in the dtype of the rows. The origin stays float64."""
        if Z.dtype == theta.means.dtype:
            return theta
        with np.errstate(over="ignore"):  # in covariances, which scans do not read
            own = converted(replace(theta, frame=None), lambda x: astype(x, Z.dtype))
        return replace(own, frame=theta.frame)

    def scanner(self, Z: Centred) -> Scanner:
        """Return a scanner in threads: NumPy releases the GIL in products and differences."""
        return Scanner(self, Z, releases_lock=True)

    def scatter(self, S: Statistics) -> tuple[Any, Array, Array]:
        """Return the weight of the rows, the total scatter of each column, and the within-class scatter.

        The weight is a number, or one for each column where cells are missing. The within-class scatter has
        the shape of this model's covariance.
        """
        raise NotImplementedError

    def covariances(self, S: Statistics, settled: Settled) -> Array:
        """Return the closed form of the covariances (or variances) of the classes, before any floor."""
        raise NotImplementedError

    def completion(
        self, S: Statistics, settled: Settled, C: Array, pooled: Array
    ) -> tuple[Array | None, Array]:
        """Return the term to add to C where the rows do not determine it, and in how many directions.

        C is the closed form, `pooled` the within-class covariance.
        """
        raise NotImplementedError

    def undetermined(self, S: Statistics, completion: Array) -> Array:
        """Return what the completion of the covariances adds to the second moments of S."""
        raise NotImplementedError

    def moment_matrices(self, S: Statistics, size: Array) -> Array:
        """Return a stack of matrices sum_i w_i v_i v_i^T with v_i = (1, x_i / size); S is in NumPy."""
        raise NotImplementedError

    def is_attainable(self, S: Statistics, ever: Statistics) -> bool:
        """False if a matrix of moments is indefinite: then no rows of non-negative weight have these moments.

        It is where a scatter about the mean is indefinite, or a mean is larger than the scatter allows. Rows
        that were changed a little, or labelled as a class nearby, may pass the test.
        """
        if not super().is_attainable(S, ever):
            return False
        S, ever = (value.converted(to_numpy) for value in (S, ever))
        total = max(ever.total, np.finfo(float).tiny)
        # The size over all classes: recentring a batch moves it by the distances between classes.
        squares = self.scatter(ever)[1] / total + (ever["s1"].sum(axis=0) / total) ** 2
        spacing = float(np.finfo(np.float32).eps) * np.abs(ever.origin)
        size = np.maximum(np.sqrt(np.abs(squares)) + spacing, 1e-146)  # smaller squares have lost digits
        M = self.moment_matrices(S, size) / total
        return bool(np.linalg.eigvalsh(M).min() >= -MOMENT_ROUNDING * M.shape[-1] ** 0.5)

    def fix_prior(self, S: Statistics) -> Statistics:
        """Return S with a frame that holds column scales, the prior, and the closed form's covariances."""
        return S.with_frame(replace(S.frame, settled=self.settled_by(S)))

    def settled_by(self, S: Statistics) -> Settled:
        """Return what the statistics S of the data determine and calibration leaves fixed."""
        with np.errstate(over="ignore", invalid="ignore"):
            total, squares, within = self.scatter(S)
        variance = check_range(squares / total, S)
        mean = sum_of(S["s1"], axis=0) / total
        xp = namespace(variance)
        with np.errstate(over="ignore"):
            constant = variance <= rounding(variance + mean * mean, S.frame)
        variance = xp.where(constant, 0.0, variance)
        widest = max_of(variance)
        scale = xp.sqrt(xp.where(constant, positive(widest), variance))
        pooled = within / total
        mix = self.diagonal_mix if S.frame.observed is None else self.diagonal_mix * S.frame.observed.share
        prior = pooled
        if mix and pooled.ndim == 2:  # a vector is a diagonal already
            prior = (1 - mix) * pooled + mix * (eye_like(pooled) * pooled)
        settled = Settled(
            variance,
            scale,
            mean if self.prior_mean is None else to_device(self.prior_mean, mean) - S.origin,
            prior if self.prior_covariance is None else to_device(self.prior_covariance, mean),
        )
        with np.errstate(over="ignore", invalid="ignore"):
            C = self.covariances(S, settled)
            if not bool(xp.all(xp.isfinite(C))):
                raise overflowing(to_numpy(scale) == to_numpy(max_of(scale)))
            completion, missing = self.completion(S, settled, C, pooled)
        settled = replace(settled, completion=completion, missing=missing)
        if completion is not None:
            whole = to_numpy(settled.with_completion(C))
            finite = np.isfinite(np.diagonal(whole, axis1=1, axis2=2) if whole.ndim == 3 else whole)
            if not finite.all():
                raise overflowing(~finite.all(axis=0))
        if isinstance(C, np.ndarray) and C.ndim == 3 and len(C) > 1 and C.shape[-1] > SMALL:
            return replace(settled, data=S)  # in place of a large reference
        return replace(settled, reference=settled.with_completion(C))

    def means(self, S: Statistics, settled: Settled) -> tuple[Array, Array]:
        """Return the MAP means relative to the origin, and their masses, m1 + s0."""
        kappa = S["s0"] + self.mean_strength if self.mean_strength else S["s0"]
        s1 = S["s1"] + self.mean_strength * settled.mean[None, :] if self.mean_strength else S["s1"]
        return s1 / positive(kappa)[:, None], kappa

    def is_legal(self, S: Statistics) -> bool:
        """True if every class has a mass after the prior is added; covariances are floored anyway."""
        by_prior = min(self.mean_strength, self.covariance_strength) if self.prior_form == "exact" else 0.0
        by_class = np.inf if self.class_prior is not None else self.class_alpha
        return S.least_mass() + min(by_prior, by_class) > 0

    def coordinates(self, S: Statistics) -> Coordinates:
        """Return the statistics, in the standard deviations of moments."""
        return MomentCoordinates(S, moment_deviations(S), self)

    def degrees_of_freedom(self, S: Statistics) -> float:
        """Return the sum over classes of 1 + n means + second moments, each times the data's share in it.

        Where cells are missing, a mean counts by the share of its cells that are observed, a second moment by
        that of the rows with both.
        """
        s0, n = np.maximum(to_numpy(S["s0"]), 0.0), S["s1"].shape[1]
        columns, pairs, _ = S.frame.observed or (n, n * (n + 1) / 2, 1.0)
        own = {"pairs": pairs, "columns": columns, "none": 0.0}[self.own_moments]
        with np.errstate(invalid="ignore"):
            mean, second = (
                np.nan_to_num(s0 / (s0 + m)) for m in (self.mean_strength, self.covariance_strength)
            )
        return float((1 + columns * mean + own * second).sum())

    def invert_means(self, theta: Any, total: float) -> tuple[Array, Array, Settled]:
        """Return s0, s1 and what `fix_prior` stored, for `inverse_parameters`."""
        settled = theta.frame.settled
        if settled is None:
            raise ValueError("inverse_parameters needs parameters of settled statistics: see `fix_prior`.")
        alpha = self.class_alpha if self.class_prior is None else 0.0
        s0 = invert_class_prior(theta.log_prior, total, alpha)
        s1 = theta.means * (s0 + self.mean_strength)[:, None] - self.mean_strength * settled.mean[None, :]
        return s0, s1, settled

    def first_gradient(self, dS: Statistics, theta: Any) -> tuple[Array, Array]:
        """Return the gradients by eta0 and eta1: dS0 and dS1 - mu dS0, the same about every origin."""
        s0 = dS["s0"]
        gradient0 = s0 if self.class_prior is None else 0.0 * s0
        return gradient0, dS["s1"] - theta.means * s0[:, None]


def described_moments(means: Array, deviations: Array) -> Iterator[Described]:
    """Yield means and standard deviations of the classes; both change by standard deviations."""
    columns = np.arange(means.shape[1])
    for name, values in (("mean", means), ("standard deviation", deviations)):
        yield Described(columns, [name] * len(columns), values, deviations)


class MomentCoordinates(Coordinates):
    """The moments over their standard deviations."""

    def __init__(self, S: Statistics, unit: Point, model: Any):
        super().__init__(S, unit)
        self.model = model

    def independent(self) -> Statistics:
        """Return moments whose Gaussians are the same in all classes, with the prior.

        That counts more in a class of few rows: moments that are the same would not do.
        """
        S = super().independent()
        if S.frame.settled is None or S.frame.given is not None:
            return S
        theta, p = self.model.parameters(S), S["s0"] / S.total
        mean = sum_of(p[:, None] * theta.means, axis=0, keepdims=True) + 0.0 * theta.means
        C = theta.covariances
        shares = namespace(p).reshape(p, (-1,) + (1,) * (len(C.shape) - 1))
        C = sum_of(shares * C, axis=0, keepdims=True) + 0.0 * C
        return self.model.inverse_parameters(replace(theta.with_covariances(C), means=mean), S.total)

    def pull(self, fitted: Fitted) -> Statistics:
        """Return the gradient of the anchor, without the variances that the rows do not determine.

        Those are added to each covariance and do not move.
        """
        found, settled = super().pull(fitted), fitted.theta.frame.settled
        if settled is None or settled.completion is None:
            return found
        model: Any = fitted.model
        own = model.undetermined(found, settled.completion)
        own = namespace(own).where(self.varies[model.second], own, 0.0)
        return Statistics({**found, model.second: found[model.second] - own}, found.frame)


def moment_deviations(S: Statistics) -> Point:
    """Return the deviations of the moments of a row, by class, as if its columns were independent Gaussians.

    They are no less than by the variances of the closed form, to which a prior, and other classes where a
    column does not vary, contribute: a unit far below these would make a gradient of what moves nothing. A
    column that no row has follows the masses of the classes: it counts next to nothing beside the others.
    """
    xp, share = namespace(S["s0"]), S["s0"] / S.total
    name = next(name for name in S if name.startswith("s2"))
    second = S[name] / S.total
    squares = second if name == "s2_diagonal" else xp.linalg.diagonal(second)
    if name == "s2_tied":
        squares = share[:, None] * squares[None, :]
    pooled = sum_of(squares, axis=0)
    least = LEAST_SHARE * share[:, None] * pooled[None, :]
    squares = xp.where(squares > least, squares, least)
    settled = S.frame.settled
    if settled is not None and settled.reference is not None:
        own = settled.reference if name == "s2_diagonal" else xp.linalg.diagonal(settled.reference)
        squares = xp.where(squares > share[:, None] * own, squares, share[:, None] * own)
    squares = xp.where(sum_of(abs(S["s1"]), axis=0)[None, :] > 0, squares, UNSEEN * squares)
    found = {name: (abs(value) / S.total) ** 0.5 for name, value in S.items()}
    found["s1"] = own = squares**0.5
    if name == "s2_tied":
        return found | {name: outer(pooled**0.5)}
    if name == "s2_diagonal":
        return found | {name: squares / share[:, None] ** 0.5}
    return found | {name: outer(own) / share[:, None, None] ** 0.5}
