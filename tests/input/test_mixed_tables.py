"""Tables as people have them: kinds of columns, missing cells, the same answer from every library."""

import datetime
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from riskbayes import (
    CategoricalNB,
    GaussianNB,
    MixedNB,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
    load,
    rows,
)
from riskbayes.learners import RC
from riskbayes.preprocessing.encoder import TableEncoder

pytestmark = pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")

SHORT = RC(max_iter=5)
TAKES_TABLES = [MixedNB(learner=SHORT), MixedNB("gaussian", learner=SHORT), RiskBayesClassifier("single")]


def table(seed=0, m=120):
    """A data frame of every kind, with missing cells in most columns, and labels that depend on it."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=m)
    day = np.datetime64("2024-01-01T06:30") + rng.integers(0, 400, m) * np.timedelta64(1, "D")
    frame = pd.DataFrame(
        {
            "height": np.where(rng.random(m) < 0.2, np.nan, y + rng.standard_normal(m)),
            "colour": pd.array(np.array(["red", "green", "blue"])[(y + (rng.random(m) < 0.4)) % 3], "str"),
            "smokes": rng.random(m) < 0.2 + 0.2 * y,
            "visit": day.astype("datetime64[us]"),
            "beds": rng.integers(0, 4, m),
            "id": [f"patient {i}" for i in range(m)],
            "country": ["NL"] * m,
            "nothing": np.full(m, np.nan),
        }
    )
    frame.loc[rng.random(m) < 0.15 + 0.2 * (y == 1), "colour"] = None
    frame.loc[rng.random(m) < 0.1, "visit"] = pd.NaT
    return frame, np.array(["low", "mid", "top"])[y]


def libraries(frame):
    """The same table in every library, and as an array of objects."""
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    return {"pandas": frame, "polars": pl.from_arrow(arrow), "arrow": arrow}


def kinds(clf):
    return {column.name: column.kind for column in clf.columns_}


@pytest.mark.parametrize("clf", TAKES_TABLES, ids=repr)
def test_every_library_gives_the_same_answer(clf):
    frame, y = table()
    found = {name: clf.fit(X, y).predict_proba(X) for name, X in libraries(frame).items()}
    for name, P in found.items():
        np.testing.assert_array_equal(P, found["pandas"], err_msg=name)
    clf.fit(frame, y)
    for name, X in libraries(frame).items():
        np.testing.assert_array_equal(clf.predict_proba(X), found["pandas"], err_msg=name)


def test_columns_say_what_became_of_them():
    frame, y = table()
    clf = MixedNB(missing="informative").fit(frame, y)
    assert kinds(clf) == {
        **{"height": "number", "colour": "category", "smokes": "category", "visit": "date", "beds": "number"},
        **{"id": "left out", "country": "left out", "nothing": "left out"},
    }
    reasons = {column.name: column.reason for column in clf.columns_ if column.reason}
    assert reasons == {
        "id": "an identifier: 120 distinct values",
        "country": "constant",
        "nothing": "missing everywhere",
    }
    made = {column.name: column.encoded for column in clf.columns_}
    assert made["visit"] == ("number", "weekday", "month", "is missing")  # the hour does not vary
    assert made["height"] == ("number", "is missing")
    assert clf.columns_[0].n_missing == frame["height"].isna().sum()
    assert pd.DataFrame(clf.columns_).shape == (8, 9)


def test_dates_are_a_number_and_parts_of_the_calendar():
    days = pd.to_datetime(["2024-02-29 13:45", "1969-12-31 23:59", "2000-01-03 00:00"])
    encoder, X = TableEncoder.learn(pd.DataFrame({"d": days}), ["d"])
    assert encoder.names == ["d", "d (weekday)", "d (month)", "d (hour)"]
    assert X[:, 1].tolist() == [d.weekday() for d in days]
    assert X[:, 2].tolist() == [d.month - 1 for d in days]
    assert X[:, 3].tolist() == [d.hour for d in days]
    seconds = [(d - pd.Timestamp(0)).total_seconds() for d in days]
    np.testing.assert_allclose(X[:, 0] * 86400, seconds, rtol=1e-12)


@pytest.mark.parametrize(
    "column",
    [
        ["2024-01-05", "2024-03-01", None, "2024-02-02", ""],
        [datetime.date(2024, 1, 5), datetime.date(2024, 3, 1), None, datetime.date(2024, 2, 2), None],
        pd.to_datetime(["2024-01-05", "2024-03-01", None, "2024-02-02", None]),
        pd.to_datetime(["2024-01-05", "2024-03-01", None, "2024-02-02", None], utc=True).tz_convert(
            "Asia/Tokyo"
        ),
    ],
    ids=["strings", "dates", "timestamps", "time zone"],
)
def test_dates_in_every_form_are_the_same(column):
    X = TableEncoder.learn(pd.DataFrame({"d": column}), ["d"])[1]
    expected = [19727.0, 19783.0, np.nan, 19755.0, np.nan]
    np.testing.assert_array_equal(X[:, 0], expected)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA, pd.NaT, ""], ids=repr)
def test_every_missing_value_is_missing(gone):
    X = np.array([["a", 1.5], [gone, gone], ["b", 2.5], ["a", 3.5]], dtype=object)
    encoder, found = TableEncoder.learn(X, ["word", "number"])
    np.testing.assert_array_equal(found, [[0, 1.5], [np.nan, np.nan], [1, 2.5], [0, 3.5]])
    np.testing.assert_array_equal(encoder.encode(X), found)


@given(seed=st.integers(0, 2**32 - 1))
def test_decoding_inverts_encoding(seed):
    frame, _ = table(seed, m=30)
    encoder, X = TableEncoder.learn(frame, list(frame), informative=True)
    again = encoder.decode(X)
    assert type(again) is type(frame)
    np.testing.assert_array_equal(encoder.encode(again), X)


@pytest.mark.parametrize("missing", ["ignore", "informative"])
def test_samples_look_like_the_table_and_can_be_predicted(missing):
    frame, y = table(m=400)
    clf = MixedNB(missing=missing, learner="closed_form").fit(frame, y)
    X, labels = clf.sample(2000, random_state=0)
    assert list(X.columns) == list(frame.columns)
    assert set(X["colour"].dropna()) <= {"red", "green", "blue"}
    assert np.isfinite(clf.score_samples(X)).all()
    assert clf.score(X, labels) > 0.5
    if missing == "informative":
        for name in ("height", "colour"):
            assert X[name].isna().mean() == pytest.approx(frame[name].isna().mean(), abs=0.05)


def test_columns_that_are_missing_together_are_so_in_samples():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X = pd.DataFrame(rng.standard_normal((600, 4)), columns=list("abcd"))
    X["e"] = rng.choice(["x", "y"], size=600)
    X.loc[rng.random(600) < 0.2 + 0.4 * y, ["a", "c", "e"]] = None
    X.loc[rng.random(600) < 0.3, "d"] = np.nan
    drawn, labels = MixedNB(missing="informative").fit(X, y).sample(4000, random_state=0)
    gone = drawn.isna()
    assert (gone["a"] == gone["c"]).all()
    assert (gone["a"] == gone["e"]).all()
    assert not gone["b"].any()
    for k in range(2):
        expected = X[y == k].isna().mean()
        np.testing.assert_allclose(gone[labels == k].mean(), expected, atol=0.06)


@pytest.mark.parametrize(
    ("start", "end", "months", "days", "hours"),
    [
        ("2021-01-04", "2024-02-01", range(1, 13), range(5), range(9, 18)),  # business hours
        ("2018-01-01", "2024-01-01", (6, 7, 12), range(7), range(24)),  # seasons
        ("2023-11-01", "2024-04-20", (11, 12, 1, 2, 3, 4), (1, 3, 5), (0, 23)),  # a winter
    ],
)
@pytest.mark.parametrize("numeric", ["smooth", "gaussian"])
def test_drawn_dates_have_the_weekdays_months_and_hours_of_training(numeric, start, end, months, days, hours):
    moments = pd.date_range(start, end, freq="h").to_series()
    moments = moments[
        moments.dt.month.isin(months) & moments.dt.day_of_week.isin(days) & moments.dt.hour.isin(hours)
    ]
    rng = np.random.default_rng(0)
    late = rng.random(800)
    X = pd.DataFrame({"when": moments.iloc[(late * len(moments)).astype(int)].to_numpy()})
    y = (late + 0.3 * rng.standard_normal(800) > 0.5).astype(int)
    clf = MixedNB(numeric, alpha=0.0).fit(X, y)
    drawn = clf.sample(2000, random_state=0)[0]["when"]
    filled = clf.impute(X.assign(when=pd.Series([pd.NaT] * 800, dtype=X["when"].dtype)), random_state=0)[
        "when"
    ]
    for found in (drawn, filled):
        assert set(found.dt.month) <= set(months)
        assert set(found.dt.day_of_week) <= set(days)
        assert set(found.dt.hour) <= set(hours)
        for part in ("month", "day_of_week", "hour"):
            shares = [getattr(x.dt, part).value_counts(normalize=True) for x in (found, X["when"])]
            assert shares[0].sub(shares[1], fill_value=0.0).abs().max() < 0.08
        assert abs((found - X["when"].mean()).dt.days.mean()) < 0.1 * (X["when"].max() - X["when"].min()).days
    if numeric == "smooth":
        slack = 0.1 * (X["when"].max() - X["when"].min())
        assert drawn.between(X["when"].min() - slack, X["when"].max() + slack).mean() > 0.97


def test_missing_cells_that_depend_on_the_class_are_informative():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = np.where((rng.random(400) < 0.1 + 0.6 * y)[:, None], np.nan, rng.standard_normal((400, 1)))
    X = np.hstack([X, rng.standard_normal((400, 1))])
    scores = {
        m: MixedNB(missing=m, learner="closed_form").fit(X[:200], y[:200]).score(X[200:], y[200:])
        for m in ("ignore", "informative")
    }
    assert scores["informative"] > 0.7 > scores["ignore"]


@pytest.mark.parametrize("clf", TAKES_TABLES, ids=repr)
def test_in_the_tools_of_scikit_learn(clf):
    frame, y = table()
    assert cross_val_score(clf, frame, y, cv=3).mean() > 0.5
    assert make_pipeline(FunctionTransformer(), clf).fit(frame, y).score(frame, y) > 0.5
    calibrated = CalibratedClassifierCV(clf, cv=2).fit(frame, y)
    np.testing.assert_allclose(calibrated.predict_proba(frame).sum(axis=1), 1.0)
    search = GridSearchCV(clf, {"missing": ["ignore", "informative"]}, cv=2).fit(frame, y)
    assert search.best_score_ > 0.5
    fitted = clf.fit(frame, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(frame), fitted.predict_proba(frame))
    assert again.columns_ == fitted.columns_


@pytest.mark.parametrize("strategy", ["cv", "ensemble"])
def test_the_family_takes_tables(strategy):
    frame, y = table()
    clf = RiskBayesClassifier(strategy, cv=2, random_state=0, time_limit=2).fit(frame, y)
    assert np.isfinite(clf.leaderboard_["cv_log_loss"]).all()
    assert clf.score(frame, y) > 0.6


def test_a_table_of_categories_alone():
    frame, y = table()
    X = frame[["colour", "smokes"]]
    for clf in (RiskBayesClassifier("single"), RiskBayesClassifier("cv", cv=2, random_state=0), MixedNB()):
        assert clf.fit(X, y).score(X, y) > 0.5


def test_categories_alone_are_categorical_naive_bayes():
    frame, y = table()
    X = frame[["colour", "smokes"]].fillna("red").astype(str)
    P = MixedNB(learner="closed_form").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(P, CategoricalNB(learner="closed_form").fit(X, y).predict_proba(X), atol=1e-12)


def test_numbers_alone_are_smooth_or_gaussian_naive_bayes():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 3)), rng.integers(2, size=90)
    for numeric, alone in (("smooth", SmoothNB()), ("gaussian", GaussianNB(prior=None))):
        P = MixedNB(numeric).fit(X, y).predict_proba(X)
        np.testing.assert_allclose(P, alone.fit(X, y).predict_proba(X), atol=1e-12, err_msg=numeric)


def test_disjoint_experts_are_naive_bayes_over_blocks():
    """Independent check: log p(x, y) is the sum of the blocks' log densities, each fitted alone."""
    frame, y = table()
    X = frame[["height", "beds", "colour"]].assign(height=frame["height"].fillna(0.0))
    experts = [
        ("numbers", QuadraticDiscriminantAnalysis(), ["height", "beds"]),
        ("words", CategoricalNB(), ["colour"]),
    ]
    clf = ProductOfExperts(experts, learner="closed_form").fit(X.fillna({"colour": "none"}), y)
    numbers = QuadraticDiscriminantAnalysis(learner="closed_form").fit(X[["height", "beds"]], y)
    words = CategoricalNB(learner="closed_form").fit(X[["colour"]].fillna("none"), y)
    prior = np.log(np.bincount(np.unique(y, return_inverse=True)[1]) / len(y))
    joint = (
        numbers.predict_joint_log_proba(X[["height", "beds"]])
        + words.predict_joint_log_proba(X[["colour"]].fillna("none"))
        - prior
    )
    np.testing.assert_allclose(clf.predict_joint_log_proba(X.fillna({"colour": "none"})), joint, atol=1e-9)
    drawn, _ = clf.sample(5, random_state=0)
    assert list(drawn.columns) == ["height", "beds", "colour"]


