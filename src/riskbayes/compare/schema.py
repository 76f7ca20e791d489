"""The page that documents the JSON of a report, made from the dataclasses and their docstrings."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

from riskbayes.compare import report
from riskbayes.findings import Finding

HEAD = f"""# The report of a comparison as JSON

`riskbayes compare data.csv --target column --json` prints it, `report.to_json()` and `report.to_dict()` return
it, and `Report.from_json` and `Report.from_dict` read it. An object below is a JSON object with these members;
`tuple[X, ...]` is a list of X, and `None` is null. `schema` is {report.SCHEMA}: it grows when a reader of an
older layout would go wrong. New members may come without that: a reader should pass over what it does not know.

Made by `python -m riskbayes.compare.schema > doc/report.md`."""


def schema_page() -> str:
    """Return the page in Markdown: the report first, then the objects in it."""
    kinds = [report.Report, *(kind for kind in dataclasses_of(report) if kind is not report.Report), Finding]
    return "\n".join([HEAD, *(line for kind in kinds for line in lines_of(kind))]) + "\n"


def dataclasses_of(module: Any) -> list[type]:
    """Return the dataclasses that a module defines, in the order of its lines."""
    found = [kind for kind in vars(module).values() if dataclasses.is_dataclass(kind)]
    return [kind for kind in found if isinstance(kind, type) and kind.__module__ == module.__name__]


def lines_of(kind: type) -> Iterator[str]:
    """Yield the lines about one object."""
    about = inspect.getdoc(kind) or ""
    yield from ("", f"## {kind.__name__}", "", about.split("\n\nParameters\n")[0])
    yield from ("", "| member | type | what it is |", "| --- | --- | --- |")
    words = field_docs(kind)
    for field in dataclasses.fields(kind):
        kind_of = str(field.type).replace("|", "\\|")
        yield f"| `{field.name}` | `{kind_of}` | {words.get(field.name, '')} |"


def field_docs(kind: type) -> dict[str, str]:
    """Return the docstring that stands below each field of a dataclass, in one line."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
            found[field.target.id] = " ".join(str(after.value.value).split())  # type: ignore[attr-defined]
    return found


if __name__ == "__main__":
    print(schema_page(), end="")
