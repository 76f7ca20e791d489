"""What a joint p(x, y) is good for besides classification: explanations, parameters, outliers, imputation."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, converted, to_device, to_numpy
from riskbayes.estimators.explaining import model_columns
from riskbayes.estimators.explanation import Contributions
from riskbayes.estimators.prediction import finish_rows, generator, most_probable
from riskbayes.models.base import with_log_prior
from riskbayes.preprocessing.filling import with_cells
from riskbayes.risks import posterior

DENSITY_ROUNDING = 1e-9
"""Log densities that differ by less than this, absolutely or relatively, count as equal."""

PRIOR = "(prior)"
"""The column that `parameters_frame` names for log p(y)."""


def contributions(clf: Any, rows: Any) -> Contributions | None:
    """Return what each column of encoded rows adds to the scores; None if these are no sum over columns."""
    if not clf.model_.implements("contributions"):
        return None
    finish_rows(clf, rows, "scores", most_probable)  # refuses rows whose scores overflow
    frame, theta = on_host(clf)
    Z = clf.model_.encode(rows if issparse(rows) else to_numpy(rows), frame)
    return Contributions(clf.model_.contributions(Z, theta), clf.model_.baseline(theta))


def check_cells_can_miss(clf: Any) -> None:
    """Refuse to explain by a model that is no sum over columns, and reads rows with all their cells only."""
    if not clf.model_.traits.takes_missing:
        raise NotImplementedError(
            f"{type(clf).__name__} cannot explain rows: the scores of its {type(clf.model_).__name__} are no "
            "sum over the columns (there is no method `contributions`), and it cannot leave a cell out, for "
            "it takes no missing cells. Give the model one of the two: `contributions`, or missing cells and "
            "the trait `takes_missing`."
        )


def require_method(clf: Any, method: str, purpose: str) -> None:
    """Refuse what the model has no method for."""
    check_is_fitted(clf)
    if not (hasattr(clf, "model_") and clf.model_.implements(method)):
        raise NotImplementedError(
            f"{type(clf).__name__} cannot {purpose}: its model, or one that it is made of, has no `{method}`."
        )


def on_host(clf: Any) -> tuple[Any, Any]:
    """Return the frame and the parameters with NumPy arrays."""
    if isinstance(clf._fitted_on, np.ndarray):
        return clf.statistics_.frame, clf.parameters_
    return converted(clf.statistics_.frame, to_numpy), converted(clf.parameters_, to_numpy)


def parameters_table(clf: Any) -> dict[str, Array]:
    """Return the columns of `parameters_frame`."""
    require_method(clf, "describe", "list its parameters")
    _, calibrated = on_host(clf)
    closed = converted(clf.model_.parameters(clf.data_statistics_), to_numpy)
    classes, columns, r = to_numpy(clf.classes_), list(map(str, model_columns(clf))), len(closed.log_prior)
    lists: dict[str, list[Array]] = {
        "class": [classes],
        "column": [np.full(r, PRIOR)],
        "parameter": [np.full(r, "log p(y)")],
        "closed_form": [closed.log_prior],
        "calibrated": [calibrated.log_prior],
        "change": [calibrated.log_prior - closed.log_prior],
        "rows": [masses := to_numpy(clf.data_statistics_["s0"])],
    }
    value_name = clf._input.value_name
    for before, after in zip(clf.model_.describe(closed), clf.model_.describe(calibrated), strict=True):
        p = len(before.names)
        named = before.named or [()] * p
        names = [
            name.format(*(columns[j] if code is None else value_name(clf, j, code) for j, code in parts))
            for name, parts in zip(before.names, named, strict=True)
        ]
        lists["class"].append(np.repeat(classes, p))
        lists["column"].append(np.tile([columns[j] for j in before.columns], r))
        lists["parameter"].append(np.tile(names, r))
        lists["closed_form"].append(before.values.ravel())
        lists["calibrated"].append(after.values.ravel())
        lists["change"].append(((after.values - before.values) / before.units).ravel())
        shares = np.ones((r, p)) if before.shares is None else before.shares
        lists["rows"].append((masses[:, None] * shares).ravel())
    table = {name: np.concatenate(parts) for name, parts in lists.items()}
    order = np.argsort(-np.abs(table["change"]), kind="stable")
    return {name: values[order] for name, values in table.items()}


def training_prior(clf: Any) -> Array:
    """Return p(y) of the closed form: the class frequencies that calibrated posteriors are for too."""
    return np.exp(to_numpy(clf.model_.parameters(clf.data_statistics_).log_prior))


def set_log_ratio(clf: Any, log_ratio: Array) -> None:
    """Add log p'(y) / p(y) to the log joint of every class."""
    old = clf.parameters_.log_prior
    log_prior = to_numpy(old) + log_ratio
    log_prior = to_device(log_prior - logsumexp(log_prior), old)
    clf.parameters_ = with_log_prior(clf.parameters_, log_prior)
    clf._log_densities = None


