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

from bayplan.base.counted_nouns import format_count

MAX_PENDING_BYTES = 4 << 20
"""Maximum size of the text that waits to be written."""

FLUSH_SECONDS = 2.0
"""Maximum time that the end of the program waits for a reader that has stopped."""

POLL_SECONDS = 1.0


class BackgroundOutput(io.TextIOBase):
    """A text stream that passes whole lines to a file descriptor on its own thread; a terminal gets flushed text too.

    Args:
        descriptor: the file descriptor, which stays open.
        max_pending_bytes: the maximum size of the text that waits to be written.
        encoding: the encoding of the text; characters that it lacks are escaped.

    Attributes:
        dropped_lines: the number of lines lost since the last line was queued.
    """

    def __init__(self, descriptor: int, *, max_pending_bytes: int = MAX_PENDING_BYTES, encoding: str = "utf-8") -> None:
        self.dropped_lines = 0
        self._encoding = encoding
        self._unfinished = ""
        self._descriptor = descriptor
        self._max_pending_bytes = max_pending_bytes
        # Text, and the number of lines that are lost if it can't be written.
        self._pending: deque[tuple[bytes, int]] = deque()
        self._pending_bytes = 0
        self._changed = Condition()
        self._is_closing = False
        self._has_ended = False
        self._broken: BrokenPipeError | None = None
        # A daemon, because a write to a full pipe can't be interrupted.
        self._thread = Thread(target=self._run, name="bayplan-output", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Queue the lines that the text completes; drop them if too much is pending.

        After `finish`, for example from a logging handler that still has this stream, text is written directly.

        Raises:
            BrokenPipeError: the reader has closed the pipe.
        """
        with self._changed:
            if self._broken is not None:
                raise BrokenPipeError(self._broken.errno, self._broken.strerror)
            if self._has_ended:
                self._write_directly(self._encoded(text))
                return len(text)
            lines, newline, self._unfinished = (self._unfinished + text).rpartition("\n")
            data = self._encoded(lines + newline)
            if data:
                self._offer(data)
        return len(text)

    def _offer(self, data: bytes) -> None:
        """Queue data, or drop them if too much is pending."""
        # Once lines are dropped, wait until half of the pending ones are written, for one report of many.
        if self._pending_bytes + len(data) > self._max_pending_bytes // (2 if self.dropped_lines else 1):
            self.dropped_lines += data.count(b"\n")
        else:
            self._queue(data)

    def _queue(self, data: bytes) -> None:
        lines = self.dropped_lines + data.count(b"\n")
        if self.dropped_lines:
            data = f"{format_count(self.dropped_lines, 'line')} could not be written\n".encode(self._encoding) + data
            self.dropped_lines = 0
        self._pending.append((data, lines))
        self._pending_bytes += len(data)
        self._changed.notify_all()

    def _write_directly(self, data: bytes) -> None:
        """Write without the thread, or drop the text if the reader has stopped or the write fails."""
        try:
            if select.select((), (self._descriptor,), (), 0.0)[1]:
                _write(self._descriptor, data)
        except BrokenPipeError:
            raise
        except (OSError, ValueError):
            # The disk is full, or the descriptor was closed.
            self.dropped_lines += data.count(b"\n")

    def flush(self) -> None:
        """Queue an unfinished line for a terminal, on which it may be a status that is rewritten."""
        with self._changed:
            if self._unfinished and not self._has_ended and self.isatty():
                self._offer(self._encoded(self._unfinished))
                self._unfinished = ""

    def writable(self) -> bool:
        """Return True."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Return the encoding."""
        return self._encoding

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding, errors="backslashreplace")

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
            self._queue(self._encoded(self._unfinished))
            self._unfinished = ""
            self._changed.notify_all()
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._pending:
                    if self._is_closing:
                        self._has_ended = True
                        return
                    self._changed.wait()
                data, lines = self._pending[0]
            try:
                _write(self._descriptor, data)
            except BrokenPipeError as problem:
                self._broken = problem
                return
            except OSError:
                # The disk is full; there may be room later.
                with self._changed:
                    self.dropped_lines += lines
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
    """Write standard output and standard error on a thread while the context is active.

    Streams without a file descriptor, as in tests, stay unchanged, and so do those on Windows, where a console does not
    take encoded text.
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
    if stream is None or os.name == "nt":
        return None
    try:
        return BackgroundOutput(stream.fileno(), encoding=stream.encoding)
    except (OSError, ValueError):
        return None
