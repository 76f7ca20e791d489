"""Self-contained HTML pages: tables, inline pictures, one style; no network."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from riskbayes.plotting import new_figure

COLOURS = {"ink": "#1f2329", "muted": "#626c77", "accent": "#0b62b1", "paper": "#fffffe"}
"""Colours of the page and of its pictures, by the name of their CSS variable; unusual ones, so that
they can be found in an SVG."""

STYLE = """
:root { color-scheme: light dark; LIGHT
  --soft: #f4f6f8; --rule: #d4dae0; --better: #08733f; --worse: #b3261e; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --muted: #97a1ac;
  --accent: #6db3f8; --paper: #14171b; --soft: #1d2228; --rule: #3a424b;
  --better: #63d69c; --worse: #ff9288; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1rem 3rem; max-width: 72rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .4rem 0 .8rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
p, li { max-width: 46rem; }
code { font: .92em ui-monospace, monospace; background: var(--soft); padding: .1em .35em;
  border-radius: .25em; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.2rem; max-width: 56rem; }
dt { color: var(--muted); } dd { margin: 0; }
.note { border-left: 3px solid var(--accent); padding: .1rem 0 .1rem .8rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .3rem .8rem; text-align: right; font-weight: normal; }
th.text, td.text { text-align: left; }
thead th { color: var(--muted); border-bottom: 2px solid var(--rule); vertical-align: bottom; }
tbody tr.first ~ tr.first > * { border-top: 1px solid var(--rule); }
.better { color: var(--better); } .worse { color: var(--worse); } .equal { color: var(--muted); }
.small { font-size: .88rem; color: var(--muted); }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 47%), 1fr));
  gap: 1.1rem .8rem; }
figure { margin: 0; break-inside: avoid; }
figcaption { font-size: .88rem; line-height: 1.3; margin-bottom: .2rem; }
svg { display: block; width: 100%; height: auto; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; }
  table { font-size: .85rem; } th, td { padding: .3rem .45rem; } }
@media print { :root { font-size: 9.5pt; } body { max-width: none; padding: 0; }
  .scroll { overflow: visible; } .grid { grid-template-columns: repeat(4, 1fr); } h2 { break-after: avoid; }
  tr { break-inside: avoid; } }
"""


class Cell(NamedTuple):
    """A cell that says more than its text: `kind` is "better", "worse" or "equal"."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Table:
    """A table before it is HTML or a terminal's.

    Parameters
    ----------
    headers : list of str
        Names of the columns.
    rows : list of list of str or Cell
        The cells.
    text_columns : int, default=1
        How many columns on the left hold words; the others hold numbers.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    text_columns: int = 1

    def starts_group(self, i: int) -> bool:
        """Whether row i begins a run of rows with the same first cell."""
        return i == 0 or self.rows[i][0] != self.rows[i - 1][0]


class Section(NamedTuple):
    """A heading and the HTML below it; `name` is its address in the page, `kind` its class."""

    heading: str
    body: str
    name: str = ""
    kind: str = ""


def element(tag: str, body: str, **attributes: str) -> str:
    """An HTML element; an attribute without a value is left out."""
    named = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value)
    return f"<{tag}{named}>{body}</{tag}>"


def html_table(table: Table) -> str:
    """The table, in a box that scrolls where the screen is narrow."""

    def line(cells: Sequence[str | Cell], header: bool = False) -> str:
        parts = []
        for j, cell in enumerate(cells):
            text, kind = cell if isinstance(cell, Cell) else (cell, "")
            words = j < table.text_columns
            names = " ".join(filter(None, ["text" if words else "", kind]))
            tag, scope = ("th", "col" if header else "row") if header or words else ("td", "")
            parts.append(element(tag, escape(text), scope=scope, **{"class": names}))
        return "".join(parts)

    rows = [
        element("tr", line(row), **{"class": "first" if table.starts_group(i) else ""})
        for i, row in enumerate(table.rows)
    ]
    body = "\n".join(rows)
    # A box that scrolls must take the focus, or the keyboard cannot scroll it.
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="table"><table>\n'
        f"<thead><tr>{line(table.headers, header=True)}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
        "</table></div>"
    )


def svg_source(figure: Any, salt: str) -> str:
    """A figure as an SVG file: text stays text, and the same figure gives the same bytes."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()


