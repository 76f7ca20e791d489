"""`riskbayes explain`: what each cell of a row contributed to its prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from riskbayes.commands._models import load_model
from riskbayes.commands._options import AS_JSON, DATA, MODEL, print_json, reading_options
from riskbayes.markup import printable

if TYPE_CHECKING:
    from riskbayes.input.files.options import Options

BAR = 20
"""Characters of the longest bar."""


@click.command()
@MODEL
@DATA
@click.option(
    "--row", type=click.IntRange(0), required=True, help="Counted from 0, the first row after the header."
)
@click.option(
    "--for",
    "positive",
    help="The class in favour.  [default: the second of two classes, the most probable of more]",
)
@click.option("--against", "negative", help="The class against.  [default: the most probable other]")
@reading_options(kinds=False)
@AS_JSON
def explain(
    model: str,
    data: str,
    row: int,
    positive: str | None,
    negative: str | None,
    as_json: bool,
    options: Options,
) -> None:
    """Show what the cells of a row contributed.

    The contributions and the prior add up to the log-odds of two classes. Rows and classes are those of
    `clf.explain(table).plot(row)` in Python. Models that are no sum over columns have Shapley values: with
    more than 8 columns these are averages over orders drawn at random, and have standard errors.
    """
    clf, about = load_model(model)
    found = explanation(clf, about, data, row, positive, negative, options)
    if as_json:
        print_json(found)
    else:
        show(found)


def explanation(
    clf: Any, about: dict, data: str, row: int, positive: str | None, negative: str | None, options: Options
) -> dict[str, Any]:
    """Return the contributions of the cells of a row, the largest first."""
    from riskbayes.input.files.expected import Expected

    columns, X, cells = row_of(data, row, Expected.of(clf, about), options)
    labels = {str(label): label for label in clf.classes_.tolist()}
    found = clf.explain(X)
    odds = found.log_odds(label_named(labels, positive), label_named(labels, negative))
    shown = [cells[name] for name in columns]
    names = [*columns, *(f"{columns[a]} x {columns[b]}" for a, b in found.pairs)]
    shown += [f"{shown[a]} x {shown[b]}" for a, b in found.pairs]
    lists = names, shown, odds.values[0].tolist(), odds.errors[0].tolist(), found.read.tolist()
    parts = sorted(zip(*lists, strict=True), key=lambda part: -abs(part[2]))
    return {
        "row": row,
        "probabilities": dict(zip(labels, clf.predict_proba(X)[0].tolist(), strict=True)),
        "for": str(odds.positive[0]),
        "against": str(odds.negative[0]),
        "log_odds": float(odds.total[0]),
        "prior": float(odds.baseline[0]),
        "method": found.method,
        "contributions": [
            {"column": name, "value": cell, "contribution": value, "standard_error": error}
            for name, cell, value, error, read in parts
            if read
        ],
        "not_read": [name for name, *_, read in parts if not read],
    }


def row_of(data: str, row: int, expected: Any, options: Options) -> tuple[list[str], Any, dict[str, Any]]:
    """Return the names of the model's columns, the row as the model reads it, and its cells."""
    from riskbayes.input.files import UserError
    from riskbayes.input.files.batches import Batches
    from riskbayes.input.files.notation import PRESENT

    before = 0
    with Batches(data, expected, options) as batches:
        for batch in batches:
            m = batch.X.num_rows
            if row < before + m:
                own = batch.rows().slice(row - before, 1).to_pylist()[0]
                own = {n: cell.strip() if isinstance(cell, str) else cell for n, cell in own.items()}
                X = batch.X.slice(row - before, 1)
                seen, names = X.to_pylist()[0], list(expected.kinds)
                present = {
                    n: "not missing" for n in names if expected.kinds[n] == PRESENT
                }  # all it reads there
                cells = {
                    n: None if seen[n] is None else present.get(n, own[batches.columns[n]]) for n in names
                }
                return names, X, cells
            before += m
    raise UserError(f"{batches.name} has {before} rows, so there is no row {row}: the first is row 0.")


def label_named(labels: dict[str, Any], name: str | None) -> Any:
    """Return the label that a user names, if any; refuse one that the model does not know."""
    from riskbayes.input.files import UserError

    if name is None:
        return None
    if name not in labels:
        raise UserError(f"The model has no class {name!r}; it has {', '.join(map(repr, list(labels)[:8]))}.")
    return labels[name]


def show(found: dict[str, Any]) -> None:
    """Print the contributions as a table with bars: to the right in favour, to the left against."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    sure = found["probabilities"]
    likely = sorted(sure, key=lambda label: -sure[label])[:5]
    listed = ", ".join(f"{label} {sure[label]:.1%}" for label in likely)
    console.print(Text(printable(f"Row {found['row']}: {listed}")))
    title = f"Log-odds of {found['for']} against {found['against']}: {found['log_odds']:+.2f}"
    table = Table(
        title=Text(printable(title), "table.title"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
    )
    table.add_column("column", overflow="fold")
    table.add_column("cell", overflow="fold")
    table.add_column("log-odds", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    parts = [("prior", "", found["prior"], 0.0)]
    names = ("column", "value", "contribution", "standard_error")
    parts += [tuple(part[name] for name in names) for part in found["contributions"]]
    parts.append(("total", "", found["log_odds"], 0.0))
    largest = max(abs(value) for _, _, value, _ in parts) or 1.0
    for name, cell, value, error in parts:
        bar = ("+" if value > 0 else "-") * round(BAR * abs(value) / largest)
        shown = Text("missing" if cell is None else printable(cell))
        size = f"{value:+.2f} ± {error:.2f}" if error else f"{value:+.2f}"
        table.add_row(Text(printable(name)), shown, size, Text(bar, "green" if value > 0 else "red"))
    console.print(table)
    if any(error for *_, error in parts):
        console.print(Text(f"{found['method']}; ± is a standard error.".capitalize(), "dim"))
    if found["not_read"]:
        console.print(Text(printable(f"Not read by the model: {', '.join(found['not_read'])}"), "dim"))
