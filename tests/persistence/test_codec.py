"""Values of a fit come back from bytes as they were, and bytes of others run no code."""

import copy
import datetime
import importlib
import io
import math
import os
import pickle
import tracemalloc
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import riskbayes
from conftest import MODELS, assert_same, random_rows
from fuzzing.file_mutations import Parts
from riskbayes.engines import MemoryEngine, Scan
from riskbayes.engines.recorded import RecordedEngine
from riskbayes.exceptions import ModelFileError
from riskbayes.frames import Categories
from riskbayes.models import CategoricalModel, GaussianNBModel, TreeModel
from riskbayes.models.base import Fitted
from riskbayes.models.gaussian_nb import DiagonalMoments
from riskbayes.objectives import LogLoss
from riskbayes.persistence import from_bytes, to_bytes
from riskbayes.persistence.journal import HEAD, RECORD, Journal, digest, head_of
from riskbayes.persistence.registry import own_classes

ZONES = st.sampled_from([None, datetime.UTC, datetime.timezone(datetime.timedelta(minutes=-150))])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=9)
    | st.dates()
    | st.datetimes(timezones=ZONES)
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False).filter(lambda d: len(str(d)) < 90)
    | st.floats(width=32).map(np.float32)
    | st.integers(-(2**63), 2**63 - 1).map(np.int64)
    | st.booleans().map(np.bool_)
    | st.text(min_size=1).filter(lambda s: not s.endswith("\0")).map(np.str_)
    | st.integers(-(2**60), 2**60).map(lambda n: np.datetime64(n, "us"))
)
KEYS = (
    st.none() | st.booleans() | st.integers() | st.text() | st.dates() | st.tuples(st.integers(), st.text())
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
        | st.frozensets(KEYS, max_size=4)
    ),
    max_leaves=12,
)


