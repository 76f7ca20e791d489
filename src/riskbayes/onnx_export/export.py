"""From a fitted estimator to an ONNX model: inputs, scores, probabilities and labels."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

import riskbayes
from riskbayes.arrays import Array
from riskbayes.onnx_export.columns import Cells, Columns
from riskbayes.onnx_export.graph import Graph, Tensor
from riskbayes.onnx_export.scores import scores_of

MATRIX, LABEL, PROBABILITIES = "X", "label", "probabilities"
"""Names of the input of a table of numbers without names, and of the outputs."""

LABEL_DTYPES = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "U": "string", "O": "string"}
"""Dtypes of the output of labels, by the kind of `classes_`."""


@dataclass(frozen=True)
class Exported:
    """All that a graph needs of a fitted estimator, as NumPy arrays."""

    estimator: str
    """Name of its class."""
    model: Any
    theta: Any
    columns: Columns
    classes: Array
    seen: Array
    """Mask of the classes that had rows."""
    costs: Array | None = None
    """Cost matrix that labels are chosen by; None for the most probable class."""
    exponents: Array | None = None
    """Powers of two that the encoded columns are divided by; None for none."""
    log_ratio: Array | None = None
    """What is added to the scores; None for nothing."""


def onnx_model(given: Exported, missing: bool | None, dtype: str) -> Any:
    """Return the ONNX model of a fitted estimator; the parameters are those of `to_onnx`."""
    if missing and not given.model.traits.takes_missing:
        raise ValueError(f"{given.estimator} takes no missing cells: leave out missing=True.")
    check_names(given.columns)
    graph = Graph()
    sources = sources_of(graph, given, dtype)
    cells = Cells(graph, given.columns, sources, range(len(given.columns.encoded)), missing)
    scores = scores_of(given.model, given.theta, cells).to_tensor(cells)
    if given.log_ratio is not None:
        scores = graph.apply("Add", scores, given.log_ratio[None, :])
    if not given.seen.all():
        scores = graph.where(graph.constant(given.seen[None, :]), scores, np.full((1, 1), -np.inf))
    P = graph.apply("Softmax", scores, axis=1)
    if given.costs is None:
        best = graph.apply("ArgMax", scores, axis=1, keepdims=0)
    else:
        best = graph.apply("ArgMin", graph.apply("MatMul", P, given.costs), axis=1, keepdims=0)
    kind = LABEL_DTYPES[given.classes.dtype.kind]
    classes = given.classes.astype(object if kind == "string" else kind)
    outputs = {
        LABEL: (graph.apply("Gather", graph.constant(classes), best, axis=0), kind, None),
        PROBABILITIES: (P, "float64", len(classes)),
    }
    metadata = {
        "version": riskbayes.__version__,
        "estimator": given.estimator,
        "classes": json.dumps(classes.tolist()),
    }
    return graph.to_model(outputs, metadata)


def sources_of(graph: Graph, given: Exported, dtype: str) -> list[Tensor]:
    """Add the inputs to the graph; return the tensors that the encoded columns are made of."""
    columns = given.columns
    exponents = np.zeros(len(columns.inputs), dtype=np.int64)
    if given.exponents is not None:
        for encoded, exponent in zip(columns.encoded, given.exponents.tolist(), strict=True):
            exponents[encoded.source] = exponent if encoded.kind == "number" else exponents[encoded.source]
    if columns.is_matrix:
        whole = np.zeros(columns.width, dtype=np.int64)
        whole[[source.column for source in columns.inputs]] = exponents
        return [number_input(graph, MATRIX, dtype, whole)]
    return [
        graph.input(source.name, "string", 1)
        if source.words
        else number_input(graph, source.name, dtype, exponents[[i]])
        for i, source in enumerate(columns.inputs)
    ]


def number_input(graph: Graph, name: str, dtype: str, exponents: Array) -> Tensor:
    """Add an input of numbers; return it as float64, each column divided by a power of two."""
    found = graph.input(name, dtype, len(exponents))
    found = found if dtype == "float64" else graph.as_numbers(found)
    for half in (exponents // 2, exponents - exponents // 2) if exponents.any() else ():
        found = graph.apply("Mul", found, np.ldexp(1.0, -half)[None, :])  # 2**-exponent itself may overflow
    return found


def check_names(columns: Columns) -> None:
    """Refuse columns whose names cannot be those of inputs."""
    if columns.is_matrix:
        return
    times = Counter(source.name for source in columns.inputs)
    for name, number in times.items():
        if not name or number > 1 or name in (LABEL, PROBABILITIES):
            why = (
                f"the outputs are named {LABEL!r} and {PROBABILITIES!r}" if name else "an input needs a name"
            )
            why = f"{number} inputs would have it" if number > 1 else why
            raise ValueError(
                f"Column {name!r} cannot be an input of the graph by this name: {why}. Rename it."
            )
