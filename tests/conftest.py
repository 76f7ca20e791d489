"""What the package defines, found by discovery; random data; closed forms of a model on rows."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn's array API dispatch asks for it, before SciPy

import ast
import importlib
import inspect
import os
import pkgutil
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from scipy.special import softmax
from sklearn.base import BaseEstimator

import riskbayes.engines
import riskbayes.learners
import riskbayes.models
from browser import Browser, find_chromium
from riskbayes.engines import MemoryEngine
from riskbayes.learners import RC
from riskbayes.loaded import Loadable
from riskbayes.loop import run
from riskbayes.models import GenerativeModel
from riskbayes.models.base import Fitted, Sample
from riskbayes.statistics import Statistics
from riskbayes.task import Task

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


ROOT = Path(__file__).parent.parent
SLOW = (
    *("tests/commands", "tests/compare", "tests/demo", "paper/tests", "tests/laws/test_fuzz.py"),
    *(
        "tests/laws/test_sklearn_checks.py",
        "tests/estimators/test_migration.py",
        "tests/reading/test_reading.py",
    ),
    *(
        "tests/reading/test_fuzz_csv.py",
        "tests/persistence/test_bad_model_files.py",
        "tests/engines/test_dask.py",
    ),
    *(
        "tests/persistence/test_saving.py",
        "tests/persistence/test_checkpoint.py",
        "tests/engines/test_disk.py",
    ),
)
"""Files and folders that take most of the time of all tests: `make test-fast` leaves them out."""


def pytest_collection_modifyitems(items):
    slow = tuple(str(ROOT / name) for name in SLOW)
    for item in items:
        if str(item.path).startswith(slow):
            item.add_marker(pytest.mark.slow)
        if "dask" in item.path.name:
            item.add_marker(pytest.mark.dask)
        if {"browser", "browser_of"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(autouse=True, scope="session")
def patient_comparisons():
    """No peer of a comparison is left out for its time: on a busy machine another one would be each time."""
    with patch("riskbayes.compare.contenders.MOST_SECONDS", np.inf):
        yield


def discover(contract: type, *more: str) -> list[type]:
    """Every class of the package, and of the modules named in `more`, that fulfils a contract."""
    for room in (riskbayes.models, riskbayes.learners, riskbayes.engines):
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    found, todo = [], contract.__subclasses__()
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        part = kind.__module__.split(".")
        ours = part[0] == "riskbayes" or kind.__module__ in more
        if ours and kind not in found and not inspect.isabstract(kind):
            found.append(kind)
    return sorted(found, key=lambda kind: kind.__name__)


MODELS = discover(GenerativeModel)
"""Models are made without arguments here: all of them have defaults."""


class WatchedRC(RC):
    """RC that keeps the size of the gradient at each model that it accepts.

    In the metric of the coordinates and in the unit of the loss, as :mod:`riskbayes.learners.quasi_newton`
    says it; but computed from the scans, not asked of the step.
    """

    def fit_statistics(self, task):
        with np.errstate(over="ignore"):  # as in the loop
            self.sizes, coordinates = [], task.model.coordinates(task.S)
            weight, scale = self._anchor_weight(task), self.begin(task).objective.scale

        def keep(iteration):
            dS = (1.0 / task.engine.mass) * iteration.scan.dS
            gradient = coordinates.gradient(dS, weight, iteration.fitted)
            self.sizes.append(float(np.sqrt(sum((value**2).sum() for value in gradient.values()))) / scale)
            return task.on_iteration(iteration)

        return super().fit_statistics(replace(task, on_iteration=keep))


def import_graph(package):
    """Every module of a package with those of it that it imports at its top; the package itself, which
    imports its public names last, is left out."""
    root, first = Path(package.__file__).parent, package.__name__
    names = {
        ".".join((first, *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in root.rglob("*.py")
    }
    graph = {}
    for name, path in names.items():
        if name == first:
            continue
        found = set()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module in names:
                own = [f"{node.module}.{alias.name}" for alias in node.names]
                found |= {each if each in names else node.module for each in own}
                found |= {node.module} if any(each not in names for each in own) else set()
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names} & names.keys()
        graph[name] = found - {name, first}
    return graph


def random_rows(model, rng, m=40, n=3, r=3, balanced=True):
    """X, y, w: overlapping classes, each with rows; weights between 0.2 and 3."""
    y = np.concatenate([np.arange(r), rng.integers(r, size=m - r)])
    if balanced:
        y = np.concatenate([np.repeat(np.arange(r), 2 * n + 2), y])
    m = len(y)
    if model.traits.support == "categories":
        K = rng.integers(2, 5, size=n)
        X = np.minimum(rng.integers(0, K, size=(m, n)) + (rng.random((m, n)) < 0.3) * y[:, None], K - 1)
        X[: K.max()] = np.minimum(np.arange(K.max())[:, None], K - 1)  # every category occurs
    elif model.traits.support == "counts":
        X = rng.poisson(rng.uniform(0.3, 2.0, size=(r, n))[y]).astype(float)
    else:
        X = rng.standard_normal((m, n)) @ rng.standard_normal((n, n)) + rng.standard_normal((r, n))[y]
    return X, y, rng.uniform(0.2, 3.0, size=m)


def assert_same(copied, value):
    """Compare all that two values hold: in dataclasses also fields by which they are not compared."""
    assert type(copied) is type(value)
    if isinstance(value, Statistics):
        assert_same((dict(copied), copied.frame), (dict(value), value.frame))
    elif isinstance(value, list | tuple):
        assert len(copied) == len(value)
        for ours, theirs in zip(copied, value, strict=True):
            assert_same(ours, theirs)
    elif isinstance(value, dict):
        assert copied.keys() == value.keys()
        assert_same([copied[name] for name in value], list(value.values()))
    elif is_dataclass(value):
        names = [f.name for f in fields(value)]
        assert_same(*([getattr(each, name) for name in names] for each in (copied, value)))
    elif isinstance(value, BaseEstimator | GenerativeModel | Loadable):
        assert_same(vars(copied), vars(value))
    elif isinstance(value, np.random.RandomState):
        assert_same(copied.get_state(), value.get_state())
    elif isinstance(value, np.ndarray | float):
        np.testing.assert_array_equal(copied, value)
    else:
        assert copied == value or repr(copied) == repr(value)


def closed_form(model, X, y, w, r):
    """An engine over the rows, and the model in closed form: learn, count, settle, estimate."""
    engine = MemoryEngine(X, y, w, r)
    return engine, Fitted.of(model, model.fix_prior(engine.statistics(model, engine.learn(model))))


def calibrated(model, X, y, w, r, learner):
    """What a run of the loop makes of the rows."""
    engine, fitted = closed_form(model, X, y, w, r)
    return run(Task(model, engine, fitted.S), learner)


def encoded(model, X, w=None):
    """All rows, encoded in the frame that is learned from them; for models that read no labels."""
    return model.encode(X, model.learn(Sample(X, np.zeros(len(X), dtype=int), w, 1)))


def log_joint(fitted, X):
    """log p(x, y) of rows, known or new."""
    model, S, theta = fitted
    return model.log_joint(model.encode(X, S.frame), theta)


def posterior(fitted, X):
    """p(y | x) of rows, known or new."""
    return softmax(log_joint(fitted, X), axis=1)


def failed_in_a_line(result, *words):
    """A command ended with one line of error, which has these words."""
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1
    assert all(word in result.stderr for word in words)


def shared_folder():
    """The folder of data sets, where it is known."""
    beside = Path(__file__).parents[2] / "shared" / "datasets"
    folder = os.environ.get("RISKBAYES_DATA") or (beside if beside.is_dir() else None)
    return None if folder is None else Path(folder)


@pytest.fixture
def paper_folder():
    """The folder of the paper's sets, where it is known; skips elsewhere."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("set RISKBAYES_DATA to the folder of the paper's data sets")
    return folder


@pytest.fixture
def paper_set(paper_folder):
    """X, y of one of the paper's sets."""

    def load(name):
        table = pd.read_csv(paper_folder / f"{name}.csv.gz", dtype=str).to_numpy(str)
        return table[:, :-1].astype(float), np.unique(table[:, -1], return_inverse=True)[1]

    return load


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless browser, where there is one; skips elsewhere."""
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium here: install the package chromium to test the page")
    opened = Browser(path, tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def real_table():
    """A function that loads a real table by name, a sample of it if it is large."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("set RISKBAYES_DATA to the folder of data sets")

    def load(name, most=None):
        places = [folder / "mixed" / f"{name}.csv.gz", folder / f"{name}.csv.gz"]
        path = next((place for place in places if place.exists()), None)
        if path is None:
            pytest.skip(f"{name} is not in the folder of data sets")
        table = pd.read_csv(path, keep_default_na=False, na_values=[""])
        return table if most is None or len(table) <= most else table.sample(most, random_state=0)

    return load
