"""Can the curvature that RC has anyway choose its anchor, in place of folds?

    RISKBAYES_DATA=<folder> python benchmarks/leave_one_out.py            # fits what is missing, then prints
    python benchmarks/leave_one_out.py --print

"rc_cv" walks its path of anchors in five folds. Here the path is walked once, on all rows, and each row is
judged by the model that a Newton step takes it out of: w - H (g_i - mean g), with g_i the gradient of its own
term of the objective and H the inverse curvature that L-BFGS has at the end of each anchor (its last changes,
or the metric where it has none). From the closed form the row is subtracted. "best" knows the test rows.

Sets of the paper with at most 1000 rows, splits 0 to 2.
"""

from contextlib import suppress
from unittest.mock import patch

import numpy as np
from study import Part, Study, judged, spread

from riskbayes import CategoricalNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, SmoothNB
from riskbayes.learners import RC, RCCV
from riskbayes.learners.rc_cv import joined
from riskbayes.loop import run
from riskbayes.models.base import Fitted
from riskbayes.preprocessing import KMeansBins
from riskbayes.risks import log_posterior
from riskbayes.search import run_path
from riskbayes.task import Iteration, Status

MODELS = {
    "categories": CategoricalNB(),
    "smooth": SmoothNB(),
    "LDA": LinearDiscriminantAnalysis(),
    "QDA": QuadraticDiscriminantAnalysis(),
}
CHOICES = "closed form", "rc", "rc_cv", "leave one out", "best"
SMALL_SETS = "iris", "sonar", "climate_model", "indian_liver", "vehicle", "german_numer", "qsar"
MOST_ROWS = 1000
LEAST = 1e-6


class Kept(RC):
    """RC whose step can be asked for its curvature."""

    def begin(self, task):
        self.kept = super().begin(task)
        return self.kept


class Chosen(RCCV):
    """RCCV that chooses by `score(task, fitted, learner)`; of the closed form the learner is None."""

    score = None

    def fit_statistics(self, task):
        weights = self._weights(task)
        path = [Kept(generative_weight=g, max_iter=self.max_iter) for g in weights]
        outcomes = list(run_path(task, path))
        start = Fitted.of(task.model, task.S)
        scores = [self.score(task, start, None)]
        scores += [self.score(task, found.fitted, own) for found, own in zip(outcomes, path, strict=True)]
        number = int(np.argmin(np.round(scores, 12)))
        self.generative_weight_ = [np.inf, *weights][number]
        if number == 0:
            return run(task, path[0], max_iter=0)._replace(status=Status.VALIDATION)
        return joined(outcomes[:number])


class LeaveOneOut(Chosen):
    """The least score of rows that a Newton step left out."""

    def score(self, task, fitted, learner):
        model, y = task.model, task.engine._y
        Z = model.encode(task.engine.rows, task.S.frame)
        left = self.without(task, fitted, learner.kept) if learner else self.closed_form_without(task, Z)
        found = []
        for i, S in enumerate(left):
            own = S if model.is_legal(S) else fitted.S
            with np.errstate(all="ignore"):
                logs = log_posterior(model.log_joint(Z[i : i + 1], model.parameters(own)))[0]
            loss = -logs[y[i]] if np.isfinite(logs).all() else np.inf
            found.append(min(loss, -np.log(LEAST)) + (logs.argmax() != y[i]))
        return np.mean(found)

    def closed_form_without(self, task, Z):
        for i, k in enumerate(task.engine._y):
            yield task.S - task.model.statistics(Z[i : i + 1], np.eye(task.engine.n_classes)[[k]])

    def without(self, task, fitted, step):
        model, weight = task.model, 0.0 if step.anchor is None else step.anchor.weight
        with np.errstate(all="ignore"):
            scan = task.engine.scan(fitted, step.objective)
        step.look(Iteration(10**6, fitted, scan, scan.risks.mean(), 0.0, None))
        Z, y = model.encode(task.engine.rows, task.S.frame), task.engine._y
        Y = np.eye(task.engine.n_classes)[y]
        E = step.objective.residual(np.exp(log_posterior(model.log_joint(Z, fitted.theta))), y)
        own = [model.statistics(Z[i : i + 1], (E + weight * Y)[i : i + 1]) for i in range(len(y))]
        G = np.stack([step.flat(step.coordinates.gradient(each, 0.0, fitted)) for each in own])
        for g in (G - G.mean(axis=0)) / len(y):
            yield step.coordinates.statistics(step.unflat(step.ascent.x - step.ascent.direction(g)))


class Oracle(Chosen):
    """The least score of the test rows."""

    def score(self, task, fitted, learner):
        X, y = self.test
        Z = task.model.encode(np.asarray(X), task.S.frame)
        with np.errstate(all="ignore"):
            logs = log_posterior(task.model.log_joint(Z, fitted.theta))
        loss = np.minimum(-logs[np.arange(len(y)), y], -np.log(LEAST))
        return np.mean(loss + (logs.argmax(axis=1) != y))


LEARNERS = {
    "closed form": lambda: "closed_form",
    "rc": RC,
    "rc_cv": lambda: RCCV(random_state=0),
    "leave one out": LeaveOneOut,
    "best": Oracle,
}


class LeaveOneOutStudy(Study):
    """Models by what chooses the anchor."""

    name, splits, most_rows, sets = "leave_one_out", range(3), MOST_ROWS, SMALL_SETS
    figures = ("error", "log_loss", "seconds", "weight")
    methods = tuple(f"{model} | {choice}" for model in MODELS for choice in CHOICES)

    def fit(self, methods, part: Part) -> dict[str, dict]:
        (method,) = methods
        name, choice = method.split(" | ")
        if name == "categories":
            bins = KMeansBins(5).fit(part.X)
            part = part._replace(X=bins.transform(part.X), X_test=bins.transform(part.X_test))
        clf = MODELS[name].set_params(learner=LEARNERS[choice]())
        with patch.object(Oracle, "test", (part.X_test, part.y_test), create=True):
            found = judged(clf, part, LEAST)
        with suppress(AttributeError):
            found["weight"] = clf.learner_.generative_weight_
        return {method: {name: found[name] for name in self.figures if name in found}}

    def show(self) -> None:
        for name in MODELS:
            print(name)
            cv = sum(self.grid(f"{name} | rc_cv", figure) for figure in ("error", "log_loss"))
            for choice in CHOICES:
                error, loss, seconds = (
                    self.grid(f"{name} | {choice}", figure) for figure in self.figures[:3]
                )
                gap = (error + loss - cv).mean(axis=1)
                print(
                    f"  {choice:14s} error {100 * error.mean():.2f} %, log loss {loss.mean():.4f}; their sum "
                    f"against rc_cv {gap.mean():+.4f} ± {spread(gap):.4f}; seconds of a fit, median, "
                    f"{np.median(seconds):.2f}"
                )


if __name__ == "__main__":
    LeaveOneOutStudy().main()
