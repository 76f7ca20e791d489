"""Mutations of model files and checkpoints: of their bytes, and of what is in them with hashes that agree."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from riskbayes.persistence.archive import member
from riskbayes.persistence.journal import HEAD, RECORD, digest, head_of
from riskbayes.persistence.registry import own_classes

Rng = np.random.Generator

ODD_NAMES = (
    "os.system",
    "builtins.eval",
    "posix",
    "RandomState",
    "object",
    "__class__",
    "../x",
    "LedoitWolf",
)

DEEP = "fifty thousand lists in one another"
"""Stands for a value that is too deep for Python's own writer of JSON."""


class Parts:
    """The document and the arrays of a model file or a record, to be changed and packed again."""

    def __init__(self, data: bytes):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            self.document = json.loads(archive.read("model.json"))
            names = [f"arrays/{i}.npy" for i in range(len(self.document["arrays"]))]
            self.arrays = [archive.read(name) for name in names]

    def packed(self) -> bytes:
        """The bytes of the file, with hashes that agree."""
        self.document["arrays"] = [hashlib.sha256(array).hexdigest() for array in self.arrays]
        return zipped(self.members())

    def members(self) -> dict[str, bytes]:
        """The members of the file; those of the arrays are hashed as the document says."""
        text = json.dumps(self.document).replace(f'"{DEEP}"', "[" * 50_000 + "]" * 50_000).encode()
        members = {f"arrays/{i}.npy": array for i, array in enumerate(self.arrays)}
        return {**members, "model.json": text, "sha256": hashlib.sha256(text).hexdigest().encode()}


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file of these members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in members.items():
            info = member(name)
            info.compress_type = compression
            archive.writestr(info, content)
    return out.getvalue()


# --- bytes -------------------------------------------------------------------------------------------


def flip_bits(data: bytes, rng: Rng) -> bytes:
    found = bytearray(data)
    for at in rng.integers(len(found), size=rng.integers(1, 9)):
        found[at] ^= 1 << int(rng.integers(8))
    return bytes(found)


def truncate(data: bytes, rng: Rng) -> bytes:
    return data[: int(rng.integers(len(data)))]


def move_block(data: bytes, rng: Rng) -> bytes:
    a, b, c = sorted(rng.integers(len(data) + 1, size=3).tolist())
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def overwrite(data: bytes, rng: Rng) -> bytes:
    at, size = int(rng.integers(len(data))), int(rng.integers(1, 65))
    return data[:at] + rng.bytes(size) + data[at + size :]


def odd_members(data: bytes, rng: Rng) -> bytes:
    """Members that are compressed, twice there, named otherwise, too many, or missing."""
    parts = Parts(data)
    members = parts.members()
    names = list(members)
    name = names[rng.integers(len(names))]
    choice = rng.integers(5)
    if choice == 0:
        return zipped(members, zipfile.ZIP_DEFLATED)
    if choice == 1:
        del members[name]
    elif choice == 2:
        members[str(rng.choice(["../../etc/x", "/etc/x", "a" * 300, "arrays/-1.npy", "model.pkl"]))] = (
            members[name]
        )
    elif choice == 3:
        other = names[rng.integers(len(names))]
        members[name], members[other] = members[other], members[name]
    else:
        members[name] = rng.bytes(int(rng.integers(200)))
    return zipped(members)


# --- values ------------------------------------------------------------------------------------------


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a tree with every key of it."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from places(node[key])


