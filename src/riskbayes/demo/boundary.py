"""A picture of what RC does: the boundary of a model of two columns before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from riskbayes.arrays import Array
from riskbayes.estimators.gaussian_nb import GaussianNB
from riskbayes.markup import element

COLUMNS = ("mean concavity", "compactness error")
LEFT, TOP, WIDTH, HEIGHT = 52, 8, 520, 330
CELLS = (80, 60)
"""Of the grid that the boundary is traced on."""

SHOWN = (0.0, 98.0)
"""Percentiles of the columns that the picture shows: few rows lie far out."""

MALIGNANT = "#c8500a"


@dataclass(frozen=True)
class Boundary:
    """Held-out rows of two columns, and boundary and held-out error of a model before and after RC."""

    X: Array
    y: Array
    low: Array
    high: Array
    lines: dict[str, Array]
    """By learner: segments of shape (n, 2 ends, 2 coordinates)."""
    errors: dict[str, float]


def find_boundary() -> Boundary:
    """Fit naive Bayes to two columns of breast cancer, by both learners, and trace where it is undecided."""
    data = load_breast_cancer()
    names = list(data.feature_names)
    X = data.data[:, [names.index(name) for name in COLUMNS]]
    train, test, y, y_test = train_test_split(
        X, data.target, test_size=0.25, stratify=data.target, random_state=0
    )
    low, high = np.percentile(X, SHOWN, axis=0)
    xs, ys = (np.linspace(low[j], high[j], CELLS[j] + 1) for j in (0, 1))
    grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
    lines, errors = {}, {}
    for learner in ("closed_form", "rc"):
        clf: Any = GaussianNB(learner=learner).fit(train, y)
        margin = clf.predict_proba(grid)[:, 1].reshape(len(ys), len(xs)) - 0.5
        lines[learner] = zero_line(margin, xs, ys)
        errors[learner] = 100 * float(np.mean(clf.predict(test) != y_test))
    return Boundary(test, y_test, low, high, lines, errors)


def zero_line(values: Array, xs: Array, ys: Array) -> Array:
    """Return where values on a grid are zero, as segments: one or two in each cell whose corners differ."""
    found = []
    for i, j in np.argwhere(np.ones((len(ys) - 1, len(xs) - 1))):
        corners = [(i, j), (i, j + 1), (i + 1, j + 1), (i + 1, j)]
        crossed = []
        for a, b in zip(corners, [*corners[1:], corners[0]], strict=True):
            if (values[a] < 0) != (values[b] < 0):
                share = values[a] / (values[a] - values[b])
                crossed.append(
                    [xs[a[1]] + share * (xs[b[1]] - xs[a[1]]), ys[a[0]] + share * (ys[b[0]] - ys[a[0]])]
                )
        found += [crossed[k : k + 2] for k in range(0, len(crossed), 2)]
    return np.array(found).reshape(-1, 2, 2)


def boundary_figure() -> str:
    """Return the picture as an element of a page, with what it shows in words."""
    found = find_boundary()
    before, after = (f"{found.errors[learner]:.1f} %" for learner in ("closed_form", "rc"))
    about = (
        f"Naive Bayes (GaussianNB) of two columns of breast cancer. Dashed: the boundary of the closed form, "
        f"wrong on {before} of the held-out rows. Solid: after RC, wrong on {after}. Diamonds are malignant, "
        "circles benign; all are held out, and a few lie outside of the picture. The columns were chosen so "
        "that RC moves much."
    )
    picture = element(
        "svg",
        drawn(found),
        viewBox=f"0 0 {LEFT + WIDTH + 10} {TOP + HEIGHT + 46}",
        role="img",
        aria_label=about,
    )
    caption = element("figcaption", escape(about))
    return element("figure", f"{caption}\n{picture}", style="max-width: 46rem; margin-top: 1.6rem")


def drawn(found: Boundary) -> str:
    """Return frame, rows and both boundaries as SVG."""

    def place(points: Array) -> Array:
        share = (points - found.low) / (found.high - found.low)
        return np.stack([LEFT + WIDTH * share[..., 0], TOP + HEIGHT * (1 - share[..., 1])], axis=-1)

    parts = [
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="var(--rule)"/>'
    ]
    inside = np.all((found.low <= found.X) & (found.high >= found.X), axis=1)
    benign = 'r="3.5" fill="none" stroke="var(--accent)" stroke-width="1.3"'
    for (x, y), label in zip(place(found.X[inside]), found.y[inside], strict=True):
        if label:
            shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" {benign}/>'
        else:
            shape = f'<path d="M{x:.1f} {y - 5:.1f}l5 5-5 5-5-5z" fill="{MALIGNANT}"/>'
        parts.append(shape)
    styles = {
        "closed_form": 'stroke="var(--muted)" stroke-width="2" stroke-dasharray="7 5"',
        "rc": 'stroke="var(--ink)" stroke-width="2.5"',
    }
    for learner, segments in found.lines.items():
        d = path_of(place(segments))
        parts.append(f'<path d="{d}" fill="none" stroke-linejoin="round" {styles[learner]}/>')
    parts += axes(found)
    return "".join(parts)


def path_of(segments: Array) -> str:
    """Return segments, joined to lines where their ends meet, as the data of a path."""
    left = [[tuple(np.round(end, 2)) for end in segment] for segment in segments]
    lines = []
    while left:
        line = left.pop()
        grown = True
        while grown:
            grown = False
            for k, (a, b) in enumerate(left):
                if a in (line[0], line[-1]) or b in (line[0], line[-1]):
                    other = b if a in (line[0], line[-1]) else a
                    meets = a if other == b else b
                    line = [*line, other] if meets == line[-1] else [other, *line]
                    left.pop(k)
                    grown = True
                    break
        lines.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line))
    return "".join(lines)


def axes(found: Boundary) -> list[str]:
    """Return the ends of both scales, and the names of the columns."""
    style = 'fill="var(--muted)" font-size="13"'
    bottom, right = TOP + HEIGHT, LEFT + WIDTH
    ends = [f"{value:.2g}" for value in (*found.low, *found.high)]
    middle = (LEFT + WIDTH / 2, TOP + HEIGHT / 2)
    turned = f'transform="translate(14 {middle[1]}) rotate(-90)"'
    return [
        f'<text x="{LEFT}" y="{bottom + 18}" {style}>{ends[0]}</text>',
        f'<text x="{right}" y="{bottom + 18}" text-anchor="end" {style}>{ends[2]}</text>',
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end" {style}>{ends[1]}</text>',
        f'<text x="{LEFT - 6}" y="{TOP + 12}" text-anchor="end" {style}>{ends[3]}</text>',
        f'<text x="{middle[0]}" y="{bottom + 38}" text-anchor="middle" {style}>{COLUMNS[0]}</text>',
        f'<text {turned} text-anchor="middle" {style}>{COLUMNS[1]}</text>',
    ]
