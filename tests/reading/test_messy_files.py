"""Messy files of people: kinds and values as a person would write them down, alike at fit and at predict."""

import datetime

import pytest

pa = pytest.importorskip("pyarrow")

import fuzz_notation  # noqa: E402
from messy_files import FILES  # noqa: E402
from riskbayes.input.files.batches import Batches  # noqa: E402
from riskbayes.input.files.expected import Expected  # noqa: E402
from riskbayes.input.files.notation import Notation  # noqa: E402
from riskbayes.input.files.table import read_table  # noqa: E402

TYPES = {
    "number": lambda t: pa.types.is_integer(t) or pa.types.is_floating(t),
    "date": lambda t: pa.types.is_date(t) or pa.types.is_timestamp(t),
    "time": pa.types.is_time,
    "flag": pa.types.is_boolean,
    "text": pa.types.is_string,
}


def alike(value):
    """A cell as it is compared: dates as instants."""
    is_day = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    return datetime.datetime(value.year, value.month, value.day) if is_day else value


def test_there_are_enough():
    assert len(FILES) >= 40


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_a_person_would(tmp_path, name):
    text, columns, codes = FILES[name]
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = read_table(path)
    for column, (kind, cells) in columns.items():
        assert TYPES[kind](found.table[column].type), (column, found.table[column].type)
        assert found.table[column].to_pylist()[: len(cells)] == cells
    assert {finding.code for finding in found.findings} == set(codes)
    stored = {name: Notation.stored(how.to_store()) for name, how in found.notations.items()}
    assert stored == found.notations
    if "RB029" in codes:  # a cell that is missing at fit is refused later
        return
    with Batches(path, Expected(stored)) as batches:
        parts = [batch.X for batch in batches]
    for column in found.table.column_names:
        again = [alike(cell) for part in parts for cell in part[column].to_pylist()]
        assert again == [alike(cell) for cell in found.table[column].to_pylist()], column


def test_two_notations_are_never_read_wrong(tmp_path):
    outcomes = [fuzz_notation.run(case, tmp_path) for case in range(10)]
    assert set(outcomes) == {"right", "refused"}
