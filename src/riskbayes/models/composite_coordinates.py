"""The coordinates of composite models, in terms of those of their parts: of experts and of components."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from riskbayes.arrays import Array, positive
from riskbayes.models.base import Fitted
from riskbayes.models.coordinates import Coordinates, Point, TableCoordinates
from riskbayes.statistics import Statistics


class SideBySideCoordinates(Coordinates):
    """The coordinates of several experts with a power each, which share the class masses.

    p(y) is that of the first. If all experts move by logarithms, so do the masses. A negative power turns the
    gradient of its expert round. `split` returns the statistics of each expert.
    """

    def __init__(
        self,
        S: Statistics,
        parts: Sequence[Coordinates],
        powers: Sequence[float],
        split: Callable[[Statistics], Sequence[Statistics]],
    ):
        self.S, self.parts, self.split = S, list(parts), split
        self.roots = [math.sqrt(abs(power)) for power in powers]
        self.signed = [math.copysign(own, power) for own, power in zip(self.roots, powers, strict=True)]
        tables = [isinstance(part, TableCoordinates) for part in parts]
        self.first = parts[0] if all(tables) else parts[tables.index(False)]
        self.unit = {"s0": self.first.unit["s0"]}
        for i, (part, own) in enumerate(zip(parts, self.roots, strict=True)):
            self.unit |= {f"{i}:{name}": own * value for name, value in part.unit.items() if name != "s0"}

    def _own(self, fitted: Fitted) -> list[Fitted]:
        """Return the fitted experts."""
        model: Any = fitted.model
        own = self.split(fitted.S.to_frame(self.S.frame))
        triples = zip(model.experts, own, fitted.theta.experts, strict=True)
        return [type(fitted)(*each) for each in triples]

    def point(self, fitted: Fitted) -> Point:
        """Return the coordinates of the experts, side by side."""
        found = [part.point(own) for part, own in zip(self.parts, self._own(fitted), strict=True)]
        return self._joined(found, self.roots)

    def gradient(self, dS: Statistics, weight: float, fitted: Fitted) -> Point:
        """Return the gradients of the experts, side by side: times the power, over the root in the unit."""
        own = self.split(dS.to_frame(self.S.frame))
        triples = zip(self.parts, own, self._own(fitted), strict=True)
        return self._joined([part.gradient(own, weight, each) for part, own, each in triples], self.signed)

    def statistics(self, point: Point, s0: Array | None = None) -> Statistics:
        """Return the statistics of the experts, side by side."""
        own = [
            {name: point[f"{i}:{name}"] / scale for name in part.unit if name != "s0"}
            for i, (part, scale) in enumerate(zip(self.parts, self.roots, strict=True))
        ]
        first = self.first.statistics({**own[self.parts.index(self.first)], "s0": point["s0"]})
        found = {"s0": first["s0"]}
        for i, part in enumerate(self.parts):
            S = first if part is self.first else part.statistics(own[i], first["s0"])
            found |= {f"{i}:{name}": value for name, value in S.items() if name != "s0"}
        return Statistics(found, self.S.frame)

    def independent(self) -> Statistics:
        """Return those of the experts, side by side."""
        found = [part.independent() for part in self.parts]
        arrays = {f"{i}:{name}": S[name] for i, S in enumerate(found) for name in S if name != "s0"}
        return Statistics({"s0": found[self.parts.index(self.first)]["s0"], **arrays}, self.S.frame)

    def _joined(self, points: Sequence[Point], scales: Sequence[float]) -> Point:
        """Return points or gradients of the experts as one, with the masses of the first that gives them."""
        joined = {"s0": points[self.parts.index(self.first)]["s0"]}
        for i, (own, scale) in enumerate(zip(points, scales, strict=True)):
            joined |= {f"{i}:{name}": scale * value for name, value in own.items() if name != "s0"}
        return joined


class ComponentCoordinates(Coordinates):
    """The coordinates of the components of a mixture, one class of the base model for each.

    The masses of the classes are the sums over their components, and move with these only. `split` returns
    the statistics of the components, and `join` those of the classes with them.
    """

    def __init__(
        self,
        S: Statistics,
        base: Coordinates,
        split: Callable[[Statistics], Statistics],
        join: Callable[[Statistics], Statistics],
    ):
        self.S, self.base, self.split, self.join = S, base, split, join
        self.unit = {"s0": positive((S["s0"] / S.total) ** 0.5), **named(base.unit)}

    def _own(self, fitted: Fitted) -> Fitted:
        """Return the fitted base model."""
        model: Any = fitted.model
        S = self.split(fitted.S.to_frame(self.S.frame))
        return type(fitted)(model.base, S, fitted.theta.components)

    def point(self, fitted: Fitted) -> Point:
        """Return the coordinates of the components; those of the classes are not read."""
        return {"s0": 0.0 * self.unit["s0"], **named(self.base.point(self._own(fitted)))}

    def gradient(self, dS: Statistics, weight: float, fitted: Fitted) -> Point:
        """Return the gradient by the coordinates of the components."""
        found = self.base.gradient(self.split(dS.to_frame(self.S.frame)), weight, self._own(fitted))
        return {"s0": 0.0 * self.unit["s0"], **named(found)}

    def statistics(self, point: Point, s0: Array | None = None) -> Statistics:
        """Return the statistics of the classes and their components."""
        return self.join(self.base.statistics({name: point[f"0:{name}"] for name in self.base.unit}))

    def independent(self) -> Statistics:
        """Return those of components whose columns are alike."""
        return self.join(self.base.independent())


def named(point: Point) -> Point:
    """Return a point of the components by the names that a mixture has for its arrays."""
    return {f"0:{name}": value for name, value in point.items()}
