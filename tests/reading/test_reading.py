"""The reader of users' files: dialects, encodings, numbers, and every mistake in one sentence."""

import bz2
import csv
import gzip
import io
import lzma
import math
import pickle
import sqlite3
import sys
import time
from datetime import date

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from riskbayes.input.files import UserError

pa = pytest.importorskip("pyarrow")

import pyarrow.feather as feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from riskbayes.input.files import batches as batches_module  # noqa: E402
from riskbayes.input.files import blocks  # noqa: E402
from riskbayes.input.files.batches import Batches  # noqa: E402
from riskbayes.input.files.blocks import CSV  # noqa: E402
from riskbayes.input.files.expected import Expected  # noqa: E402
from riskbayes.input.files.notation import MISSING, NUMBER, TEXT, UNREAD, Notation  # noqa: E402
from riskbayes.input.files.table import open_table, split_columns  # noqa: E402

LATIN = st.characters(codec="cp1252", exclude_categories=["Cc", "Cs", "Zl", "Zp"])
ANY = st.characters(exclude_categories=["Cc", "Cs", "Cn", "Co"])


def reads(kinds):
    return Expected({name: Notation(kind) for name, kind in kinds.items()})


def words(letters):
    text = st.text(letters, min_size=1, max_size=8)
    odd = st.sampled_from(
        ["a,b", "x;y", "p|q", "1\t2", 'say "hi"', "two\nlines", "#1", "007", "'quoted'", "1.2.3"]
    )
    return (text | odd).filter(lambda t: t.strip() == t and t not in MISSING and not t.startswith("\ufeff"))


@st.composite
def tables(draw, letters):
    """Columns of whole numbers, numbers and text with missing cells, at least one of text or two columns."""
    m, kinds = draw(st.integers(1, 12)), draw(st.lists(st.sampled_from("inw"), min_size=2, max_size=5))
    cells = {
        "i": st.integers(-(10**17), 10**17),
        "n": st.floats(allow_nan=False, allow_infinity=False),
        "w": words(letters).map(lambda t: "w" + t),
    }
    columns = []
    for kind in kinds:
        column = draw(st.lists(st.none() | cells[kind], min_size=m, max_size=m))
        column[draw(st.integers(0, m - 1))] = draw(cells[kind])
        columns.append(column)
    names = [f"{kind}{j} name" for j, kind in enumerate(kinds)]
    return names, columns


def written(names, columns, delimiter, quoting, ending, decimal, missing):
    def cell(value):
        if value is None:
            return missing
        return repr(value).replace(".", decimal) if isinstance(value, float) else str(value)

    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=ending)
    writer.writerow(names)
    writer.writerows([cell(column[i]) for column in columns] for i in range(len(columns[0])))
    return text.getvalue()


def same(found, expected):
    if expected is None or found is None:
        return found is expected
    if isinstance(expected, str):
        return found == expected
    return math.isclose(found, expected, rel_tol=1e-15, abs_tol=0) or found == expected


