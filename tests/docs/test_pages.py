"""Pages: their code runs and prints what they say; links lead somewhere; one word for one thing."""

import importlib
import re
import runpy
import sys
import tomllib
from pathlib import Path

import click
import matplotlib
import pytest
from matplotlib import pyplot

from riskbayes.cli import main
from riskbayes.web import SITE

ROOT = Path(__file__).parents[2]
PAGE_OUTPUTS = runpy.run_path(str(ROOT / "benchmarks" / "page_outputs.py"))
WITH_CODE = list(PAGE_OUTPUTS["pages"]())
WRITTEN = [ROOT / "README.md", *sorted((ROOT / "doc").rglob("*.md"))]
WRITTEN = [page for page in WRITTEN if not {"auto_gallery", "generated"} & set(page.parts)]
WRITTEN += [ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT")]
NAMES = {page: page.relative_to(ROOT).as_posix() for page in WRITTEN}


@pytest.fixture
def without_windows(monkeypatch):
    """Pictures are drawn into memory and closed."""
    monkeypatch.setattr(sys, "argv", ["page"])
    backend = matplotlib.get_backend()
    matplotlib.use("agg")
    yield
    pyplot.close("all")
    matplotlib.use(backend)


@pytest.mark.parametrize("page", WITH_CODE, ids=NAMES.get)
def test_code_of_a_page_runs_and_prints_what_it_says(page, without_windows):
    again = PAGE_OUTPUTS["run_page"](page)
    assert again == page.read_text(encoding="utf-8"), f"run python benchmarks/page_outputs.py {NAMES[page]}"


def test_code_that_fails_or_prints_something_else_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- run first:\nx = 1\n-->\n\n```python\nprint(x)\n```\n\n```text\n2\n```\n")
    assert "```text\n1\n```" in PAGE_OUTPUTS["run_page"](page)
    page.write_text("<!-- not run: no such name -->\n```python\nmissing\n```\n")
    assert PAGE_OUTPUTS["run_page"](page) == page.read_text()
    page.write_text("\n\n```python\nmissing\n```\n")
    with pytest.raises(NameError):
        PAGE_OUTPUTS["run_page"](page)


def without_code(text):
    """The prose of a page: no blocks, no code within lines, no comments, no addresses."""
    text = re.sub(r"^(```+|:::+).*?^\1$|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)


def places(page):
    """The places of a page that a link may name: its headings, as repositories and the site write them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", WRITTEN, ids=NAMES.get)
def test_links_of_a_page_lead_to_files_and_headings(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)|^:link: (\S+)$", text, re.MULTILINE):
        address = "".join(link)
        if "://" in address:
            continue
        path, _, place = address.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "auto_gallery" in target.parts:  # pages that the site makes
            continue
        if link[1] or not target.suffix:
            target = target.with_name(f"{target.name}.md")
        if not target.exists() or (place and place not in places(target)):
            broken.append(address)
    assert broken == []


def other_words():
    """Words that the glossary says are not used, by the word that is."""
    glossary = (ROOT / "doc" / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", glossary, re.MULTILINE | re.DOTALL)
    named = {word: re.search(r"\(Not: ([^)]*)\.\)", text) for word, text in entries}
    return {other: word for word, found in named.items() if found for other in found[1].split(", ")}


PRIVATE = (
    *("found out", "one sentence", "hand a model on", "mend", "mended", "mends"),
    *("goes on its way", "sits on", "speaks for", "whence"),
)
"""Pictures and phrases that a reader had to translate."""


@pytest.mark.parametrize("page", WRITTEN, ids=NAMES.get)
def test_one_word_for_one_thing(page):
    if page.name == "glossary.md":
        return
    text = " ".join(without_code(page.read_text(encoding="utf-8")).split())
    used = [word for word in (*other_words(), *PRIVATE) if re.search(rf"\b{word}\b", text, re.IGNORECASE)]
    assert used == []


def test_words_that_are_not_used_are_noticed():
    assert other_words()["holes"] == "missing cell"
    assert len(other_words()) > 12
    assert "twin" in without_code("a twin `hole` [b](hole.md)")
    assert "hole" not in without_code("a twin `hole` [b](hole.md)\n```\nhole\n```\n")


PUBLIC = ("", ".learners", ".plotting", ".compare", ".export", ".persistence", ".preprocessing")


@pytest.mark.parametrize("name", PUBLIC)
def test_the_reference_has_every_public_name(name):
    module = importlib.import_module(f"riskbayes{name}")
    page = (ROOT / "doc" / "reference" / "index.md").read_text(encoding="utf-8")
    listed = {
        line.split(".")[-1].strip() for line in page.splitlines() if line.strip().startswith("riskbayes.")
    }
    assert set(module.__all__) - listed - {"__version__"} == set()


def test_addresses_of_the_package_are_those_of_the_site():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert about["urls"]["Documentation"] == SITE
    assert all(address.startswith(SITE) for address in about["urls"].values())
    assert f'url: "{SITE}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    pages = {address.removeprefix(SITE) for address in about["urls"].values()} - {""}
    assert all((ROOT / "doc" / page).with_suffix(".md").exists() for page in pages)


def test_the_table_of_what_estimators_can_do_is_what_they_do():
    made = runpy.run_path(str(ROOT / "benchmarks" / "capabilities.py"))
    assert made["page"]() == made["PAGE"].read_text(encoding="utf-8"), "run python benchmarks/capabilities.py"


def test_the_page_of_the_command_has_every_command():
    text = (ROOT / "doc" / "command.md").read_text(encoding="utf-8")
    table = text.split("## compare")[0]
    own = set(main.list_commands(click.Context(main))) - {"bench", "reproduce"}  # of riskbayes-paper
    assert {name for name in own if f"`{name}" not in table} == set()
    assert len(own) > 10
