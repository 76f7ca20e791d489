"""Pictures as SVG: what matplotlib draws, in a fraction of its bytes and in the colours of the page."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from riskbayes.markup import attributes
from riskbayes.pages.shell import COLOURS
from riskbayes.statistics import Array

FINE = 0.05
"""Points of a line are left out where it moves by no more than this, in typographic points."""

FONTS = "DejaVu Sans,Verdana,sans-serif"
SAME_AS_DEFAULT = {("fill", "none"), ("stroke-dashoffset", "0"), ("stroke-linecap", "butt")}
OF_TEXT = {"fill": "#000", "font-size": "10", "text-anchor": "start"}
"""Attributes that most texts of a picture share, and what they are where a text has none."""

Attributes = dict[str, str]


class Shape(NamedTuple):
    """A path, or a marker that is defined once and used in some places; and its attributes."""

    d: str
    """The data of the path, or the places of the marker."""
    style: tuple[tuple[str, str], ...]
    marker: str = ""

    def takes(self, other: Shape) -> bool:
        """True if another one can be appended to it without a change that is seen."""
        alike = (self.style, self.marker) == (other.style, other.marker)
        return alike and (bool(self.marker) or not {"fill", "clip-path"} & set(dict(self.style)))


def svg_source(figure: Any, salt: str) -> str:
    """Return a figure as an SVG file: text stays text, and the same figure gives the same bytes."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return compact(buffer.getvalue())


def embed_svg(svg: str, description: str, prefix: str) -> str:
    """Return the source of an SVG file as an element of a page, which takes the colours of the page.

    `description` is for those who cannot see it; `prefix`, unique in the page, keeps the ids of one picture
    apart from another's.
    """
    svg = re.sub(r' (xmlns|width|height)="[^"]*"', "", svg[: svg.index(">")]) + svg[svg.index(">") :]
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)
    for name, colour in COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(description)}"', 1)


def compact(svg: str) -> str:
    """Return the SVG of matplotlib, of lines, markers and text, without what cannot be seen.

    Groups, invisible patches and clips that cut nothing are dropped; points are rounded to a tenth, and
    those that a line does not need are left out; attributes that most texts share are written once.
    """
    root = ElementTree.fromstring(svg)
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
    defined = {node.get("id"): node for defs in root.iter("defs") for node in defs}
    shapes = merged(drawn(root, defined))
    texts = [(node, wrapper) for wrapper in root.iter("g") for node in wrapper.findall("text")]
    used = [name for s in shapes for name in (s.marker, dict(s.style).get("clip-path", "")) if name]
    short = {name: f"d{i}" for i, name in enumerate(dict.fromkeys(used))}
    parts = [definition(defined[name], short[name]) for name in short]
    parts += [element(shape, short) for shape in shapes]
    size = " ".join(f'{name}="{root.get(name)}"' for name in ("width", "height", "viewBox"))
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} fill="none" stroke-linejoin="round">'
    return f"{opening}{''.join(parts)}{text_group(texts)}</svg>\n"