QUOTING = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL]
COMPRESSORS = [
    bytes,
    bytes,
    gzip.compress,
    bz2.compress,
    lzma.compress,
    lambda d: pa.Codec("zstd").compress(d).to_pybytes(),
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(data=st.data())
def test_tables_in_any_dialect_and_encoding_are_read_back(tmp_path, encoding, data):
    names, columns = data.draw(tables(LATIN if encoding == "cp1252" else ANY))
    delimiter = data.draw(st.sampled_from(",;\t|"))
    ending = data.draw(st.sampled_from(["\n", "\r\n"]))
    decimal = data.draw(st.sampled_from(".,")) if delimiter != "," else "."
    missing = data.draw(st.sampled_from(["", "NA", "?"]))
    quoting = data.draw(st.sampled_from(QUOTING))
    text = written(names, columns, delimiter, quoting, ending, decimal, missing)
    encoded = text.encode(encoding)
    if encoding == "cp1252":
        assume(not any(is_utf8(line) for line in encoded.split(b"\n") if not line.isascii()))
    if encoding == "utf-16-le":
        # Without a mark it is guessed by its zeros.
        assume(sum(not letter.isascii() for letter in text[:512]) < 0.05 * len(text[:512]))
    path = tmp_path / "t.csv"
    path.write_bytes(data.draw(st.sampled_from(COMPRESSORS))(encoded))
    found = open_table(path)
    assert found.column_names == names
    for column, expected in zip(found.columns, columns, strict=True):
        pairs = list(zip(column.to_pylist(), expected, strict=True))
        assert all(same(*pair) for pair in pairs), pairs


@pytest.mark.parametrize(("delimiter", "inner"), [(a, b) for a in ",;\t|" for b in ",;|" if a != b])
def test_a_sign_within_cells_is_no_delimiter(tmp_path, delimiter, inner):
    """Even if it splits all rows, the header too, into the same number of pieces."""
    names, path = ["key", f"width{inner} height{inner} depth", "count"], tmp_path / "t.csv"
    rows = [[f"k{i}", f"{i} cm{inner} {2 * i} cm{inner} wide", str(i)] for i in range(1, 9)]
    path.write_text("".join(delimiter.join(row) + "\n" for row in [names, *rows]))
    found = open_table(path)
    assert found.column_names == names
    assert found.column(1).to_pylist() == [row[1] for row in rows]


def is_utf8(line):
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    table=tables(ANY),
    size=st.integers(1, 60),
    quoting=st.sampled_from(QUOTING),
    last=st.booleans(),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_blocks_of_any_size_hold_the_same_rows(tmp_path, monkeypatch, table, size, quoting, last, ending):
    """However small the blocks are: the same records, and lines as they are in the file."""
    names, columns = table
    text = written(names, columns, ",", quoting, ending, ".", "")
    text = text if last else text.removesuffix(ending)
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    kinds = {name: NUMBER if name[0] in "in" else TEXT for name in names}
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "BLOCK", max(size, len(text.split(ending)[0].encode()) + 2))
        with Batches(path, reads(kinds)) as opened:
            batches = list(opened)
    found = pa.concat_tables([batch.X for batch in batches], promote_options="permissive")
    for column, expected in zip(found.columns, columns, strict=True):
        pairs = [
            (a, float(b) if isinstance(b, int) else b)
            for a, b in zip(column.to_pylist(), expected, strict=True)
        ]
        assert all(same(*pair) for pair in pairs), pairs
    lines = [line for batch in batches for line in batch.lines.to_pylist()]
    body = text.removesuffix(ending).split(ending, 1)[1]
    assert ending.join(line.removeprefix("\n") for line in lines) == body


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(table=tables(ANY), separator=st.sampled_from(",;\t|"))
def test_what_pandas_writes_is_what_pandas_reads(tmp_path, table, separator):
    pd = pytest.importorskip("pandas")
    names, columns = table
    frame = pd.DataFrame({n: pd.Series(c, dtype=object) for n, c in zip(names, columns, strict=True)})
    frame.to_csv(tmp_path / "t.csv", sep=separator, index=False)
    theirs = pd.read_csv(tmp_path / "t.csv", sep=separator, dtype=object, keep_default_na=True)
    ours = open_table(tmp_path / "t.csv").to_pandas()
    assert list(ours.columns) == list(theirs.columns)
    assert (ours.isna().to_numpy() == theirs.isna().to_numpy()).all()


def read(tmp_path, text, encoding="utf-8"):
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return open_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a,b\n1,x\n2,y\n", {"a": [1, 2], "b": ["x", "y"]}),
        ("a;b\n1,5;x\n2,25;y\n", {"a": [1.5, 2.25], "b": ["x", "y"]}),
        ("a;b\n1.234,5;x\n2.000.000,25;y\n", {"a": [1234.5, 2000000.25], "b": ["x", "y"]}),
        ('a,b\n"1,234",x\n"2,000,000.5",y\n', {"a": [1234.0, 2000000.5], "b": ["x", "y"]}),
        ("a;b\n1,234;2.5\n2,567;3.5\n", {"a": [1234, 2567], "b": [2.5, 3.5]}),
        ("zip,n\n00123,1\n12345,2\n", {"zip": ["00123", "12345"], "n": [1, 2]}),
        ("phone,n\n0441234567,1\n0551234567,2\n", {"phone": ["0441234567", "0551234567"], "n": [1, 2]}),
        ("padded,n\n00202,1\n02000,2\n", {"padded": [202, 2000], "n": [1, 2]}),
        ("some,n\n01,1\n67,2\n0,3\n", {"some": [1, 67, 0], "n": [1, 2, 3]}),
        ("1,2\n3,4\n", {"column1": [1, 3], "column2": [2, 4]}),
        ("5.1,3.5,setosa\n4.9,3.0,virginica\n", {"column1": [5.1, 4.9], "column2": [3.5, 3.0],
                                                 "column3": ["setosa", "virginica"]}),
        (",a\n0,x\n1,y\n", {"column1": [0, 1], "a": ["x", "y"]}),
        ("# made by hand\n# twice\na,b\n1,2\n", {"a": [1], "b": [2]}),
        ("sep=;\na;b\n1;2\n", {"a": [1], "b": [2]}),
        ("\n\na,b\n\n1,2\n\n3,4\n\n", {"a": [1, 3], "b": [2, 4]}),
        ("a, b\n1, x\n2, ?\n", {"a": [1, 2], "b": ["x", None]}),
        ("a,b\r1,x\r2,y\r", {"a": [1, 2], "b": ["x", "y"]}),
        ("a,b\n1, \n2,3\n", {"a": [1, 2], "b": [None, 3]}),
        ('a,b\n5" pipe,1\n3" pipe,2\n', {"a": ['5" pipe', '3" pipe'], "b": [1, 2]}),
        ("a,b\nTrue,2024-01-02\nFalse,2024-01-03\n",
         {"a": [True, False], "b": [date(2024, 1, 2), date(2024, 1, 3)]}),
        ("id,n\n12345678901234567890,1\n12345678901234567891,2\n",
         {"id": ["12345678901234567890", "12345678901234567891"], "n": [1, 2]}),
        ("a,b\n1,9007199254740993\n2,-1\n", {"a": [1, 2], "b": [9007199254740993, -1]}),
        ("a,b\n1,N/A\n2,null\n", {"a": [1, 2], "b": [None, None]}),
        ("only\nx\ny\n", {"only": ["x", "y"]}),
    ],
)  # fmt: skip
def test_examples(tmp_path, text, columns):
    assert read(tmp_path, text).to_pydict() == columns


