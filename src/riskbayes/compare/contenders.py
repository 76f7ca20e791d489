"""The models of a comparison: those of riskbayes, two of scikit-learn, and the majority class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from riskbayes.arrays import Array
from riskbayes.compare.data import Data, number_columns
from riskbayes.estimators.kinds import Kinds
from riskbayes.estimators.lda import LinearDiscriminantAnalysis
from riskbayes.estimators.mixed_nb import MixedNB
from riskbayes.estimators.product_of_experts import ProductOfExperts
from riskbayes.estimators.qda import QuadraticDiscriminantAnalysis
from riskbayes.estimators.risk_bayes import RiskBayesClassifier
from riskbayes.preprocessing.encoder import TableEncoder

LEARNERS = {"closed_form": "closed form", "rc": "RC"}

MOST_CODES = 254
"""The most categories of a column that histogram boosting tells apart; rarer ones are one."""

MOST_INDICATORS = 1000
"""The most categories of a column that logistic regression has indicators of; rarer ones share one."""

MOST_SECONDS, TRIED = 60.0, (3, 6, 12, 24, 48)
"""Histogram boosting, which grows a tree for each class in every iteration, is left out if its fits would
take longer together; that is asked after so many iterations of each."""

MAJORITY, LOGISTIC, BOOSTING = "majority class", "logistic regression", "histogram boosting"


@dataclass(frozen=True)
class Candidate:
    """A model to be fitted in every part of the split."""

    name: str
    kind: str
    """ "riskbayes", "peer" or "baseline"."""
    learner: str
    make: Callable[[TableEncoder], Any]
    """Returns the unfitted estimator, for columns as this encoder, of the training rows, reads them."""
    reads_table: bool
    """True if it reads the table as it is, False if it reads the encoded columns."""


def candidates(data: Data, strategies: Sequence[str], seed: int, folds: int = 1) -> list[Candidate]:
    """Return the models for a table, for so many fits each; LDA and QDA where it has columns of numbers."""

    def recipe(strategy: str) -> Candidate:
        name = "RiskBayesClassifier" if strategy == "auto" else f"RiskBayesClassifier, {strategy}"
        model = RiskBayesClassifier(strategy, columns=data.said, random_state=seed)
        return Candidate(name, "riskbayes", "RC", lambda _: clone(model), True)

    found = [recipe(strategy) for strategy in strategies]
    numbers = number_columns(data.encoder)
    of_numbers = "" if len(numbers) == len(data.columns) else " of the numbers"
    experts = {
        f"LDA{of_numbers}": LinearDiscriminantAnalysis(),
        f"QDA{of_numbers}": QuadraticDiscriminantAnalysis(prior="recommended"),
    }
    for name, expert in {"MixedNB": None, **(experts if numbers else {})}.items():
        for learner, words in LEARNERS.items():
            make = partial(plain_model, expert, learner, data.said)
            found.append(Candidate(f"{name}, {words}", "riskbayes", words, make, True))
    return [
        *found,
        Candidate(LOGISTIC, "peer", "", logistic, False),
        Candidate(BOOSTING, "peer", "", lambda of: Boosting(Kinds.of(of.kinds), seed, folds), False),
        Candidate(MAJORITY, "baseline", "", lambda _: DummyClassifier(strategy="prior"), False),
    ]


def plain_model(expert: Any, learner: str, columns: dict[str, str] | None, encoder: TableEncoder) -> Any:
    """Return MixedNB, or an expert of the columns of numbers alone, which still takes the whole table."""
    if expert is None:
        return MixedNB(columns=columns, missing="informative", learner=learner)
    return ProductOfExperts([("numbers", expert, number_columns(encoder))], columns=columns, learner=learner)


def logistic(encoder: TableEncoder) -> Any:
    """Return logistic regression of scaled numbers, imputed by the mean, and of indicators."""
    kinds = Kinds.of(encoder.kinds)
    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    words = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_INDICATORS)
    before = make_column_transformer(
        (numbers, list(kinds.numbers)),
        (words, list(kinds.categories)),
        (FunctionTransformer(), list(kinds.marks)),
    )
    return make_pipeline(before, LogisticRegression(max_iter=1000))


class Boosting:
    """Histogram boosting that reads codes as categories; a missing cell is missing to it too.

    Parameters
    ----------
    kinds : Kinds
        The encoded columns by kind; marks of missing cells are not read.
    seed : int
        Seed of its early stopping.
    folds : int
        Number of fits that share `MOST_SECONDS`.
    """

    def __init__(self, kinds: Kinds, seed: int, folds: int):
        numbers, words = list(kinds.numbers), list(kinds.categories)
        ordinal = OrdinalEncoder(
            max_categories=MOST_CODES, handle_unknown="use_encoded_value", unknown_value=np.nan
        )
        self.columns = make_column_transformer(("passthrough", numbers), (ordinal, words))
        places = list(range(len(numbers), len(numbers) + len(words)))
        self.model = HistGradientBoostingClassifier(categorical_features=places, random_state=seed)
        self.folds = folds

    def fit(self, X: Array, y: Array) -> Boosting:
        """Fit it; refuse what would take too long."""
        columns = self.columns.fit_transform(X)
        self.refuse_if_slow(columns, y)
        self.classes_ = self.model.fit(columns, y).classes_
        return self

    def refuse_if_slow(self, columns: Array, y: Array) -> None:
        """Raise TimeoutError if the fits would take too long, by a tenth of the time that they have."""
        model, start = clone(self.model).set_params(warm_start=True), perf_counter()
        for n in TRIED:
            model.set_params(max_iter=n).fit(columns, y)
            spent = perf_counter() - start
            seconds = spent * self.model.max_iter / n * self.folds
            if seconds <= MOST_SECONDS:
                return
            if spent >= MOST_SECONDS / 10:
                raise TimeoutError(
                    f"Left out: its fits would take about {seconds:.0f} seconds, more than the limit of "
                    f"{MOST_SECONDS:g}."
                )

    def predict_proba(self, X: Array) -> Array:
        """Return the posteriors."""
        return self.model.predict_proba(self.columns.transform(X))