def test_experts_may_share_columns_and_be_named_in_every_way():
    frame, y = table()
    X = frame[["height", "beds"]].fillna(0.0)
    found = [
        ProductOfExperts([("a", GaussianNB(), columns), ("b", SmoothNB(), slice(None))], [0.5, 0.5])
        .fit(rows, y)
        .predict_proba(rows)
        for columns, rows in (
            (["beds"], X),
            ("beds", X),
            ([1], X),
            (1, X),
            ([False, True], X.to_numpy()),
            (slice(1, 2), X.to_numpy()),
        )
    ]
    for P in found[1:]:
        np.testing.assert_array_equal(P, found[0])
    with pytest.raises(NotImplementedError, match="not normalised"):
        ProductOfExperts([("a", GaussianNB(), [0]), ("b", SmoothNB(), [0, 1])]).fit(X, y).sample(3)


def test_a_complete_table_of_numbers_is_read_as_it_is():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.integers(2, size=60)
    X[:, 1] = 3.0  # constant: stays, as ever
    for clf in (RiskBayesClassifier("single"), MixedNB(), RiskBayesClassifier("single", missing="ignore")):
        P = clf.fit(X, y).predict_proba(X)
        assert [column.kind for column in clf.columns_] == ["number"] * 3
        frame = pd.DataFrame(X, columns=list("abc"))
        np.testing.assert_allclose(clf.fit(frame, y).predict_proba(frame), P, rtol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_another_category_has_the_probability_of_one_without_rows(seed):
    """By Laplace's formula; it is none of the known ones, whatever their order."""
    rng = np.random.default_rng(seed)
    alpha, K, m = rng.uniform(0.2, 3.0), int(rng.integers(2, 5)), 40
    y, words = np.arange(m) % 2, np.array([f"w{k}" for k in range(K)])[rng.integers(K, size=m)]
    K, frame = len(set(words)), pd.DataFrame({"word": words, "other": rng.permutation(words)})
    clf = MixedNB(alpha=alpha, unseen="other", learner="closed_form").fit(frame, y)
    found = clf.predict_joint_log_proba(pd.DataFrame({"word": ["never"], "other": ["never"]}))
    known = [len(set(frame[name])) for name in frame]
    expected = np.log(0.5) + sum(np.log(alpha / (m / 2 + alpha * k)) for k in known)
    np.testing.assert_allclose(found, [[expected, expected]])


@pytest.mark.parametrize(("distinct", "read"), [(24, True), (26, False)])
def test_identifiers_are_told_by_the_cells_that_are_present(distinct, read):
    """More than half of the present cells are distinct, however many others are missing."""
    words = [f"key {i % distinct}" for i in range(50)] + [None] * 150
    frame = pd.DataFrame({"key": words, "x": np.arange(200.0)})
    column = MixedNB(learner="closed_form").fit(frame, np.arange(200) % 2).columns_[0]
    assert column.kind == ("category" if read else "left out")


def test_unseen_categories():
    X = pd.DataFrame({"colour": ["red", "red", "blue", "blue"] * 5, "x": np.arange(20.0)})
    y, new = [0, 0, 1, 1] * 5, pd.DataFrame({"colour": ["green"], "x": [5.0]})
    missing = MixedNB().fit(X, y).predict_proba(new)
    np.testing.assert_array_equal(missing, MixedNB().fit(X, y).predict_proba(new.assign(colour=None)))
    assert np.isfinite(MixedNB(unseen="other").fit(X, y).predict_log_proba(new)).all()
    with pytest.raises(ValueError, match="Column 'colour' holds 'green', which was not in training"):
        MixedNB(unseen="error").fit(X, y).predict(new)


def test_categorical_features():
    frame, y = table()
    for given_as in (["beds"], [4], np.arange(8) == 4):
        clf = MixedNB(categorical_features=given_as).fit(frame, y)
        assert kinds(clf)["beds"] == "category"
        assert kinds(clf)["colour"] == "category"  # strings are categories all the same
    assert kinds(MixedNB(categorical_features=["id"]).fit(frame, y))["id"] == "category"


@pytest.mark.parametrize("clf", TAKES_TABLES, ids=repr)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colour": [[1, 2]] * 120}, "Column 'colour' holds"),
        ({"colour": [{"a": 1}] * 120}, "Column 'colour' holds"),
        ({"colour": [1, "a"] * 60}, "Column 'colour' holds 1 and 'a'"),
        ({"colour": [True, "a"] * 60}, "Column 'colour' holds True and 'a'"),
        ({"height": [np.inf] * 60 + [1.0] * 60}, "olumn 'height'"),
        (
            {"visit": [np.datetime64(2**31, "Y")] + [np.datetime64(40, "Y")] * 119},
            "Column 'visit' holds a date",
        ),
    ],
    ids=["lists", "dicts", "mixed types", "booleans and strings", "infinity", "a date beyond all years"],
)
def test_bad_columns_are_named(clf, change, said):
    frame, y = table()
    values = next(iter(change.values()))
    X = frame.astype(dict.fromkeys(change, object))
    for name in change:
        X[name] = pd.Series(values, dtype=object)
    before = dict(vars(clf))
    with pytest.raises((ValueError, TypeError), match=said):
        clf.fit(X, y)
    assert dict(vars(clf)) == before  # nothing half-fitted


