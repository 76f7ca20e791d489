"""`riskbayes sample`: rows drawn from the joint of a model."""

from __future__ import annotations

from typing import Any

import click

from riskbayes.commands._models import load_model
from riskbayes.commands._options import AS_JSON, FORCE_FILE, MODEL, OUT, print_json, say
from riskbayes.commands._replacing import refuse_existing, refuse_inputs


@click.command()
@MODEL
@click.option("-n", "--rows", type=click.IntRange(1), default=100, show_default=True, help="Rows to draw.")
@OUT
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Makes the draw repeatable."
)
@FORCE_FILE
@AS_JSON
def sample(model: str, rows: int, out: str, seed: int, force: bool, as_json: bool) -> None:
    """Draw new rows from a model.

    A model has a joint to draw from if it is a density of all columns: riskbayes fit --model MixedNB.
    """
    from riskbayes.input.files import UserError

    refuse_inputs([out], model)
    if not force:
        refuse_existing(out)
    clf, about = load_model(model)
    try:
        X, y = clf.sample(rows, random_state=seed)
    except NotImplementedError as error:
        raise UserError(f"{error} By command: riskbayes fit --model MixedNB.") from error

    from riskbayes.commands._output import write_table

    table = drawn_table(clf, X, y, about.get("target") or "target")
    if as_json:
        print_json({"rows": table.to_pylist()})
    else:
        write_table(table, out)
    if out != "-" and not as_json:
        say(f"{rows} rows: {out}")


def drawn_table(clf: Any, X: Any, y: Any, target: str) -> Any:
    """Return drawn rows and labels as an Arrow table."""
    import numpy as np
    import pyarrow as pa

    names = getattr(clf, "feature_names_in_", None)
    if isinstance(X, np.ndarray):
        names = [f"column{j + 1}" for j in range(X.shape[1])] if names is None else list(map(str, names))
        X = pa.table([pa.array(X[:, j].tolist(), from_pandas=True) for j in range(X.shape[1])], names=names)
    elif not isinstance(X, pa.Table):
        import narwhals as nw

        X = nw.from_native(X, eager_only=True).to_arrow()
    return X.append_column(target, pa.array(y.tolist()))
