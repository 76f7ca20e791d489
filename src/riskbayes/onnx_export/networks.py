"""Graphs of trees of numbers and categories: densities given parents, or messages if cells are missing.

As in :mod:`riskbayes.models.network_messages`. What is the same for all classes is left out: units, slopes of
normal scores, log 2 pi.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.conditional_gaussian import ConditionalGaussianModel
from riskbayes.models.network import Network
from riskbayes.models.network_gaussians import NetworkParameters
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Tensor
from riskbayes.onnx_export.scores import Scores, translates
from riskbayes.onnx_export.trees import look_ups, messages


@translates(ConditionalGaussianModel)
def network(model: ConditionalGaussianModel, theta: NetworkParameters, cells: Cells) -> Scores:
    """log p(y), plus the log densities of the columns given their parents, or messages between them."""
    frame: Network = theta.frame
    scores, r = Scores(theta.log_prior), len(theta.log_prior)
    written = WrittenNetwork(theta, cells)
    if cells.missing is not False and not frame.is_tree:
        raise NotImplementedError(
            "Columns with several parents (k above 1) cannot be written with missing cells, whose values are "
            "summed over. Leave out missing cells by missing=False, or fit with k=1."
        )
    if cells.missing is not False:
        return scores.plus(written.log_joint(), np.eye(r))
    for j in range(len(frame.numbers)):
        scores = scores.plus(written.log_density(j), np.eye(r), cells.owners(frame.numbers[[j]]) * r)
    if theta.tables is not None:
        n = len(frame.categories)
        found = look_ups(theta.tables, written.categories)
        own = [j for j in written.categories.owners() for _ in range(r)]
        scores = scores.plus(found.reshape(n * r), np.tile(np.eye(r), n), own)
    return scores


class Message(NamedTuple):
    """exp(g + h x - K x^2 / 2): what is present in a column and below it says of its parent's value x."""

    g: Tensor
    h: Tensor
    K: Tensor

    def at(self, x: Tensor) -> Tensor:
        """Return its logarithm at a value."""
        return self.g + self.h * x - 0.5 * (self.K * (x * x))

    def where(self, mask: Tensor, other: Sequence[Any]) -> Message:
        """Return this message where the mask is True, else another one."""
        return Message(*(mask.where(own, its) for own, its in zip(self, other, strict=True)))


SILENT = 0.0, 0.0, 0.0
"""The message that says nothing."""


