"""Tables that models travel with: made up ones of every kind, and those that come with packages."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from riskbayes import RiskBayesClassifier
from riskbayes.datasets import load_adult_sample
from riskbayes.estimators.family import family
from riskbayes.estimators.glass import GlassClassifier
from riskbayes.estimators.member import Member

BUNDLED = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}


def bundled(name, rng):
    """Rows to fit and others to predict, of a bundled table: the latter with missing and unseen cells."""
    if name == "adult":
        X, y = load_adult_sample(return_X_y=True)
        X, y = X[:1500].copy(), np.asarray(y)[:1500]
        X["age"] = X["age"].astype(float)
        X.loc[X.index[::9], "age"] = np.nan
        new = X[1000:].copy()
        new.loc[new.index[::5], "occupation"] = "astronaut"
        new.loc[new.index[::7], "workclass"] = None
        new.loc[new.index[::4], "age"] = np.nan
        return X[:1000], y[:1000], new
    X, y = BUNDLED[name](return_X_y=True)
    order = rng.permutation(len(y))[:400]
    X, y = X[order], y[order]
    return X[: len(y) // 2], y[: len(y) // 2], X[len(y) // 2 :]


def with_tables(X, y):
    """A recipe with a power, tables and pairs, whatever held-out rows say of them."""
    clf, encoded, codes, kinds = fitted_recipe(X, y)
    clf.members_ = [(glass(clf, kinds).fit(encoded, codes), 1.0)]
    return clf


def with_every_member(X, y, **options):
    """An average of all members of the family, whatever held-out rows say of them."""
    clf, encoded, codes, kinds = fitted_recipe(X, y, **options)
    members = [glass(clf, kinds)]
    members += [member.with_iterations(4) for member in family(kinds) if isinstance(member, Member)]
    clf.members_ = [(own.fit(encoded, codes), 0.1 + 0.1 * i) for i, own in enumerate(members)]
    return clf


def fitted_recipe(X, y, **options):
    """The recipe, the encoded rows, codes of the classes, and the kinds of columns."""
    clf = RiskBayesClassifier("single", **options).fit(X, y)
    encoded = clf._encode_new(X, "predict")
    return clf, encoded, np.searchsorted(clf.classes_, y), clf._kinds_read(encoded)


def glass(clf, kinds):
    return GlassClassifier(clf.members_[0][0], kinds, 0.7, 10.0, 3.0)


def with_holes(X, rng, share=0.2):
    X = X.astype(float)
    X[rng.random(X.shape) < share] = np.nan
    return X


def numbers(rng, m=120):
    """Overlapping classes of correlated columns in odd units, of which the last has few values."""
    r, n = rng.integers(2, 6), rng.integers(1, 6)
    y = np.concatenate([np.arange(r).repeat(4), rng.integers(r, size=m - 4 * r)])
    X = rng.standard_normal((m, n)) @ rng.standard_normal((n, n)) + 0.7 * rng.standard_normal((r, n))[y]
    X = np.column_stack([X, rng.integers(3, size=m) + (y == 0)])
    scale = 10.0 ** rng.integers(-5, 6, size=n + 1)
    return (X + rng.integers(-100, 100, size=n + 1)) * scale, y


def counts(rng, m=120):
    r, n = rng.integers(2, 6), rng.integers(1, 6)
    y = np.concatenate([np.arange(r), rng.integers(r, size=m - r)])
    return rng.poisson(rng.uniform(0.3, 2.0, size=(r, n))[y]).astype(float), y


def codes(rng, m=150):
    r, n = rng.integers(2, 5), rng.integers(2, 6)
    y = np.concatenate([np.arange(r), rng.integers(r, size=m - r)])
    X = rng.integers(0, rng.integers(2, 5, size=n), size=(m, n))
    X[:, 1:] = np.where(rng.random((m, n - 1)) < 0.4, X[:, :1], X[:, 1:])  # columns depend on each other
    return np.where(rng.random((m, n)) < 0.3, y[:, None], X).astype(float), y


def dependent(rng, m=300):
    """A table whose columns depend on each other along a tree of words and numbers, and the class."""
    y = rng.integers(3, size=m)
    kind = rng.integers(3, size=m)
    shade = np.where(rng.random(m) < 0.7, (kind + y) % 3, rng.integers(3, size=m))
    length = 2.0 * shade + rng.standard_normal(m)
    width = (y - 1) * length + 0.5 * rng.standard_normal(m)
    depth = 0.8 * width + 0.5 * rng.standard_normal(m)
    price = np.exp(0.5 * length + 0.4 * rng.standard_normal(m))
    age = rng.standard_normal(m) + y
    numbers = {"length": length, "width": width, "depth": depth, "price": price, "age": age}
    words = {"kind": np.array(["k0", "k1", "k2"])[kind], "shade": np.array(["a", "b", "c"])[shade]}
    numbers["height"] = 1e3 * (age + 0.3 * rng.standard_normal(m))
    return pd.DataFrame(numbers | words), np.array(["low", "mid", "high"])[y]


def dependent_holes(rng, X, share=0.3):
    """The same table with missing cells everywhere, and words that training lacks."""
    gone = rng.random(X.shape) < share
    gone[0], gone[1] = True, False
    found = X.mask(gone)
    found.loc[found.index[::9], "shade"] = "unseen"
    return found


def mixed(rng, m=240):
    """A table of all kinds of columns, with cells whose absence tells of the class, and labels."""
    y = rng.integers(3, size=m)
    df = pd.DataFrame(
        {
            "size": np.where(rng.random(m) < 0.1 + 0.2 * (y == 1), np.nan, rng.normal(y, 1.5)),
            "visits": rng.poisson(1 + y).astype(float),
            "colour": np.where(rng.random(m) < 0.5, np.array(["red", "green", "blue"])[y], "grey"),
            "member": rng.random(m) < 0.3 + 0.2 * y,
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, m) + 100 * y, "D"),
            "note": [f"note {i}" if rng.random() < 0.3 + 0.3 * (k == 2) else None for i, k in enumerate(y)],
            "branch": "north",
        }
    )
    df["level"] = rng.integers(4, size=m) + y
    df.loc[rng.random(m) < 0.1, "colour"] = None
    df.loc[rng.random(m) < 0.1 + 0.3 * (y == 0), "since"] = pd.NaT
    return df, np.array(["low", "mid", "high"])[y]
