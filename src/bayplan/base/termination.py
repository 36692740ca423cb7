"""SIGTERM, while no event loop or server handles it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def exit_on_sigterm(code: int = 0) -> Iterator[None]:
    """Make SIGTERM end the program with an exit code after its cleanup, unless a server handles the signal."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(code)

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
