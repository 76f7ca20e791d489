"""The weight of evidence of cells: Shapley values of models that are no sum over columns."""

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_iris

import riskbayes
import riskbayes.estimators.shapley as shapley
from riskbayes import (
    GaussianNB,
    GenerativeClassifier,
    MixtureDiscriminantAnalysis,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
)
from riskbayes.models import GenerativeModel, LDAModel, MixtureModel
from riskbayes.models.base import log_class_prior
from riskbayes.models.leaves import LeavesModel
from riskbayes.models.neighbours import NeighboursModel
from riskbayes.statistics import Statistics

X, y = load_iris(return_X_y=True)
STRATEGIES = ("single", "glass", "neighbours", "cv", "ensemble")


def by_enumeration(value, x):
    """Shapley values by every order of the columns: value(rows with NaN) -> log posteriors."""
    n = len(x)
    orders = list(permutations(range(n)))
    total = 0.0
    for order in orders:
        rows = np.full((n + 1, n), np.nan)
        for s, j in enumerate(order, 1):
            rows[s:, j] = x[j]
        steps = np.diff(value(rows), axis=0)
        total = total + steps[np.argsort(order)]
    return total / len(orders)


def centred(values):
    return values - values.mean(axis=-1, keepdims=True)


def log_odds_gap(clf, explanation, rows):
    """How far prior and contributions are from the log posterior, up to a constant of the row."""
    joint, logs = explanation.baseline + explanation.values.sum(axis=1), clf.predict_log_proba(rows)
    return np.abs((joint - joint[:, :1]) - (logs - logs[:, :1])).max()


def test_a_mixture_has_the_shapley_values_of_all_orders():
    clf = MixtureDiscriminantAnalysis(n_components=2).fit(X, y)
    rows = X[::30].copy()
    rows[1, 2] = np.nan
    found = clf.explain(rows)
    assert (found.errors == 0).all()
    assert not found.is_sum
    for x, own in zip(rows, found.values, strict=True):
        np.testing.assert_allclose(own, centred(by_enumeration(clf.predict_log_proba, x)), atol=1e-9)
    assert (found.values[1, 2] == 0).all()


def test_the_evidence_is_that_of_marginal_densities():
    """One Gaussian a class, by SciPy: what is not seen is integrated out."""
    clf = MixtureDiscriminantAnalysis(n_components=1, covariance="full", prior=None, learner="closed_form")
    clf.fit(X, y)
    means, covariances = clf.means_, clf.parameters_.components.covariances

    def value(rows):
        found = np.tile(clf.parameters_.log_prior, (len(rows), 1))
        for i, x in enumerate(rows):
            seen = np.flatnonzero(~np.isnan(x))
            for k in range(3 if len(seen) else 0):
                C = covariances[k][np.ix_(seen, seen)]
                found[i, k] += multivariate_normal(means[k][seen], C).logpdf(x[seen])
        return found

    found = clf.explain(X[::40])
    for x, own in zip(X[::40], found.values, strict=True):
        np.testing.assert_allclose(own, centred(by_enumeration(value, x)), atol=1e-8)
    np.testing.assert_allclose(found.baseline, centred(clf.parameters_.log_prior), atol=1e-12)


@pytest.fixture(scope="module")
def many():
    """A mixture of ten columns, and the log posteriors that its evidence is made of."""
    A, b = load_breast_cancer(return_X_y=True)
    A = A[:, :10]
    clf = MixtureDiscriminantAnalysis(n_components=3).fit(A, b)
    return clf, A[::25].copy()


