"""Scales of charts; `templates/charts.html` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10


@dataclass(frozen=True)
class Scale:
    """Places of values on a strip, in percent of its width, and where its grid lines stand."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: Sequence[float], most: int = 6, zero: bool = False) -> Scale:
        """Return a scale with round ends that holds all values; with `zero`, also that."""
        low, high = min(values), max(values)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low <= 1e-12 * max(abs(low), abs(high)):  # one value: a scale needs a width
            low, high = low - (abs(low) or 1.0) * 0.1, high + (abs(high) or 1.0) * 0.1
        step = round_step((high - low) / most)
        first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
        ticks = tuple(i * step for i in range(first, last + 1))
        return cls(ticks[0], ticks[-1], ticks)

    def at(self, value: float) -> float:
        """Return the place of a value."""
        place = 100 * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(place, 2)


def round_step(step: float) -> float:
    """Return the least of 1, 2, 5 times a power of ten that is not below a step."""
    power = 10.0 ** floor(log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))
