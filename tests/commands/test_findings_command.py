"""`riskbayes findings`, and the addresses by which terminal, report and notebooks name pages."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import riskbayes
from conftest import discover
from riskbayes import RC, GaussianNB
from riskbayes.cli import main
from riskbayes.findings import CODES
from riskbayes.learners.base import Learner
from riskbayes.web import SITE, finding_page

DOC = Path(__file__).parents[2] / "doc"


def run(*arguments):
    return CliRunner().invoke(main, ["findings", *arguments])


def test_every_code_is_listed_and_told():
    listed = run().stdout
    assert re.findall(r"^RB\d\d\d .+$", listed, re.MULTILINE) == [f"{c} {a.name}" for c, a in CODES.items()]
    for code, about in CODES.items():
        told = run(code).stdout
        assert told.startswith(f"{code} {about.name}\n")
        assert all(words in told for words in (about.meaning, about.when_not_to_worry, about.what_to_do))
        assert finding_page(code) in told


def test_codes_may_be_written_short_and_several_at_a_time():
    assert run("rb003", "6").stdout == f"{run('RB003').stdout}\n{run('RB006').stdout}"
    assert [each["code"] for each in json.loads(run("RB006", "RB001", "--json").stdout)] == ["RB006", "RB001"]
    assert len(json.loads(run("--json").stdout)) == len(CODES)


@pytest.mark.parametrize("code", ["RB999", "0", "leak", ""])
def test_a_code_that_does_not_exist_is_refused(code):
    result = run(code)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: There is no finding with the code {code!r}")


def test_addresses_are_those_of_pages():
    for code in CODES:
        place = finding_page(code).removeprefix(SITE)
        assert (DOC / place).with_suffix(".md").is_file()


def test_the_html_of_an_estimator_links_to_a_page_of_the_reference():
    listed = (DOC / "reference" / "index.md").read_text(encoding="utf-8")
    public = {name for name in riskbayes.__all__ if isinstance(getattr(riskbayes, name), type)}
    for kind in (GaussianNB, RC, *(kind for kind in discover(Learner) if kind.__name__ in public)):
        page = f"riskbayes.{kind.__name__}"
        assert f'href="{SITE}reference/generated/{page}.html"' in kind()._repr_html_()
        assert re.search(rf"^ *{re.escape(page)}$", listed, re.MULTILINE)
