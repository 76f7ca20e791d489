"""Rows far from those that were fitted: the answer is right, or refused by the name of the column."""

import pickle
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from riskbayes import (
    FlooredWarning,
    GaussianNB,
    GenerativeClassifier,
    LinearDiscriminantAnalysis,
    MixtureDiscriminantAnalysis,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
)
from riskbayes.exceptions import ColumnError
from riskbayes.models import GenerativeModel, QDAModel
from riskbayes.models.base import draw_rows
from riskbayes.models.hats import Knots
from riskbayes.models.smooth import SmoothModel, SmoothParameters
from riskbayes.preprocessing import KMeansBins
from riskbayes.statistics import Statistics

COLUMNS = ["length", "width", "height"]


def generic(**parameters):
    return GenerativeClassifier(QDAModel(), **parameters)


def full_mixture(**parameters):
    return MixtureDiscriminantAnalysis(2, covariance="full", **parameters)


NUMERIC = [
    *(GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, generic, SmoothNB),
    *(ProductOfExperts, MixtureDiscriminantAnalysis, full_mixture, RiskBayesClassifier),
]
every_numeric = pytest.mark.parametrize("kind", NUMERIC, ids=lambda kind: kind.__name__)


def rows(rng, r=3, m=60, dtype=np.float64):
    """Overlapping Gaussian classes."""
    y = np.arange(m) % r
    X = rng.standard_normal((m, len(COLUMNS))) + rng.standard_normal((r, len(COLUMNS)))[y]
    return X.astype(dtype), y


def fitted(kind, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlooredWarning)  # constant columns
        return kind().fit(X, y)


# --- the logarithm of the posterior ----------------------------------------------------------------


def cases():
    """Rows, labels, dtype: two to four classes, both precisions, with a constant column or without."""
    for seed, (r, constant, dtype) in enumerate(product((2, 3, 4), (False, True), (np.float64, np.float32))):
        X, y = rows(np.random.default_rng(seed), r, 36, dtype)
        if constant:
            X[:, 1] = 0.25
        yield X, y, dtype


FAR = (0.0, 1e3, 1e6, 1e9, 1e12, 1e15)


@every_numeric
def test_predict_log_proba_is_the_log_of_predict_proba(kind):
    """However far a row is: log joints of -1e20 swallow the logarithm of a sum of three."""
    for X, y, dtype in cases():
        clf = fitted(kind, X, y)
        for far in FAR:
            away = X.copy()
            away[::2, 1] += dtype(far)
            try:
                P = clf.predict_proba(away)
            except ColumnError:  # what overflows is refused, by every method
                with pytest.raises(ColumnError, match="Column 1"):
                    clf.predict_log_proba(away)
                continue
            log_P, atol = clf.predict_log_proba(away), 1e-12 if P.dtype == np.float64 else 1e-6
            np.testing.assert_allclose(np.exp(log_P), P, rtol=0, atol=atol)
            np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=atol)
            assert (clf.classes_[P.argmax(axis=1)] == clf.predict(away)).all()


@every_numeric
def test_a_row_far_away_has_a_log_posterior(kind):
    """A column that is constant in training, and elsewhere at predict."""
    X, y = rows(np.random.default_rng(0))
    X[:, 1] = 0.25
    clf = fitted(kind, X, y)
    far = X[:3].copy()
    far[:, 1] = 1e6
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(far)).sum(axis=1), 1.0)


@every_numeric
def test_a_row_has_the_same_answer_alone_as_among_others(kind):
    """To the rounding of its log joints, which the order of a product's sums may change."""
    for X, y, dtype in cases():
        clf, eps = fitted(kind, X, y), float(np.finfo(dtype).eps)
        for far in FAR[:3]:
            away = X[:12].copy()
            away[::2, 1] += dtype(far)
            together = clf.predict_proba(away)
            alone = np.concatenate([clf.predict_proba(row[None]) for row in away])
            if hasattr(clf, "predict_joint_log_proba"):
                size = np.abs(clf.predict_joint_log_proba(away)).max(axis=1, keepdims=True)
            else:
                size = 1.0
            assert (np.abs(together - alone) <= 8 * eps * (1 + size)).all()


# --- values that overflow ---------------------------------------------------------------------------

METHODS = [
    *("predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples"),
    *("predict_joint_log_proba", "transform", "decide", "score"),
]
FILLS = [(np.float32, 9.96921e36), (np.float32, -3e38), (np.float64, 1e200), (np.float64, -1.7e308)]
fills = pytest.mark.parametrize(("dtype", "value"), FILLS, ids=str)


