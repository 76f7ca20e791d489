"""Random estimators: every classifier of the package, its hyper-parameters, and a learner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from inspect import isclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

import riskbayes
from conftest import MODELS as EVERY_MODEL
from fuzzing.tables import Array, Table
from riskbayes.estimators.counts import CountInput
from riskbayes.learners import DFE, GD, RC, RCCV, TM, Learner
from riskbayes.models import GenerativeModel

ESTIMATORS: dict[str, Any] = {
    name: kind
    for name, kind in ((name, getattr(riskbayes, name)) for name in dir(riskbayes))
    if isclass(kind) and issubclass(kind, ClassifierMixin) and not isinstance(kind._input, CountInput)
}
"""Found, not listed: a new estimator of the package takes part; those of counts do not, for there are no
tables of counts here: `tests/estimators/test_counts.py` has their laws."""

MODELS = [kind for kind in EVERY_MODEL if kind().traits.support != "counts"]


def random_kind(name: str, rng: np.random.Generator) -> tuple[str, Any]:
    """What the estimator's columns are, and the class of the model where it takes one."""
    if name == "GenerativeClassifier":
        model = MODELS[rng.integers(len(MODELS))]
        return model().traits.support, model
    tags = ESTIMATORS[name]().__sklearn_tags__()
    return ("categories" if tags.input_tags.categorical else "real"), None


def random_estimator(name: str, model: Any, table: Table, labels: Array, rng: np.random.Generator) -> Any:
    """An estimator for the table: some hyper-parameters drawn, the others at their defaults."""
    names = ESTIMATORS[name]._get_param_names()
    arguments = random_arguments(name, names, table, rng)
    if model is not None:
        own = [field.name for field in fields(model)] if is_dataclass(model) else []
        arguments["model"] = model(**random_arguments(model.__name__, own, table, rng))
    if "learner" in names:
        arguments["learner"] = random_learner(table, rng)
    if "class_weight" in names and rng.random() < 0.12:
        weights = rng.choice([0.5, 1.0, 2.0, 3.0], size=len(labels)).tolist()
        arguments["class_weight"] = (
            "balanced" if rng.random() < 0.5 else dict(zip(labels.tolist(), weights, strict=True))
        )
    return ESTIMATORS[name](**arguments)


def random_arguments(owner: str, names: list[str], table: Table, rng: np.random.Generator) -> dict[str, Any]:
    """Values of some of the hyper-parameters; those that no option is known for keep their defaults."""
    found = {}
    for name in sorted(names):
        draw = OPTIONS.get(f"{owner}.{name}", OPTIONS.get(name))
        if draw is not None and (f"{owner}.{name}" in ALWAYS or rng.random() < 0.35):
            found[name] = draw(rng, table)
    if "experts" in found and rng.random() < 0.5:
        found["weights"] = rng.uniform(0.1, 1.0, size=len(found["experts"]))
    return found


def one_of(*values: Any) -> Callable[[np.random.Generator, Table], Any]:
    return lambda rng, table: values[rng.integers(len(values))]


def random_priors(rng: np.random.Generator, table: Table) -> Array:
    p = rng.uniform(0.2, 1, size=table.n_classes)
    return p / p.sum()


