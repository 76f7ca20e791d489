"""What commands write: not over what they read or results of another table, and with cells as they were."""

import csv
import io
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from riskbayes.cli import main

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from riskbayes.input.files.table import open_table  # noqa: E402

WORDS = [
    "N/A",
    "?",
    "None",
    "NA",
    "null",
    "nan",
    "",
    " padded",
    'a "quoted", word',
    "tab\there",
    "x;y",
    "line\nbreak",
]


def rows(m=60):
    """A table with words for missing cells in a column that no model needs."""
    head = ["x", "colour", "remark", "answer"]
    cells = (
        [f"{i}.5", ["red", "blue", "?"][i % 3], WORDS[i % len(WORDS)], "yes" if i % 2 else "no"]
        for i in range(m)
    )
    return [head, *cells]


def text_of(table, delimiter=","):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(table)
    return file.getvalue()


def cells_of(path, delimiter):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


def run(*arguments, **options):
    return CliRunner().invoke(main, [str(each) for each in arguments], **options)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a table in several forms, and a model of it."""
    folder = tmp_path_factory.mktemp("made")
    table = rows()
    (folder / "t.csv").write_text(text_of(table), encoding="utf-8")
    (folder / "other.csv").write_text(text_of([*table, table[1]]), encoding="utf-8")
    (folder / "pq" / "sub").mkdir(parents=True)
    found = open_table(folder / "t.csv")
    pq.write_table(found, folder / "pq" / "a.parquet")
    pq.write_table(found, folder / "pq" / "sub" / "b.parquet")
    done = run("fit", folder / "t.csv", "--target", "answer", "--drop", "remark", "-o", folder / "m.rb",
               "--model", "mixednb", "--learner", "closed_form", "--no-held-out")  # fmt: skip
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A copy of that folder, to work in."""
    import shutil

    shutil.copytree(made, tmp_path / "w")
    monkeypatch.chdir(tmp_path / "w")
    return tmp_path / "w"


def contents():
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def refused(result, *words):
    assert result.exit_code == 2, (result.output, result.exception)
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert all(word in result.stderr for word in words), result.stderr


FIT = ("--target", "answer", "--model", "mixednb", "--learner", "closed_form", "--no-held-out")


@pytest.mark.parametrize(
    ("command", "out"),
    [
        (("fit", "t.csv", *FIT, "-o"), "t.csv"),
        (("fit", "t.csv", *FIT, "-o"), "../w/t.csv"),
        (("fit", "t.csv", *FIT, "-o"), "linked.csv"),
        (("fit", "t.csv", *FIT, "-o"), "hard.csv"),
        (("fit", "linked.csv", *FIT, "-o"), "t.csv"),
        (("fit", "pq", *FIT, "-o"), "pq/sub/b.parquet"),
        (("predict", "m.rb", "t.csv", "-o"), "hard.csv"),
        (("predict", "m.rb", "pq/*.parquet", "-o"), "pq/a.parquet"),
        (("predict", "m.rb", "pq/*.parquet", "-o"), "pq/new.parquet"),
        (("predict", "m.rb", "pq/**/*.parquet", "-o"), "pq/sub/new.parquet"),
        (("predict", "m.rb", "pq", "-o"), "pq/sub/b.parquet"),
        (("predict", "m.rb", "pq", "-o"), "pq/new.parquet"),
        (("predict", "m.rb", "pq", "-o"), "outside.parquet"),
        (("predict", "model.csv", "t.csv", "-o"), "model.csv"),
        (("sample", "model.csv", "-o"), "model.csv"),
        (("compare", "report.md", "--target", "answer", "--out"), "."),
        (("compare", "report.md", "--target", "answer", "--out"), "linked"),
    ],
)
def test_an_output_is_never_an_input(folder, monkeypatch, command, out):
    """Whatever both are called: nothing is written, and nothing is read before the sentence."""
    os.symlink("t.csv", "linked.csv")
    os.symlink(".", "linked")
    os.link("t.csv", "hard.csv")
    os.link("pq/sub/b.parquet", "outside.parquet")
    Path("model.csv").write_bytes(Path("m.rb").read_bytes())
    Path("report.md").write_bytes(Path("t.csv").read_bytes())
    before = contents()
    for reader in (
        "riskbayes.input.files.table.open_file",
        "riskbayes.input.files.blocks.open_file",
        "riskbayes.load",
    ):
        monkeypatch.setattr(reader, lambda *_: pytest.fail("it was read"))
    for force in ((), ("--force",)):
        refused(run(*command, out, *force), "is read", Path(out).name)
    assert contents() == before


def test_standard_input_is_an_input(folder):
    with open("t.csv", "rb") as file:
        import subprocess
        import sys

        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "from riskbayes.entry import main; main()",
                "fit",
                "-",
                *FIT,
                "-o",
                "t.csv",
            ],
            stdin=file,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 2
    assert "t.csv is a file that is read" in done.stderr


@pytest.mark.parametrize("out", ["pq/answers.csv", "pq/sub/new.parquet", "deep/er/new.parquet"])
def test_other_files_beside_the_input_may_be_written(folder, out):
    result = run("predict", "m.rb", "pq/*.parquet", "-o", out)
    assert result.exit_code == 0, result.output
    assert open_table(out).num_rows == 60


