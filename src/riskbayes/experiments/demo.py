"""The demo: closed form against RC, four models on four data sets, judged on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import sklearn
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import riskbayes
from riskbayes.experiments.report import Cell, Section, Table, html_table, page, path_figure
from riskbayes.experiments.svg import inline_svg
from riskbayes.learners import RC
from riskbayes.plotting import no_pictures
from riskbayes.preprocessing import KMeansBins

DATA_SETS: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}

MODELS: dict[str, Callable[[str], Any]] = {
    "CategoricalNB": lambda learner: make_pipeline(KMeansBins(), riskbayes.CategoricalNB(learner=learner)),
    "GaussianNB": lambda learner: riskbayes.GaussianNB(learner=learner),
    "LDA": lambda learner: riskbayes.LinearDiscriminantAnalysis(learner=learner),
    "QDA": lambda learner: riskbayes.QuadraticDiscriminantAnalysis(learner=learner),
}

LEARNERS = {"closed_form": "closed form", "rc": "RC"}
TEST_SIZE = 0.25
DAGGER = "\u2020"
SPLITS = "b/e/w: on how many splits RC is better/equal/worse."
FOOTNOTE = (
    f"{DAGGER} A covariance without full rank was floored, by both learners: the training rows do not "
    "determine it."
)


@dataclass(frozen=True)
class Fit:
    """One row of the long table: a model, fitted on the training rows of one split.

    Parameters
    ----------
    data_set, model, learner : str
        What was fitted on what, and how.
    split : int
        Number of the split, from 0.
    n_test : int
        Number of held-out rows.
    test_error : float
        Share of them that was misclassified.
    path : tuple of float
        Soft error of the training rows, for each model that the learner kept; the closed form keeps none.
    floored : bool
        Whether the closed form itself sits on a floor.
    """

    data_set: str
    model: str
    learner: str
    split: int
    n_test: int
    test_error: float
    path: tuple[float, ...]
    floored: bool


@dataclass(frozen=True)
class Comparison:
    """Closed form against RC on one data set with one model: test errors in percent, split by split."""

    data_set: str
    model: str
    n_test: int
    closed_form: tuple[float, ...]
    rc: tuple[float, ...]
    floored: bool

    @property
    def difference(self) -> float:
        """Mean of RC minus mean of the closed form, in points; below zero RC is better."""
        return float(np.mean(np.subtract(self.rc, self.closed_form)))

    @property
    def verdict(self) -> str:
        """RC is "better", "worse" or "equal" on average."""
        return verdict(self.difference)

    @property
    def splits(self) -> list[int]:
        """On how many splits RC is better, equal, worse."""
        each = [verdict(b - a) for a, b in zip(self.closed_form, self.rc, strict=True)]
        return [each.count(kind) for kind in ("better", "equal", "worse")]


def verdict(difference: float) -> str:
    """What a difference of errors means; sums of the same fractions differ in the last bits."""
    return "equal" if abs(difference) < 1e-9 else "better" if difference < 0 else "worse"


def run_demo(
    data_sets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    n_splits: int = 5,
    console: Console | None = None,
) -> list[Fit]:
    """Fit every model by every learner on stratified splits, and test on the rows held out.

    Parameters
    ----------
    data_sets, models : list of str, default=None
        Names from `DATA_SETS` and `MODELS`; by default all.
    n_splits : int, default=5
        Number of splits.
    console : rich Console, default=None
        Where the progress bar goes; by default standard error.

    Returns
    -------
    fits : list of Fit
        The long table.
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
    fits = []
    # The sets are small: several threads would only wait for one another.
    with progress, threadpool_limits(1):
        task = progress.add_task("", total=len(sets) * n_splits * len(kinds) * len(LEARNERS))
        for name in sets:
            X, y = DATA_SETS[name](return_X_y=True)
            splitter = StratifiedShuffleSplit(n_splits, test_size=TEST_SIZE, random_state=0)
            for split, (train, test) in enumerate(splitter.split(X, y)):
                for kind in kinds:
                    for learner, words in LEARNERS.items():
                        running = f"{name}: {kind}, {words}, split {split + 1} of {n_splits}"
                        progress.update(task, description=running)
                        clf, floored = fit(MODELS[kind](learner), X[train], y[train])
                        error = float(np.mean(clf.predict(X[test]) != y[test]))
                        row = Fit(name, kind, learner, split, len(test), error, kept_path(clf), floored)
                        fits.append(row)
                        progress.advance(task)
    return fits


