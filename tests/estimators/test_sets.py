"""Prediction sets: coverage is a law of ranks, and sets are those of the formula of thresholds."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split

import riskbayes
from riskbayes import GaussianNB, MixedNB, QuadraticDiscriminantAnalysis, RiskBayesClassifier

X, y = load_iris(return_X_y=True)
X_TRAIN, X_CAL, Y_TRAIN, Y_CAL = train_test_split(X, y, test_size=0.6, random_state=0, stratify=y)
X_CAL, X_NEW, Y_CAL, Y_NEW = train_test_split(X_CAL, Y_CAL, test_size=0.4, random_state=0, stratify=Y_CAL)
NAMES = np.array(["setosa", "versicolor", "virginica"])


def fitted(kind=GaussianNB, **parameters):
    return kind(**parameters).fit(X_TRAIN, Y_TRAIN)


def table(rows):
    """The rows as a table of strings and numbers, with missing cells."""
    words = np.where(rows[:, 0] > 5.8, "long", "short").astype(object)
    words[::7] = None
    return pd.DataFrame(
        {"length": words, "width": rows[:, 1], "petal": np.where(rows[:, 2] > 6, np.nan, rows[:, 2])}
    )


def thresholded(scores, own, alpha):
    """The sets of the literature: all classes whose score is up to that quantile of the true ones."""
    rank = int(np.ceil((len(own) + 1) * (1 - alpha) - 1e-9))
    if rank > len(own):
        return np.ones(scores.shape, dtype=bool)
    return scores <= np.sort(own)[rank - 1]


@given(st.floats(0.02, 0.9))
def test_posterior_sets_are_those_of_the_threshold_on_one_minus_the_probability(alpha):
    train, cal, new = (rows[:, :2] for rows in (X_TRAIN, X_CAL, X_NEW))  # which leave room for doubt
    clf = GaussianNB().fit(train, Y_TRAIN)
    own = 1 - clf.predict_proba(cal)[np.arange(len(Y_CAL)), Y_CAL]
    expected = thresholded(1 - clf.predict_proba(new), own, alpha)
    found = clf.conformalize(cal, Y_CAL).predict_set(new, alpha)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, expected)


@given(st.floats(0.06, 0.9))
def test_density_sets_are_those_of_a_threshold_in_each_class(alpha):
    clf = fitted(QuadraticDiscriminantAnalysis)
    joint, new = -clf.predict_joint_log_proba(X_CAL), -clf.predict_joint_log_proba(X_NEW)
    expected = [thresholded(new[:, k], joint[np.flatnonzero(np.equal(Y_CAL, k)), k], alpha) for k in range(3)]
    found = clf.conformalize(X_CAL, Y_CAL).predict_set(X_NEW, alpha, score="density")
    np.testing.assert_array_equal(found, np.stack(expected, axis=1))


@pytest.mark.parametrize("score", ["posterior", "density"])
@pytest.mark.parametrize("alpha", [0.1, 0.27, 0.5])
def test_each_row_left_out_in_turn_is_covered_as_often_as_promised(score, alpha):
    """The guarantee is combinatorial: of n + 1 rows at least (1 - alpha)(n + 1) are in their own sets."""
    clf, number = fitted(), 40
    rows, labels = X_CAL[:number], Y_CAL[:number]
    covered = []
    for i in range(number):
        others = np.arange(number) != i
        clf.conformalize(rows[others], labels[others])
        covered.append(clf.predict_set(rows[[i]], alpha, score=score)[0, labels[i]])
    covered = np.array(covered)
    groups = [labels == k for k in range(3)] if score == "density" else [labels >= 0]
    for own in groups:
        n = own.sum()
        assert covered[own].sum() >= (1 - alpha) * n - 1e-9
        assert covered[own].sum() <= (1 - alpha) * n + 1 + (n - len(np.unique(rows[own], axis=0)))


def test_sets_grow_as_alpha_falls():
    clf = fitted().conformalize(X_CAL, Y_CAL)
    for score in ("posterior", "density"):
        found = [clf.predict_set(X_NEW, alpha, score=score) for alpha in (0.1, 0.2, 0.4, 0.8)]
        for larger, smaller in pairwise(found):
            assert (larger | ~smaller).all()
        assert found[0].sum() > found[-1].sum()


def test_a_row_that_no_class_would_have_is_in_no_class_by_density_and_in_one_by_posterior():
    clf = fitted(QuadraticDiscriminantAnalysis).conformalize(X_CAL, Y_CAL)
    far = [5.8, 3.1, 3.8, 9.2]
    assert not clf.predict_set([far], score="density").any()
    assert clf.predict_set([far]).any()


@pytest.mark.parametrize("kind", [MixedNB, lambda: RiskBayesClassifier("single")])
@pytest.mark.parametrize("score", ["posterior", "density"])
def test_tables_of_strings_with_missing_cells(kind, score, tmp_path):
    clf = kind().fit(table(X_TRAIN), NAMES[Y_TRAIN]).conformalize(table(X_CAL), NAMES[Y_CAL])
    found = clf.predict_set(table(X_NEW), score=score)
    assert found.shape == (len(X_NEW), 3)
    assert found[np.arange(len(Y_NEW)), Y_NEW].mean() > 0.7
    again = riskbayes.load(clf.save(tmp_path / "model.rb"))
    np.testing.assert_array_equal(again.predict_set(table(X_NEW), score=score), found)
    one = [clf.predict_set(table(X_NEW).iloc[[i]], score=score)[0] for i in range(5)]
    np.testing.assert_array_equal(one, found[:5])
    batches = [table(X_NEW)[:10], table(X_NEW)[10:]]
    streamed = clf.predict_set(riskbayes.rows(batches), score=score)
    np.testing.assert_array_equal(np.concatenate(list(streamed)), found)


def test_what_changes_the_model_discards_the_calibration_rows():
    clf = fitted(learner="closed_form").conformalize(X_CAL, Y_CAL)
    clf.predict_set(X_NEW)
    changes = [
        lambda clf: clf.with_priors([0.2, 0.3, 0.5]),
        lambda clf: clf.partial_fit(X_NEW, Y_NEW),
        lambda clf: clf.conformalize(X_CAL, Y_CAL).forget(X_NEW, Y_NEW),
        lambda clf: clf.conformalize(X_CAL, Y_CAL).fit(X_TRAIN, Y_TRAIN),
    ]
    for change in changes:
        with pytest.raises(NotFittedError, match=r"knows no calibration rows: call conformalize"):
            change(clf).predict_set(X_NEW)
    clf = RiskBayesClassifier("single").fit(X_TRAIN, Y_TRAIN).conformalize(X_CAL, Y_CAL)
    with pytest.raises(NotFittedError, match="knows no calibration rows"):
        clf.with_priors([0.2, 0.3, 0.5]).predict_set(X_NEW)
    assert clf.predict_set(X_NEW).any()
    with pytest.raises(NotFittedError, match="knows no calibration rows"):
        clf.fit(X_TRAIN, Y_TRAIN).predict_set(X_NEW)


def test_what_cannot_be_is_refused():
    clf = fitted()
    with pytest.raises(ValueError, match="do not exist in the initial classes"):
        clf.conformalize(X_CAL, Y_CAL + 1)
    with pytest.raises(ValueError, match=r"X has 54 rows and y 53 labels"):
        clf.conformalize(X_CAL, Y_CAL[1:])
    with pytest.raises(ValueError, match="conformalize takes rows in memory"):
        clf.conformalize(riskbayes.rows([X_CAL]), Y_CAL)
    clf.conformalize(X_CAL, Y_CAL)
    with pytest.raises(ValueError, match=r"alpha must be a share between 0 and 1; got 2"):
        clf.predict_set(X_NEW, alpha=2)
    with pytest.raises(ValueError, match="score must be one of 'posterior', 'density'; got 'aps'"):
        clf.predict_set(X_NEW, score="aps")
    neighbours = RiskBayesClassifier("neighbours").fit(X_TRAIN, Y_TRAIN).conformalize(X_CAL, Y_CAL)
    assert neighbours.predict_set(X_NEW).any()
    with pytest.raises(NotImplementedError, match="RiskBayesClassifier has no densities"):
        neighbours.predict_set(X_NEW, score="density")
    with pytest.warns(UserWarning, match=r"too few calibration rows of class 0, 1, 2 .* at least 99"):
        assert clf.predict_set(X_NEW, alpha=0.01, score="density").all()
    with pytest.warns(UserWarning, match=r"too few calibration rows to leave a class out .* at least 99"):
        assert clf.predict_set(X_NEW, alpha=0.01).all()
