"""Exact marginals p(parents, x_i | y) of a Bayesian network of categories, by variable elimination."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from riskbayes.arrays import Array

MOST_CELLS = 2**24
"""Upper bound on the cells of an intermediate table, classes included: 128 MiB of float64."""

MOST_AXES = 50
"""Upper bound on the features of an intermediate table: `einsum` has no more names for axes."""

Factor = tuple[tuple[int, ...], Array]
"""Features, and a table with an axis for the class and one for each of them."""


def family_marginals(factors: Sequence[Factor], order: Sequence[int]) -> list[Array]:
    """Return p(parents, x_i | y) of every feature i, from the tables p(x_i | parents, y).

    In a tree the distribution of a parent is a sum over its own family. The joint distribution of parents
    that are in no common family comes from variable elimination over their ancestors, the cheapest feature
    first. In a dense network these tables grow exponentially: beyond `MOST_CELLS` an error is raised.

    Parameters
    ----------
    factors : sequence of Factor
        ((*parents, i), p(x_i | parents, y)) of each feature i.
    order : sequence of int
        The features, each after its parents.

    Returns
    -------
    marginals : list of arrays
        One for each feature, of the shape of its table.
    """
    found: dict[int, Factor] = {}
    for i in order:
        features, table = factors[i]
        wanted = features[:-1]
        near = next((f for f in found.values() if set(wanted) <= set(f[0])), None)
        above = product([near], wanted) if near else eliminate(ancestors(wanted, factors), wanted, len(table))
        found[i] = features, above[..., None] * table
    return [found[i][1] for i in range(len(factors))]


def ancestors(wanted: Iterable[int], factors: Sequence[Factor]) -> list[Factor]:
    """Return the tables of these features and of all their ancestors."""
    seen: set[int] = set()
    todo = list(wanted)
    while todo:
        i = todo.pop()
        if i not in seen:
            seen.add(i)
            todo += factors[i][0][:-1]
    return [factors[i] for i in sorted(seen)]


def eliminate(factors: list[Factor], wanted: tuple[int, ...], n_classes: int) -> Array:
    """Return the product of the tables, summed over all features except those wanted."""
    sizes = {i: k for features, table in factors for i, k in zip(features, table.shape[1:], strict=True)}

    def together(i: int) -> set[int]:
        return {j for features, _ in factors if i in features for j in features}

    def cells(i: int) -> int:
        return n_classes * math.prod(sizes[j] for j in together(i))

    while others := {i for features, _ in factors for i in features} - set(wanted):
        i = min(sorted(others), key=cells)
        if cells(i) > MOST_CELLS or len(together(i)) > MOST_AXES:
            raise ValueError(
                f"The parents depend on each other through tables of {cells(i):.3g} cells, more than "
                f"{MOST_CELLS:.3g}: their expected counts are not computed. Give the features fewer parents."
            )
        kept = tuple(sorted(together(i) - {i}))
        made = product([factor for factor in factors if i in factor[0]], kept)
        factors = [*(factor for factor in factors if i not in factor[0]), (kept, made)]
    return product(factors, wanted) if factors else np.ones(n_classes)


def product(factors: Sequence[Factor], kept: tuple[int, ...]) -> Array:
    """Return the product of the tables by class, summed over all features except those kept."""
    axis = {i: place for place, i in enumerate({i for features, _ in factors for i in features}, start=1)}
    operands = [part for features, table in factors for part in (table, [0, *(axis[i] for i in features)])]
    return np.einsum(*operands, [0, *(axis[i] for i in kept)], optimize="greedy")