def picture():
    return b"\x89PNG\r\n\x1a\n" + bytes(100)


def database(tmp_path):
    with sqlite3.connect(tmp_path / "db") as connection:
        connection.execute("create table t (a)")
    return (tmp_path / "db").read_bytes()


BAD = {
    "empty": (b"", "is empty"),
    "blank": (b"\n\n  \n", "is empty"),
    "header only": (b"a,b\n", "a header and no rows"),
    "png": (picture(), "a PNG picture"),
    "zip": (b"PK\x03\x04" + bytes(50), "zip archive or an Excel workbook"),
    "pickle": (pickle.dumps({"a": [1, 2]}), "a pickle"),
    "binary": (bytes(range(1, 30)) + bytes(30) + b"\n", "NUL byte"),
    "gzip cut short": (gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20], "cut short"),
    "bzip2 cut short": (bz2.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20], "cut short"),
    "xz cut short": (lzma.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20], "cut short"),
    "gzip damaged": (gzip.compress(b"a,b\n" + bytes(range(1, 255)) * 50)[:30] + b"x" * 50, "damaged"),
    "mixed encodings": ("a,b\né,1\n".encode() + "é,2\n".encode("latin-1"), "mixes encodings: line 3"),
    "mixed the other way": ("a,b\né,1\n".encode("latin-1") + "é,2\n".encode(), "mixes encodings: line 3"),
    "ragged": (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, and the table has 2"),
    "ragged below quotes": (b'a,b\n"x\ny",2\n3\n', "line 4 has 1 cells"),
    "open quote": (b'a,b\n1,2\n3,"4\n5,6\n', "opens in line 3"),
    "twins": (b"a,b,a\n1,2,3\n", "several columns named 'a'"),
    "a million columns": (b",".join(b"c%d" % j for j in range(10**6)) + b"\n", "1000000 columns in line 1"),
    "a row of a million cells": (b"a,b\n1,2\n" + b"1," * 10**6 + b"\n", "line 3 has 1000001 cells"),
    "NUL": (b"a,b\n1,2\n3,\x00\n", "line 3 holds a NUL byte"),
    "a line without end": (b"a,b\n" + b"x" * (2**24 + 2**23), "line 2 is longer than 16 MB"),
    "a mark and nothing else": (b"a,b\n\xef\xbb\xbf", "line 2 cannot be read as CSV"),
    "UTF-16 cut": ("a,b\n1,2\n".encode("utf-16")[:-1], "UTF-16"),
    "no parquet": (b"PAR1 but nothing else PAR1", "cannot be read as Parquet"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_a_sentence(tmp_path, name):
    data, words = BAD[name]
    with pytest.raises(UserError) as error:
        read(tmp_path, data)
    assert words in str(error.value)
    assert str(tmp_path / "t.csv") in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_the_last_cell_may_be_of_any_length(tmp_path):
    """It is too long for a footnote, and for Python's reader of CSV."""
    (tmp_path / "t.csv").write_text("a,b\n" + "1,x\n" * 600 + f"2,{'y' * 200_000}\n")
    assert len(open_table(tmp_path / "t.csv")["b"][600].as_py()) == 200_000


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "people.csv").write_text("a,b\n1,2\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=r"no file .*poeple.csv.*Did you mean .*people.csv"):
        open_table(tmp_path / "poeple.csv")
    with pytest.raises(UserError, match="no file"):
        open_table(tmp_path / "folder")
    with pytest.raises(UserError, match="no file"):
        open_table(str(tmp_path / "*.parquet"))
    with pytest.raises(UserError, match="SQLite"):
        read(tmp_path, database(tmp_path))


def test_other_formats_are_the_same_table(tmp_path):
    table = pa.table({"a": [1.5, None], "b": ["x", "y"]})
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather", compression="uncompressed")
    pq.write_table(table, tmp_path / "no_ending")
    for path in ("t.parquet", "t.feather", "no_ending", "*.parquet"):
        assert open_table(tmp_path / path).to_pydict() == table.to_pydict()


def test_a_file_that_lacks_a_column_of_the_others_is_named(tmp_path):
    parts = {"a": pa.table({"x": [1.5], "k": [1]}), "b": pa.table({"k": [2], "x": [2.5]})}
    for name, part in parts.items():
        pq.write_table(part, tmp_path / f"{name}.parquet")
    assert open_table(tmp_path).to_pydict() == {"x": [1.5, 2.5], "k": [1, 2]}
    expected = reads({"x": NUMBER, "k": UNREAD})
    for name in ("0", "z"):
        pq.write_table(pa.table({"x": [3.5]}), tmp_path / f"{name}.parquet")
        with pytest.raises(UserError, match=rf"{name}\.parquet' lacks the column 'k', which .*a\.parquet'"):
            open_table(tmp_path)
        if name == "z":
            assert sum(len(batch.X) for batch in Batches(tmp_path, expected)) == 3
            with pytest.raises(UserError, match=r"z\.parquet' lacks the column 'k'"):
                Batches(tmp_path, reads({"x": NUMBER, "k": NUMBER}))
        (tmp_path / f"{name}.parquet").unlink()


def test_standard_input(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"a,b\n1,x\n"))))
    assert open_table("-").to_pydict() == {"a": [1], "b": ["x"]}
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "t").read_bytes())))
    with pytest.raises(UserError, match="Name the file"):
        open_table("-")


