"""Risk-based calibration (RC): steps of the statistics that lower the risk."""

from dataclasses import replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from riskbayes.arrays import Array
from riskbayes.declared import Count, Flag, NotNegative, Positive, declared
from riskbayes.exceptions import warn
from riskbayes.learners.base import Learner
from riskbayes.learners.quasi_newton import QuasiNewtonStep
from riskbayes.learners.steps import AdaptiveStep, Anchor, FixedStep, StochasticStep
from riskbayes.loop import Step, run
from riskbayes.models.base import GenerativeModel
from riskbayes.objectives import Objective, resolve_objective
from riskbayes.search import bootstrap_start, hold_out, started_at
from riskbayes.statistics import Statistics
from riskbayes.task import Outcome, Task, no_callback

ANCHOR_NEEDS = ("log_likelihood", "expected_statistics")
"""Methods of the model that a monitored anchor calls."""
ANCHOR_SHARE = 0.3
"""g = ANCHOR_SHARE * degrees of freedom / total weight, for generative_weight="auto"."""
STRONGEST = 1e10
"""A stronger anchor leaves the closed form to rounding all the same, and its square overflows."""
STEPS = {"fixed": FixedStep, "adaptive": AdaptiveStep}

SMALL_WEIGHT = 0.05
"""Weights whose mean is below this were probably normalised to sum to one: a warning says so."""