def variances(rng: np.random.Generator, table: Table) -> Array:
    """Variances of the columns, ones where a column is constant or its squares leave the range of floats."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        found = table.X.var(axis=0)
    return np.where(np.isfinite(found) & (found > 1e-200), found, 1.0)


def random_experts(rng: np.random.Generator, table: Table) -> list[Any]:
    names = ["GaussianNB", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis", "SmoothNB"]
    drawn = [names[i] for i in rng.integers(len(names), size=rng.integers(1, 4))]
    parameters = {name: ESTIMATORS[name]._get_param_names() for name in drawn}
    return [ESTIMATORS[name](**random_arguments(name, parameters[name], table, rng)) for name in drawn]


OPTIONS: dict[str, Callable[[np.random.Generator, Table], Any]] = {
    "alpha": one_of(0.0, 1e-3, 1.0, 5.0),
    "force_alpha": one_of(True, False),
    "fit_prior": one_of(True, False),
    "class_alpha": one_of(0.0, 0.5, 2.0),
    "class_prior": random_priors,
    "priors": random_priors,
    "min_categories": one_of(3, 7),
    "var_smoothing": one_of(0.0, 1e-9, 1e-2),
    "mean_strength": one_of(0.0, 2.0),
    "covariance_strength": one_of(0.0, 5.0),
    "variance_strength": one_of(0.0, 5.0),
    "prior_mean": lambda rng, table: table.X.mean(axis=0) if np.abs(table.X).max() < 1e100 else None,
    "prior_variance": variances,
    "prior_covariance": lambda rng, table: np.diag(variances(rng, table)),
    "GaussianNBModel.prior_covariance": variances,
    "prior_form": one_of("exact", "paper"),
    "prior": one_of("recommended", None),  # "auto" is one of these, by the learner
    "diagonal_mix": one_of(0.0, 0.5),
    "shrinkage": one_of(0.0, 0.1),
    "reg_param": one_of(0.0, 0.1),
    # No floor is lower than the rounding of float32 sums, where the rows are float32.
    "covariance_floor": lambda rng, table: [1e-4, 1e-2, 1e-8][
        rng.integers(3 if table.holder != "float32" else 2)
    ],
    "n_knots": one_of(2, 4, 12),
    "max_categories": one_of(1, 5, 20),
    "LinearDiscriminantAnalysis.n_components": one_of(1),
    "MixtureDiscriminantAnalysis.n_components": one_of(1, 2, 4),
    "covariance": one_of("tied", "full"),
    "em_iter": one_of(0, 3, 50),
    "k": one_of(0, 1, 3),
    "ConditionalGaussianNB.k": one_of(0, 2),
    "ConditionalGaussianModel.k": one_of(0, 2),
    "missing": one_of("informative"),
    "backoff": one_of(0.0, 1.0, 5.0),
    "ProductOfExperts.experts": random_experts,
    "RiskBayesClassifier.strategy": lambda rng, table: str(
        rng.choice(
            ["single", "glass", "cv", "ensemble"], p=[0.86, 0.06, 0.04, 0.04]
        )  # "auto" is one of these, by the source
    ),
    # The whole family takes seconds; its first member goes the same way.
    "RiskBayesClassifier.time_limit": lambda rng, table: (
        None if rng.random() < 0.02 and len(table.y) < 40 else 1e-9
    ),
    "RiskBayesClassifier.cv": one_of(2, 3),
    "RiskBayesClassifier.random_state": one_of(0),
}
"""How a hyper-parameter is drawn, by its name, or by its owner's and its name."""

ALWAYS = (
    *(f"RiskBayesClassifier.{name}" for name in ("strategy", "time_limit", "random_state")),
    *(f"{name}DiscriminantAnalysis.prior" for name in ("Linear", "Quadratic", "Mixture")),
    "GaussianNB.prior",
)
"""Hyper-parameters that are never left at their defaults."""


def learner_kinds() -> dict[str, type[Learner]]:
    """Every learner of the package that has a name."""
    found, todo = {}, list(Learner.__subclasses__())
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if kind.__module__.startswith("riskbayes.") and "name" in vars(kind):
            found[kind.name] = kind
    return found


def random_learner(table: Table, rng: np.random.Generator) -> Any:
    """A learner by name, or an instance with few iterations."""
    shares = {name: SHARES.get(name, 0.05) for name in sorted(learner_kinds())}
    if table.kind == "real":
        shares[DFE.name] = 0.002  # refused
    name = list(shares)[rng.choice(len(shares), p=np.array(list(shares.values())) / sum(shares.values()))]
    # RCCV as its name makes it has eight paths of 64 iterations in five folds.
    by_name = name not in LEARNERS or rng.random() < (0.01 if name == RCCV.name else 0.2)
    if by_name and name == RCCV.name:
        return RCCV(random_state=0)  # by its name it draws other folds in each fit: none could be repeated
    return name if by_name else LEARNERS[name](table, rng)


