"""Tables of columns and of pairs that correct a classifier."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression

from riskbayes.models import correction
from riskbayes.models.cells import N_LEVELS, PairBins, TableCells
from riskbayes.models.correction import Correction, Gain, Ridge, correct
from riskbayes.models.pairs import best_pairs, pair_gains


def rows(seed=0, m=200, r=3):
    """Two numbers, of many and of few values, and two categories, with missing cells; labels; an offset."""
    rng = np.random.default_rng(seed)
    X = np.stack(
        [rng.normal(size=m), rng.integers(0, 5, m), rng.integers(0, 3, m), rng.integers(0, 20, m)], axis=1
    ).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    offset = rng.normal(size=(m, r))
    return X, rng.integers(0, r, m), rng.random(m), offset - np.logaddexp.reduce(offset, axis=1)[:, None]


def cells_of(X, pairs=((0, 1), (0, 2), (2, 3))):
    numbers, codes = np.array([0, 1]), np.array([2, 3])
    cells = TableCells.learn(X, None, numbers, codes)
    if not len(pairs):
        return cells
    bins = PairBins.learn(X, numbers, codes)
    return cells.with_pairs(bins, bins.encode(X), np.array(pairs))


@pytest.mark.parametrize("weighted", [False, True])
def test_residual_statistics_are_the_gradient(weighted):
    X, y, w, offset = rows()
    cells = cells_of(X)
    gain = Gain(cells.encode(X), cells, offset, y, w if weighted else None)
    ridge, shape = Ridge(3.0, 0.7).of(cells), (1 + int(cells.first[-1]), 3)
    W = np.random.default_rng(1).normal(size=shape).ravel()
    error = check_grad(
        lambda v: gain(v.reshape(shape), ridge)[0], lambda v: gain(v.reshape(shape), ridge)[1].ravel(), W
    )
    assert error < 1e-5


def test_weights_are_repeats():
    X, y, _, offset = rows()
    w = np.random.default_rng(2).integers(1, 4, len(X))
    cells = cells_of(X)
    many = np.repeat(np.arange(len(X)), w)
    once = Gain(cells.encode(X), cells, offset, y, w.astype(float))
    again = Gain(cells.encode(X[many]), cells, offset[many], y[many], None)
    np.testing.assert_allclose(correct(once, Ridge(1.0, 1.0)), correct(again, Ridge(1.0, 1.0)), atol=1e-9)


@pytest.mark.parametrize("strength", [0.3, 5.0])
def test_without_an_offset_it_is_one_hot_logistic_regression(monkeypatch, strength):
    monkeypatch.setattr(correction, "ENOUGH", 1e-13)
    monkeypatch.setattr(correction, "MOST_SCANS", 1000)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = ((y + rng.integers(0, 3, 300)) % 4).astype(float)[:, None]
    none = np.empty(0, np.int64)
    cells = TableCells.learn(X, None, none, np.array([0]))
    gain = Gain(cells.encode(X), cells, np.zeros((300, 3)), y, None)
    W = correct(gain, Ridge(strength))
    # The classes have a ridge of one: a column of sqrt(strength) with the ridge of the others.
    one_hot = np.column_stack([np.arange(4) == X, np.full(300, np.sqrt(strength))])
    other = LogisticRegression(C=1 / strength, fit_intercept=False, tol=1e-10, max_iter=10_000)
    other.fit(one_hot, y)
    np.testing.assert_allclose(gain.posterior(W), other.predict_proba(one_hot), atol=1e-6)
    np.testing.assert_allclose(W[1:], other.coef_.T[:4], atol=1e-5)


def test_the_gain_rises_to_its_maximum(monkeypatch):
    monkeypatch.setattr(correction, "ENOUGH", 1e-12)
    monkeypatch.setattr(correction, "MOST_SCANS", 1000)
    X, y, w, offset = rows()
    cells = cells_of(X)
    gain, ridge = Gain(cells.encode(X), cells, offset, y, w), Ridge(1.0, 2.0)
    _, gradient = gain(correct(gain, ridge), ridge.of(cells))
    assert abs(gradient).max() < 1e-5


def test_contributions_add_up():
    X, y, _, offset = rows()
    cells = cells_of(X)
    gain = Gain(cells.encode(X), cells, offset, y, None)
    W = correct(gain, Ridge(0.3, 0.3))
    found = Correction(cells, W[0], W[1:], 0.7)
    of_columns, of_pairs = found.contributions(X)
    joint = 0.7 * offset + found.log_prior + of_columns.sum(axis=1) + of_pairs.sum(axis=1)
    np.testing.assert_allclose(joint, found.log_joint(cells.encode(X), offset), atol=1e-12)
    assert (of_columns[np.isnan(X)] == 0).all()
    assert (of_pairs[np.isnan(X[:, 0]), 0] == 0).all()
    assert abs(of_pairs).max() > 0


def test_a_number_between_two_knots_belongs_to_both():
    X = np.linspace(0.0, 1.0, 101)[:, None]
    Z = TableCells.learn(X, None, np.array([0]), np.empty(0, np.int64)).encode(X).toarray()
    np.testing.assert_allclose(Z.sum(axis=1), 1.0)
    assert (np.count_nonzero(Z, axis=1) <= 2).all()
    assert Z.shape[1] == 8


def test_what_training_had_not_has_no_cell():
    X = rows()[0]
    cells = cells_of(X)
    new = np.full((1, 4), np.nan)
    new[0, 2:] = 99.0
    assert cells.encode(new).sum() == 0


def test_rare_levels_share_one():
    x = np.repeat(np.arange(30.0), np.arange(30, 0, -1))
    bins = PairBins.learn(x[:, None], np.empty(0, np.int64), np.array([0]))
    assert bins.sizes.tolist() == [N_LEVELS + 1]
    assert bins.encode(np.array([[0.0], [29.0], [np.nan], [40.0]]))[:, 0].tolist() == [0, N_LEVELS, -1, -1]


@pytest.mark.parametrize("r", [2, 3])
def test_gains_of_pairs_are_those_of_their_cells(r):
    rng = np.random.default_rng(r)
    Z, sizes = rng.integers(-1, 3, (80, 4)), np.full(4, 3)
    P = rng.dirichlet(np.ones(r), 80)
    E, V = np.eye(r)[rng.integers(0, r, 80)] - P, P * (1 - P)

    def gain(*columns):
        total = 0.0
        for cell in np.unique(Z[:, columns], axis=0):
            own = (Z[:, columns] == cell).all(axis=1)
            if (cell >= 0).all():
                e, v = E[own].sum(axis=0), V[own].sum(axis=0)
                total += ((e**2 - v) / (v + 1)).sum()
        return total / (2 if r == 2 else 1)

    found = pair_gains(Z, sizes, E, V)
    for a, b in ((0, 1), (1, 3), (2, 3)):
        assert found[a, b] == pytest.approx(gain(a, b) - gain(a) - gain(b), rel=1e-4, abs=1e-4)
    best = best_pairs(found, 3).tolist()
    assert found[tuple(best[0])] == found[np.triu_indices(4, 1)].max()


def test_a_file_whose_tables_do_not_fit_is_refused():
    cells = cells_of(rows()[0])
    Correction(cells, np.zeros(3), np.zeros((int(cells.first[-1]), 3))).check_loaded(0)
    with pytest.raises(ValueError, match="tables has the shape"):
        Correction(cells, np.zeros(3), np.zeros((int(cells.first[-1]) - 1, 3))).check_loaded(0)
