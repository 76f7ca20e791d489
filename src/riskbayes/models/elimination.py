"""Exact marginals of a network of categories: how often features and their parents take their values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from riskbayes.arrays import Array

MOST_CELLS = 2**24
"""Cells of a table on the way, classes included: 128 MiB of float64."""

MOST_AXES = 50
"""Features of a table on the way: `einsum` has no more names for them."""

Factor = tuple[tuple[int, ...], Array]
"""Features, and a table with an axis for the class and one for each of them."""


def family_marginals(factors: Sequence[Factor], order: Sequence[int]) -> list[Array]:
    """Return p(parents, x_i | y) of every feature i, from the tables p(x_i | parents, y).

    In a tree the distribution of a parent is a sum over its own family. Parents that no family holds
    together are brought together by variable elimination over their ancestors, the cheapest feature first;
    where the network is dense the tables grow exponentially, and are refused beyond `MOST_CELLS`.

    Parameters
    ----------
    factors : sequence of Factor
        ((*parents, i), p(x_i | parents, y)) of each feature i.
    order : sequence of int
        The features, each after its parents.

    Returns
    -------
    marginals : list of arrays
        Of the shapes of the tables.
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
    """Return the tables of these features and of all that they depend on."""
    seen: set[int] = set()
    todo = list(wanted)
    while todo:
        i = todo.pop()
        if i not in seen:
            seen.add(i)
            todo += factors[i][0][:-1]
    return [factors[i] for i in sorted(seen)]


def eliminate(factors: list[Factor], wanted: tuple[int, ...], n_classes: int) -> Array:
    """Return the product of the tables, summed over all features but those wanted."""
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
    """Return the product of the tables by class, summed over all features but those kept, in their order."""
    axis = {i: place for place, i in enumerate({i for features, _ in factors for i in features}, start=1)}
    operands = [part for features, table in factors for part in (table, [0, *(axis[i] for i in features)])]
    return np.einsum(*operands, [0, *(axis[i] for i in kept)], optimize="greedy")
