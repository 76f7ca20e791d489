"""Our estimators for skl2onnx, which then converts pipelines, votes and stacks that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

import riskbayes
from riskbayes.onnx_export.export import LABEL, MATRIX, PROBABILITIES, Exported, graph_and_outputs
from riskbayes.onnx_export.graph import OPSET, element_type, imported_onnx

OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [True, False],
    "missing": [None, True, False],
}
"""Options of a conversion; `missing` is that of `to_onnx`, the others are those of all classifiers."""


def register_skl2onnx(*kinds: type) -> None:
    """Tell skl2onnx how to convert the estimators of this package.

    Then `skl2onnx.to_onnx` and `convert_sklearn` take them in pipelines, votes and stacks, with
    `target_opset=19` or more. What is carried is what `to_onnx` of each estimator writes; probabilities are
    float32 unless all inputs are float64.

    Parameters
    ----------
    *kinds : type
        Classes of estimators, such as subclasses of one's own; by default all of :mod:`riskbayes`.

    Examples
    --------
    >>> from riskbayes.onnx_export import register_skl2onnx
    >>> register_skl2onnx()  # doctest: +SKIP
    >>> pipeline = make_pipeline(StandardScaler(), SmoothNB()).fit(X, y)  # doctest: +SKIP
    >>> skl2onnx.to_onnx(pipeline, X[:1], target_opset=19)  # doctest: +SKIP
    """
    try:
        from skl2onnx import update_registered_converter  # optional, and slow to import
    except ImportError as error:
        raise ImportError(
            "register_skl2onnx needs the package skl2onnx: pip install skl2onnx. A classifier that is in no "
            "pipeline does not need it: clf.to_onnx()."
        ) from error
    public = (getattr(riskbayes, name) for name in riskbayes.__all__)
    for kind in kinds or (kind for kind in public if hasattr(kind, "to_onnx")):
        if not hasattr(kind, "to_onnx"):
            raise TypeError(f"register_skl2onnx takes classes with the method to_onnx; got {kind!r}.")
        update_registered_converter(
            kind, f"RiskBayes{kind.__name__}", declare_outputs, convert, options=OPTIONS
        )


def declare_outputs(operator: Any) -> None:
    """Set the types and shapes of the label and of the probabilities, as skl2onnx asks for."""
    from skl2onnx.common import data_types as types  # optional

    classes = operator.raw_operator.classes_
    label = types.StringTensorType if classes.dtype.kind in "UO" else types.Int64TensorType
    precise = all(isinstance(given.type, types.DoubleTensorType) for given in operator.inputs)
    probabilities = types.DoubleTensorType if precise else types.FloatTensorType
    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = label([rows])
    operator.outputs[1].type = probabilities([rows, len(classes)])


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the graph of a fitted estimator into that of a pipeline."""
    from skl2onnx.common.data_types import DoubleTensorType  # optional

    clf, name = operator.raw_operator, type(operator.raw_operator).__name__
    if container.target_opset < OPSET:
        raise ValueError(
            f"{name} is written in operators of opset {OPSET}, and target_opset is {container.target_opset}. "
            f"Pass target_opset={OPSET} or more."
        )
    given: Exported = clf._exported()
    if given.classes.dtype.kind == "f":
        raise ValueError(
            f"The classes of {name} are numbers with a point, and skl2onnx has integers and strings only. "
            "Fit it to labels of these types."
        )
    graph, outputs, _ = graph_and_outputs(given, container.get_options(clf, {}).get("missing"), "float64")
    writer = Writer(scope, operator, container)
    names = {name: writer.input(given, name, dtype) for name, (dtype, _) in graph.inputs.items()}
    nodes, constants = graph.needed(tensor for tensor, _, _ in outputs.values())
    names |= {name: writer.constant(values) for name, values in constants.items()}
    for node in nodes:
        written = [writer.name(each) for each in node.outputs(node.output)]
        names[node.output] = written[-1]
        attributes = {k: writer.element(v) if k == "to" else v for k, v in node.attributes.items()}
        writer.node(node.operator, [names[x] for x in node.inputs], written, **attributes)
    words = given.classes.dtype.kind in "UO"
    precise = isinstance(operator.outputs[1].type, DoubleTensorType)
    for output, tensor, dtype in (
        (operator.outputs[0], outputs[LABEL][0], "string" if words else "int64"),
        (operator.outputs[1], outputs[PROBABILITIES][0], "float64" if precise else "float32"),
    ):
        if dtype == "string":  # of which there is no Cast
            writer.node("Identity", [names[tensor.name]], [output.full_name])
        else:
            writer.node("Cast", [names[tensor.name]], [output.full_name], to=writer.element(dtype))


class Writer:
    """What is added to the graph of a pipeline: inputs as our graph reads them, constants and operations."""

    def __init__(self, scope: Any, operator: Any, container: Any):
        self.scope, self.given, self.container = scope, operator.inputs, container
        self.onnx = imported_onnx()

    def name(self, stem: str) -> str:
        """Return a name that no tensor of the pipeline has."""
        return self.scope.get_unique_variable_name(f"riskbayes_{stem}")

    def element(self, dtype: str) -> int:
        """Return ONNX's number of a dtype."""
        return element_type(self.onnx, dtype)

    def node(self, operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        """Add an operation."""
        attributes |= {"op_domain": "", "op_version": self.container.target_opset}
        attributes["name"] = self.scope.get_unique_operator_name(f"riskbayes_{operator}")
        self.container.add_node(operator, inputs, outputs, **attributes)

    def constant(self, values: Any) -> str:
        """Add a constant, and return its name."""
        found, name = np.asarray(values), self.name("constant")
        kind = "string" if found.dtype.kind in "UO" else found.dtype.name
        flat = found.ravel().tolist()
        content = [text.encode() for text in flat] if kind == "string" else flat
        self.container.add_initializer(name, self.element(kind), found.shape, content)
        return name

    def input(self, given: Exported, name: str, dtype: str) -> str:
        """Return the name of an input of our graph: all that comes from the pipeline, or a column of it."""
        from skl2onnx.common.data_types import StringTensorType  # optional

        source, one = self.given[0], len(self.given) == 1
        column = next((own.column for own in given.columns.inputs if own.name == name), 0)
        if not one:
            if name == MATRIX:
                raise ValueError(
                    f"{given.estimator} was fitted to an array of numbers, and has {len(self.given)} inputs "
                    "here. Give it one, of all columns."
                )
            source = self.given[column]
        if (dtype == "string") != isinstance(source.type, StringTensorType):
            wanted = "strings" if dtype == "string" else "numbers"
            raise ValueError(
                f"{given.estimator} reads {wanted} in column {name!r}, and its input has another type. "
                "Pass initial_types with an input for each column."
            )
        found = source.full_name
        if one and name != MATRIX:
            whole, found = found, self.name("column")
            self.node("Gather", [whole, self.constant(np.array([column]))], [found], axis=1)
        if dtype == "string":
            return found
        numbers = self.name("numbers")
        self.node("Cast", [found], [numbers], to=self.element("float64"))
        return numbers
