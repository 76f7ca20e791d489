"""Files and folders that the command cannot use: a sentence that names them, and no traceback."""

import gzip
import io
import sys
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris

from riskbayes.cli import main
from riskbayes_paper import ExperimentError, datasets, fitting
from riskbayes_paper.longtable import header
from riskbayes_paper.rows import COLUMNS

HEADER, HEAD = "a,b,c,d,target\n", header(COLUMNS)
IRIS = np.column_stack(load_iris(return_X_y=True))
GOOD = HEADER + "".join(",".join(map(str, row)) + "\n" for row in IRIS.tolist())


def zipped(**arrays):
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


X, y = np.arange(600.0).reshape(60, 10), np.arange(60) % 3
WHOLE = zipped(X=X, y=y)
UNCOMPRESSED = io.BytesIO()
np.savez(UNCOMPRESSED, X=X, y=y)


def table(*lines):
    return gzip.compress((HEADER + "".join(f"{line}\n" for line in lines)).encode())


WHOLE_TABLE = gzip.compress(GOOD.encode())
TABLES = {
    "a gzip file cut short": (WHOLE_TABLE[:-300], "cut short"),
    "a gzip file without its end": (WHOLE_TABLE[:-4], "cut short"),
    "a gzip file of one byte": (WHOLE_TABLE[:1], "gzip"),
    "not gzip": (GOOD.encode(), "gzip"),
    "a wrong checksum": (WHOLE_TABLE[:-8] + bytes(8), "gzip"),
    "no bytes": (b"", "is empty"),
    "an empty table": (gzip.compress(b""), "is empty"),
    "blank lines": (gzip.compress(b"\n\n"), "is empty"),
    "a header alone": (table(), "no rows"),
    "a word": (table("1,2,x,4,0", "1,2,3,4,1"), "line 2, column 'c' has 'x'"),
    "an empty cell": (table("1,2,3,4,0", "1,,3,4,1"), "line 3, column 'b' has ''"),
    "a cell below a blank line": (table("1,2,3,4,0", "", "1,2,3,inf,1"), "line 4, column 'd' has 'inf'"),
    "a missing value": (table("nan,2,3,4,0", "1,2,3,4,1"), "line 2, column 'a' has 'nan'"),
    "a short line": (table("1,2,3,4,0", "1,2,3,1"), "line 3 has 4 cells"),
    "no target": (gzip.compress(GOOD.replace("target", "kind").encode()), "'kind', not 'target'"),
    "a target alone": (gzip.compress(b"target\n0\n1\n"), "no feature"),
    "one class": (table(*["1,2,3,4,0"] * 9), "one class, '0'"),
    "no text": (gzip.compress(bytes(range(256))), "UTF-8"),
}
ARRAYS = {
    "junk": (b"junk" * 99, "NumPy"),
    "no bytes": (b"", "NumPy"),
    "a zip file cut short": (WHOLE[:-200], "NumPy"),
    "a damaged member": (UNCOMPRESSED.getvalue().replace(X[7:9].tobytes(), X[8:10].tobytes()), "NumPy"),
    "one array alone": (b"\x93NUMPY" + b"\0" * 9, "NumPy"),
    "objects": (zipped(X=np.array([{}, {}], dtype=object), y=y), "NumPy"),
    "no labels": (zipped(X=X), "no array 'y'"),
    "no features": (zipped(features=X, y=y), "no array 'X'"),
    "no scale": (zipped(q=X, y=y), "no array 'scale'"),
    "too few labels": (zipped(X=X, y=y[:-1]), "60 rows of features and 59 labels"),
    "features in a line": (zipped(X=X[0], y=y[:10]), "two dimensions"),
    "words": (zipped(X=np.full((60, 2), "x"), y=y), "numbers"),
    "a missing value": (zipped(X=np.where(X == 7, np.nan, X), y=y), "finite"),
    "one class": (zipped(X=X, y=np.zeros(60)), "one class"),
}


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RISKBAYES_DATA", raising=False)

    def offline(**_):
        raise AssertionError("asked the network")

    monkeypatch.setattr(datasets, "fetch_openml", offline)
    return lambda *arguments: CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


