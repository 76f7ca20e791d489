"""Statistics are an immutable value: arithmetic, frames, writing down."""

import contextlib
import copy
import pickle

import numpy as np
import pytest

from conftest import encoded
from riskbayes.frames import Categories, Frame
from riskbayes.models import CategoricalModel, GaussianNBModel, LDAModel, QDAModel
from riskbayes.models.centred import Origin
from riskbayes.models.gaussian_nb import DiagonalMoments
from riskbayes.models.lda import TiedMoments
from riskbayes.models.qda import FullMoments
from riskbayes.persistence import from_bytes, to_bytes
from riskbayes.statistics import Statistics

M, N, R = 30, 3, 2
GAUSSIAN = [GaussianNBModel, LDAModel, QDAModel]
EVERY = [CategoricalModel, *GAUSSIAN]


def rows(seed=0, m=M):
    rng = np.random.default_rng(seed)
    return rng.normal(3.0, 2.0, size=(m, N)), rng.uniform(0.1, 2.0, size=(m, R))


def codes(seed=0, top=(2, 4, 3)):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, size=M) for k in top], axis=1)
    X[: max(top)] = np.minimum(np.arange(max(top))[:, None], np.array(top) - 1)  # every code occurs
    return X, rng.uniform(0.1, 2.0, size=(M, R))


def make(kind, seed=0):
    X, W = codes(seed) if kind is CategoricalModel else rows(seed)
    model = kind()
    return model.statistics(encoded(model, X), W)


def direct(X, W, origin):
    """Every moment about `origin`, by definition."""
    D = X - origin
    return {
        "s0": W.sum(axis=0),
        "s1": np.einsum("ik,ij->kj", W, D),
        "s2": np.einsum("ik,ia,ib->kab", W, D, D),
        "s2_diagonal": np.einsum("ik,ij->kj", W, D**2),
        "s2_tied": np.einsum("ik,ia,ib->ab", W, D, D),
    }


def plain(**arrays):
    return Statistics({name: np.asarray(value, dtype=float) for name, value in arrays.items()})


# --- immutability -----------------------------------------------------------------------------------


def test_the_arrays_cannot_be_written():
    S = make(QDAModel)
    for name in S:
        with pytest.raises(ValueError, match="read-only"):
            S[name][0] = 1.0


@pytest.mark.parametrize("kind", EVERY)
def test_the_frame_cannot_be_written(kind):
    frame = make(kind).frame
    with pytest.raises(ValueError, match="read-only"):
        (frame.n_categories if kind is CategoricalModel else frame.origin)[0] = 7


def test_neither_entries_nor_attributes_can_be_set():
    S = make(QDAModel)
    with pytest.raises(TypeError):
        S["s0"] = np.zeros(R)
    with pytest.raises(AttributeError, match="immutable"):
        S.frame = Frame()
    with pytest.raises(AttributeError, match="immutable"):
        S.anything = 1
    with pytest.raises(AttributeError):
        S.frame.origin = np.zeros(N)


def test_what_the_caller_does_to_its_own_array_later_does_not_change_the_value():
    mine = np.array([1.0, 2.0])
    S = Statistics({"s0": mine})
    with contextlib.suppress(ValueError):  # a copy, or the array itself made read-only: either will do
        mine[0] = 99.0
    assert S["s0"].tolist() == [1.0, 2.0]


def test_arithmetic_leaves_its_operands_alone():
    a, b = make(QDAModel, 0), make(QDAModel, 1)
    before = copy.deepcopy(a), copy.deepcopy(b)
    a + b, a - b, 3.0 * a
    assert a == before[0]
    assert b == before[1]


def test_it_is_a_mapping():
    S = make(QDAModel)
    assert list(S) == ["s0", "s1", "s2"]
    assert len(S) == 3
    assert "s1" in S
    assert "s9" not in S
    with pytest.raises(KeyError):
        S["s9"]
    assert "s0 (2,)" in repr(S)
    with pytest.raises(TypeError, match="unhashable"):
        hash(S)


