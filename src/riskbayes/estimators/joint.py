"""What a joint p(x, y) is good for besides classification: explanations, parameters, outliers, imputation."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, converted, to_device, to_numpy
from riskbayes.engines.base import Engine
from riskbayes.estimators.explanation import Explanation
from riskbayes.estimators.prediction import PredictionMixin, generator, most_probable
from riskbayes.estimators.priors import PriorsMixin
from riskbayes.models.base import Fitted
from riskbayes.preprocessing.encoder import TableEncoder
from riskbayes.risks import log_evidence, posterior
from riskbayes.tables import cell_values, encoded_names, frame_of, with_cells

MOST_REFERENCE = 1024
"""Training rows whose log densities are kept, to compare new rows with."""

DENSITY_ROUNDING = 1e-9
"""Log densities that differ by less than this, absolutely or relatively, count as equal."""

MOST_EXPLAINED = 2**27
"""Most contributions of sparse rows that are computed: 1 GiB."""

PRIOR = "(prior)"
"""The column that `parameters_frame` names for log p(y)."""


class JointMixin(PredictionMixin, PriorsMixin):
    """The methods of an estimator that use its joint p(x, y)."""

    _log_densities: Array | None = None
    """Log densities of some training rows; None if they are not known."""

    @property
    def _column_names(self) -> list[Any]:
        """Names of the columns that the model reads, or their indices if they have no names."""
        names = encoded_names(self)
        return list(range(self.n_features_in_)) if names is None else list(names)  # type: ignore[attr-defined]

    def _value_name(self, column: int, value: float) -> str:
        """Return the category of a code, or a number, as the user wrote it."""
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    @property
    def _category_columns(self) -> Array:
        """Mask of the columns that hold categories, whose codes cannot be averaged."""
        return np.full(self.n_features_in_, self.model_.traits.support == "categories")  # type: ignore[attr-defined]

    @property
    def _encoder_of_table(self) -> TableEncoder | None:
        """The encoder that made the columns of the model from those of the table; None if there is none."""
        return None

    def _on_host(self) -> tuple[Any, Any]:
        """Return the frame and the parameters with NumPy arrays."""
        if isinstance(self._fitted_on, np.ndarray):
            return self.statistics_.frame, self.parameters_
        return converted(self.statistics_.frame, to_numpy), converted(self.parameters_, to_numpy)

    def _require(self, method: str, purpose: str) -> None:
        """Refuse what the model has no method for."""
        check_is_fitted(self)
        if not self.model_.writes(method):
            raise NotImplementedError(
                f"{type(self).__name__} cannot {purpose}: its model, or one that it is made of, has no "
                f"`{method}`."
            )

    def explain(self, X: Any) -> Explanation:
        """Return what each column of the rows contributed to the log-odds of the classes.

        The contributions and the prior add up to the log-odds of the posterior, exactly. In naive Bayes a
        column contributes log p(x_j | y); in a tree or network log p(x_j | parents, y); in linear
        discriminant analysis its coefficient times its distance from the middle of the classes' means; in
        quadratic discriminant analysis its Shapley value of the quadratic form, with the mean of the class
        as reference, and its share of the log-determinant; in multinomial and complement naive Bayes its
        count times the weight of the word; in a product the weighted sum over the experts. A mixture of
        components is no such sum, and is refused.

        Contributions are dense, also those of sparse rows: explain some of the rows of a large table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        explanation : Explanation
            Its `values` are the contributions, of shape (n_samples, n_features, n_classes); `log_odds()`,
            `to_frame()` and `plot(row)` show them.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import QuadraticDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> odds = QuadraticDiscriminantAnalysis().fit(X, y).explain(X).log_odds(1, 2)
        >>> odds.values.shape, odds.total.shape
        ((150, 4), (150,))
        """
        self._require("contributions", "explain rows")
        rows, classes = self._encode_again(X, "explain"), to_numpy(self.classes_)
        sparse = issparse(rows)
        if sparse:
            check_explained(rows.shape[0], rows.shape[1], len(classes))
        self._map_rows(rows, "scores", most_probable)  # refuses rows whose scores overflow
        frame, theta = self._on_host()
        Z = self.model_.encode(rows if sparse else to_numpy(rows), frame)
        values, baseline = self.model_.contributions(Z, theta), self.model_.baseline(theta)
        cells = cell_values(rows if sparse else X)
        read = self.model_.reads(values.shape[1])
        found = Explanation.centred(values, baseline, classes, self._column_names, cells, read, X)
        return found if self._encoder_of_table is None else found.by_table_column(self._encoder_of_table)

    def parameters_frame(self) -> Any:
        """Return the parameters by class, in the closed form and calibrated, those first that moved most.

        Returns
        -------
        frame : data frame
            Columns `class`, `column`, `parameter`, `closed_form`, `calibrated`, `change` and `rows`. A change
            of a mean or of a standard deviation is in standard deviations of the closed form; that of a
            correlation, weight, log probability, log rate or log density is the difference. `rows` is about
            the weight of the training rows that tell of the parameter: all of the class, or those with that
            category or near that value (given parents, at most so many). What few rows tell of moves far.
            Of pandas, or else of polars; a dict of arrays where neither is installed.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> frame = GaussianNB().fit(X, y).parameters_frame()
        >>> list(frame.columns)
        ['class', 'column', 'parameter', 'closed_form', 'calibrated', 'change', 'rows']
        """
        return frame_of(self._parameters_table())

    def _parameters_table(self) -> dict[str, Array]:
        """Return the columns of `parameters_frame`."""
        self._require("describe", "list its parameters")
        _, calibrated = self._on_host()
        closed = converted(self.model_.parameters(self.data_statistics_), to_numpy)
        classes, columns, r = (
            to_numpy(self.classes_),
            [str(c) for c in self._column_names],
            len(closed.log_prior),
        )
        lists: dict[str, list[Array]] = {
            "class": [classes],
            "column": [np.full(r, PRIOR)],
            "parameter": [np.full(r, "log p(y)")],
            "closed_form": [closed.log_prior],
            "calibrated": [calibrated.log_prior],
            "change": [calibrated.log_prior - closed.log_prior],
            "rows": [masses := to_numpy(self.data_statistics_["s0"])],
        }
        for before, after in zip(self.model_.describe(closed), self.model_.describe(calibrated), strict=True):
            p = len(before.names)
            named = before.named or [()] * p
            names = [
                name.format(*(columns[j] if code is None else self._value_name(j, code) for j, code in parts))
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

    def _training_prior(self) -> Array:
        return np.exp(to_numpy(self.model_.parameters(self.data_statistics_).log_prior))

    def _set_log_ratio(self, log_ratio: Array) -> None:
        old = self.parameters_.log_prior
        log_prior = to_numpy(old) + log_ratio
        log_prior = to_device(log_prior - logsumexp(log_prior), old)
        self.parameters_ = self.model_.with_log_prior(self.parameters_, log_prior)
        self._log_densities = None

    def _keep_densities(self, engine: Engine) -> None:
        """Keep the log densities of some training rows, for `outlier_score`.

        Not after a closed form, whose fit of a small table would take about a seventh longer.
        """
        if self.learner_.max_iter == 0 or not self.model_.traits.describes_rows:  # type: ignore[attr-defined]
            return
        fitted = Fitted(self.model_, self.statistics_, self.parameters_)

        def work(Z: Any, theta: Any, first: int) -> Array:
            return log_evidence(self.model_.log_joint(Z, theta))

        with np.errstate(over="ignore", invalid="ignore"):
            self._log_densities = engine.thinned(MOST_REFERENCE).map_rows([fitted], work)[0]

    def outlier_score(self, X: Any, reference: Any = None) -> Array:
        """Return the share of the training rows that have a larger density p(x) than each row.

        1 is for a row less probable than all training rows. Of these at most 1024 count, evenly spaced, as
        often as their weights ask for. A learner that iterates keeps their densities; the closed form, which
        would take a seventh longer, needs `reference`.

        The training rows were fitted, so that new rows of the same kind have larger scores; compare with rows
        that were held out, as `reference`, to avoid that. Training for the risk bends the density:
        `doc/joint.md` shows how far, and that `generative_weight` of the learner limits it. A product that is
        not normalised lacks a constant in its log density, the same for all rows: the score does not need it.
        Rows with missing cells have densities of fewer cells, in other units: compare them with rows that
        lack the same cells, as `reference`, or impute them first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        reference : array-like of shape (n_reference, n_features), default=None
            Rows to compare with in place of the training rows.

        Returns
        -------
        score : ndarray of shape (n_samples,)
            Between 0 and 1. To rank rows beyond all training rows, use `score_samples`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import QuadraticDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = QuadraticDiscriminantAnalysis().fit(X, y)
        >>> clf.outlier_score([[5.0, 3.4, 1.5, 9.0]])
        array([1.])
        """
        check_is_fitted(self)
        known = self._log_densities
        if reference is not None:
            known = self.score_samples(reference)
        if known is None:
            raise ValueError(
                "The densities of the training rows are kept by a `fit` whose learner iterates, not by the "
                "closed form, nor by what changes a fitted model (`partial_fit`, `merge`, `forget`, "
                "`calibrate`, `with_priors`). Pass rows to compare with as `reference`, such as the training "
                "rows."
            )
        density, known = to_numpy(self.score_samples(X)), np.sort(to_numpy(known))
        # A row's density is rounded differently alone and among others: equal ones must not be told apart.
        as_large = density + DENSITY_ROUNDING * (1.0 + np.abs(density))
        return 1.0 - np.searchsorted(known, as_large, side="right") / len(known)

    def is_outlier(self, X: Any, fpr: float = 0.01, reference: Any = None) -> Array:
        """Return which rows have a density that less than a share `fpr` of the training rows fall below.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        fpr : float, default=0.01
            The share of the training rows, or of `reference`, that is taken for outliers at most.
        reference : array-like of shape (n_reference, n_features), default=None
            Rows to compare with in place of the training rows, as in `outlier_score`.

        Returns
        -------
        outlier : ndarray of bool, shape (n_samples,)
            True for outliers.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import QuadraticDiscriminantAnalysis
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = QuadraticDiscriminantAnalysis().fit(X, y)
        >>> clf.is_outlier([[5.0, 3.4, 1.5, 0.2], [5.0, 3.4, 1.5, 9.0]])
        array([False,  True])
        """
        if not isinstance(fpr, Real) or not 0 < fpr < 1:
            raise ValueError(f"fpr must be a share between 0 and 1; got {fpr!r}.")
        # A share of 1 / m of m rows is compared with fpr: rounding must not decide.
        return self.outlier_score(X, reference) > 1.0 - fpr + 1e-12

    def impute(self, X: Any, random_state: Any = None) -> Any:
        """Return the rows with their missing cells filled by the model.

        Given the observed cells of the row: a number by its mean, averaged over the classes by the posterior;
        a category by the most probable one of the most probable class. With `random_state`, by a draw: a
        class from the posterior, then the cells given the class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        random_state : int, RandomState instance, Generator or None, default=None
            Draws the cells, repeatably if it is a number; None fills in expected values.

        Returns
        -------
        X : array or data frame
            The same table without missing cells; observed cells are unchanged. Columns that no model reads
            are not filled. In columns of whole numbers the means are rounded.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from riskbayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = GaussianNB().fit(X, y)
        >>> clf.impute([[5.0, 3.4, float("nan"), 0.2]]).shape  # doctest: +SKIP
        (1, 4)
        """
        self._require("fill", "fill in missing cells")
        rows = self._encode_again(X, "impute")
        if issparse(rows):  # its cells are never missing
            return X.copy()
        rows = to_numpy(rows).astype(np.float64)
        holes, filled = np.flatnonzero(np.isnan(rows).any(axis=1)), rows.copy()
        if len(holes):
            filled[holes] = self._filled(rows[holes], random_state)
        if self._encoder_of_table is not None:
            drawn = random_state is not None
            return with_cells(X, *self._encoder_of_table.missing_and_values(X, filled, drawn))
        missing, categories = np.isnan(rows), self._category_columns
        if categories.all():
            # Observed cells may hold no category.
            return with_cells(X, missing, self._decode(np.where(missing, filled, 0).astype(np.int64)))
        return with_cells(X, missing & ~np.isnan(filled), filled)  # no expert may read a column

    def _filled(self, X: Array, random_state: Any) -> Array:
        """Return encoded rows with their missing cells filled."""
        (frame, theta), categories = self._on_host(), self._category_columns
        P = to_numpy(self._map_rows(to_device(X, self._fitted_on), "scores", posterior))
        Z = self.model_.encode(X, frame)
        if random_state is not None:
            rng = generator(random_state)
            y = (rng.random(len(P))[:, None] > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)
            return np.where(np.isnan(X), self.model_.fill(Z, theta, y, rng), X)
        filled = self.model_.fill(Z, theta, P.argmax(axis=1))
        if not categories.all():
            means = sum(P[:, [k]] * self.model_.fill(Z, theta, np.full(len(X), k)) for k in range(P.shape[1]))
            filled = np.where(categories, filled, means)
        return np.where(np.isnan(X), filled, X)


def check_explained(m: int, n: int, r: int) -> None:
    """Refuse sparse rows whose contributions, which are dense, would take too much memory.

    One row is always explained.
    """
    most = max(1, MOST_EXPLAINED // (n * r))
    if m > most:
        raise ValueError(
            f"X has {m} sparse rows, and the contributions of their {n} columns to {r} classes are dense: "
            f"{m * n * r} numbers, which would take too much memory. Explain at most {most} rows at a time."
        )
