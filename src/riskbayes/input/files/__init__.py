"""Read a user's file: CSV in whatever dialect and encoding, Parquet, Arrow. Mistakes become one sentence."""


class UserError(ValueError):
    """Something that the user can mend: the command shows its message in a line, and no traceback."""
