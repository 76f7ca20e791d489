"""A new engine, learner, objective or model is one class: the laws here find it without being told.

Each of the four is written below as a newcomer would write it. What the package defines and what this module
defines is discovered alike, and held to the same laws.
"""

import re
import subprocess
import sys
import tracemalloc
import weakref
from dataclasses import dataclass, fields, replace
from graphlib import TopologicalSorter
from itertools import pairwise, product
from pathlib import Path
from typing import ClassVar

import dask
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.datasets import load_iris
from sklearn.utils import check_random_state

import riskbayes
import test_laws
from conftest import MODELS, closed_form, discover, import_graph, random_rows
from riskbayes.engines import Engine, MemoryEngine, Scan
from riskbayes.engines.block_writer import BlockWriter
from riskbayes.engines.blocks import BlockEngine
from riskbayes.engines.dask import DaskEngine
from riskbayes.engines.disk import DiskEngine
from riskbayes.engines.recorded import RecordedEngine
from riskbayes.engines.spool import Spool
from riskbayes.estimators import parameters
from riskbayes.estimators.base import BaseGenerativeClassifier
from riskbayes.learners import DFE, GD, RC, RCCV, TM, ClosedForm, Learner
from riskbayes.learners.base import resolve_learner
from riskbayes.learners.dfe import LabelSoftError
from riskbayes.learners.steps import FixedStep
from riskbayes.loop import run
from riskbayes.models import (
    CategoricalModel,
    GenerativeModel,
    LDAModel,
    MixtureModel,
    MultinomialModel,
    ProductModel,
    QDAModel,
    SmoothModel,
    TreeModel,
    qda,
)
from riskbayes.models.base import Fitted, Sample, log_class_prior
from riskbayes.objectives import ExpectedCost, LogLoss, Objective, SoftError
from riskbayes.persistence.journal import Journal
from riskbayes.risks import NO_RISK, posterior_and_risks
from riskbayes.scanners import kernels
from riskbayes.scanners.dense import Labels, Scanner, Split, label_statistics
from riskbayes.scanners.kernels import sparse
from riskbayes.statistics import Statistics
from riskbayes.task import Status, Task

# --- a model: three formulas ------------------------------------------------------------------------


@dataclass(frozen=True)
class Means:
    log_prior: np.ndarray
    means: np.ndarray


class UnitGaussians(GenerativeModel):
    """A mean for each class, and the variance one in all directions."""

    def statistics(self, Z, W):
        return Statistics({"s0": W.sum(axis=0), "s1": W.T @ Z})

    def parameters(self, S):
        return Means(log_class_prior(S["s0"]), S["s1"] / S["s0"][:, None])

    def log_joint(self, Z, theta):
        squares = ((Z[:, None, :] - theta.means) ** 2).sum(axis=2)
        return theta.log_prior - 0.5 * (squares + Z.shape[1] * np.log(2 * np.pi))


# --- an objective: a residual -----------------------------------------------------------------------


class Brier(Objective):
    """sum_k (P[k] - 1[y = k])^2."""

    risk = "brier"

    def losses(self, P, y):
        return {"brier": ((P - np.eye(P.shape[1])[y]) ** 2).sum(axis=1)}

    def residual(self, P, y):
        D = P - np.eye(P.shape[1])[y]
        return 2 * P * ((P * D).sum(axis=1, keepdims=True) - D)


# --- a learner: a name and a step -------------------------------------------------------------------


class ShrinkingStep(FixedStep):
    """The step number t is lr / (1 + t) long."""

    def __init__(self, lr):
        super().__init__(SoftError(), "soft_error", lr)
        self.first, self.number = lr, 0

    def on_success(self):
        self.number += 1
        self.lr = self.first / (1 + self.number)


class DecayingRC(Learner):
    """RC whose steps become shorter."""

    name: ClassVar[str] = "decaying_rc"
    _parameter_constraints: ClassVar[dict] = {"lr": [float], "max_iter": [int]}

    def __init__(self, lr=0.5, max_iter=20):
        self.lr = lr
        self.max_iter = max_iter

    def begin(self, task):
        return ShrinkingStep(self.lr)


# --- engines: four methods, and all of them ---------------------------------------------------------


class LeastEngine(Engine):
    """The four methods without which there is no engine, on all rows at once."""

    def __init__(self, X, y, w, n_classes):
        self.X, self.y, self.w, self.n_classes, self.n_rows = X, y, w, n_classes, len(y)

    @property
    def masses(self):
        return np.bincount(self.y, self.w, self.n_classes).astype(float)

    def learn(self, model):
        return model.learn(Sample(self.X, self.y, self.w, self.n_classes))

    def statistics(self, model, frame):
        return label_statistics(model, model.encode(self.X, frame), self.y, self.w, self.n_classes)

    def scan(self, fitted, objective, part=None, risks_only=False):
        model, S, theta = fitted
        scanner = model.scanner(model.encode(self.X, S.frame))
        return Scan(*scanner.scan(theta, Labels(self.y, self.w, self.n_classes), objective, risks_only))


class RowsInMemory:
    """Counts the rows that were read and are still alive, and refuses more of them than a limit."""

    def __init__(self, limit):
        self.limit, self.alive, self.most, self.reads = limit, 0, 0, 0

    def watched(self, X):
        X = np.array(X)  # owns its memory: views of it keep it alive
        self._changed(len(X))
        weakref.finalize(X, self._changed, -len(X))
        return X

    def _changed(self, number):
        self.alive += number
        self.reads += number > 0
        self.most = max(self.most, self.alive)
        assert self.alive <= self.limit, f"{self.alive} rows are in memory"


