"""The page of `riskbayes explore`: its formulas are the library's, in Chromium, and a person can use it."""

import base64
import hashlib
import json
import re
from html import unescape

import numpy as np
import pytest

import html_checks
from explore.make_sets import FILE, as_text
from riskbayes.explore.page import explore_page

SETS = json.loads(as_text())
VOID = html_checks.VOID | {"input"}


class Checker(html_checks.Checker):
    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.note(tag, attrs)

    def note(self, tag, attrs):
        super().note(tag, attrs)
        assert not {"src", "srcset", "action", "style"} & dict(attrs).keys()
        assert not any(name.startswith("on") for name, _ in attrs)


def test_the_sets_are_those_that_a_program_makes():
    assert FILE.read_text(encoding="utf-8") == as_text()


def test_the_page_is_one_file_that_asks_for_nothing():
    page = explore_page()
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert len(checker.ids) == len(set(checker.ids))
    assert not {"img", "iframe", "link", "object", "embed", "base"} & set(checker.tags)
    assert "url(" not in page
    assert "@import" not in page
    assert set(re.findall(r"https?://[^\"' <]*", page)) == set()
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
        in unescape(page)
    )


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("explore") / "explore.html"
    path.write_text(explore_page(), encoding="utf-8")
    return path


@pytest.fixture
def show(browser, page_file):
    """Open the page at a fragment; at the end, nothing went wrong and nothing was asked of the network."""
    browser.errors.clear()

    def opened(width=1280, scheme="light", motion="reduce", **chosen):
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        browser.call("Emulation.setEmulatedMedia", media="", features=features)
        browser.resize(width, 900)
        fragment = chosen.pop("fragment", "&".join(f"{name}={value}" for name, value in chosen.items()))
        browser.open(f"{page_file.as_uri()}#{fragment}")
        return browser

    yield opened
    assert browser.errors == []


def in_library(page):
    """The classifier that the program on the page fits."""
    names = {}
    exec(page.run("program()"), names)
    return names["clf"]


def statistics_of(clf, origin):
    """S as the page has it: for each class the mass, the sums about the origin, and its second moments."""
    S = clf.statistics_
    s1 = S["s1"] if len(S) > 2 else S["s1"] - S["s0"][:, None] * origin  # the toy's sums are about zero
    parts = [S["s0"][:, None], s1]
    if "s2_diagonal" in S:
        parts.append(S["s2_diagonal"])
    if "s2" in S:
        parts.append(S["s2"][:, [0, 0, 1], [0, 1, 1]])
    return np.hstack(parts)


def hold_to_the_library(page):
    """Statistics, parameters, risks and step lengths of the page are those of the library."""
    clf = in_library(page)
    S, own = statistics_of(clf, page.run("fit.origin")), np.array(page.run("shown.good.S"))
    np.testing.assert_allclose(own, S, rtol=1e-9, atol=1e-9 * np.abs(S).max())
    if "s2_tied" in clf.statistics_:
        tied = clf.statistics_["s2_tied"][[0, 0, 1], [0, 1, 1]]
        np.testing.assert_allclose(page.run("fit.tied"), tied, rtol=1e-9, atol=1e-9 * np.abs(tied).max())
    records = page.run(
        "fit.records.slice(0, state.scans + 1).map(r => ({...r.risks, lr: r.lr, accepted: r.accepted}))"
    )
    for name in ("log_loss", "soft_error", "error", "lr", "accepted"):
        found = [record[name] for record in records]
        if len(clf.history_[name]):  # rounding grows in models far from the data, whose log loss is 1e5
            np.testing.assert_allclose(found, clf.history_[name], rtol=1e-7, atol=1e-12, err_msg=name)
    return clf


LEARNERS = [
    ("closed_form", 0, "log_loss"),
    ("fixed", 0, "log_loss"),
    ("fixed", 0.1, "soft_error"),
    ("adaptive", 0.03, "log_loss"),
    ("adaptive", 0, "soft_error"),
]


