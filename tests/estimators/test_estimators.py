"""The estimators: twins of scikit-learn's, what they take, streaming, sampling, callbacks, memory."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import sklearn.discriminant_analysis as their_da
import sklearn.naive_bayes as their_nb
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.covariance import OAS, ShrunkCovariance
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from riskbayes import (
    CategoricalNB,
    GaussianNB,
    GenerativeClassifier,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from riskbayes.learners import RC, ClosedForm
from riskbayes.models import CategoricalModel, QDAModel
from riskbayes.preprocessing import KMeansBins
from riskbayes.task import Status


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads of BLAS that wait for each other on a busy machine make small products 40 times slower."""
    with threadpool_limits(1, user_api="blas"):
        yield


def generic(**parameters):
    return GenerativeClassifier(QDAModel(), **parameters)


GAUSSIAN = [GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis]
EVERY = [CategoricalNB, *GAUSSIAN, generic]
every_estimator = pytest.mark.parametrize("kind", EVERY)
every_learner = pytest.mark.parametrize("learner", ["closed_form", "rc"])

IRIS, WINE = load_iris(return_X_y=True), load_wine(return_X_y=True)
CANCER = (load_breast_cancer().data[:, [0, 1, 4, 5, 8, 9, 11, 14]], load_breast_cancer().target)
DATA = {"iris": IRIS, "wine": WINE, "cancer": CANCER}  # the last has two classes
every_set = pytest.mark.parametrize("data", DATA.values(), ids=DATA)


CODES = {}


def codes_of(X):
    """Four bins a column; k-means is slow enough to remember what it found."""
    key = X.tobytes()
    if key not in CODES:
        CODES[key] = KMeansBins(4).fit_transform(X)
        CODES[key].flags.writeable = False
    return CODES[key]


def data_for(kind, data=IRIS):
    X, y = data
    return (codes_of(X), y) if kind is CategoricalNB else (X, y)


def overlapping(seed=1, m=300, n=3, r=3):
    """Each class is two overlapping clouds: no model is right, and calibration takes many steps."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % r
    side = rng.integers(2, size=m)
    centres = rng.uniform(-2, 2, (r, 2, n))
    return centres[y, side] + rng.standard_normal((m, n)) * rng.uniform(0.5, 1.2, (r, n))[y], y


def overlapping_for(kind):
    X, y = overlapping()
    return (codes_of(X), y) if kind is CategoricalNB else (X, y)


def close(actual, expected, rtol=1e-8, atol=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def close_up_to_sign(actual, expected, **tolerance):
    """Columns agree but for their sign."""
    assert actual.shape == expected.shape
    close(actual * np.sign((actual * expected).sum(axis=0)), expected, **tolerance)


def close_up_to_shift(actual, expected, **tolerance):
    """Rows (classes) agree but for a vector that they share: the same discriminants."""
    close(actual - actual.mean(axis=0), expected - expected.mean(axis=0), **tolerance)


# --- twins: Gaussian naive Bayes --------------------------------------------------------------------


@every_set
@pytest.mark.parametrize("parameters", [{}, {"var_smoothing": 1e-3}])
def test_gaussian_nb_is_scikit_learns(data, parameters):
    X, y = data
    theirs = their_nb.GaussianNB(**parameters).fit(X, y)
    ours = GaussianNB(learner="closed_form", **parameters).fit(X, y)
    for name in ("theta_", "var_", "class_prior_", "class_count_", "classes_", "epsilon_"):
        close(getattr(ours, name), getattr(theirs, name))
    assert ours.n_features_in_ == theirs.n_features_in_
    close(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=1e-7)


def test_gaussian_nb_with_priors():
    X, y = IRIS
    priors = [0.1, 0.2, 0.7]
    theirs = their_nb.GaussianNB(priors=priors).fit(X, y)
    ours = GaussianNB(priors=priors, learner="closed_form").fit(X, y)
    close(ours.class_prior_, priors)
    close(ours.predict_proba(X), theirs.predict_proba(X))
    close(GaussianNB(priors=priors).fit(X, y).class_prior_, priors)  # fixed in calibration too


# --- twins: categorical naive Bayes -----------------------------------------------------------------


@every_set
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"alpha": 0.3},
        {"min_categories": 7},
        {"fit_prior": False},
        {"alpha": 0.0, "force_alpha": False, "min_categories": 4},
        {"alpha": 1e-12, "force_alpha": True},
    ],
    ids=["default", "alpha", "min_categories", "uniform", "no_force", "tiny"],
)
@pytest.mark.filterwarnings("ignore:alpha too small:UserWarning")  # scikit-learn's
def test_categorical_nb_is_scikit_learns(data, parameters):
    X, y = codes_of(data[0]), data[1]
    theirs = their_nb.CategoricalNB(**parameters).fit(X, y)
    ours = CategoricalNB(learner="closed_form", **parameters).fit(X, y)
    for name in ("class_count_", "class_log_prior_", "n_categories_", "classes_"):
        close(getattr(ours, name), getattr(theirs, name))
    for name in ("category_count_", "feature_log_prob_"):
        assert isinstance(getattr(ours, name), list)
        assert len(getattr(ours, name)) == X.shape[1]
    for mine, other in zip(ours.category_count_, theirs.category_count_, strict=True):
        close(mine, other)
    if parameters.get("alpha", 1.0) > 1e-9:  # below, our floor on counts is the larger
        for mine, other in zip(ours.feature_log_prob_, theirs.feature_log_prob_, strict=True):
            close(mine, other)
        close(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X))


def test_categorical_nb_with_class_prior_and_weights():
    X, y = codes_of(WINE[0]), WINE[1]
    w = np.random.default_rng(0).uniform(0.1, 3.0, size=len(y))
    parameters = {"class_prior": [0.1, 0.2, 0.7], "min_categories": [4, 5, 6] + [4] * 10}
    theirs = their_nb.CategoricalNB(**parameters).fit(X, y, sample_weight=w)
    ours = CategoricalNB(learner="closed_form", **parameters).fit(X, y, sample_weight=w)
    assert ours.n_categories_.tolist() == [4, 5, 6] + [4] * 10
    for mine, other in zip(ours.category_count_, theirs.category_count_, strict=True):
        close(mine, other)
    close(ours.class_count_, theirs.class_count_)
    close(ours.class_log_prior_, np.log(parameters["class_prior"]))
    close(ours.predict_proba(X), theirs.predict_proba(X))


def test_counts_are_the_datas_and_probabilities_the_calibrated_ones():
    X, y = overlapping_for(CategoricalNB)
    ml, rc = CategoricalNB(learner="closed_form").fit(X, y), CategoricalNB().fit(X, y)
    assert rc.n_iter_ > 0
    for a, b in zip(ml.category_count_, rc.category_count_, strict=True):
        close(a, b)
    close(ml.class_count_, rc.class_count_)
    assert np.abs(ml.feature_log_prob_[0] - rc.feature_log_prob_[0]).max() > 1e-3
    for table in rc.feature_log_prob_:
        close(np.exp(table).sum(axis=1), 1.0)
    close(np.exp(rc.class_log_prior_).sum(), 1.0)


# --- twins: linear discriminant analysis ------------------------------------------------------------


@every_set
@pytest.mark.parametrize("with_priors", [False, True])
def test_lda_is_scikit_learns(data, with_priors):
    """Of its default solver: changing one import is all it takes."""
    X, y = data
    r = len(np.unique(y))
    priors = np.arange(1.0, r + 1) / np.arange(1.0, r + 1).sum() if with_priors else None
    theirs = their_da.LinearDiscriminantAnalysis(priors=priors).fit(X, y)
    ours = LinearDiscriminantAnalysis(priors=priors, learner="closed_form").fit(X, y)
    for name in ("means_", "priors_", "xbar_", "explained_variance_ratio_", "classes_"):
        close(getattr(ours, name), getattr(theirs, name), rtol=1e-7)
    close_up_to_sign(ours.scalings_, theirs.scalings_, rtol=1e-6, atol=1e-8)
    close_up_to_sign(ours.transform(X), theirs.transform(X), rtol=1e-6, atol=1e-7)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    close(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)


@every_set
@pytest.mark.parametrize("with_priors", [False, True])
def test_ldas_scores_are_scikit_learns(data, with_priors):
    """coef_, intercept_ and decision_function of scikit-learn's default solver."""
    X, y = data
    r = len(np.unique(y))
    priors = np.arange(1.0, r + 1) / np.arange(1.0, r + 1).sum() if with_priors else None
    theirs = their_da.LinearDiscriminantAnalysis(priors=priors).fit(X, y)
    ours = LinearDiscriminantAnalysis(priors=priors, learner="closed_form").fit(X, y)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    close(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-7)
    close(ours.intercept_, theirs.intercept_, rtol=1e-6)
    close(ours.decision_function(X), theirs.decision_function(X), rtol=1e-6, atol=1e-6)


