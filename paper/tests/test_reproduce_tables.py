"""Tables of made-up results, whose figures can be checked by hand."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest

from html_checks import as_html, checked
from riskbayes.pages.table import plain
from riskbayes_paper import published, tables
from riskbayes_paper.datasets import PAPER_SETS, STAND_IN
from riskbayes_paper.longtable import LongTable
from riskbayes_paper.paper_tables import only_in_train
from riskbayes_paper.protocols import LEARNERS, Unit, plan
from riskbayes_paper.published import PAPER_TABLES
from riskbayes_paper.report import all_tables
from riskbayes_paper.results import Results, Setting
from riskbayes_paper.rows import COLUMNS, Row

QDA = Setting("qda", "ml", "held-out")


def row(unit, wrong, soft=(0.5, 0.4), train=0.1, stand_in=""):
    """A result: so many of 100 test rows wrong in the end."""
    path = (wrong,) * len(soft)
    return Row(
        unit,
        **{"m": 400, "n": 3, "classes": 2, "source": "folder", "stand_in": stand_in, "n_test": 100},
        **{"train_error": train, "status": "max_iter", "scans": 1, "seconds": 0.1, "engine": "memory"},
        **{"version": "0", "finished": "now", "settings": f"X({unit.learner})", "soft_error": soft},
        test_wrong=path,
    )


def made_up(sets=("sonar", "mnist"), splits=2):
    """Errors that follow from the learner, the protocol and the split."""
    learners = list(LEARNERS)
    rows = []
    for unit in plan(list(sets), splits, ["nb", "qda"], ["ml", "map"], learners, ["held-out", "in-train"]):
        wrong = 3 * learners.index(unit.learner) + (20 if unit.protocol == "held-out" else 0) + unit.split
        soft = np.linspace(0.5, 0.1 + 0.01 * learners.index(unit.learner), 5 + 20 * (unit.split + 1))
        stand_in = STAND_IN if PAPER_SETS[unit.set].images else ""
        rows.append(row(unit, wrong, tuple(soft.tolist()), wrong / 200, stand_in))
    return rows


def write_table(path, rows):
    with LongTable(path, COLUMNS) as table:
        table.append(row.to_record() for row in rows)


@pytest.fixture(scope="module")
def results():
    return Results(made_up())


def one(learner, split, wrong, soft=(0.5, 0.4)):
    return row(Unit("sonar", split, *QDA[:2], learner, QDA.protocol), wrong, soft)


def test_reach_and_iterations():
    rows = [one("rc_paper", 0, 5, (0.5, 0.4, 0.3)), one("gd", 0, 5, (0.5, 0.4))]
    assert Results(rows).reach("sonar", QDA, "rc_paper", "gd") == 2
    assert Results(rows).iterations("sonar", QDA, "rc_paper").tolist() == [3]
    rows += [one("rc_paper", 1, 5, (0.3,)), one("gd", 1, 5, (0.3,))]  # equal counts as reached
    assert Results(rows).reach("sonar", QDA, "rc_paper", "gd") == 1.5
    rows += [one("rc_paper", 2, 5, (0.5, 0.4)), one("gd", 2, 5, (0.5, 0.2))]
    assert Results(rows).reach("sonar", QDA, "rc_paper", "gd") is None
    assert Results(rows).reach("sonar", QDA, "rc_paper", "dfe") is None


@pytest.mark.parametrize(("rc", "verdict"), [((4, 6), "equal"), ((4, 5), "better"), ((5, 6), "worse")])
def test_differences(rc, verdict):
    rows = [one("rc", s, w) for s, w in enumerate(rc)] + [one("gd", s, 5) for s in range(2)]
    gap = Results(rows).difference("sonar", QDA, "rc", "gd")
    assert gap.verdict == verdict
    assert gap.mean == pytest.approx(np.mean(rc) - 5)
    assert gap.standard_error == pytest.approx(np.std(np.subtract(rc, 5), ddof=1) / np.sqrt(2))
    alone = Results([one("rc", 0, 4), one("gd", 0, 5), one("gd", 1, 9)]).difference("sonar", QDA, "rc", "gd")
    assert alone.mean == pytest.approx(-1)
    assert np.isnan(alone.standard_error)


def test_ranks():
    rows = [one("closed_form", 0, 5), one("rc_paper", 0, 3), one("gd", 0, 5)]
    assert Results(rows).ranks(QDA, ["closed_form", "rc_paper", "gd"]).tolist() == [[2.5, 1, 2.5]]
    assert Results(rows).ranks(QDA, ["closed_form", "tm"]).shape == (0, 2)


def test_coverage_and_labels(results):
    assert results.coverage.startswith(
        "2 of 20 data sets; SqueezeNet stand-in: mnist; missing: iris, climate_model"
    )
    assert results.label("mnist") == "mnist (SqueezeNet stand-in)"
    assert results.label("sonar") == "sonar"


def test_printed_figures():
    assert published.figure("qda_ml", "sonar", "rc", "test_error_pct") == 0
    assert published.figure("nb_ml", "iris", "rc", "reach") == 6.2
    assert published.figure("nb_ml", "iris", "closed_form", "iter") is None
    assert published.rank("nb_ml", "rc", "test") == 1.32
    assert published.counts("qda_ml", "gd", "test") == "16 / 3 / 1"
    assert published.counts("qda_ml", "tm", "test") == ""
    assert {line["dataset"] for line in published.read("results")} == set(PAPER_SETS)
    assert {line["table"] for line in published.read("results")} == set(PAPER_TABLES)


def test_ranks_and_counts_are_those_of_the_paper():
    source = Path(__file__).parents[3] / "shared" / "paper" / "risk-based-calibration.tex"
    if not source.exists():
        pytest.skip("needs the source of the paper")
    tex = source.read_text(encoding="utf-8")
    ranks = re.findall(
        r"\\textbf\{avg\.\} & ([\d.]+) & ([\d.]+) & ([\d.]+) & ([\d.]+) & - & ([\d.]+) & ([\d.]+)", tex
    )
    ours = [float(line[part]) for line in published.read("ranks") for part in ("train_rank", "test_rank")]
    assert sorted(ours) == sorted(float(rank) for line in ranks for rank in line)
    counted = re.findall(r"^\s*(?:Training|Test) & ([\d &]+) \\\\", tex, flags=re.MULTILINE)
    counts = [int(n) for line in counted for n in line.split("&")]
    ours = [int(line[kind]) for line in published.read("counts") for kind in ("better", "equal", "worse")]
    assert sorted(ours) == sorted(counts)


def named(results, name):
    return next(table for table in all_tables(results) if table.name == name)


def test_paper_table(results):
    table = named(results, "qda_ml_held-out")
    assert table.headers == [
        "data set",
        "ML train",
        "ML test",
        "RC train",
        "RC test",
        "RC iter",
        "GD train",
        "GD test",
        "GD iter",
        "reach",
    ]
    sonar = table.rows[0]
    ml, rc, gd = sonar[2], sonar[4], sonar[7]
    assert (ml.mean, ml.published, ml.best, ml.far) == (20.5, 0, True, True)
    assert (rc.mean, gd.mean) == (23.5, 29.5)
    assert ml.spread == pytest.approx(np.std([20, 21], ddof=1))
    assert not rc.best
    assert (sonar[5].mean, sonar[5].published, sonar[5].far) == (35, 64, False)
    assert table.rows[-1][0] == "average rank"
    assert [table.rows[-1][j].mean for j in (2, 4, 7)] == [1, 2, 3]
    assert "2 of 20 data sets" in table.note


def test_all_tables(results):
    found = all_tables(results)
    names = [table.name for table in found]
    assert len(names) == len(set(names)) == 1 + 2 + 1 + 5 + 10 + 2 * 8
    for table in found:
        assert all(len(line) == len(table.headers) for line in table.rows), table.name
        assert "2 of 20 data sets" in table.note
        if table.name.startswith(("nb", "qda", "dfe")):
            assert table.rows[1][0] == "mnist (SqueezeNet stand-in)"
        if table.protocol:
            assert table.protocol in table.title


def test_the_family_stands_beside_the_papers_models():
    units = plan(["sonar"], 2, ["family"], ["map"], [], ["held-out"])
    rows = [row(unit, 7 + unit.split, (0.2,), 0.1) for unit in units]
    assert "family" not in [table.name for table in all_tables(Results(made_up()))]
    both = Results(made_up() + rows)
    table = named(both, "family")
    assert [line[0] for line in table.rows] == ["sonar", "mean of 1 sets"]
    assert table.headers[-3:] == ["single", "cv", "ensemble"]
    assert [cell.mean for cell in table.rows[0][-3:]] == [7.5, 7.5, 7.5]
    assert table.rows[-1][1].mean == table.rows[0][1].mean
    assert both.settings == Results(made_up()).settings  # it has no path to draw, and no rivals


def test_three_columns(results):
    table = named(results, "qda_ml_three_columns")
    assert table.headers[4:7] == ["RC published", "RC held-out", "RC in-train"]
    printed, held_out, in_train = table.rows[0][4:7]
    assert (printed.mean, held_out.mean, in_train.mean) == (0, 23.5, 3.5)
    assert plain(held_out) == "23.5 ± 0.7 [≠]"


def test_summary(results):
    table = named(results, "summary_default")
    assert table.rows[0][0] == "held-out"  # first what counts
    against = {(line[0], line[1], line[2]): line for line in table.rows}
    line = against["held-out", "QDA by ML", "GD"]
    assert [cell.mean for cell in line[3:7]] == [2, 0, 0, 2]
    assert line[7].mean == pytest.approx(-3)
    paper = {tuple(line[:4]): line for line in named(results, "summary_paper").rows}
    assert paper["in-train", "QDA by ML", "closed form", "test"][8] == "18 / 2 / 0"
    assert ("held-out", "Naive Bayes by MAP", "DFE", "test") not in paper
    assert paper["held-out", "Naive Bayes by ML", "DFE", "test"][8] == "13 / 2 / 5"


def test_headline_has_tm_beside_the_rivals_that_rc_beats():
    """Where RC's wins are counted, so is how it stands against TM, under both protocols."""
    wrong = {"closed_form": (30, 30, 30), "gd": (30, 30, 20), "tm": (10, 20, 30), "rc": (20, 20, 20)}
    units = plan(["iris", "sonar", "splice"], 1, ["qda"], ["ml"], list(wrong), ["held-out", "in-train"])
    places = {"iris": 0, "sonar": 1, "splice": 2}
    rows = [row(u, wrong[u.learner][places[u.set]] - 5 * (u.protocol == "in-train")) for u in units]
    table = named(Results(rows), "headline")
    assert table.headers == ["protocol", "model", "closed form", "GD", "TM"]
    counts = ["3 / 0 / 0", "2 / 1 / 0", "1 / 1 / 1"]
    assert table.rows == [["held-out", "QDA by ML", *counts], ["in-train", "QDA by ML", *counts]]
    without = named(Results([r for r in rows if r.unit.learner != "tm"]), "headline")
    assert without.rows[0][-1] == "-"
    assert "headline" not in [t.name for t in all_tables(Results([one("gd", 0, 5)]))]


