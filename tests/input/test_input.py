"""One way in: what batches, files, streams and partitions are read as does not depend on where rows begin."""

import warnings
from dataclasses import replace
from functools import partial, partialmethod

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import fuzz_input
import riskbayes
from fuzzing import ways
from fuzzing.ways import ESTIMATORS, OwnSource
from riskbayes.engines import block_writer
from riskbayes.engines.block_writer import BlockWriter
from riskbayes.estimators.prediction import PREDICTIONS
from riskbayes.estimators.reading import Reading
from riskbayes.input.schema import ColumnSchema, Schema
from riskbayes.models import GaussianNBModel

CASES = range(100)


@pytest.mark.parametrize("number", CASES)
@pytest.mark.xdist_group("dask")
def test_case(number):
    """A hundred of the driver's cases; `make fuzz-input` runs as many as one likes."""
    assert fuzz_input.run_case(0, number)[1:] in (("held", ""), ("refused", ""))


def test_cases_take_in_every_estimator_and_dask():
    drawn = [ways.random_estimator(np.random.default_rng([0, number]))[0] for number in CASES]
    assert {type(clf).__name__ for clf in drawn} == set(ESTIMATORS)
    assert {fuzz_input.scheduler_of(number) for number in CASES} == {None, "threads", "processes"}


PLANTED = {
    "the first batch decides": (Schema, "__add__", lambda own, a, b: a),
    "missing cells of later batches": (
        *(ColumnSchema, "plus"),
        lambda own, a, b, j: own(a, replace(b, n_missing=0), j),
    ),
    "rows without weight": (Reading, "look", lambda own, self, cells, y, w: own(self, cells, y, None)),
    "a row of a batch": (BlockWriter, "add", lambda own, self, X, y, w: own(self, X[1:], y[1:], w)),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault, monkeypatch):
    kind, name, planted = PLANTED[fault]
    monkeypatch.setattr(kind, name, partialmethod(partial(planted, getattr(kind, name))))
    assert any(fuzz_input.run_case(0, number)[1] == "violated" for number in CASES if number % 10)


def as_batches(X, y):
    return {"X": riskbayes.rows(X, y, batch_rows=100)}


def as_dask(X, y):
    if isinstance(X, np.ndarray):
        return {"X": da.from_array(X, chunks=(100, -1)), "y": da.from_array(y, chunks=100)}
    parts = [dd.from_pandas(X[at : at + 100], npartitions=1) for at in range(0, len(X), 100)]
    return {"X": dd.concat(parts), "y": da.from_array(y, chunks=100)}


@pytest.fixture(params=[as_batches, as_dask])
def way(request):
    """Arguments of `fit`, with a hundred rows in each batch or partition."""
    with dask.config.set(scheduler="synchronous"):
        yield request.param


# --- the first batch decides nothing ----------------------------------------------------------------


def holes_later(share=0.5, m=600):
    """Numbers of one class less often than of the other, but for the first rows, which are whole."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=m)
    X = rng.standard_normal((m, 3)) + 0.3 * y[:, None]
    X[150:][(rng.random((m, 3)) < share * y[:, None])[150:]] = np.nan
    return X, y


def words_later(m=600):
    """Columns that are constant, or an identifier, in the first rows alone."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=m)
    x = np.array(["a", "b", "c"])[rng.integers(2, size=m) + y]
    late = np.arange(m) >= 150
    return pd.DataFrame(
        {
            "constant": np.where(late, y + rng.standard_normal(m), 0.0),
            "constant word": np.where(late, x, "a").astype(object),
            "distinct": np.where(late, x, [f"id{i}" for i in range(m)]).astype(object),
            "noise": rng.standard_normal(m),
        }
    ), y


@pytest.mark.parametrize(
    ("clf", "table"),
    [
        (riskbayes.RiskBayesClassifier("single"), holes_later),
        (riskbayes.MixedNB(missing="informative"), holes_later),
        (riskbayes.RiskBayesClassifier("single"), words_later),
        (riskbayes.MixedNB(), words_later),
    ],
)
def test_all_rows_say_what_the_columns_are(clf, table, way):
    X, y = table()
    here, there = clone(clf).fit(X, y), clone(clf).fit(**way(X, y))
    assert [str(found) for found in there.checks_] == [str(found) for found in here.checks_]
    assert there.columns_ == here.columns_
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-7)


def test_the_recommended_prior_counts_columns_that_begin_after_the_first_batch(way):
    X, y = holes_later()
    X[:150, 2] = np.nan
    clf = riskbayes.QuadraticDiscriminantAnalysis(prior="recommended")
    here, there = clone(clf).fit(X, y), clone(clf).fit(**way(X, y))
    assert there.model_.covariance_strength == here.model_.covariance_strength
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-7)