@every_set
@every_learner
def test_ldas_scores_are_its_posterior(data, learner):
    X, y = data
    clf = LinearDiscriminantAnalysis(learner=learner).fit(X, y)
    scores = clf.decision_function(X)
    linear = X @ clf.coef_.T + clf.intercept_
    close(scores, linear[:, 0] if linear.shape[1] == 1 else linear, rtol=1e-7, atol=1e-7)
    if scores.ndim == 1:
        scores = np.c_[np.zeros(len(scores)), scores]
    close(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)), clf.predict_proba(X), atol=1e-8)


def test_ldas_covariance_is_scikit_learns():
    X, y = IRIS
    theirs = their_da.LinearDiscriminantAnalysis(store_covariance=True).fit(X, y)
    close(LinearDiscriminantAnalysis(learner="closed_form").fit(X, y).covariance_, theirs.covariance_)


COVARIANCES = pytest.mark.parametrize(
    "parameters",
    [
        {"shrinkage": 0.3},
        {"shrinkage": 0.0},
        {"shrinkage": 1.0},
        {"shrinkage": "auto"},
        {"covariance_estimator": ShrunkCovariance(shrinkage=0.4)},
        {"covariance_estimator": OAS()},
    ],
    ids=["float", "zero", "one", "auto", "shrunk", "oas"],
)


@COVARIANCES
@every_set
def test_lda_with_other_covariances(data, parameters):
    X, y = data
    theirs = their_da.LinearDiscriminantAnalysis(solver="lsqr", **parameters).fit(X, y)
    ours = LinearDiscriminantAnalysis(solver="lsqr", learner="closed_form", **parameters).fit(X, y)
    close(ours.covariance_, theirs.covariance_)
    close(ours.means_, theirs.means_)
    if len(ours.classes_) > 2:  # solvers differ by what all classes share
        close_up_to_shift(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-7)
    else:
        close(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-7)
        close(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-7)
    close(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)


def test_ldas_components():
    X, y = WINE
    two, one = (LinearDiscriminantAnalysis(n_components=k).fit(X, y) for k in (None, 1))
    assert two.transform(X).shape == (len(y), 2)
    assert one.transform(X).shape == (len(y), 1)
    close(one.transform(X)[:, 0], two.transform(X)[:, 0])
    assert one.explained_variance_ratio_.shape == (1,)
    assert one.get_feature_names_out().tolist() == ["lineardiscriminantanalysis0"]
    close(two.fit_transform(X, y), two.transform(X))
    theirs = their_da.LinearDiscriminantAnalysis(n_components=1).fit(X, y)
    ours = LinearDiscriminantAnalysis(n_components=1, learner="closed_form").fit(X, y)
    close_up_to_sign(ours.transform(X), theirs.transform(X), rtol=1e-6, atol=1e-7)


# --- twins: quadratic discriminant analysis ---------------------------------------------------------


@every_set
@pytest.mark.parametrize("parameters", [{}, {"reg_param": 0.2}, {"reg_param": 1.0}, {"priors": True}])
def test_qda_is_scikit_learns(data, parameters):
    X, y = data
    X = StandardScaler().fit_transform(X)  # scikit-learn judges the rank on an absolute scale
    if "priors" in parameters:
        r = len(np.unique(y))
        parameters = {"priors": np.arange(1.0, r + 1) / np.arange(1.0, r + 1).sum()}
    both = {"store_covariance": True, **parameters}
    theirs = their_da.QuadraticDiscriminantAnalysis(**both).fit(X, y)
    ours = QuadraticDiscriminantAnalysis(learner="closed_form", **both).fit(X, y)
    for name in ("means_", "priors_", "classes_"):
        close(getattr(ours, name), getattr(theirs, name))
    for name in ("covariance_", "scalings_", "rotations_"):
        assert isinstance(getattr(ours, name), list)
    for k in range(len(ours.classes_)):
        close(ours.covariance_[k], theirs.covariance_[k])
        close(ours.scalings_[k], theirs.scalings_[k])
        if parameters.get("reg_param") != 1.0:  # a sphere has no axes
            close_up_to_sign(ours.rotations_[k], theirs.rotations_[k], rtol=1e-6, atol=1e-7)
    close(ours.decision_function(X), theirs.decision_function(X), rtol=1e-7, atol=1e-7)
    close(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-7, atol=1e-7)


@COVARIANCES
@every_set
def test_qda_with_other_covariances(data, parameters):
    X, y = data
    X = StandardScaler().fit_transform(X)
    both = {"store_covariance": True, "solver": "eigen", **parameters}
    theirs = their_da.QuadraticDiscriminantAnalysis(**both).fit(X, y)
    ours = QuadraticDiscriminantAnalysis(learner="closed_form", **both).fit(X, y)
    for k in range(len(ours.classes_)):
        close(ours.covariance_[k], theirs.covariance_[k])
        close(ours.scalings_[k], theirs.scalings_[k])
    close(ours.decision_function(X), theirs.decision_function(X), rtol=1e-7, atol=1e-7)


def test_the_covariance_of_qda_is_stored_on_demand():
    X, y = IRIS
    assert not hasattr(QuadraticDiscriminantAnalysis().fit(X, y), "covariance_")


@pytest.mark.parametrize(
    ("kind", "twin"),
    [
        (GaussianNB, their_nb.GaussianNB),
        (CategoricalNB, their_nb.CategoricalNB),
        (LinearDiscriminantAnalysis, their_da.LinearDiscriminantAnalysis),
        (QuadraticDiscriminantAnalysis, their_da.QuadraticDiscriminantAnalysis),
    ],
)
@every_learner
def test_parameters_attributes_and_methods_of_the_twin(kind, twin, learner):
    ours, theirs = kind().get_params(), twin().get_params()
    assert {name: ours[name] for name in theirs} == theirs
    X, y = data_for(kind)
    fitted, model = twin().fit(X, y), kind(learner=learner).fit(X, y)
    public = {name for name in (*vars(fitted), *dir(fitted)) if not name.startswith("_")}
    assert {name for name in public if not hasattr(model, name)} == set()


@every_learner
def test_attributes_are_those_of_the_calibrated_parameters(learner):
    X, y = overlapping()
    clf = QuadraticDiscriminantAnalysis(learner=learner, store_covariance=True).fit(X, y)
    for k in range(3):
        R, s = clf.rotations_[k], clf.scalings_[k]
        close((R * s) @ R.T, clf.covariance_[k], atol=1e-8)
        close(clf.covariance_[k], clf.parameters_.covariances[k])
    nb = GaussianNB(learner=learner).fit(X, y)
    S = nb.statistics_
    close(nb.theta_, S["s1"] / S["s0"][:, None] + S.origin)
    close(nb.class_prior_, S["s0"] / S.total)
    close(nb.class_count_, 100.0)