def test_drawn_orders_are_within_their_errors_of_all_orders(many, monkeypatch):
    clf, rows = many
    drawn = [clf.explain(rows[::5], random_state=seed) for seed in range(60)]
    assert all(found.n_orders == 32 and log_odds_gap(clf, found, rows[::5]) < 1e-9 for found in drawn)
    more = clf.explain(rows[::5], n_orders=128)
    monkeypatch.setattr(shapley, "EXACT_COLUMNS", 10)
    exact = clf.explain(rows[::5]).values
    values, errors = (
        np.stack([getattr(one, name)[:, :, 0] for one in drawn]) for name in ("values", "errors")
    )
    z = (values - exact[:, :, 0]) / errors
    # Student's t with 15 degrees of freedom has the mean square 15 / 13.
    assert 0.9 < (z**2).mean() < 1.4
    means = (values - exact[:, :, 0]).mean(axis=0) / (values.std(axis=0, ddof=1) / np.sqrt(60))
    assert (means**2).mean() < 2  # no bias: the means of 60 draws are within their own errors
    assert 0.4 < more.errors.mean() / errors.mean() < 0.6  # four times the orders, half the error


def test_the_orders_are_repeatable_and_those_of_every_row(many):
    clf, rows = many
    found = clf.explain(rows)
    np.testing.assert_allclose(clf.explain(rows[7:8]).values, found.values[7:8], atol=1e-9)
    np.testing.assert_allclose(clf.explain(rows[::-1]).values, found.values[::-1], atol=1e-9)
    assert np.abs(clf.explain(rows, random_state=1).values - found.values).max() > 1e-3


def test_masked_copies_are_bounded(many, monkeypatch):
    clf, rows = many
    expected, sizes = clf.explain(rows[:6]).values, []
    monkeypatch.setattr(shapley, "BATCH_CELLS", 120)
    whole = type(clf)._finish_rows

    def counting(self, Z, *rest):
        sizes.append(Z.size)
        return whole(self, Z, *rest)

    monkeypatch.setattr(type(clf), "_finish_rows", counting)
    np.testing.assert_allclose(clf.explain(rows[:6]).values, expected, atol=1e-9)
    assert max(sizes) <= 120
    assert len(sizes) > 100


def test_order_does_not_matter_to_naive_bayes():
    """The same machinery on a sum: the terms come back, with no error."""
    A, b = load_breast_cancer(return_X_y=True)
    clf = GaussianNB().fit(A[:, :12], b)
    own = clf.explain(A[:20, :12])
    found = shapley.shapley_values(
        clf.predict_log_proba, A[:20, :12], [[j] for j in range(12)], 8, np.random.default_rng(0)
    )
    np.testing.assert_allclose(found.values, own.values, atol=1e-8)
    assert found.errors.max() < 1e-8
    assert own.errors is None
    assert (own.log_odds().errors == 0).all()


def table_of(m, seed):
    """Numbers, a category, a date, missing cells, a column that never varies and one of identifiers."""
    rng = np.random.default_rng(seed)
    b = rng.integers(2, size=m)
    frame = pd.DataFrame(
        {
            "u": rng.standard_normal(m) + b,
            "v": rng.standard_normal(m),
            "word": np.where(rng.random(m) < 0.3 + 0.5 * b, "yes", "no"),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, m) + 60 * b, unit="D"),
            "same": 3.0,
            "key": [f"k{i}" for i in range(m)],
        }
    )
    frame.loc[rng.random(m) < 0.2, "u"] = np.nan
    frame.loc[rng.random(m) < 0.2, "word"] = None
    return frame, np.where(b ^ (frame["v"] > 1), "ill", "well")


@pytest.fixture(scope="module", params=STRATEGIES)
def told(request):
    frame, labels = table_of(160, 0)
    clf = RiskBayesClassifier(request.param, missing="ignore", random_state=0, cv=2).fit(frame, labels)
    return clf, frame, clf.explain(frame)


def test_every_strategy_adds_up_to_its_log_odds(told):
    clf, frame, found = told
    assert log_odds_gap(clf, found, frame) < 1e-9
    np.testing.assert_allclose(found.log_odds("well", "ill").total, clf.decision_function(frame), atol=1e-9)
    fair = clf.with_priors({"ill": 0.9, "well": 0.1})
    assert log_odds_gap(fair, fair.explain(frame), frame) < 1e-9
    if clf.strategy in ("single", "glass"):
        assert found.is_sum
    elif clf.strategy == "neighbours":
        assert not found.is_sum
    assert found.columns[:6] == list(frame.columns)


