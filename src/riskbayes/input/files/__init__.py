"""Read a user's file: CSV in any dialect and encoding, Parquet, Arrow. Errors say what to do."""


class UserError(ValueError):
    """An error that the user can correct: the command shows its message in a line, without a traceback."""
