"""EM: expected statistics and their closed form in turn, for as long as the likelihood rises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def em(
    S: Any,
    parameters: Callable[[Any], Any],
    expect: Callable[[Any], tuple[Any, float]],
    max_iter: int,
    tolerance: float,
) -> tuple[Any, list[float]]:
    """Return the parameters that EM finds from the statistics S, and the value of each iteration.

    `parameters` is the closed form, `expect` returns the expected statistics under parameters and what these
    are worth, a mean log-likelihood. EM ends after `max_iter` iterations, or when the value rises by less
    than the tolerance. Where the closed form is no maximum of the likelihood (a prior that moves, a
    shrinkage) the value may fall: then the parameters before are returned.

    Examples
    --------
    The mean of numbers of which one is missing:

    >>> from riskbayes.em import em
    >>> expect = lambda mean: (6.0 + mean, -((3 - mean) ** 2))
    >>> mean, values = em(6.0, lambda total: total / 3, expect, max_iter=50, tolerance=1e-9)
    >>> round(mean, 3), values == sorted(values)
    (3.0, True)
    """
    best: Any = None
    path: list[float] = []
    while len(path) <= max_iter and not (len(path) > 1 and path[-1] - path[-2] < tolerance):
        theta = parameters(S)
        S, value = expect(theta)
        if path and not value > path[-1]:  # NaN ends it too
            break
        best = theta
        path.append(value)
    return best, path
