"""The examples of the gallery run, without a warning; the site shows what they print and draw."""

import io
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib
import pytest
from matplotlib import pyplot

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "gallery").glob("plot_*.py"))


def test_there_are_enough_examples_and_each_has_a_title():
    assert len(EXAMPLES) >= 14
    for path in EXAMPLES:
        title, line = path.read_text(encoding="utf-8").split("\n")[1:3]
        assert set(line) == {"="}
        assert len(line) == len(title)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_shows_something(path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(path)])
    backend = matplotlib.get_backend()
    matplotlib.use("agg")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            runpy.run_path(str(path), run_name="__main__")
        assert pyplot.get_fignums() or printed.getvalue()
    finally:
        pyplot.close("all")
        matplotlib.use(backend)
