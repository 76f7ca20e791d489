"""Conditional Gaussian networks: against SciPy and enumeration, structure, missing cells, and prior."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn.naive_bayes import GaussianNB

import riskbayes
from conftest import assert_same, closed_form, log_joint
from riskbayes import ConditionalGaussianNB, FlooredWarning, MixedNB, TreeAugmentedNB
from riskbayes.models import ConditionalGaussianModel, network_completions
from riskbayes.models.base import Fitted, Sample, draw_rows
from riskbayes.models.mixed_structure import Numbers, mixed_parents
from riskbayes.models.network import Network
from riskbayes.models.parent_tables import tables_of
from riskbayes.scanners.dense import label_statistics

SIZES = np.array([3, 2, 4])
CATEGORIES, NUMBERS = np.array([0, 3, 5]), np.array([1, 2, 4, 6, 7, 8, 9])
TREE = Network(
    CATEGORIES,
    NUMBERS,
    (tables_of(SIZES, ((), (0,), (0,))),),
    parents=np.array([[-1], [0], [1], [1], [-1], [4], [-1]]),
    given=np.array([[2], [-1], [-1], [-1], [-1], [-1], [2]]),
    origin=np.array([0.0, 100.0, -3.0, 0.5, 0.0, 0.0, 7.0]),
    unit=2.0 ** np.array([0, 5, -3, 0, 1, 0, 10]),
    maps=(),
    eps=np.array(2.0**-52),
)
"""A category with two below it, of which one has two numbers, one of them with numbers two levels below it;
and a pair of numbers of their own."""

NETWORK = replace(
    TREE,
    tables=(tables_of(SIZES, ((), (0,), (0, 1))),),
    parents=np.array([[-1, -1], [0, -1], [0, 1], [1, -1], [-1, -1], [4, 2], [-1, -1]]),
    given=np.array([[2, 1], [1, -1], [-1, -1], [-1, -1], [-1, -1], [-1, -1], [2, 0]]),
)
"""The same columns with up to two parents: of categories, of numbers, and of both kinds."""

FRAMES = pytest.mark.parametrize("frame", [TREE, NETWORK], ids=["tree", "network"])

MODEL = ConditionalGaussianModel(tuple(CATEGORIES.tolist()))


def parents_of(frame):
    """The parents of each category, and of each number its categories and its numbers."""
    return frame.tables[0].parent_lists, frame.category_parents, frame.number_parents


def cell_of(frame, j, codes):
    """The cell of a number in rows of these categories: the first parent varies fastest."""
    at, step = frame.starts[j], 1
    for c in frame.category_parents[j]:
        at, step = at + step * codes[c], step * (SIZES[c] + 1)
    return at


def dependent_rows(rng, m=400, r=2, frame=TREE):
    """Rows whose columns depend on each other along a network, and on the class."""
    y = np.concatenate([np.arange(r).repeat(40), rng.integers(r, size=m - 40 * r)])
    among, given, parents = parents_of(frame)
    codes = np.zeros((m, 3), dtype=int)
    codes[:, 0] = (rng.integers(3, size=m) + (rng.random(m) < 0.3) * y) % 3

    def cells(own):
        """The combination of values of some categories in each row, and how many there are."""
        return np.ravel_multi_index((codes[:, list(own)].T), SIZES[list(own)]), SIZES[list(own)].prod()

    for i, size in ((1, 2), (2, 4)):
        cell, n = cells(among[i])
        own = rng.integers(size, size=(r, n))[y, cell]
        codes[:, i] = np.where(rng.random(m) < 0.6, own, rng.integers(size, size=m))
    D = rng.standard_normal((m, 7)) * rng.uniform(0.3, 1.5, size=(r, 7))[y]
    for j in frame.order:
        cell, n = cells(given[j]) if given[j] else (0, 1)
        if given[j]:
            D[:, j] += rng.standard_normal((r, n))[y, cell] * 2
        for p in parents[j]:
            D[:, j] += rng.uniform(-2, 2, size=r)[y] * D[:, p] + rng.standard_normal(r)[y]
            if given[j]:
                D[:, j] += 0.5 * rng.standard_normal((r, n))[y, cell] * D[:, p]
    X = np.empty((m, 10))
    X[:, CATEGORIES], X[:, NUMBERS] = codes, frame.origin + frame.unit * D
    return X, y


def fitted_on(X, y, model=MODEL, frame=TREE):
    """The closed form of rows in a network that is given."""
    r = int(y.max()) + 1
    S = label_statistics(model, model.encode(X, frame), y, None, r)
    return Fitted.of(model, model.fix_prior(S))


def gaussian_of(theta, k, codes):
    """Mean and covariance of all numbers in class k, for these categories."""
    frame, n = theta.frame, len(theta.frame.numbers)
    mean, C = np.zeros(n), np.zeros((n, n))
    for j in frame.order:
        cell, b = cell_of(frame, j, codes), np.zeros(n)
        for place, p in enumerate(frame.number_parents[j]):
            b[p] = theta.slopes[k, frame.groups_of[j].slopes[cell - frame.starts[j], place]]
        mean[j] = theta.means[k, cell] + b @ mean
        C[j] = C[:, j] = C @ b
        C[j, j] = theta.variances[k, cell] + b @ C @ b
    return frame.origin + frame.unit * mean, C * np.outer(frame.unit, frame.unit)


def configurations(row):
    """Every completion of the categories of a row."""
    known = [range(size) if np.isnan(x) else [int(x)] for x, size in zip(row[CATEGORIES], SIZES, strict=True)]
    return product(*known)


def log_tables(theta, k, codes):
    """log p(categories | y), one factor after another."""
    tables = theta.frame.tables[0]
    return sum(theta.tables.log_prob[k, tables.offsets[i] + joint_code(tables, i, codes)] for i in range(3))


def joint_code(tables, i, codes):
    """The column of a category and its parents in its table."""
    place, step = codes[i], SIZES[i] + 1
    for p in tables.parent_lists[i]:
        place, step = place + step * codes[p], step * (SIZES[p] + 1)
    return place


def enumerated(theta, row, k):
    """log p(row, y = k) by SciPy, and p(codes | row, y = k), with the Gaussians of each."""
    here, parts = ~np.isnan(row[NUMBERS]), []
    for codes in configurations(row):
        mean, C = gaussian_of(theta, k, codes)
        value = log_tables(theta, k, codes)
        if here.any():
            value += multivariate_normal(mean[here], C[np.ix_(here, here)]).logpdf(row[NUMBERS][here])
        parts.append((value, codes, mean, C))
    total = logsumexp([value for value, *_ in parts])
    return theta.log_prior[k] + total, [(np.exp(v - total), codes, mean, C) for v, codes, mean, C in parts]


def completed(theta, row, k):
    """p(codes | row, y = k) with E[x | codes, row] and E[x x^T | codes, row] in units, by dense algebra."""
    here, frame = ~np.isnan(row[NUMBERS]), theta.frame
    for p, codes, mean, C in enumerated(theta, row, k)[1]:
        gain = C[:, here] @ np.linalg.inv(C[np.ix_(here, here)]) if here.any() else np.zeros((7, 0))
        x = (mean + gain @ (row[NUMBERS] - mean)[here] - frame.origin) / frame.unit
        rest = (C - gain @ C[here]) / np.outer(frame.unit, frame.unit)
        yield p, codes, x, rest + np.outer(x, x)


def with_holes(rng, X, share=0.4):
    X = X.copy()
    X[rng.random(X.shape) < share] = np.nan
    X[0] = np.nan
    return X


@FRAMES
@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_the_joint_of_what_is_present_is_that_of_scipy(share, frame):
    rng = np.random.default_rng(0)
    X, y = dependent_rows(rng, frame=frame)
    theta = fitted_on(X, y, frame=frame).theta
    rows = with_holes(rng, X[:60], share) if share else X[:60]
    ours = MODEL.log_joint(MODEL.encode(rows, frame), theta)
    theirs = [[enumerated(theta, row, k)[0] for k in range(2)] for row in rows]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@FRAMES
def test_expected_statistics_of_missing_cells_are_those_of_dense_gaussians(frame):
    rng = np.random.default_rng(1)
    X, y = dependent_rows(rng, frame=frame)
    theta = fitted_on(X, y, frame=frame).theta
    rows, W = with_holes(rng, X[:25]), rng.random((25, 2))
    rows[1:3] = X[1:3]
    Z = MODEL.encode(rows, frame)
    assert Z.hard is not None
    assert not Z.hard.all()
    found = MODEL.posterior_statistics(Z, W, theta)
    expected = {name: np.zeros_like(value) for name, value in found.items()}
    expected["s0"] = W.sum(axis=0)
    tables = frame.tables[0]
    for row, weights in zip(rows, W, strict=True):
        told = told_of(~np.isnan(row), frame)
        for k, weight in enumerate(weights):
            for p, codes, x, square in completed(theta, row, k):
                w = weight * p
                for i in np.flatnonzero(told[CATEGORIES]):
                    expected["counts"][k, tables.offsets[i] + joint_code(tables, i, codes)] += w
                for j in np.flatnonzero(told[NUMBERS]):
                    cell, group = cell_of(frame, j, codes), frame.groups_of[j]
                    for name, value in (("mass", 1.0), ("s1", x[j]), ("s2", square[j, j])):
                        expected[name][k, cell] += w * value
                    z, own = list(frame.number_parents[j]), cell - frame.starts[j]
                    expected["cross"][k, group.slopes[own]] += w * square[j, z]
                    expected["parent1"][k, group.slopes[own]] += w * x[z]
                    expected["parent2"][k, group.squares[own]] += w * square[np.ix_(z, z)]
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-8, atol=1e-9, err_msg=name)


def told_of(present, frame):
    """A mask of the columns of which they or a descendant are present."""
    found = present.copy()
    among, given, parents = parents_of(frame)
    for j in frame.order[::-1]:
        for above in (*NUMBERS[list(parents[j])], *CATEGORIES[list(given[j])]):
            found[above] |= found[NUMBERS[j]]
    for i in (2, 1):
        for p in among[i]:
            found[CATEGORIES[p]] |= found[CATEGORIES[i]]
    return found


@FRAMES
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_residual_is_the_gradient_of_the_likelihood(share, frame):
    """Along any residual E the log-likelihood changes by dS times the change of the parameters."""
    rng = np.random.default_rng(2)
    X, y = dependent_rows(rng, m=400 if frame is TREE else 4000, frame=frame)
    _, S, theta = fitted_on(X, y, frame=frame)
    rows, E = with_holes(rng, X[:80], share) if share else X[:80], rng.standard_normal((80, 2))
    Z = MODEL.encode(rows, frame)
    dS = MODEL.residual_statistics(Z, E, theta)
    # log p(x, y) of the rows, as a function of the parameters; these, of the statistics S + t V.
    other = MODEL.posterior_statistics(Z, rng.random((80, 2)), theta)

    def gain(t):
        moved = MODEL.parameters(S + t * other)
        return (E * MODEL.log_joint(Z, moved)).sum(), MODEL.log_likelihood(dS, moved)

    step = 1e-4
    ups, downs = gain(step), gain(-step)
    slopes = [(up - down) / (2 * step) for up, down in zip(ups, downs, strict=True)]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-5)
    assert abs(slopes[0]) > 1e-3


@FRAMES
def test_samples_give_the_parameters_back(frame):
    rng = np.random.default_rng(3)
    X, y = dependent_rows(rng, m=400 if frame is TREE else 4000, frame=frame)
    model, S, theta = fitted_on(X, y, frame=frame)
    drawn, labels = draw_rows(model, theta, 100_000, rng)
    again = fitted_on(drawn, labels, frame=frame)
    assert again.S.allclose(model.expected_statistics(theta, again.S.total), rtol=0.03)
    for name in ("means", "variances", "slopes"):
        known = np.isfinite(getattr(theta, name))
        cells = np.flatnonzero(S["mass"].min(axis=0) > 0) if name != "slopes" else slice(None)
        ours, theirs = (getattr(each, name)[:, cells] for each in (again.theta, theta))
        np.testing.assert_allclose(ours, theirs, atol=0.08 * np.abs(theirs).max(), err_msg=name)
        assert known.all()


def test_the_expected_statistics_of_the_closed_form_are_the_data():
    X, y = dependent_rows(np.random.default_rng(4))
    model, S, theta = fitted_on(X, y)
    assert model.expected_statistics(theta, S.total).allclose(S, rtol=1e-8, atol=1e-8)
    assert model.anchor_statistics(S).allclose((1 / S.total) * S, rtol=1e-8, atol=1e-10)


def test_statistics_move_to_another_origin_and_other_units():
    X, y = dependent_rows(np.random.default_rng(21))
    moved = replace(TREE, origin=TREE.origin + 3.0 * TREE.unit, unit=4.0 * TREE.unit[::-1])
    here, there = (label_statistics(MODEL, MODEL.encode(X, frame), y, None, 2) for frame in (TREE, moved))
    assert here.to_frame(moved).allclose(there, rtol=1e-9)
    assert (here + there).frame is TREE
    with pytest.raises(ValueError, match="another tree"):
        here.to_frame(replace(TREE, parents=np.full((7, 1), -1)))


@FRAMES
def test_draws_of_missing_cells_have_the_moments_of_dense_gaussians(frame):
    rng = np.random.default_rng(5)
    X, y = dependent_rows(rng, frame=frame)
    theta = fitted_on(X, y, frame=frame).theta
    for row in with_holes(rng, X[:4], 0.5):
        m = 20_000
        Z = MODEL.encode(np.tile(row, (m, 1)), frame)
        filled = MODEL.fill(Z, theta, np.zeros(m, dtype=int), rng)
        D = (filled[:, NUMBERS] - TREE.origin) / TREE.unit
        parts = list(completed(theta, row, 0))
        mean = sum(p * x for p, _, x, _ in parts)
        square = sum(p * second for p, _, _, second in parts)
        spread = np.sqrt(np.maximum(np.diag(square) - mean**2, 0)) + 1e-9
        assert (np.abs(D.mean(axis=0) - mean) < 5 * spread / np.sqrt(m) + 1e-9).all()
        own = np.abs(D.T @ D / m - square) / (1 + np.abs(square))
        assert own.max() < 0.1
        for i, column in enumerate(CATEGORIES):
            for code in range(SIZES[i]):
                p = sum(p for p, codes, _, _ in parts if codes[i] == code)
                assert (filled[:, column] == code).mean() == pytest.approx(p, abs=0.02)
        if frame is NETWORK:
            continue  # modes and means of columns that nothing is known of follow their parents
        expected = MODEL.fill(MODEL.encode(row[None], frame), theta, np.zeros(1, dtype=int))[0]
        np.testing.assert_allclose((expected[NUMBERS] - TREE.origin) / TREE.unit, mean, rtol=1e-7, atol=1e-7)
        best = max(enumerated(theta, row, 0)[1], key=lambda part: part[0])
        np.testing.assert_array_equal(expected[CATEGORIES], best[1])


@FRAMES
def test_contributions_sum_to_the_scores_and_missing_cells_add_nothing(frame):
    rng = np.random.default_rng(6)
    X, y = dependent_rows(rng, frame=frame)
    theta = fitted_on(X, y, frame=frame).theta
    rows = with_holes(rng, X[:40], 0.3)
    Z = MODEL.encode(rows, frame)
    values = MODEL.contributions(Z, theta)
    np.testing.assert_allclose(values.sum(axis=1) + theta.log_prior, MODEL.scores(Z, theta), atol=1e-9)
    np.testing.assert_allclose(values[np.isnan(rows)], 0.0, atol=1e-9)


@FRAMES
def test_em_never_lowers_the_likelihood_and_finds_what_was_removed(frame):
    rng = np.random.default_rng(7)
    X, y = dependent_rows(rng, m=3000, frame=frame)
    whole, rows = fitted_on(X, y, frame=frame).theta, X.copy()
    rows[rng.random(X.shape) < 0.15] = np.nan
    frame = MODEL._with_start(frame, Sample(rows, y, None, 2))
    path = np.array(frame.em_log_likelihood)
    assert len(path) > 1
    assert (np.diff(path) > -1e-9).all()
    np.testing.assert_allclose(frame.start.slopes, whole.slopes, atol=0.2)
    Z, W = MODEL.encode(rows, frame), np.eye(2)[y]
    start = (W * MODEL.log_joint(Z, frame.start)).sum() / len(y)
    assert start == pytest.approx(path[-1])


PRIOR = {"alpha": 1.0, "backoff": 5.0, "class_alpha": 0.5}


def calibrated_a_little(rng, X, y, model, frame):
    """The closed form, and a model whose statistics are some steps away from it."""
    closed = fitted_on(X, y, model, frame)
    E = 0.1 * (rng.dirichlet(np.ones(2), len(y)) - np.eye(2)[y])
    moved = closed.S + model.residual_statistics(model.encode(X, frame), E, closed.theta)
    return closed, Fitted.of(model, moved)


@FRAMES
@pytest.mark.parametrize("prior", [{}, PRIOR], ids=["ml", "map"])
def test_coordinates_are_those_of_the_parameters(prior, frame):
    rng = np.random.default_rng(22)
    X, y = dependent_rows(rng, m=400 if frame is TREE else 2000, frame=frame)
    model = ConditionalGaussianModel(MODEL.categories, **prior)
    closed, fitted = calibrated_a_little(rng, X, y, model, frame)
    coordinates = model.coordinates(closed.S)
    again = model.parameters(coordinates.statistics(coordinates.point(fitted)))
    Z = model.encode(X, frame)
    np.testing.assert_allclose(
        model.log_joint(Z, again), model.log_joint(Z, fitted.theta), rtol=1e-7, atol=1e-7
    )


@FRAMES
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("weight", [0.0, 0.7])
def test_the_gradient_by_coordinates_is_that_of_differences(share, weight, frame):
    """Of the mean conditional log-likelihood, plus the anchor's."""
    rng = np.random.default_rng(23)
    X, y = dependent_rows(rng, frame=frame)
    model = ConditionalGaussianModel(MODEL.categories, **PRIOR)
    closed, fitted = calibrated_a_little(rng, X, y, model, frame)
    rows = with_holes(rng, X, share) if share else X
    Z, coordinates, anchor = (
        model.encode(rows, frame),
        model.coordinates(closed.S),
        model.anchor_likelihood(closed.S),
    )

    def gain(theta):
        joint = model.log_joint(Z, theta)
        return log_softmax(joint, axis=1)[np.arange(len(y)), y].mean() + weight * anchor(theta)

    E = (np.eye(2)[y] - softmax(model.log_joint(Z, fitted.theta), axis=1)) / len(y)
    found = coordinates.gradient(model.residual_statistics(Z, E, fitted.theta), weight, fitted)
    start = coordinates.point(fitted)
    for name, value in found.items():
        along = rng.standard_normal(value.shape)
        along = along if name != "counts" else along * (frame.tables[0].unseen == 0)
        step = 1e-5
        ends = [
            gain(model.parameters(coordinates.statistics({**start, name: start[name] + t * along})))
            for t in (step, -step)
        ]
        slope = (ends[0] - ends[1]) / (2 * step)
        assert slope == pytest.approx((value * along).sum(), rel=2e-4, abs=1e-7), name


