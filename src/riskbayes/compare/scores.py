"""Figures of probabilities on held-out rows, their standard errors, and paired differences of two models."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from riskbayes.arrays import Array
from riskbayes.compare.numbers import NORMAL, wilson
from riskbayes.compare.report import ReliabilityBin, Score

LEAST = float(np.finfo(np.float64).eps)
"""Probabilities of a label below this count as this in the log loss, as in scikit-learn's."""

BINS = 10

PAIRED = ("error", "log_loss")
"""Figures whose differences between models are reported."""

DEFINITIONS = {
    "error": "Held-out rows whose most probable class is wrong, in percent.",
    "log_loss": f"Mean of -log p(true class), natural logarithm; p is at least {LEAST:g}.",
    "brier": "Mean of the squared differences between probabilities and the truth, summed over classes; "
    "halved for two classes.",
    "calibration_error": "How far confidence and hit rate are apart, as a share: the mean over "
    f"{BINS} bins of equally many rows, ordered by the probability of the predicted class.",
    "auc": "How often a row of a class gets a higher probability of that class than a row of another: 0.5 is "
    "a coin, 1 is perfect. By fold, then averaged; of several classes the mean over held-out rows.",
}
"""What each figure is."""

METRICS = {"log_loss": "log loss", "error": "error", "brier": "Brier score", "auc": "AUC"}
"""Figures that models can be chosen by, and their names in a sentence."""


def row_losses(P: Array, codes: Array) -> dict[str, Array]:
    """Return the error (0 or 100), the log loss and the Brier score of each row."""
    right = P[np.arange(len(codes)), codes]
    truth = np.eye(P.shape[1])[codes]
    return {
        "error": 100.0 * (P.argmax(axis=1) != codes),
        "log_loss": -np.log(np.maximum(right, LEAST)),
        "brier": ((P - truth) ** 2).sum(axis=1) / (2 if P.shape[1] == 2 else 1),
    }


def all_scores(
    P: Array, codes: Array, groups: Array | None = None, folds: Array | None = None
) -> dict[str, Score]:
    """Return every figure with its standard error; `folds` has the part of the split of each row."""
    losses = row_losses(P, codes)
    found = {name: mean_score(values, groups) for name, values in losses.items()}
    if found["error"].error == 0:  # all answers are right, or all wrong: nobody is so sure
        share, units = losses["error"].mean() / 100, len(codes if groups is None else np.unique(groups))
        found["error"] = score(100 * share, 100 * wilson_error(round(share * units), units))
    found["calibration_error"] = calibration_error(P, codes, groups)
    area = ranking(P, codes, groups, folds)
    if area is not None:
        found["auc"] = score(area.auc, area.error)
    return found


def differences(P: Array, other: Array, codes: Array, groups: Array | None = None) -> dict[str, Score]:
    """Return the figures of P minus those of another model, paired row by row."""
    ours, theirs = row_losses(P, codes), row_losses(other, codes)
    return {name: mean_score(ours[name] - theirs[name], groups) for name in PAIRED}


def choosing_score(P: Array, codes: Array, folds: Array | None, metric: str) -> tuple[float, float]:
    """Return what models are chosen by, the least first: a figure, and the log loss of models alike in it."""
    losses = {name: float(values.mean()) for name, values in row_losses(P, codes).items()}
    if metric == "auc":
        area = ranking(P, codes, None, folds)
        losses["auc"] = 0.0 if area is None else -area.auc
    return losses[metric], losses["log_loss"]


def mean_score(values: Array, groups: Array | None = None) -> Score:
    """Return the mean of values by row and its standard error."""
    mean = float(values.mean())
    return score(mean, standard_error((values - mean) / len(values), groups))


def standard_error(parts: Array, groups: Array | None = None) -> float:
    """Return the standard error of a figure from what each row adds to its deviation.

    Rows of one group are not independent: what they add is summed by group first.
    """
    if groups is not None:
        parts = np.bincount(np.unique(groups, return_inverse=True)[1], parts)
    n = len(parts)
    return math.sqrt(float(parts @ parts) * n / (n - 1)) if n > 1 else math.nan


def score(value: float, error: float = math.nan) -> Score:
    """Return a score; what is not finite cannot be had."""
    value, error = float(value), float(error)
    return Score(value if math.isfinite(value) else None, error if math.isfinite(error) else None)


def bins_of(confidence: Array) -> list[Array]:
    """Return the rows of each bin: equally many, in the order of their confidence; equal ones together."""
    order = np.argsort(confidence, kind="stable")
    edges = [e for i in range(1, BINS) if (e := round(len(order) * i / BINS)) < len(order)]
    # A bin ends where the confidence changes, so that the order of rows has no say.
    ordered = confidence[order]
    edges = sorted({int(np.searchsorted(ordered, ordered[e], side="left")) for e in edges} - {0, len(order)})
    return [part for part in np.split(order, edges) if len(part)]


def calibration_error(P: Array, codes: Array, groups: Array | None = None) -> Score:
    """Return the expected calibration error of the confidence."""
    confidence, hit, m = P.max(axis=1), P.argmax(axis=1) == codes, len(codes)
    value, parts = 0.0, np.zeros(m)
    for rows in bins_of(confidence):
        gap = (confidence[rows] - hit[rows]).mean()
        value += abs(gap) * len(rows) / m
        parts[rows] = (hit[rows].mean() - hit[rows]) * (np.sign(gap) / m)
    return score(value, standard_error(parts, groups))


