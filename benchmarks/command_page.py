"""Run the commands of `doc/command.md` and put what they print below them.

Run: python benchmarks/command_page.py
"""

import os
import re
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner
from sklearn.datasets import load_wine

from riskbayes.cli import main

PAGE = Path(__file__).parents[1] / "doc" / "command.md"
BLOCK = re.compile(r"^```\n\$ riskbayes (.*)\n(?:.*\n)*?```$", re.MULTILINE)
"""A command on the page with what it printed."""


def write_wine() -> None:
    """Write the wine data as a CSV, and in three parts, of which the last has more alcohol and no target."""
    wine = load_wine()
    lines = [",".join([*wine.feature_names, "cultivar"])]
    for row, code in zip(wine.data, wine.target, strict=True):
        lines.append(",".join([*(f"{value:g}" for value in row), f"cultivar {code + 1}"]))
    Path("wine.csv").write_text("\n".join(lines) + "\n")
    Path("early.csv").write_text("\n".join(lines[:1] + lines[1::3]) + "\n")
    Path("held.csv").write_text("\n".join(lines[:1] + lines[2::3]) + "\n")
    later = [line.split(",")[:-1] for line in lines[3::3]]
    rows = [[f"{float(first) + 1:g}", *others] for first, *others in later]
    Path("later.csv").write_text("\n".join(",".join(row) for row in [wine.feature_names, *rows]) + "\n")


def page() -> str:
    """Return the page with what its commands print now, run in a folder with `wine.csv`."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_wine()
        return BLOCK.sub(lambda found: with_output(found[1]), PAGE.read_text(encoding="utf-8"))


def with_output(command: str) -> str:
    """Return a command with what it printed."""
    done = CliRunner(env={**os.environ, "COLUMNS": "100"}).invoke(main, shlex.split(command))
    printed = "".join(f"{line.rstrip()}\n" for line in done.output.splitlines())
    return f"```\n$ riskbayes {command}\n{printed}```"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
