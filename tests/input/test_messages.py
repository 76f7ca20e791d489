"""What a user reads when something is wrong: the column by its name, the value as written, what to do."""

import datetime
import re
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest

from riskbayes import (
    CategoricalNB,
    FlooredWarning,
    GaussianNB,
    GenerativeClassifier,
    KDependenceNB,
    LinearDiscriminantAnalysis,
    MixedNB,
    MixtureDiscriminantAnalysis,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
    TreeAugmentedNB,
    rows,
)
from riskbayes.exceptions import ColumnError, listed
from riskbayes.learners import RC
from riskbayes.models import CategoricalModel, QDAModel, structure
from riskbayes.preprocessing import KMeansBins

M = 60
NAMES = ["age", "income", "colour"]
Y = np.arange(M) % 3
X = np.random.default_rng(0).standard_normal((M, 3)) + Y[:, None]
WORDS = np.array(["red", "green", "blue"])[Y]


def generic(**parameters):
    return GenerativeClassifier(QDAModel(), **parameters)


STREAMING = [GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, generic]
FAMILY = [SmoothNB, ProductOfExperts, MixtureDiscriminantAnalysis, RiskBayesClassifier]
NUMERIC = [*STREAMING, *FAMILY, KMeansBins]
NUMBERS_ONLY = [kind for kind in NUMERIC if kind is not RiskBayesClassifier]
EVERY = [*NUMERIC, CategoricalNB, TreeAugmentedNB, KDependenceNB]


def of(kinds):
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.__name__)


def data(kind):
    return np.digitize(X, [0, 1, 2]) if kind in (CategoricalNB, TreeAugmentedNB, KDependenceNB) else X


def message(error, call):
    """What the error says, which must be for people: no scalar of NumPy, no table printed, one paragraph."""
    with pytest.raises(error) as caught:
        call()
    said = str(caught.value)
    assert "np." not in said
    assert "numpy" not in said.replace("dtype", "")
    assert len(said) < 400
    assert "\n" not in said
    return said


def frame(column):
    """A table whose third column is this one."""
    library = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    return library({"age": X[:, 0], "income": X[:, 1], "colour": column})


def cell(value):
    table = X.astype(object)
    table[4, 2] = value
    return table


# --- what is no number ------------------------------------------------------------------------------

STRINGS = {
    "words": (WORDS, "'red'"),
    "pandas strings": (pd.array(WORDS, dtype="string"), "'red'"),
    "categorical": (pd.Categorical(WORDS), "'red'"),
    "percent": ([f"{i}%" for i in range(M)], "'0%'"),
    "one word": (cell("red")[:, 2], "'red'"),
    "bytes": (cell(b"red")[:, 2], "b'red'"),
    "polars": (pl.Series(WORDS.tolist()), "'red'"),
    "polars categorical": (pl.Series(WORDS.tolist(), dtype=pl.Categorical), "'red'"),
}


@of(NUMBERS_ONLY)
@pytest.mark.parametrize("given", STRINGS)
def test_strings_given_to_a_model_of_numbers(kind, given):
    column, value = STRINGS[given]
    said = message(ColumnError, lambda: kind().fit(frame(column), Y))
    assert said.startswith(f"Column 'colour' holds {value}, and ")
    assert "takes numbers" in said
    assert "MixedNB and RiskBayesClassifier take tables of numbers and strings" in said
    assert "CategoricalNB takes strings" in said
    assert "OneHotEncoder" in said


@of([*EVERY, MixedNB])
@pytest.mark.parametrize("dtype", ["period[M]", object])
def test_periods_are_to_be_made_dates(kind, dtype):
    column = pd.Series(pd.period_range("2020-01", periods=M, freq="M")).astype(dtype)
    table = pd.DataFrame({"colour": column})
    said = message((ValueError, TypeError), lambda: kind().fit(table, Y))
    assert re.match(
        r"[Cc]olumn 'colour' holds Period\('2020-01', 'M'\), a period of time. Make it a date", said
    )
    if kind in (MixedNB, RiskBayesClassifier):
        kind().fit(frame(column.astype("period[M]").dt.to_timestamp()), Y)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@of(NUMERIC)
