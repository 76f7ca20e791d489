"""Rows added, taken out, merged and calibrated on: masses, names, and what was never counted."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris

from riskbayes import (
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    GenerativeClassifier,
    LinearDiscriminantAnalysis,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
)
from riskbayes.estimators.streaming import more_rows
from riskbayes.learners import GD, RC, RCCV, TM
from riskbayes.models import GaussianNBModel, LDAModel, MixtureModel, ProductModel, QDAModel, TreeModel
from riskbayes.models.base import Fitted
from riskbayes.objectives import LogLoss

IRIS = load_iris(return_X_y=True)
GAUSSIAN = [GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis]


def generic(**given):
    """Two Gaussian models of the same rows, side by side."""
    return GenerativeClassifier(ProductModel((QDAModel(), GaussianNBModel()), (0.5, 0.5)), **given)


every_estimator = pytest.mark.parametrize(
    "kind", [CategoricalNB, *GAUSSIAN, generic], ids=lambda kind: kind.__name__
)
gaussian = pytest.mark.parametrize("kind", [*GAUSSIAN, generic], ids=lambda kind: kind.__name__)


def rows_for(kind, seed=0, m=150, n=4):
    """Three classes that overlap, and weights."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 3
    X = rng.standard_normal((m, n)) + 1.5 * rng.standard_normal((3, n))[y]
    X = np.clip(np.floor(X + 2), 0, 4).astype(int) if kind is CategoricalNB else X
    return X, y, rng.uniform(0.5, 2.0, m)


# --- mass -----------------------------------------------------------------------------------------------

LEARNERS = [
    RC.paper(),
    RC(),
    RC(max_iter=4, batch_size=20, random_state=0, generative_weight=0.0),
    RC(max_iter=4, n_restarts=2, random_state=0),
    RC(max_iter=8, early_stopping=True, random_state=0),
    RC(max_iter=8, early_stopping=True, validation_fraction=0.4, generative_weight=0.1, random_state=1),
    RC(max_iter=8, early_stopping=True, refit=True, random_state=0),
    RCCV(cv=3, max_iter=4, random_state=0),
    TM(max_iter=4),
    GD(max_iter=4),
]


@every_estimator
@pytest.mark.filterwarnings(
    "ignore::riskbayes.FlooredWarning"
)  # of rows that were not counted with such weights
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_calibrated_statistics_have_the_mass_of_the_rows_that_were_counted(kind, learner):
    if kind is generic and isinstance(learner, GD):
        pytest.skip("a product has no natural parameters")
    X, y, w = rows_for(kind)

    def check(clf, mass):
        assert clf.data_statistics_.total == pytest.approx(mass, rel=1e-9)
        assert clf.statistics_.total == pytest.approx(mass, rel=1e-9)
        assert clf.model_.is_legal(clf.statistics_)
        theta = clf.model_.parameters(clf.statistics_)
        Z = clf.model_.encode(X, clf.statistics_.frame)
        joint = clf.model_.log_joint(Z, clf.model_.cast(theta, Z))
        np.testing.assert_allclose(clf.predict_joint_log_proba(X), joint, rtol=1e-7)

    first, second = slice(0, 90), slice(90, 150)
    fitted = kind(learner=learner, warm_start=True).fit(X[first], y[first], w[first])
    check(fitted, w[first].sum())
    one_step = RC() if isinstance(learner, RCCV) else clone(learner)
    if isinstance(one_step, RC):
        one_step.set_params(early_stopping=False, n_restarts=0)
    fitted.set_params(learner=one_step)
    check(fitted.partial_fit(X[second], y[second], sample_weight=w[second]), w.sum())
    fitted.set_params(learner=learner)
    check(fitted.calibrate(X[second], y[second], w[second]), w.sum())
    check(fitted.calibrate(X, y, w), w.sum())
    check(fitted.forget(X[:9], y[:9], w[:9]), w[9:].sum())
    other = kind(learner=learner).fit(X[second], y[second], w[second])
    check(fitted.merge(other), w[9:].sum() + w[second].sum())
    check(fitted.calibrate(X[second], y[second], 2 * w[second]), w[9:].sum() + w[second].sum())
    check(fitted.calibrate(X, y, 9 * w), w[9:].sum() + w[second].sum())
    check(fitted.fit(X[first], y[first]), 90)


