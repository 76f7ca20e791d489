"""Charts as inline SVG, drawn without a library and in the colours of the page.

Charts of named rows are strips: the name and the figure are HTML, which wraps and is read aloud, and between
them lies an SVG whose horizontal places are percentages, so that it fits every width without a script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from math import ceil, floor, log10

from riskbayes.compare.numbers import brief
from riskbayes.markup import element, text

MIDDLE = 13
"""Half of the height of a strip, in pixels."""

SHAPES = {
    "riskbayes": '<circle r="5.5"/>',
    "peer": '<path d="M0-6.5 6.5 0 0 6.5-6.5 0z"/>',
    "baseline": '<path d="M-5-5H5V5H-5z"/>',
    "before": '<circle r="4.5"/>',
    "after": '<circle r="5.5"/>',
}
"""A shape for each kind of dot: colour is never alone in telling them apart."""


@dataclass(frozen=True)
class Scale:
    """Places of values on a strip, in percent of its width, and where its grid lines stand."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: Sequence[float], most: int = 6, zero: bool = False) -> Scale:
        """Return a scale with round ends that holds all values; with `zero`, also that."""
        low, high = min(values), max(values)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low <= 1e-12 * max(abs(low), abs(high)):  # one value: a scale needs a width
            low, high = low - (abs(low) or 1.0) * 0.1, high + (abs(high) or 1.0) * 0.1
        step = round_step((high - low) / most)
        first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
        ticks = tuple(i * step for i in range(first, last + 1))
        return cls(ticks[0], ticks[-1], ticks)

    def at(self, value: float) -> float:
        """Return the place of a value."""
        return 100 * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)


def round_step(step: float) -> float:
    """Return the least of 1, 2, 5 times a power of ten that is not below a step."""
    power = 10.0 ** floor(log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


@dataclass(frozen=True)
class Strip:
    """A row of a chart: HTML of its name and of its figure, and SVG marks, or words in place of these."""

    name: str
    marks: str
    figure: str
    kind: str = ""
    words: str = ""


def strips(rows: Sequence[Strip], label: str, scale: Scale | None, unit: str = "", behind: str = "") -> str:
    """Return a chart of strips below each other, with one axis; `behind` is drawn in every strip.

    Without a scale every strip has one of its own, and there is no axis. `label` says what is seen for those
    who cannot see it.
    """
    grid = "".join(line(scale.at(tick), "grid") for tick in scale.ticks) if scale else ""
    lines = []
    for row in rows:
        marks = f'<svg y="50%" overflow="visible"><g transform="translate(0 {-MIDDLE})">{row.marks}</g></svg>'
        drawn = element("svg", grid + behind + marks, class_="strip", height=str(2 * MIDDLE))
        middle = element("span", row.words, class_="words") if row.words else drawn
        parts = element("span", row.name, class_="name") + middle
        parts += element("span", row.figure, class_="figure")
        lines.append(element("div", parts, class_=f"row {row.kind}".strip()))
    if scale:
        lines.append(element("div", axis(scale, unit), class_="row axis"))
    widest = max((shown_length(row.figure) for row in rows), default=0)
    style = f"--figure: {max(widest, len(unit)) * 0.58:.1f}rem"  # the same for all, so that strips line up
    return element("div", "\n".join(lines), class_="strips", role="img", aria_label=label, style=style)


def shown_length(html: str) -> int:
    """Return the number of characters of HTML that are shown."""
    return len(unescape(re.sub("<[^>]*>", "", html)))


def axis(scale: Scale, unit: str) -> str:
    """Return the numbers below the grid lines, and what they are."""
    ticks = scale.ticks
    shown = []
    for i, tick in enumerate(ticks):
        # On a phone every second number goes, but for the ends.
        rare = "rare" if i % 2 and i < len(ticks) - 1 and len(ticks) > 4 else ""
        place = {"x": f"{scale.at(tick):.2f}%", "y": "13", "text-anchor": "middle", "class": rare}
        shown.append(element("text", text(brief(tick)), **place))
    drawn = element("svg", "".join(shown), class_="strip", height="17")
    return '<span class="name"></span>' + drawn + element("span", text(unit), class_="figure unit")


def line(place: float, kind: str) -> str:
    """Return a vertical line across a strip."""
    return f'<line class="{kind}" x1="{place:.2f}%" x2="{place:.2f}%" y1="0" y2="100%"/>'


def span(start: float, end: float, kind: str) -> str:
    """Return a thin horizontal line, with a short bar at each end where it is an interval."""
    drawn = f'<line class="{kind}" x1="{start:.2f}%" x2="{end:.2f}%" y1="{MIDDLE}" y2="{MIDDLE}"/>'
    if kind == "interval":
        for place in (start, end):
            drawn += (
                f'<line class="{kind}" x1="{place:.2f}%" x2="{place:.2f}%" '
                f'y1="{MIDDLE - 4}" y2="{MIDDLE + 4}"/>'
            )
    return drawn


def dot(place: float, kind: str) -> str:
    """Return the dot of a kind."""
    return (
        f'<svg class="dot {kind}" x="{place:.2f}%" y="{MIDDLE}" overflow="visible" width="1" height="1">'
        f"{SHAPES[kind]}</svg>"
    )


def bar(start: float, end: float, kind: str) -> str:
    """Return a bar between two places; one of no width is still seen."""
    left, width = min(start, end), abs(end - start)
    return (
        f'<rect class="bar {kind}" x="{left:.2f}%" width="{max(width, 0.25):.2f}%" y="{MIDDLE - 7}" '
        'height="14" rx="1.5"/>'
    )


def sample(kind: str) -> str:
    """Return a dot, a line or a bar as it stands in a legend."""
    if kind in SHAPES:
        body = f'<g class="dot {kind}" transform="translate(8 8)">{SHAPES[kind]}</g>'
    elif kind == "interval":
        body = '<path class="interval" d="M1 8H15M1 4V12M15 4V12"/>'
    elif kind.startswith("bar"):
        body = f'<rect class="{kind}" x="1" y="3" width="14" height="10" rx="1.5"/>'
    else:
        body = f'<line class="{kind}" x1="8" x2="8" y1="0" y2="16"/>'
    return f'<svg class="sample" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">{body}</svg>'


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """Return samples of marks, each with HTML of what it means."""
    shown = "".join(element("li", sample(kind) + element("span", words)) for kind, words in entries)
    return element("ul", shown, class_="legend")
