"""The sample of adult that ships with the package."""

import gzip
import importlib.util
from collections import Counter
from pathlib import Path

import narwhals as nw
import pytest

from riskbayes import datasets
from riskbayes.datasets import adult_sample_csv, load_adult_sample

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("library", datasets.LIBRARIES)
def test_the_sample_in_every_library(monkeypatch, library):
    pytest.importorskip(library)
    monkeypatch.setattr(datasets, "LIBRARIES", (library,))
    table = nw.from_native(load_adult_sample(), eager_only=True)
    assert table.implementation.name.lower() == library
    assert table.shape == (3000, 15)
    missing = {name: count for name in table.columns if (count := table[name].null_count())}
    assert set(missing) == {"workclass", "occupation", "native_country"}
    assert {name for name, kind in table.schema.items() if kind.is_numeric()} == {
        *("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
    }
    X, y = load_adult_sample(return_X_y=True)
    assert list(nw.from_native(X, eager_only=True).columns) == table.columns[:-1]
    assert nw.from_native(y, series_only=True, eager_only=True).to_list() == table["income"].to_list()


def test_the_script_makes_the_sample_from_the_full_table(paper_folder):
    full = paper_folder / "adult.csv.gz"
    if not full.exists():
        pytest.skip("the full table of adult is not here")
    spec = importlib.util.spec_from_file_location("sampler", ROOT / "benchmarks" / "make_adult_sample.py")
    sampler = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sampler)
    lines = [line.split(",") for line in gzip.decompress(full.read_bytes()).decode().splitlines()]
    assert gzip.decompress(sampler.compressed(sampler.sample(lines))) == adult_sample_csv()
    shares = Counter(line[-1] for line in lines[1:])
    rows = adult_sample_csv().decode().splitlines()[1:]
    kept = Counter(row.rpartition(",")[2] for row in rows)
    for label, count in kept.items():
        assert count == pytest.approx(3000 * shares[label] / (len(lines) - 1), abs=1)


def test_the_source_and_the_licence_are_named():
    words = (Path(datasets.__file__).parent / "data" / "README.md").read_text(encoding="utf-8")
    for said in ("Becker", "Kohavi", "10.24432/C5XW20", "CC BY 4.0", "make_adult_sample.py"):
        assert said in words
        assert said in load_adult_sample.__doc__ or said == "make_adult_sample.py"


def test_without_data_frames(monkeypatch):
    monkeypatch.setattr(datasets, "LIBRARIES", ())
    with pytest.raises(ImportError, match=r"riskbayes\[cli\]"):
        load_adult_sample()
