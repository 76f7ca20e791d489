"""Structure learning for augmented naive Bayes: the parents of each feature, from dependences in the rows.

The order of the columns in the table decides nothing: `column_order` breaks ties by what the columns hold.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from riskbayes.arrays import Array
from riskbayes.exceptions import ColumnError
from riskbayes.models.base import Sample
from riskbayes.models.codes import Codes, categories_of, missing_cells

Parents = tuple[tuple[int, ...], ...]
"""The parents of each feature."""

MOST_CELLS = 2**28
"""Upper bound on the cells of a table of counts: more do not fit in memory, and have hardly a row each."""

TINY = float(np.finfo(float).tiny)

DIGITS = 9
"""Decimals of a mutual information that are compared: the further ones depend on the order of the rows."""

ODD = tuple(
    np.array(number, dtype=np.uint64)
    for number in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
"""Multipliers of the hash function splitmix64."""


def dependences(sample: Sample, least: Array | int | None = None) -> tuple[Array, Array]:
    """Return the features ordered by I(x_i; y), the largest first, and I(x_i; x_j | y) of every pair.

    Both mutual informations come from the counts of pairs by class. With missing cells they are those of the
    rows in which the feature, or both, are present, times the share of these rows. Equal I(x_i; y) are
    ordered by the number of categories (at least `least`), then by `column_order`.
    """
    X, y, w, n_classes = sample.X, sample.y, sample.w, sample.n_classes
    frame, holes = categories_of(X), missing_cells(X)
    codes: Array = X if holes is None else np.asarray(np.where(holes, frame.n_categories, X), np.int64)
    check_table(n_classes * int(frame.n_categories.sum()) ** 2, int(np.argmax(frame.n_categories)))
    weight = np.ones(len(y)) if w is None else w
    pairs = []
    for k in range(n_classes):
        hot = Codes(codes[y == k], frame, missing=holes is not None).one_hot
        weights = hot.data * np.repeat(weight[y == k], X.shape[1])
        pairs.append((hot.T @ csr_array((weights, hot.indices, hot.indptr), hot.shape)).toarray())
    joint = np.stack(pairs) / weight.sum()
    cells = np.diagonal(joint, axis1=1, axis2=2)
    starts, sizes = frame.offsets, frame.n_categories
    by_class = frame.sums(cells)  # of the rows in which a feature is present
    of_feature = cells.sum(axis=0) / frame.spread(np.maximum(by_class.sum(axis=0), TINY)[None, :])[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        given = cells / frame.spread(by_class)
        single = np.where(cells > 0, cells * np.log(given / of_feature), 0.0).sum(axis=0)
        pair = np.zeros(joint.shape[1:])
        for p in joint:
            # sums over the values of the other feature, where both are present
            first = np.add.reduceat(p, starts, axis=1)
            both = np.repeat(np.add.reduceat(first, starts, axis=0), sizes, axis=0)
            given = np.repeat(first / both, sizes, axis=1)
            second = np.repeat(first.T, sizes, axis=0)
            pair += np.where(p > 0, p * np.log(p / (given * second)), 0.0)
    between = np.add.reduceat(np.add.reduceat(pair, starts, axis=0), starts, axis=1).round(DIGITS)
    with_class = np.add.reduceat(single, starts).round(DIGITS)
    values = X if holes is None else np.where(holes, -1, codes)  # alike in all columns
    least_sizes = categories_of(X, least).n_categories
    return column_order(values, y, w, -with_class, least_sizes, np.diagonal(between)), between


def tree_parents(order: Array, between: Array) -> Parents:
    """Return Chow and Liu's tree, of the largest mutual information given the class; order[0] is its root."""
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree  # slow to import

    n = len(order)
    place = np.argsort(order)
    a, b = np.triu_indices(n, 1)
    first, last = np.minimum(place[a], place[b]), np.maximum(place[a], place[b])
    # The length of an edge is its rank in a strict order, so that the shortest tree is unique; 0 is no edge.
    lengths = np.zeros((n, n))
    lengths[a, b] = 1.0 + np.argsort(np.lexsort((last, first, -between[a, b])))
    tree = minimum_spanning_tree(csr_array(lengths))
    root = int(order[0])
    _, above = breadth_first_order(tree, root, directed=False)
    return tuple(() if i == root or above[i] < 0 else (int(above[i]),) for i in range(n))


def k_parents(order: Array, between: Array, k: int) -> Parents:
    """Return Sahami's k-dependence parents: for each feature the k before it in the order with the largest
    mutual information.
    """
    parents: list[tuple[int, ...]] = [()] * len(order)
    for place, i in enumerate(order):
        before = order[:place]
        best = before[np.argsort(-between[i, before], kind="stable")[:k]]
        parents[i] = tuple(int(p) for p in best)
    return tuple(parents)


