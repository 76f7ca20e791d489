"""Model selection on held-out rows: folds, checkpoints along a fit, and the choice among them.

Early stopping, RCCV and RiskBayesClassifier learn everything that a fit needs from the kept rows (knots,
trees and components too) and select by the risk of the held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from riskbayes.arrays import Array
from riskbayes.engines.base import Engine
from riskbayes.exceptions import RowsLostError
from riskbayes.loop import LoopLearner, run
from riskbayes.models.base import Fitted
from riskbayes.risks import posterior
from riskbayes.statistics import Statistics
from riskbayes.task import Iteration, Outcome, Status, Task, no_callback
from riskbayes.threads import OneBlasThread

ROUNDS = 30
"""Members that the greedy selection of an ensemble takes, with repeats."""

TOLD = 3.0
"""Standard errors by which held-out labels must support a model, which is else taken for one of noise."""

LEAST = 1e-6
"""The least probability of a row that supports a model."""

MOST_KEPT = 2**20
"""Upper bound on rows x classes of the posteriors that are kept: 4 MiB per candidate."""


def fold_task(task: Task, kept: Engine, held: Engine) -> Task:
    """Return the task on the kept rows, with everything learned from them and the held rows as validation.

    The weights of the kept rows are scaled to sum to those of all rows, so that priors and anchors act as
    they do on all rows.
    """
    model, others = task.model, task.other_rows
    start = None if task.start is task.S else task.start
    if not model.traits.additive and (start is not None or others is not None):
        raise ValueError(
            f"{type(model).__name__} learns its structure from the rows, and a fold learns its own: "
            "statistics of other rows (warm_start, calibrate, unlabelled) cannot be taken over by it. Hold "
            "no rows out, or fit labelled rows anew with warm_start=False."
        )
    mass = task.S.total - (0.0 if others is None else others.total)
    frame, train = kept.learn(model), kept.scaled(mass / kept.mass)
    S = train.statistics(model, frame)
    S = model.fix_prior(S if others is None else S + others)
    if not model.is_legal(S):
        raise ValueError("Too few rows of a class are left to train on when others are held out.")
    if start is not None:  # replace the part of s(X, Y) in it by that of the kept rows
        moved = S + (start - task.S)
        S = S.to_frame(moved.frame)
        start = moved if model.is_legal(moved) else S
    return replace(task, engine=train, S=S, start=start, validation=held)


def hold_out(task: Task, fraction: float, random: np.random.RandomState) -> Task:
    """Return the task on part of the rows with the others as validation; each class has rows in both."""
    counts = task.engine.class_counts()
    if counts.min() < 2:
        raise ValueError("early_stopping needs two rows or more of each class; pass X_val and y_val to fit.")
    r, m = len(counts), int(counts.sum())
    size = min(max(r, round(fraction * m)), m - r)
    return fold_task(task, *task.engine.hold_out(size, random))


def bootstrap_start(task: Task, random: np.random.RandomState) -> Statistics:
    """Return the statistics of a bootstrap sample, scaled to the total of S; S if they are not legal."""
    S = task.engine.bootstrap(random).statistics(task.model, task.S.frame)
    drawn = ((task.S.total / S.total) * S).to_frame(task.S.frame) if S.total > 0 else task.S
    return drawn if task.model.is_legal(drawn) else task.S


def started_at(task: Task, start: Statistics) -> Task:
    """Return the task with a start that was counted from part of its rows; as it is if that is not legal."""
    frame = task.S.frame.join(start.frame)
    moved = start.to_frame(frame)
    return replace(task, S=task.S.to_frame(frame), start=moved) if task.model.is_legal(moved) else task


def walk_folds(
    task: Task,
    work: Callable[[Task, Engine], list[dict[str, float]]],
    n_folds: int,
    random_state: Any,
    n_jobs: int | None,
) -> list[dict[str, float]]:
    """Return risks of held-out rows: those that `work` returns for each fold, averaged by their weight.

    `work` is given the task of the kept rows, and the held rows.
    """
    quiet = replace(task, on_iteration=no_callback)

    def walk(kept: Engine, held: Engine) -> tuple[list[dict[str, float]], float]:
        return work(replace(fold_task(quiet, kept, held), validation=None), held), held.mass

    jobs = effective_n_jobs(n_jobs)
    with OneBlasThread() if jobs > 1 else nullcontext():  # threads for folds or for scans, not for both
        folds = Parallel(n_jobs=jobs, prefer="threads")(
            delayed(walk)(kept, held) for kept, held in task.engine.folds(n_folds, random_state)
        )
    masses = [mass for _, mass in folds]
    return [
        {name: float(np.average([each[name] for each in alike], weights=masses)) for name in alike[0]}
        for alike in zip(*(found for found, _ in folds), strict=True)
    ]


def run_path(task: Task, path: Iterable[LoopLearner]) -> Iterator[Outcome]:
    """Run one learner after the other, each from where the one before ended, until the user stops one."""
    for learner in path:
        outcome = run(task, learner)
        yield outcome
        if outcome.status.is_stop:
            return
        task = replace(task, start=outcome.fitted.S)


def check_finished(status: Status) -> None:
    """Raise the error that ended a fit early: nothing can be selected by an unfinished history."""
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if status is Status.LOST:
        raise RowsLostError(f"No model can be selected: {status.message}.")


def posteriors_along(task: Task, learner: LoopLearner, held: Engine, checkpoints: Sequence[int]) -> Array:
    """Return posteriors of the held rows at iterations of one fit, of shape (checkpoints, rows, classes).

    A checkpoint has the last accepted model up to it. Rows whose scores overflow have NaN, so that the
    checkpoint is never selected.
    """
    at: dict[int, Fitted] = {}

    def keep(iteration: Iteration) -> bool:
        at.update({point: iteration.fitted for point in checkpoints if point >= iteration.number})
        return False

    check_finished(run(replace(task, on_iteration=keep), learner).status)
    distinct = {id(fitted): fitted for fitted in at.values()}

    def finite_or_nan(Z: Any, plan: Any, first: int) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return posterior(task.model.scores(Z, plan))

    found = dict(zip(distinct, held.map_rows(list(distinct.values()), finite_or_nan), strict=True))
    return np.stack([found[id(at[point])] for point in checkpoints])


def support(P: Array, y: Array, w: Array | None, rows: Array | None = None) -> float:
    """Return by how many standard errors held-out labels support posteriors against the class frequencies.

    That is the score test of the power t in p(y) (p(y | x) / p(y))^t, at zero: the log odds of the label,
    less their mean over labels that are drawn from p(y). One row counts little, however sure of it P is.
    `rows` are the numbers of the rows, where splits hold some of them out several times: a label tells once.
    """
    w = np.ones(len(y)) if w is None else w
    prior = np.bincount(y, w, P.shape[1]) / w.sum()
    odds = np.log(np.maximum(P, LEAST)) - np.log(np.maximum(prior, LEAST))
    gains = odds[np.arange(len(y)), y] - odds @ prior
    mean = np.average(gains, weights=w)
    away = w * (gains - mean)
    away = away if rows is None else np.bincount(rows, away)
    error = np.sqrt((away**2).sum()) / w.sum()
    return float(mean / max(error, 1e-12))


def comparable(scores: Array) -> Array:
    """Return scores without the digits that rounding decides; one that is not finite becomes infinite."""
    return np.where(np.isfinite(scores), scores.round(12), np.inf)


@dataclass
class HeldOut:
    """Risks of candidates on held-out rows at checkpoints of their fits, and the choice by these risks.

    An ensemble combines posteriors, so those of the best checkpoint of each candidate are kept too, as
    float32; of many rows only those of a random sample.

    Parameters
    ----------
    y : array of int, shape (m,)
        Class codes of the held rows, fold after fold.
    w : array of shape (m,) or None
        Their weights.
    n_classes : int
        The number of classes.
    combine : bool
        True to keep posteriors, for `ensemble`.
    rows : array of int, shape (m,), optional
        The numbers of the held rows, some of which may be there several times.
    """

    y: Array
    w: Array | None
    n_classes: int
    combine: bool
    rows: Array | None = None
    errors: list[Array] = field(default_factory=list)
    """Held-out error of each candidate, by checkpoint."""
    log_losses: list[Array] = field(default_factory=list)
    posteriors: list[Array] = field(default_factory=list)
    """Posteriors of the kept rows at the best checkpoint of each candidate, of shape (rows, classes)."""

    def __post_init__(self) -> None:
        m, most = len(self.y), max(1, MOST_KEPT // self.n_classes)
        self.kept = np.arange(m) if m <= most else np.sort(np.random.default_rng(0).permutation(m)[:most])

    def add(self, folds: Iterable[Array]) -> None:
        """Add a candidate, by its posteriors of shape (checkpoints, rows, classes), fold after fold."""
        start, wrong, loss, kept = 0, 0.0, 0.0, []
        for P in folds:
            rows = slice(start, start + P.shape[1])
            y, w = self.y[rows], np.ones(P.shape[1]) if self.w is None else self.w[rows]
            own = np.maximum(P[:, np.arange(len(y)), y], 1e-15).astype(np.float64)
            wrong, loss = wrong + (P.argmax(axis=2) != y) @ w, loss - np.log(own) @ w
            if self.combine:
                chosen = self.kept[(self.kept >= rows.start) & (self.kept < rows.stop)]
                kept.append(P[:, chosen - start].astype(np.float32))
            start = rows.stop
        total = len(self.y) if self.w is None else self.w.sum()
        self.errors.append(wrong / total)
        self.log_losses.append(loss / total)
        if self.combine:
            best = self.scores()[-1].argmin()
            self.posteriors.append(np.concatenate([P[best] for P in kept]))

    def scores(self) -> Array:
        """Return error + log loss by candidate and checkpoint: the least one is selected.

        The log loss separates candidates whose errors on few rows are equal. A score that is not finite
        becomes infinite.
        """
        return comparable(np.array(self.errors) + np.array(self.log_losses))

    def best(self) -> dict[tuple[int, int], float]:
        """Return weight 1 for the candidate and checkpoint of the least score; of equal ones the first."""
        scores = self.scores()
        candidate, place = np.unravel_index(np.argmin(scores), scores.shape)
        return {(int(candidate), int(place)): 1.0}

    def ensemble(self) -> dict[tuple[int, int], float]:
        """Return weights of candidates, each at its best checkpoint, by greedy selection on the kept rows.

        Each round adds the posterior that lowers the score of the mean most.
        """
        y, w = self.y[self.kept], None if self.w is None else self.w[self.kept]
        row, total = np.arange(len(y)), np.zeros(self.posteriors[0].shape, np.float32)
        finite = np.isfinite(self.scores().min(axis=1))
        chosen: list[int] = []
        best, kept = np.inf, 0
        for number in range(1, ROUNDS + 1):
            scores = []
            for P, usable in zip(self.posteriors, finite, strict=True):
                mixed = total + P
                error = np.average(mixed.argmax(axis=1) != y, weights=w)
                loss = np.average(-np.log(np.maximum(mixed[row, y] / number, 1e-15)), weights=w)
                scores.append(error + loss if usable and np.isfinite(loss) else np.inf)
            chosen.append(int(np.argmin(scores)))
            total += self.posteriors[chosen[-1]]
            if scores[chosen[-1]] < best - 1e-12:
                best, kept = scores[chosen[-1]], number
        places = self.scores().argmin(axis=1).tolist()
        return {(i, places[i]): chosen[:kept].count(i) / kept for i in sorted(set(chosen[:kept]))}

    def is_told(self, weights: dict[tuple[int, int], float]) -> bool:
        """True if the kept rows support the mean posterior of these candidates."""
        P = sum(weight * self.posteriors[i] for (i, _), weight in weights.items())
        w, rows = (None if own is None else own[self.kept] for own in (self.w, self.rows))
        return support(P, self.y[self.kept], w, rows) > TOLD