def odd_value(rng: Rng, document: Any) -> Any:
    """A value that stands in the place of another."""
    numbers = [0, 1, -1, 2, 7, 255, 2**31, 2**62, -(2**63), 2**200, 0.0, -0.0, 1e308, -1e308, 1e-320, 0.5]
    texts = ["", "x", "nan", "Infinity", "number", "category", "date", "RC", "\ud800", "é" * 50, "9" * 5000]
    objects, arrays = len(document["objects"]), len(document["arrays"])
    choices: list[Callable[[], Any]] = [
        lambda: numbers[rng.integers(len(numbers))],
        lambda: texts[rng.integers(len(texts))],
        lambda: [None, True, False, [], {}, {"tuple": []}, {"dict": []}][rng.integers(7)],
        lambda: {"float": str(rng.choice(["nan", "inf", "-inf", "1e5"]))},
        lambda: {"object": int(rng.integers(-1, objects + 1))},
        lambda: {"array": int(rng.integers(-1, arrays + 1))},
        lambda: {
            "scalar": [str(rng.choice(["<f8", "|O", "<i8", "<M8[us]", "<U3"])), int(rng.integers(-9, 9))]
        },
        lambda: {
            "enum": [str(rng.choice(["Status", "Implementation", "os"])), str(rng.choice(["LOST", "PANDAS"]))]
        },
        lambda: {"objects": [[int(rng.integers(4))], ["a", None]]},
        lambda: {
            str(rng.choice(["datetime", "time"])): [
                "2020-01-01T00:00:00",
                str(rng.choice(["UTC", "../../x"])),
            ]
        },
        lambda: {str(rng.choice(["bytes", "decimal", "date", "duration", "set", "frozenset", "eval"])): "1"},
        lambda: [[int(n)] for n in rng.integers(9, size=rng.integers(50))],
        lambda: nested(int(rng.integers(30, 300))) if rng.random() < 0.5 else DEEP,
    ]
    return choices[rng.integers(len(choices))]()


def nested(depth: int) -> Any:
    found: Any = []
    for _ in range(depth):
        found = [found]
    return found


def change_values(data: bytes, rng: Rng) -> bytes:
    """Some values of the tree replaced, removed, doubled, exchanged or renamed."""
    parts = Parts(data)
    tree = {name: parts.document[name] for name in ("objects", "value") if name in parts.document}
    for _ in range(1 + int(rng.integers(3) == 0)):
        every = list(places(tree))
        if not every:
            break
        node, key = every[rng.integers(len(every))]
        other, at = every[rng.integers(len(every))]
        choice = rng.integers(8)
        if choice < 3:
            node[key] = odd_value(rng, parts.document)
        elif choice == 3:
            del node[key]
        elif choice == 4:
            node[key] = copy.deepcopy(other[at])
        elif choice == 5 and isinstance(node, list):
            node.insert(int(key), copy.deepcopy(node[key]))
        elif choice == 6 and isinstance(node, dict):
            names = [*ODD_NAMES, *(str(k) for _, k in every if isinstance(k, str))]
            node[names[rng.integers(len(names))]] = node.pop(key)
        else:
            number = node[key]
            if isinstance(number, int | float) and not isinstance(number, bool):
                node[key] = number + int(rng.choice([-1, 1])) if rng.random() < 0.5 else -number
    parts.document |= tree
    return parts.packed()


def change_classes(data: bytes, rng: Rng) -> bytes:
    """The class of an object replaced by another name."""
    parts = Parts(data)
    objects = parts.document["objects"] or [{"class": "", "state": {}}]
    names = [*ODD_NAMES, *own_classes(), *(node["class"] for node in objects)]
    objects[rng.integers(len(objects))]["class"] = names[rng.integers(len(names))]
    parts.document["objects"] = objects
    return parts.packed()


def change_outline(data: bytes, rng: Rng) -> bytes:
    """What stands around the tree: kind, format, lists."""
    parts = Parts(data)
    key = str(rng.choice(["kind", "format", "metadata", "objects", "arrays"]))
    parts.document[key] = odd_value(rng, parts.document)
    return zipped(parts.members()) if key == "arrays" else parts.packed()


# --- arrays ------------------------------------------------------------------------------------------


def change_array(data: bytes, rng: Rng) -> bytes:
    """Numbers, shape or dtype of an array changed, or two arrays exchanged; the bytes are those of NumPy."""
    parts = Parts(data)
    if not parts.arrays:
        return data
    at = int(rng.integers(len(parts.arrays)))
    array = np.load(io.BytesIO(parts.arrays[at]), allow_pickle=False)
    choice = rng.integers(8)
    if choice == 0:
        other = int(rng.integers(len(parts.arrays)))
        parts.arrays[at], parts.arrays[other] = parts.arrays[other], parts.arrays[at]
        return parts.packed()
    if choice == 1:
        array = np.concatenate(
            [np.atleast_1d(array), np.atleast_1d(array)], axis=int(rng.integers(max(1, array.ndim)))
        )
    elif choice == 2:
        array = np.atleast_1d(array)[: int(rng.integers(len(np.atleast_1d(array)) + 1))]
    elif choice == 3:
        array = array.T if array.ndim > 1 else array.reshape(1, -1)
    elif choice == 4 and array.dtype.kind in "iufb":
        array = array.astype(str(rng.choice(["f8", "f4", "i8", "i4", "u1", "b1", "U3", "M8[us]"])))
    elif array.dtype.kind in "iuf" and array.size:
        array = array.copy()
        flat, where = array.reshape(-1), rng.integers(array.size, size=rng.integers(1, 4))
        odd = [-1, 0, 1, 2**31 - 1, -(2**31), 2**62, 10**6]
        odd += [np.nan, np.inf, -np.inf, 1e308, -1e-308] if array.dtype.kind == "f" else []
        with np.errstate(all="ignore"):
            flat[where] = np.array([odd[i] for i in rng.integers(len(odd), size=len(where))]).astype(
                array.dtype
            )
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    parts.arrays[at] = out.getvalue()
    return parts.packed()


