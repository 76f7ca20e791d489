"""Quasi-Newton steps: their coordinates against finite differences, their optimum against other people's."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from conftest import MODELS, WatchedRC, random_rows
from riskbayes import (
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    GenerativeClassifier,
    KDependenceNB,
    MixtureDiscriminantAnalysis,
    PoissonNB,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    SmoothNB,
)
from riskbayes.engines import MemoryEngine
from riskbayes.learners import RC
from riskbayes.learners.quasi_newton import OPTIMAL, SHORTER, SMALL, Ascent, QuasiNewtonStep
from riskbayes.models import (
    BernoulliModel,
    CategoricalModel,
    ComplementModel,
    ConditionalGaussianModel,
    GaussianNBModel,
    LDAModel,
    MixtureModel,
    MultinomialModel,
    PoissonModel,
    ProductModel,
    QDAModel,
    SmoothModel,
    TreeModel,
)
from riskbayes.models.base import Fitted
from riskbayes.models.coordinates import TableCoordinates
from riskbayes.preprocessing import KMeansBins
from riskbayes.task import Status, Task

every_model = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)


def task_of(model, seed, missing=False, m=40):
    """Random rows of a model, some of their cells missing if it takes that."""
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(model, rng, m=m)
    if missing and model.traits.takes_missing:
        X = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    engine = MemoryEngine(X, y, w, 3)
    return Task(model, engine, model.fix_prior(engine.statistics(model, engine.learn(model))))


def two_experts(power=0.4):
    """A product of tables with powers of their own."""
    return ProductModel((SmoothModel(n_knots=3, alpha=1.0), SmoothModel(alpha=0.5)), (0.7, power))


def by_logarithms(model):
    """True if all coordinates of a model are logarithms: their gradient is exact."""
    own = task_of(model, 0)
    found = model.coordinates(own.S)
    return all(isinstance(each, TableCoordinates) for each in getattr(found, "parts", [found]))


TABLES = [kind for kind in MODELS if by_logarithms(kind())]
SMOOTHED = [
    *(partial(kind, alpha=1.0) if "alpha" in kind.__dataclass_fields__ else kind for kind in TABLES),
    *(two_experts, partial(two_experts, -0.4), partial(PoissonModel, alpha=3.0)),
    partial(TreeModel, parents=((), (0,), (0, 1)), alpha=0.5, backoff=2.0),
]


def value_of(step, task, S):
    """The monitored quantity, and the scan."""
    fitted = Fitted.of(task.model, S)
    scan = task.engine.scan(fitted, step.objective)
    return step.value(scan.risks.mean(), fitted.theta), scan, fitted


def moved(step, rng, size=0.3):
    """Statistics away from the closed form."""
    at = step.flat(step.coordinates.point(Fitted.of(step.task.model, step.task.S)))
    away = size * step.flat(step.coordinates.unit) * rng.standard_normal(at.shape)
    return step.coordinates.statistics(step.unflat(at + away))


def test_the_tables_are_there():
    names = {kind.__name__ for kind in TABLES}
    assert names >= {"CategoricalModel", "BernoulliModel", "MultinomialModel", "PoissonModel", "SmoothModel"}
    assert names >= {"TreeModel", "MarkModel", "BinnedModel", "ComplementModel"}
    assert names.isdisjoint({"GaussianNBModel", "QDAModel", "LeavesModel"})


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weight", [0.0, 0.3])
@pytest.mark.parametrize("make", SMOOTHED)
@given(seed=st.integers(0, 2**16))
def test_the_gradient_by_logarithms_is_that_of_finite_differences(make, weight, missing, seed):
    """Of the monitored quantity with its anchor, with missing cells too; and S keeps its total.

    Off the floors of the closed form, where there is no gradient.
    """
    task = task_of(make(), seed, missing, m=120)
    weight = weight if task.model.implements("log_likelihood") else 0.0
    step, rng, h = RC(generative_weight=weight).begin(task), np.random.default_rng(seed), 1e-5
    S = moved(step, rng)
    _, scan, fitted = value_of(step, task, S)
    assume(not np.any(fitted.theta.floored))
    dS = (1.0 / task.engine.mass) * scan.dS
    gradient = step.flat(step.coordinates.gradient(dS, weight, fitted))
    at = step.flat(step.coordinates.point(fitted))

    def value(x):
        return value_of(step, task, step.coordinates.statistics(step.unflat(x)))[0]

    for d in (rng.standard_normal(at.shape), gradient / max(1e-12, np.linalg.norm(gradient))):
        slope = (value(at + h * d) - value(at - h * d)) / (2 * h)
        assert -slope == pytest.approx(gradient @ d, rel=1e-5, abs=1e-8)
    assert S.total == pytest.approx(task.S.total)


@pytest.mark.parametrize("make", [make for make in SMOOTHED if make().implements("log_likelihood")])
@given(seed=st.integers(0, 2**16))
def test_an_anchor_does_not_pull_at_the_closed_form(make, seed):
    task = task_of(make(), seed)
    fitted = Fitted.of(task.model, task.S)
    assume(not np.any(fitted.theta.floored))
    gradient = task.model.coordinates(task.S).gradient(0.0 * task.S, 1.0, fitted)
    for value in gradient.values():
        np.testing.assert_allclose(value, 0.0, atol=1e-12)


HELD = {"covariance_strength": 20.0, "mean_strength": 2.0}
GIVEN = {"class_prior": np.array([0.2, 0.3, 0.5])}


@pytest.mark.parametrize("arguments", [{}, HELD, GIVEN, HELD | GIVEN], ids=["ML", "MAP", "p(y)", "both"])
@pytest.mark.parametrize("kind", [GaussianNBModel, LDAModel, QDAModel])
@given(seed=st.integers(0, 2**16))
def test_an_anchor_of_moments_pulls_along_what_it_monitors(kind, arguments, seed):
    """Slopes in one metric: that of the risk along the pull is that of the anchor along the risk's step."""
    task = task_of(kind(**arguments), seed, m=120)
    step, rng, h = RC(generative_weight=1.0).begin(task), np.random.default_rng(seed), 1e-5
    S = moved(step, rng, 0.02)
    assume(task.model.is_legal(S))
    _, scan, fitted = value_of(step, task, S)
    assume(not np.any(fitted.theta.floored))
    dS = (1.0 / task.engine.mass) * scan.dS
    ours, both = (step.flat(step.coordinates.gradient(dS, weight, fitted)) for weight in (0.0, 1.0))
    at = step.flat(step.coordinates.point(fitted))

    def risk_and_anchor(x):
        value, scan, _ = value_of(step, task, step.coordinates.statistics(step.unflat(x)))
        risk = scan.risks.mean()["log_loss"]
        return np.array([risk, value - risk])

    along_pull, along_ours = (
        (risk_and_anchor(at + h * d) - risk_and_anchor(at - h * d)) / (2 * h) for d in (both - ours, ours)
    )
    assert along_pull[0] == pytest.approx(along_ours[1], rel=1e-3, abs=1e-7)


