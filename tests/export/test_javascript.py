"""What node computes of an exported module is what the estimator predicts, for every model with a graph."""

import json
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from made_tables import (
    bundled,
    codes,
    counts,
    dependent,
    dependent_holes,
    mixed,
    numbers,
    with_every_member,
    with_holes,
    with_tables,
)
from riskbayes import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    ConditionalGaussianNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MixedNB,
    MixtureDiscriminantAnalysis,
    MultinomialNB,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
    SmoothNB,
    TreeAugmentedNB,
)
from riskbayes.export import portable, to_javascript, to_json

pytestmark = pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")

DRIVER = """
import { predict, contributions, classes } from "./model.mjs";
import { readFileSync } from "node:fs";
const attempt = (work, row) => { try { return work(row); } catch (error) { return String(error); } };
const rows = JSON.parse(readFileSync(0, "utf8"));
const answers = rows.map((row) => [attempt(predict, row), attempt(contributions, row)]);
console.log(JSON.stringify({ classes, rows: answers }));
"""


@pytest.fixture
def run(tmp_path):
    """Run the module of a classifier on rows; return its classes, and what it says of each row."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here: install it to run what is exported")
    (tmp_path / "driver.mjs").write_text(DRIVER, encoding="utf-8")

    def ran(clf, rows):
        (tmp_path / "model.mjs").write_text(to_javascript(portable(clf)), encoding="utf-8")
        done = subprocess.run(
            [node, "driver.mjs"],
            cwd=tmp_path,
            input=json.dumps(rows),
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.returncode, done.stderr
        found = json.loads(done.stdout)
        return found["classes"], found["rows"]

    return ran


def rows_of(X):
    """Rows as JSON has them: of an array lists, of a data frame objects; null is a missing cell."""
    if not hasattr(X, "columns"):
        return [[None if value != value else value for value in row] for row in np.asarray(X).tolist()]
    plain = X.astype(object).where(X.notna(), None)
    found = plain.to_dict(orient="records")
    return [{k: v.isoformat() if hasattr(v, "isoformat") else v for k, v in row.items()} for row in found]


def hold(run, clf, X, told=True):
    """Hold probabilities and contributions in node against the library, to 1e-9."""
    classes, found = run(clf, rows_of(X))
    assert classes == [str(label) for label in clf.classes_.tolist()]
    P = np.array([[answer[label] for label in classes] for answer, _ in found])
    np.testing.assert_allclose(P, clf.predict_proba(X), atol=1e-9, rtol=0)
    if not told:
        assert all("is no sum over the columns" in words for _, words in found)
        return
    explanation = clf.explain(X)
    values = np.array([[[of["values"][k] for k in classes] for of in own["columns"]] for _, own in found])
    np.testing.assert_allclose(values, explanation.values, atol=1e-9, rtol=1e-9)
    if hasattr(X, "columns"):
        assert [of["name"] for of in found[0][1]["columns"]] == explanation.columns
    prior = [found[0][1]["prior"][k] for k in classes]
    np.testing.assert_allclose(prior, explanation.baseline, atol=1e-9)


OF_NUMBERS = (GaussianNB, SmoothNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis)


@pytest.mark.parametrize("kind", OF_NUMBERS)
def test_numbers(run, kind):
    rng = np.random.default_rng(1)
    X, y = numbers(rng)
    hold(run, kind().fit(X, y), with_holes(X * 1.2, rng))
    gaps = with_holes(X, rng)
    hold(run, kind().fit(gaps, y), gaps)


@pytest.mark.parametrize("kind", [PoissonNB, MultinomialNB, ComplementNB, BernoulliNB])
def test_counts(run, kind):
    X, y = counts(np.random.default_rng(2))
    hold(run, kind().fit(X, y), X)


def test_categories_missing_and_unseen(run):
    rng = np.random.default_rng(3)
    X, y = codes(rng)
    new = np.where(rng.random(X.shape) < 0.1, 9.0, with_holes(X, rng, 0.1))
    hold(run, CategoricalNB().fit(X, y), new)
    hold(run, TreeAugmentedNB().fit(X, y), new, told=False)
    words = pd.DataFrame(
        np.char.add("caf\u00e9 ", X.astype(str)), columns=[f"c{j}" for j in range(X.shape[1])]
    )
    new = words.copy()
    new.iloc[::4, 0] = None
    new.iloc[::5, 1] = "unseen"
    hold(run, CategoricalNB().fit(words, y), new)
    new.iloc[:, 0] = new.iloc[:, 0].str.normalize("NFD")  # what reads the same is the same category
    hold(run, CategoricalNB().fit(words, y), new)


ROWS = {"iris": 75, "wine": 40, "breast_cancer": 20, "digits": 2, "adult": 100}
"""Rows of the bundled tables that node predicts: many columns take long."""


@pytest.mark.parametrize("name", ROWS)
def test_bundled_tables(run, name):
    X, y, new = bundled(name, np.random.default_rng(0))
    hold(run, RiskBayesClassifier("single").fit(X, y), new[: ROWS[name]])
    if name != "digits":
        hold(run, RiskBayesClassifier("glass", cv=2).fit(X, y), new[: ROWS[name]])


def test_a_table_of_all_kinds(run):
    rng = np.random.default_rng(4)
    (df, y), (new, _) = mixed(rng), mixed(rng, 60)
    new.loc[::5, "colour"] = "violet"
    new.loc[::7, ["size", "visits", "level"]] = np.nan
    new["since"] = new["since"] + pd.Timedelta(hours=7, microseconds=123457)
    options = {"categorical_features": ["colour", "level"]}
    for unseen in ("missing", "other"):
        for clf in (
            RiskBayesClassifier("single", unseen=unseen, **options),
            MixedNB(unseen=unseen, **options),
        ):
            hold(run, clf.fit(df, y), new)
    hold(run, clf.with_priors([0.2, 0.2, 0.6]), new)
    hold(run, with_tables(df, y), new)


def test_what_is_no_sum_over_the_columns_travels_too(run):
    rng = np.random.default_rng(5)
    (df, y), (new, _) = mixed(rng), mixed(rng, 40)
    hold(run, RiskBayesClassifier("neighbours").fit(df, y), new, told=False)
    hold(run, with_every_member(df, y), new[:10], told=False)
    X, y = numbers(rng)
    hold(run, MixtureDiscriminantAnalysis(n_components=2).fit(X, y), X, told=False)


def test_a_tree_of_numbers_and_categories(run):
    rng = np.random.default_rng(4)
    X, y = dependent(rng)
    hold(run, ConditionalGaussianNB(missing="informative").fit(X, y), dependent_holes(rng, X), told=False)


def test_a_bad_cell_is_named_and_what_to_do(run):
    df, y = mixed(np.random.default_rng(6))
    clf = RiskBayesClassifier("single").fit(df, y)
    row = rows_of(df.dropna())[0]
    lacking = {name: value for name, value in row.items() if name != "size"}
    bad = [
        (lacking, 'The row has no column "size". Give null'),
        ({**row, "size": "12"}, 'Column "size" holds "12", and the model reads a finite number'),
        ({**row, "colour": 3}, 'Column "colour" holds 3, and the model reads a string'),
        ({**row, "since": "yesterday"}, 'Column "since" holds "yesterday", and the model reads a Date'),
        ({**row, "since": "2024-02-30"}, 'Column "since" holds "2024-02-30"'),
        ({**row, "member": "yes"}, 'Column "member" holds "yes", and the model reads false or true'),
        ([1, 2], "The row has 2 cells, and the model reads 8 columns"),
        (None, "A row is an object"),
    ]
    _, found = run(clf, [row for row, _ in bad])
    for (answer, _), (_, words) in zip(found, bad, strict=True):
        assert words in str(answer)


def test_labels_and_names_that_javascript_would_take_for_its_own(run):
    rng = np.random.default_rng(7)
    X, y = numbers(rng)
    names = ["__proto__", "constructor", "toString", "</script>", "a\u2028b", "x", "y"][: X.shape[1]]
    labels = np.array(["__proto__", "constructor"])[np.minimum(y, 1)]
    df = pd.DataFrame(X, columns=names)
    clf = GaussianNB().fit(df, labels)
    text = to_javascript(portable(clf))
    assert "</script>" not in text
    classes, found = run(clf, rows_of(df)[:5])
    P = np.array([[answer[label] for label in classes] for answer, _ in found])
    np.testing.assert_allclose(P, clf.predict_proba(df[:5]), atol=1e-9)


def test_json_is_what_the_module_holds():
    X, y = numbers(np.random.default_rng(8))
    value = portable(GaussianNB().fit(X, y))
    assert json.loads(to_json(value)) == value
    assert to_json(value).isascii()
    assert to_json(value) in to_javascript(value)
    assert (value["format"], value["layout"]) == ("riskbayes", 1)


def test_columns_are_described():
    df, y = mixed(np.random.default_rng(9))
    df["empty"] = [None if k == "low" else "some text" for k in y]
    found = {own["name"]: own for own in portable(RiskBayesClassifier("single").fit(df, y))["columns"]}
    assert list(found) == list(df.columns)
    kinds = {name: own["kind"] for name, own in found.items()}
    assert kinds["size"] == kinds["visits"] == "number"
    assert (kinds["colour"], kinds["member"], kinds["since"]) == ("category", "category", "date")
    assert (kinds["note"], kinds["branch"]) == ("mark", "left out")
    assert found["colour"]["categories"] == ["blue", "green", "grey", "red"]
    assert found["member"]["categories"] == [False, True]
    assert (found["size"]["low"], found["size"]["high"]) == (df["size"].min(), df["size"].max())
    assert (found["size"]["whole"], found["level"]["whole"]) == (False, True)
