"""Model files: what is loaded is what was saved, in another process too, and goes on as before."""

import copy
import datetime
import json
import math
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection
from sklearn.covariance import LedoitWolf
from sklearn.model_selection import StratifiedKFold

import riskbayes
from conftest import MODELS, assert_same
from fuzzing.estimators import learner_kinds
from fuzzing.file_mutations import Parts
from fuzzing.saved_models import ESTIMATORS, STRATEGIES, fits, frame, table
from riskbayes import (
    GaussianNB,
    GenerativeClassifier,
    LinearDiscriminantAnalysis,
    MixedNB,
    RiskBayesClassifier,
)
from riskbayes.exceptions import ModelFileError
from riskbayes.learners import RC
from riskbayes.models import LDAModel, NeighboursModel, TreeModel
from riskbayes.objectives import ExpectedCost
from riskbayes.persistence import describe
from riskbayes.persistence.registry import SPLITTERS, declared, own_classes
from test_contracts import Means, UnitGaussians

GOLDEN = Path(__file__).parents[1] / "golden"
WHEN = "2026-01-31T12:00:00+00:00"

OTHER_PROCESS = """
import pickle, sys, warnings
import numpy as np
import riskbayes
folder = sys.argv[1]
for i, X in enumerate(pickle.load(open(f"{folder}/rows.pkl", "rb"))):
    np.save(f"{folder}/{i}.npy", riskbayes.load(f"{folder}/{i}.rb").predict_proba(X))
"""


@pytest.fixture(scope="module")
def every_fit():
    """One fitted model of each estimator, model, learner, strategy and kind of table."""
    return list(fits())


@pytest.fixture(scope="module")
def saved(every_fit, tmp_path_factory):
    """A folder with the file of each fit."""
    folder = tmp_path_factory.mktemp("models")
    for i, fit in enumerate(every_fit):
        fit.clf.save(folder / f"{i}.rb", created=WHEN)
    return folder


def test_every_estimator_learner_model_and_strategy_takes_part(every_fit):
    kinds = {type(fit.clf).__name__ for fit in every_fit}
    assert kinds == set(ESTIMATORS)
    learners = {fit.clf.learner_.name for fit in every_fit if hasattr(fit.clf, "learner_")}
    assert learners == set(learner_kinds())
    generative = {type(fit.clf.model_) for fit in every_fit if isinstance(fit.clf, GenerativeClassifier)}
    assert generative == set(MODELS)
    assert {fit.clf.strategy for fit in every_fit if isinstance(fit.clf, RiskBayesClassifier)} == set(
        STRATEGIES
    )


def test_another_process_predicts_the_same_to_the_last_bit(every_fit, saved):
    with open(saved / "rows.pkl", "wb") as file:
        pickle.dump([fit.X for fit in every_fit], file)
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "4242",
        "LC_ALL": "C",
        "LANG": "C",
        "PYTHONWARNINGS": "ignore",
    }
    subprocess.run([sys.executable, "-c", OTHER_PROCESS, str(saved)], check=True, env=environment)
    for i, fit in enumerate(every_fit):
        found, expected = np.load(saved / f"{i}.npy"), fit.clf.predict_proba(fit.X)
        assert found.dtype == expected.dtype, fit.name
        assert found.tobytes() == expected.tobytes(), fit.name


def test_the_same_model_gives_the_same_bytes(every_fit, saved, tmp_path):
    for i, fit in enumerate(every_fit):
        again = riskbayes.load(saved / f"{i}.rb").save(tmp_path / "again.rb", created=WHEN)
        assert again.read_bytes() == (saved / f"{i}.rb").read_bytes(), fit.name


WATCHED = {f"strategy {strategy}{table}" for strategy in STRATEGIES for table in ("", ", pandas")}
"""Fits that are always looked at; of most others some are."""

GOES_ON = {
    "predict": lambda clf, X, y: clf.predict(X),
    "score_samples": lambda clf, X, y: clf.score_samples(X),
    "explain": lambda clf, X, y: clf.explain(X).values,
    "sample": lambda clf, X, y: clf.sample(5, random_state=3),
    "impute": lambda clf, X, y: clf.impute(X),
    "with_priors": lambda clf, X, y: clf.with_priors([0.2, 0.3, 0.5]).predict_proba(X),
    "calibrate": lambda clf, X, y: clf.calibrate(X, y).predict_proba(X),
    "partial_fit": lambda clf, X, y: clf.partial_fit(X, y).predict_proba(X),
    "merge": lambda clf, X, y: clf.merge(clf).predict_proba(X),
    "warm_start": lambda clf, X, y: clf.set_params(warm_start=True).fit(X, y).predict_proba(X),
    "columns_": lambda clf, X, y: [repr(column) for column in clf.columns_],
    "outlier_score": lambda clf, X, y: clf.outlier_score(X),
}