@pytest.mark.parametrize("kind", [GaussianNBModel, LDAModel, QDAModel])
def test_an_anchor_does_not_pull_at_what_the_rows_do_not_determine(kind):
    """A constant column in any unit: the variance that stands in for its own does not move."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    X, gradients = np.column_stack([rng.standard_normal((60, 2)) + y[:, None], np.full(60, 1e6)]), []
    for unit in (1.0, 2.0**20):
        engine, model = MemoryEngine(unit * X, y, None, 3), kind(**HELD)
        task = Task(model, engine, model.fix_prior(engine.statistics(model, engine.learn(model))))
        step = RC(generative_weight=1.0).begin(task)
        point = step.coordinates.point(Fitted.of(model, task.S))
        away = {name: value + 0.01 * (name == "s0") * np.arange(3) for name, value in point.items()}
        fitted = Fitted.of(model, step.coordinates.statistics(away))
        gradients.append(step.coordinates.gradient(0.0 * task.S, 1.0, fitted))
    for name, value in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], value, rtol=1e-9, atol=1e-12)
        if name.startswith("s2"):
            np.testing.assert_allclose(value[..., -1], 0.0, atol=1e-12)


def test_tables_far_apart_have_a_distribution_each():
    """Features far below the first do not underflow as a whole; one cell far below leaves the others."""
    model, rng = CategoricalModel(alpha=1.0), np.random.default_rng(0)
    coordinates = model.coordinates(task_of(model, 0).S)
    frame = coordinates.S.frame
    first = frame.spread(np.arange(len(frame.n_categories))[None, :] == 0)[0]
    logs = rng.standard_normal(coordinates.S["counts"].shape)
    found = coordinates.distribution(np.where(first, logs, logs - 2000.0))
    np.testing.assert_allclose(coordinates.sums(found), 1.0)
    np.testing.assert_allclose(found[:, first], coordinates.distribution(logs)[:, first])
    deep = logs.copy()
    deep[:, 0] = -1e5
    found, kept = coordinates.distribution(deep), np.exp(logs[:, 1 : frame.n_categories[0]])
    np.testing.assert_allclose(found[:, 1 : frame.n_categories[0]], kept / kept.sum(axis=1, keepdims=True))


def test_steps_of_moments_keep_the_mass():
    """Whatever the last digits of a point are, its classes have the mass of the rows."""
    coordinates = task_of(QDAModel(), 0).model.coordinates(task_of(QDAModel(), 0).S)
    point = {name: np.ones_like(unit) / unit for name, unit in coordinates.unit.items()}
    point["s0"] = point["s0"] * (1 + 1e-6)
    assert coordinates.statistics(point).total == pytest.approx(coordinates.S.total, rel=1e-15)


@pytest.mark.parametrize(
    "model", [CategoricalModel(class_alpha=2.0), TreeModel(parents=((),) * 3, class_alpha=2.0)]
)
def test_tables_keep_a_mass_much_smaller_than_the_pseudo_counts(model):
    """p(y) has few of the digits of such masses."""
    task = task_of(model, 0)
    S = model.fix_prior((1e-9 / task.S.total) * task.S)
    coordinates, rng = model.coordinates(S), np.random.default_rng(0)
    point = coordinates.point(Fitted.of(model, S))
    for _ in range(5):
        point["s0"] = point["s0"] + 1e-11 * rng.standard_normal(3)
        there = coordinates.statistics(point)
        assert model.is_legal(there)
        assert there.total == pytest.approx(S.total, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("missing", [False, True])
@every_model
@given(seed=st.integers(0, 2**16))
def test_coordinates_and_statistics_go_round(kind, missing, seed):
    """The point of a model, as statistics again, has the model's posteriors; the closed form has its own."""
    task = task_of(kind(), seed, missing)
    step, rng = RC(generative_weight=0.0).begin(task), np.random.default_rng(seed)
    for S in (task.S, moved(step, rng, 0.01)):
        if not task.model.is_legal(S):
            continue
        there = Fitted.of(task.model, S)
        point = step.coordinates.point(there)
        back = step.coordinates.statistics(step.unflat(step.flat(point)))
        assert back.total == pytest.approx(S.total)
        again = Fitted.of(task.model, back)
        Z = task.model.encode(task.engine.rows, task.S.frame)
        scores = [task.model.scores(Z, each.theta) for each in (there, again)]
        np.testing.assert_allclose(*(s - s[:, :1] for s in scores), rtol=1e-6, atol=1e-6)


