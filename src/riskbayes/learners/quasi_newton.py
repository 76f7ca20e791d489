"""Quasi-Newton steps: L-BFGS in the coordinates of the model, under the metric of its closed form."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from riskbayes.arrays import Array, like, namespace, sum_of, to_device
from riskbayes.learners.steps import Anchor, FixedStep
from riskbayes.models.coordinates import Point, positive
from riskbayes.objectives import Objective
from riskbayes.risks import posterior_and_risks
from riskbayes.statistics import Statistics
from riskbayes.task import Iteration, Task

SHORTER = 0.35
"""A step that is refused is tried again at this share of its length."""

FORGOTTEN = 2
"""Refused steps in a row after which the memory is dropped: its curvature does not hold here."""

MOST_SMALL_FAILURES, MOST_FAILURES = 12, 40
"""Refused steps in a row after which none is tried, where the gradient is small and elsewhere: the step is
shorter than rounding."""

OPTIMAL = 1e-4
"""Size of the gradient, in the metric and in the unit of the loss, below which a fit has converged."""

NOTHING_LEFT = 1e-4
"""Mean log loss below which there is nothing to gain: all rows are told apart."""

SMALL = 1e-2
"""Size of the gradient, as a share of the largest of the fit, from which on rounding may hide all gains."""

MOST_STORED = 2**24
"""Upper bound on the numbers of a memory: 128 MiB of float64."""


class Ascent:
    """L-BFGS: the point that an ascent has reached, and the step that the last changes of the gradient tell.

    The vectors should be in units in which the curvature of all entries is about the same.

    Parameters
    ----------
    lr : float
        Length of the first step, which is one along the gradient; all others are first tried in full.
    size : int
        The most changes that are kept.

    Examples
    --------
    >>> import numpy as np
    >>> ascent, curvature, x = Ascent(lr=0.01), np.array([1.0, 100.0]), np.array([1.0, 1.0])
    >>> for _ in range(5):
    ...     ascent.reach(x, -curvature * x)
    ...     x = ascent.proposal()
    >>> bool(abs(x).max() < 1e-6)
    True
    """

    def __init__(self, lr: float = 1.0, size: int = 8):
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=size)
        self.x: Array | None = None
        self.gradient: Array
        self.along: Array
        self.lr, self.failures = lr, 0

    def reach(self, x: Array, gradient: Array) -> None:
        """Go on from a point; keep the change since the last one, unless the gain has no curvature along it.

        `gradient` is that of a gain: along a step that is worth it, it falls.
        """
        if self.x is not None:
            s, y = x - self.x, self.gradient - gradient
            product = dot(s, y)
            if product > 1e-10 * math.sqrt(dot(s, s) * dot(y, y)):
                self.pairs.append((s, y, product))
            self.lr = 1.0
        self.x, self.gradient, self.failures = x, gradient, 0
        self.along = self.direction(gradient)

    def proposal(self) -> Array:
        """Return the point after a step of the current length."""
        return self.x + self.lr * self.along

    def shorten(self) -> None:
        """Shorten the step, which was refused; after two of them go along the gradient."""
        self.lr, self.failures = SHORTER * self.lr, self.failures + 1
        if self.failures == FORGOTTEN:
            self.pairs.clear()
            self.along = self.gradient

    def direction(self, gradient: Array) -> Array:
        """Return the step to the maximum of the gain as the changes tell it; without one, the gradient."""
        d, factors = gradient, []
        for s, y, product in reversed(self.pairs):
            factors.append(dot(s, d) / product)
            d = d - factors[-1] * y
        if self.pairs:
            _, y, product = self.pairs[-1]
            d = d * (product / dot(y, y))
        for (s, y, product), factor in zip(self.pairs, reversed(factors), strict=True):
            d = d + (factor - dot(y, d) / product) * s
        return d


class QuasiNewtonStep(FixedStep):
    """L-BFGS in the coordinates of the model; the first step is one of natural-gradient ascent, of length lr.

    A step that is illegal or raises the monitored quantity is shortened; after two of these the memory is
    dropped. The fit goes on until the gradient is small. Where the first model is worse than the class
    frequencies alone, these are the first step; not where S has other rows too, for which these do not speak.
    """

    def __init__(
        self, task: Task, objective: Objective, monitor: str, lr: float, anchor: Anchor | None = None
    ):
        share, weight = min(1.0, task.engine.mass / task.S.total), anchor.weight if anchor else 0.0
        # An anchor of weight g adds g times the metric to the curvature.
        super().__init__(objective, monitor, lr * share / (1.0 + weight / objective.scale), anchor)
        self.may_jump = share > 1.0 - 1e-9 and not task.in_stream
        self.coordinates = task.model.coordinates(task.S)
        self.mass, self.shapes = task.engine.mass, {n: v.shape for n, v in self.coordinates.unit.items()}
        length = sum(math.prod(shape) for shape in self.shapes.values())
        self.ascent = Ascent(self.lr, max(2, min(8, MOST_STORED // (2 * length))))
        self.seen: int | None = None
        self.task, self.jumping, self.largest = task, False, 0.0

    def flat(self, point: Point) -> Array:
        """Return the arrays of a point as one vector."""
        xp = namespace(point["s0"])
        return xp.concat([xp.reshape(point[name], (-1,)) for name in self.shapes])

    def unflat(self, vector: Array) -> Point:
        """Return the arrays of such a vector."""
        found, start, xp = {}, 0, namespace(vector)
        for name, shape in self.shapes.items():
            stop = start + math.prod(shape)
            found[name] = xp.reshape(vector[start:stop], shape)
            start = stop
        return found

    def look(self, good: Iteration) -> None:
        """Take the point and the gradient of an iteration."""
        assert good.scan.dS is not None
        weight = 0.0 if self.anchor is None else self.anchor.weight
        found = self.coordinates.gradient((1.0 / self.mass) * good.scan.dS, weight, good.fitted)
        gradient = self.flat(found) / self.objective.scale
        self.size = math.sqrt(dot(gradient, gradient))
        self.largest, self.seen = max(self.largest, self.size), good.number
        self.ascent.reach(self.flat(self.coordinates.point(good.fitted)), gradient)

    def propose(self, good: Iteration) -> Statistics | None:
        """Return the statistics after a step of the current length.

        None if the gradient is small in the metric, or the rows are told apart already.
        """
        if self.seen != good.number:
            self.look(good)
        if self.size <= OPTIMAL or good.risks["log_loss"] <= NOTHING_LEFT:
            return None
        if self.may_jump:
            self.may_jump, constant = False, self.coordinates.independent()
            self.jumping = self.constant_value(constant) < good.value
            if self.jumping:
                return constant
        self.lr = self.ascent.lr
        return self.coordinates.statistics(self.unflat(self.ascent.proposal()))

    def constant_value(self, S: Statistics) -> float:
        """Return the monitored quantity of the class frequencies alone, without a scan."""
        if not self.task.model.is_legal(S):
            return math.inf
        masses, xp = self.task.engine.masses, namespace(S["s0"])
        r = masses.shape[0]
        scores = xp.log(positive(S["s0"]))[None, :] + xp.zeros((r, r), **like(S["s0"]))
        risks = posterior_and_risks(scores, to_device(np.arange(r), S["s0"]), masses, self.objective)[1]
        return self.value(risks.mean(), self.task.model.parameters(S))

    def on_success(self) -> None:
        """Forget where a jump began: it tells nothing of the curvature."""
        if self.jumping:
            self.jumping, self.ascent.x = False, None

    def retry(self, rose: bool) -> bool:
        """Shorten the step; return False if the gradient is small, or the step shorter than rounding."""
        if self.jumping:
            self.jumping = False
            return True
        self.ascent.shorten()
        if rose and self.size <= SMALL * self.largest:
            return self.ascent.failures < MOST_SMALL_FAILURES
        return rose or self.ascent.failures < MOST_FAILURES


def dot(a: Array, b: Array) -> float:
    """Return the inner product of two vectors."""
    return float(sum_of(a * b))