def answer(work, clf, X, y):
    """What a method returns as plain values, or the error that it raises."""
    try:
        return plain(work(clf, X, y))
    except (ValueError, TypeError, NotImplementedError, AttributeError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"


def plain(value):
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return str(getattr(value, "to_dict", lambda: value)()) if not hasattr(value, "to_pydict") else str(value)


@pytest.mark.filterwarnings("ignore")
def test_a_loaded_model_goes_on_as_the_saved_one_would(every_fit, saved):
    answered = set()
    for i, fit in enumerate(every_fit):
        if i % 6 and not (fit.name in WATCHED or fit.name.startswith(("MixedNB, ", "experts"))):
            continue
        for name, work in GOES_ON.items():
            ours, theirs = copy.deepcopy(fit.clf), riskbayes.load(saved / f"{i}.rb")
            expected = answer(work, ours, fit.X, fit.y)
            assert answer(work, theirs, fit.X, fit.y) == expected, f"{fit.name}: {name}"
            answered |= {name} if not isinstance(expected, str) else set()
    assert answered == set(GOES_ON)


@pytest.mark.parametrize("copied", [lambda clf: pickle.loads(pickle.dumps(clf)), copy.deepcopy])
def test_a_copy_has_all_that_the_model_has(copied, every_fit):
    for fit in every_fit:
        assert_same(copied(fit.clf), fit.clf)


@pytest.mark.parametrize("copied", [lambda clf: pickle.loads(pickle.dumps(clf)), copy.deepcopy])
@pytest.mark.parametrize("model", [TreeModel(structure="tree"), LDAModel()])
def test_a_copy_forgets_rows_as_the_model_does(model, copied):
    X, y = table(model.traits.support)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    clf = GenerativeClassifier(model, learner="closed_form").fit(X, y)
    assert clf.data_statistics_.frame.start is not None
    again = copied(clf)
    assert again.forget(X[:6], y[:6]).statistics_ == clf.forget(X[:6], y[:6]).statistics_


def test_pickle_and_joblib_go_on_working(tmp_path):
    X, y = frame()
    clf = MixedNB(learner="closed_form").fit(X, y)
    loaded = riskbayes.load(clf.save(tmp_path / "model.rb"))
    joblib.dump(loaded, tmp_path / "model.joblib")
    for again in (pickle.loads(pickle.dumps(clf)), joblib.load(tmp_path / "model.joblib")):
        assert again.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.rb")), ids=lambda path: path.stem)
def test_a_golden_file_predicts_what_it_did(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    rows = expected["rows"]
    if isinstance(rows, dict):
        rows = pd.DataFrame({name: list(column.values()) for name, column in rows.items()})
        rows = rows.assign(since=pd.to_datetime(rows["since"])) if "since" in rows else rows
    clf = riskbayes.load(path)
    assert clf.classes_.tolist() == expected["classes"]
    np.testing.assert_allclose(clf.predict_proba(rows), expected["probabilities"], rtol=1e-9, atol=1e-12)
    assert describe(path)["about"] == {"data": "drawn by tests/golden/make.py"}


def three_versions():
    """A model whose files say `share`, one that reads it as `shrinkage`, and one that forgot how."""

    @dataclass(frozen=True)
    class Shrunk(LDAModel):
        share: float = 0.25

    first = Shrunk

    @dataclass(frozen=True)
    class Shrunk(LDAModel):
        saved_version: ClassVar[int] = 2

        @staticmethod
        def migrate(state, version):
            return {**{name: state[name] for name in state if name != "share"}, "shrinkage": state["share"]}

    second = Shrunk

    @dataclass(frozen=True)
    class Shrunk(LDAModel):
        saved_version: ClassVar[int] = 3

    return first, second, Shrunk


def test_neighbours_of_an_older_file_predict_as_they_did(tmp_path):
    """Files had the numbers of the references among the training rows."""
    X, y = table("real")
    clf = GenerativeClassifier(NeighboursModel(), learner="closed_form").fit(X, y)
    parts = Parts(clf.save(tmp_path / "new.rb").read_bytes())
    (points,) = (found for found in parts.document["objects"] if found["class"] == "References")
    assert points.pop("version") == 2
    points["state"]["rows"] = {"array": 0}
    old = tmp_path / "old.rb"
    old.write_bytes(parts.packed())
    np.testing.assert_array_equal(riskbayes.load(old).predict_proba(X), clf.predict_proba(X))


def test_a_class_of_an_older_version_is_migrated(tmp_path):
    X, y = table("real")
    first, second, third = three_versions()
    clf = GenerativeClassifier(first(), learner="closed_form").fit(X, y)
    old = clf.save(tmp_path / "old.rb", classes=[first])
    again = riskbayes.load(old, classes=[second])
    assert again.model == second(shrinkage=0.25)
    new = again.save(tmp_path / "new.rb", classes=[second])
    assert riskbayes.load(new, classes=[second]).model == second(shrinkage=0.25)
    objects = [Parts(path.read_bytes()).document["objects"] for path in (old, new)]
    versions = [{o["class"]: o.get("version") for o in each} for each in objects]
    assert [each.pop("Shrunk") for each in versions] == [None, 2]
    assert {version for each in versions for version in each.values()} == {None}
    with pytest.raises(ModelFileError, match=r"Shrunk of version 2, and this riskbayes knows 1: .* newer"):
        riskbayes.load(new, classes=[first])
    with pytest.raises(ModelFileError, match="Shrunk of version 2 cannot be migrated"):
        riskbayes.load(new, classes=[third])
    with pytest.raises(ModelFileError, match=r"Shrunk has no attribute 'share'"):
        riskbayes.load(old, classes=[type("Shrunk", (LDAModel,), {})])


def test_there_are_golden_files():
    assert len(list(GOLDEN.glob("*.rb"))) >= 5


def test_a_file_describes_itself(tmp_path):
    X, y = frame()
    w = np.full(len(y), 2.0)
    clf = MixedNB(alpha=0.5, learner=RC(max_iter=2)).fit(X, y, w)
    path = clf.save(tmp_path / "model.rb", about={"sha256": "ab", "held_out": {"error": np.float64(0.25)}})
    found = describe(path)
    assert found["class"] == "MixedNB"
    assert found["parameters"]["alpha"] == 0.5
    assert found["parameters"]["learner"] == repr(clf.learner)
    assert found["feature_names"] == list(X.columns)
    assert found["n_features"] == X.shape[1]
    assert found["classes"] == ["a", "b", "ç"]
    assert found["rows"] == 2 * len(y)
    assert found["about"] == {"sha256": "ab", "held_out": {"error": 0.25}}
    assert found["versions"]["riskbayes"] == riskbayes.__version__
    assert found["versions"]["numpy"] == np.__version__
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(found["created"])
    assert datetime.timedelta() <= age + datetime.timedelta(seconds=1) < datetime.timedelta(minutes=5)
    assert found["size"] == path.stat().st_size
    json.dumps(found)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_rows_of_a_strategy_are_told(strategy, tmp_path):
    X, y = table("real")
    clf = RiskBayesClassifier(strategy, random_state=0, time_limit=1e-9).fit(X, y)
    assert describe(clf.save(tmp_path / "model.rb"))["rows"] == len(y)


def test_parameters_of_scikit_learn_are_saved(tmp_path):
    X, y = table("real")
    clf = LinearDiscriminantAnalysis(covariance_estimator=LedoitWolf(), learner="closed_form", solver="lsqr")
    again = riskbayes.load(clf.fit(X, y).save(tmp_path / "lda.rb"))
    assert repr(again.covariance_estimator) == repr(clf.covariance_estimator)
    assert again.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()
    family = RiskBayesClassifier("cv", cv=StratifiedKFold(3), time_limit=1e-9).fit(X, y)
    assert repr(riskbayes.load(family.save(tmp_path / "cv.rb")).cv) == repr(family.cv)
    costs = GaussianNB(learner=RC(objective=ExpectedCost(1.0 - np.eye(3)), max_iter=2)).fit(X, y)
    again = riskbayes.load(costs.save(tmp_path / "costs.rb"))
    assert np.array_equal(again.learner.objective.C, costs.learner.objective.C)


def test_a_model_of_ones_own_needs_its_classes(tmp_path):
    X, y = table("real")
    clf = GenerativeClassifier(UnitGaussians(), learner="closed_form").fit(X, y)
    with pytest.raises(ModelFileError, match=r"GenerativeClassifier\.model is a .*UnitGaussians.*classes="):
        clf.save(tmp_path / "own.rb")
    own = [UnitGaussians, Means]
    path = clf.save(tmp_path / "own.rb", classes=own)
    with pytest.raises(ModelFileError, match="classes="):
        riskbayes.load(path)
    assert riskbayes.load(path, classes=own).predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (
            RC(random_state=np.random.RandomState(0)),
            r"learner\.random_state is a .*RandomState.*whole number",
        ),
        (RC(random_state=np.random.RandomState(0), max_iter=3), "RandomState"),
    ],
)
def test_what_cannot_be_saved_is_refused_by_name(learner, message, tmp_path):
    X, y = table("real")
    clf = GaussianNB(learner=learner).fit(X, y)
    with pytest.raises(ModelFileError, match=message):
        clf.save(tmp_path / "model.rb")
    assert list(tmp_path.iterdir()) == []


