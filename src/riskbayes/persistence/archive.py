"""The container of a value: a zip file of `model.json`, `arrays/0.npy`, `arrays/1.npy`, ... and `sha256`.

Members are stored, not compressed: what is read is never more than the file's own size. The same model gives
the same bytes. `sha256` is that of `model.json`, which lists those of the arrays: it tells damage, not
intent, since whoever writes a file can write its hashes too.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from riskbayes.arrays import Array
from riskbayes.exceptions import ModelFileError
from riskbayes.persistence.npy import read_array, write_array

MODEL, VALUE = "riskbayes model", "riskbayes value"
"""What `model.json` says that it is: a model file, or a record of a checkpoint."""

FORMAT = 1
"""The version of the format that this package writes and reads."""

DOCUMENT, DIGEST = "model.json", "sha256"

MOST_MEMBERS = 100_000

MOST_JSON = 2**28
"""Upper bound on the bytes of `model.json`."""

SMALL, MOST_TIMES = 2**25, 16
"""Memory that the lists and dicts of `model.json` may take: so many bytes, and so many times its own size."""

STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"')
"""A string in JSON."""

BEGINNING = b"PK\x03\x04"


def write(file: IO[bytes], kind: str, document: dict[str, Any], arrays: list[Array]) -> None:
    """Write the bytes of a container of this kind."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        digests = []
        for number, array in enumerate(arrays):
            with archive.open(member(f"arrays/{number}.npy"), "w", force_zip64=True) as out:
                digests.append(write_array(array, out))
        described = {"kind": kind, "format": FORMAT, **document, "arrays": digests}
        text = json.dumps(described, allow_nan=False, separators=(",", ":")).encode("ascii")
        refuse_large(text)
        archive.writestr(member(DOCUMENT), text)
        archive.writestr(member(DIGEST), hashlib.sha256(text).hexdigest())


def member(name: str) -> zipfile.ZipInfo:
    """Return the entry of a member, without the time of day."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.create_system, info.external_attr = 3, 0o644 << 16
    return info


def refuse_large(text: bytes) -> None:
    """Refuse JSON whose values would take far more memory than its text does.

    A list takes 56 bytes and a dict with an entry 184, and 8 each in what holds it; an entry has a comma. The
    shortest are three bytes of text.
    """
    most, memory = SMALL + MOST_TIMES * len(text), memory_of(text)
    if memory > most and memory - sum(memory_of(found[0]) for found in STRING.finditer(text)) > most:
        raise ModelFileError("its description has too many values for its size")


def memory_of(text: bytes) -> int:
    """Return the memory of lists and dicts with as many brackets and commas; those in strings count too."""
    return 64 * text.count(b"[") + 192 * text.count(b"{") + 8 * text.count(b",")


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open a model file; whatever is wrong with it is raised as a `ModelFileError` that names the file."""
    shown = repr(str(path))
    if path.is_dir():
        raise ModelFileError(f"{shown} is a folder; a model file is needed.")
    if not path.exists():
        raise ModelFileError(f"There is no file {shown}.")
    if not path.is_file():
        raise ModelFileError(f"{shown} is not a regular file.")
    with open(path, "rb") as file:
        beginning = file.read(len(BEGINNING))
        if beginning != BEGINNING:
            what = "is empty" if not beginning else "is no model file of riskbayes"
            raise ModelFileError(f"{shown} {what}. Files of `save` can be loaded, and nothing else.")
        with reading(file, MODEL, path.stat().st_size, shown) as archive:
            yield archive


@contextmanager
def reading(file: IO[bytes], kind: str, size: int, shown: str) -> Iterator[Archive]:
    """Open a container of this kind; every error until it is closed is a `ModelFileError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield Archive(archive, kind, size)
    except ModelFileError as error:
        text = str(error)
        raise ModelFileError(text if shown in text else f"{shown} cannot be loaded: {text}.") from None
    except MemoryError:
        raise ModelFileError(f"{shown} cannot be loaded: it needs more memory than there is.") from None
    except Exception as error:  # zipfile, NumPy and our own checks raise many kinds for damaged files
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:300].rstrip(".")
        raise ModelFileError(
            f"{shown} cannot be loaded: it is truncated, damaged or inconsistent ({reason})."
        ) from error


class Archive:
    """A container that is open, with members that are checked."""

    def __init__(self, archive: zipfile.ZipFile, kind: str, size: int):
        infos = archive.infolist()
        if len(infos) > MOST_MEMBERS:
            raise ModelFileError(f"it has {len(infos)} members")
        self._archive, self.size = archive, size
        self._infos = {info.filename: info for info in infos}
        if len(self._infos) < len(infos):
            raise ModelFileError("two of its members have the same name")
        if DOCUMENT not in self._infos or DIGEST not in self._infos:
            raise ModelFileError("it is a zip file, but not one that riskbayes wrote")
        if any(info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 for info in infos):
            raise ModelFileError("its members are compressed or encrypted, which `save` never does")
        if any(info.file_size != info.compress_size for info in infos):
            raise ModelFileError("a member has another size than its bytes")
        if sum(info.file_size for info in infos) > size:
            raise ModelFileError("its members are larger than the file")
        self.document = self._document(kind)

    def _document(self, kind: str) -> dict[str, Any]:
        """Return `model.json`; refuse another kind of file, a newer format, and what does not hash."""
        if self._infos[DOCUMENT].file_size > MOST_JSON or self._infos[DIGEST].file_size > 256:
            raise ModelFileError("its description is too large")
        text = self._archive.read(DOCUMENT)
        refuse_large(text)
        try:
            found = json.loads(text.decode("ascii"))
        except (ValueError, RecursionError) as error:
            raise ModelFileError("its description is no JSON, or too deep") from error
        if not isinstance(found, dict) or found.get("kind") != kind:
            raise ModelFileError("it is a zip file, but not one that riskbayes wrote")
        version = found.get("format")
        if type(version) is not int or version < 1:
            raise ModelFileError("it does not say which version of the format it has")
        if version > FORMAT:
            raise ModelFileError(
                f"it has version {version} of the format, and this riskbayes reads up to {FORMAT}: "
                "install a newer riskbayes"
            )
        self.digest = hashlib.sha256(text).hexdigest()
        if self._archive.read(DIGEST) != self.digest.encode("ascii"):
            raise ModelFileError("it is not what was saved (its SHA-256 differs)")
        digests = found.get("arrays")
        if not isinstance(digests, list) or not all(isinstance(digest, str) for digest in digests):
            raise ModelFileError("it does not list its arrays")
        if set(self._infos) != {DOCUMENT, DIGEST, *(f"arrays/{i}.npy" for i in range(len(digests)))}:
            raise ModelFileError("it has other members than it lists")
        return found

    def arrays(self) -> list[Array]:
        """Return all arrays."""
        found = []
        for number, digest in enumerate(self.document["arrays"]):
            info = self._infos[f"arrays/{number}.npy"]
            with self._archive.open(info) as file:
                found.append(read_array(file, info.file_size, digest))
        return found
