"""Draw the pictures of doc/joint.md: breast cancer explained, and parameters before and after RC.

python benchmarks/joint_pictures.py doc
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_breast_cancer

from riskbayes import QuadraticDiscriminantAnalysis, RiskBayesClassifier
from riskbayes.plotting import ParametersDisplay, new_figure


def main(folder: Path) -> None:
    mpl.rcParams["svg.hashsalt"] = "riskbayes"  # the same file from the same picture
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target_names[data.target]
    clf = RiskBayesClassifier("single").fit(X, y)
    doubtful = int(np.argmin(np.abs(clf.decision_function(X))))
    figure = new_figure(7, 4.4)
    clf.explain(X).plot(doubtful, ax=figure.add_subplot())
    figure.savefig(folder / "waterfall.svg", metadata={"Date": None})
    figure = new_figure(7, 4.4)
    clf.explain(X).plot_rows(ax=figure.add_subplot())
    for points in figure.axes[0].collections:  # one image in place of thousands of circles
        points.set_rasterized(True)
    figure.savefig(folder / "beeswarm.svg", metadata={"Date": None}, dpi=150)
    figure = new_figure(8.5, 4.4)
    qda = QuadraticDiscriminantAnalysis(prior="recommended").fit(X, y)
    ParametersDisplay.from_estimator(qda, ax=figure.add_subplot())
    figure.savefig(folder / "parameters.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
