"""A graph of plain ONNX operators, written operation by operation.

It is a list of Python values until `to_model`, so that nothing but that needs the package onnx.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from riskbayes.arrays import Array

OPSET, IR_VERSION = 19, 9
"""The least opset whose Equal compares strings, and its version of the file format."""

OPERATORS = (
    *("Add", "ArgMax", "ArgMin", "Cast", "Concat", "Div", "Equal", "Exp", "Gather", "GatherElements"),
    *("Greater", "GreaterOrEqual", "IsNaN", "Log", "MatMul", "Mul", "ReduceMax", "ReduceSum", "Relu"),
    *("Reshape", "Softmax", "Sqrt", "Sub", "TopK", "Unsqueeze", "Where"),
)
"""The operators that graphs are written in, all of the standard domain."""


def unary(operator: str, **attributes: Any) -> Callable[[Tensor], Tensor]:
    """Return a method that applies an operator to a tensor."""
    return lambda own: own.graph.apply(operator, own, **attributes)


def binary(operator: str) -> Callable[[Tensor, Any], Tensor]:
    """Return a method that applies an operator to a tensor and another tensor, an array or a number."""
    return lambda own, other: own.graph.apply(operator, own, as_operand(other))


def reflected(operator: str) -> Callable[[Tensor, Any], Tensor]:
    """Return the method for the same with the tensor on the right."""
    return lambda own, other: own.graph.apply(operator, as_operand(other), own)


def as_operand(value: Any) -> Any:
    """Return a tensor as it is, numbers as float64."""
    return value if isinstance(value, Tensor) else np.asarray(value, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of a graph, by its name. Its operators and methods, named as NumPy's, add operations."""

    graph: Graph = field(repr=False)
    name: str

    __array_ufunc__: ClassVar = None
    """NumPy leaves `array + tensor` to the tensor."""

    __add__, __radd__ = binary("Add"), reflected("Add")
    __sub__, __rsub__ = binary("Sub"), reflected("Sub")
    __mul__, __rmul__ = binary("Mul"), reflected("Mul")
    __truediv__, __rtruediv__ = binary("Div"), reflected("Div")
    __matmul__, __rmatmul__ = binary("MatMul"), reflected("MatMul")
    __gt__, __ge__, __lt__ = binary("Greater"), binary("GreaterOrEqual"), reflected("Greater")
    isnan, relu = unary("IsNaN"), unary("Relu")
    exp, log, sqrt = unary("Exp"), unary("Log"), unary("Sqrt")
    softmax = unary("Softmax", axis=1)

    def equals(self, values: Any) -> Tensor:
        """Return a mask of where the tensor has these values, numbers or strings."""
        return self.graph.apply("Equal", self, values)

    def astype(self, dtype: str) -> Tensor:
        """Return the tensor in another dtype."""
        return self.graph.apply("Cast", self, to=dtype)

    def where(self, a: Any, b: Any) -> Tensor:
        """Return `a` where this mask is True, else `b`."""
        return self.graph.apply("Where", self, as_operand(a), as_operand(b))

    def take(self, indices: Any, axis: int) -> Tensor:
        """Return entries along an axis by their indices, a tensor or whole numbers."""
        return self.graph.apply("Gather", self, indices, axis=axis)

    def columns(self, indices: Sequence[int] | Array) -> Tensor:
        """Return columns of a tensor, in this order; a column may be repeated."""
        return self.take(np.asarray(indices, dtype=np.int64), axis=1)

    def sum(self, *axes: int, keepdims: bool = True) -> Tensor:
        """Return the sum over some axes, which stay with the length one."""
        return self.graph.apply("ReduceSum", self, np.array(axes), keepdims=int(keepdims))

    def max(self, axis: int) -> Tensor:
        """Return the largest values along an axis, which stays with the length one."""
        return self.graph.apply("ReduceMax", self, np.array([axis]), keepdims=1)

    def expand_dims(self, *axes: int) -> Tensor:
        """Return the tensor with further axes of length one."""
        return self.graph.apply("Unsqueeze", self, np.array(axes))

    def reshape(self, *shape: int) -> Tensor:
        """Return the tensor, of m rows, as one of the shape (m, *shape)."""
        return self.graph.apply("Reshape", self, np.array([0, *shape]))


@dataclass(frozen=True)
class Node:
    """One operation."""

    operator: str
    inputs: tuple[str, ...]
    """Names of tensors, as `output` is."""
    output: str
    attributes: dict[str, Any]

    def outputs(self, name: str) -> list[str]:
        """Return the names of all results if the one that counts has this name: of TopK the indices."""
        return [f"{name}_values", name] if self.operator == "TopK" else [name]


