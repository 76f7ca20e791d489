"""The package of the paper, installed beside the library: its commands are those of `riskbayes`."""

from graphlib import TopologicalSorter

from click.shell_completion import ShellComplete
from click.testing import CliRunner

import riskbayes_paper
from conftest import import_graph
from riskbayes.cli import main


def test_the_import_graph_has_no_cycle():
    graph = import_graph(riskbayes_paper)
    assert len(graph) > 20
    tuple(TopologicalSorter(graph).static_order())


def test_its_commands_are_shown_and_completed():
    shown = CliRunner().invoke(main, ["--help"]).stdout
    assert "  reproduce   Run the paper's experiments" in shown
    assert "  bench       Measure speed" in shown
    complete = ShellComplete(main, {}, "riskbayes", "_RISKBAYES_COMPLETE")
    assert [c.value for c in complete.get_completions([], "re")] == ["reproduce"]
    assert {c.value for c in complete.get_completions(["reproduce"], "")} >= {"report", "features", "toy"}
