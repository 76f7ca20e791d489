"""Gaussians of which cells are missing, in plain operators: a step of elimination for each column."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Tensor


def carries_missing(theta: Any, cells: Cells) -> bool:
    """True if missing cells are carried: by default if the rows of the fit had some, for it takes n steps."""
    return theta.frame.observed is not None if cells.missing is None else cells.missing


def observed_distances(centred: Tensor, means: Array, whiteners: Array) -> tuple[Tensor, Tensor]:
    """Return |W^T z|^2 at its least over the missing part of z = x - mu, and log|P_uu|, each of shape (m, r).

    These are the Mahalanobis distance of the observed part, and what its log determinant differs by: see
    :mod:`riskbayes.models.conditional`. With one W for all classes there is one determinant, of shape (m, 1).
    """
    missing, one = centred.isnan(), len(whiteners) == 1
    z = missing.expand_dims(1).where(0.0, centred.expand_dims(1) - means)
    _, left, log_det = eliminated(missing, z, len(means), whiteners)
    distances, log_dets = (x.sum(1 if one else 2, 3, keepdims=False) for x in ((left * left).sum(3), log_det))
    return distances, log_dets


def eliminated(missing: Tensor, z: Tensor, r: int, whiteners: Array) -> tuple[Tensor, Tensor, Tensor]:
    """Return W and W^T z without what missing columns could explain of them, and log|P_uu|.

    The rows of W that belong to missing columns are made orthogonal one after the other (modified
    Gram-Schmidt), and the other rows and W^T z to all of them. z has the shape (m, r, n), with zeros where a
    cell is missing; the results (m, t, n, n), (m, t, r / t, n) and (m, t, 1, 1).
    """
    t, n, _ = whiteners.shape
    # One table (n + e, n) for each W: its rows, then e rows W^T z.
    e = r // t
    lower = np.concatenate([np.zeros((n, e)), np.eye(e)])
    upper = np.concatenate([whiteners, np.zeros((t, e, n))], axis=1)
    rows = lower @ (z.expand_dims(1 if t == 1 else 2) @ whiteners) + upper
    logs = []
    for j in range(n):
        gone = missing.columns([j]).expand_dims(2, 3)
        own = rows.take([j], axis=2)
        dots = (rows * own).sum(3)
        norm = dots.take([j], axis=2)
        rows = rows - gone.where(dots / norm, 0.0) * own
        logs.append(gone.where(norm.log(), 0.0))
    return rows.take(np.arange(n), axis=2), rows.take(np.arange(n, n + e), axis=2), reduce(add, logs)