def test_lines_in_the_cells_are_least_squares():
    X, y = dependent_rows(np.random.default_rng(24), m=2000, frame=NETWORK)
    theta, D = fitted_on(X, y, frame=NETWORK).theta, (X[:, NUMBERS] - NETWORK.origin) / NETWORK.unit
    codes = X[:, CATEGORIES].astype(int)
    for j, parents in enumerate(NETWORK.number_parents):
        cells = cell_of(NETWORK, j, codes.T) if NETWORK.category_parents[j] else NETWORK.starts[j] + 0 * y
        for k, cell in product(range(2), np.unique(cells)):
            rows = (y == k) & (cells == cell)
            A = np.column_stack([np.ones(rows.sum()), D[rows][:, list(parents)]])
            found, (square,), *_ = np.linalg.lstsq(A, D[rows, j])
            slopes = NETWORK.groups_of[j].slopes[cell - NETWORK.starts[j]]
            ours = [theta.means[k, cell], *theta.slopes[k, slopes]]
            np.testing.assert_allclose(ours, found, rtol=1e-6, atol=1e-8)
            assert theta.variances[k, cell] == pytest.approx(square / rows.sum(), rel=1e-6)


def test_the_prior_backs_off_parent_by_parent():
    """Rows of p(x | fewer parents) are added level by level: in a table, in cells, and in a regression."""
    m = 7.0
    X, y = dependent_rows(np.random.default_rng(25), m=500, frame=NETWORK)
    model = ConditionalGaussianModel(MODEL.categories, backoff=m)
    theta, D = fitted_on(X, y, model, NETWORK).theta, (X[:, NUMBERS] - NETWORK.origin) / NETWORK.unit
    codes, k = X[:, CATEGORIES].astype(int), 1
    mine = y == k
    tables = NETWORK.tables[0]
    for a, b in product(range(3), range(2)):
        p = np.bincount(codes[mine, 2], minlength=4) / mine.sum()
        for rows in (codes[:, 0] == a, (codes[:, 0] == a) & (codes[:, 1] == b)):
            counts = np.bincount(codes[mine & rows, 2], minlength=4)
            p = (counts + m * p) / (counts.sum() + m)
        ours = [
            theta.tables.log_prob[k, tables.offsets[2] + joint_code(tables, 2, (a, b, v))] for v in range(4)
        ]
        np.testing.assert_allclose(np.exp(ours), p, rtol=1e-9)
    for c, b in product(range(4), range(2)):
        mean, variance = D[mine, 0].mean(), D[mine, 0].var()
        for rows in (codes[:, 2] == c, (codes[:, 2] == c) & (codes[:, 1] == b)):
            x = D[mine & rows, 0]
            new = (x.sum() + m * mean) / (len(x) + m)
            square = ((x - new) ** 2).sum() + m * (variance + (mean - new) ** 2)
            mean, variance = new, square / (len(x) + m)
        cell = cell_of(NETWORK, 0, (0, b, c))
        assert theta.means[k, cell] == pytest.approx(mean, rel=1e-9)
        assert theta.variances[k, cell] == pytest.approx(variance, rel=1e-9)
    Z, x = D[mine][:, [0, 1]], D[mine, 2]
    n, away = mine.sum(), (Z - Z.mean(axis=0), x - x.mean())
    slopes = np.linalg.solve((1 + m / n) * away[0].T @ away[0], away[0].T @ away[1])
    np.testing.assert_allclose(theta.slopes[k, NETWORK.groups_of[2].slopes[0]], slopes, rtol=1e-9)


