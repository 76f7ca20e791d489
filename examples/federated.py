"""Three sites that may not share rows train one model: each answers with statistics, over a pipe.

Each site is a process with a file of its own. It tells the driver its categories and then, for every model
that the driver sends, the statistics of its rows: sums, as small for a billion rows as for ten. The model is
that of one fit on all rows, by the closed form and by risk-based calibration.

What a site reveals are these sums. They are no rows, but this is no proof of privacy: the counts of a rare
category, or sums over few rows, can tell of single ones. The authors of RC study such a setting without a
driver: A. Perez and others, arXiv 2507.17285.
"""

import multiprocessing
import sys
import tempfile
from functools import reduce
from pathlib import Path

import numpy as np

from riskbayes import CategoricalNB
from riskbayes.engines import Engine, MemoryEngine, Scan
from riskbayes.learners import RC, ClosedForm
from riskbayes.models import CategoricalModel
from riskbayes.models.base import Sample
from riskbayes.statistics import Statistics
from riskbayes.task import Task


def site(file, pipe, n_classes):
    """Answer questions about the rows of a file, until there are no more; no row leaves this process."""
    with np.load(file) as held:
        X, y = held["X"], held["y"]
    rows = MemoryEngine(X, y, None, n_classes)
    for question, *given in iter(pipe.recv, None):
        if question == "largest":  # the categories, and how many rows
            pipe.send((X.max(axis=0), len(y), rows.masses))
        else:  # "statistics" or "scan"
            pipe.send(getattr(rows, question)(*given))


class Sites(Engine):
    """An engine over the rows of all sites: it sends each question to all of them and adds the answers."""

    def __init__(self, pipes, n_classes):
        self.pipes, self.n_classes = pipes, n_classes
        largest, sizes, masses = zip(*self.ask("largest"), strict=True)
        self.largest, self.n_rows, self._masses = np.max(largest, axis=0), sum(sizes), sum(masses)

    def ask(self, *question):
        for pipe in self.pipes:
            pipe.send(question)
        return [pipe.recv() for pipe in self.pipes]

    @property
    def masses(self):
        return self._masses

    def learn(self, model):
        """Categories are all that this model learns before the loop: no row is needed."""
        none = np.zeros((1, len(self.largest)), dtype=int)
        return model.learn(Sample(none, np.zeros(1, dtype=int), None, self.n_classes, self.largest))

    def statistics(self, model, frame):
        return Statistics.merge(*self.ask("statistics", model, frame))

    def scan(self, fitted, objective, part=None, risks_only=False):
        scans = self.ask("scan", fitted, objective, None, risks_only)
        dS = None if risks_only else Statistics.merge(*(scan.dS for scan in scans))
        return Scan(dS, reduce(lambda a, b: a.plus(b), (scan.risks for scan in scans)))


def main():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3000)
    X = np.minimum(rng.integers(4, size=(3000, 6)) + y[:, None] * (rng.random((3000, 6)) < 0.4), 4)
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for number, rows in enumerate(np.array_split(np.arange(3000), 3)):
            file = Path(folder) / f"site{number}.npz"
            np.savez(file, X=X[rows], y=y[rows])
            here, there = multiprocessing.Pipe()
            process = multiprocessing.get_context("spawn").Process(target=site, args=(file, there, 2))
            process.start()
            pipes.append(here)
            processes.append(process)
        model, engine = CategoricalModel(alpha=1.0), Sites(pipes, 2)
        S = model.fix_prior(engine.statistics(model, engine.learn(model)))
        for learner in (ClosedForm(), RC(lr=0.2, max_iter=20, step="fixed", generative_weight=0.0)):
            outcome = learner.fit_statistics(Task(model, engine, S))
            whole = CategoricalNB(alpha=1.0, learner=learner).fit(X, y)
            gap = max(np.abs(outcome.fitted.S[name] - whole.statistics_[name]).max() for name in S)
            print(f"{type(learner).__name__}: largest difference from one fit on all rows {gap:.1e}")
        for pipe, process in zip(pipes, processes, strict=True):
            pipe.send(None)
            process.join()


if __name__ == "__main__":
    sys.exit(main())
