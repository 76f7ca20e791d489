"""`riskbayes demo`: closed form and RC on four data sets."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from riskbayes.commands._errors import one_line_errors
from riskbayes.commands._paths import check_folder
from riskbayes.commands._tables import print_table


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default="demo", show_default=True, help="Folder of the page."
)
def demo(out: Path) -> None:
    """Compare closed form and RC on four data sets, on held-out rows."""
    from rich.console import Console

    with one_line_errors():  # before the work, not after it
        check_folder(out, "index.html")

    from riskbayes.experiments import demo as experiment
    from riskbayes.plotting import no_pictures

    comparisons = experiment.run_demo()
    console = Console()
    print_table(console, experiment.comparison_table(comparisons))
    console.print(experiment.tally(comparisons), highlight=False)
    console.print(experiment.SPLITS, style="dim", highlight=False)
    if any(c.floored for c in comparisons):
        console.print(experiment.FOOTNOTE, style="dim", highlight=False)
    target = out / "index.html"
    html = experiment.demo_page(comparisons, f"riskbayes demo --out {shlex.quote(str(out))}")
    with one_line_errors():
        target.write_text(html, encoding="utf-8")
    if why := no_pictures():
        click.echo(f"No figures on the page: {why}", err=True)
    click.echo(f"The page: {target}")