def test_too_many_combinations_of_missing_categories_are_refused(monkeypatch):
    rng = np.random.default_rng(26)
    X, y = dependent_rows(rng, frame=NETWORK)
    theta, rows = fitted_on(X, y, frame=NETWORK).theta, X[:3].copy()
    rows[1, [0, 5]] = np.nan  # three times four values
    monkeypatch.setattr(network_completions, "MOST_COMPLETIONS", 12)
    assert np.isfinite(MODEL.log_joint(MODEL.encode(rows, NETWORK), theta)).all()
    monkeypatch.setattr(network_completions, "MOST_COMPLETIONS", 11)
    with pytest.raises(ValueError, match=r"has 12 combinations .* Set k=1, .* or fill in missing cells"):
        MODEL.log_joint(MODEL.encode(rows, NETWORK), theta)


def test_blocks_of_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(27)
    X, y = dependent_rows(rng, frame=NETWORK)
    theta, Z = fitted_on(X, y, frame=NETWORK).theta, MODEL.encode(with_holes(rng, X[:50]), NETWORK)
    W, whole = rng.random((50, 2)), MODEL.log_joint(Z, theta)
    S = MODEL.posterior_statistics(Z, W, theta)
    monkeypatch.setattr(network_completions, "BLOCK_CELLS", 64)
    assert len(list(network_completions.inferences(Z[Z.hard], theta))) > 5
    np.testing.assert_allclose(MODEL.log_joint(Z, theta), whole, rtol=1e-12)
    assert MODEL.posterior_statistics(Z, W, theta).allclose(S, rtol=1e-9)


