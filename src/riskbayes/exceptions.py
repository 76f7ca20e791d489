"""Warnings and errors of this package."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import sklearn

from riskbayes.arrays import to_numpy

MOST_LISTED = 5
"""The most values that a message lists."""

INNER = tuple(str(Path(str(file)).parent) for file in (__file__, sklearn.__file__))
"""Folders of this package and of scikit-learn, whose lines a warning should not point to."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: the first on the stack outside of this package and scikit-learn."""
    frame: Any = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INNER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def listed(values: Any) -> str:
    """Return the repr of values for a message: at most the first five, and how many more there are."""
    found = to_numpy(values).tolist() if hasattr(values, "__dlpack__") else list(values)
    shown, more = ", ".join(map(repr, found[:MOST_LISTED])), len(found) - MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


class FlooredWarning(UserWarning):
    """The closed form reaches a floor of its parameters: the data do not determine them."""


class RowsLostError(ConnectionError):
    """The rows of a fit cannot be reached any more; the estimator has the best model so far, if any."""


class ModelFileError(ValueError):
    """A model cannot be saved, or a file cannot be loaded; the message says why."""


class ColumnError(ValueError):
    """A column of X cannot be used. Models know only its index; estimators add its name with `named`.

    Parameters
    ----------
    column : int
        Index of the column.
    problem : str
        The rest of the message, after "Column 2 ": the problem, and what to do.
    name : str or None
        The name of the column, if it is known.
    """

    def __init__(self, column: int, problem: str, name: str | None = None):
        super().__init__(column, problem, name)  # all of them, so that it can be pickled
        self.column, self.problem, self.name = column, problem, name

    def __str__(self) -> str:
        return f"Column {self.column if self.name is None else repr(self.name)} {self.problem}"

    def named(self, names: Any) -> ColumnError:
        """Return this error with the column's name among `names`; the error itself if it has a name."""
        if self.name is None and names is not None and self.column < len(names):
            return ColumnError(self.column, self.problem, str(names[self.column]))
        return self
