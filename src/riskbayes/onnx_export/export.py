"""From a fitted estimator to an ONNX model: inputs, scores, probabilities and labels."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

import riskbayes
from riskbayes.arrays import Array
from riskbayes.onnx_export.columns import Cells, Columns
from riskbayes.onnx_export.contributions import Contributions, contributions_of
from riskbayes.onnx_export.correction import correct
from riskbayes.onnx_export.graph import Graph, Tensor
from riskbayes.onnx_export.scores import scores_of

MATRIX, OUTPUTS = "X", ("label", "probabilities", "contributions")
LABEL, PROBABILITIES, CONTRIBUTIONS = OUTPUTS
"""Names of the input of a table of numbers without names, and of the outputs."""

LABEL_DTYPES = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "U": "string", "O": "string"}
"""Dtypes of the output of labels, by the kind of `classes_`."""


@dataclass(frozen=True)
class Formula:
    """One model whose posteriors an estimator averages, as NumPy arrays."""

    model: Any
    theta: Any
    frame: Any
    """What the model learned before the loop."""
    seen: Array
    """Mask of the classes that had rows."""
    before: Any = None
    """The fitted transformer whose columns the model reads; None for the encoded columns."""
    correction: Any = None
    """The tables that correct its scores; None for none."""
    weight: float = 1.0
    """Its weight in the average."""


@dataclass(frozen=True)
class Exported:
    """All that a graph needs of a fitted estimator, as NumPy arrays."""

    estimator: str
    """Name of its class."""
    formulas: tuple[Formula, ...]
    columns: Columns
    classes: Array
    costs: Array | None = None
    """Cost matrix that labels are chosen by; None for the most probable class."""
    exponents: Array | None = None
    """Powers of two that the encoded columns are divided by; None for none."""
    log_ratio: Array | None = None
    """What is added to the scores; None for nothing."""

    @property
    def takes_missing(self) -> bool:
        """True if all models take missing cells."""
        return all(formula.model.traits.takes_missing for formula in self.formulas)


@dataclass(frozen=True)
class Written:
    """A fitted estimator as a graph."""

    graph: Graph
    scores: Tensor
    """Scores of the classes, or their average posteriors."""
    probabilities: Tensor
    contributions: Contributions | None = None
    """What each column adds to the scores."""


Outputs = dict[str, tuple[Tensor, str, tuple[int, ...]]]
"""The tensor, dtype and shape of a row of each output, by its name."""


def onnx_model(given: Exported, missing: bool | None, dtype: str, contributions: bool = False) -> Any:
    """Return the ONNX model of a fitted estimator; the parameters are those of `to_onnx`."""
    graph, outputs, metadata = graph_and_outputs(given, missing, dtype, contributions)
    return graph.to_model(outputs, metadata)


def graph_and_outputs(
    given: Exported, missing: bool | None, dtype: str, contributions: bool = False
) -> tuple[Graph, Outputs, dict[str, str]]:
    """Return the graph of a fitted estimator, its outputs, and what is to be stored with it."""
    written = write_graph(given, missing, dtype, contributions)
    graph, P = written.graph, written.probabilities
    if given.costs is None:
        best = graph.apply("ArgMax", written.scores, axis=1, keepdims=0)
    else:
        best = graph.apply("ArgMin", P @ given.costs, axis=1, keepdims=0)
    kind = LABEL_DTYPES[given.classes.dtype.kind]
    classes = given.classes.astype(object if kind == "string" else kind)
    r = len(classes)
    outputs: Outputs = {
        LABEL: (graph.constant(classes).take(best, axis=0), kind, ()),
        PROBABILITIES: (P, "float64", (r,)),
    }
    metadata = {
        "version": riskbayes.__version__,
        "estimator": given.estimator,
        "classes": json.dumps(classes.tolist()),
    }
    if (added := written.contributions) is not None:
        outputs[CONTRIBUTIONS] = added.values, "float64", (len(added.columns), r)
        metadata |= {"columns": json.dumps(added.columns), "baseline": json.dumps(added.baseline.tolist())}
    return graph, outputs, metadata


def write_graph(given: Exported, missing: bool | None, dtype: str, contributions: bool) -> Written:
    """Return the graph of the posteriors of a fitted estimator, and of what its columns contribute."""
    if missing and not given.takes_missing:
        raise ValueError(f"{given.estimator} takes no missing cells: leave out missing=True.")
    if contributions and len(given.formulas) > 1:
        raise NotImplementedError(
            f"{given.estimator} averages the posteriors of {len(given.formulas)} models, so that its columns "
            "have no contributions. Leave out contributions=True."
        )
    check_names(given.columns)
    graph = Graph()
    sources = sources_of(graph, given, dtype)
    found = []
    for formula in given.formulas:
        columns = given.columns if formula.before is None else formula.before.onnx_columns(given.columns)
        own = range(len(columns.encoded))
        cells = Cells(graph, columns, sources, own, missing, contributions, formula.frame)
        scores = scores_of(formula.model, formula.theta, cells)
        if formula.correction is not None:
            scores = correct(scores, formula.correction, cells)
        total = scores.to_tensor(cells)
        if not formula.seen.all():
            total = graph.constant(formula.seen[None, :]).where(total, -np.inf)
        found.append((total, formula.weight))
    ratio = given.log_ratio
    if len(found) > 1:
        shares = np.array([weight for _, weight in found])
        shares = shares / shares.sum()
        P = reduce(add, (total.softmax() * share for (total, _), share in zip(found, shares, strict=True)))
        if ratio is not None:
            P = P * np.exp(ratio - ratio.max())
            P = P / P.sum(1)
        return Written(graph, P, P)
    if ratio is not None:
        total = total + ratio
    added = None
    if contributions:
        baseline = np.where(formula.seen, scores.constants, -np.inf)
        added = contributions_of(
            scores, cells, baseline if ratio is None else baseline + ratio, given.estimator
        )
    return Written(graph, total, total.softmax(), added)


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
    return graph.divide_by_powers(found if dtype == "float64" else found.astype("float64"), exponents)


def check_names(columns: Columns) -> None:
    """Refuse columns whose names cannot be those of inputs."""
    if columns.is_matrix:
        return
    times = Counter(source.name for source in columns.inputs)
    for name, number in times.items():
        if not name or number > 1 or name in OUTPUTS:
            why = f"an output is named {name!r}" if name else "an input needs a name"
            why = f"{number} inputs would have it" if number > 1 else why
            raise ValueError(
                f"Column {name!r} cannot be an input of the graph by this name: {why}. Rename it."
            )
