"""Temporary arrays of a scan are not given back to the system and asked for again in a Dask worker."""

import platform
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import resource
    import numpy as np
    from riskbayes.allocation import KeptMemory

    def faults():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(50):
            np.ones(2**17)  # 256 pages
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    outside = faults()
    with KeptMemory():
        with KeptMemory():
            faults()
        inside = faults()
    print(outside, inside, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such setting")
def test_memory_is_kept_within_the_context_only():
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        env={"MALLOC_TRIM_THRESHOLD_": "65536", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    outside, inside, after = map(int, run.stdout.split())
    assert min(outside, after) > 40 * 256
    assert inside < 2 * 256