# --- structure --------------------------------------------------------------------------------------


def learned(X, y, categories=(), **options):
    model = ConditionalGaussianModel(tuple(categories), **options)
    return model, model.learn(Sample(X, y, None, int(y.max()) + 1))


def test_the_tree_that_made_the_rows_is_found():
    X, y = dependent_rows(np.random.default_rng(8), m=4000)
    _, frame = learned(X, y, CATEGORIES.tolist())

    def pairs(frame):
        """The edges, without their directions."""
        found = [{CATEGORIES[i], CATEGORIES[p]} for i, (p,) in named(frame.tables[0].parent_lists)]
        found += [{NUMBERS[j], NUMBERS[p]} for j, (p,) in named(frame.number_parents)]
        return found + [{NUMBERS[j], CATEGORIES[c]} for j, (c,) in named(frame.category_parents)]

    assert sorted(map(sorted, pairs(frame))) == sorted(map(sorted, pairs(TREE)))


def named(lists):
    return [(i, above) for i, above in enumerate(lists) if above]


def test_parents_that_made_the_rows_are_found():
    rng = np.random.default_rng(28)
    y, codes, D = np.arange(3000) % 2, rng.integers(3, size=(3000, 2)), rng.standard_normal((3000, 2))
    both = (codes.sum(axis=1) + (rng.random(3000) < 0.1)) % 3
    about = D[:, 0] - 2.0 * D[:, 1] + 0.3 * rng.standard_normal(3000)
    bent = (
        np.where(codes[:, 0] == 1, 1.0, -1.0) * D[:, 0] + (codes[:, 0] == 2) + 0.3 * rng.standard_normal(3000)
    )
    X = np.column_stack([codes, both, D, about, bent])
    X[rng.random(X.shape) < 0.05] = np.nan
    clf = ConditionalGaussianModel((0, 1, 2), k=2)
    found = clf.learn(Sample(X, y, None, 2)).parent_lists
    families = {frozenset((child, *above)) for child, above in found.items()}
    assert {frozenset((3, 4, 5)), frozenset((0, 3, 6))} <= families
    assert max(map(len, found.values())) == 2


