"""The steps of risk-based calibration: fixed, adaptive and stochastic, each with or without an anchor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from riskbayes.loop import Step
from riskbayes.models.base import Fitted
from riskbayes.objectives import Objective
from riskbayes.statistics import Statistics
from riskbayes.task import Iteration, Task


@dataclass(frozen=True)
class Anchor:
    """g times the joint log-likelihood, which draws S back to the statistics of the data.

    Taken implicitly, S = (S + lr (dS + g s(X, Y))) / (1 + lr g), it is stable for every lr and g.

    In a stream S and s(X, Y) have the mass N of all rows so far, and dS that of the b rows of a batch. The
    monitored quantity, the mean risk of the batch + g times the cross-entropy of a row, has the natural
    gradient dS / b + g (s(X, Y) - S) / N. Times b that is dS + (b / N) g (s(X, Y) - S): the pull is
    proportional to the share b / N of the batch, so that the batches of an epoch pull as much as one step on
    all rows does.
    """

    S: Statistics
    """s(X, Y) of all rows so far."""
    weight: float
    """g, above zero."""
    share: float
    """b / N."""
    log_likelihood: Callable[[Any], float] | None
    """The log-likelihood by theta of statistics that the closed form fits best; None if not monitored."""


@dataclass
class FixedStep(Step):
    """S <- S + lr dS; the first step that does not help ends the fit."""

    reads_theta: ClassVar[bool] = False

    objective: Objective
    monitor: str
    """Name of the risk that must not rise."""
    lr: float
    anchor: Anchor | None = None

    def risk(self, risks: dict[str, float]) -> float:
        """Return the monitored risk."""
        return risks[self.monitor]

    def value(self, risks: dict[str, float], theta: Any) -> float:
        """Return the monitored risk, plus g times the cross-entropy from the closed form to the model.

        Under ML that is minus the mean joint log-likelihood of the data; under MAP the prior counts as rows,
        so that the closed form is its minimum there too.
        """
        risk, anchor = risks[self.monitor], self.anchor
        if anchor is None or anchor.log_likelihood is None:
            return risk
        return risk - anchor.weight * anchor.log_likelihood(theta)

    def propose(self, good: Iteration) -> Statistics | None:
        """Return S + lr dS, pulled back by the anchor."""
        assert good.scan.dS is not None
        return self.stepped(good.fitted.S, good.scan.dS, self.lr)

    def stepped(self, S: Statistics, dS: Statistics, lr: float) -> Statistics:
        """Return S after a step of length lr along dS, and after the pull of the anchor."""
        if self.anchor is None:
            return S.plus(lr, dS)
        pull = lr * self.anchor.weight * self.anchor.share
        shrunk = 1.0 / (1.0 + pull)
        return Statistics.combined((shrunk, S), (shrunk * lr, dS), (shrunk * pull, self.anchor.S))


class AdaptiveStep(FixedStep):
    """Halve the step on illegal statistics or a rise, double it on success; each trial costs a scan.

    Doubling gets across plateaus, where the posterior saturates and the gradient vanishes.
    """

    shortest = 1e-10
    """The fit ends at a step shorter than this share of the longest step so far."""

    longest = 0.0

    def on_success(self) -> None:
        """Double the step."""
        self.lr *= 2.0

    def retry(self, rose: bool) -> bool:
        """Halve the step; return False if it is too short to try."""
        self.longest = max(self.longest, self.lr)
        self.lr *= 0.5
        return self.lr > self.shortest * self.longest


class StochasticStep(FixedStep):
    """An epoch of steps, one per batch of rows; it ends at the average of the second half of its iterates.

    Parameters
    ----------
    task : Task
        The model, and the engine whose rows are scanned in batches.
    batch_size : int
        Rows of a batch.
    rng : Generator
        For the order of the rows.
    *arguments
        Those of :class:`FixedStep`.
    """

    def __init__(self, task: Task, batch_size: int, rng: np.random.Generator, *arguments: Any):
        super().__init__(*arguments)
        self.first_lr, self.epoch = self.lr, 0
        self.task, self.batch_size, self.rng = task, batch_size, rng

    def on_success(self) -> None:
        """Shorten the steps from epoch to epoch: lr / (1 + epoch / 10)."""
        self.epoch += 1
        self.lr = self.first_lr / (1 + self.epoch / 10)

    def propose(self, good: Iteration) -> Statistics:
        """Step on every batch once; a batch whose step would be illegal is skipped."""
        model, engine, S = self.task.model, self.task.engine, good.fitted.S
        batches, mass = engine.batches(self.batch_size, self.rng), engine.mass
        late, last = None, 0
        for number, part in enumerate(batches):
            batch = engine.scan(Fitted.of(model, S), self.objective, part)
            assert batch.dS is not None
            share = mass / max(float(batch.risks.weight), 1e-300)
            # The steps of an epoch are together as long as one step on all rows.
            step = self.stepped(S, share * batch.dS, self.lr / len(batches))
            S = step if model.is_legal(step) else S
            if 2 * number >= len(batches) - 1:
                late, last = S if late is None else late + S, last + 1
        assert late is not None
        return (1.0 / last) * late