def test_strings_at_predict_and_without_names(kind):
    fitted = kind().fit(X, Y)
    method = getattr(fitted, "predict", None) or fitted.transform
    said = message(ColumnError, lambda: method(np.c_[X[:, :2].astype(str), WORDS]))
    assert said.startswith("Column 2 holds 'red', and ")
    named = kind().fit(pd.DataFrame(X, columns=NAMES), Y)
    method = getattr(named, "predict", None) or named.transform
    assert message(ColumnError, lambda: method(frame(WORDS))).startswith("Column 'colour' holds 'red'")
    assert message(ColumnError, lambda: method(cell("red"))).startswith("Column 'colour' holds 'red'")
    assert message(ColumnError, lambda: method(np.c_[X, WORDS])).startswith("Column 3 holds 'red'")
    other = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=M)})
    assert message(ColumnError, lambda: method(other)).startswith("Column 'day' holds dates")
    with pytest.raises(ValueError, match="feature names"):
        method(pd.DataFrame({"age": X[:, 0], "income": X[:, 1], "shade": WORDS}))


DATES = {
    "pandas": pd.Series(pd.date_range("2024-01-01", periods=M)),
    "with a zone": pd.Series(pd.date_range("2024-01-01", periods=M, tz="UTC")),
    "durations": pd.Series(pd.to_timedelta(np.arange(M), unit="D")),
    "objects": pd.Series([datetime.date(2024, 1, 1)] * M, dtype=object),
    "polars": pl.Series([datetime.date(2024, 1, 1)] * M),
    "polars times": pl.Series([datetime.datetime(2024, 1, 1)] * M),
}


@of(NUMBERS_ONLY)
@pytest.mark.parametrize("given", DATES)
def test_dates(kind, given):
    said = message(ColumnError, lambda: kind().fit(frame(DATES[given]), Y))
    assert said.startswith("Column 'colour' holds ")
    assert "Turn dates into numbers" in said


@of(NUMBERS_ONLY)
@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]"])
def test_tables_of_dates_only_are_not_read_as_numbers(kind, dtype):
    table = np.arange(2 * M).astype(dtype).reshape(M, 2)
    assert "dates or durations" in message(ColumnError, lambda: kind().fit(table, Y))
    assert "Column 'a'" in message(
        ColumnError, lambda: kind().fit(pd.DataFrame(table.astype("M8[s]"), columns=["a", "b"]), Y)
    )


@of(NUMBERS_ONLY)
def test_other_cells_that_are_no_numbers(kind):
    for missing in (pd.NA, pd.NaT):
        said = message(ValueError, lambda missing=missing: kind().fit(frame(cell(missing)[:, 2]), Y))
        if getattr(kind(), "_takes_missing", False):
            assert said == f"Column 'colour' holds {missing!r}: NaN stands for a missing number. Pass NaN."
            continue
        assert "NaN in column 'colour'" in said
        taken = getattr(kind, "_takes_missing", False)
        assert ("by NaN for a missing cell" if taken else "SimpleImputer") in said
    for value, shown in (([1, 2], "[1, 2]"), ({"a": 1}, "{'a': 1}"), (1j, "1j")):
        said = message(TypeError, lambda value=value: kind().fit(cell(value), Y))
        assert said.startswith(f"Column 2 holds {shown}: ")
    assert "too large" in message(ColumnError, lambda: kind().fit(cell(10**400), Y))
    assert "collect it" in message(TypeError, lambda: kind().fit(pl.LazyFrame({"a": [1.0]}), Y))