class FileEngine(Engine):
    """Rows in files of a few rows each, which are read one after another."""

    sample_size = 100

    def __init__(self, folder, n_classes, memory, factor=1.0):
        self.folder, self.n_classes, self.memory, self.factor = folder, n_classes, memory, factor
        self.files = sorted(folder.glob("*.npz"))
        self.sizes = [len(y) for y, _ in self._labels()]
        self.n_rows = sum(self.sizes)

    @classmethod
    def written(cls, folder, chunks, n_classes, memory):
        """Write chunks (X, y, w) down, but for empty ones; return an engine over them."""
        for number, (X, y, w) in enumerate(chunks):
            if len(y):
                np.savez(folder / f"{number:06}.npz", X=X, y=y, w=np.ones(len(y)) if w is None else w)
        return cls(folder, n_classes, memory)

    def _labels(self):
        for file in self.files:
            with np.load(file) as held:
                yield held["y"], self.factor * held["w"]

    def _chunks(self, part=None):
        files = self.files if part is None else [part[0]]
        rows = slice(None) if part is None else part[1]
        for file in files:
            with np.load(file) as held:
                yield self.memory.watched(held["X"])[rows], held["y"][rows], self.factor * held["w"][rows]

    @property
    def masses(self):
        return sum(np.bincount(y, w, self.n_classes) for y, w in self._labels())

    def learn(self, model):
        """The rows of the smallest random keys are the sample; largest values are those of all rows."""
        random, largest, sample = np.random.default_rng(0), -np.inf, None
        for X, y, w in self._chunks():
            largest = np.maximum(largest, X.max(axis=0))
            new = (X, y, w, random.random(len(y)))
            sample = new if sample is None else [np.concatenate(two) for two in zip(sample, new, strict=True)]
            rows = np.sort(np.argsort(sample[-1])[: self.sample_size])
            sample = [values[rows] for values in sample]
        X, y, w, _ = sample
        return model.learn(Sample(self.memory.watched(X), y, w, self.n_classes, largest))

    def statistics(self, model, frame):
        r = self.n_classes
        parts = (label_statistics(model, model.encode(X, frame), y, w, r) for X, y, w in self._chunks())
        total = next(parts)
        for S in parts:
            total = total + S
        return total

    def scan(self, fitted, objective, part=None, risks_only=False):
        (model, S, theta), total, risks = fitted, None, NO_RISK
        for X, y, w in self._chunks(part):
            scanner = model.scanner(model.encode(X, S.frame))
            dS, found = scanner.scan(theta, Labels(y, w, self.n_classes), objective, risks_only)
            total, risks = dS if total is None else total + dS, risks.plus(found)
        return Scan(total, risks)

    def map_rows(self, path, formula):
        model, S, _ = path[0]
        found, first = [], 0
        for X, y, _ in self._chunks():
            Z = model.encode(X, S.frame)
            found.append([formula(Z, model.cast(fitted.theta, Z), first) for fitted in path])
            first += len(y)
        return [np.concatenate(results) for results in zip(*found, strict=True)]

    def class_counts(self):
        return sum(np.bincount(y[w > 0], minlength=self.n_classes) for y, w in self._labels())

    def _rewritten(self, change):
        """An engine over chunks that `change` makes of each chunk of this one."""
        folder = self.folder / f"{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        changed = (change(*chunk) for chunk in self._chunks())
        return type(self).written(folder, changed, self.n_classes, self.memory)

    def _split(self, is_held):
        """Kept and held rows, by the class of each and its number among the weighted rows of the class."""

        def half(held):
            seen = np.zeros(self.n_classes, dtype=int)

            def change(X, y, w):
                rows = np.flatnonzero(w > 0)
                number = np.empty(len(rows), dtype=int)
                for k in range(self.n_classes):
                    own = y[rows] == k
                    number[own] = seen[k] + np.arange(own.sum())
                    seen[k] += own.sum()
                rows = rows[is_held(y[rows], number) == held]
                return X[rows], y[rows], w[rows]

            return self._rewritten(change)

        return half(False), half(True)

    def folds(self, n_folds, random_state):
        first = check_random_state(random_state).randint(n_folds, size=self.n_classes)
        for fold in range(n_folds):
            yield self._split(lambda y, number, fold=fold: (first[y] + number) % n_folds == fold)

    def hold_out(self, size, random):
        counts = self.class_counts()
        share = size * counts / counts.sum()
        number = np.clip(np.floor(share), 1, counts - 1).astype(int)
        while number.sum() != size:
            off = np.where(number < counts - 1, share - number, -np.inf)
            k = np.argmax(off) if number.sum() < size else np.argmax(number - share)
            number[k] += np.sign(size - number.sum())
        held = [set(random.permutation(m)[:h]) for m, h in zip(counts, number, strict=True)]
        return self._split(
            lambda y, number: np.array([i in held[k] for k, i in zip(y, number, strict=True)], dtype=bool)
        )

    def scaled(self, factor):
        return type(self)(self.folder, self.n_classes, self.memory, factor * self.factor)

    def bootstrap(self, random):
        drawn = iter(random.multinomial(self.n_rows, np.array(self.sizes) / self.n_rows))

        def change(X, y, w):
            times = np.bincount(random.randint(len(y), size=next(drawn)), minlength=len(y))
            return X, y, w * times

        return self._rewritten(change)

    def batches(self, size, rng):
        parts = [
            (file, rows)
            for file, m in zip(self.files, self.sizes, strict=True)
            for rows in np.array_split(rng.permutation(m), max(1, round(m / size)))
        ]
        return [parts[i] for i in rng.permutation(len(parts))]

    def one_by_one(self, model, frame, random):
        order = range(len(self.files)) if random is None else random.permutation(len(self.files))
        for file in order:
            m = self.sizes[file]
            rows = np.arange(m) if random is None else random.permutation(m)
            for X, y, w in self._chunks((self.files[file], rows)):
                Z = model.encode(X, frame)
                for i in range(m):
                    yield Z[i : i + 1], y[i : i + 1], w[i : i + 1]


# --- a scanner: one pass over the rows --------------------------------------------------------------


class ClassByClass(Scanner):
    """Scans the rows of one class after those of another; counts the classes that were scanned."""

    scanned = 0

    def scan(self, theta, labels, objective, risks_only=False):
        own, total, risks = self.model.cast(theta, self.Z), None, NO_RISK
        for k in np.unique(labels.y):
            rows = np.flatnonzero(labels.y == k)
            dS, found = self.chunk(self.Z[rows], labels.of(rows), own, objective, risks_only)
            total, risks = dS if total is None else total + dS, risks.plus(found)
            ClassByClass.scanned += 1
        return (None if risks_only else total), risks


