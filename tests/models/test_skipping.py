"""Scans that skip saturated rows give what scans of all rows give."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import closed_form, encoded, posterior
from riskbayes import QuadraticDiscriminantAnalysis
from riskbayes.engines import memory
from riskbayes.learners import RC, RCCV, TM
from riskbayes.models import LDAModel, QDAModel, qda
from riskbayes.models.base import Fitted
from riskbayes.models.qda import QDAParameters
from riskbayes.models.quadratic_forms import squared_distances
from riskbayes.objectives import ExpectedCost, LogLoss, SoftError
from riskbayes.scanners import Scanner, skipping
from riskbayes.scanners.dense import Split
from riskbayes.scanners.skipping import SkippingScan, SkippingScanner, bounds_between, next_scan


@pytest.fixture(autouse=True)
def small_tables_too(monkeypatch):
    monkeypatch.setattr(qda, "FEWEST_FEATURES", 1)
    monkeypatch.setattr(qda, "ROWS_PER_FEATURE", 0)
    monkeypatch.setattr(memory, "ON_HOST", Split(2000))


@pytest.fixture
def scans(monkeypatch):
    """Every scan that was made or is remembered to skip rows."""
    found = []

    def kept(Z, theta, last):
        scan = next_scan(Z, theta, last)
        found.append(scan)
        return scan

    monkeypatch.setattr(skipping, "next_scan", kept)
    return found


def last_scan(engine):
    """What the engine remembers of its last scan of all rows."""
    return engine._scanner.last


def scan_without(engine, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(qda, "FEWEST_FEATURES", np.inf)
        return engine.scaled(1.0).scan(*arguments)  # by a scanner of its own


def separated(seed=0, m=1200, n=8, r=3, apart=6.0):
    """Classes far apart, and a few rows on the way from one to another: X, y, w."""
    rng = np.random.default_rng(seed)
    y, other = rng.integers(r, size=m), rng.integers(r, size=m)
    y[:r] = np.arange(r)
    centres = apart * rng.standard_normal((r, n))
    X = rng.standard_normal((m, n)) + centres[y]
    X[: m // 20] += 0.5 * (centres[other] - centres[y])[: m // 20]
    return 100.0 + X @ (np.eye(n) + 0.1 * rng.standard_normal((n, n))), y, rng.uniform(0.2, 3.0, size=m)


def fit(learner, X, y, fit_arguments=None, **arguments):
    return QuadraticDiscriminantAnalysis(learner=learner, **arguments).fit(X, y, **(fit_arguments or {}))


def fit_without(learner, *given, **arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(qda, "FEWEST_FEATURES", np.inf)
        return fit(learner, *given, **arguments)


def assert_same(one, other):
    assert one.history_.keys() == other.history_.keys()
    for name, path in one.history_.items():
        np.testing.assert_allclose(path, other.history_[name], rtol=1e-12, atol=1e-12)
    for name, value in one.statistics_.items():
        size = np.abs(value).max()
        np.testing.assert_allclose(value, other.statistics_[name], rtol=1e-10, atol=1e-10 * size)


LEARNERS = {
    "paper": RC.paper(),
    "recommended": RC(max_iter=6),
    "soft error": RC(objective="soft_error", step="fixed", generative_weight=0.0),
    "tm": TM(),
    "restarts": RC(max_iter=10, n_restarts=2, random_state=0),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_a_fit_that_skips_is_the_fit_that_does_not(learner, weighted, scans):
    X, y, w = separated()
    given = {"sample_weight": w} if weighted else None
    skipped = fit(learner, X, y, given)
    assert sum(scan.n_skipped for scan in scans) > 0
    number = len(scans)
    assert_same(skipped, fit_without(learner, X, y, given))
    assert len(scans) == number


@pytest.mark.parametrize("arguments", [{"covariance_strength": 5.0}, {"reg_param": 0.1}])
def test_priors_and_regularisation(arguments, scans):
    X, y, _ = separated(1)
    assert_same(fit(RC.paper(), X, y, **arguments), fit_without(RC.paper(), X, y, **arguments))
    assert sum(scan.n_skipped for scan in scans) > 0


def test_validation_rows_of_the_user(scans):
    X, y, _ = separated(11)
    learner, held = RC(step="adaptive", max_iter=10, n_iter_no_change=3), {"X_val": X[::5], "y_val": y[::5]}
    assert_same(fit(learner, X, y, held), fit_without(learner, X, y, held))
    assert sum(scan.n_skipped for scan in scans) > 0


def test_warm_start(scans):
    X, y, _ = separated(2)
    learner = RC(max_iter=3, tol=0.0)
    pair = fit(learner, X, y, warm_start=True), fit_without(learner, X, y, warm_start=True)
    pair[0].fit(X, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(qda, "FEWEST_FEATURES", np.inf)
        pair[1].fit(X, y)
    assert_same(*pair)
    assert scans[-1].n_skipped > 0


@pytest.mark.parametrize(
    "learner",
    [
        RC(max_iter=10, early_stopping=True, refit=True, random_state=0),
        RCCV(max_iter=10, random_state=0),
    ],
)
def test_kept_rows_are_a_table_of_their_own(learner, scans):
    X, y, _ = separated(3)
    assert_same(fit(learner, X, y), fit_without(learner, X, y))
    assert {scan.roots.shape[1] for scan in scans} > {len(y)}
    assert sum(scan.n_skipped for scan in scans if scan.roots.shape[1] < len(y)) > 0


def test_picked_rows_are_all_looked_at(monkeypatch):
    learner = RC(max_iter=3, batch_size=100, random_state=0, generative_weight=0.0)
    X, y, _ = separated(3)
    picked, choose = [], QDAModel.scanner

    def watched(self, Z):
        found = choose(self, Z)
        picked.extend([type(found)] if Z.start is None else [])
        return found

    monkeypatch.setattr(QDAModel, "scanner", watched)
    assert_same(fit(learner, X, y), fit_without(learner, X, y))
    assert set(picked) == {Scanner}


def test_a_table_of_saturated_rows_is_skipped_as_a_whole():
    X, y, w = (values[60:] for values in separated(4, apart=40.0))  # none between the classes
    engine, fitted = closed_form(QDAModel(), X, y, w, 3)
    first, second = (engine.scan(fitted, LogLoss()) for _ in range(2))
    assert last_scan(engine).n_skipped == len(y)
    assert second.risks.mean() == first.risks.mean() == {"soft_error": 0, "error": 0, "log_loss": 0}
    assert float(second.risks.weight) == pytest.approx(w.sum())
    assert all(np.abs(value).max() < 1e-9 for value in second.dS.values())


def test_classes_that_overlap_are_scanned_plainly():
    """Few rows are saturated where the scan is remembered: no bound is computed."""
    X, y, _ = separated(5, apart=0.1)
    engine, fitted = closed_form(QDAModel(), X, y, None, 3)
    for _ in range(3):
        engine.scan(fitted, LogLoss())
        assert last_scan(engine).reference is None


@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1e-8, 1e-3, 0.1, 1.0]))
def test_the_bounds_hold(seed, size):
    rng = np.random.default_rng(seed)
    X, y, _ = separated(seed, m=150, n=5)
    model, S, before = closed_form(QDAModel(), X, y, None, 3)[1]
    A = np.eye(5) + size * rng.standard_normal((3, 5, 5))
    moved = model.expected_statistics(
        replace(
            before,
            means=before.means + size * rng.standard_normal((3, 5)),
            known=A @ before.covariances @ np.swapaxes(A, 1, 2),
        ),
        150.0,
    )
    after = model.parameters(moved)
    least, most, shift = bounds_between(*(SkippingScan(theta, 150, None) for theta in (before, after)))
    Z = model.encode(X, S.frame)
    old, new = (np.sqrt(squared_distances(Z, theta.forms)) for theta in (before, after))
    assert (least * old - shift <= new).all()
    assert (new <= most * old + shift).all()
    # They are no wider than need be: some direction attains them.
    if size <= 1e-3:
        assert (most / least < 1 + 1e4 * size + 1e-8).all()


@given(seed=st.integers(0, 2**32 - 1), step=st.sampled_from([0.1, 1.0]), soft=st.booleans())
def test_scans_in_any_order_are_those_of_all_rows(seed, step, soft):
    """Other parameters in between, as line searches and restarts have them, do no harm."""
    rng = np.random.default_rng(seed)
    X, y, w = separated(seed, m=300)
    engine, (model, S, _) = closed_form(QDAModel(), X, y, w, 3)
    plain, _ = closed_form(QDAModel(), X, y, w, 3)
    objective = SoftError() if soft else LogLoss()
    path = [S]
    for _ in range(3):
        dS = scan_without(plain, Fitted.of(model, path[-1]), objective).dS
        path.append(path[-1].plus(step * rng.random(), dS))
    for i in rng.integers(len(path), size=8):
        if model.is_legal(path[i]):
            fitted = Fitted.of(model, path[i])
            found, all_rows = engine.scan(fitted, objective), scan_without(plain, fitted, objective)
            assert last_scan(plain) is None
            assert found.risks.mean() == pytest.approx(all_rows.risks.mean(), rel=1e-12, abs=1e-14)
            scale = {name: np.abs(value).max() for name, value in S.items()}
            for name, value in found.dS.items():
                np.testing.assert_allclose(value, all_rows.dS[name], rtol=1e-10, atol=1e-12 * scale[name])


def test_an_interrupted_scan_is_no_reference(monkeypatch):
    X, y, _ = separated(6)
    engine, fitted = closed_form(QDAModel(), X, y, None, 3)
    look = SkippingScanner.chunk

    def interrupted(self, Z, labels, **options):
        if Z.start + len(Z) == len(y):  # the last chunk
            raise KeyboardInterrupt
        return look(self, Z, labels, **options)

    for n_skipped in (0, 1):  # while it is recorded, and while it skips
        with monkeypatch.context() as patch:
            patch.setattr(SkippingScanner, "chunk", interrupted)
            with pytest.raises(KeyboardInterrupt):
                engine.scan(fitted, LogLoss())
        assert (last_scan(engine).n_skipped > 0) == n_skipped
        engine.scan(fitted, LogLoss())
        assert last_scan(engine).reference is None
    engine.scan(fitted, LogLoss())
    assert last_scan(engine).n_skipped > 0


def test_parameters_that_are_no_numbers_skip_nothing():
    X, y, _ = separated(7)
    engine, fitted = closed_form(QDAModel(), X, y, None, 3)
    engine.scan(fitted, LogLoss())
    theta = fitted.theta
    broken = replace(theta, forms=theta.forms * np.nan, means=theta.means * np.nan)
    with np.errstate(invalid="ignore"):
        risks = engine.scan(fitted._replace(theta=broken), LogLoss()).risks.mean()
    assert np.isnan(risks["log_loss"])
    scan = last_scan(engine)
    assert scan.reference is not None
    assert scan.n_skipped == 0


def test_what_a_saturated_row_may_cost_is_counted():
    """C[y, y] need not be zero."""
    X, y, _ = separated(8)
    engine, fitted = closed_form(QDAModel(), X, y, None, 3)
    engine.scan(fitted, LogLoss())
    objective = ExpectedCost(np.arange(9.0).reshape(3, 3))
    found = engine.scan(fitted, objective).risks.mean()
    assert last_scan(engine) is None
    assert found["error"] == pytest.approx(engine.scan(fitted, LogLoss()).risks.mean()["error"])
    assert found["cost"] == pytest.approx(objective.losses(posterior(fitted, X), y)["cost"].mean())


def test_scans_for_the_risks_only_may_skip_too():
    X, y, w = separated(8)
    engine, fitted = closed_form(QDAModel(), X, y, w, 3)
    first, second = (engine.scan(fitted, LogLoss(), risks_only=True) for _ in range(2))
    assert last_scan(engine).n_skipped > 0
    assert first.dS is second.dS is None
    expected = scan_without(engine, fitted, LogLoss()).risks.mean()
    for scan in (first, second):
        assert scan.risks.mean() == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_a_fit_for_costs_does_not_skip(scans):
    X, y, _ = separated(9)
    fit(RC(objective=1.0 + np.eye(3)[::-1], max_iter=3), X, y)
    assert not scans


def test_where_nothing_is_remembered(monkeypatch):
    """Single precision, picked rows, other models, rows to predict, small tables."""
    X, y, _ = separated(10)
    engine, fitted = closed_form(QDAModel(), X, y, None, 3)
    model, S, _ = fitted
    Z = model.encode(X, S.frame)
    assert type(model.scanner(Z)) is SkippingScanner
    assert type(model.scanner(model.encode(X.astype(np.float32), S.frame))) is Scanner
    assert type(model.scanner(Z[np.arange(1000)])) is Scanner
    other = LDAModel()
    assert type(other.scanner(encoded(other, X))) is Scanner
    plans = engine.map_rows([fitted], lambda Z, plan, first: np.full(len(Z), type(plan), dtype=object))
    assert set(plans[0]) == {QDAParameters}
    monkeypatch.setattr(qda, "ROWS_PER_FEATURE", 1000)
    assert type(model.scanner(Z)) is Scanner