@of(EVERY)
def test_complex_numbers_and_masked_values(kind):
    said = message(ValueError, lambda: kind().fit(X * 1j, Y))
    assert "Complex data not supported" in said
    assert "real" in said
    table = np.ma.masked_array(data(kind), mask=X > 2)
    said = message(ColumnError, lambda: kind().fit(table, Y))
    assert "masked values" in said
    assert "Fill them in" in said


@of([CategoricalNB, TreeAugmentedNB])
def test_categories_of_two_kinds(kind):
    codes = data(kind).astype(object)
    codes[4, 2] = "red"
    assert "holds 1 and 'red': values of one kind" in message(ValueError, lambda: kind().fit(codes, Y))
    fitted = kind().fit(data(kind), Y)
    assert "now holds '1'" in message(ValueError, lambda: fitted.predict(data(kind).astype(str)))


# --- names of columns in the errors of models ------------------------------------------------------


def test_the_models_errors_have_the_names_of_the_columns(monkeypatch):
    table = pd.DataFrame(X, columns=NAMES)
    wide = table.assign(colour=1.7e308 * np.linspace(-1, 1, M))
    assert "Column 'colour' has a range that overflows" in message(
        ColumnError, lambda: SmoothNB().fit(wide, Y)
    )
    huge = table.assign(colour=1e200 * X[:, 2])
    for kind in (*STREAMING, *FAMILY[1:]):
        if kind is RiskBayesClassifier:  # its members read such a column in another unit
            kind().fit(huge, Y)
            continue
        said = message(ColumnError, lambda kind=kind: kind().fit(huge, Y))
        assert said.startswith("Column 'colour' h")
        assert "missing" in said
    codes = pd.DataFrame(np.digitize(X, [0, 1]), columns=NAMES).assign(colour=0.5)
    clf = GenerativeClassifier(CategoricalModel(alpha=1.0))
    assert "Column 'colour' holds 0.5" in message(ColumnError, lambda: clf.fit(codes, Y))
    clf.fit(codes.assign(colour=1), Y)
    assert "Column 'colour' holds -1" in message(ColumnError, lambda: clf.predict(codes.assign(colour=-1)))
    monkeypatch.setattr(structure, "MOST_CELLS", 4)
    for kind in (TreeAugmentedNB, KDependenceNB):
        said = message(ColumnError, lambda kind=kind: kind().fit(codes.assign(colour=Y + 1), Y))
        assert "Column 'colour'" in said
        assert "cells to count" in said


def test_members_of_the_family_speak_of_the_names_too():
    table = pd.DataFrame(X, columns=NAMES)
    clf = RiskBayesClassifier("ensemble", cv=2, time_limit=1e-9, random_state=0).fit(table, Y)
    table.loc[3, "income"] = 1e200
    assert "Column 'income' of X holds 1e+200 in row 3" in message(ColumnError, lambda: clf.predict(table))


# --- lists -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1], "1"),
        (["a", "b"], "'a', 'b'"),
        (range(5), "0, 1, 2, 3, 4"),
        (range(1000), "0, 1, 2, 3, 4 and 995 more"),
    ],
)
def test_lists_are_short(values, said):
    assert listed(np.array(list(values))) == said


def test_a_thousand_classes_are_not_listed():
    rng = np.random.default_rng(0)
    y = np.repeat([f"class {k}" for k in range(1000)], 2)
    rows = rng.standard_normal((2000, 3))
    clf = QuadraticDiscriminantAnalysis(learner="closed_form")
    with pytest.warns(FlooredWarning) as caught:
        clf.fit(rows, y)
    assert "'class 0', 'class 1', 'class 10', 'class 100', 'class 101' and 995 more" in str(caught[0].message)
    calls = [
        lambda: clf.fit(rows, y, X_val=rows[:1], y_val=["other"]),
        lambda: clf.merge(QuadraticDiscriminantAnalysis(learner="closed_form", reg_param=0.5).fit(X, Y)),
        lambda: clf.partial_fit(rows, y, classes=["a", "b"]),
        lambda: clf.set_params(class_weight={"other": 1.0}).fit(rows, y),
        lambda: clf.set_params(class_weight=None, priors=np.full(1000, -1.0)).fit(rows, y),
        lambda: clf.set_params(priors=None, warm_start=True).fit(X, Y),
    ]
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FlooredWarning)
            assert "and 995 more" in message(ValueError, call)


