"""The moving picture of the site and of README: RC bends a boundary, scan by scan, and the densities with it.

python benchmarks/moving_picture.py [--svg doc/calibration.svg]

Gaussian naive Bayes of the two columns of the demo, from its closed form on by fixed steps of RC. Points are
held-out rows; ellipses have one and two standard deviations; curves at the edges are the
densities of each column. The error in the picture is that of the held-out rows. A frame is a group of the
SVG, shown in turn by its style alone; a reader who asked for less motion sees the last one.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from riskbayes import RC, GaussianNB
from riskbayes.demo.boundary import COLUMNS, path_of, zero_line

PICTURE = Path(__file__).parents[1] / "doc" / "calibration.svg"
SCANS = (0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 64)
LAST = 6
"""The last frame stays as long as so many others."""
WIDTH, HEIGHT, EDGE, LEFT, TOP = 460, 330, 56, 46, 44
"""Of the plane; of the densities at its edge; of the margins."""
CELLS = 120, 90
COLOURS = "#c2410c", "#1d6fb8"
NAMES = "malignant", "benign"

STYLE = """text{{font:15px system-ui,sans-serif;fill:#1f2329}}.small{{font-size:13px;fill:#57606a}}
.f{{opacity:0;animation:show {seconds}s step-end infinite}}.last{{opacity:1;animation-name:stay}}
@keyframes show{{0%{{opacity:1}}{share:.4f}%{{opacity:0}}100%{{opacity:0}}}}
@keyframes stay{{0%{{opacity:1}}{stays:.4f}%{{opacity:0}}100%{{opacity:0}}}}
@media (prefers-reduced-motion:reduce){{.f{{animation:none;opacity:0}}.last{{opacity:1}}}}"""


def draw() -> str:
    """Return the picture as SVG."""
    data = load_breast_cancer()
    names = list(data.feature_names)
    X = data.data[:, [names.index(name) for name in COLUMNS]]
    X_train, X_test, y_train, y_test = train_test_split(
        X, data.target, test_size=0.25, stratify=data.target, random_state=0
    )
    low, high = np.zeros(2), np.percentile(X, 98.0, axis=0)
    frames = []
    for scans in SCANS:
        learner = RC(max_iter=max(scans, 1), step="fixed", monitor="log_loss", generative_weight=0.0)
        clf = GaussianNB(prior=None, learner=learner if scans else "closed_form").fit(X_train, y_train)
        if scans and clf.n_iter_ < scans:
            break  # RC has ended: the last frame is its result
        frames.append((scans, clf, 100 * np.mean(clf.predict(X_test) != y_test)))
    slots = len(frames) - 1 + LAST
    seconds = 0.7 * slots
    style = STYLE.format(seconds=f"{seconds:g}", share=100 / slots, stays=100 * LAST / slots)
    full = WIDTH + LEFT + EDGE + 20, HEIGHT + TOP + EDGE + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full[0]} {full[1]}" role="img" '
        'aria-label="Risk-based calibration bends the boundary between two classes, scan by scan, '
        'and the error on held-out rows falls">',
        f"<style>{style}</style>",
        f'<rect width="{full[0]}" height="{full[1]}" rx="8" fill="#ffffff"/>',
        f'<clipPath id="plane"><rect x="{LEFT}" y="{TOP + EDGE}" width="{WIDTH}" height="{HEIGHT}"/></clipPath>',
        f'<rect x="{LEFT}" y="{TOP + EDGE}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#d0d7de"/>',
        f'<text class="small" x="{LEFT + WIDTH / 2}" y="{full[1] - 16}" text-anchor="middle">{COLUMNS[0]}</text>',
        f'<text class="small" transform="rotate(-90)" x="{-(TOP + EDGE + HEIGHT / 2)}" y="30" '
        f'text-anchor="middle">{COLUMNS[1]}</text>',
        *(
            f'<text x="{LEFT + WIDTH / 2 + 8 * side}" y="26" text-anchor="{anchor}" style="fill:{colour}">{name}</text>'
            for side, anchor, colour, name in zip((-1, 1), ("end", "start"), COLOURS, NAMES, strict=True)
        ),
        '<g clip-path="url(#plane)">',
        *(dot(place(x, low, high), COLOURS[k]) for x, k in zip(X_test, y_test, strict=True)),
        "</g>",
    ]
    for number, (scans, clf, error) in enumerate(frames):
        last = number == len(frames) - 1
        words = "closed form" if scans == 0 else f"RC, {scans} scan{'s' if scans > 1 else ''}"
        begins = 0.7 * number - seconds if number else 0.0
        parts += [
            f'<g class="f{" last" if last else ""}" style="animation-delay:{begins:.2f}s">',
            f'<text x="{LEFT}" y="26" font-weight="600">{words}</text>',
            f'<text x="{LEFT + WIDTH}" y="26" text-anchor="end">held-out error {error:.1f} %</text>',
            *shapes(clf, low, high),
            "</g>",
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def place(points: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return where points of the two columns lie in the picture."""
    share = (points - low) / (high - low)
    return np.stack([LEFT + WIDTH * share[..., 0], TOP + EDGE + HEIGHT * (1 - share[..., 1])], axis=-1)


def dot(at: np.ndarray, colour: str) -> str:
    return f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="2.6" fill="{colour}" fill-opacity=".45"/>'


def shapes(clf: GaussianNB, low: np.ndarray, high: np.ndarray) -> list[str]:
    """Return the ellipses and the boundary in the plane, and the densities at its edges."""
    xs, ys = (np.linspace(low[j], high[j], CELLS[j] + 1) for j in (0, 1))
    grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
    margin = clf.predict_proba(grid)[:, 1].reshape(len(ys), len(xs)) - 0.5
    line = path_of(place(zero_line(margin, xs, ys), low, high))
    found = ['<g clip-path="url(#plane)">']
    scale = np.array([WIDTH, HEIGHT]) / (high - low)
    for mean, variance, colour in zip(clf.theta_, clf.var_, COLOURS, strict=True):
        cx, cy = place(mean, low, high)
        for times in (1, 2):
            rx, ry = times * np.sqrt(variance) * scale
            found.append(
                f'<ellipse cx="{cx:.1f}" cy="{cy:.1f}" rx="{rx:.1f}" ry="{ry:.1f}" fill="{colour}" '
                f'fill-opacity=".07" stroke="{colour}" stroke-opacity=".6"/>'
            )
    found += [f'<path d="{line}" fill="none" stroke="#1f2329" stroke-width="2.2"/>', "</g>"]
    for axis in (0, 1):
        points = np.linspace(low[axis], high[axis], 61)
        curves = np.exp(-0.5 * (points - clf.theta_[:, [axis]]) ** 2 / clf.var_[:, [axis]])
        curves *= clf.class_prior_[:, None] / np.sqrt(clf.var_[:, [axis]])
        curves *= (EDGE - 8) / curves.max()
        for curve, colour in zip(curves, COLOURS, strict=True):
            if axis == 0:
                x, y = LEFT + WIDTH * np.linspace(0, 1, 61), TOP + EDGE - curve
            else:
                x, y = LEFT + WIDTH + curve, TOP + EDGE + HEIGHT * np.linspace(1, 0, 61)
            d = "M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
            found.append(f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--svg", type=Path, default=PICTURE)
    parser.parse_args().svg.write_text(draw(), encoding="utf-8")
