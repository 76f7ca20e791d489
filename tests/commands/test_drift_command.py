"""`drift`: what it prints is what `clf.drift` says of the same rows, and how it refuses."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import riskbayes

pytest.importorskip("pyarrow")

from riskbayes.cli import main
from riskbayes.datasets import load_adult_sample


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of some rows, rows that were held out, and new ones in which one column moved."""
    path = tmp_path_factory.mktemp("drift")
    table = load_adult_sample().drop(columns=["fnlwgt", "capital_gain", "capital_loss"])
    table[:1500].to_csv(path / "train.csv", index=False)
    held = table[1500:2250].copy()
    held.loc[held.index[:3], "income"] = None
    held.to_csv(path / "held.csv", index=False)
    new = table[2250:].drop(columns="income").assign(age=lambda t: t["age"] + 12)
    new.to_csv(path / "new.csv", index=False)
    result = run(path, "fit", "train.csv", "--target", "income", "-o", "m.rb", "--no-held-out")
    assert result.exit_code == 0, result.output
    return path


def run(folder, *arguments):
    """The result of a command in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(main, [str(a) for a in arguments])


def test_the_command_says_what_the_method_says(folder):
    result = run(folder, "drift", "m.rb", "held.csv", "new.csv", "--json")
    found = json.loads(result.stdout)
    clf, table = riskbayes.load(folder / "m.rb"), load_adult_sample()
    held = table[1503:2250]
    new = table[2250:].assign(age=lambda t: t["age"] + 12)
    names = list(clf.feature_names_in_)
    expected = clf.drift(new[names], held[names], held["income"])
    assert found["moved"] == expected.moved == ["age"]
    assert found["verdict"] == "columns"
    assert found["accuracy_without"] == pytest.approx(expected.accuracy_without)
    assert found["priors"] == pytest.approx(dict(zip(clf.classes_, expected.priors, strict=True)))
    for mine, theirs in zip(found["columns"], expected.columns, strict=True):
        assert mine["column"] == theirs.column
        assert mine["p_value"] == pytest.approx(theirs.p_value)
        assert (mine["log_density"] is None) == np.isnan(theirs.log_density)
    shown = run(folder, "drift", "m.rb", "held.csv", "new.csv").stdout
    assert "Column 'age' moved; the class frequencies are the same" in " ".join(shown.split())


def test_the_rows_of_training_are_no_honest_reference(folder):
    result = run(folder, "drift", "m.rb", "train.csv", "new.csv")
    assert "The model was trained on train.csv: its accuracy there is too good." in result.stdout
    assert json.loads(run(folder, "drift", "m.rb", "train.csv", "new.csv", "--json").stdout)["moved"] == [
        "age"
    ]


def test_what_cannot_be_compared_is_refused(folder):
    result = run(folder, "drift", "m.rb", "new.csv", "new.csv")
    assert result.exit_code == 2
    assert "new.csv has no column 'income' for the target" in result.stderr
    text = (folder / "held.csv").read_text().replace("<=50K", "poor")
    (folder / "other.csv").write_text(text)
    result = run(folder, "drift", "m.rb", "other.csv", "new.csv")
    assert "other.csv has the label 'poor' in 'income'; the model knows '<=50K', '>50K'." in result.stderr
    header = text.splitlines()[0]
    (folder / "none.csv").write_text(header + "\n" + ",".join(["1"] * header.count(",")) + ",\n")
    result = run(folder, "drift", "m.rb", "none.csv", "new.csv")
    assert "none.csv has no row with a label in 'income'." in result.stderr
