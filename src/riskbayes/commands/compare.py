"""`riskbayes compare`: how well a column of a file can be predicted, by which model, and what is wrong."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from riskbayes.commands._completion import columns_of_file
from riskbayes.commands._options import AS_JSON, DATA, FORCE, reading_options, say
from riskbayes.commands._paths import NEW_FOLDER, check_folder
from riskbayes.commands._replacing import refuse_inputs, refuse_other_results, sha256
from riskbayes.commands.drift import rows_of
from riskbayes.commands.fit import STRATEGIES
from riskbayes.progress import progress_bar

if TYPE_CHECKING:
    from riskbayes.compare import Comparison
    from riskbayes.input.files.options import Options
    from riskbayes.input.files.table import ReadTable

REPORT = "report"
"""The default folder."""

METRICS = ("log_loss", "error", "brier", "auc")

FILES = ("report.html", "report.json", "report.md", "model.rb")


@click.command()
@DATA
@click.option("--target", required=True, shell_complete=columns_of_file, help="The column to predict.")
@click.option(
    "--cv", type=click.IntRange(2), help="Folds.  [default: 5 below 2000 rows, else a quarter held out]"
)
@click.option(
    "--time-column",
    shell_complete=columns_of_file,
    help="Hold out about the last quarter of the rows by this column.",
)
@click.option(
    "--group",
    shell_complete=columns_of_file,
    help="A column of groups that are never on both sides of the split.",
)
@click.option(
    "--against",
    type=click.Path(),
    help="A file of new rows, without labels: how they differ from rows held out is a finding, RB033.",
)
@click.option(
    "--strategy",
    "strategies",
    type=click.Choice(STRATEGIES),
    multiple=True,
    help="Of RiskBayesClassifier; repeatable.  [default: single]",
)
@click.option(
    "--metric",
    type=click.Choice(METRICS),
    default="log_loss",
    show_default=True,
    help="The figure that the best model is chosen by.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the split and the models."
)
@click.option(
    "--ignore", multiple=True, metavar="CODE", help="A finding to leave out, such as RB004; repeatable."
)
@click.option(
    "--max-rows", type=click.IntRange(100), default=50_000, show_default=True, help="Sample above this."
)
@click.option(
    "--out",
    type=NEW_FOLDER,
    help=f"Folder of {', '.join(FILES)}.  [default: {REPORT}; with --json, none]",
)
@FORCE
@reading_options(kinds=True)
@AS_JSON
def compare(
    data: str,
    target: str,
    cv: int | None,
    time_column: str | None,
    group: str | None,
    against: str | None,
    strategies: tuple[str, ...],
    metric: str,
    seed: int,
    ignore: tuple[str, ...],
    max_rows: int,
    out: Path | None,
    force: bool,
    as_json: bool,
    options: Options,
) -> None:
    """Compare models on a file, on rows that they were not trained on.

    DATA is a CSV, Parquet or Arrow file. The answer, a table of models and what is wrong with the data are
    printed; a page with more of it and the best model, fitted to all rows, are written to a folder.
    """
    folder = out if out is not None or as_json else Path(REPORT)
    files = [folder / name for name in FILES] if folder is not None else []
    refuse_inputs(files, data, *([against] if against else []))
    if folder is not None:  # before the work, not after it
        check_folder(folder, *FILES)

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    from riskbayes.compare import compare as run
    from riskbayes.compare.terminal import print_report
    from riskbayes.input.files.table import read_table, require_column

    read = read_table(data, options, [target])
    table = read.table.drop_columns(options.unread)
    if against:  # before the work, not after it
        new = read_table(against, options).table.column_names
        for name in table.column_names:
            if name not in (target, time_column, group):
                require_column(against, new, name, "model")
    if files and not force:
        refuse_other_results(data, target, files[-1], *files[:-1])
    bar = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with progress_bar(*bar, words="reading") as show:
        found = run(
            table,
            target,
            cv=cv,
            time_column=time_column,
            group=group,
            columns=options.of_features(set(table.column_names) - {target, time_column, group}),
            strategies=strategies or ("single",),
            metric=metric,
            seed=seed,
            ignore=ignore,
            progress=lambda model, done, total: show(description=model, completed=done, total=total),
            name=Path(data).name,
            command=command_line(),
            max_rows=max_rows,
            sha256=sha256(data) or "",
            findings=read.findings,
        )
    dropped = [*(name for name in (time_column, group) if name), *options.unread]
    about = stored(found, read, data, dropped, seed)
    if against:
        X_new, _ = rows_of(against, found.model, about, options)
        found = found.against(X_new, Path(against).name)
    if folder is not None:  # first of all: a reader of what is printed may go away
        write(found, folder, about)
    if as_json:
        click.echo(found.report.to_json())
    else:
        print_report(found.report, Console())
    if folder is not None:
        say(f"The report: {folder / FILES[0]}", as_json)
        say(f"The model: {folder / FILES[-1]}", as_json)


def command_line() -> str:
    """Return the command as it was typed, for a shell."""
    context = click.get_current_context()
    given: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if context.get_parameter_source(parameter.name or "") is not click.core.ParameterSource.COMMANDLINE:
            continue
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(parameter, click.Argument):
                given.append(str(one))
            elif isinstance(parameter, click.Option) and parameter.is_flag:
                given.append(parameter.opts[0] if value else parameter.secondary_opts[0])
            else:
                given += [parameter.opts[0], "=".join(one) if isinstance(one, tuple) else str(one)]
    return shlex.join(["riskbayes", "compare", *given])


def stored(
    found: Comparison, read: ReadTable, data: str, dropped: Sequence[str], seed: int
) -> dict[str, Any]:
    """Return what the model file says about the model: as `riskbayes fit`, with the figures of the report."""
    from riskbayes.commands import _training

    report = found.report
    best = next(one for one in report.contenders if one.name == report.best)
    base = next(one for one in report.contenders if one.kind == "baseline")
    held = {name: score.value for name, score in best.scores.items() if score.value is not None}
    held["error"] /= 100  # a share there
    majority = (base.scores["error"].value or 0.0) / 100
    figures = {"rows": report.split.test_rows, "majority_error": majority, **held}
    target, classes = report.data.target, {each.label: each.rows for each in report.data.classes}
    schema = read.table.drop_columns([target, *dropped]).schema
    lost = report.data.rows_without_target
    origin = _training.origin_of(data, target, schema, classes, lost, None, dropped, read.notations)
    return {**_training.describe(found.model, origin, figures, seed), "compared": report.best}


def write(found: Comparison, folder: Path, about: dict[str, Any]) -> None:
    """Write the page, the report as JSON and as Markdown, and the model: all of them, or none."""
    from riskbayes.new_files import new_files
    from riskbayes.persistence.files import write_model

    report = found.report
    folder.mkdir(parents=True, exist_ok=True)
    with new_files(*(folder / name for name in FILES)) as (*texts, model):
        for file, text in zip(texts, (report.to_html(), report.to_json(), report.to_markdown()), strict=True):
            file.write(text.encode())
        write_model(found.model, model, about)
