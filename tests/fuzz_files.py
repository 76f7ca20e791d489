"""Mutate model files and checkpoints, load and use them: no crash, no hang, no code run, bounded memory.

    python tests/fuzz_files.py --cases 100000 --seed 0 --jobs 2
    python tests/fuzz_files.py --seed 0 --case 123        # one of them again

A case is determined by its seed and its number. Files are refused by a `ModelFileError`; after loading, a
method may raise any exception, and so may a fit that goes on from a checkpoint. Workers are processes of
their own: one that dies, or does not answer, is reported with the case that it was at, and another goes on
after it.
"""

import os

# Before NumPy and SciPy are imported: one core for each process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import argparse
import inspect
import json
import pickle
import resource
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import array_api_compat.numpy  # noqa: F401  # imported late otherwise
import numpy as np
from sklearn.base import clone

import riskbayes
from fuzzing.file_mutations import mutated, mutated_checkpoint
from fuzzing.saved_models import fits
from riskbayes.exceptions import ModelFileError
from riskbayes.models import hats
from riskbayes.persistence.registry import declared, own_classes, parameter_defaults
from riskbayes.scanners import kernels
from riskbayes.scanners.kernels import sparse

SLOWEST = 5.0
"""Seconds of computing that a case may take."""

SILENCE = 60.0
"""Seconds without a word of a worker after which it counts as hanging: the machine may be busy."""

MEMORY = 2**30
"""Bytes that a worker may take beyond what it has after its first fits."""

SUSPECT = (
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "socket."),
    *("exec", "compile", "import", "pickle.find_class", "ctypes.", "os.remove", "os.rename", "os.rmdir"),
    *("shutil.", "urllib.", "code.__new__", "function.__new__", "webbrowser."),
)
"""Beginnings of the names of audit events that no file may cause."""


class Watch:
    """Records what Python's audit events tell of code that runs and files that are written."""

    def __init__(self) -> None:
        self.armed, self.seen, self.written = False, [], ""
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple) -> None:
        if not self.armed:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = (isinstance(mode, str) and set(mode) & set("wax+")) or (flags or 0) & (
                os.O_WRONLY | os.O_RDWR
            )
            known = isinstance(path, int) or str(path) == self.written  # a descriptor was opened by its path
            if writes and not known and not is_compiler(sys._getframe(1)):
                self.seen.append(f"open {path!r}")
        elif event.startswith(SUSPECT) and not is_installed(event, arguments):
            self.seen.append(f"{event} {str(arguments[:1])[:100]}")


def is_installed(event: str, arguments: tuple) -> bool:
    """True if an event is the import of a module of a package that is in use already."""
    if event == "import":  # Arrow looks whether there is a pytz
        return arguments[0].split(".")[0] in sys.modules or arguments[0] == "pytz"
    if is_compiler(sys._getframe(2)):  # numba reads its cache of compiled code, which is a pickle
        return True
    code = getattr(arguments[0], "co_filename", "") if event == "exec" else ""
    return code.endswith(".py") and code.startswith(
        (sys.prefix, sys.base_prefix, str(Path(np.__file__).parents[1]))
    )


def is_compiler(frame: Any) -> bool:
    """True if a frame, or one that called it, is numba's, or reads the signature of one of our classes."""
    while frame is not None:
        if f"{os.sep}numba{os.sep}" in frame.f_code.co_filename or frame.f_code is inspect.signature.__code__:
            return True
        frame = frame.f_back
    return False


WATCH: list[Watch] = []


@dataclass
class Corpus:
    """Saved models, each with its checkpoint, if it may have one, and with the rows that it was fitted to."""

    names: list[str] = field(default_factory=list)
    files: list[bytes] = field(default_factory=list)
    checkpoints: list[bytes] = field(default_factory=list)
    rows: list[tuple[Any, Any]] = field(default_factory=list)

    @classmethod
    def made(cls, every: int = 1) -> "Corpus":
        """Fit and save one model of each kind, or of every so many."""
        found = cls()
        with tempfile.TemporaryDirectory() as folder:
            for fit in fits(every):
                path = fit.clf.save(f"{folder}/model.rb", created="2026-01-01T00:00:00+00:00")
                found.names.append(fit.name)
                found.files.append(path.read_bytes())
                found.rows.append((fit.X, fit.y))
                checkpoint = Path(folder, fit.name)
                with suppress(ValueError), warnings.catch_warnings():  # no strategy but "single" has one
                    warnings.simplefilter("ignore")
                    clone(fit.clf).fit(fit.X, fit.y, checkpoint=checkpoint)
                found.checkpoints.append(checkpoint.read_bytes() if checkpoint.exists() else b"")
        return found


