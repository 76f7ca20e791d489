"""The runner: what it plans, what it writes, and that no kill loses or doubles a unit."""

import csv
import dataclasses
import gzip
import multiprocessing
import os
import random
import signal
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console
from sklearn.datasets import load_iris
from sklearn.utils import Bunch

from riskbayes import RiskBayesClassifier
from riskbayes.cli import main
from riskbayes_paper import ExperimentError, datasets, fitting, protocols, runner
from riskbayes_paper.fitting import Reproduction
from riskbayes_paper.longtable import LongTable, from_line, read_file, to_line
from riskbayes_paper.protocols import Unit, plan
from riskbayes_paper.published import figure
from riskbayes_paper.results import Results, Setting
from riskbayes_paper.rows import COLUMNS, Row, read_folder

from .test_reproduce_tables import write_table

TIMES = {"seconds": 0.0, "finished": ""}


def run(units, folder, data_dir, console=None, engine="memory"):
    runner.run(Reproduction(data_dir, engine), units, folder / "results.csv", console=console)


def quiet():
    return Console(stderr=True, quiet=True)


def small_plan(n_splits=2):
    learners = ["closed_form", "rc_paper", "gd"]
    return plan(["iris"], n_splits, ["nb", "qda"], ["ml"], learners, list(protocols.PROTOCOLS))


