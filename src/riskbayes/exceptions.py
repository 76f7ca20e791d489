"""Warnings and errors of this package."""

from __future__ import annotations

from typing import Any


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