# --- what there is ----------------------------------------------------------------------------------

ENGINES = discover(Engine, __name__)
EVERY_MODEL = discover(GenerativeModel, __name__)
OBJECTIVES = discover(Objective, __name__)
LEARNERS = [kind for kind in discover(Learner, __name__) if "name" in vars(kind)]

VARIANTS = [
    *(kind() for kind in EVERY_MODEL),
    TreeModel(structure="tree", backoff=1.0),
    TreeModel(structure=2, alpha=1.0),
    MixtureModel(n_components=2),
    ProductModel(experts=(SmoothModel(alpha=1.0), UnitGaussians()), weights=(0.7, 0.3)),
]
"""Every model by its defaults, and some that learn more from the rows or are made of others."""

COSTS = np.array([[0.0, 1.0, 5.0], [2.0, 0.5, 1.0], [1.0, 3.0, -1.0]])
ARGUMENTS = {ExpectedCost: (COSTS,)}
"""Of objectives that are not made without."""

NO_GRADIENT = {LabelSoftError: "it strengthens the label and weakens nothing"}

every_engine = pytest.mark.parametrize("kind", ENGINES, ids=lambda kind: kind.__name__)
every_variant = pytest.mark.parametrize("model", VARIANTS, ids=lambda model: type(model).__name__)
every_objective = pytest.mark.parametrize(
    "objective",
    [kind(*ARGUMENTS.get(kind, ())) for kind in OBJECTIVES],
    ids=lambda objective: type(objective).__name__,
)


def engines_that(method):
    """Engines that implement what they need not."""
    kinds = [kind for kind in ENGINES if getattr(kind, method) is not getattr(Engine, method)]
    assert FileEngine in kinds
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.__name__)


@pytest.fixture
def engine_of(tmp_path):
    """Makes an engine of a kind over rows, which it reads in chunks of about `chunk` rows where it does."""

    def make(kind, X, y, w, r, chunk=64, model=None):
        if model is not None and model.implements("learn_own") and issubclass(kind, BlockEngine):
            pytest.skip(f"{kind.__name__} refuses a model that compares rows with all training rows")
        if issubclass(kind, FileEngine):
            folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            rows = [slice(start, start + chunk) for start in range(0, len(y), chunk)]
            chunks = [(X[part], y[part], None if w is None else w[part]) for part in rows]
            # That which is worked on and that which is read; in `learn`, the sample and a new one.
            return kind.written(folder, chunks, r, RowsInMemory(2 * chunk + 2 * kind.sample_size))
        if issubclass(kind, DiskEngine):
            writer = BlockWriter(Spool(tmp_path), block_rows=chunk)
            writer.add(X, y, w)
            writer.flush()
            engine = kind(writer.files, writer.spool, r)
            engine.sample_rows = 2 * chunk
            return engine
        if issubclass(kind, DaskEngine):
            at = [slice(start, start + chunk) for start in range(0, len(y), chunk)]
            blocks = [MemoryEngine(X[a], y[a], None if w is None else w[a], r) for a in at]
            engine = kind([dask.delayed(block) for block in blocks], r)
            engine.sample_rows = 2 * chunk
            return engine
        if issubclass(kind, RecordedEngine):
            if model is not None and model.implements("learn_own"):
                pytest.skip("as the engine that it records")
            journal = Journal(tmp_path / f"{len(list(tmp_path.iterdir()))}.journal")
            return kind(make(MemoryEngine, X, y, w, r, chunk), journal)
        engine = kind(X, y, w, r)
        if issubclass(kind, MemoryEngine):
            engine.split = Split(chunk * X.shape[1])
        return engine

    with dask.config.set(scheduler="synchronous"):
        yield make


def task_of(model, engine, frame=None):
    """The task of an engine's rows, in a frame that is given or learned from them."""
    S = engine.statistics(model, engine.learn(model) if frame is None else frame)
    return Task(model, engine, model.fix_prior(S))


def at_once(fitted, objective, Z, y, w):
    """dS and the risks of a scan of encoded rows, by definition: all rows, no plan."""
    model, _, theta = fitted
    P, risks = posterior_and_risks(model.log_joint(Z, theta), y, w, objective)
    E = objective.residual(P, y) * (1.0 if w is None else w[:, None])
    return model.residual_statistics(Z, E, theta), risks.mean()


