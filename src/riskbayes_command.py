"""The entry of the command `riskbayes`, outside of the package, which takes a while to import."""

import os
import signal
from typing import Any

INTERRUPTED, TERMINATED = 130, 143
"""Exit status after Ctrl-C and after SIGTERM, as shells have it: 128 and the number of the signal."""

status_after_interrupt = INTERRUPTED
"""What the command exits with after a KeyboardInterrupt."""

is_running = False
"""True once the command has started: the package then imports its estimators only when they are used."""


def main() -> None:
    """Import the command and run it; Ctrl-C during the import ends it as quietly as later.

    KeyboardInterrupt would not do: where it meets the import of a compiled module, that may make an
    ImportError of it.
    """
    global is_running
    is_running = True
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from riskbayes.cli import main as command  # here, under that handler

    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, interrupt)
    command()


def interrupt(*_: Any) -> None:
    """Raise a KeyboardInterrupt for SIGTERM too, so that files that were begun are removed."""
    global status_after_interrupt
    status_after_interrupt = TERMINATED
    raise KeyboardInterrupt
