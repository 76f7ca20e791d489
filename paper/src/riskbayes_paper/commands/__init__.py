"""Commands that this package adds to `riskbayes`: its entry points name them."""

from pathlib import Path

import click

FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