def timeless(folder):
    return sorted((dataclasses.replace(row, **TIMES) for row in read_folder(folder)), key=lambda r: r.unit)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of data sets: iris, and a small set of image features."""
    path = tmp_path_factory.mktemp("data")
    X, y = load_iris(return_X_y=True)
    with gzip.open(path / "iris.csv.gz", "wt", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c", "d", "target"], *np.column_stack([X, y]).tolist()])
    rng = np.random.default_rng(0)
    q = rng.integers(0, 255, (60, 5), dtype=np.uint8)
    np.savez(path / "mnist.npz", q=q, scale=np.full(5, 0.1, np.float32), y=np.arange(60) % 3)
    np.savez(path / "cifar10.npz", X=q.astype(float), y=np.arange(60) % 3, backbone="resnet18")
    return path


@pytest.fixture(scope="module")
def undisturbed(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    run(small_plan(), out, folder, console=quiet())
    return out


def offline(**_):
    raise OSError("no route")


NAMES = (
    "iris sonar climate_model indian_liver vehicle german_numer splice qsar svmguide3 redwine optdigits "
    "satellite pulsar magic catsvsdogs yearbook adult cifar10 fashion_mnist mnist"
)
SIZES = (
    "150x4 207x60 360x18 579x10 846x18 1000x24 1000x60 1055x41 1243x21 1599x11 5620x62 6435x36 17898x8 "
    "19020x10 23262x512 37921x512 48842x14 60000x512 70000x512 70000x512"
)


def test_registry_is_the_papers():
    assert " ".join(datasets.PAPER_SETS) == NAMES
    assert " ".join(f"{s.m}x{s.n}" for s in datasets.PAPER_SETS.values()) == SIZES
    assert sum(s.images for s in datasets.PAPER_SETS.values()) == 5


def test_sets_have_the_papers_size(paper_folder):
    for paper in datasets.PAPER_SETS.values():
        if not paper.images:
            loaded = datasets.load(paper.name, paper_folder)
            assert loaded.X.shape == (paper.m, paper.n), paper.name
            assert np.unique(loaded.y).tolist() == list(range(paper.classes)), paper.name


def test_loading_from_a_folder(folder):
    iris = datasets.load("iris", folder)
    assert np.array_equal(iris.X, load_iris().data)
    assert (iris.source, iris.stand_in) == ("folder", "")
    assert datasets.load("mnist", folder).stand_in == "SqueezeNet stand-in"
    assert datasets.load("mnist", folder).X.dtype == np.float64
    assert datasets.load("cifar10", folder).stand_in == ""
    with pytest.raises(FileNotFoundError, match="does not exist"):
        datasets.load("iris", folder / "nowhere")


def test_loading_without_a_folder(folder, monkeypatch):
    monkeypatch.delenv("RISKBAYES_DATA", raising=False)
    asked = []

    def openml(data_id, **_):
        asked.append(data_id)
        data = np.array([[1.0, 0.0], [np.nan, 1.0], [3.0, np.nan], [4.0, 0.0]])
        return Bunch(
            data=data, target=np.array(["b", "a", "b", "a"]), feature_names=["x", "c"], categories={"c": "uv"}
        )

    monkeypatch.setattr(datasets, "fetch_openml", openml)
    found = datasets.load("sonar")
    assert asked == [40]
    assert found.source == "OpenML"
    assert found.X.tolist() == [[1, 0], [3, 2], [4, 0]]  # a missing category is one; a missing number is not
    assert found.y.tolist() == [1, 1, 0]
    monkeypatch.setattr(datasets, "fetch_openml", offline)
    assert datasets.load("iris").source == "scikit-learn"
    with pytest.raises(
        datasets.Missing, match=r"sonar: OpenML cannot be reached \(no route\); put sonar_207"
    ):
        datasets.load("sonar")
    with pytest.raises(datasets.Missing, match="reproduce features IMAGES --out yearbook"):
        datasets.load("yearbook")


def test_plan():
    units = plan(
        ["iris"], 5, ["nb", "qda"], ["ml", "map"], list(protocols.LEARNERS), ["held-out", "in-train"]
    )
    assert len(units) == len(set(units)) == 2 * 5 * 2 * (6 + 6)
    assert not [u for u in units if (u.model, u.learner) in (("qda", "dfe"), ("nb", "gd_scaled"))]
    family = plan(["iris"], 5, ["family"], ["ml", "map"], ["rc"], ["held-out", "in-train"])
    assert [(u.learner, u.estimate, u.protocol) for u in family[:3]] == [
        (strategy, "map", "held-out") for strategy in ("single", "cv", "ensemble")
    ]
    assert len(family) == 5 * 3


def test_jobs_share_in_train_fits():
    units = small_plan(3)
    jobs = Reproduction().make_jobs(units)
    assert sorted(u for job in jobs for u in job) == sorted(units)
    assert {len(job) for job in jobs if job[0].protocol == "in-train"} == {3}
    assert {len(job) for job in jobs if job[0].protocol == "held-out"} == {1}


def test_only_training_rows_shape_bins_and_scales(folder):
    rows = fitting.prepared("iris", folder, "held-out", 0, "scaled", "memory")
    assert len(rows.X) == 112
    assert len(rows.X_test) == 38
    assert rows.X.mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-12)
    assert not np.allclose(rows.X_test.mean(axis=0), 0, atol=0.02)
    train, test = protocols.split_rows(150, 0)
    assert sorted([*train, *test]) == list(range(150))
    whole = fitting.prepared("iris", folder, "in-train", 0, "bins", "memory")
    assert len(whole.X) == len(whole.X_test) == 150


@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
def test_rows_agree_with_a_fit_by_hand(folder, undisturbed):
    from riskbayes.learners import RC
    from riskbayes_paper.paper_qda import PaperQDA

    X, y = load_iris(return_X_y=True)
    train, test = protocols.split_rows(150, 1)
    rows = {row.unit: row for row in read_folder(undisturbed)}
    for protocol, kept in (("held-out", train), ("in-train", np.arange(150))):
        clf = PaperQDA(prior=None, covariance_floor=1e-2, learner=RC.paper()).fit(X[kept], y[kept])
        row = rows[Unit("iris", 1, "qda", "ml", "rc_paper", protocol)]
        assert row.error("test") == pytest.approx(1 - clf.score(X[test], y[test]))
        assert row.train_error == pytest.approx(1 - clf.score(X[kept], y[kept]), abs=1e-6)
        path = clf.history_["soft_error"][clf.history_["accepted"]]
        assert row.soft_error == pytest.approx(path, rel=1e-5)
        assert len(row.test_wrong) == len(path)
        first = PaperQDA(covariance_floor=1e-2, learner="closed_form").fit(X[kept], y[kept])
        assert row.test_wrong[0] == (first.predict(X[test]) != y[test]).sum()
        closed = rows[Unit("iris", 1, "qda", "ml", "closed_form", protocol)]
        assert closed.soft_error == pytest.approx(path[:1], rel=1e-5)
        assert closed.test_wrong == row.test_wrong[:1]


def test_the_family_alone_has_a_page(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(protocols, "STRATEGIES", {"single": "single recipe"})
    options = ["--data-dir", str(folder), "--sets", "iris", "--models", "family", "--splits", "1"]
    result = CliRunner().invoke(main, ["reproduce", *options, "--jobs", "1", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "single recipe" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_rows_of_the_family(folder):
    X, y = load_iris(return_X_y=True)
    train, test = protocols.split_rows(150, 0)
    unit = Unit("iris", 0, "family", "map", "single", "held-out")
    (record,) = Reproduction(folder).run_job((unit,))
    row = Row.from_record(record)
    clf = RiskBayesClassifier("single").fit(X[train], y[train])
    assert row.test_wrong == ((clf.predict(X[test]) != y[test]).sum(),)
    assert row.train_error == pytest.approx(1 - clf.score(X[train], y[train]))
    assert row.settings == "RiskBayesClassifier(random_state=0, strategy='single')"
    assert (row.status, row.scans) == ("single", 0)
    assert "strategy='cv'" in protocols.settings_text("family", "map", "cv")


def test_a_row_of_an_ensemble(folder, monkeypatch):
    """Its members have a status and scans each, and a row has room for one."""
    quick = RiskBayesClassifier(random_state=0, time_limit=1e-3)
    monkeypatch.setitem(protocols.PRIORS, ("family", "map"), quick)
    unit = Unit("iris", 0, "family", "map", "ensemble", "held-out")
    (record,) = Reproduction(folder).run_job((unit,))
    row = Row.from_record(record)
    assert (row.status, row.scans) == ("ensemble", 0)
    assert Row.from_record(from_line(to_line(record, COLUMNS), COLUMNS)).unit == unit


def test_table_survives_a_round_trip(undisturbed):
    for row in read_folder(undisturbed):
        line = to_line(row.to_record(), COLUMNS)
        assert Row.from_record(from_line(line, COLUMNS)) == row


def test_a_broken_line_is_taken_out(undisturbed, tmp_path):
    whole = (undisturbed / "results.csv").read_bytes()
    lines = whole.splitlines(keepends=True)
    last = len(whole) - len(lines[-1])
    for cut in (last + 1, last + 20, len(whole) - 9, len(whole) - 1, 5, len(lines[0]) - 1):
        (tmp_path / "results.csv").write_bytes(whole[:cut])
        with LongTable(tmp_path / "results.csv", COLUMNS) as table:
            assert table.broken == 1
        rows, broken = read_file(tmp_path / "results.csv", COLUMNS)
        assert (len(rows), broken) == (len(lines) - 2 if cut >= last else 0, 0)
    damaged = lines.copy()
    damaged[3] = damaged[3].replace(b"0", b"1", 1)
    (tmp_path / "results.csv").write_bytes(b"".join(damaged))
    assert read_file(tmp_path / "results.csv", COLUMNS)[1] == 1


def test_tables_that_are_refused(undisturbed, tmp_path):
    (tmp_path / "results.csv").write_text("other,columns\n1,2\n")
    with pytest.raises(ExperimentError, match="no table of this version's results"):
        LongTable(tmp_path / "results.csv", COLUMNS)
    with pytest.raises(ExperimentError, match="run riskbayes reproduce first"):
        read_folder(tmp_path / "nothing")
    rows = read_folder(undisturbed)
    write_table(tmp_path / "other" / "results.csv", [dataclasses.replace(rows[0], settings="GaussianNB()")])
    with pytest.raises(ExperimentError, match="other settings"):
        Reproduction().done(tmp_path / "other" / "results.csv", [rows[0].unit])


def test_one_run_at_a_time(tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "results.csv"
    with LongTable(path, COLUMNS), pytest.raises(ExperimentError, match="Another run writes"):
        LongTable(path, COLUMNS)
    with LongTable(path, COLUMNS):
        pass


def test_several_tables_are_read_together(undisturbed, folder, tmp_path):
    rows = read_folder(undisturbed)
    write_table(tmp_path / "a.csv", rows[:10])
    write_table(tmp_path / "b.csv", rows[5:])
    assert {r.unit for r in read_folder(tmp_path)} == {r.unit for r in rows}
    assert len(read_folder(tmp_path)) == len(rows)
    run(small_plan(), tmp_path, folder, console=quiet())  # all is done: no row is added
    assert read_file(tmp_path / "results.csv", COLUMNS) == ([], 0)


def test_killed_ten_times(folder, tmp_path):
    """SIGKILL at random moments of the work, and restarted: the same table, each unit once."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        pytest.skip("needs a system that can fork")
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["riskbayes_paper.fitting"])  # so that a start is quick
    whole, killed, units, moments = tmp_path / "whole", tmp_path / "killed", small_plan(5), random.Random(0)
    whole.mkdir()
    killed.mkdir()
    run(units, whole, folder, console=quiet())
    table = killed / "results.csv"

    def lines():
        return table.read_bytes().count(b"\n") if table.exists() else 0

    for _ in range(10):
        child = processes.Process(target=runner.run, args=(Reproduction(folder), units, table))
        enough = lines() + moments.randint(0, 3)
        child.start()
        while child.is_alive() and lines() < enough:
            time.sleep(0.001)
        child.join(moments.uniform(0, 0.03))
        assert child.is_alive(), "it was done before the kill"
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        if table.exists() and moments.random() < 0.5:  # a kill may also leave half a line
            with table.open("ab") as file:
                file.write(b"iris,0,nb,ml,gd,held-o")
    assert 10 < lines() < len(units)
    run(units, killed, folder, console=quiet())
    rows, broken = read_file(table, COLUMNS)
    assert broken == 0
    assert sorted(map(Reproduction().unit_of, rows)) == sorted(units)
    assert timeless(killed) == timeless(whole)


