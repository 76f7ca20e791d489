"""Columns that name rows, columns whose values name what several rows belong to, and columns that say the
same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import narwhals as nw
import numpy as np
from scipy.special import gammaln
from scipy.stats import rankdata

from riskbayes.arrays import Array
from riskbayes.compare.data import Data, counts_by_class
from riskbayes.preprocessing.encoder import FEW_VALUES
from riskbayes.tables import is_missing

FEWEST_ROWS = 20
"""Of fewer values nobody can tell whether they name rows."""

CERTAIN = -15.0
"""Logarithm of the chance below which a coincidence is none."""

MOST_EACH = 20
"""A column of more rows a value than this is a category, not a key."""

MORE_ALIKE, BEYOND_CHANCE = 0.1, 4.0
"""Rows of one key are alike if they have the same label more often, by this share and by so many standard
errors, than rows of neighbouring keys."""

SAME_ORDER = 0.999
"""Two columns of numbers of the same order say the same if their rank correlation is above this, in the rows
that have both. Where the order differs, however little, their difference may tell more than both."""

NEARLY, RANKED_ROWS = 0.98, 5000
"""Pairs of columns are looked at if the correlation of their ranks, each among its own cells, is above this;
so many rows are ranked."""


def name_rows(values: Array) -> bool:
    """True if numbers name rows: they are whole, all distinct, and that is no coincidence.

    They grow, or fall, from row to row; or they repeat so rarely that nobody drew them from their range:
    draws from any other distribution on that range would repeat more often.
    """
    values = values[~np.isnan(values)]
    m = len(values)
    if m < FEWEST_ROWS or (values != np.floor(values)).any() or len(np.unique(values)) < m:
        return False
    grows = values[1:] > values[:-1]
    size = float(values.max()) - float(values.min()) + 1
    return bool(grows.all() or not grows.any() or np.log1p(-np.arange(m) / size).sum() < CERTAIN)


def numbers_that_name_rows(data: Data) -> Iterator[tuple[str, int]]:
    """Yield the columns of numbers that name rows, and their number of values."""
    for (j, part), values in zip(data.encoder.encoded, data.Z.T, strict=True):
        column = data.columns[j]
        if part == "number" and column.kind == "number" and name_rows(values):
            yield column.name, column.n_values or 0


def repeated_keys(data: Data) -> Iterator[tuple[str, int, float, float]]:
    """Yield the columns whose values name what several rows belong to.

    With each of them the number of its values, and the share of pairs with the same label, a mean over the
    values that repeat: of two rows of one value, and of two rows of neighbouring values. Of a number that is
    measured the two shares are alike.
    """
    for name, codes in possible_keys(data):
        counts = counts_by_class(data, codes)
        number, known = len(counts), counts.sum()
        counts = counts[counts.sum(axis=1) > 1]
        if number <= FEW_VALUES or known > MOST_EACH * number or len(counts) < FEWEST_ROWS:
            continue
        n = counts.sum(axis=1)
        same = ((counts * (counts - 1)).sum(axis=1) / (n * (n - 1)))[1:]
        apart = (counts[1:] * counts[:-1]).sum(axis=1) / (n[1:] * n[:-1])
        more = same - apart
        error = more.std(ddof=1) / np.sqrt(len(more))
        if more.mean() >= max(MORE_ALIKE, BEYOND_CHANCE * error):
            yield name, number, float(same.mean()), float(apart.mean())


def possible_keys(data: Data) -> Iterator[tuple[str, Array]]:
    """Yield columns of categories, whole numbers and identifiers: the code of each row, -1 if missing."""
    for (j, part), values in zip(data.encoder.encoded, data.Z.T, strict=True):
        known = ~np.isnan(values)
        whole = part == "number" and data.columns[j].kind == "number" and not (values[known] % 1).any()
        if part == "category" or whole:
            codes = np.full(len(values), -1)
            codes[known] = np.unique(values[known], return_inverse=True)[1]
            yield data.columns[j].name, codes
    for column in data.columns:
        if column.reason.startswith("an identifier"):
            cells = nw.from_native(data.X, eager_only=True)[column.name].to_list()
            texts = np.array(["" if is_missing(cell) else str(cell) for cell in cells])
            codes = np.unique(texts, return_inverse=True)[1]
            yield column.name, codes - 1 if (texts == "").any() else codes


def same_columns(data: Data) -> list[list[str]]:
    """Return groups of columns that say the same: values that go with each other, or the same order."""
    read = [
        (name, part, values)
        for name, (_, part), values in zip(data.encoder.names, data.encoder.encoded, data.Z.T, strict=True)
        if part in ("number", "category", "is missing")
    ]
    groups: dict[bytes, list[str]] = {}
    for name, _, values in read:
        codes = codes_by_appearance(values)
        if chance_of_equal(codes) < CERTAIN:
            groups.setdefault(codes.tobytes(), []).append(name)
    found = [group for group in groups.values() if group[1:]]
    numbers = [
        (name, values)
        for name, part, values in read
        if part == "number" and len(np.unique(values)) > FEWEST_ROWS
    ]
    if numbers[1:]:
        step = max(1, len(data.Z) // RANKED_ROWS)
        close = np.triu(np.abs(rank_correlations([values[::step] for _, values in numbers])) > NEARLY, 1)
        for i in np.flatnonzero(close.any(axis=1)):
            alike = [k for k in np.flatnonzero(close[i]) if same_order(numbers[i][1], numbers[k][1])]
            group = [numbers[k][0] for k in (i, *alike)]
            if alike and not any(set(group) & set(other) for other in found):
                found.append(group)
    return found


def same_order(first: Array, second: Array) -> bool:
    """True if a column never falls where another grows, or never grows: what they differ by is rounding."""
    known = ~np.isnan(first) & ~np.isnan(second)
    first, second = first[known], second[known]
    if len(first) <= FEWEST_ROWS or abs(rank_correlations([first, second])[0, 1]) <= SAME_ORDER:
        return False
    ordered = (own[np.lexsort((own, first))] for own in (second, -second))
    return any(bool((own[1:] >= own[:-1]).all()) for own in ordered)


def codes_by_appearance(values: Array) -> Array:
    """Return each value's place in the order in which values appear; -1 for missing cells."""
    known = ~np.isnan(values)
    _, first, place = np.unique(values[known], return_index=True, return_inverse=True)
    codes = np.full(len(values), -1)
    codes[known] = np.argsort(np.argsort(first))[place]
    return codes


