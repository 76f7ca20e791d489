"""Laws of categorical columns: batches, sizes, the order of columns, and what trees expect."""

from itertools import permutations
from itertools import product as cartesian

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from riskbayes import (
    CategoricalNB,
    GenerativeClassifier,
    KDependenceNB,
    MixedNB,
    SmoothNB,
    TreeAugmentedNB,
)
from riskbayes.learners import RC, RCCV
from riskbayes.learners.rc_cv import POOLED_SHARES
from riskbayes.models import CategoricalModel, TreeModel, elimination
from riskbayes.models.base import Sample
from riskbayes.models.structure import column_order
from riskbayes.preprocessing import KMeansBins
from riskbayes.scanners.dense import label_statistics

seeds = st.integers(0, 2**32 - 1)


# One row's answer does not depend on the batch that it is predicted in


def as_strings(X):
    return np.char.add("v", X.astype(str))


def as_categoricals(X):
    return pd.DataFrame({f"x{j}": pd.Categorical(as_strings(X[:, j])) for j in range(X.shape[1])})


NUMBERS = ["uint8", "int8", "int16", "uint16", "int32", "int64", "uint64", "float32", "float64"]
VALUES = {
    "bool": lambda X: X.astype(bool),
    "strings": as_strings,
    "objects": lambda X: as_strings(X).astype(object),
    "categoricals": as_categoricals,
}


def cast(X, kind):
    """Codes as a table of this kind; codes that a dtype cannot hold become its largest."""
    if kind in VALUES:
        return VALUES[kind](X)
    if np.dtype(kind).kind in "iu":
        X = np.clip(X, max(np.iinfo(kind).min, -1), min(np.iinfo(kind).max, np.iinfo(np.int64).max))
    return X.astype(kind)


