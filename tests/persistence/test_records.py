"""Values of a fit come back from bytes as they were, and bytes of others run no code."""

import copy
import importlib
import io
import json
import os
import pickle
import struct
import sys
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, floating_dtypes, integer_dtypes

import riskbayes
from conftest import MODELS, assert_same, random_rows
from riskbayes.engines import MemoryEngine
from riskbayes.frames import Frame
from riskbayes.models import GaussianNBModel, TreeModel
from riskbayes.models.base import Fitted, GenerativeModel
from riskbayes.objectives import LogLoss
from riskbayes.persistence.journal import DIGEST, HEAD, LENGTH, Journal, digest, head_of
from riskbayes.records import NotKeptError, class_of, packed, unpacked

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
ARRAYS = arrays(floating_dtypes(endianness="<") | integer_dtypes(endianness="<"), array_shapes(min_dims=0))
VALUES = st.recursive(
    PLAIN | ARRAYS,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(VALUES)
def test_plain_values_and_arrays_come_back(value):
    assert repr(plain(unpacked(packed(value)))) == repr(plain(value))


def plain(value: Any) -> Any:
    """Return a value in which arrays are their dtypes, shapes and bytes."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(plain, value)]
    return {key: plain(each) for key, each in value.items()} if isinstance(value, dict) else repr(value)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_order_of_an_array_in_memory_is_kept(order):
    found = unpacked(packed(np.asarray(np.arange(6.0).reshape(2, 3), order=order)))
    assert found.flags[f"{order}_CONTIGUOUS"]


@pytest.mark.parametrize("state", [np.random.RandomState(3).get_state(), np.random.PCG64(5).state])
def test_states_of_random_numbers_come_back(state):
    assert plain(unpacked(packed(state))) == plain(state)


COPIES = (
    lambda value: pickle.loads(pickle.dumps(value)),
    copy.deepcopy,
    lambda value: unpacked(packed(value)),
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
    S = model.settle(engine.statistics(model, frame))
    for copied in COPIES:
        assert_same(copied(frame), frame)
        assert_same(copied(S.frame), S.frame)
        assert copied(S) == S
    T = unpacked(packed(S))
    scans = [MemoryEngine(X, y, w, 3) for _ in range(2)]
    if model.traits.keeps_rows:
        return
    here = scans[0].scan(Fitted.of(model, S), LogLoss())
    there = scans[1].scan(Fitted.of(model, T), LogLoss())
    assert here.dS == there.dS
    assert plain(tuple(unpacked(packed(here.risks)))) == plain(tuple(here.risks))


# --- what is refused --------------------------------------------------------------------------------


class Pickled:
    """What a foreign file would run."""

    def __reduce__(self):
        return os.system, ("false",)


@dataclass(frozen=True, eq=False)
class OwnFrame(Frame):
    """A frame of another package, with something that is not kept."""

    other: Any


@pytest.mark.parametrize("value", [Pickled(), os.system, {1, 2}, OwnFrame(Pickled()), np.array([Pickled()])])
def test_other_values_are_not_kept(value):
    with pytest.raises(NotKeptError, match="cannot be kept in a file"):
        packed(value)


@pytest.mark.parametrize(
    "tree",
    [
        ["object", "os:system", None],
        ["object", "builtins:eval", ["tuple", "1"]],
        ["object", "riskbayes.persistence.journal:Journal", ["dict"]],
        ["named", "subprocess:Popen", "true"],
        ["object", "riskbayes.nowhere:Frame", ["dict"]],
        ["value", 1],
        ["_init__"],
    ],
)
def test_bytes_name_no_class_but_those_of_values(tree):
    text = json.dumps(tree).encode()
    with pytest.raises(ValueError, match=r"no class of values|unknown kind"):
        unpacked(struct.pack("<Q", len(text)) + text)


def test_a_journal_with_a_pickle_is_refused(tmp_path):
    record = pickle.dumps(("key", Pickled()))
    path = tmp_path / "file"
    end = HEAD + LENGTH.size + DIGEST + len(record)
    path.write_bytes(head_of(end) + LENGTH.pack(len(record)) + digest(record) + record)
    with pytest.raises(ValueError, match=r"has a record at byte \d+ that cannot be read"):
        Journal(path)


def test_a_frame_that_is_not_kept_is_learned_again(tmp_path):
    class OwnModel(GaussianNBModel):
        learned = 0

        def learn(self, sample):
            OwnModel.learned += 1
            frame = super().learn(sample)
            object.__setattr__(frame, "note", Pickled())
            return frame

    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    X = rng.standard_normal((200, 3)) + y[:, None]
    clf = riskbayes.GenerativeClassifier(OwnModel())
    fits = [clf.fit(X, y, checkpoint=tmp_path / "file").statistics_ for _ in range(2)]
    assert OwnModel.learned == 2
    assert fits[0] == fits[1]


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.sampled_from(["objects", "array", "descr"]))
def test_a_record_takes_no_more_memory_than_its_bytes_vouch_for(rows, columns, kind):
    """Whatever shape and dtype a record claims, it is refused before memory for it is taken."""
    arrays = b""
    if kind == "objects":
        tree: Any = ["objects", [rows, columns], 1]
    else:
        tree, dtype = ["array"], "<f8" if kind == "array" else "<U0"
        file = io.BytesIO()
        head = {"descr": dtype, "fortran_order": False, "shape": (rows, columns)}
        np.lib.format.write_array_header_1_0(file, head)
        arrays = file.getvalue()
    text = json.dumps(tree).encode()
    tracemalloc.start()
    try:
        if rows * columns or kind == "descr":
            with pytest.raises(ValueError, match="A record has an array"):
                unpacked(struct.pack("<Q", len(text)) + text + arrays)
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 2**20


def test_a_record_names_frames_their_parts_and_risks_only():
    """No other dataclass or named tuple of the package, which has hundreds, can be made from a checkpoint."""
    for name in ("compare.report", "commands._training", "estimators.explanation", "demo.experiment"):
        importlib.import_module(f"riskbayes.{name}")
    found = {
        f"{name}:{kind.__name__}": kind
        for name, module in list(sys.modules.items())
        for kind in (vars(module).values() if name.startswith("riskbayes") else ())
        if isinstance(kind, type) and kind.__module__ == name
    }
    named = {name: kind for name, kind in found.items() if class_of(name) is not None}
    parts = {name for name, kind in named.items() if not issubclass(kind, Frame)}
    assert all(name.startswith(("riskbayes.models.", "riskbayes.risks:")) for name in parts)
    assert not any(issubclass(kind, GenerativeModel) for kind in named.values())
    assert len(found) - len(named) > 200