@pytest.mark.parametrize("library", ["pandas", "polars", "objects"])
def test_durations_times_and_numbers_are_different_columns(library):
    """A number has no unit: neither is read as the other, and a column of missing cells is read as each."""
    rng = np.random.default_rng(0)
    held, y = rng.integers(1, 20, 60).tolist(), np.arange(60) % 2
    kinds = {
        "numbers": held,
        "durations": [datetime.timedelta(hours=h) for h in held],
        "times of day": [datetime.time(h) for h in held],
    }

    def made(values):
        if library == "objects":
            return np.array([[value, "xyz"[i % 3]] for i, value in enumerate(values)], dtype=object)
        frame = pl.DataFrame({"a": values, "b": list("xyz") * 20})
        return frame if library == "polars" else frame.to_pandas()

    for own, values in kinds.items():
        clf = MixedNB().fit(made(values), y)
        assert clf.predict(made(values)).shape == (60,)
        assert clf.predict(made([None] * 60)).shape == (60,)
        for other, others in kinds.items():
            if other != own:
                with pytest.raises(ValueError, match=f"held {own} in training and now {other}. Convert it"):
                    clf.predict(made(others))


@pytest.mark.parametrize("clf", TAKES_TABLES, ids=repr)
def test_columns_at_predict(clf):
    frame, y = table()
    clf.fit(frame, y)
    with pytest.raises(ValueError, match=r"feature names should match"):
        clf.predict(frame.rename(columns={"colour": "color"}))
    with pytest.raises(ValueError, match="same order"):
        clf.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="Column 'height' held numbers in training and now 'tall'"):
        clf.predict(frame.assign(height="tall"))
    with pytest.raises(ValueError, match="Column 'visit' held dates in training and now 'never'"):
        clf.predict(frame.assign(visit="never"))
    with pytest.raises(
        ValueError, match=r"Column 'colour' held values such as 'blue' in training and now 3\.0"
    ):
        clf.predict(frame.assign(colour=3.0))
    assert clf.predict(frame.assign(height=None, colour=None, visit=None)).shape == (120,)