@declared
class RC(Learner):
    """Risk-based calibration: strengthen the statistics of the label, weaken those of the posterior.

    One iteration is S <- S + lr * (s(X, Y) - s(X, h)), where s(X, h) are the statistics under the
    posterior of the present model; with another objective, the residual of that one takes the place
    of label minus posterior. By default the steps are quasi-Newton ones along this gradient, to the optimum
    of the objective and an anchor; :meth:`paper` has fixed steps, which end when the risk rises.

    Parameters
    ----------
    lr : float, default=0.1
        The learning rate of fixed steps; the length of the first of the others.
    max_iter : int, default=64
        The most scans of the data after that of the closed form.
    objective : {"log_loss", "soft_error"} or array of shape (n_classes, n_classes), default="log_loss"
        What the step descends: the log loss (the paper's step), the soft 0-1 error, or the expected
        cost of a cost matrix whose rows (true class) and columns (decision) follow `classes_`. After
        training for costs `predict_proba` is no probability of a class any more, and `predict` takes
        the label of least expected cost: on held-out rows that is better than the largest posterior
        (`benchmarks/costs.py`).
    monitor : {"soft_error", "log_loss", "objective"} or None, default=None
        What must not rise. None: the soft error for fixed steps, the objective for the others.
        With a `generative_weight` the objective includes the anchor.
    step : {"quasi_newton", "adaptive", "fixed"} or None, default=None
        "quasi_newton" is L-BFGS in the coordinates of the model: logarithms for tables of probabilities,
        moments for Gaussians. A step that is illegal or raises the monitored quantity is shortened; the fit
        ends when the gradient is small. It is no worse than the closed form and than the class frequencies
        alone in that quantity. "adaptive" halves the step of RC whenever that happens, and doubles it on
        success. "fixed" ends the fit at the first rise. None: "quasi_newton", or "fixed" with a
        `batch_size`. Each trial of a legal step costs a scan.
    generative_weight : float or "auto", default="auto"
        The anchor g: the step follows the objective plus g times the mean joint log-likelihood.
        0 is RC; the larger it is, the nearer the result is to the closed form. "auto" is 0.3 times the
        model's degrees of freedom over the total weight: small sets are held closer to their closed form,
        large ones go free. A model without `log_likelihood` and `expected_statistics` has no anchor, and a
        warning says so.
    tol : float, default=0.0
        Stop when the monitored quantity falls by less than this.
    early_stopping : bool, default=False
        Hold out `validation_fraction` of the rows, at random, and stop when they do not improve for
        `n_iter_no_change` iterations. Rows given to `fit` as `X_val, y_val` take their place. Everything is
        learned from the rows that are kept: knots, trees and components too. The kept rows carry the weight
        of all, so that priors and anchors act as on all rows. Where a fit goes on from an earlier one
        (`warm_start`, `calibrate`), that one may have been calibrated on the rows now held out.
    validation_fraction : float, default=0.1
        Share of the rows held out.
    n_iter_no_change : int, default=5
        Iterations without improvement on the validation rows.
    refit : bool, default=False
        After early stopping, fit all rows for as many iterations as the best model had, from where it started
        if it was that of a restart (not for models that learn a structure from the rows). The estimator's
        `history_`, `status_`, `n_iter_` and `best_iteration_` then tell of the path that chose, with its
        validation rows, and `refit_history_` of that on all rows. There is nothing to add where `X_val,
        y_val` were given.
    batch_size : int or None, default=None
        Rows of a step. None: all of them. Otherwise an iteration is an epoch of such steps, lengths
        decaying from epoch to epoch, and ends at the average of the second half of its iterates.
    n_restarts : int, default=0
        Further fits from the statistics of bootstrap samples; the best by the validation rows, or by
        the monitored quantity, is kept.
    random_state : int, RandomState instance or None, default=None
        For `early_stopping`, `batch_size` and `n_restarts`.

    References
    ----------
    A. Pérez, C. Echegoyen, G. Santafé, "Risk-based Calibration for Generative Classifiers".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import QuadraticDiscriminantAnalysis
    >>> from riskbayes.learners import RC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = QuadraticDiscriminantAnalysis(learner=RC(lr=0.5)).fit(X, y)
    >>> path = clf.history_["soft_error"]
    >>> bool(path[-1] < path[0])
    True
    """

    name: ClassVar[str] = "rc"

    lr: Positive = 0.1
    max_iter: Count = 64
    objective: Annotated[Any, str, "array-like", Objective] = "log_loss"
    monitor: Annotated[str | None, StrOptions({"soft_error", "log_loss", "objective"}), None] = None
    step: Annotated[str | None, StrOptions({"quasi_newton", *STEPS}), None] = None
    generative_weight: Annotated[
        float | str, StrOptions({"auto"}), Interval(Real, 0, None, closed="left")
    ] = "auto"
    tol: NotNegative = 0.0
    early_stopping: Flag = False
    validation_fraction: Annotated[float, Interval(Real, 0, 1, closed="neither")] = 0.1
    n_iter_no_change: Count = 5
    refit: Flag = False
    batch_size: Annotated[int | None, Interval(Integral, 1, None, closed="left"), None] = None
    n_restarts: Annotated[int, Interval(Integral, 0, None, closed="left")] = 0
    random_state: Annotated[Any, "random_state"] = None

    @classmethod
    def paper(cls) -> Self:
        """Return the learner of the paper's experiments: fixed steps, and no anchor."""
        return cls(
            lr=0.1,
            max_iter=64,
            objective="log_loss",
            monitor="soft_error",
            step="fixed",
            generative_weight=0.0,
        )

    def check(self, model: GenerativeModel, n_classes: int) -> None:
        """Raise an error for wrong parameters, and for a model without the methods that the anchor calls."""
        super().check(model, n_classes)
        resolve_objective(self.objective, n_classes)
        if self.batch_size is not None and self.step not in ("fixed", None):
            raise ValueError("batch_size goes with step='fixed': a step on few rows has no risk to adapt to.")
        if self.early_stopping and self.refit and self.n_restarts > 0 and not model.traits.additive:
            raise ValueError(
                f"{type(model).__name__} learns its structure from the rows: a refit on all of them cannot "
                "start where a restart on a part did. Set refit=False or n_restarts=0."
            )
        weight = self.generative_weight
        if self._rule()[1] == "objective" and not isinstance(weight, str) and weight > 0:
            missing = [name for name in ANCHOR_NEEDS if not model.implements(name)]
            if missing:
                raise TypeError(
                    f"To monitor an objective with a generative_weight, {type(model).__name__} must write "
                    f"{', '.join(missing)}; or set monitor='soft_error' or 'log_loss'."
                )

    def check_stream(self) -> None:
        """Raise an error for early stopping and restarts, which take several runs over the same rows."""
        self._validate_params()
        if self.early_stopping or self.n_restarts > 0:
            raise ValueError(
                "partial_fit takes one step on each batch, without early stopping and restarts. Set "
                "early_stopping=False and n_restarts=0 in the learner, or call fit with all rows."
            )

    def _rule(self) -> tuple[str, str]:
        """Return the name of the step, and that of the monitored risk, or "objective"."""
        step = self.step or ("quasi_newton" if self.batch_size is None else "fixed")
        return step, self.monitor or ("soft_error" if step == "fixed" else "objective")

    def begin(self, task: Task) -> Step:
        """Return the step that the parameters ask for."""
        model, S, engine, anchor = task.model, task.S, task.engine, None
        objective, (step, name) = resolve_objective(self.objective, S["s0"].shape[0]), self._rule()
        weight = self._anchor_weight(task)
        if weight > 0:
            monitored = model.anchor_likelihood(S) if name == "objective" else None
            anchor = Anchor(S, weight, engine.mass / S.total, monitored)
        common = objective, objective.risk if name == "objective" else name, self.lr, anchor
        if self.batch_size is not None:
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            return StochasticStep(task, self.batch_size, rng, *common)
        return QuasiNewtonStep(task, *common) if step == "quasi_newton" else STEPS[step](*common)

    def _anchor_weight(self, task: Task) -> float:
        """Return g; for "auto", 0.3 times the degrees of freedom over the total weight."""
        if not isinstance(self.generative_weight, str):
            return min(self.generative_weight, STRONGEST)
        m, total = task.engine.n_rows, task.engine.mass
        if total < SMALL_WEIGHT * m:
            warn(
                f"The weights of {m} rows sum to {total:g}; generative_weight='auto' "
                "takes that as the number of rows: the model will hardly leave its closed form. Scale "
                "the weights to sum to the number of rows, or give generative_weight a number."
            )
        missing = [name for name in ANCHOR_NEEDS if not task.model.implements(name)]
        if missing:
            warn(
                f"{type(task.model).__name__} has no {' and no '.join(missing)}: RC trains it without an "
                "anchor, to the optimum on the training rows. Write that method, or hold rows out by "
                "RC(early_stopping=True); generative_weight=0 says that no anchor is meant."
            )
            return 0.0
        return ANCHOR_SHARE * anchor_unit(task)

    @property
    def cost_matrix(self) -> Array | None:  # type: ignore[override]
        """The costs of the objective, if it has some, by which `predict` decides."""
        given = self.objective.costs if isinstance(self.objective, Objective) else self.objective
        return None if given is None or isinstance(given, str) else np.asarray(given, dtype=np.float64)

    @property
    def picks_rows(self) -> bool:  # type: ignore[override]
        """True if rows are held out, drawn, or taken in batches."""
        return self.early_stopping or self.n_restarts > 0 or self.batch_size is not None

    @property
    def most_iterations(self) -> int:
        """The most iterations that a fit reports, over all restarts and the refit."""
        refits = 1 + (self.n_restarts > 0) if self.early_stopping and self.refit else 0
        return (self.max_iter + 1) * (1 + self.n_restarts + refits)

    def fit_statistics(self, task: Task) -> Outcome:
        """Run the loop: once, once more for each restart, and once more to refit after early stopping."""
        random = check_random_state(self.random_state)
        held = task
        if self.early_stopping and task.validation is None:
            held = hold_out(task, self.validation_fraction, random)
        best = first = run(held, self)
        start = None
        for _ in range(self.n_restarts):
            if best.status.is_stop:
                return best
            drawn = bootstrap_start(held, random)
            found = run(replace(held, start=drawn), self)
            # On the training rows a restart too must be no worse than where the first run started.
            if found.judged < best.judged and found.value <= first.start_value:
                best, start = found, drawn
            elif found.status.is_stop:
                best = best._replace(status=found.status)
        best = best._replace(floored=first.floored)
        if not self.refit or held is task or best.status.is_stop:
            return best
        again = self._refit(task, start, best.number)
        # The history is that of the run that held rows out; the model is that of all rows.
        return best._replace(
            fitted=again.fitted,
            status=again.status if again.status.is_stop else best.status,
            floored=again.floored,
            value=again.value,
            start_value=again.start_value,
            refit_history=again.history,
        )

    def _refit(self, task: Task, start: Statistics | None, number: int) -> Outcome:
        """Fit all rows for a number of iterations, from the start of the selected restart, if there is one.

        If that ends above the value of the task's own start, the fit is repeated from the latter.
        """
        if start is None:
            return run(task, self, max_iter=number)
        first = run(replace(task, on_iteration=no_callback), self, max_iter=0)
        again = run(started_at(task, start), self, max_iter=number)
        if not again.value <= first.value:
            again = first._replace(status=again.status) if again.status.is_stop else run(task, self, number)
        return again._replace(floored=first.floored, start_value=first.start_value)


def anchor_unit(task: Task) -> float:
    """Return degrees of freedom / total weight, which anchors are measured in; 0 without an anchor."""
    if not all(task.model.implements(name) for name in ANCHOR_NEEDS):
        return 0.0
    return task.model.degrees_of_freedom(task.S) / task.S.total
