"""Rows on a Dask cluster give the model of the same rows in memory, whatever the workers do."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context
from sklearn.base import clone

import riskbayes
from conftest import MODELS, random_rows
from riskbayes.engines import MemoryEngine
from riskbayes.engines.dask import DaskEngine
from riskbayes.estimators import reading
from riskbayes.exceptions import RowsLostError
from riskbayes.learners import DFE, GD, RC, RCCV, TM, ClosedForm
from riskbayes.task import Task

pytestmark = [
    pytest.mark.xdist_group("dask"),  # one cluster, in one process
    # Dask leaves sockets of killed workers and schedulers to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

LEARNERS = [
    ClosedForm(),
    RC(lr=0.2, max_iter=4, step="fixed", generative_weight=0.0),
    TM(max_iter=3),
    DFE(max_iter=3),
    GD(max_iter=3),
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Partitions are not merged, unless a test says so."""
    monkeypatch.setattr(reading, "LEAST_CELLS", 0)


@pytest.fixture(scope="module")
def cluster():
    """Two workers. They are forked from a process that has imported all that they need: some are killed."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["distributed", "riskbayes"])
        with LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=None
        ) as found:
            yield found


@pytest.fixture
def client(cluster):
    with Client(cluster, set_as_default=True) as found:
        yield found


@pytest.fixture
def here():
    """No cluster: the tasks run in this thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


def table(m=1500, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=m)
    return rng.standard_normal((m, 5)) + 0.5 * y[:, None], y


def frame(m=900, seed=0):
    X, y = table(m, seed)
    rng = np.random.default_rng(seed)
    words = np.array(["red", "green", "blue", "white", "grey"])[np.minimum(rng.integers(3, size=m) + y, 4)]
    found = pd.DataFrame({"x": X[:, 0], "word": words, "code": np.minimum(rng.integers(4, size=m) + y, 4)})
    return found, pd.Series(np.array(["a", "b", "c"])[y], name="label")


def on_dask(X, y, w, r, size=100):
    at = [slice(start, start + size) for start in range(0, len(y), size)]
    return DaskEngine([dask.delayed(MemoryEngine(X[a], y[a], w[a], r)) for a in at], r)


def accepts(learner, model):
    try:
        learner.check(model, 3)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_every_model_by_every_learner_is_the_model_of_rows_in_memory(kind, client):
    """On two processes; in the same frame, which is exact, for the sample of so few rows is all of them."""
    model = kind()
    X, y, w = random_rows(model, np.random.default_rng(3), m=300)
    memory, engine = MemoryEngine(X, y, w, 3), on_dask(X, y, w, 3)
    if model.implements("learn_own"):
        with pytest.raises(TypeError, match="compares rows with all training rows, and DaskEngine"):
            engine.learn(model)
        return
    frame = engine.learn(model)
    assert frame == memory.learn(model)
    tasks = [Task(model, each, model.fix_prior(each.statistics(model, frame))) for each in (engine, memory)]
    for learner in LEARNERS:
        if accepts(learner, model):
            there, here = (learner.fit_statistics(task) for task in tasks)
            assert there.status is here.status
            assert there.fitted.S.allclose(here.fitted.S, rtol=1e-8, atol=1e-8)
    with pytest.raises(NotImplementedError, match="DaskEngine cannot go row by row"):
        DFE(mode="online").fit_statistics(tasks[0])


def test_processes_count_missing_cells_by_what_em_found(client):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = np.cumsum(rng.integers(2, size=(400, 4)), axis=1) + y[:, None]
    X = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    here = riskbayes.TreeAugmentedNB().fit(X, y)
    there = clone(here).fit(da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100))
    assert there.statistics_.allclose(here.statistics_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-9)


ESTIMATORS = [
    riskbayes.CategoricalNB(),
    riskbayes.GaussianNB(class_weight="balanced"),
    riskbayes.MultinomialNB(learner=RC(max_iter=5)),  # before rounding grows
    riskbayes.QuadraticDiscriminantAnalysis(prior="recommended"),
    riskbayes.SmoothNB(),
    riskbayes.TreeAugmentedNB(),
    riskbayes.MixtureDiscriminantAnalysis(2),
    riskbayes.ProductOfExperts(),
    riskbayes.MixedNB(),
    riskbayes.RiskBayesClassifier("single"),
]


