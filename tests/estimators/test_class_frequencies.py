"""Where labels are noise, the classifiers that look at held-out rows are the class frequencies."""

import numpy as np
import pandas as pd
import pytest

import riskbayes
from onnx_checks import check
from riskbayes import RiskBayesClassifier
from riskbayes.estimators.kinds import Kinds
from riskbayes.estimators.member import FrequencyMember, frequencies


def noise(seed, m=150):
    """Numbers and categories with missing cells, and the labels of a biased coin."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"x{j}": rng.normal(size=m) for j in range(3)} | {"word": rng.choice(list("abc"), m)})
    return X.mask(rng.random(X.shape) < 0.1), np.where(rng.random(m) < 0.35, "yes", "no")


@pytest.fixture(scope="module", params=["ensemble", "glass"])
def of_noise(request):
    X, y = noise(0)
    return X, y, RiskBayesClassifier(request.param, random_state=0).fit(X, y)


def test_labels_of_a_coin_give_their_frequencies(of_noise):
    X, y, clf = of_noise
    P = clf.predict_proba(X)
    np.testing.assert_allclose(P, np.tile([(y == "no").mean(), (y == "yes").mean()], (len(y), 1)), rtol=1e-9)
    board = clf.leaderboard_
    assert board["weight"][board["member"].tolist().index("class frequencies")] == 1.0


def test_they_travel_and_are_explained_as_every_model(of_noise, tmp_path):
    X, _, clf = of_noise
    P = clf.predict_proba(X)
    loaded = riskbayes.load(clf.save(tmp_path / "model.rb"))
    np.testing.assert_array_equal(loaded.predict_proba(X), P)
    check(clf, X)
    np.testing.assert_allclose(clf.explain(X).values, 0.0, atol=1e-12)
    half = clf.with_priors([0.5, 0.5])
    np.testing.assert_allclose(half.predict_proba(X), 0.5, atol=1e-12)


@pytest.mark.parametrize("kinds", [Kinds((1,), (0,), (2,)), Kinds((), (0,), (2,)), Kinds((), (), (2,))])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_estimator_is_what_the_member_judges(kinds, weighted):
    """Of numbers, of categories, or where there are only marks of missing cells."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(3, size=60), rng.normal(size=60), rng.integers(2, size=60)].astype(float)
    X[::7, 1] = np.nan
    y, w = np.r_[0, 1, 2, rng.integers(3, size=57)], rng.uniform(0.5, 2.0, 60) if weighted else None
    kept, held = np.arange(40), np.arange(40, 60)
    (found,) = FrequencyMember(kinds).walk(X, y, w, [(kept, held)])
    clf = frequencies(kinds).fit(X[kept], y[kept], None if w is None else w[kept])
    np.testing.assert_allclose(clf.predict_proba(X[held]), found[0], rtol=1e-6)
    assert np.isnan(found[1:]).all()


@pytest.mark.parametrize("strategy", ["ensemble", "glass"])
def test_one_weak_column_among_noise_is_no_worse_than_the_class_frequencies(strategy):
    gaps = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=1300)
        X = rng.normal(size=(len(y), 25))
        X[:, 0] += 0.3 * y
        clf = RiskBayesClassifier(strategy, random_state=0).fit(X[:300], y[:300])
        P, p = clf.predict_proba(X[300:]), y[:300].mean()
        loss = -np.log(P[np.arange(1000), y[300:]]).mean()
        gaps.append(loss + np.log(np.where(y[300:], p, 1 - p)).mean())
    assert np.mean(gaps) <= 1e-3


def test_a_table_that_tells_its_classes_is_not_taken_for_noise():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    X = rng.normal(size=(120, 6)) + 0.7 * y[:, None] * (np.arange(6) < 3)
    for strategy in ("ensemble", "glass"):
        clf = RiskBayesClassifier(strategy, random_state=0).fit(X, y)
        assert np.ptp(clf.predict_proba(X)[:, 1]) > 0.5
