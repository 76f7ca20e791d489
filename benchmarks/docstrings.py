"""Which package does a docstring come from? Naive Bayes of word counts on a real corpus that needs no download.

The docstrings of installed packages (modules, classes and functions, read from the source by `ast`); the
package is the label. The names of the packages are no words of the task, a docstring that several packages
have is left out of all, and so are those of few words.

    python benchmarks/docstrings.py > benchmarks/results/docstrings.txt
    python benchmarks/docstrings.py --choose     # settings of RC, on splits of their own
    python benchmarks/docstrings.py --speed      # only the speed case
"""

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

PACKAGES = {
    "numpy": ("numpy", "np"),
    "scipy": ("scipy", "sp"),
    "sklearn": ("sklearn", "scikit"),
    "pandas": ("pandas", "pd"),
    "matplotlib": ("matplotlib", "mpl", "pyplot", "plt"),
    "polars": ("polars", "pl"),
    "numba": ("numba", "nb"),
    "narwhals": ("narwhals", "nw"),
    "fontTools": ("fonttools", "ttlib"),
    "mypy": ("mypy",),
    "hypothesis": ("hypothesis",),
    "rich": ("rich",),
    "joblib": ("joblib",),
    "PIL": ("pil", "pillow"),
    "pyarrow": ("pyarrow", "pa"),
}
"""Packages, and their names and usual abbreviations, which are not words of the corpus."""

FEWEST_WORDS = 5
"""Docstrings of fewer words are left out."""

NAMES = re.compile("|".join({name for names in PACKAGES.values() for name in names if len(name) > 3}))
SHORT = {name for names in PACKAGES.values() for name in names if len(name) <= 3}


def words(text: str) -> list[str]:
    """Return the words of a docstring in lower case, without names of packages."""
    found = re.findall(r"[a-z][a-z_]+", text.lower())
    return [word for word in found if word not in SHORT and not NAMES.search(word)]


def docstrings(package: str) -> Iterator[str]:
    """Yield the docstrings of a package, from its source files; those of its tests are left out."""
    place = find_spec(package)
    if place is None or place.origin is None:
        return
    for file in sorted(Path(place.origin).parent.rglob("*.py")):
        if "tests" in file.parts:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # escape sequences of other people's strings
                tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield text


def corpus() -> tuple[list[str], np.ndarray]:
    """Return docstrings, as words with spaces between, and their packages; each of them once."""
    owners: dict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for text in docstrings(package):
            found = words(text)
            if len(found) >= FEWEST_WORDS:
                owners[" ".join(found)].add(package)
    kept = {text: next(iter(names)) for text, names in owners.items() if len(names) == 1}
    return list(kept), np.array(list(kept.values()))
