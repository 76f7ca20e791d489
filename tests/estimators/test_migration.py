"""What a changed import changes: scikit-learn's own tests with our classes in their place, and the notes.

`doc/migration.md` lists every difference with its reason. A difference that is not listed fails here, and
so does one that is listed and gone.
"""

import importlib.util
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import sklearn.discriminant_analysis as their_da
import sklearn.naive_bayes as their_nb
from sklearn.datasets import load_wine
from sklearn.ensemble import BaggingClassifier
from sklearn.preprocessing import StandardScaler

import riskbayes
from riskbayes import (
    CategoricalNB,
    FlooredWarning,
    GaussianNB,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from riskbayes.learners import RC

TESTS = Path(__file__).parents[1]
NOTES = TESTS.parent / "doc" / "migration.md"
THEIR_FILES = ["sklearn.tests.test_naive_bayes", "sklearn.tests.test_discriminant_analysis"]

NEGATIVE = r"ValueError: Negative\ values\ in\ data\ passed\ to\ CategoricalNB\ \(input\ X\)"
OTHER_CLASSES = "ValueError: is not the same as on last call to partial_fit"
COUNTING = ("BernoulliNB", "CategoricalNB", "ComplementNB", "MultinomialNB")
NOT_FULL_RANK = "LinAlgError: The covariance matrix of class .+ is not full rank."
FEW_ROWS = "ValueError: The number of samples must be more"
ONE_ROW = "ValueError: y has only 1 sample in class"

DELIBERATE = {
    "test_gnb_check_update_with_no_data": [
        "AttributeError: type object 'GaussianNB' has no attribute '_update_mean_variance'"
    ],
    **{f"test_discretenb_provide_prior[{name}]": [OTHER_CLASSES] for name in COUNTING},
    "test_alpha_vector": ["AttributeError: 'MultinomialNB' object has no attribute '_check_alpha'"],
    "test_check_alpha": ["AttributeError: 'BernoulliNB' object has no attribute '_check_alpha'"],
    # The fit that was to be refused has replaced the model that the test goes on with.
    "test_categoricalnb[42]": [NEGATIVE, NEGATIVE, "AssertionError: "],
    "test_lda_predict": [
        "NotImplementedError: any",
        "ValueError: covariance estimator is not supported with svd",
    ],
    "test_lda_transform": ["NotImplementedError: transform not implemented for 'lsqr'"],
    "test_lda_store_covariance": ["AssertionError: assert not True"],
    "test_qda_covariance_estimator": [
        "NotImplementedError: any",
        "ValueError: covariance_estimator is not supported with solver='svd'",
    ],
    "test_qda[svd]": ["ValueError: any"],
    "test_qda[eigen]": ["ValueError: any"],
    "test_qda_regularization[42-svd]": [
        NOT_FULL_RANK,
        "AttributeError: any",
        f"{NOT_FULL_RANK} When using `solver='svd'`",
        f"{NOT_FULL_RANK} When using `solver='svd'`",
    ],
    "test_qda_regularization[42-eigen]": [NOT_FULL_RANK, "AttributeError: any", NOT_FULL_RANK],
    "test_raises_value_error_on_same_number_of_classes_and_samples[svd]": [FEW_ROWS],
    "test_raises_value_error_on_same_number_of_classes_and_samples[lsqr]": [FEW_ROWS],
    "test_raises_value_error_on_same_number_of_classes_and_samples[eigen]": [FEW_ROWS],
    "test_raises_value_error_on_one_sample_per_class[svd]": [ONE_ROW],
    "test_raises_value_error_on_one_sample_per_class[eigen]": [ONE_ROW],
}
"""Tests of scikit-learn that our classes do not pass, and what each expects and does not get."""


def test_scikit_learns_own_tests_differ_in_what_is_listed(tmp_path):
    if not all(importlib.util.find_spec(name) for name in ("sklearn.tests", *THEIR_FILES)):
        pytest.skip("scikit-learn was installed without its tests")
    source = Path(riskbayes.__file__).parents[1]
    settings = {
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(source), os.environ.get("PYTHONPATH", "")]),
        "SCIPY_ARRAY_API": "1",  # else the tests of the array API skip
        "SKLEARN_RUN_FLOAT32_TESTS": "1",
        "SKLEARN_SEED": "0",
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    (tmp_path / "pytest.ini").write_text("[pytest]\n")  # not our own settings: warnings are no errors there
    report = tmp_path / "report.xml"
    arguments = ["-p", "sklearn_twins", "-p", "no:cacheprovider", "-c", "pytest.ini", f"--junitxml={report}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, "--pyargs", *THEIR_FILES],
        **{"cwd": tmp_path, "env": {**inherited, **settings}, "capture_output": True, "text": True},
    )
    assert report.exists(), done.stdout + done.stderr
    cases = list(ElementTree.parse(report).iter("testcase"))
    missed = {
        case.get("name"): [note.get("value") for note in case.iter("property")]
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }
    assert missed == DELIBERATE, done.stdout[-5000:]
    skipped = sum(case.find("skipped") is not None for case in cases)
    assert len(cases) - skipped - len(missed) >= 138  # those of scikit-learn 1.9


