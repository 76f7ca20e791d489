"""Joint codes of categories, for compiled scans.

Neighbouring features are coded jointly while their joint categories fit a byte (three of five values
are one of 125): a third of the look-ups. Codes are stored feature by feature, so that a block of rows reads
one small table at a time. Rows whose residual is below 1e-12 change nothing and are not counted.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from riskbayes.frames import CountsByFeature
from riskbayes.statistics import Array


class Groups:
    """Groups of features that are coded jointly, and the columns of `counts` of each joint category.

    A feature with missing cells (`holes`) has one code more than categories. That one has no column, so that
    a missing cell adds nothing to a score and is not counted.
    """

    def __init__(self, frame: CountsByFeature, holes: Array):
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
