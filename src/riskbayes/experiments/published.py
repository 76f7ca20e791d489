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
    """A file of printed figures."""
    text = (files(__package__) / "published" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@lru_cache
def figures() -> dict[tuple[str, str, str], dict[str, str]]:
    """A line of the paper's tables by table, data set and method."""
    return {(line["table"], line["dataset"], line["method"]): line for line in read("results")}


def figure(table: str, data_set: str, method: str, column: str) -> float | None:
    """One printed figure; None where the paper has none.

    Parameters
    ----------
    table, data_set, method : str
        A name of `PAPER_TABLES`, a data set, and the paper's name of a method.
    column : str
        "train_error_pct", "test_error_pct", "train_std", "test_std", "iter" or "reach".
    """
    printed = figures().get((table, data_set, method), {}).get(column)
    return float(printed) if printed else None


def rank(table: str, method: str, part: str) -> float | None:
    """The printed average rank of a method, by training or by test errors."""
    found = [line for line in read("ranks") if (line["table"], line["method"]) == (table, method)]
    return float(found[0][f"{part}_rank"]) if found else None


def counts(table: str, rival: str, part: str) -> str:
    """On how many sets RC is better / equal / worse, as printed; empty where it is not."""
    for line in read("counts"):
        if (line["table"], line["rival"], line["part"]) == (table, rival, part):
            return f"{line['better']} / {line['equal']} / {line['worse']}"
    return ""
