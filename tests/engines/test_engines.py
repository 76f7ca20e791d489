"""What an engine makes of its rows: folds, held rows, batches, bootstrap samples, other weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context

from conftest import MODELS, random_rows
from riskbayes.arrays import to_numpy
from riskbayes.engines import MemoryEngine
from riskbayes.engines.parts import Drawn, Fold
from riskbayes.frames import Frame
from riskbayes.models import GaussianNBModel, GenerativeModel, LDAModel, QDAModel
from riskbayes.models.base import Fitted
from riskbayes.objectives import LogLoss
from riskbayes.scanners.dense import label_statistics
from riskbayes.search import hold_out
from riskbayes.statistics import Statistics
from riskbayes.task import Task

LIBRARIES = ["numpy", "array_api_strict"]
seeds = st.integers(0, 2**32 - 1)
every_library = pytest.mark.parametrize("library", LIBRARIES)
every_model = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)


def numbered(seed, library="numpy", weights="some zero"):
    """An engine whose first column is the number of the row, its labels and weights (None: one each)."""
    rng = np.random.default_rng(seed)
    r, m = int(rng.integers(2, 5)), int(rng.integers(30, 90))
    y = np.concatenate([np.repeat(np.arange(r), 6), rng.integers(r, size=m)])
    X = np.stack([np.arange(len(y), dtype=float), rng.standard_normal(len(y))], axis=1)
    w = rng.uniform(0.1, 4.0, len(y))
    if weights == "some zero":
        w[6 * r :] *= rng.random(m) < 0.7  # six rows of each class have a weight
    w = None if weights is None else w
    if library == "numpy":
        return MemoryEngine(X, y, w, r), y, w
    xp = pytest.importorskip(library)
    return MemoryEngine(xp.asarray(X), xp.asarray(y), None if w is None else xp.asarray(w), r), y, w


class Rows(GenerativeModel):
    """Reads rows as they are."""

    def statistics(self, Z, W):
        raise NotImplementedError

    def parameters(self, S):
        raise NotImplementedError

    def log_joint(self, Z, theta):
        raise NotImplementedError


def rows_in(engine):
    """Numbers of the rows of an engine, in its order."""
    fitted = Fitted(Rows(), Statistics({"s0": engine.masses}, Frame()), None)
    found = engine.map_rows([fitted], lambda Z, theta, first: Z[:, 0])[0]
    return to_numpy(found).astype(int)


def settled(engine, model):
    """The statistics of an engine's rows."""
    return model.fix_prior(engine.statistics(model, engine.learn(model)))


def masses(engine):
    return to_numpy(engine.masses)


def random_engine(kind, seed, weighted=True):
    """An engine over random rows of a model, some of them without weight."""
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(kind(), rng, m=60)
    w[30:] *= rng.random(len(w) - 30) < 0.8
    return MemoryEngine(X, y, w if weighted else None, 3)


@every_library
@pytest.mark.parametrize("weights", ["some zero", "positive", None])
@pytest.mark.parametrize("n_folds", [2, 5])
def test_folds_hold_each_row_that_has_a_weight_once(library, weights, n_folds):
    with config_context(array_api_dispatch=True):
        for seed in range(5):
            engine, y, w = numbered(seed, library, weights)
            counted = np.arange(len(y)) if w is None else np.flatnonzero(w > 0)
            held_rows, held_counts, held_masses = [], [], []
            for kept, held in engine.folds(n_folds, seed):
                assert sorted([*rows_in(kept), *rows_in(held)]) == counted.tolist()
                assert kept.mass + held.mass == pytest.approx(engine.mass)
                np.testing.assert_allclose(masses(kept) + masses(held), masses(engine))
                assert masses(kept).min() > 0
                held_rows += rows_in(held).tolist()
                held_counts.append(held.class_counts())
                held_masses.append(masses(held))
            assert sorted(held_rows) == counted.tolist()
            np.testing.assert_allclose(np.sum(held_masses, axis=0), masses(engine))
            assert np.ptp(held_counts, axis=0).max() <= 1  # stratified
            np.testing.assert_array_equal(np.sum(held_counts, axis=0), engine.class_counts())


