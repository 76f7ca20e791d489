"""What each column of a table adds to the scores, as a tensor: the values of `explain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.onnx_export.columns import Cells, Columns
from riskbayes.onnx_export.graph import Tensor
from riskbayes.onnx_export.scores import Scores


@dataclass(frozen=True)
class Contributions:
    """What each column of a table, and then each pair of columns, adds to the scores."""

    values: Tensor
    """Of shape (m, columns and pairs, r), centred over the classes."""
    columns: list[str]
    """Names of the columns; of a pair "a x b"."""
    baseline: Array
    """What the prior adds, centred over the classes that are possible."""


def contributions_of(scores: Scores, cells: Cells, baseline: Array, estimator: str) -> Contributions:
    """Return what columns and pairs add; refuse scores that are no sum over them."""
    if any(own is None for own in scores.owners):
        raise NotImplementedError(
            f"{estimator} has scores that are no sum over the columns, so that these have no contributions. "
            "Leave out contributions=True."
        )
    r = len(scores.constants)
    owners = [owner for own in scores.owners for owner in own or ()]
    places, names = places_of(owners, cells.columns)
    if owners:
        features, table = cells.graph.concat(scores.features), np.concatenate(scores.weights, axis=1).T
        parts = features.expand_dims(2) * table
        sums = np.zeros((len(names), len(owners)))
        sums[places, np.arange(len(owners))] = 1.0
        found = sums @ parts
    else:  # a model that says nothing
        none = cells.observed() @ np.zeros((len(cells.own), len(names) * r))
        found = none.reshape(len(names), r)
    possible = np.isfinite(baseline)
    return Contributions(found @ (np.eye(r) - 1.0 / r), names, baseline - baseline[possible].mean())


def places_of(owners: list[Any], columns: Columns) -> tuple[list[int], list[str]]:
    """Return the place of each owner among the columns of the table and the pairs, and the names of these."""
    names = list(columns.names)
    pairs: dict[tuple[int, ...], int] = {}
    places = []
    for owner in owners:
        of = owner if isinstance(owner, tuple) else (owner,)
        own = tuple(sorted({columns.inputs[columns.encoded[j].source].column for j in of}))
        if len(own) == 1:
            places.append(own[0])
            continue
        if own not in pairs:
            pairs[own] = len(names)
            names.append(" x ".join(columns.names[j] for j in own))
        places.append(pairs[own])
    return places, names
