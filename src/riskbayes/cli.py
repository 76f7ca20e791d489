"""The command `riskbayes`."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from riskbayes import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from riskbayes.experiments.report import Table

FORMATS = (".svg", ".png", ".pdf")
STYLES = {"better": "green", "worse": "red", "equal": "dim"}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="riskbayes")
def main() -> None:
    """Generative classifiers trained by risk-based calibration."""


@main.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default="demo", show_default=True, help="Folder of the page."
)
def demo(out: Path) -> None:
    """Compare closed form and RC on four data sets, on held-out rows."""
    from rich.console import Console

    from riskbayes.plotting import require_matplotlib

    with one_line_errors():  # before the work, not after it
        require_matplotlib()
        check_folder(out)

    from riskbayes.experiments import demo as experiment

    fits = experiment.run_demo()
    comparisons = experiment.compare(fits)
    console = Console()
    print_table(console, experiment.comparison_table(comparisons), "Error on held-out rows, percent")
    console.print(experiment.tally(comparisons), highlight=False)
    console.print(experiment.SPLITS, style="dim", highlight=False)
    if any(c.floored for c in comparisons):
        console.print(experiment.FOOTNOTE, style="dim", highlight=False)
    target = out / "index.html"
    with one_line_errors():
        target.write_text(
            experiment.demo_page(fits, f"riskbayes demo --out {shlex.quote(str(out))}"), encoding="utf-8"
        )
    click.echo(f"The page: {target}")


@main.group()
def reproduce() -> None:
    """Reproduce results of the paper."""


@reproduce.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File (.svg, .png, .pdf) or folder of the figure.  [default: toy.svg; with --json, no figure]",
)
def toy(as_json: bool, out: Path | None) -> None:
    """The toy example: three rows, two means, 64 iterations."""
    from riskbayes.plotting import require_matplotlib

    target = None if as_json and out is None else figure_path(out or Path("toy.svg"), "toy.svg")
    with one_line_errors():
        if target is not None:
            require_matplotlib()
            check_folder(target.parent)

    from riskbayes.experiments.toy import run_toy, toy_figure, toy_table

    result = run_toy()
    if as_json:
        click.echo(json.dumps(result.as_json()))
    else:
        from rich.console import Console

        print_table(Console(), toy_table(result), "RC on X = (0, 1, 4), Y = (1, 2, 2)")
    if target is not None:
        with one_line_errors():
            toy_figure(result).savefig(target)
        click.echo(f"The figure: {target}", err=as_json)


def case_numbers(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """The numbers that `--only` lists."""
    from riskbayes.experiments.speed_cases import CASES

    known = sorted({case.number for case in CASES})
    chosen = {part.strip() for part in value.split(",")} if value else set(map(str, known))
    if not chosen <= set(map(str, known)):
        raise click.BadParameter(f"name some of {', '.join(map(str, known))}, separated by commas.")
    return sorted(map(int, chosen))


@main.command()
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="RISKBAYES_DATA",
    show_envvar=True,
    help="Folder of data sets; without it what needs them is skipped.",
)
@click.option("--only", callback=case_numbers, help="Numbers of cases, such as 1,3.  [default: all]")
@click.option("--quick", is_flag=True, help="Small sizes: to see that it runs.")
@click.option("--threads", type=click.IntRange(min=1), help="The most threads.  [default: all]")
@click.option(
    "--json", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here too."
)
def bench(
    data_dir: Path | None, only: list[int], quick: bool, threads: int | None, target: Path | None
) -> None:
    """Measure speed, as ratios to scikit-learn and to floors, in turn."""
    from rich.console import Console

    if target is not None:
        with one_line_errors():  # before the work, not after it
            check_folder(target.parent)

    from riskbayes.experiments import speed
    from riskbayes.experiments.speed_cases import CASES

    cases = [case for case in CASES if case.number in only]
    progress = Console(stderr=True)
    with speed.limited_threads(threads) as used, progress.status("") as status:
        say = status.update if progress.is_terminal else partial(click.echo, err=True)
        figures = speed.run_bench(cases, speed.Bench(quick, data_dir, say))
        about = speed.machine(used)
    console = Console()
    if not console.is_terminal:
        console.width = 160  # a file has no edge to keep to
    where = f"{about['cpu']}, {about['cores']} cores, threads: {used}"
    how = "small sizes, to see that it runs" if quick else "medians, in turn"
    print_table(console, speed.speed_table(figures), f"Speed on {where}; {how}")
    for note in speed.notes(figures):
        console.print(note, style="dim", highlight=False, markup=False, soft_wrap=True)
    console.print(speed.tally(figures), highlight=False)
    if target is not None:
        with one_line_errors():
            speed.write_json(target, figures, about, quick)
        click.echo(f"The figures: {target}")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """What the user can mend comes as a line, not as a traceback."""
    try:
        yield
    except OSError as error:
        where = error.filename or "the file"  # a full disk names none
        raise click.ClickException(f"Cannot write to {where}: {error.strerror}.") from error
    except ImportError as error:
        raise click.ClickException(str(error)) from error


def check_folder(folder: Path) -> None:
    """Make the folder, and make sure that files can be written there."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        error.filename = str(folder)  # the user did not name the temporary file
        raise


def figure_path(out: Path, name: str) -> Path:
    """The file that `--out` means: itself, or `name` in a folder."""
    if out.is_dir() or not out.suffix:
        return out / name
    if out.suffix.lower() not in FORMATS:
        raise click.ClickException(f"Cannot write a figure as {out.name}: use one of {', '.join(FORMATS)}.")
    return out


def print_table(console: Console, table: Table, title: str) -> None:
    """A table for the terminal; a first cell that repeats is shown once."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    # Tight enough for 80 columns.
    shown = RichTable(
        title=title, box=box.SIMPLE_HEAD, title_justify="left", show_edge=False, collapse_padding=True
    )
    for j, header in enumerate(table.headers):
        shown.add_column(header, justify="left" if j < table.text_columns else "right")
    for i, row in enumerate(table.rows):
        cells = [Text(c, "") if isinstance(c, str) else Text(c.text, STYLES[c.kind]) for c in row]
        if not table.starts_group(i):
            cells[0] = Text("")
        ends = i + 1 < len(table.rows) and table.text_columns > 1 and table.starts_group(i + 1)
        shown.add_row(*cells, end_section=ends)
    console.print(shown)
    console.print()