def answers(clf, X, y):
    """Every answer of a classifier to these rows, by method; an error in its place where it refuses."""
    for method in METHODS:
        if hasattr(clf, method):
            extra = {"decide": (1.0 - np.eye(len(clf.classes_)),), "score": (y,)}.get(method, ())
            try:
                yield method, getattr(clf, method)(X, *extra)
            except ValueError as error:
                yield method, error


def frame(X):
    return pd.DataFrame(X, columns=COLUMNS)


@every_numeric
@pytest.mark.parametrize("r", [2, 3])
@fills
def test_a_value_that_overflows_at_predict_is_refused_by_name(kind, r, dtype, value):
    """Or answered: never NaN, never the first class in silence, and no warning of NumPy's."""
    X, y = rows(np.random.default_rng(1), r, dtype=dtype)
    clf = fitted(kind, frame(X), y)
    expected = dict(answers(clf, frame(X), y))
    X[5, 1] = value
    for method, answer in answers(clf, frame(X), y):
        if isinstance(answer, ValueError):
            message = str(answer)
            assert message.startswith("Column 'width' of X holds "), message
            assert f"{dtype(value):g} in row 5" in message
            assert "missing value" in message
            assert ("float64" in message) == (dtype is np.float32)
            continue
        assert not np.isnan(np.asarray(answer, dtype=float)).any(), method
        if method != "score":
            others = np.arange(len(y)) != 5
            np.testing.assert_allclose(answer[others], expected[method][others], rtol=1e-5)
        if method == "predict_proba":
            np.testing.assert_allclose(answer.sum(axis=1), 1.0, rtol=1e-6)


@every_numeric
def test_the_column_that_overflows_is_named_not_the_largest(kind):
    """Values of 1e15 in a column of such values are as in training; 1e14 in one of about 1e-6 overflows."""
    X, y = rows(np.random.default_rng(2), dtype=np.float32)
    X *= np.float32([1e15, 1.0, 1e-6])
    clf = fitted(kind, frame(X), y)
    X[3] = 1e15, 1e9, 1e14
    refused = [str(a) for _, a in answers(clf, frame(X), y) if isinstance(a, ValueError)]
    assert all("'height' of X holds 1e+14" in message for message in refused), refused
    assert refused or kind in (SmoothNB, RiskBayesClassifier, GaussianNB)


@pytest.mark.parametrize("reg_param", [0.0, 0.1])
@given(
    seed=st.integers(0, 2**32 - 1),
    powers=st.lists(st.integers(-150, 154), min_size=4, max_size=4),
    tied=st.booleans(),
)
def test_columns_at_the_ends_of_the_numbers_are_answered_or_refused(reg_param, seed, powers, tied):
    """Also where the rows of a class do not determine its covariance, which all classes then complete."""
    rng = np.random.default_rng(seed)
    y = np.arange(24) % 3
    X = rng.standard_normal((24, 4)) * 10.0 ** np.array(powers)
    if tied:
        X[y == 0, 1] = X[0, 1]
        X[:, 3] = X[:, 2] * 10.0 ** (powers[3] - powers[2])
    clf = QuadraticDiscriminantAnalysis(reg_param=reg_param, learner="closed_form")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlooredWarning)
        try:
            P = clf.fit(X, y).predict_proba(X)
        except ColumnError:
            return
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-9)


@every_numeric
@fills
def test_a_value_that_overflows_is_refused_in_training(kind, dtype, value):
    """In `fit`, among validation rows, in `partial_fit`, `forget`, `calibrate`; nothing has changed then."""
    X, y = rows(np.random.default_rng(3), dtype=dtype)
    bad = X.copy()
    bad[5, 1] = value
    clf = fitted(kind, frame(X), y)
    before = clf.predict_proba(frame(X))
    calls = {"fit": lambda: clf.fit(frame(bad), y)}
    if kind is not RiskBayesClassifier:
        calls["X_val"] = lambda: clf.fit(frame(X), y, X_val=frame(bad), y_val=y)
    for method in ("partial_fit", "forget", "calibrate"):
        if hasattr(clf, method):
            calls[method] = lambda method=method: getattr(clf, method)(frame(bad[:30]), y[:30])
    for name, call in calls.items():
        if kind is SmoothNB and not (name == "X_val" and abs(value) > 1e300):
            call()  # it takes any value whose range is finite
            before = clf.predict_proba(frame(X))
            continue
        with pytest.raises(ValueError, match="Column 'width'") as caught:
            call()
        assert "missing" in str(caught.value)
        np.testing.assert_array_equal(clf.predict_proba(frame(X)), before)


