"""The columns that a fitted model reads, and how a file's cells are read for it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from riskbayes.exceptions import listed
from riskbayes.input.files import UserError
from riskbayes.input.files.notation import DATE, FLAG, NUMBER, PRESENT, TEXT, TIME, UNREAD, Notation
from riskbayes.input.files.table import no_header, require_column
from riskbayes.tables import names_of


@dataclass(frozen=True)
class Expected:
    """The columns of a fitted model, in its order, with the notation of their cells."""

    notations: Mapping[str, Notation]
    named: bool = True
    """False if the model was fitted to rows without names: columns are then taken by position."""
    marked: frozenset[str] = frozenset()
    """Columns of which the model reads only whether a cell is missing."""

    @classmethod
    def of(cls, clf: Any, about: Mapping[str, Any]) -> Expected:
        """Return what a classifier reads; `about` is what `riskbayes fit` stored beside it."""
        names, named = names_of(clf)
        names = names if named else [f"column{j + 1}" for j in range(len(names))]
        encoder = getattr(clf, "_table", None)
        if encoder is not None:
            kinds = [kind_of(reader, j in encoder.marks) for j, reader in enumerate(encoder.readers)]
        else:
            kinds = [about.get("kinds", {}).get(name, NUMBER) for name in names]
        stored: Any = about.get("notation")
        stored, notations = stored if isinstance(stored, Mapping) else {}, {}
        for name, kind in zip(names, kinds, strict=True):
            how = Notation.stored(stored.get(name))
            as_stored = how is not None and kind != UNREAD and (kind != PRESENT or how.kind != TEXT)
            notations[name] = how if how is not None and as_stored else Notation(kind)
        marked = frozenset(name for name, kind in zip(names, kinds, strict=True) if kind == PRESENT)
        return cls(notations, named, marked)

    @property
    def kinds(self) -> dict[str, str]:
        """How the cells of each column are read."""
        return {name: PRESENT if name in self.marked else how.kind for name, how in self.notations.items()}

    def in_file(self, name: str, names: list[str]) -> dict[str, str]:
        """Return for each column of the model that of a file; refuse a file without it."""
        if not self.named:
            if len(names) < len(self.notations):
                raise UserError(
                    f"{name} has {len(names)} columns, and the model was fitted to {len(self.notations)}."
                )
            return dict(zip(self.notations, names, strict=False))
        lacking = [each for each in self.notations if each not in names]
        if lacking[1:]:
            these = f"{len(lacking)} columns that the model reads: {listed(lacking)}"
            raise UserError(f"{name} lacks {these}.{no_header(names)}")
        for each in lacking:
            require_column(name, names, each, "model")
        return {each: each for each in self.notations}


def kind_of(reader: Any, marked: bool) -> str:
    """Return how the cells of a column are read for its reader in the encoder of a table."""
    kind = reader.column.kind
    if kind == "left out":
        return PRESENT if marked else UNREAD
    if kind == "date":
        return DATE
    if kind == "number":
        return TIME if isinstance(reader.example, datetime.time) else NUMBER
    value = reader.categories[0]
    if isinstance(value, bool):
        return FLAG
    return NUMBER if isinstance(value, int | float) else TEXT
