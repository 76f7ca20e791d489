"""The speed suite: its table, its JSON, what it skips. No test asserts a time."""

import gzip
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone

from riskbayes.cli import main
from riskbayes.learners import RC
from riskbayes.pages.table import plain
from riskbayes.threads import available_threads
from riskbayes_paper.speed import Bench, Figure, in_turn, notes, speed_table, tally
from riskbayes_paper.speed_cases import PEERS, all_against_one
from riskbayes_paper.speed_jobs import Iterations, synthetic


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RISKBAYES_DATA", raising=False)
    return lambda *arguments: CliRunner(env={"COLUMNS": "200"}).invoke(
        main, ["bench", "--quick", *map(str, arguments)]
    )


@pytest.fixture
def folder(tmp_path):
    """Data sets of the right form and of no meaning."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 10
    q = (rng.integers(120, size=(300, 128)) + 10 * y[:, None]).astype(np.uint8)
    np.savez(tmp_path / "mnist.npz", q=q, scale=np.full(128, 0.5, np.float32), y=y)
    for name in ("adult_coded", "magic"):
        lines = [",".join([*map(str, row), "ab"[k % 2]]) for row, k in zip(q[:, :6], y, strict=True)]
        with gzip.open(tmp_path / f"{name}.csv.gz", "wt") as file:
            file.write("\n".join(["a,b,c,d,e,f,target", *lines]))
    return tmp_path


def test_everything(run, folder):
    result = run("--data-dir", folder, "--json", "some/bench.json", "--threads", 1)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "The figures: some/bench.json"
    assert "threads: 1" in result.stdout
    assert "CategoricalNB, rows x 4" in result.stderr  # what is being measured
    found = json.loads((folder / "some" / "bench.json").read_text(encoding="utf-8"))
    about, figures = found["machine"], found["figures"]
    assert about["threads"] == 1
    assert {"cpu", "cores", "blas", "versions"} <= set(about)
    assert {f["group"][0] for f in figures} == set("1234567")
    measured = [f for f in figures if not f["group"].endswith("pomegranate")]
    for f in measured:
        assert f["verdict"] in ("", "ok", "short")
        assert (f["verdict"] == "") == (f["bar"] is None)
        assert f["peer"] > 0
        assert f["ours"] is None or f["ratio"] == pytest.approx(f["ours"] / f["peer"])
    models = {f["what"].split(",")[0] for f in measured if f["group"].startswith("4")}
    assert models == {"CategoricalNB", "GaussianNB", "LDA", "QDA"}
    assert sum(f["against"] == "LogisticRegression" for f in measured) == 3
    assert {f["unit"] for f in measured} == {"s", "B"}
    qda, recipe = (f for f in measured if f["group"] == "7 threads")
    assert (qda["size"], recipe["size"]) == ("noise, 280 x 16 x 10", "magic, 2000 x 4 x 2")
    for f in (qda, recipe):
        assert f["against"] == "one thread"
        assert f["note"] == f"{f['peer'] / f['ours']:.2f} times as fast with 1 threads as with one."


def test_threads_without_data(run):
    """Noise of the same shape stands in for magic; the ratio is below the table, once if both are equal."""
    result = run("--only", "7")
    assert result.exit_code == 0, result.output
    told = " ".join(line for line in result.stdout.splitlines() if "times as fast with" in line)
    assert "QDA, one RC iteration, all threads, noise, 280 x 16 x 10" in told
    assert "RiskBayesClassifier, all threads, noise, 2000 x 4 x 2" in told
    assert result.stdout.splitlines()[-1] == "0 of 0 bars hold, 0 fall short; skipped: 0."


def test_one_thread_is_one_thread():
    """A fit reads its threads from `available_threads`, which the second job has limited to one."""
    seen = []
    figure = all_against_one(
        Bench(quick=True, say=lambda _: None), "job", "size", lambda: seen.append(available_threads())
    )
    assert seen == [available_threads(), 1] * 4
    assert figure.ratio == figure.ours / figure.peer


def test_without_data(run, tmp_path):
    result = run("--only", "2,5")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[-1].endswith("skipped: 4.")
    assert any("2 QDA, on the MNIST stand-in" in line and "RISKBAYES_DATA" in line for line in lines)
    assert "1 categorical" not in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there(run, tmp_path):
    result = run("--only", "5", "--data-dir", tmp_path)
    assert result.exit_code == 0, result.output
    assert "There is no magic.csv.gz" in result.stdout
    assert "skipped: 3." in result.stdout


def test_without_pomegranate(run, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("pomegranate.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pomegranate", None)
    assert "pomegranate is not installed." in run("--only", 6).stdout


@pytest.mark.parametrize("arguments", [["--only", "1,9"], ["--only", "x"], ["--data-dir", "nowhere"]])
def test_bad_arguments(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert arguments[0] in result.stderr


def test_where_nothing_can_be_written(run, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("--json", "file/bench.json")
    assert result.exit_code == 1
    assert result.stderr == "Error: Cannot write to file: Not a directory.\n"


def test_verdicts():
    figures = [
        Figure("a", "peer", ours=1.0, peer=2.0, bar=0.5, group="1 x"),
        Figure("b", "peer", ours=1.1, peer=2.0, bar=0.5, group="1 x"),
        Figure("c", "peer", ours=None, peer=2.0, bar=0.5, group="1 x"),
        Figure("d", "peer", ours=1.0, peer=4.0, group="1 x"),
        Figure("e", note="No data.", group="2 y"),
    ]
    assert [f.verdict for f in figures] == ["ok", "short", "short", "", "skipped"]
    rows = speed_table(figures).rows
    assert [plain(row[4]) for row in rows] == ["1.00 s", "1.10 s", "not reached", "1.00 s", ""]
    assert notes(figures) == ["2 y, e: No data."]
    assert tally(figures) == "1 of 3 bars hold, 2 fall short; skipped: 1."


def test_jobs_run_in_turn():
    order = []
    spent = in_turn([lambda: order.append("a"), lambda: order.append("b")], budget=0.0)
    assert order == ["a", "b"] * 4  # one round to warm up, three that count
    assert len(spent) == 2


@pytest.mark.parametrize("model", PEERS)
def test_the_iteration_that_is_timed_is_that_of_a_fit(model):
    X, y = synthetic(model == "CategoricalNB", 200, 4, 3)
    Ours = PEERS[model][0]
    plain = Ours() if model == "CategoricalNB" else Ours(prior=None)  # as the timed model has none
    timed = Iterations(plain, X, y)
    for _ in range(3):
        timed()
    learner = RC(max_iter=3, monitor="log_loss", step="fixed", generative_weight=0.0)
    fitted = clone(plain).set_params(learner=learner).fit(X, y)
    assert fitted.n_iter_ == 3
    for name, value in fitted.statistics_.items():
        np.testing.assert_allclose(timed.S[name], value, rtol=1e-12, atol=1e-12)