def numbered_rows(seed=0, m=203, r=3, empty=20):
    """Rows whose first column is their number; some have no weight."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.repeat(np.arange(r), 12), rng.integers(r, size=m - 12 * r)])
    w = rng.uniform(0.5, 2.0, size=m)
    w[rng.permutation(m)[:empty]] = 0.0
    return np.column_stack([np.arange(m), rng.standard_normal(m)]).astype(float), y, w


def numbers_of(engine):
    """Which of the numbered rows an engine holds, whatever their order."""
    task = task_of(UnitGaussians(), engine)
    found = engine.map_rows([Fitted.of(task.model, task.S)], lambda Z, theta, first: Z[:, 0])[0]
    return np.sort(found.astype(int))


def test_all_four_kinds_are_discovered():
    assert {MemoryEngine, FileEngine, LeastEngine} <= set(ENGINES)
    assert {*MODELS, UnitGaussians} == set(EVERY_MODEL)
    assert {LogLoss, SoftError, ExpectedCost, LabelSoftError, Brier} <= set(OBJECTIVES)
    assert {RC, RCCV, TM, DFE, GD, ClosedForm, DecayingRC} <= set(LEARNERS)


# --- laws of models ---------------------------------------------------------------------------------


LAWS = [
    law for law in vars(test_laws).values() if test_laws.every_model.mark in getattr(law, "pytestmark", [])
]
"""Those that need no more than the three formulas."""


@pytest.mark.parametrize("kind", [kind for kind in EVERY_MODEL if kind not in MODELS])
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_model_of_ones_own_obeys_the_laws_of_the_others(kind, law):
    """Linearity and additivity, weights as repeats, permutations, no worse than the closed form, legality."""
    assert len(LAWS) >= 5
    law(kind=kind)


NOT_THE_MAXIMUM = {
    SmoothModel: "its closed form is a plug-in",
    ProductModel: "each expert has its own likelihood, and the product is not normalised",
}


@pytest.mark.parametrize("kind", EVERY_MODEL, ids=lambda kind: kind.__name__)
def test_the_closed_form_is_the_maximum_of_the_joint_likelihood(kind):
    if kind in NOT_THE_MAXIMUM:
        pytest.skip(NOT_THE_MAXIMUM[kind])
    rng = np.random.default_rng(0)
    X, y, w = random_rows(kind(), rng, m=80)
    _, (model, S, theta) = closed_form(kind(), X, y, w, 3)
    Z = model.encode(X, S.frame)

    def likelihood(theta):
        return w @ model.log_joint(Z, theta)[np.arange(len(y)), y]

    best, moved = likelihood(theta), 0
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(10):
            E = size * w[:, None] * (rng.dirichlet(np.ones(3), len(y)) - np.eye(3)[y])
            other = S + model.residual_statistics(Z, E, theta)
            if model.is_legal(other):
                found = likelihood(model.parameters(other))
                assert found <= best + 1e-9 * abs(best)
                moved += found < best
    assert moved > 10


@every_variant
def test_a_frame_may_come_from_a_sample(model):
    """Whatever an engine learned from few rows, all rows are counted in it, categories without exception."""
    rng = np.random.default_rng(1)
    X, y, w = random_rows(model, rng, m=400)
    few = np.concatenate([np.flatnonzero(y == k)[:12] for k in range(3)])
    frame = model.learn(Sample(X[few], y[few], w[few], 3, X.max(axis=0)))
    S = MemoryEngine(X, y, w, 3).statistics(model, frame)
    np.testing.assert_allclose(S["s0"], np.bincount(y, w), rtol=1e-12)
    assert model.is_legal(model.fix_prior(S))
    if type(model) is CategoricalModel:
        assert S == closed_form(model, X, y, w, 3)[1].S


# --- laws of engines --------------------------------------------------------------------------------


@every_engine
@every_variant
@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_and_scans_are_those_of_all_rows_at_once(kind, model, weighted, engine_of):
    """Whatever the chunks: every engine, every model."""
    X, y, w = random_rows(model, np.random.default_rng(2), m=300)
    w = w if weighted else None
    objective, frame = LogLoss(), None
    for chunk in (64, 97, 1000):
        engine = engine_of(kind, X, y, w, 3, chunk, model)
        assert (engine.n_rows, engine.n_classes) == (len(y), 3)
        np.testing.assert_allclose(engine.masses, np.bincount(y, w), rtol=1e-12)
        assert engine.mass == pytest.approx(len(y) if w is None else w.sum())
        frame = engine.learn(model) if frame is None else frame
        S = engine.statistics(model, frame)
        # The engine that learned the frame leaves its rows out of their own comparison.
        Z = model.encode(X, frame)
        if chunk == 64 and isinstance(engine, MemoryEngine):
            own = model.learn_own(Sample(X, y, w, 3))[1]
            Z = Z if own is None else own
        assert S.allclose(label_statistics(model, Z, y, w, 3), rtol=1e-10, atol=1e-10)
        fitted = Fitted.of(model, model.fix_prior(S))
        for _ in range(2):  # an engine may remember what it saw
            scan = engine.scan(fitted, objective)
            dS, risks = at_once(fitted, objective, Z, y, w)
            assert scan.dS.allclose(dS, rtol=1e-9, atol=1e-9)
            assert scan.risks.mean() == pytest.approx(risks, rel=1e-9)
        held = engine.scan(fitted, objective, risks_only=True)
        assert held.dS is None
        assert held.risks.mean() == pytest.approx(risks, rel=1e-9)


@every_engine
@pytest.mark.parametrize("model", [CategoricalModel(), TreeModel(), TreeModel(structure=1)])
def test_no_category_is_lost_however_rare(kind, model, engine_of):
    """Not where rows are sampled either: each column has a category that occurs in one row."""
    X, y, w = random_rows(model, np.random.default_rng(14), m=500, n=6)
    X[np.arange(6) * 80, np.arange(6)] = 9
    engine = engine_of(kind, X, y, w, 3, chunk=90)
    S = engine.statistics(model, engine.learn(model))
    assert S["counts"].sum() == pytest.approx(6 * w.sum())
    if type(model) is CategoricalModel:
        np.testing.assert_array_equal(S.frame.n_categories, 10)
    else:
        np.testing.assert_array_equal(S.frame.sizes, 10)


@every_engine
@every_objective
def test_a_scan_takes_any_objective(kind, objective, engine_of):
    for model in (UnitGaussians(), CategoricalModel(alpha=1.0)):
        X, y, w = random_rows(model, np.random.default_rng(3), m=200)
        engine = engine_of(kind, X, y, w, 3)
        task = task_of(model, engine)
        fitted = Fitted.of(model, task.S)
        Z = fitted.model.encode(X, fitted.S.frame)
        scan, (dS, risks) = engine.scan(fitted, objective), at_once(fitted, objective, Z, y, w)
        assert scan.dS.allclose(dS, rtol=1e-9, atol=1e-9)
        assert scan.risks.mean() == pytest.approx(risks, rel=1e-9)
        assert objective.risk in risks


@engines_that("map_rows")
@every_variant
def test_a_formula_of_chunks_is_that_of_all_rows(kind, model, engine_of):
    X, y, w = random_rows(model, np.random.default_rng(4), m=300)
    engine = engine_of(kind, X, y, w, 3, model=model)
    task = task_of(model, engine)
    path = [Fitted.of(model, task.S), run(task, RC(max_iter=3)).fitted]
    Z, found = model.encode(X, task.S.frame), engine.map_rows(path, lambda Z, plan, _: model.scores(Z, plan))
    for scores, fitted in zip(found, path, strict=True):
        np.testing.assert_allclose(scores, model.scores(Z, fitted.theta), rtol=1e-9, atol=1e-9)
    rows = engine.map_rows(path[:1], lambda Z, theta, first: first + np.arange(Z.shape[0]))[0]
    np.testing.assert_array_equal(rows, np.arange(len(y)))


@engines_that("folds")
def test_folds_partition_the_rows_and_hold_as_many_of_each_class(kind, engine_of):
    X, y, w = numbered_rows()
    counted = np.flatnonzero(w > 0)
    engine = engine_of(kind, X, y, w, 3)
    np.testing.assert_array_equal(engine.class_counts(), np.bincount(y[counted]))
    folds = list(engine.folds(4, 0))
    assert len(folds) == 4
    held = [numbers_of(part) for _, part in folds]
    np.testing.assert_array_equal(np.sort(np.concatenate(held)), counted)
    for (kept, part), rows in zip(folds, held, strict=True):
        np.testing.assert_array_equal(numbers_of(kept), np.setdiff1d(counted, rows))
        for k, mass in enumerate(part.masses):
            assert mass == pytest.approx(w[rows][y[rows] == k].sum())
        assert np.abs(part.class_counts() - engine.class_counts() / 4).max() < 1


@engines_that("hold_out")
@pytest.mark.parametrize("size", [3, 40, 150])
def test_held_rows_and_kept_rows_are_all_rows(kind, size, engine_of):
    X, y, w = numbered_rows()
    kept, held = engine_of(kind, X, y, w, 3).hold_out(size, np.random.RandomState(0))
    assert held.n_rows == size
    assert min(kept.class_counts().min(), held.class_counts().min()) > 0
    both = np.concatenate([numbers_of(kept), numbers_of(held)])
    np.testing.assert_array_equal(np.sort(both), np.flatnonzero(w > 0))


@engines_that("scaled")
@every_variant
def test_scaled_weights_scale_the_statistics(kind, model, engine_of):
    X, y, w = random_rows(model, np.random.default_rng(5), m=200)
    engine = engine_of(kind, X, y, w, 3, model=model)
    task, more = task_of(model, engine), engine.scaled(2.5).scaled(2.0)
    assert more.mass == pytest.approx(5.0 * engine.mass)
    assert more.statistics(model, task.S.frame).allclose(5.0 * task.S, rtol=1e-10)
    fitted = Fitted.of(model, task.S)
    one, five = engine.scan(fitted, LogLoss()), more.scan(fitted, LogLoss())
    assert five.dS.allclose(5.0 * one.dS, rtol=1e-9, atol=1e-9)
    assert five.risks.mean() == pytest.approx(one.risks.mean())


@engines_that("bootstrap")
def test_a_bootstrap_sample_has_as_many_rows(kind, engine_of):
    X, y, _ = numbered_rows()
    engine = engine_of(kind, X, y, None, 3)
    drawn = [engine.bootstrap(np.random.RandomState(seed)) for seed in (0, 0, 1)]
    model = UnitGaussians()
    S = [each.statistics(model, engine.learn(model)) for each in drawn]
    for each in S:
        assert each.total == pytest.approx(len(y))
        np.testing.assert_allclose(each["s0"], np.round(each["s0"]), atol=1e-9)
    assert S[0] == S[1] != S[2]
    means = [
        engine.bootstrap(np.random.RandomState(seed)).statistics(model, engine.learn(model))["s1"].sum(axis=0)
        for seed in range(60)
    ]
    np.testing.assert_allclose(
        np.mean(means, axis=0) / len(y), X.mean(axis=0), atol=4 * 59 / np.sqrt(60 * 203)
    )


@engines_that("batches")
@every_variant
def test_batches_are_all_rows(kind, model, engine_of):
    X, y, _ = random_rows(model, np.random.default_rng(6), m=296)
    engine = engine_of(kind, X, y, None, 3, chunk=80, model=model)
    assert len(y) % 80 == 0
    task = task_of(model, engine)
    fitted = Fitted.of(model, task.S)
    whole = engine.scan(fitted, LogLoss())
    parts = [engine.scan(fitted, LogLoss(), part) for part in engine.batches(20, np.random.default_rng(0))]
    assert all(10 <= float(part.risks.weight) <= 40 for part in parts)
    assert Statistics.merge(*(part.dS for part in parts)).allclose(whole.dS, rtol=1e-9, atol=1e-9)
    risks = NO_RISK
    for part in parts:
        risks = risks.plus(part.risks)
    assert risks.mean() == pytest.approx(whole.risks.mean())


@engines_that("one_by_one")
@every_variant
@pytest.mark.parametrize("seed", [None, 0])
def test_row_after_row_is_all_rows(kind, model, seed, engine_of):
    X, y, w = random_rows(model, np.random.default_rng(7), m=100)
    engine = engine_of(kind, X, y, w, 3)
    task = task_of(model, engine)
    random = None if seed is None else np.random.RandomState(seed)
    rows = [
        (label_statistics(model, Z, label, np.ravel(weight), 3), int(label[0]))
        for Z, label, weight in engine.one_by_one(model, task.S.frame, random)
    ]
    assert Statistics.merge(*(S for S, _ in rows)).allclose(task.S, rtol=1e-9)
    assert ([label for _, label in rows] == y.tolist()) == (seed is None)


# --- rows in files ----------------------------------------------------------------------------------


def test_rows_in_files_are_never_in_memory_together(engine_of):
    """Neither by the count of rows alive, which the engine asserts, nor by the memory that was taken."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=30_000)
    X = rng.standard_normal((len(y), 16)) + rng.standard_normal((3, 16))[y]
    engine, size = engine_of(FileEngine, X, y, None, 3, chunk=500), X.nbytes
    memory, model = engine.memory, riskbayes.models.QDAModel()
    del X
    tracemalloc.start()
    try:
        outcome = run(task_of(model, engine), RC(max_iter=3))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome.status is Status.MAX_ITER
    assert memory.reads == 60 * (1 + 1 + 4) + 1  # learn, count, four scans; the sample
    assert memory.most <= memory.limit < len(y) / 20
    assert memory.alive == 0
    assert peak < size / 3


