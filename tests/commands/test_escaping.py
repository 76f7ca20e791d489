"""Whatever a file holds, a terminal, a shell and a page show it and obey nothing of it."""

import csv
import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import riskbayes
from made_reports import made
from riskbayes.cli import main
from riskbayes.markup import OBEYED, printable, text

pytest.importorskip("pyarrow")

from riskbayes.compare.markdown import report_as_markdown
from riskbayes.compare.terminal import print_report

NASTY = (
    "[/b]",
    "[bold red]x",
    "\x1b]52;c;ZWNobw==\x07",
    "\x1b[2J",
    "a\x85b",
    "\u202eevil",
    "\x9b31m",
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    'a "b" \\ c',
    "a\\$b",
    "*",
    "~",
    "<script>alert(1)</script>",
    "![x](y) | `z` &lt;",
)
"""Rich's markup, escape sequences, turns of direction, commands of a shell, HTML and Markdown."""

TARGET, LEFT_OUT = "\x1b]0;t\x07", ("\x1b[2Jconstant", "name\x9bs")

NAMES = st.text(st.characters(), max_size=12) | st.sampled_from(NASTY)


@given(NAMES)
def test_a_text_keeps_no_order(name):
    assert not OBEYED.search(printable(name))
    assert printable(printable(name)) == printable(name)
    assert not OBEYED.search(text(name))
    assert printable(name).encode().decode() == printable(name)
    if name.isprintable():
        assert printable(name) == name


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose names, labels and cells are all nasty, and columns that no model reads too."""
    folder = tmp_path_factory.mktemp("nasty")
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=240)
    cells = np.array([f"{name}{i % 2}" for i, name in enumerate(NASTY)], dtype=object)
    numbers = [rng.normal(y).round(3).astype(str) for _ in NASTY]
    words = cells[(rng.integers(4, size=240) + 3 * y) % len(cells)]
    labels = np.array(["[/b]", "\x1b[2Jno", "'; touch pwned; '"], dtype=object)[y]
    file = io.StringIO()
    names = [f"row{i}" for i in range(240)]
    rows = zip(*numbers, words, ["same"] * 240, names, labels, strict=True)
    csv.writer(file, lineterminator="\n").writerows([[*NASTY, "[w]\x1b[1m", *LEFT_OUT, TARGET], *rows])
    (folder / "t.csv").write_text(file.getvalue(), encoding="utf-8")
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *arguments: CliRunner().invoke(main, [str(each) for each in arguments])


def harmless(found, status=0):
    """Assert that a command ended as it should and printed lines of text alone."""
    assert found.exit_code == status, (found.output, found.exception)
    for stream in (found.stdout, found.stderr):
        assert not OBEYED.search(stream.replace("\n", "")), stream
    return found


def test_commands_print_nothing_that_a_terminal_obeys(run, folder):
    harmless(run("fit", "t.csv", "--target", TARGET, "-o", "m.rb"))
    shown = harmless(run("inspect", "m.rb"))
    assert all(name in shown.stdout for name in ("[bold red]x", "\\x1b[2J", "\\u202eevil"))
    harmless(run("inspect", "m.rb", "--json"))
    for options in ([], ["--json"]):
        found = harmless(run("explain", "m.rb", "t.csv", "--row", 3, *options))
        assert "[/b]" in found.stdout
        assert "name\\x9bs" in found.stdout or "name\\u009bs" in found.stdout
    harmless(run("explain", "m.rb", "t.csv", "--row", 1, "--for", "\x1b[31mno"), 2)
    harmless(run("fit", "t.csv", "--target", "\x1b[31m"), 2)
    harmless(run("predict", "m.rb", "\x1b[31m.csv"), 2)
    harmless(run("fit", "t.csv", "--target", TARGET, "--model", "\x1b[31m"), 2)
    assert not (folder / "pwned").exists()


@settings(max_examples=8)
@given(
    st.dictionaries(NAMES, NAMES | st.lists(NAMES) | st.integers() | st.none(), max_size=4),
    NAMES,
    st.integers() | st.sampled_from([10**308, 10**309, -(10**400), True]) | st.floats(-9, 9),
)
def test_notes_of_anybody_are_shown(tmp_path_factory, about, name, number):
    """Among them those that look like the notes of `riskbayes fit` and are not, with figures of any size."""
    path = tmp_path_factory.mktemp("notes") / "m.rb"
    clf = riskbayes.GaussianNB(learner="closed_form").fit(np.arange(8.0)[:, None], np.arange(8) % 2)
    stored = {**dict.fromkeys(("file", "target", "model"), name), "rows": 8, "kinds": {}, "settings": about}
    held = dict.fromkeys(("rows", "error", "majority_error", "auc"), number)
    for notes in (
        about,
        {**about, "classes": about, "kinds": name},
        {"classes": {name: name}, "kinds": {}},
        {**stored, "classes": {name: 8}, "held_out": held},
    ):
        clf.save(path, about=notes)
        found = harmless(CliRunner().invoke(main, ["inspect", str(path)]))
        assert "GaussianNB" in found.stdout


def named_report(names):
    """A report in which all that a user names has one of these names."""
    found = made((names[0], f"{names[-1]}."), tuple(names))
    run = replace(found.run, command=names[-1] or "x", started=names[0], versions={names[0]: names[-1]})
    split = replace(found.split, words=names[-1])
    return replace(found, verdict=names[0], why=names[-1], run=run, split=split)


@settings(max_examples=10)
@given(st.lists(NAMES, min_size=1, max_size=4))
def test_reports_print_nothing_that_a_terminal_obeys(names):
    report = named_report(names)
    out = io.StringIO()
    print_report(report, Console(file=out))
    assert not OBEYED.search(out.getvalue().replace("\n", ""))
    lines = report_as_markdown(report)
    assert not OBEYED.search(lines.replace("\n", ""))
    assert not OBEYED.search(report.to_html().replace("\n", ""))
    assert lines.count("\n") == report_as_markdown(named_report(["plain"] * len(names))).count("\n")


def test_what_bash_completes_is_the_name_of_a_column_and_no_command(run, folder):
    """The words that click's script offers are put into a command line, which bash then reads."""
    source = run("completion", "bash").stdout
    python = f"import sys; sys.argv[0] = 'riskbayes'; {'from riskbayes.entry import main; main()'}"
    command = folder / "riskbayes"
    command.write_text(f"#!{sys.executable}\n{python}\n")
    command.chmod(0o755)
    script = f"""{source}
COMP_WORDS=(riskbayes fit t.csv --target ''); COMP_CWORD=4
_riskbayes_completion riskbayes
for word in "${{COMPREPLY[@]}}"; do eval "printf '%s\\n' $word"; done
"""
    path = os.pathsep.join([str(Path(riskbayes.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, cwd=folder)
    assert done.stdout.splitlines() == [name for name in NASTY if name == printable(name)], done.stderr
    assert not (folder / "pwned").exists()