@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_edge_is_learned_from_noise(k):
    rng = np.random.default_rng(9)
    X, y = (
        np.column_stack([rng.integers(5, size=(500, 3)), rng.standard_normal((500, 4))]),
        np.arange(500) % 3,
    )
    _, frame = learned(X, y, (0, 1, 2), k=k)
    assert not any(map(any, (frame.number_parents, frame.category_parents)))
    assert not any(frame.tables[0].parent_lists)


def test_no_tree_is_worth_more_than_the_one_that_is_found():
    """Against all trees of three numbers and two categories."""
    rng = np.random.default_rng(10)
    for _ in range(5):
        m = 60
        y = np.arange(m) % 2
        codes = rng.integers(3, size=(m, 2)).astype(float)
        D = rng.standard_normal((m, 3)) @ rng.standard_normal((3, 3)) + codes[:, :1] * rng.standard_normal(3)
        sizes, weights = np.array([3, 3]), np.ones(m)
        D /= D.std(axis=0)
        sample, numbers = Sample(codes, y, weights, 2), Numbers(D, np.ones(D.shape, bool), y, weights, 2)
        found = mixed_parents(sample, numbers, sizes)

        best = -np.inf
        for choice in product(range(-1, 5), repeat=3):
            parents = np.array([p if p < 3 else -1 for p in choice])
            given = np.array([p - 3 if p >= 3 else -1 for p in choice])
            if (parents == np.arange(3)).any() or on_a_circle(parents):
                continue
            best = max(best, worth(D, codes, y, parents, given))
        ours = [np.array([above[0] if above else -1 for above in lists]) for lists in found[1:]]
        assert worth(D, codes, y, *ours) == pytest.approx(best, abs=1e-6)