@pytest.mark.parametrize(("learner", "g", "objective"), LEARNERS)
@pytest.mark.parametrize("model", ["gnb", "lda", "qda"])
def test_the_formulas_are_the_librarys(show, model, learner, g, objective):
    page, chosen = show(), {"model": model, "learner": learner, "g": g, "objective": objective, "lr": 0.2}
    for name in ("far", "iris", "xor"):
        fragment = "&".join(f"{key}={value}" for key, value in {"set": name, **chosen, "scans": 20}.items())
        page.run(f"state = fromLink({json.dumps(fragment)}); refit()")
        hold_to_the_library(page)


def test_the_papers_toy(show):
    page = show(set="toy", scans=20)
    clf = hold_to_the_library(page)
    assert len(clf.history_["soft_error"]) == 21
    # Row x = 1 in closed form and after one step, as the caption of the paper's table has them (0.65, 0.44).
    soft = "1 - posterior(logJoint(fit.records[{}].theta, 1 - fit.origin[0], -fit.origin[1])).P[1]"
    assert [round(page.run(soft.format(i)), 2) for i in (0, 1)] == [0.65, 0.44]


@pytest.mark.parametrize("seed", range(3))
def test_random_points_by_their_link(show, seed):
    """Of two to four classes, in units far from one; floors and refused steps are among the fits."""
    rng = np.random.default_rng(seed)
    r, unit = rng.integers(2, 5), 10.0 ** rng.integers(-1, 3)
    y = np.repeat(np.arange(r), rng.integers(6, 15, size=r))
    X = np.round(
        unit * (rng.normal(size=(len(y), 2)) @ rng.normal(size=(2, 2)) + rng.normal(size=(r, 2))[y] + 3), 3
    )
    points = "".join(f"{'abcd'[k]}{a:.3f}_{b:.3f}" for (a, b), k in zip(X, y, strict=True))
    page = show(points=points, scans=20, model="gnb", learner="adaptive", lr=5)
    np.testing.assert_array_equal(page.run("state.points"), np.column_stack([X, y]))
    floored = 0
    for model in ("gnb", "lda", "qda"):
        for learner, lr, g in (
            ("adaptive", 5, 0),
            ("adaptive", 0.5, 0.01),
            ("fixed", 0.5, 0),
            ("fixed", 2, 1),
        ):
            chosen = {"model": model, "learner": learner, "lr": lr, "g": g, "scans": 20}
            page.run(f"Object.assign(state, {json.dumps(chosen)}); refit()")
            clf = hold_to_the_library(page)
            floored += clf.history_["floored"].sum()
            assert (page.run("fit.records.slice(0, state.scans + 1).some(r => r.theta.floored > 0)")) == bool(
                clf.history_["floored"].sum()
            )
    assert seed or floored  # the floor takes part


