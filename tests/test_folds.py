"""Rows that are held out have no part in what they judge, and what comes back is one consistent model."""

import pickle
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, cross_val_score

from conftest import posterior
from riskbayes import (
    CategoricalNB,
    GaussianNB,
    GenerativeClassifier,
    KDependenceNB,
    LinearDiscriminantAnalysis,
    MixedNB,
    MixtureDiscriminantAnalysis,
    ProductOfExperts,
    QuadraticDiscriminantAnalysis,
    SmoothNB,
    TreeAugmentedNB,
)
from riskbayes.engines import MemoryEngine
from riskbayes.learners import RC, RCCV
from riskbayes.models import CategoricalModel, LDAModel, MixtureModel, QDAModel, SmoothModel, TreeModel
from riskbayes.models.base import Fitted
from riskbayes.models.lda import TiedMoments
from riskbayes.objectives import LogLoss
from riskbayes.scanners.dense import label_statistics
from riskbayes.search import fold_task
from riskbayes.statistics import Statistics
from riskbayes.task import Status, Task


def of_trees(**given):
    """A product of naive Bayes and a tree, of codes."""
    return ProductOfExperts([CategoricalModel(alpha=1.0), TreeModel(alpha=1.0, structure="tree")], **given)


def of_mixtures(**given):
    """A product of a Gaussian and a mixture."""
    prior = {"covariance_strength": 5.0}
    return ProductOfExperts([QDAModel(**prior), MixtureDiscriminantAnalysis(2, **prior)], **given)


def generic(**given):
    """A model with structure in the generic classifier."""
    return GenerativeClassifier(MixtureModel(LDAModel(), n_components=2), **given)


CODES = [CategoricalNB, TreeAugmentedNB, KDependenceNB, of_trees]
NUMBERS = [
    GaussianNB,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    SmoothNB,
    MixtureDiscriminantAnalysis,
    ProductOfExperts,
    of_mixtures,
    generic,
]
STRUCTURE = [*CODES[1:], *NUMBERS[3:]]
every_estimator = pytest.mark.parametrize("kind", [*CODES, *NUMBERS], ids=lambda kind: kind.__name__)


def noise(kind, seed, m=80, n=12):
    """Labels that have nothing to do with the columns."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(m, n)) if kind in CODES else rng.standard_normal((m, n))
    return X, rng.permutation(np.arange(m) % 2)


def signal(kind, seed=0, m=120, n=4):
    """Three classes that overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % 3
    X = rng.standard_normal((m, n)) + 0.8 * rng.standard_normal((3, n))[y]
    return (np.clip(np.floor(X + 2), 0, 4).astype(int) if kind in CODES else X), y


def made(kind, learner):
    """An estimator whose prior does not depend on the learner.

    Components are learned from the kept rows, whose mass is not that of all rows: they have no prior.
    """
    prior = {MixtureDiscriminantAnalysis: None} | dict.fromkeys(NUMBERS[:3], "recommended")
    return kind(learner=learner, **({"prior": prior[kind]} if kind in prior else {}))


def closed_form(kind):
    """The closed form with the prior that RC has."""
    return made(kind, "closed_form")


def error_of_closed_form(kind, X, y, kept, held, w=None):
    """Of a fit on the kept rows alone, which carry the weight of all."""
    w = np.ones(len(y)) if w is None else w
    share = (w[kept].sum() + w[held].sum()) / w[kept].sum()
    clf = closed_form(kind).fit(X[kept], y[kept], sample_weight=share * w[kept])
    return np.average(clf.predict(X[held]) != y[held], weights=w[held])


@every_estimator
@pytest.mark.parametrize("weighted", [False, True])
def test_the_first_validation_error_is_that_of_a_fit_on_the_kept_rows(kind, weighted):
    for seed in range(3):
        X, y = noise(kind, seed)
        w = np.random.default_rng(seed).uniform(0.5, 2.0, len(y)) if weighted else None
        learner = RC(early_stopping=True, validation_fraction=0.25, max_iter=1, random_state=seed)
        clf = made(kind, learner).fit(X, y, sample_weight=w)
        split = StratifiedShuffleSplit(1, test_size=20, random_state=np.random.RandomState(seed))
        kept, held = next(split.split(X, y))
        expected = error_of_closed_form(kind, X, y, kept, held, w)
        assert clf.history_["val_error"][0] == pytest.approx(expected, abs=1e-12)