@every_library
@pytest.mark.parametrize("weights", ["some zero", None])
def test_held_out_rows_have_a_weight_and_each_class_is_on_both_sides(library, weights):
    with config_context(array_api_dispatch=True):
        for seed in range(10):
            engine, y, w = numbered(seed, library, weights)
            counted = np.arange(len(y)) if w is None else np.flatnonzero(w > 0)
            size = int(np.random.default_rng(seed).integers(engine.n_classes, len(counted) // 2))
            kept, held = engine.hold_out(size, np.random.RandomState(seed))
            assert held.n_rows == size
            assert sorted([*rows_in(kept), *rows_in(held)]) == counted.tolist()
            np.testing.assert_allclose(masses(kept) + masses(held), masses(engine))
            assert min(kept.class_counts().min(), held.class_counts().min()) > 0


@every_model
@given(seed=seeds, fraction=st.floats(0.02, 0.5))
def test_kept_rows_carry_the_weight_of_all(kind, seed, fraction):
    engine, model = random_engine(kind, seed), kind()
    S = settled(engine, model)
    part = hold_out(Task(model, engine, S), fraction, np.random.RandomState(seed))
    assert part.S.total == pytest.approx(S.total)
    assert part.engine.mass == pytest.approx(engine.mass)
    assert part.validation.mass < engine.mass
    assert model.is_legal(part.S)


@every_model
@given(seed=seeds, weighted=st.booleans())
def test_statistics_of_kept_and_held_rows_are_those_of_all(kind, seed, weighted):
    engine, model = random_engine(kind, seed, weighted), kind()
    frame = engine.learn(model)
    S = engine.statistics(model, frame)
    for kept, held in engine.folds(3, seed):
        both = kept.statistics(model, frame) + held.statistics(model, frame)
        assert both.allclose(S, rtol=1e-9, atol=1e-9)


@every_model
@given(seed=seeds, factor=st.floats(0.01, 100.0), weighted=st.booleans())
def test_scaled_weights_scale_statistics_and_leave_mean_risks(kind, seed, factor, weighted):
    engine, model = random_engine(kind, seed, weighted), kind()
    frame = engine.learn(model)
    fitted = Fitted.of(model, model.fix_prior(engine.statistics(model, frame)))
    scaled = engine.scaled(factor)
    assert scaled.mass == pytest.approx(factor * engine.mass)
    assert scaled.statistics(model, frame).allclose(factor * engine.statistics(model, frame), rtol=1e-9)
    one, other = engine.scan(fitted, LogLoss()), scaled.scan(fitted, LogLoss())
    assert other.dS.allclose(factor * one.dS, rtol=1e-8, atol=1e-8 * factor)
    assert other.risks.mean() == pytest.approx(one.risks.mean())


@every_model
@given(seed=seeds, weighted=st.booleans())
def test_a_bootstrap_sample_is_the_rows_that_were_drawn(kind, seed, weighted):
    engine, model = random_engine(kind, seed, weighted), kind()
    frame, m = engine.learn(model), engine.n_rows
    drawn = np.random.RandomState(seed).randint(m, size=m)
    sample, taken = engine.bootstrap(np.random.RandomState(seed)), engine.taken(drawn)
    assert sample.mass == pytest.approx(taken.mass)
    assert sample.statistics(model, frame).allclose(taken.statistics(model, frame), rtol=1e-9, atol=1e-9)
    assert weighted or sample.mass == m


@every_library
@pytest.mark.parametrize("size", [1, 7, 20, 1000])
def test_batches_are_all_rows_in_parts_of_about_one_size(library, size):
    with config_context(array_api_dispatch=True):
        for seed in range(3):
            engine, y, _ = numbered(seed, library)
            parts = [to_numpy(part) for part in engine.batches(size, np.random.default_rng(seed))]
            assert sorted(np.concatenate(parts).tolist()) == list(range(len(y)))
            lengths = [len(part) for part in parts]
            assert np.ptp(lengths) <= 1
            assert len(parts) == max(1, round(len(y) / size))


@every_model
@given(seed=seeds, size=st.integers(5, 50), weighted=st.booleans())
def test_scans_of_batches_add_up_to_that_of_all_rows(kind, seed, size, weighted):
    engine, model = random_engine(kind, seed, weighted), kind()
    fitted = Fitted.of(model, settled(engine, model))
    whole, total, risks = engine.scan(fitted, LogLoss()), None, None
    for part in engine.batches(size, np.random.default_rng(seed)):
        scan = engine.scan(fitted, LogLoss(), part)
        total = scan.dS if total is None else total + scan.dS
        risks = scan.risks if risks is None else risks.plus(scan.risks)
    assert total.allclose(whole.dS, rtol=1e-8, atol=1e-8)
    assert risks.mean() == pytest.approx(whole.risks.mean())
    assert risks.weight == pytest.approx(engine.mass)


@every_model
@given(seed=seeds, shuffled=st.booleans())
def test_rows_one_by_one_have_the_statistics_of_all(kind, seed, shuffled):
    engine, model = random_engine(kind, seed), kind()
    frame, total, number = engine.learn(model), None, 0
    for Z, y, w in engine.one_by_one(model, frame, np.random.RandomState(seed) if shuffled else None):
        S = label_statistics(model, Z, y, w, 3)
        total, number = S if total is None else total + S, number + 1
    assert number == engine.n_rows
    assert total.allclose(engine.statistics(model, frame), rtol=1e-8, atol=1e-8)


class Halved(LDAModel):
    """Reads halves, in the frame of the rows themselves."""

    def encode(self, X, frame):
        return super().encode(0.5 * X, frame)


@given(seed=seeds)
def test_an_engine_serves_several_models_in_turn(seed):
    """What it keeps of one has no part in another's scan."""
    rng = np.random.default_rng(seed)
    X, y, w = random_rows(QDAModel(), rng)
    shared = MemoryEngine(X, y, w, 3)
    models = [QDAModel(), GaussianNBModel(), LDAModel(), Halved(), QDAModel(covariance_strength=3.0)]
    for model in rng.permutation(np.array([*models, *models], dtype=object)):
        own = MemoryEngine(X, y, w, 3)
        fitted, expected = (Fitted.of(model, settled(each, model)) for each in (shared, own))
        assert fitted.S == expected.S
        scan, other = shared.scan(fitted, LogLoss()), own.scan(fitted, LogLoss())
        assert scan.dS == other.dS
        assert scan.risks.mean() == other.risks.mean()


@every_model
@given(seed=seeds)
def test_a_scan_of_risks_only_has_the_risks_of_a_scan(kind, seed):
    engine, model = random_engine(kind, seed), kind()
    fitted = Fitted.of(model, settled(engine, model))
    judged = engine.scan(fitted, LogLoss(), risks_only=True)
    assert judged.risks.mean() == pytest.approx(engine.scan(fitted, LogLoss()).risks.mean(), rel=1e-12)


@every_model
def test_rows_without_weight_have_no_part_in_a_scan(kind):
    for seed in range(5):
        X, y, w = random_rows(kind(), np.random.default_rng(seed))
        w[20:] *= np.random.default_rng(seed).random(len(w) - 20) < 0.7
        engine, model = MemoryEngine(X, y, w, 3), kind()
        counted = engine.taken(np.flatnonzero(w))
        assert counted.n_rows < engine.n_rows
        assert counted.mass == pytest.approx(engine.mass)
        frame = counted.learn(model)
        frame = engine.learn(model)  # equal, and each engine knows its own rows
        S = engine.statistics(model, frame)
        assert counted.statistics(model, frame).allclose(S, rtol=1e-9, atol=1e-9)
        fitted = Fitted.of(model, model.fix_prior(S))
        one, other = (each.scan(fitted, LogLoss()) for each in (engine, counted))
        assert one.dS.allclose(other.dS, rtol=1e-8, atol=1e-8)
        assert one.risks.mean() == pytest.approx(other.risks.mean())


@given(seed=seeds, n_folds=st.integers(2, 5))
def test_folds_of_blocks_hold_each_row_once_and_equally_many_of_a_class(seed, n_folds):
    """However small the blocks are: the rows of a class go round the folds from block to block."""
    rng = np.random.default_rng(seed)
    blocks = [rng.integers(2, size=rng.integers(1, 5)) for _ in range(12)]
    counts = np.stack([np.bincount(y, minlength=2) for y in blocks])
    before = np.cumsum(counts, axis=0) - counts
    held = np.zeros((n_folds, 2), dtype=int)
    for number, y in enumerate(blocks):
        found = [Fold(before, fold, n_folds, seed).of(number, y, None)[0] for fold in range(n_folds)]
        assert sorted(np.concatenate(found)) == list(range(len(y)))
        for fold, rows in enumerate(found):
            held[fold] += np.bincount(y[rows], minlength=2)
            others = Fold(before, fold, n_folds, seed, others=True).of(number, y, None)[0]
            assert sorted([*rows, *others]) == list(range(len(y)))
    assert (np.ptp(held, axis=0) <= 1).all()


@given(seed=seeds)
def test_draws_of_a_block_count_rows_by_their_weights(seed):
    rng = np.random.default_rng(seed)
    y, w = rng.integers(2, size=20), rng.uniform(0.1, 3.0, size=20)
    drawn = Drawn(np.array([7, 20]), seed)
    times = drawn.of(1, y, None)[1]
    assert times.sum() == 20
    np.testing.assert_array_equal(drawn.of(1, y, w)[1], times * w)
