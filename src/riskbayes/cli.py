"""The command line `riskbayes`: demo, reproduce and bench."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from riskbayes import __version__
from riskbayes.experiments import ExperimentError
from riskbayes.experiments.files import refuse_folder
from riskbayes_command import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from riskbayes.experiments.tables import Table

FORMATS = (".svg", ".png", ".pdf")
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
NEW_FOLDER = click.Path(path_type=Path, file_okay=False)
NEW_FILE = click.Path(path_type=Path, dir_okay=False)
STYLES = {"better": "green", "worse": "red", "equal": "dim", "": ""}


class Command(click.Group):
    """A group of commands that Ctrl-C ends without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with the status of an interrupt if that is the cause of its error."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Exception) as error:
            # An interrupt during the import of a compiled module is raised as an ImportError caused by it.
            cause: BaseException | None = error
            while cause is not None:
                if isinstance(cause, KeyboardInterrupt):
                    ctx.exit(INTERRUPTED)
                cause = cause.__cause__ or cause.__context__
            raise


@click.group(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="riskbayes")
def main() -> None:
    """Generative classifiers trained by risk-based calibration."""


@main.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default="demo", show_default=True, help="Folder of the page."
)
def demo(out: Path) -> None:
    """Compare riskbayes and scikit-learn on five tables, and report on one of them."""
    from rich.console import Console

    with one_line_errors():  # before the work, not after it
        check_folder(out, "index.html", "report.html", "adult_sample.csv")

    from riskbayes.datasets import adult_sample_csv
    from riskbayes.experiments import demo as experiment
    from riskbayes.experiments.demo_page import demo_page, error_table, tally

    sample, report_page, page = (out / name for name in ("adult_sample.csv", "report.html", "index.html"))
    with one_line_errors():
        results = experiment.run_demo()
        console = Console()
        print_table(console, error_table(results))
        console.print("* The lowest of its column.", style="dim", highlight=False)
        console.print(tally(results), highlight=False)
        report = experiment.adult_report(f"riskbayes compare {shlex.quote(str(sample))} --target income")
        sample.write_bytes(adult_sample_csv())
        report_page.write_text(report.to_html(), encoding="utf-8")
        command = f"riskbayes demo --out {shlex.quote(str(out))}"
        page.write_text(demo_page(results, report, command), encoding="utf-8")
    click.echo(f"A report on a table with strings and missing cells: {report_page}")
    click.echo(f"The page: {page}")