@pytest.mark.parametrize("clf", ESTIMATORS, ids=lambda clf: type(clf).__name__)
@pytest.mark.parametrize("weighted", [False, True])
def test_an_estimator_takes_dask_arrays(clf, weighted, here):
    X, y = table()
    X, labels = np.round(np.clip(2 * X + 4, 0, 9)), np.array(["a", "b", "c"])[y]
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    plain = clone(clf).fit(X, labels, sample_weight=w)
    A, b = da.from_array(X, chunks=(250, 2)), da.from_array(labels, chunks=400)
    v = None if w is None else da.from_array(w, chunks=700)
    found = clone(clf).fit(A, b, sample_weight=v)
    assert found.n_iter_ == plain.n_iter_
    assert all(not dask.is_dask_collection(value) for value in vars(found).values())
    for method in ("predict", "predict_proba", "predict_log_proba"):
        lazy, expected = getattr(found, method)(A), getattr(plain, method)(X)
        assert isinstance(lazy, da.Array)
        assert (lazy.shape, lazy.dtype, lazy.chunks[0]) == (expected.shape, expected.dtype, A.chunks[0])
        if method == "predict":
            np.testing.assert_array_equal(lazy.compute(), expected)
        else:
            np.testing.assert_allclose(lazy.compute(), expected, atol=1e-8)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    "clf", [riskbayes.MixedNB(), riskbayes.CategoricalNB(), riskbayes.RiskBayesClassifier("single")], ids=repr
)
def test_an_estimator_takes_dask_data_frames(clf, holes, here):
    X, y = frame()
    if holes:
        X.loc[::7, "word"] = None
        X.loc[::5, "x"] = np.nan
    X = X.drop(columns="x") if isinstance(clf, riskbayes.CategoricalNB) else X
    plain = clone(clf).fit(X, y).predict_proba(X)
    A, b = dd.from_pandas(X, npartitions=5), dd.from_pandas(y, npartitions=5)
    found = clone(clf).fit(A, b)
    lazy = found.predict_proba(A)
    assert lazy.shape[1] == 3
    np.testing.assert_allclose(lazy.compute(), plain, atol=1e-8)
    assert found.feature_names_in_.tolist() == X.columns.tolist()


def test_categories_may_differ_between_partitions(here):
    X, y = frame()
    X = X[["word", "code"]]
    plain = riskbayes.CategoricalNB().fit(X, y).predict_proba(X)
    order = np.argsort(X["word"].to_numpy(), kind="stable")  # each partition has a few of the words
    X, y, plain = X.iloc[order].reset_index(drop=True), y.iloc[order].reset_index(drop=True), plain[order]
    parts = [X.iloc[i : i + 200].astype({"word": "category"}) for i in range(0, len(X), 200)]
    for part in parts:
        part["word"] = part["word"].cat.remove_unused_categories()
    assert len({tuple(part["word"].cat.categories) for part in parts}) > 1
    A = dd.from_map(lambda i: parts[i], range(len(parts)), meta=parts[0])
    b = dd.from_map(lambda i: y.iloc[200 * i : 200 * (i + 1)], range(len(parts)), meta=y)
    found = riskbayes.CategoricalNB().fit(A, b)
    np.testing.assert_allclose(found.predict_proba(A).compute(), plain, atol=1e-8)


def test_partitions_may_be_empty_of_unknown_size_and_lack_classes(here):
    X, y = table()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    plain = riskbayes.GaussianNB().fit(X, y)
    A = da.from_array(X, chunks=(300, 5))
    known = A[:, 0] > np.inf
    gone = da.concatenate([A[known], A[A[:, 0] < np.inf], A[known]])
    b = da.from_array(y, chunks=300)
    labels = da.concatenate([b[known], b[A[:, 0] < np.inf], b[known]])
    assert np.isnan(gone.shape[0])
    found = riskbayes.GaussianNB().fit(gone, labels)
    np.testing.assert_allclose(found.theta_, plain.theta_, rtol=1e-9)
    np.testing.assert_allclose(found.predict_proba(gone).compute(), plain.predict_proba(X), atol=1e-8)


