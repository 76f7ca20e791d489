"""One fused RC iteration of QDA against its two matrix products alone, and the memory it takes.

The floor is what no implementation with full products can avoid: for each class `X @ L` (the
forward product) and `(X * w).T @ X` (the second moments). Both sides run in this process, in turn,
and the least of ten is taken. Run: python benchmarks/iteration.py
"""

import tracemalloc
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_info

from riskbayes.engines import MemoryEngine
from riskbayes.learners.objectives import LogLoss
from riskbayes.models import QDAModel

M, N, R, TURNS = 20_000, 256, 5, 10


def main() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(R, size=M)
    X = rng.standard_normal((M, N)) + 0.05 * rng.standard_normal((R, N))[y]  # classes overlap: no row is idle
    L, w = rng.standard_normal((R, N, N)), rng.standard_normal((M, R))

    model = QDAModel(covariance_strength=10.0)
    engine = MemoryEngine(model, model.prepare(X), y, None, R)
    S = engine.statistics()
    engine.model = model = model.bind(S)

    def iteration() -> None:
        engine.scan(model.parameters(S), LogLoss())

    def products() -> None:
        for k in range(R):
            X @ L[k]
            (X * w[:, k, None]).T @ X

    times = {iteration: [], products: []}
    for _ in range(TURNS):
        for job in times:
            start = perf_counter()
            job()
            times[job].append(perf_counter() - start)
    ours, floor = min(times[iteration]), min(times[products])

    tracemalloc.start()
    iteration()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    print(f"QDA, {M} x {N}, {R} classes, float64, {threads} BLAS threads, least of {TURNS}")
    print(f"one RC iteration         {ours * 1e3:8.1f} ms")
    print(f"its two products alone   {floor * 1e3:8.1f} ms")
    print(f"time ratio               {ours / floor:8.2f}    (at most 1.5)")
    allowed = 0.3 * X.nbytes + 64e6
    print(
        f"peak extra memory        {peak / 1e6:8.1f} MB = {peak / X.nbytes:.2f} x X"
        f"    (at most {allowed / 1e6:.0f} MB)"
    )


if __name__ == "__main__":
    main()
