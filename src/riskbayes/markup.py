"""Texts of a user, which a terminal or a page shows and never obeys."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)
"""Characters that are orders and no text: line breaks, escape sequences of a terminal, turns of the direction
of writing; and what no file in UTF-8 may hold, lone surrogates among them."""

JOINT = re.compile("(?<=_)(?=[^_])|(?<=[a-z])(?=[A-Z])")
"""Where a name is joined; no entity that escaping makes has such a place."""


def printable(value: object) -> str:
    """Return a value as one line of text for a terminal: what it would obey is shown as Python writes it."""
    return OBEYED.sub(lambda found: ascii(found[0])[1:-1], str(value))


def text(value: object) -> Markup:
    """Return a value as text of a page; markup stays as it is."""
    return escape(value if hasattr(value, "__html__") else printable(value))


def breakable(value: object) -> Markup:
    """Return a text that may break where it is joined: `marital_status`, `RiskBayesClassifier`."""
    return Markup(JOINT.sub("<wbr>", text(value)))


def foreign(value: object) -> Markup:
    """Return a text of unknown direction: a name in Arabic or Hebrew does not turn what stands beside it.

    An empty one is named.
    """
    return Markup("<bdi>{}</bdi>").format(breakable(value)) if str(value) else Markup("<i>(empty)</i>")


def shown_as_text(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal, below its title."""
    table = [heads, *([printable(cell) for cell in line] for line in lines)]
    widths = [max(len(line[j]) for line in table) for j in range(len(heads))]
    shown = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in table)
    return "\n".join([printable(title), *shown])


def shown_as_html(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table for a notebook, below its title; cells that are markup stay as they are."""
    row, head, cell = map(Markup, ("<tr>{}</tr>", "<th>{}</th>", "<td>{}</td>"))
    rows = [[head.format(name) for name in heads]]
    rows += [
        [cell.format(foreign(c) if c and not isinstance(c, Markup) else c) for c in line] for line in lines
    ]
    shown = Markup("").join(row.format(Markup("").join(cells)) for cells in rows)
    return Markup("<p>{}</p><table>{}</table>").format(text(title), shown)
