"""Bad input: the error names the parameter, column or class, says what to do, and comes before any work."""

import re
import warnings
from contextlib import ExitStack
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.covariance import EmpiricalCovariance
from sklearn.exceptions import NotFittedError

from riskbayes import (
    CategoricalNB,
    FlooredWarning,
    GaussianNB,
    GenerativeClassifier,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from riskbayes.engines import MemoryEngine
from riskbayes.learners import RC, Learner
from riskbayes.models import CategoricalModel, GenerativeModel, QDAModel
from riskbayes.preprocessing import encoder
from riskbayes.statistics import Statistics

N = 4
COLUMNS = ["length", "width", "height", "weight"]


def generic(**parameters):
    return GenerativeClassifier(QDAModel(), **parameters)


GAUSSIAN = [GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis]
NUMERIC = [*GAUSSIAN, generic]
EVERY = [CategoricalNB, *NUMERIC]
every_estimator = pytest.mark.parametrize("kind", EVERY)


def takes(kind, value):
    """True if the estimator reads this value as a missing cell."""
    return bool(np.isnan(value)) and kind()._takes_missing


def rows(labels=(0, 1, 2), m=90, seed=0):
    """Overlapping Gaussian classes, on a grid so that adding 1e8 loses no digit."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % len(labels)
    X = rng.standard_normal((m, N)) @ rng.uniform(-1, 1, (N, N)) + rng.uniform(-1, 1, (len(labels), N))[y]
    return np.round(X * 2**20) / 2**20, np.array(labels)[y]


def data_for(kind, labels=(0, 1, 2)):
    X, y = rows(labels)
    return (np.digitize(X, [-1, 0, 1]).astype(float), y) if kind is CategoricalNB else (X, y)


def refused(call, *needles, error=ValueError):
    """`call` raises before any row is read, and the message has all needles (regular expressions)."""
    with ExitStack() as stack:
        for name in ("statistics", "scan"):
            stack.enter_context(
                patch.object(MemoryEngine, name, side_effect=AssertionError("work was done before the error"))
            )
        caught = stack.enter_context(pytest.raises(error))
        call()
    message = str(caught.value)
    for needle in needles:
        assert re.search(needle, message), f"{needle!r} is not in {message!r}"


def fit_refused(clf, X, y, *needles, error=ValueError, **fit):
    refused(lambda: clf.fit(X, y, **fit), *needles, error=error)
    assert not hasattr(clf, "statistics_")
    assert not hasattr(clf, "data_statistics_")
    assert not hasattr(clf, "parameters_")
    assert not hasattr(clf, "history_")


# --- the table --------------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")], ids=str
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
class TestNotFinite:
    def test_fit(self, kind, value, word, dtype):
        X, y = data_for(kind)
        X = X.astype(dtype)
        X[7, 2] = value
        if takes(kind, value):
            assert np.isfinite(kind().fit(X, y).predict_proba(X)).all()
        else:
            fit_refused(kind(), X, y, word, "column 2", "drop|[Ff]ill|[Rr]eplace")

    def test_fit_on_a_frame(self, kind, value, word, dtype):
        X, y = data_for(kind)
        X = X.astype(dtype)
        X[7, 2] = value
        table = pd.DataFrame(X, columns=COLUMNS)
        if takes(kind, value):
            assert np.isfinite(kind().fit(table, y).predict_proba(table)).all()
        else:
            fit_refused(kind(), table, y, word, "column 'height'", "drop|[Ff]ill|[Rr]eplace")

    def test_predict(self, kind, value, word, dtype):
        X, y = data_for(kind)
        clf = kind(learner="closed_form").fit(X, y)
        X = X.astype(dtype)
        X[0, 1] = value
        if takes(kind, value):
            assert np.isfinite(clf.predict_proba(X)).all()
        else:
            refused(lambda: clf.predict_proba(X), word, "column 1")


def test_kinds_mixed_in_a_column():
    X = np.array([["a", "x"], ["b", 3], ["a", "y"]], dtype=object)
    fit_refused(CategoricalNB(), X, [0, 1, 1], "Column 'x1'", "one kind")


def test_integer_codes_too_large_to_count_are_refused():
    """Zip codes and hashes: a table of K = max + 1 cells would not fit; strings are coded by value."""
    X = np.array([[0, 2**31], [1, 5], [1, 5], [0, 2**31]])
    fit_refused(CategoricalNB(), X, [0, 1, 1, 0], "column 1", "2147483648", "string")


@every_estimator
@pytest.mark.parametrize("extra", [1, -1])
def test_another_number_of_features(kind, extra):
    X, y = data_for(kind)
    clf = kind(learner="closed_form").fit(X, y)
    wrong = np.c_[X, X[:, :1]] if extra > 0 else X[:, :-1]
    for method in (
        "predict",
        "predict_proba",
        "predict_log_proba",
        "predict_joint_log_proba",
        "score_samples",
    ):
        refused(
            lambda method=method: getattr(clf, method)(wrong), f"X has {N + extra} features.*expecting {N}"
        )
    refused(lambda: clf.decision_function(wrong), f"X has {N + extra} features.*expecting {N}")
    refused(lambda: clf.partial_fit(wrong, y), f"X has {N + extra} features.*expecting {N}")


def test_another_number_of_features_in_transform():
    X, y = rows()
    clf = LinearDiscriminantAnalysis().fit(X, y)
    refused(lambda: clf.transform(X[:, :-1]), f"X has {N - 1} features.*expecting {N}")


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)])
@every_estimator
def test_other_column_names(kind, frame):
    X, y = data_for(kind)
    clf = kind(learner="closed_form").fit(frame(X, columns=COLUMNS), y)
    refused(lambda: clf.predict(frame(X, columns=[*COLUMNS[:3], "depth"])), "feature names", "depth")


@every_estimator
def test_rows_and_labels_of_different_length(kind):
    X, y = data_for(kind)
    fit_refused(kind(), X, y[:-1], "90", "89")


# --- weights and classes ----------------------------------------------------------------------------

LABELS = pytest.mark.parametrize("labels", [(0, 1, 2), ("ant", "bee", "cat")], ids=["int", "str"])


@every_estimator
@LABELS
class TestWeights:
    def test_class_without_sample_weight(self, kind, labels):
        X, y = data_for(kind, labels)
        w = np.where(y == labels[1], 0.0, 1.0)
        needles = [f"class {labels[1]!r}", "sample_weight", "[Dd]rop|positive"]
        fit_refused(kind(), X, y, *needles, sample_weight=w)

    def test_class_without_class_weight(self, kind, labels):
        X, y = data_for(kind, labels)
        weights = {label: float(label != labels[1]) for label in labels}
        fit_refused(
            kind(class_weight=weights), X, y, f"class {labels[1]!r}", "class_weight", "[Dd]rop|positive"
        )

    def test_no_weight_at_all(self, kind, labels):
        X, y = data_for(kind, labels)
        fit_refused(kind(), X, y, "(?i)sample.weight", "zero", sample_weight=np.zeros(len(y)))

    def test_negative_weight(self, kind, labels):
        X, y = data_for(kind, labels)
        w = np.ones(len(y))
        w[3] = -0.5
        fit_refused(kind(), X, y, "[Nn]egative", "sample_weight", sample_weight=w)

    def test_negative_class_weight(self, kind, labels):
        X, y = data_for(kind, labels)
        weights = {label: -1.0 if label == labels[1] else 1.0 for label in labels}
        fit_refused(kind(class_weight=weights), X, y, "class_weight", f"{labels[1]!r}")
        clf = kind(class_weight=weights)
        refused(lambda: clf.partial_fit(X, y, classes=labels), "class_weight", f"{labels[1]!r}")

    def test_weight_that_is_not_a_number(self, kind, labels):
        X, y = data_for(kind, labels)
        fit_refused(kind(), X, y, "sample_weight", "NaN", sample_weight=np.full(len(y), np.nan))

    def test_single_class(self, kind, labels):
        X, y = data_for(kind, labels)
        fit_refused(kind(), X, np.full(len(y), labels[1]), "class", f"{labels[1]!r}", "two")

    def test_single_class_in_partial_fit(self, kind, labels):
        X, y = data_for(kind, labels)
        clf = kind()
        refused(lambda: clf.partial_fit(X, np.full(len(y), labels[1]), classes=[labels[1]]), "class", "two")


@LABELS
def test_messages_write_labels_as_the_user_does(labels):
    X, y = rows(labels)
    calls = [
        lambda: GaussianNB().fit(X, np.full(len(y), labels[1])),
        lambda: GaussianNB().fit(X, y, sample_weight=np.where(y == labels[1], 0.0, 1.0)),
        lambda: GaussianNB().partial_fit(X, y, classes=labels[:2]),
    ]
    for call in calls:
        with pytest.raises(ValueError) as caught:
            call()
        assert "np." not in str(caught.value)


@every_estimator
def test_unknown_class_weight(kind):
    X, y = data_for(kind)
    fit_refused(kind(class_weight="even"), X, y, "class_weight", "balanced")
    fit_refused(kind(class_weight={0: 1.0, 7: 2.0}), X, y, "class_weight")


@every_estimator
def test_continuous_labels(kind):
    X, y = data_for(kind)
    fit_refused(kind(), X, y + 0.5 * np.linspace(0, 1, len(y)), "continuous")


PRIORS = [("priors", kind) for kind in GAUSSIAN] + [("class_prior", CategoricalNB)]


@pytest.mark.parametrize(("name", "kind"), PRIORS)
@pytest.mark.parametrize(
    ("value", "needle"),
    [
        ([0.0, 0.0, 0.0], "zero"),
        ([0.5, 0.5], "3 classes"),
        ([0.2, 0.2, 0.2, 0.4], "3 classes"),
        ([[0.2, 0.2, 0.6]], "3 classes"),
        ([-0.2, 0.6, 0.6], "non-negative"),
        ([np.nan, 0.5, 0.5], "non-negative|finite"),
        (["a", "b", "c"], "number|probabilit"),
    ],
    ids=["zero", "short", "long", "shape", "negative", "nan", "words"],
)
def test_class_priors(name, kind, value, needle):
    X, y = data_for(kind)
    fit_refused(kind(**{name: value}), X, y, rf"\b{name}\b", needle)
    refused(lambda: kind(**{name: value}).partial_fit(X, y, classes=[0, 1, 2]), rf"\b{name}\b", needle)


@pytest.mark.parametrize(("name", "kind"), PRIORS)
def test_class_priors_that_do_not_sum_to_one(name, kind):
    """GaussianNB refuses them, as its twin does; the others divide them by their sum, and say so."""
    X, y = data_for(kind)
    wrong, right = (kind(**{name: value}, learner="closed_form") for value in ([2, 1, 1], [0.5, 0.25, 0.25]))
    if kind is GaussianNB:
        fit_refused(wrong, X, y, rf"\b{name}\b", "sum.*1")
        return
    with pytest.warns(UserWarning, match=f"do not sum to 1.*{name}.*4"):
        wrong.fit(X, y)
    np.testing.assert_allclose(wrong.predict_proba(X), right.fit(X, y).predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
@pytest.mark.parametrize("how", [{"shrinkage": "auto"}, {"covariance_estimator": EmpiricalCovariance()}])
def test_class_priors_are_checked_before_covariances_are_estimated(kind, how):
    X, y = rows()
    clf = kind(priors=[0.5, 0.5], learner="closed_form", **how)
    with patch.object(EmpiricalCovariance, "fit", side_effect=AssertionError("work was done")):
        fit_refused(clf, X, y, "priors", "3 classes")


# --- learners ---------------------------------------------------------------------------------------


@every_estimator
class TestLearner:
    def test_unknown_name(self, kind):
        X, y = data_for(kind)
        fit_refused(kind(learner="rcc"), X, y, "learner", "'rcc'", "'closed_form'", "'rc'")

    @pytest.mark.parametrize("learner", [3, None, RC], ids=str)
    def test_wrong_kind(self, kind, learner):
        X, y = data_for(kind)
        fit_refused(kind(learner=learner), X, y, "learner", "Learner|RC", error=(ValueError, TypeError))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("lr", value) for value in (0, 0.0, -0.1, np.nan, "fast", None)),
            *(("max_iter", value) for value in (0, -1, 1.5)),
            ("tol", -1e-3),
        ],
    )
    def test_parameters(self, kind, name, value):
        X, y = data_for(kind)
        fit_refused(kind(learner=RC(**{name: value})), X, y, f"'{name}' parameter of RC", f"Got {value!r}")

    def test_parameter_of_a_name(self, kind):
        """DESIGN.md, section 7: with a name, the error says to pass RC()."""
        refused(lambda: kind(learner="rc").set_params(learner__lr=0.2), "learner", r"RC\(")


class Needy(Learner):
    """A learner that wants to draw rows, and something that no model has."""

    name = "needy"
    needs = ("sample_rows", "levitate")
    _parameter_constraints = {}  # noqa: RUF012


class Drawing(Learner):
    name = "drawing"
    needs = ("sample_rows",)
    _parameter_constraints = {}  # noqa: RUF012


class Bare(GenerativeModel):
    """The three formulas and nothing else."""

    def statistics(self, Z, W):
        return Statistics({"s0": W.sum(axis=0), "s1": W.T @ Z})

    def parameters(self, S):
        return S["s1"] / S["s0"][:, None]

    def log_joint(self, Z, theta):
        return -0.5 * ((Z[:, None, :] - theta) ** 2).sum(axis=2)


class TestNeeds:
    def test_model_that_lacks_a_method(self):
        X, y = rows()
        clf = GenerativeClassifier(Bare(), learner=Drawing())
        needles = ["Drawing", "sample", "Bare", "'closed_form'", "'rc'"]
        fit_refused(clf, X, y, *needles, error=TypeError)

    def test_only_what_is_missing_is_named(self):
        X, y = rows()
        clf = GenerativeClassifier(QDAModel(), learner="needy")
        fit_refused(clf, X, y, "needs levitate of the model", "QDAModel", error=TypeError)

    def test_a_model_that_has_it_is_taken(self):
        X, y = rows()
        assert GenerativeClassifier(QDAModel(), learner=Drawing()).fit(X, y).score(X, y) > 0.5

    def test_drawing_from_a_model_that_cannot(self):
        X, y = rows()
        clf = GenerativeClassifier(Bare()).fit(X, y)
        with pytest.raises(NotImplementedError, match=r"Bare.*sample"):
            clf.sample(3)

    def test_a_class_in_place_of_a_model(self):
        X, y = rows()
        fit_refused(GenerativeClassifier(QDAModel), X, y, "'model' parameter")

    @pytest.mark.parametrize("value", [-1.0, 0.5], ids=["negative", "fraction"])
    def test_a_categorical_model_takes_codes_only(self, value):
        X = np.array([[0.0, 1.0], [1.0, value], [1.0, 0.0], [0.0, 0.0]])
        clf = GenerativeClassifier(CategoricalModel(alpha=1.0))
        fit_refused(clf, X, [0, 1, 1, 0], "Column 1", "code")


# --- parameters of the models -----------------------------------------------------------------------

EYE = np.eye(N)


@pytest.mark.parametrize("kind", GAUSSIAN)
@pytest.mark.parametrize(
    "value",
    [np.zeros(3), np.zeros((N, 1)), [0, 0, np.nan, 0], list("abcd")],
    ids=["short", "shape", "nan", "words"],
)
def test_prior_mean(kind, value):
    X, y = rows()
    fit_refused(kind(prior_mean=value, mean_strength=1.0), X, y, "prior_mean", f"{N}|numbers")


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
@pytest.mark.parametrize(
    ("value", "needle"),
    [
        (np.eye(3), r"\(4, 4\).*\(3, 3\)"),
        (np.ones(N), r"\(4, 4\)"),
        (EYE + np.triu(np.ones((N, N)), 1), "symmetric"),
        (EYE * np.nan, "finite|symmetric"),
        (-EYE, "positive definite"),
        (np.ones((N, N)), "positive definite"),
    ],
    ids=["small", "diagonal", "asymmetric", "nan", "negative", "singular"],
)
def test_prior_covariance(kind, value, needle):
    X, y = rows()
    fit_refused(kind(prior_covariance=value, covariance_strength=1.0), X, y, "prior_covariance", needle)


@pytest.mark.parametrize(
    "value",
    [np.ones(3), EYE, [1, 1, 0, 1], [1, 1, -1, 1], [1, 1, np.inf, 1]],
    ids=["short", "matrix", "zero", "negative", "infinite"],
)
def test_prior_variance(value):
    X, y = rows()
    fit_refused(
        GaussianNB(prior_variance=value, variance_strength=1.0), X, y, "prior_variance", "4 positive numbers"
    )


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        *((kind, "mean_strength", -1.0) for kind in GAUSSIAN),
        (GaussianNB, "variance_strength", -1.0),
        (GaussianNB, "var_smoothing", -1.0),
        (QuadraticDiscriminantAnalysis, "covariance_strength", -1.0),
        (QuadraticDiscriminantAnalysis, "reg_param", 1.5),
        (QuadraticDiscriminantAnalysis, "covariance_floor", 0.0),
        (QuadraticDiscriminantAnalysis, "prior_form", "map"),
        (QuadraticDiscriminantAnalysis, "solver", "lsqr"),
        (LinearDiscriminantAnalysis, "shrinkage", 1.5),
        (LinearDiscriminantAnalysis, "diagonal_mix", -0.5),
        (LinearDiscriminantAnalysis, "n_components", 0),
        (CategoricalNB, "alpha", -1.0),
        (CategoricalNB, "class_alpha", -1.0),
        (CategoricalNB, "min_categories", 0),
    ],
)
def test_other_parameters(kind, name, value):
    X, y = data_for(kind)
    fit_refused(kind(**{name: value}), X, y, f"'{name}' parameter", re.escape(repr(value)))


@pytest.mark.parametrize("value", [[2, 2], [[4, 4, 4, 4]], [2.5, 2, 2, 2]])
def test_min_categories(value):
    X, y = data_for(CategoricalNB)
    fit_refused(CategoricalNB(min_categories=value), X, y, "min_categories", r"shape|integral")


@pytest.mark.parametrize("n_components", [3, 4, 5])
def test_too_many_components(n_components):
    X, y = rows()
    clf = LinearDiscriminantAnalysis(n_components=n_components)
    fit_refused(clf, X, y, "n_components", "n_classes - 1", r"\b2\b", f"got {n_components}")


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
@pytest.mark.parametrize(
    "how",
    [{"shrinkage": "auto"}, {"covariance_estimator": EmpiricalCovariance()}],
    ids=["auto", "estimator"],
)
class TestNoFunctionOfTheStatistics:
    def test_with_rc(self, kind, how):
        X, y = rows()
        for learner in ("rc", RC()):
            fit_refused(kind(learner=learner, **how), X, y, next(iter(how)), "closed_form")

    def test_with_weights(self, kind, how):
        X, y = rows()
        clf = kind(learner="closed_form", **how)
        fit_refused(clf, X, y, next(iter(how)), "weight", sample_weight=np.ones(len(y)))

    def test_in_partial_fit(self, kind, how):
        """The covariance of the last batch is not that of all rows: it cannot be added up."""
        X, y = rows()
        clf = kind(learner="closed_form", **how)
        refused(lambda: clf.partial_fit(X, y, classes=[0, 1, 2]), next(iter(how)), "partial_fit")

    def test_both(self, kind, how):
        X, y = rows()
        both = {"shrinkage": 0.5, "covariance_estimator": EmpiricalCovariance()} | how
        fit_refused(kind(learner="closed_form", **both), X, y, "shrinkage", "covariance_estimator")


# --- partial_fit ------------------------------------------------------------------------------------


@every_estimator
class TestPartialFit:
    def test_without_classes(self, kind):
        X, y = data_for(kind)
        clf = kind()
        refused(lambda: clf.partial_fit(X, y), "classes", "first call")
        clf.partial_fit(X, y, classes=[0, 1, 2])

    @LABELS
    def test_unknown_label(self, kind, labels):
        X, y = data_for(kind, labels)
        clf = kind()
        refused(
            lambda: clf.partial_fit(X, y, classes=labels[:2]), "label", f"{labels[2]!r}", f"{labels[0]!r}"
        )

    def test_other_classes(self, kind):
        X, y = data_for(kind)
        clf = kind().partial_fit(X, y, classes=[0, 1, 2])
        refused(lambda: clf.partial_fit(X, y, classes=[0, 1, 3]), "classes")

    def test_balanced_weights(self, kind):
        X, y = data_for(kind)
        clf = kind(class_weight="balanced")
        refused(lambda: clf.partial_fit(X, y, classes=[0, 1, 2]), "class_weight='balanced'", "dict")

    def test_weights_of_a_class_that_is_not_in_the_batch(self, kind):
        X, y = data_for(kind)
        clf = kind(class_weight={1: 5.0}, learner="closed_form")
        for k in (0, 1, 2):
            clf.partial_fit(X[y == k], y[y == k], classes=[0, 1, 2])
        np.testing.assert_allclose(clf.data_statistics_["s0"], [30.0, 150.0, 30.0])

    def test_a_refused_first_batch_can_be_mended(self, kind):
        X, y = data_for(kind)
        bad = X.copy()
        bad[0, 0] = np.inf
        clf = kind(learner="closed_form")
        refused(lambda: clf.partial_fit(bad, y, classes=[0, 1, 2]), "infinity")
        clf.partial_fit(X, y, classes=[0, 1, 2])
        assert clf.data_statistics_ == kind(learner="closed_form").fit(X, y).data_statistics_

    def test_a_refused_first_batch_can_be_mended_with_other_classes(self, kind):
        X, y = data_for(kind)
        clf = kind(learner="closed_form")
        refused(lambda: clf.partial_fit(X, y, classes=[0, 1]), r"label.*\b2\b")
        clf.partial_fit(X, y, classes=[0, 1, 2])
        assert clf.classes_.tolist() == [0, 1, 2]

    @pytest.mark.parametrize("fault", ["infinity", "label", "weight", "features"])
    def test_a_refused_batch_changes_nothing(self, kind, fault):
        X, y = data_for(kind)
        clf = kind().partial_fit(X, y, classes=[0, 1, 2])
        before = clf.data_statistics_, clf.statistics_, clf.predict_proba(X)
        bad, labels, w = X.copy() + 7.0, y.copy(), np.ones(len(y))  # 7: categories that were not there
        if fault == "infinity":
            bad[0, 0] = np.inf
        elif fault == "label":
            labels[0] = 9
        elif fault == "weight":
            w[0] = -1
        else:
            bad = bad[:, :2]
        refused(lambda: clf.partial_fit(bad, labels, sample_weight=w))
        assert clf.data_statistics_ is before[0]
        assert clf.statistics_ is before[1]
        np.testing.assert_array_equal(clf.predict_proba(X), before[2])

    def test_no_weight_in_a_batch(self, kind):
        X, y = data_for(kind)
        clf = kind()
        refused(
            lambda: clf.partial_fit(X, y, classes=[0, 1, 2], sample_weight=np.zeros(len(y))),
            "(?i)sample.weight",
            "zero",
        )


def test_refused_categories_are_not_remembered():
    X, y = np.array([["a"], ["b"], ["a"], ["b"]]), [0, 1, 0, 1]
    clf = CategoricalNB(learner="closed_form").partial_fit(X, y, classes=[0, 1])
    refused(lambda: clf.partial_fit([["c"], ["d"]], [0, 9]), r"label.*\b9\b")
    clf.partial_fit(X, y)
    assert clf.n_categories_.tolist() == [2]


def test_negative_codes_in_a_later_batch(monkeypatch):
    monkeypatch.setattr(encoder, "UNSEEN", 1000)  # a table of 2**31 cells would end the tests
    clf = CategoricalNB(learner="closed_form").partial_fit([[0, 0], [1, 1]], [0, 1], classes=[0, 1])
    refused(lambda: clf.partial_fit([[0, -1], [1, 1]], [0, 1]), "Column 1", "-1|negative")


@pytest.mark.parametrize("method", ["forget", "calibrate"])
@pytest.mark.parametrize("unseen", ["c", -1], ids=["value", "code"])
def test_categories_that_were_never_counted(method, unseen, monkeypatch):
    """Rows to forget or to calibrate on were counted before: an unknown category is a mistake."""
    monkeypatch.setattr(encoder, "UNSEEN", 1000)  # a table of 2**31 cells would end the tests
    X = [["a"], ["b"], ["a"], ["b"]] if unseen == "c" else [[0], [1], [0], [1]]
    clf = CategoricalNB(learner="closed_form").fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="column 0"):
        getattr(clf, method)([[unseen]], [0])
    assert clf.n_categories_.tolist() == [2]


@every_estimator
def test_forgetting_under_balanced_weights(kind):
    """The weights that the rows had in the fit depend on all rows: they cannot be taken back."""
    X, y = data_for(kind)
    clf = kind(class_weight="balanced", learner="closed_form").fit(X, y)
    refused(lambda: clf.forget(X[:6], y[:6]), "class_weight='balanced'", "dict")


@every_estimator
def test_a_refused_merge_changes_nothing(kind):
    X, y = data_for(kind)
    a, b = (kind(learner="closed_form").fit(X, y) for _ in range(2))
    other = kind(learner="closed_form").fit(X[y < 2], y[y < 2])
    before = a.data_statistics_
    refused(lambda: a.merge(b, other), "classes")
    assert a.data_statistics_ is before


@every_estimator
@pytest.mark.parametrize("other", ["fewer_classes", "labels", "features"])
def test_a_warm_start_from_something_else(kind, other):
    """Statistics of other classes or columns are no start; added to codes they would be silent nonsense."""
    X, y = data_for(kind)
    clf = kind(warm_start=True).fit(X, y)
    before = clf.statistics_
    if other == "fewer_classes":
        X, y = X[y < 2], y[y < 2]
    elif other == "labels":
        y = np.array(["ant", "bee", "cat"])[y]
    else:
        X = X[:, :2]
    with pytest.raises(ValueError, match="warm_start"):
        clf.fit(X, y)
    assert clf.statistics_ is before


@every_estimator
def test_a_refused_fit_is_no_fit(kind):
    X, y = data_for(kind)
    for clf, fit in (
        (kind(), {"sample_weight": np.where(y == 1, 0.0, 1.0)}),
        (kind(learner=RC(lr=-1.0, step="fixed", generative_weight=0.0)), {}),
    ):
        with pytest.raises(ValueError, match=r"no weight|lr"):
            clf.fit(X, y, **fit)
        with pytest.raises(NotFittedError):
            clf.predict(X)


@every_estimator
def test_not_fitted(kind):
    X, _ = data_for(kind)
    methods = ["predict", "predict_proba", "predict_joint_log_proba", "score_samples", "decision_function"]
    for method in methods:
        with pytest.raises(NotFittedError):
            getattr(kind(), method)(X)
    with pytest.raises(NotFittedError):
        kind().sample(1)


@every_estimator
@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_number_of_draws(kind, n):
    X, y = data_for(kind)
    clf = kind(learner="closed_form").fit(X, y)
    refused(lambda: clf.sample(n), "n_samples", error=(ValueError, TypeError))


# --- floors -----------------------------------------------------------------------------------------


def one_row(labels):
    X, y = rows(labels)
    keep = (y != labels[1]) | (np.cumsum(y == labels[1]) == 1)
    return X[keep], y[keep]


def constant_column(labels):
    X, y = rows(labels)
    X[:, 1] = 0.3
    return X, y


def constant_in_a_class(labels):
    X, y = rows(labels)
    X[y == labels[1], 1] = 0.3
    return X, y


def repeated_column(labels):
    X, y = rows(labels)
    X[:, 3] = X[:, 0]
    return X, y


def few_rows(labels):
    """As many rows as features in one class: the rank is one too low."""
    X, y = rows(labels)
    keep = (y != labels[1]) | (np.cumsum(y == labels[1]) <= N)
    return X[keep], y[keep]


ML = {"prior": None}
NB0 = {"var_smoothing": 0.0} | ML
FLOORED = [
    (QuadraticDiscriminantAnalysis, ML, one_row, [1]),
    (QuadraticDiscriminantAnalysis, ML, few_rows, [1]),
    (QuadraticDiscriminantAnalysis, ML, constant_in_a_class, [1]),
    (QuadraticDiscriminantAnalysis, ML, constant_column, [0, 1, 2]),
    (QuadraticDiscriminantAnalysis, ML, repeated_column, [0, 1, 2]),
    (LinearDiscriminantAnalysis, ML, constant_column, None),
    (LinearDiscriminantAnalysis, ML, repeated_column, None),
    (GaussianNB, NB0, one_row, [1]),
    (GaussianNB, NB0, constant_in_a_class, [1]),
    (GaussianNB, NB0, constant_column, [0, 1, 2]),
]


@LABELS
@pytest.mark.parametrize("learner", ["closed_form", "rc"])
@pytest.mark.parametrize(("kind", "parameters", "data", "named"), FLOORED)
def test_floored_with_one_warning(kind, parameters, data, named, learner, labels):
    X, y = data(labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = kind(learner=learner, **parameters).fit(X, y)
    assert [w.category for w in caught] == [FlooredWarning]
    message = str(caught[0].message)
    if named is not None:  # LDA has one covariance, of no class
        listed = re.search(r"[Cc]lass(?:es)? ((?:'\w+'|\d+)(?:, (?:'\w+'|\d+))*)", message)
        written = [label for label in labels if repr(label) in listed.group(1).split(", ")]
        assert written == [labels[k] for k in named]
    assert proposed_by(message), message
    assert proposed_by(message) <= set(kind().get_params()), message
    P = clf.predict_proba(X)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert np.isfinite(clf.score_samples(X)).all()
    assert np.isfinite(clf.sample(5, random_state=0)[0]).all()


CURES = ("variance_strength", "covariance_strength", "reg_param", "shrinkage", "var_smoothing")


def proposed_by(message):
    """The parameters that a warning names."""
    return {cure for cure in CURES if re.search(rf"\b{cure}\b", message)}


@pytest.mark.parametrize(("kind", "parameters", "data", "named"), FLOORED)
def test_the_warning_proposes_nothing_that_is_set_already(kind, parameters, data, named):
    """Nor a prior to someone who has one: in a column that is constant everywhere it is constant too."""
    X, y = data((0, 1, 2))
    own = [cure for cure in CURES if cure in kind().get_params()]
    settings = [dict.fromkeys(some, 1e-3) for n in range(len(own) + 1) for some in combinations(own, n)]
    settings += [{"prior": "recommended"}] if "prior" in kind().get_params() else []
    warned = 0
    for given in settings:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kind(learner="closed_form", **{**parameters, **given}).fit(X, y)
        taken = {"covariance_strength"} if "prior" in given else set(given)
        for each in caught:
            assert not proposed_by(str(each.message)) & taken, each.message
            assert ("prior" in str(each.message)) == (not any("strength" in name for name in taken))
            warned += 1
    assert warned > 0


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
def test_the_warning_points_at_the_callers_line(kind):
    X, y = constant_column((0, 1, 2))
    with pytest.warns(FlooredWarning) as caught:
        kind().fit(X, y)
    with pytest.warns(FlooredWarning) as caught_in_parts:
        kind().partial_fit(X, y, classes=[0, 1, 2])
    assert caught[0].filename == __file__
    assert caught_in_parts[0].filename == __file__


def test_the_warning_speaks_of_parameters_that_the_estimator_has():
    X, y = constant_column((0, 1, 2))
    with pytest.warns(FlooredWarning) as caught:
        GaussianNB(var_smoothing=0.0).fit(X, y)
    message = str(caught[0].message)
    assert "covariance_floor" not in message
    assert "eigenvalue" not in message


@pytest.mark.parametrize("learner", ["closed_form", "rc"])
@pytest.mark.parametrize(
    ("kind", "parameters", "data"),
    [
        (GaussianNB, {}, one_row),
        (GaussianNB, {}, constant_column),
        (GaussianNB, {"var_smoothing": 0.0, "variance_strength": 2.0}, one_row),
        (LinearDiscriminantAnalysis, {}, one_row),
        (LinearDiscriminantAnalysis, {"shrinkage": 0.1}, repeated_column),
        (QuadraticDiscriminantAnalysis, {"covariance_strength": 5.0}, one_row),
        (QuadraticDiscriminantAnalysis, {"covariance_strength": 5.0}, few_rows),
        (QuadraticDiscriminantAnalysis, {"reg_param": 0.1}, constant_column),
        (QuadraticDiscriminantAnalysis, {"reg_param": 0.1}, one_row),
        (QuadraticDiscriminantAnalysis, {"shrinkage": 0.1}, repeated_column),
        (CategoricalNB, {"alpha": 0.0}, one_row),
    ],
)
def test_a_prior_needs_no_floor(kind, parameters, data, learner):
    X, y = data((0, 1, 2))
    if kind is CategoricalNB:
        X = np.digitize(X, [-1, 0, 1])
    assert np.isfinite(kind(learner=learner, **parameters).fit(X, y).predict_proba(X)).all()


@pytest.mark.parametrize("kind", [GaussianNB, QuadraticDiscriminantAnalysis, LinearDiscriminantAnalysis])
@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
def test_partial_fit_of_single_rows_stays_finite(kind):
    X, y = rows()
    clf = kind()
    for i in range(9):
        clf.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1, 2])
        assert np.isfinite(clf.predict_proba(X)).all()


# --- far from the origin, badly scaled --------------------------------------------------------------

MOVES = {
    "far": (1.0, np.array([0.0, 1e8, 0.0, 0.0])),
    "far_down": (1.0, np.array([0.0, 0.0, -1e8, 1e8])),
    "scaled": (np.array([1e-6, 1e6, 1.0, 1e-6]), 0.0),
    "both": (np.array([1.0, 1e6, 1e-6, 1.0]), np.array([1e8, 1e8, 0.0, 0.0])),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(
    "learner",
    ["closed_form", RC(lr=0.2, max_iter=12, step="fixed", generative_weight=0.0)],
    ids=["closed_form", "rc"],
)
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (QuadraticDiscriminantAnalysis, {}),
        (QuadraticDiscriminantAnalysis, {"covariance_strength": 5.0, "mean_strength": 1.0}),
        (LinearDiscriminantAnalysis, {}),
        (GaussianNB, {"var_smoothing": 0.0}),
    ],
    ids=["qda", "qda_map", "lda", "gaussian_nb"],
)
def test_moving_and_scaling_columns_changes_no_prediction(kind, parameters, learner, move):
    scale, shift = MOVES[move]
    X, y = rows()
    moved = X * scale + shift
    here, there = (kind(learner=learner, **parameters).fit(data, y) for data in (X, moved))
    assert here.n_iter_ == there.n_iter_
    assert (here.predict(X) == there.predict(moved)).all()
    np.testing.assert_allclose(there.predict_proba(moved), here.predict_proba(X), atol=1e-6)
    jacobian = np.log(np.broadcast_to(scale, N)).sum()
    np.testing.assert_allclose(there.score_samples(moved) + jacobian, here.score_samples(X), atol=1e-5)
    scores = there.decision_function(moved)
    assert (there.classes_[scores.argmax(axis=1)] == there.predict(moved)).all()
    centred = scores - scores.mean(axis=1, keepdims=True)
    expected = here.decision_function(X)
    np.testing.assert_allclose(centred, expected - expected.mean(axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize(
    "learner",
    ["closed_form", RC(lr=0.2, max_iter=12, step="fixed", generative_weight=0.0)],
    ids=["closed_form", "rc"],
)
def test_far_data_in_batches(learner):
    X, y = rows()
    far = X + np.array([0.0, 1e8, 0.0, 0.0])
    here, there = (QuadraticDiscriminantAnalysis(learner=learner) for _ in range(2))
    for part in np.array_split(np.arange(len(y)), 3):
        here.partial_fit(X[part], y[part], classes=[0, 1, 2])
        there.partial_fit(far[part], y[part], classes=[0, 1, 2])
    np.testing.assert_allclose(there.predict_proba(far), here.predict_proba(X), atol=1e-6)
