"""`riskbayes findings`: what the codes of findings mean."""

from __future__ import annotations

import dataclasses

import click

from riskbayes.commands._errors import BadInput
from riskbayes.commands._options import AS_JSON, print_json, say
from riskbayes.findings import CODES
from riskbayes.web import SITE, finding_page


@click.command()
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@AS_JSON
def findings(codes: tuple[str, ...], as_json: bool) -> None:
    """Say what the codes of findings mean, such as RB003.

    Without a code: the names of all. `compare`, `fit` and `inspect` print findings, and the report shows
    them.
    """
    wanted = [known_code(code) for code in codes]
    if as_json:
        print_json([{"code": code, **dataclasses.asdict(CODES[code])} for code in wanted or CODES])
    elif wanted:
        for place, code in enumerate(wanted):
            if place:
                say("")
            for line in lines_about(code):
                say(line)
    else:
        for code, about in CODES.items():
            say(f"{code} {about.name}")
        say(f"riskbayes findings CODE tells more; so does {SITE}findings.html")


def known_code(text: str) -> str:
    """Return the code that a user wrote, also in small letters or without RB."""
    code = text.upper()
    code = f"RB{int(code):03d}" if code.isdecimal() else code
    if code not in CODES:
        last = max(CODES)
        raise BadInput(
            f"There is no finding with the code {text!r}; they go from RB001 to {last}. "
            "riskbayes findings lists them."
        )
    return code


def lines_about(code: str) -> list[str]:
    """Return what a code means, in lines."""
    about = CODES[code]
    return [
        f"{code} {about.name}",
        f"What it means: {about.meaning}",
        f"When not to worry: {about.when_not_to_worry}",
        f"What to do: {about.what_to_do}",
        finding_page(code),
    ]
