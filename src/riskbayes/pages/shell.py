"""Pages that need no network, written by templates which escape every text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from riskbayes.markup import breakable, foreign, text

COLOURS = {"ink": "#1f2329", "muted": "#626c77", "accent": "#0b62b1", "paper": "#fffffe"}
"""Colours of the page and of its pictures, by the name of their CSS variable; unusual ones, so that
they can be found in an SVG."""


def environment(
    package: str, *functions: Callable[..., Any], finalize: Callable[[object], Markup] = text
) -> Environment:
    """Return the environment of the templates in a package, which can extend and import those of this one.

    Templates call `functions` by their names, also as filters. All that they write goes through `finalize`,
    which leaves `Markup` as it is and escapes anything else; a name that is not defined is an error.
    """
    known = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__)]),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    named = {function.__name__: function for function in (breakable, foreign, policy, *functions)}
    known.globals |= named
    known.globals["COLOURS"] = COLOURS
    known.filters |= named
    return known


def policy(script: str) -> str:
    """Return what a page may do: its own style and its own script, known by its hash, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
