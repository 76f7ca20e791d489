"""Displays: what is drawn, and what is refused."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB as SklearnGaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from riskbayes import (
    CategoricalNB,
    GaussianNB,
    MixedNB,
    MixtureDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    RiskBayesClassifier,
)
from riskbayes.learners import RC
from riskbayes.plotting import (
    BeeswarmDisplay,
    DensityDisplay,
    RegionsDisplay,
    ReliabilityDisplay,
    RiskPathDisplay,
    WaterfallDisplay,
    new_figure,
    require_matplotlib,
)
from riskbayes.preprocessing import KMeansBins

X, y = load_iris(return_X_y=True)


@pytest.fixture
def ax():
    pytest.importorskip("matplotlib")
    return new_figure(4, 3).add_subplot()


@pytest.mark.parametrize("risk", ["soft_error", "error", "log_loss"])
def test_the_line_is_the_history(ax, risk):
    clf = GaussianNB(learner=RC(max_iter=10)).fit(X, y)
    display = RiskPathDisplay.from_estimator(clf, ax=ax, risk=risk)
    kept = clf.history_["accepted"]
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.line_.get_ydata().tolist() == clf.history_[risk][kept].tolist()
    assert display.line_.get_xdata()[0] == 0
    assert risk.replace("_", " ") in ax.get_ylabel()
    assert display.line_.get_label() == "GaussianNB"


def test_trials_that_were_not_kept_are_hollow(ax):
    clf = QuadraticDiscriminantAnalysis(learner=RC(lr=8.0, step="fixed", generative_weight=0.0)).fit(X, y)
    accepted = clf.history_["accepted"]
    assert not accepted.all()
    display = RiskPathDisplay.from_estimator(clf, ax=ax, label="QDA")
    assert display.trials_.get_xdata().tolist() == np.flatnonzero(~accepted).tolist()
    assert display.trials_.get_ydata().tolist() == clf.history_["soft_error"][~accepted].tolist()
    assert display.trials_.get_markerfacecolor() == "none"
    assert display.trials_.get_color() == display.line_.get_color()
    assert len(display.line_.get_xdata()) == accepted.sum()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["QDA"]


def test_no_trials_no_markers(ax):
    display = RiskPathDisplay([0.3, 0.2, 0.1], [True, True, True]).plot(ax)
    assert display.trials_ is None
    assert len(ax.lines) == 1
    assert ax.get_legend() is None


def test_plot_again_with_other_arguments(ax):
    display = RiskPathDisplay([0.3, 0.2, 0.25], [True, True, False], label="a")
    display.plot(ax, label="b", line_kw={"color": "red"}, trial_kw={"marker": "s"})
    assert display.line_.get_label() == "b"
    assert display.line_.get_color() == display.trials_.get_color() == "red"
    assert display.trials_.get_marker() == "s"


def test_pipeline(ax):
    clf = make_pipeline(KMeansBins(), CategoricalNB()).fit(X, y)
    display = RiskPathDisplay.from_estimator(clf, ax=ax)
    assert display.line_.get_label() == "CategoricalNB"


def test_a_new_figure_where_no_axes_are_given():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    display = RiskPathDisplay.from_estimator(GaussianNB().fit(X, y))
    assert pyplot.gcf() is display.figure_
    pyplot.close(display.figure_)


def test_figures_for_files_are_not_pyplots():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    new_figure(4, 3)
    assert pyplot.get_fignums() == before


def test_refusals(ax):
    with pytest.raises(NotFittedError):
        RiskPathDisplay.from_estimator(GaussianNB(), ax=ax)
    with pytest.raises(ValueError, match="closed form"):
        RiskPathDisplay.from_estimator(GaussianNB(learner="closed_form").fit(X, y), ax=ax)
    with pytest.raises(ValueError, match="'risk' parameter must be one of"):
        RiskPathDisplay.from_estimator(GaussianNB().fit(X, y), ax=ax, risk="lr")
    with pytest.raises(TypeError, match="no history_"):
        RiskPathDisplay.from_estimator(SklearnGaussianNB().fit(X, y), ax=ax)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    clf = GaussianNB().fit(X, y)
    for draw in (
        require_matplotlib,
        lambda: RiskPathDisplay.from_estimator(clf),
        lambda: RiskPathDisplay([0.2], [True]).plot(),
        lambda: DensityDisplay.from_estimator(clf, X),
        lambda: RegionsDisplay.from_estimator(clf, X),
        lambda: ReliabilityDisplay.from_estimator(clf, X, y),
        lambda: WaterfallDisplay.from_estimator(clf, X),
        lambda: clf.explain(X).plot(0),
        lambda: clf.explain(X).plot_rows(),
    ):
        with pytest.raises(ImportError, match=r'pip install "riskbayes\[plot\]"'):
            draw()


def test_densities_of_a_gaussian_are_scipys(ax):
    clf = GaussianNB(prior=None).fit(X, y)
    display = DensityDisplay.from_estimator(clf, X, y, 2, ax=ax)
    grid = display.grid[:, None]
    calibrated = norm(clf.theta_[:, 2], np.sqrt(clf.var_[:, 2])).pdf(grid)
    np.testing.assert_allclose(display.calibrated, calibrated, rtol=1e-9, atol=1e-300)
    means, spread = (np.array([f(X[y == k, 2]) for k in range(3)]) for f in (np.mean, np.std))
    smoothed = np.sqrt(spread**2 + clf.epsilon_)
    np.testing.assert_allclose(display.closed_form, norm(means, smoothed).pdf(grid), rtol=1e-8, atol=1e-300)
    assert np.abs(display.closed_form - display.calibrated).max() > 1e-3
    assert [line.get_label() for line in display.lines_] == ["0", "1", "2"]
    assert display.ax_ is ax
    assert ax.get_xlabel() == "x2"


def test_densities_integrate_the_other_columns_out(ax):
    """A tied mixture of one component: the marginal of a column has the diagonal of the covariance."""
    frame = pd.DataFrame(X, columns=list("pqrs"))
    for clf in (MixtureDiscriminantAnalysis(n_components=2), QuadraticDiscriminantAnalysis(), MixedNB()):
        display = DensityDisplay.from_estimator(clf.fit(frame, y), frame, column="r", ax=ax)
        mass = np.trapezoid(display.calibrated, display.grid, axis=0)
        assert 0.9 < mass.min() <= mass.max() < 1.05
    pipe = make_pipeline(StandardScaler(), GaussianNB()).fit(X, y)
    assert abs(DensityDisplay.from_estimator(pipe, X, ax=ax).grid).max() < 5


def test_regions_are_the_answers(ax):
    clf = QuadraticDiscriminantAnalysis(prior=None).fit(X[:, :2], y)
    display = RegionsDisplay.from_estimator(clf, X[:, :2], y, ax=ax)
    points = np.stack(np.meshgrid(display.x, display.y), axis=-1).reshape(-1, 2)
    assert (display.calibrated.argmax(axis=2).ravel() == clf.predict(points)).all()
    closed = QuadraticDiscriminantAnalysis(prior=None, learner="closed_form").fit(X[:, :2], y)
    assert (display.closed_form.argmax(axis=2).ravel() == closed.predict(points)).all()
    assert len(ax.collections) > 6
    whole = QuadraticDiscriminantAnalysis(prior=None, store_covariance=True).fit(X, y)
    display = RegionsDisplay.from_estimator(whole, X, columns=(2, 3), ax=ax)
    points = np.stack(np.meshgrid(display.x, display.y), axis=-1).reshape(-1, 2)
    joint = [
        multivariate_normal(whole.means_[k][2:], whole.covariance_[k][2:, 2:]).logpdf(points)
        + np.log(whole.priors_[k])
        for k in range(3)
    ]
    gaps = np.sort(joint, axis=0)
    sure = gaps[-1] - gaps[-2] > 1e-6
    assert (display.calibrated.argmax(axis=2).ravel() == np.argmax(joint, axis=0))[sure].all()


def test_regions_of_an_average_have_no_closed_form(ax):
    clf = RiskBayesClassifier("neighbours").fit(X, y)
    display = RegionsDisplay.from_estimator(clf, X, y, (0, 2), ax=ax)
    assert display.closed_form is None
    assert display.calibrated.shape == (200, 200, 3)
    with pytest.raises(ValueError, match="are one column"):
        RegionsDisplay.from_estimator(clf, X, y, (1, 1), ax=ax)


def test_reliability_is_what_it_says_and_how_often_it_is_right(ax):
    A, b = load_breast_cancer(return_X_y=True)
    clf = GaussianNB().fit(A[:300], b[:300])
    display = ReliabilityDisplay.from_estimator(clf, A[300:], b[300:], ax=ax)
    P = clf.predict_proba(A[300:])
    assert sum(one.rows for one in display.bins) == len(P)
    said = sum(one.rows * one.predicted for one in display.bins) / len(P)
    assert said == pytest.approx(P.max(axis=1).mean())
    right = sum(one.rows * one.observed for one in display.bins) / len(P)
    assert right == pytest.approx(clf.score(A[300:], b[300:]))
    closed = GaussianNB(learner="closed_form", prior=clf.prior).fit(A[:300], b[:300])
    before = sum(one.rows * one.predicted for one in display.before) / len(P)
    assert before != pytest.approx(said)
    assert ReliabilityDisplay.from_estimator(closed, A[300:], b[300:], ax=ax, before=False).before is None
    with pytest.raises(ValueError, match="y holds 7, which is no class"):
        ReliabilityDisplay.from_estimator(clf, A[300:], np.full(269, 7), ax=ax)


@pytest.mark.parametrize("r", [2, 3])
def test_a_beeswarm_has_a_point_for_each_cell(ax, r):
    own = y < r
    clf = GaussianNB().fit(X[own], y[own])
    display = BeeswarmDisplay.from_estimator(clf, X[own], max_columns=3, ax=ax)
    positive = 1 if r == 2 else np.bincount(clf.predict(X)).argmax()
    odds = clf.explain(X[own]).log_odds(positive)
    order = np.argsort(-np.abs(odds.values).mean(axis=0))[:3]
    assert display.labels == [str(j) for j in order]
    for j, points in zip(order, display.points_, strict=True):
        np.testing.assert_allclose(points.get_offsets()[:, 0], odds.values[:, j])
        low, high = X[own][:, j].argmin(), X[own][:, j].argmax()
        assert points.get_array()[[low, high]].tolist() == [0, 1]
        assert np.ptp(points.get_offsets()[:, 1]) < 0.71
    assert f"log-odds of {positive} against" in ax.get_xlabel()


def test_a_waterfall_shows_the_errors_of_what_was_drawn(ax):
    A, b = load_breast_cancer(return_X_y=True)
    clf = MixtureDiscriminantAnalysis(prior="recommended").fit(A[:, :12], b)
    display = WaterfallDisplay.from_estimator(clf, A[:, :12], 3, ax=ax)
    odds = clf.explain(A[3:4, :12]).log_odds()
    j = np.abs(odds.values[0]).argmax()
    assert f"{odds.values[0, j]:+.2f} ± {odds.errors[0, j]:.2f}" in [text.get_text() for text in ax.texts]
    assert display.steps.sum() == pytest.approx(clf.decision_function(A[3:4, :12])[0])


def test_displays_refuse_what_they_cannot_draw(ax):
    frame = pd.DataFrame({"a": ["u", "v"] * 20, "b": np.arange(40.0)})
    clf = MixedNB().fit(frame, np.arange(40) > 19)
    with pytest.raises(ValueError, match="Column 'a' is not read as a number"):
        DensityDisplay.from_estimator(clf, frame, column="a", ax=ax)
    with pytest.raises(ValueError, match="column='c' is no column"):
        DensityDisplay.from_estimator(clf, frame, column="c", ax=ax)
    recipe = RiskBayesClassifier("single").fit(X, y)
    with pytest.raises(NotImplementedError, match=r"RiskBayesClassifier has no density p\(x \| y\)"):
        DensityDisplay.from_estimator(recipe, X, ax=ax)


def test_displays_share_docstrings_and_can_be_inherited():
    assert "ax : matplotlib Axes" in BeeswarmDisplay.from_estimator.__doc__
    assert "ax_ : matplotlib Axes" in BeeswarmDisplay.__doc__

    class Own(BeeswarmDisplay):
        """One of a user's.

        {colour}
        """

        colour: str = "red"
        options = {"alpha": 0.5}  # noqa: RUF012

    assert "{colour}" in Own.__doc__
