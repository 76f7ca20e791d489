"""The toy example against the figures that the paper prints."""

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from conftest import failed_in_a_line
from riskbayes.cli import main
from riskbayes_paper.toy import LABELS, X, run_toy, toy_figure, toy_table

ITERATIONS = (0, 1, 2, 4, 8, 16, 32, 64)

# Typed from the paper's table.
PRINTED = {
    "0,1": (0.95, 0.93, 0.87, 0.84, 0.86, 0.90, 0.93, 0.96),
    "1,2": (0.35, 0.56, 0.80, 0.89, 0.90, 0.92, 0.94, 0.96),
    "4,2": (1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00),
}
PRINTED_SOFT_ERROR = (0.23, 0.17, 0.11, 0.09, 0.08, 0.06, 0.04, 0.03)


@pytest.fixture(scope="module")
def toy():
    return run_toy()


def test_iterations_are_those_of_the_paper(toy):
    assert toy.t == ITERATIONS
    assert len(toy.soft_error) == len(toy.statistics) == len(toy.models) == 8


@pytest.mark.parametrize("row", PRINTED)
def test_posteriors(toy, row):
    # 0.958 is printed as 0.95; everything else is rounded.
    assert np.abs(np.subtract(toy.posterior[row], PRINTED[row])).max() < 0.0101
    exact = np.round(toy.posterior[row], 2) == PRINTED[row]
    assert exact.sum() == (7 if row == "0,1" else 8)


def test_soft_error(toy):
    assert np.round(toy.soft_error, 2) == pytest.approx(PRINTED_SOFT_ERROR)
    mean_loss = 1 - np.mean(list(toy.posterior.values()), axis=0)
    assert toy.soft_error == pytest.approx(mean_loss)


def test_statistics(toy):
    assert toy.statistics[0] == pytest.approx([1, 0, 2, 5], abs=1e-12)
    assert np.round(toy.statistics[1], 2) == pytest.approx([0.69, -0.33, 2.31, 5.33])
    # RC keeps the sample size, and the sum over all classes.
    S = np.array(toy.statistics)
    assert S[:, 0] + S[:, 2] == pytest.approx(np.full(8, 3.0))
    assert S[:, 1] + S[:, 3] == pytest.approx(np.full(8, 5.0))


def test_first_step_by_hand(toy):
    """S + lr (s(X, Y) - s(X, h)) in five lines of NumPy."""
    x, Y = X[:, 0], np.eye(2)[np.array(LABELS) - 1]
    P = np.exp(-0.5 * (x[:, None] - [0.0, 2.5]) ** 2)
    E = Y - P / P.sum(axis=1, keepdims=True)
    s0, s1 = (Y + 0.5 * E).sum(axis=0), x @ (Y + 0.5 * E)
    assert toy.statistics[1] == pytest.approx([s0[0], s1[0], s0[1], s1[1]], abs=1e-12)


def test_density_is_the_unit_gaussian_of_weight_half(toy):
    log_joint = toy.models[0].predict_joint_log_proba(X)
    expected = np.log(0.5) - 0.5 * np.log(2 * np.pi) - 0.5 * (X - [0.0, 2.5]) ** 2
    assert log_joint == pytest.approx(expected)


def test_table_shows_every_iteration(toy):
    table = toy_table(toy)
    assert list(table.headers[1:]) == [str(t) for t in ITERATIONS]
    assert all(len(row) == 9 for row in table.rows)
    assert [row[2] for row in table.rows[-4:]] == ["0.69", "-0.33", "2.31", "5.33"]


def test_figure_has_the_papers_panels(toy):
    pytest.importorskip("matplotlib")
    figure = toy_figure(toy)
    assert len(figure.axes) == 2
    for ax, boundary in zip(figure.axes, (1.25, 0.92), strict=True):
        assert ax.get_xlim() == (-1, 4.5)
        assert ax.get_ylim() == (0, 1)
        solid = [line for line in ax.lines if line.get_label().startswith("$p(x, y=")]
        dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
        assert len(solid) == len(dashed) == 2
        # The posteriors of the two classes sum to one and cross at the boundary.
        first, second = (line.get_ydata() for line in dashed)
        assert first + second == pytest.approx(np.ones(len(first)))
        crossing = dashed[0].get_xdata()[np.abs(first - second).argmin()]
        assert crossing == pytest.approx(boundary, abs=0.01)
        (points,) = ax.collections
        assert points.get_offsets()[:, 0].tolist() == [0, 1, 4]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


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


def test_toy_in_a_narrow_terminal(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    found = run("reproduce", "toy", "--out", "x.svg").stdout
    assert "\u2026" not in found
    assert "..." not in found
    lines = [line for line in found.splitlines() if line.strip().startswith("s1_2")]
    assert " ".join(" ".join(line.split()[1:]) for line in lines).count(".") == 8
