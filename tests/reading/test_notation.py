"""How cells are written: decided once from all cells at fit, stored with the model, applied afterwards."""

import json
import re
import shlex
from datetime import date

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("click")
pytest.importorskip("rich")

import pyarrow.parquet as pq  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from pyarrow import csv  # noqa: E402

from riskbayes.cli import main  # noqa: E402
from riskbayes.compare import compare  # noqa: E402
from riskbayes.input.files.notation import Notation  # noqa: E402
from riskbayes.input.files.options import Options, kind_option  # noqa: E402
from riskbayes.input.files.table import open_table, read_table  # noqa: E402

FIT = ("--model", "MixedNB", "--learner", "closed_form", "--no-held-out")


def invoke(*args):
    return CliRunner().invoke(main, list(map(str, args)))


def fitted(tmp_path, text, *options, target="y", name="train.csv", model="m.rb"):
    """Fit a quick model to a file; return the path of the model."""
    path = tmp_path / name
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = invoke("fit", path, "--target", target, *FIT, "-o", tmp_path / model, *options)
    assert done.exit_code == 0, done.output
    return tmp_path / model


def predicted(tmp_path, model, text, *options, name="new.csv"):
    """Return the predicted labels of a file, or the sentence that refused it."""
    path = tmp_path / name
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    out = ("-o", tmp_path / "out.parquet", "--force")
    done = invoke("predict", model, path, *out, "--labels-only", *options)
    if done.exit_code:
        assert done.exit_code == 2, (done.output, done.exception)
        return done.output
    return pq.read_table(tmp_path / "out.parquet")["predicted"].to_pylist()


def lines(rows, delimiter=","):
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


def test_padded_files_are_read_alike_at_fit_and_predict(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(k % 7, w, ["no", "yes"][w in ("a", "b")]) for k, w in enumerate(rng.choice(list("abcd"), 60))]
    text = "n, w, y\n" + lines(rows, ", ")
    model = fitted(tmp_path, text)
    assert predicted(tmp_path, model, text) == [row[2] for row in rows]
    found = invoke("explain", model, tmp_path / "new.csv", "--row", 0, "--json")
    parts = {part["column"]: part for part in json.loads(found.output)["contributions"]}
    assert parts["w"]["value"] == rows[0][1]
    assert parts["w"]["contribution"] != 0


def test_the_decimal_sign_is_that_of_training(tmp_path):
    rows = [(f"{8 + k % 2}.{100 + k}", f"{k % 5},{k % 4}", "rich" if k % 2 else "poor") for k in range(40)]
    model = fitted(tmp_path, "salary;mark;y\n" + lines(rows, ";"))
    assert predicted(tmp_path, model, "salary;mark\n8.100;5\n9.101;4\n") == ["poor", "rich"]
    for other in ("8100.5;5.5", "8,100.5;5.5", "9;5.5"):
        refused = predicted(tmp_path, model, f"salary;mark\n{other}\n")
        assert "--decimal" in refused
        assert "line 2" in refused
    assert predicted(tmp_path, model, "salary;mark\n9,101.5;5.5\n", "--decimal", ".") == ["rich"]


@pytest.mark.parametrize("cell", ["1,5", "x"])
def test_a_typo_does_not_turn_a_column(tmp_path, cell):
    rows = [(f'"{1 + k % 9},{100 + k}"', "ab"[k % 2]) for k in range(300)]
    rows[17] = (f'"{cell}"', "a")
    (tmp_path / "t.csv").write_text("n,y\n" + lines(rows))
    found = read_table(tmp_path / "t.csv")
    values = found.table["n"].to_pylist()
    assert values[0] == 1100
    assert values[17] is None
    finding = next(finding for finding in found.findings if finding.code == "RB029")
    assert repr(cell) in finding.message
    assert "line 19" in finding.message


@given(
    st.lists(st.integers(0, 10**7), min_size=1, max_size=8),
    st.sampled_from([("", "."), (",", "."), ("'", "."), ("", ","), (".", ","), (" ", ",")]),
    st.sampled_from(["-", "\u2013", "\u2014", "--", "/-"]),
    st.sampled_from(["", "CHF ", "$", "Rs. "]),
)
def test_a_dash_for_no_cents_is_no_minus(amounts, signs, dash, before):
    """Read as the whole amount, and with a minus as its negative."""
    thousands, decimal = signs
    cents = dash if dash == "/-" else decimal + dash
    cells = [before + f"{n:,}".replace(",", thousands) + cents for n in amounts]
    how = Notation("number", decimal, thousands.strip(" '"), unit=before.strip())
    assert how.read(pa.array(cells)).to_pylist() == amounts
    assert how.read(pa.array(["-" + cell for cell in cells])).to_pylist() == [-n for n in amounts]