class Graph:
    """The inputs, constants and operations of a graph, in the order in which they were added."""

    def __init__(self) -> None:
        self.inputs: dict[str, tuple[str, int]] = {}
        """For each input its dtype ("float64", "float32" or "string") and its number of columns."""
        self.constants: dict[str, Array] = {}
        self.nodes: list[Node] = []
        self._known: dict[Any, str] = {}
        """Constants and operations by what they are made of: what was written once is not repeated."""

    def input(self, name: str, dtype: str, width: int) -> Tensor:
        """Add an input of this many columns and any number of rows."""
        self.inputs[name] = dtype, width
        return Tensor(self, name)

    def constant(self, values: Any) -> Tensor:
        """Return a constant: numbers as float64, indices as int64, strings as they are."""
        found = np.asarray(values)
        found = found.astype(np.float64) if found.dtype.kind == "f" else found
        key = found.dtype.str, found.shape, found.tobytes() if found.dtype != object else tuple(found.flat)
        if key not in self._known:
            self._known[key] = self._new_name("constant")
            self.constants[self._known[key]] = found
        return Tensor(self, self._known[key])

    def apply(self, operator: str, *inputs: Any, **attributes: Any) -> Tensor:
        """Add an operation and return its result; arguments that are no tensors become constants."""
        assert operator in OPERATORS, operator
        names = tuple((x if isinstance(x, Tensor) else self.constant(x)).name for x in inputs)
        key = operator, names, tuple(sorted(attributes.items()))
        if key not in self._known:
            self._known[key] = self._new_name(operator.lower())
            self.nodes.append(Node(operator, names, self._known[key], attributes))
        return Tensor(self, self._known[key])

    def concat(self, parts: Sequence[Tensor], axis: int = 1) -> Tensor:
        """Return tensors side by side."""
        return parts[0] if len(parts) == 1 else self.apply("Concat", *parts, axis=axis)

    def divide_by_powers(self, x: Tensor, exponents: Array) -> Tensor:
        """Return each column of a tensor divided by two to the power of its exponent."""
        for half in (exponents // 2, exponents - exponents // 2) if exponents.any() else ():
            x = x * np.ldexp(1.0, -half)[None, :]  # 2**-exponent itself may overflow
        return x

    def _new_name(self, stem: str) -> str:
        """Return a name that no tensor has."""
        number = len(self._known)
        while f"{stem}_{number}" in self.inputs:
            number += 1
        return f"{stem}_{number}"

    def needed(self, outputs: Iterable[Tensor]) -> tuple[list[Node], dict[str, Array]]:
        """Return the operations and the constants that the outputs depend on."""
        used = {tensor.name for tensor in outputs}
        for node in reversed(self.nodes):
            if node.output in used:
                used.update(node.inputs)
        nodes = [node for node in self.nodes if node.output in used]
        return nodes, {name: values for name, values in self.constants.items() if name in used}

    def to_model(
        self, outputs: Mapping[str, tuple[Tensor, str, tuple[int, ...]]], metadata: dict[str, str]
    ) -> Any:
        """Return the ONNX model.

        `outputs` are the tensor, dtype and shape of a row of each output; `metadata` is stored in the model,
        its entry "version" as the version of the producer.
        """
        onnx = imported_onnx()
        helper = onnx.helper
        renamed = {tensor.name: name for name, (tensor, _, _) in outputs.items()}
        needed, constants = self.needed(tensor for tensor, _, _ in outputs.values())
        nodes = [
            helper.make_node(
                node.operator,
                [renamed.get(name, name) for name in node.inputs],
                node.outputs(renamed.get(node.output, node.output)),
                name=renamed.get(node.output, node.output),
                **{k: element_type(onnx, v) if k == "to" else v for k, v in node.attributes.items()},
            )
            for node in needed
        ]
        graph = helper.make_graph(
            nodes,
            "riskbayes",
            [
                helper.make_tensor_value_info(name, element_type(onnx, dtype), ["rows", width])
                for name, (dtype, width) in self.inputs.items()
            ],
            [
                helper.make_tensor_value_info(name, element_type(onnx, dtype), ["rows", *shape])
                for name, (_, dtype, shape) in outputs.items()
            ],
            [tensor_of(onnx, name, values) for name, values in constants.items()],
        )
        model = helper.make_model(
            graph,
            producer_name="riskbayes",
            producer_version=metadata["version"],
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        return model


def imported_onnx() -> Any:
    """Return the package onnx, which is optional and slow to import."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
    except ImportError as error:
        raise ImportError('to_onnx needs the package onnx: pip install "riskbayes[onnx]"') from error
    return onnx


def element_type(onnx: Any, dtype: str) -> int:
    """Return ONNX's number of a dtype."""
    names = {"float64": "DOUBLE", "float32": "FLOAT", "int64": "INT64", "bool": "BOOL", "string": "STRING"}
    return getattr(onnx.TensorProto, names[dtype])


def tensor_of(onnx: Any, name: str, values: Array) -> Any:
    """Return a constant as ONNX's tensor, its values as a list: some tools do not read bytes."""
    dtype = "string" if values.dtype.kind in "UO" else values.dtype.name
    return onnx.helper.make_tensor(name, element_type(onnx, dtype), values.shape, values.ravel().tolist())
