"""Rows on a disk give the model of the same rows in memory, whatever the source; nothing is left behind."""

import errno
import os
import resource
import signal
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import riskbayes
from conftest import MODELS, random_rows
from riskbayes import rows
from riskbayes.engines import MemoryEngine, block_writer
from riskbayes.engines.disk import DiskEngine
from riskbayes.engines.distinct import hashes_of, merge_rows
from riskbayes.engines.spool import Spool, read
from riskbayes.learners import DFE, GD, RC, RCCV, TM, ClosedForm
from riskbayes.models import CategoricalModel
from riskbayes.task import Task

LEARNERS = [
    ClosedForm(),
    RC(lr=0.2, max_iter=6, step="fixed", generative_weight=0.0),
    TM(max_iter=4),
    DFE(max_iter=4),
    GD(max_iter=4),
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch, tmp_path):
    """Blocks of few rows, so that small tables have many; a folder of one's own for spools."""
    monkeypatch.setattr(block_writer, "BLOCK_CELLS", 2**9)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "spool"))
    (tmp_path / "spool").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spool"))


@pytest.fixture
def spool(tmp_path):
    """The folder of spools."""
    return tmp_path / "spool"


def table(m=2000, seed=0):
    """Labels, and columns of numbers, codes and words that depend on them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=m)
    words = np.array(["red", "green", "blue", "white", "grey"])
    return pl.DataFrame(
        {
            "x": rng.standard_normal(m) + y,
            "z": rng.standard_normal(m) * (1 + y),
            "code": np.minimum(rng.integers(4, size=m) + y, 5),
            "word": words[np.minimum(rng.integers(3, size=m) + y, 4)],
            "weight": rng.uniform(0.5, 2.0, size=m),
            "label": np.array(["a", "b", "c"])[y],
        }
    )


def engine_on_disk(X, y, w, r, size=64):
    writer = block_writer.BlockWriter(Spool(), block_rows=size)
    writer.add(X, y, w)
    writer.flush()
    return DiskEngine(writer.files, writer.spool, r)


def accepts(learner, model):
    try:
        learner.check(model, 3)
    except TypeError:
        return False
    return True


PAIRS = [(kind(), learner) for kind in MODELS for learner in LEARNERS if accepts(learner, kind())]


@pytest.mark.parametrize(("model", "learner"), PAIRS, ids=lambda value: type(value).__name__)
def test_every_model_by_every_learner_is_the_model_of_rows_in_memory(model, learner):
    """In the same frame; the frame is exact here, for the sample of so few rows is all of them."""
    X, y, w = random_rows(model, np.random.default_rng(3), m=400)
    memory, disk = MemoryEngine(X, y, w, 3), engine_on_disk(X, y, w, 3)
    if model.implements("learn_own"):
        with pytest.raises(TypeError, match="compares rows with all training rows, and DiskEngine"):
            disk.learn(model)
        return
    frame = disk.learn(model)
    assert frame == memory.learn(model)
    tasks = [
        Task(model, engine, model.fix_prior(engine.statistics(model, frame))) for engine in (disk, memory)
    ]
    there, here = (learner.fit_statistics(task) for task in tasks)
    assert there.status is here.status
    assert there.fitted.S.allclose(here.fitted.S, rtol=1e-8, atol=1e-8)
    for name, values in here.history.items():
        np.testing.assert_allclose(there.history[name], values, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
def test_a_frame_of_a_sample_is_followed_by_both_engines_alike(kind):
    model, learner = kind(), RC(lr=0.2, max_iter=5, step="fixed", generative_weight=0.0)
    if model.implements("learn_own"):
        return
    X, y, w = random_rows(model, np.random.default_rng(4), m=900)
    memory, disk = MemoryEngine(X, y, w, 3), engine_on_disk(X, y, w, 3)
    disk.sample_rows = 150
    frame = disk.learn(model)
    tasks = [
        Task(model, engine, model.fix_prior(engine.statistics(model, frame))) for engine in (disk, memory)
    ]
    there, here = (learner.fit_statistics(task) for task in tasks)
    assert there.fitted.S.allclose(here.fitted.S, rtol=1e-8, atol=1e-8)


def test_a_sample_has_rows_of_every_class_and_of_every_missing_cell():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((5000, 3)), np.zeros(5000, dtype=int)
    y[[17, 4000]] = 1
    X[4321, 2] = np.nan
    seen = []

    class Spy(riskbayes.models.GaussianNBModel):
        def learn(self, sample):
            seen.append(sample)
            return super().learn(sample)

    engine = engine_on_disk(X, y, None, 2, size=500)
    engine.sample_rows = 300
    engine.learn(Spy())
    (sample,) = seen
    assert 300 <= len(sample.y) < 320
    assert (sample.y == 1).sum() == 2
    assert np.isnan(sample.X[:, 2]).any()
    np.testing.assert_array_equal(sample.largest, np.nanmax(X, axis=0))


def test_online_dfe_is_refused_before_a_row_is_read():
    def read():
        raise AssertionError("a row was read")

    with pytest.raises(ValueError, match=r"DFE goes row by row, .* Pass an array, or take another learner"):
        riskbayes.CategoricalNB(learner=DFE(mode="online")).fit(rows(read))


ESTIMATORS = [
    riskbayes.CategoricalNB(),
    riskbayes.GaussianNB(),
    riskbayes.BernoulliNB(binarize=1.0),
    riskbayes.MultinomialNB(),
    riskbayes.PoissonNB(),
    riskbayes.LinearDiscriminantAnalysis(),
    riskbayes.QuadraticDiscriminantAnalysis(prior="recommended"),
    riskbayes.SmoothNB(),
    riskbayes.TreeAugmentedNB(),
    riskbayes.KDependenceNB(2),
    riskbayes.MixtureDiscriminantAnalysis(2),
    riskbayes.ProductOfExperts(),
    riskbayes.MixedNB(),
    riskbayes.RiskBayesClassifier("single"),
]


@pytest.mark.parametrize("clf", ESTIMATORS, ids=lambda clf: type(clf).__name__)
@pytest.mark.parametrize("weights", [None, "sample", "balanced"])
def test_an_estimator_takes_rows_in_place_of_an_array(clf, weights, spool):
    rng = np.random.default_rng(1)
    y = np.array(["no", "yes"])[(rng.random(1500) < 0.3).astype(int)]
    X = rng.poisson(1.0 + 2.0 * (y == "yes")[:, None], size=(1500, 4))
    w = rng.uniform(0.5, 2.0, 1500) if weights == "sample" else None
    if weights == "balanced":
        if "class_weight" not in clf.get_params():
            pytest.skip("it has no class_weight, as its twin in scikit-learn")
        clf = clone(clf).set_params(class_weight="balanced")
    here = clone(clf).fit(X, y, sample_weight=w)
    there = clone(clf).fit(rows(X, y, sample_weight=w, batch_rows=333))
    np.testing.assert_array_equal(there.classes_, here.classes_)
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-8)
    found = list(there.predict(rows(X, batch_rows=1000)))
    assert [len(part) for part in found] == [1000, 500]
    np.testing.assert_array_equal(np.concatenate(found), here.predict(X))
    assert not any(spool.iterdir())


def sources(frame, folder):
    """The same rows, by every way in."""
    (folder / "parts").mkdir()
    for i in range(4):
        frame[500 * i : 500 * (i + 1)].write_parquet(folder / "parts" / f"{i}.parquet", row_group_size=130)
    whole = frame.to_arrow()
    pyarrow.feather.write_feather(whole, folder / "rows.arrow", compression="uncompressed")
    named = {"target": "label", "sample_weight": "weight"}
    X, y, w = frame.drop("label", "weight"), frame["label"].to_numpy(), frame["weight"].to_numpy()
    yield "folder", rows(folder / "parts", **named, batch_rows=300)
    yield "pattern", rows(str(folder / "parts" / "*.parquet"), **named)
    yield "files", rows([folder / "parts" / f"{i}.parquet" for i in range(4)], **named, batch_rows=77)
    yield "arrow file", rows(folder / "rows.arrow", **named)
    yield "lazy frame", rows(pl.scan_parquet(folder / "parts" / "*.parquet"), **named, batch_rows=700)
    yield "query", rows(duckdb.sql(f"select * from '{folder}/parts/*.parquet'"), **named)
    yield "arrow table", rows(whole, **named)
    yield "reader", rows(pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches(111)), **named)
    yield "ibis", rows(SimpleNamespace(to_pyarrow_batches=lambda: whole.to_reader(90)), **named)
    yield "data frame", rows(frame, **named)
    yield "pandas", rows(frame.to_pandas(), **named)
    yield "table and labels", rows(X, y, sample_weight=w, batch_rows=450)
    batches = [(X[i : i + 400], y[i : i + 400], w[i : i + 400]) for i in range(0, len(y), 400)]
    yield "batches", rows(batches)
    yield "stream", rows(iter(batches))
    yield "function", rows(lambda: iter(batches))


@pytest.mark.parametrize(
    "clf",
    [
        riskbayes.MixedNB(learner=RC(lr=0.2, max_iter=5, step="fixed", generative_weight=0.0)),
        riskbayes.RiskBayesClassifier("single"),
    ],
    ids=repr,
)
def test_one_model_whatever_the_rows_come_from(clf, tmp_path, spool):
    frame = table()
    X = frame.drop("label", "weight")
    expected = clf.fit(X, frame["label"].to_numpy(), sample_weight=frame["weight"].to_numpy())
    expected, first = expected.predict_proba(X), None
    for name, source in sources(frame, tmp_path):
        own = clone(clf).fit(source)
        found = own.predict_proba(X)
        np.testing.assert_allclose(found, expected, atol=1e-8, err_msg=name)
        first = found if first is None else first
        if name in ("folder", "lazy frame", "query"):  # blocks do not depend on batches: to the last bit
            np.testing.assert_array_equal(found, first)
        assert not any(spool.iterdir()), name


def test_words_and_classes_of_late_batches_count(spool):
    X = np.array([["a"], ["b"], ["a"], ["b"], ["a"], ["c"], ["c"], ["d"], ["d"], ["c"]])
    y = np.array([5, 3, 5, 3, 3, 9, 9, 9, 9, 5])
    batches = [(X[:4], y[:4]), (X[4:6], y[4:6]), (X[6:], y[6:])]
    there = riskbayes.CategoricalNB(learner="closed_form").fit(rows(batches))
    here = riskbayes.CategoricalNB(learner="closed_form").fit(X, y)
    assert there.classes_.tolist() == [3, 5, 9]
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-12)
    assert sorted(there.categories_[0].tolist()) == ["a", "b", "c", "d"]


def test_some_batches_may_have_no_weights():
    X, y = repeated(400)
    w = np.arange(1.0, 401.0)
    w[:150] = 1.0
    batches = [(X[:150], y[:150]), (X[150:], y[150:], w[150:])]
    for source in (batches, batches[::-1]):
        there = riskbayes.CategoricalNB().fit(rows(source, merge=False))
        here = riskbayes.CategoricalNB().fit(X, y, sample_weight=w)
        assert there.statistics_.allclose(here.statistics_, rtol=1e-8)


def test_names_of_columns_are_kept_and_compared(tmp_path):
    frame = table()
    frame.write_parquet(tmp_path / "rows.parquet")
    path, names = tmp_path / "rows.parquet", ["x", "z"]
    clf = riskbayes.GaussianNB().fit(rows(path, target="label", columns=names))
    assert clf.feature_names_in_.tolist() == names
    whole = clf.predict_proba(frame.select(names).to_pandas())
    np.testing.assert_array_equal(np.concatenate([*clf.predict_proba(rows(path, columns=names))]), whole)
    with pytest.raises(ValueError, match="feature names should match"):
        next(clf.predict(rows(path, columns=["z", "x"])))


def test_files_whose_columns_differ_are_cast_and_filled_only_where_the_user_opened_them(tmp_path):
    whole = pa.table({"a": np.arange(6.0), "b": np.arange(6) % 3, "label": np.arange(6) % 2})
    other = pa.table({"label": np.arange(4) % 2, "b": np.arange(4, dtype=np.int32), "a": np.ones(4)})
    lacking = pa.table({"b": np.arange(2), "label": np.arange(2) % 2})
    for i, part in enumerate((whole, other, lacking)):
        pq.write_table(part, tmp_path / f"{i}.parquet")
    for path in (tmp_path, str(tmp_path / "*.parquet"), [tmp_path / "2.parquet", tmp_path / "0.parquet"]):
        with pytest.raises(ValueError, match=r"2\.parquet' lacks the column 'a', which .*0\.parquet' has"):
            rows(path, target="label")
    assert [len(batch.y) for batch in rows(tmp_path, target="label", columns=["b"]).batches()] == [12]
    data = pyarrow.dataset.dataset(tmp_path, format="parquet")
    found = list(rows(data, target="label", batch_rows=5).batches())
    assert [len(batch.y) for batch in found] == [5, 5, 2]
    X = np.concatenate([batch.X for batch in found])
    np.testing.assert_array_equal(X[:, 0], [*range(6), *[1.0] * 4, np.nan, np.nan])
    np.testing.assert_array_equal(X[:, 1], [0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 0, 1])


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
def test_partitions_of_an_arrow_dataset_are_columns(kind, tmp_path):
    whole = pa.table({"a": np.arange(10.0), "year": np.repeat([2020, 2021], 5), "label": np.arange(10) % 2})
    pyarrow.dataset.write_dataset(
        whole, tmp_path / "parts", format=kind, partitioning=["year"], partitioning_flavor="hive"
    )
    data = pyarrow.dataset.dataset(tmp_path / "parts", format=kind, partitioning="hive")
    (found,) = rows(data, target="label").batches()
    np.testing.assert_array_equal(found.X, np.column_stack([whole["a"], whole["year"]]))
    assert found.X.column_names == ["a", "year"]


def test_columns_of_an_arrow_file_come_in_the_order_asked_for(tmp_path):
    frame = table()
    pyarrow.feather.write_feather(frame.to_arrow(), tmp_path / "rows.arrow", chunksize=300)
    found = list(rows(tmp_path / "rows.arrow", target="label", columns=["z", "x"], batch_rows=700).batches())
    np.testing.assert_array_equal(
        np.concatenate([batch.X for batch in found]), frame.select("z", "x").to_numpy()
    )
    assert np.concatenate([batch.y for batch in found]).tolist() == frame["label"].to_list()


def test_files_are_not_read_far_ahead_of_a_slow_reader(tmp_path):
    block = pa.table({f"x{j}": np.random.default_rng(j).random(2**14) for j in range(16)})
    with pq.ParquetWriter(tmp_path / "rows.parquet", block.schema) as writer:
        for _ in range(40):
            writer.write_table(block)
    pool, held = pa.default_memory_pool(), []
    before = pool.bytes_allocated()
    for _ in rows(tmp_path / "rows.parquet", batch_rows=2**14).batches():
        time.sleep(0.005)
        held.append(pool.bytes_allocated() - before)
    assert len(held) == 40
    assert max(held) < 10 * block.nbytes


def test_sparse_batches_stay_sparse():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    X = csr_array(rng.poisson(0.05 + 0.1 * y[:, None], size=(600, 50)).astype(float))
    batches = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100)]
    clf = riskbayes.MultinomialNB(learner=RC(max_iter=5, generative_weight=0.01))
    there, here = (clone(clf).fit(*given) for given in ((rows(batches),), (X, y)))
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-8)


def test_a_memory_mapped_array_is_read_in_parts(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3000)
    X = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=(3000, 5))
    X[:] = rng.standard_normal((3000, 5)) + y[:, None]
    there = riskbayes.GaussianNB().fit(rows(X, y, batch_rows=500))
    here = riskbayes.GaussianNB().fit(np.array(X), y)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-5)
    assert there.theta_.dtype == here.theta_.dtype


@pytest.mark.parametrize("clf", [riskbayes.GaussianNB(), riskbayes.LinearDiscriminantAnalysis()], ids=repr)
def test_a_memory_mapped_array_of_numbers_is_not_copied(clf, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200_000)
    X = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=(200_000, 40))
    X[:] = rng.standard_normal((200_000, 40)) + 0.1 * y[:, None]
    tracemalloc.start()
    found = clone(clf).set_params(learner=RC(max_iter=1)).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.n_iter_ == 1
    assert peak < X.nbytes / 3


def test_validation_rows_may_be_on_a_disk_too(spool):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    X = rng.standard_normal((2000, 6)) + 0.3 * y[:, None]
    learner = RC(lr=0.5, max_iter=30, n_iter_no_change=3, step="fixed", generative_weight=0.0)
    here = riskbayes.QuadraticDiscriminantAnalysis(learner=learner).fit(
        X[:1000], y[:1000], X_val=X[1000:], y_val=y[1000:]
    )
    there = clone(here).fit(rows(X[:1000], y[:1000]), X_val=rows(X[1000:], y[1000:]))
    assert there.best_iteration_ == here.best_iteration_
    np.testing.assert_allclose(there.history_["val_error"], here.history_["val_error"], atol=1e-8)
    assert not any(spool.iterdir())


@pytest.mark.parametrize(
    "learner",
    [
        RC(max_iter=6, early_stopping=True, refit=True, random_state=0),
        RC(max_iter=4, n_restarts=2, random_state=0),
        RC(max_iter=3, batch_size=50, random_state=0, generative_weight=0.0),
        RCCV(cv=3, max_iter=5, random_state=0),
    ],
    ids=["early stopping", "restarts", "batches", "folds"],
)
def test_rows_on_a_disk_are_held_out_drawn_and_shuffled(learner):
    frame = table()
    X, y = frame.select("x", "z").to_numpy(), frame["label"].to_numpy()
    clf = riskbayes.QuadraticDiscriminantAnalysis(learner=learner).fit(rows(X, y))
    closed = riskbayes.QuadraticDiscriminantAnalysis(learner="closed_form").fit(X, y)
    assert clf.score(X, y) >= closed.score(X, y) - 0.05
    codes, y = frame.select("code").to_numpy()[:500], y[:500]
    kept = [riskbayes.CategoricalNB(learner=learner).fit(rows(codes, y, merge=m)) for m in (None, False)]
    assert kept[0].statistics_ == kept[1].statistics_
    with pytest.raises(ValueError, match="merge=False"):
        riskbayes.CategoricalNB(learner=learner).fit(rows(codes, y, merge=True))


def test_memory_is_bounded_whatever_the_number_of_rows(monkeypatch):
    monkeypatch.setattr(block_writer, "BLOCK_CELLS", 2**14)
    rng = np.random.default_rng(0)
    means = rng.standard_normal((3, 16))

    def batches(number):
        for seed in range(number):
            random = np.random.default_rng(seed)
            y = random.integers(3, size=1000)
            yield random.standard_normal((1000, 16)) + means[y], y

    peaks = []
    for number in (40, 160):
        clf = riskbayes.QuadraticDiscriminantAnalysis(learner=RC(max_iter=2))
        monkeypatch.setattr("riskbayes.engines.blocks.SAMPLE_CELLS", 2**16)
        tracemalloc.start()
        clf.fit(rows(batches(number)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # What grows with the rows is a path and the counts of each block.
    assert peaks[1] < 1.5 * peaks[0]
    assert peaks[1] < 160_000 * 16 * 8 / 10


# --- identical rows ---------------------------------------------------------------------------------


def test_merged_rows_are_the_rows_with_their_weights():
    rng = np.random.default_rng(0)
    for top in (3, 10**6):  # keys of a number, and of bytes
        X, y, w = rng.integers(2, size=(500, 4)) * top, rng.integers(3, size=500), rng.random(500)
        A, b, v = merge_rows(X, y, w)
        expected = {}
        for row, label, weight in zip(X.tolist(), y.tolist(), w, strict=True):
            expected[(*row, label)] = expected.get((*row, label), 0.0) + weight
        found = {(*row, label): weight for row, label, weight in zip(A.tolist(), b.tolist(), v, strict=True)}
        assert found == pytest.approx(expected)
        assert merge_rows(X, y, None)[2].sum() == 500


@pytest.mark.parametrize("top", [2, 250, 2**40])
def test_hashes_of_rows_are_equal_where_the_rows_are(top):
    rng = np.random.default_rng(top)
    X, y = (
        rng.integers(2, size=(5000, 12)) * top + rng.integers(2, size=(5000, 12)),
        rng.integers(3, size=5000),
    )
    X, y = X[rng.integers(5000, size=9000)], y[rng.integers(5000, size=9000)]
    pairs = {(hashed, *row, label) for hashed, row, label in zip(hashes_of(X, y), X.tolist(), y, strict=True)}
    assert len(pairs) == len(np.unique(hashes_of(X, y))) == len(merge_rows(X, y, None)[1])


@pytest.fixture
def written(monkeypatch):
    """The rows of each block that is written."""
    sizes, write = [], block_writer.BlockWriter._write
    monkeypatch.setattr(
        block_writer.BlockWriter, "_write", lambda self, X, y, w: (sizes.append(len(y)), write(self, X, y, w))
    )
    monkeypatch.setattr(block_writer, "BLOCK_CELLS", 2**12)
    return sizes


def repeated(m=4000):
    """Labels, and few rows of codes that depend on them."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=m)
    return np.minimum(rng.integers(3, size=(m, 4)) + y[:, None], 3), y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "clf",
    [
        riskbayes.CategoricalNB(),
        riskbayes.CategoricalNB(learner=TM(max_iter=4), class_weight="balanced"),
        riskbayes.CategoricalNB(learner=DFE(max_iter=4)),
        riskbayes.CategoricalNB(learner=GD(max_iter=4)),
        riskbayes.TreeAugmentedNB(),
        riskbayes.KDependenceNB(2, learner="closed_form"),
    ],
    ids=repr,
)
def test_identical_rows_are_merged_and_the_fit_is_that_of_all(clf, weighted, written):
    X, y = repeated()
    w = np.random.default_rng(1).random(4000) if weighted else None
    here = clone(clf).fit(X, y, sample_weight=w)
    there = clone(clf).fit(rows(X, y, sample_weight=w))
    assert sum(written) == len(merge_rows(X, y, None)[1]) < 300
    assert there.n_iter_ == here.n_iter_
    assert there.statistics_.allclose(here.statistics_, rtol=1e-8)
    written.clear()
    clone(clf).fit(rows(X, y, sample_weight=w, merge=False))
    assert sum(written) == 4000


