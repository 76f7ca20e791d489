"""The entry of the command `riskbayes`, which imports the rest when it is ready for Ctrl-C."""

import os
import signal

from riskbayes.commands._signals import INTERRUPTED, end_by_signals


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
    end_by_signals()
    command()
