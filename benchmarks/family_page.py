# ruff: noqa: E501 (lines of the page)
"""The page "How accurate is it?" and its picture, from the table of `benchmarks/family.py`."""

from pathlib import Path
from typing import Any

import numpy as np
from family import CONTROL, HEADS, OURS, PARTIAL, PEERS, REMEDIES, Family
from matplotlib import rc_context
from study import RESULTS

from riskbayes.pages.shell import COLOURS
from riskbayes.plotting import new_figure
from riskbayes_paper.datasets import PAPER_TABULAR

TWINS, TIME = RESULTS / "twins.txt", RESULTS / "family_time.txt"
COMPOSED = RESULTS / "compose.txt", RESULTS / "compose_mixed.txt"
MARKS = {
    "single": ("o", "#4aa8e0"),
    "neighbours": ("s", "#0072b2"),
    "ensemble": ("D", "#cc79a7"),
    "random forest": ("x", "#d55e00"),
}


README = Path(__file__).parents[1] / "README.md"
MARKS_OF_README = (
    "<!-- begin: made by `python benchmarks/family.py --doc doc/accuracy.md` -->",
    "<!-- end: made by `python benchmarks/family.py --doc doc/accuracy.md` -->",
)


def write(study: Family, doc: Path) -> None:
    """The page, beside it the picture that it shows, and the table of README."""
    begin, end = MARKS_OF_README
    before, _, rest = README.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    README.write_text(f"{before}{begin}\n\n{readme_table(study)}\n\n{end}{after}", encoding="utf-8")
    picture = doc.with_suffix(".svg")
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": picture.name}):
        gaps_figure(study).savefig(picture, facecolor="white", metadata={"Date": None})
    doc.write_text(page(study, picture.name), encoding="utf-8")


def gaps_figure(study: Family) -> Any:
    """Each set's error less that of CatBoost, with the paired standard error over splits."""
    figure = new_figure(7.2, 5.6)
    ax = figure.add_subplot()
    places = np.arange(len(PAPER_TABULAR))[::-1]
    for number, (method, (mark, colour)) in enumerate(MARKS.items()):
        points = 100 * (study.grid(method) - study.grid("CatBoost"))
        error = points.std(axis=1, ddof=1) / np.sqrt(points.shape[1])
        y = places + 0.3 - 0.2 * number
        ax.errorbar(
            points.mean(axis=1),
            y,
            xerr=error,
            fmt=mark,
            color=colour,
            markersize=5,
            linewidth=1,
            label=method,
        )
    ax.axvline(0.0, color=COLOURS["muted"], linewidth=1)
    for place in places[:-1]:
        ax.axhline(place - 0.5, color=COLOURS["muted"], linewidth=0.3, alpha=0.6)
    ax.set_yticks(places, [name.replace("_", " ") for name in PAPER_TABULAR], fontsize=9)
    ax.set_ylim(-0.5, len(PAPER_TABULAR) - 0.5)
    ax.set_xlabel("held-out error less that of CatBoost, points", fontsize=9)
    ax.tick_params(length=0, labelsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.09), ncols=4, frameon=False, fontsize=9)
    return figure


