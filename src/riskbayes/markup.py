"""Texts of a user, which a terminal or a page shows and never obeys."""

from __future__ import annotations

import re

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
