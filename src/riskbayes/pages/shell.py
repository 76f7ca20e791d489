"""The shell of an HTML page that needs no network: one style, sections, and what a page adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from riskbayes.markup import element

COLOURS = {"ink": "#1f2329", "muted": "#626c77", "accent": "#0b62b1", "paper": "#fffffe"}
"""Colours of the page and of its pictures, by the name of their CSS variable; unusual ones, so that
they can be found in an SVG."""


class Section(NamedTuple):
    """A heading and the HTML below it; `name` is its address in the page, `kind` its class."""

    heading: str
    body: str
    name: str = ""
    kind: str = ""


def page(title: str, lead: str, sections: Sequence[Section], style: str = "", script: str = "") -> str:
    """Return an HTML page: the title as first heading, the HTML `lead` below it, and the sections.

    `style` is more CSS and `script` JavaScript, of a page that has a use for them.
    """
    light = " ".join(f"--{name}: {colour};" for name, colour in COLOURS.items())
    own = (files(__package__) / "style.css").read_text(encoding="utf-8").replace("LIGHT", light)
    ending = f"<script>\n{script}</script>\n" if script else ""
    body = "\n".join(
        element("section", f"\n<h2>{escape(s.heading)}</h2>\n{s.body}\n", id=s.name, **{"class": s.kind})
        for s in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{own}{style}</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{lead}\n{body}\n{ending}</body>\n</html>\n"
    )
