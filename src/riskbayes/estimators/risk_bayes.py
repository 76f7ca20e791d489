"""The estimator to try first: it fits one recipe, or chooses from a family of models."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from numbers import Integral, Real
from time import perf_counter
from typing import Annotated, Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

import riskbayes.estimators.parameters as p
from riskbayes.arrays import Array
from riskbayes.estimators.callbacks import FitTask
from riskbayes.estimators.checks import check_masses, class_codes, labels_like, listed
from riskbayes.estimators.classifier import BaseClassifier
from riskbayes.estimators.explanation import Contributions
from riskbayes.estimators.family import cross_validate, family, folds_of, neighbour_recipe, recipe
from riskbayes.estimators.fitted_checks import masses_of, table_findings
from riskbayes.estimators.fitting import unchanged_on_error
from riskbayes.estimators.glass_search import GlassSearch
from riskbayes.estimators.kinds import Kinds
from riskbayes.estimators.leaderboard import cross_validated, in_train
from riskbayes.estimators.member import (
    CHECKPOINTS,
    ComposedMember,
    FrequencyMember,
    Member,
    MemberClassifier,
    SearchedMember,
)
from riskbayes.estimators.prediction import Finish, Prediction
from riskbayes.estimators.reading import Learns, Reading
from riskbayes.estimators.scaling import ColumnScales
from riskbayes.estimators.strategy import check_strategy, choose_strategy
from riskbayes.estimators.table_input import TableInput, table_columns, table_schema
from riskbayes.exceptions import ColumnError, FlooredWarning, warn
from riskbayes.findings import Finding
from riskbayes.input.source import EncodedSource
from riskbayes.input.sources import source_of
from riskbayes.learners.rc import SMALL_WEIGHT
from riskbayes.loaded import require, require_shape
from riskbayes.onnx_export import Exported
from riskbayes.persistence.hints import fits
from riskbayes.preprocessing.bins import column_ranges
from riskbayes.risks import log_evidence, log_posterior
from riskbayes.tables import encoded_names, naming_columns


def has_density(clf: Any) -> bool:
    """True if `score_samples` is available; raises an error that says why not otherwise."""
    if hasattr(clf, "members_") and clf._normalised() is not None:
        names = encoded_names(clf)
        for j in clf._scales.scaled.tolist():
            column = j if names is None else names[j]
            raise NotImplementedError(
                f"The members read column {column!r} in another unit, for its range "
                f"is about 2**{clf._scales.exponents[j]}: densities in yours may overflow. Scale it before "
                "`fit`."
            )
    return True


@p.estimator
class RiskBayesClassifier(BaseClassifier):
    """Classifier that fits or chooses generative models, trained by risk-based calibration.

    Takes tables as they are: arrays and data frames (pandas, polars, Arrow) of numbers in any unit, strings,
    dates, with missing cells. `columns_` says what became of each column. If `fit` is interrupted, the
    estimator stays as it was before.
    `doc/accuracy.md` says how accurate it is, and where it is not.

    For a progress bar set scikit-learn's callback `sklearn.callback.ProgressBar`: members and folds are
    tasks of the fit. If a callback asks to stop, the search ends after the present member.

    Parameters
    ----------
    strategy : {"auto", "single", "glass", "neighbours", "cv", "ensemble"}, default="auto"
        "auto" is "ensemble" for up to 100000 rows in memory, which takes a time in proportion to them, and
        "single" for more rows, for rows in batches or on Dask, with a checkpoint, and where a class has a
        single row; `strategy_` says which.
        "single" fits one recipe without a search: the product of QDA with a strong prior and smooth naive
        Bayes of the numbers, and of naive Bayes of the categories and of marks of missing cells.
        "glass" takes that product to a power, and corrects it by a table for each column and by tables for
        pairs of columns, each where rows that were held out gain by it: one sum, whose terms `explain`
        returns, without a random choice.
        "neighbours" adds a model of the nearest training rows to it: the error is lower where rows are
        repeated or follow exact rules, but it keeps training rows (at most 2**14), and is no sum. "cv" trains
        every member of a family (that product beside neighbours and with tables, leaves of random trees, QDA,
        LDA) in every fold, and refits the member and the iteration with the least sum of cross-validated
        error and log loss. "ensemble" averages the posteriors of several members, which are added greedily by
        the same score of their average; it has the least error and log loss in `doc/accuracy.md`. The class
        frequencies are a member too. "ensemble" and "glass" are nothing but these unless the held-out labels
        support more by three standard errors.
    cv : int, splitter or iterable of splits, default=4
        Number of stratified folds (fewer if a class has fewer rows), shuffled by `random_state`, or by
        "glass" always alike; no more of them are walked than hold out 1000 rows. Or splits, as in
        scikit-learn, where None is five folds that are not shuffled.
    {categorical_features columns}
    missing : {"informative", "ignore"}, default="informative"
        With "informative" the classes also differ in how often a cell is missing.
    {unseen}
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply `sample_weight` in the members and in their scores.
    time_limit : float or None, default=None
        Seconds after which no further member is tried. The choice is then among those tried so far. A fit
        takes somewhat longer, for the chosen members are refitted.
    n_jobs : int or None, default=None
        Number of folds that run in parallel.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds. "single" makes no random choice, and the order of rows does not matter to it.
        "glass" makes none either, but its folds follow the order of the rows. The order matters to
        "neighbours" too: of rows at equal distance the first ones are neighbours, and
        the place of a category is found without every fifth row in turn.
    verbose : int, default=0
        If positive, print a line for each member.

    Attributes
    ----------
    strategy_, strategy_reason_ : str, str
        The strategy that was fitted, and why it was chosen.
    members_ : list of (estimator, weight)
        The fitted estimators whose posteriors are averaged; all but "ensemble" have one. Their classes are
        indices of `classes_`. A column whose range is beyond 2**256 or 2**-256 (2**32 or 2**-32 in float32)
        is multiplied by a power of two before they read it.
    leaderboard_ : dict of arrays
        An entry for each member tried, best first; `pandas.DataFrame` takes it. `member`; cross-validated
        `cv_error` and `cv_log_loss` at the best iteration, `cv_error_closed_form`, the `cv_score` that
        members are chosen by (the error and the log loss: least is best); best `n_iter`, `seconds` of all
        folds, `weight` in the classifier. The iteration and the member have the least score of many on the
        same held-out rows, so that their `cv_error` and `cv_log_loss` are too low, the more so the fewer the
        rows: score other rows for an honest estimate. "single" and "neighbours" are not cross-validated: they
        have `train_error`, `train_error_closed_form` and `train_log_loss`, of the training rows. Those of
        "glass" are the class frequencies, the closed form of the recipe, the recipe, a power of it, and
        tables, the last three at their best `strength`.
    {columns_}
    checks_ : list of Finding
        What may be wrong with the model or its columns, with codes; see `doc/findings.md`.
    {classes_}
    class_prior_ : ndarray of shape (n_classes,)
        Share of each class in the weight of the training rows.
    class_weight_ : ndarray of shape (n_classes,) or None
        Weights of the classes, if `class_weight` is set.
    history_ : dict of arrays
        Risks of the training rows by iteration; entry 0 is the closed form. Empty if the closed form was
        chosen. For "ensemble" a list of them, one for each of `members_`.
    n_iter_, best_iteration_, status_ : int, int, Status
        Number of scans after that of the closed form, the iteration that was returned, how the fit ended. For
        "ensemble" lists, as `history_`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from riskbayes import RiskBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = RiskBayesClassifier(random_state=0).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> clf.strategy_
    'ensemble'
    """

    strategy: Annotated[str, StrOptions({"auto", "single", "glass", "neighbours", "cv", "ensemble"})] = field(
        default="auto", kw_only=False
    )
    cv: Annotated[Any, "cv_object"] = 4
    categorical_features: p.CategoricalFeatures = "from_dtype"
    columns: p.ColumnKinds = None
    missing: p.Missing = "informative"
    unseen: p.Unseen = "missing"
    class_weight: p.ClassWeight = None
    time_limit: Annotated[float | None, Interval(Real, 0, None, closed="neither"), None] = None
    n_jobs: Annotated[int | None, Integral, None] = None
    random_state: Annotated[Any, "random_state"] = None
    verbose: p.Verbose = 0

    _input = TableInput()
    _takes_missing = _picks_rows = True
    _decision_formula = "scores"
    _scales: ColumnScales = field(init=False)
    """Powers of two that columns of extreme range are multiplied by."""
    _log_ratio: Array | None = None
    """What `with_priors` adds to the log posterior; None for nothing."""

    columns_ = property(table_columns)
    schema_ = property(table_schema)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, checkpoint: Any = None) -> Self:
        """Fit the recipe, or choose members and fit them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Rows, or Dask array or data frame
            Training rows; with strategy="single" or "auto" also :func:`riskbayes.rows`, which need not fit
            into memory and hold their labels and weights, and Dask collections, as those of y and
            sample_weight.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        checkpoint : path or (path, seconds), default=None
            With strategy="single" or "auto", a file to which every scan is written, at once or when so many
            seconds have passed since the last time. If it exists, the same fit goes on from there.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        rows = (X, y, sample_weight)
        source = source_of(*rows)
        check_strategy(self.strategy, source, checkpoint)
        with unchanged_on_error(self, source), warnings.catch_warnings():
            # Priors determine what the rows do not, and a constant column does no harm.
            warnings.simplefilter("ignore", FlooredWarning)
            start, self.class_weight_ = perf_counter(), None
            engine = source.engine(Reading(self, Learns.ALL))
            if len(self.classes_) < 2:
                raise ValueError(
                    f"{type(self).__name__} needs at least two classes in y; got one class, "
                    f"{listed(self.classes_)}."
                )
            check_masses(self.classes_, engine.masses)
            if engine.mass < SMALL_WEIGHT * engine.n_rows:
                warn(
                    f"The weights of {engine.n_rows} rows sum to {engine.mass:g}, and priors count as rows: "
                    "they will outweigh the data. Scale the weights to sum to the number of rows."
                )
            self.class_prior_, self._priors, self._log_ratio = engine.masses / engine.mass, None, None
            self._conformal = None
            chosen = choose_strategy(self.strategy, engine, self.cv, checkpoint)
            self.strategy_, self.strategy_reason_ = chosen
            self._fit_members(engine, rows, start, checkpoint)
        return self

    def _fit_members(self, engine: Any, rows: tuple, start: float, checkpoint: Any) -> None:
        """Fit the recipe, or the chosen members, to rows in memory, on a disk or on Dask."""
        in_memory = engine.rows is not None
        X = engine.rows if in_memory else engine.extremes()
        # Learned from all rows, but no leak into the folds: a power of two changes no digit.
        self._scales, kinds = ColumnScales.learn(X), self._kinds_read(X)
        for j in () if in_memory else self._scales.scaled.tolist():
            raise ColumnError(
                j, "has a range so large or small that its squares overflow. Scale it before `fit`."
            )
        members = family(kinds) if self.strategy_ in ("cv", "ensemble") else []
        fit = FitTask(self, len(members) + 1, rows)
        own = (self._scales.apply(X), engine._y, engine._w) if in_memory else (EncodedSource(engine),)
        if members:
            self._fit_family(members, own, self._folds(rows, engine._y), start, fit)
        elif self.strategy_ == "glass" and np.bincount(engine._y).min() > 1:
            self._fit_glass(kinds, own, self._folds(rows, engine._y), start, fit)
        else:
            name, clf = "product", recipe(kinds=kinds, n_rows=engine.n_rows)
            if self.strategy_ == "neighbours":
                name, clf = "product with neighbours", neighbour_recipe(kinds)
            with fit.fitting("member", clf):
                clf.fit(*own, checkpoint=checkpoint)
            self.members_ = [(clf, 1.0)]
            self.leaderboard_ = in_train(name, clf, perf_counter() - start)
        paths = [(clf.history_, clf.n_iter_, clf.best_iteration_, clf.status_) for clf, _ in self.members_]
        found: Any = map(list, zip(*paths, strict=True)) if self.strategy_ == "ensemble" else paths[0]
        self.history_, self.n_iter_, self.best_iteration_, self.status_ = found
        fit.end(dict)

    def _kinds_read(self, X: Array) -> Kinds:
        """Return the columns of each kind that the members count; of an array, those that vary in rows X."""
        if self._table is not None:
            return Kinds.of(self._table.kinds)
        low, high = column_ranges(X)
        varies = low < high
        return Kinds.of(np.where(varies | ~varies.any(), "number", "constant").tolist())

    def _folds(self, rows: tuple, codes: Array) -> list[tuple[Array, Array]]:
        """Return the folds of rows with a weight; splits that the user gives are of all rows."""
        _, y, sample_weight = rows
        seed, counted = 0, None
        if self.strategy_ != "glass":  # which makes no random choice
            seed = check_random_state(self.random_state).randint(2**31 - 1000)
        if len(codes) < _num_samples(y):
            counted = np.asarray(sample_weight, dtype=np.float64) > 0
            codes = class_codes(labels_like(self, y, np.empty(0)), self.classes_, "y")
        return folds_of(self.cv, codes, counted, seed)

    def _fit_family(
        self,
        members: Sequence[Member | SearchedMember],
        rows: tuple,
        folds: list[tuple[Array, Array]],
        start: float,
        fit: FitTask,
    ) -> None:
        """Cross-validate the members on rows (X, codes, weights), choose one or several, and refit these."""
        deadline = np.inf if self.time_limit is None else start + self.time_limit
        combine = self.strategy_ == "ensemble"
        X, codes, w = rows
        found, seconds = cross_validate(
            members, X, codes, w, folds, combine, self.n_jobs, deadline, self._say, fit
        )
        if not np.isfinite(found.scores()).any():
            raise ValueError(
                "No member of the family has finite posteriors on these rows: look for values of extreme "
                "size, and scale them."
            )
        weights = found.ensemble() if combine else found.best()
        if combine and isinstance(members[0], FrequencyMember) and not found.is_told(weights):
            weights = {(0, 0): 1.0}
        refit = fit.begin("refit", len(weights))
        self.members_ = []
        for (i, place), weight in weights.items():
            clf = members[i].with_iterations(CHECKPOINTS[place])
            with refit.fitting("member", clf):
                self.members_.append((clf.fit(X, codes, w), float(weight)))
        refit.end()
        self.leaderboard_ = cross_validated([member.name for member in members], found, seconds, weights)

    def _words(self) -> str:
        """Return the estimator, its strategy and what "auto" chose, for a message."""
        chosen = f", which chose {self.strategy_!r}," if self.strategy == "auto" else ""
        return f"{type(self).__name__}(strategy={self.strategy!r}){chosen}"

    def _fit_glass(
        self, kinds: Kinds, rows: tuple, folds: list[tuple[Array, Array]], start: float, fit: FitTask
    ) -> None:
        """Fit the recipe, with the tables that held-out rows gain by."""
        deadline = np.inf if self.time_limit is None else start + self.time_limit
        X, codes, w = rows
        clf: Any = recipe(kinds=kinds, n_rows=len(X))
        found: GlassSearch | None = None
        with fit.fitting("search", None), suppress(ColumnError):  # held rows may be too far from the others
            found = GlassSearch(clf, kinds, X, codes, w, folds, deadline)
        if found is not None:
            clf = found.estimator()
            for held in found.tried:
                self._say(
                    f"{held.name}: cross-validated error {held.mean(held.wrong):.4f}, log loss "
                    f"{held.mean(held.log_loss):.4f}{', taken' if held is found.taken else ''}"
                )
        with fit.fitting("member", clf):
            self.members_ = [(clf.fit(X, codes, w), 1.0)]
        if found is None:
            self.leaderboard_ = in_train("product", clf, perf_counter() - start)
        else:
            self.leaderboard_ = found.leaderboard()

    def _say(self, line: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {line}")

    def _encode_new(self, X: Any, method: str) -> Array:
        """Return encoded rows to predict, with columns scaled as the members read them."""
        X = self._input.encode(self, self._input.read(self, X, reset=False, learn=False))
        with naming_columns(self):
            return self._scales.apply_to_new(X)

    def _finish_rows(self, X: Array, formula: str, finish: Finish) -> Array:
        """Apply `finish` to the log joints of the one member, or to the log posteriors of all.

        Those of several members are the logarithm of their average.
        """
        with naming_columns(self):
            if formula == "log_joint":
                return self.members_[0][0]._finish_rows(X, formula, finish)
            logs = [clf._finish_rows(X, "scores", log_posterior) for clf, _ in self.members_]
        found = logs[0]
        if len(logs) > 1:
            weights = np.array([weight for _, weight in self.members_])[:, None, None]
            found = logsumexp(np.stack(logs), axis=0, b=weights)
        return finish(found if self._log_ratio is None else found + self._log_ratio)

    @property
    def _has_densities(self) -> bool:
        clf = self.members_[0][0]
        return len(self.members_) == 1 and isinstance(clf, BaseClassifier) and clf._has_densities

    def _class_scores(self, joint: Array) -> Array:
        """Return log posteriors: those of the members may lack their new frequencies."""
        return log_posterior(joint)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _first_member(self) -> Any:
        """Return the estimator of the first member, without its transformer."""
        clf = self.members_[0][0]
        return clf.estimator_ if isinstance(clf, ComposedMember) else clf

    def _class_masses(self) -> Array:
        return masses_of(self._first_member())

    def _findings(self) -> Iterator[Finding]:
        # Not those of the members: their priors determine covariances, and their iterations are chosen.
        return table_findings(self, self._class_masses())

    def _training_prior(self) -> Array:
        return self.class_prior_

    def _set_log_ratio(self, log_ratio: Array) -> None:
        self._log_ratio = log_ratio if self._log_ratio is None else self._log_ratio + log_ratio

    def _exported(self) -> Exported:
        return Exported(
            type(self).__name__,
            tuple(replace(clf._formula(), weight=weight) for clf, weight in self.members_),
            self._input.onnx_columns(self),
            self.classes_,
            exponents=self._scales.exponents,
            log_ratio=self._log_ratio,
        )

    def check_loaded(self, size: int) -> None:
        """Require also members, each with the columns that the table is encoded to, and its classes."""
        super().check_loaded(size)
        self.strategy_ = getattr(self, "strategy_", self.strategy)  # files before "auto" have one of its own
        n = self.n_features_in_ if self._table is None else len(self._table.kinds)
        require_shape(self._scales.exponents, (n,), "i", "exponents")
        require(fits(self.members_, list[tuple[BaseEstimator, float]]) and self.members_, "members_")
        for clf, _ in self.members_:
            require(len(clf.classes_) == len(self.classes_), "a member has other classes")
            whole = not isinstance(clf, MemberClassifier)
            require(not whole or clf.n_features_in_ == n, "a member reads other columns")

    def _contributions(self, rows: Array) -> Contributions | None:
        """Return what the one member adds up, if it is a sum: an average of posteriors is none."""
        if len(self.members_) > 1:
            return None
        with naming_columns(self):
            found = self.members_[0][0]._contributions(rows)
        if found is None or self._log_ratio is None:
            return found
        return found._replace(baseline=found.baseline + self._log_ratio)

    def _reads(self, n: int) -> Array:
        return np.any([clf._reads(n) for clf, _ in self.members_], axis=0)

    @available_if(has_density)
    def score_samples(self, X: Any) -> Array:
        """Return the log density log p(x) of each row, if "cv" chose a member that has one.

        That is LDA or QDA of numbers. "single" is a product of densities, which is not
        normalised, and "ensemble" averages posteriors: they have not this method, and `sample` refuses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log density under the calibrated joint.
        """
        return Prediction(self, "score_samples", "log_joint", log_evidence, one=True).of(X)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw rows and labels from the calibrated joint, if "cv" chose a member that has one.

        Otherwise an error says why there is none. :class:`MixedNB` takes the same tables, and has one.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows to draw.
        random_state : int, RandomState instance, Generator or None, default=None
            Makes the draw repeatable.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Rows.
        y : ndarray of shape (n_samples,)
            Labels.
        """
        X, codes = self._normalised().sample(n_samples, random_state)
        X = self._scales.undo(X)
        return self._input.decode(self, X), self.classes_[codes]

    def _normalised(self) -> Any:
        """Return the one member if its joint is a density of the columns; raise an error otherwise."""
        check_is_fitted(self)
        clf = self.members_[0][0]
        if len(self.members_) > 1:
            reason = f"it averages the posteriors of {len(self.members_)} members"
        elif isinstance(clf, ComposedMember):
            reason = clf.no_density
        elif not clf.model_.traits.normalised:
            reason = "its member is a product of densities, which is not normalised"
        else:
            return clf
        raise NotImplementedError(
            f"{self._words()} has no density p(x, y) to draw rows from or "
            f"to score them by: {reason}. Fit a model that has one, such as MixedNB(), which takes the same "
            "tables, or QuadraticDiscriminantAnalysis()."
        )
