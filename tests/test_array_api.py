"""Arrays of other libraries: the same answers, and nothing leaves the device."""

from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils._array_api import _convert_to_numpy, move_estimator_to

import riskbayes
from conftest import MODELS
from riskbayes import (
    CategoricalNB,
    GaussianNB,
    GenerativeClassifier,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    arrays,
)
from riskbayes.learners import DFE, GD, RC, RCCV, TM, ClosedForm
from riskbayes.models import QDAModel, whitening
from riskbayes.preprocessing import KMeansBins

strict = pytest.importorskip("array_api_strict", reason="needs array-api-strict")


def library(name):
    """A namespace and a device of it that is not the default one, where there is one."""
    if name == "array_api_strict":
        return strict, strict.Device("device1")
    torch = pytest.importorskip("torch", reason="needs PyTorch: make test-all installs it")
    import array_api_compat.torch as xp

    return xp, torch.device("cpu")


LIBRARIES = ["array_api_strict", "torch"]
GAUSSIAN = [GaussianNB, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis]
LEARNERS = {
    "closed_form": ClosedForm(),
    "rc": "rc",
    "paper": RC.paper(),
    "soft error": RC(objective="soft_error", step="adaptive", generative_weight=0.0),
    "costs": RC(objective=[[0, 1, 2], [1, 0, 1], [3, 1, 0]], max_iter=8),
    "batches": RC(batch_size=40, max_iter=5, random_state=0, generative_weight=0.0),
    "early stopping": RC(early_stopping=True, refit=True, max_iter=10, random_state=0),
    "restarts": RC(n_restarts=2, max_iter=5, random_state=0),
    "cv": RCCV(max_iter=8, cv=3, random_state=0),
    "tm": TM(max_iter=8),
    "gd": GD(max_iter=8),
}


