"""The standard output of a program whose reader may end first."""

from __future__ import annotations

import os
import sys


def discard_output() -> None:
    """Discard the rest of standard output, because its reader (head, less) has ended.

    Without this, flushing at exit would raise BrokenPipeError again.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