def test_rows_are_merged_only_as_long_as_it_pays(written):
    y, closed = np.arange(4000) % 2, riskbayes.CategoricalNB(learner="closed_form")
    unlike = np.arange(8000).reshape(4000, 2) // 2
    clone(closed).fit(rows(unlike, y, merge=True))
    assert sum(written) == 4000
    written.clear()
    X = np.concatenate([np.zeros((4000, 2), dtype=int), unlike, unlike[::-1]])
    y = np.concatenate([y, y, y])
    found = clone(closed).fit(rows(X, y))
    assert 4002 < sum(written) < 12000  # the first rows were merged, the last ones were not
    np.testing.assert_allclose(found.predict_proba(X), clone(closed).fit(X, y).predict_proba(X), rtol=1e-12)


# --- what is left behind ----------------------------------------------------------------------------


def test_folds_in_threads_write_files_of_their_own_and_leave_none(monkeypatch):
    frame = table(700)
    X, y = frame.select("x", "z").to_numpy(), frame["label"].to_numpy()
    held, write = [], Spool.write

    def seen(self, value):
        path = write(self, value)
        held.append(len(list(path.parent.iterdir())))
        return path

    monkeypatch.setattr(Spool, "write", seen)
    one, two = (
        riskbayes.SmoothNB(learner=RCCV(cv=8, max_iter=2, random_state=0, n_jobs=n)).fit(rows(X, y))
        for n in (1, 2)
    )
    assert one.statistics_ == two.statistics_
    assert max(held) < 10 * (700 // 256 + 1)  # files of the blocks, their labels, and of some folds, not all


def test_a_spool_reads_what_it_wrote_and_goes():
    spool = Spool()
    values = (np.arange(6).reshape(2, 3), None, csr_array(np.eye(3)), np.array(["a"], dtype=object))
    path = spool.write(values)
    found = read(path)
    np.testing.assert_array_equal(found[0], values[0])
    assert found[0].flags.writeable
    assert (found[2] != values[2]).nnz == 0
    assert found[3][0] == "a"
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(OSError, match="ends early"):
        read(path)
    spool.close()
    assert not spool.folder.exists()
    folder = Spool().folder  # nobody closes it
    assert not folder.exists()


def test_an_error_leaves_no_folder_and_the_estimator_as_it_was(spool):
    clf = riskbayes.GaussianNB().fit(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1])
    before = clf.theta_.copy()

    def broken():
        yield np.arange(400.0).reshape(200, 2), np.arange(200) % 2
        assert any(spool.iterdir())
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        clf.fit(rows(broken()))
    assert not any(spool.iterdir())
    np.testing.assert_array_equal(clf.theta_, before)


