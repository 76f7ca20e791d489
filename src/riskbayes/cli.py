"""The command line `riskbayes`: a group that finds its commands in `riskbayes.commands`, one a file."""

from __future__ import annotations

import click

from riskbayes import __version__
from riskbayes.commands._group import LazyGroup


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="riskbayes")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Generative classifiers trained by risk-based calibration: from a file to an answer."""