def test_masses_are_required():
    with pytest.raises(ValueError, match=r"s0.*got \['s1'\]"):
        Statistics({"s1": np.zeros(2)})


# --- arithmetic -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EVERY)
def test_sums_differences_and_multiples_are_those_of_the_rows(kind):
    X, W = codes() if kind is CategoricalModel else rows()
    model = kind()
    Z = encoded(model, X)
    whole, first, second = (
        model.statistics(Z[part], W[part]) for part in (slice(None), slice(9), slice(9, M))
    )
    assert (first + second).allclose(whole, rtol=1e-12)
    assert (whole - second).allclose(first, rtol=1e-12)
    assert (2.5 * first).allclose(model.statistics(Z[:9], 2.5 * W[:9]), rtol=1e-12)
    assert first * 2.5 == 2.5 * first
    assert whole.total == pytest.approx(W.sum())
    assert Statistics.merge(first, second).allclose(whole, rtol=1e-12)


@pytest.mark.parametrize("factor", [2, 0.5, np.float64(0.5), np.float32(0.5), np.int64(3), np.array(0.5)])
def test_a_scalar_of_any_kind_multiplies_from_either_side(factor):
    """A learning rate from `np.logspace` is a NumPy scalar."""
    S = make(QDAModel)
    expected = Statistics({name: float(factor) * value for name, value in S.items()}, S.frame)
    assert isinstance(factor * S, Statistics)
    assert factor * S == expected
    assert S * factor == expected


@pytest.mark.parametrize("other", ["three", [1.0, 2.0], np.array([1.0, 2.0]), None])
def test_only_a_scalar_multiplies(other):
    S = make(QDAModel)
    with pytest.raises((TypeError, ValueError)):
        S * other
    with pytest.raises((TypeError, ValueError)):
        other * S


def test_statistics_do_not_multiply_each_other():
    with pytest.raises(TypeError):
        make(QDAModel) * make(QDAModel)


@pytest.mark.parametrize("other", [1.0, None, {"s0": np.ones(R)}, np.ones(R)])
def test_only_statistics_are_added(other):
    S = make(QDAModel)
    with pytest.raises(TypeError):
        S + other
    with pytest.raises(TypeError):
        S - other


def test_merge_takes_any_number_but_none():
    parts = [make(QDAModel, seed) for seed in range(4)]
    assert Statistics.merge(parts[0]) == parts[0]
    assert Statistics.merge(*parts).allclose(parts[0] + parts[1] + parts[2] + parts[3], rtol=1e-12)
    with pytest.raises(ValueError, match="at least one"):
        Statistics.merge()


def test_order_does_not_matter_to_tolerance():
    a, b = make(QDAModel, 0), make(QDAModel, 1)
    assert (a + b).allclose(b + a, rtol=1e-12)
    assert ((a + b).frame.origin == a.frame.origin).all()


def test_finite():
    assert make(QDAModel).is_finite()
    assert not plain(s0=[1, np.nan]).is_finite()
    assert not plain(s0=[1, 2], s1=[np.inf]).is_finite()