def overconfidence(P: Array, codes: Array, groups: Array | None = None) -> Score:
    """Return the mean confidence minus the share of hits, in points: above zero is too sure."""
    return mean_score(100 * (P.max(axis=1) - (P.argmax(axis=1) == codes)), groups)


class Ranking(NamedTuple):
    """How well probabilities rank rows of different classes."""

    auc: float
    error: float
    """Its standard error: DeLong's, with groups that of groups."""
    chance: float
    """Its standard deviation over all orders of the labels within the folds: the spread of mere chance."""

    @property
    def z(self) -> float:
        """How far it is from one half, in the larger of both errors; zero if it cannot be anything else."""
        return (self.auc - 0.5) / float(np.fmax(self.chance, self.error)) if self.chance else 0.0


def ranking(
    P: Array, codes: Array, groups: Array | None = None, folds: Array | None = None
) -> Ranking | None:
    """Return the area under the ROC curve: in each fold, then averaged; None if no fold has two classes.

    Probabilities of different folds come from different models, so only rows of one fold are ranked together.
    A row's placement is the share of rows of other classes that get less probability of its class. The mean
    of the placements is the AUC of two classes, and scikit-learn's "ovr", "weighted" one of several.
    """
    m, r = P.shape
    V, W = np.zeros((m, r)), np.zeros((m, r))  # placements, and their weights in the deviation of the figure
    chance, used = 0.0, 0
    for rows in [np.arange(m)] if folds is None else [np.flatnonzero(folds == f) for f in np.unique(folds)]:
        n, y = len(rows), codes[rows]
        counts = np.bincount(y, minlength=r)
        classes = np.flatnonzero((counts > 0) & (counts < n))
        if not len(classes):
            continue
        used += 1
        of_chance = np.zeros((n, r))
        for c in classes:
            own, p, inside = y == c, P[rows, c], counts[c]
            ranks = rankdata(p)
            V[rows[own], c] = (ranks[own] - rankdata(p[own])) / (n - inside)
            V[rows[~own], c] = 1 - (ranks[~own] - rankdata(p[~own])) / inside
            W[rows, c] = np.where(own, 1 / n, inside / n / (n - inside))
            of_chance[:, c] = (ranks - (n + 1) / 2) / (n * (n - inside))
        # The variance of a sum over i of A[i, y[i]], if y is put in any order (Hoeffding).
        shares, means = counts / n, of_chance.mean(axis=0)
        A = of_chance - means - (of_chance @ shares)[:, None] + means @ shares
        chance += float((A * A).sum(axis=0) @ counts) / (n - 1)
    if not used:
        return None
    W /= used
    own = np.eye(r, dtype=bool)[codes]
    middle = np.where(own, W * V, 0).sum(axis=0) / np.maximum(np.where(own, W, 0).sum(axis=0), LEAST)
    area = 0.5 + float((W * (V - 0.5))[own].sum())  # exactly one half where all rows are alike
    area = round(area, 12)  # and exactly one where no pair is wrong
    parts = (W * (V - middle)).sum(axis=1)
    total = np.bincount(codes, minlength=r)
    if groups is None:
        error = math.sqrt(float(parts**2 @ (total / np.maximum(total - 1, 1))[codes]))
    else:
        error = standard_error(parts, groups)
    if area in (0.0, 1.0):  # nobody is so sure
        few = int(total[total > 0].min()) if groups is None else len(np.unique(groups))
        error = wilson_error(few, few)
    return Ranking(area, error if (total > 1).sum() > 1 else math.nan, math.sqrt(chance) / used)


def reliability(P: Array, codes: Array, groups: Array | None = None) -> tuple[ReliabilityBin, ...]:
    """Return predicted and observed hits by bins of confidence, with Wilson's 95 % interval.

    With groups a bin counts as the number of independent rows that have the standard error of its groups.
    """
    confidence, hit = P.max(axis=1), P.argmax(axis=1) == codes
    found = []
    for rows in bins_of(confidence):
        n, mean = float(len(rows)), float(hit[rows].mean())
        if groups is not None:
            error = mean_score(hit[rows], groups[rows]).error or 0.0
            units = len(np.unique(groups[rows]))
            n = min(n, max(mean * (1 - mean) / error**2, 1.0)) if error else float(units)
        low, high = wilson(mean * n, n)
        found.append(ReliabilityBin(float(confidence[rows].mean()), mean, low, high, len(rows)))
    return tuple(found)


def wilson_error(hits: float, rows: float) -> float:
    """Return half of Wilson's interval in standard errors: for a share whose own standard error is zero."""
    low, high = wilson(hits, rows)
    return (high - low) / (2 * NORMAL)


def confusion(P: Array, codes: Array) -> tuple[tuple[int, ...], ...]:
    """Return the rows by true class (rows) and predicted class (columns)."""
    r = P.shape[1]
    counts = np.bincount(codes * r + P.argmax(axis=1), minlength=r * r).reshape(r, r)
    return tuple(tuple(line) for line in counts.tolist())