@dataclass(frozen=True)
class WrittenNetwork:
    """The parameters of a tree, and the cells that it reads. Tensors have the shape (m, r)."""

    theta: NetworkParameters
    cells: Cells

    @property
    def frame(self) -> Network:
        """The tree."""
        return self.theta.frame

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
        return self.raw(j).isnan().astype("float64").equals(0.0)

    def raw(self, j: int) -> Tensor:
        """Return a number as the table has it, of shape (m, 1)."""
        return self.cells.of(self.frame.numbers[[j]]).numbers()

    def value(self, j: int) -> Tensor:
        """Return a number in its units or as its normal score, of shape (m, 1); zero where it is missing."""
        x = (self.raw(j) - self.frame.origin[j]) * (1.0 / self.frame.unit[j])
        for maps in self.frame.maps:
            if k := int(maps.n_knots[j]):
                tables = maps.knots[j, : k - 1], maps.scores[j, : k - 1], maps.slopes(j)
                if k > 2:
                    reached = (x >= maps.knots[j, None, 1 : k - 1]).astype("float64")
                    place = index(reached.sum(1))
                    knots, scores, slopes = (self.looked_up(table, place) for table in tables)
                else:
                    knots, scores, slopes = (table[:1, None] for table in tables)
                x = (x - knots) * slopes + scores
        return x if self.cells.missing is False else self.seen(j).where(x, 0.0)

    def looked_up(self, table: Array, place: Tensor) -> Tensor:
        """Return the entries of a table of values, or of rows, of shape (m, 1) or (m, columns)."""
        return self.cells.graph.constant(table.reshape(len(table), -1)).take(place, axis=0)

    def own_cell(self, table: Array, j: int) -> Tensor | Array:
        """Return a parameter of a number, in the cell that its categories have."""
        own, steps = table[:, self.frame.cells(j)], self.frame.strides[j]
        if not steps:
            return own.T
        codes = self.codes.columns(list(self.frame.category_parents[j]))
        return self.looked_up(own.T, index(codes * np.array([steps], dtype=float)))

    def log_density(self, j: int) -> Tensor:
        """Return log p(x_j | parents, y) where all are present."""
        frame, mean = self.frame, self.own_cell(self.theta.means, j)
        for place, p in enumerate(frame.number_parents[j]):
            spread = np.zeros_like(self.theta.means)  # the slopes on this parent, in the columns of the cells
            spread[:, frame.cells(j)] = self.theta.slopes[:, frame.groups_of[j].slopes[:, place]]
            mean = self.value(p) * self.own_cell(spread, j) + mean
        return self.normal(j, mean, self.own_cell(self.theta.variances, j))

    def normal(self, j: int, mean: Any, variance: Any, parent: Tensor | None = None) -> Tensor:
        """Return the log density of a number with these means and variances, and a parent in a tree."""
        away = self.value(j) - mean
        if parent is not None:
            away = away - parent * self.slope(j)
        log_variance = variance.log() if isinstance(variance, Tensor) else np.log(variance)
        return -0.5 * (away * away / variance + log_variance)

    def slope(self, j: int) -> Array:
        """Return the slope of a number on its parent in a tree, of shape (1, r)."""
        return self.theta.slopes[:, self.frame.groups_of[j].slopes.ravel()].T

    def log_joint(self) -> Tensor:
        """Return log p(what is present | y)."""
        frame = self.frame
        below: dict[int, Message] = {}
        evidence: dict[int, list[Tensor]] = {}
        found: list[Tensor] = []
        for j in frame.order[::-1]:
            p, c = int(frame.parent[j]), int(frame.category[j])
            if p >= 0:
                message, here, x = self.message(j, below.get(j)), self.seen(p), self.value(p)
                own = plus(self.normal(j, *self.cell(j), x), self.value(j), below.get(j))
                found.append(here.where(self.seen(j).where(own, message.at(x)), 0.0))
                below_here = Message(*(here.where(0.0, part) for part in message))
                known = below.get(p)
                below[p] = below_here if known is None else Message(*map(add, known, below_here))
            elif c < 0:
                found.append(self.of_root(j, *self.cell(j), below.get(j)))
            else:
                mean, variance = (
                    self.own_cell(table, j) for table in (self.theta.means, self.theta.variances)
                )
                own = self.of_root(j, mean, variance, below.get(j))
                gone = self.categories.is_missing().columns([c])
                found.append(gone.where(0.0, own))
                evidence.setdefault(c, []).append(self.of_every_cell(j, below.get(j), gone))
        if self.theta.tables is not None:
            shares: dict[int, Tensor] = {}
            for c, logs in evidence.items():
                top, shares[c] = scale(reduce(add, logs), int(frame.tables[0].sizes[c]))
                found.append(top)
            found.append(messages(self.theta.tables, self.categories, shares))
        return reduce(add, found)

    def cell(self, j: int) -> tuple[Array, Array]:
        """Return the mean and the variance of a number that has one cell, of shape (1, r)."""
        own = self.frame.cells(j)
        return self.theta.means[:, own].T, self.theta.variances[:, own].T

    def message(self, j: int, below: Message | None) -> Message:
        """Return what is present in a number and below it says of its parent."""
        (a, v), b = self.cell(j), self.slope(j)
        x, here = self.value(j), self.seen(j)
        away = x - a
        seen = Message(plus(self.normal(j, a, v), x, below), away * (b / v), away * 0.0 + b * b / v)
        if below is None:
            return seen.where(here, SILENT)
        _, h, K = below
        t = K * v + 1.0
        return seen.where(here, (without(a, v, below), (h - K * a) * b / t, K * (b * b) / t))

    def of_root(self, j: int, a: Any, v: Any, below: Message | None) -> Tensor:
        """Return log p(what is present in a number and below it | y) with these means and variances."""
        density = plus(self.normal(j, a, v), self.value(j), below)
        return self.seen(j).where(density, 0.0 if below is None else without(a, v, below))

    def of_every_cell(self, j: int, below: Message | None, gone: Tensor) -> Tensor:
        """Return the same for each value of its category where that is missing, of shape (m, r, values)."""
        own = self.frame.cells(j)
        parts = [
            gone.where(self.of_root(j, a[None, :], v[None, :], below), 0.0).expand_dims(2)
            for a, v in zip(self.theta.means[:, own].T, self.theta.variances[:, own].T, strict=True)
        ]
        return self.cells.graph.concat(parts, axis=2)


def index(x: Tensor) -> Tensor:
    """Return the sums of whole numbers of shape (m, n) as indices of shape (m,)."""
    return x.sum(1, keepdims=False).astype("int64")


def plus(density: Tensor, x: Tensor, message: Message | None) -> Tensor:
    """Return a log density at x plus what is below says of x."""
    return density if message is None else density + message.at(x)


def without(a: Any, v: Any, below: Message) -> Tensor:
    """Return the log of the integral of a Gaussian times what is below it."""
    g, h, K = below
    t = K * v + 1.0
    return g + ((h - 0.5 * (K * a)) * a + 0.5 * (h * h * v)) / t - 0.5 * t.log()


def scale(logs: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the largest logs of the values, of shape (m, r), and shares of that, at most one."""
    top = logs.take(np.arange(size), axis=2).max(2)
    shares = (-1.0 * (top - logs).relu()).exp()  # a missing cell is no unseen value
    return top.sum(2, keepdims=False), shares
