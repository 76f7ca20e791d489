"""The engine that writes down what scans return, so that a fit goes on after a crash where it was.

A fit is determined by what its engine returns. Once that is recorded, the same fit is replayed without a
scan, up to the one that was under way; then it goes on. Neither the loop nor a learner takes part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from riskbayes.arrays import Array
from riskbayes.engines.base import Engine, Formula, Scan
from riskbayes.exceptions import ModelFileError
from riskbayes.frames import Frame
from riskbayes.models.base import Fitted, GenerativeModel
from riskbayes.objectives import Objective
from riskbayes.persistence.codec import from_bytes, to_bytes
from riskbayes.persistence.hints import fits
from riskbayes.persistence.journal import Journal
from riskbayes.statistics import Statistics

UNMEASURED = Frame()
"""The frame of statistics in a journal: the fit knows theirs."""


class RecordedEngine(Engine):
    """An engine whose frames, statistics and scans are in a journal.

    Engines over folds, held rows and draws are recorded too, each by its own name, and the state of random
    numbers with them.

    Parameters
    ----------
    engine : Engine
        The rows.
    journal : Journal
        The records.
    name : str
        The name of these rows in the journal.
    """

    def __init__(self, engine: Engine, journal: Journal, name: str = "rows"):
        self.engine, self.journal, self.name = engine, journal, name
        self.n_classes = engine.n_classes
        self._numbers: dict[str, int] = {}

    @classmethod
    def of_rows(cls, engine: Engine, journal: Journal, settings: dict[str, Any]) -> Self:
        """Return the recorded engine of the training rows; refuse a journal of other rows or settings.

        `settings` are values by name that the fit depends on, besides the rows.
        """
        own = {"data": engine.fingerprint()} | {k: described(v) for k, v in settings.items()}
        check_fingerprints(journal, "rows", own)
        return cls(engine, journal)

    @classmethod
    def of_validation(cls, engine: Engine | None, journal: Journal) -> Self | None:
        """Return the recorded engine of the validation rows; refuse a journal with others, or with some."""
        own = {"validation rows": "none" if engine is None else engine.fingerprint()}
        check_fingerprints(journal, "validation", own)
        return None if engine is None else cls(engine, journal, "validation")

    def _key(self, what: str) -> tuple[str, str, int]:
        number = self._numbers[what] = self._numbers.get(what, -1) + 1
        return self.name, what, number

    def _recall(self, what: str, kind: Any, compute: Callable[[], Any]) -> Any:
        """Return the recorded value of the next call, or compute and record it."""
        return recall(self.journal, self._key(what), kind, compute)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return self.engine.n_rows

    @property
    def masses(self) -> Array:
        """The weight of each class."""
        return self.engine.masses

    @property
    def mass(self) -> float:
        """The weight of all rows."""
        return self.engine.mass

    def learn(self, model: GenerativeModel) -> Frame:
        """Return what the model learns; a model that keeps rows learns again, for its engine must know it."""
        if model.implements("learn_own"):
            return self.engine.learn(model)
        return self._recall("learn", Frame, lambda: self.engine.learn(model))

    def statistics(self, model: GenerativeModel, frame: Frame) -> Statistics:
        """Return s(X, Y)."""

        def compute() -> Statistics:
            return self.engine.statistics(model, frame).with_frame(UNMEASURED)

        return self._recall("statistics", Statistics, compute).with_frame(frame)

    def scan(self, fitted: Fitted, objective: Objective, part: Any = None, risks_only: bool = False) -> Scan:
        """Return dS and the risks."""

        def compute() -> Scan:
            return measured(self.engine.scan(fitted, objective, part, risks_only), UNMEASURED)

        return measured(self._recall("scan", Scan, compute), fitted.S.frame)

    def map_rows(self, path: Sequence[Fitted], formula: Formula) -> list[Array]:
        """Apply a formula to all rows."""
        return self.engine.map_rows(path, formula)

    def one_blas_thread(self) -> AbstractContextManager:
        """Return the context of work on the rows."""
        return self.engine.one_blas_thread()

    def class_counts(self) -> Array:
        """Return how many rows of positive weight each class has."""
        return self.engine.class_counts()

    def folds(self, n_folds: int, random_state: Any) -> Iterator[tuple[Self, Self]]:
        """Yield recorded engines over the kept rows and over the held-out rows."""
        random = check_random_state(random_state)
        self._repeat(random)
        for kept, held in self.engine.folds(n_folds, random):
            yield self._derived(kept, "kept"), self._derived(held, "held")

    def hold_out(self, size: int, random: np.random.RandomState) -> tuple[Self, Self]:
        """Return recorded engines over the kept rows and over the held-out rows."""
        self._repeat(random)
        kept, held = self.engine.hold_out(size, random)
        return self._derived(kept, "kept"), self._derived(held, "held")

    def scaled(self, factor: float) -> Self:
        """Return a recorded engine over the same rows, with weights multiplied by a factor."""
        return self._derived(self.engine.scaled(factor), "scaled")

    def thinned(self, size: int) -> Engine:  # type: ignore[override]
        """Return an engine over rows at evenly spaced shares of the total weight."""
        return self.engine.thinned(size)

    def bootstrap(self, random: np.random.RandomState) -> Self:
        """Return a recorded engine over a sample of the rows, drawn with replacement."""
        self._repeat(random)
        return self._derived(self.engine.bootstrap(random), "drawn")

    def batches(self, size: int, rng: np.random.Generator) -> Sequence[Any]:
        """Return random parts of the rows."""
        rng.bit_generator.state = self._recall("generator", dict[str, Any], lambda: rng.bit_generator.state)
        return self.engine.batches(size, rng)

    def one_by_one(
        self, model: GenerativeModel, frame: Frame, random: np.random.RandomState | None
    ) -> Iterator[tuple[Any, Array, Any]]:
        """Yield each row; these passes are not recorded."""
        if random is not None:
            self._repeat(random)
        return self.engine.one_by_one(model, frame, random)

    def _repeat(self, random: np.random.RandomState) -> None:
        """Bring random numbers to the recorded state, so that a replay draws the same rows."""
        state = self._recall("random", dict[str, Any], lambda: random.get_state(legacy=False))
        within = 0 <= state["state"].get("pos", 0) <= 624 and 0 <= state.get("buffer_pos", 0) <= 4
        if not within:  # NumPy does not check it, and would read beyond
            raise self.journal.refused("has random numbers that begin beyond their buffer")
        random.set_state(state)

    def _derived(self, engine: Engine, what: str) -> Self:
        return type(self)(engine, self.journal, "/".join(map(str, self._key(what))))


def open_journal(checkpoint: Any) -> Journal:
    """Return the journal of a checkpoint, a path, or a path and the least seconds between two writes."""
    path, seconds = checkpoint if isinstance(checkpoint, tuple) else (checkpoint, 0.0)
    if not isinstance(seconds, Real) or not float(seconds) >= 0:
        raise ValueError(
            f"checkpoint=(path, seconds) needs a number of seconds of at least 0; got {seconds!r}."
        )
    return Journal(path, float(seconds))


def check_fingerprints(journal: Journal, name: str, own: dict[str, str]) -> None:
    """Compare the fingerprints of this fit with those in the journal, where they are written first."""
    known = recall(journal, (name, "fingerprint", 0), dict[str, str], lambda: own)
    other = [what for what in own if known.get(what) != own[what]]
    if other or known.keys() != own.keys():
        raise ValueError(
            f"The checkpoint {str(journal.path)!r} is of another fit: its {', '.join(other)} "
            f"{'differs' if len(other) == 1 else 'differ'}. Delete it, or name another file."
        )


def recall(journal: Journal, key: tuple[str, str, int], kind: Any, compute: Callable[[], Any]) -> Any:
    """Return the recorded value of a key, of the type that is hinted, or compute and record it.

    A value that cannot be recorded, such as one of another package's class, is computed again.
    """
    record = journal.get(key)
    if record is None:
        value = compute()
        with suppress(ModelFileError):
            record = to_bytes(value)
            from_bytes(record)  # what cannot be read, as a frame of too many categories, is not written
            journal.add(key, record)
        return value
    try:
        value = from_bytes(record)
    except ModelFileError as error:
        raise journal.refused(f"has a record that cannot be read ({error})") from None
    if not fits(value, kind):
        raise journal.refused(f"has a {type(value).__name__} in place of what {key[1]!r} returns")
    return value


def measured(scan: Scan, frame: Frame) -> Scan:
    """Return a scan whose statistics have this frame."""
    return scan if scan.dS is None else scan._replace(dS=scan.dS.with_frame(frame))


def described(value: Any) -> str:
    """Return a description of a model, a learner or another value, equal for equal ones in any process."""
    if isinstance(value, np.ndarray):
        data = value.tolist() if value.dtype == object else np.ascontiguousarray(value).tobytes()
        return f"{value.dtype}{value.shape}{blake2b(repr(data).encode(), digest_size=16).hexdigest()}"
    if isinstance(value, str | bytes | int | float | complex | None):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(described, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{described(k)}: {described(v)}' for k, v in sorted(value.items()))}}}"
    if isinstance(value, np.random.RandomState):
        return described(list(value.get_state()))
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if is_dataclass(value):
        return name + described({f.name: getattr(value, f.name) for f in fields(value)})
    if isinstance(value, np.generic):
        return name + repr(value.item())
    return name + (described(vars(value)) if hasattr(value, "__dict__") else repr(value))