def rows(kind, seed=0, m=180, n=5, r=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(r, size=m)
    X = rng.standard_normal((m, n)) @ rng.standard_normal((n, n)) + 1.2 * rng.standard_normal((r, n))[y] + 3
    return (np.clip(np.round(X), -2, 6) + 2 if kind is CategoricalNB else X), y


def sent(xp, device, *arrays):
    return tuple(xp.asarray(a, device=device) for a in arrays)


def host(x):
    with config_context(array_api_dispatch=True):
        from array_api_compat import array_namespace

        return _convert_to_numpy(x, array_namespace(x))


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", [CategoricalNB, *GAUSSIAN])
def test_every_learner_gives_numpys_answer(name, learner, kind):
    xp, device = library(name)
    X, y = rows(kind)
    w = np.random.default_rng(1).uniform(0.5, 2, len(y))
    ours = kind(learner=LEARNERS[learner]).fit(X, y, sample_weight=w)
    Xd, yd, wd = sent(xp, device, X, y, w)
    with config_context(array_api_dispatch=True):
        there = kind(learner=LEARNERS[learner]).fit(Xd, yd, sample_weight=wd)
        for method in ("predict_proba", "predict_joint_log_proba", "score_samples", "decision_function"):
            found = getattr(there, method)(Xd)
            assert type(found) is type(Xd)
            np.testing.assert_allclose(host(found), getattr(ours, method)(X), rtol=1e-6, atol=1e-8)
        assert (host(there.predict(Xd)) == ours.predict(X)).all()
        assert there.score(Xd, yd) == pytest.approx(ours.score(X, y))
    assert there.status_ == ours.status_
    np.testing.assert_allclose(there.history_["soft_error"], ours.history_["soft_error"], atol=1e-10)


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("mode", ["batch", "online"])
def test_dfe(name, mode):
    xp, device = library(name)
    X, y = rows(CategoricalNB, m=60)
    ours = CategoricalNB(learner=DFE(max_iter=2, mode=mode)).fit(X, y)
    Xd, yd = sent(xp, device, X, y)
    with config_context(array_api_dispatch=True):
        there = clone(ours).fit(Xd, yd)
        np.testing.assert_allclose(host(there.predict_proba(Xd)), ours.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("kind", [CategoricalNB, *GAUSSIAN])
class TestEstimators:
    def test_streams(self, name, kind):
        xp, device = library(name)
        X, y = rows(kind)
        Xd, yd = sent(xp, device, X, y)
        whole = kind(learner="closed_form").fit(X, y)
        with config_context(array_api_dispatch=True):
            clf = kind(learner="closed_form")
            for part in (slice(0, 100), slice(100, 180)):
                clf.partial_fit(Xd[part, :], yd[part], classes=xp.asarray(np.arange(3), device=device))
            np.testing.assert_allclose(host(clf.predict_proba(Xd)), whole.predict_proba(X), atol=1e-9)
            parts = [kind(learner="closed_form").fit(Xd[p, :], yd[p]) for p in (slice(0, 90), slice(90, 180))]
            merged = parts[0].merge(parts[1])
            np.testing.assert_allclose(host(merged.predict_proba(Xd)), whole.predict_proba(X), atol=1e-9)
            again = merged.forget(Xd[90:, :], yd[90:])
            half = kind(learner="closed_form").fit(X[:90], y[:90])
            np.testing.assert_allclose(host(again.predict_proba(Xd)), half.predict_proba(X), atol=1e-7)
            clf.set_params(learner=RC(max_iter=3)).calibrate(Xd, yd)
            assert clf.n_iter_ > 0

    def test_labels_that_are_strings_stay_on_the_host(self, name, kind):
        xp, device = library(name)
        X, y = rows(kind)
        (Xd,) = sent(xp, device, X)
        names = np.array(["a", "b", "c"])[y]
        with config_context(array_api_dispatch=True):
            clf = kind(class_weight={"a": 2.0}, learner=RC(max_iter=3)).fit(Xd, names)
            assert set(clf.predict(Xd)) <= {"a", "b", "c"}

    def test_unknown_labels_are_named(self, name, kind):
        xp, device = library(name)
        X, y = rows(kind)
        Xd, yd, odd = sent(xp, device, X, y, y + 1)
        with config_context(array_api_dispatch=True):
            with pytest.raises(ValueError, match=r"label\(s\) 3 in y_val do not exist .* 0, 1, 2"):
                kind(learner=RC(max_iter=2)).fit(Xd, yd, X_val=Xd, y_val=odd)
            kind(learner=RC(max_iter=2)).fit(Xd, yd, X_val=Xd, y_val=yd)

    def test_values_that_overflow_are_refused_there_too(self, name, kind):
        if kind is CategoricalNB:
            return
        xp, device = library(name)
        X, y = rows(kind)
        far = X.copy()
        far[7, 2] = 1e200
        Xd, yd, bad = sent(xp, device, X, y, far)
        with config_context(array_api_dispatch=True):
            with pytest.raises(ValueError, match=r"Column 2 holds 1e\+200"):
                kind().fit(bad, yd)
            clf = kind(learner=RC(max_iter=2)).fit(Xd, yd)
            for method in ("score_samples", "predict_joint_log_proba"):
                with pytest.raises(ValueError, match=r"Column 2 of X holds 1e\+200 in row 7"):
                    getattr(clf, method)(bad)
            for method in ("forget", "calibrate", "partial_fit"):
                with pytest.raises(ValueError, match=r"Column 2 holds 1e\+200"):
                    getattr(clf, method)(bad, yd)
            with pytest.raises(ValueError, match=r"Column 2 of X_val holds 1e\+200 in row 7"):
                clf.fit(Xd, yd, X_val=bad, y_val=yd)

    def test_moves_to_the_host_and_draws(self, name, kind):
        xp, device = library(name)
        X, y = rows(kind)
        Xd, yd = sent(xp, device, X, y)
        with config_context(array_api_dispatch=True):
            clf = kind(learner=RC(max_iter=3)).fit(Xd, yd)
            drawn, _ = clf.sample(50, random_state=0)
            assert type(drawn) is type(Xd)
            expected = host(clf.predict_proba(Xd))
            there = move_estimator_to(clf, np, "cpu")
        np.testing.assert_allclose(there.predict_proba(X), expected, rtol=1e-12)
        assert (there.sample(50, random_state=0)[0] == host(drawn)).all()

    def test_single_precision(self, name, kind):
        xp, device = library(name)
        X, y = rows(kind)
        Xd, yd = sent(xp, device, X.astype(np.float32), y)
        with config_context(array_api_dispatch=True):
            proba = kind(learner=RC(max_iter=3)).fit(Xd, yd).predict_proba(Xd)
        assert host(proba).dtype == np.float32
        np.testing.assert_allclose(
            host(proba), kind(learner=RC(max_iter=3)).fit(X, y).predict_proba(X), atol=2e-3
        )


@pytest.mark.parametrize("name", LIBRARIES)
def test_missing_values_are_named(name):
    xp, device = library(name)
    X, y = rows(GaussianNB)
    X[3, 2] = np.nan
    Xd, yd = sent(xp, device, X, y)
    with config_context(array_api_dispatch=True):
        for kind in (GaussianNB, CategoricalNB):
            with pytest.raises(ValueError, match="NaN in column 2"):
                kind().fit(Xd, yd)


@pytest.mark.parametrize("name", LIBRARIES)
def test_codes_on_a_device(name):
    xp, device = library(name)
    X, y = rows(CategoricalNB)
    Xd, yd = sent(xp, device, X.astype(int), y)
    ours = CategoricalNB(learner="closed_form").fit(X, y)
    unseen = X.copy()
    unseen[0, 0], unseen[1, 1] = 99, -1
    (there,) = sent(xp, device, unseen.astype(int))
    with config_context(array_api_dispatch=True):
        clf = CategoricalNB(learner="closed_form").fit(Xd, yd)
        np.testing.assert_allclose(host(clf.predict_proba(there)), ours.predict_proba(unseen), atol=1e-12)
        with pytest.raises(ValueError, match="column 1 holds -1: on a device categories are codes from 0"):
            CategoricalNB().fit(there, yd)
        half = X + 0.0
        half[0, 0] = 0.5
        with pytest.warns(UserWarning, match="column 0 holds 0.5, which is no integer code"):
            CategoricalNB(learner="closed_form").fit(xp.asarray(half, device=device), yd)


@pytest.mark.parametrize("name", LIBRARIES)
def test_bins_of_a_device(name):
    xp, device = library(name)
    X, y = rows(GaussianNB)
    Xd, _ = sent(xp, device, X, y)
    with config_context(array_api_dispatch=True):
        found = KMeansBins().fit(Xd).transform(Xd)
    assert (host(found) == KMeansBins().fit_transform(X)).all()


@pytest.mark.parametrize("name", LIBRARIES)
def test_rows_far_from_every_class_and_floored_covariances(name):
    xp, device = library(name)
    X, y = rows(QuadraticDiscriminantAnalysis)
    X = np.column_stack([X, X[:, 0], np.ones(len(X))])  # collinear, constant
    Xd, yd = sent(xp, device, X, y)
    with (
        config_context(array_api_dispatch=True),
        pytest.warns(UserWarning, match="do not determine the covariance"),
    ):
        there = QuadraticDiscriminantAnalysis(learner="closed_form").fit(Xd, yd)
    with pytest.warns(UserWarning, match="do not determine the covariance"):
        ours = QuadraticDiscriminantAnalysis(learner="closed_form").fit(X, y)
    with config_context(array_api_dispatch=True):
        np.testing.assert_allclose(host(there.predict_proba(Xd)), ours.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("name", LIBRARIES)
def test_what_the_standard_lacks_is_what_numpy_does(name):
    xp, device = library(name)
    rng = np.random.default_rng(0)
    A, B, y = rng.standard_normal((6, 3)), rng.standard_normal((6, 3)), rng.integers(3, size=6)
    there, other, labels, values = sent(xp, device, A, B, y, B[:, 0])
    for here, value in ((0.0, 0.0), (B[:, 0], values)):
        found = arrays.with_labels(there, labels, value)
        np.testing.assert_array_equal(host(found), arrays.with_labels(A, y, here))
    np.testing.assert_array_equal(host(arrays.clip_below(there, 0.25)), np.maximum(A, 0.25))
    np.testing.assert_allclose(host(arrays.add_scaled(there, 0.3, other)), A + 0.3 * B, rtol=1e-15)
    assert (host(there) == A).all()


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("n", [1, 31, 32, 33, 70, 128])
def test_triangles_are_inverted_by_halves(name, n):
    xp, device = library(name)
    L = np.tril(np.random.default_rng(n).standard_normal((3, n, n))) / n + np.eye(n)
    (there,) = sent(xp, device, L)
    np.testing.assert_allclose(host(whitening.inverse_by_halves(there)), np.linalg.inv(L), atol=1e-12)


@pytest.mark.parametrize("name", LIBRARIES)
def test_large_covariances_are_floored_by_products(name):
    """The matrix sign in place of eigenvectors: beyond, below and right at the floor, and indefinite."""
    xp, device = library(name)
    rng, n, floor = np.random.default_rng(0), whitening.SMALL + 6, 1e-2
    Q = np.linalg.qr(rng.standard_normal((3, n, n)))[0]
    spectra = np.stack(
        [
            np.linspace(0.5, 3, n),
            np.linspace(-1, 3, n),
            floor + 10.0 ** rng.uniform(-9, -3, n) * rng.choice([-1, 1], n),
        ]
    )
    C = (Q * spectra[:, None, :]) @ Q.transpose(0, 2, 1)
    found, number = whitening.lifted(*sent(xp, device, (C + C.transpose(0, 2, 1)) / 2), floor)
    expected = (Q * np.maximum(spectra, floor)[:, None, :]) @ Q.transpose(0, 2, 1)
    np.testing.assert_allclose(host(found), expected, atol=1e-9)
    assert (host(number) == (spectra < floor).sum(axis=1)).all()
    scale = rng.uniform(0.5, 2, n)
    reference = np.stack([np.diag(scale**2)] * 3)
    there = whitening.whiten(*sent(xp, device, C * np.outer(scale, scale), reference), floor)
    here = whitening.whiten(C * np.outer(scale, scale), reference, floor)
    for a, b in zip(there, here, strict=True):
        np.testing.assert_allclose(host(a), b, rtol=1e-5, atol=1e-6)


NUMPY_ONLY = {
    *("SmoothModel", "MixtureModel", "TreeModel", "PoissonModel", "BinnedModel"),
    *("NeighboursModel", "LeavesModel", "ConditionalGaussianModel"),
}
"""Models whose rows are sparse tables, in bins, neighbours, leaves, or shared among components, as NumPy and
SciPy have them, or whose probabilities need a function that only SciPy has."""


@pytest.mark.parametrize("name", ["numpy", *LIBRARIES])
@pytest.mark.parametrize("n", [5, whitening.SMALL + 6])
def test_eigenvalues_far_apart_are_floored_too(name, n):
    """A step may leave eigenvalues of +-1e14: rounding is then larger than the floor."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((1, n, n)))[0]
    C = (Q * np.geomspace(1e-3, 1e14, n)[None, None, :] * rng.choice([-1, 1], n)) @ Q.transpose(0, 2, 1)
    C, reference = (C + C.transpose(0, 2, 1)) / 2, np.eye(n)[None]
    if name != "numpy":
        C, reference = sent(*library(name), C, reference)
    found = whitening.whiten(C, reference, 1e-4)
    W, half_log_det, mended, _ = found if name == "numpy" else map(host, found)
    assert all(np.isfinite(part).all() for part in (W, half_log_det, mended))
    assert np.linalg.eigvalsh(mended)[0].min() > -1.0  # of 1e14
    np.testing.assert_allclose(np.triu(W[0]), W[0], atol=1e-12)


def test_every_model_says_whether_it_takes_other_libraries():
    assert {kind.__name__ for kind in MODELS if not kind().traits.array_api} == NUMPY_ONLY
    assert GenerativeClassifier(QDAModel()).__sklearn_tags__().array_api_support


ESTIMATORS = [
    kind
    for name in riskbayes.__all__
    if isinstance(kind := getattr(riskbayes, name), type)
    and hasattr(kind, "predict_proba")
    and kind is not GenerativeClassifier
]


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_estimators_take_other_libraries_as_their_tags_and_pages_say(kind):
    X, y = rows(CategoricalNB)
    there, device = library("array_api_strict")
    if kind().__sklearn_tags__().array_api_support:
        expected = kind().fit(X, y).predict_proba(X)
        with config_context(array_api_dispatch=True):
            A, b = sent(there, device, X, y)
            np.testing.assert_allclose(host(kind().fit(A, b).predict_proba(A)), expected, atol=1e-6)
    else:
        with config_context(array_api_dispatch=True), pytest.raises(TypeError, match="takes NumPy arrays"):
            kind().fit(*sent(there, device, X, y))
    text = (Path(__file__).parents[1] / "doc" / "speed.md").read_text(encoding="utf-8")
    named = text[: text.index("a `ProductOfExperts` of these take arrays of")].rsplit("\n\n", 1)[1]
    assert (f"`{kind.__name__}`" in named) == kind().__sklearn_tags__().array_api_support
