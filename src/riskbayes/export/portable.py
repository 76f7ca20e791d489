"""The value that a model travels as: its columns and its graph, in plain JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import riskbayes
from riskbayes.arrays import Array
from riskbayes.onnx_export import Exported, Written, write_graph
from riskbayes.onnx_export.columns import Columns, Encoded
from riskbayes.onnx_export.export import MATRIX
from riskbayes.tables import plain

LAYOUT = 1
"""Version of the layout; it grows when a reader of an older one would go wrong."""

LARGEST_WHOLE = 2.0**53
"""Whole numbers up to here are written without a point, and read back as they were."""


def portable(clf: Any, *, missing: bool | None = None) -> dict[str, Any]:
    """Return a fitted classifier as dicts, lists, texts and numbers, which `model.js` reads.

    Parameters
    ----------
    clf : estimator
        The fitted classifier: any that :meth:`to_onnx` translates.
    missing : bool, default=None
        Whether cells of numbers may be missing; by default they may, if the model takes them.

    Returns
    -------
    value : dict
        With `classes`, `columns`, `graph`, and `contributions` where the model is a sum over the columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> from riskbayes.export import portable
    >>> value = portable(GaussianNB().fit(*load_iris(return_X_y=True)))
    >>> value["classes"], [column["name"] for column in value["columns"]]
    (['0', '1', '2'], ['x0', 'x1', 'x2', 'x3'])
    """
    check_is_fitted(clf)
    given: Exported = clf._exported()
    missing = given.takes_missing or None if missing is None else missing
    written = written_graph(given, missing)
    found = {
        "format": "riskbayes",
        "layout": LAYOUT,
        "version": riskbayes.__version__,
        "estimator": given.estimator,
        "classes": [str(plain(label)) for label in given.classes.tolist()],
        "columns": described_columns(clf, given.columns),
        "graph": graph_value(written),
    }
    if written.contributions is not None:
        prior = numbers(written.contributions.baseline)
        found["contributions"] = {"columns": written.contributions.columns, "prior": prior}
    return found


def to_json(value: dict[str, Any]) -> str:
    """Return the value of :func:`portable` as JSON, in ASCII; it may stand in a script or a page."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def to_javascript(value: dict[str, Any]) -> str:
    """Return the value of :func:`portable` as one module of plain JavaScript, which imports nothing.

    It exports `predict(row)`, the probability of each class; `contributions(row)`, what each column adds;
    `classes` and `columns`. A row is an object by the names of the columns, or an array of cells.

    Parameters
    ----------
    value : dict
        A classifier as :func:`portable` returns it.

    Returns
    -------
    module : str
        The text of the module.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import GaussianNB
    >>> from riskbayes.export import portable, to_javascript
    >>> module = to_javascript(portable(GaussianNB().fit(*load_iris(return_X_y=True))))
    >>> module.splitlines()[-1]
    'export default model;'
    """
    return (
        f"// {value['estimator']}, written by riskbayes {value['version']}.\n\n{interpreter()}\n"
        f"const model = createModel({to_json(value)});\n\n"
        "export const { classes, columns, predict, contributions } = model;\nexport default model;\n"
    )


def interpreter() -> str:
    """Return the JavaScript that makes a model of its JSON: the function `createModel`."""
    return (files(__package__) / "model.js").read_text(encoding="utf-8")


def written_graph(given: Exported, missing: bool | None) -> Written:
    """Return the graph of an estimator, with contributions if its model is a sum over the columns."""
    try:
        return write_graph(given, missing, "float64", contributions=True)
    except NotImplementedError:
        return write_graph(given, missing, "float64", contributions=False)


def graph_value(written: Written) -> dict[str, Any]:
    """Return the inputs, constants, operations and outputs of a graph."""
    graph, outputs = written.graph, {"probabilities": written.probabilities}
    if written.contributions is not None:
        outputs["contributions"] = written.contributions.values
    nodes, constants = graph.needed(outputs.values())
    return {
        "inputs": [
            {"name": name, "dtype": dtype, "width": width} for name, (dtype, width) in graph.inputs.items()
        ],
        "constants": {name: constant_value(values) for name, values in constants.items()},
        "nodes": [[node.operator, list(node.inputs), node.output, node.attributes] for node in nodes],
        "outputs": {name: tensor.name for name, tensor in outputs.items()},
    }


def constant_value(values: Array) -> dict[str, Any]:
    """Return an array as its shape, dtype and values."""
    words = values.dtype.kind in "UO"
    return {
        "dtype": "string" if words else "number",
        "shape": list(values.shape),
        "data": [str(value) for value in values.ravel()] if words else numbers(values),
    }


def numbers(values: Array) -> list[Any]:
    """Return numbers as JSON has them, and strings for infinity and NaN; all are read back exactly."""

    def number(value: float) -> Any:
        if not np.isfinite(value):
            return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return int(value) if value == int(value) and abs(value) < LARGEST_WHOLE else value

    return [number(value) for value in np.asarray(values, dtype=np.float64).ravel().tolist()]


def described_columns(clf: Any, columns: Columns) -> list[dict[str, Any]]:
    """Return each column of the table: what the graph reads of it, and what training rows held."""
    seen: Sequence[Any] = getattr(clf, "columns_", ())
    found: list[dict[str, Any]] = []
    for j, name in enumerate(columns.names):
        own = [one for one in columns.encoded if columns.inputs[one.source].column == j]
        reads = [
            {"input": MATRIX, "place": j, "kind": "number"}
            if columns.is_matrix
            else {"input": source.name, "place": 0, "kind": source.kind}
            for source in columns.inputs
            if source.column == j
        ]
        categories = next((one.categories for one in own if one.kind == "category" and one.categories), None)
        kind = kind_of(own, {columns.inputs[one.source].kind for one in own}, categories is not None)
        found.append({"name": name, "kind": kind, "reads": reads})
        if categories is not None:
            found[-1]["categories"] = [plain(value) for value in categories]
        known = seen[j] if j < len(seen) else None
        if known is not None and known.kind in ("number", "date") and known.low is not None:
            whole = known.kind == "number" and known.example.lstrip("-").isdigit()
            found[-1] |= {"low": float(known.low), "high": float(known.high), "whole": whole}
    return found


def kind_of(own: Sequence[Encoded], inputs: set[str], has_categories: bool) -> str:
    """Return the kind of a column: number, category, date, mark (is it missing?) or left out."""
    if not own:
        return "left out"
    if inputs & {"days", "weekday", "month", "hour"}:
        return "date"
    if has_categories:
        return "category"
    return "mark" if all(one.kind == "mark" for one in own) else "number"
