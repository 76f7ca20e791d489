"""The command: what it prints, what it writes, how it fails."""

import json
import sys

import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris, load_wine

import riskbayes
from riskbayes.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def reduced(monkeypatch):
    from riskbayes.experiments import demo

    monkeypatch.setattr(demo, "DATA_SETS", {"iris": load_iris, "wine": load_wine})
    monkeypatch.setattr(demo, "MODELS", {name: demo.MODELS[name] for name in ("GaussianNB", "QDA")})
    return [(name, kind) for name in demo.DATA_SETS for kind in demo.MODELS]


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
    pytest.importorskip("matplotlib")
    result = run("demo", "--out", "some/where")
    assert result.exit_code == 0, result.output
    target = tmp_path / "some" / "where" / "index.html"
    html = target.read_text(encoding="utf-8")
    assert html.count("<svg") == len(reduced) == 4
    assert html.count("<table") == 1
    assert "riskbayes demo --out some/where" in html
    for name, kind in reduced:
        assert name in result.stdout
        assert kind in result.stdout
    assert "closed form" in result.stdout
    assert result.stdout.splitlines()[-1] == "The page: some/where/index.html"
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_demo_default_folder(run, reduced, tmp_path):
    pytest.importorskip("matplotlib")
    assert run("demo").exit_code == 0
    assert (tmp_path / "demo" / "index.html").exists()


def test_demo_where_nothing_can_be_written(run, tmp_path):
    pytest.importorskip("matplotlib")
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
    "arguments", [["demo"], ["reproduce", "toy"], ["reproduce", "toy", "--json", "--out", "x"]]
)
def test_without_matplotlib(run, monkeypatch, tmp_path, arguments):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    failed_in_a_line(run(*arguments), 'pip install "riskbayes[plot]"')
    assert list(tmp_path.iterdir()) == []


def test_toy_json_needs_no_matplotlib(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("reproduce", "toy", "--json").exit_code == 0