def test_the_notes_list_every_difference_and_name_a_test_that_shows_it():
    notes = NOTES.read_text(encoding="utf-8")
    assert f"the other {len(DELIBERATE)} expect" in notes
    rows = [line for line in notes.splitlines() if line.startswith("|")]
    theirs = {name for row in rows for name in re.findall(r"`(test_\w+)`", row)}
    assert theirs == {name.partition("[")[0] for name in DELIBERATE}
    for file, name in {
        found for row in rows for found in re.findall(r"`(\w+/test_\w+\.py)::(test_\w+)`", row)
    }:
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8"), f"{name} is not in {file}"
    for row in rows:
        assert row.count("|") == 4, row
        assert "test_" in row or row.startswith(("| what", "|---")), row


# --- differences that scikit-learn's tests do not show -------------------------------------------------

WINE = load_wine(return_X_y=True)
UNEQUAL = [0.2, 0.3, 0.5]
TWINS = pytest.mark.parametrize(
    "kind", [CategoricalNB, GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis]
)


def rows_for(kind):
    X, y = WINE
    return (X.astype(int), y) if kind is CategoricalNB else (StandardScaler().fit_transform(X), y)


def close(a, b, **tolerance):
    np.testing.assert_allclose(a, b, **{"rtol": 1e-7, "atol": 1e-9, **tolerance})


def test_in_a_stream_epsilon_is_that_of_all_rows():
    """scikit-learn's is that of the last batch: its variances then differ from those of one fit."""
    X, y = WINE
    parts = [np.arange(0, len(y), 2), np.arange(1, 40, 2)]

    def streamed(clf):
        for rows in parts:
            clf.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        return clf

    rows = np.concatenate(parts)
    fitted = their_nb.GaussianNB().fit(X[rows], y[rows])
    ours, theirs = streamed(GaussianNB(learner="closed_form")), streamed(their_nb.GaussianNB())
    assert ours.epsilon_ == pytest.approx(fitted.epsilon_)
    close(ours.var_, fitted.var_)
    last = X[parts[1]].var(axis=0).max()
    assert theirs.epsilon_ == pytest.approx(1e-9 * last)
    assert theirs.epsilon_ < 0.6 * fitted.epsilon_


@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
def test_scores_and_components_are_those_of_the_svd_solver(solver):
    X, y = rows_for(LinearDiscriminantAnalysis)
    ours = LinearDiscriminantAnalysis(solver=solver, learner="closed_form").fit(X + 5.0, y)
    svd = their_da.LinearDiscriminantAnalysis().fit(X + 5.0, y)
    for name in ("coef_", "intercept_", "xbar_", "explained_variance_ratio_"):
        close(getattr(ours, name), getattr(svd, name))
    close(ours.decision_function(X), svd.decision_function(X))
    signs = np.sign(np.sum(ours.scalings_ * svd.scalings_, axis=0))
    close(ours.transform(X), svd.transform(X) * signs)
    # Theirs of this solver: the same posterior, from scores that all have a term in common.
    theirs = their_da.LinearDiscriminantAnalysis(solver=solver).fit(X + 5.0, y)
    close(ours.predict_proba(X), theirs.predict_proba(X))
    shift = theirs.decision_function(X) - ours.decision_function(X)
    close(shift, np.broadcast_to(shift[:, :1], shift.shape))
    assert np.abs(shift).max() > 1.0
    if solver == "eigen":  # not about the mean
        moved = np.abs(theirs.transform(X)) - np.abs(ours.transform(X))
        assert np.abs(moved).max() > 1.0


