"""The first cases of `tests/fuzz_csv.py`, and whether it finds a violation."""

import pytest

pytest.importorskip("pyarrow")

import fuzz_csv
from riskbayes.input.files import table


def test_cases(tmp_path):
    outcomes = {number: fuzz_csv.run(number, tmp_path) for number in range(300)}
    bad = {n: o for n, o in outcomes.items() if o not in ("table", "refused", "refused by the fit")}
    assert bad == {}
    assert {"table", "refused"} <= set(outcomes.values())


def test_an_error_that_is_no_sentence_is_a_violation(tmp_path, monkeypatch):
    def broken(*given):
        raise KeyError("x")

    monkeypatch.setattr(table, "read_csv", broken)
    assert any("KeyError" in fuzz_csv.run(number, tmp_path) for number in range(20))


def test_a_case_is_made_from_its_number():
    assert [fuzz_csv.case(n) for n in range(50)] == [fuzz_csv.case(n) for n in range(50)]
    assert len({fuzz_csv.case(n) for n in range(50)}) > 40
