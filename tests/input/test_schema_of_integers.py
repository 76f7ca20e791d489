"""What is found out of whole numbers by counting is what is found out of any cells."""

from dataclasses import fields

import numpy as np
import pytest

from riskbayes.input.schema import Cells, ColumnSchema, Schema


def same(one, other):
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("most", [1, 5, 100, 10**4, 2**63 - 1])
def test_schemas_are_equal(dtype, most):
    rng, names = np.random.default_rng(0), list("abcd")
    least = -3 if np.dtype(dtype).kind == "i" else 0
    top = min(most, np.iinfo(dtype).max)
    X = rng.integers(least, top, (500, 4), dtype=dtype)
    X[:, 3] = X[0, 3]
    counted = Schema.of_numbers(X, names).with_values(X)
    read = Schema.of_cells(Cells.of(X, names), names, True)
    for field in fields(Schema):
        one, other = getattr(counted, field.name), getattr(read, field.name)
        if field.name != "columns":
            assert same(one, other), field.name
            continue
        for a, b in zip(one, other, strict=True):
            for of_column in fields(ColumnSchema):
                assert same(getattr(a, of_column.name), getattr(b, of_column.name)), of_column.name
