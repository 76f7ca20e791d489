"""The first cases of `tests/fuzz_compare.py`, and whether each of its laws finds a fault."""

from dataclasses import replace

import numpy as np
import pytest

import fuzz_compare
from fuzz_compare import LAWS, Refusal, Violation, attempt, draw
from riskbayes.compare.scores import reliability
from riskbayes.findings import Finding

CASES = range(12)


def test_cases():
    outcomes = [fuzz_compare.run_case(0, number) for number in CASES]
    bad = {outcome.number: outcome.violations for outcome in outcomes if outcome.violations}
    assert bad == {}
    assert any(outcome.refusal for outcome in outcomes)
    assert not all(outcome.refusal for outcome in outcomes)


def test_a_case_is_determined_by_its_seed_and_number():
    one, again, other = draw(3, 5), draw(3, 5), draw(4, 5)
    assert one.table.equals(again.table)
    assert str(one) == str(again) != str(other)


@pytest.fixture(scope="module")
def found():
    drawn = draw(0, 2)
    return drawn, *fuzz_compare.compare_fast(drawn)


def with_error(report, error):
    """The report with another error of every model."""
    changed = [
        replace(c, scores=c.scores | {"error": replace(c.scores["error"], value=error)})
        for c in report.contenders
    ]
    return replace(report, contenders=tuple(changed))


def with_markdown(report, text):
    return type("Written", (type(report),), {"to_markdown": lambda self: text})(**vars(report))


def with_page(report, change):
    page = change(report.to_html())
    return type("Written", (type(report),), {"to_html": lambda self: page})(**vars(report))


PLANTED = {
    "figures are scikit-learn's, from the held-out predictions": lambda r: with_error(r, 12.345),
    "no finding counts more rows than there are": lambda r: replace(
        r, findings=(Finding("RB007", "Column 'x' is missing in 107 % of the rows."),)
    ),
    "JSON keeps the report": lambda r: replace(r, labels=list(r.labels)),
    "the page shows it, and obeys no user's text": lambda r: with_page(r, lambda p: p + "<img src=x>"),
    "Markdown shows it, and obeys no user's text": lambda r: with_markdown(
        r, r.to_markdown() + "| a | b |\n| c |\n"
    ),
}


@pytest.mark.parametrize("law", PLANTED)
def test_a_planted_fault_is_found(law, found):
    drawn, report, study = found
    LAWS[law](drawn, report, study)
    with pytest.raises(Violation):
        LAWS[law](drawn, PLANTED[law](report), study)


def test_a_terminal_that_obeys_is_found(found, monkeypatch):
    law = LAWS["a terminal shows it, and obeys no user's text"]
    law(*found)
    for written in ("", "\x1b]52;c;x\x07" + found[1].verdict):
        monkeypatch.setattr(fuzz_compare, "print_report", lambda _, console, w=written: console.file.write(w))
        with pytest.raises(Violation):
            law(*found)


def test_counts_are_compared_with_the_rows(found):
    drawn, report, study = found
    law = LAWS["no finding counts more rows than there are"]
    for message in ("Column 'x' has 1106 distinct values of 1413 cells.", "Class 'a' has 1e9 rows."):
        with pytest.raises(Violation):
            law(drawn, replace(report, findings=(Finding("RB008", message.replace("1e9", "999")),)), study)


def test_an_error_that_is_no_sentence_is_a_violation(monkeypatch):
    def broken(*arguments, **options):
        raise KeyError("x")

    monkeypatch.setattr(fuzz_compare.comparison, "compare", broken)
    assert "KeyError" in fuzz_compare.run_case(0, 2).violations[0][1]


def test_claims_on_noise_are_compared_with_chance(capsys, monkeypatch):
    assert not fuzz_compare.too_many_claims(4, 100)
    assert fuzz_compare.too_many_claims(20, 200)
    claim = fuzz_compare.Outcome(0, claims=True)
    monkeypatch.setattr(fuzz_compare, "run_cases", lambda seed, cases, jobs: iter([claim] * cases))
    assert fuzz_compare.main(["--cases", "30"]) == 1
    assert "30 tables of noise labels, of which 30 claim" in capsys.readouterr().out


def test_few_rows_have_few_bins_of_confidence():
    for m in range(1, 12):
        P = np.column_stack([np.linspace(0.5, 0.9, m), np.linspace(0.5, 0.1, m)])
        assert sum(part.rows for part in reliability(P, np.zeros(m, dtype=int))) == m


def test_a_sentence_is_a_refusal():
    assert isinstance(attempt(lambda: fuzz_compare.compare_fast(draw(0, 0))), Refusal)
    with pytest.raises(Violation, match="no sentence"):
        fuzz_compare.check_sentence("x: [1\n2]")
