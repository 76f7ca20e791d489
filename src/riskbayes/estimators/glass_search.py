"""What held-out rows gain by: a power of the recipe, tables of columns, tables of pairs of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from riskbayes.arrays import Array
from riskbayes.estimators.glass import PAIRS, TABLES, GlassClassifier, Walk
from riskbayes.estimators.kinds import Kinds
from riskbayes.estimators.leaderboard import Leaderboard, leaderboard
from riskbayes.estimators.member import CHECKPOINTS, SearchedMember, family_learner, frequencies
from riskbayes.exceptions import ColumnError
from riskbayes.models.correction import LEAST, Ridge
from riskbayes.risks import log_posterior
from riskbayes.search import TOLD, support

POWERS = (0.85, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02)
"""Powers of the recipe's odds that are tried besides one: where it is too sure, a small one."""

IDLE = 2
"""Strengths in a row that do not lower the score, after which no weaker one is tried."""


@dataclass(frozen=True)
class Held:
    """A candidate on held-out rows, fold after fold."""

    name: str
    log_posteriors: Array
    log_loss: Array
    """Of each row, at most -log `LEAST`."""
    wrong: Array
    weights: Array
    strength: float
    seconds: float

    @classmethod
    def of(
        cls, name: str, joints: Sequence[Array], y: Array, weights: Array, strength: float, seconds: float
    ) -> Self:
        """Judge the log joints of rows with labels y."""
        logs = log_posterior(np.concatenate(joints))
        loss = np.minimum(-logs[np.arange(len(y)), y], -np.log(LEAST))
        wrong = (logs.argmax(axis=1) != y).astype(np.float64)
        return cls(name, logs, loss, wrong, weights, strength, seconds)

    def mean(self, values: Array) -> float:
        """Return the weighted mean of values of the rows."""
        return float(np.average(values, weights=self.weights))

    @property
    def score(self) -> float:
        """Log loss plus error, rounded: equal models differ in the last digits."""
        return round(self.mean(self.log_loss + self.wrong), 9)

    def gain_over(self, other: Held) -> float:
        """Return by how much the score is lower than that of another, in standard errors."""
        gain = other.log_loss + other.wrong - self.log_loss - self.wrong
        mean, n = self.mean(gain), max(2, len(gain))
        squares = n / (n - 1) * (self.weights**2 * (gain - mean) ** 2).sum()
        return mean * self.weights.sum() / max(float(np.sqrt(squares)), 1e-300)


