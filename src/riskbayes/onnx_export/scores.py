"""The scores of a model as a graph: features @ weights + constants; and the functions that write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.onnx_export.columns import Cells
from riskbayes.onnx_export.graph import Tensor


@dataclass(frozen=True)
class Scores:
    """Scores of the classes, linear in features of the rows.

    Every model here is: naive Bayes in indicators and counts, a Gaussian in the squares of whitened columns.
    So a product of experts is one as well, with all features side by side, and a graph ends with one product.
    """

    constants: Array
    """Of shape (r,)."""
    features: tuple[Tensor, ...] = ()
    """Tensors of shape (m, p)."""
    weights: tuple[Array, ...] = ()
    """The weights of each of them, of shape (r, p)."""
    owners: tuple[list[Any] | None, ...] = ()
    """For each of them the p encoded columns, or pairs of them, that its numbers are of; None if these read
    several columns at once."""

    def plus(self, feature: Tensor, weights: Array, owners: list[Any] | None = None) -> Scores:
        """Return these scores plus those of another feature."""
        return Scores(
            self.constants,
            (*self.features, feature),
            (*self.weights, weights),
            (*self.owners, owners),
        )

    def times(self, power: float, constants: Array) -> Scores:
        """Return these scores times a number, with other constants."""
        return replace(self, constants=constants, weights=tuple(power * table for table in self.weights))

    def and_those(self, other: Scores) -> Scores:
        """Return the sum of these scores and others, with the constants of these."""
        return replace(
            self,
            features=self.features + other.features,
            weights=self.weights + other.weights,
            owners=self.owners + other.owners,
        )

    def to_tensor(self, cells: Cells) -> Tensor:
        """Write the scores, of shape (m, r); without features they are the same for all rows of the cells."""
        if not self.features:
            observed = cells.observed()
            none = np.zeros((len(self.constants), len(cells.own)))
            return self.plus(observed, none, cells.owners()).to_tensor(cells)
        return cells.graph.concat(self.features) @ np.concatenate(self.weights, axis=1).T + self.constants


Translator = Callable[[Any, Any, Cells], Scores]
"""A function of a model, its parameters (NumPy arrays) and its columns that writes its scores."""

TRANSLATORS: dict[type, Translator] = {}
"""The translator of each model class; that of a base class is not taken, whose formulas may differ."""


def translates(*models: type) -> Callable[[Translator], Translator]:
    """Register a function as the translator of these model classes."""

    def register(function: Translator) -> Translator:
        TRANSLATORS.update(dict.fromkeys(models, function))
        return function

    return register


def scores_of(model: Any, theta: Any, cells: Cells) -> Scores:
    """Return the scores of a model; refuse a model that has no translator."""
    if type(model) not in TRANSLATORS:
        known = ", ".join(sorted(kind.__name__ for kind in TRANSLATORS))
        raise NotImplementedError(
            f"to_onnx does not know {type(model).__name__}. The models that can be written as ONNX are "
            f"{known}; riskbayes.onnx_export.translates registers others."
        )
    return TRANSLATORS[type(model)](model, theta, cells)
