"""`fit`, `predict`, `explain`, `sample`, `inspect`: what they print and write, and how they refuse."""

import csv
import gzip
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import riskbayes
import riskbayes.plotting
from riskbayes.cli import main

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from riskbayes.commands import _group  # noqa: E402
from riskbayes.commands._group import ORDER, added_commands  # noqa: E402
from riskbayes.input.files import UserError  # noqa: E402
from riskbayes.input.files.table import open_table  # noqa: E402

ROOT = Path(__file__).parents[2]
SCRIPT = "from riskbayes.entry import main; main()"


def people(m=200, seed=0):
    """A table of numbers, text, missing cells, an identifier, and a target that depends on two columns."""
    rng = np.random.default_rng(seed)
    age, town = rng.integers(18, 80, m), rng.choice(["Bonn", "Köln", "Paris, TX"], m)
    y = np.where(rng.random(m) < 1 / (1 + np.exp(-(age - 50) / 8 - 2 * (town == "Bonn"))), "yes", "no")
    rows = [["id", "age", "town", "score", "answer"]]
    for i in range(m):
        score = "" if rng.random() < 0.1 else f"{rng.normal(age[i] / 10, 1):.3f}"
        rows.append([f"p{i:04d}", str(age[i]), town[i], score, y[i]])
    return rows


def text_of(rows, delimiter=",", ending="\n"):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator=ending).writerows(rows)
    return file.getvalue()


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments, **more: CliRunner().invoke(main, [str(a) for a in arguments], **more)


@pytest.fixture
def fitted(run, tmp_path):
    """A folder with people.csv and a model of it."""
    (tmp_path / "people.csv").write_text(text_of(people()), encoding="utf-8")
    assert run("fit", "people.csv", "--target", "answer", "-o", "m.rb").exit_code == 0
    return run


def refused(result, *words):
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert all(word in result.stderr for word in words), result.stderr


def test_every_command_is_found_by_its_file_and_has_help(run):
    names = main.list_commands(None)
    files = {path.stem for path in (Path(riskbayes.__file__).parent / "commands").glob("[!_]*.py")}
    assert set(names) == files | set(added_commands())
    assert [name for name in names if name in ORDER] == [name for name in ORDER if name in names]
    for name in names:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert "--debug" in result.stdout


@pytest.fixture
def added(tmp_path, monkeypatch):
    """A package, as pip installs it, that adds commands: one that works, one broken, one of our name."""
    source = """
import click
from riskbayes.input.files import UserError

@click.command()
@click.argument("name")
def greet(name):
    "Say hello."
    if name == "nobody":
        raise UserError("There is nobody to greet.")
    click.echo(f"Hello {name}")
"""
    entries = "[riskbayes.commands]\ngreet = greeting:greet\nbroken = greeting:gone\nfit = greeting:greet\n"
    (tmp_path / "greeting.py").write_text(source)
    (tmp_path / "greeting-1.dist-info").mkdir()
    (tmp_path / "greeting-1.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: greeting\nVersion: 1\n"
    )
    (tmp_path / "greeting-1.dist-info/entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(tmp_path)
    added_commands.cache_clear()
    yield
    added_commands.cache_clear()


def test_a_package_adds_a_command_by_an_entry_point(run, added):
    from click.shell_completion import ShellComplete

    shown = run("--help").stdout
    assert re.search(r"^  greet +Say hello\.$", shown, re.MULTILINE)
    assert run("greet", "you").stdout == "Hello you\n"
    refused(run("greet", "nobody"), "There is nobody to greet.")
    assert isinstance(run("greet", "nobody", "--debug").exception, UserError)
    complete = ShellComplete(main, {}, "riskbayes", "_RISKBAYES_COMPLETE")
    assert [c.value for c in complete.get_completions([], "gr")] == ["greet"]


def test_a_package_replaces_no_command_and_breaks_none(run, added):
    assert "--target" in run("fit", "--help").stdout
    assert re.search(r"^  broken +\(cannot be imported\)$", run("--help").stdout, re.MULTILINE)
    result = run("broken", "file.csv", "--some", "option")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "greeting cannot be imported" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["reproduce", "bench"])
