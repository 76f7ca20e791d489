"""`riskbayes reproduce`: the paper's experiments, their report, features of images, the toy example."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

import riskbayes.commands._signals as signals
from riskbayes.commands._paths import NEW_FILE, NEW_FOLDER, check_folder
from riskbayes.pages.terminal import print_table
from riskbayes_paper import ExperimentError
from riskbayes_paper.commands import FOLDER

FORMATS = (".svg", ".png", ".pdf")


class Names(click.ParamType):
    """A list of keys of a dict in `riskbayes_paper`, separated by commas; "all" is all of them."""

    name = "names"

    def __init__(self, module: str, known: str):
        self.module, self.known = module, known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the names in the order of the dict; fail on one that it does not have."""
        module = importlib.import_module(f"riskbayes_paper.{self.module}")
        known = list(getattr(module, self.known))
        wanted = known if value == "all" else [name.strip() for name in value.split(",")]
        for name in wanted:
            if name not in known:
                self.fail(f"{name!r} is none of {', '.join(known)}.", param, ctx)
        return [name for name in known if name in wanted]


@click.group(invoke_without_command=True)
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

    require_matplotlib()  # before the work, not after it
    check_folder(out, "index.html", "results.csv")
    if engine != "memory":
        check_torch()

    from rich.console import Console

    from riskbayes_paper import datasets, runner
    from riskbayes_paper.fitting import Reproduction
    from riskbayes_paper.protocols import plan
    from riskbayes_paper.rows import FILE

    console = Console(stderr=True)
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
        study = Reproduction(data_dir, engine)
        runner.run(study, units, out / FILE, jobs or runner.default_jobs(), console)
    except KeyboardInterrupt:
        click.echo("Stopped. The same command goes on from here.", err=True)
        context.exit(signals.status_after_interrupt)
    write_and_show(out, out)
    click.echo(f"The table: {out / 'results.csv'}")


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
    check_folder(out or results, "index.html")
    write_and_show(results, out or results, docs)


@reproduce.command()
@click.argument("images", type=FOLDER)
@click.option("--out", type=NEW_FILE, required=True, help="File: <data set>.npz.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
def features(images: Path, out: Path, device: str) -> None:
    """Write the ResNet18 features of the folder IMAGES, which has a folder for each class."""
    from riskbayes_paper import features as experiment

    network = experiment.resnet18(device=device)
    check_folder(out.parent)
    m, n = experiment.write_features(images, out, network)
    click.echo(f"{m} images, {n} features: {out}")


def write_and_show(results: Path, out: Path, docs: Sequence[Path] = ()) -> None:
    """Write the report of the tables in the folder `results`, and print its first table."""
    from riskbayes.plotting import require_matplotlib

    require_matplotlib()

    from rich.console import Console

    from riskbayes_paper.report import write_report

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
    from riskbayes.plotting import require_matplotlib

    target = None if as_json and out is None else figure_path(out or Path("toy.svg"), "toy.svg")
    try:
        require_matplotlib()
    except ImportError as error:
        if out is not None:
            raise
        if target is not None:
            click.echo(f"No figure: {error}", err=True)
            target = None
    if target is not None:
        check_folder(target.parent)

    from riskbayes.new_files import new_files
    from riskbayes_paper.toy import run_toy, toy_figure, toy_table

    result = run_toy()
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with new_files(target) as (file,):
            toy_figure(result).savefig(file, format=target.suffix[1:].lower())
    if as_json:
        click.echo(json.dumps(result.as_json()))
    else:
        from rich.console import Console

        print_table(Console(), toy_table(result))
    if target is not None:
        click.echo(f"The figure: {target}", err=as_json)


def figure_path(out: Path, name: str) -> Path:
    """Return the file to write for `--out`: itself, or `name` in it if it is a folder."""
    if out.is_dir() or not out.suffix:
        return out / name
    if out.suffix.lower() not in FORMATS:
        raise click.ClickException(f"Cannot write a figure as {out.name}: use one of {', '.join(FORMATS)}.")
    return out


def check_data(sets: list[str], data_dir: Path | None, say: Callable[[str], object]) -> None:
    """Raise if the folder has none of the data sets; say which ones will come from OpenML."""
    from riskbayes_paper import datasets

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
