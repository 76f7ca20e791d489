"""The inputs of a graph from a table, and the columns of estimators that are declared by their encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.onnx_export.columns import Columns, Encoded, Input
from riskbayes.onnx_export.export import MATRIX
from riskbayes.preprocessing.columns import columns_of, part_of_date, read_column
from riskbayes.preprocessing.encoder import CategoryEncoder, Reader, TableEncoder
from riskbayes.tables import cell_values


def onnx_inputs(clf: Any, X: Any, dtype: str = "float64") -> dict[str, Array]:
    """Return a table as the inputs of the graph that `clf.to_onnx()` returns.

    A graph takes arrays of numbers and of strings, one for each column of a data frame: this makes NaN and ""
    of missing cells, and days since 1970, weekday, month and hour of dates, as the estimator does.

    Parameters
    ----------
    clf : estimator
        The fitted estimator.
    X : array-like of shape (n_samples, n_features)
        Rows.
    dtype : {"float64", "float32"}, default="float64"
        The dtype of numbers, as in `to_onnx`.

    Returns
    -------
    inputs : dict of arrays
        For `onnxruntime.InferenceSession.run`.

    Examples
    --------
    >>> import pandas as pd
    >>> from riskbayes import CategoricalNB
    >>> from riskbayes.onnx_export import onnx_inputs
    >>> df = pd.DataFrame({"colour": ["red", "blue", None], "size": [1, 0, 1]})
    >>> clf = CategoricalNB().fit(df, [0, 1, 1])
    >>> {name: values.ravel().tolist() for name, values in onnx_inputs(clf, df).items()}
    {'colour': ['red', 'blue', ''], 'size': [1.0, 0.0, 1.0]}
    """
    check_is_fitted(clf)
    columns: Columns = clf._input.onnx_columns(clf)
    X = X if hasattr(X, "shape") else np.array(X, dtype=object)
    validate_data(clf, X, reset=False, skip_check_array=True)  # the same columns as in the fit
    if columns.is_matrix:
        return {MATRIX: cell_values(X).astype(dtype)}
    table = list(columns_of(X))
    return {source.name: input_values(source, table[source.column], dtype) for source in columns.inputs}


def input_values(source: Input, column: Any, dtype: str) -> Array:
    """Return the cells of a column as the values of an input, of shape (m, 1)."""
    found = read_column(column, source.column, source.name)
    if source.words:
        pairs = zip(found.values, found.missing, strict=True)
        return np.array([["" if gone else value] for value, gone in pairs], dtype=object)
    if source.kind != "number":
        part = "number" if source.kind == "days" else source.kind
        values = part_of_date(found.as_dates(source.column, source.name), part)
    elif found.kind == "words":  # booleans, or numbers of a categorical column
        pairs = zip(found.values, found.missing, strict=True)
        values = np.array([np.nan if gone else float(value) for value, gone in pairs])
    else:
        values = found.values
    return values.astype(dtype)[:, None]


def columns_of_encoder(
    encoder: TableEncoder | CategoryEncoder | None, names: Sequence[str], named: bool
) -> Columns:
    """Return the columns of an estimator by the encoder of its tables; None for numbers as they are."""
    if encoder is None:
        return Columns.numbers(names, named)
    if isinstance(encoder, TableEncoder):
        return columns_of_table(encoder, named)
    known = [column.categories for column in encoder.columns]
    kinds = (kind_of(own or (), j, name) for j, (own, name) in enumerate(zip(known, names, strict=True)))
    inputs = tuple(Input(name, j, kind) for j, (name, kind) in enumerate(zip(names, kinds, strict=True)))
    encoded = (Encoded(j) if own is None else Encoded(j, "category", own) for j, own in enumerate(known))
    return Columns(inputs, tuple(encoded), tuple(names), named)


def columns_of_table(encoder: TableEncoder, named: bool) -> Columns:
    """Return the columns of an estimator of tables as they are."""
    inputs: list[Input] = []
    encoded = []
    for j, part in encoder.encoded:
        reader = encoder.readers[j]
        kind = {"category": "category", "is missing": "mark"}.get(part, "number")
        if kind == "category" and encoder.unseen == "error":
            raise ColumnError(
                j,
                "may hold unseen categories, and a graph cannot raise an error for them (unseen='error'). "
                "Fit with unseen='missing' or 'other'.",
                reader.column.name,
            )
        source = input_of(reader, j, part)
        if source not in inputs:
            inputs.append(source)
        unseen = kind == "number" or (kind == "category" and encoder.unseen == "other")
        encoded.append(Encoded(inputs.index(source), kind, reader.categories, unseen))
    names = tuple(reader.column.name for reader in encoder.readers)
    return Columns(tuple(inputs), tuple(encoded), names, named)


def input_of(reader: Reader, j: int, part: str) -> Input:
    """Return the input of a part of a column; that of a mark is the column, or the first part of a date."""
    name, kind = reader.column.name, reader.column.kind
    if kind == "category":
        return Input(name, j, kind_of(reader.categories, j, name))
    if kind == "date":
        part = reader.parts[0] if part == "is missing" else part
        return Input(name, j, "days") if part == "number" else Input(f"{name} ({part})", j, part)
    return Input(name, j, "words" if isinstance(reader.example, str) else "number")


def kind_of(categories: Sequence[Any], j: int, name: str) -> str:
    """Return the kind of the input of these categories: words, or number for numbers and booleans."""
    for value in categories:
        if not isinstance(value, str | bool | int | float | np.generic):
            raise ColumnError(
                j,
                f"has the category {value!r}, and inputs of a graph are strings or numbers. Convert it to "
                "strings.",
                name,
            )
    return "words" if categories and isinstance(categories[0], str) else "number"
