"""Laws of tables as users have them: cells keep their type, and the library of the table does not matter."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from riskbayes import (
    CategoricalNB,
    GaussianNB,
    MixedNB,
    MultinomialNB,
    PoissonNB,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    SmoothNB,
)
from riskbayes import RiskBayesClassifier as Recipe
from riskbayes.estimators.kinds import Kinds
from riskbayes.exceptions import ColumnError

M = 60
START = dt.datetime(2020, 1, 1)
Y = np.arange(M) % 3 % 2
NUMBERS = np.random.default_rng(0).normal(size=M) + Y

FULL = {
    "duration": [dt.timedelta(hours=30 + i) for i in range(M)],
    "time": [dt.time(6 + i % 12, i) for i in range(M)],
    "whole": [i % 13 + 5 for i in range(M)],
    "decimal": [Decimal(i % 13 + 5) / 8 for i in range(M)],
    "moment": [START + dt.timedelta(hours=7 * i) for i in range(M)],
    "in a zone": [(START + dt.timedelta(hours=7 * i)).replace(tzinfo=dt.UTC) for i in range(M)],
    "written date": [str((START + dt.timedelta(days=i)).date()) for i in range(M)],
    "written moment": [str(START + dt.timedelta(hours=i)) for i in range(M)],
    "word": ["abc"[(i + y) % 3] for i, y in enumerate(Y)],
    "truth": [bool((i + y) % 2) for i, y in enumerate(Y)],
}
HOLED = {name: [None if i % 5 == 0 else v for i, v in enumerate(cells)] for name, cells in FULL.items()}

LIBRARIES = {
    "pandas": pd.DataFrame,
    "nullable pandas": lambda d: pd.DataFrame(d).convert_dtypes(),
    "pandas of Arrow": lambda d: pd.DataFrame(d).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "Arrow": pa.table,
}


def cells_of(table, name):
    """Return a column as a list with None for missing cells."""
    if isinstance(table, pd.DataFrame):
        return [None if pd.isna(v) else v for v in table[name].tolist()]
    return (table[name].to_pylist if isinstance(table, pa.Table) else table[name].to_list)()


def dtype_of(table, name):
    return table[name].type if isinstance(table, pa.Table) else table[name].dtype


@pytest.mark.parametrize("kind", FULL)
@pytest.mark.parametrize("library", LIBRARIES)
def test_filled_and_drawn_cells_are_of_the_columns_type(library, kind):
    X = LIBRARIES[library]({"number": NUMBERS, "held": HOLED[kind]})
    clf = MixedNB(missing="informative").fit(X, Y)
    observed = [v for v in cells_of(X, "held") if v is not None]
    for random_state in (None, 0):
        found = clf.impute(X, random_state=random_state)
        cells = cells_of(found, "held")
        assert None not in cells
        assert all(a is None or a == b for a, b in zip(cells_of(X, "held"), cells, strict=True))
        assert dtype_of(found, "held") == dtype_of(X, "held")
        if random_state is None:  # means, and frequent categories
            assert min(observed) <= min(cells)
            assert max(cells) <= max(observed)
        clf.predict(found)
    drawn, _ = clf.sample(20, random_state=0)
    assert np.isfinite(clf.predict_proba(drawn)).all()


@pytest.mark.parametrize("kind", FULL)
def test_explanations_do_not_depend_on_the_library(kind):
    first, found = None, {}
    for library, table in LIBRARIES.items():
        X = table({"number": NUMBERS, "held": HOLED[kind]})
        clf = MixedNB().fit(X, Y)
        explained = clf.explain(X)
        found[library] = explained.values
        P = clf.predict_log_proba(X)
        np.testing.assert_allclose(explained.log_odds(0, 1).total, P[:, 0] - P[:, 1], atol=1e-9)
        first = found[library] if first is None else first
        np.testing.assert_array_equal(found[library], first)


@pytest.mark.parametrize("make", [MixedNB, Recipe])
def test_categoricals_of_numbers_are_categories(make):
    codes = (np.arange(M) * 7 + Y) % 4 * 10
    words = pd.DataFrame({"number": NUMBERS, "held": [str(c) for c in codes]})
    expected = make().fit(words, Y).predict_proba(words)
    tables = [
        pd.DataFrame({"number": NUMBERS, "held": pd.Categorical(codes)}),
        pa.table({"number": NUMBERS, "held": pa.array(codes).dictionary_encode()}),
    ]
    for X in tables:
        clf = make().fit(X, Y)
        assert clf.columns_[1].kind == "category"
        np.testing.assert_array_equal(clf.predict_proba(X), expected)


def test_a_categorical_of_several_types_is_refused():
    X = pd.DataFrame({"held": pd.Categorical(["a", 1] * 30)})
    with pytest.raises(ColumnError, match="'held' holds categories of several types"):
        MixedNB().fit(X, Y)


@pytest.mark.parametrize("make", [MixedNB, Recipe])
def test_decimals_are_numbers(make):
    X = pl.DataFrame({"held": FULL["decimal"]})
    as_floats = X.cast(pl.Float64)
    np.testing.assert_array_equal(
        make().fit(X, Y).predict_proba(X), make().fit(as_floats, Y).predict_proba(as_floats)
    )


def test_columns_that_no_expert_reads():
    X = np.random.default_rng(1).normal(size=(M, 5))
    clf = ProductOfExperts([("a", GaussianNB(), [0]), ("b", QuadraticDiscriminantAnalysis(), [1, 2])])
    clf.fit(X, Y)
    drawn, _ = clf.sample(4, random_state=0)
    assert drawn.shape == (4, 5)
    assert np.isnan(drawn[:, 3:]).all()
    clf.predict(drawn)
    holed = X.copy()
    holed[0, [1, 4]] = np.nan
    filled = clf.impute(holed)
    assert np.isfinite(filled[0, 1])
    assert np.isnan(filled[0, 4])
    with pytest.raises(ValueError, match="Column 1 of X holds 1e"):
        clf.predict(np.array([[0, 1e300, 0, 0, 0]]))


def test_columns_of_a_data_frame_that_no_expert_reads():
    X = pd.DataFrame({"number": NUMBERS, "word": HOLED["word"], "moment": HOLED["moment"]})
    clf = ProductOfExperts([("a", GaussianNB(), ["number"]), ("b", CategoricalNB(), ["word"])]).fit(X, Y)
    drawn, _ = clf.sample(4, random_state=0)
    assert list(drawn.columns) == list(X.columns)
    assert drawn["moment"].isna().all()
    filled = clf.impute(X)
    assert filled["word"].notna().all()
    pd.testing.assert_series_equal(filled["moment"], X["moment"])


@pytest.mark.parametrize("table", [pl.DataFrame, pa.table])
def test_a_column_without_a_type_is_filled(table):
    clf = MixedNB().fit(table({"number": NUMBERS, "word": FULL["word"]}), Y)
    filled = clf.impute(table({"number": [None, None], "word": [None, None]}))
    assert cells_of(filled, "word")[0] in "abc"
    assert None not in cells_of(filled, "number")


@pytest.mark.parametrize(
    "other",
    [
        {"word": ["bcd"[(i + y) % 3] for i, y in enumerate(Y)]},  # "b" had the code 1
        {"word": [1.0 * i for i in range(M)]},
        {"word": ["a"] * M},
    ],
)
def test_warm_start_refuses_other_categories(other):
    X = pd.DataFrame({"number": NUMBERS, "word": FULL["word"]})
    clf = MixedNB(warm_start=True).fit(X, Y)
    before = clf.predict_proba(X)
    with pytest.raises(ValueError, match=r"warm_start needs columns of the same kinds.*'word'"):
        clf.fit(X.assign(**other), Y)
    np.testing.assert_array_equal(clf.predict_proba(X), before)
    clf.fit(X.iloc[::-1], Y[::-1])


@pytest.mark.parametrize("kind", ["word", "moment"])
def test_counts_are_numbers(kind):
    X = pd.DataFrame({"number": NUMBERS, "held": FULL[kind]})
    with pytest.raises(ColumnError, match=r"'held' is a .* count_features are numbers"):
        MixedNB(count_features=["held"]).fit(X, Y)


def test_columns_tell_the_number_of_missing_cells_or_none():
    X = np.column_stack([NUMBERS, NUMBERS])
    X[::4, 1] = np.nan
    assert MixedNB().fit(X, Y).columns_[1].n_missing in (None, 15)
    assert MixedNB().fit(pd.DataFrame(X), Y).columns_[1].n_missing == 15


@pytest.mark.parametrize("kinds", [[], ["number"] * 3, ["category", "number", "category"]])
def test_kinds_are_a_partition(kinds):
    found = Kinds.of(kinds)
    assert sorted(found.numbers + found.categories) == list(range(len(kinds)))
    assert all(kinds[j] == "number" for j in found.numbers)
    assert not any(kinds[j] == "number" for j in found.categories)


@pytest.mark.parametrize("make", [MultinomialNB, PoissonNB])
def test_experts_refuse_what_they_refuse_alone(make):
    counts = pd.DataFrame({"word": HOLED["word"], "held": np.arange(M) % 5.0, "other": np.arange(M) % 3.0})
    clf = ProductOfExperts([("a", make(), ["held", "other"]), ("b", CategoricalNB(), ["word"])])
    clf.fit(counts, Y)
    below = counts.assign(other=counts["other"] - 1)
    for refused in (lambda: clf.predict(below), lambda: clf.fit(below, Y)):
        with pytest.raises(ColumnError, match="'other' holds values below zero"):
            refused()
    holed = counts.assign(other=counts["other"].where(counts["other"] > 0))
    if make is PoissonNB:
        clf.fit(holed, Y).predict(holed)
        return
    for refused in (lambda: clf.predict(holed), lambda: clf.fit(holed, Y)):
        with pytest.raises(ColumnError, match="'other' has missing cells"):
            refused()


def test_products_of_products():
    X = np.column_stack([NUMBERS, np.random.default_rng(2).normal(size=M)])
    inner = ProductOfExperts([GaussianNB(), SmoothNB()], [0.5, 0.5])
    one, two = ProductOfExperts([inner], [1.0]), inner
    np.testing.assert_allclose(
        one.fit(X, Y).predict_proba(X), two.fit(X, Y).predict_proba(X), rtol=0, atol=1e-12
    )
    for expert in (MixedNB(), ProductOfExperts([("a", GaussianNB(), [0])])):
        with pytest.raises(TypeError, match="sorts the columns of a table by kind"):
            ProductOfExperts([("outer", expert, [0, 1])]).fit(X, Y)


@pytest.mark.parametrize("seconds", [2**40, 2**62])
def test_a_date_beyond_the_calendar_is_refused(seconds):
    X = pa.table({"held": pa.array([0, 2**31, seconds] * 20, type=pa.timestamp("s"))})
    with pytest.raises(ColumnError, match="'held' holds a date too far"):
        MixedNB().fit(X, Y)
