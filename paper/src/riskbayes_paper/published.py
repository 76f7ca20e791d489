"""The figures that the paper prints."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple


class PaperTable(NamedTuple):
    """One of the paper's five tables of results: which model it is about, and its methods."""

    model: str
    estimate: str
    methods: dict[str, str]
    """The paper's name of a method to the learner that is set beside it."""
    title: str

    @property
    def rival(self) -> str:
        """The learner whose lowest soft error RC must reach."""
        return list(self.methods.values())[-1]


THREE = {"closed_form": "closed_form", "rc": "rc_paper", "gd": "gd"}
PAPER_TABLES = {
    "nb_ml": PaperTable("nb", "ml", THREE, "Naive Bayes by ML"),
    "qda_ml": PaperTable("qda", "ml", THREE, "QDA by ML"),
    "nb_map": PaperTable("nb", "map", THREE, "Naive Bayes by MAP"),
    "qda_map": PaperTable("qda", "map", THREE, "QDA by MAP"),
    "dfe": PaperTable("nb", "ml", {"rc": "rc_paper", "dfe": "dfe"}, "Naive Bayes by ML, RC and DFE"),
}


@lru_cache
def read(name: str) -> list[dict[str, str]]:
    """Return the lines of a file of printed figures."""
    text = (files(__package__) / "published" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@lru_cache
def by_columns(name: str, *columns: str) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the lines of a file of printed figures by what stands in some of their columns."""
    return {tuple(line[column] for column in columns): line for line in read(name)}


def figure(table: str, data_set: str, method: str, column: str) -> float | None:
    """Return one printed figure; None where the paper has none.

    Parameters
    ----------
    table, data_set, method : str
        A name of `PAPER_TABLES`, a data set, and the paper's name of a method.
    column : str
        "train_error_pct", "test_error_pct", "train_std", "test_std", "iter" or "reach".
    """
    lines = by_columns("results", "table", "dataset", "method")
    printed = lines.get((table, data_set, method), {}).get(column)
    return float(printed) if printed else None


def rank(table: str, method: str, part: str) -> float | None:
    """Return the printed average rank of a method, by training or by test errors."""
    line = by_columns("ranks", "table", "method").get((table, method))
    return float(line[f"{part}_rank"]) if line else None


def counts(table: str, rival: str, part: str) -> str:
    """Return on how many sets RC is better / equal / worse, as printed; empty where it is not."""
    line = by_columns("counts", "table", "rival", "part").get((table, rival, part))
    return f"{line['better']} / {line['equal']} / {line['worse']}" if line else ""
