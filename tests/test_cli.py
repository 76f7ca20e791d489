"""The command: what it prints, what it writes, how it fails."""

import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

import riskbayes
from riskbayes.cli import main
from riskbayes.commands._tables import print_table
from riskbayes_paper.tables import Mark, Table, plain


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def reduced(monkeypatch):
    from riskbayes.demo import experiment as demo

    monkeypatch.setattr(demo, "DATA_SETS", ("iris", "wine"))
    monkeypatch.setattr(demo, "SPLITS", 1)
    return demo.DATA_SETS


def failed_in_a_line(result, *words):
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1
    assert all(word in result.stderr for word in words)


def test_version_and_help(run):
    assert riskbayes.__version__ in run("--version").stdout
    for arguments in (["--help"], ["demo", "--help"], ["reproduce", "--help"], ["reproduce", "toy", "-h"]):
        result = run(*arguments)
        assert result.exit_code == 0
        assert "Usage:" in result.stdout


def test_demo(run, reduced, tmp_path):
    result = run("demo", "--out", "some/where")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "some" / "where"
    html = (folder / "index.html").read_text(encoding="utf-8")
    assert html.count("<svg") == 1
    assert html.count("<table") == 2
    assert "riskbayes demo --out some/where" in html
    for words in (*reduced, "RiskBayesClassifier", "LDA, closed form", "QDA, RC", "random forest"):
        assert words in result.stdout
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert "riskbayes compare some/where/adult_sample.csv --target income" in report
    lines = (folder / "adult_sample.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3001
    assert lines[0].endswith(",income")
    assert result.stdout.splitlines()[-1] == "The page: some/where/index.html"
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_demo_default_folder(run, reduced, tmp_path):
    assert run("demo").exit_code == 0
    assert (tmp_path / "demo" / "index.html").exists()
    found = json.loads(run("demo", "--json").stdout)
    assert all(len(errors) > 0 for errors in found["errors"].values())
    assert (tmp_path / found["page"]).exists()


def test_demo_where_nothing_can_be_written(run, tmp_path):
    (tmp_path / "file").write_text("")
    failed_in_a_line(run("demo", "--out", "file"), "Cannot write to file")
    failed_in_a_line(run("demo", "--out", "file/below"), "Cannot write to file")


def test_toy_prints_json_and_nothing_else(run, tmp_path):
    result = run("reproduce", "toy", "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert list(found) == ["t", "posterior", "soft_error", "statistics"]
    assert found["t"] == [0, 1, 2, 4, 8, 16, 32, 64]
    assert list(found["posterior"]) == ["0,1", "1,2", "4,2"]
    assert [round(p, 2) for p in found["posterior"]["1,2"]] == [0.35, 0.56, 0.8, 0.89, 0.9, 0.92, 0.94, 0.96]
    assert [round(s, 2) for s in found["statistics"][1]] == [0.69, -0.33, 2.31, 5.33]
    assert list(tmp_path.iterdir()) == []


def test_toy_json_with_a_figure(run, tmp_path):
    pytest.importorskip("matplotlib")
    result = run("reproduce", "toy", "--json", "--out", "toy.png")
    assert json.loads(result.stdout)["t"][-1] == 64
    assert (tmp_path / "toy.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == "The figure: toy.png\n"


@pytest.mark.parametrize(
    ("arguments", "target"),
    [([], "toy.svg"), (["--out", "a/b.svg"], "a/b.svg"), (["--out", "folder"], "folder/toy.svg")],
)
def test_toy_figure(run, tmp_path, arguments, target):
    pytest.importorskip("matplotlib")
    result = run("reproduce", "toy", *arguments)
    assert result.exit_code == 0, result.output
    assert "soft error" in result.stdout
    assert "5.33" in result.stdout
    assert result.stdout.splitlines()[-1] == f"The figure: {target}"
    assert "<svg" in (tmp_path / target).read_text(encoding="utf-8")


def test_toy_failures(run, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "file").write_text("")
    (tmp_path / "toy.svg").mkdir()
    failed_in_a_line(run("reproduce", "toy", "--out", "toy.docx"), "toy.docx", ".svg, .png, .pdf")
    failed_in_a_line(run("reproduce", "toy", "--out", "file/toy.svg"), "Cannot write to file")
    assert run("reproduce", "toy").exit_code == 0  # a folder of that name takes the figure
    assert (tmp_path / "toy.svg" / "toy.svg").exists()


@pytest.mark.parametrize(
    "arguments", [["reproduce", "toy", "--out", "x"], ["reproduce", "toy", "--json", "--out", "x"]]
)
def test_without_matplotlib(run, monkeypatch, tmp_path, arguments):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    failed_in_a_line(run(*arguments), 'pip install "riskbayes[plot]"')
    assert list(tmp_path.iterdir()) == []


def test_tables_need_no_matplotlib(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("reproduce", "toy", "--json").exit_code == 0
    result = run("reproduce", "toy")
    assert result.exit_code == 0
    assert "5.33" in result.stdout
    assert result.stderr == 'No figure: Pictures need matplotlib: pip install "riskbayes[plot]"\n'
    assert list(tmp_path.iterdir()) == []


def test_demo_needs_no_matplotlib(run, reduced, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "--out", "here")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "The page: here/index.html"
    assert "<svg" in (tmp_path / "here" / "index.html").read_text(encoding="utf-8")


def test_demo_without_data_frames(run, monkeypatch):
    from riskbayes import datasets

    monkeypatch.setattr(datasets, "LIBRARIES", ())
    failed_in_a_line(run("demo", "--out", "here"), "pip install pandas")


def printed(table, width):
    file = io.StringIO()
    print_table(Console(file=file, width=width), table)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "\u2026" not in file.getvalue()
    return file.getvalue().split()


NUMBERS = Table(
    ["data set", "model", "closed form", "RC", "difference", "b/e/w"],
    [["breast cancer", "CategoricalNB", "6.99", "6.15", Mark("-0.84", "better"), "3/1/1"]] * 2
    + [["digits", "GaussianNB", "17.38", "9.51", Mark("-7.87", "better"), "5/0/0"]],
    "a title of some words",
)


def test_no_terminal_cuts_a_number():
    from riskbayes_paper.toy import run_toy, toy_table

    for table in (toy_table(run_toy()), NUMBERS):
        numbers = [cell for row in table.rows for j, cell in enumerate(row) if j not in table.words]
        expected = sorted(map(plain, numbers))
        for width in (*range(20, 100), 200):
            words = printed(table, width)
            assert (
                sorted(word for word in words if word in expected and word not in table.headers) == expected
            )


def test_toy_in_a_narrow_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    found = run("reproduce", "toy", "--out", "x.svg").stdout
    assert "\u2026" not in found
    assert "..." not in found
    lines = [line for line in found.splitlines() if line.strip().startswith("s1_2")]
    assert " ".join(" ".join(line.split()[1:]) for line in lines).count(".") == 8


# Ctrl-C where the module of INTERRUPT is imported; a compiled one may make an ImportError of it.
AT_IMPORT = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT"]:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt as error:
                raise ImportError("initialization failed") from error
sys.meta_path.insert(0, Interrupt())
"""
IMPORTED = ("numpy", "riskbayes.estimators", "click", "rich.table")


def test_ctrl_c_while_it_starts(tmp_path):
    """Whatever is being imported: no traceback, and the status that a shell expects."""
    root = Path(__file__).parents[1]
    scripts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    module, function = scripts["riskbayes"].split(":")
    # What pip writes for a console script.
    script = f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n"
    (tmp_path / "sitecustomize.py").write_text(AT_IMPORT)
    started = {}
    for name in IMPORTED:
        path = os.pathsep.join([str(tmp_path), str(root / "src"), os.environ.get("PYTHONPATH", "")])
        started[name] = subprocess.Popen(
            [sys.executable, "-c", script, "reproduce", "toy"],
            env={**os.environ, "PYTHONPATH": path, "INTERRUPT": name},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            text=True,
        )
    ended = {name: (*process.communicate(), process.returncode) for name, process in started.items()}
    assert ended == dict.fromkeys(IMPORTED, ("", "", 130))


def test_ctrl_c_while_it_runs(run, monkeypatch):
    from riskbayes.demo import experiment as demo

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run_demo", interrupted)
    result = run("demo")
    assert (result.exit_code, result.output) == (130, "")