# --- frames -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "second"), [(FullMoments, "s2"), (DiagonalMoments, "s2_diagonal"), (TiedMoments, "s2_tied")]
)
def test_recentring_is_the_direct_computation(kind, second):
    X, W = rows()
    here, there = np.array([1.0, -2.0, 0.5]), np.array([-3.0, 4.0, 10.0])
    names = ("s0", "s1", second)
    old, new = direct(X, W, here), direct(X, W, there)
    moved = Statistics({name: old[name] for name in names}, kind(here)).to_frame(kind(there))
    assert tuple(moved) == names
    for name in names:
        np.testing.assert_allclose(moved[name], new[name], rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(moved.origin, there)


@pytest.mark.parametrize("kind", GAUSSIAN)
def test_statistics_about_different_origins_add(kind):
    model, (X, W), (X2, W2) = kind(), rows(0), rows(1)
    a = model.statistics(encoded(model, X), W)
    b = model.statistics(encoded(model, X2 + 5.0), W2)
    assert not np.allclose(a.origin, b.origin)
    expected = direct(np.concatenate([X, X2 + 5.0]), np.concatenate([W, W2]), a.origin)
    both = a + b
    np.testing.assert_array_equal(both.origin, a.origin)
    for name in both:
        np.testing.assert_allclose(both[name], expected[name], rtol=1e-11)
    assert (both - b).allclose(a, rtol=1e-10)
    assert a.to_frame(a.frame) is a


def test_other_arrays_do_not_move():
    moments = {"s0": np.ones(2), "s1": np.ones((2, 1)), "s2_diagonal": np.ones((2, 1))}
    S = Statistics({**moments, "extra": np.arange(4.0)}, DiagonalMoments(np.zeros(1)))
    assert S.to_frame(DiagonalMoments(np.ones(1)))["extra"].tolist() == [0, 1, 2, 3]


def test_categories_are_joined():
    model = CategoricalModel()
    (X, W), (X2, W2) = codes(0, (2, 4, 3)), codes(1, (3, 2, 3))
    a, b = model.statistics(encoded(model, X), W), model.statistics(encoded(model, X2), W2)
    everything = model.statistics(encoded(model, np.concatenate([X, X2])), np.concatenate([W, W2]))
    assert (a + b).frame.n_categories.tolist() == [3, 4, 3]
    assert (a + b).allclose(everything, rtol=1e-12)
    assert (b + a).allclose(everything, rtol=1e-12)
    assert (a + b - b).allclose(a, rtol=1e-12)  # empty cells are no difference
    assert a.frame.offsets.tolist() == [0, 2, 6]


def test_joined_cells_are_empty():
    a = Statistics({"s0": np.ones(1), "counts": np.array([[1.0, 2.0, 3.0]])}, Categories([1, 2]))
    b = a.to_frame(Categories([2, 3]))
    assert b["counts"].tolist() == [[1.0, 0.0, 2.0, 3.0, 0.0]]


def test_categories_cannot_be_dropped():
    a = Statistics({"s0": np.ones(1), "counts": np.array([[1.0, 2.0, 3.0]])}, Categories([1, 2]))
    with pytest.raises(ValueError, match="categor"):
        a.to_frame(Categories([1, 1]))


def test_frames_compare_by_value():
    assert Origin(np.zeros(2)) == Origin(np.zeros(2))
    assert Origin(np.zeros(2)) != Origin(np.ones(2))
    assert Origin(np.zeros(2)) != Origin(np.zeros(3))
    assert Categories([2, 3]) == Categories(np.array([2, 3]))
    assert Categories([2, 3]) != Origin(np.array([2, 3]))
    assert Frame() == Frame()
    assert Frame() != Origin(np.zeros(2))
    assert FullMoments(np.zeros(2)) != TiedMoments(np.zeros(2))


# --- equality ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EVERY)
def test_equality_and_closeness(kind):
    S = make(kind)
    off = Statistics({name: value * (1 + 1e-9) for name, value in S.items()}, S.frame)
    assert make(kind) == S
    assert off != S
    assert S.allclose(off)
    assert not S.allclose(off, rtol=1e-12)
    assert S.allclose(off, rtol=0.0, atol=1.0)
    assert not S.allclose(1.1 * S)
    assert make(kind, seed=1) != S


def test_the_same_moments_about_another_origin_are_close():
    S = make(QDAModel)
    assert S.allclose(S.to_frame(FullMoments(S.origin + 1.0)), rtol=1e-10)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (plain(s0=[1, 2]), plain(s0=[1, 2, 3])),
        (plain(s0=[1, 2], s1=[[1], [2]]), plain(s0=[1, 2])),
        (plain(s0=[1, 2], s1=[[1], [2]]), plain(s0=[1, 2], s1=[[1, 2], [2, 2]])),
        (plain(s0=[1, 2], s1=[[1, 1], [2, 2]]), plain(s0=[1, 2], s1=[[1, 1, 1], [2, 2, 2]])),
        (make(QDAModel), make(LDAModel)),
        (
            Statistics({"s0": np.ones(2), "s1": np.zeros((2, 1))}, Origin(np.zeros(1))),
            Statistics({"s0": np.ones(2), "s1": np.zeros((2, 3))}, Origin(np.zeros(3))),
        ),
        (
            Statistics({"s0": np.ones(1), "counts": np.ones((1, 2))}, Categories([2])),
            Statistics({"s0": np.ones(1), "counts": np.ones((1, 4))}, Categories([2, 2])),
        ),
        (
            Statistics({"s0": np.ones(2), "s1": np.zeros((2, 3))}, Origin(np.zeros(3))),
            Statistics({"s0": np.ones(2), "s1": np.zeros((2, 3))}),
        ),
    ],
    ids=["classes", "names", "features_1_2", "features_2_3", "models", "origins", "categories", "frames"],
)
class TestMismatch:
    def test_they_are_not_equal(self, a, b):
        assert a != b
        assert b != a
        assert not a.allclose(b)

    def test_they_are_not_added(self, a, b):
        for left, right in ((a, b), (b, a)):
            with pytest.raises(ValueError, match=r"different|classes|features"):
                left + right
            with pytest.raises(ValueError, match=r"different|classes|features"):
                left - right


