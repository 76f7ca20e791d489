"""The page of a report: its HTML, and what it does in a real browser where there is one."""

import base64
import datetime
import hashlib
import re
from dataclasses import fields, is_dataclass
from itertools import pairwise
from math import isclose

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import UndefinedError

import html_checks
from made_reports import HOSTILE, REPORTS, explored
from riskbayes.compare.charts import Scale
from riskbayes.compare.numbers import MINUS, NONE, brief, digits_of, fixed, percent, signed
from riskbayes.findings import CODES
from riskbayes.markup import OBEYED
from riskbayes.pages.shell import environment
from riskbayes.web import finding_page

VOID = {"meta", "br", "wbr", "input"}
ASKING = {"src", "srcset", "action", "formaction", "data", "poster", "background", "ping", "xlink:href"}
"""Attributes by which a page asks for something, at once or when it is used; so does href, but of an a."""


class Checker(html_checks.Checker):
    """Also notes the attributes, the links and the words; knows all elements without an end."""

    def __init__(self):
        super().__init__()
        self.attributes, self.links, self.words = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.note(tag, attrs)

    def note(self, tag, attrs):
        super().note(tag, attrs)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "a":
            self.links.append(dict(attrs))

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.words.append(data)


def checked(html):
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert len(checker.ids) == len(set(checker.ids))
    return checker


@pytest.fixture(scope="module")
def pages():
    return {name: make().to_html() for name, make in REPORTS.items()}


@pytest.mark.parametrize("name", REPORTS)
def test_html_is_well_formed(pages, name):
    page = checked(pages[name])
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(deeper <= level + 1 for level, deeper in pairwise(levels))
    assert [tag for tag in page.tags if tag in ("header", "nav", "main", "footer")] == [
        *("header", "nav", "main", "footer")
    ]
    assert page.tags.count("section") == 6
    labelled = {value for _, name, value in page.attributes if name in ("aria-labelledby", "for")}
    within = {link["href"][1:] for link in page.links if link["href"].startswith("#")}
    assert labelled | within <= set(page.ids)
    pages[name].encode("utf-8")


