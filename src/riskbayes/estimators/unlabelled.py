"""Rows without a label: they enter the closed form by their posterior, by the EM algorithm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from riskbayes.arrays import Array, sum_of
from riskbayes.em import em
from riskbayes.estimators.checks import check_weights, list_of
from riskbayes.estimators.prediction import check_rows
from riskbayes.input.source import ArraySource, Source
from riskbayes.models.base import Fitted, GenerativeModel
from riskbayes.risks import log_evidence, posterior
from riskbayes.statistics import Statistics
from riskbayes.tables import is_missing
from riskbayes.task import Task

TOLERANCE = 1e-5
"""EM stops when the mean log-likelihood of a row rises by less than this."""

MAX_ITER = 100
"""The most iterations of EM."""


State = tuple[Statistics, Statistics | None]
"""The settled statistics of all rows, and the part of those without a label."""


class Split(NamedTuple):
    """Rows with a label, and rows without one."""

    labelled: Source
    others: Any
    """The rows without a label; None if there are none."""
    weights: Any
    """Their weights; None stands for one each."""


def split_rows(X: Any, y: Any, sample_weight: Any, marker: Any) -> Split:
    """Separate the rows whose label is `marker` (a label such as -1, or None or NaN for missing ones)."""
    labels = list_of(y)
    if _num_samples(X) != len(labels):
        raise ValueError(f"X has {_num_samples(X)} rows and y has {len(labels)} labels.")
    missing = is_missing(marker)
    mask = np.array([is_missing(label) if missing else label == marker for label in labels], dtype=bool)
    if mask.all():
        raise ValueError(
            f"Every label in y is {marker!r}, which unlabelled={marker!r} declares to be none: each class "
            "needs a row with its label."
        )
    w = None if sample_weight is None else np.asarray(sample_weight)
    if w is not None and w.shape != (len(labels),):
        raise ValueError(f"sample_weight has shape {w.shape}, and X has {len(labels)} rows.")
    own, others = np.flatnonzero(~mask), np.flatnonzero(mask if w is None else mask & (w != 0))
    known = np.array([labels[i] for i in own.tolist()])
    if not mask.any():
        return Split(ArraySource(X, known, sample_weight), None, None)
    return Split(
        ArraySource(_safe_indexing(X, own), known, None if w is None else w[own]),
        _safe_indexing(X, others) if len(others) else None,
        None if w is None else w[others],
    )


def with_unlabelled(clf: Any, task: Task, split: Split) -> Task:
    """Return the task of the labelled rows, with the expected statistics of the others in S.

    They are expected under the closed form of all rows, found by EM. The learner then starts from them and
    leaves them in place: residuals are those of the labelled rows.
    """
    X = clf._input.encode(clf, clf._input.read(clf, split.others, reset=False, learn=False))
    check_rows(clf, X, Fitted.of(task.model, task.S), "X")
    w = None
    if split.weights is not None:
        w = check_weights(split.weights, X, "sample_weight")
    S, expected = expectation_maximisation(task, X, w)
    return replace(task, S=S, other_rows=expected)


def expectation_maximisation(task: Task, X: Array, w: Array | None) -> tuple[Statistics, Statistics]:
    """Return the settled statistics of all rows, and the part of the rows X without a label.

    Each iteration weights these rows by their posterior in the closed form so far. The log-likelihood of all
    rows, sum log p(x, y) of those with a label + sum log p(x) of the others, never falls under maximum
    likelihood; EM stops when it rises by less than the tolerance. A prior that is pooled from the rows
    changes with the posteriors: a fall is then possible, and the statistics before it are returned.
    """
    model, labelled = task.model, task.S
    Z = model.encode(X, labelled.frame)
    total = labelled.total + (X.shape[0] if w is None else float(sum_of(w)))

    def parameters(state: State) -> tuple[State, Any]:
        return state, model.parameters(state[0])

    def expect(found: tuple[State, Any]) -> tuple[State, float]:
        theta = model.cast(found[1], Z)
        joint = model.log_joint(Z, theta)
        value = joint_log_likelihood(model, labelled, found[1], joint, w)
        P = posterior(joint)
        expected = model.posterior_statistics(Z, P if w is None else P * w[:, None], theta)
        return (model.fix_prior(labelled + expected), expected), value / total

    best, _ = em((labelled, None), parameters, expect, MAX_ITER - 1, TOLERANCE)
    assert best is not None
    (S, expected), _ = best if best[0][1] is not None else (expect(best)[0], None)  # at least one iteration
    assert expected is not None
    return S, expected


def joint_log_likelihood(
    model: GenerativeModel, labelled: Statistics, theta: Any, joint: Array, w: Array | None
) -> float:
    """Return the log-likelihood of labelled rows, by their statistics, and of others, by their log joints."""
    evidence = log_evidence(joint)
    value = float(sum_of(evidence if w is None else w * evidence))
    if model.implements("log_likelihood"):
        value += model.log_likelihood(labelled, theta)
    return value
