"""Self-contained HTML pages: tables, inline pictures, one style; no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from riskbayes.experiments.svg import COLOURS
from riskbayes.plotting import new_figure

STYLE = """
:root { color-scheme: light dark; LIGHT
  --soft: #f4f6f8; --stripe: #1f23290b; --shade: #1f232959; --rule: #d4dae0; --better: #08733f;
  --worse: #b3261e; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --muted: #97a1ac;
  --accent: #6db3f8; --paper: #14171b; --soft: #1d2228; --stripe: #e7eaee12; --shade: #e7eaee59;
  --rule: #3a424b; --better: #63d69c; --worse: #ff9288; } }
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
/* Where there is more to the left or right, a shadow lies on that edge; at the end the paper covers it. */
.scroll { overflow-x: auto; background:
  linear-gradient(to right, var(--paper) 40%, transparent) left / 2rem 100% no-repeat local,
  linear-gradient(to left, var(--paper) 40%, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(to right, var(--shade), transparent) left / .7rem 100% no-repeat scroll,
  linear-gradient(to left, var(--shade), transparent) right / .7rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .3rem .8rem; text-align: right; font-weight: normal; }
th.text, td.text { text-align: left; }
thead th { color: var(--muted); border-bottom: 2px solid var(--rule); vertical-align: bottom; }
tr.group th { font-weight: 600; text-align: left; padding-top: .7rem; }
td small { color: var(--muted); }
.better, .better small { color: var(--better); } .worse, .worse small { color: var(--worse); }
.equal { color: var(--muted); }
.small { font-size: .88rem; color: var(--muted); }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 47%), 1fr));
  gap: 1.1rem .8rem; }
figure { margin: 0; break-inside: avoid; }
figcaption { font-size: .88rem; line-height: 1.3; margin-bottom: .2rem; }
svg { display: block; width: 100%; height: auto; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; }
  table { font-size: .85rem; } th, td { padding: .3rem .35rem; } thead th { white-space: normal; }
  .narrow table { font-size: .8rem; } .narrow td small { display: block; } }
@media print { :root { font-size: 9.5pt; } body { max-width: none; padding: 0; }
  .scroll { overflow: visible; background: none; }
  .grid { grid-template-columns: repeat(4, 1fr); } h2 { break-after: avoid; } tr { break-inside: avoid; } }
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
    """The table, in a box that scrolls where the screen is narrower than it.

    With two columns of words or more the first is the heading of a group of rows. What stands behind a
    number goes below it on a narrow screen.
    """
    grouped = table.text_columns > 1

    def line(cells: Sequence[str | Cell], header: bool = False) -> str:
        parts = []
        for j, cell in enumerate(cells):
            text, kind = cell if isinstance(cell, Cell) else (cell, "")
            words = j < table.text_columns
            names = " ".join(filter(None, ["text" if words else "", kind]))
            tag, scope = ("th", "col" if header else "row") if header or words else ("td", "")
            number, _, rest = text.partition(" ") if tag == "td" else (text, "", "")
            body = escape(number) + (element("small", f" {escape(rest)}") if rest else "")
            parts.append(element(tag, body, scope=scope, **{"class": names}))
        return "".join(parts[grouped:])

    rows = []
    for i, row in enumerate(table.rows):
        if grouped and table.starts_group(i):
            heading = row[0] if isinstance(row[0], str) else row[0].text
            span = str(len(table.headers) - 1)
            cell = element("th", escape(heading), scope="rowgroup", colspan=span)
            rows.append(element("tr", cell, **{"class": "group"}))
        rows.append(element("tr", line(row)))
    body = "\n".join(rows)
    # A box that scrolls must take the focus, or the keyboard cannot scroll it.
    return (
        '<div class="scroll narrow" tabindex="0" role="region" aria-label="table"><table>\n'
        f"<thead><tr>{line(table.headers, header=True)}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
        "</table></div>"
    )


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
