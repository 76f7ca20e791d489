"""The columns that a fitted model reads, and the types that a file's cells are read as for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from riskbayes.reading import UserError
from riskbayes.reading.table import require_column

NUMBER, TEXT, FLAG, PRESENT, UNREAD = "number", "text", "flag", "present", "unread"
"""How a cell is read: as a number, as text, as true or false, as "there or missing", or not at all."""


@dataclass(frozen=True)
class Expected:
    """The columns of a fitted model, in its order, with how their cells are read."""

    kinds: Mapping[str, str]
    named: bool = True
    """False if the model was fitted to rows without names: columns are then taken by position."""

    @classmethod
    def of(cls, clf: Any, about: Mapping[str, Any]) -> Expected:
        """Return what a classifier reads; `about` is what `riskbayes fit` stored beside it."""
        names = getattr(clf, "feature_names_in_", None)
        named = names is not None
        names = (
            [f"column{j + 1}" for j in range(clf.n_features_in_)] if names is None else list(map(str, names))
        )
        encoder = getattr(clf, "_table", None)
        if encoder is not None:
            found = [kind_of(reader, j in encoder.marks) for j, reader in enumerate(encoder.readers)]
            return cls(dict(zip(names, found, strict=True)), named)
        stored = about.get("kinds", {})
        return cls({name: stored.get(name, NUMBER) for name in names}, named)

    def in_file(self, name: str, names: list[str]) -> dict[str, str]:
        """Return for each column of the model that of a file; refuse a file without it."""
        if not self.named:
            if len(names) < len(self.kinds):
                raise UserError(
                    f"{name} has {len(names)} columns, and the model was fitted to {len(self.kinds)}."
                )
            return dict(zip(self.kinds, names, strict=False))
        lacking = [each for each in self.kinds if each not in names]
        if lacking[1:]:
            listed = ", ".join(map(repr, lacking[:5])) + (", ..." if lacking[5:] else "")
            raise UserError(f"{name} lacks {len(lacking)} columns that the model reads: {listed}.")
        for each in lacking:
            require_column(name, names, each, "model")
        return {each: each for each in self.kinds}


def kind_of(reader: Any, marked: bool) -> str:
    """Return how the cells of a column are read for its reader in the encoder of a table."""
    kind = reader.column.kind
    if kind == "left out":
        return PRESENT if marked else UNREAD
    if kind == "number" or (kind == "category" and is_number(reader.categories[0])):
        return NUMBER
    return FLAG if kind == "category" and isinstance(reader.categories[0], bool) else TEXT


def is_number(value: Any) -> bool:
    """True for a number that is no boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)
