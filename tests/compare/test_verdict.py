"""The verdict of a comparison: what it claims, what it quotes, and the findings that go with it."""

import io
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from made_reports import made
from riskbayes.compare import compare, scores
from riskbayes.compare.checks import better_peers, single_columns, too_sure, worse_than_simpler
from riskbayes.compare.contenders import BOOSTING, LOGISTIC, MAJORITY, Candidate
from riskbayes.compare.data import Data
from riskbayes.compare.evidence import gather_evidence
from riskbayes.compare.figures import MEASURES, dot, figure_table
from riskbayes.compare.numbers import as_plain
from riskbayes.compare.report import SplitSummary
from riskbayes.compare.splits import Split
from riskbayes.compare.study import Study, Trial, contenders
from riskbayes.compare.terminal import print_report
from riskbayes.compare.verdict import verdict, why


def probabilities_of(log_odds):
    p = 1 / (1 + np.exp(-np.asarray(log_odds, dtype=float)))
    return np.stack([1 - p, p], axis=1)


def made_study(codes, models, metric="log_loss", groups=None):
    """A study of models that say these log-odds of 'yes', without anything fitted."""
    m = len(codes)
    table = pd.DataFrame({"x": np.arange(m) % 7.0, "y": np.where(codes == 1, "yes", "no")})
    data = Data.of(table, "y", time_column=None, group=None, max_rows=m, seed=0)
    split = Split([(np.arange(0), np.arange(m))], SplitSummary("holdout", 1, m, m, ""))
    kinds = {LOGISTIC: "peer", BOOSTING: "peer", MAJORITY: "baseline"}
    share = codes.mean()
    models = {**models, MAJORITY: np.full(m, np.log(share / (1 - share)))}
    trials = [
        Trial(
            Candidate(name, kinds.get(name, "riskbayes"), "", None, False), probabilities_of(odds), [1], [1]
        )
        for name, odds in models.items()
    ]
    return Study(data, split, [], trials, metric)


def verdict_of(study):
    return verdict(study, contenders(study), ())


def rare_rows(rng, m=10000, share=1 / 200, shift=0.954):
    """Labels of a rare class, and the true log-odds by a column whose AUC is 0.75 for this shift."""
    codes = np.zeros(m, dtype=int)
    codes[rng.choice(m, round(share * m), replace=False)] = 1
    return codes, np.log(share / (1 - share)) + shift * (rng.normal(size=m) + shift * codes) - shift**2 / 2


def test_probabilities_without_information_are_rarely_believed():
    """Sharp and mild probabilities, few rows, rare classes, equal predictions: chance is called chance."""
    rng = np.random.default_rng(0)
    claims = 0
    for _ in range(700):
        m, r = int(rng.integers(8, 60)), int(rng.integers(2, 4))
        codes = np.concatenate([np.arange(r), rng.choice(r, m, p=rng.dirichlet(np.ones(r)))])
        P = rng.dirichlet(np.full(r, rng.choice([0.02, 0.3, 3.0])), int(rng.choice([2, 3, m])))
        P = P[rng.integers(len(P), size=len(codes))]
        base = np.tile(np.bincount(codes, minlength=r) / len(codes), (len(codes), 1))
        claims += bool(gather_evidence(P, base, codes, None, None).beyond)
    assert claims <= 2


def test_ten_rows_that_are_right_by_chance_prove_nothing():
    """All of ten rows right in every fold has a standard error of zero, and a chance of 1 in 32."""
    codes, folds = np.tile([0, 1], 5), np.repeat(np.arange(5), 2)
    found = gather_evidence(probabilities_of(20 * codes - 10), np.full((10, 2), 0.5), codes, None, folds)
    assert found.area.auc == 1
    assert found.area.error > 0.05
    assert not found.beyond