ORDINARY = (ValueError, np.linalg.LinAlgError)
"""What `predict_proba` of a model that loads may raise: numbers may be wrong, but have their places."""

METHODS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "predict": lambda clf, X, y: clf.predict(X),
    "score_samples": lambda clf, X, y: clf.score_samples(X),
    "explain": lambda clf, X, y: clf.explain(X),
    "sample": lambda clf, X, y: clf.sample(3, random_state=0),
    "impute": lambda clf, X, y: clf.impute(X),
    "calibrate": lambda clf, X, y: clf.calibrate(X, y),
    "partial_fit": lambda clf, X, y: clf.partial_fit(X, y),
    "with_priors": lambda clf, X, y: clf.with_priors(np.ones(3) / 3).predict_proba(X),
    "columns_": lambda clf, X, y: clf.columns_,
    "repr": lambda clf, X, y: repr(clf),
}
"""What is called beside `predict_proba` of a model that loads: one of these, at random."""


def compiled_rows(small: bool) -> None:
    """Make even the smallest tables go through compiled code, or as usual only large ones."""
    kernels.SMALLEST = 0 if small else 2_000_000
    sparse.SMALLEST = 0 if small else 2**19
    assert hats.is_worth_it is kernels.is_worth_it


def run_case(seed: int, number: int, corpus: Corpus, folder: str) -> dict[str, Any]:
    """Mutate a file, load it, use it; return the mutation, the outcome and what was wrong."""
    rng = np.random.default_rng([seed, number])
    which = int(rng.integers(len(corpus.files)))
    data, clf, (X, y) = corpus.checkpoints[which], None, corpus.rows[which]
    path = Path(folder, "model.rb")
    if data and rng.random() < 0.3:
        path.write_bytes(corpus.files[which])
        clf = clone(riskbayes.load(path))
        mutation, data = mutated_checkpoint(data, rng)
    else:
        mutation, data = mutated(corpus.files[which], rng)
    path.write_bytes(data)
    small, method = bool(rng.random() < 0.3), list(METHODS)[rng.integers(len(METHODS))]
    compiled_rows(small)
    watch, faults = WATCH[0], []
    watch.seen.clear()
    watch.written = "" if clf is None else str(path)
    start, watch.armed = time.process_time(), True
    try:
        outcome = attempt(path, X[:5], y[:5], method, faults) if clf is None else go_on(clf, X, y, path)
    finally:
        watch.armed = False
    seconds = time.process_time() - start
    faults += [f"code ran or a file was written: {event}" for event in watch.seen[:3]]
    if seconds > SLOWEST:
        faults.append(f"it took {seconds:.1f} s")
    return {"model": corpus.names[which], "mutation": mutation, "outcome": outcome, "faults": faults}


def attempt(path: Path, X: Any, y: Any, method: str, faults: list[str]) -> str:
    """Load and use a file; return how it ended, and add to the faults what must not happen."""
    try:
        clf = riskbayes.load(path)
    except ModelFileError as error:
        if len(str(error)) > 700 or "\n" in str(error):
            faults.append(f"no sentence: {str(error)[:200]!r}")
        return "refused"
    except Exception as error:
        faults.append(f"load raises {type(error).__name__}: {str(error)[:200]}")
        return "refused"
    outcome = "predicts"
    try:
        clf.predict_proba(X)
    except Exception as error:
        outcome = f"predict_proba raises {type(error).__name__}"
        if not isinstance(error, ORDINARY):
            faults.append(f"{outcome}: {str(error)[:200]}")
    with suppress(Exception):  # not all models have all methods
        METHODS[method](clf, X, y)
    return outcome


def go_on(clf: Any, X: Any, y: Any, path: Path) -> str:
    """Fit from a checkpoint and predict; return how it ended."""
    try:
        clf.fit(X, y, checkpoint=path).predict_proba(X)
    except Exception as error:
        return f"fit raises {type(error).__name__}"
    return "fits"