def markdown(head: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def readme_table(study: Family) -> str:
    """Mean error and log loss of the strategies and of their peers."""
    methods = ("single", "neighbours", "cv", "ensemble", *PEERS)
    errors = [f"{100 * study.grid(m).mean():.2f}" for m in methods]
    losses = [study.grid(m, "log_loss").mean() for m in methods]
    rows = [
        ["held-out error, %", *errors],
        ["log loss", *("" if np.isnan(loss) else f"{loss:.3f}" for loss in losses)],
    ]
    return markdown(("", *methods), rows)


def worth(study: Family, a: str, b: str) -> str:
    gap, error, better, worse = study.gap(a, b)
    return f"{gap:+.2f} ± {error:.2f} points, better on {better} sets, worse on {worse}"


def sharpened(study: Family) -> str:
    """Sets on which RC raised the log loss of the recipe, and what the remedies do there."""
    loss = {m: study.grid(m, "log_loss").mean(axis=1) for m in ("single", "single, closed form", *REMEDIES)}
    there = loss["single"] > loss["single, closed form"] + 0.001
    if not there.any():
        return "RC raised the log loss of the recipe on no set."
    names = "; ".join(
        f"{name} ({before:.3f} to {after:.3f})"
        for name, before, after, raised in zip(
            PAPER_TABULAR, loss["single, closed form"], loss["single"], there, strict=True
        )
        if raised
    )
    remedies = ", ".join(f"{m.removeprefix('single, ')} {loss[m][there].mean():.3f}" for m in REMEDIES)
    return (
        f"RC raised the log loss of the recipe on {there.sum()} sets, where it sharpened too much: {names}. "
        f"On average it is {loss['single'][there].mean():.3f} there, with the remedies: {remedies}."
    )


def composed(key: str, label: str, mixed: bool) -> str:
    """Return "error %, log loss" of a line of the tables of `benchmarks/compose.py`."""
    for line in COMPOSED[mixed].read_text().splitlines():
        if (line[:26].strip(), line[26:62].strip()) == (key, label):
            error, loss = line[62:].split()[:2]
            return f"{error} %, {loss}"
    return ""


def composed_table() -> str:
    """What single members and ensembles reach on the splits for composing, numbers and tables."""
    lines = [
        (f"{key}, {'closed form' if scans == '0' else '16 scans'}", key, scans)
        for key in ("product", "product with neighbours", "leaves")
        for scans in ("0", "16")
    ]
    lines.append(("a plain forest of such trees", "forest", "0"))
    labels = (
        *("the family", "closed forms only", "the best member alone", "without product with neighbours"),
        *("without leaves", "without LDA", "without QDA, n", "product for that with neighbours"),
        *("the control: forest for leaves", "with forest", "with product of normal scores"),
    )
    lines += [(f"ensemble: {label}", "ensemble", label) for label in labels]
    rows = [[name, composed(key, label, False), composed(key, label, True)] for name, key, label in lines]
    return markdown(("", "15 sets of numbers", "13 tables"), rows)


def partial_peer(study: Family) -> str:
    """Return what the explainable boosting machine reached, on the sets where all its fits ended."""
    whole = ~np.isnan(study.grid(PARTIAL)).any(axis=1)
    if not whole.any():
        return "The explainable boosting machine was not run."
    names = [name for name, there in zip(PAPER_TABULAR, whole, strict=True) if there]
    listed = "; ".join(
        f"{m} {100 * study.grid(m)[whole].mean():.2f} % and {study.grid(m, 'log_loss')[whole].mean():.3f}"
        for m in (PARTIAL, "single", "ensemble", "CatBoost")
    )
    return (
        "The explainable boosting machine of interpret-core takes minutes a fit (`benchmarks/family.py "
        '--methods "explainable boosting"`, on 16 cores), and all its fits ended within the limit on '
        f"{len(names)} sets only: {', '.join(names)}. Error and log loss there: {listed}."
    )


def page(study: Family, picture: str) -> str:
    """Return the page of the documentation; every number comes from a table of results."""
    ensemble, peer = (100 * study.grid(m).mean(axis=1) for m in ("ensemble", "CatBoost"))
    lost = [
        f"{n} ({ensemble[i]:.2f} against {peer[i]:.2f})"
        for i, n in enumerate(PAPER_TABULAR)
        if ensemble[i] > peer[i] + 1e-9
    ]
    mean = {m: f"{100 * study.grid(m).mean():.2f}" for m in (*OURS, *PEERS, *REMEDIES)}
    loss = {m: f"{study.grid(m, 'log_loss').mean():.3f}" for m in mean if m != "RBF SVC"}
    gap = {m: f"{study.grid(m, 'calibration_error').mean():.3f}" for m in mean if m != "RBF SVC"}
    first, last = study.splits[0], study.splits[-1]
    less, error = study.loss_gap("ensemble", "CatBoost")
    control_less, control_error = study.loss_gap("ensemble", CONTROL)
    return f"""# How accurate is it?

<!-- Written by `python benchmarks/family.py --doc doc/accuracy.md` from benchmarks/results/family.csv. -->

`RiskBayesClassifier` beside its peers, with their defaults, on the {len(PAPER_TABULAR)} tabular sets of the
paper: 75/25 splits, `random_state` {first} to {last}, sets cut to {study.most_rows} rows, everything chosen inside
the training rows. Errors in percent on **held-out** rows; gaps in points, ± their standard error over splits
(paired), and on how many sets a method is better:worse. Tables with strings and holes: [tables.md](tables.md).

{markdown(HEADS["summary"], study.summary())}

"single" is one recipe without a search; "neighbours" adds a model of the nearest training rows to it; "cv" is
the member and iteration of the least cross-validated error and log loss, "ensemble" the greedy average of
members. "Closed forms only" is the same choice among the same models without RC.

The ensemble against CatBoost: {worth(study, "ensemble", "CatBoost")}; its log loss is {less:+.4f} ± {error:.4f}
from CatBoost's. RC is worth

- to the single recipe: {worth(study, "single", "single, closed form")};
- to the choice by cross-validation: {worth(study, "cv", "cv, closed forms only")};
- to the ensemble: {worth(study, "ensemble", "ensemble, closed forms only")}.

The neighbours beside the recipe: {worth(study, "neighbours", "single")}. Beside `RC.paper()` on categorical
naive Bayes of five bins the ensemble has {worth(study, "ensemble", "RC.paper NB")}.

{partial_peer(study)}

## Neighbours and leaves

Two models find what a product of columns cannot. **Neighbours** (`models/neighbours.py`) is a kernel density
whose statistics are a weight for each class and training row: near rows vote, in a space that is whitened by
the within-class covariance and stretched where the classes differ; categories are as far apart as their class
frequencies. A row is left out of its own neighbours in training, so that labels that are noise look like
noise. Twins and local structure come from here. **Leaves** (`models/leaves.py`) are the leaves of 60 extremely
randomised trees as 60 categorical columns, each with a power of 1/30: interactions come from here. In every
fold the metric and the trees are learned anew from its rows.

What RC is worth to each, a plain forest of such trees (there grown on the columns themselves, not on ranks), and
what the ensemble loses without a member, on the splits for composing (`benchmarks/compose.py`): error, log loss.

{composed_table()}

On the judging splits the ensemble with leaves, against that with a plain forest of the same trees in their
place: {worth(study, "ensemble", CONTROL)}, and {control_less:+.4f} ± {control_error:.4f} in log loss. RC lowers the error of the leaves
alone and raises their log loss: they become too sharp, which the average mends. The neighbours earn their place
beside the recipe as one model; in the ensemble the leaves find most of the same. `benchmarks/results/compose.txt`
has what else was tried and left out because it is within the noise: the product of normal scores, TAN, mixtures,
coarse leaves, twice as many trees. A temperature was not kept: the halved powers of the product with neighbours do
as much.

## How often was looked

The recipe and the family were composed on splits 0 to 2 and 100 to 104, where some 150 settings were compared
over time, about 40 of them for this family; `benchmarks/results/compose.txt` has the last of these. Splits
{first} to {last} were looked at once, after everything was fixed, for all methods in one run; only the control was
fitted again afterwards, for its trees had been others than those of the leaves, and so was "single": a table of
bank customers, in use, showed that a first step could be too long and end the fit at once, and its step is now halved
then, as composed on splits 0 to 2 and 100 to 102. An earlier family had been judged on
splits 3 to 7, six times.

## Set by set

![Held-out error of each set less that of CatBoost]({picture})

{markdown(HEADS["by_set"], study.by_set())}

CatBoost is still better than the ensemble on {len(lost)} sets: {"; ".join(lost) or "none"}. Red wine has rows
that are equal (`python benchmarks/twins.py`, on other splits): {TWINS.read_text().strip()}

## Probabilities

{markdown(HEADS["probabilities"], study.probabilities())}

Seconds are those of a fit in one thread, on a machine that did other work too; below are times in two threads.
{sharpened(study)}

Remedies for a single model that is too sharp, over all sets:

- `CalibratedClassifierCV(RiskBayesClassifier(), cv=4)`: log loss {loss["single, calibrated"]}, calibration
  error {gap["single, calibrated"]}, error {mean["single, calibrated"]} (without it {mean["single"]});
- a larger anchor, `RC(..., generative_weight=0.3)`: log loss {loss["single, g = 0.3"]}, calibration error
  {gap["single, g = 0.3"]}, error {mean["single, g = 0.3"]};
- fewer iterations, 8 in place of 24: log loss {loss["single, 8 iterations"]}, calibration error
  {gap["single, 8 iterations"]}, error {mean["single, 8 iterations"]};
- `strategy="neighbours"`: log loss {loss["neighbours"]}, calibration error {gap["neighbours"]};
- the ensemble: log loss {loss["ensemble"]}, calibration error {gap["ensemble"]}.

## Time

`python benchmarks/family.py --time` (seconds of a fit; CatBoost in two threads):

```
{TIME.read_text().strip()}
```

## Which smooth density

`benchmarks/smooth_nb.py` compares forms of `SmoothNB` on splits 0 to 2; `benchmarks/results/smooth_nb.txt` is
what it printed. After RC the density that integrates to one has the lower error than frequencies left
unnormalised, so it stays. Held-out likelihood wants some rows in the exponential tails, and prefers 5 % of
them at each end to 1 %; in the recipe the error is lower with 1 %, which stays the default of the model
(`SmoothModel(outer=...)`).
"""