@pytest.mark.parametrize("n", [14, 20, 40])
def test_rows_of_few_groups_prove_little(n):
    """Labels and scores that groups of several sizes share: the rows are many, what is independent is not."""
    rng = np.random.default_rng(0)
    claims = found = 0
    for _ in range(250):
        sizes = rng.integers(1, 40, n)
        groups, labels, said = np.repeat(np.arange(n), sizes), rng.permutation(np.arange(n) % 2), []
        for signal in (0, 4):
            odds = (rng.normal(size=n) + signal * labels)[groups] + 0.1 * rng.normal(size=len(groups))
            base = np.full((len(groups), 2), 0.5)
            said.append(gather_evidence(probabilities_of(odds), base, labels[groups], groups, groups % 5))
        claims += bool(said[0].beyond)
        found += bool(said[1].beyond)
    assert claims <= 2
    assert n < 20 or found >= 225


def test_a_verdict_on_few_groups_counts_groups():
    rng = np.random.default_rng(0)
    cases = (
        (2, "concluded", "no relation would show"),
        (12, "concluded", "no relation would show"),
        (30, "predicted", "only a very strong relation would show"),
    )
    for n, what, words in cases:
        groups = np.repeat(np.arange(n), 20)
        study = made_study((np.arange(n) % 2)[groups], {"ours": rng.normal(size=20 * n)})
        study = replace(study, data=replace(study.data, groups=groups))
        text = verdict_of(study)
        assert text.startswith(f"Nothing about 'y' can be {what} from")  # what was not tested is not denied
        groups = f"{n // 2} groups of held-out rows have" if n > 2 else "1 group of held-out rows has"
        assert f"Only {groups} rows of another class than 'no'" in text
        assert text.endswith(words + ".")


def test_a_rare_class_that_is_ranked_is_not_called_nothing():
    rng = np.random.default_rng(0)
    for _ in range(30):
        codes, odds = rare_rows(rng)
        base = np.tile([1 - codes.mean(), codes.mean()], (len(codes), 1))
        assert "auc" in gather_evidence(probabilities_of(odds), base, codes, None, None).beyond
    assert verdict_of(made_study(codes, {"ours": odds})).startswith("'y' can be predicted")


def test_a_rare_class_is_told_by_its_ranks_and_the_threshold():
    codes, odds = rare_rows(np.random.default_rng(1), share=1 / 50, shift=1.9)
    study = made_study(codes, {"ours": odds, LOGISTIC: odds + 0.3})
    text = verdict_of(study)
    area = scores.ranking(study.best.P, study.held).auc
    assert f"ranks rows well (AUC {area:.3f}" in text
    assert f"a row of 'yes' scores above a row of 'no' in {100 * area:.0f} of 100 pairs" in text
    loss = scores.row_losses(study.best.P, study.held)["log_loss"].mean()
    assert f"log loss is {loss:.3f}; that of answering with the frequencies of the classes is" in text
    assert "At a threshold of one half it still almost always answers 'no'" in text
    assert "The log loss of logistic regression is higher by" in text


@pytest.mark.parametrize(
    ("flips", "words"), [(2, "fewer errors, which may be chance"), (0, "as many errors")]
)
def test_a_peer_is_as_good_only_if_it_is(flips, words):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=300)
    odds = np.where(rng.random(300) < 0.8, 1, -1) * (2.0 * codes - 1)
    other = odds.copy()
    other[np.flatnonzero((odds > 0) != (codes == 1))[:flips]] *= -1
    text = verdict_of(made_study(codes, {"ours": odds, LOGISTIC: other}))
    assert words in text
    assert "as good" not in text


def test_findings_and_verdict_state_the_same_difference():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=3000)
    odds = np.where(rng.random(3000) < 0.8, 1, -1) * (2.0 * codes - 1)
    other = odds.copy()
    other[np.flatnonzero((odds > 0) != (codes == 1))[:17]] *= -1
    study = made_study(codes, {"ours": odds, BOOSTING: other})
    (finding,) = better_peers(study)
    said = re.findall(r"makes [\d.]+ ± [\d.]+ points fewer errors", finding.message)
    assert len(said) == 1
    assert said[0] in verdict_of(study)