def test_a_cell_that_is_missing_or_not_read_contributes_nothing(told):
    _, frame, found = told
    values = found.by_column().values
    for j, name in enumerate(frame.columns):
        assert (values[frame[name].isna(), j] == 0).all()
    assert (values[:, 4:] == 0).all()
    assert found.by_column().read.tolist()[4:] == [False, False]
    assert np.abs(values[:, :4]).max(axis=(0, 2)).min() > 0
    np.testing.assert_allclose(values.sum(axis=1), found.values.sum(axis=1), atol=1e-9)


def test_a_missing_cell_that_is_a_sign_contributes_what_its_mark_says():
    frame, labels = table_of(160, 1)
    frame["u"] = frame["u"].where(labels == "ill")
    clf = RiskBayesClassifier("neighbours").fit(frame, labels)
    found = clf.explain(frame)
    assert log_odds_gap(clf, found, frame) < 1e-9
    assert found.log_odds("well").values[labels == "well", 0].min() > 1


EXPERTS = [
    ProductOfExperts([NeighboursModel(), QuadraticDiscriminantAnalysis()], [0.5, 0.5]),
    ProductOfExperts([("leaves", LeavesModel(n_trees=8), [0, 2, 3])], [1.0]),
    GenerativeClassifier(MixtureModel(LDAModel(), n_components=2)),
]


@pytest.mark.parametrize("clf", EXPERTS, ids=["neighbours", "leaves", "mixture"])
@pytest.mark.parametrize("learner", ["closed_form", "rc"])
def test_estimators_of_models_that_are_no_sum_add_up(clf, learner):
    clf = clf.set_params(learner=learner).fit(X, y)
    found = clf.explain(X[::10])
    assert log_odds_gap(clf, found, X[::10]) < 1e-9
    leaves = isinstance(clf, ProductOfExperts) and len(clf.model_.experts) == 1
    assert found.read.tolist() == [True, not leaves, True, True]
    assert (found.values[:, ~found.read] == 0).all()
    assert found.method == "Shapley values over all orders"


@dataclass(frozen=True)
class Means:
    log_prior: np.ndarray
    means: np.ndarray


class UnitGaussians(GenerativeModel):
    """Three formulas: no contributions, no missing cells."""

    def statistics(self, Z, W):
        return Statistics({"s0": W.sum(axis=0), "s1": W.T @ Z})

    def parameters(self, S):
        return Means(log_class_prior(S["s0"]), S["s1"] / S["s0"][:, None])

    def log_joint(self, Z, theta):
        return theta.log_prior - 0.5 * ((Z[:, None, :] - theta.means) ** 2).sum(axis=2)


def test_refusals():
    clf = GenerativeClassifier(UnitGaussians()).fit(X, y)
    with pytest.raises(NotImplementedError, match=r"UnitGaussians are no sum.*takes no missing cells.*Give"):
        clf.explain(X)
    clf = MixtureDiscriminantAnalysis().fit(X, y)
    for wrong in (3, 7, 2, 0, 4.0, "many"):
        with pytest.raises(ValueError, match="n_orders must be an even number of at least 4"):
            clf.explain(X, n_orders=wrong)
    with pytest.raises(ValueError, match=r"Column 1 of X holds 1e\+200 in row 1"):
        clf.explain([[5.0, 3.0, 1.0, 0.2], [0.0, 1e200, 0.0, 0.0]])


def test_errors_of_the_log_odds_of_two_classes_are_exact_and_of_more_an_upper_bound(many):
    clf, rows = many
    found = clf.explain(rows)
    odds = found.log_odds()
    np.testing.assert_allclose(odds.errors, 2 * found.errors[:, :, 0])
    np.testing.assert_allclose(found.errors[:, :, 0], found.errors[:, :, 1])
    frame = found.to_frame()
    np.testing.assert_allclose(frame["standard_error"], found.errors.ravel())