def inline_svg(figure: Any, description: str, prefix: str) -> str:
    """A figure as an <svg> element that takes the colours of the page.

    Parameters
    ----------
    figure : matplotlib Figure
        Drawn in the colours of `COLOURS` where they should follow the page.
    description : str
        What it shows, for those who cannot see it.
    prefix : str
        Unique in the page: it keeps the ids of one picture apart from another's.

    Returns
    -------
    svg : str
        The element.
    """
    return embed_svg(svg_source(figure, prefix), description, prefix)


def embed_svg(svg: str, description: str, prefix: str) -> str:
    """The source of an SVG file as an element of a page; see `inline_svg`."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    # A hundredth of a point is finer than the eye, and half of the bytes.
    svg = re.sub(r' d="[^"]*"', lambda d: re.sub(r"(\.\d\d)\d+", r"\1", d[0]), svg)
    svg = re.sub(r' (xmlns(:\w+)?|version)="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)
    for name, colour in COLOURS.items():
        svg = svg.replace(colour, f"var(--{name}, {colour})")
    size = re.search(r'viewBox="[^"]*"', svg)
    opening = f'<svg {size[0] if size else ""} role="img" aria-label="{escape(description)}">'
    svg = re.sub(r"<svg[^>]*>", lambda _: opening, svg, count=1)
    return re.sub(r"\n\s*", "\n", svg)


def path_figure(paths: Sequence[Sequence[float]], length: int, ylabel: str) -> Any:
    """Paths of several runs: a thin line each, and their median, thick.

    A run that stopped stays in the median with the model that it kept.

    Parameters
    ----------
    paths : list of sequences of float
        Values by iteration.
    length : int
        The last iteration of the axis.
    ylabel : str
        What the values are.

    Returns
    -------
    figure : matplotlib Figure
        A small one.
    """
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(2.15, 1.6)
    ax = figure.add_subplot()
    for path in paths:
        ax.plot(path, color=COLOURS["muted"], linewidth=0.7)
        ax.plot(len(path) - 1, path[-1], ".", color=COLOURS["muted"], markersize=5)
    held = [[path[min(t, len(path) - 1)] for path in paths] for t in range(max(map(len, paths)))]
    median = np.median(held, axis=1)
    marker = "o" if len(median) == 1 else None
    ax.plot(median, color=COLOURS["accent"], linewidth=2.2, marker=marker, markersize=4)
    top = max(max(path) for path in paths)
    top = top if top > 0 else 1.0
    ax.set_ylim(-0.03 * top, 1.08 * top)  # a line along zero is seen whole
    ax.set_xlim(-0.02 * length, 1.02 * length)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(3))
    ax.set_xlabel("iteration", fontsize=8, color=COLOURS["ink"])
    ax.set_ylabel(ylabel, fontsize=8, color=COLOURS["ink"])
    ax.tick_params(labelsize=8, colors=COLOURS["ink"])
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(COLOURS["muted"])
    return figure


def page(title: str, lead: str, sections: Sequence[Section], style: str = "", script: str = "") -> str:
    """One HTML page.

    Parameters
    ----------
    title : str
        Title and first heading.
    lead : str
        HTML below the title.
    sections : list of Section
        The rest.
    style, script : str, default=""
        CSS beside that of every page, and JavaScript.

    Returns
    -------
    html : str
        The page.
    """
    light = " ".join(f"--{name}: {colour};" for name, colour in COLOURS.items())
    body = "\n".join(
        element("section", f"\n<h2>{escape(s.heading)}</h2>\n{s.body}\n", id=s.name, **{"class": s.kind})
        for s in sections
    )
    ending = f"<script>\n{script}</script>\n" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE.replace('LIGHT', light)}{style}</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{lead}\n{body}\n{ending}</body>\n</html>\n"
    )