class Names(click.ParamType):
    """A list of keys of a dict in `riskbayes.experiments`, separated by commas; "all" is all of them."""

    name = "names"

    def __init__(self, module: str, known: str):
        self.module, self.known = module, known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the names in the order of the dict; fail on one that it does not have."""
        module = importlib.import_module(f"riskbayes.experiments.{self.module}")
        known = list(getattr(module, self.known))
        wanted = known if value == "all" else [name.strip() for name in value.split(",")]
        for name in wanted:
            if name not in known:
                self.fail(f"{name!r} is none of {', '.join(known)}.", param, ctx)
        return [name for name in known if name in wanted]


@main.group(invoke_without_command=True)
@click.option(
    "--data-dir", type=FOLDER, help="Folder of data sets; by default that of RISKBAYES_DATA, else OpenML."
)
@click.option("--sets", type=Names("datasets", "PAPER_SETS"), default="all", help="Data sets, by commas.")
@click.option(
    "--models",
    type=Names("protocols", "MODELS"),
    default="nb,qda",
    show_default=True,
    help="nb, qda, and family: RiskBayesClassifier, whatever the learners.",
)
@click.option("--estimates", type=Names("protocols", "ESTIMATES"), default="all", help="ml, map.")
@click.option(
    "--learners",
    type=Names("protocols", "LEARNERS"),
    default="all",
    help="closed_form, rc_paper, rc, gd, gd_scaled, dfe, tm.",
)
@click.option("--protocols", type=Names("protocols", "PROTOCOLS"), default="all", help="held-out, in-train.")
@click.option("--splits", type=click.IntRange(1), default=5, show_default=True, help="Random 75/25 splits.")
@click.option("--jobs", type=click.IntRange(1), help="Fits at a time.  [default: one a core]")
@click.option(
    "--engine",
    type=click.Choice(["memory", "torch", "cuda"]),
    default="memory",
    show_default=True,
    help="What holds the rows.",
)
@click.option(
    "--out",
    type=NEW_FOLDER,
    default="results",
    show_default=True,
    help="Folder of the table of results, and of all that is made from it.",
)
@click.pass_context
def reproduce(
    context: click.Context,
    data_dir: Path | None,
    sets: list[str],
    models: list[str],
    estimates: list[str],
    learners: list[str],
    protocols: list[str],
    splits: int,
    jobs: int | None,
    engine: str,
    out: Path,
) -> None:
    """Run the paper's experiments; a run that was stopped goes on where it was.

    Every finished fit is a line of OUT/results.csv at once. At the end come tables, figures and the
    page OUT/index.html, made from that file.
    """
    if context.invoked_subcommand is not None:
        return

    from riskbayes.plotting import require_matplotlib

    with one_line_errors():  # before the work, not after it
        require_matplotlib()
        check_folder(out, "index.html", "results.csv")
        if engine != "memory":
            check_torch()

    from rich.console import Console

    from riskbayes.experiments import datasets, runner
    from riskbayes.experiments.protocols import plan

    console = Console(stderr=True)
    with one_line_errors():
        say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
        check_data(sets, data_dir, say)
        here, missing = datasets.available(sets, data_dir)
        for sentence in missing:
            say(f"Missing: {sentence}")
        if not here:
            raise ExperimentError("None of the data sets can be had.")
        units = plan(here, splits, models, estimates, learners, protocols)
        if not units:
            raise click.UsageError("These choices leave nothing to run: family has map and held-out only.")
        if engine != "memory" and "family" in models:
            raise click.UsageError("RiskBayesClassifier takes NumPy arrays: run family with --engine memory.")
        try:
            runner.run(units, out, data_dir, jobs or runner.default_jobs(), engine, console)
        except KeyboardInterrupt:
            click.echo("Stopped. The same command goes on from here.", err=True)
            context.exit(INTERRUPTED)
        click.echo(f"The table: {out / 'results.csv'}")
        write_and_show(out, out)


@reproduce.command()
@click.argument("results", type=FOLDER)
@click.option("--out", type=NEW_FOLDER, help="Where to write.  [default: RESULTS]")
@click.option(
    "--doc",
    "docs",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="A Markdown page to write the summary into, between its marks; can be repeated.",
)
def report(results: Path, out: Path | None, docs: tuple[Path, ...]) -> None:
    """Tables, figures and the page from the tables (*.csv) in the folder RESULTS."""
    with one_line_errors():
        check_folder(out or results, "index.html")
        write_and_show(results, out or results, docs)


@reproduce.command()
@click.argument("images", type=FOLDER)
@click.option("--out", type=NEW_FILE, required=True, help="File: <data set>.npz.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
def features(images: Path, out: Path, device: str) -> None:
    """Write the ResNet18 features of the folder IMAGES, which has a folder for each class."""
    from riskbayes.experiments import features as experiment

    with one_line_errors():
        network = experiment.resnet18(device=device)
        check_folder(out.parent)
        m, n = experiment.write_features(images, out, network)
    click.echo(f"{m} images, {n} features: {out}")


def write_and_show(results: Path, out: Path, docs: Sequence[Path] = ()) -> None:
    """Write the report of the tables in the folder `results`, and print its first table."""
    from riskbayes.plotting import require_matplotlib

    require_matplotlib()

    from rich.console import Console

    from riskbayes.experiments.report import write_report

    first, lines = write_report(results, out, docs)
    if first.rows:
        print_table(Console(), first)
    for line in lines:
        click.echo(line)
    click.echo(f"The page: {out / 'index.html'}")


@reproduce.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File (.svg, .png, .pdf) or folder of the figure.  [default: toy.svg; with --json, no figure]",
)
def toy(as_json: bool, out: Path | None) -> None:
    """The toy example: three rows, two means, 64 iterations."""
    from riskbayes.plotting import no_pictures, require_matplotlib

    target = None if as_json and out is None else figure_path(out or Path("toy.svg"), "toy.svg")
    why = no_pictures()
    with one_line_errors():
        if out is not None:
            require_matplotlib()
        elif target is not None and why:
            click.echo(f"No figure: {why}", err=True)
            target = None
        if target is not None:
            check_folder(target.parent)

    from riskbayes.experiments.toy import run_toy, toy_figure, toy_table

    result = run_toy()
    if as_json:
        click.echo(json.dumps(result.as_json()))
    else:
        from rich.console import Console

        print_table(Console(), toy_table(result))
    if target is not None:
        with one_line_errors():
            toy_figure(result).savefig(target)
        click.echo(f"The figure: {target}", err=as_json)


def case_numbers(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """Return the case numbers in `--only`, sorted; by default those of all cases."""
    from riskbayes.experiments.speed_cases import CASES

    known = sorted({case.number for case in CASES})
    chosen = {part.strip() for part in value.split(",")} if value else set(map(str, known))
    if not chosen <= set(map(str, known)):
        raise click.BadParameter(f"name some of {', '.join(map(str, known))}, separated by commas.")
    return sorted(map(int, chosen))


@main.command()
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
        with one_line_errors():  # before the work, not after it
            check_folder(target.parent)

    from threadpoolctl import threadpool_limits

    from riskbayes.experiments import speed
    from riskbayes.experiments.speed_cases import CASES

    cases = [case for case in CASES if case.number in only]
    progress = Console(stderr=True)
    with threadpool_limits(threads), progress.status("") as status:
        say = status.update if progress.is_terminal else partial(click.echo, err=True)
        figures = speed.run_bench(cases, speed.Bench(quick, data_dir, say))
        about = speed.machine()
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
        with one_line_errors():
            speed.write_json(target, figures, about, quick)
        click.echo(f"The figures: {target}")


class BadInput(click.ClickException):
    """An error that click prints in one line, with the exit status of wrong usage."""

    exit_code = 2


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors that the user can fix into one line without a traceback; bad input exits with status 2."""
    try:
        yield
    except ExperimentError as error:
        raise BadInput(str(error)) from error
    except OSError as error:
        if error.strerror is None:  # raised by us, with a full message
            raise BadInput(str(error)) from error
        where = error.filename or "the file"  # the error for a full disk has no file name
        raise click.ClickException(f"Cannot write to {where}: {error.strerror}.") from error
    except ImportError as error:
        raise click.ClickException(str(error)) from error


