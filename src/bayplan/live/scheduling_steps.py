"""The scheduling that a paused clock allows: single steps, and all pods that are ready at one instant."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future


class SchedulingSteps:
    """The requested steps, in order. Used by the engine's thread, except `instant_ns`.

    Attributes:
        instant_ns: the instant at which all ready pods are scheduled; -1 for none.
    """

    def __init__(self) -> None:
        self.instant_ns = -1
        self._pending: deque[Future[bool]] = deque()

    def add(self, step: Future[bool]) -> None:
        """Request a step. The result is True if a pod was ready."""
        self._pending.append(step)

    @property
    def is_pending(self) -> bool:
        """Whether a step is requested."""
        return bool(self._pending)

    def allows(self, now_ns: int) -> bool:
        """Return whether a cycle may run at a time although the clock is paused."""
        return bool(self._pending) or now_ns == self.instant_ns

    def answer(self, *, had_pod: bool) -> None:
        """Complete the oldest step, if any."""
        if self._pending:
            step = self._pending.popleft()
            if step.set_running_or_notify_cancel():  # False if the caller has cancelled the step.
                step.set_result(had_pod)

    def end(self) -> None:
        """Complete all steps: no pod is ready."""
        while self._pending:
            self.answer(had_pod=False)

    def cancel(self) -> None:
        """Cancel all steps."""
        while self._pending:
            self._pending.popleft().cancel()
