"""Standard output and standard error that never block: a full pipe whose reader has stopped must not stop the program.

A thread writes the text. If it can't keep up, further text is dropped, and a line reports how much.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import time
from collections import deque
from collections.abc import Iterator
from threading import Condition, Thread
from typing import TextIO

MAX_PENDING_BYTES = 4 << 20
"""Maximum size of the text that waits to be written."""

FLUSH_SECONDS = 2.0
"""Maximum time that the end of the program waits for a reader that has stopped."""

POLL_SECONDS = 1.0


class BackgroundOutput(io.TextIOBase):
    """A text stream that passes whole lines to a file descriptor on its own thread.

    Args:
        descriptor: the file descriptor, which stays open.

    Attributes:
        dropped_lines: the number of lines that were dropped, or could not be written, since the last one that was queued.
    """

    encoding = "utf-8"

    def __init__(self, descriptor: int) -> None:
        self.dropped_lines = 0
        self._unfinished = ""
        self._descriptor = descriptor
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._changed = Condition()
        self._is_closing = False
        self._broken: BrokenPipeError | None = None
        # A daemon, because a write to a full pipe can't be interrupted.
        self._thread = Thread(target=self._run, name="bayplan-output", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Queue the lines that the text completes; drop them if too much is pending.

        Raises:
            BrokenPipeError: the reader has closed the pipe.
        """
        with self._changed:
            if self._broken is not None:
                raise BrokenPipeError(self._broken.errno, self._broken.strerror)
            lines, newline, self._unfinished = (self._unfinished + text).rpartition("\n")
            data = (lines + newline).encode(errors="backslashreplace")
            if data:
                # Once lines are dropped, wait until half of the pending ones are written, for one report of many.
                if self._pending_bytes + len(data) > MAX_PENDING_BYTES // (2 if self.dropped_lines else 1):
                    self.dropped_lines += data.count(b"\n")
                else:
                    self._queue(data)
        return len(text)

    def _queue(self, data: bytes) -> None:
        if self.dropped_lines:
            data = b"%d lines could not be written\n" % self.dropped_lines + data
            self.dropped_lines = 0
        self._pending.append(data)
        self._pending_bytes += len(data)
        self._changed.notify_all()

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether the file descriptor is a terminal."""
        return os.isatty(self._descriptor)

    def finish(self, seconds: float = FLUSH_SECONDS) -> None:
        """Wait until everything is written, at most this long, and end the thread."""
        with self._changed:
            self._is_closing = True
            self._queue(self._unfinished.encode(errors="backslashreplace"))
            self._changed.notify_all()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._pending:
                    if self._is_closing:
                        return
                    self._changed.wait()
                data = self._pending[0]
            try:
                _write(self._descriptor, data)
            except BrokenPipeError as problem:
                self._broken = problem
                return
            except OSError:
                # The disk is full; there may be room later.
                with self._changed:
                    self.dropped_lines += data.count(b"\n")
            with self._changed:
                self._pending.popleft()
                self._pending_bytes -= len(data)


def _write(descriptor: int, data: bytes) -> None:
    """Write all of the data to a descriptor, which may be non-blocking."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select((), (descriptor,), (), POLL_SECONDS)


@contextlib.contextmanager
def background_output() -> Iterator[None]:
    """Let a thread write standard output and standard error while the context is active.

    A stream that is no file, as in tests, is left alone.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        if stream is not None:
            stream.flush()
    replaced = [_in_background(stream) for stream in before]
    sys.stdout, sys.stderr = (new or old for new, old in zip(replaced, before, strict=True))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        end = time.monotonic() + FLUSH_SECONDS
        for output in replaced:
            if output is not None:
                output.finish(max(end - time.monotonic(), 0.0))


def _in_background(stream: TextIO | None) -> BackgroundOutput | None:
    try:
        return None if stream is None else BackgroundOutput(stream.fileno())
    except (OSError, ValueError):
        return None
