"""Files that are damaged, of another kind, or meant to do harm are refused in a sentence; nothing runs."""

import errno
import hashlib
import io
import json
import os
import pickle
import re
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

import fuzz_files
import riskbayes
from fuzzing.file_mutations import Parts, zipped
from fuzzing.saved_models import frame, table
from riskbayes import GaussianNB, MixedNB, RiskBayesClassifier, SmoothNB, TreeAugmentedNB
from riskbayes.exceptions import ModelFileError
from riskbayes.models.structure import topological_order
from riskbayes.persistence import archive, describe
from riskbayes.scanners.compiled import CodesPart, CompiledScan, GaussianPart
from riskbayes.scanners.kernels import smooth
from riskbayes.scanners.kernels.sparse import SparseScan


class Boom:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"echo boom > '{self.path}'",)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes of a good file."""
    clf = GaussianNB(learner="closed_form").fit(*table("real"))
    return clf.save(tmp_path_factory.mktemp("good") / "model.rb").read_bytes()


def refused(path, match, *, load=riskbayes.load):
    """Assert that loading is refused by one sentence that names the file."""
    with pytest.raises(ModelFileError, match=match) as error:
        load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600


def written(tmp_path, data):
    path = tmp_path / "model.rb"
    path.write_bytes(data)
    return path


def with_header(content, old, new):
    """An array whose header says something else, padded to the same length."""
    found = content.replace(old, new, 1)
    assert found != content
    return found


OTHER_KINDS = {
    "empty": (b"", "is empty"),
    "a pickle": (pickle.dumps({"a": 1}), "no model file of riskbayes"),
    "a PNG": (b"\x89PNG\r\n\x1a\n" + bytes(100), "no model file of riskbayes"),
    "text": (b"age,income\n1,2\n", "no model file of riskbayes"),
    "an .npz file": (None, "not one that riskbayes wrote"),
    "a zip file": (zipped({"a.txt": b"x"}), "not one that riskbayes wrote"),
    "an empty zip file": (zipped({}), "no model file"),
    "another model.json": (
        zipped({"model.json": b'{"kind": "x"}', "sha256": b""}),
        "not one that riskbayes wrote",
    ),
    "no JSON": (zipped({"model.json": b"{", "sha256": b""}), "no JSON"),
    "deep JSON": (zipped({"model.json": b"[" * 10**5, "sha256": b""}), "no JSON, or too deep"),
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_another_kind_of_file(kind, tmp_path):
    data, message = OTHER_KINDS[kind]
    if data is None:
        out = io.BytesIO()
        np.savez(out, a=np.zeros(3))
        data = out.getvalue()
    for load in (riskbayes.load, describe):
        refused(written(tmp_path, data), message, load=load)


def test_folders_missing_files_and_devices(tmp_path):
    refused(tmp_path, "is a folder")
    refused(tmp_path / "none.rb", "There is no file")
    refused("/dev/zero", "not a regular file")


def test_a_file_cut_short_anywhere(good, tmp_path):
    for size in np.linspace(1, len(good) - 1, 60).astype(int):
        refused(written(tmp_path, good[:size]), "model.rb")


def test_a_changed_byte_anywhere_is_found(good, tmp_path):
    rng = np.random.default_rng(0)
    members = zipfile.ZipFile(io.BytesIO(good)).infolist()
    for info in members:
        start = info.header_offset + 30 + len(info.filename) + 20 * (info.filename.endswith(".npy"))
        for at in rng.integers(start, start + info.file_size, size=3):
            data = bytearray(good)
            data[at] ^= 16
            refused(written(tmp_path, bytes(data)), "cannot be loaded")


def test_an_array_that_was_exchanged_is_found_by_its_hash(good, tmp_path):
    parts = Parts(good)
    parts.arrays[0] = parts.arrays[1]
    refused(written(tmp_path, zipped(parts.members())), "SHA-256 differs")


def test_a_description_that_was_edited_is_found_by_its_hash(good, tmp_path):
    members = Parts(good).members()
    members["model.json"] = members["model.json"].replace(b"GaussianNB", b"SmoothNB")
    for load in (riskbayes.load, describe):
        refused(written(tmp_path, zipped(members)), "SHA-256 differs", load=load)


def test_a_newer_format(good, tmp_path):
    parts = Parts(good)
    parts.document["format"] = archive.FORMAT + 1
    refused(written(tmp_path, parts.packed()), "install a newer riskbayes")


def test_a_description_that_is_not_of_the_model(good, tmp_path):
    for key, value in (
        ("class", 3),
        ("versions", {"numpy": 2}),
        ("about", []),
        ("rows", "x"),
        ("classes", None),
    ):
        parts = Parts(good)
        parts.document["metadata"][key] = value
        for load in (riskbayes.load, describe):
            refused(written(tmp_path, parts.packed()), "does not describe itself", load=load)
    parts = Parts(good)
    parts.document["metadata"]["class"] = "SmoothNB"
    refused(written(tmp_path, parts.packed()), "holds a GaussianNB, and says")


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "posix.system",
        "builtins.eval",
        "subprocess.Popen",
        "RandomState",
        "numpy.ndarray",
        3,
        None,
    ],
)
def test_a_class_that_is_not_ours(name, good, tmp_path):
    parts = Parts(good)
    parts.document["objects"][0]["class"] = name
    refused(written(tmp_path, parts.packed()), "names the class")


def test_nothing_of_a_file_runs(good, tmp_path):
    """Pickles in every place where bytes may be: the file that they would write is not written."""
    mark = tmp_path / "boom"
    boom = pickle.dumps(Boom(mark))
    objects = io.BytesIO()
    np.save(objects, np.array([Boom(mark)], dtype=object), allow_pickle=True)
    parts, events = Parts(good), []
    files = [boom, objects.getvalue(), zipped({**parts.members(), "model.pkl": boom})]
    files += [zipped({**parts.members(), name: boom}) for name in parts.members()]
    for content in (boom, objects.getvalue()):
        changed = Parts(good)
        changed.arrays[0] = content
        files.append(changed.packed())
    for key in (
        "__class__",
        "__reduce__",
        "__setstate__",
        "__dict__",
        "predict",
        "predict_proba",
        "_repr_html_",
    ):
        changed = Parts(good)
        changed.document["objects"][-1]["state"][key] = "os.system"
        files.append(changed.packed())
    watching = [True]
    sys.addaudithook(
        lambda event, arguments: watching[0] and event.startswith(WATCHED) and events.append(event)
    )
    for data in files:
        refused(written(tmp_path, data), "model.rb")
    watching[0] = False
    assert not events
    assert not mark.exists()
    pickle.loads(boom)  # it would have been
    assert mark.exists()


WATCHED = ("os.system", "subprocess", "pickle", "os.exec", "os.posix_spawn")


def test_attributes_that_a_class_does_not_have(good, tmp_path):
    for key in ("fit", "x", "_x", "score", "coef", "theta_", "__init__"):
        parts = Parts(good)
        parts.document["objects"][-1]["state"][key] = 1
        refused(written(tmp_path, parts.packed()), f"no attribute '{key}'")


MEMBERS = {
    "compressed": lambda members: zipped(members, zipfile.ZIP_DEFLATED),
    "another member": lambda members: zipped({**members, "../../evil": b"x"}),
    "an absolute path": lambda members: zipped({**members, "/tmp/evil": b"x"}),
    "a member less": lambda members: zipped({name: members[name] for name in list(members)[1:]}),
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_odd_members(kind, good, tmp_path):
    refused(written(tmp_path, MEMBERS[kind](Parts(good).members())), "cannot be loaded")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_of_one_name(good, tmp_path):
    path = written(tmp_path, good)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("model.json", b"{}")
    refused(path, "the same name")


def test_members_that_share_their_bytes(good, tmp_path):
    """Many entries of the directory for the same bytes, as in a zip bomb."""
    path = tmp_path / "model.rb"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("model.json", bytes(10**6))
        file.writestr("sha256", b"")
        first = file.infolist()[0]
        for i in range(1000):
            again = zipfile.ZipInfo(f"arrays/{i}.npy")
            for name in ("header_offset", "CRC", "compress_size", "file_size"):
                setattr(again, name, getattr(first, name))
            file.filelist.append(again)
    refused(path, "larger than the file")


def test_a_bomb_takes_no_memory(tmp_path):
    """A gigabyte of zeros, deflated to a megabyte."""
    path = tmp_path / "model.rb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        with file.open("model.json", "w") as out:
            for _ in range(64):
                out.write(bytes(2**24))
        file.writestr("sha256", b"")
    tracemalloc.start()
    try:
        refused(path, "compressed")
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


HEADERS = {
    "objects": (rb"'descr': '<f8'", b"'descr': '|O' "),
    "records": (rb"'descr': '<f8'", b"'descr': '|V8'"),
    "a huge shape": (rb"'shape': \([^)]*\), }        ", b"'shape': (4611686018427387904,), }"),
    "an overflowing shape": (rb"'shape': \([^)]*\), }  ", b"'shape': (0, 9999999999), }"),
    "a negative shape": (rb"'shape': \(3,", b"'shape': (-3,"),
    "code": (rb"'shape': \([^)]*\), }              ", b"'shape': (exit(3),), }"),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_odd_headers(kind, good, tmp_path):
    pattern, new = HEADERS[kind]
    parts = Parts(good)
    at = next(i for i, array in enumerate(parts.arrays) if re.search(pattern, array))
    parts.arrays[at] = re.sub(pattern, new, parts.arrays[at], count=1)
    tracemalloc.start()
    try:
        refused(written(tmp_path, parts.packed()), "an array")
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_values_that_repeat_themselves_are_bounded(good, tmp_path):
    """Objects that refer twice to the one before them are 2**60 values, which nobody could walk over."""
    parts = Parts(good)
    node = {"class": "ProductParameters", "state": {"log_prior": {"array": 0}, "floored": {"array": 0}}}
    objects = [{**node, "state": {**node["state"], "experts": {"tuple": []}}}]
    for i in range(60):
        twice = {"tuple": [{"object": i}, {"object": i}]}
        objects.append({**node, "state": {**node["state"], "experts": twice}})
    parts.document["objects"] = objects
    refused(written(tmp_path, parts.packed()), "too many or too deep")


def colliding_numbers(count):
    """Different whole numbers of one hash."""
    return [1 + i * (2**61 - 1) for i in range(count)]


def colliding_pairs(count):
    """Different pairs of small numbers of one hash: the second number is solved for."""
    P1, P2, P5, whole = 11400714785074694791, 14029467366897019727, 2870177450012600261, 2**64
    found, first = [], 0
    while len(found) < count:
        first += 1
        mixed = (P5 + first * P2) % whole
        mixed = ((mixed << 31 | mixed >> 33) % whole) * P1 % whole
        second = (12345 - mixed) * pow(P2, -1, whole) % whole
        second -= whole if second >= whole // 2 else 0
        if abs(second) < 2**59:
            found.append((first, second))
    assert len(set(map(hash, found))) == 1
    return found


COLLIDING = {
    "keys": {"dict": [[key, 0] for key in colliding_numbers(300)]},
    "a set": {"set": colliding_numbers(300)},
    "a frozenset": {"frozenset": colliding_numbers(300)},
    "an array of objects": {"objects": [[300], colliding_numbers(300)]},
    "a tuple": {"tuple": colliding_numbers(300)},
    "decimals": {"tuple": [{"decimal": str(key)} for key in colliding_numbers(300)]},
    "pairs": {"dict": [[{"tuple": list(key)}, 0] for key in colliding_pairs(300)]},
}
"""Values that a dict or a set would compare with one another, each with all others."""


@pytest.mark.parametrize("kind", COLLIDING)
def test_values_of_one_hash_are_refused(kind, good, tmp_path):
    parts = Parts(good)
    parts.document["objects"][-1]["state"]["odd_"] = COLLIDING[kind]
    refused(written(tmp_path, parts.packed()), "the same hash")


def test_names_are_checked_before_values_are_built(good, tmp_path):
    parts = Parts(good)
    parts.document["objects"][-1]["state"]["odd"] = COLLIDING["keys"]
    refused(written(tmp_path, parts.packed()), "no attribute 'odd'")


@pytest.mark.parametrize(
    "value",
    ["{}", "[]", "[[]]", "[0]", '{"a":0}', '{"ab":"cd"}', '{"tuple":[]}', '"ab"', "1.5", '"[{,"'],
)
def test_a_description_takes_no_more_memory_than_the_page_says(value, good, tmp_path, monkeypatch):
    """Whatever its values are, it is refused, or takes about twenty times its size."""
    monkeypatch.setattr(archive, "SMALL", 2**18)
    parts = Parts(good)
    parts.document["metadata"]["about"] = {"x": "VALUES"}
    members = parts.members()
    text = members["model.json"].replace(b'"VALUES"', b"[" + b",".join([value.encode()] * 50_000) + b"]")
    path = written(
        tmp_path,
        zipped({**members, "model.json": text, "sha256": hashlib.sha256(text).hexdigest().encode()}),
    )
    tracemalloc.start()
    try:
        if value[0] in "{[":
            refused(path, "too many values for its size", load=describe)
        else:
            assert len(describe(path)["about"]["x"]) == 50_000
        assert tracemalloc.get_traced_memory()[1] < 2**20 + 20 * len(text)
    finally:
        tracemalloc.stop()


def test_what_save_writes_is_never_too_dense_to_be_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "SMALL", 0)
    clf = GaussianNB(learner="closed_form").fit(*table("real"))
    with pytest.raises(ModelFileError, match="too many values"):
        clf.save(tmp_path / "model.rb", about={"x": [{}] * 10_000})
    assert not list(tmp_path.iterdir())


def changed_arrays(clf, tmp_path, change):
    """The file of a model, with one array changed by `change(array)`, for each array that it changes."""
    data = clf.save(tmp_path / "good.rb").read_bytes()
    for at in range(len(Parts(data).arrays)):
        parts = Parts(data)
        array = np.load(io.BytesIO(parts.arrays[at]))
        found = change(array)
        if found is not None and not (found.shape == array.shape and (found == array).all()):
            out = io.BytesIO()
            np.save(out, found)
            parts.arrays[at] = out.getvalue()
            yield parts.packed()


BEYOND = {
    "an index far beyond": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 0, 10**9, a),
    "an index just beyond": lambda a: a + 1,
    "a negative index": lambda a: np.where(np.arange(a.size).reshape(a.shape) == a.size - 1, -5, a),
}


@pytest.mark.parametrize("kind", BEYOND)
@pytest.mark.filterwarnings("ignore")
def test_indices_in_frames_are_checked(kind, tmp_path):
    """Children, parents, sizes and categories that are wrong are refused, or at least read nothing beyond."""
    words = frame()[0][["word", "flag", "kind"]]
    models = [
        (SmoothNB(learner="closed_form"), table("real")[0]),
        (TreeAugmentedNB(learner="closed_form"), words),
        (RiskBayesClassifier("ensemble", random_state=0), table("real")[0]),
    ]
    number = 0
    for clf, X in models:
        clf.fit(X, frame()[1])
        for data in changed_arrays(
            clf, tmp_path, lambda a: BEYOND[kind](a) if a.dtype.kind == "i" and a.size else None
        ):
            number += 1
            try:
                loaded = riskbayes.load(written(tmp_path, data))
            except ModelFileError:
                continue
            P = loaded.predict_proba(X)
            assert P.shape == (len(X), 3)
    assert number > 10


def test_a_cycle_of_parents_is_refused(tmp_path):
    X = frame()[0][["word", "flag", "kind"]]
    clf = TreeAugmentedNB(learner="closed_form").fit(X, frame()[1])
    circle = np.array([[1], [2], [0]])
    files = changed_arrays(clf, tmp_path, lambda a: circle.astype(a.dtype) if a.shape == (3, 1) else None)
    (data,) = files
    refused(written(tmp_path, data), "circle|sizes of their features")
    with pytest.raises(ValueError, match="circle"):
        topological_order(((1,), (2,), (0,)))


def test_a_tree_that_never_ends_is_refused(tmp_path):
    X, _ = table("real")
    trees = riskbayes.models.trees.grow(X, np.arange(60) % 3, None, 2, 8, 2, ())
    trees.check_loaded(10**6)
    inner = int(np.flatnonzero(trees.leaf < 0)[-1])
    object.__setattr__(trees, "left", np.where(np.arange(len(trees.left)) == inner, inner, trees.left))
    with pytest.raises(ValueError, match="after its node"):
        trees.check_loaded(10**6)


def test_booleans_of_other_bytes_are_refused(tmp_path):
    X, y = frame()
    data = MixedNB(learner="closed_form").fit(X, y).save(tmp_path / "good.rb").read_bytes()
    parts = Parts(data)
    at = next(i for i, array in enumerate(parts.arrays) if b"'|b1'" in array)
    parts.arrays[at] = parts.arrays[at][:-1] + b"\x07"
    refused(written(tmp_path, parts.packed()), "booleans")


def test_compiled_code_is_not_given_other_shapes():
    clf = SmoothNB(learner="closed_form").fit(*table("real"))
    knots, theta = clf.statistics_.frame, clf.parameters_
    with pytest.raises(ValueError, match="n_categories"):
        smooth.encode(np.zeros((5, 4)), knots)
    places = np.zeros((5, 3))
    with pytest.raises(ValueError, match="table"):
        smooth.look_up(places, knots.offsets, theta.table[:-1], len(knots.positions))
    with pytest.raises(ValueError, match="offsets"):
        smooth.look_up(places, knots.offsets[:2], theta.table, len(knots.positions))
    with pytest.raises(ValueError, match="offsets"):
        smooth.count(places, knots.offsets[:2], np.ones((5, 3)), len(knots.positions))
    part = GaussianPart(None, np.zeros(3), np.zeros((2, 3, 3)), np.zeros((2, 2)), np.zeros(2))
    with pytest.raises(ValueError, match="shifts"):
        CompiledScan((part,), (1.0,), np.zeros(2))
    with pytest.raises(ValueError, match="weights"):
        SparseScan(np.zeros((2, 4)), np.zeros(3), None)
    coded = CodesPart(None, np.array([0, 4]), None, np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(ValueError, match="table"):
        CompiledScan((coded,), (1.0,), np.zeros(2))


def test_a_full_disk_leaves_nothing_behind(good, tmp_path, monkeypatch):
    path = written(tmp_path, good)
    clf = GaussianNB(learner="closed_form").fit(*table("real"))

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        clf.save(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == good
    with pytest.raises(FileNotFoundError):
        clf.save(tmp_path / "no folder" / "model.rb")


def test_a_link_stays_a_link(good, tmp_path):
    path = written(tmp_path, good)
    link = tmp_path / "link.rb"
    link.symlink_to(path)
    GaussianNB(learner="closed_form").fit(*table("real")).save(link, created="2026-01-01T00:00:00+00:00")
    assert link.is_symlink()
    assert path.read_bytes() != good


def test_three_hundred_mutated_files():
    counts, faulty = fuzz_files.run_cases(0, 300, 1, fuzz_files.Corpus.made(every=9), told=False)
    assert faulty == 0
    assert sum(counts.values()) == 300
    assert sum(number for (_, outcome), number in counts.items() if outcome == "refused") > 100
    assert sum(number for (_, outcome), number in counts.items() if outcome == "predicts") > 30
    assert sum(number for (_, outcome), number in counts.items() if outcome == "fits") > 10
    assert counts.keys() >= {
        ("checkpoint: change an array", "fits"),
        ("checkpoint: bytes", "fit raises ValueError"),
    }


def test_the_harness_sees_code_that_runs():
    watch = fuzz_files.Watch()
    watch.armed = True
    exec(compile("1", "<file>", "eval"))
    pickle.loads(pickle.dumps(json.JSONDecodeError))
    watch.armed = False
    assert any(event.startswith("exec") for event in watch.seen)
    assert any(event.startswith("pickle.find_class") for event in watch.seen)