@every_estimator
def test_the_cross_validated_error_is_that_of_fits_on_the_kept_rows(kind):
    X, y = noise(kind, 3)
    learner = RCCV(3, (0,), ("log_loss",), max_iter=1, random_state=0)
    found = made(kind, learner).fit(X, y).learner_.cv_error_[-2]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    errors = [error_of_closed_form(kind, X, y, kept, held) for kept, held in folds]
    assert found == pytest.approx(np.average(errors, weights=[len(held) for _, held in folds]), abs=1e-12)


@pytest.mark.parametrize("kind", STRUCTURE, ids=lambda kind: kind.__name__)
def test_noise_is_not_predictable(kind):
    """A tree or a component that saw the held labels would seem to predict them: 0.36 in place of 0.5."""
    held, honest = [], []
    for seed in range(10):
        X, y = noise(kind, seed)
        learner = RCCV(4, (0,), ("log_loss",), max_iter=1, random_state=seed)
        held.append(made(kind, learner).fit(X, y).learner_.cv_error_[-2])
        folds = StratifiedKFold(4, shuffle=True, random_state=seed)
        honest.append(1 - cross_val_score(closed_form(kind), X, y, cv=folds).mean())
    assert np.mean(held) == pytest.approx(np.mean(honest), abs=0.03)
    assert np.mean(held) > 0.44


def test_a_users_model_learns_in_each_fold():
    @dataclass(frozen=True, eq=False)
    class OneColumn(TiedMoments):
        """Moments of one column."""

        column: int = 0

    @dataclass(frozen=True)
    class Chosen(LDAModel):
        """The column that tells the classes apart best, and no other."""

        seen: list = field(default_factory=list)

        def learn(self, sample):
            X, y = sample.X, sample.y
            self.seen.append(len(y))
            means = np.stack([X[y == k].mean(axis=0) for k in range(sample.n_classes)])
            column = int(np.ptp(means, axis=0).argmax())
            frame = super().learn(replace(sample, X=X[:, [column]]))
            return OneColumn(frame.origin, frame.eps, frame.moved, column=np.array(column))

        def encode(self, X, frame):
            return super().encode(X[:, [int(frame.column)]], frame)

    X, y = noise(GaussianNB, 0, m=60, n=300)
    model = Chosen()
    learner = RCCV(3, (0,), ("log_loss",), max_iter=1, random_state=0)
    clf = GenerativeClassifier(model, learner=learner).fit(X, y)
    assert model.seen == [60, 40, 40, 40]
    assert clf.learner_.cv_error_[-2] > 0.4  # of the closed form, whose column was chosen by the kept rows
    closed = posterior(Fitted.of(model, clf.data_statistics_), X)
    assert (closed.argmax(axis=1) != y).mean() < 0.4  # chosen by all rows
    np.testing.assert_allclose(clf.predict_proba(X), np.full((60, 2), 0.5), atol=1e-9)  # and not believed


