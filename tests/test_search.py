"""What held rows say of candidates, of many rows too; and that all rows are read alike."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

from riskbayes import (
    CategoricalNB,
    GaussianNB,
    GenerativeClassifier,
    KDependenceNB,
    LinearDiscriminantAnalysis,
    MixtureDiscriminantAnalysis,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
    TreeAugmentedNB,
    search,
)
from riskbayes.estimators import risk_bayes
from riskbayes.estimators.family import cross_validate, family, folds_of
from riskbayes.estimators.kinds import of_numbers
from riskbayes.learners import RC
from riskbayes.models import MixtureModel, ProductModel, QDAModel, SmoothModel, TreeModel
from riskbayes.scanners import kernels
from riskbayes.search import ROUNDS, HeldOut

# --- what held rows say -----------------------------------------------------------------------------------


def random_candidates(seed, m=None, checkpoints=3):
    """Codes, weights (None: one each), posteriors (candidates, checkpoints, rows, classes), ends of folds."""
    rng = np.random.default_rng(seed)
    m, r, number = m or int(rng.integers(12, 80)), int(rng.integers(2, 5)), int(rng.integers(1, 5))
    y, w = rng.integers(r, size=m), rng.uniform(0.1, 4.0, m) if rng.random() < 0.5 else None
    logits = rng.standard_normal((number, checkpoints, m, r)) + rng.uniform(0, 3) * np.eye(r)[y]
    P = np.exp(logits) / np.exp(logits).sum(axis=3, keepdims=True)
    ends = np.sort(rng.choice(np.arange(1, m), int(rng.integers(1, 5)), replace=False))
    return y, w, P.astype(np.float32), ends


def held_out(y, w, P, ends, combine=True):
    """All candidates, fold after fold."""
    found = HeldOut(y, w, P.shape[3], combine)
    for own in P:
        found.add(iter(np.split(own, ends, axis=1)))
    return found


def risks_by_hand(y, w, P):
    """Error and log loss, candidates x checkpoints, of all posteriors at once."""
    own = np.maximum(P[:, :, np.arange(len(y)), y], 1e-15).astype(float)
    return (np.average(v, axis=2, weights=w) for v in (P.argmax(axis=3) != y, -np.log(own)))


def ensemble_by_hand(y, w, P, places):
    """Each round adds the candidate that leaves the least error + log loss; the best round is kept."""
    candidates = list(enumerate(places))
    chosen, best, kept = [], np.inf, 0
    for number in range(1, ROUNDS + 1):
        scores = []
        for each in candidates:
            mixed = sum(P[pair] for pair in [*chosen, each]) / number
            wrong, own = mixed.argmax(axis=1) != y, np.maximum(mixed[np.arange(len(y)), y], 1e-15)
            scores.append(np.average(wrong - np.log(own), weights=w))
        chosen.append(candidates[int(np.argmin(scores))])
        if min(scores) < best - 1e-12:
            best, kept = min(scores), number
    return {each: chosen[:kept].count(each) / kept for each in candidates if each in chosen[:kept]}


@given(seed=st.integers(0, 2**32 - 1))
def test_held_out_risks_and_choices_are_those_of_all_posteriors(seed):
    y, w, P, ends = random_candidates(seed)
    found = held_out(y, w, P, ends)
    error, log_loss = risks_by_hand(y, w, P)
    np.testing.assert_allclose(found.errors, error, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.log_losses, log_loss, rtol=1e-12)
    scores = (error + log_loss).round(12)
    assert list(found.best()) == [np.unravel_index(scores.argmin(), scores.shape)]
    weights = found.ensemble()
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights == pytest.approx(ensemble_by_hand(y, w, P, scores.argmin(axis=1).tolist()))


@given(seed=st.integers(0, 2**32 - 1), most=st.integers(8, 120))
def test_an_ensemble_of_many_rows_is_chosen_by_a_sample(seed, most):
    y, w, P, ends = random_candidates(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "MOST_KEPT", most)
        found = held_out(y, w, P, ends)
    all_rows, r = held_out(y, w, P, ends), P.shape[3]
    # Risks are those of all rows.
    np.testing.assert_array_equal(found.errors, all_rows.errors)
    np.testing.assert_array_equal(found.log_losses, all_rows.log_losses)
    assert found.best() == all_rows.best()
    # The posteriors kept are few, and of distinct rows.
    assert all(len(own) * r <= max(most, r) for own in found.posteriors)
    assert (np.diff(found.kept) > 0).all()
    sample = found.kept
    places = found.scores().argmin(axis=1)
    best = np.stack([own[place] for own, place in zip(P, places, strict=True)])
    np.testing.assert_array_equal(np.stack(found.posteriors), best[:, sample])
    few = HeldOut(y[sample], None if w is None else w[sample], r, combine=True)
    for own in best[:, None, sample]:
        few.add([own])
    chosen = {i: weight for (i, _), weight in found.ensemble().items()}
    assert chosen == {i: weight for (i, _), weight in few.ensemble().items()}
    if len(y) * r <= most:
        assert len(sample) == len(y)


def test_the_sample_has_every_class_however_labels_alternate(monkeypatch):
    monkeypatch.setattr(search, "MOST_KEPT", 1000)
    y = np.arange(10000) % 2
    kept = HeldOut(y, None, 2, combine=True).kept
    assert np.bincount(y[kept]).min() > 200


@pytest.mark.parametrize("combine", [False, True])
def test_what_is_kept_of_many_rows_is_bounded(monkeypatch, combine):
    """Folds go one after another; of each nothing stays but a sample."""
    monkeypatch.setattr(search, "MOST_KEPT", 2**14)
    m, r, checkpoints, n_folds = 2**18, 2, 4, 16
    y = np.random.default_rng(0).integers(r, size=m)
    found = HeldOut(y, None, r, combine)

    def folds():
        for _ in range(n_folds):
            yield np.full((checkpoints, m // n_folds, r), 0.5, dtype=np.float32)

    tracemalloc.start()
    for _ in range(3):
        found.add(folds())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole, kept = 4 * m * r * checkpoints, 3 * 4 * 2**14 * checkpoints
    assert peak < (kept if combine else 0) + 0.5 * whole
    assert len(found.posteriors) == (3 if combine else 0)
    assert sum(own.nbytes for own in found.posteriors) <= kept
    np.testing.assert_allclose(found.log_losses, np.log(2))


@pytest.mark.parametrize("weighted", [False, True])
def test_labels_support_a_posterior_by_the_derivative_of_the_log_loss(weighted):
    """The mean gain is that of the log-likelihood by the power of p(y | x) / p(y), at zero."""
    rng = np.random.default_rng(0)
    y, P = rng.integers(3, size=200), rng.dirichlet(np.ones(3), size=200)
    w = rng.uniform(0.5, 2.0, size=200) if weighted else np.ones(200)
    prior = np.bincount(y, w) / w.sum()

    def log_likelihood(power):
        Q = prior * (P / prior) ** power
        return np.average(np.log(Q[np.arange(200), y] / Q.sum(axis=1)), weights=w)

    odds = np.log(P / prior)
    gains = odds[np.arange(200), y] - odds @ prior
    slope = (log_likelihood(1e-6) - log_likelihood(-1e-6)) / 2e-6
    error = np.sqrt((w**2 * (gains - np.average(gains, weights=w)) ** 2).sum()) / w.sum()
    assert search.support(P, y, w if weighted else None) == pytest.approx(slope / error, rel=1e-5)


def test_labels_support_what_tells_them_and_no_noise():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    told = np.where(y[:, None] == np.arange(2), 0.6, 0.4)
    assert search.support(told, y, None) > 20
    assert search.support(np.full((400, 2), 0.5), y, None) == pytest.approx(0.0, abs=1e-6)
    noise = [search.support(rng.dirichlet(np.ones(2), size=400), y, None) for _ in range(200)]
    assert np.mean(noise) == pytest.approx(0.0, abs=0.3)
    assert np.std(noise) == pytest.approx(1.0, abs=0.2)


def test_rows_that_are_held_out_several_times_support_no_more():
    """They are one label each, however many splits hold them out."""
    y, w = np.arange(100) % 2, np.random.default_rng(0).uniform(0.5, 2.0, size=100)
    right, rows = np.arange(100) // 2 % 5 < 3, np.tile(np.arange(100), 5)
    P = np.where(right[:, None] == (y[:, None] == np.arange(2)), 0.52, 0.48)  # 60 of 100, of each class
    assert search.support(P[rows], y[rows], w[rows], rows) == pytest.approx(search.support(P, y, w))
    assert 0 < search.support(P, y, None) < search.TOLD < search.support(P[rows], y[rows], None)
    found = HeldOut(y[rows], None, 2, True, rows)
    found.add([P[rows][None].astype(np.float32)])
    assert not found.is_told({(0, 0): 1.0})


def test_a_classifier_of_many_rows_judges_its_members_by_all_of_them(monkeypatch):
    X, y = load_iris(return_X_y=True)
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    members = [member for member in family(of_numbers(4)) if member.name in ("LDA", "QDA, n", "leaves")]
    monkeypatch.setattr(risk_bayes, "family", lambda n: members)
    splits = StratifiedKFold(3, shuffle=True, random_state=0)
    plain, few = (RiskBayesClassifier("ensemble", cv=splits, random_state=0) for _ in range(2))
    plain.fit(X, y, w)
    monkeypatch.setattr(search, "MOST_KEPT", 90)
    few.fit(X, y, w)
    for name in ("cv_error", "cv_log_loss", "cv_score"):
        np.testing.assert_array_equal(
            np.sort(few.leaderboard_[name]), np.sort(plain.leaderboard_[name]), err_msg=name
        )
    folds = folds_of(splits, y, w > 0, seed=0)
    found, _ = cross_validate(members, X[w > 0], y[w > 0], w[w > 0], folds, combine=True)
    assert len(found.kept) == 30
    weights = {(members[i].name, place): v for (i, place), v in found.ensemble().items()}
    assert sorted(weight for _, weight in few.members_) == pytest.approx(sorted(weights.values()))


# --- training, validation and new rows are read alike ------------------------------------------------------

CODES = [CategoricalNB, TreeAugmentedNB, KDependenceNB]
NUMBERS = [
    GaussianNB,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    SmoothNB,
    MixtureDiscriminantAnalysis,
    ProductOfExperts,
]
every_estimator = pytest.mark.parametrize("kind", [*CODES, *NUMBERS], ids=lambda kind: kind.__name__)
RISKS = ("error", "soft_error", "log_loss")


def rows_for(kind, dtype=np.float64, m=150):
    rng = np.random.default_rng(0)
    y = np.arange(m) % 3
    X = 20 + rng.standard_normal((m, 4)) + rng.standard_normal((3, 4))[y]
    w = np.where(rng.random(m) < 0.2, 0.0, rng.uniform(0.2, 3.0, m))
    return (np.clip(np.floor(X - 18), 0, 4).astype(np.int64) if kind in CODES else X.astype(dtype)), y, w


def risks_of(clf, X, y, w):
    """The mean risks of what the estimator predicts."""
    log_P = clf.predict_log_proba(X)
    own = log_P[np.arange(len(y)), y]
    losses = log_P.argmax(axis=1) != y, 1 - np.exp(own), -own
    return {name: np.average(loss, weights=w) for name, loss in zip(RISKS, losses, strict=True)}


@every_estimator
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_score_alike_in_a_scan_as_validation_rows_and_as_new_ones(kind, dtype):
    X, y, w = rows_for(kind, dtype)
    close = 1e-9 if dtype is np.float64 or kind in CODES else 1e-4
    clf = kind(learner=RC(lr=0.3, max_iter=6, step="fixed", generative_weight=0.0)).fit(
        X, y, w, X_val=X, y_val=y, sample_weight_val=w
    )
    assert clf.n_iter_ > 0
    found = risks_of(clf, X, y, w)
    for name in RISKS:
        np.testing.assert_allclose(clf.history_[f"val_{name}"], clf.history_[name], rtol=1e-12, atol=1e-15)
        assert clf.history_[name][clf.best_iteration_] == pytest.approx(found[name], rel=close, abs=close)


@pytest.mark.parametrize(
    "clf",
    [
        CategoricalNB(),
        *(kind() for kind in NUMBERS[:3]),
        GenerativeClassifier(TreeModel(alpha=1.0, structure="tree")),
        GenerativeClassifier(SmoothModel(alpha=1.0)),
        GenerativeClassifier(MixtureModel(n_components=2)),
        GenerativeClassifier(ProductModel((QDAModel(), SmoothModel(alpha=1.0)), (0.5, 0.5))),
    ],
    ids=str,
)
def test_rows_to_calibrate_on_score_as_predictions_do(clf):
    codes = isinstance(clf, CategoricalNB) or "TreeModel" in str(clf)
    X, y, w = rows_for(CategoricalNB if codes else GaussianNB)
    clf = clone(clf).set_params(learner="closed_form").fit(X, y, w)
    some = slice(10, 70)
    before = risks_of(clf, X[some], y[some], w[some])
    clf.set_params(learner=RC(lr=0.1, max_iter=3, step="fixed", generative_weight=0.0)).calibrate(
        X[some], y[some], w[some]
    )
    for name in RISKS:
        assert clf.history_[name][0] == pytest.approx(before[name], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", CODES)
def test_unseen_categories_of_validation_rows_score_as_those_of_new_rows(kind, compiled, monkeypatch):
    if compiled:
        monkeypatch.setattr(kernels, "SMALLEST", 1)
    X, y, w = rows_for(kind)
    new = X.copy()
    new[::7, 1], new[::5, 2] = 9, 300
    clf = kind(learner=RC(lr=0.3, max_iter=6, step="fixed", generative_weight=0.0)).fit(
        X, y, w, X_val=new, y_val=y, sample_weight_val=w
    )
    found = risks_of(clf, new, y, w)
    for name in RISKS:
        assert clf.history_[f"val_{name}"][clf.best_iteration_] == pytest.approx(found[name], rel=1e-9)
    assert clf.history_["val_log_loss"][0] != pytest.approx(clf.history_["log_loss"][0], rel=1e-6)


@pytest.mark.parametrize("kind", CODES)
def test_compiled_scans_read_rows_as_others_do(kind, monkeypatch):
    X, y, w = rows_for(kind)
    learner = RC(lr=0.3, max_iter=6, step="fixed", generative_weight=0.0)
    plain = kind(learner=learner).fit(X, y, w, X_val=X, y_val=y, sample_weight_val=w)
    monkeypatch.setattr(kernels, "SMALLEST", 1)
    fast = kind(learner=learner).fit(X, y, w, X_val=X, y_val=y, sample_weight_val=w)
    for name in plain.history_:
        np.testing.assert_allclose(fast.history_[name], plain.history_[name], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fast.predict_proba(X), plain.predict_proba(X), atol=1e-9)
