"""A compiled scan of categorical naive Bayes: look-ups, softmax and counts in one pass over the codes.

Neighbouring features are coded jointly while their joint categories fit a byte (three of five values
are one of 125): a third of the look-ups. Codes are stored feature by feature, so that a block of rows reads
one small table at a time. Rows whose residual is below 1e-12 change nothing and are not counted.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from riskbayes.frames import Categories
from riskbayes.loaded import require_shape
from riskbayes.risks import Risks
from riskbayes.scanners.kernels import compiled
from riskbayes.statistics import Array

BLOCK = 512
"""Rows that are looked up together: their scores fit the L1 cache."""

SMALLEST = 2_000_000
"""Cells of a table below which compiled code is not worth the time to load it."""


def is_worth_it(m: int, n: int) -> bool:
    """True if a table of m rows and n columns is scanned by compiled code."""
    return m * n >= SMALLEST and find_spec("numba") is not None  # the extra `fast`


class Groups:
    """Groups of features that are coded jointly, and the columns of `counts` of each joint category.

    A feature with missing cells (`holes`) has one code more than categories. That one has no column, so that
    a missing cell adds nothing to a score and is not counted.
    """

    def __init__(self, frame: Categories, holes: Array):
        sizes: list[int] = [1]
        members: list[list[int]] = [[]]
        self.values = frame.n_categories + holes
        for j, k in enumerate(self.values.tolist()):
            if members[-1] and sizes[-1] * k > 256:
                sizes.append(1)
                members.append([])
            sizes[-1] *= k
            members[-1].append(j)
        self.members = members
        self.sizes = np.array(sizes)
        self.first = np.concatenate([[0], np.cumsum(self.sizes)])
        cells, columns = [], []
        for start, size, group in zip(self.first, sizes, members, strict=False):
            code, step = np.arange(size), size
            for j in group:
                step //= int(self.values[j])
                value = code // step % self.values[j]
                present = value < frame.n_categories[j]
                cells.append(start + code[present])
                columns.append(frame.offsets[j] + value[present])
        rows, where = np.concatenate(cells), np.concatenate(columns)
        shape = int(self.first[-1]), int(frame.n_categories.sum())
        self.matrix = csr_array((np.ones(len(rows)), (rows, where)), shape=shape)
        """Joint categories x categories: it sums log probabilities, and its transpose the counts."""
        self.back = csr_array(self.matrix.T)

    def encode(self, codes: Array) -> Array:
        """Return joint codes, of shape (groups, m); codes are transposed in blocks that fit the cache."""
        kind = np.dtype(np.uint8 if self.sizes.max() <= 256 else np.int64)
        out = np.empty((len(self.members), codes.shape[0]), dtype=kind)
        for start in range(0, codes.shape[0], 4096):
            rows = slice(start, start + 4096)
            columns = codes[rows].T.astype(kind, order="C")
            for joint, group in zip(out[:, rows], self.members, strict=True):
                joint[:] = columns[group[0]]
                for j in group[1:]:
                    joint *= kind.type(self.values[j])  # 256 wraps to 0, after codes that are 0
                    joint += columns[j]
        return out

    def table(self, log_prob: Array) -> Array:
        """Return the log probabilities of the joint categories."""
        return np.ascontiguousarray(self.matrix @ log_prob.T)

    def label_counts(self, joint: Array, y: Array, w: Array | None, r: int) -> Array:
        """Return the counts of labelled rows, of shape (classes, categories)."""
        G = np.empty((int(self.first[-1]), r))
        for g, size in enumerate(self.sizes.tolist()):
            cell = joint[g].astype(np.int64)
            cell *= r
            cell += y
            G[self.first[g] : self.first[g + 1]] = np.bincount(cell, weights=w, minlength=size * r).reshape(
                size, r
            )
        return (self.back @ G).T

    def scan(
        self, joint: Array, y: Array, w: Array | None, log_prior: Array, table: Array, power: int | None
    ) -> tuple[Array, Array, Risks]:
        """Return the residual statistics, class masses and counts, and the risks."""
        r = log_prior.shape[0]
        require_shape(table, (int(self.first[-1]), r), "f", "table")  # compiled code checks no bounds
        G, s0, sums = np.zeros((int(self.first[-1]), r)), np.zeros(r), np.zeros(3)
        weights = np.ones(len(y)) if w is None else w
        compiled_scan(r)(
            joint,
            self.first.astype(np.uint64),
            table,
            log_prior,
            y,
            weights,
            power,
            G,
            s0,
            sums,
        )
        risks = Risks(("soft_error", "error", "log_loss"), sums, float(weights.sum()))
        return s0, (self.back @ G).T, risks


@cache
def compiled_scan(r: int) -> Any:
    """Return the scan compiled for r classes: the compiler unrolls loops of known length."""

    def scan(joint, first, T, prior, y, w, power, G, s0, risks):  # type: ignore[no-untyped-def]
        groups, m = joint.shape
        scores = np.empty((BLOCK, r))
        active = np.empty(BLOCK, np.int64)
        for b in range(0, m, BLOCK):
            n = min(BLOCK, m - b)
            for i in range(n):
                for k in range(r):
                    scores[i, k] = prior[k]
            # Four groups at a time: their tables fit the cache, and scores are written a quarter as often.
            for g in range(0, groups - 3, 4):
                i0, i1, i2, i3 = first[g], first[g + 1], first[g + 2], first[g + 3]
                for i in range(n):
                    c0, c1 = i0 + joint[g, b + i], i1 + joint[g + 1, b + i]
                    c2, c3 = i2 + joint[g + 2, b + i], i3 + joint[g + 3, b + i]
                    for k in range(r):
                        scores[i, k] += (T[c0, k] + T[c1, k]) + (T[c2, k] + T[c3, k])
            for g in range(groups - groups % 4, groups):
                for i in range(n):
                    c = first[g] + joint[g, b + i]
                    for k in range(r):
                        scores[i, k] += T[c, k]
            kept = 0
            for i in range(n):
                label, weight = y[b + i], w[b + i]
                best = 0
                for k in range(1, r):
                    if scores[i, k] > scores[i, best]:
                        best = k
                top = scores[i, best]
                own, evidence = scores[i, label] - top, 0.0
                for k in range(r):
                    scores[i, k] = np.exp(scores[i, k] - top)
                    evidence += scores[i, k]
                p = scores[i, label] / evidence
                risks[0] += weight * (1.0 - p)
                risks[1] += weight * (best != label)
                risks[2] += weight * (np.log(evidence) - own)
                # E[k] = p^power (1[y = k] - P[k]): the log loss has power 0, the soft error 1.
                scale = weight * p if power else weight
                largest = 0.0
                for k in range(r):
                    e = -scale * scores[i, k] / evidence
                    if k == label:
                        e += scale
                    scores[i, k] = e
                    largest = max(largest, abs(e))
                if largest > 1e-12:
                    for k in range(r):
                        s0[k] += scores[i, k]
                    active[kept] = i
                    kept += 1
            for g in range(groups):
                start = first[g]
                for q in range(kept):
                    i = active[q]
                    c = start + joint[g, b + i]
                    for k in range(r):
                        G[c, k] += scores[i, k]

    return compiled(scan)