NUMBERS = [
    partial(QDAModel, covariance_strength=5.0),
    partial(MixtureModel, LDAModel(covariance_strength=5.0), 2),
]
COUNTS = [partial(kind, alpha=1.0) for kind in (BernoulliModel, PoissonModel, MultinomialModel)]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("number", NUMBERS)
@given(seed=st.integers(0, 2**16))
def test_experts_of_two_kinds_go_round_when_class_masses_move(number, count, swapped, missing, seed):
    """Moments and tables side by side: each expert's parameters are those of its own coordinates."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(60) % 3)
    X = np.hstack([rng.standard_normal((60, 2)) + y[:, None], rng.random((60, 3)) < 0.3 + 0.1 * y[:, None]])
    experts, columns = [number(), count()], [(0, 1), (2, 3, 4)]
    if missing and all(expert.traits.takes_missing for expert in experts):
        X[rng.random(X.shape) < 0.1] = np.nan
    if swapped:
        experts, columns = experts[::-1], columns[::-1]
    model = ProductModel(tuple(experts), (0.7, 0.4), tuple(columns))
    engine = MemoryEngine(X, y, None, 3)
    task = Task(model, engine, model.fix_prior(engine.statistics(model, engine.learn(model))))
    step = RC(generative_weight=0.0).begin(task)
    at = step.flat(step.coordinates.point(Fitted.of(model, task.S)))
    there = step.unflat(at + 0.02 * rng.standard_normal(at.shape))
    S = step.coordinates.statistics(there)
    assume(model.is_legal(S))
    moved_to = Fitted.of(model, S)
    assume(not np.any(moved_to.theta.experts[0 if swapped else 1].floored))
    found = step.coordinates.point(moved_to)
    again = step.coordinates.statistics(found)
    Z = model.encode(X, task.S.frame)
    scores = [model.scores(Z, model.parameters(each)) for each in (S, again)]
    np.testing.assert_allclose(*(s - s[:, :1] for s in scores), rtol=1e-6, atol=1e-6)
    name = "0:counts" if swapped else "1:counts"
    asked, got = there[name], found[name]
    if count is not COUNTS[2]:  # whose logarithms are up to a constant
        np.testing.assert_allclose(got, asked, rtol=1e-6, atol=1e-6)


@every_model
@given(seed=st.integers(0, 2**16))
def test_rc_is_no_worse_than_the_closed_form_and_than_the_class_frequencies(kind, seed):
    """On labels that the columns do not tell, where the closed form is worse than the frequencies."""
    model = kind()
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(model, rng, m=30)
    engine = MemoryEngine(X, rng.permutation(y), w, 3)
    task = Task(model, engine, model.fix_prior(engine.statistics(model, engine.learn(model))))
    learner = WatchedRC(max_iter=12)
    found, step = learner.fit_statistics(task), RC().begin(task)
    alone = step.coordinates.independent()
    assert found.value <= found.start_value + 1e-12 * (1 + abs(found.start_value))
    assert found.status is not Status.RISK_ROSE or learner.sizes[-1] <= SMALL * max(learner.sizes)
    if model.is_legal(alone):
        scanned = value_of(step, task, alone)[0]
        if kind is not ComplementModel:  # its scores do not contain p(y)
            assert step.constant_value(alone) == pytest.approx(scanned, rel=1e-6, abs=1e-6)
        assert found.value <= max(scanned, step.constant_value(alone)) + 1e-9


WITH_PRIORS = [
    *(kind for kind in MODELS if kind is not ComplementModel),  # its scores do not contain p(y)
    *(partial(kind, mean_strength=2.0, covariance_strength=5.0) for kind in (GaussianNBModel, QDAModel)),
    partial(LDAModel, mean_strength=2.0, covariance_strength=5.0, class_alpha=1.0),
    lambda: ProductModel((QDAModel(covariance_strength=5.0), SmoothModel(alpha=1.0)), (0.7, 0.4)),
    *(partial(ConditionalGaussianModel, k=k, alpha=1.0, backoff=5.0) for k in (1, 2)),
]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("make", WITH_PRIORS)
def test_the_statistics_of_the_class_frequencies_have_no_other_posterior(make, missing):
    """A prior counts more in a class of few rows: the same statistics do not give the same parameters."""
    task = task_of(make(), 0, missing, m=90)
    S = task.model.coordinates(task.S).independent()
    scores = task.model.scores(task.model.encode(task.engine.rows, S.frame), task.model.parameters(S))
    np.testing.assert_allclose(scores - scores[:, :1], (scores - scores[:, :1])[:1] + 0.0 * scores, atol=1e-7)


def test_the_class_frequencies_are_the_next_try_where_the_closed_form_is_worse():
    """Fifty copies of a column of noise: naive Bayes counts it fifty times."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [190, 10])
    X = np.tile(rng.standard_normal((200, 1)), (1, 50))
    entropy = -(0.95 * np.log(0.95) + 0.05 * np.log(0.05))
    clf = GaussianNB(learner=RC(max_iter=1), prior=None).fit(X, y)
    assert clf.history_["log_loss"][0] > entropy
    assert clf.history_["log_loss"][1] == pytest.approx(entropy)
    assert clf.history_["accepted"].all()


