"""A task of the event loop that processes pods one after another. It does not know what is done with a pod."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

MAX_PROBLEMS = 100
"""Maximum number of pods whose latest problem is stored."""

Job = tuple[str, Callable[[], Awaitable[None]]]
"""The key of a pod, and the function that processes it."""


class PodTask:
    """Processes pods until none is waiting. An exception fails only the pod that it is about.

    Args:
        next_job: removes and returns the job of the next pod; None if no pod is waiting.
        fail: the function to call with the key of a pod and its problem.
        expected: the exceptions that are not bugs; all others are logged with a traceback.
        log: the logger.
        work: what is done with a pod, for the log.
    """

    def __init__(
        self,
        next_job: Callable[[], Job | None],
        fail: Callable[[str, str], None],
        expected: tuple[type[Exception], ...],
        log: logging.Logger,
        work: str,
    ) -> None:
        self._next_job = next_job
        self._fail = fail
        self._expected = expected
        self._log = log
        self._work = work
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether the task does not run."""
        return self._task is None

    def start(self) -> None:
        """Start the task unless it runs already; call on the loop."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while (job := self._next_job()) is not None:
                key, process = job
                try:
                    await process()
                except self._expected as problem:
                    self._fail(key, str(problem))
                except Exception as problem:
                    self._log.exception("%s of %s", self._work, key)
                    self._fail(key, f"{type(problem).__name__}: {problem}")
        finally:
            self._task = None


def store_problem(problems: dict[str, str], key: str, problem: str) -> None:
    """Store the latest problem of a pod; drop the oldest of more than `MAX_PROBLEMS`."""
    problems[key] = problem
    if len(problems) > MAX_PROBLEMS:
        del problems[next(iter(problems))]
