"""What a notebook shows of `checks_` and `leaderboard_`; both stay a list and a dict."""

import re

import numpy as np
import pandas as pd
import pytest

import riskbayes
from riskbayes import RiskBayesClassifier
from riskbayes.displayed import Findings, Leaderboard
from riskbayes.findings import Finding
from riskbayes.web import finding_page


def cells(html):
    """The texts of the cells of a table, line by line, without its head."""
    lines = re.findall(r"<tr>(.*?)</tr>", html)[1:]
    return [[re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<td>(.*?)</td>", line)] for line in lines]


def test_findings_show_what_to_do_and_lead_to_their_pages():
    found = Findings([Finding("RB006", "Column <b> names rows.", "<b>", "warning")])
    html = found._repr_html_()
    assert f'href="{finding_page("RB006")}"' in html
    assert cells(html) == [
        ["RB006 id column", "warning", "Column &lt;b&gt; names rows.", found[0].about.what_to_do]
    ]
    assert "Nothing was found" in Findings()._repr_html_()


def test_checks_of_a_fitted_model_are_such_a_list():
    table = pd.DataFrame({"a": np.random.default_rng(0).standard_normal(60), "b": "x"})
    clf = RiskBayesClassifier("single").fit(table, np.arange(60) % 2)
    assert isinstance(clf.checks_, list)
    assert cells(clf.checks_._repr_html_())[0][0].startswith("RB005")


@pytest.mark.parametrize("strategy", ["single", "cv"])
def test_a_leaderboard_shows_a_line_for_each_member_and_is_saved_as_such(strategy, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=80)
    clf = RiskBayesClassifier(strategy, cv=2, random_state=0).fit(
        rng.standard_normal((80, 2)) + y[:, None], y
    )
    board = riskbayes.load(clf.save(tmp_path / "model.rb")).leaderboard_
    for each in (clf.leaderboard_, board):
        assert type(each) is Leaderboard
        shown = cells(each._repr_html_())
        assert [line[0] for line in shown] == each["member"].tolist()
        column = list(each).index("weight")
        np.testing.assert_allclose([float(line[column]) for line in shown], each["weight"], rtol=1e-3)