@pytest.mark.filterwarnings("ignore::riskbayes.exceptions.FlooredWarning")  # of what forget leaves
@pytest.mark.parametrize(
    ("learner", "instead"),
    [
        (RC(early_stopping=True, random_state=0), r"early_stopping=False.*n_restarts=0"),
        (RC(n_restarts=2, random_state=0), r"early_stopping=False.*n_restarts=0"),
        (
            RC(early_stopping=True, n_restarts=1, refit=True, random_state=0),
            r"early_stopping=False.*n_restarts=0",
        ),
        (RCCV(cv=3, max_iter=4, random_state=0), "an RC, or call fit"),
    ],
)
def test_partial_fit_refuses_what_one_step_cannot_do(learner, instead):
    """Before any work, and in the first batch as in the next; what needs no learner goes on."""
    X, y, _ = rows_for(GaussianNB)
    clf = GaussianNB(learner=learner)
    with pytest.raises(ValueError, match=rf"partial_fit takes one step.*{instead}"):
        clf.partial_fit(X, y, classes=[0, 1, 2])
    assert not hasattr(clf, "classes_")
    before = clf.fit(X, y).predict_proba(X)
    with pytest.raises(ValueError, match="partial_fit takes one step"):
        clf.partial_fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), before)
    clf.merge(clone(clf).fit(X, y)).forget(X, y).calibrate(X, y)


def test_calibrating_a_stream_on_few_rows_keeps_its_mass_and_its_closed_form():
    """A heavy anchor holds S at the statistics of the stream, not at those of the few rows."""
    X, y = load_breast_cancer(return_X_y=True)
    for held in (False, True):
        clf = GaussianNB(learner="closed_form").fit(X, y)
        before = clf.data_statistics_
        learner = RC(generative_weight=1e6, early_stopping=held, monitor="log_loss", random_state=0)
        clf.set_params(learner=learner).calibrate(X[:60], y[:60])
        assert clf.statistics_.total == pytest.approx(569)
        assert clf.data_statistics_.allclose(before, rtol=0.0)
        assert clf.statistics_.allclose(before, rtol=0.2)


@every_estimator
def test_a_warm_start_has_the_mass_of_the_new_rows(kind):
    """Where the old rows were many, the new ones must not be drowned: S is that of one fit."""
    X, y, _ = rows_for(kind)
    # Pseudo-counts and a prior weigh less beside many rows.
    ml = {"alpha": 0.0} if kind is CategoricalNB else {"prior": None} if kind in GAUSSIAN else {}
    clf = kind(learner=RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0), warm_start=True, **ml)
    clf.fit(np.repeat(X, 20, axis=0), np.repeat(y, 20)).fit(X, y)
    assert clf.statistics_.total == pytest.approx(len(y))
    six = kind(learner=RC(lr=0.1, max_iter=6, step="fixed", generative_weight=0.0), **ml).fit(X, y)
    assert clf.statistics_.allclose(six.statistics_, rtol=1e-6)


def test_a_warm_start_with_fewer_or_more_categories():
    """All frames agree, and a validation row's category is read as what it is."""
    y = [0, 1, 0, 1]
    few, many = [[0], [1], [1], [0]], [[0], [3], [1], [2]]
    for first, second in ((few, many), (many, few)):
        clf = CategoricalNB(warm_start=True, learner=RC(max_iter=2)).fit(first, y)
        clf.fit(second, y, X_val=[[3], [2], [1]], y_val=[1, 1, 0])
        assert clf.n_categories_.tolist() == [4]
        assert clf.category_count_[0].shape == (2, 4)
        P = clf.predict_proba([[3], [2], [1]])[[0, 1, 2], [1, 1, 0]]
        assert 1 - P.mean() == pytest.approx(clf.history_["val_soft_error"][clf.best_iteration_])


# --- names of columns, and weights that depend on all rows -------------------------------------------------


def frame_of(X, names=None):
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])] if names is None else names)


