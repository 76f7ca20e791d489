"""The pages that are made from the code: doc/findings.md, the codes; a page for each code in doc/findings/;
doc/report.md, the JSON of a report.

python benchmarks/contract_pages.py
"""

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from riskbayes.compare import report
from riskbayes.findings import CODES, Code, Finding

DOC = Path(__file__).parents[1] / "doc"

FINDINGS = """# Findings

What `riskbayes compare` and `checks_` of a fitted estimator report. A code keeps its meaning. To leave
findings out: `riskbayes compare --ignore RB004`, `compare(..., ignore=["RB004"])`, or
`riskbayes.findings.without(clf.checks_, ["RB004"])`. A finding is an `info`, a `warning`, or an `error`: then
the figures cannot be trusted before it is looked at. `riskbayes findings RB004` prints what a code means.

Made by `python benchmarks/contract_pages.py`."""

CODE = """# {code} {name}

{meaning}

**When not to worry.** {when_not_to_worry}

**What to do.** {what_to_do}

In a terminal: `riskbayes findings {code}`. To leave it out: `riskbayes compare --ignore {code}`, or
`riskbayes.findings.without(clf.checks_, ["{code}"])`. [All findings](../findings.md).

Made by `python benchmarks/contract_pages.py`.
"""

REPORT = f"""# The report of a comparison as JSON

`riskbayes compare data.csv --target column --json` prints it, `report.to_json()` and `report.to_dict()`
return it, and `Report.from_json` and `Report.from_dict` read it. An object below is a JSON object with these
members; `tuple[X, ...]` is a list of X, and `None` is null. `schema` is {report.SCHEMA}: it grows when a
reader of an older layout would go wrong. New members may come without that: a reader should pass over what it
does not know.

Made by `python benchmarks/contract_pages.py`."""


def pages() -> dict[str, str]:
    """The pages by their file names."""
    single = {f"findings/{code}.md": code_page(code, about) for code, about in CODES.items()}
    return {"findings.md": findings_page(), **single, "report.md": report_page()}


def code_page(code: str, about: Code) -> str:
    """The page of one code, whose address stays."""
    return CODE.format(code=code, **dataclasses.asdict(about))


def findings_page() -> str:
    lines = [FINDINGS]
    for code, about in CODES.items():
        lines += ["", f"## {code} {about.name}", "", about.meaning, ""]
        lines += [f"- When not to worry: {about.when_not_to_worry}", f"- What to do: {about.what_to_do}"]
    return "\n".join(lines) + "\n"


def report_page() -> str:
    """The report first, then the objects in it."""
    found = [kind for kind in vars(report).values() if dataclasses.is_dataclass(kind)]
    own = [kind for kind in found if kind.__module__ == report.__name__ and kind is not report.Report]
    kinds = [report.Report, *own, Finding]
    return "\n".join([REPORT, *(line for kind in kinds for line in lines_of(kind))]) + "\n"


def lines_of(kind: Any) -> Iterator[str]:
    """The lines about one object."""
    about = inspect.getdoc(kind) or ""
    yield from ("", f"## {kind.__name__}", "", about.split("\n\nParameters\n")[0])
    yield from ("", "| member | type | what it is |", "| --- | --- | --- |")
    words = field_docs(kind) | parameter_docs(about)
    for field in dataclasses.fields(kind):
        kind_of = str(field.type).replace("|", "\\|")
        yield f"| `{field.name}` | `{kind_of}` | {words.get(field.name, '')} |"


def field_docs(kind: type) -> dict[str, str]:
    """The docstring that stands below each field of a dataclass, in one line."""
    body, found = ast.parse(inspect.getsource(kind)).body[0].body, {}
    for field, after in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
            found[field.target.id] = " ".join(after.value.value.split())
    return found


def parameter_docs(about: str) -> dict[str, str]:
    """What a section of parameters in a docstring says about each."""
    _, _, section = about.partition("\n\nParameters\n----------\n")
    parts = re.findall(r"^(\w+) : .*\n((?:    .*\n?)+)", section, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in parts}


if __name__ == "__main__":
    (DOC / "findings").mkdir(exist_ok=True)
    for name, page in pages().items():
        (DOC / name).write_text(page, encoding="utf-8")
