"""The demo: closed form against RC, four models on four data sets, judged on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import sklearn
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.model_selection import StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

import riskbayes
from riskbayes.experiments.datasets import BUNDLED, load_bundled
from riskbayes.experiments.figures import path_figure
from riskbayes.experiments.fitting import Fitted, fit_and_judge, make_rows
from riskbayes.experiments.page import Section, page
from riskbayes.experiments.results import verdict
from riskbayes.experiments.svg import embed_svg, svg_source
from riskbayes.experiments.tables import Cell, Mark, Table, Value, as_html
from riskbayes.learners import RC
from riskbayes.plotting import no_pictures

DATA_SETS = BUNDLED
MODELS = {
    "CategoricalNB": (riskbayes.CategoricalNB, "bins"),
    "GaussianNB": (riskbayes.GaussianNB, "raw"),
    "LDA": (riskbayes.LinearDiscriminantAnalysis, "raw"),
    "QDA": (riskbayes.QuadraticDiscriminantAnalysis, "raw"),
}
"""Names to classes, and to the form of the rows that they take."""

LEARNERS = {"closed_form": "closed form", "rc": "RC"}
TEST_SIZE = 0.25
ROUNDING = 1e-9
"""Sums of the same fractions differ in the last bits: a difference of less is called equal."""

DAGGER = "\u2020"
SPLITS = "b/e/w: on how many splits RC is better/equal/worse."
FOOTNOTE = (
    f"{DAGGER} A covariance without full rank was floored, by both learners: the training rows do not "
    "determine it."
)


@dataclass(frozen=True)
class Comparison:
    """Closed form against RC on one data set with one model.

    Parameters
    ----------
    data_set, model : str
        What was fitted on what.
    n_test : int
        Number of held-out rows of a split.
    closed_form, rc : tuple of float
        Test errors in percent, split by split.
    floored : bool, default=False
        True if a covariance of the closed form is on its floor.
    paths : tuple of tuples of float, default=()
        Soft error of the training rows for each model that RC kept, split by split.
    """

    data_set: str
    model: str
    n_test: int
    closed_form: tuple[float, ...]
    rc: tuple[float, ...]
    floored: bool = False
    paths: tuple[tuple[float, ...], ...] = ()

    @property
    def difference(self) -> float:
        """Mean of RC minus mean of the closed form, in points; below zero RC is better."""
        return float(np.mean(np.subtract(self.rc, self.closed_form)))

    @property
    def verdict(self) -> str:
        """RC is "better", "worse" or "equal" on average."""
        return verdict(self.difference, ROUNDING)

    @property
    def splits(self) -> list[int]:
        """On how many splits RC is better, equal, worse."""
        each = [verdict(gap, ROUNDING) for gap in np.subtract(self.rc, self.closed_form)]
        return [each.count(kind) for kind in ("better", "equal", "worse")]


def run_demo(
    data_sets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    n_splits: int = 5,
    console: Console | None = None,
) -> list[Comparison]:
    """Fit every model by every learner on stratified splits, and test on the rows held out.

    Data sets and models are names from `DATA_SETS` and `MODELS`, by default all of them. The progress bar
    goes to the console, by default to standard error.
    """
    sets, kinds = list(data_sets or DATA_SETS), list(models or MODELS)
    console = console or Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description:<46}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # a log file would get an empty line
    )
    found = []
    # The sets are small: several threads would only wait for one another.
    with progress, threadpool_limits(1):
        task = progress.add_task("", total=len(sets) * n_splits * len(kinds) * len(LEARNERS))
        for name, kind in ((name, kind) for name in sets for kind in kinds):
            data, (model, form) = load_bundled(name), MODELS[kind]
            shown = name.replace("_", " ")
            splitter = StratifiedShuffleSplit(n_splits, test_size=TEST_SIZE, random_state=0)
            fits: dict[str, list[Fitted]] = {learner: [] for learner in LEARNERS}
            for split, (train, test) in enumerate(splitter.split(data.X, data.y)):
                rows = make_rows(data, train, test, form)
                for learner, words in LEARNERS.items():
                    running = f"{shown}: {kind}, {words}, split {split + 1} of {n_splits}"
                    progress.update(task, description=running)
                    fits[learner].append(fit_and_judge(model(learner=learner), rows, learner == "rc"))
                    progress.advance(task)
            plain, rc = (tuple(100 * float(f.wrong[-1].mean()) for f in own) for own in fits.values())
            floored = any(f.floored for own in fits.values() for f in own)
            paths = tuple(f.soft_error for f in fits["rc"])
            found.append(Comparison(shown, kind, len(test), plain, rc, floored, paths))
    return found


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return mean and standard deviation of the test errors, and what RC changes."""
    rows: list[list[Cell]] = []
    for c in comparisons:
        change = Mark(f"{c.difference:+.2f} {c.verdict}" if c.verdict != "equal" else "equal", c.verdict)
        model = f"{c.model} {DAGGER}" if c.floored else c.model
        splits = "/".join(map(str, c.splits))
        errors = [Value.over(own, digits=2) for own in (c.closed_form, c.rc)]
        rows.append([c.data_set, model, *errors, change, splits])
    headers = ["data set", "model", "closed form", "RC", "difference", "b/e/w"]
    return Table(headers, rows, "Error on held-out rows, percent")