def test_a_table_of_no_usable_column():
    X = pd.DataFrame({"id": [f"a{i}" for i in range(40)], "same": ["x"] * 40})
    with pytest.raises(
        ValueError, match=r"No column of X can be used: 'id' \(an identifier.*'same' \(constant\)"
    ):
        MixedNB().fit(X, np.arange(40) % 2)


def test_a_category_of_very_many_values():
    m = 250_000
    X = pd.DataFrame({"word": np.arange(m).astype(str), "x": np.arange(m) % 7})
    with pytest.raises(ValueError, match="Column 'word' has more than 100000 distinct values"):
        MixedNB(categorical_features=["word"]).fit(X, np.arange(m) % 2)
    assert kinds(MixedNB(learner="closed_form").fit(X, np.arange(m) % 2))["word"] == "left out"


@pytest.mark.parametrize(
    ("given_as", "said"),
    [
        (["weight"], "categorical_features: 'weight' is no column of X"),
        ([9], "indices between 0 and 7"),
        ([True], "one entry for each of the 8 columns"),
    ],
)
def test_bad_categorical_features(given_as, said):
    frame, y = table()
    with pytest.raises(ValueError, match=said):
        MixedNB(categorical_features=given_as).fit(frame, y)


def test_bad_experts():
    frame, y = table()
    with pytest.raises(ValueError, match="The columns of expert 'a': 'weight' is no column of X"):
        ProductOfExperts([("a", GaussianNB(), ["weight"])]).fit(frame, y)
    with pytest.raises(ValueError, match=r"expert GaussianNB reads numbers, and its columns .'colour'. hold"):
        ProductOfExperts([("a", GaussianNB(), ["colour"])]).fit(frame, y)
    with pytest.raises(ValueError, match="The columns of expert 'a' are none"):
        ProductOfExperts([("a", GaussianNB(), [])]).fit(frame, y)


