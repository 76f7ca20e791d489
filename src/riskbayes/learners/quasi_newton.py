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

FAILURES = 4
"""Refused steps in a row after which the memory is dropped: its curvature does not hold here."""

MOST_FAILURES = 40
"""Refused steps in a row after which none is tried: the step is shorter than rounding."""

OPTIMAL = 1e-4
"""Size of the gradient, in the metric and in the unit of the loss, below which a fit has converged."""

NOTHING_LEFT = 1e-4
"""Mean log loss below which there is nothing to gain: all rows are told apart."""

SMALL = 1e-2
"""Size of the gradient, as a share of the largest of the fit, from which on rounding may hide all gains."""

MOST_STORED = 2**24
"""Upper bound on the numbers of a memory: 128 MiB of float64."""


class Memory:
    """L-BFGS: the last changes of a point and of its gradient, as flat vectors, and the step that they tell.

    The vectors should be in units in which the curvature of all entries is about the same.

    Parameters
    ----------
    size : int
        The most changes that are kept.

    Examples
    --------
    >>> import numpy as np
    >>> memory, curvature, x = Memory(), np.array([1.0, 100.0]), np.array([1.0, 1.0])
    >>> for _ in range(5):
    ...     gradient = -curvature * x
    ...     memory.visit(x, gradient)
    ...     x = x + memory.direction(gradient) * (1.0 if len(memory) else 0.01)
    >>> bool(abs(x).max() < 1e-6)
    True
    """

    def __init__(self, size: int = 8):
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=size)
        self.last: tuple[Array, Array] | None = None

    def __len__(self) -> int:
        return len(self.pairs)

    def visit(self, x: Array, gradient: Array) -> None:
        """Keep the change since the last visit, unless the gain has no curvature along it.

        `gradient` is that of a gain: along a step that is worth it, it falls.
        """
        if self.last is not None:
            s, y = x - self.last[0], self.last[1] - gradient
            product = dot(s, y)
            if product > 1e-10 * math.sqrt(dot(s, s) * dot(y, y)):
                self.pairs.append((s, y, product))
        self.last = x, gradient

    def direction(self, gradient: Array) -> Array:
        """Return the step to the maximum of the gain as the memory tells it; without one, the gradient."""
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

    A step that is illegal or raises the monitored quantity is shortened; after four of these the memory is
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
        self.memory = Memory(max(2, min(8, MOST_STORED // (2 * length))))
        self.seen: int | None = None
        self.failures, self.largest = 0, 0.0
        self.task, self.jumping = task, False

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
        gradient = self.coordinates.gradient((1.0 / self.mass) * good.scan.dS, weight, good.fitted)
        self.x, self.seen = self.flat(self.coordinates.point(good.fitted)), good.number
        self.gradient = self.flat(gradient) / self.objective.scale
        self.size = math.sqrt(dot(self.gradient, self.gradient))
        self.largest = max(self.largest, self.size)
        self.memory.visit(self.x, self.gradient)
        self.along = self.memory.direction(self.gradient)

    def propose(self, good: Iteration) -> Statistics | None:
        """Return the statistics after a step of the current length.

        None if the gradient is small in the metric, or the rows are told apart already.
        """
        if self.seen != good.number:
            self.look(good)
        if self.size <= OPTIMAL or good.risks["log_loss"] <= NOTHING_LEFT:
            return None
        if good.number == 0 and not self.failures and self.may_jump:
            constant = self.coordinates.independent()
            self.jumping = self.constant_value(constant) < good.value
            if self.jumping:
                return constant
        return self.coordinates.statistics(self.unflat(self.x + self.lr * self.along))

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
        """Try the next step in full."""
        if self.jumping:
            self.jumping, self.memory.last = False, None
            return
        self.lr, self.failures = 1.0, 0

    def retry(self, rose: bool) -> bool:
        """Shorten the step; return False if the gradient is small, or the step shorter than rounding."""
        if self.jumping:
            self.jumping, self.failures = False, 1
            return True
        self.lr, self.failures = SHORTER * self.lr, self.failures + 1
        if self.failures == FAILURES:
            self.memory.pairs.clear()
            self.along = self.gradient
        if rose and self.size <= SMALL * self.largest:
            return self.failures < 3 * FAILURES
        return rose or self.failures < MOST_FAILURES


def dot(a: Array, b: Array) -> float:
    """Return the inner product of two vectors."""
    return float(sum_of(a * b))