@pytest.mark.parametrize(
    ("name", "model"), [("far", "lda"), ("iris", "qda"), ("xor", "qda"), ("moons", "gnb")]
)
def test_the_boundary_is_the_librarys_to_a_pixel(show, name, model):
    page = show(set=name, model=model, learner="adaptive", scans=20)
    clf, (left, right, bottom, top) = in_library(page), page.run("state.view")
    low, pixel = np.array([left, bottom]), np.array([(right - left) / 640, (top - bottom) / 480])
    line = "boundary(shown.good.theta, state.view, fit.origin, [WIDTH, HEIGHT])"
    drawn = (np.array(page.run(line)) - low) / pixel  # in pixels, from the lower left corner
    # Within a pixel of the page's line, the library's most probable class changes.
    angles = np.arange(8) * np.pi / 4
    around = drawn.mean(axis=1)[:, None, :] + np.stack([np.cos(angles), np.sin(angles)], axis=1)
    classes = clf.predict((around * pixel + low).reshape(-1, 2)).reshape(-1, 8)
    assert (classes != classes[:, :1]).any(axis=1).all()
    # Where the library's class changes from a pixel to the next, the page's line is within a pixel.
    us, vs = np.arange(640) + 0.5, np.arange(480) + 0.5
    found = clf.predict(np.stack(np.meshgrid(us, vs), axis=-1).reshape(-1, 2) * pixel + low).reshape(480, 640)
    across, upwards = np.argwhere(found[:, 1:] != found[:, :-1]), np.argwhere(found[1:] != found[:-1])
    changes = np.concatenate([across[:, ::-1] + [1.0, 0.5], upwards[:, ::-1] + [0.5, 1.0]])
    assert len(changes) > 300
    a, along = drawn[:, 0], drawn[:, 1] - drawn[:, 0]
    length = np.maximum((along**2).sum(axis=1), 1e-12)
    for some in np.array_split(changes, 20):
        share = np.clip(((some[:, None] - a) * along).sum(axis=2) / length, 0, 1)
        away = np.sqrt(((some[:, None] - a - share[..., None] * along) ** 2).sum(axis=2)).min(axis=1)
        assert away.max() <= 1


def key(page, name, shift=False):
    page.run(
        "svg.dispatchEvent(new KeyboardEvent('keydown', "
        f"{{key: {json.dumps(name)}, shiftKey: {json.dumps(shift)}, bubbles: true, cancelable: true}}))"
    )


def click(page, u, v, shift=False):
    page.run(
        "(() => { const box = svg.getBoundingClientRect(); svg.dispatchEvent(new MouseEvent('click', "
        f"{{clientX: box.left + {u} * box.width, clientY: box.top + {v} * box.height, "
        f"shiftKey: {json.dumps(shift)}, bubbles: true}})); }})()"
    )


def test_points_by_mouse_and_by_keyboard(show):
    page = show(set="far")
    count = "state.points.length"
    assert page.run(count) == 80
    click(page, 0.25, 0.5)
    assert page.run(count) == 81
    assert page.run("byId('set').value") == ""
    x, y, k = page.run("state.points.at(-1)")
    left, right, bottom, top = page.run("state.view")
    assert abs(x - left - (right - left) / 4) <= 2 * (right - left) / 640  # events have whole pixels
    assert abs(y - (top + bottom) / 2) <= 2 * (top - bottom) / 480
    assert k == 0
    click(page, 0.25, 0.5, shift=True)
    assert page.run(count) == 80
    for name in ("b", "ArrowLeft", "ArrowUp"):
        key(page, name, shift=name != "b")
    key(page, "Enter")
    assert page.run("state.points.at(-1)[2]") == 1
    assert page.run(count) == 81
    key(page, "Delete")
    assert page.run(count) == 80
    page.run("byId('undo').click()")
    assert page.run(count) == 79
    page.run("byId('clear').click()")
    assert page.run(count) == 0
    assert page.run("byId('status').textContent") == "Place points of at least two classes."
    key(page, "a")
    click(page, 0.3, 0.3)
    key(page, "b")
    click(page, 0.6, 0.6)
    assert "points that differ" in page.run("byId('status').textContent")
    page.run("document.querySelectorAll('#brushes input')[4].click()")
    click(page, 0.6, 0.6)
    assert page.run(count) == 1


def test_steps_back_and_run(show):
    page = show(set="far", learner="fixed")
    for _ in range(3):
        page.run("byId('step').click()")
    assert page.run("state.scans") == 3
    assert page.run("byId('status').textContent").startswith("Scan 3, step length 0.1.")
    three = page.run("shown.good.S")
    page.run("byId('back').click()")
    assert page.run("state.scans") == 2
    page.run("byId('play').click()")  # all at once, since motion is reduced
    assert page.run("state.scans") == 64
    assert page.run("byId('step').disabled")
    page.run("byId('scan').value = 3; byId('scan').dispatchEvent(new Event('input'))")
    assert page.run("shown.good.S") == three
    page.run("byId('restart').click()")
    assert page.run("byId('status').textContent").startswith("Closed form.")
    page = show(set="far", learner="fixed", motion="no-preference")
    page.run("byId('play').click()")
    page.run("new Promise(done => setTimeout(done, 500))")
    page.run("byId('play').click()")
    assert 1 <= page.run("state.scans") <= 5