def test_without_the_package_of_the_paper_its_commands_say_how_to_install_it(run, monkeypatch, name):
    from click.shell_completion import ShellComplete

    monkeypatch.setattr(_group, "added_commands", dict)
    assert f"  {name}" not in run("--help").stdout
    for arguments in ([name], [name, "--help"], [name, "--quick"]):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert len(result.stderr.splitlines()) == 1
        assert "pip install ./paper" in result.stderr
    complete = ShellComplete(main, {}, "riskbayes", "_RISKBAYES_COMPLETE")
    for typed in (name, "no_such_command"):  # a shell shows no traceback
        assert name not in [c.value for c in complete.get_completions([typed], "")]


HEAVY = {"numpy", "sklearn", "pyarrow", "scipy", "rich", "pandas"}


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"], ["completion", "zsh"]])
def test_help_imports_nothing_that_is_slow(arguments):
    told = f"sys.stderr.write(str(sorted({HEAVY} & set(sys.modules))))"
    script = f"import sys, atexit\natexit.register(lambda: {told})\n"
    done = subprocess.run(
        [sys.executable, "-c", script + SCRIPT, *arguments], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0
    assert done.stderr == "[]"


def environment():
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "RB_STUB": ""}


def test_fit_says_what_it_did(run, tmp_path):
    rows = people()
    data = text_of(rows).encode()
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(data))
    result = run("fit", "people.csv.gz", "--target", "answer", "-o", "some/m.rb", "--json", "--seed", 3)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sha256"] == hashlib.sha256((tmp_path / "people.csv.gz").read_bytes()).hexdigest()
    assert found["rows"] == 200
    assert found["kinds"] == {"id": "text", "age": "number", "town": "text", "score": "number"}
    labels = [row[-1] for row in rows[1:]]
    assert found["classes"] == {"no": labels.count("no"), "yes": labels.count("yes")}
    assert found["settings"] == {"random_state": 3, "strategy": "single"}
    assert found["versions"]["riskbayes"] == riskbayes.__version__
    assert 0 < found["held_out"]["error"] < found["held_out"]["majority_error"] < 0.5
    clf = riskbayes.load(tmp_path / "some/m.rb")
    assert list(clf.classes_) == ["no", "yes"]
    assert run("fit", "people.csv.gz", "--target", "answer").stdout.splitlines()[-1] == "The model: model.rb"


