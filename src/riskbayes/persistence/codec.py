"""Values of a fit as bytes, in the container and by the rules of model files: see `doc/model_files.md`."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from riskbayes.persistence.archive import SMALL, VALUE, reading, write
from riskbayes.persistence.reader import Reader
from riskbayes.persistence.registry import own_classes
from riskbayes.persistence.writer import Writer


def to_bytes(value: Any) -> bytes:
    """Return a value as bytes: statistics, frames, scans, plain values and arrays.

    Raise a ModelFileError for a value that model files do not hold.

    Examples
    --------
    >>> import numpy as np
    >>> from riskbayes.persistence import from_bytes, to_bytes
    >>> from riskbayes.statistics import Statistics
    >>> S = Statistics({"s0": np.array([1.0, 2.0])})
    >>> from_bytes(to_bytes(S)) == S
    True
    """
    writer, file = Writer(own_classes()), BytesIO()
    node = writer.write(value, "the value")
    write(file, VALUE, {"objects": writer.objects, "value": node}, writer.arrays)
    return file.getvalue()


def from_bytes(data: bytes) -> Any:
    """Return the value of `to_bytes`; raise a ModelFileError for other bytes, of which no code runs."""
    with reading(BytesIO(data), VALUE, len(data), "The value") as archive:
        size = max(len(data), SMALL)  # a frame may come without the statistics that are measured in it
        return Reader(archive.document, archive.arrays(), own_classes(), size).value
