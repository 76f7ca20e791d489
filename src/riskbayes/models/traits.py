"""What kind of model a model is: said once, read by engines, learners and estimators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traits:
    """The properties of a model that others ask for. A model of three formulas has the defaults."""

    support: str = "real"
    """The kind of the features: "real" numbers, "categories" (codes from 0) or "counts" (from 0)."""

    array_api: bool = False
    """True if the formulas accept arrays of every library (see :mod:`riskbayes.arrays`), not only NumPy's."""

    takes_missing: bool = False
    """True if cells of the rows may be missing (NaN): they drop out of the log joint and the statistics."""

    normalised: bool = True
    """True if p(x, y) sums, or integrates, to one."""

    describes_rows: bool = True
    """True if p(x, y) is a density or probability of x, up to a constant. False for a model whose log joint
    tells the classes apart, but not likely rows from unlikely ones: it has no `score_samples`."""

    columns: tuple[int, ...] | None = None
    """The columns of the rows that the scores depend on; None for all of them."""

    additive: bool = True
    """True if statistics of tables that were fitted separately can be added. False for a model that learns
    structure from the rows: its statistics then mean something else for each table."""

    encode_copies: bool = True
    """True if encoding copies the rows. Rows to predict are then encoded a block at a time, to bound the
    memory."""