def test_fit_leaves_rows_without_a_target_out_and_says_so(run, tmp_path):
    rows = people()
    # What such rows hold, here words among numbers, decides nothing about the columns.
    holes = [[f"q{i}", f"Total {i}", "Rome", "1e9", cell] for i, cell in enumerate(["", "NA", "?", "None"])]
    for name, table in (("a.csv", rows), ("b.csv", rows[:9] + holes + rows[9:])):
        (tmp_path / name).write_text(text_of([row[1:] for row in table]) + ",,,\n" * (name == "b.csv"))
        result = run("fit", name, "--target", "answer", "-o", f"{name}.rb")
        assert result.exit_code == 0, result.output
    assert "RB028 rows without a target: 5 of 205 rows" in " ".join(result.stdout.split())
    assert "RB028" in run("inspect", "b.csv.rb").stdout
    X = open_table("a.csv").drop_columns(["answer"])
    one, other = (riskbayes.load(f"{name}.csv.rb").predict_proba(X) for name in "ab")
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("weight", [False, True])
def test_held_out_figures_are_those_of_scikit_learn(run, tmp_path, weight):
    """The same folds and fits by hand, and scikit-learn's metrics; with weights, the baseline's too."""
    from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    rows = people(400)
    w = np.array([20.0 if row[-1] == "no" else 1.0 for row in rows[1:]]) if weight else np.ones(400)
    table = [[*rows[0], "w"], *([*row, f"{one:g}"] for row, one in zip(rows[1:], w, strict=True))]
    (tmp_path / "people.csv").write_text(text_of(table), encoding="utf-8")
    result = run(
        "fit", "people.csv", "--target", "answer", "--model", "mixednb", "--learner", "closed_form",
        "--drop", "id", *(("--weight", "w") if weight else ("--drop", "w")), "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    table = open_table("people.csv", ["answer"])
    y = np.array(table["answer"].to_pylist())
    X = table.drop_columns(["id", "answer", "w"]).to_pandas()
    p, always, areas = np.zeros(400), np.zeros(400, dtype=bool), []
    for kept, held in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        clf = riskbayes.MixedNB(learner="closed_form").fit(X.iloc[kept], y[kept], sample_weight=w[kept])
        p[held] = clf.predict_proba(X.iloc[held])[:, 1]
        always[held] = w[kept][y[kept] == "yes"].sum() > w[kept].sum() / 2
        areas.append(roc_auc_score(y[held] == "yes", p[held], sample_weight=w[held]))
    truth = y == "yes"
    expected = {
        "rows": 400,
        "error": 1 - accuracy_score(truth, p > 0.5, sample_weight=w),
        "majority_error": 1 - accuracy_score(truth, always, sample_weight=w),
        "log_loss": log_loss(truth, p, sample_weight=w),
        "brier": brier_score_loss(truth, p, sample_weight=w),
        "auc": np.mean(areas),
    }
    assert always.any() != weight  # most rows say yes, most of the weight says no
    assert json.loads(result.stdout)["held_out"] == pytest.approx(expected)
    words = f"{expected['error']:.2%} of 400 rows"
    assert (f"{words}, by 'w'" in run("inspect", "model.rb").stdout) == weight


@pytest.mark.parametrize("m", [90, 2100])
def test_fit_and_compare_hold_out_the_same_rows(run, tmp_path, m):
    rng = np.random.default_rng(0)
    lines = [f"{x:.3f},{c},{'yes' if x + rng.normal() > 0 else 'no'}" for x, c in zip(
        rng.normal(size=m), rng.choice(["red", "blue"], m), strict=True
    )]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(["x,colour,answer", *lines]), encoding="utf-8")
    given = ("t.csv", "--target", "answer", "--seed", 4, "--json")
    fitted = json.loads(run("fit", *given, "--model", "mixednb", "--learner", "closed_form").stdout)
    compared = json.loads(run("compare", *given).stdout)
    scores = next(c["scores"] for c in compared["contenders"] if c["name"] == "MixedNB, closed form")
    held = fitted["held_out"]
    assert held["rows"] == compared["split"]["test_rows"]
    assert 100 * held["error"] == pytest.approx(scores["error"]["value"])
    for name in ("log_loss", "brier", "auc"):
        assert held[name] == pytest.approx(scores[name]["value"])


def test_weights_count_as_repeated_rows(run, tmp_path):
    rows = people(60)
    twice = [rows[0], *(row for row in rows[1:] for _ in range(1 + int(row[1]) % 2))]
    weighted = [[*rows[0], "w"], *([*row, str(1 + int(row[1]) % 2)] for row in rows[1:])]
    (tmp_path / "twice.csv").write_text(text_of(twice), encoding="utf-8")
    (tmp_path / "weighted.csv").write_text(text_of(weighted), encoding="utf-8")
    model = (
        "--target",
        "answer",
        "--model",
        "MixedNB",
        "--learner",
        "closed_form",
        "--no-held-out",
        "--drop",
        "id",
    )
    assert run("fit", "twice.csv", *model, "-o", "a.rb").exit_code == 0
    assert run("fit", "weighted.csv", *model, "--weight", "w", "-o", "b.rb").exit_code == 0
    a, b = (run("predict", m, "weighted.csv").stdout for m in ("a.rb", "b.rb"))
    a, b = (np.array([line.split(",")[-1] for line in text.splitlines()[1:]], float) for text in (a, b))
    np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_predict_keeps_the_file_and_adds_what_the_model_says(
    fitted, tmp_path, delimiter, ending, monkeypatch
):
    rows = people(300, seed=1)
    rows[7][2] = 'a "new"\ntown'
    rows[8][2] = ""
    given = text_of(rows, delimiter, ending)
    (tmp_path / "new.csv").write_bytes(given.encode("utf-8-sig"))
    result = fitted("predict", "m.rb", "new.csv", "-o", "out.csv", "--json")
    assert result.exit_code == 0, result.output
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        found = list(csv.reader(file, delimiter=delimiter))
    assert [row[:5] for row in found] == rows
    assert found[0][5:] == ["predicted", "p_no", "p_yes"]
    clf = riskbayes.load("m.rb")
    X = open_table("new.csv").drop_columns(["answer"])
    np.testing.assert_allclose(
        np.array([row[6:] for row in found[1:]], float), clf.predict_proba(X), rtol=1e-12
    )
    labels = [row[5] for row in found[1:]]
    assert labels == clf.predict(X).tolist()
    told = json.loads(result.stdout)
    assert told["rows"] == 300
    assert told["predicted"] == {label: labels.count(label) for label in ("no", "yes")}
    from riskbayes.input.files import blocks

    monkeypatch.setattr(blocks, "BLOCK", 1000)
    assert fitted("predict", "m.rb", "new.csv", "-o", "again.csv").exit_code == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