def test_a_fit_that_ends_says_why(show):
    page = show(set="moons", model="qda", learner="fixed", scans=9)
    assert page.run("byId('status').textContent").startswith(
        "Scan 1: the soft error would rise, so the fit ends with the model of scan 0."
    )
    assert page.run("state.scans") == 1
    assert page.run("byId('step').disabled")


def test_the_address_holds_all_that_was_chosen(show):
    page = show(set="iris", model="qda", learner="adaptive", g=0.3, lr=0.5, scans=7, shade="density")
    click(page, 0.4, 0.4)
    page.run("goTo(5)")
    page.run("new Promise(done => setTimeout(done, 250))")
    address, state, S = page.run("[location.hash, state, shown.good.S]")
    assert state["points"][150:] != []
    page = show(fragment=address[1:])
    assert page.run("state") == state
    assert page.run("shown.good.S") == S
    page.run("location.hash = 'set=xor&model=lda'")
    page.run("new Promise(done => setTimeout(done, 50))")
    assert page.run("[state.set, state.model, state.points.length]") == ["xor", "lda", 80]


@pytest.mark.parametrize(
    "fragment",
    [
        "set=__proto__&model=constructor&learner=toString",
        "lr=1e999&g=-5&scans=-3&view=0_0_0_0",
        "points=a1_2&view=1_0_1_0&scans=1e9",
        "points=" + "a1_2b3_4" * 1000 + "&scans=999999999",
        "points=%3Cscript%3Ealert(1)%3C/script%3E&set=%3Cimg%20src=x%20onerror=alert(1)%3E",
        "%&%%&=&==&points=a" + "9" * 400 + "_1",
        "points=a1_1a1_1b1_1b1_1&learner=adaptive&scans=64",
    ],
)
def test_an_address_that_makes_no_sense_makes_a_page(show, fragment):
    page = show(fragment=fragment)
    assert page.run("state.points.length") <= 400
    assert page.run("state.scans") <= 64
    assert page.run("byId('status').textContent.length") > 20
    assert page.run("document.querySelectorAll('img, script').length") == 1


OUTSIDE = (
    "[...document.querySelectorAll('body *')].filter(part => !part.closest('.scroll, svg, .unseen, pre') "
    "&& part.getBoundingClientRect().right > innerWidth + 0.5).map(part => part.outerHTML.slice(0, 90))"
)


@pytest.mark.parametrize("width", [360, 800, 1280])
def test_the_page_never_scrolls_sideways(show, width):
    page = show(width, set="iris", model="qda", learner="adaptive", scans=9)
    assert page.run("document.documentElement.scrollWidth") == width
    assert page.run(OUTSIDE) == []
    tall = (
        "[...document.querySelectorAll('button, select, input:not([type=radio])')].map(p => p.offsetHeight)"
    )
    assert min(page.run(tall)) >= 24


def test_dark(show):
    colour = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert min(show().run(colour)) > 200
    assert max(show(scheme="dark").run(colour)) < 60


def test_everything_to_use_has_a_name_and_takes_the_focus(show):
    page = show()
    nameless = (
        "[...document.querySelectorAll('button, select, input, [tabindex]')].filter(p => !(p.labels?.length "
        "|| p.getAttribute('aria-label') || p.textContent.trim())).map(p => p.outerHTML)"
    )
    assert page.run(nameless) == []
    page.run("svg.focus()")
    assert page.run("document.activeElement.id") == "picture"