def table_of(**columns):
    return pa.table(columns)


@pytest.mark.parametrize(
    ("columns", "target", "words"),
    [
        ({"Age": [1, 2], "y": ["a", "b"]}, "age", "Did you mean 'Age'?"),
        ({"a": [1, 2], "y": ["a", "a"]}, "y", "one class only, 'a'"),
        ({"a": range(500), "y": range(500)}, "y", "regression"),
        ({"a": range(60), "y": [i / 7 for i in range(60)]}, "y", "regression"),
        ({"a": range(60), "y": [(i % 4) / 2 for i in range(60)]}, "y", "regression"),
        ({"a": range(60), "y": [f"n{i}" for i in range(60)]}, "y", "a name or a key"),
        ({"y": ["a", "b"]}, "y", "no column but the target"),
        ({"a": [1, 2], "y": [[1], [2]]}, "y", "holds List"),
    ],
)
def test_targets_that_no_classifier_can_learn(columns, target, words):
    with pytest.raises(ValueError) as error:
        split_columns(pa.table({name: list(values) for name, values in columns.items()}), target)
    assert words in str(error.value)


def test_weights_and_columns_that_are_dropped():
    table = pa.table({"a": [1, 2], "b": [3, 4], "w": [1.0, 0.5], "y": [0, 1]})
    X, y, w, _ = split_columns(table, "y", "w", ["b"])
    assert X.column_names == ["a"]
    assert y.tolist() == [0, 1]
    assert w.tolist() == [1.0, 0.5]
    table = pa.concat_tables([table.set_column(3, "y", pa.array([None, None], pa.int64())), table])
    with pytest.raises(UserError, match="-1 in row 3"):
        split_columns(table.set_column(2, "w", pa.array([None, -2.0, 1.0, -1.0])), "y", "w")
    with pytest.raises(UserError, match="holds string"):
        split_columns(table.set_column(2, "w", pa.array(["1", "x"] * 2)), "y", "w")


