"""Laws of tables as users have them: cells keep their type, and the library of the table does not matter."""

import datetime as dt
import unicodedata
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
    RiskBayesClassifier,
    SmoothNB,
)
from riskbayes.estimators.kinds import Kinds
from riskbayes.exceptions import ColumnError
from riskbayes.learners import RC
from riskbayes.preprocessing.columns import columns_of, read_column


def seeded():
    """The default, which chooses folds and trees at random."""
    return RiskBayesClassifier(random_state=0)


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


COARSE = {
    "timestamp[s]": [pa.scalar(START + dt.timedelta(days=i), pa.timestamp("s")) for i in range(M)],
    "timestamp[ms]": [pa.scalar(START + dt.timedelta(hours=7 * i), pa.timestamp("ms")) for i in range(M)],
    "zoned[s]": [pa.scalar(START + dt.timedelta(days=i), pa.timestamp("s", "Asia/Tokyo")) for i in range(M)],
    "duration[s]": [pa.scalar(dt.timedelta(hours=i), pa.duration("s")) for i in range(M)],
    "duration[ms]": [pa.scalar(dt.timedelta(minutes=7 * i), pa.duration("ms")) for i in range(M)],
    "duration[us]": [pa.scalar(dt.timedelta(minutes=7 * i), pa.duration("us")) for i in range(M)],
    "time32[s]": [pa.scalar(dt.time(i % 24, i), pa.time32("s")) for i in range(M)],
    "time32[ms]": [pa.scalar(dt.time(i % 24, i), pa.time32("ms")) for i in range(M)],
    "time64[us]": [pa.scalar(dt.time(i % 24, i), pa.time64("us")) for i in range(M)],
    "date32": [pa.scalar((START + dt.timedelta(days=i)).date(), pa.date32()) for i in range(M)],
}
"""Cells of types whose unit is coarser than what a model fills in."""


def coarse_tables(kind):
    """Tables of Arrow, polars and pandas, and NumPy arrays, with holes in a column of this type."""
    cells = [None if i % 5 == 0 else cell.as_py() for i, cell in enumerate(COARSE[kind])]
    arrow = pa.table({"number": NUMBERS, "held": pa.array(cells, COARSE[kind][0].type)})
    yield arrow
    yield pl.from_arrow(arrow)
    yield arrow.to_pandas()
    yield arrow.to_pandas(types_mapper=pd.ArrowDtype)
    held = arrow.to_pandas()["held"].to_numpy()
    if held.dtype.kind in "mM":
        yield np.column_stack([held, held[::-1]])


@pytest.mark.parametrize("kind", COARSE)
def test_cells_of_a_coarse_unit_are_filled(kind):
    for X in coarse_tables(kind):
        clf = MixedNB("gaussian").fit(X, Y)
        for random_state in (None, 0):
            found = clf.impute(X, random_state=random_state)
            if isinstance(X, np.ndarray):
                assert found.dtype == X.dtype
                assert not np.isnat(found).any()
                assert (np.isnat(X) | (found == X)).all()
                continue
            assert dtype_of(found, "held") == dtype_of(X, "held")
            cells = cells_of(found, "held")
            assert None not in cells
            assert all(a is None or a == b for a, b in zip(cells_of(X, "held"), cells, strict=True))
            clf.predict(found)


def test_a_category_that_the_column_does_not_declare_is_filled():
    words = ["ab"[y] if i % 7 else None for i, y in enumerate(Y)]
    lacking = ["a", None] + ["a"] * (M - 2)
    numbers = np.where(Y == 1, 10.0, 0.0) + NUMBERS
    numbers[1] = 11.0
    tables = {
        pd.DataFrame: (pd.Categorical(words), pd.Categorical(lacking)),
        pl.DataFrame: (pl.Series(words, dtype=pl.Enum("ab")), pl.Series(lacking, dtype=pl.Enum(["a"]))),
        pa.table: (pa.array(words).dictionary_encode(), pa.array(lacking).dictionary_encode()),
    }
    for table, (known, less) in tables.items():
        clf = MixedNB().fit(table({"number": numbers, "held": known}), Y)
        found = clf.impute(table({"number": numbers, "held": less}))
        assert cells_of(found, "held") == ["a", "b"] + ["a"] * (M - 2)
        assert type(dtype_of(found, "held")) is type(dtype_of(table({"held": less}), "held"))
    values = pl.Series(lacking, dtype=pl.Categorical)
    clf = MixedNB().fit(pl.DataFrame({"number": numbers, "held": words}), Y)
    found = clf.impute(pl.DataFrame({"number": numbers, "held": values}))
    assert found["held"].to_list()[1] == "b"


@pytest.mark.parametrize(("cell", "said"), [(10**400, "too large"), (-(10**400), "too large")])
@pytest.mark.parametrize("make", [MixedNB, seeded])
def test_numbers_beyond_floats_are_refused_by_name(make, cell, said):
    X = pd.DataFrame({"number": NUMBERS, "held": np.array([cell, *range(M - 1)], dtype=object)})
    with pytest.raises(ColumnError, match=rf"'held' holds .*{said}"):
        make().fit(X, Y)
    fine = X.assign(held=np.arange(M, dtype=object))
    clf = make().fit(fine, Y)
    with pytest.raises(ColumnError, match=rf"'held' holds .*{said}"):
        clf.predict(X)


@pytest.mark.parametrize("make", [MixedNB, seeded])
def test_a_signalling_nan_is_a_missing_cell(make):
    cells = [Decimal(i) for i in range(M)]
    quiet, loud = ([Decimal(nan), *cells[1:]] for nan in ("NaN", "sNaN"))
    tables = [pd.DataFrame({"number": NUMBERS, "held": np.array(c, dtype=object)}) for c in (quiet, loud)]
    first, second = (make().fit(X, Y).predict_proba(X) for X in tables)
    np.testing.assert_array_equal(first, second)


