"""Time, memory and bytes of rows on a disk and on Dask, at sizes that do not fit into memory.

`python benchmarks/scale.py categorical numbers dask distinct memmap costs` runs these cases; `--scale 0.01`
runs all at a hundredth of the size, `--folder` says where to generate the files (they are removed). Each
measurement is a process of its own, so that its peak of resident memory is its own too. Beside the seconds
stand those of the processors (user and system, of workers too), which depend less on what else the machine
does.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.optimize import nnls

SEED, BATCH = 0, 2**17


# --- files ------------------------------------------------------------------------------------------


def write_rows(path, m, make, names):
    """Write m generated rows to a Parquet file, a batch at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer, rng = None, np.random.default_rng(SEED)
    for start in range(0, m, BATCH):
        X, y = make(rng, min(BATCH, m - start))
        table = pa.table({**{name: X[:, j] for j, name in enumerate(names)}, "label": y})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def categories(rng, m, n=20, k=10):
    """Codes of n columns with k categories, a third of which depend on the class."""
    y = rng.integers(2, size=m, dtype=np.uint8)
    X = rng.integers(k - 1, size=(m, n), dtype=np.uint8)
    X[:, ::3] += y[:, None] & (rng.random((m, len(range(0, n, 3)))) < 0.3)
    return X, y


def gaussians(rng, m, n=50, r=3):
    """Numbers with a mean for each class, correlated."""
    y = rng.integers(r, size=m, dtype=np.uint8)
    means = np.random.default_rng(1).standard_normal((r, n)) * 0.3
    X = rng.standard_normal((m, n))
    X[:, 1:] += 0.5 * X[:, :-1]
    return X + means[y], y


def few_values(rng, m):
    """Six columns of four categories."""
    return categories(rng, m, n=6, k=4)


# --- what is measured, each in a process ------------------------------------------------------------


def processor_seconds():
    """Return the seconds that processors worked for this process."""
    times = os.times()
    return times.user + times.system


def timed(work):
    """Return the seconds of some work, and those of the processors."""
    before, start = processor_seconds(), perf_counter()
    work()
    return {"seconds": perf_counter() - start, "cpu": processor_seconds() - before}


def fastest(found):
    """Return the measurement of the least time."""
    return min(found, key=lambda each: each["seconds"])


def disk_fit(path, which):
    """Fit from the file; return the time and the iterations."""
    import riskbayes
    from riskbayes.learners import RC

    clf = {
        "categorical": lambda: riskbayes.CategoricalNB(
            learner=RC(max_iter=10, monitor="log_loss", step="fixed", generative_weight=0.0)
        ),
        "recipe": riskbayes.RiskBayesClassifier,
    }[which]()
    warm(clf, which)
    found = timed(lambda: clf.fit(riskbayes.rows(path, target="label")))
    return found | {"n_iter": clf.n_iter_, "log_loss": clf.history_["log_loss"][-1]}


def warm(clf, which):
    """Fit a few rows in memory, so that kernels are compiled before anything is measured."""
    clf.fit(*(categories if which == "categorical" else gaussians)(np.random.default_rng(1), 10**5))


def memory_fit(path, which, share):
    """Fit an array of the first `share` of the rows; return the time of the fit alone."""
    import pyarrow.parquet as pq

    import riskbayes
    from riskbayes.learners import RC

    file = pq.ParquetFile(path)
    groups = list(range(max(1, round(file.num_row_groups * share))))
    table = file.read_row_groups(groups)
    X = np.column_stack([table[name].to_numpy() for name in table.column_names[:-1]])
    y = table["label"].to_numpy()
    del table
    clf = {
        "categorical": lambda: riskbayes.CategoricalNB(
            learner=RC(max_iter=10, monitor="log_loss", step="fixed", generative_weight=0.0)
        ),
        "recipe": riskbayes.RiskBayesClassifier,
    }[which]()
    warm(clf, which)
    found = fastest([timed(lambda: clf.fit(X, y)) for _ in range(2)])
    return found | {"rows": len(y), "n_iter": clf.n_iter_}


