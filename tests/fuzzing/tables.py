"""Random tables: columns of every kind, classes of every size, weights, and the containers that hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

try:
    from polars import DataFrame as PolarsFrame
except ImportError:  # a machine without it fits the same tables as pandas frames
    PolarsFrame = None

Array = Any
EPS, EPS32 = float(np.finfo(np.float64).eps), float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Table:
    """Rows with labels and weights, and further rows to predict. `held` puts either into the container."""

    kind: str
    """What the columns are, as a model's `support`: "real" or "categories"."""
    X: Array
    """float64, or int64 codes from 0."""
    y: Array
    """Class codes; every class has a row."""
    w: Array | None
    near: Array
    """Rows to predict that are like those of training."""
    far: Array
    """Rows far from those of training, or with categories that these lack."""
    beyond: Array
    """Rows with cells whose squares overflow."""
    holder: str
    """The container, a key of `HOLDERS`."""
    traits: tuple[str, ...] = ()
    validation: tuple[Array, Array] | None = None
    names: tuple[str, ...] = ()

    @property
    def eps(self) -> float:
        """The rounding of the container's dtype."""
        return EPS32 if self.holder == "float32" and self.kind == "real" else EPS

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def weights(self) -> Array:
        """The weights, ones where there are none."""
        return np.ones(len(self.y)) if self.w is None else self.w

    @property
    def has_names(self) -> bool:
        return self.holder in ("pandas", "polars", "category", "dates", "words")

    def held(self, X: Array) -> Any:
        """Rows in this table's container. Arrays are read-only: no estimator writes into its input."""
        return HOLDERS[self.kind][self.holder](X, self.names)

    def with_(self, **changes: Any) -> Table:
        """The same table but for these fields."""
        return replace(self, **changes)

    def rows(self, index: Array) -> Table:
        """These rows only."""
        return self.with_(X=self.X[index], y=self.y[index], w=None if self.w is None else self.w[index])

    def columns(self, order: Array) -> Table:
        """The same table with its columns, and their names, in another order."""
        names = tuple(self.names[j] for j in order)
        return self.of_cells(lambda X: X[:, order]).with_(names=names)

    def of_cells(self, change: Callable[[Array], Array]) -> Table:
        """The same table with `change` applied to the cells of all its rows."""
        with np.errstate(over="ignore"):  # of the rows beyond
            moved = {name: change(getattr(self, name)) for name in ("X", "near", "far", "beyond")}
            validation = None if self.validation is None else (change(self.validation[0]), self.validation[1])
        return self.with_(**moved, validation=validation)

    def perturbed(self, rng: np.random.Generator) -> Table:
        """The same table with every value moved by its rounding.

        Equal values move alike, so that constant columns stay constant and repeated ones repeated. Codes do
        not move, and neither do weights that are whole numbers, whose sums are exact.
        """
        w = self.w
        if w is not None and (w != np.round(w)).any():
            w = w * (1 + 4 * EPS * rng.choice([-1, 1], len(w)))
        if self.kind == "categories":
            return self.with_(w=w)
        values, inverse = np.unique(self.X, return_inverse=True)
        with np.errstate(over="ignore"):
            moved = values * (1 + 2 * self.eps * rng.choice([-1, 1], len(values)))
        X = np.where(np.isfinite(moved), moved, values)[inverse.reshape(self.X.shape)]
        return self.with_(X=X, w=1 + 4 * EPS * rng.choice([-1, 1], len(self.y)) if w is None else w)

    def rounding(self) -> float:
        """The largest rounding of cells, as a share of the standard deviation of their column in a class."""
        sizes, found = np.abs(self.X).max(axis=0), 0.0
        for k in np.unique(self.y):
            deviations = self.X[self.y == k].std(axis=0)
            vary = deviations > 0
            found = max(found, (self.eps * sizes[vary] / deviations[vary]).max(initial=0.0))
        return found

    def condition(self, covariance: str = "full") -> float:
        """How much rounding a Gaussian's closed form amplifies; infinite where the rows do not determine it.

        The condition number of the classes' correlations ("full"), of the pooled ones ("tied"), or one
        ("diagonal"), times what cancels when moments of a class are taken about the mean of all rows.
        Constant columns do not count.
        """
        X, w = self.X[:, (self.X[0] != self.X).any(axis=0)], self.weights
        if X.shape[1] == 0:
            return 1.0
        X = (X - X[0]) / np.abs(X - X[0]).max(axis=0)  # squares of extreme values overflow
        masses = np.bincount(self.y, weights=w)
        means = np.stack(
            [np.average(X[self.y == k], axis=0, weights=w[self.y == k]) for k in range(len(masses))]
        )
        shifts, centred = (means - np.average(X, axis=0, weights=w)) ** 2, X - means[self.y]
        scatters = np.stack(
            [(centred * (w * (self.y == k))[:, None]).T @ centred for k in range(len(masses))]
        )
        scatters = scatters / masses[:, None, None]
        if covariance == "tied":
            scatters, shifts = (np.average(A, axis=0, weights=masses)[None] for A in (scatters, shifts))
        variances = np.diagonal(scatters, axis1=1, axis2=2)
        if (variances <= 1e3 * EPS * shifts).any():
            return np.inf
        sizes = np.linalg.eigvalsh(scatters / np.sqrt(variances[:, :, None] * variances[:, None, :]))
        if covariance == "diagonal":
            sizes = np.ones_like(sizes)
        elif (sizes[:, 0] <= 1e-12 * sizes[:, -1]).any():
            return np.inf
        return float((sizes[:, -1] / sizes[:, 0] * (1 + shifts / variances).max(axis=1)).max())