def worth(D, codes, y, parents, given):
    """What parents of numbers add to the log-likelihood of Gaussians, less the cost of their parameters."""
    total, cost = 0.0, np.log(len(y)) / 2
    for j, k in product(range(3), range(2)):
        rows = y == k
        x = D[rows, j]
        if parents[j] >= 0:
            rho = np.corrcoef(x, D[rows, parents[j]])[0, 1]
            total += -0.5 * len(x) * np.log(1 - rho**2) - cost
        elif given[j] >= 0:
            c = codes[rows, given[j]]
            within = sum(((x[c == v] - x[c == v].mean()) ** 2).sum() for v in np.unique(c))
            total += -0.5 * len(x) * np.log(within / (len(x) * x.var())) - 2 * 2 * cost
    return total


def on_a_circle(parents):
    for start in range(len(parents)):
        at = start
        for _ in range(len(parents)):
            at = parents[at] if at >= 0 else -1
        if at >= 0:
            return True
    return False


def test_without_parents_it_is_gaussian_naive_bayes():
    rng = np.random.default_rng(11)
    X, y = rng.standard_normal((90, 4)) @ rng.standard_normal((4, 4)), np.arange(90) % 3
    ours = ConditionalGaussianNB(k=0, numeric="gaussian", alpha=0.0, learner="closed_form").fit(X, y)
    theirs = GaussianNB(var_smoothing=0.0).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=1e-9)