def some_codes(rng, m, sizes, y):
    """Codes below `sizes` that tell something of the class."""
    return np.minimum(rng.integers(0, sizes, (m, len(sizes))) + y[:, None] * (sizes // 3), sizes - 1)


def with_unseen(rng, X, far):
    """Some codes beyond the known ones: by a little, and by as much as a dtype allows."""
    beyond = np.where(rng.random(X.shape) < 0.5, X + rng.integers(1, 2000, X.shape), far)
    return np.where(rng.random(X.shape) < rng.choice([0.02, 0.3]), beyond, X)


def table_and_new_rows(rng, largest):
    """Codes of up to `largest` categories, labels, rows to predict; every column has its largest code."""
    n, r = int(rng.integers(1, 5)), int(rng.integers(2, 4))
    sizes, y = rng.integers(1, largest + 1, size=n), np.arange(60) % r
    X = some_codes(rng, 60, sizes, y)
    X[0] = sizes - 1
    far = int(rng.choice([-1, 2**20, 2**31 - 1, 2**40, 2**53]))
    return X, y, with_unseen(rng, some_codes(rng, 12, sizes, rng.integers(r, size=12)), far)


def alone_and_together(clf, X):
    """Log joints of the rows, each predicted by itself and all at once."""
    rows = [X.iloc[[i]] if hasattr(X, "iloc") else X[i : i + 1, ...] for i in range(X.shape[0])]
    return [clf.predict_joint_log_proba(row) for row in rows], clf.predict_joint_log_proba(X)


CATEGORICAL = {
    "nb": (CategoricalNB(learner="closed_form"), 1000),
    "nb_ml": (CategoricalNB(alpha=0, learner="closed_form"), 1000),
    "tan": (TreeAugmentedNB(learner="closed_form"), 60),
    "kdb": (KDependenceNB(2, learner="closed_form"), 20),
}


@pytest.mark.parametrize("name", CATEGORICAL)
@settings(max_examples=40)
@given(seed=seeds, kind=st.sampled_from([*NUMBERS, *VALUES]))
def test_an_unseen_category_leaves_the_other_rows_alone(name, seed, kind):
    """The number of categories was cast to the rows' dtype: 300 of them as uint8 are 44."""
    rng, (clf, largest) = np.random.default_rng(seed), CATEGORICAL[name]
    X, y, new = table_and_new_rows(rng, int(rng.choice([4, 40, 300, largest])) if largest > 300 else largest)
    clf.fit(cast(X, kind) if kind in VALUES else X, y)
    alone, together = alone_and_together(clf, cast(new, kind))
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=1e-12, atol=1e-12)
    if kind not in VALUES:
        same = clf.predict_joint_log_proba(cast(new, kind).astype(np.int64))
        np.testing.assert_allclose(together, same, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", [CategoricalModel(alpha=1.0), TreeModel(((), (0,)), 1.0, 5.0)])
@settings(max_examples=15)
@given(seed=seeds, kind=st.sampled_from(["float32", "float64"]))
def test_a_model_of_codes_in_the_generic_classifier(model, seed, kind):
    """Codes are floats there, and a code beyond int64 is as unseen as another."""
    rng = np.random.default_rng(seed)
    sizes, y = rng.integers(1, 301, size=2), np.arange(60) % 2
    X = some_codes(rng, 60, sizes, y)
    X[0] = sizes - 1
    new = with_unseen(rng, some_codes(rng, 12, sizes, y[:12]).astype(float), rng.choice([2.0**31, 1e30]))
    clf = GenerativeClassifier(model, learner="closed_form").fit(X, y)
    alone, together = alone_and_together(clf, new.astype(kind))
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=1e-12, atol=1e-12)
    by_value = CategoricalNB(learner="closed_form").fit(X, y)
    if isinstance(model, CategoricalModel):
        np.testing.assert_allclose(together, by_value.predict_joint_log_proba(new), rtol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_large_numbers_coded_by_value_stay_apart(sign):
    """Floats beyond 2**31 were all one category, where the column is coded by value."""
    X = np.array([[-3.0], [3e9], [4e9], [-3e9], [-4e9]] * 4) * sign
    y = np.arange(20) % 5
    assert (CategoricalNB(learner="closed_form").fit(X, y).predict(X) == y).all()


@pytest.mark.parametrize(
    "clf",
    [
        SmoothNB(),
        SmoothNB(max_categories=1),
        make_pipeline(KMeansBins(), CategoricalNB(learner="closed_form")),
    ],
    ids=["smooth", "density", "bins"],
)
@settings(max_examples=20)
@given(seed=seeds, fitted=st.sampled_from(["float32", "float64"]), kind=st.sampled_from(NUMBERS))
def test_rows_of_numbers_do_not_depend_on_their_batch(clf, seed, fitted, kind):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3
    X = (rng.standard_normal((60, 3)) * [1, 30, 3000] + y[:, None]).astype(fitted)
    clf.fit(X, y)
    new = np.abs(X[:12] * rng.uniform(0, 3, (12, 3)))
    new = cast(np.floor(new) if np.dtype(kind).kind in "iu" else new, kind)
    alone = np.concatenate([clf.predict_proba(new[i : i + 1]) for i in range(12)])
    np.testing.assert_allclose(clf.predict_proba(new), alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["array_api_strict", "torch"])
@settings(max_examples=25)
@given(seed=seeds, kind=st.sampled_from(["uint8", "int16", "int64", "float32", "float64"]))
def test_unseen_categories_on_a_device(name, seed, kind):
    xp = pytest.importorskip(name)
    rng = np.random.default_rng(seed)
    X, y, new = table_and_new_rows(rng, int(rng.choice([4, 40, 300, 1000])))
    new = cast(new, kind)
    expected = CategoricalNB(learner="closed_form").fit(X, y).predict_joint_log_proba(new)
    with config_context(array_api_dispatch=True):
        clf = CategoricalNB(learner="closed_form").fit(xp.asarray(X), xp.asarray(y))
        alone, together = alone_and_together(clf, xp.asarray(new))
    exact = 1e-5 if kind == "float32" else 1e-12
    for joint in (np.asarray(together), np.concatenate([np.asarray(row) for row in alone])):
        np.testing.assert_allclose(joint, expected, rtol=exact, atol=exact)


def test_bins_of_single_precision_on_a_device():
    """Edges keep their digits: rounded to float32 they would move values into the next bin."""
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(0)
    X = rng.integers(2**24 - 40, 2**24, size=(200, 2)).astype(np.float64)
    bins = KMeansBins().fit(X)
    new = X.astype(np.float32)
    with config_context(array_api_dispatch=True):
        there = KMeansBins().fit(xp.asarray(X)).transform(xp.asarray(new))
    assert (np.asarray(there) == bins.transform(new)).all()


# Integer codes are counted from 0 to the largest: an identifier is not a category


EACH = pytest.mark.parametrize(
    "clf", [CategoricalNB(), TreeAugmentedNB(), KDependenceNB(2)], ids=["nb", "tan", "kdb"]
)


def with_an_id(largest, m=40):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (m, 3)), np.arange(m) % 2
    X[3, 1] = largest
    return X, y


@EACH
@pytest.mark.parametrize("largest", [10**6, 10**7, 3 * 10**8, 2**31 - 2])
def test_codes_far_beyond_the_number_of_rows_are_refused(clf, largest):
    """A code of 1e7 took a minute, one of 3e8 ended in MemoryError."""
    X, y = with_an_id(largest)
    with pytest.raises(ValueError, match=rf"column 1 holds the code {largest}: .*strings.*OrdinalEncoder"):
        clf.fit(X, y)
    with pytest.raises(ValueError, match="column 'id' holds the code"):
        clf.fit(pd.DataFrame(X, columns=["a", "id", "b"]), y)
    with pytest.raises(ValueError, match="column 1 holds the code"):
        clf.fit(X.astype(float), y)
    clf.fit(X.astype(str), y)
    assert clf.predict(X.astype(str)).shape == (40,)


def test_codes_far_beyond_the_number_of_rows_are_refused_on_a_device():
    xp = pytest.importorskip("array_api_strict")
    X, y = with_an_id(10**12)
    with (
        config_context(array_api_dispatch=True),
        pytest.raises(ValueError, match="column 1 holds the code 1000000000000"),
    ):
        CategoricalNB().fit(xp.asarray(X), xp.asarray(y))


def test_large_codes_that_are_counted_or_declared_are_accepted():
    """scikit-learn's K = max + 1 holds below the bound, and beyond it for who declares the categories."""
    X, y = with_an_id(99_999)
    clf = CategoricalNB(learner="closed_form").fit(X, y)
    assert clf.n_categories_.tolist() == [4, 100_000, 4]
    far, y = with_an_id(300_000)
    with pytest.raises(ValueError, match="min_categories"):
        clf.fit(far, y)
    with pytest.raises(ValueError, match="min_categories"):
        clf.partial_fit(far, y)
    assert clf.n_categories_.tolist() == [4, 100_000, 4]
    declared = CategoricalNB(min_categories=[1, 300_001, 1], learner="closed_form").fit(far, y)
    with pytest.raises(ValueError, match="column 2 holds the code 270000"):
        declared.fit(np.where(np.arange(3) == 2, 270_000, far), y)
    many, labels = with_an_id(300_000, m=40_000)  # as many rows as ask for it
    clf = CategoricalNB(learner="closed_form").fit(many, labels)
    clf.partial_fit(far, y)  # a batch of a stream that counts such codes already
    assert clf.n_categories_[1] == 300_001


def test_more_categories_than_can_be_counted_are_refused():
    X, y = with_an_id(5)
    with pytest.raises(ValueError, match="column 1 has 40000000 categories"):
        CategoricalNB(min_categories=[1, 40_000_000, 1]).fit(X, y)
    for model in (CategoricalModel(), TreeModel()):
        with pytest.raises(ValueError, match=r"column 1 has \d* categories"):
            GenerativeClassifier(model).fit(np.where(X == 5, 1e30, X), y)


# Trees: draws, expected statistics, and the anchor


@pytest.mark.parametrize(
    "clf", [CategoricalNB(), TreeAugmentedNB(), KDependenceNB(2)], ids=["nb", "tan", "kdb"]
)
def test_categories_without_a_name_are_not_drawn(clf):
    """`min_categories` adds categories that have a probability and no value: trees drew them."""
    rng = np.random.default_rng(0)
    X = rng.choice(["a", "b", "c"], (60, 3))
    clf = clone(clf).set_params(min_categories=5).fit(X, rng.integers(2, size=60))
    drawn, _ = clf.sample(2000, random_state=0)
    assert set(drawn.ravel()) == {"a", "b", "c"}


def random_network(rng, n, most):
    """Parents of each feature, at most so many, in no order of the columns."""
    order = rng.permutation(n)
    parents = [()] * n
    for place, i in enumerate(order):
        number = min(place, int(rng.integers(0, most + 1)))
        parents[i] = tuple(int(p) for p in rng.choice(order[:place], number, replace=False))
    return tuple(parents)


def network_and_data(seed, most, alpha=0.0, backoff=0.0, m=200):
    """A model with random parents, and the statistics of random rows in which every code occurs."""
    rng = np.random.default_rng(seed)
    n, r = int(rng.integers(1, 6)), int(rng.integers(2, 4))
    sizes, y = rng.integers(1, 4, n), np.arange(m) % r
    X = np.minimum(rng.integers(0, sizes, (m, n)) + (rng.random((m, n)) < 0.3) * y[:, None], sizes - 1)
    X[:3] = np.minimum(np.arange(3)[:, None], sizes - 1)
    model = TreeModel(random_network(rng, n, most), alpha, backoff)
    Z = model.encode(X, model.learn(Sample(X, y, None, r)))
    return rng, model, Z, label_statistics(model, Z, y, rng.uniform(0.2, 3, m), r)


@given(seed=seeds, most=st.integers(0, 3), backoff=st.sampled_from([0.0, 5.0]))
def test_expected_statistics_of_a_network_are_sums_over_its_joint(seed, most, backoff):
    """Also of statistics that are no counts of rows, as calibration leaves them."""
    rng, model, Z, S = network_and_data(seed, most, 1.0 if backoff else 0.0, backoff)
    S = S.plus(0.3, model.statistics(Z, rng.standard_normal((len(Z), len(S["s0"])))))
    theta = model.parameters(S)
    everything = np.array(list(cartesian(*(range(k) for k in theta.frame.sizes))))
    Z = model.encode(everything, S.frame)
    expected = 7.0 * model.statistics(Z, np.exp(model.log_joint(Z, theta)))
    assert model.expected_statistics(theta, 7.0).allclose(expected, rtol=1e-10)


@given(seed=seeds, most=st.integers(0, 3))
def test_parameters_of_expected_statistics_are_those_of_the_network(seed, most):
    _, model, _, S = network_and_data(seed, most)
    theta = model.parameters(S)
    assume(not theta.floored.any())
    expected = model.expected_statistics(theta, 100.0)
    np.testing.assert_allclose(model.parameters(expected).log_prob, theta.log_prob, atol=1e-9)
    if most < 2:  # a forest gives the counts of the data back
        assert expected.allclose((100.0 / S.total) * S, rtol=1e-9)


@given(seed=seeds, most=st.integers(0, 3), backoff=st.sampled_from([0.0, 5.0]))
def test_the_anchor_of_a_network_holds_it_to_its_closed_form(seed, most, backoff):
    rng, model, Z, S = network_and_data(seed, most, 1.0 if backoff else 0.0, backoff)
    held, closed = model.anchor_statistics(S), model.parameters(S)
    assert held.total == pytest.approx(1.0)
    if backoff == 0:
        assert held.allclose((1.0 / S.total) * S, rtol=1e-7)
    best = model.log_likelihood(held, closed)
    for step in (1e-3, 0.1, 1.0):
        moved = S.plus(step, model.statistics(Z, rng.standard_normal((len(Z), len(S["s0"])))))
        if model.is_legal(moved):
            assert model.log_likelihood(held, model.parameters(moved)) <= best + 1e-9


def dependent_rows(m=240, n=10):
    """Each column depends on the class and on three columns before it."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=m)
    X = rng.integers(0, 2, (m, n))
    for j in range(3, n):
        X[:, j] = (X[:, j - 3 : j].sum(axis=1) + y + (rng.random(m) < 0.2)) % 2
    return X, y


@pytest.mark.parametrize("clf", [TreeAugmentedNB(), KDependenceNB(3)], ids=["tan", "kdb"])
@pytest.mark.parametrize(
    "learner",
    [RCCV(max_iter=6, cv=3, random_state=0), RC(step="adaptive", generative_weight="auto", max_iter=20)],
    ids=["rc_cv", "auto"],
)
def test_trees_are_anchored(clf, learner):
    X, y = dependent_rows()
    closed = clone(clf).set_params(learner="closed_form").fit(X, y)
    found = clone(clf).set_params(learner=learner).fit(X, y)
    if getattr(found.learner_, "pooled_share_", 0) == 0:
        assert found.score(X, y) >= closed.score(X, y) - 0.02
    else:  # held-out rows, where the closed form is no better, decided for the class frequencies
        assert found.learner_.cv_score_[0] <= found.learner_.cv_score_[len(POOLED_SHARES)]
    free = clone(clf).set_params(learner=RC(step="adaptive", max_iter=20, generative_weight=0.0)).fit(X, y)
    tight = clone(clf).set_params(learner=RC(step="adaptive", generative_weight=100.0, max_iter=20)).fit(X, y)
    far, near = (abs(a.predict_proba(X) - closed.predict_proba(X)).max() for a in (free, tight))
    assert near < 0.3 * far


def test_dense_networks_have_an_anchor_but_no_expected_counts(monkeypatch):
    monkeypatch.setattr(elimination, "MOST_CELLS", 10)
    X, y = dependent_rows()
    model = TreeModel((*((),) * 6, (0, 1), (2, 3), (4, 5), (6, 7, 8)), 1.0, 5.0)
    clf = GenerativeClassifier(model, RC(step="adaptive", generative_weight=0.1, max_iter=5)).fit(X, y)
    assert clf.n_iter_ > 0
    with pytest.raises(ValueError, match="Give the features fewer parents"):
        model.expected_statistics(clf.parameters_, 1.0)


@given(seed=st.integers(0, 2**32 - 1), alpha=st.floats(0.1, 3.0), backoff=st.floats(0.1, 8.0))
def test_a_child_backs_off_to_its_frequencies_in_the_class(seed, alpha, backoff):
    """(count + backoff p(x | y)) / (rows of the parent's value + backoff); alpha smooths p(x | y)."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(3, size=(30, 2)), np.arange(30) % 2
    model = TreeModel(((), (0,)), alpha, backoff)
    frame = model.learn(Sample(X, y, None, 2))
    theta = model.parameters(label_statistics(model, model.encode(X, frame), y, None, 2))
    K, new = X.max(axis=0) + 1, np.array([[a, b] for a in set(X[:, 0]) for b in set(X[:, 1])])
    expected = np.empty((len(new), 2))
    for (i, (a, b)), k in cartesian(enumerate(new), range(2)):
        own = X[y == k]
        root, child = (((own[:, j] == v).sum() + alpha) / (15 + alpha * K[j]) for j, v in ((0, a), (1, b)))
        both, above = (own == [a, b]).all(axis=1).sum(), (own[:, 0] == a).sum()
        expected[i, k] = np.log(0.5 * root * (both + backoff * child) / (above + backoff))
    np.testing.assert_allclose(model.log_joint(model.encode(new, frame), theta), expected)


def test_degrees_of_freedom_of_categories_count_classes_and_their_cells():
    """Of the second class no cell of the first column is present."""
    X, y = np.array([[0, 1], [2, 0], [np.nan, 3], [np.nan, 1]]), np.array([0, 0, 1, 1])
    model = CategoricalModel()
    S = label_statistics(model, model.encode(X, model.learn(Sample(X, y, None, 2))), y, None, 2)
    assert model.degrees_of_freedom(S) == 2 + 3 + 4 + 4


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_an_unseen_category_has_the_probability_of_one_without_rows(alpha):
    X, y = np.array([[0, 0], [1, 2], [1, 1], [0, 1], [1, 0]]), np.array([0, 0, 0, 1, 1])
    found = CategoricalNB(alpha=alpha, learner="closed_form").fit(X, y).predict_joint_log_proba([[7, 7]])
    rows = np.bincount(y)
    expected = np.log(rows / 5) + sum(np.log(alpha / (rows + alpha * k)) for k in (2, 3))
    np.testing.assert_allclose(found, [expected])


@pytest.mark.parametrize(("alpha", "backoff"), [(0.0, 0.0), (1.0, 5.0)])
def test_degrees_of_freedom_of_a_tree_count_what_the_rows_determine(alpha, backoff):
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10), np.repeat([0, 1], 20)
    model = TreeModel(((), (0,)), alpha, backoff)
    S = label_statistics(model, model.encode(X, model.learn(Sample(X, y, None, 2))), y, None, 2)
    # A mass, the first column, and the second for each value of the first.
    by_class = 1 + 20 / (20 + 2 * alpha) + 2 * 10 / (10 + backoff)
    assert model.degrees_of_freedom(S) == pytest.approx(2 * by_class)


def test_a_refused_learner_is_not_proposed():
    X, y = dependent_rows(m=60, n=4)
    with pytest.raises(
        TypeError, match=r"choose another learner: 'closed_form', .*'rc', 'rc_cv', 'tm'"
    ) as refused:
        TreeAugmentedNB(learner="gd").fit(X, y)
    assert "'gd'" not in str(refused.value)


# The order of columns, where trees have ties to break


def tied_table(rng):
    """Few rows of few values, columns repeated, recoded or constant: mutual informations tie."""
    m, n, r = int(rng.integers(6, 40)), int(rng.integers(2, 7)), int(rng.integers(2, 4))
    X, y = rng.integers(0, rng.choice([2, 2, 3]), (m, n)), np.arange(m) % r
    for _ in range(rng.integers(0, 3)):
        a, b = rng.integers(n, size=2)
        X[:, a] = rng.choice([X[:, b], X[:, b].max() - X[:, b], np.ones(m, dtype=int)])
    weights = [None, rng.integers(1, 4, m).astype(float), rng.uniform(0.2, 3, m)]
    return X, y, weights[rng.choice(3, p=[0.5, 0.3, 0.2])]


def is_symmetric(X, y, w):
    """Whether another order of columns, with other names of the classes, makes the same set of rows."""
    w = np.ones(len(y)) if w is None else w

    def rows(columns, names):
        found = {}
        for row, label, weight in zip(X[:, columns].tolist(), np.array(names)[y].tolist(), w, strict=True):
            found[label, *row] = found.get((label, *row), 0.0) + weight
        return {row: round(weight, 9) for row, weight in found.items()}

    n, names = X.shape[1], list(permutations(range(y.max() + 1)))
    same = rows(list(range(n)), names[0])
    return any(
        rows(list(columns), labels) == same
        for columns in permutations(range(n))
        if (X[:, columns] != X).any()
        for labels in names
    )


TREES = pytest.mark.parametrize(
    "clf", [TreeAugmentedNB(), KDependenceNB(1), KDependenceNB(2)], ids=["tan", "1-db", "2-db"]
)


@TREES
@settings(max_examples=40)
@given(seed=seeds, learner=st.sampled_from(["closed_form", "closed_form", "rc"]))
def test_trees_do_not_depend_on_the_order_of_columns(clf, seed, learner):
    """Where mutual informations tied, the first column won."""
    rng, clf = np.random.default_rng(seed), clone(clf).set_params(learner=learner)
    X, y, w = tied_table(rng)
    columns, names = rng.permutation(X.shape[1]), rng.permutation(y.max() + 1)
    expected = clf.fit(X, y, w).predict_proba(X)
    found = clone(clf).fit(X[:, columns], y, w).predict_proba(X[:, columns])
    np.testing.assert_allclose(found, expected, atol=1e-9)
    relabelled = clone(clf).fit(X, names[y], w).predict_proba(X)[:, names]
    np.testing.assert_allclose(relabelled, expected, atol=1e-9)


@TREES
@settings(max_examples=40)
@given(seed=seeds)
def test_trees_do_not_depend_on_the_order_of_rows(clf, seed):
    """But where the rows are the same in another order of the columns: no rule could choose one of these."""
    rng, clf = np.random.default_rng(seed), clone(clf).set_params(learner="closed_form")
    X, y, w = tied_table(rng)
    order, expected = rng.permutation(len(y)), clf.fit(X, y, w).predict_proba(X)
    shuffled = clone(clf).fit(X[order], y[order], None if w is None else w[order])
    if not np.allclose(shuffled.predict_proba(X), expected, atol=1e-9):
        assert is_symmetric(X, y, w)
    if w is None:
        times = rng.integers(1, 3, len(y))
        repeated = clone(clf).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        weighted = clone(clf).fit(X, y, times.astype(float))
        np.testing.assert_allclose(repeated.predict_proba(X), weighted.predict_proba(X), atol=1e-9)


def test_columns_that_declare_other_categories_are_told_apart():
    """They hold the same, but not the same probability of what is unseen."""
    rng = np.random.default_rng(0)
    x, other, y = rng.integers(0, 2, (3, 60))
    frame = pd.DataFrame(
        {
            "two": pd.Categorical(x.astype(str), categories=["0", "1"]),
            "four": pd.Categorical(x.astype(str), categories=["0", "1", "2", "3"]),
            "other": pd.Categorical(other.astype(str)),
        }
    )
    expected = TreeAugmentedNB().fit(frame, y).predict_proba(frame)
    for columns in permutations(frame.columns):
        part = frame[list(columns)]
        np.testing.assert_allclose(TreeAugmentedNB().fit(part, y).predict_proba(part), expected, atol=1e-9)


@given(seed=seeds)
def test_an_order_of_columns_moves_with_them(seed):
    rng = np.random.default_rng(seed)
    X, y, w = tied_table(rng)
    columns, keys = rng.permutation(X.shape[1]), rng.integers(0, 2, X.shape[1])
    order = column_order(X, y, w, keys)
    moved = column_order(X[:, columns], y, w, keys[columns])
    assert (np.diff(keys[order]) >= 0).all()

    def content(table):
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
        return first[inverse]

    for a, b in zip(order, columns[moved], strict=True):
        assert (content(X[:, [a]]) == content(X[:, [b]])).all()  # itself, or one that holds the same


# Weights are repeats: a row without weight is as good as absent


@given(seed=seeds, kind=st.sampled_from(["int64", "float64", "strings", "objects", "missing"]))
@settings(max_examples=8)
@pytest.mark.parametrize("clf", [CategoricalNB(), TreeAugmentedNB(), MixedNB()])
def test_rows_without_weight_set_no_categories(clf, seed, kind):
    rng = np.random.default_rng(seed)
    y, w = np.arange(60) % 2, rng.integers(0, 3, 60)
    X = some_codes(rng, 60, np.array([3, 4]), y)
    X[w == 0] += rng.integers(0, 4, (int((w == 0).sum()), 2))
    if kind == "missing":
        X = np.where((w == 0)[:, None] & (rng.random(X.shape) < 0.5), np.nan, X)
    else:
        X = cast(X, kind)
    again = np.repeat(np.arange(60), w)
    weighted, repeated = clone(clf).fit(X, y, w), clone(clf).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.predict_proba(X[w > 0]), repeated.predict_proba(X[w > 0]), atol=1e-7)
    if hasattr(clf, "partial_fit"):
        stream = clone(clf).set_params(learner="closed_form").partial_fit(X, y, [0, 1], w)
        np.testing.assert_array_equal(stream.n_categories_, repeated.n_categories_)