def test_calibration_that_made_it_worse_is_found():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=2000)
    truth = 2.0 * codes - 1 + rng.normal(size=2000)
    models = {"NB, closed form": truth, "NB, RC": truth + rng.normal(size=2000)}
    (found,) = worse_than_simpler(made_study(codes, models))
    assert (found.code, found.where, found.severity) == ("RB017", "NB, RC", "info")
    models = {"NB, RC": truth, "NB, closed form": truth + rng.normal(size=2000)}
    assert not list(worse_than_simpler(made_study(codes, models)))


def test_a_best_model_worse_than_the_most_frequent_class_is_found():
    codes, odds = rare_rows(np.random.default_rng(0), share=0.06, shift=1.5)
    assert not list(worse_than_simpler(made_study(codes, {"ours": odds})))
    (found,) = worse_than_simpler(made_study(codes, {"ours": odds + 2.0}))
    assert (found.code, found.where) == ("RB018", "ours")
    assert "an error of 6.0 %" in found.message


@pytest.mark.parametrize("metric", scores.METRICS)
def test_the_best_model_is_the_best_in_the_metric_that_was_asked_for(metric):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=500)
    models = {
        str(i): (2 * codes - 1 + rng.normal(size=500)) * rng.choice([0.2, 1, 5]) + rng.normal()
        for i in range(12)
    }
    study = made_study(codes, models, metric)
    found = [c for c in contenders(study) if c.kind == "riskbayes"]
    values = [c.scores[metric].value for c in found]
    assert values == sorted(values, reverse=metric == "auc")
    assert study.best.candidate.name == found[0].name
    assert scores.METRICS[metric] in why(study, found)


@pytest.fixture(scope="module", params=[None, "g"])
def small(request):
    """A small table and the report of a comparison on it; with groups rows are held out by them."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    columns = {"a": rng.normal(size=120) + y, "b": rng.choice(["u", "v"], 120), "g": np.arange(120) % 40}
    table = pd.DataFrame({**columns, "y": y})
    return table, compare(table, "y", cv=2, metric="brier", group=request.param).report


def test_terminal_and_page_have_one_order(small):
    table, report = small
    names = [c.name for c in report.contenders]
    assert report.metric == "brier"
    page = report.to_html()
    rows = re.findall(r'<tr[^>]*data-told="([^"]*)"', page)
    assert [name for row, name in zip(rows, names, strict=True) if row.startswith(name)] == names
    with pytest.raises(ValueError, match="metric='accuracy' is none of"):
        compare(table, "y", metric="accuracy")


def test_all_renderings_have_the_same_figures(small):
    """Page, Markdown and terminal show one text for a figure, verdict and chart one interval."""
    _, report = small
    out = io.StringIO()
    print_report(report, Console(file=out, width=200))
    page = re.sub(r"<[^>]*>", "", report.to_html())
    for row in figure_table(report).rows:
        cells = [cell.text for cell in row[1:-2]]
        assert re.search(re.escape(row[0]) + r"\s+" + r"\s+".join(map(re.escape, cells)), out.getvalue())
        assert f"| {row[0]} | {' | '.join(cells)} |" in report.to_markdown()
        assert all(cell in as_plain(page) for cell in cells)
    best = next(c for c in report.contenders if c.name == report.best)
    said = re.search(r"95 % interval ([\d.]+ to [\d.]+)\)", report.verdict)
    assert said[1] == dot(best, MEASURES[0], 1, report.split)["interval"]


def test_the_page_leads_with_the_ranks_of_a_rare_class():
    plain = made()
    best = next(c for c in plain.contenders if c.name == plain.best)
    for lead, words in (("error", "Wrong answers in 750 held-out rows"), ("auc", "AUC on 750 held-out rows")):
        page = replace(plain, lead=lead).to_html()
        assert words in page
        assert f"<dd>{best.scores[lead].value:.{1 if lead == 'error' else 3}f}<small>" in page


def test_a_strong_column_beside_another_says_what_that_gains():
    """Of a rare class too: a second column that gains much alone is not told to gain nothing."""
    from riskbayes.compare.alone import alone
    from riskbayes.compare.contenders import candidates
    from riskbayes.compare.splits import make_split
    from riskbayes.compare.study import run_study

    rng = np.random.default_rng(2)
    y = np.arange(4000) < 40
    table = pd.DataFrame({"a": rng.normal(size=4000) + 3 * y, "b": rng.normal(size=4000) + 1.8 * y, "y": y})
    data = Data.of(table, "y", time_column=None, group=None, max_rows=10**6, seed=0)
    some = [c for c in candidates(data, ("single",), 0) if c.name in ("LDA, closed form", MAJORITY)]
    study = run_study(data, make_split(data, 4, 0), some)
    base, both = (scores.row_losses(t.P, study.held)["log_loss"].mean() for t in reversed(study.trials))
    shares = {one.column: (base - one.log_loss) / (base - both) for one in alone(study)}
    assert shares["b"] > 0.2
    (finding,) = single_columns(study, alone(study), [])
    assert f"the next, 'b', {100 * shares['b'] / max(shares['a'], 1):.0f} %" in finding.message
    assert "most" not in finding.about.meaning


def test_rows_ranked_without_a_mistake_keep_a_standard_error():
    """Sums over folds of any sizes may end a rounding error below one: that is no certainty."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        r = int(rng.integers(2, 6))
        codes = np.concatenate([np.arange(r), np.arange(r), rng.integers(0, r, rng.integers(8, 80))])
        P = np.full((len(codes), r), 0.1 / r) + 0.9 * np.eye(r)[codes]
        found = scores.ranking(P, codes, None, rng.integers(0, 5, len(codes)))
        assert found.auc == 1
        assert found.error > 0.01


