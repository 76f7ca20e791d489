"""The model that a page answers with when its reader changes the cells of a row, and rows to start from."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from riskbayes.compare.report import ColumnContribution, RowExample
from riskbayes.compare.study import Study
from riskbayes.export import portable, to_json
from riskbayes.tables import is_missing, plain

MOST_CHARACTERS = 2**20
"""A larger model is left out of the report: a page should load at once."""


def explorer(
    study: Study, model: Any, contributions: Sequence[ColumnContribution], examples: Sequence[RowExample]
) -> str:
    """Return a fitted model with its columns in the order of their contributions, and the example rows.

    It is JSON, in ASCII; empty if the model cannot be written, or is no sum over the columns, or too large.
    """
    if not examples:
        return ""
    try:
        value = portable(model)
    except (NotImplementedError, ValueError):  # a category that is no string or number, a name twice
        return ""
    if "contributions" not in value:
        return ""
    place = {column["name"]: j for j, column in enumerate(value["columns"])}
    order = [place[one.column] for one in contributions if value["columns"][place[one.column]]["reads"]]
    data = study.data
    at = np.searchsorted(data.rows, [row.row for row in examples])
    rows = [
        {"row": row.row, "cells": [json_cell(cell) for cell in data.cells(i)]}
        for row, i in zip(examples, at.tolist(), strict=True)
    ]
    found = to_json({"model": value, "order": order, "rows": rows})
    return found if order and len(found) <= MOST_CHARACTERS else ""


def json_cell(value: Any) -> Any:
    """Return a cell as the exported model reads it: dates as ISO text, durations in days, times in hours."""
    value = plain(value)
    if is_missing(value) or value == "":
        return None
    if isinstance(value, bool | str):
        return value
    if isinstance(value, datetime.datetime):
        zoned = value if value.tzinfo is None else value.astimezone(datetime.UTC)
        return zoned.replace(tzinfo=None).isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value / datetime.timedelta(days=1)
    if isinstance(value, datetime.time):
        return value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600
    if isinstance(value, int | float | Decimal):
        return float(value)
    return str(value)