def styles(node: ElementTree.Element) -> Attributes:
    """Return the style of an element by property."""
    pairs = (part.partition(":") for part in node.get("style", "").split(";") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def drawn(
    node: ElementTree.Element, defined: dict[str | None, ElementTree.Element], clip: str = ""
) -> Iterator[Shape]:
    """Yield everything that can be seen below an element, but for text."""
    clip = node.get("clip-path", clip)
    if node.tag in ("path", "use"):
        style, d, marker, at = styles(node), node.get("d", ""), "", np.zeros(2)
        if node.tag == "use":
            marker = node.get("{http://www.w3.org/1999/xlink}href", "")[1:]
            at = np.array([float(node.get("x", 0)), float(node.get("y", 0))])
            style, d = {**style, **styles(defined[marker])}, defined[marker].get("d", "")
        style = {name: value for name, value in style.items() if (name, value) not in SAME_AS_DEFAULT}
        if not {"stroke", "fill"} & set(style) or not d.strip():
            return
        if re.search("[CQ]", d):
            d = joined(at) if marker else rounded(d)
        else:
            lines, marker = [(points + at, closed) for points, closed in polylines(d)], ""
            if all(len(points) < 3 for points, _ in lines):
                style.pop("fill", None)  # there is nothing to fill
            d = "".join(relative(points, closed) for points, closed in lines)
            if clip and inside(defined[clip[5:-1]][0], [points for points, _ in lines]):
                clip = ""
        yield Shape(d, (*style.items(), *([("clip-path", clip[5:-1])] if clip else [])), marker)
    elif node.tag != "defs":
        for child in node:
            yield from drawn(child, defined, clip)


def merged(shapes: Iterator[Shape]) -> list[Shape]:
    """Return the shapes, with neighbours of the same style as one."""
    found: list[Shape] = []
    for shape in shapes:
        if found and found[-1].takes(shape):
            found[-1] = found[-1]._replace(d=found[-1].d + shape.d)
        else:
            found.append(shape)
    return found


def polylines(d: str) -> Iterator[tuple[Array, bool]]:
    """Yield the points of each line of a path of straight lines, and whether it is closed."""
    for part in re.findall(r"M[^M]*", d):
        yield np.array(re.findall(r"[-\d.e]+", part), dtype=float).reshape(-1, 2), "z" in part


def simplified(points: Array) -> Array:
    """Return the points that a line needs to stay within `FINE` of where it was (Douglas and Peucker)."""
    if len(points) < 3:
        return points
    start, along = points[0], points[-1] - points[0]
    square = float(along @ along)
    share = np.clip((points - start) @ along / square, 0, 1) if square else np.zeros(len(points))
    away = np.hypot(*(points - start - share[:, None] * along).T)
    i = int(away.argmax())
    if away[i] <= FINE:
        return points[[0, -1]]
    return np.concatenate([simplified(points[: i + 1]), simplified(points[i:])[1:]])


def relative(points: Array, closed: bool) -> str:
    """Return a line as the data of a path: each point relative to the one before, in tenths."""
    tenths = np.round(10 * simplified(points)).astype(int)
    steps = np.diff(tenths, axis=0)
    steps = steps[np.any(steps != 0, axis=1)]
    moves = "".join(joined(step) if j else f"l{joined(step).lstrip()}" for j, step in enumerate(steps / 10))
    return f"M{joined(tenths[0] / 10).lstrip()}{moves}{'z' if closed else ''}"


def joined(values: Array) -> str:
    """Join numbers with no more between them than is needed: a minus sign is enough."""
    return "".join(text if text[0] == "-" else f" {text}" for text in map(number, values))


def number(value: float, digits: int = 1) -> str:
    """Return a number in as few characters as it takes."""
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
    text = re.sub(r"^(-?)0\.", r"\1.", text)
    return "0" if text in ("-0", "-", "") else text


def rounded(text: str, digits: int = 2) -> str:
    """Return a text with its numbers rounded, on one line."""
    shorter = re.sub(r"-?\d+\.\d+", lambda found: number(float(found[0]), digits), " ".join(text.split()))
    return re.sub(r" ?([MLCQz]) ?", r"\1", shorter)


def inside(frame: ElementTree.Element, lines: list[Array]) -> bool:
    """True if lines stay within the rectangle that would clip them."""
    x, y, width, height = (float(frame.get(name, 0)) for name in ("x", "y", "width", "height"))
    points = np.concatenate(lines) - (x, y)
    return bool(np.all(points >= -FINE) and np.all(points <= np.array([width, height]) + FINE))


def definition(node: ElementTree.Element, name: str) -> str:
    """Return what shapes refer to: the path of a marker, or the rectangle of a clip."""
    if node.tag == "path":
        return f'<defs><path id="{name}" d="{rounded(node.get("d", ""))}"/></defs>'
    frame = " ".join(f'{k}="{rounded(v, 1)}"' for k, v in node[0].attrib.items())
    return f'<clipPath id="{name}"><rect {frame}/></clipPath>'


def element(shape: Shape, short: dict[str, str]) -> str:
    """Return a shape as an element."""
    style = "".join(
        f' {name}="{f"url(#{short[value]})" if name == "clip-path" else rounded(value)}"'
        for name, value in shape.style
    )
    if shape.marker:
        values = re.findall(r"-?[\d.]+", shape.d)
        places = zip(values[::2], values[1::2], strict=True)
        uses = "".join(f'<use href="#{short[shape.marker]}" x="{x}" y="{y}"/>' for x, y in places)
        return f"<g{style}>{uses}</g>"
    return f'<path d="{shape.d}"{style}/>'


def text_group(texts: list[tuple[ElementTree.Element, ElementTree.Element]]) -> str:
    """Return the texts in a group, which has the attributes that most of them share."""
    if not texts:
        return ""
    own = [{**OF_TEXT, **text_style(wrapper), **text_style(node)} for node, wrapper in texts]
    common = {name: Counter(style[name] for style in own).most_common(1)[0][0] for name in OF_TEXT}
    shown = []
    for (node, wrapper), style in zip(texts, own, strict=True):
        named = {name: value for name, value in style.items() if common.get(name) != value}
        named |= place(node)
        turn = wrapper.get("transform") or node.get("transform", "")
        if turn and not turn.startswith("rotate(-0 "):
            named["transform"] = rounded(turn, 1)
        pieces = "".join(
            f"<tspan{attributes(place(piece) | text_style(piece))}>{escape(piece.text or '')}</tspan>"
            for piece in node
        )
        shown.append(f"<text{attributes(named)}>{escape((node.text or '').strip())}{pieces}</text>")
    return f'<g font-family="{FONTS}"{attributes(common)}>{"".join(shown)}</g>'


def text_style(node: ElementTree.Element) -> Attributes:
    """Return the attributes of a text; the fonts are those of the group."""
    style = {name: value.removesuffix("px") for name, value in styles(node).items()}
    style.pop("font-family", None)
    return style


def place(node: ElementTree.Element) -> Attributes:
    """Return the position of a text or of a piece of a formula."""
    return {name: number(float(node.get(name, ""))) for name in ("x", "y") if node.get(name)}
