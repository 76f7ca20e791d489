"""The result of a comparison as one value: what a terminal, a page, JSON and Markdown show.

Everything in it is text, a number, a list or a dict, so that it can be written and read without loss.
`doc/report.md` documents it.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Self, get_args, get_origin, get_type_hints

from riskbayes.compare.markdown import report_as_markdown
from riskbayes.compare.page import report_page
from riskbayes.findings import Finding
from riskbayes.tables import shown

SCHEMA = 3
"""Version of the layout; it grows when a reader of an older one would go wrong."""


@dataclass(frozen=True)
class Score:
    """A figure on held-out rows and its standard error; None where it cannot be had."""

    value: float | None
    error: float | None = None
    """The standard error."""


@dataclass(frozen=True)
class ClassShare:
    """A class of the target: its label as text, and its rows in the whole table."""

    label: str
    rows: int
    share: float


@dataclass(frozen=True)
class ColumnSummary:
    """A column of the table: `kind` and `encoded` as in `clf.columns_`; `reason` says why it was left out."""

    name: str
    kind: str
    """One of "number", "category", "date" or "left out"."""
    encoded: tuple[str, ...] = ()
    """What models read of it: "number", "category", "weekday", "month", "hour", "is missing"."""
    reason: str = ""
    missing: float = 0.0
    """Share of the missing cells."""
    distinct: int | None = None
    """Number of distinct values that are not missing."""


@dataclass(frozen=True)
class DataSummary:
    """The table: where it came from, its size, its classes and its columns."""

    name: str
    """Name of the file."""
    rows: int
    """Rows of the whole table that have a label."""
    target: str
    """The column to predict."""
    classes: tuple[ClassShare, ...]
    columns: tuple[ColumnSummary, ...]
    """All columns but the target, and those that rows were held out by."""
    sha256: str = ""
    """Hash of the file, if it is known."""
    used_rows: int = 0
    """Rows that the figures come from; fewer than `rows` if a sample was taken."""
    rows_without_target: int = 0
    """Rows of the file that have no label; they were left out, and are not among `rows`."""


@dataclass(frozen=True)
class SplitSummary:
    """How rows were held out: `kind` is "holdout", "cv", "time" or "groups"; `words` says it in words.

    `train_rows` is the mean over the folds, `test_rows` counts every held-out row once.
    """

    kind: str
    folds: int
    """Number of fits of every model."""
    train_rows: int
    test_rows: int
    words: str
    column: str = ""
    """The column of time or of groups."""
    seed: int = 0


@dataclass(frozen=True)
class Contender:
    """One model and its figures on the held-out rows.

    `scores` has "error" (in percent), "log_loss", "brier", "calibration_error" and "auc";
    `Report.definitions` says what each is. `gain` has, for "error" and "log_loss", this model minus the
    majority class, paired row by row: below zero is better. `behind` is the same against the best model of
    the comparison (`Report.best`). Both are empty for the model itself.
    """

    name: str
    kind: str
    """ "riskbayes", "peer" (scikit-learn's) or "baseline" (the majority class)."""
    learner: str = ""
    """"RC" or "closed form"; empty for models of scikit-learn."""
    scores: dict[str, Score] = field(default_factory=dict)
    gain: dict[str, Score] = field(default_factory=dict)
    behind: dict[str, Score] = field(default_factory=dict)
    fit_seconds: float | None = None
    """Mean of the fits, with the encoding of the table."""
    predict_seconds: float | None = None
    """Mean over the folds, for the held-out rows of a fold."""
    failed: str = ""
    """Why it could not be fitted, in a sentence; empty if it was."""


@dataclass(frozen=True)
class ReliabilityBin:
    """Held-out rows of similar confidence: predicted and observed share of hits, with a 95 % interval."""

    predicted: float
    """Mean probability of the predicted class."""
    observed: float
    """Share of right answers."""
    low: float
    high: float
    rows: int


@dataclass(frozen=True)
class CellContribution:
    """What a cell adds to the log-odds that `RowLogOdds` of its row names; `value` is the cell as text."""

    column: str
    value: str
    contribution: float
    standard_error: float = 0.0
    """Of the contribution, where orders of the columns were drawn at random."""


@dataclass(frozen=True)
class RowLogOdds:
    """The log-odds of two classes in a row: `prior`, the cells and `others` add up to `total`.

    The classes are those of `clf.explain(table).log_odds()`: of two the second is in favour, of more the most
    probable one.
    """

    positive: str
    """The class in favour: it gains by contributions above zero."""
    positive_probability: float
    negative: str
    """The class against."""
    negative_probability: float
    prior: float
    """The log-odds before a cell is looked at."""
    other_columns: int
    """Columns that are read, besides those of the cells shown."""
    others: float
    """What these contribute together."""
    total: float
    """log(positive_probability / negative_probability)."""


@dataclass(frozen=True)
class RowExample:
    """A held-out row, a model's answer, and what its cells contributed to that answer (largest first)."""

    row: int
    """Its number in the file, counted from 0, the header not counted: `riskbayes explain --row` takes it."""
    truth: str
    predicted: str
    probability: float
    """Of the predicted class."""
    cells: tuple[CellContribution, ...] = ()
    """Empty if the row is too far from the training rows to be explained."""
    log_odds: RowLogOdds | None = None
    """What the cells add to; None where there are none."""


@dataclass(frozen=True)
class ColumnContribution:
    """How much a column drives the best model: its mean contribution, without the sign."""

    column: str
    contribution: float | None
    """To the log-odds of two classes, as in `RowLogOdds`; None if the model does not read the column."""
    error_alone: float | None = None
    """Held-out error of a model of this column alone, in percent."""


@dataclass(frozen=True)
class MovedParameter:
    """A parameter that calibration moved, in words, with its value before and after."""

    name: str
    """The column and the parameter."""
    before: float
    """In the closed form."""
    after: float
    """After calibration."""
    label: str = ""
    """The class that it belongs to."""


@dataclass(frozen=True)
class Run:
    """How to run it again."""

    command: str
    """The command as it was typed; empty if it was none."""
    versions: dict[str, str]
    """Of Python and of the packages, by name."""
    seed: int
    started: str
    """ISO time in UTC."""
    seconds: float
    """How long it took."""
    ignored: tuple[str, ...] = ()
    """Codes of findings that were asked to be left out."""


@dataclass(frozen=True)
class Report:
    """The whole answer, in the order in which it is read."""

    data: DataSummary
    split: SplitSummary
    verdict: str
    """How well this can be predicted, and how sure that is, in one or two sentences."""
    contenders: tuple[Contender, ...]
    """The models that could be fitted, the best in `metric` first; then those that failed."""
    best: str
    """Name of the best model of riskbayes; it is the one that is written to the model file."""
    why: str
    """Why that one, in a sentence."""
    labels: tuple[str, ...]
    """The classes as text."""
    confusion: tuple[tuple[int, ...], ...]
    """Held-out rows by true label (rows) and predicted label (columns), in the order of `labels`."""
    reliability: tuple[ReliabilityBin, ...]
    """Of the best model, in bins of equally many rows."""
    surest_wrong: tuple[RowExample, ...]
    """Held-out rows that the best model is surest and wrong about, with what their cells contributed."""
    contributions: tuple[ColumnContribution, ...]
    """Of the best model: the columns, the largest first; empty if rows are too far from the training rows."""
    examples: tuple[RowExample, ...]
    """Answers of the best model: of median confidence of the most frequent ones, and a close call."""
    moved: tuple[MovedParameter, ...]
    """The parameters that calibration moved most, in the model `moved_in`."""
    findings: tuple[Finding, ...]
    """What may be wrong; errors first, then warnings."""
    run: Run
    schema: int = SCHEMA
    """Version of the layout."""
    rule: str = ""
    """How the best model was chosen, and what that does to its figures."""
    definitions: dict[str, str] = field(default_factory=dict)
    """What each figure in `Contender.scores` is."""
    explained: str = ""
    """Name of the model whose contributions are shown, which is `best`; empty if there are none."""
    method: str = ""
    """How the contributions were found, as `Explanation.method`."""
    moved_in: str = ""
    """Name of the model whose parameters are shown in `moved`."""
    explorer: str = ""
    """The model `explained`, fitted to all rows, as JSON of `riskbayes.export`, and the rows `examples`: the
    page answers with it. Empty if it cannot be written, or is large."""
    metric: str = "log_loss"
    """The figure that the best model was chosen by: "log_loss", "error", "brier" or "auc"."""
    lead: str = "error"
    """The figure to look at first: "error", or "auc" where all classes but one are rare."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain dicts, lists, texts and numbers."""
        return json.loads(self.to_json())

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2, allow_nan=False)

    def to_html(self) -> str:
        """Return the report as one HTML file that needs no network."""
        return report_page(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the report that `to_dict` gave.

        Fields that this version does not know are left out; a layout that it cannot read is refused.
        """
        schema = values.get("schema") if isinstance(values, dict) else None
        if not isinstance(schema, int) or schema < 1:
            raise ValueError("This is no report of a comparison: it has no number `schema`.")
        if schema != SCHEMA:
            remedy = "Update riskbayes" if schema > SCHEMA else "Run the comparison again"
            raise ValueError(
                f"The report has layout {schema}, and this version reads layout {SCHEMA}. {remedy}."
            )
        return rebuild(cls, values, "report")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the report that `to_json` gave."""
        try:
            values = json.loads(text)
        except ValueError as error:
            raise ValueError(f"This is no report of a comparison, for it is no JSON: {error}.") from None
        return cls.from_dict(values)

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        return report_as_markdown(self)


def rebuild(kind: Any, value: Any, where: str) -> Any:
    """Return a value of JSON as the type that a field declares; refuse one of another type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise misfit(where, value)
        hints, given = get_type_hints(kind), {}
        for one in dataclasses.fields(kind):
            if one.name in value:
                given[one.name] = rebuild(hints[one.name], value[one.name], f"{where}.{one.name}")
            elif one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING:
                raise ValueError(f"The report lacks {where}.{one.name}.")
        return kind(**given)  # type: ignore[operator]
    if origin is tuple and isinstance(value, list):
        return tuple(rebuild(arguments[0], part, f"{where}[{i}]") for i, part in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {str(key): rebuild(arguments[1], part, f"{where}.{key}") for key, part in value.items()}
    if origin is UnionType:
        if value is None and NoneType in arguments:
            return None
        return rebuild(next(one for one in arguments if one is not NoneType), value, where)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind in (int, str) and type(value) is kind:
        return value
    raise misfit(where, value)


def misfit(where: str, value: Any) -> ValueError:
    """Return the error for a value of the wrong type."""
    return ValueError(f"{where} of the report cannot be {shown(value)}.")