def test_marks_are_made_of_holes_that_begin_after_the_first_batch(way):
    X, y = holes_later()
    clf = riskbayes.MixedNB(missing="informative").fit(**way(X, y))
    assert all("is missing" in column.encoded for column in clf.columns_)
    assert [column.n_missing for column in clf.columns_] == np.isnan(X).sum(axis=0).tolist()


def test_findings_count_the_missing_cells_of_all_batches(way):
    X, y = holes_later(share=1.0)
    X[160:, 1] = np.nan
    clf = riskbayes.RiskBayesClassifier("single").fit(**way(X, y))
    assert "RB007" in [found.code for found in clf.checks_]


def test_merged_rows_may_have_holes_that_begin_after_the_first_block(monkeypatch):
    monkeypatch.setattr(block_writer, "BLOCK_CELLS", 2**9)
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    X = (rng.integers(2, size=(600, 2)) + y[:, None]).astype(float)
    X[300::7, 0] = np.nan
    for clf in (riskbayes.CategoricalNB(), riskbayes.TreeAugmentedNB()):
        here, there = clone(clf).fit(X, y), clone(clf).fit(riskbayes.rows(X, y, batch_rows=100))
        assert there.statistics_.allclose(here.statistics_, rtol=1e-8)


@pytest.mark.parametrize("named_first", [True, False])
def test_names_of_any_batch_are_those_of_the_columns(named_first):
    X, y = holes_later()
    batches = [(pd.DataFrame(X[:300], columns=list("abc")), y[:300]), (X[300:], y[300:])]
    clf = riskbayes.MixedNB()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn: rows have no names
        clf.fit(riskbayes.rows(batches if named_first else batches[::-1]))
    assert clf.feature_names_in_.tolist() == [column.name for column in clf.columns_] == ["a", "b", "c"]


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.date32(), pa.duration("s")])
def test_models_of_numbers_refuse_dates_of_arrow(kind):
    X = pa.table({"x": np.arange(6.0), "when": pa.array(range(6), type=kind)})
    with pytest.raises(ValueError, match="Column 'when' holds dates or durations"):
        riskbayes.GaussianNB().fit(X, [0, 1] * 3)