@pytest.mark.parametrize("most", [1, 64])
def test_the_posteriors_of_a_batch_are_bounded(fitted, monkeypatch, most):
    """However many classes there are; what is written is the same."""
    from riskbayes.commands import _predicting

    write, sizes = _predicting.write, []

    def seen(output, batch, predicted, P, what):
        sizes.append(P.size)
        write(output, batch, predicted, P, what)

    monkeypatch.setattr(_predicting, "write", seen)
    pq.write_table(open_table("people.csv", ["answer"]), "people.parquet")
    for data in ("people.csv", "people.parquet"):
        found = {}
        for cells in (2**22, most):
            sizes.clear()
            monkeypatch.setattr(_predicting, "MOST_CELLS", cells)
            assert fitted("predict", "m.rb", data, "-o", "out.parquet", "--force").exit_code == 0
            assert max(sizes) <= max(cells, 2)
            found[cells] = pq.read_table("out.parquet")
        whole, parts = found.values()
        added = ["p_no", "p_yes"]
        assert parts.drop_columns(added).equals(whole.drop_columns(added))
        for name in added:
            np.testing.assert_allclose(parts[name], whole[name], rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "told"), [("True False", True), ("Ja Nein", True), ("ja vielleicht", False)]
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_in_other_words_than_those_of_training_is_named(run, monkeypatch, words, told, ending):
    """A Parquet file of yes and no in words, and a file that has them in others, but for its first rows."""
    monkeypatch.setattr("riskbayes.input.files.batches.MOST_ROWS", 50)
    rng = np.random.default_rng(0)
    flag, x = rng.random(200) < 0.5, rng.normal(size=200)
    table = pa.table({"x": x, "smoker": np.where(flag, "ja", "nein"), "y": np.where(flag, "a", "b")})
    pq.write_table(table, "t.parquet")
    made = run("fit", "t.parquet", "--target", "y", "-o", "m.rb", "--model", "mixednb", "--no-held-out")
    assert made.exit_code == 0, made.output
    other = np.where(flag, *words.split()).astype(object)
    other[:60] = None
    new = pa.table({"x": x, "smoker": pa.array(other, pa.string())})
    pq.write_table(new, "new.parquet") if ending == "parquet" else new.to_pandas().to_csv(
        "new.csv", index=False
    )
    done = run("predict", "m.rb", f"new.{ending}")
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines() == told * [
        "RB015 unseen categories: Column 'smoker' has none of the words of training, such as 'ja'; those "
        f"that it has, such as {str(other[60])!r}, count as missing."
    ]


def test_predict_from_and_to_parquet(fitted, tmp_path):
    table = open_table("people.csv", ["answer"])
    pq.write_table(table, "people.parquet", row_group_size=64)
    assert fitted("predict", "m.rb", "people.parquet", "-o", "a.parquet").exit_code == 0
    assert fitted("predict", "m.rb", "people.csv", "-o", "b.parquet").exit_code == 0
    assert fitted("predict", "m.rb", "people.parquet", "-o", "c.csv").exit_code == 0
    a, b, c = (
        pq.read_table("a.parquet"),
        pq.read_table("b.parquet"),
        open_table("c.csv", ["answer", "predicted"]),
    )
    assert a.drop_columns(["predicted", "p_no", "p_yes"]).equals(table)
    assert a.column_names == b.column_names == c.column_names
    for name in ("predicted", "p_yes", "town", "score"):
        assert a[name].to_pylist() == b[name].to_pylist() == c[name].to_pylist()


