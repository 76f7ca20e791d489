"""Shapley values of what a classifier says of a row while some of its cells are not seen.

The evidence of a cell is log p(y | cells seen and this one) - log p(y | cells seen). It depends on which
cells were seen before, so it is averaged over the orders in which they can be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np

from riskbayes.arrays import Array

EXACT_COLUMNS = 8
"""Up to so many columns, all orders are averaged: that takes two to this power predictions for each row."""

BATCH_CELLS = 2**20
"""Upper bound on the cells of masked copies of rows that are predicted in one call: 8 MiB of float64."""


class Evidence(NamedTuple):
    """What each column adds to the log posteriors, centred over the classes."""

    values: Array
    """Of shape (m, columns, r)."""
    errors: Array
    """Their standard errors, of the same shape; zero where all orders were averaged."""
    prior: Array
    """The log posteriors of a row without a cell, of shape (r,); -inf for a class of probability zero."""


def shapley_values(
    value: Callable[[Array], Array],
    X: Array,
    columns: Sequence[Sequence[int]],
    n_orders: int,
    rng: np.random.Generator,
) -> Evidence:
    """Return the evidence of each column, averaged over the orders of the columns.

    The evidence of all columns adds up to the log posteriors less those of a row without a cell, in each
    order and so in their average. A cell that is missing has the evidence zero. The orders are the same for
    all rows, so that a row is explained alike alone and among others.

    Parameters
    ----------
    value : callable
        Returns the log posteriors of rows, in which cells may be NaN.
    X : ndarray of shape (m, n)
        Rows of floats.
    columns : sequence of sequences of int
        The columns of X that are seen together; others are always seen.
    n_orders : int
        How many orders are drawn where there are more than `EXACT_COLUMNS` columns: each second one is the
        reverse of the one before, so that what depends on pairs of columns cancels.
    rng : Generator
        Draws the orders.
    """
    game = Game.of(value, X, columns)
    shape = (len(X), len(columns), len(game.prior))
    found = Evidence(np.zeros(shape), np.zeros(shape), game.prior)
    if not columns:
        return found
    exact = len(columns) <= EXACT_COLUMNS
    pairs = [] if exact else order_pairs(len(columns), n_orders, rng)
    missing = np.stack([np.isnan(X[:, list(own)]).all(axis=1) for own in columns], axis=1)
    for rows in game.blocks(2 ** len(columns) if exact else 2 * len(columns)):
        own = all_orders(game, rows) if exact else sampled_orders(game, rows, pairs)
        for whole, part in zip(found[:2], own, strict=True):
            whole[rows] = np.where(missing[rows, :, None], 0.0, part)
    return found


def n_predictions(n_columns: int, n_orders: int) -> int:
    """Return how many predictions the evidence of a row takes."""
    return 2**n_columns if n_columns <= EXACT_COLUMNS else n_orders * (n_columns - 1) + 1


@dataclass(frozen=True)
class Game:
    """What a classifier says of rows of which only some columns are seen."""

    value: Callable[[Array], Array]
    X: Array
    belongs: Array
    """True where a column of the rows (across) belongs to one that is seen as a whole (down)."""
    prior: Array
    """Log posteriors of a row without a cell."""

    @classmethod
    def of(cls, value: Callable[[Array], Array], X: Array, columns: Sequence[Sequence[int]]) -> Game:
        """Return the game of these columns."""
        belongs = np.zeros((len(columns), X.shape[1]), dtype=bool)
        for j, own in enumerate(columns):
            belongs[j, list(own)] = True
        nothing = np.where(belongs.any(axis=0), np.nan, X[:1])
        return cls(value, X, belongs, value(nothing)[0])

    def blocks(self, n_masks: int) -> list[slice]:
        """Return blocks of rows of which so many masked copies are within `BATCH_CELLS`."""
        m, n = self.X.shape
        size = max(1, BATCH_CELLS // (n_masks * n))
        return [slice(start, min(start + size, m)) for start in range(0, m, size)]

    def seen(self, rows: slice, masks: Array) -> Array:
        """Return the log posteriors of rows, centred over the classes, of shape (masks, rows, r).

        `masks`, of shape (masks, columns), is True for columns that are seen. A class of probability zero has
        zero.
        """
        X, hidden = self.X[rows], ~masks @ self.belongs
        step = max(1, BATCH_CELLS // X.size)
        found = []
        for start in range(0, len(masks), step):
            copies = np.where(hidden[start : start + step, None, :], np.nan, X)
            found.append(self.value(copies.reshape(-1, X.shape[1])))
        scores = np.where(np.isneginf(self.prior), 0.0, np.concatenate(found))
        scores -= scores.mean(axis=1, keepdims=True)
        return scores.reshape(len(masks), len(X), -1)


def all_orders(game: Game, rows: slice) -> tuple[Array, Array]:
    """Return the average over all orders, by every subset of the columns, and no error."""
    p = len(game.belongs)
    masks = (np.arange(2**p)[:, None] >> np.arange(p)) % 2 == 1
    size = masks.sum(axis=1)
    # In 1 / (p C(p-1, s-1)) of all orders a column comes right after the other s-1 of a subset of s columns.
    joins = np.array([0.0, *(1 / (p * comb(p - 1, s - 1)) for s in range(1, p + 1))])
    lacks = np.array([*(1 / (p * comb(p - 1, s)) for s in range(p)), 0.0])
    weights = np.where(masks, joins[size][:, None], -lacks[size][:, None])
    values = np.tensordot(weights, game.seen(rows, masks), axes=(0, 0)).transpose(1, 0, 2)
    return values, np.zeros_like(values)


def order_pairs(p: int, n_orders: int, rng: np.random.Generator) -> list[Array]:
    """Return orders of p columns at random, each with its reverse."""
    drawn = (rng.permutation(p) for _ in range(n_orders // 2))
    return [np.stack([order, order[::-1]]) for order in drawn]


def sampled_orders(game: Game, rows: slice, pairs: Sequence[Array]) -> tuple[Array, Array]:
    """Return the average over pairs of orders, and its standard error."""
    p = len(game.belongs)
    first, last = game.seen(rows, np.stack([np.zeros(p, dtype=bool), np.ones(p, dtype=bool)]))
    mean = squares = np.zeros(())
    for count, orders in enumerate(pairs, 1):
        places = np.argsort(orders, axis=1)  # of each column in each of the two orders
        masks = places[:, None, :] < np.arange(1, p)[:, None]
        between = game.seen(rows, masks.reshape(-1, p)).reshape(2, p - 1, *first.shape)
        path = np.concatenate([np.stack([[first]] * 2), between, np.stack([[last]] * 2)], axis=1)
        steps = np.diff(path, axis=1)
        own = sum(steps[i, places[i]] for i in range(2)) / 2
        away = own - mean
        mean = mean + away / count
        squares = squares + away * (own - mean)
    errors = np.sqrt(squares / (len(pairs) * (len(pairs) - 1)))
    return mean.transpose(1, 0, 2), errors.transpose(1, 0, 2)