def test_errors_say_what_differs():
    with pytest.raises(ValueError, match="2 and 3 classes; fit both with the same classes"):
        plain(s0=[1, 2]) + plain(s0=[1, 2, 3])
    with pytest.raises(ValueError, match=r"different models.*'s2'.*'s2_tied'"):
        make(QDAModel) + make(LDAModel)


def test_equality_with_other_things():
    assert make(QDAModel) != "statistics"
    assert make(QDAModel) != 0
    assert plain(s0=[np.nan, 1]) != plain(s0=[1, 1])


# --- writing down -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EVERY)
class TestRoundTrip:
    @pytest.mark.parametrize(
        "way",
        [
            lambda S: pickle.loads(pickle.dumps(S)),
            lambda S: from_bytes(to_bytes(S)),
            copy.copy,
            copy.deepcopy,
        ],
    )
    def test_bytes_pickle_and_copy(self, kind, way):
        S = make(kind)
        again = way(S)
        assert again == S
        assert again.frame == S.frame
        assert type(again.frame) is type(S.frame)
        assert (again + S).allclose(2.0 * S, rtol=1e-12)
        with pytest.raises(ValueError, match="read-only"):
            again["s0"][0] = 1.0


def test_statistics_without_a_frame_round_trip():
    S = plain(s0=[1, 2], s1=[0, 5])
    assert from_bytes(to_bytes(S)) == S
    assert type(from_bytes(to_bytes(S)).frame) is Frame


# --- sums of several terms ------------------------------------------------------------------------------


def test_terms_are_combined_as_they_are_added_one_by_one(monkeypatch):
    a, b, c = (make(QDAModel, seed) for seed in range(3))
    expected = (0.5 * a + 2.0 * b) - c
    for large in (2**20, 1):  # as a whole, and slice by slice
        monkeypatch.setattr("riskbayes.statistics.LARGE", large)
        assert Statistics.combined((0.5, a), (2.0, b), (-1.0, c)).allclose(expected, rtol=1e-13)
        same = [S.with_frame(a.frame) for S in (a, b, c)]
        one_by_one = {name: (0.5 * same[0][name] + 2.0 * same[1][name]) - same[2][name] for name in a}
        found = Statistics.combined(*zip((0.5, 2.0, -1.0), same, strict=True))
        for name, value in one_by_one.items():
            np.testing.assert_array_equal(found[name], value)


def test_membership_is_that_of_the_arrays():
    S = make(GaussianNBModel)
    assert "s0" in S
    assert "observed" not in S