def test_code_and_unknown_attributes_are_refused(tmp_path):
    X, y = table("real")
    clf = GaussianNB(learner="closed_form").fit(X, y)
    for value in (print, lambda: None, GaussianNB, sys):
        clf.extra_ = value
        with pytest.raises(ModelFileError, match=r"GaussianNB\.extra_ is a .*cannot hold it"):
            clf.save(tmp_path / "model.rb")
    clf.extra_, clf.predict = None, 3
    with pytest.raises(ModelFileError, match=r"GaussianNB\.predict is no attribute"):
        clf.save(tmp_path / "model.rb")


def test_an_estimator_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        GaussianNB().save(tmp_path / "model.rb")


def test_about_and_created_are_checked(tmp_path):
    clf = GaussianNB(learner="closed_form").fit(*table("real"))
    for about in ({"f": print}, {"x": math.nan}, [1]):
        with pytest.raises(ModelFileError, match="about"):
            clf.save(tmp_path / "model.rb", about=about)
    with pytest.raises(ValueError, match="time zone"):
        clf.save(tmp_path / "model.rb", created="2026-01-01T00:00:00")


def test_every_class_declares_attributes_that_can_be_read():
    for kind in own_classes().values():
        assert isinstance(declared(kind), dict)


def test_a_shared_array_is_written_once(tmp_path):
    clf = GaussianNB(learner="closed_form").fit(*table("real"))
    small = clf.save(tmp_path / "small.rb").stat().st_size
    clf.one_ = clf.two_ = clf.three_ = np.zeros(10_000)
    assert clf.save(tmp_path / "large.rb").stat().st_size < small + 1.1 * 80_000
    again = riskbayes.load(tmp_path / "large.rb")
    assert again.one_ is again.two_ is again.three_


