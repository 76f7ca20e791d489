"""What a user says about a file; the rest is detected."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from shlex import quote

KINDS = ("number", "category", "date", "text", "id", "drop")
"""What a user may say of a column; the last three are not read."""


def kind_option(name: str, kind: str) -> str:
    """Return the option that says the kind of a column, as a shell takes it."""
    return f"--kind {quote(f'{name}={kind}')}"


@dataclass(frozen=True)
class Options:
    """How a file is written, as far as the user says it."""

    header: bool | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    date_order: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Kinds of columns by their names."""

    def of_features(self, names: Collection[str]) -> dict[str, str]:
        """Return the kinds of columns that are among these."""
        return {name: kind for name, kind in self.kinds.items() if name in names}

    @property
    def unread(self) -> list[str]:
        """Columns that are left out."""
        return [name for name, kind in self.kinds.items() if kind in KINDS[3:]]


NOTHING_SAID = Options()
