"""`learner="closed_form"` gives scikit-learn's numbers."""

import numpy as np
import pytest
import sklearn.datasets
import sklearn.discriminant_analysis as their_da
import sklearn.naive_bayes as their_nb
from sklearn.preprocessing import KBinsDiscretizer

import riskbayes
from riskbayes.preprocessing import KMeansBins

WEIGHTED, UNWEIGHTED = True, False
BUNDLED = ("iris", "wine", "breast_cancer", "digits")


def load_bundled(name):
    return getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)


def assert_same(ours, theirs, X):
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-8)
    a, b = ours.predict_log_proba(X), theirs.predict_log_proba(X)
    assert (np.abs(a - b) <= 1e-7 * np.maximum(1.0, np.abs(b))).all()
    assert (ours.predict(X) == theirs.predict(X)).all()


def weights(weighted, m):
    return {"sample_weight": np.random.default_rng(0).uniform(0.1, 3.0, size=m)} if weighted else {}


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize("weighted", [UNWEIGHTED, WEIGHTED])
def test_categorical_nb(name, weighted):
    X, y = load_bundled(name)
    codes = KMeansBins(5).fit_transform(X)
    w = weights(weighted, len(y))
    ours = riskbayes.CategoricalNB(alpha=1.0, learner="closed_form").fit(codes, y, **w)
    assert_same(ours, their_nb.CategoricalNB(alpha=1.0).fit(codes, y, **w), codes)


@pytest.mark.parametrize("name", BUNDLED)
def test_gaussian_nb(name):
    X, y = load_bundled(name)
    assert_same(riskbayes.GaussianNB(learner="closed_form").fit(X, y), their_nb.GaussianNB().fit(X, y), X)


@pytest.mark.parametrize("name", BUNDLED)
def test_gaussian_nb_with_weights(name):
    """With the same epsilon_. scikit-learn's ignores the weights, ours does not.

    So that weights equal repeated rows, the largest variance must be the weighted one.
    """
    X, y = load_bundled(name)
    w = weights(WEIGHTED, len(y))
    theirs = their_nb.GaussianNB().fit(X, y, **w)
    variance = np.average(
        (X - np.average(X, axis=0, weights=w["sample_weight"])) ** 2,
        axis=0,
        **{"weights": w["sample_weight"]},
    )
    ours = riskbayes.GaussianNB(learner="closed_form", var_smoothing=theirs.epsilon_ / variance.max())
    assert_same(ours.fit(X, y, **w), theirs, X)
    assert ours.epsilon_ == pytest.approx(theirs.epsilon_)


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.filterwarnings("ignore::riskbayes.FlooredWarning")  # digits has constant columns
def test_linear_discriminant_analysis(name):
    X, y = load_bundled(name)
    ours = riskbayes.LinearDiscriminantAnalysis(learner="closed_form").fit(X, y)
    assert_same(ours, their_da.LinearDiscriminantAnalysis(solver="lsqr").fit(X, y), X)


@pytest.mark.parametrize("name", ["iris", "wine"])  # scikit-learn refuses the other two
def test_quadratic_discriminant_analysis(name):
    X, y = load_bundled(name)
    ours = riskbayes.QuadraticDiscriminantAnalysis(learner="closed_form").fit(X, y)
    assert_same(ours, their_da.QuadraticDiscriminantAnalysis().fit(X, y), X)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])  # columns of five or more values
def test_bins_are_those_of_scikit_learn(name):
    X, _ = load_bundled(name)
    theirs = KBinsDiscretizer(5, encode="ordinal", strategy="kmeans", subsample=None)
    wide = X[:, (X.max(axis=0) - X.min(axis=0)) > 1e-3]
    assert (KMeansBins(5).fit_transform(wide) == theirs.fit_transform(wide)).mean() > 0.999


def test_bins_do_not_depend_on_the_scale_of_a_column():
    X, _ = load_bundled("iris")
    codes = KMeansBins().fit_transform(X)
    for scale in (1e-12, 1e9):
        assert (KMeansBins().fit_transform(scale * X) == codes).all()


def test_few_values_have_a_bin_each_and_new_values_fall_into_the_nearest():
    X = np.array([[0.0], [1.0], [1.0], [5.0]])
    bins = KMeansBins(5).fit(X)
    assert bins.transform(X)[:, 0].tolist() == [0, 1, 1, 2]
    assert bins.transform([[-9.0], [2.9], [3.1], [99.0]])[:, 0].tolist() == [0, 1, 2, 2]
