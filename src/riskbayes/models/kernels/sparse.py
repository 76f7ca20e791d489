"""Compiled scans of sparse rows (CSR): score, compare with the label, and sum by class and column.

SciPy's products read the rows as often, but in one thread.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.models.kernels import compiled, known, readonly
from riskbayes.risks import Risks
from riskbayes.threads import available_threads, in_threads

SMALLEST = 2**19
"""Stored values below which compiled code is not worth the time to load it."""

NO_RESIDUAL = 1e-12
"""Rows whose residuals are all below this are left out of sums of residuals."""

SHARES = 4
"""Most shares of the rows that are summed apart, in threads."""

CLASSES = 8
"""Most classes that are summed in one pass over a share."""


def is_worth_it(n_stored: int) -> bool:
    """True if a table with so many stored values is scanned by compiled code."""
    return n_stored >= SMALLEST and find_spec("numba") is not None  # the extra `fast`


RISKS = "soft_error", "error", "log_loss"
"""Names of the risks that scans sum."""


class SparseScan:
    """A scan by compiled code: the weights and constants of all classes but the last, relative to it."""

    def __init__(self, weights: Array, constants: Array):
        self.table = readonly((weights[:-1] - weights[-1]).T)
        self.constants = readonly(constants[:-1] - constants[-1])

    def chunk(
        self, Z: Any, y: Array, w: Array | None, power: int | None, risks_only: bool
    ) -> tuple[Array | None, Risks]:
        """Return the residuals of the rows (None with `risks_only`) and the risks."""
        r, m = len(self.constants) + 1, 0 if risks_only else len(y)
        risks = np.zeros(3)
        weights = readonly(np.empty(0) if w is None else w)
        mass = float(len(y) if w is None else w.sum())
        if r == 2:
            first = np.empty(m)
            kernels()["scan_two"](
                *stored(Z),
                self.table.reshape(-1),
                self.constants[0],
                readonly(y, np.int64),
                weights,
                power,
                first,
                risks,
            )
            E = np.stack([first, -first], axis=1)
            return None if risks_only else E, Risks(RISKS, risks, mass)
        E = np.empty((m, r))
        kernels()["scan"](
            *stored(Z),
            self.table,
            self.constants,
            readonly(y, np.int64),
            weights,
            power,
            known(r - 1),
            E,
            risks,
        )
        return None if risks_only else E, Risks(RISKS, risks, mass)


def sums_by_class(Z: Any, W: Array) -> Array:
    """Return sum_i W[i, k] x_i, of shape (classes, columns).

    Shares of the rows and groups of classes are summed apart, in threads. They depend on the size of the
    table only, so that sums are the same for any number of threads.
    """
    m, n = Z.shape
    r = W.shape[1]
    opposite = r == 2 and bool((W[:, 0] == -W[:, 1]).all())  # a residual: one column says it all
    columns = [W[:, :1]] if opposite else [W[:, k : k + CLASSES] for k in range(0, r, CLASSES)]
    shares = int(np.clip((Z.indptr[-1] - Z.indptr[0]) // (4 * n * columns[0].shape[1]), 1, SHARES))
    bounds = np.linspace(0, m, shares + 1).astype(int).tolist()
    parts = [(Z[start:stop], readonly(V[start:stop])) for V in columns for start, stop in pairwise(bounds)]

    def work(part: tuple[Any, Array]) -> Array:
        rows, V = part
        out = np.zeros((n, V.shape[1]))
        if V.shape[1] == 1:
            kernels()["add_one"](*stored(rows), V.reshape(-1), out.reshape(-1))
        else:
            kernels()["add_rows"](*stored(rows), V, known(V.shape[1]), out)
        return out

    found = list(in_threads(work, parts, min(len(parts), available_threads())))
    totals = [sum(found[i + 1 : i + shares], start=found[i]) for i in range(0, len(found), shares)]
    if opposite:
        return np.stack([totals[0][:, 0], -totals[0][:, 0]])
    return np.ascontiguousarray(np.concatenate(totals, axis=1).T)


def stored(Z: Any) -> tuple[Array, Array, Array]:
    """Return the values, columns and row bounds of sparse rows as compiled code reads them."""
    return readonly(Z.data), readonly(Z.indices, Z.indices.dtype), readonly(Z.indptr, np.int64)


def scan(data, indices, indptr, table, constants, y, w, power, others, E, risks):
    """Write E[i, k] = w P[y]^power (1[y = k] - P[k]); add soft error, error and log loss to risks.

    The score of the last class is zero. An empty `w` stands for one each; an empty E is not written.
    """
    m, last = len(y), len(others) or len(constants)
    scores = np.empty(last + 1)
    for i in range(m):
        for k in range(last):
            scores[k] = constants[k]
        scores[last] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j, x = np.uint64(indices[p]), data[p]
            for k in range(last):
                scores[k] += x * table[j, k]
        label, weight = y[i], w[i] if len(w) else 1.0
        best = 0
        for k in range(1, last + 1):
            if scores[k] > scores[best]:
                best = k
        top = scores[best]
        own, rest = scores[label] - top, 0.0
        for k in range(last + 1):
            scores[k] = np.exp(scores[k] - top) if k != best else 1.0
            if k != label:
                rest += scores[k]
        evidence = scores[label] + rest
        scale = weight / evidence
        risks[0] += scale * rest
        risks[1] += weight * (best != label)
        risks[2] += weight * (np.log(evidence) - own)
        if len(E):
            if power:
                scale *= scores[label] / evidence
            for k in range(last + 1):
                E[i, k] = -scale * scores[k]
            E[i, label] = scale * rest  # 1 - P[y] with all its digits


def scan_two(data, indices, indptr, table, constant, y, w, power, E, risks):
    """Do the same for two classes: a row has one score, that of the first class against the second."""
    soft, wrong, log_loss = 0.0, 0.0, 0.0
    for i in range(len(y)):
        score = constant
        for p in range(indptr[i], indptr[i + 1]):
            score += data[p] * table[np.uint32(indices[p])]
        sign, weight = 1.0 - 2.0 * y[i], w[i] if len(w) else 1.0
        odds = sign * score
        small = np.exp(-abs(odds))
        rest = (small if odds >= 0 else 1.0) / (1.0 + small)
        soft += weight * rest
        wrong += weight * (odds < 0 or (odds == 0 and y[i] == 1))
        log_loss += weight * (np.log1p(small) + (0.0 if odds >= 0 else -odds))
        if len(E):
            E[i] = sign * weight * rest * ((1.0 if odds >= 0 else small) / (1.0 + small) if power else 1.0)
    risks[0] += soft
    risks[1] += wrong
    risks[2] += log_loss


def add_one(data, indices, indptr, W, out):
    """Add W[i] x_i to out, for the rows with a weight above `NO_RESIDUAL`."""
    for i in range(len(W)):
        e = W[i]
        if abs(e) > NO_RESIDUAL:
            for p in range(indptr[i], indptr[i + 1]):
                out[np.uint32(indices[p])] += data[p] * e


def add_rows(data, indices, indptr, W, classes, out):
    """Add W[i, k] x_i to out[:, k], for the rows with a weight above `NO_RESIDUAL`."""
    r = len(classes) or W.shape[1]
    for i in range(W.shape[0]):
        largest = 0.0
        for k in range(r):
            largest = max(largest, abs(W[i, k]))
        if largest > NO_RESIDUAL:
            for p in range(indptr[i], indptr[i + 1]):
                j, x = np.uint64(indices[p]), data[p]
                for k in range(r):
                    out[j, k] += x * W[i, k]


def kernels() -> Any:
    """Return the compiled functions of this file by name; one thread compiles them, others wait."""
    with _compiling:
        return _kernels()


@cache
def _kernels() -> dict[str, Any]:
    # Sums in the order of the rows: reordered ones are gathered by vector instructions, at half the speed.
    return {function.__name__: compiled(function, reorder=False) for function in FUNCTIONS}


FUNCTIONS = scan, scan_two, add_rows, add_one
_compiling = Lock()