# --- calibration ------------------------------------------------------------------------------------


@every_estimator
def test_a_fit_by_rc(kind):
    X, y = overlapping_for(kind)
    plain = {"prior": None} if kind in GAUSSIAN else {}  # as the closed form has none
    clf = kind(learner=RC(lr=0.1, max_iter=20, step="fixed", generative_weight=0.0), **plain).fit(X, y)
    history = clf.history_
    assert {"soft_error", "error", "log_loss", "lr"} <= set(history)
    assert {len(column) for column in history.values()} == {clf.n_iter_ + 1}
    assert 1 <= clf.n_iter_ <= 20
    P = clf.predict_proba(X)
    final = 1 - P[np.arange(len(y)), y].mean()
    assert final == pytest.approx(history["soft_error"].min())
    assert final < history["soft_error"][0]
    first = kind(learner="closed_form").fit(X, y)
    assert history["error"][0] == pytest.approx(1 - first.score(X, y))
    assert history["log_loss"][0] == pytest.approx(-first.predict_log_proba(X)[np.arange(len(y)), y].mean())
    assert first.status_ is Status.CLOSED_FORM
    assert first.n_iter_ == 0
    assert first.statistics_ == clf.data_statistics_
    assert clf.statistics_.total == pytest.approx(len(y))


@every_estimator
def test_a_learner_may_be_a_name_or_an_instance(kind):
    X, y = overlapping_for(kind)
    named, given = kind(learner="rc").fit(X, y), kind(learner=RC()).fit(X, y)
    assert named.statistics_ == given.statistics_
    assert kind().fit(X, y).statistics_ == named.statistics_  # the default
    a, b = kind(learner="closed_form").fit(X, y), kind(learner=ClosedForm()).fit(X, y)
    assert a.statistics_ == b.statistics_


@every_estimator
@pytest.mark.parametrize("lr", [np.float64(0.1), np.float32(0.1), 0.1])
def test_the_learning_rate_may_be_a_numpy_scalar(kind, lr):
    X, y = overlapping_for(kind)
    learner = RC(lr=lr, max_iter=np.int64(3), step="fixed", generative_weight=0.0)
    clf = kind(learner=learner).fit(X, y)
    assert clf.statistics_.allclose(
        kind(learner=RC(lr=float(lr), max_iter=3, step="fixed", generative_weight=0.0)).fit(X, y).statistics_
    )
    assert learner.lr is lr  # stored untouched


# --- what CategoricalNB takes -----------------------------------------------------------------------

COLOURS = ["red", "blue", "red", "green", "blue", "red", "green", "red"]
TASTES = [0, 2, 1, 2, 2, 0, 1, 0]
BIG = [True, False, True, False, False, True, True, True]
Y = np.array([0, 1, 0, 1, 1, 0, 1, 0])
POSITION = {"blue": 0, "green": 1, "red": 2}
REFERENCE = np.array([[POSITION[c] for c in COLOURS], TASTES, BIG], dtype=int).T


def objects():
    out = np.empty((8, 3), dtype=object)
    out[:, 0], out[:, 1], out[:, 2] = COLOURS, TASTES, BIG
    return out


def numpy_objects():
    """What iterating over NumPy arrays leaves in an object array."""
    out = np.empty((8, 3), dtype=object)
    for i in range(8):
        out[i] = np.str_(COLOURS[i]), np.int64(TASTES[i]), np.bool_(BIG[i])
    return out


KINDS = {
    "uint8": REFERENCE.astype(np.uint8),
    "int64": REFERENCE,
    "float64": REFERENCE.astype(float),
    "lists": REFERENCE.tolist(),
    "strings": np.array([COLOURS, [str(t) for t in TASTES], [str(b) for b in BIG]]).T,
    "string_lists": [list(row) for row in zip(COLOURS, map(str, TASTES), map(str, BIG), strict=True)],
    "objects": objects(),
    "numpy_objects": numpy_objects(),
    "pandas": pd.DataFrame({"colour": COLOURS, "taste": TASTES, "big": BIG}),
    "pandas_objects": pd.DataFrame({"colour": COLOURS, "taste": TASTES, "big": BIG}, dtype=object),
    "pandas_categorical": pd.DataFrame(
        {"colour": pd.Categorical(COLOURS), "taste": pd.Categorical(TASTES), "big": pd.Categorical(BIG)}
    ),
    "pandas_nullable": pd.DataFrame(
        {
            "colour": pd.array(COLOURS, dtype="string"),
            "taste": pd.array(TASTES, dtype="Int64"),
            "big": pd.array(BIG, dtype="boolean"),
        }
    ),
    "pandas_float_categories": pd.DataFrame(
        {
            "colour": pd.Categorical(COLOURS),
            "taste": pd.Categorical([0.5 + t for t in TASTES]),
            "big": pd.Categorical([0.1 * b for b in BIG]),
        }
    ),
    "pandas_cut": pd.DataFrame(
        {
            "colour": COLOURS,
            "taste": pd.cut(TASTES, [-1, 0.5, 1.5, 3]),
            "big": pd.cut(np.array(BIG), [-1, 0.5, 2]),
        }
    ),
    "polars": pl.DataFrame({"colour": COLOURS, "taste": TASTES, "big": BIG}),
    "polars_categorical": pl.DataFrame(
        {"colour": pl.Series(COLOURS, dtype=pl.Categorical), "taste": TASTES, "big": BIG}
    ),
    "polars_enum": pl.DataFrame(
        {
            "colour": pl.Series(COLOURS, dtype=pl.Enum(["blue", "green", "red"])),
            "taste": pl.Series([str(t) for t in TASTES], dtype=pl.Enum(["0", "1", "2"])),
            "big": BIG,
        }
    ),
    "negative": REFERENCE - 5,
    "one_negative_column": REFERENCE - np.array([0, 3, 0]),
}


@pytest.mark.parametrize("X", KINDS.values(), ids=KINDS)
@every_learner
def test_kinds_of_input(X, learner):
    """All say the same, so all give the same posterior; and draws come back as they went in."""
    expected = CategoricalNB(learner=learner).fit(REFERENCE, Y)
    clf = CategoricalNB(learner=learner).fit(X, Y)
    assert clf.n_categories_.tolist() == [3, 3, 2]
    close(clf.predict_proba(X), expected.predict_proba(REFERENCE))
    close(clf.score_samples(X), expected.score_samples(REFERENCE))
    drawn, labels = clf.sample(50, random_state=0)
    assert drawn.shape == (50, 3)
    assert set(labels) <= {0, 1}
    table = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    for j in range(3):
        assert set(drawn[:, j].tolist()) <= set(table[:, j].tolist())


