"""What a model learns from rows before the loop, as one immutable value.

Statistics carry it: it says what they are measured in (the origin of moments, the categories of counts, the
knots, the tables of a tree), and holds what else calibration must not move (the pooled prior, the closed
form). Adding statistics of different frames brings them to a common one first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array, converted, device_of, namespace, sent_to, sum_of, take

Arrays = dict[str, Array]


def measured(kind: type[Frame]) -> tuple[str, ...]:
    """Return the fields that statistics are measured in: all but the unmeasured ones."""
    if kind not in _MEASURED:
        _MEASURED[kind] = tuple(f.name for f in fields(kind) if f.name not in kind.unmeasured)
    return _MEASURED[kind]


_MEASURED: dict[type, tuple[str, ...]] = {}


def frozen(value: Array) -> Array:
    """The array itself, made read-only; a copy of one that shares another's memory."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value if value.base is None else value.copy()
        value.setflags(write=False)
    return value


def same_values(a: Array, b: Array) -> bool:
    """True if two arrays have one shape and equal entries."""
    return a is b or (a.shape == b.shape and bool(namespace(a).all(a == b)))


@dataclass(frozen=True, eq=False)
class Frame:
    """What was learned before the loop; the default frame is empty.

    A subclass is a frozen dataclass. Frames are equal where they measure alike: fields named in `unmeasured`,
    in which nothing is measured, are not compared and not written down with the statistics.
    """

    unmeasured: ClassVar[tuple[str, ...]] = ()
    """Fields in which nothing is measured: what the rows or their statistics determine beside."""

    _kinds: ClassVar[dict[str, type[Frame]]] = {}
    """Subclasses by name."""

    def __init_subclass__(cls) -> None:
        Frame._kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        for name in measured(type(self)):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and all(
            same_values(getattr(self, name), getattr(other, name)) for name in measured(type(self))
        )

    __hash__ = None  # type: ignore[assignment]

    def join(self, other: Frame) -> Frame:
        """Return the common frame of two statistics that are added."""
        mine, theirs = ([np.shape(getattr(f, name)) for name in measured(type(f))] for f in (self, other))
        if type(self) is not type(other) or mine != theirs:
            raise ValueError(
                f"These statistics are measured differently: {type(self).__name__} {mine} and "
                f"{type(other).__name__} {theirs}. They are of other models or columns."
            )
        return self

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Return arrays that are measured in this frame, measured in another one."""
        return arrays

    def centre(self) -> Array | None:
        """Return a point amid the rows that were fitted, where the frame knows one."""
        return None

    def to_arrays(self) -> Arrays:
        """Return the measured fields as plain arrays, whose names begin with the kind of the frame."""
        return {f"{type(self).__name__}.{name}": getattr(self, name) for name in measured(type(self))}

    @classmethod
    def of_fields(cls, arrays: Mapping[str, Array]) -> Frame:
        """A frame of this kind, from its arrays by field."""
        return cls(**arrays)

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array]) -> Frame | None:
        """The inverse of `to_arrays`; None where there are no arrays."""
        for kind in {name.split(".", 1)[0] for name in arrays}:
            if kind not in Frame._kinds:
                raise ValueError(f"Unknown frame {kind!r}; known are {', '.join(sorted(Frame._kinds))}.")
            return Frame._kinds[kind].of_fields(
                {name.split(".", 1)[1]: arrays[name] for name in sorted(arrays)}
            )
        return None


@dataclass(frozen=True, eq=False)
class Categories(Frame):
    """`counts` has one column a (feature, category), feature after feature.

    Codes run from 0; a larger number of categories is the same statistics with empty cells. The number
    of categories is kept on the host, whatever the device of the counts.
    """

    n_categories: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_categories", np.array(self.n_categories, dtype=np.int64))
        self._derive()
        super().__post_init__()

    def _derive(self) -> None:
        """The first column of each feature, the number of categories if they share one, and a cache."""
        k = self.n_categories
        object.__setattr__(self, "alike", int(k[0]) if len(k) and (k == k[0]).all() else 0)
        object.__setattr__(self, "offsets", np.cumsum(self.n_categories) - self.n_categories)
        object.__setattr__(self, "_sent", {})

    offsets: ClassVar[Array]
    alike: ClassVar[int]
    _sent: ClassVar[dict]

    def _indices(self, x: Array) -> tuple[Array, Array, Array]:
        """The feature of each column, its category, and where a padded table (features x most) has it."""
        key = namespace(x).__name__, str(device_of(x))
        if key not in self._sent:
            k = self.n_categories
            feature = np.repeat(np.arange(len(k)), k)
            category = np.arange(k.sum()) - np.repeat(self.offsets, k)
            most = np.arange(int(k.max(initial=0)))
            beyond = most >= k[:, None]
            cell = np.where(beyond, int(k.sum()), self.offsets[:, None] + most)
            self._sent[key] = tuple(sent_to(v, x) for v in (feature, category, cell.ravel()))
        return self._sent[key]

    def columns(self, x: Array) -> tuple[Array, Array]:
        """The feature and the category of each column, where x lives."""
        return self._indices(x)[:2]

    def by_size(self, x: Array) -> list[tuple[int, Array | None]]:
        """Each number of categories and the features that have it (None: all of them)."""
        if self.alike:
            return [(self.alike, None)]
        sizes = sorted(set(self.n_categories.tolist()))
        return [(k, sent_to(np.flatnonzero(self.n_categories == k), x)) for k in sizes]

    def _order(self, x: Array) -> tuple[Array, Array]:
        """Columns in the order of `by_size`, and back."""
        key = "by size", namespace(x).__name__, str(device_of(x))
        if key not in self._sent:
            feature = np.repeat(np.arange(len(self.n_categories)), self.n_categories)
            order = np.argsort(self.n_categories[feature], kind="stable")
            self._sent[key] = sent_to(order, x), sent_to(np.argsort(order), x)
        return self._sent[key]

    def to_sizes(self, table: Array) -> Array:
        """A table of our columns in the order of `by_size`."""
        return table if self.alike else take(table, self._order(table)[0], 1)

    def from_sizes(self, table: Array) -> Array:
        """A table in the order of `by_size`, in that of our columns."""
        return table if self.alike else take(table, self._order(table)[1], 1)

    def sums(self, counts: Array) -> Array:
        """The sum over the categories of each feature."""
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
        """Values of features, repeated for each of their categories."""
        xp = namespace(values)
        if xp is np:
            return np.repeat(values, self.n_categories, axis=1)
        return take(values, self._indices(values)[0], 1)

    def limited_to(self, log_prob: Array, sizes: Array) -> Array:
        """Return the log probabilities given that each feature takes one of its first sizes[i] values."""
        feature, category = self.columns(log_prob)
        p = np.where(category < sizes[feature], np.exp(log_prob), 0.0)
        with np.errstate(divide="ignore"):
            return np.log(p / self.spread(self.sums(p)))

    def converted(self, converter: Any) -> Categories:
        """The same: categories stay on the host."""
        return self

    def __getstate__(self) -> dict:
        return {"n_categories": self.n_categories}

    def __setstate__(self, state: dict) -> None:
        object.__setattr__(self, "n_categories", state["n_categories"])
        self._derive()

    def join(self, other: Frame) -> Frame:
        """Every category that either knows."""
        if self == other:
            return self
        super().join(other)
        return Categories(np.maximum(self.n_categories, other.n_categories))  # type: ignore[attr-defined]

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Insert empty cells for the categories that only the target knows."""
        if self == target:
            return arrays
        if self.join(target) != target:
            raise ValueError("Statistics cannot be expressed with fewer categories than they count.")
        old, xp = arrays["counts"], namespace(arrays["counts"])
        feature, category = target.columns(old)  # type: ignore[attr-defined]
        known = category < sent_to(self.n_categories, old)[feature]
        first = sent_to(self.offsets, old)[feature]
        cells = take(old, xp.where(known, first + category, 0), 1)
        counts = xp.where(known[None, :], cells, 0.0)
        return {**arrays, "counts": counts}


