"""A fit that was killed goes on from its checkpoint to the same model; what is not its own is refused."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone

import riskbayes
from riskbayes import rows
from riskbayes.engines import MemoryEngine
from riskbayes.learners import DFE, GD, RC, RCCV, TM
from riskbayes.persistence.journal import Journal


def data(m=400, n=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=m)
    return rng.standard_normal((m, n)) + 0.7 * y[:, None], y


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def killing(monkeypatch):
    """Scans are counted, and after so many of them the process ends."""
    state = {"left": np.inf, "scans": 0}
    scan = MemoryEngine.scan

    def counted(self, *args, **options):
        if state["left"] <= 0:
            raise Killed
        state["left"] -= 1
        found = scan(self, *args, **options)
        state["scans"] += 1
        return found

    monkeypatch.setattr(MemoryEngine, "scan", counted)
    return state


LEARNERS = {
    "rc": RC(lr=0.3, max_iter=12, step="fixed", generative_weight=0.0),
    "adaptive": RC(step="adaptive", generative_weight="auto", max_iter=12),
    "tm": TM(max_iter=6),
    "gd": GD(max_iter=8),
    "early stopping": RC(max_iter=8, early_stopping=True, refit=True, random_state=0),
    "restarts": RC(max_iter=5, n_restarts=2, random_state=0),
    "batches": RC(max_iter=4, batch_size=64, random_state=0, generative_weight=0.0),
    "folds": RCCV(cv=3, max_iter=6, n_jobs=1, random_state=0),
}


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_a_fit_that_was_killed_goes_on_to_the_same_model(learner, tmp_path, killing):
    X, y = data()
    clf = riskbayes.GaussianNB(learner=learner)
    whole = clone(clf).fit(X, y)
    needed, killing["scans"], kills = killing["scans"], 0, 0
    for left in (0, 1, 1, 0, 2, 3, 1, np.inf):
        killing["left"] = left
        try:
            found = clone(clf).fit(X, y, checkpoint=tmp_path / "checkpoint")
            break
        except Killed:
            kills += 1
    assert kills >= 2
    assert killing["scans"] == needed  # none was done twice
    assert found.statistics_ == whole.statistics_
    for name, values in whole.history_.items():
        np.testing.assert_array_equal(found.history_[name], values)
    assert (found.status_, found.best_iteration_) == (whole.status_, whole.best_iteration_)
    killing["scans"] = 0
    again = clone(clf).fit(X, y, checkpoint=tmp_path / "checkpoint")  # all of it is known
    assert killing["scans"] == 0
    assert again.statistics_ == whole.statistics_


@pytest.fixture
def seed_global():
    """NumPy's global random numbers, which a learner without a seed draws from, may be set to a state."""
    before = np.random.get_state()  # noqa: NPY002
    yield np.random.seed
    np.random.set_state(before)  # noqa: NPY002


@pytest.mark.parametrize("name", ["early stopping", "restarts", "batches", "folds"])
def test_a_checkpoint_remembers_a_draw_without_a_seed(name, tmp_path, killing, seed_global):
    """The fit goes on with the rows that the first process drew, not with those that the last one would."""
    X, y = data()
    X = np.repeat(X, 3, axis=1)  # too sure by closed form: steps lower the log loss
    learner = clone(LEARNERS[name]).set_params(random_state=None)
    if not isinstance(learner, RCCV):
        learner.set_params(monitor="log_loss")
    clf = riskbayes.GaussianNB(learner=learner)
    seed_global(0)
    whole = clone(clf).fit(X, y)
    assert whole.best_iteration_ > 0
    for start, left in enumerate((8, 1, np.inf)):  # after the first draw of each learner
        seed_global(start)
        killing["left"] = left
        if left < np.inf:
            with pytest.raises(Killed):
                clone(clf).fit(X, y, checkpoint=tmp_path / "checkpoint")
    found = clone(clf).fit(X, y, checkpoint=tmp_path / "checkpoint")
    assert found.statistics_ == whole.statistics_
    scans = killing["scans"]
    again = clone(clf).fit(X, y, checkpoint=tmp_path / "checkpoint")
    assert killing["scans"] == scans
    assert again.statistics_ == found.statistics_


