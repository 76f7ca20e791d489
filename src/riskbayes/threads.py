"""Work in threads: the library's own threads or those of BLAS, never both at once."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, ClassVar, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


@cache
def controller() -> ThreadpoolController:
    """Return the thread pools of the loaded libraries; cached, for the lookup takes milliseconds."""
    return ThreadpoolController()


def available_threads() -> int:
    """Return how many threads BLAS may use: the limits of the user for BLAS hold for our threads too.

    Where no BLAS is known to threadpoolctl, those of OpenMP do, though they hold in one thread only.
    """
    if OneBlasThread.workers:
        return 1  # another fit uses them
    if OneBlasThread.users:
        return OneBlasThread.before
    pools = controller().info()
    own = [pool for pool in pools if pool["user_api"] == "blas"] or pools
    return max((pool["num_threads"] for pool in own), default=1)


@dataclass
class OneBlasThread:
    """Context in which BLAS uses one thread. Contexts of several fits may overlap: the last one restores."""

    works: bool = True
    """True if threads of the caller do the work: `available_threads` is one then. Otherwise it stays what it
    was: our own threads do not wait for one another."""

    users = 0
    workers = 0
    before = 1
    """The threads that BLAS had before."""
    _lock = Lock()
    _limits: ClassVar[Any] = None

    def __enter__(self) -> None:
        shared = OneBlasThread
        with shared._lock:
            if shared.users == 0:
                shared.before = available_threads()
                give_up_control()
                shared._limits = controller().limit(limits=1, user_api="blas")
            shared.users += 1
            shared.workers += self.works

    def __exit__(self, *error: object) -> None:
        shared = OneBlasThread
        with shared._lock:
            shared.users -= 1
            shared.workers -= self.works
            if shared.users == 0:
                give_up_control()
                shared._limits.restore_original_limits()
                give_up_control()


def give_up_control() -> None:
    """Let any thread set the limits of BLAS.

    From threadpoolctl 3.8 on, the first thread that sets a limit of OpenBLAS is the only one that can, as
    long as it lives: limits that others set are passed over in silence. Here one thread sets the limit and
    another may restore it.
    """
    for library in controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def in_threads(work: Callable[[Any], T], parts: Iterable, threads: int) -> Iterator[T]:
    """Apply `work` to every part; yield the results in the order of the parts.

    Threads run in the caller's context, so that its `np.errstate` holds in them. Each takes several parts at
    a time where there are many: to hand one over costs as much as a small part.
    """
    if threads < 2:
        yield from map(work, parts)
        return
    context, whole = copy_context(), list(parts)
    size = max(1, len(whole) // (4 * threads))
    batches = [whole[i : i + size] for i in range(0, len(whole), size)]
    with OneBlasThread():
        tasks = deque(
            pool(threads).submit(context.copy().run, lambda own: list(map(work, own)), batch)
            for batch in batches
        )
        try:
            while tasks:
                yield from tasks.popleft().result()  # and let go of them: results may be large
        finally:  # an error or an interrupt: no part is still running when it is seen
            for task in tasks:
                task.cancel()
            wait(tasks)


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    """Return the threads of this process: to start them anew for each scan takes longer than a small one."""
    return ThreadPoolExecutor(threads, thread_name_prefix="riskbayes")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # a child has none of its parent's threads
