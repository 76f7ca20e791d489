"""The report of a comparison as one HTML file, which needs no network and works without its script.

It answers in this order: how well, which model, can it be trusted, what drives it, what is wrong with the
data, how to run it again.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from riskbayes.compare.numbers import percent, plural
from riskbayes.compare.page_data import data_section, run_section
from riskbayes.compare.page_drivers import drivers_section
from riskbayes.compare.page_models import answer_section, models_section
from riskbayes.compare.page_parts import paragraph
from riskbayes.compare.page_trust import trust_section
from riskbayes.markup import element, foreign, text

if TYPE_CHECKING:  # the report calls this page, so it imports it first
    from riskbayes.compare.report import Report

SECTIONS = {
    "answer": ("How well", answer_section),
    "models": ("Which model", models_section),
    "trust": ("Trust", trust_section),
    "drivers": ("What drives it", drivers_section),
    "data": ("The data", data_section),
    "again": ("Run it again", run_section),
}
"""Addresses of the sections in their order, what the navigation calls them, and how they are made."""

NAMED_CLASSES = 4
"""Classes that the head of the page names."""


def report_page(report: Report) -> str:
    """Return the page of a report, a whole HTML file."""
    title = f"Predicting {report.data.target} in {report.data.name}"
    links = "".join(element("a", text(words), href=f"#{name}") for name, (words, _) in SECTIONS.items())
    body = "\n".join(make(report) for _, make in SECTIONS.values())
    script = resource("page.js")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>\n{resource('page.css')}</style>\n</head>\n<body>\n"
        f"<header>\n{head(report)}\n</header>\n"
        f'<nav aria-label="Sections">{links}</nav>\n<main>\n{body}\n</main>\n'
        f"<footer><p>Made by riskbayes {text(report.run.versions.get('riskbayes', ''))}. "
        "This file is whole: it asks no network for anything.</p></footer>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def head(report: Report) -> str:
    """Return the heading of the page and what the table is."""
    data = report.data
    named = ", ".join(f"{foreign(c.label)} ({percent(c.share)})" for c in data.classes[:NAMED_CLASSES])
    rest = len(data.classes) - NAMED_CLASSES
    named += f" and {rest} more" if rest > 0 else ""
    about = (
        f"{plural(data.rows, 'row')}, {plural(len(data.columns), 'column')}; "
        f"{plural(len(data.classes), 'class', 'classes')}: {named}"
    )
    if 0 < data.used_rows < data.rows:
        about += f". The figures come from a sample of {plural(data.used_rows, 'row')}."
    named = element("span", foreign(data.name), class_="file")
    return f"<h1>Can {foreign(data.target)} be predicted?</h1>\n" + paragraph(f"{named} {about}", "about")


def policy(script: str) -> str:
    """Return what the page may do: its own style and its own script, known by its hash, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def resource(name: str) -> str:
    """Return the text of a file that lies beside this one."""
    return (files(__package__) / name).read_text(encoding="utf-8")