@pytest.mark.parametrize("value", [-(10**17), 10**17, -(10**18) + 1, 10**18 - 1])
def test_a_sign_is_no_digit_of_a_code(tmp_path, value):
    """Whole numbers that 64 bits hold are numbers."""
    (tmp_path / "t.csv").write_text(f"a,b\n{value},x\n")
    assert read_table(tmp_path / "t.csv").table["a"].to_pylist() == [value]


@given(st.dates(date(1969, 1, 1), date(2068, 12, 31)), st.sampled_from(["%d-%b-%y", "%d %B %y", "%d. %b %y"]))
def test_two_digits_are_a_year_behind_a_named_month(day, form):
    for cell in (day.strftime(form), day.strftime(form).upper()):
        assert Notation("date", order="ymd").read(pa.array([cell])).to_pylist() == [day]


@pytest.mark.parametrize("gone", ["? ", "NA ", " NA", "  "])
def test_missing_cells_are_the_same_at_fit_and_predict(tmp_path, gone):
    rows = [((gone, "red", "blue")[k % 3], k, "ab"[k % 3 == 0]) for k in range(60)]
    model = fitted(tmp_path, "w,n,y\n" + lines(rows))
    found = json.loads(invoke("inspect", model, "--json").output)["columns"]
    assert {each["name"]: each["missing"] for each in found} == {"w": 20, "n": 0}
    assert len(set(predicted(tmp_path, model, f"w,n\n{gone},3\n,3\n"))) == 1


@pytest.mark.parametrize(
    "spelling", [("1", "0"), ("yes", "no"), ("TRUE", "False"), ("y", "N"), ("ja", "nein"), ("oui", "non")]
)
def test_flags_of_parquet_are_read_from_a_csv(tmp_path, spelling):
    flags = [bool(k % 2) for k in range(40)]
    table = pa.table({"f": flags, "n": range(40), "y": ["b" if f else "a" for f in flags]})
    pq.write_table(table, tmp_path / "train.parquet")
    model = fitted(tmp_path, None, name="train.parquet")
    text = "f,n\n" + lines([(spelling[0], 20), (spelling[1], 20)])
    assert predicted(tmp_path, model, text) == ["b", "a"]
    assert "'maybe'" in predicted(tmp_path, model, "f,n\nmaybe,1\n")


def test_a_header_of_years_is_a_header(tmp_path):
    text = "2019,2020,2021,outcome\n" + lines(
        [(k, k + 1, 5 * k, "up" if k % 2 else "down") for k in range(9)]
    )
    (tmp_path / "t.csv").write_text(text)
    assert open_table(tmp_path / "t.csv").column_names == ["2019", "2020", "2021", "outcome"]


@pytest.mark.parametrize("head", ["2019,2020,y", "1,2,y"])
def test_a_header_that_was_taken_for_data_is_named(tmp_path, head):
    """Nobody can tell it from a row: the message says which option does."""
    rows = lines([(2000 + k, 2010 + k % 4, "ab"[k % 2]) for k in range(30)])
    (tmp_path / "t.csv").write_text(f"{head}\n{rows}")
    fit = ("fit", tmp_path / "t.csv", "--target", "y", *FIT, "-o", tmp_path / "m.rb")
    assert "pass --header" in invoke(*fit).output
    assert invoke(*fit, "--header").exit_code == 0
    assert "pass --header" in predicted(tmp_path, tmp_path / "m.rb", None, name="t.csv")
    assert predicted(tmp_path, tmp_path / "m.rb", None, "--header", name="t.csv") == ["a", "b"] * 15


def test_partitions_of_folders_are_columns(tmp_path):
    rows = {2023: "a", 2024: "b"}
    for year, label in rows.items():
        (tmp_path / f"all/year={year}").mkdir(parents=True)
        table = pa.table({"n": [1.0, 2.0] * 20, "y": [label] * 40})
        pq.write_table(table, tmp_path / f"all/year={year}/part.parquet")
    model = fitted(tmp_path, None, name="all")
    assert predicted(tmp_path, model, "n,year\n1.5,2023\n1.5,2024\n") == ["a", "b"]
    assert predicted(tmp_path, model, None, name="all") == ["a"] * 40 + ["b"] * 40