# --- weights, labels, validation rows --------------------------------------------------------------


@of([kind for kind in EVERY if kind is not KMeansBins])
@pytest.mark.parametrize("weight", [1e300, 1e308, 1e150])
def test_weights_that_overflow_are_not_blamed_on_a_column(kind, weight):
    said = message(ValueError, lambda: kind().fit(data(kind), Y, sample_weight=np.full(M, weight)))
    assert said.startswith("sample_weight sums to ")
    assert "Scale the weights" in said
    one = np.ones(M)
    one[7] = weight
    assert "sample_weight" in message(ValueError, lambda: kind().fit(data(kind), Y, sample_weight=one))
    if "class_weight" in kind().get_params():
        weights = {0: weight, 1: 1.0, 2: 1.0}
        said = message(ValueError, lambda: kind(class_weight=weights).fit(data(kind), Y))
        assert said.startswith("class_weight sums to ")


@of([GaussianNB, QuadraticDiscriminantAnalysis, CategoricalNB, SmoothNB, RiskBayesClassifier])
@pytest.mark.parametrize(
    "wrong", [["a"] * M, np.full(M, 1j), np.ones(3), np.ones((M, 2)), np.full(M, np.nan)], ids=range(5)
)
def test_weights_that_are_none_are_named(kind, wrong):
    assert "weight" in message(ValueError, lambda: kind().fit(data(kind), Y, sample_weight=wrong)).lower()
    if kind is not RiskBayesClassifier and np.ndim(wrong) == 1:
        rows = data(kind)
        call = lambda: kind().fit(rows, Y, X_val=rows, y_val=Y, sample_weight_val=wrong)  # noqa: E731
        assert "sample_weight_val" in message(ValueError, call)


@of([GaussianNB, CategoricalNB])
@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf, "a", None])
def test_weights_of_classes(kind, wrong):
    weights = {np.int64(0): wrong, 1: 1.0, 2: 1.0}
    said = message(ValueError, lambda: kind(class_weight=weights).fit(data(kind), Y))
    assert said == f"class_weight of class 0 must be a finite, non-negative number; got {wrong!r}."


@of([GaussianNB, CategoricalNB])
@pytest.mark.parametrize(
    "way", [lambda *arrays: arrays, lambda *arrays: (rows([arrays]),)], ids=["array", "batches"]
)
def test_weights_of_classes_and_rows_are_judged_together_wherever_rows_are(kind, way):
    large = {0: 1e90, 1: 1.0, 2: 1.0}
    said = message(ValueError, lambda: kind(class_weight=large).fit(*way(data(kind), Y, np.full(M, 1e20))))
    assert said.startswith("sample_weight times class_weight sums to ")
    balanced = kind(class_weight="balanced")
    said = message(ValueError, lambda: balanced.fit(*way(data(kind), Y, (Y != 1).astype(float))))
    assert said.startswith("The class 1 has no weight")


@of([GaussianNB, CategoricalNB, SmoothNB])
def test_weights_of_validation_rows_without_these(kind):
    said = message(ValueError, lambda: kind().fit(data(kind), Y, sample_weight_val=np.ones(M)))
    assert "sample_weight_val" in said
    assert "pass X_val and y_val" in said