def test_a_batch_of_a_stream_does_not_take_the_classes_apart_back():
    """Though each batch is worse off by the model so far than by its class frequencies."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    X = rng.standard_normal((600, 1)) + 0.3 * rng.standard_normal((600, 50)) + 0.5 * y[:, None]
    clf = GaussianNB(prior=None)
    for batch in np.arange(600).reshape(-1, 50):
        clf.partial_fit(X[batch], y[batch], classes=[0, 1])
        assert clf.history_["log_loss"][0] > 1.0
    data, own = (S["s1"] / S["s0"][:, None] for S in (clf.data_statistics_, clf.statistics_))
    assert (np.diff(own, axis=0) > 0.5 * np.diff(data, axis=0)).all()


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30])
def test_costs_in_any_unit_give_the_same_fit(unit):
    rng = np.random.default_rng(0)
    X, y, _ = random_rows(QDAModel(), rng, m=60)
    C = np.array([[0.0, 1.0, 2.0], [5.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    paths = [
        QuadraticDiscriminantAnalysis(learner=RC(objective=own, generative_weight=0.0)).fit(X, y).history_
        for own in (C, unit * C)
    ]
    np.testing.assert_allclose(paths[0]["cost"], paths[1]["cost"] / unit, rtol=1e-9)
    assert paths[0]["cost"][-1] < 0.9 * paths[0]["cost"][0]


@pytest.mark.parametrize("name", ["german_numer", "breast_cancer", "vehicle"])
def test_naive_bayes_without_a_prior_is_one_hot_logistic_regression_in_sixty_scans(name, paper_set):
    if name == "breast_cancer":
        from sklearn.datasets import load_breast_cancer

        X, y = load_breast_cancer(return_X_y=True)
        X = X[:, :5]
    else:
        X, y = paper_set(name)
    X = KMeansBins(3).fit_transform(X)
    y = np.unique(y, return_inverse=True)[1]
    keep = [
        j
        for j in range(X.shape[1])
        if all(np.bincount(X[y == k, j], minlength=X[:, j].max() + 1).min() > 0 for k in np.unique(y))
    ]
    X = X[:, keep]
    clf = CategoricalNB(alpha=0.0, learner=RC(max_iter=60, generative_weight=0.0)).fit(X, y)
    peer = LogisticRegression(C=np.inf, max_iter=5000, tol=1e-8)
    one_hot = OneHotEncoder().fit_transform(X)
    P = peer.fit(one_hot, y).predict_proba(one_hot)
    optimum = -np.log(P[np.arange(len(y)), y]).mean()
    assert clf.history_["log_loss"].min() <= optimum + 1e-4


@given(seed=st.integers(0, 2**16), n=st.integers(1, 6))
def test_an_ascent_finds_the_maximum_of_a_quadratic(seed, n):
    """Exact line searches along its directions are conjugate gradients: n steps."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    A, x, ascent = A @ A.T + 0.1 * np.eye(n), rng.standard_normal(n), Ascent()
    for _ in range(n + 1):
        gradient = -A @ x
        ascent.reach(x, gradient)
        d = ascent.along
        x = x + d * (gradient @ d) / max(d @ A @ d, 1e-300)
    np.testing.assert_allclose(x, 0.0, atol=1e-5)


