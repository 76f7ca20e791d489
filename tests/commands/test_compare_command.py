"""`riskbayes compare`: from a file to a report and a model, and one sentence for a user's mistake."""

import gzip
import json

import numpy as np
import pytest
from click.testing import CliRunner

import riskbayes
from conftest import shared_folder
from riskbayes.cli import main

pytest.importorskip("pyarrow")

from riskbayes.compare.report import Report
from riskbayes.datasets import adult_sample_csv

TABLE = "\n".join(
    ["x,colour,answer", *(f"{i},{'red' if i % 3 else 'blue'},{'yes' if i % 2 else 'no'}" for i in range(60))]
).encode()


def run(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def findings(path, target, *options):
    found = run(path, "--target", target, "--json", *options)
    assert found.exit_code == 0, found.output
    return Report.from_json(found.stdout)


def write(path, rows, header):
    lines = [",".join(header), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_writes_a_report_and_a_model_that_the_other_commands_read(tmp_path):
    data, out = tmp_path / "people.csv", tmp_path / "out"
    data.write_bytes(adult_sample_csv())
    found = run(data, "--target", "income", "--out", out)
    assert found.exit_code == 0, found.output
    assert {path.name for path in out.iterdir()} == {"report.html", "report.json", "report.md", "model.rb"}
    report = Report.from_json((out / "report.json").read_text())
    assert report.best in found.stdout
    assert report.run.command.startswith("riskbayes compare")
    clf = riskbayes.load(out / "model.rb")
    assert list(clf.classes_) == ["<=50K", ">50K"]
    asked = CliRunner().invoke(main, ["inspect", str(out / "model.rb"), "--json"])
    assert asked.exit_code == 0, asked.output
    assert json.loads(asked.stdout)["about"]["compared"] == report.best
    answers = tmp_path / "answers.csv"
    asked = CliRunner().invoke(main, ["predict", str(out / "model.rb"), str(data), "-o", str(answers)])
    assert asked.exit_code == 0, asked.output
    assert len(answers.read_text().splitlines()) == report.data.rows + 1


def test_the_same_seed_gives_the_same_report(tmp_path):
    data = tmp_path / "t.csv"
    data.write_bytes(TABLE)
    one, other = (findings(data, "answer").to_dict() for _ in range(2))
    for report in (one, other):
        del report["run"]
        for contender in report["contenders"]:
            del contender["fit_seconds"], contender["predict_seconds"]
    assert one == other


def test_planted_faults_are_found(tmp_path):
    rng = np.random.default_rng(0)
    m = 1200
    x, y = rng.standard_normal((m, 3)), rng.integers(2, size=m)
    x[:, 0] += y
    header, rows = ["a", "b", "c", "answer"], np.column_stack([x.round(4), y])
    plain = findings(write(tmp_path / "plain.csv", rows, header), "answer")
    assert {"RB003", "RB004", "RB010"}.isdisjoint(f.code for f in plain.findings)

    copied = np.column_stack([rows, 3 * y - 1])[:, [0, 1, 2, 4, 3]]
    report = findings(write(tmp_path / "leak.csv", copied, ["a", "b", "c", "copy", "answer"]), "answer")
    assert ("RB003", "copy") in {(f.code, f.where) for f in report.findings}

    shuffled = np.column_stack([x.round(4), rng.permutation(y)])
    report = findings(write(tmp_path / "noise.csv", shuffled, header), "answer")
    assert "RB010" in {f.code for f in report.findings}
    assert report.verdict.startswith("Nothing about 'answer' can be predicted")

    twice = rng.permutation(np.concatenate([rows, rows[:400]]))
    report = findings(write(tmp_path / "twice.csv", twice, header), "answer")
    assert "RB004" in {f.code for f in report.findings}

    drifting = np.column_stack(
        [rows[:, 0], np.linspace(0, 4, m).round(4) + rows[:, 1], rows[:, 2:], np.arange(m)]
    )
    path = write(tmp_path / "drift.csv", drifting[:, [0, 1, 2, 4, 3]], ["a", "b", "c", "day", "answer"])
    report = findings(path, "answer", "--time-column", "day")
    assert {f.where for f in report.findings if f.code == "RB009"} == {"b"}
    assert not [
        f
        for f in findings(path, "answer", "--time-column", "day", "--ignore", "RB009").findings
        if f.code == "RB009"
    ]


def bad_files():
    yield "empty", b"", "answer", ""
    yield "no rows", b"x,answer\n", "answer", ""
    yield "wrong target", TABLE, "anser", "'answer'"  # the nearest name is suggested
    yield "one class", TABLE.replace(b"no", b"yes"), "answer", "answer"
    yield "binary", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, "answer", ""
    yield "pickle", b"\x80\x05\x95\x10\x00\x00\x00" + b"\x00" * 400, "answer", ""
    yield "gzip cut short", gzip.compress(TABLE * 50)[:-40], "answer", ""
    yield "mixed encodings", TABLE + "\n61,blé,yes\n".encode() + "62,blé,no\n".encode("latin-1"), "answer", ""
    yield "a million columns", b"x" + b",y" * 1_000_000 + b"\n1" + b",2" * 1_000_000 + b"\n", "x", ""
    words = b"\n".join(f"{i},w{i % 1001}".encode() for i in range(3003))
    yield "a thousand words as target", b"x,answer\n" + words, "answer", "1001 distinct values"
    yield "numbers as target", TABLE, "x", "x"


@pytest.mark.parametrize(("data", "target", "word"), [pytest.param(*c[1:], id=c[0]) for c in bad_files()])
def test_a_mistake_is_one_sentence_and_status_2(tmp_path, data, target, word):
    path = tmp_path / ("data.csv.gz" if data[:2] == b"\x1f\x8b" else "data.csv")
    path.write_bytes(data)
    found = run(path, "--target", target, "--out", tmp_path / "out")
    assert found.exit_code == 2, (found.output, found.exception)
    assert len(found.stderr.strip().splitlines()) == 1
    assert "Traceback" not in found.output
    assert word in found.stderr
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("path", ["", "nowhere.csv"])
def test_a_folder_or_no_file(tmp_path, path):
    found = run(tmp_path / path, "--target", "answer", "--out", tmp_path / "out")
    assert found.exit_code == 2
    assert len(found.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("redwine.csv.gz", "target", {("RB004", "")}),
        ("mixed/telco_churn.csv.gz", "target", {("RB006", "customerID")}),
        ("mixed/penguins_raw.csv.gz", "target", {("RB006", "Individual ID")}),
        ("mixed/bank_marketing.csv.gz", "target", {("RB014", "duration")}),
        ("mixed/credit_approval.csv.gz", "target", set()),
    ],
)
def test_real_tables(name, target, expected):
    folder = shared_folder()
    if folder is None or not (folder / name).exists():
        pytest.skip("the table is not there")
    report = findings(folder / name, target)
    found = {(f.code, f.where if code else "") for f in report.findings for code in (f.code != "RB004",)}
    assert expected <= found
    assert "RB003" not in {code for code, _ in found}
    if "credit" in name:
        kinds = {column.name: column.kind for column in report.data.columns}
        assert [kinds[f"A{i}"] for i in (2, 3, 8, 11, 14, 15)] == ["number"] * 6


def test_a_file_of_new_rows_is_a_finding_where_it_differs(tmp_path):
    rng = np.random.default_rng(0)

    def rows(m, shift):
        y = rng.integers(2, size=m)
        x, colour = rng.normal(y + shift, 1.0), rng.choice(["red", "blue"], m)
        return [
            (f"{a:.3f}".replace(".", ","), b, "ny"[k]) for a, b, k in zip(x, colour, y.tolist(), strict=True)
        ]

    def written(name, m, shift, columns=("x", "colour", "answer")):
        lines = [";".join(columns), *(";".join(row[: len(columns)]) for row in rows(m, shift))]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    data, new = written("old.csv", 400, 0), written("new.csv", 200, 2, ("x", "colour"))
    report = findings(data, "answer", "--cv", "2", "--against", new)
    (found,) = (one for one in report.findings if one.code == "RB033")
    assert found.where == "x"
    assert "--against" in report.run.command
    same = written("same.csv", 200, 0, ("x", "colour"))
    report = findings(data, "answer", "--cv", "2", "--against", same)
    assert "RB033" not in {one.code for one in report.findings}
    lacking = written("lacking.csv", 20, 0, ("x", "hue"))
    for bad, said in ((lacking, "has no column 'colour' for the model"), (tmp_path / "no.csv", "no file")):
        refused = run(data, "--target", "answer", "--against", bad, "--out", tmp_path / "out")
        assert refused.exit_code
        assert said in refused.stderr
    assert not (tmp_path / "out").exists()
