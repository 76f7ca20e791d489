"""The examples run, and the paper's toy model is what the paper says."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import vonmises
from sklearn.base import clone

from riskbayes import GenerativeClassifier
from riskbayes.learners import RC
from riskbayes.models import LDAModel

EXAMPLE = Path(__file__).parent.parent / "examples" / "toy_model.py"


def test_a_model_of_ones_own_has_every_feature_of_an_estimator(capsys):
    assert len(EXAMPLE.read_text().splitlines()) < 40
    names = runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "soft error by iteration" in capsys.readouterr().out
    X, y = names["X"], names["y"]
    own = clone(names["clf"]).fit(X, y)
    # Equal weights and unit variances are also LDA with both of them fixed: another implementation.
    unit = SimpleNamespace(fit=lambda X: None, covariance_=np.eye(1))
    model = LDAModel(class_prior=np.array([0.5, 0.5]), covariance_estimator=unit)
    other = GenerativeClassifier(model, learner=RC(lr=0.5, step="fixed", generative_weight=0.0)).fit(X, y)
    new = np.linspace(-2, 5, 9)[:, None]
    a, b = own.predict_joint_log_proba(new), other.predict_joint_log_proba(new)
    np.testing.assert_allclose(a, b, atol=1e-9)
    np.testing.assert_allclose(own.history_["soft_error"], other.history_["soft_error"], atol=1e-12)
    assert own.sample(5, random_state=0)[0].shape == (5, 1)
    streamed = clone(own).set_params(learner="closed_form")
    for i in range(3):
        streamed.partial_fit(X[i : i + 1], y[i : i + 1], classes=[1, 2])
    assert streamed.parameters_.means[:, 0].tolist() == pytest.approx([0.0, 2.5])


def printed_by(example, timeout=150):
    """What an example prints in a process of its own."""
    path = EXAMPLE.with_name(example)
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    found = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=timeout, env=environment
    )
    assert found.returncode == 0, found.stderr[-2000:]
    return found.stdout


def test_a_model_with_missing_cells_a_file_samples_and_explanations(tmp_path, monkeypatch):
    path = EXAMPLE.with_name("von_mises.py")
    assert len(path.read_text().splitlines()) <= 60
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(path), run_name="__main__")
    clf, again, X, y = (names[name] for name in ("clf", "again", "X", "y"))
    np.testing.assert_array_equal(clf.predict_proba(X), again.predict_proba(X))
    theta = clf.parameters_
    densities = vonmises(theta.kappa[:, None, :]).logpdf(X - theta.mean[:, None, :])
    expected = theta.log_prior + np.nansum(densities, axis=2).T
    np.testing.assert_allclose(clf.predict_joint_log_proba(X), expected, rtol=1e-9)
    # The closed form is SciPy's maximum likelihood, but for the pseudo-row.
    plain = clf.__class__(names["VonMises"](alpha=0.0), learner="closed_form").fit(X, y).parameters_
    for k in range(2):
        cells = X[y == k, 0][~np.isnan(X[y == k, 0])]
        kappa, mean, _ = vonmises.fit(cells, fscale=1)
        assert [plain.kappa[k, 0], plain.mean[k, 0]] == pytest.approx([kappa, mean], rel=1e-4)
    log_odds = clf.explain(X).log_odds()
    P = clf.predict_log_proba(X)[np.arange(len(X)), log_odds.positive]
    Q = clf.predict_log_proba(X)[np.arange(len(X)), log_odds.negative]
    np.testing.assert_allclose(log_odds.total, P - Q, atol=1e-9)


def test_a_learner_of_ones_own():
    assert len(EXAMPLE.with_name("momentum.py").read_text().splitlines()) <= 30
    losses = [float(line.split()[-1]) for line in printed_by("momentum.py").splitlines()]
    assert losses[2] > losses[1] > losses[0]  # minus the log loss


def test_sites_that_share_no_rows_train_the_model_of_all_rows():
    gaps = re.findall(r"(\w+): largest difference .* (\S+)", printed_by("federated.py"))
    assert [name for name, _ in gaps] == ["ClosedForm", "RC"]
    assert max(float(gap) for _, gap in gaps) < 1e-9


def test_probabilities_in_a_database_are_those_of_the_model():
    pytest.importorskip("orbital")
    gaps = re.findall(r"(\w+): .* probabilities (\S+)", printed_by("sql.py"))
    assert [name for name, _ in gaps] == ["LinearDiscriminantAnalysis", "SmoothNB", "PoissonNB", "MixedNB"]
    assert max(float(gap) for _, gap in gaps) < 1e-9


@pytest.mark.spark
def test_rows_in_spark_train_the_model_of_all_rows(monkeypatch):
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)  # the example names the Python of the workers
    assert float(printed_by("spark.py").split()[-1]) < 1e-8


def test_a_person_who_asks_to_be_deleted_is_as_if_never_seen():
    printed = printed_by("forget.py")
    gaps = [float(gap) for gap in re.findall(r": (\S+e[-+]\d+)", printed)]
    before, after, forgotten, calibrated = gaps
    assert after < 1e-9 < before
    assert calibrated < 0.1 * forgotten
    assert "a row that was never fitted: These rows were not all fitted" in printed


def test_two_hospitals_train_the_model_of_all_rows():
    printed = printed_by("two_hospitals.py")
    assert float(re.search(r"one fit on all rows (\S+)", printed)[1]) < 1e-9
    assert len(re.findall(r"alone: 0\.\d+", printed)) == 2