@pytest.mark.parametrize(
    "X", [KINDS["pandas"], KINDS["polars_enum"], KINDS["objects"]], ids=["pd", "pl", "np"]
)
def test_uninitialised_memory_is_not_read(X, monkeypatch):
    """`np.empty` may hold anything; here it holds NaN."""
    empty = np.empty

    def poisoned(*args, **kwargs):
        out = empty(*args, **kwargs)
        if out.dtype.kind == "f":
            out.fill(np.nan)
        return out

    monkeypatch.setattr(np, "empty", poisoned)
    clf = CategoricalNB().fit(X, Y)
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("column", "n_categories"),
    [
        (pd.Categorical(["a", "b", "a", "b"], categories=["z", "a", "b", "y"]), 4),
        (pd.Categorical([10, 20, 10, 20], categories=[10, 20, 30]), 3),
        (pd.cut([0.1, 0.9, 0.1, 0.9], [0, 0.25, 0.5, 0.75, 1]), 4),
        (pl.Series(["a", "b", "a", "b"], dtype=pl.Enum(["z", "a", "b", "y", "x"])), 5),
        (pl.Series(["a", "b", "a", "b"], dtype=pl.Categorical), 2),
    ],
    ids=["pandas", "pandas_int", "pandas_cut", "polars_enum", "polars_categorical"],
)
def test_declared_categories_count_even_if_unobserved(column, n_categories):
    frame = (pl if isinstance(column, pl.Series) else pd).DataFrame({"x": column})
    clf = CategoricalNB(learner="closed_form").fit(frame, [0, 0, 1, 1])
    assert clf.n_categories_.tolist() == [n_categories]
    assert clf.category_count_[0].sum() == 4
    expected = np.log(2 / (2 + n_categories)) + np.log(0.5)  # (1 + 1) / (2 + K), and p(y)
    close(clf.predict_joint_log_proba(frame), expected)


def test_the_order_of_columns_of_feature_log_prob_can_be_known():
    """Which category is column 2? For values other than codes, something must say so."""
    clf = CategoricalNB().fit(KINDS["pandas"], Y)
    assert [list(values) for values in clf.categories_] == [
        ["blue", "green", "red"],
        [0, 1, 2],
        [False, True],
    ]


def test_a_frame_at_predict_time_may_have_other_categories():
    fitted = pd.DataFrame({"x": pd.Categorical(["a", "b", "b", "c"])})
    asked = pd.DataFrame({"x": pd.Categorical(["c", "b", "new"], categories=["new", "c", "b"])})
    clf = CategoricalNB(learner="closed_form").fit(fitted, [0, 0, 1, 1])
    as_strings = CategoricalNB(learner="closed_form").fit([["a"], ["b"], ["b"], ["c"]], [0, 0, 1, 1])
    close(clf.predict_proba(asked), as_strings.predict_proba([["c"], ["b"], ["new"]]))


@pytest.mark.parametrize("alpha", [1.0, 0.25, 1e-6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("X", "unseen"),
    [
        (np.array([[0, 1], [1, 0], [1, 1], [0, 2], [1, 1]]), [[9, 1]]),
        (np.array([[0, 1], [1, 0], [1, 1], [0, 2], [1, 1]]), [[-1, 1]]),
        (np.array([[0, 1], [1, 0], [1, 1], [0, 2], [1, 1]]), [[2**31, 1]]),
        (np.array([[0, 1], [1, 0], [1, 1], [0, 2], [1, 1]]), [[2**40, 1]]),
        (np.array([["a", "y"], ["b", "x"], ["b", "y"], ["a", "z"], ["b", "y"]]), [["new", "y"]]),
        (np.array([[-3, 1], [-7, 0], [-7, 1], [-3, 2], [-7, 1]]), [[-4, 1]]),
    ],
    ids=["code", "negative_code", "large_code", "larger_code", "string", "negative"],
)
def test_an_unseen_category(X, unseen, alpha, weighted):
    """It has the probability alpha / (n_y + alpha K), exactly."""
    y = np.array([0, 0, 1, 1, 1])
    w = np.array([1.0, 0.5, 2.0, 1.0, 0.25]) if weighted else None
    clf = CategoricalNB(alpha=alpha, learner="closed_form").fit(X, y, sample_weight=w)
    n_y = clf.class_count_
    second = np.bincount(y, weights=(X[:, 1] == X[0, 1]) * (np.ones(5) if w is None else w))
    expected = np.log(n_y / n_y.sum()) + np.log(alpha / (n_y + 2 * alpha))
    expected += np.log((second + alpha) / (n_y + 3 * alpha))
    close(clf.predict_joint_log_proba(np.array(unseen))[0], expected, rtol=1e-12)


@every_learner
def test_without_pseudo_counts_an_unseen_category_is_ignored(learner):
    X = np.array([["a", "y"], ["b", "x"], ["b", "y"], ["a", "z"], ["b", "y"]])
    y = np.array([0, 0, 1, 1, 1])
    clf = CategoricalNB(alpha=0.0, learner=learner).fit(X, y)
    expected = clf.class_log_prior_ + clf.feature_log_prob_[1][:, 1]  # x, y, z
    close(clf.predict_joint_log_proba([["new", "y"]])[0], expected)
    close(clf.predict_joint_log_proba([["new", "newer"]])[0], clf.class_log_prior_)


def test_unseen_categories_beside_known_ones_in_a_batch_of_rows():
    X, y = codes_of(IRIS[0]).astype(int), IRIS[1]
    clf = CategoricalNB().fit(X, y)
    mixed = X.copy()
    mixed[::3, 1] = 77
    rows = np.concatenate([clf.predict_joint_log_proba(mixed[i : i + 1]) for i in range(len(y))])
    close(clf.predict_joint_log_proba(mixed), rows)
    kept = np.arange(len(y)) % 3 != 0
    close(clf.predict_joint_log_proba(X)[kept], rows[kept])


@pytest.mark.parametrize(
    "X", [REFERENCE, KINDS["strings"], KINDS["negative"]], ids=["codes", "strings", "negative"]
)
def test_draws_are_observed_values_even_with_min_categories(X):
    """A category that nothing names has a probability, but no value to be drawn."""
    clf = CategoricalNB(min_categories=9).fit(X, Y)
    assert clf.n_categories_.tolist() == [9, 9, 9]
    drawn, _ = clf.sample(300, random_state=0)
    assert drawn.shape == (300, 3)
    if X is not REFERENCE:  # codes 0 to 8 are all values
        for j in range(3):
            assert set(drawn[:, j].tolist()) <= set(X[:, j].tolist())


def test_a_categorical_model_in_the_generic_classifier():
    X, y = codes_of(IRIS[0]).astype(int), IRIS[1]
    ours = GenerativeClassifier(CategoricalModel(alpha=1.0)).fit(X, y)
    named = CategoricalNB().fit(X, y)
    close(ours.predict_proba(X), named.predict_proba(X))
    unseen = X.copy()
    unseen[:, 0] = 50
    close(ours.predict_proba(unseen), named.predict_proba(unseen))


# --- partial_fit ------------------------------------------------------------------------------------


def batches(y, how):
    order = np.random.default_rng(0).permutation(len(y))
    if how == "three":
        return np.array_split(order, 3)
    if how == "uneven":
        return np.split(order, [1, 4, 60])
    return [order[y[order] == k] for k in np.unique(y)]  # classes that come late


@every_estimator
@pytest.mark.parametrize("how", ["three", "uneven", "late"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")  # of the first, tiny batches
def test_batches_equal_one_fit(kind, how, weighted):
    X, y = data_for(kind)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    whole = kind(learner="closed_form").fit(X, y, sample_weight=w)
    parts = kind(learner="closed_form")
    for rows in batches(y, how):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=w[rows])
        assert np.isfinite(parts.predict_proba(X)).all()
        close(parts.predict_proba(X).sum(axis=1), 1.0)
    close(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10, atol=1e-10)
    assert parts.data_statistics_.allclose(whole.data_statistics_, rtol=1e-10)
    assert parts.statistics_ == parts.data_statistics_


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (GaussianNB, {"mean_strength": 2.0, "variance_strength": 3.0}),
        (LinearDiscriminantAnalysis, {"mean_strength": 2.0, "covariance_strength": 3.0}),
        (
            QuadraticDiscriminantAnalysis,
            {"mean_strength": 2.0, "covariance_strength": 3.0, "diagonal_mix": 0.5},
        ),
        (
            QuadraticDiscriminantAnalysis,
            {"covariance_strength": 3.0, "prior_form": "paper", "reg_param": 0.1},
        ),
        (CategoricalNB, {"alpha": 0.5, "class_alpha": 1.0, "min_categories": 6}),
    ],
)
def test_batches_equal_one_fit_under_a_prior(kind, parameters):
    X, y = data_for(kind)
    whole, parts = (kind(learner="closed_form", **parameters) for _ in range(2))
    whole.fit(X, y)
    for rows in batches(y, "three"):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    close(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "X",
    [
        np.array([[0, 0], [1, 0], [0, 1], [3, 0], [1, 5], [4, 1]]),
        np.array([["a", "x"], ["b", "x"], ["a", "w"], ["0", "x"], ["b", "c"], ["z", "w"]]),
        np.array([[-9, 0], [-1, 0], [-9, 1], [-3, 0], [-1, 5], [-4, 1]]),
    ],
    ids=["codes", "strings", "negative"],
)
def test_batches_with_growing_categories_equal_one_fit(X):
    y = np.array([0, 1, 0, 1, 1, 0])
    whole = CategoricalNB(learner="closed_form").fit(X, y)
    parts = CategoricalNB(learner="closed_form")
    for rows in (slice(0, 2), slice(2, 4), slice(4, 6)):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    close(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10)
    assert parts.n_categories_.tolist() == whole.n_categories_.tolist()
    assert {tuple(row) for row in parts.sample(200, random_state=0)[0].tolist()} <= {
        (a, b) for a in [*X[:, 0].tolist(), *range(5)] for b in [*X[:, 1].tolist(), *range(6)]
    }


