"""Pictures as SVG: small, in the colours of the page, and with all that is seen."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from html_checks import checked
from riskbayes.pages.shell import COLOURS
from riskbayes_paper.svg import FINE, compact, embed_svg, relative, svg_source


def path_figure(paths, length):
    """A picture of lines, dots and text: some values by iteration, and their median."""
    from matplotlib.ticker import MaxNLocator

    from riskbayes.plotting import new_figure
    from riskbayes_paper.figures import MUTED, SMALL, tidy

    figure = new_figure(2.15, 1.6)
    ax = figure.add_subplot()
    for path in paths:
        ax.plot(path, color=MUTED, linewidth=0.7)
        ax.plot(len(path) - 1, path[-1], ".", color=MUTED, markersize=5)
    ax.plot(np.median([path[:1] * 2 for path in paths], axis=0), color=COLOURS["accent"], linewidth=2.2)
    top = max(max(path) for path in paths)
    ax.set_ylim(-0.03 * top, 1.08 * top)
    ax.set_xlim(-0.02 * length, 1.02 * length)
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(3))
    ax.set_xlabel("iteration", **SMALL)
    ax.set_ylabel("soft error, %", **SMALL)
    tidy(ax)
    return figure


def test_svg_in_a_page():
    pytest.importorskip("matplotlib")

    def draw():
        figure = path_figure([[3.0, 2.0, 1.0], [4.0]], 2)
        figure.axes[0].set_xlim(0.5, 2)  # so that something is clipped
        return embed_svg(svg_source(figure, "p1"), 'a "path"', "p1")

    svg = draw()
    checker = checked(svg)
    assert svg.startswith('<svg role="img" aria-label="a &quot;path&quot;" viewBox=')
    assert all(name.startswith("p1-") for name in checker.ids)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    assert len(used) == 2  # the dot at the end of a run, and the frame that clips
    assert used == set(checker.ids)
    assert "var(--accent)" in svg
    assert "<text" in svg
    assert "http" not in svg
    assert svg == draw()


def distance(point, line):
    """From a point to a line of several points."""
    start, step = line[:-1], np.diff(line, axis=0)
    share = np.clip(((point - start) * step).sum(axis=1) / np.maximum((step**2).sum(axis=1), 1e-300), 0, 1)
    return np.hypot(*(point - start - share[:, None] * step).T).min()


def test_a_line_stays_where_it_was():
    """Points that are left out, and those that are rounded, move a line by less than the eye sees."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 20, 65, 401):
        for shape in (
            rng.normal(size=n).cumsum(),
            np.exp(-np.arange(n) / 8.0),
            np.zeros(n),
            rng.random(n) < 0.5,
        ):
            points = np.column_stack([np.linspace(20.18, 227.4, n), 50.123 + 20 * np.asarray(shape, float)])
            d = relative(points, closed=False)
            steps = np.array(re.findall(r"-?(?:\d*\.)?\d+", d), dtype=float).reshape(-1, 2)
            drawn = steps.cumsum(axis=0)
            if len(drawn) == 1:
                drawn = np.concatenate([drawn, drawn])
            assert len(drawn) <= n
            assert max(distance(point, drawn) for point in points) < FINE + 0.08
    back_and_forth = np.array([[0, 0], [9, 0], [3, 0], [5.0, 0]])
    assert relative(back_and_forth, closed=True) == "M0 0l9 0-6 0 2 0z"


def test_small_svg_keeps_what_is_seen():
    """A fraction of matplotlib's bytes: every text, every colour, no part of a line."""
    pytest.importorskip("matplotlib")
    import io

    from matplotlib import rc_context

    from riskbayes_paper.toy import run_toy, toy_figure

    rng = np.random.default_rng(0)
    paths = [(5 + rng.random() + 9 * np.exp(-np.arange(65) / 9)).tolist() for _ in range(5)]
    for figure, share in ((path_figure(paths, 64), 0.2), (toy_figure(run_toy()), 0.35)):
        whole = io.StringIO()
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "x"}):
            figure.savefig(whole, format="svg", transparent=True, metadata={"Date": None})
        small = svg_source(figure, "x")
        assert small == compact(whole.getvalue())
        assert len(small) < share * len(whole.getvalue())
        ElementTree.fromstring(small)
        for pattern in (r"<(?:text|tspan)[^>]*>([^<\s][^<]*)<", r"(#[0-9a-f]{6})\b"):
            found = [sorted(re.findall(pattern, svg)) for svg in (whole.getvalue(), small)]
            assert set(found[0]) == set(found[1])