def test_memory_is_bounded_by_the_block_and_not_by_the_file(tmp_path):
    """A file of many blocks is read with the memory of a few."""
    line = b"1.5,some words,3\n"
    (tmp_path / "t.csv").write_bytes(b"a,b,c\n" + line * (6 * blocks.BLOCK // len(line)))
    before = pa.total_allocated_bytes()
    most = rows = 0
    with CSV(tmp_path / "t.csv") as file:
        for block in file.blocks():
            rows += file.cells(block).num_rows
            most = max(most, len(block.text) + pa.total_allocated_bytes() - before)
    assert rows == 6 * blocks.BLOCK // len(line)
    assert most < 3 * blocks.BLOCK


@pytest.mark.parametrize("kind", ["csv", "quoted.csv", "blank.csv", "parquet", "feather"])
@pytest.mark.parametrize("most", [1, 7, 100])
def test_no_batch_has_more_rows_than_it_may(kind, most, tmp_path, monkeypatch):
    """However few bytes a row has: its posteriors may be many. Together they are the table."""
    for module in (blocks, batches_module):
        monkeypatch.setattr(module, "MOST_ROWS", most)
    path, numbers = tmp_path / f"t.{kind}", list(range(20))
    table = pa.table({"a": pa.array(numbers, pa.float64()), "b": [f"w{i}" for i in numbers]})
    if kind.endswith("csv"):
        odd = {"csv": "w{}", "quoted.csv": '"w{}\n"', "blank.csv": "w{}\n"}[kind]
        path.write_text("a,b\n" + "".join(f"{i},{odd.format(i)}\n" for i in numbers))
    else:
        {"parquet": pq.write_table, "feather": feather.write_feather}[kind](table, str(path))
    with Batches(path, reads({"b": TEXT, "a": NUMBER})) as batches:
        found = list(batches)
    assert max(batch.X.num_rows for batch in found) <= most
    X = pa.concat_tables(
        [batch.X.cast(pa.schema([("b", pa.string()), ("a", pa.float64())])) for batch in found]
    )
    assert [word.strip() for word in X["b"].to_pylist()] == table["b"].to_pylist()
    assert X["a"].to_pylist() == numbers
    assert pa.concat_tables([batch.rows() for batch in found]).num_rows == len(numbers)
    if kind.endswith("csv"):
        lines = "".join(line for batch in found for line in batch.lines.to_pylist())
        assert lines.replace("\n", "") == path.read_text()[4:].replace("\n", "")


def test_lines_are_counted_through_the_parts_of_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_ROWS", 3)
    (tmp_path / "t.csv").write_text('a,b\n1,"x\ny"\n\n2,z\n3,z\n4,z\n5,z\nhello,z\n')
    with (
        pytest.raises(UserError, match=r"line 9, column 'a' has 'hello'"),
        Batches(tmp_path / "t.csv", reads({"a": NUMBER, "b": TEXT})) as batches,
    ):
        list(batches)


@pytest.mark.parametrize("cast", [False, True])
def test_parquet_is_read_with_the_memory_of_a_row_group(cast, tmp_path, monkeypatch):
    """Whatever the number of row groups, while the reader of the batches is slow."""
    monkeypatch.setattr(batches_module, "MOST_ROWS", 1000)
    names = [f"x{j}" for j in range(8)]
    table = pa.table({name: np.random.default_rng(0).standard_normal(200_000) for name in names})
    (tmp_path / "t").mkdir()
    if cast:  # the first file decides the types, and the scanner of Arrow casts the second
        pq.write_table(table[:1].set_column(0, "x0", pa.array([1.0], pa.float32())), tmp_path / "t/a.parquet")
    pq.write_table(table, tmp_path / "t" / "b.parquet", row_group_size=10_000)
    size, most = table.nbytes, 0
    del table
    before = pa.total_allocated_bytes()
    with Batches(tmp_path / "t", reads(dict.fromkeys(names, NUMBER))) as batches:
        for i, _ in enumerate(batches):
            time.sleep(0.1 if i < 2 else 0)
            most = max(most, pa.total_allocated_bytes() - before)
    assert most < size * (1.5 if cast else 0.5)  # it reads ahead, but has no buffers for what is to come


def test_cells_that_are_no_numbers_are_named_with_their_line(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n1,"x\ny"\n2,z\nhello,z\n')
    with (
        pytest.raises(UserError, match=r"line 5, column 'a' has 'hello'"),
        Batches(tmp_path / "t.csv", reads({"a": NUMBER, "b": TEXT})) as batches,
    ):
        list(batches)
    (tmp_path / "t.csv").write_text('a;b\n"1.234,5";x\n 2 ;y\nNA;z\n')
    with Batches(tmp_path / "t.csv", reads({"b": TEXT, "a": NUMBER})) as batches:
        [batch] = batches
    np.testing.assert_array_equal(batch.X.column("a").to_numpy(), [1234.5, 2, np.nan])
