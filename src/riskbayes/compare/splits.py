"""Which rows are held out: at random, in folds, the last ones in time, or by groups."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from riskbayes.arrays import Array
from riskbayes.compare.data import Data
from riskbayes.compare.report import SplitSummary

FEW_ROWS, FOLDS, HELD_OUT = 2000, 5, 4
"""Tables with fewer rows are cross-validated, in so many folds; of others one row in four is held out."""

SHARED = (
    "The folds share training rows, so that the standard errors, which take held-out rows as independent, "
    "are somewhat too small."
)


@dataclass(frozen=True)
class Split:
    """Pairs of training rows and held-out rows; no row is held out twice."""

    parts: list[tuple[Array, Array]]
    summary: SplitSummary

    @property
    def held(self) -> Array:
        """All held-out rows, in the order of the parts."""
        return np.concatenate([held for _, held in self.parts])


def make_split(data: Data, cv: int | None, seed: int) -> Split:
    """Return the split that the table and the options ask for."""
    if data.time is not None and data.groups is not None:
        raise ValueError("time_column and group exclude each other: rows are held out by one of them.")
    if data.time is not None:
        if cv is not None:
            raise ValueError("cv and time_column exclude each other: the last rows in time are held out.")
        parts, kind = [in_time(data)], "time"
        words = time_words(data, len(parts[0][1]))
    else:
        k = default_folds(data.codes) if cv is None else cv
        parts = random_parts(data.codes, data.groups, k, seed, data.target)
        kind = "groups" if data.groups is not None else "cv" if k else "holdout"
        words = fold_words(data, parts, k)
    train, test = (round(np.mean([len(part[i]) for part in parts])) for i in (0, 1))
    held = sum(len(part[1]) for part in parts)
    column = data.time_column or data.group_column
    for kept, _ in parts:
        if len(np.unique(data.codes[kept])) < 2:
            raise ValueError(
                f"The training rows of this split have one class of {data.target!r} only. Choose another "
                "split, or leave it to the default."
            )
    return Split(
        parts, SplitSummary(kind, len(parts), train, held if len(parts) > 1 else test, words, column, seed)
    )


def default_folds(codes: Array) -> int:
    """Return the number of folds of a table, zero where a quarter of the rows is held out."""
    return FOLDS if len(codes) < FEW_ROWS else 0


def random_parts(
    codes: Array, groups: Array | None, k: int, seed: int, target: str
) -> list[tuple[Array, Array]]:
    """Return k stratified folds, or for k = 0 one part with a quarter held out.

    Groups stay together, and the only row of a class is never held out.
    """
    refused = too_few(codes, k, target)
    if refused:
        raise ValueError(refused)
    size = k or HELD_OUT
    if groups is not None:
        splitter = StratifiedGroupKFold(min(size, int(groups.max()) + 1), shuffle=True, random_state=seed)
    else:
        splitter = StratifiedKFold(size, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        found = list(splitter.split(np.zeros(len(codes)), codes, groups))
    alone = np.bincount(codes)[codes] < 2
    moved = [(np.sort(np.concatenate([kept, held[alone[held]]])), held[~alone[held]]) for kept, held in found]
    parts = [(kept, held) for kept, held in moved if len(held)]
    return parts if k else parts[:1]


def too_few(codes: Array, k: int, target: str) -> str:
    """Return why rows of these classes cannot be divided into k folds; empty if they can."""
    m, most, size = len(codes), int(np.bincount(codes).max()), k or HELD_OUT
    if size < 2:
        return f"cv={k!r} must be a number of folds, two or more."
    if m < 2 * size:
        return f"The table has {m} rows, too few for {size} folds. Compare needs at least {2 * size}."
    if most < size:
        return f"No class of {target!r} has {size} rows. Collect more, or set cv to at most {most}."
    return ""


def in_time(data: Data) -> tuple[Array, Array]:
    """Return the earlier rows and the later ones, as near to a quarter as times allow, which stay whole."""
    time = data.time
    assert time is not None
    times, counts = np.unique(time, return_counts=True)
    earlier = np.cumsum(counts)[:-1]
    cut = times[1:][np.abs(earlier - 0.75 * len(time)).argmin()]
    return np.flatnonzero(time < cut), np.flatnonzero(time >= cut)


def time_words(data: Data, held: int) -> str:
    """Return the sentence about a split in time."""
    m = len(data.codes)
    return (
        f"The last {held} of {m} rows by {data.time_column!r} ({100 * held / m:.3g} %) are held out: models "
        "see what came before. The column itself is not read by them."
    )


def fold_words(data: Data, parts: list[tuple[Array, Array]], k: int) -> str:
    """Return the sentences about folds, or about one part if k is zero."""
    apart = (
        f" Rows of one {data.group_column!r} are never on both sides; models do not read that column, and "
        "standard errors are those of groups."
        if data.groups is not None
        else ""
    )
    m, held = len(data.codes), sum(len(part[1]) for part in parts)
    if not k:
        return f"{held} of {m} rows ({100 * held / m:.3g} %), drawn by class, are held out.{apart}"
    once = "Every row is held out once."
    if held < m:
        once = f"{held} of {m} rows are held out, each once; a row that is alone in its class never is."
    return f"Cross-validation in {len(parts)} folds, drawn by class. {once} {SHARED}{apart}"