def check_data(sets: list[str], data_dir: Path | None, say: Callable[[str], object]) -> None:
    """Raise if the folder has none of the data sets; say which ones will come from OpenML."""
    from riskbayes.experiments import datasets

    folder = datasets.named_folder(data_dir)
    lacking = [name for name in sets if datasets.find_file(name, data_dir) is None]
    if folder is None or not lacking:
        return
    if len(lacking) == len(sets):
        files = ", ".join(datasets.PAPER_SETS[name].files[0] for name in sets[:3])
        raise ExperimentError(
            f"There is no data set to run in {str(folder)!r}. Put files there ({files}"
            f"{', ...' if len(sets) > 3 else ''}), or name no folder to have them from OpenML."
        )
    asked = [name for name in lacking if datasets.PAPER_SETS[name].openml is not None]
    if asked:
        say(f"From OpenML, since {str(folder)!r} lacks {'them' if asked[1:] else 'it'}: {', '.join(asked)}")


def check_torch() -> None:
    """Raise if torch is missing, or SCIPY_ARRAY_API, which SciPy reads when it is imported."""
    if importlib.util.find_spec("torch") is None:
        raise ImportError("The engines torch and cuda need torch: pip install torch")
    if os.environ.get("SCIPY_ARRAY_API") != "1":
        raise ExperimentError(
            "The engines torch and cuda need the variable SCIPY_ARRAY_API=1 from the start."
        )


def check_folder(folder: Path, *names: str) -> None:
    """Create the folder; raise if files cannot be written there, or one of `names` is a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        refuse_folder(folder / name)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        error.filename = str(folder)  # the user did not name the temporary file
        raise


def figure_path(out: Path, name: str) -> Path:
    """Return the file to write for `--out`: itself, or `name` in it if it is a folder."""
    if out.is_dir() or not out.suffix:
        return out / name
    if out.suffix.lower() not in FORMATS:
        raise click.ClickException(f"Cannot write a figure as {out.name}: use one of {', '.join(FORMATS)}.")
    return out


def print_table(console: Console, table: Table) -> None:
    """Print a table; where the terminal is too narrow, in parts with some of its columns each."""
    parts: list[list[int]] = []
    for j in range(len(table.headers)):
        if j in table.words:
            continue
        if parts and least_width(console, rich_table(table, [*parts[-1], j])) <= console.width:
            parts[-1].append(j)
        else:
            parts.append([j])
    for i, part in enumerate(parts):
        console.print(rich_table(table, part, table.title if i == 0 else None))
        console.print()


def least_width(console: Console, shown: RichTable) -> int:
    """Return the least width of a terminal that shows the table without cutting cells."""
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=10_000), shown).minimum


def rich_table(table: Table, columns: Sequence[int], title: str | None = None) -> RichTable:
    """Return a Rich table of the columns of words and some others; a repeated first cell is shown once."""
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table as RichTable
    from rich.text import Text

    from riskbayes.experiments.tables import plain

    # Without edges and double padding, so that tables fit 80 columns.
    shown = RichTable(
        title=title, box=box.SIMPLE_HEAD, title_justify="left", show_edge=False, collapse_padding=True
    )
    for j in table.words:
        shown.add_column(table.headers[j], overflow="fold")
    for j in columns:
        width = max(map(cell_len, [table.headers[j], *(plain(row[j]) for row in table.rows)]))
        shown.add_column(table.headers[j], justify="right", no_wrap=True, min_width=width)
    for i, row in enumerate(table.rows):
        cells = [Text(plain(c), "" if isinstance(c, str) else STYLES[c.kind]) for c in row]
        if not table.starts_group(i):
            cells[0] = Text("")
        ends = i + 1 < len(table.rows) and len(table.words) > 1 and table.starts_group(i + 1)
        shown.add_row(*(cells[j] for j in (*table.words, *columns)), end_section=ends)
    return shown
