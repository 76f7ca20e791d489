"""Nodes and weights that integrate over a cell of numbers."""

from __future__ import annotations

import numpy as np

from riskbayes.arrays import Array

BREAKS = np.array([-7.0, -5.0, -3.5, -2.25, -1.0, 0.0, 1.0, 2.25, 3.5, 5.0, 7.0])
"""Standard deviations from the mean of each class between which the nodes of a piece are placed."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)

LOG_2PI = float(np.log(2 * np.pi))


def legendre(parts: int) -> tuple[Array, Array]:
    """Return places between 0 and 1 and their weights: Gauss and Legendre's in so many equal parts."""
    place = (np.arange(parts)[:, None] + 0.5 * (NODES + 1.0)) / parts
    return place.ravel(), np.tile(0.5 * WEIGHTS / parts, parts)


def normal_densities(means: Array, deviations: Array) -> tuple[Array, Array]:
    """Return log densities of normal distributions, of shape (m, values, r), and the weights of the values.

    The values of a row are nodes between all the breaks of all its classes, so that none is too narrow.
    """
    breaks = np.sort((means[:, :, None] + deviations[:, :, None] * BREAKS).reshape(len(means), -1), axis=1)
    gaps, (place, share) = np.diff(breaks, axis=1), legendre(1)
    values = (breaks[:, :-1, None] + gaps[:, :, None] * place).reshape(len(means), -1)
    weights = (gaps[:, :, None] * share).reshape(len(means), -1)
    away = (values[:, :, None] - means[:, None, :]) / deviations[:, None, :]
    return -0.5 * (away**2 + LOG_2PI) - np.log(deviations)[:, None, :], weights