PATHS = {
    "rc": RC(lr=0.2, max_iter=12, step="fixed", generative_weight=0.0),
    "anchored": RC(step="adaptive", generative_weight="auto", max_iter=8),
    "tm": TM(max_iter=5),
}
"""Short of where a risk falls by rounding only, and where rounding says when to stop."""


@every_variant
@pytest.mark.parametrize("learner", PATHS.values(), ids=PATHS)
def test_the_path_does_not_depend_on_where_the_rows_are(model, learner, engine_of):
    """In one frame, learned from a sample of the files: the same statistics, risks and decisions."""
    X, y, w = random_rows(model, np.random.default_rng(8), m=600)
    files, memory = engine_of(FileEngine, X, y, w, 3, chunk=100), MemoryEngine(X, y, w, 3)
    frame = files.learn(model)
    there, here = (learner.fit_statistics(task_of(model, engine, frame)) for engine in (files, memory))
    assert there.status is here.status
    assert there.number == here.number
    assert len(here.history["lr"]) > 1
    assert there.fitted.S.allclose(here.fitted.S, rtol=1e-7)
    for name, values in here.history.items():
        np.testing.assert_allclose(there.history[name], values, rtol=1e-7, atol=1e-9)
    assert 0 < files.memory.most <= files.memory.limit < len(y)