@dataclass(frozen=True, eq=False)
class SideBySide(Frame):
    """Statistics of several models of the same rows: the arrays of model i are named `i:name`.

    They share the class masses `s0`; a model that has masses of its own, of sub-classes, holds them as
    `i:s0`.
    """

    frames: tuple[Frame, ...]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, SideBySide) and self.frames == other.frames)

    __hash__ = None

    def part(self, arrays: Mapping[str, Array], i: int) -> Arrays:
        """The arrays of model i, by their own names."""
        own = {name.split(":", 1)[1]: arrays[name] for name in arrays if name.startswith(f"{i}:")}
        return {"s0": arrays["s0"]} | own

    def join(self, other: Frame) -> Frame:
        """Model by model."""
        if not isinstance(other, SideBySide) or len(self.frames) != len(other.frames):
            return super().join(other)
        found = tuple(a.join(b) for a, b in zip(self.frames, other.frames, strict=True))
        for whole in (self, other):
            if all(a is b for a, b in zip(found, whole.frames, strict=True)):
                return whole
        return replace(self, frames=found)

    def convert(self, arrays: Arrays, target: Frame) -> Arrays:
        """Model by model."""
        assert isinstance(target, SideBySide)
        found = dict(arrays)
        for i, (mine, theirs) in enumerate(zip(self.frames, target.frames, strict=True)):
            moved = mine.convert(self.part(arrays, i), theirs)
            found |= {f"{i}:{name}": moved[name] for name in moved if f"{i}:{name}" in arrays}
        return found

    def centre(self) -> Array | None:
        """That of the first model whose frame has one."""
        found = (frame.centre() for frame in self.frames)
        return next((point for point in found if point is not None), None)

    def converted(self, converter: Any) -> SideBySide:
        """Return the frames with arrays of another library."""
        return replace(self, frames=tuple(converted(frame, converter) for frame in self.frames))

    def to_arrays(self) -> Arrays:
        """The arrays of each frame, after its number; and how many there are, for plain ones have none."""
        kind = type(self).__name__
        found = {
            f"{kind}.{i}.{name}": value
            for i, frame in enumerate(self.frames)
            for name, value in frame.to_arrays().items()
        }
        return {f"{kind}.number": np.array(len(self.frames)), **found}

    @classmethod
    def of_fields(cls, arrays: Mapping[str, Array]) -> Frame:
        """Frame by frame."""
        parts: list[Arrays] = [{} for _ in range(int(arrays["number"]))]
        for name in arrays:
            if name != "number":
                number, rest = name.split(".", 1)
                parts[int(number)][rest] = arrays[name]
        return SideBySide(tuple(Frame.from_arrays(part) or Frame() for part in parts))