def tally(comparisons: Sequence[Comparison]) -> str:
    """Return in how many rows RC is better, equal and worse, in a sentence."""
    n = {kind: sum(c.verdict == kind for c in comparisons) for kind in ("better", "equal", "worse")}
    return (
        f"By the mean over splits RC is better in {n['better']} of {len(comparisons)} rows, equal in "
        f"{n['equal']} and worse in {n['worse']}."
    )


def demo_page(comparisons: Sequence[Comparison], command: str) -> str:
    """Return the page of what `run_demo` gave; it names the command that made it."""
    lead = (
        "<p>Risk-based calibration (RC) starts from the closed form of a generative classifier and moves "
        "the statistics that it is computed from, guided by the errors of the training rows.</p>\n"
        '<p class="note">\u201cCalibration\u201d here adjusts the model\u2019s statistics; it is not '
        "probability calibration (Platt, isotonic).</p>"
    )
    sizes = ", ".join(f"{name} {n}" for name, n in {c.data_set: c.n_test for c in comparisons}.items())
    ran = (
        f"<dl><dt>Command</dt><dd><code>{escape(command)}</code></dd>\n"
        f"<dt>Version</dt><dd>riskbayes {riskbayes.__version__}, scikit-learn {sklearn.__version__}, "
        f"NumPy {np.__version__}</dd>\n"
        f"<dt>Protocol</dt><dd>Held out: {len(comparisons[0].rc)} stratified random splits, "
        f"{1 - TEST_SIZE:.0%} of the rows to train on and {TEST_SIZE:.0%} to test on; nothing, the bins of "
        "CategoricalNB included, is learned from the test rows.</dd>\n"
        f"<dt>Test rows</dt><dd>{escape(sizes)} a split</dd>\n"
        "<dt>Learners</dt><dd>The closed form (maximum likelihood, for CategoricalNB with one pseudo-count), "
        f'and RC as <code>learner="rc"</code> means it, <code>{escape(repr(RC.recommended()))}</code>: '
        f"adaptive steps that lower the log loss, at most {RC.recommended().max_iter} scans of the data, and "
        "an anchor that holds small sets closer to their closed form.</dd></dl>"
    )
    footnotes = [
        "Mean \u00b1 standard deviation over splits. Difference: RC minus closed form, in percentage points. "
        + SPLITS,
        f"The sets are small: one row of {comparisons[0].data_set} is {100 / comparisons[0].n_test:.1f} "
        "points of a split, and the splits share rows. A small difference decides nothing.",
    ]
    if any(c.floored for c in comparisons):
        footnotes.append(FOOTNOTE)
    table = comparison_table(comparisons)
    result = f"<p>{tally(comparisons)}</p>\n{as_html(table)}\n" + "\n".join(
        f'<p class="small">{escape(note)}</p>' for note in footnotes
    )
    shown = f"<p>{escape(why)}</p>" if (why := no_pictures()) else path_section(comparisons)
    return page(
        "Closed form against risk-based calibration",
        lead,
        [
            Section("What was run", ran),
            Section(table.title, result),
            Section("Soft error of the training rows", shown),
        ],
    )


def path_section(comparisons: Sequence[Comparison]) -> str:
    """Return the paths of RC, a picture for each data set and model, and how to read them."""
    panels = []
    length = max(len(path) for c in comparisons for path in c.paths) - 1
    for i, c in enumerate(comparisons):
        figure = path_figure([[100 * value for value in path] for path in c.paths], length, "soft error, %")
        steps = sorted({len(path) - 1 for path in c.paths})
        kept = f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else str(steps[0])
        about = f"Training soft error by iteration: {c.data_set}, {c.model}: {kept} steps kept."
        caption = f'{escape(c.data_set)}, {c.model}<br><span class="small">{kept} steps kept</span>'
        svg = embed_svg(svg_source(figure, f"path{i}"), about, f"path{i}")
        panels.append(f"<figure><figcaption>{caption}</figcaption>\n{svg}</figure>")
    grid = "\n".join(panels)
    return (
        "<p>Soft error of the training rows (in-train, unlike the table) along the iterations of RC; "
        "iteration 0 is the closed form. A thin line is a split and ends, in a dot, where RC stopped; the "
        "thick line is the median, in which a split that stopped stays at the model it kept.</p>\n"
        f'<div class="grid">\n{grid}\n</div>'
    )
