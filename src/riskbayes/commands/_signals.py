"""Signals that end a command as Ctrl-C does, and its exit status then."""

import signal
from typing import Any

KILLED_BY = 128
"""Exit status after a signal, less its number, as shells have it."""

INTERRUPTED = KILLED_BY + signal.SIGINT

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end the command as Ctrl-C does; the second is sent by a terminal that is closed."""

status_after_interrupt = INTERRUPTED
"""What the command exits with after a KeyboardInterrupt."""


def end_by_signals() -> None:
    """Let the signals of `ENDING` raise a KeyboardInterrupt, so that files that were begun are removed."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, interrupt)


def interrupt(number: int, _: Any) -> None:
    """Raise a KeyboardInterrupt, and remember by which signal."""
    global status_after_interrupt
    status_after_interrupt = KILLED_BY + number
    raise KeyboardInterrupt
