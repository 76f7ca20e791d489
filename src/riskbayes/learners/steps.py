"""The steps of risk-based calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from riskbayes.engines.base import Engine, Scan
from riskbayes.learners.base import Step
from riskbayes.models.base import GenerativeModel
from riskbayes.statistics import Statistics


class Anchor:
    """g times the joint log-likelihood, which draws S back to the statistics of the data.

    Taken implicitly, S = (S + lr (dS + g s(X, Y))) / (1 + lr g), it is stable for every lr and g.

    In a stream S and s(X, Y) have the mass N of all rows so far, and dS that of the b rows of a batch. What
    is monitored, the mean risk of the batch + g times the cross-entropy of a row, has the natural gradient
    dS / b + g (s(X, Y) - S) / N. Times b that is dS + (b / N) g (s(X, Y) - S): the pull goes with the share
    b / N of the batch, so that the batches of an epoch pull once, as one step on all rows does.

    Parameters
    ----------
    model : GenerativeModel
        The model that S belongs to.
    S : Statistics
        s(X, Y), of all that was counted.
    weight : float
        g.
    share : float, default=1.0
        b / N, the mass of the rows that dS is summed over beside that of S.
    """

    def __init__(self, model: GenerativeModel, S: Statistics, weight: float, share: float = 1.0):
        self.model, self.S, self.weight, self.share = model, S, weight, share
        self._expected: Statistics | None = None

    def step(self, S: Statistics, dS: Statistics, lr: float) -> Statistics:
        """A step of length lr along dS, and back to the data."""
        if self.weight == 0:
            return S.plus(lr, dS)
        pull = lr * self.weight * self.share
        shrunk = 1.0 / (1.0 + pull)
        return (shrunk * S).plus(shrunk * lr, dS).plus(shrunk * pull, self.S)

    def value(self, theta: Any) -> float:
        """g times the cross-entropy of the model from the closed form.

        Under ML that is minus the mean joint log-likelihood of the data; under MAP the prior counts
        as rows, so that the closed form is its minimum there too.
        """
        if self.weight == 0:
            return 0.0
        if self._expected is None:
            self._expected = self.model.anchor_statistics(self.S)
        return -self.weight * self.model.log_likelihood(self._expected, theta)


class FixedStep(Step):
    """S <- S + lr dS; the first step that does not help is the last.

    Parameters
    ----------
    residual : Objective
        What a scan adds up.
    monitor : str
        The risk that must not rise.
    anchored : bool
        Whether the monitored quantity includes the anchor.
    anchor : Anchor
        What draws S back to the data.
    lr : float
        The length of a step.
    """

    def __init__(self, residual: Any, monitor: str, anchored: bool, anchor: Anchor, lr: float):
        self.residual, self.monitor, self.anchored = residual, monitor, anchored
        self.anchor, self.lr = anchor, lr

    def risk(self, risks: dict[str, float]) -> float:
        """The monitored risk."""
        return risks[self.monitor]

    def value(self, risks: dict[str, float], theta: Any) -> float:
        """The monitored risk, and the anchor where it is part of the objective."""
        return self.risk(risks) + (self.anchor.value(theta) if self.anchored else 0.0)

    def propose(self, S: Statistics, theta: Any, scan: Scan) -> Statistics:
        """S + lr dS, drawn back by the anchor."""
        assert scan.dS is not None
        return self.anchor.step(S, scan.dS, self.lr)


class AdaptiveStep(FixedStep):
    """Halve on an illegal statistic or a rise, double on success: one scan a trial.

    Doubling carries it over the flats where the posterior saturates and the gradient vanishes.
    """

    shortest = 1e-10
    """Steps shorter than this share of the longest so far are given up."""

    def __init__(self, residual: Any, monitor: str, anchored: bool, anchor: Anchor, lr: float):
        super().__init__(residual, monitor, anchored, anchor, lr)
        self.longest = lr

    def on_success(self) -> None:
        """Be bolder."""
        self.lr *= 2.0
        self.longest = max(self.longest, self.lr)

    def retry(self) -> bool:
        """Be more careful, unless the step is as good as none."""
        self.lr *= 0.5
        return self.lr > self.shortest * self.longest


class StochasticStep(FixedStep):
    """An epoch of steps on few rows each, to the average of the second half of its iterates."""

    def __init__(
        self,
        residual: Any,
        monitor: str,
        anchored: bool,
        anchor: Anchor,
        lr: float,
        engine: Engine,
        batch_size: int,
        rng: np.random.Generator,
    ):
        super().__init__(residual, monitor, anchored, anchor, lr)
        self.first_lr, self.epoch = lr, 0
        self.engine, self.batch_size, self.rng = engine, batch_size, rng

    def on_success(self) -> None:
        """Shorter steps from epoch to epoch: lr / (1 + epoch / 10)."""
        self.epoch += 1
        self.lr = self.first_lr / (1 + self.epoch / 10)

    def propose(self, S: Statistics, theta: Any, scan: Scan) -> Statistics:
        """Every row once, in batches; a batch whose step would be illegal is passed over."""
        model = self.anchor.model
        m, mass = self.engine.y.shape[0], self.engine.mass
        batches = np.array_split(self.rng.permutation(m), max(1, round(m / self.batch_size)))
        late, last = None, 0
        for number, rows in enumerate(batches):
            batch = self.engine.scan(model.parameters(S), self.residual, rows)
            assert batch.dS is not None
            lr = self.lr / len(batches)  # an epoch is as long as one step on all rows
            share = mass / max(float(batch.risks.weight), 1e-300)
            step = self.anchor.step(S, share * batch.dS, lr)
            S = step if model.is_legal(step) else S
            if 2 * number >= len(batches) - 1:
                late, last = S if late is None else late + S, last + 1
        assert late is not None
        return (1.0 / last) * late
