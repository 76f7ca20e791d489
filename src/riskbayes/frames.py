"""Frames: what a model learns from rows before the loop, as an immutable value.

Statistics carry their frame: it says what they are measured in (the origin of moments, the categories of
counts, the knots, the tables of a tree), and holds what else calibration must not move (the pooled prior, the
closed form). Statistics of different frames are converted to a common one before they are added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, converted, device_of, namespace, sum_of, take, to_device
from riskbayes.loaded import require, require_shape

Arrays = dict[str, Array]


def frozen(value: Array) -> Array:
    """Make a NumPy array read-only and return it; return a read-only copy of one that shares memory."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value if value.base is None else value.copy()
        value.setflags(write=False)
    return value


def same_values(a: Any, b: Any) -> bool:
    """True if two arrays have the same shape and equal entries, or if two tuples are equal."""
    if isinstance(a, tuple):
        return a == b
    return a is b or (a.shape == b.shape and bool(namespace(a).all(a == b)))


@dataclass(frozen=True, eq=False)
class Frame:
    """What was learned before the loop; this base class is the empty frame.

    A subclass is a frozen dataclass. Its fields say what statistics are measured in. A field of
    `field(compare=False)` holds something else that was learned, and is not compared.
    """

    of_one_fit: ClassVar[str] = ""
    """Why statistics of two frames that differ are never added, the sentence of an error; "" if they are."""

    def __post_init__(self) -> None:
        for f in fields(self):
            object.__setattr__(self, f.name, frozen(getattr(self, f.name)))

    def check_loaded(self, size: int) -> None:
        """Make the arrays read-only."""
        Frame.__post_init__(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and all(
            same_values(getattr(self, f.name), getattr(other, f.name)) for f in fields(self) if f.compare
        )

    __hash__ = None  # type: ignore[assignment]

    def _measured(self) -> Arrays:
        """Return the fields that statistics are measured in."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.compare}

    def join(self, other: Frame) -> Frame:
        """Return the frame in which statistics of this frame and of another are added, or raise an error."""
        if self.of_one_fit and self != other:
            raise ValueError(self.of_one_fit)
        mine, theirs = ([np.shape(value) for value in f._measured().values()] for f in (self, other))
        if type(self) is not type(other) or mine != theirs:
            raise ValueError(
                f"These statistics are measured differently: {type(self).__name__} {mine} and "
                f"{type(other).__name__} {theirs}. They are of other models or columns."
            )
        return self

    @property
    def start(self) -> Any:
        """Parameters that EM found from the rows and that missing cells are expected under; None without."""
        return None

    def check_additive(self) -> None:
        """Raise a ValueError if statistics of other rows do not add to those of this frame."""
        if self.start is not None:
            raise ValueError(
                "Missing cells are expected by parameters that EM finds from all rows together, so that "
                "statistics of batches with missing cells do not add up to those of one fit. Fit all rows "
                "together (riskbayes.rows, if they do not fit into memory), fill in the missing cells first, "
                "or use GaussianNB, whose statistics do."
            )

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Return the arrays of statistics of this frame, converted to the target frame."""
        if self.of_one_fit:
            self.join(target)
        return arrays

    def centre(self) -> Array | None:
        """Return a point in the middle of the training rows, or None if the frame knows none."""
        return None


@dataclass(frozen=True, eq=False)
class CountsByFeature(Frame):
    """The columns of `counts`: one per (feature, category), feature after feature. Codes run from 0."""

    n_categories: Array
    """Categories of each feature; kept on the host, whatever the device of the counts."""
    offsets: ClassVar[Array]
    """The first column of each feature."""
    alike: ClassVar[int]
    """The number of categories, if all features have the same; else 0."""
    _sent: ClassVar[dict]
    """Index arrays by library and device."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_categories", np.array(self.n_categories, dtype=np.int64))
        self._derive()
        super().__post_init__()

    def check_loaded(self, size: int) -> None:
        """Require a feature or more, each with categories: no more than the file has counts of them."""
        k = self.n_categories
        require_shape(k, (len(k),), "i", "n_categories")
        require(len(k) and k.dtype == np.int64 and k.min() >= 1, "a feature has no categories")
        require(8 * sum(k.tolist()) <= size, "there are more categories than counts")
        self._derive()
        super().check_loaded(size)

    def _derive(self) -> None:
        """Set the attributes that follow from the number of categories."""
        k = self.n_categories
        object.__setattr__(self, "alike", int(k[0]) if len(k) and (k == k[0]).all() else 0)
        object.__setattr__(self, "offsets", np.cumsum(k) - k)
        object.__setattr__(self, "_sent", {})

    def _indices(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the feature and the category of each column, and the column of each cell of a padded table.

        The padded table is (features x most categories); its empty cells have the number after the last
        column. All are on the device of x.
        """
        key = namespace(x).__name__, str(device_of(x))
        if key not in self._sent:
            k = self.n_categories
            feature = np.repeat(np.arange(len(k)), k)
            category = np.arange(k.sum()) - np.repeat(self.offsets, k)
            value = np.arange(int(k.max(initial=0)))
            cell = np.where(value >= k[:, None], int(k.sum()), self.offsets[:, None] + value)
            self._sent[key] = tuple(to_device(v, x) for v in (feature, category, cell.ravel()))
        return self._sent[key]

    def columns(self, x: Array) -> tuple[Array, Array]:
        """Return the feature and the category of each column, on the device of x."""
        return self._indices(x)[:2]

    def sums(self, counts: Array) -> Array:
        """Return the sum over the categories of each feature."""
        xp = namespace(counts)
        if xp is np:
            return np.add.reduceat(counts, self.offsets, axis=1)
        n, k = len(self.n_categories), self.alike
        if k:
            return sum_of(xp.reshape(counts, (counts.shape[0], n, k)), axis=2)
        empty = xp.zeros_like(counts[:, :1])
        padded = take(xp.concat([counts, empty], axis=1), self._indices(counts)[2], 1)
        return sum_of(xp.reshape(padded, (counts.shape[0], n, -1)), axis=2)

    def spread(self, values: Array) -> Array:
        """Return values of the features, repeated for each of their categories."""
        if isinstance(values, np.ndarray):
            return np.repeat(values, self.n_categories, axis=1)
        return take(values, self._indices(values)[0], 1)

    def limited_to(self, log_prob: Array, sizes: Array) -> Array:
        """Return the log probabilities given that each feature takes one of its first sizes[i] values."""
        feature, category = self.columns(log_prob)
        p = np.where(category < sizes[feature], np.exp(log_prob), 0.0)
        with np.errstate(divide="ignore"):
            return np.log(p / self.spread(self.sums(p)))

    def converted(self, converter: Any) -> CountsByFeature:
        """Return the frame itself: categories stay on the host."""
        return self

    def __getstate__(self) -> dict:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # the rest is derived

    def __setstate__(self, state: dict) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self._derive()


@dataclass(frozen=True, eq=False)
class Categories(CountsByFeature):
    """Categories of features, known by their codes: more of them are the same statistics with empty cells."""

    def join(self, other: Frame) -> Frame:
        """Return the frame of all categories that either frame has."""
        if self == other:
            return self
        super().join(other)
        return Categories(np.maximum(self.n_categories, other.n_categories))  # type: ignore[attr-defined]

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Insert empty cells for the categories that only the target has."""
        if self == target:
            return arrays
        if self.join(target) != target:
            raise ValueError("Statistics cannot be expressed with fewer categories than they count.")
        old, xp = arrays["counts"], namespace(arrays["counts"])
        feature, category = target.columns(old)  # type: ignore[attr-defined]
        known = category < to_device(self.n_categories, old)[feature]
        cells = take(old, xp.where(known, to_device(self.offsets, old)[feature] + category, 0), 1)
        return {**arrays, "counts": xp.where(known[None, :], cells, 0.0)}


@dataclass(frozen=True, eq=False)
class SideBySide(Frame):
    """The frames of several models whose statistics are kept together: arrays of model i are named `i:name`.

    The models share the class masses `s0`. A model with masses of its own (of components) has them as `i:s0`.
    """

    frames: tuple[Frame, ...]

    def part(self, arrays: Mapping[str, Array], i: int) -> Arrays:
        """Return the arrays of model i by the names that the model gave them."""
        own = {name.split(":", 1)[1]: arrays[name] for name in arrays if name.startswith(f"{i}:")}
        return {"s0": arrays["s0"]} | own

    def join(self, other: Frame) -> Frame:
        """Join the frames model by model."""
        if not isinstance(other, SideBySide) or len(self.frames) != len(other.frames):
            return super().join(other)
        found = tuple(a.join(b) for a, b in zip(self.frames, other.frames, strict=True))
        for whole in (self, other):
            if all(a is b for a, b in zip(found, whole.frames, strict=True)):
                return whole
        return replace(self, frames=found)

    def check_additive(self) -> None:
        """Check the frames model by model."""
        for frame in self.frames:
            frame.check_additive()

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Convert the arrays model by model."""
        assert isinstance(target, SideBySide)
        found = dict(arrays)
        for i, (mine, theirs) in enumerate(zip(self.frames, target.frames, strict=True)):
            moved = mine.convert(self.part(arrays, i), theirs)
            shared = "s0" if f"{i}:s0" not in arrays else None
            found |= {f"{i}:{name}": moved[name] for name in moved if name != shared}
        return found

    def converted(self, converter: Any) -> SideBySide:
        """Apply `converter` to the arrays of every frame."""
        return replace(self, frames=tuple(converted(frame, converter) for frame in self.frames))