def test_validation_rows_and_splits_on_dask(here):
    X, y = table()
    A, b = da.from_array(X, chunks=(200, 5)), da.from_array(y, chunks=200)
    clf = riskbayes.QuadraticDiscriminantAnalysis(
        learner=RC(lr=0.5, max_iter=10, step="fixed", generative_weight=0.0)
    )
    plain = clone(clf).fit(X[:1000], y[:1000], X_val=X[1000:], y_val=y[1000:])
    found = clone(clf).fit(A[:1000], b[:1000], X_val=A[1000:], y_val=b[1000:])
    assert found.best_iteration_ == plain.best_iteration_
    np.testing.assert_allclose(found.history_["val_error"], plain.history_["val_error"], atol=1e-12)
    for learner in (
        RC(max_iter=4, early_stopping=True, random_state=0),
        RC(max_iter=3, n_restarts=1, random_state=0),
        RC(max_iter=2, batch_size=50, random_state=0, generative_weight=0.0),
        RCCV(cv=2, max_iter=3, random_state=0),
    ):
        assert clone(clf).set_params(learner=learner).fit(A, b).score(X, y) > 0.5


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda A, b: (A, b[:700]), ValueError, "X has 1500 rows and y has 700"),
        (lambda A, b: (A, b.compute()), TypeError, "X is a Dask collection and y is not"),
        (lambda A, b: (A, None), ValueError, "target y is None"),
        (lambda A, b: (A[A[:, 0] < 9], b), ValueError, "labels in partition"),
        (lambda A, b: (A[A[:, 0] < 9], b.rechunk(100)), ValueError, "has 5 partitions and y has 15"),
        (lambda A, b: (A[A[:, 0] > 99], b[b > 99]), ValueError, "no partition has a row"),
        (lambda A, b: (A, b * 0), ValueError, "at least two classes"),
    ],
)
def test_collections_that_do_not_match_are_refused(change, error, message, here):
    X, y = table()
    A, b = change(da.from_array(X, chunks=(300, 5)), da.from_array(y, chunks=300))
    if "in partition" in message:
        A = da.from_array(X, chunks=(300, 5))[da.from_array(X[:, 0] < 0, chunks=300)]
    with pytest.raises(error, match=message):
        riskbayes.GaussianNB().fit(A, b)


def test_estimators_that_take_no_dask_say_so(here):
    X, y = table()
    A, b = da.from_array(X), da.from_array(y)
    with pytest.raises(ValueError, match="strategy='cv' needs all rows in memory"):
        riskbayes.RiskBayesClassifier("cv").fit(A, b)
    with pytest.raises(TypeError, match=r"Only fit and predict\* of GaussianNB take"):
        riskbayes.GaussianNB().partial_fit(A, b, classes=[0, 1, 2])


def test_small_partitions_are_merged(here, monkeypatch):
    monkeypatch.setattr(reading, "LEAST_CELLS", 600)
    X, y = table()
    sizes = []
    make = DaskEngine.__init__
    monkeypatch.setattr(
        DaskEngine, "__init__", lambda self, blocks, r: (sizes.append(len(blocks)), make(self, blocks, r))[1]
    )
    riskbayes.GaussianNB(learner="closed_form").fit(
        da.from_array(X, chunks=(10, 5)), da.from_array(y, chunks=10)
    )
    assert sizes == [13]  # 150 partitions of 50 cells


def test_sums_are_a_tree(here):
    X, y = table()
    engine = on_dask(X, y, np.ones(len(y)), 3, size=15)
    model = riskbayes.models.GaussianNBModel()
    seen = []

    class Depth(dask.callbacks.Callback):
        def _start(self, graph):
            seen.append(graph)

    with Depth():
        engine.statistics(model, engine.learn(model))
    sums = [key for key in seen[-1] if "added" in str(key)]
    assert len(sums) == 13 + 2 + 1  # 100 partitions, eight at a time


