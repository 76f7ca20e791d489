"""Findings: what may be wrong with data or with a fitted model, each with a code that a user can look up.

The text of a code says what it means, when not to worry and what to do; `doc/findings.md`, a page for each
code and `riskbayes findings` are made from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """What every finding of one code has in common."""

    name: str
    meaning: str
    when_not_to_worry: str
    what_to_do: str


CODES = {
    "RB001": Code(
        "floored covariance",
        "The training rows of a class do not determine its covariance, or calibration took too much from it; "
        "the smallest variances were raised to a floor.",
        "Columns that are sums of others, or copies, lead to it and do no harm.",
        "Drop redundant columns, raise covariance_strength (a prior), or use LinearDiscriminantAnalysis.",
    ),
    "RB002": Code(
        "too sure",
        "The probabilities are sharper than held-out rows allow: the model is wrong more often than it says.",
        "Only the predicted class is used, not its probability.",
        "Wrap the classifier in scikit-learn's CalibratedClassifierCV, or use the probabilities as ranks.",
    ),
    "RB003": Code(
        "leak suspected",
        "One column alone gives the answer away almost without error.",
        "The column is known at the time of prediction, and its tie with the target is real.",
        "Ask when and how the column is filled. If that is after the answer is known, leave it out.",
    ),
    "RB004": Code(
        "duplicates across the split",
        "Rows that are held out also stand among the training rows, so the held-out figures are too good.",
        "The same case can really come again, for instance in tables of few categories.",
        "Remove duplicates before the split, or keep rows of one origin together by a group column.",
    ),
    "RB005": Code(
        "constant column",
        "All rows have one value there; the column was left out.",
        "The table is an extract in which that value was selected.",
        "Nothing; or look whether the column was read as it should be.",
    ),
    "RB006": Code(
        "id column",
        "The column has a value of its own in almost every row, so it can only name rows. Strings of that "
        "kind are left out; whole numbers are read as numbers.",
        "It is a name, a key or a running number; or a measurement that the rows are sorted by, to be kept.",
        "Leave such numbers out. If the cells are quantities that were not read, write them as plain numbers "
        "or ISO dates. If a part of the column has a meaning (a prefix, a date), make a column of that part. "
        "To keep its words: --kind COLUMN=category, in Python columns={...}.",
    ),
    "RB007": Code(
        "missing cells",
        "Many cells of the column are missing.",
        "Cells are missing in the same way when the model is used.",
        "Ask why they are missing, and whether the reason is known at the time of prediction.",
    ),
    "RB008": Code(
        "class of few rows",
        "The class has few rows: little can be learned about it, and its figures are uncertain.",
        "Errors on the class matter little.",
        "Collect more rows of the class, or join it with another.",
    ),
    "RB009": Code(
        "drift",
        "The column is distributed differently in the training rows and in the later rows.",
        "The column is a date or a running number that must grow.",
        "Ask what changed; train on recent rows, or leave the column out.",
    ),
    "RB010": Code(
        "nothing to predict",
        "No model is better than always answering the most frequent class, or ranks rows better than a coin, "
        "beyond chance.",
        "The target is known to be hard, and a small gain in the log loss is all that is asked.",
        "Look for columns that have to do with the target, or for more rows.",
    ),
    "RB011": Code(
        "stopped at the limit",
        "Calibration was still lowering its objective when max_iter was reached.",
        "The history is flat at its end.",
        "Raise max_iter of the learner.",
    ),
    "RB012": Code(
        "equal rows, different answers",
        "Rows that are equal in every column have different labels: no model can get all of them right.",
        "The answer is a matter of chance, and its probability is what is asked.",
        "Add columns that tell such rows apart, or look for errors in the labels.",
    ),
    "RB013": Code(
        "another model is better",
        "A model of another kind has a lower error on the held-out rows than the best one of riskbayes, or, "
        "where a class is rare, a lower log loss, by more than two standard errors.",
        "The difference is too small to matter for what the model is used for.",
        'Try strategy="ensemble", or use that model.',
    ),
    "RB014": Code(
        "strong single column",
        "One column alone predicts a large part of what can be predicted, and far more than any other "
        "column.",
        "It is known at the time of prediction.",
        "Make sure that it is, and compare without it.",
    ),
    "RB015": Code(
        "unseen categories",
        "Held-out rows, or rows to predict, have categories that no training row has; they count as missing.",
        "They are few.",
        "Train on rows that have them, or join rare categories; where a column has no other ones, write its "
        "words as in training.",
    ),
    "RB016": Code(
        "sample of the rows",
        "The table is large, and models were compared on a sample of its rows.",
        "The sample is large: the standard errors say how sure the figures are.",
        "Nothing; or raise max_rows, and have more time.",
    ),
    "RB017": Code(
        "RC is worse than its closed form",
        "Calibration made the error or the log loss of a model worse on the held-out rows, by more than two "
        "standard errors, and neither of them better: it fitted the training rows too closely.",
        "Another model was chosen.",
        'Use learner="rc_cv" of that model, which chooses on held-out rows how far to calibrate, or '
        'learner="closed_form"; or collect more rows.',
    ),
    "RB018": Code(
        "worse than the most frequent class",
        "The best model of riskbayes makes more errors than always answering the most frequent class.",
        "Its probabilities or its ranks are used, not its answers; it was chosen by them.",
        "Compare with --metric error, choose a threshold other than one half, or give costs to `decide`.",
    ),
    "RB020": Code(
        "labels that differ by case or blanks",
        "Labels of the target are the same but for upper case, blanks or the coding of accents, and count as "
        "different classes.",
        "The difference has a meaning.",
        "Write each label in one way.",
    ),
    "RB021": Code(
        "class without training rows",
        "Held-out rows are of a class that no training row has: no model can answer it.",
        "The class is new, and will be in the rows that the model is fitted to.",
        "Hold rows out in another way, or compare without the class.",
    ),
    "RB022": Code(
        "relation that turns round",
        "What the column says about the target in the earlier rows is the opposite of what it says in the "
        "later ones.",
        "The later rows are known to be an exception.",
        "Ask what changed; train on recent rows, or leave the column out.",
    ),
    "RB023": Code(
        "near copy of the target",
        "The column has a value for each class, and it is the right one in most rows: it may be the answer "
        "itself, from another hand or another time.",
        "The column is known at the time of prediction, as the opinion of an expert may be.",
        "Ask when and how the column is filled. If that is after the answer is known, leave it out.",
    ),
    "RB024": Code(
        "values that give the answer away",
        "All rows, or almost all, that have certain values of the column are of one class.",
        "The values are known at the time of prediction, and a rule says what follows from them.",
        "Ask when and how these values are filled in. If after the answer is known, leave the column out.",
    ),
    "RB025": Code(
        "almost no errors",
        "A model makes almost no errors, and no single column explains that; several together may.",
        "The target follows from the columns by a rule, or its classes are known to be far apart.",
        "Look for columns that are filled after the answer is known, or that the answer was computed from.",
    ),
    "RB026": Code(
        "repeated keys",
        "Rows that share a value of the column are alike, as rows of one person or place are: with some of "
        "them in training and some held out the figures are too good for new persons or places.",
        "The model is used for the same persons or places.",
        "Hold rows out by the column: riskbayes compare --group, or compare(..., group=...).",
    ),
    "RB027": Code(
        "columns that say the same",
        "Each value of one column goes with one value of the other, but for rounding: naive Bayes "
        "counts what they say twice.",
        "The best model is none of naive Bayes.",
        "Leave one of them out.",
    ),
    "RB028": Code(
        "rows without a target",
        "The cell of the target is empty in some rows, or holds a word for missing ones, such as NA, None or "
        "a question mark; these rows were left out.",
        "The answer is not known there: an empty last row, a row of totals, cases that are still open.",
        "Ask whether such rows differ from the others. If the word is a class, write it in another way.",
    ),
    "RB029": Code(
        "cells that were not read",
        "Most cells of a column of a text file are numbers or dates, and some are not: these count as "
        "missing; where they are many, or all cells are written in a way that is not known, the column is "
        "read as text.",
        "The cells are words for missing values, or codes.",
        "Write all cells in one way, or say what the column holds: --kind COLUMN=number, date or category.",
    ),
    "RB030": Code(
        "notation that was guessed",
        "The cells of a column can be read in two ways, as 1,234 and 03/04/2025 can, and no cell of the file "
        "tells which is right.",
        "The way that was taken, which the finding says, is the right one.",
        "Say how the file is written: --decimal, --date-order.",
    ),
    "RB031": Code(
        "lines below the table",
        "Lines at the end of a text file are no rows, but totals or footnotes; they were left out.",
        "It is so.",
        "Take them out of the file. If the last one is a row, fill its first cell in another way.",
    ),
    "RB032": Code(
        "free text",
        "The column holds sentences of its own in most rows, as comments and descriptions are. Models "
        "here do not read words, so it was left out.",
        "It says nothing about the answer that other columns do not say.",
        "Make columns of what matters in it: a word that occurs or not, its length, the number of items. If "
        "its values are categories: --kind COLUMN=category, in Python columns={...}.",
    ),
    "RB033": Code(
        "new rows differ",
        "The rows that the model is to predict (--against) are distributed differently from rows that were "
        "held out: columns moved, or the classes come at other frequencies.",
        "The class frequencies changed, and only the order of the rows by probability matters; or the column "
        "that moved hardly drives the model.",
        "For other class frequencies: clf.with_priors(clf.estimate_priors(X_new)). For a column: ask what "
        "changed (a unit, a source, a default), and correct it or leave the column out. `riskbayes drift` "
        "compares files with a model that is stored.",
    ),
}
"""What the codes mean. A code, once given, keeps its meaning."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Parameters
    ----------
    code : str
        A key of `CODES`.
    message : str
        What was found, in a sentence with its figures.
    where : str, default=""
        The column, the class or the model that it is about.
    severity : {"info", "warning", "error"}, default="warning"
        How much it weighs: "error" means that the figures cannot be trusted.
    """

    code: str
    message: str
    where: str = ""
    severity: str = "warning"

    @property
    def about(self) -> Code:
        """What every finding of this code has in common."""
        return CODES[self.code]

    def __str__(self) -> str:
        return f"{self.code} {self.about.name}: {self.message}"


def without(findings: Iterable[Finding], ignored: Collection[str]) -> list[Finding]:
    """Return the findings whose codes are not ignored; refuse a code that does not exist."""
    for code in ignored:
        if code not in CODES:
            raise ValueError(f"There is no finding with the code {code!r}; known are {', '.join(CODES)}.")
    return [finding for finding in findings if finding.code not in ignored]
