"""The figures of the landing page, from the tables of results: how accurate, and when not to use riskbayes.

python benchmarks/site_figures.py          # writes doc/index.md between its marks

Nothing is fitted here. `family.csv` has 15 sets of numbers, `mixed.csv` 18 tables with strings and missing
cells, `docstrings.txt` and `density.txt` what their benchmarks printed; doc/accuracy.md, doc/tables.md and
doc/joint.md say how they were judged.
"""

import re
from pathlib import Path
from statistics import median

import pandas as pd
from mixed import INTERACTIONS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "doc" / "index.md"
BEGIN, END = (f"<!-- {part}: made by `python benchmarks/site_figures.py` -->" for part in ("begin", "end"))

SHOWN = {
    "RiskBayesClassifier()": ("default", "ensemble"),
    'RiskBayesClassifier("single")': ("single",),
    "CatBoost": ("CatBoost",),
    "LightGBM": ("LightGBM",),
    "histogram boosting": ("hist. gradient boosting", "histogram boosting"),
    "random forest": ("random forest",),
    "logistic regression": ("logistic regression",),
}
"""The methods of the table, by their names in the results, the first that is there."""


def results(name: str) -> pd.DataFrame:
    """Return the means over splits by set and method: errors in percent, losses, seconds."""
    table = pd.read_csv(RESULTS / f"{name}.csv")
    figures = [figure for figure in ("error", "log_loss", "seconds") if figure in table]
    found = table.groupby(["set", "method"])[figures].mean()
    found["error"] *= 100
    return found.unstack("method")


def column(found: pd.DataFrame, figure: str, method: str) -> pd.Series:
    """Return a figure of a method, by set."""
    return next(found[figure, name] for name in SHOWN[method] if (figure, name) in found)


def table() -> str:
    """Return the table of errors and log losses, means over the sets."""
    both = results("family"), results("mixed")
    n = len(both[1])
    lines = [
        f"| mean over tables, held out | 15 of numbers: error, % | log loss | {n} with strings, missing cells: error, % | log loss |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for method in SHOWN:
        cells = [
            f"{column(found, figure, method).mean():{form}}"
            for found in both
            for figure, form in (("error", ".2f"), ("log_loss", ".3f"))
        ]
        name = f"`{method}`" if "(" in method else method
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cautions() -> str:
    """Return when something else is better, a sentence and its figure each."""
    family, mixed = results("family"), results("mixed")
    ours = "RiskBayesClassifier()"
    named = "CatBoost"
    rules = {method: column(mixed, "error", method)[list(INTERACTIONS)] for method in (ours, named)}
    hardest = (rules[ours] - rules[named]).idxmax()
    lost = [
        int((column(found, "error", ours) > column(found, "error", "CatBoost")).sum())
        for found in (family, mixed)
    ]
    gap = (column(family, "error", ours) - column(family, "error", "CatBoost")).sort_values()
    worst = gap.index[-1]
    single, slow, peer = median_seconds()
    text, linear = text_losses()
    return "\n".join(
        [
            "- **The answer is an exact rule of three columns or more.** Use gradient boosting: most models here see single columns "
            f"and pairs. On {len(INTERACTIONS)} tables of rules CatBoost has "
            f"{rules[named].mean():.2f} % held-out error, `{ours}` {rules[ours].mean():.2f} %; on {hardest} {rules[named][hardest]:.2f} "
            f"and {rules[ours][hardest]:.2f} %. [Tables](tables.md)",
            f"- **You want the last tenth of a point and can try several tools.** Try CatBoost too: it is better on {lost[0]} of "
            f"{len(family)} tables of numbers and on {lost[1]} of {len(mixed)} with strings; by most on {worst}, "
            f"{column(family, 'error', 'CatBoost')[worst]:.2f} against {column(family, 'error', ours)[worst]:.2f} %. "
            "[Accuracy](accuracy.md)",
            f'- **Fits must take milliseconds.** Use logistic regression, or `RiskBayesClassifier("single")`: {single:.2f} s, the median '
            f"over these tables; `{ours}` takes {slow:.2f} s, CatBoost {peer:.2f} s. [Time](accuracy.md#time)",
            f"- **The rows are texts.** Use a linear model of words, or of embeddings: on docstrings logistic regression has a log "
            f"loss of {linear:.3f}, the best naive Bayes here {text:.3f}. Free text in a table is left out "
            "([RB032](findings/RB032.md)). [Counts and text](tables.md#counts-and-text)",
            '- **The densities themselves matter.** Use the closed form, a kernel density or a flow: calibrated by `learner="rc"`, '
            f"Gaussian naive Bayes has a held-out log density of {density_loss():+.3f} a column from its closed form. "
            "[What the joint is good for](joint.md#rows-that-the-model-does-not-know)",
            "- **Images, sound, sequences, regression, ranking.** Not done here at all: take a network, or scikit-learn's regressors.",
        ]
    )


def median_seconds() -> tuple[float, float, float]:
    """Return the median seconds of a fit of the recipe, of the default and of CatBoost."""
    lines = (RESULTS / "family_time.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split("│") for line in lines if line.startswith("│")]
    single, _, default, peer = (median(float(row[place]) for row in rows) for place in range(3, 7))
    return single, default, peer


def text_losses() -> tuple[float, float]:
    """Return the least log loss on docstrings of the models here, and that of logistic regression."""
    lines = [
        re.split(r"\s*│\s*", line.strip("│ \n"))
        for line in (RESULTS / "docstrings.txt").read_text(encoding="utf-8").splitlines()
        if line.startswith("│")
    ]
    theirs = next(float(cells[5]) for cells in lines if "LogisticRegression" in cells[0])
    return min(float(cells[5]) for cells in lines if "scikit-learn" not in cells[0]), theirs


def density_loss() -> float:
    """Return the median change of the log density a column, of Gaussian naive Bayes by the default."""
    for line in (RESULTS / "density.txt").read_text(encoding="utf-8").splitlines():
        cells = re.split(r"\s*│\s*", line.strip("│ \n"))
        if cells[:2] == ["GaussianNB", "learner='rc'"]:
            return float(cells[3])
    raise ValueError("density.txt has no line of GaussianNB by learner='rc'.")


def page() -> str:
    """Return the landing page with the figures of the present results."""
    made = iter((table(), cautions()))
    parts = re.split(
        f"({re.escape(BEGIN)}).*?(?={re.escape(END)})", PAGE.read_text(encoding="utf-8"), flags=re.S
    )
    return "".join(f"{part}\n\n{next(made)}\n\n" if part == BEGIN else part for part in parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