@pytest.mark.parametrize(
    "clf",
    [
        riskbayes.CategoricalNB(learner=DFE(max_iter=5)),
        riskbayes.TreeAugmentedNB(),
        riskbayes.QuadraticDiscriminantAnalysis(prior="recommended"),
        riskbayes.SmoothNB(),
        riskbayes.MixtureDiscriminantAnalysis(2),
        riskbayes.MixedNB(),
        riskbayes.ProductOfExperts(),
        riskbayes.RiskBayesClassifier("single"),
    ],
    ids=lambda clf: type(clf).__name__,
)
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_checkpoint_does_not_change_a_fit(clf, on_disk, tmp_path, killing):
    X, y = data()
    X = np.round(np.clip(2 * X + 6, 0, 11)).astype(int)
    given = (rows(X, y),) if on_disk else (X, y)
    plain = clone(clf).fit(*given)
    killing["left"] = 1
    with pytest.raises(Killed):
        clone(clf).fit(*given, checkpoint=tmp_path / "file")
    killing["left"] = np.inf
    found = clone(clf).fit(*given, checkpoint=tmp_path / "file")
    np.testing.assert_array_equal(found.predict_proba(X), plain.predict_proba(X))


def test_records_wait_for_the_seconds_between_two_writes(tmp_path, killing):
    X, y = data()
    clf, path = riskbayes.GaussianNB(learner=RC(max_iter=12)), tmp_path / "file"
    whole = clone(clf).fit(X, y)
    needed, sizes, write = killing["scans"], [], Journal.flush

    def written(self):
        write(self)
        sizes.append(path.stat().st_size)

    Journal.flush = written
    try:
        clone(clf).fit(X, y, checkpoint=(path, 1e6))
        assert len(sizes) == 1  # at the end
        path.unlink()
        clone(clf).fit(X, y, checkpoint=(path, 0))
        assert len(sizes) > needed
    finally:
        Journal.flush = write
    assert sizes[0] == sizes[-1] == path.stat().st_size
    killing["scans"] = 0
    assert clone(clf).fit(X, y, checkpoint=(path, 5.0)).statistics_ == whole.statistics_
    assert killing["scans"] == 0
    for seconds in (-1, "a", None):
        with pytest.raises(ValueError, match="needs a number of seconds"):
            clone(clf).fit(X, y, checkpoint=(path, seconds))


def test_only_the_recipe_has_a_checkpoint(tmp_path):
    X, y = data()
    with pytest.raises(ValueError, match="checkpoint goes with strategy='single'"):
        riskbayes.RiskBayesClassifier("cv").fit(X, y, checkpoint=tmp_path / "file")


def test_validation_rows_are_recorded_too(tmp_path, killing):
    X, y = data()
    clf, val = riskbayes.GaussianNB(), {"X_val": X[:100], "y_val": y[:100]}
    plain = clone(clf).fit(X[100:], y[100:], **val)
    needed = killing["scans"]
    killing["left"], killing["scans"] = 7, 0
    with pytest.raises(Killed):
        clone(clf).fit(X[100:], y[100:], **val, checkpoint=tmp_path / "file")
    killing["left"] = np.inf
    found = clone(clf).fit(X[100:], y[100:], **val, checkpoint=tmp_path / "file")
    assert killing["scans"] == needed
    assert found.statistics_ == plain.statistics_
    with pytest.raises(ValueError, match="its validation rows differs"):
        clone(clf).fit(X[100:], y[100:], X_val=X[:99], y_val=y[:99], checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match="its validation rows differs"):
        clone(clf).fit(X[100:], y[100:], checkpoint=tmp_path / "file")
    clone(clf).fit(X[100:], y[100:], checkpoint=tmp_path / "without")
    with pytest.raises(ValueError, match="its validation rows differs"):
        clone(clf).fit(X[100:], y[100:], **val, checkpoint=tmp_path / "without")