def random_table(kind: str, codes_only: bool, rng: np.random.Generator) -> Table:
    """A table of one kind, with names, weights and a container."""
    m, n, r = random_sizes(rng)
    y, traits = random_labels(m, r, rng)
    if kind == "categories":
        table = random_categories(y, n, CODES if codes_only else tuple(CATEGORIES), rng)
    else:
        table = random_reals(y, n, rng)
    w, weighting = random_weights(y, rng)
    picked = rng.choice(m, size=max(2, m // 4))
    return table.with_(
        w=w,
        traits=(*traits, *table.traits, weighting),
        validation=(table.X[picked], y[picked]) if rng.random() < 0.08 else None,
        names=tuple(f"c{j}" for j in rng.permutation(n)),
    )


def random_sizes(rng: np.random.Generator) -> tuple[int, int, int]:
    """Rows, columns, classes."""
    few, some, many = rng.integers(4, 16), rng.integers(20, 80), rng.integers(80, 250)
    m = int(rng.choice([few, some, many], p=[0.2, 0.55, 0.25]))
    n = int(
        rng.choice(
            [1, rng.integers(2, 7), rng.integers(7, 14), rng.integers(14, 70)], p=[0.1, 0.65, 0.2, 0.05]
        )
    )
    r = int(rng.choice([2, rng.integers(3, 5), rng.integers(5, 20)], p=[0.5, 0.4, 0.1]))
    if rng.random() < 0.003:
        m, n = 30000, 8  # more than one chunk
    return m, n, min(r, m // 2)


def random_labels(m: int, r: int, rng: np.random.Generator) -> tuple[Array, list[str]]:
    """Labels of classes that are about as large, or of which some have one to three rows."""
    small = rng.random(r) < 0.5
    small[rng.integers(r)] = False
    if rng.random() < 0.7 or not small.any():
        return rng.permutation(np.arange(m) % r), []
    sizes, large = np.where(small, rng.integers(1, 4, size=r), 1), np.flatnonzero(~small)
    y = np.repeat(np.arange(r), sizes)
    return rng.permutation(np.append(y, rng.choice(large, size=max(0, m - len(y))))), ["small classes"]


def random_weights(y: Array, rng: np.random.Generator) -> tuple[Array | None, str]:
    """No weights, or some of a kind; every class keeps a positive one."""
    name = str(rng.choice(list(WEIGHTS), p=[0.45, 0.15, 0.1, 0.15, 0.1, 0.05]))
    w = WEIGHTS[name](rng, len(y))
    if w is not None:
        first = np.unique(y, return_index=True)[1]
        w[first] = np.where(w[first] > 0, w[first], w.max())
    return w, name


WEIGHTS: dict[str, Callable[[np.random.Generator, int], Array | None]] = {
    "no weights": lambda rng, m: None,
    "random weights": lambda rng, m: rng.uniform(0.1, 3.0, m),
    "whole weights": lambda rng, m: rng.integers(1, 4, m).astype(float),
    "weights with zeros": lambda rng, m: np.append(rng.integers(0, 3, m - 1), 1.0),
    "normalised weights": lambda rng, m: rng.dirichlet(np.full(m, 5.0)),
    "weights of a size": lambda rng, m: (
        rng.uniform(0.5, 2, m) * 10.0 ** rng.choice([-300, -8, -3, 3, 8, 300])
    ),
}


def random_reals(y: Array, n: int, rng: np.random.Generator) -> Table:
    """Columns of numbers: classes that overlap or not, then columns that are spoiled, scaled, moved."""
    m, r, traits = len(y), int(y.max()) + 1, []
    mixing = rng.standard_normal((n, n))
    if n > 1 and rng.random() < 0.2:
        traits.append("correlated")
        mixing = np.outer(rng.standard_normal(n), np.ones(n)) + 10.0 ** rng.uniform(-5, -1) * mixing
    spreads = 2.0 ** rng.uniform(-2, 2, size=r) if rng.random() < 0.3 else np.ones(r)
    X = spreads[y][:, None] * (rng.standard_normal((m, n)) @ mixing)
    X += rng.choice([0.0, 0.5, 1.5, 4.0]) * rng.standard_normal((r, n))[y]
    if rng.random() < 0.1:
        traits.append("far class")
        X[y == rng.integers(r)] += 10.0 ** rng.uniform(1, 4)
    holder = str(rng.choice(list(REALS), p=REAL_SHARES))
    if holder in ("int64", "uint8"):
        X = np.clip(np.round(X * rng.choice([1, 10, 40]) + 100), 0, 255)
    else:
        for spoil in (s for s in SPOILERS if rng.random() < 0.07):
            traits.append(spoil.__name__)
            spoil(X, y, int(rng.integers(n)), rng)
        X = random_units(X, 30 if holder == "float32" else 300, traits, rng)
    cast = CASTS.get(holder, lambda A: A)
    X = cast(X)
    near = np.concatenate(
        [X[rng.integers(m, size=8)], (X[rng.integers(m, size=8)] + X[rng.integers(m, size=8)]) / 2]
    )
    far, beyond, cells = (
        X[rng.integers(m, size=8)],
        X[rng.integers(m, size=4)],
        (np.arange(8), rng.integers(n, size=8)),
    )
    with np.errstate(over="ignore"):
        reach = rng.choice([1e2, 1e3, 1e6], size=8) * (np.abs(X).max(axis=0)[cells[1]] + 1e-300)
    far[cells] += np.where(np.isfinite(reach), reach, 0.0)
    beyond[:, rng.integers(n)] = rng.choice([1e36, -1e36] if holder == "float32" else [1e200, -1e300, 1e36])
    return Table("real", X, y, None, cast(near), cast(far), cast(beyond), holder, tuple(traits))


def random_units(X: Array, most: int, traits: list[str], rng: np.random.Generator) -> Array:
    """Columns in units of any size, all alike or each its own, or far from zero."""
    n = X.shape[1]
    if rng.random() < 0.12:
        traits.append("far from zero")
        X = X + np.where(rng.random(n) < 0.5, 10.0 ** rng.integers(3, 7), 0.0)
    if rng.random() < 0.15:
        traits.append("scaled")
        powers = rng.uniform(-most, most, size=n)
        powers = powers[:1] if rng.random() < 0.5 else np.where(rng.random(n) < 0.5, powers, 0.0)
        size = np.abs(X).max(axis=0)
        X = X / np.where(size > 0, size, 1.0) * 10.0**powers
    return X


def constant(X: Array, y: Array, j: int, rng: np.random.Generator) -> None:
    X[:, j] = rng.choice([0.0, 1.0, -3.7, 1.7e9])


def constant_within_a_class(X: Array, y: Array, j: int, rng: np.random.Generator) -> None:
    X[y == rng.integers(y.max() + 1), j] = 0.5


def repeated(X: Array, y: Array, j: int, rng: np.random.Generator) -> None:
    X[:, j] = X[:, rng.integers(X.shape[1])]


def collinear(X: Array, y: Array, j: int, rng: np.random.Generator) -> None:
    X[:, j] = 2 * X[:, 0] - X[:, -1]


def of_few_values(X: Array, y: Array, j: int, rng: np.random.Generator) -> None:
    X[:, j] = np.round(X[:, j])


def with_an_outlier(X: Array, y: Array, j: int, rng: np.random.Generator) -> None:
    X[rng.integers(len(X)), j] = 10.0 ** rng.uniform(2, 8)


def heavy_tailed(X: Array, y: Array, j: int, rng: np.random.Generator) -> None:
    X[:, j] = np.exp(np.clip(X[:, j], -30, 30))


SPOILERS = (
    *(constant, constant_within_a_class, repeated, collinear),
    *(of_few_values, with_an_outlier, heavy_tailed),
)


def random_categories(y: Array, n: int, holders: tuple[str, ...], rng: np.random.Generator) -> Table:
    """Codes that depend on the class, some columns constant, repeated or of many values."""
    m, r, traits = len(y), int(y.max()) + 1, []
    K = rng.integers(1 if rng.random() < 0.2 else 2, 6, size=n)
    holder = str(rng.choice(holders))
    if holder == "bool":
        K = np.minimum(K, 2)
    elif rng.random() < 0.1:
        traits.append("many categories")
        K[rng.integers(n)] = 40 if n > 6 else 300  # tables of it and its parents are large
    by_class, random = rng.integers(2**31, size=(r, n))[y], rng.integers(2**31, size=(m, n))
    X = np.where(rng.random((m, n)) < rng.choice([0.0, 0.3, 0.6]), by_class, random) % K
    if not traits and rng.random() < 0.3:
        traits.append("repeated")
        X[:, rng.integers(n)] = X[:, rng.integers(n)]
    cast = CASTS.get(holder, lambda A: A)
    # Columns that hold the same in training, up to the names of their categories, are interchangeable there.
    # They stay so in rows to predict: which of them is whose parent cannot matter then.
    same = np.unique(unnamed(X), axis=1, return_inverse=True)[1].ravel()
    near, far = X[rng.integers(m, size=(16, n))[:, same], np.arange(n)], X[rng.integers(m, size=8)]
    far[np.arange(8), rng.integers(n, size=8)] = rng.choice([250, 400], size=8)
    return Table("categories", cast(X), y, None, cast(near), cast(far), far[:0], holder, tuple(traits))


def unnamed(X: Array) -> Array:
    """Each cell as the first row that holds the same in its column: values without their names."""
    columns = (np.unique(x, return_index=True, return_inverse=True)[1:] for x in X.T)
    return np.stack([first[inverse] for first, inverse in columns], axis=1)


CASTS: dict[str, Callable[[Array], Array]] = {
    "float32": lambda A: np.clip(A, -1e38, 1e38).astype(np.float32).astype(A.dtype),
    "uint8": lambda A: np.clip(np.round(A), 0, 255).astype(A.dtype),
    "int64": lambda A: np.clip(np.round(A), -(2**53), 2**53).astype(A.dtype),
    "bool": lambda A: np.minimum(A, 1),
}
"""Cells as a container holds them: the table has no others."""


def frozen(X: Array) -> Array:
    """The array itself, read-only."""
    X.setflags(write=False)
    return X


def as_strings(X: Array) -> Array:
    return np.array([f"v{code:04d}" for code in X.ravel().tolist()]).reshape(X.shape)


def as_mixed(X: Array, names: tuple[str, ...]) -> Array:
    """Strings in some columns, by their names, and numbers in the others."""
    return np.where(
        [int(name[1:]) % 2 == 0 for name in names], as_strings(X).astype(object), X.astype(object)
    )


def framed(X: Array, names: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(X.copy(), columns=list(names))


def with_dates(X: Array, names: tuple[str, ...]) -> pd.DataFrame:
    j = names.index(min(names))  # the same column, wherever it stands
    return framed(X, names).assign(**{names[j]: pd.to_datetime(np.clip(X[:, j], 0, 99), unit="D")})


def with_words(X: Array, names: tuple[str, ...]) -> pd.DataFrame:
    """Numbers, and words in every second column by its name; a missing cell is None there."""
    words = {
        name: pd.Series([None if x != x else f"word {round(x)}" for x in X[:, j]], dtype=object)
        for j, name in enumerate(names)
        if int(name[1:]) % 2
    }
    return framed(X, names).assign(**words)


def polars_frame(X: Array, names: tuple[str, ...]) -> Any:
    return framed(X, names) if PolarsFrame is None else PolarsFrame(X, schema=list(names))


REALS: dict[str, Callable[[Array, tuple[str, ...]], Any]] = {
    "float64": lambda X, names: frozen(X.copy()),
    "float32": lambda X, names: frozen(X.astype(np.float32)),
    "fortran": lambda X, names: frozen(np.array(X, order="F")),
    "strided": lambda X, names: frozen(np.repeat(X, 2, axis=1)[:, ::2]),
    "list": lambda X, names: X.tolist(),
    "int64": lambda X, names: frozen(X.astype(np.int64)),
    "uint8": lambda X, names: frozen(X.astype(np.uint8)),
    "pandas": framed,
    "polars": lambda X, names: polars_frame(X.copy(), names),
    # What a model of numbers does not read: refused, in a sentence.
    "strings": lambda X, names: frozen(np.where(X > 0, "high", "low").astype(object)),
    "dates": with_dates,
    "words": with_words,
}
REAL_SHARES = [0.45, 0.2, 0.05, 0.05, 0.03, 0.035, 0.035, 0.07, 0.07, 0.005, 0.005, 0.0]
FLOATS = ("float64", "float32", "fortran", "strided", "list", "pandas", "polars")
"""Containers that hold any float, as far as their digits go."""

CATEGORIES: dict[str, Callable[[Array, tuple[str, ...]], Any]] = {
    "int64": lambda X, names: frozen(X.astype(np.int64)),
    "int16": lambda X, names: frozen(X.astype(np.int16)),
    "uint8": lambda X, names: frozen(X.astype(np.uint8)),
    "float64": lambda X, names: frozen(X.astype(np.float64)),
    "float32": lambda X, names: frozen(X.astype(np.float32)),
    "pandas": framed,
    "negative": lambda X, names: frozen(X.astype(np.int64) - 2),
    "bool": lambda X, names: frozen(X.astype(bool)),
    "strings": lambda X, names: frozen(as_strings(X)),
    "mixed": lambda X, names: frozen(as_mixed(X, names)),
    "category": lambda X, names: framed(as_strings(X), names).astype("category"),
    "polars": lambda X, names: polars_frame(as_strings(X), names),
}
CODES = ("int64", "int16", "uint8", "float64", "float32", "pandas")
"""Containers of codes from 0: what a model of categories reads, without an encoder before it."""

HOLDERS = {"real": REALS, "categories": CATEGORIES}
