"""`riskbayes bench`: speed, as ratios to scikit-learn and to floors."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from riskbayes.commands._paths import NEW_FILE, check_folder
from riskbayes.pages.terminal import print_table
from riskbayes_paper.commands import FOLDER


def case_numbers(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """Return the case numbers in `--only`, sorted; by default those of all cases."""
    from riskbayes_paper.speed_cases import CASES

    known = sorted({case.number for case in CASES})
    chosen = {part.strip() for part in value.split(",")} if value else set(map(str, known))
    if not chosen <= set(map(str, known)):
        raise click.BadParameter(f"name some of {', '.join(map(str, known))}, separated by commas.")
    return sorted(map(int, chosen))


@click.command()
@click.option(
    "--data-dir",
    type=FOLDER,
    envvar="RISKBAYES_DATA",
    show_envvar=True,
    help="Folder of data sets; without it what needs them is skipped.",
)
@click.option("--only", callback=case_numbers, help="Numbers of cases, such as 1,3.  [default: all]")
@click.option("--quick", is_flag=True, help="Small sizes: to see that it runs.")
@click.option("--threads", type=click.IntRange(min=1), help="The most threads.  [default: all]")
@click.option("--json", "target", type=NEW_FILE, help="Write the figures here too.")
def bench(
    data_dir: Path | None, only: list[int], quick: bool, threads: int | None, target: Path | None
) -> None:
    """Measure speed, as ratios to scikit-learn and to floors, in turn."""
    from rich.console import Console

    if target is not None:
        check_folder(target.parent)  # before the work, not after it

    from threadpoolctl import threadpool_limits

    from riskbayes_paper import speed
    from riskbayes_paper.speed_cases import CASES

    cases = [case for case in CASES if case.number in only]
    progress = Console(stderr=True)
    with threadpool_limits(threads), progress.status("") as status:
        say = status.update if progress.is_terminal else partial(click.echo, err=True)
        figures = speed.run_bench(cases, speed.Bench(quick, data_dir, say))
        about = speed.machine()
    if target is not None:
        speed.write_json(target, figures, about, quick)
    console = Console()
    if not console.is_terminal:
        console.width = 160  # a file or pipe has no width of its own
    where = f"{about['cpu']}, {about['cores']} cores, threads: {about['threads']}"
    how = "small sizes, to see that it runs" if quick else "medians, in turn"
    print_table(console, speed.speed_table(figures, f"Speed on {where}; {how}"))
    for note in speed.notes(figures):
        console.print(note, style="dim", highlight=False, markup=False, soft_wrap=True)
    console.print(speed.tally(figures), highlight=False)
    if target is not None:
        click.echo(f"The figures: {target}")