def test_a_full_disk_is_one_sentence(spool):
    """A limit on the size of files is what a full disk is to a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    X = np.random.default_rng(0).standard_normal((4096, 1000))
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, hard))
    try:
        with pytest.raises(OSError, match=r"The disk of .* is full after .*spool=") as raised:
            riskbayes.GaussianNB().fit(rows(X, np.arange(4096) % 2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert raised.value.errno == errno.EFBIG
    assert not any(spool.iterdir())


def test_ctrl_c_leaves_no_folder_and_the_best_model(spool, monkeypatch):
    y = np.arange(2000) % 2
    X = np.random.default_rng(0).standard_normal((2000, 5)) + 0.1 * y[:, None]
    clf, scan, scans = riskbayes.GaussianNB(), DiskEngine.scan, []

    def interrupted(self, *args, **options):
        scans.append(any(spool.iterdir()))
        if len(scans) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return scan(self, *args, **options)

    monkeypatch.setattr(DiskEngine, "scan", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(rows(X, y))
    assert scans == [True] * 4
    assert clf.status_ == "interrupted"
    assert clf.n_iter_ == 2
    assert not any(spool.iterdir())


def test_ctrl_c_while_rows_are_read_leaves_nothing(spool):
    def stream():
        for i in range(5):
            if i == 3:
                assert any(spool.iterdir())
                os.kill(os.getpid(), signal.SIGINT)
            yield np.ones((200, 3)), np.arange(200) % 2

    clf = riskbayes.GaussianNB()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(rows(stream()))
    assert not hasattr(clf, "classes_")
    assert not any(spool.iterdir())


def test_a_stream_is_read_once():
    y = np.arange(100) % 2
    read_batches = []

    def stream():
        for i in range(0, 100, 20):
            read_batches.append(i)
            yield y[i : i + 20, None] + 0.0, y[i : i + 20]

    source = rows(stream())
    riskbayes.BernoulliNB().fit(source)
    assert read_batches == [0, 20, 40, 60, 80]
    with pytest.raises(ValueError, match="can be read only once"):
        riskbayes.BernoulliNB().fit(source)


# --- predictions ------------------------------------------------------------------------------------


def test_predictions_are_written_batch_after_batch(tmp_path):
    frame = table()
    path = tmp_path / "rows.parquet"
    frame.write_parquet(path)
    X = frame.drop("label", "weight")
    clf = riskbayes.MixedNB().fit(X, frame["label"].to_numpy())
    source = rows(path, columns=X.columns, batch_rows=300)
    out = clf.predict_to(source, tmp_path / "out.parquet")
    found = pq.read_table(out)
    assert found.column_names == ["a", "b", "c"]
    np.testing.assert_array_equal(np.column_stack([*found.columns]), clf.predict_proba(X))
    for method in ("predict", "score_samples"):
        clf.predict_to(source, out, method)
        np.testing.assert_array_equal(pq.read_table(out)[method].to_numpy(), getattr(clf, method)(X))

    def broken():
        yield X[:100]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        clf.predict_to(rows(broken()), out)
    assert pq.read_table(out).num_rows == 2000  # the last complete one
    assert {each.name for each in tmp_path.iterdir()} == {"rows.parquet", "out.parquet", "spool"}
    with pytest.raises(ValueError, match="predict_to writes the results of 'predict'"):
        clf.predict_to(source, out, "fit")


# --- messages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda f: rows(f / "none.parquet"), FileNotFoundError, "found no file"),
        (lambda f: rows(f / "rows.csv"), ValueError, "one format, Parquet or Arrow IPC"),
        (lambda f: rows(f / "rows.parquet", target="clicked"), ValueError, "target: 'clicked' is no column"),
        (lambda f: rows(f / "rows.parquet", [0, 1]), ValueError, "pass its name as target="),
        (lambda f: rows(np.eye(3), [0, 1]), ValueError, "data has 3 rows and y has 2"),
        (lambda f: rows(np.eye(3), target="y"), ValueError, "columns of an array have no names"),
        (lambda f: rows([(1, 2)], target="y"), ValueError, "Batches hold their labels"),
        (lambda f: rows(3.0), TypeError, "got float"),
        (lambda f: rows(np.eye(3), batch_rows=0), ValueError, "batch_rows must be"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(make, error, message, tmp_path):
    table().write_parquet(tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("a,b\n")
    with pytest.raises(error, match=message):
        make(tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": rows(np.eye(4))}, "name the column of the labels"),
        ({"X": rows(np.eye(4), [0, 1, 0, 1]), "y": [0, 1, 0, 1]}, "hold their labels and weights"),
        ({"X": rows([(np.eye(4), [0, 1])])}, "X has 4 rows and y has 2 labels in batch 0"),
        ({"X": rows([(np.eye(4), [0, 1, 0, 1]), (np.eye(4), list("abab"))])}, "labels of several kinds"),
        ({"X": rows([])}, "rows are empty"),
        ({"X": rows(np.eye(4), [0, 0, 0, 0])}, "at least two classes"),
        ({"X": rows([(np.eye(4), [0, 1] * 2), (np.eye(3), [0, 1, 0])])}, "4 columns in one batch and 3"),
        ({"X": rows(np.eye(4), [0, 1, 0, 1], sample_weight=[0, 1, 0, 1])}, "has no weight"),
    ],
)
def test_rows_that_cannot_be_fitted_are_refused_in_a_sentence(given, message, spool):
    with pytest.raises((ValueError, TypeError), match=message):
        riskbayes.GaussianNB().fit(**given)
    assert not any(spool.iterdir())


def test_only_fit_and_predictions_take_rows():
    y = np.arange(20) % 2
    X, source = np.arange(20.0)[:, None], rows(np.arange(20.0)[:, None], y)
    clf = riskbayes.GaussianNB().fit(X, y)
    for method in (clf.partial_fit, clf.calibrate, clf.forget):
        with pytest.raises(TypeError, match="Only fit and predict"):
            method(source, y)
    with pytest.raises(ValueError, match="unlabelled goes with arrays"):
        clf.fit(source, unlabelled=-1)
    with pytest.raises(ValueError, match="strategy='cv' needs all rows in memory"):
        riskbayes.RiskBayesClassifier("cv").fit(source)


def test_a_progress_bar_knows_the_rows(capsys):
    y = np.arange(2000) % 2
    riskbayes.BernoulliNB(learner=RC(max_iter=2)).fit(rows(y[:, None] + 0.0, y, progress=True))
    assert "2000" in capsys.readouterr().out


def test_categories_are_exact_however_rare():
    X = np.zeros((3000, 2), dtype=int)
    X[2999] = 7, 300
    engine = engine_on_disk(X, np.arange(3000) % 2, None, 2, size=100)
    engine.sample_rows = 50
    frame = engine.learn(CategoricalModel())
    assert frame.n_categories.tolist() == [8, 301]
    assert Path(engine.files[0][0]).stat().st_size < 600  # a byte a code
