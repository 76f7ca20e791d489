"""The entry of the command `riskbayes`, which imports the rest when it is ready for Ctrl-C."""

import os
import signal
from typing import Any

KILLED_BY = 128
"""Exit status after a signal, less its number, as shells have it."""

INTERRUPTED = KILLED_BY + signal.SIGINT

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end the command as Ctrl-C does; the second is sent by a terminal that is closed."""

status_after_interrupt = INTERRUPTED
"""What the command exits with after a KeyboardInterrupt."""


def main() -> None:
    """Import the command and run it; Ctrl-C during the import ends it as quietly as later.

    KeyboardInterrupt would not do: where it meets the import of a compiled module, that may make an
    ImportError of it.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from riskbayes.cli import main as command  # here, under that handler

    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, interrupt)
    command()


def interrupt(number: int, _: Any) -> None:
    """Raise a KeyboardInterrupt for another signal too, so that files that were begun are removed."""
    global status_after_interrupt
    status_after_interrupt = KILLED_BY + number
    raise KeyboardInterrupt
