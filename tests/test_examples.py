"""The examples run, and the paper's toy model is what the paper says."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from riskbayes.experiments.toy import ToyClassifier
from riskbayes.learners import RC

EXAMPLE = Path(__file__).parent.parent / "examples" / "toy_model.py"


def test_a_model_of_ones_own_has_every_feature_of_an_estimator(capsys):
    assert len(EXAMPLE.read_text().splitlines()) < 40
    names = runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "soft error by iteration" in capsys.readouterr().out
    X, y = names["X"], names["y"]
    own = clone(names["clf"]).fit(X, y)
    # Equal weights and unit variances are also LDA with both of them fixed: another implementation.
    other = ToyClassifier(learner=RC(lr=0.5)).fit(X, y)
    new = np.linspace(-2, 5, 9)[:, None]
    a, b = own.predict_joint_log_proba(new), other.predict_joint_log_proba(new)
    np.testing.assert_allclose(a, b, atol=1e-9)
    np.testing.assert_allclose(own.history_["soft_error"], other.history_["soft_error"], atol=1e-12)
    assert own.sample(5, random_state=0)[0].shape == (5, 1)
    streamed = clone(own).set_params(learner="closed_form")
    for i in range(3):
        streamed.partial_fit(X[i : i + 1], y[i : i + 1], classes=[1, 2])
    assert streamed.parameters_.means[:, 0].tolist() == pytest.approx([0.0, 2.5])
