"""Pictures of the results: paths, average ranks, published against measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import studentized_range

from riskbayes.pages.shell import COLOURS
from riskbayes.plotting import new_figure
from riskbayes.statistics import Array
from riskbayes_paper import published
from riskbayes_paper.datasets import STAND_IN
from riskbayes_paper.protocols import LEARNERS, MAX_ITER, PROTOCOLS
from riskbayes_paper.published import PAPER_TABLES
from riskbayes_paper.results import Results, Setting
from riskbayes_paper.tables import FAR
from riskbayes_paper.toy import run_toy, toy_figure

INK, MUTED = COLOURS["ink"], COLOURS["muted"]
# Told apart by most eyes, on light and on dark.
LEARNER_COLOURS = {
    "closed_form": MUTED,
    "rc_paper": "#4aa8e0",
    "rc": "#0072b2",
    "gd": "#d55e00",
    "gd_scaled": "#e69f00",
    "dfe": "#009e73",
    "tm": "#cc79a7",
}
SMALL: dict[str, Any] = {"fontsize": 8, "color": INK}
TITLE: dict[str, Any] = {"fontsize": 9, "fontweight": "bold", "color": INK}
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": 8, "labelcolor": INK}
CONFIDENCE = 0.95
LEAST_HEIGHT = 0.5
"""The least height of a panel of paths, in percentage points."""

BANDED = "rc"
"""The learner whose range over splits is shown beside its median."""


class Picture(NamedTuple):
    """A figure with what a page needs to know of it: `draw()` gives it; `data_set` is set if it shows one."""

    name: str
    caption: str
    draw: Callable[[], Any]
    data_set: str = ""


def all_figures(results: Results) -> Iterator[Picture]:
    """Yield every figure that these results can fill; each is drawn when it is asked for."""
    for protocol in results.protocols:
        about = f"Published against measured test errors, {protocol}: {PROTOCOLS[protocol]}. The band is two "
        draw = partial(scatter, results, protocol)
        yield Picture(f"scatter_{protocol}", f"{about}points to either side.", draw)
    for setting in results.settings:
        learners = results.learners(setting)
        ranks = results.ranks(setting, learners)
        if len(ranks) > 1 and len(learners) > 1:
            sets = count_sets(results, results.with_all(setting, learners))
            title = f"{setting.title}, {setting.protocol}"
            yield Picture(
                f"ranks_{setting.model}_{setting.estimate}_{setting.protocol}",
                f"{title}: average ranks of the test errors over {sets}, 1 the lowest error. A bar joins "
                f"learners that the Nemenyi test does not tell apart at {1 - CONFIDENCE:.0%}.",
                partial(critical_difference, ranks, learners, f"{title}\n{sets}"),
            )
    for name in results.sets:
        for setting in results.settings:
            if setting.protocol == "held-out" and any(results.of(name, setting, who) for who in LEARNERS):
                about = f"{results.label(name)}, {setting.title}: median over splits, and the range of "
                file = f"paths_{name}_{setting.model}_{setting.estimate}"
                draw = partial(paths, results, name, setting)
                yield Picture(file, about + LEARNERS[BANDED], draw, name)
    about = "The toy example: the closed form, and RC after one step."
    yield Picture("toy", about, lambda: toy_figure(run_toy()))


def count_sets(results: Results, names: Sequence[str]) -> str:
    """Return how many sets there are, and how many of them are stand-ins, in words."""
    stand_ins = sum(name in results.stand_ins for name in names)
    return f"{len(names)} sets" + (f" ({stand_ins} of them {STAND_IN}s)" if stand_ins else "")


def paths(results: Results, name: str, setting: Setting) -> Any:
    """Draw held-out error, and training soft error below it, along the iterations; every learner a line."""
    figure = new_figure(3.5, 4.3)
    upper, lower = figure.subplots(2, 1, sharex=True)
    for learner in results.learners(setting):
        rows = results.of(name, setting, learner)
        if rows:
            line(upper, learner, [np.array(row.test_wrong) / row.n_test for row in rows])
            line(lower, learner, [row.soft_error for row in rows])
    titles = {"error of the held-out rows, %": upper, "soft error of the training rows, %": lower}
    for title, ax in titles.items():
        tidy(ax)
        fit_height(ax)
        ax.set_title(title, loc="left", **SMALL)
        ax.set_xlim(0, MAX_ITER)
        ax.set_xticks(range(0, MAX_ITER + 1, MAX_ITER // 4))
        ax.locator_params("y", nbins=5)
    lower.set_xlabel("iteration (0: closed form)", **SMALL)
    handles, place = upper.get_legend_handles_labels(), "outside lower center"
    figure.legend(*handles, loc=place, ncols=3, columnspacing=1.0, handlelength=1.4, **LEGEND)
    title = f"{results.label(name)}\n{setting.title}"
    figure.suptitle(title, x=0.01, ha="left", **TITLE)
    return figure


def held_paths(paths: Sequence[Sequence[float]], length: int) -> Array:
    """Return paths of one length: a run that stopped stays with the model that it kept."""
    steps = np.arange(length)
    return np.stack([np.asarray(path)[np.minimum(steps, len(path) - 1)] for path in paths])


def line(ax: Any, learner: str, values: Sequence[Any]) -> None:
    """Draw the median over splits in percent, and their range for one learner: more bands hide each other."""
    steps = np.arange(MAX_ITER + 1)
    held = 100 * held_paths(values, len(steps))
    colour = LEARNER_COLOURS[learner]
    if learner == BANDED:
        ax.fill_between(steps, held.min(axis=0), held.max(axis=0), color=colour, alpha=0.2, linewidth=0)
    width = 2.0 if learner == BANDED else 1.3
    # Where others stay at the closed form, its dashes are seen above them.
    style = {"linestyle": "dashed", "zorder": 3} if learner == "closed_form" else {"zorder": 2}
    middle = np.median(held, axis=0)
    (drawn,) = ax.plot(steps, middle, color=colour, linewidth=width, label=LEARNERS[learner], **style)
    drawn.get_path().should_simplify = True  # matplotlib does so by itself from 128 points on


def fit_height(ax: Any) -> None:
    """Show all lines and the band, but do not blow up differences of less than half a point."""
    low, high = ax.dataLim.intervaly
    room = max(0.0, LEAST_HEIGHT - (high - low)) / 2 + 0.05 * (high - low)
    ax.set_ylim(max(low - room, -0.02 * (high + room)), high + room)
    ax.ticklabel_format(useOffset=False, style="plain", axis="y")


def tidy(ax: Any) -> None:
    """Leave few lines, in the colours of the page."""
    ax.tick_params(labelsize=8, colors=INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)


def scatter(results: Results, protocol: str) -> Any:
    """Draw published against measured mean test errors; a hollow point is a stand-in."""
    figure = new_figure(5.2, 5.0)
    ax = figure.add_subplot()
    markers = {"nb": "o", "qda": "s"}
    seen: dict[tuple[str, str, bool], list[tuple[float, float]]] = {}
    for table, paper in PAPER_TABLES.items():
        setting = Setting(paper.model, paper.estimate, protocol)
        for method, learner in paper.methods.items():
            if table == "dfe" and method == "rc":  # the same figures as in the table of NB by ML
                continue
            for name in results.sets:
                errors = results.errors(name, setting, learner)
                printed = published.figure(table, name, method, "test_error_pct")
                if len(errors) and printed is not None:
                    kind = (learner, paper.model, name in results.stand_ins)
                    seen.setdefault(kind, []).append((printed, float(errors.mean())))
    for (learner, model, stand_in), points in seen.items():
        colour = LEARNER_COLOURS[learner]
        style = {"markerfacecolor": "none" if stand_in else colour, "markersize": 5, "alpha": 0.8}
        ax.plot(*zip(*points, strict=True), markers[model], color=colour, **style)
    far = max((value for points in seen.values() for point in points for value in point), default=0.0)
    ends = np.array([0.0, 1.05 * far + 1.0])
    ax.plot(ends, ends, color=MUTED, linewidth=1)
    ax.fill_between(ends, ends - FAR, ends + FAR, color=MUTED, alpha=0.15, linewidth=0)
    for learner in sorted({who for who, _, _ in seen}, key=list(LEARNERS).index):
        ax.plot([], [], "o", color=LEARNER_COLOURS[learner], label=LEARNERS[learner])
    for model in sorted({model for _, model, _ in seen}):
        words = {"nb": "naive Bayes", "qda": "QDA"}[model]
        ax.plot([], [], markers[model], color=INK, markersize=4, label=words)
    if any(stand_in for _, _, stand_in in seen):
        ax.plot([], [], "o", color=INK, markerfacecolor="none", markersize=4, label=STAND_IN)
    tidy(ax)
    ax.set(xlim=(-0.5, ends[1]), ylim=(-0.5, ends[1]), aspect="equal")
    ax.set_xlabel("published test error, %", fontsize=9, color=INK)
    ax.set_ylabel(f"measured test error, %, {protocol}", fontsize=9, color=INK)
    ax.legend(loc="upper left", **LEGEND)
    return figure


def critical_distance(k: int, n: int) -> float:
    """Return how far apart average ranks of k learners over n sets must be to be told apart (Nemenyi)."""
    quantile = studentized_range.ppf(CONFIDENCE, k, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(k * (k + 1) / (6 * n)))


def cliques(ranks: Array, distance: float) -> list[tuple[int, int]]:
    """Return first and last of each longest run of sorted ranks that lie within the distance."""
    found: list[tuple[int, int]] = []
    for i in range(len(ranks)):
        last = int(np.flatnonzero(ranks - ranks[i] <= distance)[-1])
        if last > i and (not found or last > found[-1][1]):
            found.append((i, last))
    return found


def critical_difference(ranks: Array, learners: Sequence[str], title: str) -> Any:
    """Draw learners on the axis of their average ranks; bars join those that are not told apart."""
    n, k = ranks.shape
    mean = ranks.mean(axis=0)
    order = np.argsort(mean, kind="stable")
    sorted_ranks, distance = mean[order], critical_distance(k, n)
    bars = cliques(sorted_ranks, distance)
    half = (k + 1) // 2
    floor = -0.55 - 0.35 * len(bars)
    figure = new_figure(4.9, 1.4 + 0.2 * half + 0.12 * len(bars))
    ax = figure.add_subplot()
    ax.plot([1, k], [0, 0], color=INK, linewidth=1)
    for rank in range(1, k + 1):
        ax.plot([rank, rank], [0, 0.15], color=INK, linewidth=1)
        ax.text(rank, 0.25, str(rank), ha="center", va="bottom", **SMALL)
    for place, (j, rank) in enumerate(zip(order, sorted_ranks, strict=True)):
        good = place < half
        y = floor - 0.55 * (place if good else k - 1 - place)
        edge = 0.75 if good else k + 0.25
        colour = LEARNER_COLOURS[learners[j]]
        ax.plot([rank, rank, edge], [0, y, y], color=colour, linewidth=1.3)
        words, side = f"{LEARNERS[learners[j]]} {rank:.2f}", "right" if good else "left"
        ax.text(edge - 0.05 if good else edge + 0.05, y, words, ha=side, va="center", **SMALL)
    for height, (first, last) in enumerate(bars):
        y = -0.35 - 0.35 * height
        ends = [sorted_ranks[first] - 0.04, sorted_ranks[last] + 0.04]
        ax.plot(ends, [y, y], color=INK, linewidth=3, solid_capstyle="butt")
    ax.plot([1, 1 + distance], [1.35, 1.35], color=INK, linewidth=2)
    words = f"critical difference {distance:.2f}"
    ax.text(1 + distance + 0.1, 1.35, words, ha="left", va="center", **SMALL)
    ax.set(xlim=(1 - 0.45 * k, k + 0.42 * k), ylim=(floor - 0.55 * half, 1.7))
    ax.set_title(title, loc="left", **TITLE)
    ax.axis("off")
    return figure