@pytest.mark.parametrize("name", REPORTS)
def test_nothing_is_asked_for_and_nothing_foreign_runs(pages, name):
    """A person may go from a code of a finding to its page, which is not told where the person came from."""
    page = checked(pages[name])
    away = [link for link in page.links if not link["href"].startswith("#")]
    codes = sorted(code for code, _ in {(f.code, f.severity) for f in REPORTS[name]().findings})
    assert sorted(away, key=lambda link: link["href"]) == [
        {"href": finding_page(code), "rel": "noreferrer"} for code in codes
    ]
    assert not {"img", "iframe", "link", "object", "embed", "form", "base"} & set(page.tags)
    assert page.tags.count("script") == page.tags.count("style") == 1
    for tag, attribute, value in page.attributes:
        assert not attribute.startswith("on")
        assert attribute not in ASKING
        assert attribute != "href" or tag == "a"
        assert (attribute, value.lower()) != ("http-equiv", "refresh")
    assert "url(" not in pages[name]
    assert "@import" not in pages[name]
    (script,) = re.findall(r"<script>(.*?)</script>", pages[name], re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = next(value for _, name, value in page.attributes if name == "content" and "default-src" in value)
    assert f"script-src 'sha256-{digest}'" in rules
    assert rules.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")


@pytest.mark.parametrize("name", REPORTS)
def test_every_chart_says_what_it_shows_and_has_its_figures(pages, name):
    for chart in re.findall(r"<figure.*?</figure>", pages[name], re.DOTALL):
        assert "<figcaption>" in chart
        assert "<table" in chart
        if "<svg" in chart:
            assert re.search(r'role="img" aria-label="[^"]{20,}', chart)


def texts_of(value):
    """Every text in a report."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():
            yield from texts_of(pair)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from texts_of(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from texts_of(getattr(value, field.name))


def test_the_page_shows_all_texts_of_a_report(pages):
    report = REPORTS["adult"]()
    shown = " ".join("".join(checked(pages["adult"]).words).split())
    hidden = {"holdout", *(c.learner for c in report.contenders), *(c.kind for c in report.contenders)}
    hidden |= {f.severity for f in report.findings} | set(report.contenders[0].scores) | {report.run.started}
    for words in set(texts_of(report)) - hidden - {""}:
        assert " ".join(words.split()) in shown, words
    for finding in report.findings:
        about = CODES[finding.code]
        for words in (finding.code, about.name, about.meaning, about.when_not_to_worry, about.what_to_do):
            assert words in shown


INERT = environment("riskbayes.compare").from_string(
    "{% macro shown(name) %}{{ name }}{% endmacro %}"
    '<p title="{{ words }}">{{ words|foreign }}{{ words }}{{ shown(words ~ words) }}{{ words|breakable }}</p>'
)


def test_a_name_that_is_not_defined_is_an_error():
    with pytest.raises(UndefinedError, match="'wrods' is undefined"):
        environment("riskbayes.compare").from_string("<p>{{ wrods }}</p>").render(words="a")


def test_hostile_texts_stay_texts(pages):
    page = checked(pages["hostile"])
    shown = "".join(page.words)
    for words in HOSTILE[:7]:
        assert words in shown
    assert "\x00" not in pages["hostile"]


@given(st.text())
def test_any_text_is_inert_in_all_places(words):
    html = INERT.render(words=words)
    html.encode("utf-8")
    page = checked(html)
    assert set(page.tags) <= {"p", "bdi", "wbr", "i"}
    assert [name for _, name, _ in page.attributes] == ["title"]
    assert not OBEYED.search(html)


@given(st.floats(1e-6, 100), st.floats(1e-3, 30))
def test_a_standard_error_has_one_digit_and_two_after_a_one(value, error):
    digits = digits_of([error], 1)
    shown = fixed(error, digits)
    counted = shown.replace(".", "").lstrip("0")
    assert 1 <= len(counted) <= 2
    assert isclose(float(shown), error, rel_tol=0.35)
    assert abs(float(fixed(value, digits)) - value) <= 0.5001 * 10**-digits


@given(st.floats(-1e12, 1e12))
def test_numbers_are_close_to_what_they_stand_for(value):
    assert isclose(
        float(brief(value).replace(MINUS, "-").replace(",", "")), value, rel_tol=6e-3, abs_tol=6e-6
    )
    assert signed(value, 2)[0] in "+0" + MINUS
    assert "-" not in fixed(value, 1) + signed(value, 3) + brief(value)


@given(st.floats(0, 1))
@example(0.005)
@example(0.995)
def test_only_nothing_is_zero_percent_and_only_all_is_a_hundred(share):
    shown = percent(share).replace("\u202f", "")
    assert (shown == "0%") == (share == 0)
    assert (shown == "100%") == (share == 1)


def test_figures_that_are_not_there():
    for value in (None, float("nan"), float("inf")):
        assert fixed(value, 2) == signed(value, 2) == percent(value) == NONE


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=9), st.booleans())
def test_a_scale_holds_its_values_in_their_order(values, zero):
    scale = Scale.over(values, zero=zero)
    assert scale.low < scale.high
    assert 2 <= len(scale.ticks) <= 9
    slack = 1e-6 * (scale.high - scale.low)
    assert all(scale.low - slack <= value <= scale.high + slack for value in values)
    places = [scale.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    if zero:
        assert scale.low <= 0 <= scale.high


@pytest.fixture
def show(browser, pages, tmp_path):
    """Open a page; at the end, nothing went wrong in it and nothing was asked of the network."""
    browser.errors.clear()

    def opened(name, width=1280, **media):
        (tmp_path / f"{name}.html").write_text(pages[name], encoding="utf-8")
        features = [{"name": "prefers-color-scheme", "value": media.get("scheme", "light")}]
        browser.call("Emulation.setEmulatedMedia", media=media.get("media", ""), features=features)
        browser.call("Emulation.setScriptExecutionDisabled", value=media.get("no_script", False))
        browser.resize(width, 900)
        browser.open((tmp_path / f"{name}.html").as_uri())
        return browser

    yield opened
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.errors == []


OUTSIDE = (
    "[...document.querySelectorAll('body *')].filter(part => !part.closest('.scroll, svg') "
    "&& part.getBoundingClientRect().right > innerWidth + 0.5).map(part => part.outerHTML.slice(0, 90))"
)


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", REPORTS)
def test_the_page_never_scrolls_sideways(show, name, width):
    page = show(name, width)
    assert page.run("document.documentElement.scrollWidth") == width
    assert page.run(OUTSIDE) == []


def test_paper_has_no_controls_and_no_folds(show):
    page = show("adult", 794, media="print")
    assert page.run("document.documentElement.scrollWidth") == 794
    seen = "[...document.querySelectorAll('{}')].filter(part => part.offsetHeight > 0).length"
    for control in ("nav", ".controls", "#copy", "summary", "p.told"):
        assert page.run(seen.format(control)) == 0
    assert page.run(seen.format(".example")) == len(REPORTS["adult"]().examples)
    assert page.run(seen.format("#table-classes tbody tr")) == 2  # folded away on a screen
    assert page.pdf().startswith(b"%PDF")


def test_dark(show):
    colour = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert min(show("adult").run(colour)) > 200
    assert max(show("adult", scheme="dark").run(colour)) < 60


MODELS = "document.getElementById('table-models')"
COLUMN = f"[...{MODELS}.tBodies[0].rows].map(row => row.cells[{{}}].textContent)"


@pytest.mark.parametrize("name", ["adult", "incomplete"])
def test_tables_sort_and_what_has_no_number_stays_last(show, name):
    page = show(name)
    click = f"{MODELS}.tHead.rows[0].cells[{{}}].querySelector('button').click()"
    sort = f"[...{MODELS}.tBodies[0].rows].map(row => row.cells[{{}}].dataset.sort ?? null)"
    for column in (1, 3):
        for turn in (1, -1):
            page.run(click.format(column))
            found = page.run(sort.format(column))
            known = [float(value) for value in found if value is not None]
            assert known == sorted(known)[::turn]
            assert found == [*found[: len(known)], *[None] * (len(found) - len(known))]
            state = page.run(f"{MODELS}.tHead.rows[0].cells[{column}].getAttribute('aria-sort')")
            assert state == {1: "ascending", -1: "descending"}[turn]
    page.run(click.format(0))
    names = page.run(COLUMN.format(0))
    assert names == sorted(names, key=str.lower)
    assert page.run("document.querySelectorAll('[aria-sort]').length") == 1


def test_a_model_tells_how_far_it_is_from_the_best(show):
    page = show("adult")
    row = f"[...{MODELS}.tBodies[0].rows].find(row => row.textContent.includes('majority class'))"
    for event in ("new PointerEvent('pointerenter')", "new FocusEvent('focus')", "new MouseEvent('click')"):
        page.run("document.getElementById('told').textContent = ''")
        page.run(f"{row}.dispatchEvent({event})")
        words = page.run("document.getElementById('told').textContent")
        assert words.startswith("majority class, minus RiskBayesClassifier: +9.6\u202f\u00b1\u202f0.8")
        assert words.endswith(": hardly chance.")
    assert page.run(f"{row}.tabIndex") == 0


SHOWN = "[...document.querySelectorAll('.example')].flatMap((part, i) => part.offsetHeight ? [i] : [])"


def test_one_example_row_at_a_time(show):
    page, count = show("adult"), len(REPORTS["adult"]().examples)
    assert page.run(SHOWN) == [0]
    click = "document.getElementById('example-{}').click()"
    for i in range(1, count + 1):
        page.run(click.format("next"))
        assert page.run(SHOWN) == [i % count]
        assert page.run("document.getElementById('example').selectedIndex") == i % count
    page.run(click.format("before"))
    assert page.run(SHOWN) == [count - 1]
    page.run(
        "const c = document.getElementById('example'); c.value = '2'; c.dispatchEvent(new Event('change'))"
    )
    assert page.run(SHOWN) == [2]


def test_findings_by_severity(show):
    page = show("adult")
    shown = (
        "[...document.querySelectorAll('.finding')].filter(part => part.offsetHeight)"
        ".map(part => part.dataset.severity)"
    )
    assert page.run(shown) == ["error", "warning", "warning", "info"]
    page.run("document.querySelector('#severities input[data-severity=warning]').click()")
    assert page.run(shown) == ["error", "info"]
    page.run("document.querySelector('#severities input[data-severity=warning]').click()")
    assert page.run(f"{shown}.length") == 4


def test_find_a_column(show):
    page = show("wide")
    page.run("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    page.run(
        "const f = document.getElementById('column-filter'); f.value = 'SENSOR_01'; "
        "f.dispatchEvent(new Event('input'))"
    )
    shown = "[...document.querySelectorAll('#table-columns tbody tr')].filter(row => row.offsetHeight)"
    assert page.run(f"{shown}.map(row => row.cells[0].textContent)") == [f"sensor_01{i}" for i in range(10)]


@pytest.mark.parametrize("name", ["adult", "hostile"])
def test_the_copy_button_copies_the_command(show, name):
    page = show(name)
    page.run("navigator.clipboard.writeText = async words => { window.copied = words; }")
    page.run("document.getElementById('copy').click()")
    assert page.run("window.copied") == REPORTS[name]().run.command
    assert page.run("document.getElementById('copy').textContent") == "Copied"


def test_without_a_clipboard_the_command_is_selected(show):
    page = show("adult")
    page.run("navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'))")
    page.run("document.getElementById('copy').click()")
    page.run("new Promise(done => setTimeout(done, 50))")
    assert page.run("getSelection().toString()") == REPORTS["adult"]().run.command


def test_hostile_texts_do_nothing(show):
    page = show("hostile")
    page.run("document.querySelectorAll('button').forEach(button => button.click())")
    page.run("document.querySelectorAll('tr[data-told]').forEach(row => row.click())")
    assert page.run("document.querySelectorAll('img, script').length") == 1  # our own script
    assert page.run("document.title") == f"Predicting {HOSTILE[0]} in {HOSTILE[1]}"
    # The rules of the page stop a script even where a text would get through.
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">')")
    page.run("new Promise(done => setTimeout(done, 50))")
    assert page.run("window.ran === undefined")
    assert page.errors
    page.errors.clear()


def test_without_a_script_all_is_there_and_nothing_that_does_nothing(show):
    page = show("adult", no_script=True)
    page.call("Emulation.setScriptExecutionDisabled", value=False)  # to ask the page what it shows
    seen = "[...document.querySelectorAll('{}')].filter(part => part.offsetHeight > 0).length"
    assert page.run(seen.format("button, select, input")) == 0
    assert page.run(seen.format(".example")) == len(REPORTS["adult"]().examples)
    assert page.run(seen.format(".finding")) == 4


# The part of a page that answers for changed rows.

FIELD = "document.getElementById('explorer-cell-{}')"
SAID = "document.getElementById('explorer-said').textContent"
WATERFALL = (
    "[...document.querySelectorAll('#explorer-waterfall .row:not(.axis) .figure')].map(x => x.textContent)"
)


def set_to(page, place, value):
    """Give the control of a column a value, as its user would."""
    page.run(
        f"(() => {{ const c = {FIELD.format(place)}; c.value = {value!r}; "
        "c.dispatchEvent(new Event(c.tagName === 'SELECT' ? 'change' : 'input')); })()"
    )


def said(page):
    """The most probable class and its probability, as the page says it."""
    label, _, share = page.run(SAID).rpartition(": ")
    return label, float(share.removesuffix("\u202f%")) / 100


def holds(page, row, clf):
    """Hold what the page says of a changed row against the library."""
    P, odds = clf.predict_proba(row)[0], clf.explain(row).log_odds()
    label, share = said(page)
    assert label == str(clf.classes_[P.argmax()])
    assert isclose(share, P.max(), abs_tol=5.1e-4)
    figures = [float(words.replace(MINUS, "-")) for words in page.run(WATERFALL)]
    assert isclose(figures[-1], odds.total[0], abs_tol=0.0051)
    assert isclose(figures[0], odds.baseline[0], abs_tol=0.0051)
    pairs = zip(sorted(figures[1:-1]), sorted(odds.values[0].tolist()), strict=True)
    assert all(isclose(shown, size, abs_tol=0.0051) for shown, size in pairs)


def test_the_page_answers_for_changed_rows_as_the_library_does(show):
    page, (clf, df) = show("explorable"), explored()
    for i in range(3):
        page.run(
            f"(() => {{ const r = document.getElementById('explorer-row'); r.selectedIndex = {i}; "
            "r.dispatchEvent(new Event('change')); })()"
        )
        row = df.iloc[[i]].copy()
        holds(page, row, clf)
        row["visits"] = 3
        set_to(page, 1, "3")
        holds(page, row, clf)
        row["colour"] = "red"
        set_to(page, 2, page.run(f"[...{FIELD.format(2)}.options].findIndex(o => o.text === 'red')"))
        holds(page, row, clf)
        row["since"] = [datetime.date(2025, 2, 3)]
        set_to(page, 4, "2025-02-03")
        holds(page, row, clf)
    page.run("document.getElementById('explorer-back').click()")
    holds(page, df.iloc[[2]], clf)


def test_a_cell_is_missing_and_comes_back(show):
    page, (clf, df) = show("explorable"), explored()
    box = f"{FIELD.format(1)}.closest('.field').querySelector('input[type=checkbox]')"
    page.run(f"{box}.click()")
    row = df.iloc[[0]].astype({"visits": float})
    row["visits"] = float("nan")
    holds(page, row, clf)
    assert page.run(f"{FIELD.format(1)}.disabled")
    page.run(f"{box}.click()")
    holds(page, df.iloc[[0]], clf)
    assert not page.run(f"{FIELD.format(1)}.disabled")


def test_sliders_move_by_the_keyboard(show):
    page, (clf, df) = show("explorable"), explored()
    slider = f"{FIELD.format(1)}.closest('.field').querySelector('input[type=range]')"
    page.run(f"{slider}.focus()")
    assert page.run(f"document.activeElement === {slider}")
    key = {"key": "ArrowRight", "code": "ArrowRight", "windowsVirtualKeyCode": 39}
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, **key)
    row = df.iloc[[0]].copy()
    row["visits"] += 1
    assert page.run(f"{FIELD.format(1)}.valueAsNumber") == row["visits"].iloc[0]
    holds(page, row, clf)
    unlabelled = (
        "[...document.querySelectorAll('#explorer input, #explorer select')]"
        ".filter(x => !x.labels.length && !x.getAttribute('aria-label')).length"
    )
    assert page.run(unlabelled) == 0


def test_on_a_phone_the_answer_stays_in_sight(show):
    page = show("explorable", 360)
    page.run(f"{FIELD.format(6)}.scrollIntoView({{block: 'center'}})")
    box = page.run("document.querySelector('.chances').getBoundingClientRect().top")
    assert 0 <= box < 5


def test_columns_and_categories_of_hostile_names_are_text(show):
    page = show("hostile")
    labels = page.run(
        "[...document.querySelectorAll('#explorer .field > label bdi')].map(x => x.textContent)"
    )
    assert labels[:5] == list(HOSTILE[:5])
    options = page.run(f"[...{FIELD.format(2)}.options].map(o => o.text)")
    assert set(options) <= {*HOSTILE[2:5], "(missing)"}
    assert page.run("document.querySelectorAll('#explorer img, #explorer script').length") == 0
    assert said(page)[0] in HOSTILE[:2]


def test_without_a_script_or_on_paper_no_row_can_be_changed(show):
    page = show("explorable", no_script=True)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert page.run("document.getElementById('explorer').offsetHeight") == 0
    page = show("explorable", 794, media="print")
    assert page.run("document.getElementById('explorer').offsetHeight") == 0