def test_agreement(results):
    lines = {tuple(line[:2]): line[2:] for line in named(results, "agreement").rows}
    near_held_out, _, near_in_train, _ = lines["QDA by ML", "ML"]
    assert (near_held_out.mean, near_in_train.mean) == (0, 2)


def test_text(results):
    text = tables.as_text(named(results, "qda_ml_held-out"))
    assert "20.5* ± 0.7 [0≠]" in text
    assert "35.0 [64]" in text
    assert "more than two points apart" in text


def test_a_figure_that_the_paper_lacks_has_its_place(results):
    """The measured reach does not move into the published column where the paper prints none."""
    both = Results(made_up(("sonar", "vehicle")))
    reach = [line[-1] for line in named(both, "nb_ml_held-out").rows[:2]]
    assert [value.mean for value in reach] == [33.5, 33.5]
    assert [value.published for value in reach] == [6.8, None]
    assert [plain(value) for value in reach] == ["33.5 [6.8]", "33.5 [-]"]
    for table in all_tables(both):
        cells = [re.findall(r"<t[dh].*?</t[dh]>", line) for line in as_html(table).split("<tr")[2:]]
        for j in range(len(table.headers)):
            has_place = {'class="printed"' in line[j] for line in cells if 'data-sort="' in line[j]}
            assert len(has_place) < 2, (table.name, table.headers[j])