# --- a source of one's own --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_source_of_ones_own_is_one_class(name):
    """Every estimator fits to its rows, and predicts them."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = np.minimum(rng.poisson(1 + y[:, None], (120, 3)), 4).astype(float)
    source = OwnSource([(X[at : at + 25], y[at : at + 25]) for at in range(0, 120, 25)])
    given = {"GenerativeClassifier": [GaussianNBModel()], "RiskBayesClassifier": ["single"]}
    clf = ESTIMATORS[name](*given.get(name, []))
    here, there = clone(clf).fit(X, y), clone(clf).fit(source)
    for method in PREDICTIONS:
        if (wanted := ways.ask(here, method, X)) is not None:
            found = ways.ask(there, method, source)
            assert found.shape == wanted.shape
            if method != "predict":
                np.testing.assert_allclose(found, wanted, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize(
    ("clf", "cell", "passes"),
    [
        (riskbayes.CategoricalNB(), 4, 1),
        (riskbayes.CategoricalNB(), -1, 2),
        (riskbayes.MixedNB(), 4, 1),
        (riskbayes.MixedNB(), np.nan, 1),
        (riskbayes.MixedNB(missing="informative"), np.nan, 2),
        (riskbayes.MixedNB(categorical_features=[0]), 4, 2),
        (riskbayes.MixedNB(count_features=[0]), 4, 2),
        (riskbayes.ProductOfExperts([("counts", riskbayes.PoissonNB(), [0])]), 4, 2),
    ],
    ids=str,
)
def test_rows_that_are_encoded_as_they_are_read_are_read_once(clf, cell, passes, tmp_path):
    """A cell of the last batch may say that they are not; the model is that of the array in either case."""
    X = np.random.default_rng(0).integers(0, 4, (400, 3)).astype(float)
    y, X[-1, -1] = np.arange(400) % 2, cell
    source = OwnSource([(X[at : at + 64], y[at : at + 64]) for at in range(0, 400, 64)])
    read, source.spool = [], tmp_path
    source.batches = lambda: read.append("again") or OwnSource.batches(source)
    found, expected = clone(clf).fit(source), clone(clf).fit(X, y)
    assert len(read) == passes
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-9)
    assert not list(tmp_path.iterdir())


def partitions_of(X, y, w=None, size=100):
    own = {"X": da.from_array(X, chunks=(size, -1)), "y": da.from_array(y, chunks=size)}
    return own if w is None else own | {"sample_weight": da.from_array(w, chunks=size)}


def two_classes(n=400):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.standard_normal((n, 2)) + y[:, None], y


def test_a_batch_of_numbers_beside_one_of_strings_tells_its_categories():
    X, y = two_classes()
    frame = pd.DataFrame({"word": np.where(y, "a", "b"), "code": np.arange(400) % 5, "z": X[:, 0]})
    frame["word"] = frame["word"].astype(object).where(np.arange(400) >= 200, None)
    experts = [
        ("words", riskbayes.CategoricalNB(), ["word", "code"]),
        ("numbers", riskbayes.GaussianNB(), ["z"]),
    ]
    parts = [(frame[:200].assign(word=np.nan), y[:200]), (frame[200:], y[200:])]
    found = riskbayes.ProductOfExperts(experts).fit(riskbayes.rows(parts))
    expected = riskbayes.ProductOfExperts(experts).fit(frame, y)
    columns = [[replace(each, example="") for each in clf.columns_] for clf in (found, expected)]
    assert columns[0] == columns[1]
    np.testing.assert_array_equal(found.predict_proba(frame), expected.predict_proba(frame))


def test_categories_are_sorted_whichever_batch_has_them_first():
    """A categorical column of polars declares none: its categories are those of rows that have a weight."""
    words, y = ["b", "c", "b", "c", "a", "c", "a", "z"], np.arange(8) % 2
    frame, w = pl.DataFrame({"x": pl.Series(words, dtype=pl.Categorical)}), np.array([1.0] * 7 + [0])
    batches = [(frame[:4], y[:4], w[:4]), (frame[4:], y[4:], w[4:])]
    for rows in ((frame, y, w), (riskbayes.rows(batches),)):
        assert riskbayes.CategoricalNB().fit(*rows).categories_[0].tolist() == ["a", "b", "c"]


def test_a_second_fit_to_numbers_forgets_the_table_of_the_first():
    X, y = two_classes()
    table = pd.DataFrame({"a": X[:, 0], "word": np.where(y, "a", "b")})
    experts = [("words", riskbayes.CategoricalNB(), ["word"]), ("numbers", riskbayes.GaussianNB(), ["a"])]
    clf = riskbayes.ProductOfExperts(experts).fit(table, y)
    clf.set_params(experts=[riskbayes.GaussianNB()]).fit(X, y)
    fresh = clone(clf).fit(X, y)
    assert repr(clf.schema_) == repr(fresh.schema_)
    assert fresh.schema_.n_rows == 400
    np.testing.assert_array_equal(clf.sample(3, 0)[0], fresh.sample(3, 0)[0])
    assert isinstance(clf.sample(3, 0)[0], np.ndarray)


@pytest.mark.parametrize("way", [as_batches, partitions_of])
def test_validation_rows_without_weight_are_refused(way):
    X, y = two_classes()
    zeros, val = np.zeros(400), {}
    if way is as_batches:
        val["X_val"] = riskbayes.rows([(X, y, zeros)])
    else:
        val = {f"{name}_val": value for name, value in partitions_of(X, y, zeros).items()}
    with pytest.raises(ValueError, match="sample_weight_val must contain at least one non-zero"):
        riskbayes.GaussianNB().fit(X, y, **val)


def test_a_class_that_only_a_partition_without_weight_has_is_refused():
    X, y = two_classes()
    y, w = np.where(np.arange(400) < 100, 7, y), np.where(np.arange(400) < 100, 0.0, 1.0)
    for rows in ({"X": X, "y": y, "sample_weight": w}, partitions_of(X, y, w)):
        with pytest.raises(ValueError, match="The class 7 has no weight"):
            riskbayes.GaussianNB().fit(**rows)


def test_predictions_of_a_collection_ask_nothing_of_rows_that_it_has_not():
    X, y = two_classes()
    X = np.column_stack([np.arange(400) % 3 + 1, X[:, 0]]).astype(np.float32)
    clf = riskbayes.MixedNB(categorical_features=[0], unseen="error").fit(X, y)
    found = clf.predict_proba(da.from_array(X, chunks=(100, -1)))
    assert found.dtype == found.compute().dtype
    np.testing.assert_array_equal(found.compute(), clf.predict_proba(X))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", [riskbayes.MixedNB, riskbayes.RiskBayesClassifier])
def test_kinds_given_by_name_hold_for_an_array_to_predict(kind):
    X, y = two_classes()
    frame = pd.DataFrame({"z": X[:, 0], "digits": [str(round(value, 2)) for value in X[:, 1]]})
    clf = kind(columns={"digits": "number"}).fit(frame, y)
    np.testing.assert_array_equal(clf.predict_proba(frame.to_numpy()), clf.predict_proba(frame))
