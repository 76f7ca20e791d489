"""Findings of a comparison on leaks, keys, columns and time: planted ones are found, noise is not."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier

from riskbayes.compare import checks, compare, leaks
from riskbayes.compare.alike import name_rows, repeated_keys, same_columns
from riskbayes.compare.alone import alone
from riskbayes.compare.contenders import MAJORITY, Candidate
from riskbayes.compare.scores import Ranking
from riskbayes.compare.splits import make_split
from riskbayes.compare.study import run_study
from test_compare import codes_of, data_of, made_table


def study_of(table, target="y", cv=2, **options):
    """A study of the most frequent class only: enough for what is said about the table."""
    data = data_of(table, target, **options)
    base = Candidate(MAJORITY, "riskbayes", "", lambda _: DummyClassifier(strategy="prior"), False)
    return run_study(data, make_split(data, None if "time_column" in options else cv, 0), [base])


def findings_of(table, target="y", single=False, **options):
    """Findings on leaks and columns, by code and column; those of single columns if asked for, or by time."""
    study = study_of(table, target, **options)
    by_column = alone(study) if single or "time_column" in options else []
    found = leaks.leaking_columns(study, by_column)
    told = [
        *leaks.partial_leaks(study, found),
        *checks.keys(study),
        *checks.redundant(study),
        *checks.running_numbers(study),
        *checks.turned(study, by_column),
        *checks.unknown_classes(study),
    ]
    return {(f.code, f.where): f for f in told} | {("RB003", one.column): one for one in found}


def noise(seed, m=None, r=None):
    """A table without anything to find: numbers, whole numbers, categories, flags, holes."""
    rng = np.random.default_rng(seed)
    m, r = m or int(rng.choice([30, 60, 150, 400])), r or int(rng.choice([2, 2, 3, 6]))
    shares = np.maximum(rng.dirichlet(np.full(r, 2.0)), 0.1)
    table = pd.DataFrame(
        {
            "normal": rng.normal(size=m),
            "rounded": rng.normal(size=m).round(1),
            "age": rng.integers(18, 90, m),
            "salary": rng.integers(1000, 1000 * m, m),
            "few": rng.choice(list("xyz"), m),
            "many": rng.choice([f"k{i:03}" for i in range(m // 3)], m),
            "zip": rng.integers(0, m // 3, m),
            **{f"flag {i}": (rng.random(m) < rng.choice([0.02, 0.5])).astype(int) for i in range(6)},
            "y": rng.choice([f"class {i}" for i in range(r)], m, p=shares / shares.sum()),
        }
    )
    table.loc[rng.random(m) < 0.2, "normal"] = np.nan
    table.loc[:1, "y"] = "class 0", "class 1"
    return table


@pytest.mark.parametrize("time_column", [None, "salary"])
def test_noise_is_quiet(time_column):
    for seed in range(40 if time_column is None else 20):
        found = findings_of(noise(seed), **({} if time_column is None else {"time_column": time_column}))
        assert {key: str(f) for key, f in found.items() if key[0] != "RB021"} == {}, seed


@settings(max_examples=8)
@given(st.integers(0, 2**31), st.integers(12, 80))
def test_awkward_columns_lead_to_no_error(seed, m):
    """Huge and tiny numbers, cells that are almost all missing, flags, dates, keys, numbers as text."""
    rng = np.random.default_rng(seed)
    kinds = {
        "huge": rng.choice([-1.7e308, 0.0, 1.7e308], m),
        "far": 1.7e308 * np.linspace(-1, 1, m),
        "wide": rng.choice([1e300, 1e-300, -1.0], m) * rng.integers(1, 9, m),
        "lonely": np.where(np.arange(m) < 2, np.arange(m) % 2.0, np.nan),
        "flag": rng.random(m) < 0.5,
        "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, m), unit="D"),
        "key": [f"k{i}" for i in rng.integers(0, m, m)],
        "word": rng.choice(["a", "b", None], m),
        "span": pd.to_timedelta(rng.integers(0, 9, m), unit="h"),
        "whole": rng.choice([2.0**53, 2.0**53 + 2, 1.0], m),
    }
    names = rng.choice(list(kinds), rng.integers(1, len(kinds)), replace=False)
    table = pd.DataFrame({name: kinds[name] for name in names}).assign(y=np.arange(m) % 2, t=np.arange(m))
    try:
        study_of(table.drop(columns="t"))
    except ValueError:  # no column can be used
        return
    findings_of(table, single=True)
    findings_of(table, time_column="t")
    leaks.leaking_pair(study_of(table), 100.0)


def wrong_on(values, share, rng):
    """Values of which this share is replaced by others of them."""
    values = np.array(values, dtype=object)
    other = np.array(sorted(set(values)), dtype=object)
    places = np.searchsorted(other, values)
    moved = (places + rng.integers(1, len(other), len(values))) % len(other)
    return np.where(rng.random(len(values)) < share, other[moved], values)


@pytest.mark.parametrize("r", [2, 3, 6])
@pytest.mark.parametrize("rename", [False, True])
def test_a_copy_with_errors_is_found(r, rename):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        table = noise(seed, 300, r)
        copy = wrong_on(table["y"], 0.1, rng)
        table["copy"] = pd.factorize(copy)[0] + 1 if rename else copy
        finding = findings_of(table)["RB023", "copy"]
        assert finding.severity == "warning"
        assert f"{100 * (copy == table['y']).mean():.3g} %" in finding.message
        table["copy"] = wrong_on(table["y"], 0.55, rng)
        assert ("RB023", "copy") not in findings_of(table)


def test_values_that_give_half_of_the_rows_away_are_found():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        table = noise(seed, 400, 3)
        given = (table["y"] == "class 1") & (rng.random(400) < 0.5)
        words = rng.choice(["open", "closed"], 400)
        plants = {
            "word": np.where(given, "cancelled", words),
            "number": np.where(given, 9, rng.integers(0, 4, 400)),
            "hole": np.where(given, np.nan, rng.normal(size=400)),
            "note": np.where(given, [f"note {i}" for i in range(400)], None),
        }
        found = findings_of(table.assign(**plants))
        assert {where for code, where in found if code == "RB024"} == set(plants)
        assert f"of the {given.sum()} rows in which it is 'cancelled', 100 % are 'class 1'" in (
            found["RB024", "word"].message
        )


@pytest.fixture(scope="module")
def pair_leak():
    """A comparison of a table in which the difference of two columns is the label."""
    rng = np.random.default_rng(0)
    table = noise(3, 400, 2)[["normal", "few", "y"]]
    table["begin"] = rng.integers(0, 1000, 400)
    table["end"] = table["begin"] + np.where(table["y"] == "class 1", 7, -7)
    return compare(table, "y", cv=2).report


def test_two_columns_that_give_the_answer_away_are_named(pair_leak):
    finding = next(f for f in pair_leak.findings if f.code == "RB025")
    assert finding.severity == "error"
    assert "'begin' and 'end'" in finding.message
    assert not {"RB003", "RB027"} & {code for code, _ in codes_of(pair_leak)}


def test_an_error_near_zero_is_a_finding_where_nothing_explains_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=np.sign(X.sum(axis=1)).astype(int))
    for near, columns in ((True, list("abcde")), (False, list("abc"))):
        study = study_of(table[[*columns, "y"]])
        right = np.eye(2)[study.held] if near else study.trials[0].P
        study.trials.append(SimpleNamespace(P=right, candidate=SimpleNamespace(name="seer"), failed=""))
        found = list(leaks.almost_no_errors(study, []))
        assert [f.severity for f in found] == ["warning"] * near
        assert not list(leaks.almost_no_errors(study, [object()]))


def test_numbers_that_name_rows():
    rng = np.random.default_rng(0)
    for m in (25, 200, 2000):
        for drawn in (
            np.arange(m) + 1000,
            rng.permutation(m),
            rng.choice(m * 5, m, replace=False) if m > 100 else np.arange(m) * 7,
            np.cumsum(rng.integers(1, 1000, m)),
            -np.cumsum(rng.integers(1, 1000, m)),
        ):
            assert name_rows(drawn.astype(float))
            assert m < 100 or name_rows(np.where(np.arange(m) % 10 == 0, np.nan, drawn))
        for measured in (
            rng.integers(0, m, m),
            rng.integers(0, 10**9, m),
            rng.lognormal(10, 1, m).round(),
            np.sort(rng.integers(0, m, m)),
            np.cumsum(rng.random(m)),
        ):
            assert not name_rows(measured.astype(float))


def test_repeated_keys_ask_for_groups():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        person = rng.permutation(np.repeat(np.arange(80), 4))
        y = np.where((rng.random(80) < 0.5)[person] ^ (rng.random(320) < 0.1), "p", "q")
        table = pd.DataFrame({"x": rng.normal(size=320), "number": person * 13 + 5, "y": y})
        table["name"] = [f"N{i}" for i in person]
        table["ticket"] = [f"T{i}" for i in np.where(rng.random(320) < 0.4, person, 1000 + np.arange(320))]
        table["level"] = np.where(y == "p", 60, 0) + rng.integers(0, 60, 320)  # measured, and tells of y
        found = findings_of(table)
        assert {where for code, where in found if code == "RB026"} >= {"number", "name"}
        assert ("RB026", "level") not in found
        assert not {code for code, _ in findings_of(table, group="name")} & {"RB026"}
    data = data_of(table, "y")
    own = table.merge(table, on="number")
    own = own[own["x_x"] != own["x_y"]]
    same = own[own["number"] > own["number"].min()].eval("y_x == y_y").mean()
    (_, number, share, _) = next(one for one in repeated_keys(data) if one[0] == "number")
    assert (number, share) == (80, pytest.approx(same))


def test_columns_that_say_the_same_are_found():
    rng = np.random.default_rng(0)
    table = noise(0, 300, 2).drop(columns=["many", "zip"])
    table["few as number"] = table["few"].map({"x": 3.5, "y": 1.0, "z": 2.0})
    table["normal again"] = 32 + 1.8 * table["normal"]
    table["hour"] = rng.normal(size=300)
    table["minute"] = (60 * table["hour"]).round(3)
    table["rare"] = table["also rare"] = (np.arange(300) == 7).astype(int)  # one row: it may be chance
    table["late"] = np.where(np.arange(300) < 298, table["age"], 0)
    found = {frozenset(group) for group in same_columns(data_of(table, "y"))}
    assert found == {
        frozenset({"few", "few as number"}),
        frozenset({"normal", "normal again"}),
        frozenset({"hour", "minute"}),
    }


@pytest.mark.parametrize("m", [100, 300, 8000])
def test_numbers_that_say_the_same_are_found_whatever_cells_are_missing(m):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=m)
        table = pd.DataFrame({"x": x, "twice": -2 * x, "large": x**3, "y": rng.integers(2, size=m)})
        table["nearly"] = x + 0.02 * rng.normal(size=m)
        table.loc[rng.random(m) < 0.2, "x"] = np.nan
        table.loc[rng.random(m) < 0.2, "twice"] = np.nan
        table.loc[x < 0, "large"] = np.nan
        assert same_columns(data_of(table, "y")) == [["x", "twice", "large"]]


def test_a_class_that_only_later_rows_have_is_named():
    table = made_table(300).assign(day=np.arange(300))
    table["bought"] = np.where(table["day"] >= 260, "maybe", table["bought"])
    finding = findings_of(table, "bought", time_column="day")["RB021", "maybe"]
    assert finding.severity == "error"
    assert "40 of the 75 held-out rows" in finding.message
    assert not any(code == "RB021" for code, _ in findings_of(table, "bought"))


def test_a_relation_that_turns_round_in_time_is_named():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        day = np.arange(600)
        y = rng.integers(2, size=600)
        sign = np.where(day < 450, 1, -1)
        table = noise(seed, 600, 2).assign(day=day, y=y)
        table["turned"] = sign * (y - 0.5) + 0.7 * rng.normal(size=600)
        table["also turned"] = np.where((sign > 0) == (rng.random(600) < 0.2 + 0.6 * y), "a", "b")
        table["kept"] = y + rng.normal(size=600)
        found = findings_of(table, time_column="day")
        assert {where for code, where in found if code == "RB022"} == {"turned", "also turned"}


@pytest.mark.parametrize("counts", [[90, 4, 6], [10, 60, 30], [70, 30], [6, 4], [3, 90, 7], [74, 2, 24]])
def test_the_share_that_is_held_out_in_time_is_the_true_one(counts):
    m = sum(counts)
    table = pd.DataFrame(
        {"x": np.arange(m) % 3, "y": np.arange(m) % 2, "t": np.repeat(range(len(counts)), counts)}
    )
    data = data_of(pd.concat([table] * 4), "y", time_column="t")
    split = make_split(data, None, 0)
    held = len(split.held)
    assert f"The last {held} of {4 * m} rows by 't' ({100 * held / (4 * m):.3g} %)" in split.summary.words
    possible = 4 * np.cumsum(counts[::-1])[:-1]
    assert held in possible[np.abs(possible - m) == np.abs(possible - m).min()]


@pytest.mark.parametrize("values", [[1, 1.5, 2, 2.5], [0.5, 1.5], [0.0, 1e-9]])
def test_a_target_of_fractions_is_refused_before_any_fit(values):
    table = made_table(80).assign(grade=np.array(values)[np.arange(80) % len(values)])
    with pytest.raises(ValueError, match=r"distinct numbers.*write classes as text"):
        compare(table, "grade", progress=pytest.fail)
    assert (
        data_of(table.assign(grade=table["grade"] // 1 + np.arange(80) % 2), "grade").classes.dtype.kind
        == "f"
    )


def test_a_peer_that_would_take_too_long_is_left_out_and_the_report_says_so(monkeypatch):
    monkeypatch.setattr("riskbayes.compare.contenders.MOST_SECONDS", 0.0)
    report = compare(made_table(60), "bought", cv=2).report
    (peer,) = (c for c in report.contenders if c.failed)
    assert peer.name == "histogram boosting"
    assert "more than the limit of 0" in peer.failed
    assert peer.failed in report.to_markdown()


REAL = {
    "bank_marketing": set(),
    "car_evaluation": {("RB024", "persons"), ("RB024", "safety")},
    "credit_approval": {("RB027", "A5")},
    "german_credit": set(),
    "heart_cleveland": set(),
    "hepatitis": set(),
    "horse_colic": {("RB023", "surgery")},
    "house_votes_84": {("RB023", "physician-fee-freeze")},
    "nursery": {("RB024", "health")},
    "penguins_raw": {("RB024", "Island")},
    "telco_churn": set(),
    "titanic": set(),
    "adult": {("RB027", "education_num")},
}
"""What is said about real tables, each read and found to be true: rules of those who made the table (car,
nursery), votes by party, an operation that the diagnosis led to, penguins of one island, columns twice."""


@pytest.mark.parametrize("name", REAL)
def test_what_is_said_about_real_tables_is_true(real_table, name):
    assert set(findings_of(real_table(name, 2500), "target", single=True)) == REAL[name]


def test_figures_of_columns_with_holes_are_those_of_their_cells():
    """A copy that half of the rows lack is not right in 90 % of the rows, nor are keys those of all rows."""
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 400)
    copy = np.where(rng.random(400) < 0.1, np.where(y == "no", "yes", "no"), y).astype(object)
    number = np.arange(400.0)
    copy[::2], number[::4] = None, np.nan
    found = findings_of(pd.DataFrame({"copy": copy, "number": number, "y": y}))
    right = 100 * (copy[1::2] == y[1::2]).mean()
    assert f"the right one in {right:.3g} % of the 200 rows that have one" in found["RB023", "copy"].message
    assert "300 distinct whole numbers in 300 cells" in found["RB006", "number"].message


@pytest.mark.parametrize("groups", [2, 3])
def test_the_share_that_is_held_out_by_groups_is_the_true_one(groups):
    m = 2400
    table = pd.DataFrame({"x": np.arange(m) % 7, "g": np.arange(m) % groups, "y": np.arange(m) // groups % 2})
    split = make_split(data_of(table, "y", group="g"), None, 0)
    assert f"{m // groups} of {m} rows ({100 / groups:.3g} %)" in split.summary.words


def test_many_columns_of_noise_do_not_turn_round():
    """The more columns are asked, the further one of them must be from a coin."""
    columns = [SimpleNamespace(column=f"x{i}", area=Ranking(0.3, 0.05, 0.05)) for i in range(1000)]
    study = SimpleNamespace(data=SimpleNamespace(time=np.arange(200)), held=np.zeros(100))
    assert [f.code for f in checks.turned(study, columns[:5])] == ["RB022"] * 5
    assert list(checks.turned(study, columns)) == []


def test_two_columns_are_judged_by_all_held_out_rows():
    """Their error stands beside that of a model on all folds: a pair that is right in one fold is none."""
    table = noise(3, 400, 2)[["normal", "few", "y"]]
    table["begin"] = np.random.default_rng(0).integers(0, 1000, 400)
    table["end"] = table["begin"] + np.where(table["y"] == "class 1", 7, -7)
    study = study_of(table)
    assert leaks.leaking_pair(study, 2.0)[:2] == ("begin", "end")
    study.parts[1].Z_test = study.parts[1].Z_test[::-1]
    assert leaks.leaking_pair(study, 2.0) is None


def test_new_rows_that_differ_from_held_out_rows_are_a_finding():
    table, new = made_table(600), made_table(500, seed=1).drop(columns="bought")
    found = compare(table, "bought", cv=2)
    assert found.drift(new).verdict == "nothing"
    assert found.against(new) is found
    moved = new.assign(size=new["size"] + 3)
    shift = found.drift(moved)
    assert (shift.moved, set(shift.classes)) == (["size"], {"no", "yes"})
    report = found.against(moved, "new.csv").report
    (finding,) = (finding for finding in report.findings if finding.code == "RB033")
    assert (finding.where, finding.severity) == ("size", "warning")
    assert "In new.csv, against held-out rows: Column 'size' moved" in finding.message
    assert "new rows differ" in report.to_html()
    rare = made_table(900, seed=2)
    rare = rare[(rare["bought"] == "no") | (np.arange(900) % 5 == 0)]
    (finding,) = (one for one in found.against(rare).report.findings if one.code == "RB033")
    assert (finding.where, finding.severity) == ("bought", "info")
    ignored = compare(table, "bought", cv=2, ignore=["RB033"])
    assert ignored.against(moved) is ignored
    with pytest.raises(ValueError, match="The table of new rows has no column 'town' for the model"):
        found.drift(new.drop(columns="town"))
