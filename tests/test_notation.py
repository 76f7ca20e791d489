"""How cells are written: decided once from all cells at fit, stored with the model, applied afterwards."""

import json

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("click")
pytest.importorskip("rich")

import pyarrow.parquet as pq  # noqa: E402
from click.testing import CliRunner  # noqa: E402

from riskbayes.cli import main  # noqa: E402

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
    done = invoke("predict", model, path, "-o", tmp_path / "out.parquet", "--labels-only", *options)
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
    from riskbayes.reading.table import read_table

    (tmp_path / "t.csv").write_text("n,y\n" + lines(rows))
    found = read_table(tmp_path / "t.csv")
    values = found.table["n"].to_pylist()
    assert values[0] == 1100
    assert values[17] is None
    finding = next(finding for finding in found.findings if finding.code == "RB029")
    assert repr(cell) in finding.message
    assert "line 19" in finding.message


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
    from riskbayes.reading.table import open_table

    text = "2019,2020,2021,outcome\n" + lines(
        [(k, k + 1, 5 * k, "up" if k % 2 else "down") for k in range(9)]
    )
    (tmp_path / "t.csv").write_text(text)
    assert open_table(tmp_path / "t.csv").column_names == ["2019", "2020", "2021", "outcome"]


def test_partitions_of_folders_are_columns(tmp_path):
    rows = {2023: "a", 2024: "b"}
    for year, label in rows.items():
        (tmp_path / f"all/year={year}").mkdir(parents=True)
        table = pa.table({"n": [1.0, 2.0] * 20, "y": [label] * 40})
        pq.write_table(table, tmp_path / f"all/year={year}/part.parquet")
    model = fitted(tmp_path, None, name="all")
    assert predicted(tmp_path, model, "n,year\n1.5,2023\n1.5,2024\n") == ["a", "b"]
    assert predicted(tmp_path, model, None, name="all") == ["a"] * 40 + ["b"] * 40