def test_csv(results):
    lines = list(csv.DictReader(io.StringIO(tables.as_csv(named(results, "qda_ml_held-out")))))
    assert lines[0]["data set"] == "sonar"
    assert lines[0]["ML test"] == "20.5"
    assert lines[0]["ML test published"] == "0"
    assert lines[0]["ML test far"] == "1"
    assert lines[0]["ML test best"] == "1"
    assert lines[-1]["data set"] == "average rank"


def test_latex(results):
    text = tables.as_latex(named(results, "qda_ml_held-out"))
    assert r"\textbf{20.5} $\pm$ 0.7 [0$\neq$]" in text
    assert text.count(r"\\") == 1 + 3
    assert "%" not in text.replace(r"\%", "")


def test_html(results):
    html = as_html(named(results, "qda_ml_held-out"), {"sonar": "#set-sonar"})
    checked(html)
    assert '<a href="#set-sonar">sonar</a>' in html
    assert '<td class="best far" data-sort="20.5">20.5<small> ± 0.7</small>' in html
    assert "mnist (SqueezeNet stand-in)" in html.replace("<wbr>", "")


def test_one_split_and_one_learner():
    alone = Results([one("rc_paper", 0, 5)])
    for table in all_tables(alone):
        for write in (tables.as_text, tables.as_csv, tables.as_latex, as_html):
            assert "nan" not in write(table)
    assert plain(named(alone, "qda_ml_held-out").rows[0][4]) == "5.0* [0≠]"


def test_where_a_published_figure_agrees_with_rows_trained_on():
    rows = []
    for name, held_out, in_train in (("sonar", 20, 1), ("splice", 7, 0), ("qsar", 20, 9), ("vehicle", 12, 5)):
        for protocol, wrong in (("held-out", held_out), ("in-train", in_train)):
            rows.append(row(Unit(name, 0, "qda", "ml", "rc_paper", protocol), wrong))
    (line,) = only_in_train(Results(rows))  # published: 0, 0, 3, 3
    assert line.startswith("QDA by ML: the published test error of RC is within 2 points of in-train")
    assert line.endswith("on 2 of 4 sets: sonar, vehicle.")


def test_markdown(results):
    lines = tables.as_markdown(named(results, "qda_ml_three_columns")).splitlines()
    assert lines[0].startswith("**QDA by ML: published, held-out, in-train.** Test errors")
    assert lines[3].startswith("| --- | ---: |")
    assert lines[4].startswith("| sonar | 0 | 20.5 ± 0.7 [≠] |")
    assert "| **20.5** ± 0.7 [0≠] |" in tables.as_markdown(named(results, "qda_ml_held-out"))