@every_variant
def test_a_sample_of_all_rows_is_all_rows(model, engine_of, monkeypatch):
    monkeypatch.setattr(FileEngine, "sample_size", 10_000)
    X, y, w = random_rows(model, np.random.default_rng(9), m=100)
    files = engine_of(FileEngine, X, y, w, 3)
    assert files.learn(model) == MemoryEngine(X, y, w, 3).learn(model)


# --- laws of objectives -----------------------------------------------------------------------------


def scored_rows(seed=0, m=40, r=3):
    rng = np.random.default_rng(seed)
    return 2.0 * rng.standard_normal((m, r)), rng.integers(r, size=m)


@every_objective
def test_a_residual_is_the_negative_gradient_of_the_loss_in_the_log_joint(objective):
    scores, y = scored_rows()
    E, size = objective.residual(softmax(scores, axis=1), y), 1e-5
    if type(objective) in NO_GRADIENT:
        assert np.abs(E.sum(axis=1)).max() > 0.1
        return

    def losses(moved):
        rows = (
            posterior_and_risks(moved[i : i + 1], y[i : i + 1], None, objective)[1] for i in range(len(y))
        )
        return np.array([risks.mean()[objective.risk] for risks in rows])

    np.testing.assert_allclose(E.sum(axis=1), 0.0, atol=1e-14)
    for k in range(scores.shape[1]):
        step = size * np.eye(scores.shape[1])[k]
        slope = (losses(scores + step) - losses(scores - step)) / (2 * size)
        np.testing.assert_allclose(E[:, k], -slope, atol=1e-8)


@every_objective
def test_an_objective_is_what_it_declares(objective):
    scores, y = scored_rows()
    P, labels = softmax(scores, axis=1), np.eye(3)[y]
    if objective.power is not None:
        own = P[np.arange(len(y)), y][:, None]
        np.testing.assert_allclose(objective.residual(P, y), own**objective.power * (labels - P), atol=1e-14)
    if objective.saturates:
        assert not objective.residual(labels, y).any()
        assert not any(losses.any() for losses in objective.losses(labels, y).values())
        certain = posterior_and_risks(1e4 * labels, y, None, objective)[1].mean()
        assert certain[objective.risk] == 0


def tables_of(model):
    """X, y: overlapping classes and, for scans that skip rows, classes far apart; counts are sparse too."""
    X, y, _ = random_rows(model, np.random.default_rng(0), m=150)
    yield X, y
    if model.traits.support == "real":
        yield X + 50.0 * y[:, None], y
    if model.traits.support == "counts":
        yield csr_array(X), y