def chance_of_equal(codes: Array) -> float:
    """Return the logarithm of the chance that a column of the same counts divides the rows in the same way.

    Of m! orders of its cells those count that exchange rows of one value, or values of as many rows.
    """
    sizes = np.bincount(codes + 1)[1:]
    alike = np.bincount(sizes)[1:]
    m = len(codes)
    return float(
        gammaln(sizes + 1).sum() + gammaln(alike + 1).sum() + gammaln((codes < 0).sum() + 1) - gammaln(m + 1)
    )


def rank_correlations(columns: Sequence[Array]) -> Array:
    """Return the correlations of ranks of columns, each among its own cells, in the rows that have both."""
    K = np.stack([~np.isnan(values) for values in columns]).astype(float)
    R = np.stack([standard_ranks(values) for values in columns])
    means = (R @ K.T) / np.maximum(K @ K.T, 1.0)
    products, squares = R @ R.T, (R * R) @ K.T
    spread = np.sqrt(np.maximum(squares - (K @ K.T) * means**2, 0.0))
    found = products - (K @ K.T) * means * means.T
    return found / np.maximum(spread * spread.T, 1e-300)


def standard_ranks(values: Array) -> Array:
    """Return ranks with mean 0 and length 1; missing cells have the mean."""
    known = ~np.isnan(values)
    found = np.zeros(len(values))
    found[known] = rankdata(values[known]) - (known.sum() + 1) / 2
    return found / max(float(np.linalg.norm(found)), 1e-300)
