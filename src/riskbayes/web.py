"""Addresses of the documentation on the web: the only place that knows where it is."""

SITE = "https://riskbayes.readthedocs.io/en/stable/"
"""The pages of `doc/`."""

REFERENCE = SITE + "reference/generated/riskbayes.{estimator_name}.html"
"""The page of an estimator or a learner, as scikit-learn's HTML representation asks for it."""


def finding_page(code: str) -> str:
    """Return the address of the page about a code of findings, which stays."""
    return f"{SITE}findings/{code}.html"
