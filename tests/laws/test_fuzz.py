"""A hundred of the driver's cases, and the driver itself: `make fuzz` runs as many as one likes."""

import numpy as np
import pytest

import fuzz
from fuzzing.cases import Case, Refusal, Violation, attempt
from fuzzing.estimators import ESTIMATORS
from fuzzing.laws import ANSWERS, CHANGES
from riskbayes import SmoothNB

CASES = range(100)


@pytest.mark.parametrize("number", CASES)
def test_case(number):
    report = fuzz.run_case(0, number)
    assert not report.violations, f"python tests/fuzz.py --seed 0 --case {number}"


def test_every_estimator_takes_part():
    assert {Case(0, number).name for number in CASES} == set(ESTIMATORS)


def test_a_case_is_determined_by_its_seed_and_number():
    one, again, other = Case(3, 5), Case(3, 5), Case(4, 5)
    assert str(one) == str(again) != str(other)
    assert one.table.X.tobytes() == again.table.X.tobytes()
    assert fuzz.run_case(3, 5).outcomes == fuzz.run_case(3, 5).outcomes


PLANTED = {
    "posteriors are finite and sum to one": lambda P: 0.99 * P,
    "predict takes the largest posterior, or the least cost": lambda P: P[:, ::-1],
    "predict_log_proba is the logarithm of predict_proba": lambda P: P**2 / (P**2).sum(axis=1, keepdims=True),
    "one row's answer does not depend on its batch, nor on its dtype": lambda P: (P + P.mean(axis=0)) / 2,
    "a row of missing cells only has the prior's posterior": lambda P: 0.9 * P + 0.1 * np.eye(P.shape[1])[0],
    "one row alone has its answer among others, by every method that takes rows": lambda P: (
        (P + P.mean(axis=0)) / 2
    ),
}


@pytest.mark.parametrize("law", PLANTED)
def test_a_planted_fault_is_found(monkeypatch, law):
    own = SmoothNB.predict_proba
    monkeypatch.setattr(SmoothNB, "predict_proba", lambda self, X: PLANTED[law](own(self, X)))
    hold = ANSWERS[law] if law in ANSWERS else CHANGES[law][0]
    case = next(
        case
        for case in (Case(0, n) for n in CASES)
        if case.name == "SmoothNB" and not isinstance(case.fitted, Refusal)
    )
    with pytest.raises(Violation):
        hold(case)


def test_only_a_sentence_is_a_refusal():
    assert isinstance(attempt(lambda: ESTIMATORS["GaussianNB"]().fit([[1.0], [2.0]], [0, 0])), Refusal)
    with pytest.raises(Violation, match="IndexError"):
        attempt(lambda: [][0])
    with pytest.raises(Violation, match="could not be broadcast"):
        attempt(lambda: np.zeros(2) + np.zeros(3))
    with pytest.raises(Violation, match="RuntimeWarning"):
        attempt(lambda: np.float64(1.0) / 0.0)


def test_the_command_counts_and_fails(capsys, monkeypatch):
    assert fuzz.main(["--cases", "3", "--only", Case(0, 0).name]) in (0, 1)
    printed = capsys.readouterr().out
    assert "posteriors are finite and sum to one" in printed
    assert Case(0, 0).name in printed

    def never(case):
        raise Violation("never")

    monkeypatch.setitem(ANSWERS, "a law that nothing obeys", never)
    assert fuzz.main(["--cases", "1"]) == 1
    assert "python tests/fuzz.py --seed 0 --case 0  # a law that nothing obeys" in capsys.readouterr().out
    assert fuzz.main(["--case", "0"]) == 1
