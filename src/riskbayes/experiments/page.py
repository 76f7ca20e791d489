"""The frame of an HTML page that needs no network: one style, sections, a script if tables sort."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from riskbayes.experiments.svg import COLOURS
from riskbayes.markup import element


class Section(NamedTuple):
    """A heading and the HTML below it; `name` is its address in the page, `kind` its class."""

    heading: str
    body: str
    name: str = ""
    kind: str = ""


def page(title: str, lead: str, sections: Sequence[Section], interactive: bool = False) -> str:
    """Return an HTML page: the title as first heading, the HTML `lead` below it, and the sections.

    An interactive page has the style and the script of tables that sort and filter, and of sections that
    open alone.
    """
    light = " ".join(f"--{name}: {colour};" for name, colour in COLOURS.items())
    style = "\n" + resource("style.css").replace("LIGHT", light)
    style += resource("interactive.css") if interactive else ""
    ending = f"<script>\n{resource('interactive.js')}</script>\n" if interactive else ""
    body = "\n".join(
        element("section", f"\n<h2>{escape(s.heading)}</h2>\n{s.body}\n", id=s.name, **{"class": s.kind})
        for s in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{lead}\n{body}\n{ending}</body>\n</html>\n"
    )


def resource(name: str) -> str:
    """Return the text of a file that lies beside this one."""
    return (files(__package__) / name).read_text(encoding="utf-8")