def test_fixed_priors_do_not_change_the_covariance():
    X, y = rows_for(LinearDiscriminantAnalysis)
    ours = LinearDiscriminantAnalysis(priors=UNEQUAL, learner="closed_form").fit(X, y)
    close(ours.covariance_, LinearDiscriminantAnalysis(learner="closed_form").fit(X, y).covariance_)
    svd, lsqr = (
        their_da.LinearDiscriminantAnalysis(solver=solver, priors=UNEQUAL).fit(X, y)
        for solver in ("svd", "lsqr")
    )
    close(ours.predict_proba(X), svd.predict_proba(X))
    assert np.abs(lsqr.predict_proba(X) - svd.predict_proba(X)).max() > 0.5


def test_log_probabilities_are_not_cut_off():
    """scikit-learn's LDA has no log probability below -708.4, the logarithm of the least normal number."""
    X, y = WINE
    far = X + 1e4
    ours = LinearDiscriminantAnalysis(learner="closed_form").fit(X, y).predict_log_proba(far)
    theirs = their_da.LinearDiscriminantAnalysis().fit(X, y).predict_log_proba(far)
    assert theirs.min() == pytest.approx(np.log(np.finfo(float).tiny))
    assert ours.min() < -1e5
    close(np.maximum(ours, theirs.min()), theirs)


def test_qda_does_not_depend_on_the_unit_of_a_column():
    X, y = rows_for(QuadraticDiscriminantAnalysis)
    with pytest.raises(np.linalg.LinAlgError, match="not full rank"):
        their_da.QuadraticDiscriminantAnalysis().fit(1e-3 * X, y)
    small = QuadraticDiscriminantAnalysis(learner="closed_form").fit(1e-3 * X, y)
    theirs = their_da.QuadraticDiscriminantAnalysis().fit(X, y)
    close(small.predict_proba(1e-3 * X), theirs.predict_proba(X))


def test_reg_param_acts_with_every_solver():
    X, y = rows_for(QuadraticDiscriminantAnalysis)
    svd, eigen = (
        QuadraticDiscriminantAnalysis(solver=solver, reg_param=0.1, learner="closed_form").fit(X, y)
        for solver in ("svd", "eigen")
    )
    close(svd.predict_proba(X), eigen.predict_proba(X))
    theirs = their_da.QuadraticDiscriminantAnalysis(reg_param=0.1).fit(X, y)
    close(svd.predict_proba(X), theirs.predict_proba(X))
    ignored = their_da.QuadraticDiscriminantAnalysis(solver="eigen", reg_param=0.1).fit(X, y)
    close(ignored.predict_proba(X), their_da.QuadraticDiscriminantAnalysis().fit(X, y).predict_proba(X))


