"""`riskbayes predict`: predictions for a file of any size, beside its own columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from riskbayes.commands._models import load_model
from riskbayes.commands._options import (
    AS_JSON,
    DATA,
    FORCE_FILE,
    MODEL,
    OUT,
    print_json,
    reading_options,
    say,
)
from riskbayes.commands._replacing import refuse_existing, refuse_inputs

if TYPE_CHECKING:
    from riskbayes.input.files.options import Options


@click.command()
@MODEL
@DATA
@OUT
@click.option("--labels-only", is_flag=True, help="Add the column `predicted` alone.")
@click.option("--probabilities", is_flag=True, help="Add the columns p_CLASS alone.")
@FORCE_FILE
@reading_options(kinds=False)
@AS_JSON
def predict(
    model: str,
    data: str,
    out: str,
    labels_only: bool,
    probabilities: bool,
    force: bool,
    as_json: bool,
    options: Options,
) -> None:
    """Add predictions to a file of any size.

    Writes the rows of the file DATA with predictions by the model in the file MODEL. The columns of DATA stay
    as they are; `predicted` and, for each class, its probability `p_CLASS` follow. DATA is read in batches
    and may be larger than memory.
    """
    if labels_only and probabilities:
        raise click.UsageError("--labels-only and --probabilities exclude each other.")
    refuse_inputs([out], data, model)
    if not force:
        refuse_existing(out)
    clf, about = load_model(model)

    from riskbayes.commands import _predicting

    what = "labels" if labels_only else "probabilities" if probabilities else "both"
    done = _predicting.predict_file(clf, about, data, out, what, options)
    to_stderr = out == "-"
    if as_json:
        print_json(done, to_stderr)
    elif not to_stderr:
        say(f"{done['rows']} rows: {out}")
