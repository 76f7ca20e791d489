"""Texts of a user, which a terminal or a page shows and never obeys, and elements of HTML."""

from __future__ import annotations

import re
from html import escape

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


def text(value: object) -> str:
    """Return a value as text of a page."""
    return escape(printable(value))


def foreign(value: object) -> str:
    """Return a text of unknown direction: a name in Arabic or Hebrew does not turn what stands beside it.

    A long name may break where it is joined: `marital_status`, `RiskBayesClassifier`. An empty one is named.
    """
    return f"<bdi>{JOINT.sub('<wbr>', text(value))}</bdi>" if str(value) else "<i>(empty)</i>"


def element(tag: str, body: str = "", **values: str) -> str:
    """Return an HTML element; an attribute without a value is left out.

    `class_` stands for class, and an underscore for a hyphen: `data_sort`, `aria_label`.
    """
    named = {name.rstrip("_").replace("_", "-"): value for name, value in values.items() if value}
    return f"<{tag}{attributes(named)}>{body}</{tag}>"


def attributes(values: dict[str, str]) -> str:
    """Write attributes as they stand in an element."""
    return "".join(f' {name}="{text(value)}"' for name, value in values.items())