def test_results_of_another_table_are_replaced_by_force_only(folder):
    """Of another file or another target; the same table, changed or under another name, is no other."""
    fit = lambda data, *more: run("fit", data, *FIT, "--drop", "remark", "-o", "m.rb", *more)  # noqa: E731
    assert fit("t.csv").exit_code == 0
    assert fit(folder / "t.csv").exit_code == 0
    Path("copy.csv").write_bytes(Path("t.csv").read_bytes())
    assert fit("copy.csv").exit_code == 0
    Path("copy.csv").write_text(text_of(rows(50)))
    assert fit("copy.csv").exit_code == 0
    before = contents()
    refused(fit("other.csv"), "m.rb", "'copy.csv'", "--force")
    refused(
        run("fit", "copy.csv", *FIT[2:], "--target", "colour", "-o", "m.rb"), "m.rb", "'answer'", "--force"
    )
    refused(run("fit", "t.csv", *FIT, "-o", "other.csv"), "other.csv", "--force")
    with open("t.csv", "rb") as file:
        refused(run("fit", "-", *FIT, "-o", "m.rb", input=file), "m.rb", "--force")
    os.makedirs("away")
    Path("away/copy.csv").write_text(text_of(rows(40)))
    os.chdir("away")
    refused(run("fit", "copy.csv", *FIT, "-o", "../m.rb"), "m.rb", "--force")
    os.chdir("..")
    assert {name: content for name, content in contents().items() if "away" not in name} == before
    assert fit("other.csv", "--force").exit_code == 0
    assert fit("other.csv").exit_code == 0


def test_a_report_on_another_table_is_replaced_by_force_only(folder, monkeypatch):
    from riskbayes.commands import compare as command

    def compare(data, *more):
        return run("compare", data, "--target", "answer", "--out", "out", *more)

    assert compare("t.csv").exit_code == 0
    before = contents()
    for kept in (command.FILES, ("report.json",), ("report.md",), ("model.rb", "report.html")):
        for name in command.FILES:
            Path("out", name).unlink(missing_ok=True)
        for name in kept:
            Path("out", name).write_bytes(before[f"out/{name}"])
        refused(compare("other.csv"), "out/", "--force")
        assert sorted(os.listdir("out")) == sorted(kept)
    for name in command.FILES:
        Path("out", name).write_bytes(before[f"out/{name}"])
    Path("t.csv").write_text(text_of(rows(50)))
    assert compare("t.csv").exit_code == 0  # the table changed, and is the same
    assert compare("other.csv", "--force").exit_code == 0
    Path("out/report.json").write_bytes(before["out/report.json"])
    refused(compare("other.csv"), "out/report.json", "--force")


@pytest.mark.parametrize("command", [("predict", "m.rb", "t.csv"), ("sample", "m.rb")])
@pytest.mark.parametrize("out", ["mine.csv", "linked.csv"])
def test_a_file_that_says_of_no_table_is_replaced_by_force_only(folder, command, out):
    Path("mine.csv").write_text("of another day")
    os.symlink("mine.csv", "linked.csv")
    refused(run(*command, "-o", out), out, "is there already", "--force")
    assert Path("mine.csv").read_text() == "of another day"
    assert run(*command, "-o", out, "--force").exit_code == 0
    assert "answer" in Path("mine.csv").read_text()


def test_a_link_is_followed(folder):
    for command, name in (
        (("predict", "m.rb", "t.csv", "-o"), "answers.csv"),
        (("sample", "m.rb", "-o"), "drawn.parquet"),
        (("fit", "t.csv", *FIT, "-o"), "new.rb"),
    ):
        os.makedirs("elsewhere", exist_ok=True)
        os.symlink(f"elsewhere/{name}", name)
        assert run(*command, name).exit_code == 0
        assert os.path.islink(name)
        assert Path("elsewhere", name).is_file()
    assert sorted(os.listdir("elsewhere")) == ["answers.csv", "drawn.parquet", "new.rb"]


@pytest.mark.parametrize("out", ["out.csv", "out.tsv", "out.parquet"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_cells_stay_as_they_are(folder, delimiter, decimal, out):
    """Words for missing cells too; the added columns are read back as they were computed."""
    table = [[cell.replace(".5", f"{decimal}5") for cell in row] for row in rows()]
    Path("in.csv").write_text(text_of(table, delimiter), encoding="utf-8")
    for command in (
        ("fit", "in.csv", *FIT, "--drop", "remark", "-o", "own.rb"),
        ("predict", "own.rb", "in.csv", "-o", out),
        ("predict", "m.rb", "t.csv", "-o", "exact.parquet"),
    ):
        result = run(*command)
        assert result.exit_code == 0, result.output
    if out.endswith("parquet"):
        found = pq.read_table(out)
        assert found.column("remark").to_pylist() == [row[2] or None for row in table[1:]]
        assert found.column("colour").to_pylist() == [row[1] for row in table[1:]]
        assert found.column("x").to_pylist() == [i + 0.5 for i in range(60)]
    else:
        found = cells_of(out, "\t" if out.endswith("tsv") else delimiter)
        assert [row[:4] for row in found] == table
        assert {len(row) for row in found} == {7}
    names = ["predicted", "p_no", "p_yes"]
    added, exact = (open_table(path, names[:1]).select(names) for path in (out, "exact.parquet"))
    assert added.to_pydict() == exact.to_pydict()


def test_tabs_separate_the_cells_of_a_tsv(folder):
    for command in (("predict", "m.rb", "pq/a.parquet"), ("predict", "m.rb", "t.csv"), ("sample", "m.rb")):
        assert run(*command, "-o", "out.tsv", "--force").exit_code == 0
        found = cells_of("out.tsv", "\t")
        assert "colour" in found[0]
        assert {len(row) for row in found} == {len(found[0])}
