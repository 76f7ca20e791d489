"""The statistics S of a generative model, as an immutable value.

Everything that calibration, streaming, merging and forgetting do is arithmetic on this value.
The frame says what the arrays are measured in (see :mod:`riskbayes.frames`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from math import isnan
from typing import Any

import numpy as np

from riskbayes.arrays import Array, add_scaled, converted, max_of, namespace, sum_of, to_numpy
from riskbayes.frames import Frame, frozen
from riskbayes.loaded import require, require_shape

LARGE = 2**20
"""Numbers of an array from which on temporary arrays of its size are avoided: 8 MiB of float64."""


class Statistics(Mapping[str, Array]):
    """Named arrays that add, subtract and scale; `s0` holds the mass of each class.

    Parameters
    ----------
    arrays : mapping of str to array
        The statistics by name. `s0`, of shape (n_classes,), must be among them. The arrays are not copied,
        and become read-only.
    frame : Frame, optional
        What they are measured in; by default the empty frame.

    Examples
    --------
    >>> import numpy as np
    >>> from riskbayes.statistics import Statistics
    >>> a = Statistics({"s0": np.array([1.0, 2.0]), "s1": np.array([0.0, 5.0])})
    >>> (a + 0.5 * a).total
    4.5
    >>> (a + a - a).allclose(a)
    True
    """

    __slots__ = ("_arrays", "_total", "frame")
    __array_ufunc__ = None  # so that `np.float64(2) * S` calls S.__rmul__
    _arrays: dict[str, Array]
    frame: Any

    def __init__(self, arrays: Mapping[str, Array], frame: Frame | None = None):
        if "s0" not in arrays:
            raise ValueError(f"Statistics need the class masses 's0'; got {sorted(arrays)}.")
        self._total: float | None  # not declared by the class: it is derived, and files do not hold it
        held = {name: frozen(value) for name, value in arrays.items()}
        object.__setattr__(self, "_arrays", held)
        object.__setattr__(self, "frame", Frame() if frame is None else frame)
        object.__setattr__(self, "_total", None)

    def check_loaded(self, size: int) -> None:
        """Require masses of the classes, arrays of floats and a frame; make the arrays read-only."""
        require("s0" in self._arrays and isinstance(self.frame, Frame), "it has no masses or no frame")
        require(all(value.dtype.kind == "f" for value in self.values()), "it is not made of floats")
        require_shape(self["s0"], self["s0"].shape[:1], "f", "s0")
        object.__setattr__(self, "_arrays", {name: frozen(value) for name, value in self.items()})
        object.__setattr__(self, "_total", None)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("Statistics are immutable; add, subtract or scale them.")

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in self.items())
        return f"Statistics({shapes}; total {self.total:g})"

    def __reduce__(self) -> tuple:
        return Statistics, (dict(self._arrays), self.frame)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Statistics) and self.allclose(other, rtol=0.0, atol=0.0)

    __hash__ = None  # type: ignore[assignment]

    @property
    def total(self) -> float:
        """The equivalent sample size: the mass of all classes."""
        if self._total is None:  # cached: the host waits for each number that it reads from a GPU
            object.__setattr__(self, "_total", float(sum_of(self["s0"])))
        return self._total  # type: ignore[return-value]

    @property
    def origin(self) -> Array:
        """The point that moments are taken about."""
        return self.frame.origin

    def to_frame(self, frame: Frame) -> Statistics:
        """Return the same statistics, measured in another frame."""
        if self.frame is frame:
            return self
        if self.frame == frame:
            return self.with_frame(frame)
        return Statistics(self.frame.convert(dict(self._arrays), frame), frame)

    def with_frame(self, frame: Frame) -> Statistics:
        """Return the same arrays with a frame that measures alike."""
        found = object.__new__(Statistics)
        for name, value in (("_arrays", self._arrays), ("frame", frame), ("_total", self._total)):
            object.__setattr__(found, name, value)
        return found

    def _aligned(self, other: Statistics) -> tuple[Statistics, Statistics]:
        """Return both in their common frame, or raise an error that says why there is none."""
        if set(self) != set(other) and not self._same_names(other):
            raise ValueError(
                f"These statistics belong to different models: {sorted(self)} and {sorted(other)}."
            )
        if self["s0"].shape != other["s0"].shape:
            raise ValueError(
                f"These statistics have {self['s0'].shape[0]} and {other['s0'].shape[0]} classes; "
                "fit both with the same classes."
            )
        frame = self.frame.join(other.frame)
        a, b = self.to_frame(frame), other.to_frame(frame)
        for name in a:
            if a[name].shape != b[name].shape:
                raise ValueError(
                    f"These statistics are of tables with different columns: {name} has the shapes "
                    f"{a[name].shape} and {b[name].shape}."
                )
        return a, b

    def _same_names(self, other: Statistics) -> bool:
        """True if both have arrays of the same names in a common frame, where one of them may get more."""
        try:
            frame = self.frame.join(other.frame)
        except ValueError:
            return False
        return set(self.to_frame(frame)) == set(other.to_frame(frame))

    def plus(self, factor: float, other: Statistics) -> Statistics:
        """Return S + factor * other."""
        if not isinstance(other, Statistics):
            return NotImplemented
        return Statistics.combined((1.0, self), (factor, other))

    @staticmethod
    def combined(*terms: tuple[float, Statistics]) -> Statistics:
        """Return the sum of factor * statistics over the terms, added in their order, in one pass."""
        (scale, first), *others = terms
        frame, shapes = first.frame, [value.shape for value in first._arrays.values()]
        for _, other in others:
            if other.frame is not frame or [value.shape for value in other._arrays.values()] != shapes:
                frame = reduce(lambda S, term: S._aligned(term[1])[0], others, first).frame
                first, others = first.to_frame(frame), [(f, S.to_frame(frame)) for f, S in others]
                break
        found = {}
        for name, value in first._arrays.items():
            on_host = isinstance(value, np.ndarray)
            if on_host and value.ndim > 1 and value.size > LARGE:
                found[name] = by_slices(scale, value, [(f, S._arrays[name]) for f, S in others])
                continue
            value = value if scale == 1.0 else scale * value
            for factor, other in others:
                term = other._arrays[name]
                value = value + factor * term if on_host else add_scaled(value, factor, term)
            found[name] = value
        return Statistics(found, frame)

    def __add__(self, other: Statistics) -> Statistics:
        return self.plus(1.0, other)

    def __sub__(self, other: Statistics) -> Statistics:
        return self.plus(-1.0, other)

    def __mul__(self, factor: float) -> Statistics:
        if isinstance(factor, str | Mapping) or np.ndim(factor) != 0:
            return NotImplemented
        factor = float(factor)
        return Statistics({name: factor * value for name, value in self.items()}, self.frame)

    __rmul__ = __mul__

    @staticmethod
    def merge(*parts: Statistics) -> Statistics:
        """Return the sum of statistics: those of all rows, from those of their parts."""
        if not parts:
            raise ValueError("merge needs at least one Statistics.")
        return reduce(Statistics.__add__, parts)

    def allclose(self, other: Statistics, rtol: float = 1e-7, atol: float = 0.0) -> bool:
        """True if `abs(a - b) <= atol + rtol * max(abs(b))` in each array, in a common frame."""
        try:
            a, b = self._aligned(other)
        except ValueError:
            return False
        xp = namespace(a["s0"])

        def size(x: Array) -> float:
            return float(max_of(xp.abs(x))) if 0 not in x.shape else 0.0

        return all(bool(size(a[name] - b[name]) <= atol + rtol * size(b[name])) for name in a)

    def least_mass(self) -> float:
        """Return the mass of the smallest class; NaN if any entry of the statistics is not finite.

        From a device all that the host needs is read at once, for the host waits each time.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # sums may overflow after a long step
            masses = self._arrays["s0"]
            sums = [sum_of(value) for name, value in self._arrays.items() if name != "s0"]
            if not isinstance(masses, np.ndarray):
                xp, r = namespace(masses), masses.shape[0]
                read = to_numpy(xp.concat([masses, *(xp.reshape(value, (1,)) for value in sums)]))
                masses, sums = read[:r], list(read[r:])
            total = np.add.reduce(masses)
            object.__setattr__(self, "_total", float(total))
            return float(np.minimum.reduce(masses) + 0.0 * sum(sums, total))

    def is_finite(self) -> bool:
        """True if every entry is finite."""
        return not isnan(self.least_mass())

    def converted(self, converter: Any) -> Statistics:
        """Apply `converter` (to another library or device) to all arrays and to those of the frame."""
        arrays = {name: converter(value) for name, value in self.items()}
        return Statistics(arrays, converted(self.frame, converter))


def by_slices(scale: float, first: Array, others: Sequence[tuple[float, Array]]) -> Array:
    """Return scale * first + the sum of factor * other, without temporary arrays of their size."""
    out = np.empty_like(first)
    for k in range(len(first)):
        np.multiply(first[k], scale, out=out[k])
        for factor, other in others:
            out[k] += factor * other[k]
    return out