def test_a_refused_step_is_tried_shorter_and_then_along_the_gradient():
    ascent, x, curvature = Ascent(lr=0.01), np.array([1.0, 1.0]), np.array([1.0, 100.0])
    for _ in range(3):
        ascent.reach(x, -curvature * x)
        last, x = x, ascent.proposal()
    away = -curvature * last
    step = x - last
    assert not np.allclose(step, away)  # the changes tell of the curvature
    ascent.shorten()
    np.testing.assert_allclose(ascent.proposal() - last, SHORTER * step)
    ascent.shorten()
    np.testing.assert_allclose(ascent.proposal() - last, SHORTER**2 * away)
    ascent.reach(last + 0.1, away)
    assert ascent.lr == 1.0


@given(seed=st.integers(0, 2**16))
def test_columns_of_any_unit_take_the_same_way(seed):
    """In powers of two, so that no digit changes."""
    rng = np.random.default_rng(seed)
    X, y, _ = random_rows(QDAModel(), rng, m=60)
    experts = [QuadraticDiscriminantAnalysis(prior="recommended"), SmoothNB()]
    paths = [
        ProductOfExperts(experts, learner=RC(max_iter=12)).fit(A, y).history_["log_loss"]
        for A in (X, np.ldexp(X, rng.integers(-400, 400, size=X.shape[1])))
    ]
    np.testing.assert_allclose(*paths, rtol=1e-6)


