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
from conftest import failed_in_a_line
from riskbayes.cli import main
from riskbayes.pages.table import Mark, Table, plain
from riskbayes.pages.terminal import print_table


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


def test_version_and_help(run):
    assert riskbayes.__version__ in run("--version").stdout
    for arguments in (["--help"], ["demo", "--help"], ["fit", "-h"]):
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


@pytest.mark.parametrize("name", ["index.html", "report.html", "adult_sample.csv"])
def test_a_folder_in_place_of_a_file_of_the_demo(run, monkeypatch, tmp_path, name):
    from riskbayes.demo import experiment as demo

    monkeypatch.setattr(demo, "run_demo", lambda: pytest.fail("fitted before it looked"))
    (tmp_path / "there" / name).mkdir(parents=True)
    result = run("demo", "--out", "there")
    assert result.exit_code == 2
    assert (
        result.stderr
        == f"Error: there/{name} is a folder, where a file is needed. Move it away or rename it.\n"
    )


def test_demo_needs_no_matplotlib(run, reduced, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "--out", "here")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "The page: here/index.html"
    assert "<svg" in (tmp_path / "here" / "index.html").read_text(encoding="utf-8")


def test_demo_without_data_frames(run, monkeypatch):
    from riskbayes import datasets

    monkeypatch.setattr(datasets, "LIBRARIES", ())
    failed_in_a_line(run("demo", "--out", "here"), 'pip install "riskbayes[cli]"')


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


def test_names_without_letters_stand_in_every_part_of_a_table():
    table = Table(
        ["column", *"abc"], [[name, *map(Mark, ("0.123", "0.456", "0.789"))] for name in ("1", "2")]
    )
    words = printed(table, 20)
    assert words.count("column") > 1
    assert words.count("1") == words.count("2") == words.count("column")


def test_no_terminal_cuts_a_number():
    for table in (
        NUMBERS,
        Table([f"x{j}" for j in range(9)], [[f"{j}.{i}" for j in range(9)] for i in range(7)]),
    ):
        numbers = [cell for row in table.rows for j, cell in enumerate(row) if j not in table.words]
        expected = sorted(map(plain, numbers))
        for width in (*range(20, 100), 200):
            words = printed(table, width)
            assert (
                sorted(word for word in words if word in expected and word not in table.headers) == expected
            )


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
    root = Path(__file__).parents[2]
    scripts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    module, function = scripts["riskbayes"].split(":")
    # What pip writes for a console script.
    script = f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n"
    (tmp_path / "sitecustomize.py").write_text(AT_IMPORT)
    started = {}
    for name in IMPORTED:
        path = os.pathsep.join([str(tmp_path), str(root / "src"), os.environ.get("PYTHONPATH", "")])
        started[name] = subprocess.Popen(
            [sys.executable, "-c", script, "demo"],
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
