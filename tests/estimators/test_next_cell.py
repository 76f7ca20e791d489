"""The expected gain of a cell: against SciPy's integrals and sums over values, through public methods."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import simpson
from scipy.special import rel_entr
from scipy.stats import entropy
from sklearn.datasets import load_iris

from riskbayes import (
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    KDependenceNB,
    LinearDiscriminantAnalysis,
    MixedNB,
    MixtureDiscriminantAnalysis,
    MultinomialNB,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
    TreeAugmentedNB,
)
from riskbayes.estimators.next_cell import information

X, y = load_iris(return_X_y=True)
CODES = np.round(X).astype(float)
NUMBERS = [GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, SmoothNB, MixedNB]


def row(rows, i, missing):
    """One row without some cells."""
    found = rows[[i]].astype(float)
    found[0, missing] = np.nan
    return found


def gains(clf, x, j, values):
    """The density of each value of cell j given the others, times what the value says of the class."""
    P, log_density = clf.predict_proba(x)[0], clf.score_samples(x)[0]
    rows = np.repeat(x, len(values), axis=0)
    rows[:, j] = values
    density = np.exp(clf.score_samples(rows) - log_density)
    return density * rel_entr(clf.predict_proba(rows), P).sum(axis=1)


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("i", "missing"), [(0, [2]), (70, [1, 2, 3]), (120, [0, 1, 2, 3])])
def test_the_gain_of_a_number_is_scipys_integral(kind, i, missing):
    clf = kind().fit(X, y)
    x = row(X, i, missing)
    found = clf.next_cell(x)
    for j in missing:
        values = np.linspace(X[:, j].min() - 5, X[:, j].max() + 5, 20001)
        expected = simpson(gains(clf, x, j, values), values)
        assert found.values[0, j] == pytest.approx(expected, abs=1e-5, rel=1e-4)
    assert np.isnan(np.delete(found.values[0], missing)).all()
    assert found.best == [missing[int(found.values[0, missing].argmax())]]


@pytest.mark.parametrize(
    ("kind", "rows", "values"),
    [
        (CategoricalNB, CODES, range(9)),
        (TreeAugmentedNB, CODES, range(9)),
        (PoissonNB, CODES, range(60)),
        (BernoulliNB, (X.mean(axis=0) < X).astype(float), range(2)),
    ],
    ids=["categories", "tree", "counts", "binary"],
)
@pytest.mark.parametrize(("i", "missing"), [(0, [2]), (70, [1, 2, 3]), (120, [0, 1, 2, 3])])
def test_the_gain_of_a_category_or_count_is_a_sum_over_its_values(kind, rows, values, i, missing):
    clf = kind().fit(rows if kind is not CategoricalNB else rows.astype(int), y)
    x = row(rows, i, missing)
    found = clf.next_cell(x)
    for j in missing:
        last = rows[:, j].max() if kind in (CategoricalNB, TreeAugmentedNB) else np.inf
        expected = gains(clf, x, j, [value for value in values if value <= last]).sum()
        assert found.values[0, j] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def mixed(rows):
    table = pd.DataFrame({"length": np.where(rows[:, 0] > 5.8, "long", "short"), "petal": rows[:, 2]})
    table["day"] = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(len(rows)) % 60, unit="D")
    table["constant"] = 1.0
    return table


def test_tables_of_strings_dates_and_numbers():
    table = mixed(X)
    clf = MixedNB(missing="informative").fit(table.mask(np.arange(600).reshape(150, 4) % 11 == 0), y)
    holes = table[:4].copy()
    holes.loc[0, "length"] = holes.loc[1, "petal"] = None
    holes.loc[2, ["length", "petal", "day"]] = None
    found = clf.next_cell(holes)
    assert found.columns == ["length", "petal", "day", "constant"]  # of which only gaps are read
    observed = [[0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]]
    assert np.isnan(found.values).astype(int).tolist() == observed
    assert found.best == ["length", "petal", "petal", None]
    assert found.values[2, 2] < found.values[2, 0] < found.values[2, 1]
    whole = clf.with_priors(np.array([0.98, 0.01, 0.01])).next_cell(holes)
    assert whole.values[2, 1] < found.values[2, 1]
    single = [clf.next_cell(holes.iloc[[i]]).values[0] for i in range(4)]
    np.testing.assert_allclose(single, found.values, rtol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_information_is_the_fall_of_entropy_and_never_negative(seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), 5)
    f = rng.dirichlet(np.full(7, 0.3), (5, 3)).swapaxes(1, 2)
    joint = P[:, None, :] * f
    posteriors = joint / joint.sum(axis=2, keepdims=True)
    expected = entropy(P, axis=1) - (joint.sum(axis=2) * entropy(posteriors, axis=2)).sum(axis=1)
    with np.errstate(divide="ignore"):
        found = information(P, np.log(f) + 3.0, np.full((5, 7), 2.0))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found >= 0).all()
    assert (found <= entropy(P, axis=1) + 1e-12).all()


def test_a_column_that_is_alike_in_all_classes_says_nothing():
    rng = np.random.default_rng(0)
    rows = np.column_stack([X[:, 2], np.tile(rng.standard_normal(50), 3)])
    clf = GaussianNB(learner="closed_form").fit(rows, y)
    values = clf.next_cell(np.full((1, 2), np.nan)).values[0]
    assert values[1] == pytest.approx(0, abs=1e-9)
    assert values[0] > 0.8


@pytest.mark.parametrize("kind", [MultinomialNB, MixtureDiscriminantAnalysis, RiskBayesClassifier])
def test_models_without_a_distribution_of_a_cell_refuse(kind):
    clf = (kind("single") if kind is RiskBayesClassifier else kind()).fit(X, y)
    with pytest.raises(
        NotImplementedError, match=f"{kind.__name__} cannot tell what a cell is expected to say"
    ):
        clf.next_cell(X)


def test_a_network_with_two_parents_refuses():
    clf = KDependenceNB(k=2).fit(CODES.astype(int), y)
    with pytest.raises(NotImplementedError, match=r"two or more parents.*Fit TreeAugmentedNB"):
        clf.next_cell(row(CODES, 0, [1]))
