"""`riskbayes drift`: which columns of new rows moved since the model was trained, and what is at stake."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from riskbayes.commands._models import load_model
from riskbayes.commands._options import AS_JSON, DATA, MODEL, print_json, reading_options, say
from riskbayes.commands._replacing import sha256
from riskbayes.pages.table import Cell, Mark, Table
from riskbayes.pages.terminal import print_table

if TYPE_CHECKING:
    from riskbayes.estimators.shift import Shift
    from riskbayes.input.files.options import Options

MOST_ROWS = 100_000
"""Rows of a file that are compared, its first ones."""


@click.command()
@MODEL
@click.argument("reference", type=click.Path(), metavar="REFERENCE")
@DATA
@reading_options(kinds=False)
@AS_JSON
def drift(model: str, reference: str, data: str, as_json: bool, options: Options) -> None:
    """Tell which columns of new rows moved, without their labels.

    Compares the rows of the file DATA with those of the file REFERENCE, which has the target too and should
    not be what the model in the file MODEL was trained on. Says which columns moved, whether the classes only
    come at other frequencies, and how much of the accuracy is at stake.
    """
    clf, about = load_model(model)
    X, labels = rows_of(reference, clf, about, options, labelled=True)
    X_new, _ = rows_of(data, clf, about, options)
    found = clf.drift(X_new, X, labels)
    seen = bool(about) and sha256(reference) == about.get("sha256")
    if as_json:
        print_json(as_values(found) | {"reference_was_trained_on": seen})
        return
    if seen:
        say(f"The model was trained on {reference}: its accuracy there is too good. Better hold rows out.")
    show(found)


def rows_of(
    data: str, clf: Any, about: dict[str, Any], options: Options, labelled: bool = False
) -> tuple[Any, Any]:
    """Return the rows of a file as the model reads them, and their labels; drop rows without a label."""
    import numpy as np
    import pyarrow as pa  # an optional dependency, slow to import

    from riskbayes.input.files import UserError
    from riskbayes.input.files.batches import Batches
    from riskbayes.input.files.expected import Expected
    from riskbayes.input.files.table import require_column

    target, parts, labels, number = about.get("target", ""), [], [], 0
    if labelled and not target:
        raise UserError("The model file does not name its target: fit it by `riskbayes fit`.")
    known = {str(label): label for label in clf.classes_.tolist()}
    with Batches(data, Expected.of(clf, about), options) as batches:
        if labelled:
            require_column(batches.name, batches.names, target, "target")
        for batch in batches:
            X = batch.X.slice(0, MOST_ROWS - number)
            number += X.num_rows
            if labelled:
                cells = [
                    str(cell or "").strip() for cell in batch.rows().column(target).to_pylist()[: X.num_rows]
                ]
                there = [i for i, cell in enumerate(cells) if cell]
                strange = next((cells[i] for i in there if cells[i] not in known), None)
                if strange is not None:
                    raise UserError(
                        f"{batches.name} has the label {strange!r} in {target!r}; the model knows "
                        f"{', '.join(map(repr, list(known)[:8]))}."
                    )
                X = X.take(pa.array(there, pa.int64()))
                labels += [known[cells[i]] for i in there]
            parts.append(X)
            if number >= MOST_ROWS:
                break
    if labelled and not labels:
        raise UserError(f"{data} has no row with a label in {target!r}.")
    return pa.concat_tables(parts), np.array(labels, dtype=clf.classes_.dtype) if labelled else None


def as_values(found: Shift) -> dict[str, Any]:
    """Return what was found as JSON has it; None for what is not known."""
    names = [str(label) for label in found.classes.tolist()]
    figures = ("priors_p_value", "accuracy", "accuracy_now", "accuracy_with_priors", "accuracy_without")
    return {
        "verdict": found.verdict,
        "moved": [str(name) for name in found.moved],
        "reference_priors": dict(zip(names, found.reference_priors.tolist(), strict=True)),
        "priors": dict(zip(names, found.priors.tolist(), strict=True)),
        **{name: or_none(getattr(found, name)) for name in figures},
        "columns": [
            {name: or_none(value) for name, value in each._asdict().items()} for each in found.columns
        ],
    }


def or_none(value: Any) -> Any:
    """Return a value, and None for NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def show(found: Shift) -> None:
    """Print what was found, and a table of the columns."""
    from rich.console import Console

    from riskbayes.estimators.shift import HEADS

    for sentence in found.sentences():
        say(sentence)
    kept = [1, 2, 3, 4, 5] if found.priors_moved else [1, 2, 5]
    rows: list[list[Cell]] = [[line[0], *(Mark(line[i]) for i in kept)] for line in found.lines()]
    print_table(Console(), Table([HEADS[0], *(HEADS[i] for i in kept)], rows))