def sgd_fit(path, coded):
    """One pass of SGDClassifier over the file, one-hot if the columns are codes."""
    import pyarrow.parquet as pq
    from scipy.sparse import csr_array
    from sklearn.linear_model import SGDClassifier

    start, clf = perf_counter(), SGDClassifier(loss="log_loss", random_state=0)
    for batch in pq.ParquetFile(path).iter_batches(BATCH):
        X = np.column_stack([batch.column(j).to_numpy() for j in range(batch.num_columns - 1)])
        y = batch.column("label").to_numpy()
        if coded:
            m, n = X.shape
            columns = (X + 10 * np.arange(n)).ravel().astype(np.int32)
            ends = np.arange(0, m * n + 1, n, dtype=np.int32)
            X = csr_array((np.ones(m * n), columns, ends), shape=(m, 10 * n))
        clf.partial_fit(X, y, classes=[0, 1] if coded else [0, 1, 2])
    return {"seconds": perf_counter() - start}


def lightgbm_fit(path, coded):
    """LightGBM, 20 trees, whose data set is made of the file's row groups."""
    import lightgbm as lgb
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    names = file.schema_arrow.names[:-1]

    class Groups(lgb.Sequence):
        batch_size = BATCH
        held = None, None

        def __len__(self):
            return file.metadata.num_rows

        def group(self, i):
            if self.held[0] != i:
                table = file.read_row_group(i, columns=names)
                self.held = i, np.column_stack([table[name].to_numpy() for name in names]).astype(np.float64)
            return self.held[1]

        def __getitem__(self, index):
            if isinstance(index, slice):
                start, stop, _ = index.indices(len(self))
                parts, at = [], start
                while at < stop:
                    rows = self.group(at // BATCH)[at % BATCH : at % BATCH + stop - at]
                    parts.append(rows)
                    at += len(rows)
                return np.concatenate(parts)
            return self.group(index // BATCH)[index % BATCH]

    start = perf_counter()
    label = pq.read_table(path, columns=["label"])["label"].to_numpy()
    data = lgb.Dataset(Groups(), label, categorical_feature=list(range(len(names))) if coded else "auto")
    params = {"objective": "binary"} if coded else {"objective": "multiclass", "num_class": 3}
    lgb.train({**params, "verbose": -1}, data, num_boost_round=20)
    return {"seconds": perf_counter() - start}


def dask_fit(path, share, workers):
    """Fit QDA on Dask with workers of one thread, or in memory (0 workers); return times and bytes sent."""
    import pyarrow.parquet as pq

    import riskbayes
    from riskbayes.learners import RC

    clf = riskbayes.QuadraticDiscriminantAnalysis(
        learner=RC(max_iter=10, monitor="log_loss", step="fixed", generative_weight=0.0)
    )
    file = pq.ParquetFile(path)
    groups = max(1, round(file.num_row_groups * share))

    def read(i):
        table = pq.ParquetFile(path).read_row_group(i)
        return np.column_stack([table[name].to_numpy() for name in table.column_names])

    if not workers:
        table = np.concatenate([read(i) for i in range(groups)])
        X, y = table[:, :-1].copy(), table[:, -1].astype(int)
        del table
        found = fastest([timed(lambda: clf.fit(X, y)) for _ in range(2)])
        return found | {"rows": len(y), "n_iter": clf.n_iter_}
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    with (
        LocalCluster(workers, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster,
        Client(cluster) as client,
    ):
        sizes = [file.metadata.row_group(i).num_rows for i in range(groups)]
        width = len(file.schema_arrow.names)
        parts = [da.from_delayed(dask.delayed(read)(i), (m, width), float) for i, m in enumerate(sizes)]
        table = da.concatenate(parts).persist()
        X, y = table[:, :-1].persist(), table[:, -1].astype(int).persist()
        client.gather(client.submit(sum, [0]))
        dask.compute(X[-1:], y[-1:])
        del table, parts
        times, sent = [], []
        for most in (1, 10, 10):  # the difference is what nine iterations send
            before, worked = to_driver(client), sum(client.run(processor_seconds).values())
            clf.set_params(learner__max_iter=most)
            found = timed(lambda: clf.fit(X, y))
            found["cpu"] += sum(client.run(processor_seconds).values()) - worked
            times.append(found)
            sent.append((to_driver(client) - before, clf.n_iter_))
        each = (sent[1][0] - sent[0][0]) / (sent[1][1] - sent[0][1])
        size = sum(value.nbytes for value in clf.statistics_.values())
        return fastest(times[1:]) | {"rows": sum(sizes), "n_iter": clf.n_iter_, "sent": each / size}


def to_driver(client):
    """Bytes of results that left the workers and did not go to another worker, by Dask's metrics."""

    def metrics(dask_worker):
        return dask_worker.transfer_outgoing_bytes_total - sum(
            each["total"] for each in dask_worker.transfer_incoming_log
        )

    return sum(client.run(metrics).values())


def merged_fit(path, merge):
    """Fit categories with or without merging identical rows."""
    import riskbayes
    from riskbayes.learners import RC

    clf = riskbayes.CategoricalNB(
        learner=RC(max_iter=10, monitor="log_loss", step="fixed", generative_weight=0.0)
    )
    found = timed(lambda: clf.fit(riskbayes.rows(path, target="label", merge=merge)))
    return found | {"log_loss": clf.history_["log_loss"][-1]}


def mapped_fit(path, m, which, as_rows):
    """Fit an array that is mapped from a file; return the memory that was not that of the file, in MB."""
    import riskbayes
    from riskbayes.learners import RC

    clf = getattr(riskbayes, which)()
    clf = clf.set_params(learner=RC(max_iter=3)) if "learner" in clf.get_params() else clf
    X = np.memmap(path, dtype=np.float64, mode="r", shape=(m, 50))
    y = np.random.default_rng(SEED).integers(2, size=m)
    clf.fit(np.array(X[:1000]), y[:1000])
    held, over = [anonymous_memory()], threading.Event()

    def watch():
        while not over.wait(0.02):
            held.append(anonymous_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    found = timed(lambda: clf.fit(riskbayes.rows(X, y)) if as_rows else clf.fit(X, y))
    over.set()
    watcher.join()
    return found | {"above": (max(held) - held[0]) / 1024}


def anonymous_memory():
    """Return the resident memory of this process that is no part of a file, in KiB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


COST_BLOCK = 2**16
"""Rows of a partition of the cases of costs."""


def cost_block(model, number, m, n, r):
    """Return one partition of generated rows; it is made where it stays."""
    from riskbayes.engines import MemoryEngine

    rng = np.random.default_rng([SEED, number])
    X, y = categories(rng, m, n) if model == "CategoricalModel" else gaussians(rng, m, n, r)
    return MemoryEngine(X, y.astype(np.int64), None, r)


def scan_costs(model, m, n, r, workers):
    """Return the seconds of a scan on Dask, and the bytes of the statistics."""
    import dask
    from distributed import Client, LocalCluster

    import riskbayes.models as models
    from riskbayes.engines.dask import DaskEngine
    from riskbayes.models.base import Fitted
    from riskbayes.objectives import LogLoss

    made, make = getattr(models, model)(), dask.delayed(cost_block, pure=False)
    starts = range(0, m, COST_BLOCK)
    with (
        LocalCluster(workers, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "riskbayes")  # before its tasks come: a worker imports in more than one thread
        engine = DaskEngine([make(model, at, min(COST_BLOCK, m - at), n, r) for at in starts], r)
        S = made.fix_prior(engine.statistics(made, engine.learn(made)))
        fitted = Fitted.of(made, S)
        times = [timed(lambda: engine.scan(fitted, LogLoss()))["seconds"] for _ in range(6)]
    return {"seconds": float(np.median(times[1:])), "S": sum(v.nbytes for v in S.values())}


# --- cases ------------------------------------------------------------------------------------------


def in_process(function, *args):
    """Return what a function of this file returns in a process of its own, with its peak memory in MB."""
    command = [sys.executable, __file__, "--run", json.dumps([function.__name__, *args])]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    if found.returncode:
        raise RuntimeError(found.stderr[-3000:])
    return json.loads(found.stdout.splitlines()[-1])


def line(name, found, more=""):
    cpu = f"({found['cpu']:.1f} s of processors)" if "cpu" in found else ""
    print(
        f"  {name:36s} {found['seconds']:8.1f} s {cpu:26s} peak {found['peak']:6.0f} MB   {more}", flush=True
    )


def from_disk(title, which, m, make, n, coded, bound, folder):
    """Print a fit from disk beside ten fits in memory of a tenth, and its peers."""
    path = str(folder / f"{which}.parquet")
    write_rows(path, m, make, [f"x{j}" for j in range(n)])
    print(f"{title}: {m:,} rows x {n} columns, {os.path.getsize(path) / 1e6:.0f} MB of Parquet")
    found = in_process(disk_fit, path, which)
    line("riskbayes.rows", found, f"{found['n_iter']} iterations; bound {bound} MB")
    tenth = in_process(memory_fit, path, which, 0.1)
    ratio = found["seconds"] / (tenth["seconds"] * m / tenth["rows"])
    line(
        "in memory, a tenth",
        tenth,
        f"{tenth['n_iter']} iterations; from disk takes {ratio:.2f} times ten of it",
    )
    line("SGDClassifier, one pass from disk", in_process(sgd_fit, path, coded))
    line("LightGBM, 20 trees from disk", in_process(lightgbm_fit, path, coded))
    os.remove(path)


def case_categorical(scale, folder):
    from_disk("Categories", "categorical", int(2e7 * scale), categories, 20, True, 1000, folder)


def case_numbers(scale, folder):
    from_disk("Numbers, RiskBayesClassifier", "recipe", int(4e6 * scale), gaussians, 50, False, 1500, folder)


def case_dask(scale, folder):
    m, path = int(2e6 * scale), str(folder / "dask.parquet")
    write_rows(path, m, gaussians, [f"x{j}" for j in range(50)])
    print(f"QDA, {m:,} rows x 50 columns, 10 iterations")
    memory = in_process(dask_fit, path, 1.0, 0)
    line("in memory, two threads", memory)
    for workers in (2,):
        found = in_process(dask_fit, path, 1.0, workers)
        more = f"{found['seconds'] / memory['seconds']:.2f} times, {found['cpu'] / memory['cpu']:.2f} by "
        more += "processors; "
        more += f"{found['sent']:.2f} statistics an iteration to the driver"
        line(f"Dask, {workers} workers", found, more)
    os.remove(path)


def case_distinct(scale, folder):
    from riskbayes.engines.distinct import merge_rows
    from riskbayes.preprocessing import KMeansBins
    from riskbayes_paper.datasets import load_csv

    data = os.environ.get("RISKBAYES_DATA")
    if data:
        adult = load_csv("adult_coded", Path(data))
        codes = KMeansBins().fit_transform(np.asarray(adult.X, dtype=float))
        labels = np.unique(adult.y, return_inverse=True)[1]
        kept = len(merge_rows(codes.astype(np.int64), labels, None)[1])
        print(
            f"adult, five bins: {len(labels):,} rows, {kept:,} distinct: {len(labels) / kept:.2f} times fewer"
        )
    path = str(folder / "few.parquet")
    write_rows(path, int(2e7 * scale), few_values, [f"x{j}" for j in range(6)])
    print(f"{int(2e7 * scale):,} rows x 6 columns of 4 categories")
    line("as they are", in_process(merged_fit, path, False))
    line("merged", in_process(merged_fit, path, True))
    os.remove(path)


MODELS = {
    "CategoricalModel": (lambda m, n, r: 4 * m * n * r, lambda n, r: r * (1 + 9 * n + -(-n // 3))),
    "GaussianNBModel": (lambda m, n, r: 8 * m * n * r, lambda n, r: r * (1 + 2 * n)),
    "LDAModel": (lambda m, n, r: 4 * m * n * r, lambda n, r: r * (1 + n) + n * n),
    "QDAModel": (lambda m, n, r: 4 * m * n * n * r, lambda n, r: r * (1 + n + n * n)),
}
"""Operations of a scan, and numbers of the statistics, as doc/scale.md has them."""


SIZES = ((1, 4e5, 20), (1, 8e5, 50), (1, 1e5, 50), (1, 4e5, 50), (2, 4e5, 50), (2, 8e5, 50))
"""Workers, rows and columns of the cases below. The first two differ in columns too: partitions of one size
would not tell the time of a task from that of its operations."""

CALIBRATED = 2
"""The first so many of them give the two constants of the formula; the others are predicted by it."""


def case_costs(scale, folder):
    print(
        f"Seconds of a scan on Dask beside the formula: partitions x t + operations / (workers x rate). The "
        f"first {CALIBRATED} lines of a model give t and the rate, the others are predicted."
    )
    for model, (operations, numbers) in MODELS.items():
        r = 2 if model == "CategoricalModel" else 3
        sizes = [(workers, int(m * scale), n) for workers, m, n in SIZES]
        found = [in_process(scan_costs, model, m, n, r, workers) for workers, m, n in sizes]
        seconds = np.array([each["seconds"] for each in found])
        terms = np.array([[-(-m // COST_BLOCK), operations(m, n, r) / workers] for workers, m, n in sizes])
        # Least squares of relative errors, with neither constant below zero.
        known = terms[:CALIBRATED] / seconds[:CALIBRATED, None]
        unit = known.max(axis=0)
        task, pace = nnls(known / unit, np.ones(len(known)))[0] / unit
        print(f"  {model}: t {1e3 * task:.1f} ms, rate {1e-9 / max(pace, 1e-30):.2f} G/s")
        for (workers, m, n), each, own in zip(sizes, found, terms, strict=True):
            said = own @ (task, pace)
            print(
                f"    {workers} workers {m:8,} x {n}: {each['seconds']:.4f} s, formula {said:.4f} "
                f"({each['seconds'] / said:.2f}); statistics {each['S']} bytes, formula {8 * numbers(n, r)}",
                flush=True,
            )


def case_memmap(scale, folder):
    m, path = int(1e6 * scale), str(folder / "mapped")
    X, rng = np.memmap(path, dtype=np.float64, mode="w+", shape=(m, 50)), np.random.default_rng(SEED)
    for start in range(0, m, BATCH):
        X[start : start + BATCH] = rng.poisson(3.0, size=X[start : start + BATCH].shape)
    X.flush()
    print(f"{m:,} x 50 numbers mapped from a file of {X.nbytes / 2**20:.0f} MB: memory besides the file")
    for which in ("GaussianNB", "QuadraticDiscriminantAnalysis", "CategoricalNB", "SmoothNB"):
        for as_rows in (False, True):
            found = in_process(mapped_fit, path, m, which, as_rows)
            given = "riskbayes.rows(X, y)" if as_rows else "X, y"
            line(f"{which}, {given}", found, f"{found['above']:.0f} MB above those before the fit")
    os.remove(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    cases = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    parser.add_argument("cases", nargs="*", default=list(cases))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--run", default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        name, *given = json.loads(args.run)
        found = globals()[name](*given)
        found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for name in args.cases:
            cases[name](args.scale, Path(folder))


if __name__ == "__main__":
    main()
