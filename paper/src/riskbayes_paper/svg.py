"""Pictures of matplotlib as SVG, in a file and in the colours of a page."""

from __future__ import annotations

import io
import re
from typing import Any

from markupsafe import Markup

from riskbayes.markup import text
from riskbayes.pages.shell import COLOURS

PLAIN: Any = {"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Verdana"]}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
NEEDLESS = re.compile(r'<[?!][^>]*>|<style[^<]*</style>|(?<=<g) id="[^"]*"|\s*\n\s*')
"""What a page does without: a style of all its elements, ids that nothing refers to, line breaks."""

LONG = re.compile(r"\d+\.\d{3,}(?=[^<>]*>)")
"""Numbers of many decimals within tags, which are places: a tenth of a point is enough."""


def svg_source(figure: Any, salt: str) -> str:
    """Return a figure as an SVG file: text stays text, and the same figure gives the same bytes.

    Its ids are hashes that `salt` takes part in, so that those of two pictures differ in one page.
    """
    from matplotlib import rc_context  # slow to import

    buffer = io.StringIO()
    with rc_context({**PLAIN, "svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", transparent=True, metadata=NO_METADATA)
    svg = NEEDLESS.sub("", buffer.getvalue()).replace("<svg", '<svg stroke-linejoin="round"', 1)
    return LONG.sub(lambda found: f"{float(found[0]):.1f}", svg)


def embed_svg(svg: str, description: str) -> Markup:
    """Return the source of an SVG file as an element of a page, which takes the colours of the page.

    `description` is for those who cannot see it.
    """
    opening, end, rest = svg.partition(">")
    opening = re.sub(r' (xmlns|xmlns:xlink|width|height|version)="[^"]*"', "", opening)
    for name, colour in COLOURS.items():
        rest = rest.replace(colour, f"var(--{name})")
    return Markup(opening.replace("<svg", f'<svg role="img" aria-label="{text(description)}"') + end + rest)