def work(corpus_file: str, seed: int, first: int, last: int, step: int) -> None:
    """Run cases in this process and print a line of JSON before and after each; a model may print too."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    corpus = Corpus(*pickle.loads(Path(corpus_file).read_bytes()))
    WATCH.append(Watch())
    with tempfile.TemporaryDirectory() as folder:
        warm_up(corpus, folder)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        for number in range(first, last, step):
            print(json.dumps({"number": number}), file=out, flush=True)
            report = run_case(seed, number, corpus, folder)
            print(json.dumps({"number": number, **report}), file=out, flush=True)


def warm_up(corpus: Corpus, folder: str) -> None:
    """Load and use every model as it is, so that all modules are imported and all functions compiled."""
    path = Path(folder, "model.rb")
    for kind in own_classes().values():
        declared(kind)  # evaluates our own annotations
        parameter_defaults(kind)
    every = zip(corpus.files, corpus.checkpoints, corpus.rows, strict=True)
    for turn, (data, checkpoint, (X, y)) in enumerate(every):
        for small in (False, True):
            path.write_bytes(data)
            compiled_rows(small)
            attempt(path, X[:5], y[:5], list(METHODS)[turn % len(METHODS)], [])
            if checkpoint:
                clf = clone(riskbayes.load(path))
                path.unlink()
                go_on(clf, X, y, path)


class Worker:
    """A process that runs every so many cases."""

    def __init__(self, corpus_file: str, seed: int, first: int, last: int, step: int):
        self.arguments = (corpus_file, seed, last, step)
        self.number, self.done = first, False
        self._start(first)

    def _start(self, first: int) -> None:
        corpus_file, seed, last, step = self.arguments
        code = f"import fuzz_files; fuzz_files.work({corpus_file!r}, {seed}, {first}, {last}, {step})"
        paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
        )
        self.text, self.heard, self.running = (
            b"",
            time.monotonic() + 300,
            False,
        )  # it imports and compiles first

    def reports(self) -> list[dict[str, Any]]:
        """Return the cases that ended since; restart a worker that died or hangs after the case it was at."""
        assert self.process.stdout is not None
        found, over, pipe = [], False, self.process.stdout.fileno()
        while not over and select.select([pipe], [], [], 0)[0]:
            read = os.read(pipe, 2**16)
            over, self.text = not read, self.text + read
        *lines, self.text = self.text.split(b"\n")
        for report in map(json.loads, lines):
            self.heard, self.running, self.number = time.monotonic(), True, report["number"]
            if "outcome" in report:
                found.append(report)
                self.number += self.arguments[3]
        if over:
            return [*found, *self._ended()]
        if time.monotonic() > self.heard + SILENCE:
            self.process.kill()
            return [*found, *self._ended(f"it hangs for {SILENCE:.0f} s")]
        return found

    def _ended(self, why: str | None = None) -> list[dict[str, Any]]:
        code = self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        if code == 0 and why is None:
            self.done = True
            return []
        if not self.running:
            raise RuntimeError(f"A worker ended with {code} before its first case.")
        last, step, number = self.arguments[2], self.arguments[3], self.number
        self.done = number + step >= last
        if not self.done:
            self._start(number + step)
        fault = why or f"the process ended with {code}"
        return [{"number": number, "model": "?", "mutation": "?", "outcome": "crash", "faults": [fault]}]


def run_cases(seed: int, cases: int, jobs: int, corpus: Corpus, told: bool = True) -> tuple[Counter, int]:
    """Run cases in worker processes; return how they ended, by mutation, and how many have faults."""
    counts: Counter = Counter()
    faulty, start, last = 0, time.monotonic(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        corpus_file = Path(folder, "corpus")
        corpus_file.write_bytes(pickle.dumps((corpus.names, corpus.files, corpus.checkpoints, corpus.rows)))
        workers = [Worker(str(corpus_file), seed, j, cases, jobs) for j in range(min(jobs, cases))]
        while not all(worker.done for worker in workers):
            time.sleep(0.05)
            for report in (report for w in workers if not w.done for report in w.reports()):
                counts[report["mutation"], report["outcome"]] += 1
                faulty += bool(report["faults"])
                for fault in report["faults"]:
                    command = f"python tests/fuzz_files.py --seed {seed} --case {report['number']}"
                    print(f"{command}  # {report['model']}, {report['mutation']}: {fault}", flush=True)
            seconds = time.monotonic() - start
            if told and seconds > last + 10:
                last, done = seconds, sum(counts.values())
                print(
                    f"{done}/{cases} cases, {done / seconds:.0f} a second, {faulty} with faults", flush=True
                )
    return counts, faulty


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="Load and use mutated model files.")
    parser.add_argument("--cases", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--case", type=int, help="repeat this case alone")
    parser.add_argument("--every", type=int, default=1, help="use every so many of the models (default: 1)")
    options = parser.parse_args(arguments)
    corpus = Corpus.made(options.every)
    if options.case is not None:
        WATCH.append(Watch())
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warm_up(corpus, folder)
            report = run_case(options.seed, options.case, corpus, folder)
        print(json.dumps(report, indent=1))
        return int(bool(report["faults"]))
    counts, faulty = run_cases(options.seed, options.cases, options.jobs, corpus)
    for (mutation, outcome), number in sorted(counts.items()):
        print(f"{mutation:20} {outcome:30} {number:7d}")
    number = sum(counts.values())
    print(f"{number} cases of seed {options.seed}, {len(corpus.files)} models: {faulty} with faults")
    return int(faulty > 0)


if __name__ == "__main__":
    sys.exit(main())
