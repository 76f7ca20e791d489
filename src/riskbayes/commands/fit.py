"""`riskbayes fit`: a model from a file, with held-out figures beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from riskbayes.commands._completion import columns_of_file
from riskbayes.commands._models import show_pairs
from riskbayes.commands._options import (
    AS_JSON,
    DATA,
    FORCE,
    print_json,
    reading_options,
    say,
    show_findings,
)
from riskbayes.commands._paths import NEW_FILE, check_folder
from riskbayes.commands._replacing import refuse_inputs, refuse_other_results
from riskbayes.markup import printable

if TYPE_CHECKING:
    from riskbayes.input.files.options import Options

STRATEGIES = ("auto", "single", "glass", "neighbours", "cv", "ensemble")
LEARNERS = ("rc", "closed_form", "rc_cv", "tm", "dfe", "gd")
DEFAULT_MODEL = "RiskBayesClassifier"


SHORT = {"lda": "LinearDiscriminantAnalysis", "qda": "QuadraticDiscriminantAnalysis"}
COMPOSED = ("GenerativeClassifier", "ProductOfExperts")
"""Estimators that cannot be made without other objects."""


def as_model(value: str) -> str:
    """Return the name of an estimator of this package, in any case; lda and qda are short for two of them."""
    import riskbayes.estimators as estimators

    known = {name.lower(): name for name in estimators.__all__ if name not in COMPOSED}
    if (found := {**known, **SHORT}.get(value.lower())) is None:
        raise click.BadParameter(f"{value!r} is none of {', '.join(known.values())}, lda, qda.")
    return found


@click.command()
@DATA
@click.option("--target", required=True, shell_complete=columns_of_file, help="The column to predict.")
@click.option("-o", "--out", type=NEW_FILE, default="model.rb", show_default=True, help="File of the model.")
@click.option(
    "--model", type=as_model, default=DEFAULT_MODEL, show_default=True, metavar="MODEL", help="The estimator."
)
@click.option("--strategy", type=click.Choice(STRATEGIES), help=f"Of {DEFAULT_MODEL}.  [default: single]")
@click.option("--learner", type=click.Choice(LEARNERS), help="Of the other models.  [default: rc]")
@click.option("--weight", shell_complete=columns_of_file, help="A column of weights of the rows.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the split and the fit."
)
@click.option(
    "--held-out/--no-held-out", default=True, help="First hold rows out as `compare` does, for figures."
)
@FORCE
@reading_options(kinds=True)
@AS_JSON
def fit(
    data: str,
    target: str,
    out: Path,
    model: str,
    strategy: str | None,
    learner: str | None,
    weight: str | None,
    seed: int,
    held_out: bool,
    force: bool,
    as_json: bool,
    options: Options,
) -> None:
    """Fit a model to a file and write it to a file.

    DATA is a CSV (plain or compressed; delimiter, encoding and decimal comma are detected), a Parquet or
    Arrow file or a folder of them, or - for standard input. The model is fitted to all rows; its figures are
    those of rows that were held out first: by five folds below 2000 rows, else a quarter, the same rows that
    `riskbayes compare` with the same seed holds out.
    """
    if strategy is not None and model != DEFAULT_MODEL:
        raise click.UsageError(f"--strategy is of {DEFAULT_MODEL}, and --model is {model}.")
    if learner is not None and model == DEFAULT_MODEL:
        raise click.UsageError(f"--learner needs another --model: {DEFAULT_MODEL} chooses for itself.")
    refuse_inputs([out], data)
    check_folder(out.parent)

    from rich.console import Console
    from rich.text import Text

    from riskbayes.commands import _training

    console = Console(stderr=True)
    with console.status("") as status:
        tell = (
            (lambda text: status.update(Text(printable(text)))) if console.is_terminal else lambda text: None
        )
        tell(f"reading {data}")
        task = _training.read(data, target, weight, options)
        if not force:
            refuse_other_results(data, target, out)
        columns = options.of_features(task.X.column_names)
        clf = _training.estimator(model, strategy, learner, columns, seed)
        figures: dict[str, Any] = {}
        if held_out:
            tell("fitting to a part of the rows, for figures on the rest")
            figures = _training.held_out_figures(clf, task, seed)
        tell(f"fitting to {len(task.y)} rows")
        clf.fit(task.X, task.y, sample_weight=task.weights)
        about = _training.describe(clf, task.origin, figures, seed)
        out.parent.mkdir(parents=True, exist_ok=True)
        clf.save(out, about=about)
    show_findings([*task.findings, *(each for each in clf.checks_ if each.severity == "warning")])
    if as_json:
        print_json({"out": str(out), **about})
        return
    show_pairs(_training.summary(about))
    say(f"The model: {out}")