@pytest.fixture
def command(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RISKBAYES_DATA", raising=False)
    return lambda *arguments: CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


def test_command_in_parallel(command, folder, undisturbed, tmp_path):
    arguments = ("--data-dir", folder, "--sets", "iris", "--splits", 2, "--estimates", "ml", "--out", "there")
    result = command(*arguments, "--learners", "closed_form,rc_paper,gd", "--jobs", 2)
    assert result.exit_code == 0, result.output
    assert timeless(tmp_path / "there") == timeless(undisturbed)


def test_subset_of_ci(paper_folder, command, tmp_path):
    """What CI runs of the paper's own sets: from the command to the page."""
    pytest.importorskip("matplotlib")
    result = command("--data-dir", paper_folder, "--sets", "iris,sonar,vehicle", "--splits", 2, "--jobs", 1)
    assert result.exit_code == 0, result.output
    results = Results(read_folder(tmp_path / "results"))
    assert len(results.rows) == 3 * 2 * 2 * 2 * (6 + 6)
    assert "3 of 20 data sets" in (tmp_path / "results" / "index.html").read_text(encoding="utf-8")
    published = figure("qda_ml", "sonar", "rc", "test_error_pct")
    errors = {
        protocol: results.errors("sonar", Setting("qda", "ml", protocol), "rc_paper").mean()
        for protocol in protocols.PROTOCOLS
    }
    assert abs(errors["in-train"] - published) <= 2
    assert abs(errors["held-out"] - published) > 8


def test_command_names_what_is_missing(command, monkeypatch):
    monkeypatch.setattr(datasets, "fetch_openml", offline)
    result = command("--sets", "sonar,yearbook")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == "Error: None of the data sets can be had."
    assert "Missing: sonar: OpenML cannot be reached" in result.stderr
    assert "Missing: yearbook: OpenML has no yearbook" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sets", "irs"], "'irs' is none of iris, sonar"),
        (["--models", "family", "--estimates", "ml"], "leave nothing to run"),
        (["--models", "family", "--protocols", "in-train"], "leave nothing to run"),
        (["--learners", "rc,adam"], "'adam' is none of closed_form"),
        (["--splits", "0"], "--splits"),
        (["--data-dir", "nowhere"], "nowhere"),
        (["--engine", "abacus"], "abacus"),
    ],
)
def test_command_refuses(command, arguments, words):
    result = command(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_engines_of_torch_say_what_they_need(command, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install torch" in command("--engine", "torch").stderr
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.delenv("SCIPY_ARRAY_API", raising=False)
    assert "SCIPY_ARRAY_API=1" in command("--engine", "cuda").stderr


def test_a_folder_that_is_not_there(command, monkeypatch):
    monkeypatch.setenv("RISKBAYES_DATA", "nowhere")
    assert command("--sets", "iris").stderr == "Error: The folder of data sets 'nowhere' does not exist.\n"


def test_engine_of_tensors(folder, tmp_path, monkeypatch, undisturbed):
    """Rows and labels go to the device, and results come back; torch itself is played by NumPy."""
    devices = []

    def asarray(values, device):
        devices.append(device)
        return np.array(values)

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(asarray=asarray))
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    run(small_plan(1), tmp_path, folder, engine="cuda", console=quiet())
    assert set(devices) == {"cuda"}
    assert len(devices) == 3 * 2 * 2  # X, y and judged rows, of two models under two protocols
    same = {"engine": "memory", **TIMES}
    found = sorted((dataclasses.replace(r, **same) for r in read_folder(tmp_path)), key=lambda r: r.unit)
    assert found == [row for row in timeless(undisturbed) if row.unit.split == 0]


def test_progress_in_a_log(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "QUIET_SECONDS", 0.0)
    run(small_plan(1), tmp_path, folder)
    lines = capsys.readouterr().err.splitlines()
    assert "0 of 12 units, time left unknown; running: iris nb ml closed_form, held-out 0" in lines[0]
    assert "12 of 12 units, about 0 s left; running: nothing" in lines[-1]
