"""Experiments: what is run, the tables and pictures that come of it, and the pages that show them."""


class ExperimentError(ValueError):
    """Something that the user can mend: the command shows its message, and no traceback."""
