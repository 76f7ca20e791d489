"""Threads of our own or those of BLAS, never both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


@cache
def controller() -> ThreadpoolController:
    """The thread pools of the libraries that are loaded; looked up once, which takes milliseconds."""
    return ThreadpoolController()


def available_threads() -> int:
    """As many threads as BLAS may use: `threadpool_limits` and the environment rule both."""
    if OneBlasThread.users:
        return 1  # another fit has taken them
    return max((pool["num_threads"] for pool in controller().info()), default=1)


class OneBlasThread:
    """Inside, products use one thread. Fits in several threads may overlap: the last one out restores."""

    users = 0
    _lock = Lock()
    _limits: Any = None

    def __enter__(self) -> None:
        kind = OneBlasThread
        with kind._lock:
            if kind.users == 0:
                kind._limits = controller().limit(limits=1, user_api="blas")
            kind.users += 1

    def __exit__(self, *error: object) -> None:
        kind = OneBlasThread
        with kind._lock:
            kind.users -= 1
            if kind.users == 0:
                kind._limits.restore_original_limits()


def in_threads(work: Callable[[Any], T], parts: Iterable, threads: int) -> Iterator[T]:
    """The work on every part, in their order; the caller's context, `np.errstate` in it, holds in threads."""
    if threads < 2:
        yield from map(work, parts)
        return
    context = copy_context()
    with OneBlasThread(), ThreadPoolExecutor(threads) as pool:
        yield from pool.map(lambda part: context.copy().run(work, part), parts)
