"""The paper's experiments: what is run, the tables and pictures that come of it, the page that shows them."""

from riskbayes.input.files import UserError


class ExperimentError(UserError):
    """Something that the user can mend: the command shows its message, and no traceback."""