def test_of_categories_alone_it_is_the_tree_of_their_model():
    rng = np.random.default_rng(12)
    X, y = dependent_rows(rng, m=2000)
    words = np.array(["a", "b", "c", "d"])[X[:, CATEGORIES].astype(int)]
    ours = ConditionalGaussianNB(backoff=3.0, learner="closed_form").fit(words, y)
    theirs = TreeAugmentedNB(backoff=3.0, learner="closed_form").fit(words, y)
    assert sum(map(len, theirs.parents_)) == 2 == sum(p is not None for p in ours.parents_.values())
    np.testing.assert_allclose(ours.predict_proba(words), theirs.predict_proba(words), atol=1e-9)


def test_backoff_shrinks_a_slope_and_the_gaussians_of_cells():
    X, y = dependent_rows(np.random.default_rng(13))
    free, held = (
        fitted_on(X, y, ConditionalGaussianModel(MODEL.categories, backoff=strength)).theta
        for strength in (0.0, 1e9)
    )
    assert np.abs(held.slopes).max() < 1e-5 < np.abs(free.slopes).min()
    own = TREE.cells(0)
    np.testing.assert_allclose(held.means[:, own], held.means[:, [own.start]].repeat(5, axis=1), atol=1e-5)


def test_units_and_origin_of_numbers_do_not_matter():
    X, y = dependent_rows(np.random.default_rng(14))
    table = pd.DataFrame(X).astype({0: str, 3: str, 5: str}).rename(columns=str)
    moved = table.copy()
    for name, scale in (("1", 1e-3), ("2", 1e6), ("8", 7.0)):
        moved[name] = scale * moved[name] + 12.0
    a, b = (ConditionalGaussianNB(learner="closed_form").fit(each, y) for each in (table, moved))
    assert a.parents_ == b.parents_
    np.testing.assert_allclose(a.predict_proba(table), b.predict_proba(moved), atol=1e-8)


@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
def test_a_column_without_cells_and_a_constant_one_change_nothing():
    X, y = dependent_rows(np.random.default_rng(15))
    numbers = X[:, NUMBERS]
    plain = ConditionalGaussianNB(learner="closed_form").fit(numbers, y)
    more = np.column_stack([numbers, np.full(len(y), np.nan), np.full(len(y), 3.5)])
    clf = ConditionalGaussianNB(learner="closed_form").fit(more, y)
    np.testing.assert_allclose(clf.predict_proba(more), plain.predict_proba(numbers), atol=1e-9)


def test_a_function_of_another_column_is_told():
    X, y = dependent_rows(np.random.default_rng(16))
    numbers = np.column_stack([X[:, 1], 2.0 * X[:, 1] + 1.0])
    with pytest.warns(FlooredWarning, match="given|parent"):
        clf = ConditionalGaussianNB(numeric="gaussian", backoff=0.0, learner="closed_form").fit(numbers, y)
    assert np.isfinite(clf.predict_joint_log_proba(numbers)).all()


# --- the estimator ----------------------------------------------------------------------------------


