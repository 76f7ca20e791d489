"""The paper's experiments: what is run, the tables and pictures that come of it, the page that shows them."""

from riskbayes.input.files import UserError


class ExperimentError(UserError):
    """An error that the user can correct: the command shows its message, without a traceback."""
