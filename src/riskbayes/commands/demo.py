"""`riskbayes demo`: riskbayes beside scikit-learn on five tables, and a report on one of them."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from riskbayes.commands._options import AS_JSON, print_json
from riskbayes.commands._paths import check_folder
from riskbayes.pages.terminal import print_table


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default="demo", show_default=True, help="Folder of the page."
)
@AS_JSON
def demo(out: Path, as_json: bool) -> None:
    """Compare riskbayes and scikit-learn on five tables, and report on one of them.

    With --json the errors are printed, in percent and split by split.
    """
    from rich.console import Console

    check_folder(out, "index.html", "report.html", "adult_sample.csv")  # before the work, not after it

    from riskbayes.datasets import adult_sample_csv
    from riskbayes.demo import experiment
    from riskbayes.demo.page import demo_page, error_table, tally
    from riskbayes.new_files import write_files

    sample, report_page, page = (out / name for name in ("adult_sample.csv", "report.html", "index.html"))
    results = experiment.run_demo()
    report = experiment.adult_report(f"riskbayes compare {shlex.quote(str(sample))} --target income")
    command = f"riskbayes demo --out {shlex.quote(str(out))}"
    out.mkdir(parents=True, exist_ok=True)
    write_files(
        {
            sample: adult_sample_csv(),
            report_page: report.to_html(),
            page: demo_page(results, report, command),
        }
    )
    if as_json:
        errors = {result.data_set: result.errors for result in results}
        print_json({"errors": errors, "report": str(report_page), "page": str(page)})
        return
    console = Console()
    print_table(console, error_table(results))
    console.print("* The lowest of its column.", style="dim", highlight=False)
    console.print(tally(results), highlight=False)
    click.echo(f"A report on a table with strings and missing cells: {report_page}")
    click.echo(f"The page: {page}")