@pytest.fixture
def no_fits(monkeypatch):
    def run_job(*_):
        raise AssertionError("fitted before it looked")

    monkeypatch.setattr(fitting.Reproduction, "run_job", run_job)


def refused(result, *words):
    """One sentence on standard error, exit status 2, and no word of Python's."""
    assert result.exit_code == 2, (result.output, result.exception)
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("Error: ")
    for word in words:
        assert str(word) in result.stderr
    for foreign in ("Traceback", "Aborted", "Errno", "Cannot write"):
        assert foreign not in result.stderr


@pytest.mark.parametrize("fault", TABLES)
def test_tables(command, no_fits, tmp_path, fault):
    content, words = TABLES[fault]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "iris.csv.gz").write_bytes(content)
    result = command("--data-dir", "data", "--sets", "iris", "--splits", 1, "--jobs", 1)
    refused(result, "data/iris.csv.gz", words)
    with pytest.raises(ExperimentError, match=r"iris\.csv\.gz"):
        datasets.load_csv("iris", tmp_path / "data")


@pytest.mark.parametrize("fault", ARRAYS)
def test_arrays(command, no_fits, tmp_path, fault):
    content, words = ARRAYS[fault]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mnist.npz").write_bytes(content)
    result = command("--data-dir", "data", "--sets", "mnist", "--splits", 1, "--jobs", 1)
    refused(result, "data/mnist.npz", words)


def load_features(name, folder):
    return datasets.load(name, folder).X


def test_no_cut_and_no_damage_gets_through(tmp_path):
    """Cut or changed at any place, a file is refused by name or gives the rows that were written."""
    rng = np.random.default_rng(0)
    named = []
    for ending, content, expected in (("iris.csv.gz", WHOLE_TABLE, IRIS[:, :-1]), ("mnist.npz", WHOLE, X)):
        load = partial(load_features, ending.split(".")[0], tmp_path)
        for _ in range(150):
            place = int(rng.integers(len(content)))
            damaged = bytearray(content)
            damaged[place] ^= int(rng.integers(1, 256))
            for wrong in (content[:place], bytes(damaged)):
                (tmp_path / ending).write_bytes(wrong)
                try:
                    found = load()
                except ExperimentError as error:
                    named.append(ending in str(error))
                else:
                    np.testing.assert_array_equal(found, expected)  # a byte of the header may not matter
    assert len(named) > 400
    assert all(named)


def test_the_first_bad_file_is_found_before_any_fit(command, no_fits, tmp_path):
    (tmp_path / "iris.csv.gz").write_bytes(WHOLE_TABLE)
    (tmp_path / "vehicle.csv.gz").write_bytes(WHOLE_TABLE[:-99])
    refused(command("--data-dir", tmp_path, "--sets", "iris,vehicle"), "vehicle.csv.gz", "cut short")


def test_a_folder_in_place_of_a_data_file(command, no_fits, tmp_path):
    (tmp_path / "iris.csv.gz").mkdir()
    (tmp_path / "mnist.npz").mkdir()
    for name, file in (("iris", "iris.csv.gz"), ("mnist", "mnist.npz")):
        refused(command("--data-dir", tmp_path, "--sets", name), file, "is a folder")


def test_a_folder_in_place_of_the_table(command, no_fits, tmp_path):
    (tmp_path / "iris.csv.gz").write_bytes(WHOLE_TABLE)
    (tmp_path / "results" / "results.csv").mkdir(parents=True)
    refused(command("--data-dir", tmp_path, "--sets", "iris"), "results/results.csv", "is a folder")
    refused(command("report", "results"), "results/results.csv", "is a folder")


def test_a_folder_in_place_of_the_page(command, no_fits, tmp_path):
    (tmp_path / "iris.csv.gz").write_bytes(WHOLE_TABLE)
    (tmp_path / "there" / "index.html").mkdir(parents=True)
    found = command("--out", "there", "--data-dir", ".", "--sets", "iris")
    refused(found, "there/index.html", "is a folder")