@every_estimator
def test_columns_of_another_name_or_order_are_refused(kind):
    X, y, _ = rows_for(kind)
    ours = frame_of(X)
    for theirs in (ours[ours.columns[::-1]], ours.rename(columns={"x2": "z"})):
        j = 0 if theirs.columns[0] != "x0" else 2
        a, b = kind(learner="closed_form").fit(ours, y), kind(learner="closed_form").fit(theirs, y)
        before, again = a.data_statistics_, kind(warm_start=True).fit(ours, y)
        message = f"column {j} is 'x{j}' here and '{theirs.columns[j]}' there"
        with pytest.raises(ValueError, match=f"merge needs the same columns.*{message}"):
            a.merge(b)
        assert a.data_statistics_ is before
        start = again.statistics_
        with pytest.raises(ValueError, match=r"warm_start needs the same columns in the same order"):
            again.fit(theirs, y)
        assert again.statistics_ is start
        assert again.feature_names_in_.tolist() == ours.columns.tolist()
    both = kind(learner="closed_form").fit(ours, y).merge(kind(learner="closed_form").fit(ours, y))
    assert both.data_statistics_.total == 2 * len(y)


@every_estimator
def test_columns_without_names_are_matched_by_position_with_a_warning(kind):
    X, y, _ = rows_for(kind)
    plain, named = kind(learner="closed_form").fit(X, y), kind(learner="closed_form").fit(frame_of(X), y)
    with pytest.warns(UserWarning, match="matched by position") as caught:
        merged = plain.merge(named)
    assert caught[0].filename == __file__
    assert merged.data_statistics_.total == 2 * len(y)
    warm = kind(warm_start=True).fit(frame_of(X), y)
    with pytest.warns(UserWarning, match="matched by position") as caught:
        warm.fit(X, y)
    assert caught[0].filename == __file__


@every_estimator
def test_balanced_weights_are_not_merged(kind):
    """They depend on all rows together: the sum is not the fit of all rows."""
    X, y, _ = rows_for(kind)
    plain = kind(learner="closed_form").fit(X, y)
    balanced = kind(learner="closed_form", class_weight="balanced").fit(X[:100], y[:100])
    for one, other in ((plain, balanced), (balanced, plain)):
        before = one.data_statistics_
        with pytest.raises(ValueError, match="class_weight='balanced' depends on all rows"):
            one.merge(other)
        assert one.data_statistics_ is before


@every_estimator
def test_a_batch_without_weight_is_refused_and_leaves_nothing_behind(kind):
    """As a batch of no rows is: the stream goes on without it."""
    X, y, w = rows_for(kind)
    clf, expected = (kind(learner="closed_form") for _ in range(2))
    for part in (slice(0, 60), slice(60, 150)):
        with pytest.raises(ValueError, match="at least one non-zero"):
            clf.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=np.zeros(len(y[part])))
        for stream in (clf, expected):
            stream.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=w[part])
    np.testing.assert_array_equal(clf.predict_proba(X), expected.predict_proba(X))


@given(seed=st.integers(0, 2**32 - 1), least=st.sampled_from([None, 1, 4, 9]))
def test_a_merge_has_as_many_categories_as_one_fit(seed, least):
    """Places that `min_categories` adds in one model stood beside names that only the other has."""
    rng = np.random.default_rng(seed)
    y, m, n = np.arange(40) % 2, 40, 3
    X = np.char.add("v", (rng.integers(2**31, size=(m, n)) % rng.integers(1, 8, n)).astype(str))
    cut = int(rng.integers(2, m - 1))
    clf = CategoricalNB(learner="closed_form", min_categories=least)
    parts = slice(None), slice(cut), slice(cut, None)
    expected, one, other = (clone(clf).fit(X[part], y[part]) for part in parts)
    one.merge(other)
    np.testing.assert_array_equal(one.n_categories_, expected.n_categories_)
    np.testing.assert_allclose(one.predict_proba(X), expected.predict_proba(X), atol=1e-12)


def test_covariances_of_one_part_are_not_merged():
    X, y = IRIS
    a, b = (LinearDiscriminantAnalysis(shrinkage="auto", learner="closed_form").fit(X, y) for _ in "ab")
    with pytest.raises(ValueError, match="all rows at once"):
        a.merge(b)