SCRIPT = """
    import os, random, signal, sys, time
    import numpy as np
    import riskbayes
    from riskbayes.engines import MemoryEngine
    from riskbayes.learners import RC

    scan = MemoryEngine.scan

    def fit(name):
        def slow(self, *args, **options):
            time.sleep(0.02)
            found = scan(self, *args, **options)
            with open(f"{name}.log", "a") as log:
                log.write("scan\\n")
            return found

        MemoryEngine.scan = slow
        rng = np.random.default_rng(0)
        y = rng.integers(3, size=400)
        X = rng.standard_normal((400, 4)) + 0.7 * y[:, None]
        clf = riskbayes.QuadraticDiscriminantAnalysis(learner=RC(step="adaptive", max_iter=80))
        clf.fit(X, y, checkpoint=f"{name}.checkpoint")
        np.savez(f"{name}.npz", n_iter=clf.n_iter_, **clf.statistics_)

    def started(name):
        pid = os.fork()  # a driver of its own, which need not import everything again
        if not pid:
            fit(name)
            os._exit(0)
        return pid

    assert os.waitpid(started("whole"), 0)[1] == 0
    moments, kills = random.Random(0), 0
    for _ in range(10):
        pid = started("killed")
        time.sleep(moments.random() * 0.3)
        os.kill(pid, signal.SIGKILL)
        kills += os.waitpid(pid, 0)[1] == signal.SIGKILL
    assert os.waitpid(started("killed"), 0)[1] == 0
    print(kills)
"""


def test_the_driver_killed_ten_times_at_random_moments(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert found.returncode == 0, found.stderr
    kills = int(found.stdout)
    assert kills >= 8
    with np.load(tmp_path / "whole.npz") as expected, np.load(tmp_path / "killed.npz") as killed:
        assert set(expected) == set(killed)
        for name in expected:
            np.testing.assert_array_equal(killed[name], expected[name])
        needed = int(expected["n_iter"]) + 1
    assert needed > 40
    scans = len((tmp_path / "killed.log").read_text().splitlines())
    assert needed <= scans <= needed + kills  # but for those in flight


# --- what is refused --------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path):
    X, y = data()
    clf = riskbayes.GaussianNB(learner=RC(max_iter=5))
    clf.fit(X, y, checkpoint=tmp_path / "file")
    return clf, X, y, tmp_path / "file"


def test_a_checkpoint_of_another_fit_is_refused(written):
    clf, X, y, path = written
    other = X.copy()
    other[17, 2] += 1e-9
    weights = np.ones(len(y))
    weights[3] = 2
    for own, given, what in (
        (clf, {"X": other, "y": y}, "data"),
        (clf, {"X": X[::-1], "y": y[::-1]}, "data"),
        (clf, {"X": X, "y": y, "sample_weight": weights}, "data"),
        (clone(clf).set_params(var_smoothing=1e-3), {"X": X, "y": y}, "model"),
        (clone(clf).set_params(learner=RC(max_iter=6)), {"X": X, "y": y}, "learner"),
        (clf, {"X": X, "y": np.array(list("abc"))[y]}, "classes"),
    ):
        before = path.read_bytes()
        with pytest.raises(ValueError, match=f"is of another fit: its {what} differs. Delete it"):
            clone(own).fit(**given, checkpoint=path)
        assert path.read_bytes() == before
    with pytest.raises(ValueError, match="checkpoint goes without warm_start"):
        clf.set_params(warm_start=True).fit(X, y, checkpoint=path)


def test_a_truncated_or_corrupted_checkpoint_is_refused(written):
    clf, X, y, path = written
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for size in (1, 10, 30, 50, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"is truncated|is no checkpoint"):
            clf.fit(X, y, checkpoint=path)
    for at in [0, 25, 40, *rng.integers(len(whole), size=60).tolist()]:
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(changed))
        with pytest.raises(ValueError, match=r"is corrupted|is truncated|is no checkpoint"):
            clf.fit(X, y, checkpoint=path)
    path.write_text("something else")
    with pytest.raises(ValueError, match="is no checkpoint of riskbayes"):
        clf.fit(X, y, checkpoint=path)


def test_a_record_that_was_not_completed_is_not_there(tmp_path):
    journal = Journal(tmp_path / "file")
    journal.add("a", b"first")
    with open(tmp_path / "file", "ab") as file:
        file.write(b"the beginning of another")
    again = Journal(tmp_path / "file")
    assert (again.get("a"), again.get("b")) == (b"first", None)
    again.add("b", b"second")
    once_more = Journal(tmp_path / "file")
    assert (once_more.get("a"), once_more.get("b")) == (b"first", b"second")
