"""Graphs of trees of numbers and categories: densities given parents, or messages if cells are missing.

As in :mod:`riskbayes.models.network_messages`. What is the same for all classes is left out: units, slopes of
normal scores, log 2 pi.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.conditional_gaussian import ConditionalGaussianModel
from riskbayes.models.network import Network
from riskbayes.models.network_gaussians import NetworkParameters
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Graph, Tensor
from riskbayes.onnx_export.scores import Scores, translates
from riskbayes.onnx_export.trees import look_ups, messages


@translates(ConditionalGaussianModel)
def network(model: ConditionalGaussianModel, theta: NetworkParameters, cells: Cells) -> Scores:
    """log p(y), plus the log densities of the columns given their parents, or messages between them."""
    frame: Network = theta.frame
    scores, r = Scores(theta.log_prior), len(theta.log_prior)
    written = WrittenNetwork(theta, cells)
    if cells.missing is not False:
        return scores.plus(written.log_joint(), np.eye(r))
    for j in range(len(frame.numbers)):
        scores = scores.plus(written.log_density(j), np.eye(r), cells.owners(frame.numbers[[j]]) * r)
    if theta.tables is not None:
        n = len(frame.categories)
        found = look_ups(theta.tables, written.categories)
        flat = cells.graph.apply("Reshape", found, np.array([0, n * r]))
        own = [j for j in written.categories.owners() for _ in range(r)]
        scores = scores.plus(flat, np.tile(np.eye(r), n), own)
    return scores


class Message(NamedTuple):
    """exp(g + h x - K x^2 / 2): what is present in a column and below it says of its parent's value x."""

    g: Tensor
    h: Tensor
    K: Tensor