def test_real_tables_are_taken_as_they_are(paper_folder):
    """Every table with strings and missing cells, read by pandas, polars and Arrow's own reader."""
    for path in sorted((paper_folder / "mixed").glob("*.csv.gz")):
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
        y = frame.pop("target").astype(str)
        others = (
            pl.read_csv(path, infer_schema_length=None).drop("target"),
            pa.csv.read_csv(path).drop(["target"]),
        )
        for clf in (MixedNB(learner=SHORT, missing="informative"), RiskBayesClassifier("single")):
            if len(y) > 8000 and not isinstance(clf, MixedNB):
                continue
            P = clf.fit(frame, y).predict_proba(frame)
            for X in others:
                np.testing.assert_array_equal(clf.fit(X, y).predict_proba(X), P, err_msg=path.name)


def test_counts_are_poisson():
    """Independent check: a column of counts adds SciPy's Poisson log probabilities at the fitted rates."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    frame = pd.DataFrame({"calls": rng.poisson(2.0 + 3 * y), "x": rng.standard_normal(300)})
    holed = frame.astype(float).mask(rng.random((300, 2)) < 0.1)
    for X in (frame, holed, frame.to_numpy(), holed.to_numpy()):
        named = ["calls"] if isinstance(X, pd.DataFrame) else [0]
        clf = MixedNB(count_features=named, learner="closed_form", alpha=0.0).fit(X, y)
        with_x = clf.predict_joint_log_proba(X) - clf.predict_joint_log_proba(without(X))
        counts = np.asarray(X, dtype=float)[:, 0]
        rates = np.array([np.nanmean(counts[y == k]) for k in (0, 1)])
        expected = np.where(np.isnan(counts)[:, None], 0.0, poisson.logpmf(counts[:, None], rates))
        np.testing.assert_allclose(with_x, expected, atol=1e-9)
    with pytest.raises(ValueError, match="Column 'calls' holds -1, and counts are never negative"):
        MixedNB(count_features=["calls"]).fit(frame.assign(calls=-1.0 * (frame["calls"] > 2)), y)


def without(X):
    """The same rows, with nothing in the first column."""
    if isinstance(X, pd.DataFrame):
        return X.assign(calls=np.nan)
    return np.column_stack([np.full(len(X), np.nan), X[:, 1]])


@pytest.mark.parametrize(
    "clf",
    [
        QuadraticDiscriminantAnalysis(prior="recommended", learner=SHORT),
        GaussianNB(learner=SHORT),
        SmoothNB(learner=SHORT),
        MixedNB(learner=SHORT),
        RiskBayesClassifier("single"),
    ],
    ids=repr,
)
def test_a_column_that_is_missing_everywhere_changes_no_posterior(clf):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    X = rng.standard_normal((90, 3)) + y[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    wide = np.insert(X, 1, np.nan, axis=1)
    P = clf.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(clf.fit(wide, y).predict_proba(wide), P, atol=1e-9)


def test_two_columns_of_one_name_are_refused():
    frame, y = table()
    twice = pd.concat([frame, frame[["colour"]]], axis=1)
    for clf in TAKES_TABLES:
        with pytest.raises(ValueError, match="X has 2 columns named 'colour'"):
            clf.fit(twice, y)


def test_tags_say_whether_the_joint_is_a_density():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), np.arange(60) % 2
    alone = [("a", GaussianNB(), [0]), ("b", SmoothNB(), [1])]
    shared = [("a", GaussianNB(), [0]), ("b", SmoothNB(), [0, 1])]
    for clf in (ProductOfExperts(alone), ProductOfExperts(shared), MixedNB(), MixedNB("binned")):
        clf.fit(X, y)
        assert clf.__sklearn_tags__().normalised_density == clf.model_.traits.normalised, clf
    assert ProductOfExperts(alone).fit(X, y).__sklearn_tags__().normalised_density


def test_parameters_of_dates_are_named_by_dates():
    """A knot of a date is a date between the first and the last, in words, not a number of days."""
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, size=300), unit="D")
    frame = pd.DataFrame({"when": days, "how much": rng.standard_normal(300)})
    clf = MixedNB().fit(frame, rng.integers(2, size=300))
    table = clf.parameters_frame()
    named = table.loc[table["column"] == "when", "parameter"].str.extract(r"log density at (.*)$")[0].dropna()
    assert len(named) > 0
    assert pd.to_datetime(named).between(days.min(), days.max()).all()
    numbers = table.loc[table["column"] == "how much", "parameter"].str.extract(r"log density at (.*)$")[0]
    assert numbers.dropna().astype(float).between(frame["how much"].min(), frame["how much"].max()).all()


def test_the_schema_shows_a_table_and_travels_with_the_model(tmp_path):
    table = pd.DataFrame(
        {
            "age": [30.0, 41.5, None, 25.0] * 10,
            "<b>job</b>": ["cook", "smith", "cook", None] * 10,
            "since": ["2024-01-31", "2023-05-01", "2024-02-29", "2022-12-24"] * 10,
            "always": ["x"] * 40,
        }
    )
    y = np.array([0, 1] * 20)
    for clf in (MixedNB(), RiskBayesClassifier("single")):
        schema = clf.fit(table, y).schema_
        assert (schema.n_rows, schema.classes) == (40, {"0": 20.0, "1": 20.0})
        age, job, since, always = schema.columns
        assert (age.kind, age.n_missing, age.low, age.high, age.example) == ("number", 10, 25.0, 41.5, "30.0")
        assert (job.kind, job.n_missing, job.n_values) == ("category", 10, 2)
        assert (since.kind, always.kind, always.reason) == ("date", "left out", "constant")
        shown = repr(schema)
        assert "2022-12-24" in shown
        assert "40 rows, 4 columns; classes: 0 (20), 1 (20)" in shown
        assert "<b>" not in schema._repr_html_()
        clf.save(tmp_path / "model.rb")
        assert repr(load(tmp_path / "model.rb").schema_) == shown


def test_a_terminal_does_not_obey_the_names_in_a_schema():
    table = pd.DataFrame({"a\x1b[31m\nb": np.arange(20.0) % 7})
    shown = repr(MixedNB().fit(table, ["p\x1b[1m", "q"] * 10).schema_)
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 3


@pytest.mark.parametrize("make", [MixedNB, RiskBayesClassifier])
def test_columns_are_what_the_user_says_they_are(make, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    table = pd.DataFrame(
        {
            "written": [str(round(v, 2)) for v in rng.standard_normal(60) + 2 * y],
            "code": rng.integers(3, size=60) + 2 * y,
            "name": [f"n{i}" for i in range(60)],
            "leak": y.astype(float),
            "day": np.where(y == 0, "2024-01-05", "2024-03-09"),
        }
    )
    told = {"written": "number", "code": "category", "leak": "drop", "name": "id", "day": "category"}
    clf = make(columns=told, learner="closed_form") if make is MixedNB else make(columns=told)
    clf.fit(table, y)
    kinds = {column.name: (column.kind, column.reason) for column in clf.columns_}
    assert kinds["written"] == ("number", "")
    assert kinds["code"] == kinds["day"] == ("category", "")
    assert kinds["leak"] == ("left out", "dropped")
    assert kinds["name"][0] == "left out"
    same = table.assign(written=table["written"].astype(float))
    np.testing.assert_array_equal(clf.predict_proba(table), clf.predict_proba(same))
    np.testing.assert_array_equal(clf.predict_proba(table), clf.predict_proba(table.assign(leak=7.0)))
    clf.save(tmp_path / "model.rb")
    np.testing.assert_array_equal(clf.predict_proba(table), load(tmp_path / "model.rb").predict_proba(table))
    in_batches = clone(clf).fit(rows(table, y, batch_rows=11))
    assert in_batches.columns_ == clf.columns_
    with pytest.raises(ValueError, match=r"holds 'n0', which is no number as `columns` says"):
        make(columns={"name": "number"}).fit(table, y)
    with pytest.raises(ValueError, match="X has no such column"):
        make(columns={"age": "number"}).fit(table, y)
    with pytest.raises(ValueError, match="must be one of number"):
        make(columns={"code": "money"}).fit(table, y)
    numbers = rng.standard_normal((60, 3))
    numbers[:, 1] = y
    without = make(columns={1: "drop"}).fit(numbers, y)
    assert [column.kind for column in without.columns_] == ["number", "left out", "number"]
