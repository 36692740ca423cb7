"""A thread that works in slices, and between two slices does the jobs that other threads put into its inbox."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from threading import Condition, Thread, current_thread


class JobThread:
    """A thread that runs slices of work, and sleeps while there is nothing to do. It does nothing until `start` is called.

    Args:
        run_slice: does the due work, with the jobs of `take_jobs`; returns whether there is more.
        seconds_of_rest: returns how long to sleep unless woken, in seconds; None for no limit.
    """

    def __init__(self, run_slice: Callable[[], bool], seconds_of_rest: Callable[[], float | None]) -> None:
        self._run_slice = run_slice
        self._seconds_of_rest = seconds_of_rest
        self._inbox: deque[Callable[[], None]] = deque()
        self._wake = Condition()
        self._is_woken = False
        self._stopping = False
        self._thread: Thread | None = None

    @property
    def is_started(self) -> bool:
        """Whether `start` was called."""
        return self._thread is not None

    @property
    def is_caller(self) -> bool:
        """Whether the caller may do the work itself: the thread was not started, or it is the caller's thread."""
        return self._thread is None or self._thread is current_thread()

    @property
    def has_jobs(self) -> bool:
        """Whether the inbox contains jobs."""
        return bool(self._inbox)

    def start(self, name: str) -> None:
        """Start the thread under a name."""
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self, deadline_seconds: float) -> None:
        """End the thread after its current slice; a slice that takes longer than the deadline is abandoned."""
        self._stopping = True
        self.notify()
        if self._thread is not None and self._thread is not current_thread():
            self._thread.join(deadline_seconds)

    def put(self, job: Callable[[], None]) -> None:
        """Add a job to the inbox, and wake the thread."""
        self._inbox.append(job)
        self.notify()

    def notify(self) -> None:
        """Wake the thread, because its work may have changed."""
        with self._wake:
            self._is_woken = True
            self._wake.notify_all()

    def take_jobs(self) -> Iterator[Callable[[], None]]:
        """Yield the jobs that are in the inbox now, oldest first, and remove them. Only `run_slice` may call this."""
        for _ in range(len(self._inbox)):
            yield self._inbox.popleft()

    def _run(self) -> None:
        while True:
            # Reset this before the check and the slice: a change during them requires another slice.
            self._is_woken = False
            if self._stopping:
                return
            if not self._run_slice():
                with self._wake:
                    self._wake.wait_for(lambda: self._is_woken, self._seconds_of_rest())