SHARES = {"closed_form": 0.4, "rc": 0.4, "rc_cv": 0.05, "tm": 0.07, "dfe": 0.08, "gd": 0.05}


def random_objective(table: Table, rng: np.random.Generator) -> Any:
    """A risk by name, or a matrix of costs."""
    r = table.n_classes
    if rng.random() < 0.75:
        return str(rng.choice(["log_loss", "log_loss", "soft_error"]))
    return rng.integers(1, 6, size=(r, r)) * (1.0 - np.eye(r))


def random_rc(table: Table, rng: np.random.Generator) -> RC:
    step, early = str(rng.choice(["fixed", "adaptive", "quasi_newton"])), bool(rng.random() < 0.2)
    return RC(
        lr=float(rng.choice([0.05, 0.1, 0.5, 1.0])),
        max_iter=int(rng.integers(1, 7)) * (10 if step == "quasi_newton" else 1),
        objective=random_objective(table, rng),
        monitor=one_of(None, None, "soft_error", "log_loss", "objective")(rng, table),
        step=step,
        generative_weight=one_of(0.0, 0.0, 0.03, 1.0, "auto")(rng, table),
        early_stopping=early,
        validation_fraction=float(rng.choice([0.1, 0.3])),
        refit=bool(early and rng.random() < 0.5),
        batch_size=int(rng.integers(5, 40)) if step == "fixed" and rng.random() < 0.12 else None,
        n_restarts=int(rng.integers(1, 3)) if rng.random() < 0.1 else 0,
        random_state=0,
    )


LEARNERS: dict[str, Callable[[Table, np.random.Generator], Learner]] = {
    "rc": random_rc,
    "rc_cv": lambda table, rng: RCCV(
        cv=2,
        generative_weights=(0, 0.1)[: rng.integers(1, 3)],
        objectives=[random_objective(table, rng)],
        max_iter=2,
        random_state=0,
    ),
    "tm": lambda table, rng: TM(int(rng.integers(1, 6)), monitor=str(rng.choice(["log_loss", "soft_error"]))),
    "dfe": lambda table, rng: DFE(
        lr=float(rng.choice([0.3, 1.0])),
        max_iter=int(rng.integers(1, 4)),
        mode="online" if rng.random() < 0.3 and len(table.y) < 1000 else "batch",
        shuffle=bool(rng.random() < 0.3),
        random_state=0,
    ),
    "gd": lambda table, rng: GD(
        lr=float(rng.choice([0.1, 1.0])),
        max_iter=int(rng.integers(1, 6)),
        projection=str(rng.choice(["simplex", "softmax"])),
    ),
}


def hyper_parameters(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of every hyper-parameter: an estimator's, its learner's, experts' and model's."""
    if isinstance(thing, BaseEstimator):
        pairs = list(thing.get_params(deep=False).items())
    elif isinstance(thing, GenerativeModel) and is_dataclass(thing):
        pairs = [(field.name, getattr(thing, field.name)) for field in fields(thing)]
    else:
        pairs = [("", value) for value in thing] if isinstance(thing, list | tuple) else []
    for name, value in pairs:
        yield name, value
        yield from hyper_parameters(value)


def uses(estimator: Any, *names: str) -> bool:
    """True if one of these hyper-parameters is set to anything but None, False or zero."""
    return any(
        name in names and value is not None and not (np.isscalar(value) and value in (0, False))
        for name, value in hyper_parameters(estimator)
    )


def changed(thing: Any, change: Callable[[str, Any], Any]) -> Any:
    """A clone whose hyper-parameters, and those of its parts, are `change(name, value)`."""
    if isinstance(thing, list):
        return [changed(value, change) for value in thing]
    if isinstance(thing, GenerativeModel) and is_dataclass(thing):
        return replace(
            thing, **{field.name: change(field.name, getattr(thing, field.name)) for field in fields(thing)}
        )
    found = clone(thing)
    for name, value in found.get_params(deep=False).items():
        inside = isinstance(value, BaseEstimator | GenerativeModel) or (
            name == "experts" and value is not None
        )
        found.set_params(**{name: changed(value, change) if inside else change(name, value)})
    return found
