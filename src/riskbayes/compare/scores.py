"""Figures of probabilities on held-out rows, their standard errors, and paired differences of two models."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import rankdata

from riskbayes.arrays import Array
from riskbayes.compare.report import ReliabilityBin, Score

LEAST = float(np.finfo(np.float64).eps)
"""Probabilities of a label below this count as this in the log loss, as in scikit-learn's."""

BINS = 10

NORMAL = 1.96
"""Standard errors to each side of a 95 % interval."""

PAIRED = ("error", "log_loss")
"""Figures whose differences between models are reported."""

DEFINITIONS = {
    "error": "Held-out rows whose most probable class is wrong, in percent.",
    "log_loss": f"Mean of -log p(true class), natural logarithm; p is at least {LEAST:g}.",
    "brier": "Mean of the squared differences between probabilities and the truth, summed over classes; "
    "halved for two classes.",
    "calibration_error": "How far confidence and hit rate are apart, as a share: the mean over "
    f"{BINS} bins of equally many rows, ordered by the probability of the predicted class.",
    "auc": "Probability that a row of the second class gets a higher score than a row of the first.",
}
"""What each figure is."""


def row_losses(P: Array, codes: Array) -> dict[str, Array]:
    """Return the error (0 or 100), the log loss and the Brier score of each row."""
    right = P[np.arange(len(codes)), codes]
    truth = np.eye(P.shape[1])[codes]
    return {
        "error": 100.0 * (P.argmax(axis=1) != codes),
        "log_loss": -np.log(np.maximum(right, LEAST)),
        "brier": ((P - truth) ** 2).sum(axis=1) / (2 if P.shape[1] == 2 else 1),
    }


def all_scores(P: Array, codes: Array, groups: Array | None = None) -> dict[str, Score]:
    """Return every figure with its standard error."""
    losses = row_losses(P, codes)
    found = {name: mean_score(values, groups) for name, values in losses.items()}
    if found["error"].error == 0:  # all answers are right, or all wrong: nobody is so sure
        wrong, m = int(losses["error"].sum() / 100), len(codes)
        low, high = wilson(wrong, m)
        found["error"] = score(100 * wrong / m, 100 * (high - low) / (2 * NORMAL))
    found["calibration_error"] = calibration_error(P, codes)
    if P.shape[1] == 2:
        found["auc"] = auc(P[:, 1], codes == 1)
    return found


def differences(P: Array, other: Array, codes: Array, groups: Array | None = None) -> dict[str, Score]:
    """Return the figures of P minus those of another model, paired row by row."""
    ours, theirs = row_losses(P, codes), row_losses(other, codes)
    return {name: mean_score(ours[name] - theirs[name], groups) for name in PAIRED}


def choosing_score(P: Array, codes: Array) -> float:
    """Return the sum of error, as a share, and log loss: models are chosen by it."""
    losses = row_losses(P, codes)
    return float(losses["error"].mean() / 100 + losses["log_loss"].mean())


def lift(P: Array, codes: Array, groups: Array | None = None) -> Score:
    """Return how much more probability the true class gets than a class drawn by the frequencies, in points.

    It is zero on average if the columns say nothing about the class, however sure the model is, which makes
    it a test of that: the error does not move where one class is frequent, and a model that is too sure has
    a large log loss.
    """
    shares = np.bincount(codes, minlength=P.shape[1]) / len(codes)
    return mean_score(100 * (P[np.arange(len(codes)), codes] - P @ shares), groups)


def mean_score(values: Array, groups: Array | None = None) -> Score:
    """Return the mean of values by row and its standard error.

    Rows of one group are not independent: their deviations from the mean are then summed by group first.
    """
    m, mean = len(values), float(values.mean())
    sums = values - mean
    if groups is not None:
        sums = np.bincount(np.unique(groups, return_inverse=True)[1], sums)
    n = len(sums)
    return score(mean, math.sqrt(float(sums @ sums) * n / (n - 1)) / m if n > 1 else math.nan)


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


def calibration_error(P: Array, codes: Array) -> Score:
    """Return the expected calibration error of the confidence."""
    confidence, hit, m = P.max(axis=1), P.argmax(axis=1) == codes, len(codes)
    value = variance = 0.0
    for rows in bins_of(confidence):
        gap = (confidence[rows] - hit[rows]).mean()
        value += abs(gap) * len(rows) / m
        variance += (len(rows) / m) ** 2 * (hit[rows].var() / len(rows))
    return score(value, math.sqrt(variance))


def overconfidence(P: Array, codes: Array, groups: Array | None = None) -> Score:
    """Return the mean confidence minus the share of hits, in points: above zero is too sure."""
    return mean_score(100 * (P.max(axis=1) - (P.argmax(axis=1) == codes)), groups)


def auc(scores: Array, positive: Array) -> Score:
    """Return the area under the ROC curve and DeLong's standard error."""
    m, n = int(positive.sum()), int((~positive).sum())
    if not m or not n:
        return Score(None)
    ranks = rankdata(scores)
    above = (ranks[positive] - rankdata(scores[positive])) / n
    below = 1 - (ranks[~positive] - rankdata(scores[~positive])) / m
    if m < 2 or n < 2:
        return score(above.mean())
    return score(above.mean(), math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n))


def reliability(P: Array, codes: Array) -> tuple[ReliabilityBin, ...]:
    """Return predicted and observed hits by bins of confidence, with Wilson's 95 % interval."""
    confidence, hit = P.max(axis=1), P.argmax(axis=1) == codes
    found = []
    for rows in bins_of(confidence):
        low, high = wilson(int(hit[rows].sum()), len(rows))
        mean = float(hit[rows].mean())
        found.append(ReliabilityBin(float(confidence[rows].mean()), mean, low, high, len(rows)))
    return tuple(found)


def wilson(hits: int, rows: int, z: float = NORMAL) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    p, c = hits / rows, z * z / rows
    middle, half = (p + c / 2) / (1 + c), z * math.sqrt(p * (1 - p) / rows + c / (4 * rows)) / (1 + c)
    return max(0.0, middle - half), min(1.0, middle + half)


def confusion(P: Array, codes: Array) -> tuple[tuple[int, ...], ...]:
    """Return the rows by true class (rows) and predicted class (columns)."""
    r = P.shape[1]
    counts = np.bincount(codes * r + P.argmax(axis=1), minlength=r * r).reshape(r, r)
    return tuple(tuple(line) for line in counts.tolist())