def outlier_score(clf: Any, X: Any, reference: Any) -> Array:
    """Return the share of the training rows, or the reference, that have a larger density than each row."""
    check_is_fitted(clf)
    known = clf._log_densities if reference is None else clf.score_samples(reference)
    if known is None:
        raise ValueError(
            "The densities of the training rows are kept by a `fit` whose learner iterates, not by the "
            "closed form, nor by what changes a fitted model (`partial_fit`, `merge`, `forget`, "
            "`calibrate`, `with_priors`). Pass rows to compare with as `reference`, such as the training "
            "rows."
        )
    density, known = to_numpy(clf.score_samples(X)), np.sort(to_numpy(known))
    # A row's density is rounded differently alone and among others: equal ones must not be told apart.
    as_large = density + DENSITY_ROUNDING * (1.0 + np.abs(density))
    return 1.0 - np.searchsorted(known, as_large, side="right") / len(known)


def is_outlier(clf: Any, X: Any, fpr: float, reference: Any) -> Array:
    """Return which rows have a density that less than a share `fpr` of the training rows fall below."""
    if not isinstance(fpr, Real) or not 0 < fpr < 1:
        raise ValueError(f"fpr must be a share between 0 and 1; got {fpr!r}.")
    # A share of 1 / m of m rows is compared with fpr: rounding must not decide.
    return outlier_score(clf, X, reference) > 1.0 - fpr + 1e-12


def impute(clf: Any, X: Any, random_state: Any) -> Any:
    """Return the rows with their missing cells filled by the model."""
    require_method(clf, "fill", "fill in missing cells")
    rows = clf._encode_new(X, "impute")
    if issparse(rows):  # its cells are never missing
        return X.copy()
    rows = to_numpy(rows).astype(np.float64)
    holes, filled = np.flatnonzero(np.isnan(rows).any(axis=1)), rows.copy()
    if len(holes):
        filled[holes] = fill(clf, rows[holes], random_state)
    table = clf._table
    if table is not None:
        return with_cells(X, *table.missing_and_values(X, filled, random_state is not None))
    missing, categories = np.isnan(rows), clf._input.category_mask(clf)
    if categories.all():
        # Observed cells may hold no category.
        whole = np.where(missing, filled, 0).astype(np.int64)
        return with_cells(X, missing, clf._input.decode(clf, whole))
    return with_cells(X, missing & ~np.isnan(filled), filled)  # no expert may read a column


def fill(clf: Any, X: Array, random_state: Any) -> Array:
    """Return encoded rows with their missing cells filled."""
    (frame, theta), categories = on_host(clf), clf._input.category_mask(clf)
    P = to_numpy(finish_rows(clf, to_device(X, clf._fitted_on), "scores", posterior))
    Z = clf.model_.encode(X, frame)
    if random_state is not None:
        rng = generator(random_state)
        y = (rng.random(len(P))[:, None] > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)
        return np.where(np.isnan(X), clf.model_.fill(Z, theta, y, rng), X)
    filled = clf.model_.fill(Z, theta, P.argmax(axis=1))
    if not categories.all():
        means = sum(P[:, [k]] * clf.model_.fill(Z, theta, np.full(len(X), k)) for k in range(P.shape[1]))
        filled = np.where(categories, filled, means)
    return np.where(np.isnan(X), filled, X)
