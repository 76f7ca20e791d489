"""The built site, where `make docs` has built it: links, and what a browser says of pages."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import riskbayes
from riskbayes import web
from riskbayes.explore.page import explore_page
from riskbayes.models import GaussianNBModel

SITE = Path(__file__).parents[2] / "site"
PAGES = sorted(SITE.rglob("*.html"))
OWN = [page for page in PAGES if "_static" not in page.parts]

pytestmark = pytest.mark.skipif(not OWN, reason="make docs builds the site")

LOOKED_AT = [
    page
    for page in OWN
    if page.name != "play.html"  # tests/explore looks at it
    and (page.parent.name not in ("generated", "findings") or page.stem in ("riskbayes.GaussianNB", "RB006"))
]
"""Pages of single names and of single findings are alike: one of each."""


class Links(HTMLParser):
    """The addresses that a page leads to or loads, and its places."""

    def __init__(self, text):
        super().__init__()
        self.to, self.places = [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        self.to += [given[name] for name in ("href", "src") if given.get(name)]


def led_to(page, link):
    """The file in the site that a link of a page leads to, and the place in it; None elsewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None, ""
    return (page.parent / unquote(parts.path)).resolve() if parts.path else page, unquote(parts.fragment)


@pytest.fixture(scope="module")
def links():
    return {page: Links(page.read_text(encoding="utf-8")) for page in OWN}


def test_every_link_within_the_site_leads_somewhere(links):
    broken = []
    for page, found in links.items():
        for link in found.to:
            target, place = led_to(page, link)
            if target is None:
                continue
            if not target.exists():
                broken.append(f"{page.relative_to(SITE)}: {link}")
            elif target in links and place not in links[target].places:
                broken.append(f"{page.relative_to(SITE)}: no place {link}")
    assert broken == []


def test_every_page_can_be_reached_from_the_first_in_two_steps_of_its_menus(links):
    home = SITE / "index.html"
    first = {led_to(home, link)[0] for link in links[home].to}
    second = {led_to(page, link)[0] for page in first & links.keys() for link in links[page].to}
    written = {page for page in OWN if page.parent.name not in ("auto_gallery", "generated", "findings")}
    unlisted = {"genindex.html", "search.html", "sg_execution_times.html", "py-modindex.html"}
    assert {page.name for page in written - first - second} <= unlisted


def test_the_page_to_play_with_is_what_the_command_serves():
    assert (SITE / "play.html").read_text(encoding="utf-8") == explore_page()


def test_every_estimator_leads_to_its_page():
    for name in set(riskbayes.__all__) - {"__version__", "Rows", "rows", "load", "FlooredWarning"}:
        kind = getattr(riskbayes, name)
        if name == "GenerativeClassifier":
            clf = kind(GaussianNBModel())
        else:
            clf = kind([]) if name == "ProductOfExperts" else kind()
        address = re.search(r'href="([^"]*/generated/[^"]*)"', clf._repr_html_())[1]
        assert (SITE / address.removeprefix(web.SITE)).exists(), address


def test_llms_txt_lists_the_pages():
    text = (SITE / "llms.txt").read_text(encoding="utf-8")
    assert all(
        f"/{name}.html)" in text for name in ("start/quickstart", "own/model", "findings/RB006", "theory")
    )


SHOWN = """(async () => {
    const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
    for (let i = 0; i < 100 && (root.dataset.theme === "dark") !== dark; i++)
        await new Promise(done => setTimeout(done, 20));
    const missing = [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src);
    return [root.dataset.theme, root.scrollWidth, missing];
})()"""
"""The theme, once the page has heard of another colour scheme, the width, and images that are not there."""


@pytest.mark.slow
def test_pages_ask_nothing_of_the_network_complain_of_nothing_and_fit(browser):
    wrong = {}
    for page in LOOKED_AT:
        browser.errors.clear()
        browser.resize(1280, 900)
        browser.open(page.as_uri())
        for width, scheme in ((1280, "light"), (1280, "dark"), (360, "dark"), (360, "light")):
            browser.resize(width, 900)
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.call("Emulation.setEmulatedMedia", features=features)
            shown, wide, missing = browser.run(SHOWN)
            if browser.errors or missing or wide > width or shown != scheme:
                name = page.relative_to(SITE).as_posix()
                wrong[name, width, scheme] = (shown, wide, missing, *browser.errors)
    assert wrong == {}
