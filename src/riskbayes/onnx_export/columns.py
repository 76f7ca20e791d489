"""The columns of a table as inputs of a graph, and what models read of them.

An estimator declares what its encoded columns are made of, as `Columns`; `Cells` writes it as a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.onnx_export.graph import Graph, Tensor


@dataclass(frozen=True)
class Input:
    """One input of the graph."""

    name: str
    column: int
    """Index of the column of the table."""
    kind: str = "number"
    """One of words (strings, in which "" is a missing cell), number (in which NaN is), or a part of a date as
    a number: days (since 1970), weekday, month, hour."""

    @property
    def words(self) -> bool:
        """True for strings."""
        return self.kind == "words"


@dataclass(frozen=True)
class Encoded:
    """What a model reads as one column."""

    source: int
    """Index of its input."""
    kind: str = "number"
    """One of number (or a code, as the input has it), category (coded by value), mark (is it missing?), or
    indicator (is it this category or mark?)."""
    categories: tuple[Any, ...] = ()
    """The values of a category in the order of their codes."""
    unseen: bool = True
    """True if another value is an unseen category; False if it is missing, or if there is none."""
    of: Encoded | None = None
    """The column of categories or marks that an indicator asks."""
    code: int = 0
    """The code that an indicator asks for."""

    @property
    def is_derived(self) -> bool:
        """True for zeros and ones that are made of an input, and never missing."""
        return self.kind in ("mark", "indicator")


@dataclass(frozen=True)
class Columns:
    """The inputs of an estimator, and the columns that its model reads of them."""

    inputs: tuple[Input, ...]
    encoded: tuple[Encoded, ...]
    names: tuple[str, ...]
    """Names of all columns of the table, or x0, x1 and so on."""
    named: bool
    """True if the columns of the table have names of their own."""

    @property
    def width(self) -> int:
        """Number of columns of the table."""
        return len(self.names)

    @classmethod
    def numbers(cls, names: Sequence[str], named: bool) -> Columns:
        """Return columns of numbers, which models read as they are."""
        inputs = tuple(Input(name, j) for j, name in enumerate(names))
        return cls(inputs, tuple(Encoded(j) for j in range(len(names))), tuple(names), named)

    @property
    def is_matrix(self) -> bool:
        """True if the table is one input of numbers: an array without names, strings and dates."""
        return not (self.named or any(source.kind != "number" for source in self.inputs))


class Cells:
    """The encoded columns, or some of them, as tensors of a graph.

    Parameters
    ----------
    graph : Graph
        The graph; the inputs must be in it.
    columns : Columns
        The inputs and what is made of them.
    sources : sequence of Tensor
        The tensor of each input, of one column; for a matrix the tensor of all of them.
    own : sequence of int
        Indices of the encoded columns that are read.
    missing : bool or None
        What the user said of missing cells: carry them, or not, or leave it to the model.
    contributions : bool
        True if the scores must tell what each column adds to them.
    frame : Frame
        What the model that reads the columns learned before the loop.
    """

    def __init__(
        self,
        graph: Graph,
        columns: Columns,
        sources: Sequence[Tensor],
        own: Sequence[int],
        missing: bool | None,
        contributions: bool = False,
        frame: Any = None,
    ):
        self.graph, self.columns, self.sources = graph, columns, tuple(sources)
        self.missing, self.contributions, self.frame = missing, contributions, frame
        self.own = tuple(own)
        self.encoded = [columns.encoded[j] for j in own]

    def of(self, places: Sequence[int] | Array | None) -> Cells:
        """Return some of these columns; None stands for all of them."""
        own = self.own if places is None else [self.own[j] for j in places]
        found = copy(self)
        found.own, found.encoded = tuple(own), [self.columns.encoded[j] for j in own]
        return found

    def learned(self, frame: Any) -> Cells:
        """Return the same columns, of which a model has learned this frame."""
        found = copy(self)
        found.frame = frame
        return found

    def owners(self, places: Array | None = None) -> list[Any]:
        """Return which encoded columns these are, or those at some places among them."""
        return list(self.own) if places is None else [self.own[j] for j in places.tolist()]

    @property
    def unseen(self) -> Array:
        """Mask of the columns whose unseen categories are not missing."""
        return np.array([column.unseen for column in self.encoded])

    def numbers(self) -> Tensor:
        """Return the columns as numbers, NaN where they are missing, of shape (m, n)."""
        if self._from_matrix:
            wanted = [self._input(column).column for column in self.encoded]
            whole = wanted == list(range(self.columns.width))
            return self.sources[0] if whole else self.sources[0].columns(wanted)
        return self.graph.concat([self._number(column) for column in self.encoded])

    def repeated(self, times: Array) -> Tensor:
        """Return the columns as numbers, each repeated so many times side by side."""
        if self._from_matrix:
            wanted = np.array([self._input(column).column for column in self.encoded])
            return self.sources[0].columns(np.repeat(wanted, times))
        pairs = [pair for pair in zip(self.encoded, times.tolist(), strict=True) if pair[1]]
        return self.graph.concat([self._number(column) @ np.ones((1, k)) for column, k in pairs])

    def is_missing(self) -> Tensor:
        """Return a mask of the missing cells, of shape (m, n)."""
        if all(column.kind == "number" for column in self.encoded):
            return self.numbers().isnan()
        return self.graph.concat([self._is_missing(column) for column in self.encoded])

    def observed(self) -> Tensor:
        """Return one for each cell that is not missing, else zero, of shape (m, n)."""
        return 1.0 - self.is_missing().astype("float64")

    def codes(self, sizes: Array) -> Tensor:
        """Return the code of each cell; sizes[j] if it is missing or unseen, of shape (m, n)."""
        return self.look_up([np.arange(k + 1.0)[:, None] for k in sizes.tolist()])

    def look_up(self, tables: Sequence[Array]) -> Tensor:
        """Return a row of a table for each cell, side by side; the last one if it is missing or unseen."""
        sizes = np.array([len(table) - 1 for table in tables])
        found, index = self.indicators(sizes)
        widths = [table.shape[1] for table in tables]
        known, stops = np.zeros((sizes.sum(), sum(widths))), np.cumsum(sizes)
        for table, stop, right, width in zip(tables, stops, np.cumsum(widths), widths, strict=True):
            known[stop - len(table) + 1 : stop, right - width : right] = table[:-1] - table[-1]
        other = np.concatenate([table[-1] for table in tables])[None, :].astype(float)
        if found is None:  # no column has a value: every cell is missing or unseen
            found, known = self.observed(), np.zeros((len(sizes), sum(widths)))
            index = np.arange(len(sizes))
        return found @ known[index] + other

    def indicators(self, sizes: Sequence[int] | Array) -> tuple[Tensor | None, Array]:
        """Return an indicator of each category, and its index in a table of sizes[j] categories a column.

        Categories without a value (those that are declared by number only) have none; without any indicator
        there is no tensor.
        """
        values = [self._values(column, int(k)) for column, k in zip(self.encoded, sizes, strict=True)]
        starts = np.cumsum(sizes) - sizes
        index = np.concatenate([start + np.arange(len(v)) for start, v in zip(starts, values, strict=True)])
        if not len(index):
            return None, index
        if self._from_matrix:
            cells = self.repeated(np.array([len(v) for v in values]))
            found = cells.equals(np.concatenate(values)[None, :])
        else:
            pieces = zip(self.encoded, values, strict=True)
            found = self.graph.concat([self._equal(column, v) for column, v in pieces if len(v)])
        return found.astype("float64"), index

    @property
    def _from_matrix(self) -> bool:
        """True if these columns are columns of one matrix."""
        return self.columns.is_matrix and not any(column.is_derived for column in self.encoded)

    def _input(self, column: Encoded) -> Input:
        return self.columns.inputs[column.source]

    def _tensor(self, column: Encoded) -> Tensor:
        """Return the input of a column, of shape (m, 1)."""
        if self.columns.is_matrix:
            return self.sources[0].columns([self._input(column).column])
        return self.sources[column.source]

    def _is_missing(self, column: Encoded) -> Tensor:
        """Return whether the cells of a column are missing, of shape (m, 1); zeros and ones never are."""
        if column.is_derived:
            return self._number(column).isnan()
        if column.kind == "category" and not column.unseen:
            known = self._equal(column, self._values(column, len(column.categories))).astype("float64")
            return known.sum(1).equals(0.0)
        return self._is_empty(column)

    def _is_empty(self, column: Encoded) -> Tensor:
        """Return whether the input of a column is missing, of shape (m, 1)."""
        cells = self._tensor(column)
        if self._input(column).words:
            return cells.equals(np.array([[""]], dtype=object))
        return cells.isnan()

    def _number(self, column: Encoded) -> Tensor:
        """Return a column as numbers, of shape (m, 1)."""
        if column.of is not None:
            of = column.of
            value = of.categories[column.code] if of.kind == "category" else float(column.code)
            dtype = object if isinstance(value, str) else np.float64
            return self._equal(of, np.array([value], dtype=dtype)).astype("float64")
        if column.kind == "mark":
            return self._is_empty(column).astype("float64")
        return self._tensor(column)

    def _values(self, column: Encoded, size: int) -> Array:
        """Return the values of the codes 0 to size - 1, or of those that have one."""
        if column.kind != "category":
            return np.arange(float(size))
        known = column.categories[:size]
        return np.array(known, dtype=object if self._input(column).words else np.float64)

    def _equal(self, column: Encoded, values: Array) -> Tensor:
        """Return whether the cells of a column have these values, of shape (m, number of values)."""
        return self._number(column).equals(values[None, :])