@pytest.mark.parametrize("kind", [MixtureDiscriminantAnalysis, full_mixture])
@pytest.mark.parametrize("power", [-300, -160, -100, 100, 160, 220, 307])
def test_mixtures_answer_or_refuse_columns_of_any_size(kind, power):
    """Squares of such columns are no numbers, and times a weight of zero not even infinite."""
    X, y = rows(np.random.default_rng(7))
    w, size = np.where(np.arange(len(y)) % 5 > 0, 1.0, 0.0), np.abs(X).max()
    posteriors = []
    for scaled in ([0], [0, 1, 2]):
        Z = X / size
        Z[:, scaled] *= 10.0**power
        clf = kind(learner="closed_form")
        if abs(power) > 150:
            with pytest.raises(ColumnError, match="overflow" if power > 0 else "underflow"):
                clf.fit(Z, y, sample_weight=w)
        else:
            posteriors.append(clf.fit(Z, y, sample_weight=w).predict_proba(Z))
    for P in posteriors:
        np.testing.assert_allclose(P, kind(learner="closed_form").fit(X, y, w).predict_proba(X), atol=1e-6)


def test_samples_of_densities_that_rise_beyond_the_exponential():
    """Of a class whose counts at a knot are none, beside one of a mass that is not."""
    knots = Knots(np.array([3]), np.array([0.0, 1.0, 2.0]), np.array([False]), np.array([[0.1, 0.1]]))
    for height in ([-1000.0, 0.0, -1000.0], [0.0, -1000.0, -1000.0], [-2000.0, -1000.0, 0.0]):
        log_density = np.array([height])
        theta = SmoothParameters(np.zeros(1), log_density, knots, np.zeros(1, dtype=int))
        drawn, _ = draw_rows(SmoothModel(), theta, 1000, np.random.default_rng(0))
        # The density falls by e^1000 a unit on either side of its top, or with the tail.
        assert np.abs(drawn - np.argmax(height)).max() < 2.0


def test_an_overflow_in_a_chunk_of_its_own_has_the_row_of_the_table():
    X, y = rows(np.random.default_rng(4), m=30_000)
    clf = QuadraticDiscriminantAnalysis(learner="closed_form").fit(X, y)
    X[29_990, 0] = 1e200
    with pytest.raises(ValueError, match=r"Column 0 .* in row 29990 "):
        clf.predict(X)


def test_members_of_the_family_that_overflow_on_held_rows_are_not_chosen():
    """A value that the fold without it has no finite score for: smooth members do."""
    X, y = rows(np.random.default_rng(5), dtype=np.float32)
    X[5, 1] = 1e19  # its square does not overflow, its distance in a fold that lacks it does
    clf = RiskBayesClassifier("cv", cv=2, random_state=0).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()


def test_an_error_of_a_column_survives_a_pickle_and_a_second_naming():
    error = ColumnError(1, "is odd.").named(np.array(COLUMNS, dtype=object))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error.named(None)) == "Column 'width' is odd."
    assert str(ColumnError(1, "is odd.")) == "Column 1 is odd."


class Bare(GenerativeModel):
    """The three formulas and nothing else."""

    def statistics(self, Z, W):
        return Statistics({"s0": W.sum(axis=0), "s1": W.T @ Z})

    def parameters(self, S):
        return S["s1"] / S["s0"][:, None]

    def log_joint(self, Z, theta):
        return -0.5 * ((Z[:, None, :] - theta) ** 2).sum(axis=2)


class Impossible(Bare):
    """Rows below zero cannot be, whatever their class."""

    def log_joint(self, Z, theta):
        return np.where(Z[:, :1] < 0, -np.inf, super().log_joint(Z, theta))


def test_a_model_of_the_users_own_is_refused_by_name_too():
    X, y = rows(np.random.default_rng(6))
    X = np.abs(X)
    clf = GenerativeClassifier(Impossible(), learner="closed_form").fit(frame(X), y)
    X[2, 0] = -1.0
    with pytest.raises(ValueError, match=r"Column 'length' of X holds -1 in row 2"):
        clf.predict_proba(frame(X))
    X[2, 0] = 1e200
    with pytest.raises(ValueError, match=r"Column 'length' of X holds 1e\+200 in row 2"):
        clf.predict_proba(frame(X))


@pytest.mark.parametrize("scale", [1.0, -3.0, 1e-300, 1e300])
def test_adjacent_numbers_have_bins_of_their_own(scale):
    """The middle of two adjacent numbers is one of them."""
    low = np.float64(scale)
    X = np.array([low, np.nextafter(low, np.inf), np.nextafter(np.nextafter(low, np.inf), np.inf)])[:, None]
    assert KMeansBins().fit_transform(X)[:, 0].tolist() == [0, 1, 2]