def test_one_and_two_workers_give_the_same_bits(client):
    X, y = table(4000)
    A, b = da.from_array(X, chunks=(300, 5)), da.from_array(y, chunks=300)
    clf = riskbayes.QuadraticDiscriminantAnalysis(
        learner=RC(lr=0.3, max_iter=8, step="fixed", generative_weight=0.0)
    )
    two = clone(clf).fit(A, b)
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", memory_limit=None
        ) as single,
        Client(single, set_as_default=True),
    ):
        one = clone(clf).fit(A, b)
    assert one.statistics_ == two.statistics_
    for name, values in one.history_.items():
        np.testing.assert_array_equal(two.history_[name], values)
    with dask.config.set(scheduler="threads"):
        assert clone(clf).fit(A, b).statistics_ == two.statistics_


def counted_rows(block, path):
    with open(path, "a") as file:
        file.write("read\n")
    return block


def test_a_prediction_reads_no_training_data(here, tmp_path):
    X, y = table()
    log = tmp_path / "log"
    A = da.from_array(X, chunks=(300, 5)).map_blocks(counted_rows, str(log), dtype=float)
    log.write_text("")  # Dask called it to learn its dtype
    clf = riskbayes.GaussianNB().fit(A, da.from_array(y, chunks=300))
    reads = len(log.read_text().splitlines())
    assert reads == 5 * 2  # to look at, to encode
    new = da.from_array(X[:200], chunks=(50, 5))
    lazy = clf.predict_proba(new)
    assert not [key for key in lazy.__dask_graph__() if "counted_rows" in str(key)]
    np.testing.assert_array_equal(lazy.compute(), clf.predict_proba(X[:200]))
    assert len(log.read_text().splitlines()) == reads
    tasks = [key for key in lazy.__dask_graph__().to_dict() if "apply_to_partition" in str(key)]
    assert len(tasks) <= 4  # one pass: a task a partition


@pytest.mark.parametrize("r", [2, 3, 5])
@pytest.mark.parametrize(
    "kind",
    [
        riskbayes.QuadraticDiscriminantAnalysis,
        riskbayes.LinearDiscriminantAnalysis,
        riskbayes.GaussianNB,
        riskbayes.MixedNB,
    ],
)
def test_scores_are_those_of_rows_in_memory_and_wait_for_compute(kind, r, here):
    """Of Dask they stay lazy: no partition is asked for before `compute`; of batches they are batches."""
    rng = np.random.default_rng(r)
    y = np.arange(90) % r
    X = rng.standard_normal((90, 4)) * [1e-3, 1, 1, 1e3] + 0.5 * y[:, None]
    clf = kind().fit(X, y)
    expected = clf.decision_function(X)
    read = []
    rows = da.from_array(X, chunks=(40, 4)).map_blocks(
        lambda block: read.append(len(block)) or block, dtype=float, meta=np.empty((0, 4))
    )
    scores = clf.decision_function(rows)
    assert isinstance(scores, da.Array)
    assert sum(read) == 0
    np.testing.assert_allclose(scores.compute(), expected, rtol=1e-12, atol=1e-8)
    assert sum(read) == 90
    batches = list(clf.decision_function(riskbayes.rows(X, batch_rows=40)))
    assert [len(batch) for batch in batches] == [40, 40, 10]
    np.testing.assert_allclose(np.concatenate(batches), expected, rtol=1e-12, atol=1e-8)