def test_predict_columns_in_another_order_and_what_is_added(fitted, tmp_path):
    table = open_table("people.csv", ["answer"])
    some = table.select(["town", "score", "id", "age"])
    pq.write_table(some, "some.parquet")
    both = fitted("predict", "m.rb", "some.parquet").stdout
    labels = fitted("predict", "m.rb", "some.parquet", "--labels-only").stdout
    sure = fitted("predict", "m.rb", "some.parquet", "--probabilities").stdout
    first = [next(csv.reader([text.splitlines()[0]])) for text in (both, labels, sure)]
    assert first == [
        [*some.column_names, "predicted", "p_no", "p_yes"],
        [*some.column_names, "predicted"],
        [*some.column_names, "p_no", "p_yes"],
    ]
    assert fitted("predict", "m.rb", "people.csv").stdout.count("\n") == 201


def test_predict_reads_a_pipe(fitted, tmp_path):
    data = (tmp_path / "people.csv").read_bytes()
    assert fitted("predict", "m.rb", "-", input=data).stdout == fitted("predict", "m.rb", "people.csv").stdout


def test_a_decimal_comma_stays_one(run, tmp_path):
    rows = [[cell.replace(".", ",") if j == 3 else cell for j, cell in enumerate(row)] for row in people()]
    (tmp_path / "t.csv").write_text(text_of(rows, ";"), encoding="cp1252")
    assert run("fit", "t.csv", "--target", "answer", "-o", "m.rb").exit_code == 0
    lines = run("predict", "m.rb", "t.csv").stdout.splitlines()
    assert "." not in "".join(line.split(";", 3)[-1] for line in lines)
    p = [float(cell.replace(",", ".")) for cell in lines[1].split(";")[-2:]]
    assert sum(p) == pytest.approx(1)


