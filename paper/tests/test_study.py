"""Studies in benchmarks/: the committed tables are whole, and a run goes on where it was."""

from importlib import import_module
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from riskbayes_paper.longtable import read_file

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TABLES = {"family": "Family", "mixed": "Mixed", "holes": "Holes", "default_rc": "DefaultRC"}


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("study")


@pytest.mark.parametrize("name", TABLES)
def test_committed_tables(study, name):
    found = getattr(import_module(name), TABLES[name])()
    records, broken = read_file(BENCHMARKS / "results" / f"{name}.csv", found.columns)
    assert broken == 0
    assert len(found.records) == len(records)
    assert {unit.set for unit in found.records} == set(found.sets)
    assert {unit.split for unit in found.records} == set(found.splits)
    assert set(found.methods) <= {unit.method for unit in found.records}


def test_a_run_goes_on_where_it_was(study, tmp_path, capsys):
    made = []

    class Toy(study.Study):
        name, sets, splits, methods = "toy", ("iris",), range(2), ("a", "b")

        def load(self, name):
            return load_iris(return_X_y=True)

        def make(self, method, part):
            made.append((part.split, method))
            return GaussianNB(priors=[0.5, 0.3, 0.2] if method == "b" else None)

        def show(self):
            print(self.grid("a").mean())

    def run(*options):
        made.clear()
        given = ["--jobs", "1", "--out", str(tmp_path / "toy.csv"), *options]
        Toy().main(Toy().parser().parse_args(given))
        return list(made)

    assert run("--methods", "a") == [(0, "a"), (1, "a")]
    table = (tmp_path / "toy.csv").read_text()
    (tmp_path / "toy.csv").write_text(table[:-9])
    assert run() == [(0, "b"), (1, "a"), (1, "b")]
    assert run() == []
    assert run("--again", "--splits", "1", "--methods", "b") == [(1, "b")]
    assert run("--print", "--again") == []
    first, *shown = capsys.readouterr().out.split()
    assert 0 < float(first) < 0.1
    assert [shown[k] for k in (0, 1, 3)] == [first] * 3
