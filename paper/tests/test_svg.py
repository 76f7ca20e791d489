"""Pictures as SVG: in the colours of the page, and with all that is seen."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from html_checks import checked
from riskbayes.pages.shell import COLOURS
from riskbayes_paper.svg import embed_svg, svg_source


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
    ax.set_ylabel("soft error, %, from 1.2345", **SMALL)
    tidy(ax)
    return figure


def test_svg_in_a_page():
    pytest.importorskip("matplotlib")

    def draw(salt):
        figure = path_figure([[3.0, 2.0, 1.0], [4.0]], 2)
        figure.axes[0].set_xlim(0.5, 2)  # so that something is clipped
        return embed_svg(svg_source(figure, salt), 'a "path"')

    svg = draw("p1")
    checker = checked(svg)
    assert svg.startswith('<svg role="img" aria-label="a &#34;path&#34;" ')
    assert not set(checker.ids) & set(checked(draw("p2")).ids)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))
    assert used == set(checker.ids)
    assert "style" not in checker.tags  # it would be one of the whole page
    assert "var(--accent)" in svg
    assert "<text" in svg
    assert "http" not in svg
    assert svg == draw("p1")


def test_the_svg_keeps_what_is_seen():
    """Fewer bytes than matplotlib writes: every text, every colour, every line."""
    pytest.importorskip("matplotlib")
    import io

    from matplotlib import rc_context

    from riskbayes_paper.toy import run_toy, toy_figure

    rng = np.random.default_rng(0)
    paths = [(5 + rng.random() + 9 * np.exp(-np.arange(65) / 9)).tolist() for _ in range(5)]
    for figure in (path_figure(paths, 64), toy_figure(run_toy())):
        whole = io.StringIO()
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "x"}):
            figure.savefig(whole, format="svg", transparent=True, metadata={"Date": None})
        small = svg_source(figure, "x")
        assert len(small) < 0.8 * len(whole.getvalue())
        ElementTree.fromstring(small)
        for pattern in (r"<(?:text|tspan)[^>]*>([^<\s][^<]*)<", r"(#[0-9a-f]{6})\b", "<(?:path|use) "):
            found = [sorted(re.findall(pattern, svg)) for svg in (whole.getvalue(), small)]
            assert found[0] == found[1]
