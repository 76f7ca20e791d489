"""Drift: planted changes are named, calibration is Platt's, and adjusted p-values are Holm's."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import logit, softmax
from sklearn.linear_model import LogisticRegression

import riskbayes
from riskbayes import GaussianNB, MixedNB, MultinomialNB, RiskBayesClassifier
from riskbayes.estimators.shift import calibration
from riskbayes.two_samples import holm


def people(m, seed, share=0.4):
    """A table with strings and missing cells, and the class that two columns tell of."""
    rng = np.random.default_rng(seed)
    y = rng.random(m) < share
    table = pd.DataFrame(
        {
            "age": rng.normal(40 + 12 * y, 10).round(),
            "pay": rng.exponential(30, size=m),
            "town": np.where(rng.random(m) < 0.2 + 0.5 * y, "Rome", rng.choice(["Oslo", "Bern"], m)),
            "<b>post</b>": rng.choice(["desk", "yard"], m),
        }
    )
    table.loc[rng.random(m) < 0.1, "pay"] = np.nan
    return table, np.where(y, "yes", "no")


@pytest.fixture(scope="module", params=[MixedNB, lambda: RiskBayesClassifier("single")], ids=["nb", "recipe"])
def clf(request):
    return request.param().fit(*people(1500, 0))


HELD = people(1200, 1)


def moved_pay(table):
    return table.assign(pay=table["pay"] + 15)


def other_words(table):
    return table.assign(town=table["town"].replace("Bern", "Lima"))


def lost_cells(table):
    return table.assign(age=table["age"].where(np.arange(len(table)) % 3 > 0))


PLANTS = {"pay": moved_pay, "town": other_words, "age": lost_cells}


def test_rows_of_the_same_kind_have_not_moved(clf):
    shift = clf.drift(people(1200, 2)[0], *HELD)
    assert (shift.verdict, shift.moved) == ("nothing", [])
    assert shift.priors == pytest.approx([0.6, 0.4], abs=0.05)
    assert shift.accuracy_now == pytest.approx(shift.accuracy, abs=0.02)
    assert shift.accuracy == pytest.approx(clf.score(*HELD))
    assert np.isnan(shift.accuracy_without)


@pytest.mark.parametrize("names", [["pay"], ["town"], ["age"], ["age", "town"]], ids="+".join)
def test_columns_that_moved_are_named(clf, names):
    rows, _ = people(1200, 2)
    for name in names:
        rows = PLANTS[name](rows)
    shift = clf.drift(rows, *HELD)
    assert shift.verdict == "columns"
    assert sorted(shift.moved) == names
    assert shift.priors == pytest.approx([0.6, 0.4], abs=0.08)
    without = HELD[0].assign(**dict.fromkeys(names, None))
    assert clf.score(without, HELD[1]) == pytest.approx(shift.accuracy_without, abs=0.02)
    frame = shift.to_frame()
    assert frame["column"].tolist()[: len(names)] == [each.column for each in shift.columns if each.moved]
    assert frame["moved"].sum() == len(names)


def test_a_column_that_flips_predictions_puts_their_accuracy_at_stake(clf):
    rows, labels = people(1200, 2)
    rows["age"] += 35
    shift = clf.drift(rows, *HELD)
    assert shift.moved == ["age"]
    assert shift.accuracy_now == pytest.approx(clf.score(rows, labels), abs=0.1)
    assert shift.accuracy_now < shift.accuracy_without - 0.1
    assert np.isnan(shift.columns[0].log_density) or shift.columns[0].log_density < 0


def test_class_frequencies_alone_explain_what_they_explain(clf):
    rows, labels = people(1200, 3, share=0.8)
    shift = clf.drift(rows, *HELD)
    assert (shift.verdict, shift.moved) == ("frequencies", [])
    assert shift.priors == pytest.approx([0.2, 0.8], abs=0.06)
    assert shift.accuracy_now == pytest.approx(clf.score(rows, labels), abs=0.03)
    told = clf.with_priors(shift.priors).score(rows, labels)
    assert shift.accuracy_with_priors == pytest.approx(told, abs=0.04)
    both = clf.drift(moved_pay(rows), *HELD)
    assert (both.verdict, both.moved) == ("both", ["pay"])


def test_what_was_found_is_shown_and_no_text_of_a_user_is_obeyed(clf):
    rows, _ = people(1200, 2)
    rows["<b>post</b>"] = "desk"
    shift = clf.drift(rows, *HELD)
    assert shift.moved == ["<b>post</b>"]
    assert "Column '<b>post</b>' moved; the class frequencies are the same" in repr(shift)
    html = shift._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;post" in html
    assert html.count("<tr>") == 5


def test_a_model_that_cannot_leave_columns_out_names_them_all_the_same():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3000)
    X = rng.poisson([2.0, 3.0, 4.0, 5.0], (3000, 4)) + np.outer(y, [2, 0, 1, 0])
    clf = MultinomialNB().fit(X[:1000], y[:1000])
    new = X[2000:] + np.array([0, 0, 0, 3])
    shift = clf.drift(new, X[1000:2000], y[1000:2000])
    assert (shift.verdict, shift.moved) == ("columns", [3])
    assert np.isnan(shift.accuracy_without)
    with pytest.raises(ValueError, match="drift takes dense rows in memory, and X_new is a csr_array"):
        clf.drift(csr_array(new), X, y)


def test_what_cannot_be_compared_is_refused(clf):
    X, y = HELD
    with pytest.raises(ValueError, match="drift takes dense rows in memory, and X is a"):
        clf.drift(X, riskbayes.rows([X]), y)
    with pytest.raises(ValueError, match="X has 1200 rows and y 1199 labels"):
        clf.drift(X, X, y[1:])
    with pytest.raises(ValueError, match="level must be at least 0 and below 1; got 1"):
        clf.drift(X, X, y, level=1)
    with pytest.raises(ValueError, match="do not exist in the initial classes"):
        clf.drift(X, X, np.where(y == "no", "never", y))


def test_no_change_is_certain_of_the_rows_themselves():
    X, y = HELD
    shift = GaussianNB().fit(X[["age"]], y).drift(X[["age"]], X[["age"]], y)
    assert shift.verdict == "nothing"
    assert shift.columns[0].distance == 0
    assert shift.priors == pytest.approx([0.6, 0.4], abs=0.05)


@given(st.integers(0, 2**32 - 1))
def test_calibration_is_a_logistic_regression_on_the_log_odds(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=200)
    odds = 3 * rng.standard_normal(200) + 2 * y
    logs = np.log(softmax(np.stack([np.zeros(200), odds], axis=1), axis=1))
    slope, intercepts = calibration(logs, y)
    platt = LogisticRegression(C=np.inf, tol=1e-10).fit(odds[:, None], y)
    assert slope == pytest.approx(platt.coef_[0, 0], rel=2e-2, abs=2e-3)
    assert intercepts[1] - intercepts[0] == pytest.approx(platt.intercept_[0], rel=2e-2, abs=2e-2)
    P = softmax(slope * logs + intercepts, axis=1)
    assert P[:, 1].mean() == pytest.approx(y.mean(), abs=1e-3)
    assert np.isfinite(logit(P)).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0, 1))
def test_adjusted_p_values_reject_what_holms_steps_reject(p, level):
    order, rejected = np.argsort(p, kind="stable"), set()
    for step, j in enumerate(order.tolist()):
        if p[j] * (len(p) - step) > level:
            break
        rejected.add(j)
    if level < 1:
        assert set(np.flatnonzero(holm(p) <= level).tolist()) == rejected