@pytest.mark.parametrize("name", SPLITTERS)
def test_every_splitter_is_saved(name, tmp_path):
    splitter = getattr(model_selection, name)(n_splits=3)
    clf = GaussianNB(learner="closed_form").fit(*table("real"))
    clf.splitter_ = splitter
    again = riskbayes.load(clf.save(tmp_path / "model.rb")).splitter_
    assert type(again) is type(splitter)
    assert vars(again) == vars(splitter)


def more_rows(X, y):
    """Further rows, with categories that were not there before, and with values far from the others."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "iuf":
        return X[:9] + (X.dtype.kind == "i"), y[:9]
    return X[:9], y[:9]


HISTORIES = {
    "partial_fit": lambda clf, X, y: clf.partial_fit(*more_rows(X, y)),
    "forget": lambda clf, X, y: clf.forget(X[:6], y[:6]),
    "forget, partial_fit": lambda clf, X, y: clf.forget(X[:6], y[:6]).partial_fit(*more_rows(X, y)),
    "merge": lambda clf, X, y: clf.merge(copy.deepcopy(clf).partial_fit(*more_rows(X, y))),
    "with_priors": lambda clf, X, y: clf.with_priors([0.2, 0.3, 0.5]),
    "calibrate": lambda clf, X, y: clf.calibrate(X, y),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("history", HISTORIES)
def test_a_model_that_went_on_can_be_saved(history, every_fit, tmp_path):
    number = 0
    for i, fit in enumerate(every_fit):
        if i % 3 and not (fit.name in WATCHED or fit.name.startswith(("MixedNB, ", "experts"))):
            continue
        try:
            clf = HISTORIES[history](copy.deepcopy(fit.clf), fit.X, fit.y)
            expected = clf.predict_proba(fit.X)
        except (ValueError, NotImplementedError, AttributeError, TypeError):
            continue  # not every model can
        number += 1
        again = riskbayes.load(clf.save(tmp_path / "model.rb"))
        assert again.predict_proba(fit.X).tobytes() == expected.tobytes(), fit.name
    assert number >= 10


def test_an_older_file_may_lack_a_parameter(tmp_path):
    X, y = table("real")
    parts = Parts(GaussianNB(learner="closed_form").fit(X, y).save(tmp_path / "model.rb").read_bytes())
    del parts.document["objects"][-1]["state"]["var_smoothing"]
    (tmp_path / "old.rb").write_bytes(parts.packed())
    assert riskbayes.load(tmp_path / "old.rb").var_smoothing == GaussianNB().var_smoothing


def test_parameters_are_those_that_fit_takes(tmp_path):
    clf = GaussianNB(learner="closed_form").fit(*table("real"))
    parts = Parts(clf.save(tmp_path / "model.rb").read_bytes())
    parts.document["objects"][-1]["state"]["var_smoothing"] = "much"
    (tmp_path / "odd.rb").write_bytes(parts.packed())
    with pytest.raises(ModelFileError, match="var_smoothing"):
        riskbayes.load(tmp_path / "odd.rb")
    with pytest.raises(ValueError, match="var_smoothing"):
        clf.set_params(var_smoothing="much").save(tmp_path / "model.rb")