def test_rows_of_an_explanation_are_taken_by_index_slice_and_mask(many):
    clf, rows = many
    found = clf.explain(rows)
    for wanted in (slice(2, 5), [2, 3, 4], np.isin(np.arange(len(rows)), [2, 3, 4])):
        assert (found[wanted].values == found.values[2:5]).all()
        assert (found[wanted].errors == found.errors[2:5]).all()
    assert len(found[-1]) == 1
    assert (found[-1].cells == rows[-1:]).all()
    assert repr(found[:2]) == (
        "Explanation(2 rows, 10 columns, 2 classes, Shapley values over 32 orders drawn at random)"
    )


def test_what_a_pair_contributes_is_divided_among_its_columns():
    rng = np.random.default_rng(0)
    A = rng.uniform(0.0, 3.0, size=(800, 3))
    b = (A[:, 0].astype(int) + A[:, 1].astype(int)) % 2
    clf = RiskBayesClassifier("glass").fit(A, b)
    found = clf.explain(A[:50])
    assert len(found.pairs) == len(found.columns) - 3 > 0
    halves = found.by_column()
    assert halves.columns == [0, 1, 2]
    assert halves.pairs == ()
    expected = found.values[:, :3].copy()
    for place, (i, j) in enumerate(found.pairs, 3):
        expected[:, [i, j]] += 0.5 * found.values[:, [place]]
    np.testing.assert_allclose(halves.values, expected, atol=1e-12)
    assert halves.by_column() is halves


HOSTILE = "<script>alert(1)</script>&\"'"


def test_the_page_of_a_notebook_escapes_every_text():
    frame, labels = table_of(80, 2)
    frame = frame.rename(columns={"word": HOSTILE})
    frame[HOSTILE] = np.where(frame[HOSTILE] == "yes", HOSTILE + "cell", "no")
    clf = RiskBayesClassifier("single").fit(frame, np.where(labels == "ill", HOSTILE + "label", "well"))
    for rows in (frame, frame[:1]):
        page = clf.explain(rows)._repr_html_()
        assert "<script>" not in page
        assert page.count("&lt;script&gt;") >= 3
        assert "prior" in page
        assert "total" in page
        assert "not read by the model: <bdi>same</bdi>" in page.lower()
    assert "3 orders" not in page


def test_the_page_of_a_notebook_shows_errors_and_all_figures(many):
    clf, rows = many
    found = clf.explain(rows)
    page, odds = found._repr_html_(), found.log_odds()
    for i in range(3):
        assert f"{odds.total[i]:+.2f}" in page
        j = np.abs(odds.values[i]).argmax()
        assert f"{odds.values[i, j]:+.2f} ± {odds.errors[i, j]:.2f}" in page
    assert "Row 2:" in page
    assert "Row 3:" not in page
    assert "Shapley values over 32 orders drawn at random" in page


def test_a_class_of_probability_zero_has_no_evidence():
    clf = MixtureDiscriminantAnalysis().fit(X, y).with_priors([0.5, 0.5, 0.0])
    found = clf.explain(X[::20])
    assert np.isneginf(found.baseline[2])
    joint = found.baseline + found.values.sum(axis=1)
    logs = clf.predict_log_proba(X[::20])
    np.testing.assert_allclose(joint[:, 1] - joint[:, 0], logs[:, 1] - logs[:, 0], atol=1e-9)
    assert "prior" in found._repr_html_()


def test_a_saved_model_explains_alike(tmp_path):
    clf = MixtureDiscriminantAnalysis().fit(X, y)
    again = riskbayes.load(clf.save(tmp_path / "m.rb"))
    assert (again.explain(X[:5]).values == clf.explain(X[:5]).values).all()
