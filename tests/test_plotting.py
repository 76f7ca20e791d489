"""The risk path: what is drawn, and what is refused."""

import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB as SklearnGaussianNB
from sklearn.pipeline import make_pipeline

from riskbayes import CategoricalNB, GaussianNB, QuadraticDiscriminantAnalysis
from riskbayes.learners import RC
from riskbayes.plotting import RiskPathDisplay, new_figure, require_matplotlib
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
    clf = QuadraticDiscriminantAnalysis(learner=RC(lr=8.0)).fit(X, y)
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
    ):
        with pytest.raises(ImportError, match=r'pip install "riskbayes\[plot\]"'):
            draw()
