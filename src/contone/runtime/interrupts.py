"""Ctrl-C while the command is still being imported: it ends, without a traceback.

Importing takes seconds, in which none of the command's own code can catch anything. So the package asks, as the first
thing it does, whether it is being imported for the command; as a library it changes nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the number of the signal."""


def end_quietly_while_importing() -> None:
    """Until `interrupt_again`, Ctrl-C ends the process at once, if this process is the command `contone`."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_command() and heard and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _end)


def interrupt_again() -> None:
    """Ctrl-C raises KeyboardInterrupt, as Python does it, where `end_quietly_while_importing` had changed that."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_command() -> bool:
    """Whether this process is the command `contone`."""
    if not sys.argv:
        return False
    if sys.argv[0] == "-m":  # what Python writes there while it looks for the module
        rest = sys.orig_argv[sys.orig_argv.index("-m") + 1 :] if "-m" in sys.orig_argv else []
        return rest[:1] == ["contone"]
    return os.path.basename(sys.argv[0]).partition(".")[0] == "contone"


def _end(number: int, frame: FrameType | None) -> None:
    """Nothing has been opened or begun yet, so nothing needs to be put in order."""
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