def test_explain_adds_up_to_the_prediction(fitted):
    result = fitted("explain", "m.rb", "people.csv", "--row", 17, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    parts = sum(part["contribution"] for part in found["contributions"])
    assert found["prior"] + parts == pytest.approx(found["log_odds"])
    p = found["probabilities"]
    assert np.log(p[found["for"]] / p[found["against"]]) == pytest.approx(found["log_odds"])
    cells = {part["column"]: part["value"] for part in found["contributions"]}
    row = people()[1 + 17]  # after the header
    assert [str(cells["age"]), cells["town"]] == row[1:3]
    assert found["not_read"] == ["id"]
    assert "id" not in cells
    sizes = [abs(part["contribution"]) for part in found["contributions"]]
    assert sizes == sorted(sizes, reverse=True)
    turned = json.loads(
        fitted("explain", "m.rb", "people.csv", "--row", 17, "--for", found["against"], "--json").stdout
    )
    assert turned["log_odds"] == pytest.approx(-found["log_odds"])
    turned = json.loads(
        fitted("explain", "m.rb", "people.csv", "--row", 17, "--against", found["for"], "--json").stdout
    )
    assert turned["log_odds"] == pytest.approx(-found["log_odds"])
    shown = fitted("explain", "m.rb", "people.csv", "--row", 17).stdout
    assert all(name in shown for name in ("age", "town", "score", "prior", "Not read by the model: id"))
    refused(fitted("explain", "m.rb", "people.csv", "--row", 200), "has 200 rows")
    refused(fitted("explain", "m.rb", "people.csv", "--row", 1, "--for", "maybe"), "no class 'maybe'")


@pytest.mark.parametrize("r", [2, 3])
def test_explain_and_plot_speak_of_the_same_row_for_the_same_class(run, tmp_path, r):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(r)
    y = rng.integers(r, size=60)
    lines = [["a", "b", "same", "key", "y"]]
    for i, k in enumerate(y):
        key = f"key {i}" if rng.random() < 0.3 + 0.3 * k else ""
        lines.append([f"{rng.normal(k):.3f}", rng.choice(list("uvw"[: 1 + k])), "x", key, f"class {k}"])
    (tmp_path / "t.csv").write_text(text_of(lines), encoding="utf-8")
    assert run("fit", "t.csv", "--target", "y", "-o", "m.rb").exit_code == 0
    clf, table = riskbayes.load("m.rb"), open_table("t.csv").drop_columns(["y"])
    explanation = clf.explain(table)
    for row in (0, 17, 59):
        found = json.loads(run("explain", "m.rb", "t.csv", "--row", row, "--json").stdout)
        display = explanation.plot(row, ax=riskbayes.plotting.new_figure(6, 4).add_subplot())
        assert display.title == f"log-odds of {found['for']!r} against {found['against']!r}"
        assert display.labels[0] == "prior"
        own = [found["prior"], *(part["contribution"] for part in found["contributions"])]
        np.testing.assert_allclose(display.steps, own, rtol=1e-9, atol=1e-12)
        assert [part["column"] for part in found["contributions"]] == [
            label.split(" = ")[0] for label in display.labels[1:]
        ]
        assert r > 2 or found["for"] == "class 1"
        assert found["not_read"] == ["same"]
        cells = {part["column"]: part["value"] for part in found["contributions"]}
        assert cells["key"] == ("not missing" if lines[1 + row][3] else None)
    refused(run("explain", "m.rb", "t.csv", "--row", 60), "no row 60")


@pytest.mark.parametrize(("strategy", "shape"), [("neighbours", (200, 9)), ("glass", (800, 3))])
def test_explain_tells_of_every_strategy(run, tmp_path, strategy, shape):
    A = np.random.default_rng(0).uniform(0.0, 3.0, size=shape)
    b = (A[:, 0].astype(int) + A[:, 1].astype(int)) % 2  # a matter of two columns together
    rows = [[*(f"{x:.3f}" for x in row), f"class {k}"] for row, k in zip(A, b, strict=True)]
    lines = [[*"abcdefghi"[: shape[1]], "y"], *rows]
    (tmp_path / "t.csv").write_text(text_of(lines), encoding="utf-8")
    options = ("--strategy", strategy, "--no-held-out")
    assert run("fit", "t.csv", "--target", "y", "-o", "m.rb", *options).exit_code == 0
    clf, table = riskbayes.load("m.rb"), open_table("t.csv").drop_columns(["y"])
    odds = clf.explain(table[7:8]).log_odds()
    found = json.loads(run("explain", "m.rb", "t.csv", "--row", 7, "--json").stdout)
    assert found["log_odds"] == pytest.approx(clf.decision_function(table[7:8])[0])
    parts = found["contributions"]
    assert found["prior"] + sum(part["contribution"] for part in parts) == pytest.approx(found["log_odds"])
    assert sorted(part["contribution"] for part in parts) == pytest.approx(sorted(odds.values[0]))
    shown = run("explain", "m.rb", "t.csv", "--row", 7).stdout
    assert "prior" in shown
    assert "total" in shown
    if strategy == "neighbours":
        assert all(part["standard_error"] > 0 for part in parts)
        assert f"± {parts[0]['standard_error']:.2f}" in shown
        words = "Shapley values over 32 orders drawn at random; ± is a standard error."
        assert words in " ".join(shown.split())
    else:
        assert "±" not in shown
        pair = next(part for part in parts if part["column"] == "a x b")
        assert pair["value"] == f"{A[7, 0]:.3f} x {A[7, 1]:.3f}"


def test_sample_draws_rows_like_the_table(fitted, tmp_path):
    refused(fitted("sample", "m.rb"), "no density p(x, y) to draw rows from", "--model MixedNB")
    assert (
        fitted("fit", "people.csv", "--target", "answer", "--model", "MixedNB", "-o", "nb.rb").exit_code == 0
    )
    result = fitted("sample", "nb.rb", "-n", 500, "-o", "new.csv", "--seed", 1)
    assert result.exit_code == 0, result.output
    drawn = open_table("new.csv")
    assert drawn.column_names == people()[0]
    assert drawn.num_rows == 500
    assert set(drawn["town"].to_pylist()) == {"Bonn", "Köln", "Paris, TX"}
    assert fitted("sample", "nb.rb", "-n", 500, "--seed", 1).stdout == (tmp_path / "new.csv").read_text(
        "utf-8"
    )
    assert len(json.loads(fitted("sample", "nb.rb", "-n", 3, "--json").stdout)["rows"]) == 3
    # What it draws it can predict, and the classes keep their shares.
    counts = json.loads(fitted("predict", "nb.rb", "new.csv", "-o", "p.csv", "--json").stdout)["predicted"]
    assert sum(counts.values()) == 500


def test_inspect_says_what_is_in_the_file(fitted, tmp_path):
    result = fitted("inspect", "m.rb")
    assert result.exit_code == 0, result.output
    words = ["RiskBayesClassifier", "200 rows", "4 columns", "answer", "held-out error", "an identifier"]
    assert all(word in result.stdout for word in words), result.stdout
    found = json.loads(fitted("inspect", "m.rb", "--json").stdout)
    assert found["about"]["sha256"] == hashlib.sha256((tmp_path / "people.csv").read_bytes()).hexdigest()
    kinds = {column["name"]: column["kind"] for column in found["columns"]}
    assert kinds == {"id": "left out", "age": "number", "town": "category", "score": "number"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("missing.csv", "There is no file"),
        ("empty.csv", "is empty"),
        ("header.csv", "a header and no rows"),
        ("picture.csv", "PNG"),
        ("folder", "no file"),
        ("cut.csv.gz", "cut short"),
        ("mixed.csv", "mixes encodings: line 3"),
        ("wide.csv", "columns"),
        ("ragged.csv", "line 3 has 3 cells"),
        ("holes.csv", "missing in all 3 rows"),
        ("one.csv", "one class only"),
        ("regression.csv", "regression"),
        ("other.csv", "has no column 'answer'"),
        ("twins.csv", "several columns named 'a'"),
        ("nul.csv", "NUL"),
        ("one_column.csv", "no column but the target"),
        ("constant.csv", "No column of X can be used"),
    ],
)
def test_fit_refuses_a_bad_file_in_a_line(run, tmp_path, data, words):
    (tmp_path / "folder").mkdir()
    files = {
        "empty.csv": b"",
        "header.csv": b"a,answer\n",
        "picture.csv": b"\x89PNG\r\n\x1a\n" + bytes(50),
        "cut.csv.gz": gzip.compress(b"a,answer\n" + b"1,x\n2,y\n" * 500)[:-9],
        "mixed.csv": "a,answer\né,x\n".encode() + "é,y\n".encode("latin-1"),
        "wide.csv": b"1," * 10**6 + b"1\n",
        "ragged.csv": b"a,answer\n1,x\n2,y,z\n",
        "holes.csv": b"a,answer\n1,\n2,?\n3,NA\n",
        "one.csv": b"a,answer\n1,x\n2,x\n",
        "regression.csv": b"a,answer\n" + b"".join(b"%d,%d.5\n" % (i, i) for i in range(50)),
        "other.csv": b"a,anwser\n1,x\n2,y\n",
        "twins.csv": b"a,a,answer\n1,2,x\n1,2,y\n",
        "nul.csv": b"a,answer\n1,x\n\x00,y\n",
        "one_column.csv": b"answer\nx\ny\n",
        "constant.csv": b"a,answer\n" + b"k,x\nk,y\n" * 5,
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    refused(run("fit", data, "--target", "answer", "-o", "m.rb"), words)
    assert not (tmp_path / "m.rb").exists()


def test_wrong_usage_is_one_line(run, tmp_path):
    (tmp_path / "t.csv").write_text(text_of(people()), encoding="utf-8")
    refused(run("fit", "t.csv"), "--target", "fit --help")
    refused(run("fitt"), "Did you mean 'fit'?")
    refused(run("fit", "t.csv", "--target", "answer", "--model", "Forest"), "'Forest' is none of")
    refused(run("fit", "t.csv", "--target", "answer", "--model", "qda", "--strategy", "cv"), "--strategy")
    refused(run("fit", "t.csv", "--target", "answer", "--learner", "tm"), "--learner")
    refused(run("fit", "t.csv", "--target", "answer", "--model", "gaussiannb"), "takes numbers")
    refused(run("fit", "t.csv", "--target", "answer", "--drop", "agee"), "Did you mean 'age'?")


def test_predict_refuses_in_a_line(fitted, tmp_path):
    rows = people(20)
    (tmp_path / "no_age.csv").write_text(text_of([[row[0], *row[2:]] for row in rows]), encoding="utf-8")
    refused(fitted("predict", "m.rb", "no_age.csv"), "has no column 'age'")
    (tmp_path / "two.csv").write_text(text_of([row[2:] for row in rows]), encoding="utf-8")
    refused(fitted("predict", "m.rb", "two.csv"), "lacks 2 columns", "'id', 'age'")
    rows[5][1] = "old"
    (tmp_path / "old.csv").write_text(text_of(rows), encoding="utf-8")
    refused(fitted("predict", "m.rb", "old.csv", "-o", "out.csv"), "line 6, column 'age' has 'old'")
    assert not (tmp_path / "out.csv").exists()
    assert list(tmp_path.glob(".*")) == []
    refused(fitted("predict", "none.rb", "people.csv"), "There is no file 'none.rb'")
    refused(fitted("predict", "people.csv", "people.csv"), "people.csv")
    refused(fitted("predict", "m.rb", "people.csv", "-o", "out.xlsx"), ".csv, .tsv or .parquet")
    fitted("predict", "m.rb", "people.csv", "-o", "out.csv")
    refused(fitted("predict", "m.rb", "out.csv", "-o", "again.csv"), "a column 'predicted' already")


def test_a_fault_of_ours_is_one_line_and_debug_shows_it(fitted, monkeypatch):
    from riskbayes.commands import _predicting

    def broken(*_):
        return {}["key"]

    monkeypatch.setattr(_predicting, "predict_file", broken)
    result = fitted("predict", "m.rb", "people.csv")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "KeyError" in result.stderr
    assert "--debug" in result.stderr
    for arguments in (
        ["--debug", "predict", "m.rb", "people.csv"],
        ["predict", "m.rb", "people.csv", "--debug"],
    ):
        assert isinstance(fitted(*arguments).exception, KeyError)


@pytest.mark.parametrize("command", ["fit", "compare", "predict", "explain", "sample"])
def test_without_pyarrow_every_command_names_the_extra(run, monkeypatch, tmp_path, command):
    (tmp_path / "t.csv").write_text("a,answer\n1,x\n2,y\n")
    riskbayes.GaussianNB().fit([[1.0], [2.0], [4.0]], ["x", "y", "y"]).save(tmp_path / "m.rb")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    arguments = {"fit": ["t.csv", "--target", "answer"], "compare": ["t.csv", "--target", "answer"]}
    arguments |= {"sample": ["m.rb", "-o", "drawn.csv"], "explain": ["m.rb", "t.csv", "--row", "0"]}
    result = run(command, *arguments.get(command, ["m.rb", "t.csv"]))
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    assert re.fullmatch(r'Error: .*pyarrow: pip install "riskbayes\[cli\]"\n', result.stderr)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_and_columns(run, tmp_path, shell):
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_RISKBAYES_COMPLETE" in result.stdout
    (tmp_path / "t.csv").write_text("age,answer\n1,x\n2,y\n")
    from click.shell_completion import ShellComplete

    complete = ShellComplete(main, {}, "riskbayes", "_RISKBAYES_COMPLETE")
    assert [c.value for c in complete.get_completions(["fit", "t.csv", "--target"], "a")] == ["age", "answer"]
    assert complete.get_completions(["fit", "none.csv", "--target"], "a") == []
    assert "fit" in [c.value for c in complete.get_completions([], "")]


def test_as_a_process_in_a_pipe(fitted, tmp_path):
    """What ends the reader early is no error of ours; standard output holds the data and nothing else."""
    command = [sys.executable, "-c", SCRIPT, "predict", "m.rb", "big.csv"]
    rows = people(60_000)
    (tmp_path / "big.csv").write_text(text_of(rows), encoding="utf-8")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout.readline() == b"id,age,town,score,answer,predicted,p_no,p_yes\n"
        process.stdout.close()
        errors = process.stderr.read()
    assert errors == b""
    assert (
        b"\x1b"
        not in subprocess.run([*command[:-1], "people.csv"], capture_output=True, env=environment()).stdout
    )


def test_ctrl_c_while_it_predicts(fitted, tmp_path):
    os.mkfifo(tmp_path / "endless")
    command = [sys.executable, "-c", SCRIPT, "predict", "m.rb", "-", "-o", "out.csv"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        process.stdin.write(text_of(people(100_000)).encode())
        process.stdin.flush()
        for _ in range(200):
            if list(tmp_path.glob(".out.csv*")):
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        out, errors = process.stdout.read(), process.stderr.read()
    assert (process.returncode, out, errors) == (130, b"", b"")
    assert not (tmp_path / "out.csv").exists()


def test_the_page_of_the_commands_shows_what_they_print(monkeypatch):
    """All but the digits, which differ from one machine to another in the last places."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import command_page

    def words(text):
        return re.sub(r"[0-9a-f]{20,}|[-+]*[0-9][0-9.,:T%-]*|[-+]+", "", text).split()

    assert words(command_page.page()) == words(command_page.PAGE.read_text(encoding="utf-8"))
