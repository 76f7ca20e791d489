"""A list and a dict of estimators that notebooks show as tables: `checks_` and `leaderboard_`."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from riskbayes.arrays import Array
from riskbayes.findings import Finding
from riskbayes.markup import shown_as_html
from riskbayes.web import finding_page


class Findings(list[Finding]):
    """A list of findings."""

    def _repr_html_(self) -> str:
        """Return the findings with what to do about them; codes lead to their pages."""
        if not self:
            return Markup("<p>{}</p>").format("Nothing was found.")
        link = Markup('<a href="{}" rel="noopener noreferrer">{}</a>')
        lines = [
            (
                link.format(finding_page(finding.code), f"{finding.code} {finding.about.name}"),
                finding.severity,
                finding.message,
                finding.about.what_to_do,
            )
            for finding in self
        ]
        return shown_as_html(f"{len(self)} found", ("code", "severity", "what", "what to do"), lines)


class Leaderboard(dict[str, Array]):
    """A dict of arrays of one length, with an entry for each member of a search."""

    def _repr_html_(self) -> str:
        """Return a line for each member, in the order of the arrays."""
        lines = [tuple(map(shown, entries)) for entries in zip(*self.values(), strict=True)]
        return shown_as_html(f"{len(lines)} tried, best first", tuple(self), lines)


def shown(entry: object) -> str:
    """Return an entry as a text; numbers have four digits."""
    return f"{entry:.4g}" if isinstance(entry, float | np.floating) else str(entry)
