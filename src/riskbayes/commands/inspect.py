"""`riskbayes inspect`: what is in a model file."""

from __future__ import annotations

from typing import Any

import click

from riskbayes.commands._models import load_model, require_file, show_pairs
from riskbayes.commands._options import AS_JSON, MODEL, print_json


@click.command()
@MODEL
@AS_JSON
def inspect(model: str, as_json: bool) -> None:
    """Say what is in a model file.

    Trained on what, when, by which versions and settings, and with which figures on held-out rows.
    """
    require_file(model)

    from riskbayes.persistence import describe

    found = dict(describe(model))
    clf, about = load_model(model)
    found["columns"] = columns(clf)
    found["findings"] = findings(clf)
    if as_json:
        print_json(found)
        return
    show(model, found, about)


def columns(clf: Any) -> list[dict[str, Any]]:
    """Return what became of each column; empty if the model does not tell."""
    known = getattr(clf, "columns_", [])
    return [{"name": c.name, "kind": c.kind, "reason": c.reason, "missing": c.n_missing} for c in known]


def findings(clf: Any) -> list[str]:
    """Return what the checks of the model found."""
    return [str(finding) for finding in getattr(clf, "checks_", None) or ()]


def show(model: str, found: dict[str, Any], about: dict[str, Any]) -> None:
    """Print what is in a model file."""
    size = found.get("size")
    pairs: list[tuple[str, Any]] = [("file", model if size is None else f"{model}, {size} bytes")]
    pairs += [(name, short(found[name])) for name in ("class", "created", "versions") if found.get(name)]
    if about:
        from riskbayes.commands._training import summary

        pairs += summary(about)
        pairs += [("sha256 of the data", about["sha256"])] if about.get("sha256") else []
    else:
        pairs += [("parameters", short(found.get("parameters") or {}))]
        pairs += [(name, short(value)) for name, value in found["about"].items()]
    for kind in ("number", "category", "date", "left out"):
        named = [c for c in found["columns"] if c["kind"] == kind]
        if named:
            listed = [f"{c['name']} ({c['reason']})" if c["reason"] else c["name"] for c in named]
            pairs.append((f"{kind}: {len(named)}", ", ".join(listed)))
    pairs += [("finding", finding) for finding in found["findings"]]
    show_pairs(pairs)


def short(value: Any) -> str:
    """Return a value as text; a dict as its entries."""
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