@pytest.mark.parametrize(
    ("text", "said", "cells"),
    [
        ("1;2\n3;4\n", {"header": True}, {"1": [3], "2": [4]}),
        ("a;b\n3;4\n", {"header": False}, {"column1": ["a", "3"], "column2": ["b", "4"]}),
        ("a:b,c\n3:4,5\n", {"delimiter": ":"}, {"a": [3], "b,c": [4.5]}),
        ("ж;b\n3;4\n".encode("cp1251"), {"encoding": "cp1251"}, {"ж": [3], "b": [4]}),
        ('a;b\n"1,234";x\n', {"decimal": "."}, {"a": [1234], "b": ["x"]}),
        ('a,b\n"1,234",x\n', {"decimal": ","}, {"a": [1.234], "b": ["x"]}),
        ("a,b\n03/04/2025,x\n", {"date_order": "mdy"}, {"a": [date(2025, 3, 4)], "b": ["x"]}),
        ("a,b\n1,x\n2,y\n", {"kinds": {"a": "category"}}, {"a": ["1", "2"], "b": ["x", "y"]}),
        ("a,b\n00123,x\n12345,y\n", {"kinds": {"a": "number"}}, {"a": [123, 12345], "b": ["x", "y"]}),
        ("a,b\n1,x\nmany,y\n", {"kinds": {"a": "number"}}, {"a": [1, None], "b": ["x", "y"]}),
        ("a,b\n1.2.2025,x\nlater,y\n", {"kinds": {"a": "date"}}, {"a": [date(2025, 2, 1), None]}),
    ],
)
def test_what_the_user_says_of_a_file(tmp_path, text, said, cells):
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    found = read_table(tmp_path / "t.csv", Options(**said)).table.to_pydict()
    assert {name: found[name] for name in cells} == cells


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_is_of_the_kind_that_the_user_says(tmp_path, kind):
    """Of the model as of the report, by the command and in Python, from a file of text and from Parquet."""
    told = {"day": "category", "key": "category", "code": "category", "digits": "number", "word": "id"}
    table = pa.table(
        {
            "day": [f"2024-01-{k % 9 + 1:02d}" for k in range(80)],
            "key": [f"K{k % 60}" for k in range(80)],
            "code": [k % 5 for k in range(80)],
            "digits": [f"{k % 7}" for k in range(80)],
            "word": [f"{'uvw'[k % 3]}" for k in range(80)],
            "n": [float(k % 11) for k in range(80)],
            "y": ["ab"[k % 9 > 4] for k in range(80)],
        }
    )
    if kind == "parquet":
        pq.write_table(table, tmp_path / "t.parquet")
    else:
        csv.write_csv(table, tmp_path / "t.csv")
    path = tmp_path / f"t.{kind}"
    said = [part for name, value in told.items() for part in ("--kind", f"{name}={value}")]
    expected = {"day": "category", "key": "category", "code": "category", "digits": "number", "n": "number"}
    model = fitted(tmp_path, None, *said, name=path.name)
    found = json.loads(invoke("inspect", model, "--json").output)["columns"]
    assert {each["name"]: each["kind"] for each in found} == expected
    assert predicted(tmp_path, model, None, name=path.name) == table["y"].to_pylist()
    done = invoke("compare", path, "--target", "y", *said, "--out", tmp_path / "report")
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "report/report.json").read_text())
    assert {each["name"]: each["kind"] for each in report["data"]["columns"]} == expected
    assert predicted(tmp_path, tmp_path / "report/model.rb", None, name=path.name)
    in_python = compare(table, "y", columns=told, cv=2).report.data.columns
    assert {each.name: each.kind for each in in_python} == {**expected, "word": "left out"}


