"""One way in: what batches, files, streams and partitions are read as does not depend on where rows begin."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import riskbayes
from riskbayes.engines import block_writer


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
        (riskbayes.RiskBayesClassifier(), holes_later),
        (riskbayes.MixedNB(missing="informative"), holes_later),
        (riskbayes.RiskBayesClassifier(), words_later),
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
    clf = riskbayes.RiskBayesClassifier().fit(**way(X, y))
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