def test_collinear_columns_are_named_in_a_warning():
    X, y = rows_for(LinearDiscriminantAnalysis)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theirs = their_da.LinearDiscriminantAnalysis().fit(X, y)
    with pytest.warns(FlooredWarning, match="do not determine"):
        ours = LinearDiscriminantAnalysis(learner="closed_form").fit(X, y)
    close(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


def test_fractions_are_cut_to_codes_with_a_warning():
    X, y = WINE
    with pytest.warns(UserWarning, match="no integer code"):
        ours = CategoricalNB(learner="closed_form").fit(X, y)
    with pytest.warns(UserWarning, match="no integer code"):
        found = ours.predict_proba(X)
    close(found, their_nb.CategoricalNB().fit(X, y).predict_proba(X))


def test_without_pseudo_counts_no_probability_is_zero():
    X, y = [[0], [0], [1]], [0, 1, 1]
    ours = CategoricalNB(alpha=0.0, learner="closed_form").fit(X, y)
    assert np.isfinite(ours.predict_log_proba([[1]])).all()
    with np.errstate(divide="ignore"):
        theirs = their_nb.CategoricalNB(alpha=0.0).fit(X, y)
    close(ours.predict_proba([[0], [1]]), theirs.predict_proba([[0], [1]]), atol=1e-8)


@TWINS
def test_fitted_attributes_are_read_only(kind):
    X, y = rows_for(kind)
    clf = kind(learner="closed_form").fit(X, y)
    name = {CategoricalNB: "class_log_prior_", GaussianNB: "theta_"}.get(kind, "means_")
    with pytest.raises(AttributeError):
        setattr(clf, name, getattr(clf, name))


@pytest.mark.parametrize("kind", [CategoricalNB, GaussianNB])
def test_naive_bayes_has_a_decision_function(kind):
    X, y = rows_for(kind)
    clf = kind(learner="closed_form").fit(X, y)
    close(clf.decision_function(X), clf.predict_joint_log_proba(X))
    assert not hasattr(getattr(their_nb, kind.__name__)(), "decision_function")


@TWINS
def test_calibration_needs_two_classes_and_the_closed_form_one(kind):
    X, y = rows_for(kind)
    with pytest.raises(ValueError, match="at least two classes"):
        kind().fit(X[y == 1], y[y == 1])
    with pytest.raises(ValueError, match="at least two classes"):
        kind().partial_fit(X[y == 1], y[y == 1], classes=[1])
    for method, more in (("fit", {}), ("partial_fit", {"classes": [1]})):
        clf = getattr(kind(learner="closed_form"), method)(X[y == 1], y[y == 1], **more)
        assert (clf.predict(X) == 1).all()
        close(clf.predict_proba(X), 1.0)
        assert np.isfinite(clf.score_samples(X)).all()
    if kind is LinearDiscriminantAnalysis:
        assert clf.transform(X).shape == (len(y), 0)
        assert clf.explained_variance_ratio_.shape == (0,)


@TWINS
@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")  # QDA of a class without rows
def test_by_closed_form_a_class_without_weight_is_never_predicted(kind):
    X, y = rows_for(kind)
    w = np.where(y == 1, 0.0, 1.0 + y)
    with pytest.raises(ValueError, match="class 1 has no weight"):
        kind().fit(X, y, sample_weight=w)
    ours = kind(learner="closed_form").fit(X, y, sample_weight=w)
    assert ours.classes_.tolist() == [0, 1, 2]
    absent = kind(learner="closed_form").fit(X[y != 1], y[y != 1], sample_weight=w[y != 1])
    P = ours.predict_proba(X)
    assert (P[:, 1] == 0).all()
    close(P[:, [0, 2]], absent.predict_proba(X))
    if kind is GaussianNB:  # to scikit-learn's CategoricalNB the codes of rows without weight are categories
        with np.errstate(divide="ignore", invalid="ignore"):
            theirs = getattr(their_nb, kind.__name__)().fit(X, y, sample_weight=w)
            close(P, theirs.predict_proba(X), atol=1e-7)
    with pytest.raises(ValueError, match="no weight"):
        kind(learner="closed_form", class_weight={0: 0.0, 1: 0.0, 2: 0.0}).fit(X, y)


def test_bags_that_leave_out_a_rare_class():
    """Bagging hands a bag over as weights: a class of two rows is often left out."""
    X, y = rows_for(GaussianNB)
    few = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:2]])
    ours, theirs = (
        BaggingClassifier(clf, n_estimators=20, random_state=0)
        for clf in (GaussianNB(learner="closed_form"), their_nb.GaussianNB())
    )
    with np.errstate(divide="ignore"):
        close(
            ours.fit(X[few], y[few]).predict_proba(X), theirs.fit(X[few], y[few]).predict_proba(X), atol=1e-6
        )


ATTRIBUTES = {
    GaussianNB: ["theta_", "var_", "class_prior_", "class_count_"],
    LinearDiscriminantAnalysis: [
        *("means_", "priors_", "covariance_", "coef_", "intercept_"),
        *("xbar_", "scalings_", "explained_variance_ratio_"),
    ],
    QuadraticDiscriminantAnalysis: ["means_", "priors_", "covariance_", "scalings_", "rotations_"],
}


@pytest.mark.parametrize("kind", ATTRIBUTES)
@pytest.mark.parametrize("learner", ["closed_form", "rc"])
def test_attributes_have_the_dtype_of_the_rows(kind, learner):
    X, y = rows_for(kind)
    stored = {"store_covariance": True} if kind is QuadraticDiscriminantAnalysis else {}
    learner = RC(max_iter=8) if learner == "rc" else learner  # many scans enlarge the rounding of float32
    narrow, wide = (kind(learner=learner, **stored).fit(X.astype(t), y) for t in (np.float32, np.float64))
    for name in ATTRIBUTES[kind]:
        for clf, dtype in ((narrow, np.float32), (wide, np.float64)):
            found = getattr(clf, name)
            arrays = found if isinstance(found, list) else [found]
            assert {array.dtype for array in arrays} == {np.dtype(dtype)}, name
    # What is computed from them keeps its digits, whatever the rows to predict.
    assert narrow.predict_proba(X).dtype == np.float64
    close(narrow.predict_proba(X), wide.predict_proba(X), rtol=1e-3, atol=1e-4)
