"""The scores of the members of :class:`RiskBayesClassifier`, as a dict of arrays, best first."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.arrays import Array
from riskbayes.displayed import Leaderboard
from riskbayes.estimators.member import CHECKPOINTS
from riskbayes.search import HeldOut


def cross_validated(
    names: list[str], found: HeldOut, seconds: list[float], weights: dict[tuple[int, int], float]
) -> Leaderboard:
    """Return an entry for each member tried, with its scores at its best checkpoint."""
    errors, losses, scores = np.array(found.errors), np.array(found.log_losses), found.scores()
    order, best = np.argsort(scores.min(axis=1), kind="stable"), scores.argmin(axis=1)[:, None]

    def at_best(values: Array) -> Array:
        return np.take_along_axis(values, best, axis=1)[order, 0]

    return leaderboard(
        member=[names[i] for i in order],
        cv_error=at_best(errors),
        cv_error_closed_form=errors[order, 0],
        cv_log_loss=at_best(losses),
        cv_score=at_best(scores),
        n_iter=np.array(CHECKPOINTS)[best[order, 0]],
        seconds=[seconds[i] for i in order],
        weight=[sum(v for (m, _), v in weights.items() if m == i) for i in order],
    )


def in_train(member: str, clf: Any, seconds: float) -> Leaderboard:
    """Return the one entry of a member that was fitted without a search, with risks of the training rows."""
    history, at = clf.history_, clf.best_iteration_
    return leaderboard(
        member=[member],
        train_error=history["error"][[at]],
        train_error_closed_form=history["error"][:1],
        train_log_loss=history["log_loss"][[at]],
        n_iter=[at],
        seconds=[seconds],
        weight=[1.0],
    )


def leaderboard(member: list[str], **columns: Any) -> Leaderboard:
    """Return the columns as arrays; names have the dtype object, so that each is a str."""
    entries = {"member": np.array(member, dtype=object)} | {k: np.asarray(v) for k, v in columns.items()}
    return Leaderboard(entries)