@pytest.mark.parametrize("kind", [CategoricalNB, TreeAugmentedNB])
def test_categories_by_value_are_held_out_as_codes_are(kind):
    """A value that only held rows have is as unseen as such a code; declared ones are known in every fold."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, size=(60, 3)), (np.arange(60) % 3 > 0).astype(int)
    X[np.arange(0, 60, 20), 0] = [2, 3, 4]  # one row each
    names = np.array(["a", "b", "c", "d", "e"])
    frame = pd.DataFrame(
        {f"x{j}": pd.Categorical(names[X[:, j]], categories=[*names, "f", "g"]) for j in range(3)}
    )
    different = []
    for seed in range(4):
        learner = RC(early_stopping=True, validation_fraction=0.5, max_iter=3, random_state=seed)
        codes, values = (made(kind, learner).fit(T, y) for T in (X, names[X]))
        declared = made(kind, learner).fit(frame, y)
        least = kind(learner=learner, min_categories=7).fit(X, y)
        for one, other in ((codes, values), (declared, least)):
            np.testing.assert_allclose(one.history_["val_log_loss"], other.history_["val_log_loss"])
        np.testing.assert_allclose(values.predict_proba(names[X]), codes.predict_proba(X))
        np.testing.assert_allclose(declared.predict_proba(frame), least.predict_proba(X))
        different.append(abs(codes.history_["val_log_loss"][0] - least.history_["val_log_loss"][0]))
    assert max(different) > 1e-4


@every_estimator
@pytest.mark.parametrize("refit", [False, True])
def test_what_early_stopping_returns_is_one_model(kind, refit):
    X, y = signal(kind)
    learner = RC(
        lr=0.3,
        early_stopping=True,
        validation_fraction=0.3,
        refit=refit,
        random_state=1,
        step="fixed",
        generative_weight=0.0,
    )
    clf = made(kind, learner).fit(X, y)
    assert clf.data_statistics_.total == pytest.approx(len(y))
    assert clf.statistics_.total == pytest.approx(len(y))
    assert clf.data_statistics_.frame == clf.statistics_.frame
    # The data are counted by the structure that the model returned has.
    Z = clf.model_.encode(X, clf.statistics_.frame)
    counted = label_statistics(clf.model_, Z, y, None, 3)
    assert clf.data_statistics_.allclose(counted, rtol=1e-9)
    P = clf.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    theta = clf.model_.parameters(clf.statistics_)
    joint = clf.model_.log_joint(Z, clf.model_.cast(theta, Z))
    np.testing.assert_allclose(clf.predict_joint_log_proba(X), joint, rtol=1e-9)
    assert clf.model_.is_legal(clf.statistics_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(X), P)
    if clf.model_.traits.normalised:
        drawn, labels = clf.sample(50, random_state=0)
        assert drawn.shape == (50, X.shape[1])
        assert set(labels.tolist()) <= {0, 1, 2}
    if refit:
        closed = closed_form(kind).fit(X, y)
        assert clf.data_statistics_ == closed.data_statistics_


def test_a_category_that_only_held_rows_have_is_known_after_the_fit():
    X, y = np.arange(40)[:, None] % 2, np.arange(40) % 2
    for row in range(40):
        X[:] = np.arange(40)[:, None] % 2
        X[row] = 2
        clf = CategoricalNB(learner=RC(early_stopping=True, random_state=0, max_iter=3)).fit(X, y)
        assert clf.n_categories_.tolist() == [3]
        assert clf.category_count_[0].sum() == 40
        assert clf.categories_[0].tolist() == [0, 1, 2]
        again = clf.set_params(learner=RC(max_iter=3)).partial_fit(X[:10], y[:10])
        assert again.data_statistics_.total == 50
        assert again.statistics_.total == pytest.approx(50, rel=1e-14)


@pytest.mark.parametrize("kind", [SmoothNB, MixtureDiscriminantAnalysis, TreeAugmentedNB, of_mixtures])
def test_a_warm_start_with_structure_holds_no_rows_out(kind):
    X, y = signal(kind)
    for learner in (RC(early_stopping=True, random_state=0), RCCV(cv=3, max_iter=2, random_state=0)):
        if kind is TreeAugmentedNB and isinstance(learner, RCCV):
            continue
        clf = kind(learner=RC(max_iter=2), warm_start=True).fit(X, y)
        before = clf.statistics_
        with pytest.raises(ValueError, match=r"learns its structure.*warm_start"):
            clf.set_params(learner=learner).fit(X, y)
        assert clf.statistics_ is before


def test_a_warm_start_from_another_tree_is_refused():
    """Tables of the same shape, of other parents."""
    y, flips = np.arange(400) % 2, np.random.default_rng(0).random((3, 400)) < 0.2
    root = y ^ flips[0]
    child = root ^ flips[1]
    first, second = (np.stack([root, child, above ^ flips[2]], axis=1) for above in (root, child))
    clf = TreeAugmentedNB(warm_start=True).fit(first, y)
    parents = clf.parents_
    assert parents == ((), (0,), (0,))
    assert TreeAugmentedNB().fit(second, y).parents_ == ((), (0,), (1,))
    with pytest.raises(ValueError, match="other tables"):
        clf.fit(second, y)
    assert clf.parents_ == parents


@pytest.mark.parametrize(
    "model", [SmoothModel(alpha=1.0), MixtureModel(n_components=2), MixtureModel(SmoothModel())], ids=str
)
def test_statistics_of_other_structure_do_not_add(model):
    X, y = signal(GaussianNB)
    clf = GenerativeClassifier(model, learner="closed_form").fit(X, y)
    other = GenerativeClassifier(model, learner="closed_form").fit(X[:60], y[:60])
    for add in (
        lambda: clf.partial_fit(X, y),
        lambda: clf.merge(other),
        lambda: clf.set_params(learner=RC(early_stopping=True, random_state=0)).calibrate(X[:60], y[:60]),
    ):
        with pytest.raises(ValueError, match="learns its structure"):
            add()
    clf.set_params(learner="closed_form").forget(X[:9], y[:9])
    assert clf.data_statistics_.total == pytest.approx(len(y) - 9)


@pytest.mark.parametrize("kind", [CategoricalNB, *NUMBERS[:3]])
def test_a_closed_form_that_goes_on_holds_rows_out_too(kind):
    """Their statistics are in the start: they are taken out of it."""
    X, y = noise(kind, 1)
    for rest in (80, 60):  # all rows of the stream, and some of them
        clf = kind(learner="closed_form").fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
        assert clf.statistics_ is not clf.data_statistics_
        learner = RC(early_stopping=True, validation_fraction=0.25, max_iter=1, random_state=0)
        clf.set_params(learner=learner).calibrate(X[:rest], y[:rest])
        split = StratifiedShuffleSplit(1, test_size=rest // 4, random_state=np.random.RandomState(0))
        kept, held = next(split.split(X[:rest], y[:rest]))
        w = np.ones(80)
        w[kept], w[held] = rest / len(kept), 0.0
        honest = kind(learner="closed_form").fit(X[w > 0], y[w > 0], sample_weight=w[w > 0])
        expected = -honest.predict_log_proba(X[held])[np.arange(len(held)), y[held]].mean()
        assert clf.history_["val_log_loss"][0] == pytest.approx(expected, rel=1e-9)


def test_held_rows_are_read_in_the_categories_of_the_start():
    """A category that only an earlier fit counted is not another one that the fold does not know."""
    X, y = np.arange(24)[:, None] % 3, np.arange(24) % 2
    X[:2] = [[4], [3]]
    kept, held = np.arange(4, 24), np.arange(4)
    model, engine = CategoricalModel(alpha=1.0), MemoryEngine(X, y, None, 2)
    S = model.fix_prior(engine.statistics(model, engine.learn(model)))
    start = S + Statistics(
        {"s0": np.zeros(2), "counts": np.array([[0, 0, 0, 2.0, 0], [0, 0, 0, 0, 3]])}, S.frame
    )
    part = fold_task(Task(model, engine, S, start), engine.taken(kept), engine.taken(held))
    fitted = Fitted.of(model, part.start)
    assert part.start.frame.n_categories.tolist() == [5]
    joint = model.log_joint(model.encode(X[held], part.start.frame), fitted.theta)
    P = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    expected = 1 - P[np.arange(4), y[held]].mean()
    found = part.validation.scan(fitted, LogLoss(), risks_only=True).risks.mean()
    assert found["soft_error"] == pytest.approx(expected)


# --- what the estimator says of its path -----------------------------------------------------------------


@every_estimator
def test_the_best_iteration_is_that_of_the_model_returned(kind):
    X, y = signal(kind)
    rows = np.arange(len(y)) % 4 > 0
    closed = kind(learner="closed_form").fit(X, y)
    assert closed.best_iteration_ == 0
    plain = kind(learner=RC(lr=0.3, max_iter=12, step="fixed", generative_weight=0.0)).fit(X, y)
    assert plain.best_iteration_ == np.flatnonzero(plain.history_["accepted"])[-1]
    P = plain.predict_proba(X)[np.arange(len(y)), y]
    assert 1 - P.mean() == pytest.approx(plain.history_["soft_error"][plain.best_iteration_])
    judged = kind(learner=RC(lr=0.3, max_iter=12, step="fixed", generative_weight=0.0)).fit(
        X[rows], y[rows], X_val=X[~rows], y_val=y[~rows]
    )
    P = judged.predict_proba(X[~rows])[np.arange((~rows).sum()), y[~rows]]
    assert 1 - P.mean() == pytest.approx(judged.history_["val_soft_error"][judged.best_iteration_])
    assert judged.best_iteration_ == np.argmin(
        np.where(judged.history_["accepted"], judged.history_["val_soft_error"], np.inf)
    )
    assert judged.refit_history_ is None


def test_what_early_stopping_found_is_kept_after_a_refit():
    X, y = signal(GaussianNB)
    learner = RC(
        lr=0.3,
        early_stopping=True,
        validation_fraction=0.3,
        n_iter_no_change=3,
        random_state=3,
        step="fixed",
        generative_weight=0.0,
    )
    first = QuadraticDiscriminantAnalysis(learner=learner).fit(X, y)
    again = QuadraticDiscriminantAnalysis(learner=learner.set_params(refit=True)).fit(X, y)
    assert first.status_ is again.status_ is Status.VALIDATION
    assert first.best_iteration_ == again.best_iteration_ > 0
    assert again.n_iter_ == first.n_iter_ > first.best_iteration_
    for name, values in first.history_.items():
        np.testing.assert_array_equal(again.history_[name], values)
    assert "val_soft_error" in again.history_
    assert len(again.refit_history_["soft_error"]) == again.best_iteration_ + 1
    assert "val_soft_error" not in again.refit_history_
    plain = QuadraticDiscriminantAnalysis(
        learner=RC(lr=0.3, max_iter=again.best_iteration_, step="fixed", generative_weight=0.0)
    ).fit(X, y)
    assert again.statistics_ == plain.statistics_
    assert again.best_iteration_ == plain.best_iteration_


def test_settings_are_scored_by_folds_of_unequal_weight():
    """Each fold is a fit of its own, from the strongest anchor on; its held rows count by their weight."""
    X, y = signal(GaussianNB)
    w = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    learner = RCCV(cv=3, max_iter=6, generative_weights=(0.5,), random_state=0)
    clf = GaussianNB(learner=learner).fit(X, y, sample_weight=w)
    errors, losses, masses = [], [], []
    for kept, held in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        share = w.sum() / w[kept].sum()
        one = GaussianNB(learner=RC(max_iter=6, generative_weight=0.5))
        P = one.fit(X[kept], y[kept], sample_weight=share * w[kept]).predict_proba(X[held])
        errors.append(np.average(P.argmax(axis=1) != y[held], weights=w[held]))
        losses.append(np.average(-np.log(P[np.arange(len(held)), y[held]]), weights=w[held]))
        masses.append(w[held].sum())
    found = clf.learner_
    assert found.cv_error_[-1] == pytest.approx(np.average(errors, weights=masses), abs=1e-12)
    assert found.cv_log_loss_[-1] == pytest.approx(np.average(losses, weights=masses), rel=1e-6)
    assert found.cv_score_ == pytest.approx(found.cv_error_ + found.cv_log_loss_)


@pytest.mark.parametrize("seed", range(5))
def test_cross_validation_keeps_the_class_frequencies_where_labels_are_noise(seed):
    X, y = noise(GaussianNB, seed, m=40)
    X, y = np.delete(X, slice(0, 20, 2), axis=0), np.delete(y, slice(0, 20, 2))
    clf = QuadraticDiscriminantAnalysis(prior="recommended", learner=RCCV(cv=4, random_state=0)).fit(X, y)
    score = clf.learner_.cv_score_
    assert clf.learner_.pooled_share_ == 1.0
    assert clf.learner_.generative_weight_ == np.inf
    assert clf.status_ is Status.VALIDATION
    assert score[0] < score[-1] - 0.1
    np.testing.assert_allclose(clf.predict_proba(X), np.tile(np.bincount(y) / len(y), (len(y), 1)), rtol=1e-9)


@pytest.mark.parametrize("make", [GaussianNB, QuadraticDiscriminantAnalysis, SmoothNB, MixedNB])
@pytest.mark.parametrize("seed", range(3))
def test_one_weak_column_among_noise_is_no_worse_than_the_class_frequencies(make, seed):
    """On held-out rows: there the closed form is too sure."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=1300)
    X = rng.normal(size=(len(y), 30))
    X[:, 0] += 0.3 * y
    train, test = slice(300), slice(300, None)
    loss = {}
    for learner in ("closed_form", "rc_cv"):
        P = make(learner=learner).fit(X[train], y[train]).predict_proba(X[test])
        loss[learner] = -np.log(P[np.arange(1000), y[test]]).mean()
    p = y[train].mean()
    frequencies = -np.log(np.where(y[test], p, 1 - p)).mean()
    assert loss["rc_cv"] <= frequencies + 1e-3
    assert loss["closed_form"] > frequencies + 1e-2