def same(a, b):
    """True if two values have the same types and are equal; NaN is NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(*pair) for pair in zip(a.items(), b.items(), strict=True))
    if isinstance(a, float | np.floating):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, datetime.datetime):
        return a == b and a.utcoffset() == b.utcoffset()
    return bool(a == b)


@given(TREES)
def test_plain_values_come_back_with_their_types(value):
    assert same(value, from_bytes(to_bytes(value)))


@given(st.data())
def test_arrays_come_back_with_dtype_shape_and_layout(data):
    dtype = data.draw(
        st.sampled_from(["?", "i1", "u8", "f2", "f4", "f8", "U3", "M8[us]", "m8[D]", ">f8", ">i4"])
    )
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=4)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    array = rng.integers(0, 2, size=shape).astype(np.int64).astype(dtype)
    array = np.asfortranarray(array) if data.draw(st.booleans()) else array
    found = from_bytes(to_bytes(array))
    assert found.shape == array.shape
    assert found.dtype == array.dtype.newbyteorder("=")
    assert (found == array).all()
    assert found.flags.f_contiguous == array.flags.f_contiguous
    assert found.flags.writeable


def test_zones_and_times_of_other_libraries_become_pythons():
    zoned = pd.Timestamp("2020-07-01 12:00", tz="Europe/Madrid")
    found = from_bytes(to_bytes(zoned))
    assert found == zoned.to_pydatetime()
    assert found.utcoffset() == datetime.timedelta(hours=2)
    assert from_bytes(to_bytes(pd.Timedelta("3h"))) == datetime.timedelta(hours=3)
    assert from_bytes(to_bytes(Decimal("1.50"))) == Decimal("1.50")


@pytest.mark.parametrize(
    "state", [np.random.RandomState(3).get_state(legacy=False), np.random.PCG64(5).state]
)
def test_states_of_random_numbers_come_back(state):
    assert_same(from_bytes(to_bytes(state)), state)


COPIES = (
    lambda value: pickle.loads(pickle.dumps(value)),
    copy.deepcopy,
    lambda value: from_bytes(to_bytes(value)),
)
"""Ways to another process, another variable and a file."""


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    "model", [*(kind() for kind in MODELS), TreeModel(structure="tree")], ids=lambda model: str(model)[:12]
)
def test_what_a_model_learned_and_counted_comes_back_to_the_last_bit(model, holes):
    X, y, w = random_rows(model, np.random.default_rng(0), m=200)
    if holes and not model.traits.takes_missing:
        return
    if holes:
        X = X.astype(float)
        X[::7, 0] = X[1::7, 1] = X[2::7, 2] = np.nan
    engine = MemoryEngine(X, y, w, 3)
    frame = engine.learn(model)
    S = model.fix_prior(engine.statistics(model, frame))
    for copied in COPIES:
        assert_same(copied(frame), frame)
        assert_same(copied(S.frame), S.frame)
        assert copied(S) == S
    T = from_bytes(to_bytes(S))
    scans = [MemoryEngine(X, y, w, 3) for _ in range(2)]
    if model.implements("learn_own"):
        return
    here = scans[0].scan(Fitted.of(model, S), LogLoss())
    there = scans[1].scan(Fitted.of(model, T), LogLoss())
    assert here.dS == there.dS
    again = from_bytes(to_bytes(here))
    assert_same(again, here)
    assert type(again.risks.weight) is type(here.risks.weight)


# --- what is refused --------------------------------------------------------------------------------


class Pickled:
    """What a foreign file would run."""

    def __reduce__(self):
        return os.system, ("false",)


@dataclass(frozen=True, eq=False)
class OwnFrame(DiagonalMoments):
    """A frame of another package, with something that is not kept."""

    other: Any = os.system


@pytest.mark.parametrize(
    "value", [Pickled(), os.system, OwnFrame(np.zeros(2)), np.array([Pickled()]), np.zeros(2, complex)]
)
def test_other_values_are_not_kept(value):
    with pytest.raises(ModelFileError, match="model files cannot hold it"):
        to_bytes(value)


def edited(value: Any, document: dict[str, Any]) -> bytes:
    """The bytes of a value with other entries in their description, and hashes that agree."""
    parts = Parts(to_bytes(value))
    parts.document |= document
    return parts.packed()


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"objects": [{"class": "os:system", "state": {}}]}, "names the class"),
        ({"objects": [{"class": "builtins.eval", "state": {}}]}, "names the class"),
        ({"objects": [{"class": "Journal", "state": {}}]}, "names the class"),
        ({"objects": [{"class": "Report", "state": {}}]}, "names the class"),
        ({"value": {"value": 1}}, "not known"),
        ({"value": {"_init__": 1}}, "not known"),
        ({"value": {"object": 0}}, "not there"),
        ({"kind": "riskbayes model"}, "not one that riskbayes wrote"),
        ({"format": 99}, "install a newer riskbayes"),
    ],
)
def test_bytes_name_no_class_but_those_of_values(document, reason):
    with pytest.raises(ModelFileError, match=f"The value cannot be loaded: .*{reason}"):
        from_bytes(edited(1, document))


def test_the_classes_that_are_named_are_values_of_models_and_fits():
    """No other dataclass or named tuple of the package, which has hundreds, can be made from bytes."""
    for name in ("compare.report", "commands._training", "estimators.explanation", "demo.experiment"):
        importlib.import_module(f"riskbayes.{name}")
    rooms = {"engines", "estimators", "frames", "learners", "models", "objectives", "preprocessing"}
    found = own_classes().values()
    assert {kind.__module__.split(".")[1] for kind in found} == rooms | {"risks", "statistics"}
    assert [kind for kind in found if kind.__module__.startswith("riskbayes.engines.")] == [Scan]


def checkpoint_of(record: bytes, path: Any) -> Any:
    """A file with one record, the first that a fit asks for."""
    name = digest(repr(("rows", "fingerprint", 0)).encode())
    head = RECORD.pack(len(record), name, digest(name, record))
    path.write_bytes(head_of(HEAD + len(head) + len(record)) + head + record)
    return path


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (pickle.dumps(("key", Pickled())), r"a record that cannot be read \(The value cannot be loaded"),
        (to_bytes([1, 2]), "has a list in place of what 'fingerprint' returns"),
        (to_bytes({"data": 1}), "has a dict in place of what 'fingerprint' returns"),
    ],
)
def test_a_checkpoint_with_other_records_is_refused(record, reason, tmp_path):
    y = np.arange(40) % 2
    with pytest.raises(ValueError, match=reason):
        riskbayes.GaussianNB().fit(
            y[:, None] + np.eye(40), y, checkpoint=checkpoint_of(record, tmp_path / "file")
        )


@pytest.mark.parametrize(("kind", "where"), [("MT19937", "pos"), ("Philox", "buffer_pos")])
def test_random_numbers_are_not_read_beyond_their_buffer(kind, where, tmp_path):
    """NumPy sets a position that it does not check, and crashes at the next number."""
    random = np.random.RandomState(getattr(np.random, kind)(3))
    state = random.get_state(legacy=False)
    rows = MemoryEngine(np.zeros((4, 1)), np.arange(4) % 2, None, 2)
    for position in (-1, 625, 10**9):
        (state["state"] if where == "pos" else state)[where] = position
        journal = Journal(tmp_path / str(position))
        journal.add(("rows", "random", 0), to_bytes(state))
        with pytest.raises(ValueError, match="beyond their buffer"):
            RecordedEngine(rows, journal).bootstrap(random)


class OwnModel(GaussianNBModel):
    """A model whose frame is not kept."""

    learned = 0

    def learn(self, sample):
        OwnModel.learned += 1
        return OwnFrame(**super().learn(sample)._measured())


class ManyCategories(CategoricalModel):
    """A model that learns more categories than the bytes of its frame vouch for."""

    learned = 0

    def learn(self, sample):
        ManyCategories.learned += 1
        return Categories(np.array([2**22 + 1]))


@pytest.mark.parametrize("kind", [OwnModel, ManyCategories])
def test_a_frame_that_is_not_kept_is_learned_again(kind, tmp_path):
    X = (np.arange(200) // 3 % 2)[:, None]
    y = (np.arange(200) % 5 < 2 + X[:, 0]).astype(int)
    clf, before = riskbayes.GenerativeClassifier(kind(), learner="closed_form"), kind.learned
    fits = [clf.fit(X, y, checkpoint=tmp_path / "file").statistics_ for _ in range(2)]
    assert kind.learned == before + 2
    assert fits[0] == fits[1]


def test_a_frame_has_categories_without_their_counts():
    frame = Categories(np.array([3, 2**22 - 3]))
    assert from_bytes(to_bytes(frame)) == frame


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.sampled_from(["objects", "array", "descr"]))
def test_bytes_take_no_more_memory_than_they_vouch_for(rows, columns, kind):
    """Whatever shape and dtype an array claims, it is refused before memory for it is taken."""
    data = Parts(to_bytes(np.zeros(3)))
    if kind == "objects":
        data.document["value"] = {"objects": [[rows, columns], [1]]}
    else:
        file, dtype = io.BytesIO(), "<f8" if kind == "array" else "<U0"
        head = {"descr": dtype, "fortran_order": False, "shape": (rows, columns)}
        np.lib.format.write_array_header_1_0(file, head)
        data.arrays = [file.getvalue()]
    given = data.packed()
    tracemalloc.start()
    try:
        if rows * columns > (kind == "objects") or kind == "descr":
            with pytest.raises(ModelFileError, match="an array"):
                from_bytes(given)
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 2**20
