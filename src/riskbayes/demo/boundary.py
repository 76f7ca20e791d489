"""A picture of what RC does: the boundary of a model of two columns before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from riskbayes.arrays import Array
from riskbayes.estimators.gaussian_nb import GaussianNB

COLUMNS = ("mean concavity", "compactness error")
LEFT, TOP, WIDTH, HEIGHT = 52, 8, 520, 330
"""The frame of the picture that `templates/boundary.html` draws, in pixels."""

CELLS = (80, 60)
"""Of the grid that the boundary is traced on."""

SHOWN = (0.0, 98.0)
"""Percentiles of the columns that the picture shows: few rows lie far out."""


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

    def place(self, points: Array) -> Array:
        """Return where points lie in the picture."""
        share = (points - self.low) / (self.high - self.low)
        return np.stack([LEFT + WIDTH * share[..., 0], TOP + HEIGHT * (1 - share[..., 1])], axis=-1)

    def rows(self, benign: bool) -> list[list[float]]:
        """Return the places of the rows of a class that lie inside the picture."""
        inside = np.all((self.low <= self.X) & (self.high >= self.X), axis=1)
        return self.place(self.X[inside & (self.y == benign)]).round(1).tolist()

    def path(self, learner: str) -> str:
        """Return the boundary of a learner as the data of a path."""
        return path_of(self.place(self.lines[learner]))


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
        clf: Any = GaussianNB(prior=None, learner=learner).fit(train, y)
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