def test_a_path_has_one_history_and_ends_no_higher_than_it_began():
    X, y = signal(GaussianNB)
    clf = GaussianNB(learner=RCCV(cv=3, max_iter=10, generative_weights=(0, 1, 0.1), random_state=0)).fit(
        X, y
    )
    assert [g for _, g in clf.learner_.settings_] == [np.inf] * 5 + [1, 0.1, 0]  # the strongest first
    assert clf.learner_.pooled_shares_.tolist() == [1.0, 0.9, 0.7, 0.3, 0, 0, 0, 0]
    lengths = {name: len(path) for name, path in clf.history_.items()}
    assert set(lengths.values()) == {clf.n_iter_ + 1}
    assert clf.history_["accepted"][clf.best_iteration_]
    closed = closed_form(GaussianNB).fit(X, y)
    P = closed.predict_proba(X)[np.arange(len(y)), y]
    assert clf.history_["log_loss"][0] == pytest.approx(-np.log(P).mean())
    P = clf.predict_proba(X)[np.arange(len(y)), y]
    assert clf.history_["log_loss"][clf.best_iteration_] == pytest.approx(-np.log(P).mean())


def test_an_estimator_that_chose_the_closed_form_has_its_statistics():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=80)
    X = rng.normal(size=(80, 4)) * (1 + 2 * y[:, None]) + 2 * y[:, None]
    learner = RCCV(cv=4, generative_weights=(0,), random_state=0)
    clf = QuadraticDiscriminantAnalysis(prior="recommended", learner=learner).fit(X, y)
    assert clf.learner_.generative_weight_ == np.inf
    assert clf.learner_.pooled_share_ == 0
    assert clf.status_ is Status.VALIDATION
    assert clf.statistics_ == clf.data_statistics_


def test_a_callback_sees_the_model_of_the_fold():
    """Its structure is that of the kept rows."""
    seen = []

    class Watching:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
            seen.append(fitted_estimator.predict_proba(X))

    X, y = noise(TreeAugmentedNB, 0)
    learner = RC(early_stopping=True, validation_fraction=0.5, max_iter=4, random_state=0)
    clf = TreeAugmentedNB(learner=learner).set_callbacks(Watching()).fit(X, y)
    assert clf.parents_ != TreeAugmentedNB().fit(X, y).parents_
    np.testing.assert_allclose(seen[clf.best_iteration_], clf.predict_proba(X), rtol=1e-9)