# --- forgetting -------------------------------------------------------------------------------------------


@gaussian
@pytest.mark.parametrize("learner", ["closed_form", "rc"])
@pytest.mark.parametrize("fault", ["moved", "labels", "one label", "weights"])
def test_rows_that_were_never_fitted_are_not_forgotten(kind, learner, fault):
    X, y = IRIS
    clf = kind(learner=learner).fit(X, y)
    before, P = clf.data_statistics_, clf.predict_proba(X)
    rows, labels, w = X[::10], y[::10], None
    if fault == "moved":
        rows = rows + 100
    elif fault == "labels":
        labels = (labels + 1) % 3
    elif fault == "one label":
        rows, labels = X[:10], np.ones(10, dtype=int)
    else:
        w = np.full(len(rows), 12.0)
        w[1::5] = 0.5
    with pytest.raises(ValueError, match=r"not all fitted|Nothing would be left"):
        clf.forget(rows, labels, w)
    assert clf.data_statistics_ is before
    np.testing.assert_array_equal(clf.predict_proba(X), P)


@every_estimator
@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")  # few rows are left
@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(-40, 40), st.integers(1, 4))
def test_rows_that_were_fitted_are_always_forgotten(kind, seed, single, scale, parts):
    """In any part and order, until one row of each class is left."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(12, 200)), int(rng.integers(1, 7))
    X, y, w = rows_for(kind, seed, m, n)
    if kind is not CategoricalNB:
        X[:, rng.random(n) < 0.2] = 3.0  # constant columns
        X = (X + rng.choice([0, 0, 1e3]) * rng.standard_normal(n)) * 2.0**scale
        X[rng.random(m) < 0.1] *= 50.0  # and rows far away
        X = X.astype(np.float32 if single else np.float64)
    w = w if rng.random() < 0.5 else np.ones(m)
    clf = kind(learner="closed_form")
    for rows in np.array_split(np.arange(m), 2):
        clf.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=w[rows])
    order = rng.permutation(np.arange(3, m))  # the first three rows are one of each class
    for rows in np.array_split(order, parts if m < 60 else [m // 2, m - 10, m - 5, m - 4]):
        clf.forget(X[rows], y[rows], w[rows])
    np.testing.assert_allclose(clf.data_statistics_["s0"], w[:3], rtol=1e-9)


@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
def test_many_rows_in_single_precision_are_forgotten_one_by_one():
    rng = np.random.default_rng(0)
    y = np.arange(30_000) % 2
    X = (rng.standard_normal((30_000, 5)) + 2.0 * y[:, None]).astype(np.float32)
    for kind in GAUSSIAN:
        clf = kind(learner="closed_form").fit(X, y).forget(X[60:], y[60:])
        for i in range(2, 60):
            clf.forget(X[i : i + 1], y[i : i + 1])
        assert clf.data_statistics_["s0"].tolist() == [1, 1]


# --- the anchor in a stream ---------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("objective", ["log_loss", "soft_error"])
def test_the_step_of_a_batch_is_that_of_its_share_of_the_stream(kind, objective):
    """The k-th copy of the same rows: a step of fit on all copies, of lr / k."""
    X, y, w = rows_for(kind)
    g, lr = 2.0, 0.2
    plain = {"prior": None} if kind in GAUSSIAN else {}
    clf = kind(learner=RC(lr=lr, generative_weight=g, objective=objective, step="fixed"), **plain)
    for copies in range(1, 4):
        earlier = clf.statistics_ if copies > 1 else None
        clf.partial_fit(X, y, classes=[0, 1, 2], sample_weight=w)
        assert clf.history_["accepted"].all()
        assert clf.n_iter_ == 1
        one = kind(learner="closed_form").fit(X, y, w).data_statistics_
        start = one if earlier is None else earlier + one
        whole = kind(learner="closed_form").fit(X, y, copies * w)
        whole.statistics_, whole.parameters_ = start, whole.model_.parameters(start)
        step = RC(lr=lr / copies, generative_weight=g, objective=objective, max_iter=1, step="fixed")
        whole.set_params(learner=step).calibrate(X, y, copies * w)
        assert clf.statistics_.allclose(whole.statistics_, rtol=1e-9)


@every_estimator
def test_the_anchor_goes_down_what_is_monitored(kind):
    """At the closed form of a long stream only the batch pulls; far from it the anchor does by its share."""
    X, y, _ = rows_for(kind, m=300)
    learner = RC(lr=1e-4, generative_weight=1.0, monitor="objective", max_iter=1, step="fixed")
    clf = kind(learner="closed_form").fit(X, y)
    clf.set_params(learner=RC(lr=0.3, max_iter=20, step="fixed", generative_weight=0.0)).calibrate(X, y)
    start = clf.statistics_
    clf.set_params(learner=learner).calibrate(X[:30], y[:30])
    assert clf.history_["accepted"].tolist() == [True, True]
    moved = (1 / 1e-4) * (clf.statistics_ - start)
    engine, _ = more_rows(clf, X[:30], y[:30], None)
    scan = engine.scan(Fitted.of(clf.model_, start), LogLoss())
    expected = scan.dS + 0.1 * (clf.data_statistics_ - start)
    assert moved.allclose(expected, rtol=1e-3, atol=1e-6)


def test_minibatches_of_a_batch_step_as_far_as_the_batch():
    X, y, _ = rows_for(GaussianNB)
    clf = [GaussianNB(learner="closed_form").fit(X, y) for _ in range(2)]
    for one, size in zip(clf, (None, 30), strict=True):
        one.set_params(
            learner=RC(lr=1e-3, batch_size=size, random_state=0, generative_weight=0.0)
        ).partial_fit(X[:30], y[:30])
    assert clf[1].statistics_.allclose(clf[0].statistics_, rtol=1e-9)


# --- what a user's model returns ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("writeable", [True, False])
def test_what_a_users_log_joint_returns_is_not_overwritten(order, writeable):
    kept = {}

    @dataclass(frozen=True)
    class Cached(LDAModel):
        """Hands out the same array for the same rows and parameters."""

        def log_joint(self, Z, theta):
            key = Z.values.tobytes(), theta.means.tobytes()
            if key not in kept:
                found = np.array(LDAModel.log_joint(self, Z, theta), order=order)
                found.flags.writeable = writeable
                kept[key] = found, found.copy()
            return kept[key][0]

        def scores(self, Z, theta):
            return self.log_joint(Z, theta)

    X, y = IRIS
    clf = GenerativeClassifier(Cached(), learner=RC(max_iter=5)).fit(X, y)
    plain = GenerativeClassifier(LDAModel(), learner=RC(max_iter=5)).fit(X, y)
    for rows in (X, X[:1]):
        for _ in range(2):
            np.testing.assert_allclose(clf.predict_proba(rows), plain.predict_proba(rows), atol=1e-12)
            np.testing.assert_allclose(
                clf.predict_log_proba(rows), plain.predict_log_proba(rows), rtol=1e-9, atol=1e-12
            )
            costs = 1 - np.eye(3)
            np.testing.assert_array_equal(clf.decide(rows, costs), plain.decide(rows, costs))
    assert clf.statistics_.allclose(plain.statistics_, rtol=1e-12)
    for found, first in kept.values():
        np.testing.assert_array_equal(found, first)


# --- missing cells --------------------------------------------------------------------------------------

ADDING = {
    "CategoricalNB": CategoricalNB(),
    "BernoulliNB": BernoulliNB(),
    "PoissonNB": PoissonNB(),
    "GaussianNB": GaussianNB(),
    "GaussianNB, no smoothing": GaussianNB(var_smoothing=0.0),
    "GaussianNB, prior": GaussianNB(mean_strength=1.0, variance_strength=2.0),
    "mixture of naive Bayes": GenerativeClassifier(MixtureModel(GaussianNBModel())),
}
NOT_ADDING = {
    "LDA": LinearDiscriminantAnalysis(),
    "QDA": QuadraticDiscriminantAnalysis(prior="recommended"),
    "mixture of LDA": GenerativeClassifier(MixtureModel(LDAModel())),
    "product": generic(),
    "tree": GenerativeClassifier(TreeModel(parents=((), (0,), (1,), (0,)), alpha=1.0)),
}


def holey_rows(seed, counts, m=60, n=4):
    """Rows of three classes with cells missing at random; a column is missing in a class, or in a batch."""
    rng = np.random.default_rng(seed)
    y = np.r_[0, 1, 2, rng.integers(3, size=m - 3)]
    X = rng.integers(0, 3, (m, n)).astype(float)
    if not counts:
        X = (rng.standard_normal((m, n)) + y[:, None] + rng.uniform(-9, 9)) * 10.0 ** rng.integers(-3, 4, n)
    X[rng.random(X.shape) < rng.choice([0.1, 0.5])] = np.nan
    X[-1] = X[0] = np.nanmax(X, axis=0)  # every column has cells, and every category
    if rng.random() < 0.5:
        X[y == 1, 2] = np.nan
    first = int(rng.integers(1, m - 1))
    if rng.random() < 0.5:
        X[:first, 1] = np.nan
    return X, y, rng.integers(1, 4, m) * rng.choice([1.0, 0.3]), first


@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
@pytest.mark.parametrize("clf", ADDING.values(), ids=ADDING)
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_batches_with_missing_cells_are_one_fit(clf, seed):
    X, y, w, first = holey_rows(seed, isinstance(clf, CategoricalNB | BernoulliNB | PoissonNB))
    whole = clone(clf).set_params(learner="closed_form").fit(X, y, w)
    P, stream = whole.predict_log_proba(X), clone(whole)
    few = np.random.default_rng(seed).integers(1, 30)
    for part in (slice(first), *(slice(i, i + few) for i in range(first, len(y), few))):
        stream.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=w[part])
    np.testing.assert_allclose(stream.predict_log_proba(X), P, rtol=1e-7, atol=1e-7)
    parts = [slice(first), slice(first, None)]
    for order in (parts, parts[::-1]):
        one, other = (
            clone(whole).partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=w[part])
            for part in order
        )
        np.testing.assert_allclose(one.merge(other).predict_log_proba(X), P, rtol=1e-7, atol=1e-7)
    kept, gone = slice(40), slice(40, None)
    cells = np.array([np.isfinite(X[kept][y[kept] == k]).sum(axis=0) for k in range(3)])
    # Of a single cell forgetting leaves a variance of rounding; CategoricalNB counts the categories of a fit.
    if not ((cells == 1) | (cells == 2)).any() and not isinstance(clf, CategoricalNB):
        rest = clone(whole).fit(X[kept], y[kept], w[kept]).predict_log_proba(X[kept])
        found = whole.forget(X[gone], y[gone], w[gone]).predict_log_proba(X[kept])
        np.testing.assert_allclose(found, rest, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
@pytest.mark.parametrize("clf", NOT_ADDING.values(), ids=NOT_ADDING)
@pytest.mark.parametrize("learner", ["closed_form", RC(max_iter=2)], ids=str)
def test_batches_whose_missing_cells_need_all_rows_are_refused(clf, learner):
    X, y, w, _ = holey_rows(0, clf.get_params().get("model") == NOT_ADDING["tree"].model)
    whole, clf = np.nan_to_num(X), clone(clf).set_params(learner=learner)
    fitted = {name: clone(clf).fit(rows, y, w) for name, rows in (("missing", X), ("complete", whole))}
    before = fitted["missing"].predict_proba(X)
    with pytest.raises(ValueError, match="EM finds from all rows together"):
        clf.partial_fit(X, y, classes=[0, 1, 2])
    assert not hasattr(clf, "classes_")
    for one, other, rows in (("missing", "complete", whole), ("complete", "missing", X)):
        with pytest.raises(ValueError, match="EM finds from all rows together"):
            fitted[one].partial_fit(rows, y)
        with pytest.raises(ValueError, match="EM finds from all rows together"):
            fitted[one].merge(fitted[other])
    np.testing.assert_array_equal(fitted["missing"].predict_proba(X), before)
    fitted["complete"].partial_fit(whole, y).merge(clone(clf).fit(whole, y))
