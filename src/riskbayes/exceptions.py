"""Warnings and errors of this package."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import sklearn

INNER = tuple(str(Path(str(file)).parent) for file in (__file__, sklearn.__file__))
"""Folders of the code that a user's call passes through."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: the first on the stack outside of this package and scikit-learn."""
    frame: Any = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INNER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class FlooredWarning(UserWarning):
    """The closed form itself sits on a floor: the data do not determine its parameters."""


class ColumnError(ValueError):
    """A column of X cannot be used. Models know its index; estimators put in its name by `named`.

    Parameters
    ----------
    column : int
        Index of the column.
    problem : str
        What follows "Column 2 " in the message: the problem, and what to do.
    name : str or None
        The name of the column, where it is known.
    """

    def __init__(self, column: int, problem: str, name: str | None = None):
        super().__init__(column, problem, name)  # all of them, so that it can be pickled
        self.column, self.problem, self.name = column, problem, name

    def __str__(self) -> str:
        return f"Column {self.column if self.name is None else repr(self.name)} {self.problem}"

    def named(self, names: Any) -> ColumnError:
        """The same error with the name of the column, where it has none yet and `names` has one."""
        if self.name is None and names is not None and self.column < len(names):
            return ColumnError(self.column, self.problem, str(names[self.column]))
        return self
