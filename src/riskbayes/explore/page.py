"""The page of `riskbayes explore`: one HTML file that computes in the browser and asks no network."""

from __future__ import annotations

from riskbayes import __version__
from riskbayes.pages.shell import environment


def explore_page() -> str:
    """Return the page; all that a person chooses is in the fragment of its address."""
    return environment(__package__).get_template("page.html").render(version=__version__)
