"""Marks of missing cells: which of them depend on the class, and what those say that do not."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from conftest import closed_form
from riskbayes import MixedNB, RiskBayesClassifier
from riskbayes.frames import Categories
from riskbayes.learners import RC
from riskbayes.models import MarkModel, marks

pytestmark = pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")
seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds, r=st.integers(1, 5), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_p_values_are_those_of_scipy_on_the_classes_and_categories_that_were_seen(seed, r, sizes):
    rng = np.random.default_rng(seed)
    tables = [rng.poisson(6.0, (r, k)) * (rng.random(k) < 0.8) for k in sizes]
    gone = rng.random(r) < 0.3
    tables = [np.where(gone[:, None], 0, table) for table in tables]
    found = marks.p_values(np.hstack(tables).astype(float), Categories(np.array(sizes)))
    for p, table in zip(found, tables, strict=True):
        seen = table[table.any(axis=1)][:, table.any(axis=0)]
        assert p == pytest.approx(chi2_contingency(seen, correction=False).pvalue if seen.size else 1.0)


@given(seed=seeds, r=st.integers(2, 4), alpha=st.floats(0, 10))
def test_tied_features_have_one_distribution_whatever_the_classes_weigh(seed, r, alpha):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(r), np.minimum(rng.geometric(0.8, 60) - 1, r - 1)]
    X, w = rng.integers(3, size=(len(y), 4)), rng.uniform(0.1, 5, len(y))
    model, S, theta = closed_form(MarkModel(alpha=alpha, level=-1.0), X, y, w, r)[1]
    assert S.frame.tied.all()
    np.testing.assert_array_equal(theta.log_prob, np.broadcast_to(theta.log_prob[0], theta.log_prob.shape))
    again = model.parameters(model.inverse_parameters(theta, S.total))
    np.testing.assert_allclose(again.log_prob, theta.log_prob, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "make",
    [
        lambda: RiskBayesClassifier("single"),
        lambda: RiskBayesClassifier(strategy="neighbours"),
        lambda: MixedNB("gaussian", missing="informative", learner="closed_form"),
        lambda: MixedNB(missing="informative", learner=RC(max_iter=5)),
    ],
    ids=["recipe", "neighbours", "closed form", "rc"],
)
def test_a_row_of_missing_cells_has_the_prior_as_its_posterior_if_no_mark_counts(make, seed, monkeypatch):
    monkeypatch.setattr(marks, "p_values", lambda counts, frame: np.ones(len(frame.n_categories)))
    rng = np.random.default_rng(seed)
    m, n, rare = 150, 8, int(rng.integers(3, 20))
    X = pd.DataFrame(rng.standard_normal((m, n)), columns=[f"c{j}" for j in range(n)])
    X["colour"] = rng.choice(["red", "green", "blue"], m)
    X = X.mask(rng.random(X.shape) < 0.15)
    clf = make().fit(X, np.arange(m) < rare)
    fitted = clf if isinstance(clf, MixedNB) else clf.members_[0][0]
    nothing = clf.predict_proba(X.iloc[:2].mask(np.ones((2, n + 1), dtype=bool)))
    np.testing.assert_allclose(nothing, np.tile(np.exp(fitted.parameters_.log_prior), (2, 1)), rtol=1e-9)


@pytest.mark.parametrize("strategy", ["single", "glass", "neighbours", "cv", "ensemble"])
@pytest.mark.parametrize("columns", [["a"], ["a", "b", "c"]], ids=str)
def test_what_is_missing_may_be_all_that_a_table_tells(strategy, columns):
    y = np.arange(60) % 2
    table = pd.DataFrame({"a": np.where(y == 1, np.nan, 1.0), "b": np.where(y == 0, "x", None), "c": 1})
    assert (
        RiskBayesClassifier(strategy=strategy, random_state=0).fit(table[columns], y).score(table[columns], y)
        == 1.0
    )
