"""What the site has besides its pages: the list of findings' pages, the page to play with, and `llms.txt`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes

from riskbayes.explore.page import explore_page

FINDINGS = "\n```{toctree}\n:hidden:\n:glob:\n\nfindings/*\n```\n"
"""Below `findings.md`, which is read outside the site too, where this would be noise."""

PLAY = '\n\n<p><a class="sd-btn sd-btn-primary" href="play.html">Open the page</a></p>\n\n'
"""Below the title of `explore.md`: outside the site there is no such page."""

ABOUT = """# riskbayes

> Generative classifiers (naive Bayes, discriminant analysis) trained by risk-based calibration, as
> scikit-learn estimators and as a command for tables. "Calibration" adjusts the statistics of the model
> by its risk; it is not probability calibration.
"""


def add_what_the_site_has(app: Any, docname: str, source: list[str]) -> None:
    """Add what other readers of these files have no use for: lists and links of the site."""
    if docname == "findings":
        source[0] += FINDINGS
    if docname == "explore":
        source[0] = source[0].replace("\n\n", PLAY, 1)


def in_order(env: Any, docname: str, seen: set[str]) -> Iterator[str]:
    """Yield the pages below a page, in the order of the tables of contents."""
    for below in env.toctree_includes.get(docname, []):
        if below not in seen:
            seen.add(below)
            yield below
            yield from in_order(env, below, seen)


def write_explore(app: Any, error: Exception | None) -> None:
    """Write `play.html`: the page that `riskbayes explore` serves, as it is."""
    if error is None and app.builder.name == "html":
        (Path(app.outdir) / "play.html").write_text(explore_page(), encoding="utf-8")


def write_llms(app: Any, error: Exception | None) -> None:
    """Write `llms.txt`: each page of the site with its address and its first sentences."""
    if error is not None or app.builder.name != "html":
        return
    lines = [ABOUT]
    for docname in in_order(app.env, "index", {"index"}):
        if docname not in app.env.titles:
            continue
        title = app.env.titles[docname].astext()
        first = next(iter(app.env.get_doctree(docname).findall(nodes.paragraph)), None)
        words = " ".join(first.astext().split())[:240] if first is not None else ""
        lines.append(f"- [{title}]({app.config.html_baseurl}{docname}.html): {words}")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Connect to the build."""
    app.connect("source-read", add_what_the_site_has)
    app.connect("build-finished", write_explore)
    app.connect("build-finished", write_llms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
