"""What `riskbayes predict` does: read batches, predict, write them beside the columns of the file."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.commands._options import show_findings
from riskbayes.commands._output import SplicedLines, TableRows, open_output
from riskbayes.findings import Finding
from riskbayes.input.files.batches import Batches
from riskbayes.input.files.expected import Expected
from riskbayes.input.files.options import NOTHING_SAID, Options
from riskbayes.input.files.table import below_table
from riskbayes.progress import progress_bar
from riskbayes.tables import shown
from riskbayes.threads import OneBlasThread

MOST_CELLS = 2**22
"""Most rows x classes of the posteriors of a batch: 32 MiB."""


def predict_file(
    clf: Any, about: Mapping[str, Any], data: str, out: str, what: str, options: Options = NOTHING_SAID
) -> dict[str, Any]:
    """Write a file with predictions; return how many rows it has, and how many of each class."""
    rows, counts, start = 0, Counter[str](), time.perf_counter()
    labels = np.array([str(label) for label in clf.classes_.tolist()], dtype=object)
    names = added_names(clf.classes_, what)
    with (
        Batches(data, Expected.of(clf, about), options, max(1, MOST_CELLS // len(labels))) as batches,
        progress_bar(*bar_of(batches), total=batches.total) as show,
        open_output(out, batches, names) as output,
        ThreadPoolExecutor(1) as writer,
        OneBlasThread(),  # one batch is read, one predicted and one written at a time, by one thread each
    ):
        written: Future | None = None
        unknown = UnknownWords(clf)
        for batch in batches:
            unknown.look(batch.X)
            P = clf.predict_proba(batch.X)
            best = codes_of(clf, batch.X, P)
            if written is not None:
                written.result()
            written = writer.submit(write, output, batch, labels[best], P, what)
            rows += len(P)
            found, many = np.unique(best, return_counts=True)
            counts.update(dict(zip(labels[found].tolist(), many.tolist(), strict=True)))
            show(completed=batch.position)
        if written is not None:
            written.result()
        show_findings([*unknown.findings(), *(below_table(batches.csv) if batches.csv is not None else ())])
    return {
        "rows": rows,
        "out": out,
        "predicted": {label: counts.get(label, 0) for label in labels.tolist()},
        "seconds": round(time.perf_counter() - start, 3),
    }


def bar_of(batches: Batches) -> Sequence[Any]:
    """Return the columns of the progress bar of a file: of a CSV in bytes, else in rows."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    done = [MofNCompleteColumn()] if batches.csv is None else [DownloadColumn(), TransferSpeedColumn()]
    return [BarColumn(), *done, TimeRemainingColumn()]


class UnknownWords:
    """Columns of words none of which is a category of training: a file may have the same in other words."""

    def __init__(self, clf: Any):
        readers = () if clf._table is None or clf._table.unseen != "missing" else clf._table.readers
        self.categories = {
            reader.column.name: reader.categories
            for reader in readers
            if reader.categories and isinstance(reader.categories[0], str)
        }
        self.examples: dict[str, str] = {}

    def look(self, X: Any) -> None:
        """Look at a batch; a column is looked at until it has a category of training."""
        import pyarrow as pa  # an optional dependency, slow to import
        import pyarrow.compute as pc

        for name, categories in list(self.categories.items()):
            kind = X.schema.field(name).type
            if not pa.types.is_dictionary(kind) and not pa.types.is_string(kind):
                continue  # the model refuses what are no words
            words = pc.unique(X.column(name).cast(pa.string())).drop_null()
            if pc.any(pc.is_in(words, value_set=pa.array(categories))).as_py():
                del self.categories[name]
            elif len(words):
                self.examples.setdefault(name, words[0].as_py())

    def findings(self) -> list[Finding]:
        """Return one for each of these columns that has words."""
        return [
            Finding(
                "RB015",
                f"Column {name!r} has none of the words of training, such as {shown(known[0])}; those that "
                f"it has, such as {shown(self.examples[name])}, count as missing.",
                name,
            )
            for name, known in self.categories.items()
            if name in self.examples
        ]


def added_names(classes: Array, what: str) -> list[str]:
    """Return the names of the columns that are added."""
    names = ["predicted"] if what != "probabilities" else []
    return names + ([f"p_{label}" for label in classes.tolist()] if what != "labels" else [])


def codes_of(clf: Any, X: Any, P: Array) -> Array:
    """Return the code of the predicted class of each row, as `predict` decides."""
    if getattr(clf, "cost_matrix_", None) is None:
        return P.argmax(axis=1)
    return np.searchsorted(clf.classes_, clf.predict(X))


def write(output: SplicedLines | TableRows, batch: Any, predicted: Array, P: Array, what: str) -> None:
    """Write the rows of a batch with what was asked for."""
    import pyarrow as pa  # an optional dependency, slow to import

    columns = [pa.array(predicted, pa.string())] if what != "probabilities" else []
    columns += [pa.array(P[:, k]) for k in range(P.shape[1])] if what != "labels" else []
    output.write(batch, columns)