def test_frames_with_growing_categories():
    first = pd.DataFrame({"x": pd.Categorical(["a", "b"])})
    second = pd.DataFrame({"x": pd.Categorical(["c", "a"], categories=["a", "c", "d"])})
    clf = CategoricalNB(learner="closed_form").partial_fit(first, [0, 1], classes=[0, 1])
    clf.partial_fit(second, [1, 0])
    assert clf.n_categories_.tolist() == [4]
    counts = {"a": [2, 0], "b": [0, 1], "c": [0, 1], "d": [0, 0]}
    for value, count in counts.items():
        expected = np.log(0.5) + np.log((np.array(count) + 1) / (2 + 4))
        close(clf.predict_joint_log_proba(pd.DataFrame({"x": [value]}))[0], expected)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([["a"], ["c"], ["a"], ["c"]], [["b"], ["c"], ["b"], ["c"]]),
        ([[-1], [-3], [-1], [-3]], [[-2], [-3], [-2], [-3]]),
        ([[0], [2], [0], [2]], [[1], [5], [1], [5]]),
    ],
    ids=["strings", "negative", "codes"],
)
def test_merging_models_that_know_other_categories(first, second):
    """A code means another value in each model: what is added must be the same value."""
    y = [0, 1, 0, 1]
    a, b = (CategoricalNB(learner="closed_form").fit(X, y) for X in (first, second))
    whole = CategoricalNB(learner="closed_form").fit(first + second, y + y)
    merged = a.merge(b)
    close(merged.predict_joint_log_proba(first + second), whole.predict_joint_log_proba(first + second))


@every_estimator
def test_rc_takes_one_step_a_batch(kind):
    X, y = overlapping_for(kind)
    clf = kind(learner=RC(lr=0.1, step="fixed", generative_weight=0.0))
    first, second = np.arange(150), np.arange(150, 300)
    clf.partial_fit(X[first], y[first], classes=[0, 1, 2])
    one = kind(learner=RC(lr=0.1, max_iter=1, step="fixed", generative_weight=0.0)).fit(X[first], y[first])
    assert clf.n_iter_ == 1
    assert clf.statistics_.allclose(one.statistics_, rtol=1e-12)
    before = clf.statistics_, clf.data_statistics_
    clf.partial_fit(X[second], y[second])
    batch = kind(learner="closed_form").fit(X[second], y[second]).data_statistics_
    assert clf.data_statistics_.allclose(before[1] + batch, rtol=1e-10)
    start = before[0] + batch
    assert clf.n_iter_ == 1
    assert not clf.statistics_.allclose(start, rtol=1e-6)  # a step was taken
    assert clf.statistics_.total == pytest.approx(300)
    assert clf.status_ in (Status.MAX_ITER, Status.RISK_ROSE)


@every_estimator
def test_rc_waits_for_every_class(kind):
    X, y = overlapping_for(kind)
    two = y < 2
    clf = kind().partial_fit(X[two], y[two], classes=[0, 1, 2])
    assert clf.statistics_ == clf.data_statistics_
    P = clf.predict_proba(X)
    assert np.isfinite(P).all()
    assert (P[:, 2] == 0).all()
    clf.partial_fit(X[~two], y[~two])
    assert clf.data_statistics_["s0"].tolist() == [100, 100, 100]
    assert (clf.predict(X) == 2).any()


@every_estimator
def test_partial_fit_goes_on_from_fit(kind):
    X, y = data_for(kind)
    clf = kind(learner="closed_form").fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    whole = kind(learner="closed_form").fit(X, y)
    close(clf.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10, atol=1e-10)


@every_estimator
def test_fit_forgets(kind):
    X, y = data_for(kind)
    clf = kind().fit(X[:, :2], np.where(y == 0, "a", "b"))
    again = clf.fit(X, y)
    assert again is clf
    assert clf.statistics_ == kind().fit(X, y).statistics_
    assert clf.classes_.tolist() == [0, 1, 2]


# --- density and draws ------------------------------------------------------------------------------


@every_estimator
@every_learner
def test_score_samples_is_the_log_evidence(kind, learner):
    X, y = data_for(kind)
    clf = kind(learner=learner).fit(X, y)
    joint = clf.predict_joint_log_proba(X)
    assert joint.shape == (len(y), 3)
    close(clf.score_samples(X), logsumexp(joint, axis=1))
    close(clf.predict_log_proba(X), joint - logsumexp(joint, axis=1, keepdims=True))
    close(clf.predict_proba(X), np.exp(clf.predict_log_proba(X)))
    assert (clf.predict(X) == clf.classes_[joint.argmax(axis=1)]).all()


def test_a_row_far_from_every_class_has_a_posterior():
    X, y = IRIS
    for kind in GAUSSIAN:
        clf = kind().fit(X, y)
        far = np.full((1, 4), 1e6)
        assert np.isfinite(clf.score_samples(far)).all()
        close(clf.predict_proba(far).sum(axis=1), 1.0)


@every_estimator
@pytest.mark.parametrize(
    "labels", [(0, 1, 2), ("a", "bb", "ccc"), (-1.0, 0.0, 5.0)], ids=["int", "str", "float"]
)
def test_draws(kind, labels):
    X, y = data_for(kind)
    clf = kind().fit(X, np.array(labels)[y])
    Z, z = clf.sample(20, random_state=3)
    assert Z.shape == (20, X.shape[1])
    assert z.shape == (20,)
    assert z.dtype == clf.classes_.dtype
    assert set(z.tolist()) <= set(labels)
    again = clf.sample(20, random_state=3)
    np.testing.assert_array_equal(Z, again[0])
    np.testing.assert_array_equal(z, again[1])
    other, _ = clf.sample(20, random_state=4)
    assert not np.array_equal(Z, other)
    for state in (np.random.RandomState(0), np.random.default_rng(0), None):
        assert clf.sample(random_state=state)[0].shape == (1, X.shape[1])
    a, b = (clf.sample(5, random_state=np.random.default_rng(7))[0] for _ in range(2))
    np.testing.assert_array_equal(a, b)
    generator = np.random.default_rng(7)
    assert not np.array_equal(clf.sample(50, generator)[0], clf.sample(50, generator)[0])
    assert np.isfinite(clf.predict_proba(Z)).all()