def mixed_table(rng, m=500):
    """A table of words and numbers, with missing cells and marks of them that depend on the class."""
    X, y = dependent_rows(rng, m=m)
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    for j in CATEGORIES:
        table[f"c{j}"] = np.array(["low", "mid", "high", "top"])[X[:, j].astype(int)]
    for name in table:
        table[name] = table[name].where(rng.random(m) > 0.1)
    table["c2"] = table["c2"].where(rng.random(m) > 0.5 * y)
    return table, y


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("missing", ["ignore", "informative"])
def test_a_table_is_fitted_filled_sampled_explained_and_saved(missing, k, tmp_path):
    rng = np.random.default_rng(17)
    table, y = mixed_table(rng)
    clf = ConditionalGaussianNB(k, missing=missing).fit(table, y)
    closed = ConditionalGaussianNB(k, missing=missing, learner="closed_form").fit(table, y)
    assert clf.history_["log_loss"][clf.best_iteration_] <= closed_log_loss(closed, table, y) + 1e-9
    pairs = [
        (name, above if k == 1 else p) for name, above in clf.parents_.items() for p in (above or [None])
    ]
    edges = {frozenset(pair) for pair in pairs if None not in pair}
    assert {frozenset(pair) for pair in (("c0", "c5"), ("c2", "c4"), ("c1", "c5"))} <= edges
    filled = clf.impute(table)
    assert not filled.isna().any().any()
    assert filled["c0"].isin(["low", "mid", "high"]).all()
    drawn, labels = clf.sample(50, random_state=0)
    assert clf.predict(drawn).shape == labels.shape
    told = clf.explain(table[:20])
    np.testing.assert_allclose(
        told.log_odds(0, 1).total,
        np.subtract(*clf.predict_log_proba(table[:20]).T),
        atol=1e-8,
    )
    clf.save(tmp_path / "tree.rb")
    again = riskbayes.load(tmp_path / "tree.rb")
    np.testing.assert_array_equal(again.predict_proba(table), clf.predict_proba(table))
    assert_same(again.statistics_, clf.statistics_)
    assert len(clf.parameters_frame()) > 20


def test_whole_numbers_of_few_values_are_categories():
    rng = np.random.default_rng(29)
    y = np.arange(300) % 2
    X = np.column_stack(
        [(rng.random(300) < 0.02 + 0.3 * y), rng.standard_normal(300), rng.integers(3, size=300) / 2]
    )
    clf = ConditionalGaussianNB(learner="closed_form").fit(X, y)
    assert [column.kind for column in clf.columns_] == ["category", "number", "number"]
    counts = np.array([[1 + (X[y == k, 0] == v).sum() for v in (0, 1)] for k in (0, 1)])
    assert clf.sample(10, random_state=0)[0].dtype == np.float64
    told = clf.predict_log_proba([[1, np.nan, np.nan]])[0]
    np.testing.assert_allclose(np.exp(told), counts[:, 1] / counts[:, 1].sum(), rtol=1e-2)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    assert ConditionalGaussianNB().fit(table, y).columns_[0].kind == "category"
    for options in ({"few_values": 0}, {"columns": {"a": "number"}}, {"few_values": 1}):
        assert ConditionalGaussianNB(**options).fit(table, y).columns_[0].kind == "number"
    few = pd.DataFrame({"a": np.arange(19) // 2 % 2, "b": X[:19, 1]})  # fewer than ten rows a value
    assert ConditionalGaussianNB().fit(few, y[:19]).columns_[0].kind == "number"


def closed_log_loss(clf, table, y):
    return -clf.predict_log_proba(table)[np.arange(len(y)), y].mean()


def test_dependences_pay_in_held_out_density():
    rng = np.random.default_rng(18)
    X, y = dependent_rows(rng, m=2000)
    table = pd.DataFrame(X).astype({0: str, 3: str, 5: str}).rename(columns=str)
    rows, held = table[:1500], table[1500:]
    tree = ConditionalGaussianNB(numeric="gaussian", learner="closed_form").fit(rows, y[:1500])
    bayes = MixedNB(numeric="gaussian", learner="closed_form").fit(rows, y[:1500])
    assert tree.score_samples(held).mean() > bayes.score_samples(held).mean() + 1.0
    assert tree.score(held, y[1500:]) > bayes.score(held, y[1500:])


def test_a_category_that_is_unseen_counts_as_told():
    rng = np.random.default_rng(19)
    table, y = mixed_table(rng)
    new = table[:5].assign(c5="new")
    gone = table[:5].assign(c5=None)
    clf = ConditionalGaussianNB(learner="closed_form").fit(table, y)
    np.testing.assert_allclose(clf.predict_proba(new), clf.predict_proba(gone))
    other = clf.set_params(unseen="other").fit(table, y).predict_proba(new)
    assert np.isfinite(other).all()
    with pytest.raises(ValueError, match="c5"):
        clf.set_params(unseen="error").fit(table, y).predict(new)


def test_there_is_no_stream():
    assert not hasattr(ConditionalGaussianNB(), "partial_fit")


def test_the_default_model_reads_numbers():
    rng = np.random.default_rng(20)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    _, fitted = closed_form(ConditionalGaussianModel(), X, y, np.ones(60), 2)
    assert np.isfinite(log_joint(fitted, X)).all()