@dataclass(frozen=True)
class WrittenNetwork:
    """The parameters of a tree, and the cells that it reads. Tensors have the shape (m, r)."""

    theta: NetworkParameters
    cells: Cells

    @property
    def frame(self) -> Network:
        """The tree."""
        return self.theta.frame

    @property
    def graph(self) -> Graph:
        """The graph that is written."""
        return self.cells.graph

    @cached_property
    def categories(self) -> Cells:
        """The columns of categories."""
        return self.cells.of(self.frame.categories)

    @cached_property
    def codes(self) -> Tensor:
        """Their codes: the last one if a category is unseen, or missing."""
        return self.categories.codes(self.frame.tables[0].sizes)

    def seen(self, j: int) -> Tensor:
        """Return whether a number is present, of shape (m, 1)."""
        gone = self.graph.as_numbers(self.graph.apply("IsNaN", self.raw(j)))
        return self.graph.apply("Equal", gone, np.zeros((1, 1)))

    def raw(self, j: int) -> Tensor:
        """Return a number as the table has it, of shape (m, 1)."""
        return self.cells.of(self.frame.numbers[[j]]).numbers()

    def value(self, j: int) -> Tensor:
        """Return a number in its units or as its normal score, of shape (m, 1); zero where it is missing."""
        graph, frame = self.graph, self.frame
        x = graph.apply("Sub", self.raw(j), np.full((1, 1), frame.origin[j]))
        x = graph.apply("Mul", x, np.full((1, 1), 1.0 / frame.unit[j]))
        for maps in frame.maps:
            if k := int(maps.n_knots[j]):
                reached = graph.apply("GreaterOrEqual", x, maps.knots[j, None, 1 : k - 1])
                place = self.index(graph.sum(graph.as_numbers(reached), 1)) if k > 2 else None
                knots, scores, slopes = (
                    graph.constant(table[:1, None]) if place is None else self.looked_up(table, place)
                    for table in (maps.knots[j, : k - 1], maps.scores[j, : k - 1], maps.slopes(j))
                )
                x = graph.apply("Mul", graph.apply("Sub", x, knots), slopes)
                x = graph.apply("Add", x, scores)
        if self.cells.missing is False:
            return x
        return graph.where(self.seen(j), x, np.zeros((1, 1)))

    def index(self, x: Tensor) -> Tensor:
        """Return whole numbers of shape (m, 1) as indices of shape (m,)."""
        flat = self.graph.apply("ReduceSum", x, np.array([1]), keepdims=0)
        return self.graph.apply("Cast", flat, to="int64")

    def looked_up(self, table: Array, place: Tensor) -> Tensor:
        """Return the entries of a table of values, or of rows, of shape (m, 1) or (m, columns)."""
        return self.graph.apply("Gather", table.reshape(len(table), -1), place, axis=0)

    def code(self, c: int) -> Tensor:
        """Return the codes of a category, of shape (m, 1)."""
        return self.graph.columns(self.codes, [c])

    def own_cell(self, table: Array, j: int) -> Tensor | Array:
        """Return a parameter of a number, in the cell that its category has."""
        own = table[:, self.frame.cells(j)]
        c = self.frame.given[j]
        return own.T if c < 0 else self.looked_up(own.T, self.index(self.code(int(c))))

    def log_density(self, j: int) -> Tensor:
        """Return log p(x_j | parent, y) where both are present."""
        p = int(self.frame.parents[j])
        return self.normal(
            j,
            self.own_cell(self.theta.means, j),
            self.own_cell(self.theta.variances, j),
            self.value(p) if p >= 0 else None,
        )

    def normal(self, j: int, mean: Any, variance: Any, parent: Tensor | None = None) -> Tensor:
        """Return the log density of a number with these means and variances, and a parent."""
        graph = self.graph
        away = graph.apply("Sub", self.value(j), mean)
        if parent is not None:
            away = graph.apply("Sub", away, graph.apply("Mul", parent, self.slope(j)))
        square = graph.apply("Div", graph.apply("Mul", away, away), variance)
        return self.times(-0.5, graph.apply("Add", square, graph.apply("Log", variance)))

    def slope(self, j: int) -> Array:
        """Return the slope of a number on its parent, of shape (1, r)."""
        return self.theta.slopes[:, int(np.searchsorted(self.frame.edges, j))][None, :]

    def times(self, factor: float, x: Tensor) -> Tensor:
        """Return a tensor times a number."""
        return self.graph.apply("Mul", x, np.full((1, 1), factor))

    def sum(self, *terms: Tensor) -> Tensor:
        """Return the sum of tensors."""
        return reduce(lambda a, b: self.graph.apply("Add", a, b), terms)

    def log_joint(self) -> Tensor:
        """Return log p(what is present | y)."""
        frame, graph = self.frame, self.graph
        below: dict[int, Message] = {}
        evidence: dict[int, list[Tensor]] = {}
        found: list[Tensor] = []
        for j in frame.order[::-1]:
            p, c = int(frame.parents[j]), int(frame.given[j])
            if p >= 0:
                message, here, x = self.message(j, below.get(j)), self.seen(p), self.value(p)
                direct = graph.where(
                    self.seen(j),
                    self.plus(self.normal(j, *self.cell(j), x), self.value(j), below.get(j)),
                    self.at(message, x),
                )
                found.append(graph.where(here, direct, np.zeros((1, 1))))
                told = Message(*(graph.where(here, np.zeros((1, 1)), part) for part in message))
                known = below.get(p)
                below[p] = told if known is None else Message(*map(self.sum, known, told))
            elif c < 0:
                found.append(self.of_root(j, *self.cell(j), below.get(j)))
            else:
                mean, variance = (
                    self.own_cell(table, j) for table in (self.theta.means, self.theta.variances)
                )
                own = self.of_root(j, mean, variance, below.get(j))
                gone = graph.columns(self.categories.is_missing(), [c])
                found.append(graph.where(gone, np.zeros((1, 1)), own))
                evidence.setdefault(c, []).append(self.of_every_cell(j, c, below.get(j), gone))
        if self.theta.tables is not None:
            shares: dict[int, Tensor] = {}
            for c, logs in evidence.items():
                top, shares[c] = self.scaled(self.sum(*logs), int(frame.tables[0].sizes[c]))
                found.append(top)
            found.append(messages(self.theta.tables, self.categories, shares))
        return self.sum(*found)

    def cell(self, j: int) -> tuple[Array, Array]:
        """Return the mean and the variance of a number that has one cell, of shape (1, r)."""
        own = self.frame.cells(j)
        return self.theta.means[:, own].T, self.theta.variances[:, own].T

    def at(self, message: Message | None, x: Tensor) -> Tensor:
        """Return g + h x - K x^2 / 2."""
        assert message is not None
        line = self.sum(message.g, self.graph.apply("Mul", message.h, x))
        square = self.graph.apply("Mul", message.K, self.graph.apply("Mul", x, x))
        return self.sum(line, self.times(-0.5, square))

    def plus(self, density: Tensor, x: Tensor, message: Message | None) -> Tensor:
        """Return a log density at x plus what is below says of x."""
        return density if message is None else self.sum(density, self.at(message, x))

    def message(self, j: int, below: Message | None) -> Message:
        """Return what is present in a number and below it says of its parent."""
        graph, (a, v), b = self.graph, self.cell(j), self.slope(j)
        x, here = self.value(j), self.seen(j)
        away = graph.apply("Sub", x, a)
        seen = Message(
            self.plus(self.normal(j, a, v), x, below),
            graph.apply("Mul", away, b / v),
            graph.apply("Add", graph.apply("Mul", away, np.zeros((1, 1))), b * b / v),
        )
        if below is None:
            none = np.zeros((1, 1))
            return Message(*(graph.where(here, part, none) for part in seen))
        _, h, K = below
        t = graph.apply("Add", graph.apply("Mul", K, v), np.ones((1, 1)))
        gone = Message(
            self.without(a, v, below),
            graph.apply("Div", graph.apply("Mul", self.less(h, K, a), b), t),
            graph.apply("Div", graph.apply("Mul", K, b * b), t),
        )
        return Message(*(graph.where(here, *parts) for parts in zip(seen, gone, strict=True)))

    def less(self, h: Tensor, K: Tensor, a: Any) -> Tensor:
        """Return h - K a."""
        return self.graph.apply("Sub", h, self.graph.apply("Mul", K, a))

    def without(self, a: Any, v: Any, below: Message) -> Tensor:
        """Return the log of the integral of a Gaussian times what is below it."""
        graph, (g, h, K) = self.graph, below
        t = graph.apply("Add", graph.apply("Mul", K, v), np.ones((1, 1)))
        square = self.times(0.5, graph.apply("Mul", graph.apply("Mul", h, h), v))
        linear = graph.apply("Mul", graph.apply("Sub", h, self.times(0.5, graph.apply("Mul", K, a))), a)
        inside = graph.apply("Div", self.sum(linear, square), t)
        return self.sum(g, inside, self.times(-0.5, graph.apply("Log", t)))

    def of_root(self, j: int, a: Any, v: Any, below: Message | None) -> Tensor:
        """Return log p(what is present in a number and below it | y) with these means and variances."""
        density = self.plus(self.normal(j, a, v), self.value(j), below)
        gone = np.zeros((1, 1)) if below is None else self.without(a, v, below)
        return self.graph.where(self.seen(j), density, gone)

    def of_every_cell(self, j: int, c: int, below: Message | None, gone: Tensor) -> Tensor:
        """Return the same for each value of the category c where it is missing, of shape (m, r, values)."""
        graph, own = self.graph, self.frame.cells(j)
        parts = [
            graph.where(gone, self.of_root(j, a[None, :], v[None, :], below), np.zeros((1, 1)))
            for a, v in zip(self.theta.means[:, own].T, self.theta.variances[:, own].T, strict=True)
        ]
        return graph.apply("Concat", *(graph.apply("Unsqueeze", x, np.array([2])) for x in parts), axis=2)

    def scaled(self, logs: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """Return the largest logs of the values, of shape (m, r), and shares of that, at most one."""
        graph = self.graph
        known = graph.apply("Gather", logs, np.arange(size), axis=2)
        top = graph.apply("ReduceMax", known, np.array([2]), keepdims=1)
        left = graph.apply("Relu", graph.apply("Sub", top, logs))  # a missing cell is no unseen value
        shares = graph.apply("Exp", graph.apply("Mul", left, np.full((1, 1, 1), -1.0)))
        return graph.apply("ReduceSum", top, np.array([2]), keepdims=0), shares
