"""The steps of risk-based calibration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from riskbayes.loop import Step
from riskbayes.models.base import Fitted
from riskbayes.objectives import Objective
from riskbayes.statistics import Statistics
from riskbayes.task import Iteration, Task


@dataclass
class Anchor:
    """g times the joint log-likelihood, which draws S back to the statistics of the data.

    Taken implicitly, S = (S + lr (dS + g s(X, Y))) / (1 + lr g), it is stable for every lr and g.

    In a stream S and s(X, Y) have the mass N of all rows so far, and dS that of the b rows of a batch. What
    is monitored, the mean risk of the batch + g times the cross-entropy of a row, has the natural gradient
    dS / b + g (s(X, Y) - S) / N. Times b that is dS + (b / N) g (s(X, Y) - S): the pull goes with the share
    b / N of the batch, so that the batches of an epoch pull once, as one step on all rows does.

    """

    task: Task
    """The model, and s(X, Y) of all that was counted."""
    weight: float
    """g, above zero."""

    @cached_property
    def share(self) -> float:
        """b / N."""
        return self.task.engine.mass / self.task.S.total

    @cached_property
    def expected(self) -> Statistics:
        """What the likelihood is taken of."""
        return self.task.model.anchor_statistics(self.task.S)

    def value(self, theta: Any) -> float:
        """Return g times the cross-entropy of the model from the closed form.

        Under ML that is minus the mean joint log-likelihood of the data; under MAP the prior counts
        as rows, so that the closed form is its minimum there too.
        """
        return -self.weight * self.task.model.log_likelihood(self.expected, theta)


@dataclass
class FixedStep(Step):
    """S <- S + lr dS; the first step that does not help is the last."""

    objective: Objective
    monitor: str
    """The risk that must not rise."""
    lr: float
    anchor: Anchor | None = None
    """What draws S back to the data."""
    anchored: bool = False
    """True if the monitored quantity includes the anchor."""

    def risk(self, risks: dict[str, float]) -> float:
        """Return the monitored risk."""
        return risks[self.monitor]

    def value(self, risks: dict[str, float], theta: Any) -> float:
        """Return the monitored risk, with the anchor where it is part of the objective."""
        own = risks[self.monitor]
        return own + self.anchor.value(theta) if self.anchor is not None and self.anchored else own

    def propose(self, good: Iteration) -> Statistics:
        """Return S + lr dS, drawn back by the anchor."""
        assert good.scan.dS is not None
        return self.stepped(good.fitted.S, good.scan.dS, self.lr)

    def stepped(self, S: Statistics, dS: Statistics, lr: float) -> Statistics:
        """Return the statistics after a step of length lr along dS, and back to the data."""
        if self.anchor is None:
            return S.plus(lr, dS)
        pull = lr * self.anchor.weight * self.anchor.share
        shrunk = 1.0 / (1.0 + pull)
        return S.plus(shrunk * lr, dS, shrunk).plus(shrunk * pull, self.anchor.task.S)


class AdaptiveStep(FixedStep):
    """Halve the step on an illegal statistic or a rise, double it on success: one scan a trial.

    Doubling crosses the flats where the posterior saturates and the gradient vanishes.
    """

    shortest = 1e-10
    """The search ends at steps shorter than this share of the longest so far."""

    longest = 0.0

    def on_success(self) -> None:
        """Double the step."""
        self.lr *= 2.0

    def retry(self) -> bool:
        """Halve the step, unless it is as good as none."""
        self.longest = max(self.longest, self.lr)
        self.lr *= 0.5
        return self.lr > self.shortest * self.longest


class StochasticStep(FixedStep):
    """An epoch of steps on few rows each, to the average of the second half of its iterates.

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
        """Step on every row once, in batches; a batch whose step would be illegal is passed over."""
        model, engine, S = self.task.model, self.task.engine, good.fitted.S
        batches, mass = engine.batches(self.batch_size, self.rng), engine.mass
        late, last = None, 0
        for number, part in enumerate(batches):
            batch = engine.scan(Fitted.of(model, S), self.objective, part)
            assert batch.dS is not None
            share = mass / max(float(batch.risks.weight), 1e-300)
            # An epoch is as long as one step on all rows.
            step = self.stepped(S, share * batch.dS, self.lr / len(batches))
            S = step if model.is_legal(step) else S
            if 2 * number >= len(batches) - 1:
                late, last = S if late is None else late + S, last + 1
        assert late is not None
        return (1.0 / last) * late