ZONES = ["UTC", "Asia/Tokyo", "America/Los_Angeles", "Asia/Kolkata"]


@pytest.mark.parametrize("make", [MixedNB, seeded])
def test_the_zone_in_which_an_instant_is_written_does_not_matter(make):
    """Weekdays, months and hours of instants are those of UTC, also where summer time begins."""
    rng = np.random.default_rng(0)
    moments = pd.Timestamp("2021-01-01", tz="UTC") + pd.to_timedelta(
        np.sort(rng.integers(0, 9000, M)), unit="h"
    )
    expected = None
    for zone in ZONES:
        held = moments.tz_convert(zone)
        pandas = pd.DataFrame({"number": NUMBERS, "held": held})
        tables = [pandas, pl.from_pandas(pandas), pa.Table.from_pandas(pandas)]
        tables.append(pandas.assign(held=np.array(held.to_pydatetime(), dtype=object)))
        tables.append(np.column_stack([NUMBERS.astype(object), np.array(held.to_pydatetime())]))
        for X in tables:
            P = make().fit(X, Y).predict_proba(X)
            expected = P if expected is None else expected
            np.testing.assert_array_equal(P, expected)
    naive = pd.DataFrame({"number": NUMBERS, "held": moments.tz_localize(None)})
    np.testing.assert_array_equal(make().fit(naive, Y).predict_proba(naive), expected)


def test_instants_are_filled_in_the_zone_of_the_column():
    moments = pd.date_range("2021-03-01", periods=M, freq="17h", tz="UTC").as_unit("us")
    for zone in ZONES:
        X = pd.DataFrame({"number": NUMBERS, "held": moments.tz_convert("Asia/Tokyo")})
        clf = MixedNB("gaussian", learner="closed_form").fit(X, Y)
        holed = X.assign(held=moments.tz_convert(zone).where(np.arange(M) % 4 > 0))
        expected = clf.predict_proba(holed) @ [moments[k == Y].to_series().mean().timestamp() for k in (0, 1)]
        gone = holed["held"].isna().to_numpy()
        for table in (lambda x: x, pl.from_pandas, pa.Table.from_pandas):
            found = clf.impute(table(holed))
            assert dtype_of(found, "held") == dtype_of(table(holed), "held")
            seconds = np.array([cell.timestamp() for cell in cells_of(found, "held")])
            np.testing.assert_allclose(seconds[gone], expected[gone], atol=1e-3)
            drawn, _ = clf.sample(3, random_state=0)
            assert str(drawn["held"].dt.tz) == "Asia/Tokyo"


@pytest.mark.parametrize("make", [MixedNB, seeded, CategoricalNB])
def test_categories_that_read_the_same_are_the_same(make):
    """Letters with marks are one character or two: composed (NFC) or decomposed (NFD)."""
    words = [("Zürich", "Genève", "Bern")[(i + y) % 3] for i, y in enumerate(Y)]
    composed, decomposed = ([unicodedata.normalize(form, word) for word in words] for form in ("NFC", "NFD"))
    mixed = [a if i % 2 else b for i, (a, b) in enumerate(zip(composed, decomposed, strict=True))]
    other = ["xyz"[(i * 7 + y) % 3] for i, y in enumerate(Y)]
    tables = [pd.DataFrame({"other": other, "held": held}) for held in (composed, decomposed, mixed)]
    expected = make().fit(tables[0], Y).predict_proba(tables[0])
    for X in tables:
        clf = make().fit(X, Y)
        for new in (
            *tables,
            pl.from_pandas(tables[2]),
            pa.Table.from_pandas(tables[2], preserve_index=False),
        ):
            np.testing.assert_allclose(clf.predict_proba(new), expected, atol=1e-12)
    for form in (composed, mixed):
        X = pd.DataFrame({"other": other, "held": pd.Categorical(form)})
        np.testing.assert_allclose(make().fit(X, Y).predict_proba(X), expected, atol=1e-12)


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


@pytest.mark.parametrize("make", [MixedNB, seeded])
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


def test_arrow_categories_may_use_all_of_their_small_index():
    words = [str(i) for i in range(128)]
    held = pa.DictionaryArray.from_arrays(pa.array([None, *range(128)], pa.int8()), words)
    found = read_column(next(columns_of(pa.table({"held": held}))), 0, "held")
    assert found.missing.tolist() == [True] + 128 * [False]
    assert found.values[1:].tolist() == words


def test_a_categorical_of_several_types_is_refused():
    X = pd.DataFrame({"held": pd.Categorical(["a", 1] * 30)})
    with pytest.raises(ColumnError, match="'held' holds categories of several types"):
        MixedNB().fit(X, Y)


@pytest.mark.parametrize("make", [MixedNB, seeded])
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
    few = RC(max_iter=4)  # rounding grows along the path of a fit
    inner = ProductOfExperts([GaussianNB(), SmoothNB()], [0.5, 0.5], learner=few)
    one, two = ProductOfExperts([inner], [1.0], learner=few), inner
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


def test_a_date_of_polars_beyond_the_calendar_is_refused():
    """It has no date of Python: polars stopped with a panic, which is no exception of Python."""
    X = pl.DataFrame({"held": pl.Series([0, 2**14, 2**30] * 20, dtype=pl.Int32).cast(pl.Date)})
    with pytest.raises(ColumnError, match="'held' holds a date too far"):
        MixedNB().fit(X, Y)