def topological_order(parents: Parents) -> list[int]:
    """Return the features in an order in which each comes after its parents."""
    waiting = [len(set(above)) for above in parents]
    children: list[list[int]] = [[] for _ in parents]
    for i, above in enumerate(parents):
        for p in set(above):
            children[p].append(i)
    order: list[int] = []
    ready = [i for i, number in enumerate(waiting) if number == 0]
    while ready:
        order += ready
        freed = []
        for i in (child for p in ready for child in children[p]):
            waiting[i] -= 1
            if waiting[i] == 0:
                freed.append(i)
        ready = sorted(freed)
    if len(order) < len(parents):
        raise ValueError("The parents of the features go round in a circle.")
    return order


def check_table(cells: int, column: int, parents: tuple[int, ...] = ()) -> None:
    """Raise an error for a table of counts that does not fit in memory."""
    if cells > MOST_CELLS:
        given = f"with its {len(parents)} parents" if parents else "and its pairs with the others"
        raise ColumnError(
            column,
            f"{given} has {cells:.3g} cells to count, more than {MOST_CELLS:.3g}. Merge its rare categories, "
            "code its categories from 0, or give it fewer parents.",
        )


def column_order(X: Array, y: Array, w: Array | None, *keys: Array) -> Array:
    """Return the columns in the order of the keys, with ties broken by the values of the columns.

    If the columns are permuted, the order is permuted with them, except among columns with the same values
    up to the names of their categories, which are interchangeable. If the rows are permuted, the order
    changes only among columns that can be exchanged without changing the set of rows: only the order of the
    rows can tell these apart.

    Parameters
    ----------
    X : array of shape (m, n)
        Codes.
    y : array of shape (m,)
        Class codes.
    w : array of shape (m,) or None
        Weights.
    *keys : arrays of shape (n,)
        Sort keys; the first one is the primary key.

    Returns
    -------
    order : array of int, shape (n,)
        Columns, first to last.
    """
    place = ranks(*keys)
    if place.max() + 1 < X.shape[1]:
        weight = np.ones(len(y)) if w is None else w
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        content = ranks_of_content(X, tied(place))
        number = 0
        while number <= place.max() < ranks(place, content).max():
            number = place.max() + 1
            place = ranks(place, hashes_by_row(X, y, weight, place))
        place = ranks(place, content)
    return np.argsort(place, kind="stable")


def ranks(*keys: Array) -> Array:
    """Return the dense rank of each entry (equal ones share it), by the first key, then the second."""
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), dtype=bool)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.cumsum(new)
    return found


def tied(place: Array) -> Array:
    """Return the columns that share their rank with another."""
    return np.flatnonzero(np.bincount(place)[place] > 1)


def ranks_of_content(X: Array, columns: Array) -> Array:
    """Return ranks of these columns by their values, row by row, whatever their categories are called."""
    kind = np.dtype(np.min_scalar_type(len(X))).newbyteorder(">")  # then bytes sort like the numbers
    held = [b""] * X.shape[1]
    for j in columns:
        _, first, inverse = np.unique(X[:, j], return_index=True, return_inverse=True)
        held[j] = ranks(first)[inverse].astype(kind).tobytes()
    rank = {content: number for number, content in enumerate(sorted(set(held)))}
    return np.array([rank[content] for content in held])


def hashes_by_row(X: Array, y: Array, weight: Array, place: Array) -> Array:
    """Return a hash of each tied column: of its values together with the rest of their rows.

    Other columns enter by their ranks, and classes by their rows, so that the hash depends neither on the
    order of rows and columns nor on the names of the classes. This is one step of colour refinement, which
    tells the vertices of a graph apart by their neighbours.
    """
    rows = np.zeros(len(X), dtype=np.uint64)
    for j, at in enumerate(place):
        rows += mixed(at, X[:, j])
    total = weight.sum()
    classes = [hash_of_set(rows[y == k], weight[y == k], total) for k in range(int(y.max()) + 1)]
    rows = mixed(np.array(classes)[y], rows)
    found = np.zeros(len(place), dtype=np.uint64)
    for j in tied(place):
        found[j] = hash_of_set(mixed(rows, X[:, j]), weight, total)
    return found


def hash_of_set(members: Array, weight: Array, total: float) -> Array:
    """Return a hash of weighted members that does not depend on their order."""
    values, inverse = np.unique(members, return_inverse=True)
    shares = np.bincount(inverse, weights=weight) / total
    return mixed(values, np.rint(1e9 * shares)).sum()


def mixed(a: Array, b: Array) -> Array:
    """Return a hash of pairs of whole numbers. Its sum modulo 2**64 is a hash of the set of pairs."""
    h = (np.asarray(a).astype(np.uint64) * ODD[0]) ^ (np.asarray(b).astype(np.uint64) + ODD[1])
    h = (h ^ (h >> np.uint64(30))) * ODD[2]
    h = (h ^ (h >> np.uint64(27))) * ODD[3]
    return h ^ (h >> np.uint64(31))