@pytest.mark.parametrize("content", ["", HEAD, HEAD + "iris,0,nb,ml,gd,held-o"])
def test_a_table_without_results(command, tmp_path, content):
    (tmp_path / "results.csv").write_text(content)
    refused(command("report", tmp_path), tmp_path, "riskbayes reproduce")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"other,columns\n1,2\n"])
def test_a_table_of_something_else(command, tmp_path, content):
    (tmp_path / "results.csv").write_bytes(content)
    refused(command("report", tmp_path), tmp_path / "results.csv")


def test_a_documentation_page_that_is_no_text(command, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "page.md").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "results.csv").write_text(HEAD)
    refused(command("report", tmp_path, "--doc", "page.md"), "page.md", "UTF-8")


def test_a_folder_without_data_sets(command, no_fits, monkeypatch, tmp_path):
    """No other copy of iris stands in for the one that was asked for."""
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "iris.csv").write_text(GOOD)
    refused(command("--data-dir", "nothing", "--sets", "iris"), "'nothing'", "iris.csv.gz")
    refused(command("--data-dir", "nothing"), "'nothing'", "iris.csv.gz")
    monkeypatch.setenv("RISKBAYES_DATA", "nothing")
    refused(command("--sets", "iris"), "'nothing'", "iris.csv.gz")
    monkeypatch.setenv("RISKBAYES_DATA", "nowhere")
    refused(command("--sets", "iris"), "'nowhere' does not exist")


def test_what_the_folder_lacks_comes_from_openml_in_a_line_or_not_at_all(command, monkeypatch, tmp_path):
    (tmp_path / "vehicle.csv.gz").write_bytes(WHOLE_TABLE)

    def unreachable(**_):
        raise OSError("no route")

    monkeypatch.setattr(datasets, "fetch_openml", unreachable)
    with pytest.raises(datasets.Missing, match="iris"):
        datasets.load("iris", tmp_path)
    monkeypatch.setattr(datasets, "load_openml", lambda _: datasets.DataSet(X, y, "OpenML"))
    monkeypatch.setattr(fitting.Reproduction, "make_jobs", lambda *_: [])
    result = command("--data-dir", tmp_path, "--sets", "iris,vehicle")
    assert f"From OpenML, since {str(tmp_path)!r} lacks it: iris" in result.stderr


def test_bench_names_the_file_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "magic.csv.gz").write_bytes(WHOLE_TABLE[:-99])
    result = CliRunner().invoke(main, ["bench", "--quick", "--only", "5", "--data-dir", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "magic.csv.gz is cut short" in result.stdout


def test_an_image_cut_short(tmp_path, monkeypatch):
    Image = pytest.importorskip("PIL.Image", reason="pillow reads the images")
    from riskbayes_paper import features

    (tmp_path / "images" / "red").mkdir(parents=True)
    target = tmp_path / "images" / "red" / "one.png"
    Image.effect_noise((64, 64), 50.0).save(target)
    target.write_bytes(target.read_bytes()[:-500])
    (tmp_path / "images" / "red" / "two.png").write_bytes(b"no image")
    network = features.Network("stub", lambda images: images.mean(axis=(2, 3)))
    monkeypatch.setattr(features, "resnet18", lambda device: network)
    arguments = ["reproduce", "features", str(tmp_path / "images"), "--out", str(tmp_path / "x.npz")]
    refused(CliRunner().invoke(main, arguments), target)
    target.unlink()
    refused(CliRunner().invoke(main, arguments), "two.png")


def test_without_matplotlib_nothing_is_fitted(command, no_fits, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "iris.csv.gz").write_bytes(WHOLE_TABLE)
    result = command("--data-dir", tmp_path, "--sets", "iris")
    assert result.exit_code == 1
    assert result.stderr == 'Error: Pictures need matplotlib: pip install "riskbayes[plot]"\n'