@every_objective
@pytest.mark.parametrize("formula", ["residual", "losses"])
@pytest.mark.parametrize(
    "model",
    [QDAModel(), SmoothModel(alpha=1.0), CategoricalModel(), MultinomialModel(alpha=1.0)],
    ids=lambda model: type(model).__name__,
)
def test_every_scan_follows_a_formula_that_a_subclass_replaces(model, formula, objective, monkeypatch):
    """What the base class declares of its own formulas must not reach compiled scans, or those that skip."""

    class Smoothed(type(objective)):
        """Labels of a share of 0.9: rows of a posterior of one have a residual."""

        def residual(self, P, y):
            return super().residual(P, y) + 0.1 * (1.0 / P.shape[1] - P)

    class Named(type(objective)):
        """A further loss for the history."""

        def losses(self, P, y):
            return {**super().losses(P, y), "own": 1.0 + P[:, 0]}

    child = {"residual": Smoothed, "losses": Named}[formula](*ARGUMENTS.get(type(objective), ()))
    learner = RC(
        objective=child, lr=0.05, max_iter=3, monitor="log_loss", step="fixed", generative_weight=0.0
    )
    for X, y in tables_of(model):
        found = []
        for smallest in (np.inf, 0):
            monkeypatch.setattr(kernels, "SMALLEST", smallest)
            monkeypatch.setattr(sparse, "SMALLEST", smallest)
            monkeypatch.setattr(qda, "FEWEST_FEATURES", smallest)
            monkeypatch.setattr(qda, "ROWS_PER_FEATURE", 0)
            found.append(run(task_of(model, MemoryEngine(X, y, None, 3)), learner))
        plain, fast = found
        assert fast.history.keys() == plain.history.keys()
        for name, path in plain.history.items():
            np.testing.assert_allclose(fast.history[name], path, rtol=1e-9, atol=1e-12)
        assert fast.fitted.S.allclose(plain.fitted.S, rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [QDAModel(), LDAModel(), SmoothModel(alpha=1.0), CategoricalModel(), MultinomialModel(alpha=1.0)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("smallest", [np.inf, 0])
def test_every_scan_follows_a_log_joint_that_a_subclass_replaces(model, smallest, monkeypatch):
    """Scores and scanners that a base class wrote for its own formulas are not those of the subclass."""

    class Flattened(type(model)):
        """Posteriors nearer to one another."""

        def log_joint(self, Z, theta):
            return 0.3 * super().log_joint(Z, theta)

    monkeypatch.setattr(kernels, "SMALLEST", smallest)
    monkeypatch.setattr(sparse, "SMALLEST", smallest)
    monkeypatch.setattr(qda, "FEWEST_FEATURES", smallest)
    monkeypatch.setattr(qda, "ROWS_PER_FEATURE", 0)
    child = Flattened(**{f.name: getattr(model, f.name) for f in fields(model)})
    for X, y in tables_of(model):
        task = task_of(child, MemoryEngine(X, y, None, 3))
        fitted = Fitted.of(child, task.S)
        for _ in range(3):  # what is remembered of a scan is of the subclass too
            dS, risks = task.engine.scan(fitted, LogLoss())
        Z = child.encode(X, task.S.frame)
        P, expected = posterior_and_risks(child.log_joint(Z, fitted.theta), y, None, LogLoss())
        assert risks.mean() == pytest.approx(expected.mean(), rel=1e-9)
        assert dS.allclose(child.statistics(Z, LogLoss().residual(P, y)), rtol=1e-7, atol=1e-7)


def test_an_estimator_of_ones_own_declares_what_its_users_may_set():
    X, y = load_iris(return_X_y=True)

    @parameters.estimator
    class Nearest(BaseGenerativeClassifier):
        """The class of the nearest mean."""

        learner: parameters.LearnerOrName = "closed_form"

        def _make_model(self):
            return UnitGaussians()

    clf = Nearest(learner=RC(lr=0.2, max_iter=5, step="fixed", generative_weight=0.0))
    other = riskbayes.GenerativeClassifier(UnitGaussians(), clf.learner).fit(X, y)
    assert list(clf.get_params(deep=False)) == ["learner"]
    np.testing.assert_array_equal(clf.fit(X, y).predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize(
    "kind",
    [UnitGaussians, QDAModel, LDAModel, CategoricalModel, MixtureModel],
    ids=lambda kind: kind.__name__,
)
def test_a_scanner_of_ones_own_is_asked_by_every_engine(kind, tmp_path):
    """A model names its scanner; fits in memory and from files are those of the usual one."""

    class Own(kind):
        def scanner(self, Z):
            return ClassByClass(self, Z)

    learner, r = RC(lr=0.2, max_iter=3, step="fixed", generative_weight=0.0), 3
    X, y, w = random_rows(kind(), np.random.default_rng(0), m=150)
    usual = run(task_of(kind(), MemoryEngine(X, y, w, r)), learner)
    chunks = [(X[part], y[part], w[part]) for part in np.array_split(np.arange(len(y)), 4)]
    files = FileEngine.written(tmp_path, chunks, r, RowsInMemory(len(y)))
    files.sample_size = len(y)
    for engine in (MemoryEngine(X, y, w, r), files):
        before, frame = ClassByClass.scanned, usual.fitted.S.frame
        task = task_of(Own(), engine, frame)
        own = run(replace(task, validation=engine), learner)
        scans = 2 * len(usual.history["lr"])  # of training and of validation rows
        assert ClassByClass.scanned - before >= scans * r
        for name, path in usual.history.items():
            np.testing.assert_allclose(own.history[name], path, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(own.history["val_log_loss"], own.history["log_loss"], rtol=1e-12)
        assert own.fitted.S.allclose(usual.fitted.S, rtol=1e-9)


@pytest.mark.parametrize(
    "learner",
    [
        RC(objective=Brier(), lr=0.2, max_iter=10, step="fixed", generative_weight=0.0),
        RC(objective=Brier(), step="adaptive", generative_weight=0.0),
    ],
)
def test_an_objective_of_ones_own_is_descended_by_every_estimator(learner):
    X, y = load_iris(return_X_y=True)
    for clf in (
        riskbayes.GaussianNB(learner=learner),
        riskbayes.GenerativeClassifier(UnitGaussians(), learner),
    ):
        path = clf.fit(X, y).history_["brier"]
        P = clf.predict_proba(X)
        assert path[clf.best_iteration_] < path[0]
        assert path[clf.best_iteration_] == pytest.approx(Brier().losses(P, y)["brier"].mean(), abs=1e-9)


# --- laws of learners -------------------------------------------------------------------------------


def short(kind):
    """A learner of this kind that takes few iterations."""
    learner = kind()
    return learner.set_params(max_iter=8) if "max_iter" in learner.get_params() else learner


def accepts(kind, model):
    """True if a learner does not refuse a model."""
    try:
        short(kind).check(model, 3)
    except TypeError:
        return False
    return True


PAIRS = [(kind, model) for kind, model in product(LEARNERS, VARIANTS) if accepts(kind, model)]
every_pair = pytest.mark.parametrize(
    ("kind", "model"), PAIRS, ids=[f"{kind.name}-{type(model).__name__}" for kind, model in PAIRS]
)


@every_variant
def test_a_refused_learner_names_those_that_accept_the_model(model):
    refusing = next((kind for kind in LEARNERS if not all(map(model.implements, kind.needs))), None)
    if refusing is None:
        return
    with pytest.raises(TypeError) as refused:
        refusing().check(model, 3)
    named = re.findall(r"'(\w+)'", str(refused.value))
    assert named == sorted(name for name, kind in Learner.known.items() if accepts(kind, model))


def test_a_learner_that_refuses_a_model_names_it():
    assert {kind for kind, _ in PAIRS} == set(LEARNERS)
    assert {type(model) for _, model in PAIRS} == set(EVERY_MODEL)
    for kind, model in product(LEARNERS, VARIANTS):
        if (kind, model) not in PAIRS:
            with pytest.raises(TypeError, match=type(model).__name__):
                short(kind).check(model, 3)


@every_pair
def test_a_learner_returns_a_legal_finite_model_that_is_no_worse(kind, model):
    X, y, w = random_rows(model, np.random.default_rng(10), m=80)
    task = task_of(model, MemoryEngine(X, y, w, 3))
    seen = []
    task = Task(model, task.engine, task.S, on_iteration=lambda iteration: bool(seen.append(iteration)))
    outcome, learner = short(kind).fit_statistics(task), short(kind)
    fitted = outcome.fitted
    assert fitted.model is model
    assert model.is_legal(fitted.S)
    assert fitted.S.is_finite()
    assert np.isfinite(model.log_joint(model.encode(X, fitted.S.frame), fitted.theta)).all()
    assert isinstance(outcome.status, Status)
    if learner.max_iter == 0:
        assert fitted.S is task.S
        return
    assert outcome.value <= outcome.start_value + 1e-12 * (1 + abs(outcome.start_value))
    accepted = outcome.history["accepted"]
    assert len(accepted) <= learner.most_iterations
    assert len(seen) >= accepted.sum()
    if kind.fit_statistics is Learner.fit_statistics:
        step = learner.begin(task)
        risks = task.engine.scan(fitted, step.objective).risks.mean()
        assert step.value(risks, fitted.theta) == pytest.approx(outcome.value, rel=1e-9)
        values = [iteration.value for iteration in seen]
        assert all(b <= a + 1e-12 * (1 + abs(a)) for a, b in pairwise(values))


@every_engine
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda kind: kind.name)
def test_every_engine_runs_every_learner_or_says_what_it_cannot_do(kind, learner, engine_of):
    model = CategoricalModel(alpha=1.0)  # every learner accepts it
    X, y, w = random_rows(model, np.random.default_rng(11), m=150)
    task = task_of(model, engine_of(kind, X, y, w, 3))
    if learner is RCCV and kind.folds is Engine.folds:
        with pytest.raises(NotImplementedError, match=f"{kind.__name__} cannot "):
            short(learner).fit_statistics(task)
        return
    outcome = short(learner).fit_statistics(task)
    assert model.is_legal(outcome.fitted.S)
    if learner is not RCCV:  # folds are an engine's own
        plain = short(learner).fit_statistics(task_of(model, MemoryEngine(X, y, w, 3)))
        assert outcome.status is plain.status
        assert outcome.fitted.S.allclose(plain.fitted.S, rtol=1e-7)


SETTINGS = {
    "early stopping": RC(max_iter=10, early_stopping=True, refit=True, random_state=0),
    "restarts": RC(max_iter=5, n_restarts=2, random_state=0),
    "batches": RC(max_iter=3, batch_size=30, random_state=0, generative_weight=0.0),
    "folds": RCCV(cv=3, max_iter=5, generative_weights=(0,), random_state=0),
    "toy": DecayingRC(),
}


@pytest.mark.parametrize("learner", SETTINGS.values(), ids=SETTINGS)
@every_variant
def test_rows_in_files_are_held_out_drawn_and_shuffled(learner, model, engine_of):
    X, y, w = random_rows(model, np.random.default_rng(12), m=500)
    engine = engine_of(FileEngine, X, y, w, 3, chunk=100)
    outcome = learner.fit_statistics(task_of(model, engine))
    assert model.is_legal(outcome.fitted.S)
    assert outcome.value <= outcome.start_value + 1e-12 * (1 + abs(outcome.start_value))
    assert engine.memory.most <= engine.memory.limit < len(y)


@pytest.mark.parametrize(
    "learner",
    [
        RC(),
        RC(early_stopping=True),
        RC(n_restarts=1),
        RC(batch_size=20, generative_weight=0.0),
        RCCV(),
        DFE(mode="online"),
    ],
)
def test_four_methods_are_enough_for_rc(learner):
    model = CategoricalModel(alpha=1.0)
    X, y, w = random_rows(model, np.random.default_rng(13), m=100)
    task = task_of(model, LeastEngine(X, y, w, 3))
    if learner.get_params() == RC().get_params():
        assert learner.fit_statistics(task).fitted.S.allclose(
            learner.fit_statistics(task_of(model, MemoryEngine(X, y, w, 3))).fitted.S
        )
        return
    with pytest.raises(NotImplementedError, match="LeastEngine cannot "):
        learner.fit_statistics(task)


ESTIMATORS = [
    kind
    for kind in (getattr(riskbayes, name) for name in riskbayes.__all__)
    if hasattr(kind, "fit") and "learner" in kind._get_param_names()
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("learner", ["decaying_rc", DecayingRC(lr=0.1, max_iter=5)], ids=["name", "instance"])
def test_a_learner_of_ones_own_trains_every_estimator(estimator, learner):
    X, y = load_iris(return_X_y=True)
    X = np.round(X)
    given = {"model": UnitGaussians()} if estimator is riskbayes.GenerativeClassifier else {}
    clf = estimator(learner=learner, **given).fit(X, y)
    assert isinstance(clf.learner_, DecayingRC)
    path, lr = (clf.history_[name][clf.history_["accepted"]] for name in ("soft_error", "lr"))
    assert len(path) > 1
    assert (np.diff(path) <= 1e-12).all()
    np.testing.assert_allclose(lr[1:], clf.learner_.lr / np.arange(1, len(lr)))
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


def test_a_learner_of_ones_own_is_named_where_names_are_listed():
    assert type(resolve_learner("decaying_rc")) is DecayingRC
    with pytest.raises(ValueError, match="'decaying_rc'"):
        resolve_learner("no such learner")


def test_the_import_graph_has_no_cycle():
    """Modules import each other at the top in one direction; TopologicalSorter raises for a cycle."""
    graph = import_graph(riskbayes)
    assert len(graph) > 100
    tuple(TopologicalSorter(graph).static_order())


def test_the_library_knows_nothing_of_the_package_of_the_paper():
    for path in Path(riskbayes.__file__).parent.rglob("*.py"):
        assert "riskbayes_paper" not in path.read_text(encoding="utf-8"), path


def test_the_package_shows_its_public_names_only():
    assert dir(riskbayes) == sorted(riskbayes.__all__)
    found = {getattr(riskbayes, name).__module__.split(".")[1] for name in dir(riskbayes) if name[0] != "_"}
    assert found == {"estimators", "exceptions", "input", "learners", "persistence"}
    assert {kind.__name__ for kind in LEARNERS if kind.__module__ != __name__} <= {*dir(riskbayes)}
    code = "import sys, riskbayes; print(sorted({'numpy', 'sklearn', 'click'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