def test_a_baseline_that_answers_differently_by_fold_is_no_constant_answer():
    """With folds by group the most frequent class of training rows may be the rarer one of those held out."""
    codes = np.repeat([0, 1], 50)
    study = made_study(codes, {"ours": 20.0 * codes - 10})
    study.trial(MAJORITY).P[:] = probabilities_of(np.where(np.arange(100) % 10 < 7, 1, -1) * (1 - 2 * codes))
    text = verdict_of(study)
    assert "answering the most frequent class of the training rows is wrong on 70 %" in text
    assert "always answering" not in text


def test_a_best_model_that_proves_nothing_is_told_with_its_ranks():
    """Too few rows to prove a relation are no proof that there is none, and the other model says its AUC."""
    codes = np.zeros(1000, dtype=int)
    codes[:8] = 1
    order = np.linspace(-6, -5, 1000)
    ours = np.concatenate([order[[150, 999, 997, 550, 995, 993, 950, 650]], order[:992]])
    study = made_study(codes, {"ours": ours, BOOSTING: order[::-1] + 5.3}, metric="log_loss")
    evidence = study.evidence
    assert evidence[BOOSTING].beyond == {"auc"}
    assert not evidence["ours"].beyond
    text = verdict_of(study)
    for name in ("ours", BOOSTING):
        area = evidence[name].area
        assert f"AUC {area.auc:.3f} ± {area.error:.3f}" in text
    assert "no better than" not in text


def test_calibration_that_trades_one_figure_for_the_other_is_not_called_worse():
    codes = np.tile([0, 1], 200)
    plain = (2.0 * codes - 1) * np.where(np.arange(400) % 10 < 2, -1, 1)
    sharp = (2.0 * codes - 1) * np.where(np.arange(400) % 20 < 2, -30, 30)
    study = made_study(codes, {"NB, closed form": plain, "NB, RC": sharp})
    assert list(worse_than_simpler(study)) == []
    assert [
        f.code for f in worse_than_simpler(made_study(codes, {"NB, closed form": plain, "NB, RC": -sharp}))
    ]


def test_how_far_a_model_is_too_sure_is_plain_in_small_tables():
    codes = np.tile([0, 1], 10)
    study = made_study(codes, {"ours": np.full(20, 9.0)})
    (found,) = too_sure(study)
    assert "e+" not in found.message
    assert "50 ± 11 points apart" in found.message


def test_almost_all_pairs_are_not_all():
    codes = np.repeat([0, 1], [970, 30])
    odds = np.where(codes == 1, -1.0, -5.0) + np.linspace(0, 0.1, 1000)
    odds[0] = 0.0
    assert "in almost all pairs" in verdict_of(made_study(codes, {"ours": odds}))
