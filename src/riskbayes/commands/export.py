"""`riskbayes export`: a model for a program that has no Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from riskbayes.commands._models import load_model
from riskbayes.commands._options import AS_JSON, FORCE_FILE, MODEL, print_json, say
from riskbayes.commands._replacing import refuse_existing, refuse_inputs

FORMS = ("js", "json", "onnx")


@click.command()
@MODEL
@click.option(
    "--to",
    "form",
    type=click.Choice(FORMS),
    help="A module of plain JavaScript, its JSON alone, or ONNX.  [default: by the ending of --out, else js]",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False),
    help="File.  [default: the name of the model with the ending js, json or onnx]",
)
@click.option(
    "--contributions",
    is_flag=True,
    help="In ONNX too: a third output of what each column adds. The other two have it where there is one.",
)
@FORCE_FILE
@AS_JSON
def export(
    model: str, form: str | None, out: str | None, contributions: bool, force: bool, as_json: bool
) -> None:
    """Write a model for a browser, for JavaScript or for onnxruntime.

    A module exports predict(row) and contributions(row) and imports nothing.
    """
    from riskbayes.input.files import UserError
    from riskbayes.new_files import write_files

    form = form or form_of(out)
    path = Path(out or Path(model).with_suffix(f".{form}").name)
    refuse_inputs([str(path)], model)
    if not force:
        refuse_existing(str(path))
    clf, _ = load_model(model)
    try:
        content, about = exported(clf, form, contributions)
    except NotImplementedError as error:
        raise UserError(str(error)) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    write_files({path: content})
    found = {"out": str(path), "to": form, "bytes": path.stat().st_size, **about}
    if as_json:
        print_json(found)
    else:
        told = "predict(row) and contributions(row)" if found["contributions"] else "predict(row)"
        what = f"outputs {', '.join(found['outputs'])}" if form == "onnx" else told
        say(f"{clf.__class__.__name__}, {found['bytes']} bytes, {what}: {path}")


def form_of(out: str | None) -> str:
    """Return the form that the ending of a file names; js without a file."""
    from riskbayes.input.files import UserError

    if out is None:
        return FORMS[0]
    found = {"mjs": "js"}.get(ending := Path(out).suffix.lower().removeprefix("."), ending)
    if found not in FORMS:
        raise UserError(
            f"Cannot tell the form of {out}: its name must end with .js, .mjs, .json or .onnx. Or say it: "
            "--to js."
        )
    return found


def exported(clf: Any, form: str, contributions: bool) -> tuple[str | bytes, dict[str, Any]]:
    """Return the content of the file, and what there is in it."""
    from riskbayes.export import portable, to_javascript, to_json

    if form == "onnx":
        found = clf.to_onnx(contributions=contributions)
        outputs = [output.name for output in found.graph.output]
        return found.SerializeToString(), {"outputs": outputs, "contributions": contributions}
    value = portable(clf)
    content = to_javascript(value) if form == "js" else to_json(value) + "\n"
    return content, {"contributions": "contributions" in value}