def test_every_command_that_reads_takes_what_the_user_says(tmp_path):
    rows = [(k % 9, f"0{k % 7}/0{k % 9 + 1}/2024", "ab"[k % 9 > 4]) for k in range(80)]
    (tmp_path / "t.csv").write_text("n:day:label\n" + lines(rows, ":") + "Total:300:\n")
    said = ("--delimiter", ":", "--header", "--encoding", "utf-8", "--decimal", ".", "--date-order", "mdy")
    model = fitted(tmp_path, None, *said, "--kind", "day=drop", name="t.csv", target="label")
    assert predicted(tmp_path, model, None, *said, name="t.csv") == [row[2] for row in rows]
    assert invoke("explain", model, tmp_path / "t.csv", "--row", 0, *said).exit_code == 0
    done = invoke("compare", tmp_path / "t.csv", "--target", "label", *said, "--drop", "day", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [each["name"] for each in report["data"]["columns"]] == ["n"]
    assert "RB031" in {finding["code"] for finding in report["findings"]}
    assert "--header --delimiter : --encoding utf-8" in report["run"]["command"]
    for wrong in (
        ("--kind", "n=numbers"),
        ("--delimiter", "::"),
        ("--encoding", "klingon"),
        ("--kind", "z=id"),
    ):
        assert invoke("fit", tmp_path / "t.csv", "--target", "label", *wrong).exit_code == 2


def test_findings_of_reading_are_told(tmp_path):
    rows = [(f"{k % 5 + 1},{k % 7}", k % 3, "ab"[k % 2]) for k in range(120)]
    text = "n;m;y\n" + lines(rows, ";") + "oops;1;a\nTotal;300;\n"
    (tmp_path / "t.csv").write_text(text)
    done = invoke("fit", tmp_path / "t.csv", "--target", "y", *FIT, "-o", tmp_path / "m.rb")
    assert "'oops' in line 122" in done.stderr
    assert "line 123: 'Total;300;'" in done.stderr
    assert "121 rows" in done.stdout


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        (lambda k: f"K{k:04d}", "RB006"),
        (lambda k: f"{k},5 Mio. \u20ac", "RB006"),
        (lambda k: f"the customer called {k} times and then paid", "RB032"),
        (lambda k: f"{k % 40} Uhr {k % 4}", "RB029"),
        (lambda k: f"{k % 40}" if k % 2 else f"<{k % 40}", "RB029"),
    ],
)
def test_what_is_not_read_is_a_warning_with_a_cell_and_the_option_that_mends_it(tmp_path, cell, code):
    """Read as words or left out: it is told by `fit`, and the option that it names is right."""
    rows = [(cell(k), k % 7, "ab"[k % 2]) for k in range(120)]
    path = tmp_path / "t.csv"
    path.write_text("c;n;y\n" + lines(rows, ";"))
    fit = ("fit", path, "--target", "y", *FIT, "-o", tmp_path / "m.rb")
    done = invoke(*fit)
    (told,) = (line for line in done.stderr.splitlines() if line.startswith(code))
    assert any(repr(row[0]) in told for row in rows)
    option, value = re.search(r"(--kind) (c=(?:category|number))", told).groups()
    mended = invoke(*fit, option, value)
    assert mended.exit_code == 0
    assert code not in mended.stderr or value == "c=number"
    columns = json.loads(invoke("inspect", tmp_path / "m.rb", "--json").output)["columns"]
    assert columns[0]["kind"] in value


def test_free_text_is_text_and_no_identifier():
    from riskbayes import MixedNB

    notes = [f"the customer called {k} times and then paid all of it" for k in range(60)]
    table = pa.table({"n": range(60), "note": notes, "key": [f"K{k:04d}" for k in range(60)]})
    clf = MixedNB(learner="closed_form").fit(table, ["a", "b"] * 30)
    reasons = {column.name: column.reason for column in clf.columns_}
    assert reasons["note"].startswith("text")
    assert reasons["key"].startswith("an identifier")
    assert "RB032" in {finding.code for finding in clf.checks_}


@pytest.mark.parametrize(
    ("train", "new", "option"),
    [
        (["17/02/2025", "03/04/2025"], "02/17/2025", "--date-order"),
        (["17.02.2025", "03.04.2025"], "03/04/2025", "--date-order"),
        (["1.5", "2.25"], "2,5", "--decimal"),
        (["1.5", "2.25"], "8.123", "--decimal"),
        (["1.5", "2.25"], "1,234.5", "--decimal"),
        (["5 €", "6 €"], "5 $", "'5 €'"),
        (["5 %", "6 %"], "0.05", "'5 %'"),
        (["17:46", "08:00"], "8", "'17:46'"),
        (["yes", "no"], "perhaps", "true or false"),
    ],
)
def test_a_cell_that_does_not_fit_the_notation_is_refused(tmp_path, train, new, option):
    rows = [(f'"{train[k % 2]}"', k % 9, "ab"[k % 2]) for k in range(20)]
    model = fitted(tmp_path, "c,n,y\n" + lines(rows))
    refused = predicted(tmp_path, model, f'c,n\n"{new}",5\n')
    assert option in refused
    assert "line 2, column 'c'" in refused
    assert predicted(tmp_path, model, f'c,n\n"{train[1]}",5\n') == ["b"]


@pytest.mark.parametrize("name", ["key", "120 %", "it's", "$HOME", "a b=c"])
def test_the_option_that_a_message_names_is_one_word_of_a_shell(name):
    assert shlex.split(kind_option(name, "category")) == ["--kind", f"{name}=category"]
