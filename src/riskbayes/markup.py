"""HTML as text: elements, attributes, and texts of a user, which are shown and never obeyed."""

from __future__ import annotations

import re
from html import escape

UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that no HTML file may hold, lone surrogates among them."""

JOINT = re.compile("(?<=_)(?=[^_])|(?<=[a-z])(?=[A-Z])")
"""Where a name is joined; no entity that escaping makes has such a place."""


def text(value: object) -> str:
    """Return a value as text of a page: escaped, with a replacement character for what cannot be shown."""
    return escape(UNPRINTABLE.sub("\ufffd", str(value)))


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
