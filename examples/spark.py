"""Rows in Spark: every iteration maps the same block function over the partitions by `mapInArrow`.

Each partition returns one row, its statistics, and the driver adds a few of them. There are no RDDs, so that
it also runs over Spark Connect. Run it with `pip install riskbayes pyspark pandas pyarrow`, and Java.

PYSPARK_PYTHON names the Python of the workers, which must have riskbayes too and be of the driver's version.
Without it Spark takes the first `python3` of the PATH, often another one; here it is that of the driver.
On a cluster set it to that of the environment on the workers.
"""

import os
import pickle
import sys
from functools import reduce

import numpy as np
import pyarrow as pa

from riskbayes import GaussianNB
from riskbayes.engines import Engine, MemoryEngine, Scan
from riskbayes.learners import RC
from riskbayes.models import GaussianNBModel
from riskbayes.models.base import Sample
from riskbayes.statistics import Statistics
from riskbayes.task import Task


class SparkEngine(Engine):
    """An engine over the rows of a Spark data frame: columns of numbers, and `label`, codes from 0."""

    def __init__(self, frame, n_classes):
        self.frame, self.n_classes = frame.cache(), n_classes
        self.names = [name for name in frame.columns if name != "label"]
        self._masses = sum(self.each(lambda block: block.masses))
        self.n_rows = int(self._masses.sum())

    def each(self, work):
        """Return work(block) for each batch of rows of each partition, pickled as one cell on the way."""
        names, n_classes = self.names, self.n_classes

        def on_batches(batches):
            for batch in batches:
                if batch.num_rows:
                    X = np.column_stack([batch.column(name).to_numpy() for name in names])
                    block = MemoryEngine(X, batch.column("label").to_numpy(), None, n_classes)
                    yield pa.RecordBatch.from_pydict({"found": [pickle.dumps(work(block))]})

        found = self.frame.mapInArrow(on_batches, "found binary").collect()
        return [pickle.loads(row["found"]) for row in found]

    @property
    def masses(self):
        return self._masses

    def learn(self, model):
        rows = self.frame.limit(10_000).toPandas()
        X, y = rows[self.names].to_numpy(), rows["label"].to_numpy()
        return model.learn(Sample(X, y, None, self.n_classes, np.full(X.shape[1], np.inf)))

    def statistics(self, model, frame):
        return Statistics.merge(*self.each(lambda block: block.statistics(model, frame)))

    def scan(self, fitted, objective, part=None, risks_only=False):
        scans = self.each(lambda block: block.scan(fitted, objective, risks_only=risks_only))
        dS = None if risks_only else Statistics.merge(*(scan.dS for scan in scans))
        return Scan(dS, reduce(lambda a, b: a.plus(b), (scan.risks for scan in scans)))


def main():
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # before the session starts
    from pyspark.sql import SparkSession

    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    X = rng.standard_normal((2000, 4)) + 0.5 * y[:, None]
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    columns = [*(f"x{j}" for j in range(4)), "label"]
    frame = spark.createDataFrame([(*map(float, x), int(k)) for x, k in zip(X, y, strict=True)], columns)
    model, learner = GaussianNBModel(), RC(lr=0.2, max_iter=3, step="fixed", generative_weight=0.0)
    engine = SparkEngine(frame.repartition(3), 2)
    S = model.fix_prior(engine.statistics(model, engine.learn(model)))
    outcome = learner.fit_statistics(Task(model, engine, S))
    Z = model.encode(X, outcome.fitted.S.frame)
    joint = GaussianNB(prior=None, learner=learner).fit(X, y).predict_joint_log_proba(X)
    gap = np.abs(model.log_joint(Z, outcome.fitted.theta) - joint).max()
    print(f"RC: largest difference of a log joint from one fit in memory {gap:.1e}")
    spark.stop()


if __name__ == "__main__":
    sys.exit(main())
