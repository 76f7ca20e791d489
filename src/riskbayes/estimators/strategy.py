"""What `strategy="auto"` stands for: the most accurate strategy that these rows allow."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from riskbayes.input.source import Source

BEST, RECIPE = "ensemble", "single"
"""The strategy of the least error, and the one that takes rows from anywhere."""

MOST_ROWS = 100_000
"""Rows up to which "auto" is `BEST`: some 20 seconds of one core (`benchmarks/auto_rows.py`)."""


def check_strategy(strategy: str, source: Source, checkpoint: Any) -> None:
    """Refuse a strategy that was asked for by its name and cannot be fitted to these rows."""
    if strategy in ("auto", RECIPE):
        return
    if checkpoint is not None:
        raise ValueError(f"checkpoint goes with strategy={RECIPE!r}; got strategy={strategy!r}.")
    if not source.in_memory:
        raise ValueError(
            f"strategy={strategy!r} needs all rows in memory, and X is read in batches or is a Dask "
            f"collection. Set strategy={RECIPE!r}, or pass a sample of the rows as an array."
        )


def choose_strategy(strategy: str, engine: Any, cv: Any, checkpoint: Any) -> tuple[str, str]:
    """Return the strategy to fit, and why: what "auto" stands for on the rows of an engine, or as it is."""
    if strategy != "auto":
        return strategy, f"strategy={strategy!r}"
    if checkpoint is not None:
        return RECIPE, "scans are written to a checkpoint"
    if engine.rows is None:
        return RECIPE, "the rows are read in batches or are on Dask"
    if engine.n_rows > MOST_ROWS:
        return RECIPE, f"{engine.n_rows} rows are more than {MOST_ROWS}"
    if isinstance(cv, Integral) and engine.class_counts().min() < 2:
        return RECIPE, "a class has a single row, so that there are no folds"
    return BEST, f"the rows are in memory, and not more than {MOST_ROWS}"