@of([GaussianNB, CategoricalNB, RiskBayesClassifier])
@pytest.mark.parametrize("labels", [(0, 1), ("a", "b"), (False, True), (0.5, 1.5)], ids=str)
@pytest.mark.parametrize("gone", [None, pd.NA, np.nan], ids=str)
def test_labels_that_are_missing(kind, labels, gone):
    y = np.array([*labels, gone] * (M // 3), dtype=object)
    said = message(ValueError, lambda: kind().fit(data(kind), y))
    assert said.startswith(f"y has no label in {M // 3} of {len(y)} rows; the first is row 2, with {gone!r}.")
    assert "Drop these rows" in said
    assert "unlabelled=None" in said


@of([GaussianNB, CategoricalNB, RiskBayesClassifier])
@pytest.mark.parametrize("other", [1, 2.5], ids=str)
def test_labels_of_two_kinds(kind, other):
    labels = np.array(["a", "b", other] * (M // 3), dtype=object)
    said = message(TypeError, lambda: kind().fit(data(kind), labels))
    assert said.startswith(f"y has labels of several kinds, such as 'a' and {other!r}")


@of([GaussianNB, CategoricalNB, RiskBayesClassifier])
@pytest.mark.parametrize("label", [pd.Period("2024-01"), datetime.date(2024, 1, 31)], ids=repr)
def test_labels_that_are_objects(kind, label):
    y = pd.Series([label] * M)
    said = message(ValueError, lambda: kind().fit(data(kind), y))
    assert said == (
        f"Unknown label type: y holds objects such as {label!r}. Make the labels strings, whole numbers or "
        "booleans, for instance by `.astype(str)`."
    )


def test_a_generative_weight_is_finite_and_its_documentation_says_so():
    said = message(ValueError, lambda: GaussianNB(learner=RC(generative_weight=np.inf)).fit(X, Y))
    assert "'generative_weight' parameter of RC" in said
    assert "infinity" not in RC.__doc__
    held, free = (GaussianNB(learner=RC(generative_weight=g), prior=None).fit(X, Y) for g in (1e300, 0.0))
    closed = GaussianNB(learner="closed_form", prior=None).fit(X, Y)
    np.testing.assert_allclose(held.predict_proba(X), closed.predict_proba(X), atol=1e-9)
    assert np.abs(free.predict_proba(X) - closed.predict_proba(X)).max() > 1e-3


@pytest.mark.parametrize("costs", ["x", [[0, "a"], [1, 0]], None])
def test_costs_that_are_no_matrix(costs):
    clf = GaussianNB(learner="closed_form").fit(X, Y)
    assert message(ValueError, lambda: clf.decide(X, costs)).startswith("cost_matrix ")


# --- bins ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        1.7e308 * np.linspace(-1, 1, 50),
        np.linspace(1.5e308, 1.7e308, 50),
        np.linspace(0, 1e-309, 50),
        np.arange(50) * 5e-324,
        np.array([0.0, 5e-324] * 25),
        np.array([5e-324, 1e-323] * 25),
        np.array([-1.7e308, 1.7e308] * 25),
        np.array([1.6e308, 1.7e308] * 25),
    ],
    ids=["huge", "far", "subnormal", "least", "zero_or_least", "two_least", "ends", "two_huge"],
)
def test_bins_of_columns_at_the_ends_of_the_numbers(column):
    bins = KMeansBins().fit(column[:, None])
    codes = bins.transform(column[:, None])[:, 0]
    values = np.unique(column)
    assert len(np.unique(codes)) == min(5, len(values))
    assert all(np.diff(edges).min(initial=1.0) > 0 for edges in bins.bin_edges_)
    order = np.argsort(column, kind="stable")
    assert all(a <= b for a, b in pairwise(codes[order].tolist()))


def test_bins_do_not_depend_on_a_power_of_two():
    column = np.exp(np.random.default_rng(0).standard_normal(200))
    codes = KMeansBins().fit_transform(column[:, None])
    for exponent in (-1060, -300, 300, 1018):
        np.testing.assert_array_equal(KMeansBins().fit_transform(np.ldexp(column, exponent)[:, None]), codes)