def test_the_driver_gets_no_more_than_twice_the_statistics(client):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=20_000)
    X = rng.standard_normal((20_000, 60)) + 0.1 * y[:, None]
    engine = DaskEngine(
        [
            dask.delayed(MemoryEngine(X[i : i + 2000], y[i : i + 2000], None, 2))
            for i in range(0, 20_000, 2000)
        ],
        2,
    )
    model = riskbayes.models.QDAModel()
    S = model.fix_prior(engine.statistics(model, engine.learn(model)))
    fitted = riskbayes.models.base.Fitted.of(model, S)
    engine.scan(fitted, riskbayes.objectives.LogLoss())
    size = sum(value.nbytes for value in S.values())
    before = sent_to_driver(client)
    engine.scan(fitted, riskbayes.objectives.LogLoss())
    found = sent_to_driver(client) - before
    assert size < found < 2 * size


def sent_to_driver(client):
    """Bytes of results that left the workers and did not go to another worker, by Dask's own metrics."""

    def metrics(dask_worker):
        between = sum(each["total"] for each in dask_worker.transfer_incoming_log)
        return dask_worker.transfer_outgoing_bytes_total - between

    return sum(client.run(metrics).values())


# --- faults -----------------------------------------------------------------------------------------


def test_workers_killed_at_ten_random_moments_change_nothing(client):
    X, y = table(4000)
    A, b = da.from_array(X, chunks=(500, 5)), da.from_array(y, chunks=500)
    clf = riskbayes.GaussianNB(learner=RC(step="adaptive", max_iter=60, generative_weight=0.0))
    expected = clone(clf).fit(A, b)
    # Dask itself gives up on a task after three workers died while they ran it; here ten die.
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 100))
    moments, kills, over = random.Random(0), [], threading.Event()

    def kill():
        while len(kills) < 10 and not over.is_set():
            try:
                pid = client.run(
                    os.getpid, workers=[moments.choice(list(client.scheduler_info()["workers"]))]
                )
                os.kill(next(iter(pid.values())), signal.SIGKILL)
                kills.append(pid)
                client.wait_for_workers(2, timeout=60)
            except Exception:  # a worker that is just starting, or gone
                continue

    killer = threading.Thread(target=kill)
    killer.start()
    deadline = time.monotonic() + 150
    try:
        while len(kills) < 10:
            assert time.monotonic() < deadline, f"{len(kills)} kills"
            found = clone(clf).fit(A, b)
            assert found.statistics_ == expected.statistics_
    finally:
        over.set()
        killer.join()
    assert len(kills) == 10


SCHEDULER = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
WORKER = [
    sys.executable,
    "-m",
    "distributed.cli.dask_worker",
    "--nworkers",
    "1",
    "--nthreads",
    "1",
    "--no-nanny",
]


def test_a_lost_scheduler_leaves_the_best_model_and_an_error(tmp_path):
    file = tmp_path / "scheduler.json"
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    scheduler = subprocess.Popen([*SCHEDULER, "--scheduler-file", str(file)], **options)
    worker = subprocess.Popen([*WORKER, "--scheduler-file", str(file), "--no-dashboard"], **options)
    X, y = table()
    A, b = da.from_array(X, chunks=(300, 5)), da.from_array(y, chunks=300)
    clf = riskbayes.GaussianNB(learner=RC(step="adaptive", max_iter=100_000, generative_weight=0.0))
    scans, scan = [], DaskEngine.scan

    def killing(self, *args, **given):
        scans.append(1)
        if len(scans) == 4:
            scheduler.kill()
            scheduler.wait()
        return scan(self, *args, **given)

    DaskEngine.scan = killing
    try:
        with dask.config.set({"distributed.comm.timeouts.connect": "3s", "distributed.comm.retry.count": 0}):
            while not file.exists():
                time.sleep(0.05)
            client = Client(scheduler_file=str(file), timeout=5)
            try:
                with pytest.raises(RowsLostError, match="best model was kept"):
                    clf.fit(A, b)
            finally:
                client.close(timeout=2)
    finally:
        DaskEngine.scan = scan
        for process in (worker, scheduler):
            process.kill()
            process.wait()
    assert clf.status_ == "lost"
    assert clf.n_iter_ == 2
    plain = riskbayes.GaussianNB(learner=RC(step="adaptive", max_iter=2, generative_weight=0.0)).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X), atol=1e-8)