@every_estimator
def test_draws_have_the_class_proportions_and_means(kind):
    X, y = overlapping_for(kind)
    keep = (y != 0) | (np.arange(len(y)) % 4 == 0)
    clf = kind().fit(X[keep], y[keep])
    Z, z = clf.sample(20000, random_state=0)
    prior = np.exp(clf.parameters_.log_prior)
    close(np.bincount(z) / len(z), prior, rtol=0, atol=0.02)
    refit = kind(learner="closed_form").fit(Z, z)
    assert np.abs(refit.predict_proba(X) - clf.predict_proba(X)).mean() < 0.02


# --- scikit-learn's manners -------------------------------------------------------------------------


@every_estimator
@every_learner
def test_pickle_and_clone(kind, learner):
    X, y = data_for(kind)
    clf = kind(learner=learner).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    close(again.predict_proba(X), clf.predict_proba(X))
    assert again.statistics_ == clf.statistics_
    assert again.status_ is clf.status_
    close(again.sample(3, random_state=0)[0], clf.sample(3, random_state=0)[0])
    again.partial_fit(X, y)
    fresh = clone(clf)
    assert not hasattr(fresh, "statistics_")
    assert fresh.fit(X, y).statistics_ == clf.statistics_


def test_pickle_with_strings():
    X = KINDS["pandas"]
    clf = CategoricalNB().fit(X, Y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


@every_estimator
def test_parameters_are_stored_untouched(kind):
    learner = RC(lr=0.3, step="fixed", generative_weight=0.0)
    clf, untouched = kind(learner=learner), dict(vars(learner))
    before = clf.get_params()
    assert before["learner"] is learner
    assert before["learner__lr"] == 0.3
    X, y = data_for(kind)
    clf.fit(X, y)
    assert clf.get_params() == before
    assert clf.learner is learner
    assert vars(learner) == untouched
    clf.set_params(learner__lr=0.01, learner__max_iter=2)
    assert clf.learner.lr == 0.01
    assert clf.fit(X, y).n_iter_ <= 2
    assert "learner" in repr(clf)


@every_estimator
def test_grid_search_over_the_learning_rate(kind):
    X, y = overlapping_for(kind)
    grid = {"learner__lr": np.logspace(-2, 0, 3), "learner__max_iter": [1, 4]}
    search = GridSearchCV(kind(learner=RC()), grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.34
    assert search.best_estimator_.learner.lr in grid["learner__lr"]
    learners = {"learner": ["closed_form", "rc", RC(lr=0.5, step="fixed", generative_weight=0.0)]}
    GridSearchCV(kind(), learners, cv=2, error_score="raise").fit(X, y)


@every_estimator
@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_feature_names(kind, frame):
    X, y = data_for(kind)
    names = ["sl", "sw", "pl", "pw"]
    table = pd.DataFrame(X, columns=names) if frame == "pandas" else pl.DataFrame(X, schema=names)
    clf = kind().fit(table, y)
    assert clf.feature_names_in_.tolist() == names
    assert clf.n_features_in_ == 4
    close(clf.predict_proba(table), kind().fit(X, y).predict_proba(X))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(table[["sw", "sl", "pl", "pw"]])


def test_transformed_output_is_named():
    X, y = IRIS
    clf = LinearDiscriminantAnalysis().set_output(transform="pandas").fit(X, y)
    assert clf.transform(X).columns.tolist() == ["lineardiscriminantanalysis0", "lineardiscriminantanalysis1"]


@every_estimator
def test_weights_are_routed_through_a_pipeline(kind):
    X, y = overlapping_for(kind)
    w = np.random.default_rng(0).uniform(0, 3, len(y))
    step = "passthrough" if kind is CategoricalNB else StandardScaler(with_mean=False, with_std=False)
    with sklearn.config_context(enable_metadata_routing=True):
        if step != "passthrough":
            step.set_fit_request(sample_weight=False)
        pipe = Pipeline([("step", step), ("clf", kind().set_fit_request(sample_weight=True))])
        pipe.fit(X, y, sample_weight=w)
    direct = kind().fit(X, y, sample_weight=w)
    close(pipe.predict_proba(X), direct.predict_proba(X))
    assert np.abs(direct.predict_proba(X) - kind().fit(X, y).predict_proba(X)).max() > 1e-3
    old = make_pipeline(step, kind())
    old.fit(X, y, **{f"{old.steps[-1][0]}__sample_weight": w})
    close(old.predict_proba(X), direct.predict_proba(X))


@every_estimator
@every_learner
class TestWeights:
    def test_class_weight_is_sample_weight(self, kind, learner):
        X, y = overlapping_for(kind)
        by_class = kind(learner=learner, class_weight={0: 1.0, 1: 2.5, 2: 0.5}).fit(X, y)
        by_row = kind(learner=learner).fit(X, y, sample_weight=np.array([1.0, 2.5, 0.5])[y])
        assert by_class.statistics_.allclose(by_row.statistics_, rtol=1e-10)
        close(by_class.predict_proba(X), by_row.predict_proba(X))
        close(by_class.history_["soft_error"], by_row.history_["soft_error"])

    def test_both_multiply(self, kind, learner):
        X, y = overlapping_for(kind)
        w = np.random.default_rng(0).uniform(0.5, 2, len(y))
        both = kind(learner=learner, class_weight={1: 3.0}).fit(X, y, sample_weight=w)
        one = kind(learner=learner).fit(X, y, sample_weight=w * np.where(y == 1, 3.0, 1.0))
        close(both.predict_proba(X), one.predict_proba(X))

    def test_balanced(self, kind, learner):
        X, y = overlapping_for(kind)
        keep = (y != 0) | (np.arange(len(y)) % 4 == 0)
        X, y = X[keep], y[keep]
        balanced = kind(learner=learner, class_weight="balanced").fit(X, y)
        close(balanced.data_statistics_["s0"], len(y) / 3)

    def test_balanced_weights_of_weighted_rows_are_those_of_repeated_rows(self, kind, learner):
        """As in scikit-learn since 1.7: the balance is of the weights, not of the rows."""
        X, y = overlapping_for(kind)
        w = np.random.default_rng(0).integers(1, 4, len(y)) * np.array([1, 2, 5])[y]
        weighted = kind(learner=learner, class_weight="balanced").fit(X, y, sample_weight=w)
        repeated = kind(learner=learner, class_weight="balanced").fit(
            np.repeat(X, w, axis=0), np.repeat(y, w)
        )
        close(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-6, atol=1e-7)

    def test_balanced_weights_of_validation_rows_are_those_of_the_training_classes(self, kind, learner):
        """They may lack a class, and a class must weigh the same in both."""
        X, y = overlapping_for(kind)
        rows = np.flatnonzero((y != 0) & (np.arange(len(y)) % 2 == 0))
        keep = np.setdiff1d(np.arange(len(y)), rows)
        weights = {k: len(keep) / (3 * (y[keep] == k).sum()) for k in range(3)}
        validation = {"X_val": X[rows], "y_val": y[rows]}
        balanced = kind(learner=learner, class_weight="balanced").fit(X[keep], y[keep], **validation)
        by_hand = kind(learner=learner, class_weight=weights).fit(X[keep], y[keep], **validation)
        assert balanced.history_.keys() == by_hand.history_.keys()
        for name in by_hand.history_:
            close(balanced.history_[name], by_hand.history_[name])

    def test_the_size_of_weights_does_not_matter_to_maximum_likelihood(self, kind, learner):
        X, y = overlapping_for(kind)
        parameters = {"alpha": 0.0} if kind is CategoricalNB else {}
        parameters |= {"prior": None} if kind in GAUSSIAN else {}
        # The default's anchor fades as the weight grows: without an anchor, only shares matter.
        learner = RC.paper() if learner == "rc" else learner
        small, large = (
            kind(learner=learner, **parameters).fit(X, y, sample_weight=np.full(len(y), w))
            for w in (1e-3, 1e3)
        )
        close(small.predict_proba(X), large.predict_proba(X), rtol=1e-6, atol=1e-8)

    def test_a_row_without_weight_is_no_row(self, kind, learner):
        X, y = overlapping_for(kind)
        w = np.ones(len(y))
        w[::3][:20] = 0.0
        weighted = kind(learner=learner).fit(X, y, sample_weight=w)
        fewer = kind(learner=learner).fit(X[w > 0], y[w > 0])
        close(weighted.predict_proba(X), fewer.predict_proba(X), rtol=1e-6, atol=1e-8)


# A path in single precision ends where it no longer sees the risk fall.
SINGLE = {"closed_form": {"rtol": 1e-5, "atol": 1e-6}, "rc": {"rtol": 0, "atol": 1e-5}}
FEW_SCANS = {"closed_form": "closed_form", "rc": RC(max_iter=8)}
"""Learners of float32 rows: their rounding grows along the path of RC, a thousandfold in 64 scans."""


@pytest.mark.parametrize("kind", [*GAUSSIAN, generic])
@every_learner
class TestLayouts:
    def test_float32(self, kind, learner):
        X, y = overlapping()
        X = X.astype(np.float32)
        learned = FEW_SCANS[learner]
        single, double = (kind(learner=learned).fit(data, y) for data in (X, X.astype(np.float64)))
        assert single.statistics_["s1"].dtype == np.float64
        assert single.predict_proba(X).dtype == np.float32
        close(single.predict_proba(X), double.predict_proba(X.astype(np.float64)), **SINGLE[learner])

    def test_float32_far_from_the_origin(self, kind, learner):
        X, y = overlapping()
        X = (np.round(X * 64) / 64 + 1000.0).astype(np.float32)
        learned = FEW_SCANS[learner]
        single, double = (kind(learner=learned).fit(data, y) for data in (X, X.astype(np.float64)))
        close(single.predict_proba(X), double.predict_proba(X), **SINGLE[learner])

    def test_order_and_strides(self, kind, learner):
        X, y = overlapping()
        expected = kind(learner=learner).fit(X, y).predict_proba(X)
        wide = np.zeros((2 * len(X), 2 * X.shape[1]))
        wide[::2, ::2] = X
        for view in (np.asfortranarray(X), wide[::2, ::2], X[::-1][::-1]):
            clf = kind(learner=learner).fit(view, y)
            close(clf.predict_proba(view), expected)

    def test_read_only(self, kind, learner):
        X, y = overlapping()
        X.flags.writeable = y.flags.writeable = False
        kind(learner=learner).fit(X, y).predict(X)

    def test_input_is_left_alone(self, kind, learner):
        X, y = overlapping()
        before = X.copy(), y.copy()
        kind(learner=learner).fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(X, before[0])
        np.testing.assert_array_equal(y, before[1])

    def test_integers(self, kind, learner):
        X, y = overlapping()
        whole = np.round(10 * X).astype(int)
        a, b = (kind(learner=learner).fit(data, y) for data in (whole, whole.astype(float)))
        close(a.predict_proba(whole), b.predict_proba(whole.astype(float)))


@every_estimator
@every_learner
def test_a_single_feature(kind, learner):
    X, y = overlapping_for(kind)
    clf = kind(learner=learner).fit(X[:, :1], y)
    assert clf.predict_proba(X[:, :1]).shape == (len(y), 3)
    assert clf.sample(4, random_state=0)[0].shape == (4, 1)
    clf.partial_fit(X[:, :1], y)


@every_estimator
@every_learner
def test_string_labels(kind, learner):
    X, y = overlapping_for(kind)
    names = np.array(["ash", "beech", "cedar"])
    clf, plain = kind(learner=learner).fit(X, names[y]), kind(learner=learner).fit(X, y)
    assert clf.classes_.tolist() == names.tolist()
    assert (clf.predict(X) == names[plain.predict(X)]).all()
    weighted = kind(learner=learner, class_weight={"beech": 2.0}).fit(X, names[y])
    assert weighted.data_statistics_["s0"].tolist() == [100, 200, 100]
    parts = kind(learner=learner).partial_fit(X, names[y].astype(object), classes=names.tolist())
    assert parts.score(X, names[y]) > 0.34


@every_estimator
def test_two_classes(kind):
    X, y = overlapping_for(kind)
    X, y = X[y < 2], y[y < 2]
    clf = kind().fit(X, y)
    scores = clf.decision_function(X)
    assert scores.shape == (len(y),)
    close(1 / (1 + np.exp(-scores)), clf.predict_proba(X)[:, 1])


@every_estimator
def test_many_rows_are_scored_as_few_are(kind):
    X, y = overlapping_for(kind)
    clf = kind().fit(X, y)
    many = np.tile(X, (300, 1))  # several chunks
    close(clf.predict_joint_log_proba(many), np.tile(clf.predict_joint_log_proba(X), (300, 1)))


@every_estimator
def test_cross_validation(kind):
    X, y = data_for(kind)
    assert cross_val_score(kind(), X, y, cv=3, error_score="raise").mean() > 0.9


# --- progress ---------------------------------------------------------------------------------------


@every_estimator
def test_verbose(kind, capsys):
    X, y = overlapping_for(kind)
    clf = kind(learner=RC(max_iter=5)).fit(X, y)
    assert capsys.readouterr().out == ""
    clf.set_params(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    accepted = int(clf.history_["accepted"].sum())
    assert len(lines) == accepted + 1
    assert "iteration 0/5" in lines[0]
    assert f"{clf.history_['soft_error'][0]:.6f}" in lines[0]
    assert str(clf.status_) in lines[-1]


class Recorder:
    """A callback that writes down what it sees, and stops when told to."""

    def __init__(self, stop_at=None):
        self.stop_at, self.seen, self.fitted, self.torn_down = stop_at, [], [], 0

    def setup(self, estimator, context):
        self.seen.clear()

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.seen.append((context.task_name, context.task_id))
        self.fitted.append(fitted_estimator.predict_proba(X))
        return context.task_name == "iteration" and context.task_id == self.stop_at


@every_estimator
class TestCallbacks:
    @pytest.mark.parametrize("stop_at", [0, 1, 3])
    def test_a_callback_stops_the_fit(self, kind, stop_at):
        X, y = overlapping_for(kind)
        recorder = Recorder(stop_at)
        clf = kind(learner=RC(lr=0.01, step="fixed", generative_weight=0.0)).set_callbacks(recorder).fit(X, y)
        assert clf.status_ is Status.CALLBACK
        assert clf.n_iter_ == stop_at
        assert [task for name, task in recorder.seen if name == "iteration"] == list(range(stop_at + 1))
        assert recorder.seen[-1][0] == "fit"
        assert recorder.torn_down == 1
        if stop_at:
            same = kind(learner=RC(lr=0.01, max_iter=stop_at, step="fixed", generative_weight=0.0)).fit(X, y)
            assert clf.statistics_ == same.statistics_
        np.testing.assert_array_equal(recorder.fitted[-1], clf.predict_proba(X))
        np.testing.assert_array_equal(recorder.fitted[-2], clf.predict_proba(X))

    def test_a_callback_that_does_not_stop_changes_nothing(self, kind):
        X, y = overlapping_for(kind)
        recorder = Recorder()
        clf = kind().set_callbacks(recorder).fit(X, y)
        assert clf.statistics_ == kind().fit(X, y).statistics_
        assert len(recorder.seen) == clf.history_["accepted"].sum() + 1

    def test_teardown_after_an_error(self, kind):
        class Failing(Recorder):
            def on_fit_task_end(self, estimator, context):
                raise RuntimeError("a fault of the callback")

        X, y = overlapping_for(kind)
        failing = Failing()
        with pytest.raises(RuntimeError, match="a fault"):
            kind().set_callbacks(failing).fit(X, y)
        assert failing.torn_down == 1

    def test_closed_form(self, kind):
        X, y = data_for(kind)
        recorder = Recorder()
        clf = kind(learner="closed_form").set_callbacks(recorder).fit(X, y)
        assert recorder.seen == [("fit", 0)]
        np.testing.assert_array_equal(recorder.fitted[-1], clf.predict_proba(X))

    def test_partial_fit(self, kind):
        X, y = overlapping_for(kind)
        recorder = Recorder()
        clf = kind().set_callbacks(recorder)
        clf.partial_fit(X, y, classes=[0, 1, 2])
        clf.partial_fit(X, y)
        assert recorder.torn_down == 2

    def test_scoring_monitor(self, kind):
        X, y = overlapping_for(kind)
        monitor = ScoringMonitor(scoring=["accuracy", "neg_log_loss"])
        clf = (
            kind(learner=RC(lr=0.05, max_iter=6, step="fixed", generative_weight=0.0))
            .set_callbacks(monitor)
            .fit(X, y)
        )
        data = monitor.get_logs().data
        iterations = [row for row in data if row["task_name"] == "iteration"]
        history = clf.history_
        accepted = history["accepted"]
        assert len(iterations) == accepted.sum()
        assert [row["task_id"] for row in iterations] == list(range(len(iterations)))
        close([1 - row["accuracy"] for row in iterations], history["error"][accepted])
        close([-row["neg_log_loss"] for row in iterations], history["log_loss"][accepted], rtol=1e-6)
        assert iterations[-1]["accuracy"] == clf.score(X, y)
        fit = [row for row in data if row["task_name"] == "fit"]
        assert len(fit) == 1
        assert fit[0]["accuracy"] == clf.score(X, y)

    def test_scoring_monitor_with_weights(self, kind):
        X, y = overlapping_for(kind)
        w = np.random.default_rng(0).uniform(0.1, 3, len(y))
        monitor = ScoringMonitor(scoring="accuracy")
        clf = kind(learner=RC(max_iter=3)).set_callbacks(monitor).fit(X, y, sample_weight=w)
        last = [row for row in monitor.get_logs().data if row["task_name"] == "iteration"][-1]
        assert last["accuracy"] == pytest.approx(clf.score(X, y, sample_weight=w))

    def test_progress_bar(self, kind, capsys):
        X, y = overlapping_for(kind)
        clf = kind(learner=RC(max_iter=3)).set_callbacks(ProgressBar()).fit(X, y)
        assert clf.n_iter_ >= 1
        out = capsys.readouterr().out
        assert type(clf).__name__ in out
        assert "100%" in out

    def test_callbacks_are_not_pickled_into_the_model(self, kind):
        X, y = data_for(kind)
        clf = kind().set_callbacks(ScoringMonitor(scoring="accuracy")).fit(X, y)
        assert not hasattr(clf, "_callback_fit_ctx")
        again = pickle.loads(pickle.dumps(clf))
        np.testing.assert_array_equal(again.predict(X), clf.predict(X))


@pytest.mark.parametrize("kind", [CategoricalNB, QuadraticDiscriminantAnalysis])
def test_progress_bar_on_a_search(kind, capsys):
    X, y = overlapping_for(kind)
    search = GridSearchCV(
        kind(learner=RC(max_iter=3)), {"learner__lr": [0.1, 0.5]}, cv=2, error_score="raise"
    )
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X, y)
    out = capsys.readouterr().out
    assert "GridSearchCV" in out
    assert kind.__name__ in out
    assert search.best_score_ > 0.34


def test_frames_are_handed_to_callbacks_as_they_came():
    X = KINDS["pandas"]
    monitor = ScoringMonitor(scoring="accuracy")
    clf = CategoricalNB().set_callbacks(monitor).fit(X, Y)
    assert monitor.get_logs().data[-1]["accuracy"] == clf.score(X, Y)


# --- memory -----------------------------------------------------------------------------------------


def peak_of(call):
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


MEGABYTE = 2**20


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", GAUSSIAN)
def test_a_fit_allocates_little(kind, dtype, weighted):
    rng = np.random.default_rng(0)
    m, n = 20000, 100
    y = rng.integers(5, size=m)
    X = (rng.standard_normal((m, n)) + 0.1 * rng.standard_normal((5, n))[y]).astype(dtype)
    w = rng.uniform(0.5, 2, m) if weighted else None
    clf = kind(learner=RC(max_iter=2))
    assert peak_of(lambda: clf.fit(X, y, sample_weight=w)) < 0.3 * X.nbytes + 64 * MEGABYTE
    out = m * 5 * 8
    assert peak_of(lambda: clf.predict_proba(X)) < 0.3 * X.nbytes + 6 * out + 64 * MEGABYTE


def test_nothing_of_the_size_of_x_is_allocated():
    """64 MB is more than the small table above; here the bound bites."""
    X = np.random.default_rng(0).standard_normal((100000, 64))  # 49 MiB
    y = np.arange(len(X)) % 2
    assert peak_of(lambda: QuadraticDiscriminantAnalysis(learner=RC(max_iter=1)).fit(X, y)) < 0.3 * X.nbytes


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_a_categorical_fit_allocates_little(dtype):
    """One byte a cell, where the input has more; nothing where it has one."""
    rng = np.random.default_rng(0)
    X = rng.integers(5, size=(200000, 50)).astype(dtype)
    y = rng.integers(3, size=len(X))
    codes = 0 if dtype == np.uint8 else X.size
    rows = 40 * len(y)  # labels and their codes
    clf = CategoricalNB(learner=RC(max_iter=2)).fit(X, y)  # what a compiler needs, once, is not the fit's
    peak = peak_of(lambda: clf.fit(X, y))
    assert peak < 0.3 * X.size + codes + rows + 16 * MEGABYTE
    assert peak < 0.3 * X.nbytes + codes + 64 * MEGABYTE


def test_a_categorical_fit_of_256_categories_takes_one_byte_a_cell():
    X = np.random.default_rng(0).integers(256, size=(100000, 100)).astype(np.uint8)
    X[0] = 255
    y = np.arange(len(X)) % 2
    assert peak_of(lambda: CategoricalNB(learner="closed_form").fit(X, y)) < 12 * MEGABYTE


def test_a_frame_of_categories_takes_one_byte_a_cell():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(5, size=(200000, 50)).astype(np.uint8)).rename(columns=str)
    y = rng.integers(3, size=len(X))
    assert peak_of(lambda: CategoricalNB(learner=RC(max_iter=1)).fit(X, y)) < 1.3 * X.size + 32 * MEGABYTE


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.float32, np.float64])
def test_a_negative_code_is_unseen_in_every_type(dtype):
    X = np.array([[0, 1], [1, 0], [2, 1], [0, 0]])
    clf = CategoricalNB(learner="closed_form").fit(X, [0, 1, 0, 1])
    close(clf.predict_proba(np.array([[-1, 1]], dtype=dtype)), clf.predict_proba([[9, 1]]))