def change_header(data: bytes, rng: Rng) -> bytes:
    """The header of an array changed as text, or bytes of the array, so that NumPy might misread it."""
    parts = Parts(data)
    if not parts.arrays:
        return data
    at = int(rng.integers(len(parts.arrays)))
    content = parts.arrays[at]
    shapes = [
        "()",
        "(0,)",
        "(0, 99999999999)",
        "(-1,)",
        "(4611686018427387904,)",
        "(2, 2, 2)",
        "(1e9,)",
        "(True,)",
    ]
    descriptions = [
        "|O",
        "<f8",
        ">f8",
        "<c16",
        "[('a', '<f8')]",
        "<U9",
        "|b1",
        "<i8",
        "|V8",
        "<f16",
        "<M8[x]",
    ]
    choice = rng.integers(4)
    if choice == 0:
        content = re.sub(
            rb"'shape': \([^)]*\)", b"'shape': " + str(rng.choice(shapes)).encode(), content, count=1
        )
    elif choice == 1:
        content = re.sub(
            rb"'descr': '[^']*'",
            b"'descr': '" + str(rng.choice(descriptions)).encode() + b"'",
            content,
            count=1,
        )
    elif choice == 2:
        content = content.replace(b"False", b"True ", 1)
    else:
        content = flip_bits(content, rng) if rng.random() < 0.5 else truncate(content, rng)
    parts.arrays[at] = content
    return parts.packed()


MUTATIONS: dict[str, tuple[float, Callable[[bytes, Rng], bytes]]] = {
    "flip bits": (1, flip_bits),
    "truncate": (0.5, truncate),
    "move a block": (0.5, move_block),
    "overwrite": (0.5, overwrite),
    "odd members": (0.5, odd_members),
    "change values": (4, change_values),
    "change classes": (1, change_classes),
    "change the outline": (0.3, change_outline),
    "change an array": (4, change_array),
    "change a header": (1, change_header),
}
"""Each kind of mutation with its share of the cases."""


def mutated(data: bytes, rng: Rng) -> tuple[str, bytes]:
    """The name of a mutation, and the file after it."""
    names = list(MUTATIONS)
    shares = np.array([MUTATIONS[name][0] for name in names])
    name = names[rng.choice(len(names), p=shares / shares.sum())]
    return name, MUTATIONS[name][1](data, rng)


# --- checkpoints ------------------------------------------------------------------------------------


def records_of(data: bytes) -> list[tuple[bytes, bytes]]:
    """The name and the bytes of each record of a checkpoint."""
    found, at = [], HEAD
    while at < len(data):
        length, name, _ = RECORD.unpack_from(data, at)
        at += RECORD.size + length
        found.append((name, data[at - length : at]))
    return found


def checkpoint_of(records: list[tuple[bytes, bytes]]) -> bytes:
    """A checkpoint of these records, with digests that agree."""
    body = b"".join(RECORD.pack(len(each), name, digest(name, each)) + each for name, each in records)
    return head_of(HEAD + len(body)) + body


def mutated_checkpoint(data: bytes, rng: Rng) -> tuple[str, bytes]:
    """The name of a mutation, and the checkpoint after it: of its bytes, its records, or one of these."""
    records, choice = records_of(data), rng.integers(10)
    at, other = rng.integers(len(records), size=2)
    if choice == 0:
        change = (flip_bits, truncate, move_block, overwrite)[rng.integers(4)]
        return "checkpoint: bytes", change(data, rng)
    if choice == 1:
        records[at] = records[at][0], records[other][1]
        return "checkpoint: exchange", checkpoint_of(records)
    name, record = mutated(records[at][1], rng)
    records[at] = records[at][0], record
    return f"checkpoint: {name}", checkpoint_of(records)
