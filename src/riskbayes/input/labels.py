"""Labels of batches as codes, before all classes are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.arrays import Array


class LabelCodes:
    """Codes of labels in the order in which they are met, for classes are known only at the end."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.values: list[Array] = []

    def codes(self, labels: Array) -> Array:
        """Return the codes of a batch of labels."""
        found, inverse = distinct_labels(labels)
        kinds = {isinstance(label, str) for label in (*list(self.known)[:1], *found[:1].tolist())}
        if len(kinds) > 1:
            raise TypeError(
                f"y has labels of several kinds, such as {next(iter(self.known))!r} and {found[0].item()!r}: "
                "make all of them strings or all numbers."
            )
        self.values.append(found)
        own = [self.known.setdefault(label, len(self.known)) for label in found.tolist()]
        return np.array(own)[inverse]

    def sorted(self) -> tuple[Array, Array]:
        """Return the sorted classes, and the index among them of each code."""
        classes = np.unique(np.concatenate(self.values))
        order = np.empty(len(classes), dtype=np.int64)
        order[[self.known[label] for label in classes.tolist()]] = np.arange(len(classes))
        return classes, order


def distinct_labels(labels: Array) -> tuple[Array, Array]:
    """Return the sorted distinct labels and the index of each; small whole numbers are not sorted."""
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < len(labels):
        seen = np.bincount(labels) > 0
        return np.flatnonzero(seen).astype(labels.dtype), (np.cumsum(seen) - 1)[labels]
    return np.unique(labels, return_inverse=True)