class GlassSearch:
    """The decision of held-out rows on tables and on pairs.

    Parameters
    ----------
    estimator : ProductOfExperts
        The unfitted recipe.
    kinds : Kinds
        The columns that are numbers, categories and marks.
    X, y, w : arrays
        Rows, codes of their classes, and weights or None.
    folds : list of (kept, held)
        Rows of each fold; none of what is fitted in a fold reads the held ones.
    deadline : float
        No weaker strength is tried after it.

    Attributes
    ----------
    tried : list of Held
        The closed form of the recipe, the recipe, its best power, tables, and tables with pairs, each at its
        best strength, and the class frequencies.
    taken : Held
        The one of these that is taken: the class frequencies if the labels do not support another.
    """

    def __init__(
        self,
        estimator: Any,
        kinds: Kinds,
        X: Array,
        y: Array,
        w: Array | None,
        folds: Sequence[tuple[Array, Array]],
        deadline: float = np.inf,
    ):
        self.recipe, self.kinds, self.deadline, r = estimator, kinds, deadline, int(y.max()) + 1
        judged = np.concatenate([held for _, held in folds])
        self.y, self.weights = y[judged], np.ones(len(judged)) if w is None else w[judged]
        start = perf_counter()
        self.walks = [
            Walk(estimator, kinds, X[kept], y[kept], None if w is None else w[kept], r) for kept, _ in folds
        ]
        self.held = [X[held] for _, held in folds]
        self.offsets = [walk.scores(rows) for walk, rows in zip(self.walks, self.held, strict=True)]
        closed = [walk.closed_form(rows) for walk, rows in zip(self.walks, self.held, strict=True)]
        seconds = perf_counter() - start
        self.taken = self.judge("recipe", self.offsets, np.nan, seconds)
        self.tried = [self.judge("closed form", closed, np.nan, seconds), self.taken]
        power = self.try_path("power", POWERS, Walk.set_power)
        for walk in self.walks:
            walk.set_power(power if self.taken.name == "power" else 1.0)
        tables = self.try_path("tables", TABLES, lambda walk, own: walk.to(Ridge(own)))
        if len(kinds.numbers) + len(kinds.categories) > 1 and perf_counter() < deadline:
            for walk in self.walks:
                walk.add_pairs()
            if any(len(walk.gain.cells.pairs) for walk in self.walks):
                self.try_path("tables and pairs", PAIRS, lambda walk, own: walk.to(Ridge(tables, own)))
        priors = [
            np.tile(walk.log_prior, (len(rows), 1)) for walk, rows in zip(self.walks, self.held, strict=True)
        ]
        self.tried.append(self.judge("class frequencies", priors, np.nan, 0.0))
        if support(np.exp(self.taken.log_posteriors), self.y, self.weights, judged) <= TOLD:
            self.taken = self.tried[-1]

    def try_path(self, name: str, values: Sequence[float], move: Callable[[Walk, float], None]) -> float:
        """Move the walks of all folds along the values; go back to the numbers of the best, and return it."""
        start, idle = perf_counter(), 0
        rows = [walk.gain.cells.encode(held) for walk, held in zip(self.walks, self.held, strict=True)]
        best, at = self.taken, [walk.W for walk in self.walks]
        for number, value in enumerate(values):
            for walk in self.walks:
                move(walk, value)
            joints = [
                walk.correction().log_joint(Z, offset)
                for walk, Z, offset in zip(self.walks, rows, self.offsets, strict=True)
            ]
            found = self.judge(name, joints, value, perf_counter() - start)
            if number == 0 or found.score < best.score:
                best, at, idle = found, [walk.W for walk in self.walks], 0
            else:
                idle += 1
            if idle == IDLE or perf_counter() > self.deadline:
                break
        for walk, W in zip(self.walks, at, strict=True):
            walk.W = W
        self.tried.append(best)
        if best.score < self.taken.score and best.gain_over(self.taken) > 1:
            self.taken = best
        return best.strength

    def judge(self, name: str, joints: Sequence[Array], strength: float, seconds: float) -> Held:
        """Return a candidate, by its log joints of the held rows of each fold."""
        return Held.of(name, joints, self.y, self.weights, strength, seconds)

    def estimator(self) -> Any:
        """Return the unfitted estimator that was taken."""
        if self.taken.name == "class frequencies":
            return frequencies(self.kinds)
        if self.taken.name == "recipe":
            return clone(self.recipe)
        found = GlassClassifier(clone(self.recipe), self.kinds, self.walks[0].power)
        tables = next((held.strength for held in self.tried if held.name == "tables"), None)
        if self.taken.name != "power":
            found.set_params(tables=tables)
        if self.taken.name == "tables and pairs":
            found.set_params(pairs=self.taken.strength)
        return found

    def leaderboard(self) -> Leaderboard:
        """Return an entry for each candidate, best first."""
        found = sorted(self.tried, key=lambda held: held.score)
        return leaderboard(
            member=[held.name for held in found],
            cv_error=[held.mean(held.wrong) for held in found],
            cv_log_loss=[held.mean(held.log_loss) for held in found],
            cv_score=[held.score for held in found],
            strength=[held.strength for held in found],
            seconds=[held.seconds for held in found],
            weight=[float(held is self.taken) for held in found],
        )


@dataclass
class GlassMember(SearchedMember):
    """The recipe and its tables as a member of the family, which decides on tables by the family's folds."""

    recipe: Callable[..., Any]
    """Returns the unfitted recipe for a number of rows, `n_rows`."""
    kinds: Kinds
    name: str = "product with tables"

    def walk(
        self, X: Array, y: Array, w: Array | None, folds: Sequence[tuple[Array, Array]]
    ) -> Iterator[Array]:
        """Yield the posteriors of each fold's held rows: of the closed form, and at the last checkpoint."""
        shape, start = (len(CHECKPOINTS), sum(len(held) for _, held in folds), int(y.max()) + 1), 0
        found = np.full(shape, np.nan, np.float32)
        try:
            self.search = GlassSearch(self.recipe(n_rows=len(X)), self.kinds, X, y, w, folds)
            found[0] = np.exp(self.search.tried[0].log_posteriors)
            found[-1] = np.exp(self.search.taken.log_posteriors)
        except ColumnError:  # rows too far from the others: the member is not chosen
            pass
        for _, held in folds:
            yield found[:, start : start + len(held)]
            start += len(held)

    def with_iterations(self, n_iter: int) -> Any:
        """Return the unfitted estimator that was taken, or the closed form of the recipe."""
        if n_iter == 0:
            return clone(self.search.recipe).set_params(learner=family_learner(0))
        return self.search.estimator()