def fit(clf: Any, X: Any, y: Any) -> tuple[Any, bool]:
    """The fitted classifier, and whether it warned of a floor; other warnings pass."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", riskbayes.FlooredWarning)
        clf.fit(X, y)
    floored = False
    for w in caught:
        if issubclass(w.category, riskbayes.FlooredWarning):
            floored = True
        else:
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    return clf, floored


def kept_path(clf: Any) -> tuple[float, ...]:
    """Soft error of the training rows, for each model that was kept on the way."""
    history = (clf[-1] if hasattr(clf, "steps") else clf).history_
    return tuple(history["soft_error"][history["accepted"]].tolist())


def compare(fits: Sequence[Fit]) -> list[Comparison]:
    """The summary: one comparison a data set and model, in the order of the long table."""
    found = []
    for name, kind in dict.fromkeys((f.data_set, f.model) for f in fits):
        own = [f for f in fits if (f.data_set, f.model) == (name, kind)]
        errors = {
            learner: tuple(100 * f.test_error for f in own if f.learner == learner) for learner in LEARNERS
        }
        floored = any(f.floored for f in own)
        found.append(Comparison(name, kind, own[0].n_test, errors["closed_form"], errors["rc"], floored))
    return found


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Mean and standard deviation of the test errors, and what RC changes."""
    rows: list[list[str | Cell]] = []
    for c in comparisons:
        change = Cell(f"{c.difference:+.2f} {c.verdict}" if c.verdict != "equal" else "equal", c.verdict)
        model = f"{c.model} {DAGGER}" if c.floored else c.model
        splits = "/".join(map(str, c.splits))
        rows.append([c.data_set, model, spread(c.closed_form), spread(c.rc), change, splits])
    headers = ["data set", "model", "closed form", "RC", "difference", "b/e/w"]
    return Table(headers, rows, text_columns=2)


def spread(errors: Sequence[float]) -> str:
    """Mean and standard deviation over splits."""
    deviation = f" \u00b1 {np.std(errors, ddof=1):.2f}" if len(errors) > 1 else ""
    return f"{np.mean(errors):.2f}{deviation}"


def tally(comparisons: Sequence[Comparison]) -> str:
    """In how many rows RC is better, equal and worse, in a sentence."""
    n = {kind: sum(c.verdict == kind for c in comparisons) for kind in ("better", "equal", "worse")}
    return (
        f"By the mean over splits RC is better in {n['better']} of {len(comparisons)} rows, equal in "
        f"{n['equal']} and worse in {n['worse']}."
    )


def demo_page(fits: Sequence[Fit], command: str) -> str:
    """The page of a demo.

    Parameters
    ----------
    fits : list of Fit
        What `run_demo` gave.
    command : str
        The command that made it.

    Returns
    -------
    html : str
        A page that needs nothing else.
    """
    comparisons = compare(fits)
    n_splits = len(comparisons[0].rc)
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
        f"<dt>Protocol</dt><dd>Held out: {n_splits} stratified random splits, {1 - TEST_SIZE:.0%} of the "
        f"rows to train on and {TEST_SIZE:.0%} to test on; nothing, the bins of CategoricalNB included, is "
        "learned from the test rows.</dd>\n"
        f"<dt>Test rows</dt><dd>{escape(sizes)} a split</dd>\n"
        "<dt>Learners</dt><dd>The closed form (maximum likelihood, for CategoricalNB with one pseudo-count), "
        f'and RC as <code>learner="rc"</code> means it, <code>{escape(repr(RC.recommended()))}</code>: '
        f"adaptive steps that lower the log loss, at most {RC.recommended().max_iter} scans of the data, and "
        "an anchor that holds small sets closer to their closed form.</dd></dl>"
    )
    n = comparisons[0].n_test
    footnotes = [
        "Mean \u00b1 standard deviation over splits. Difference: RC minus closed form, in percentage points. "
        + SPLITS,
        f"The sets are small: one row of {comparisons[0].data_set} is {100 / n:.1f} points of a split, and "
        "the splits share rows. A small difference decides nothing.",
    ]
    if any(c.floored for c in comparisons):
        footnotes.append(FOOTNOTE)
    result = f"<p>{tally(comparisons)}</p>\n{html_table(comparison_table(comparisons))}\n" + "\n".join(
        f'<p class="small">{escape(note)}</p>' for note in footnotes
    )
    shown = f"<p>{escape(why)}</p>" if (why := no_pictures()) else path_section(fits)
    return page(
        "Closed form against risk-based calibration",
        lead,
        [
            Section("What was run", ran),
            Section("Error on held-out rows, percent", result),
            Section("Soft error of the training rows", shown),
        ],
    )


def path_section(fits: Sequence[Fit]) -> str:
    """The paths of RC, and how to read them."""
    panels = "\n".join(path_panels(fits))
    return (
        "<p>Soft error of the training rows (in-train, unlike the table) along the iterations of RC; "
        "iteration 0 is the closed form. A thin line is a split and ends, in a dot, where RC stopped; the "
        "thick line is the median, in which a split that stopped stays at the model it kept.</p>\n"
        f'<div class="grid">\n{panels}\n</div>'
    )


def path_panels(fits: Sequence[Fit]) -> list[str]:
    """One picture a data set and model."""
    panels = []
    calibrated = [f for f in fits if f.learner == "rc"]
    length = max(len(f.path) for f in calibrated) - 1
    for i, (name, kind) in enumerate(dict.fromkeys((f.data_set, f.model) for f in fits)):
        own = [f.path for f in calibrated if (f.data_set, f.model) == (name, kind)]
        figure = path_figure([[100 * value for value in path] for path in own], length, "soft error, %")
        steps = sorted({len(path) - 1 for path in own})
        kept = f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else str(steps[0])
        about = f"{name}, {kind}: {kept} steps kept"
        svg = inline_svg(figure, f"Training soft error by iteration: {about}.", f"path{i}")
        caption = f'{escape(name)}, {kind}<br><span class="small">{kept} steps kept</span>'
        panels.append(f"<figure><figcaption>{caption}</figcaption>\n{svg}</figure>")
    return panels