@given(seed=st.integers(0, 2**16))
def test_components_take_the_same_way_in_any_common_unit(seed):
    """Their places are found by k-means and EM, which weigh columns by their units."""
    rng = np.random.default_rng(seed)
    X, y, _ = random_rows(QDAModel(), rng, m=60)
    clf = MixtureDiscriminantAnalysis(2, learner=RC(max_iter=8))
    paths = [clf.fit(A, y).history_["log_loss"] for A in (X, np.ldexp(X, int(rng.integers(-100, 100))))]
    np.testing.assert_allclose(*paths, rtol=1e-6)


def test_a_fit_converges_and_a_rise_shortens_its_step():
    rng = np.random.default_rng(0)
    X, y, w = random_rows(QDAModel(), rng, m=80)
    y = np.where(rng.random(len(y)) < 0.2, rng.integers(3, size=len(y)), y)  # classes overlap
    engine = MemoryEngine(X, y, w, 3)
    model = QDAModel()
    task = Task(model, engine, model.fix_prior(engine.statistics(model, engine.learn(model))))
    found = RC(lr=50.0, generative_weight=0.3).fit_statistics(task)
    refused = ~found.history["accepted"]
    assert refused.any()
    assert found.status is Status.CONVERGED
    _, scan, fitted = value_of(RC(generative_weight=0.3).begin(task), task, found.fitted.S)
    coordinates = model.coordinates(task.S)
    gradient = coordinates.gradient((1.0 / engine.mass) * scan.dS, 0.3, fitted)
    size = sum((value**2).sum() for value in gradient.values())
    assert np.sqrt(size) <= OPTIMAL


@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
@pytest.mark.parametrize("make", [GaussianNB, QuadraticDiscriminantAnalysis, PoissonNB])
def test_columns_that_do_not_vary_in_a_class_do_not_hold_a_fit_up(make):
    """Their variances come from a prior and from other classes, and rates are on their floor."""
    X, y = load_digits(return_X_y=True)
    clf = make(learner=RC()).fit(X[:400], y[:400])
    assert clf.status_ is Status.CONVERGED
    assert (~clf.history_["accepted"]).sum() <= 10


@pytest.mark.parametrize("model", [KDependenceNB(), ComplementNB()], ids=lambda model: type(model).__name__)
def test_networks_and_complements_converge_too(model):
    """In fewer scans than a fit has, where the statistics as coordinates took hundreds."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = rng.poisson(1.0 + 1.5 * ((np.arange(12) + y[:, None]) % 3 == 0))
    if isinstance(model, KDependenceNB):
        X = np.minimum(X[:, :5], 2)
    weight = 0.0 if isinstance(model, ComplementNB) else "auto"
    clf = model.set_params(learner=RC(generative_weight=weight)).fit(X, y)
    assert clf.status_ is Status.CONVERGED


def test_the_name_is_the_class_without_arguments():
    from riskbayes.learners.base import resolve_learner

    assert resolve_learner("rc").get_params() == RC().get_params()
    assert isinstance(RC().begin(task_of(QDAModel(), 0)), QuasiNewtonStep)
    paper = RC.paper().get_params()
    assert (paper["step"], paper["generative_weight"], paper["monitor"]) == ("fixed", 0.0, "soft_error")


@pytest.mark.filterwarnings("default")
def test_a_model_without_an_anchor_says_so():
    rng = np.random.default_rng(0)
    X, y, _ = random_rows(ComplementModel(), rng)
    with pytest.warns(
        UserWarning, match="ComplementModel has no log_likelihood .* without an anchor"
    ) as told:
        GenerativeClassifier(ComplementModel(alpha=1.0)).fit(X, y)
    assert len(told) == 1
    assert ComplementNB().fit(X, y).n_iter_ > 0  # whose "rc" means to have none
