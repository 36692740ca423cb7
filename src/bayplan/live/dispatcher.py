"""Executes the scheduler's actions through the cluster's API, with many requests in parallel.

Actions come from the engine's thread; everything else runs on the event loop. Bindings and events have separate
connections, as in upstream, so that neither waits for the other's rate limit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from bayplan.client.action_executor import ActionExecutor, Engine
from bayplan.client.connection import ApiConnection
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse
from bayplan.engine.actions import Action
from bayplan.live.ticker import Ticker
from bayplan.objects.object_lookup import ObjectLookup

TICK_SECONDS = 10.0
DRAIN_POLL_SECONDS = 0.05
LOG_SECONDS = 60.0
"""Minimum interval between log lines about rejected requests of the same method and status."""

_EXPECTED = (404, 409)
"""The object was deleted or changed in the meantime, which happens in every cluster."""

_log = logging.getLogger("bayplan.scheduler")


class GenerationalEngine(Engine, Protocol):
    """An engine that counts replacements of its scheduler, as `bayplan.live.scheduler_thread.SchedulerThread` does."""

    @property
    def generation(self) -> int:
        """The number of times that its scheduler was replaced."""
        ...


class Dispatcher:
    """Executes actions over connections; the `Channel` of its executor.

    Args:
        connection: the connection for bindings, patches and deletions.
        events: the connection for events.
        objects: the cached objects of the cluster.
        host_name: the host name of this machine, for events.
        now_ns: the function that returns the current time (ns).

    Attributes:
        executor: the executor of queued actions.
    """

    _engine: GenerationalEngine

    def __init__(
        self,
        connection: ApiConnection,
        events: ApiConnection,
        objects: ObjectLookup,
        *,
        host_name: str,
        now_ns: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._is_awake = False
        self._logged_at: dict[tuple[str, int, bool], float] = {}
        self.executor = ActionExecutor(self, objects, host_name=host_name, now_ns=now_ns)
        self._ticker = Ticker(TICK_SECONDS, self.executor.tick)

    def connect(self, engine: GenerationalEngine) -> None:
        """Set the engine that is notified of rejected writes; call it before the first action."""
        self._engine = self.executor.engine = engine

    def submit(self, actions: Sequence[Action]) -> None:
        """Queue the engine's actions; called on the engine's thread."""
        self._loop.call_soon_threadsafe(self._execute, actions, self._engine.generation)

    def _execute(self, actions: Sequence[Action], generation: int) -> None:
        if not self._is_closed:
            self.executor.execute(actions, generation)
            self._run_all()

    def _run_all(self) -> None:
        self._is_awake = False
        if not self._is_closed:
            self.executor.run_all()

    async def drain(self, seconds: float, is_binding: Callable[[], bool] = lambda: False) -> None:
        """Wait for running requests, and as long as the engine waits for the confirmation of bindings.

        Wait at most this many seconds; afterwards nothing more is sent.
        """
        self._ticker.stop()
        end = self._loop.time() + seconds
        while (left := end - self._loop.time()) > 0:
            binds = is_binding()
            # Start the tasks that a response has woken, and execute what the engine has submitted.
            await asyncio.sleep(0)
            if not binds and self.executor.is_idle:
                break
            pause = min(left, DRAIN_POLL_SECONDS)
            if self._tasks:
                await asyncio.wait(set(self._tasks), timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(pause)
        self._is_closed = True
        for task in list(self._tasks):
            task.cancel()

    # --- the channel --------------------------------------------------------------------------------------------------

    def send(self, request: ApiRequest, *, is_event: bool, answer: Callable[[ApiResponse], None]) -> None:
        """Send a request, and call `answer` with the response when it arrives."""
        self._spawn(self._send(self._events if is_event else self._connection, request, answer))

    async def _send(
        self, connection: ApiConnection, request: ApiRequest, answer: Callable[[ApiResponse], None]
    ) -> None:
        response = await connection.send(request)
        if not response.ok and response.status not in _EXPECTED:
            self._log_rejection(request, response, is_event=connection is self._events)
        answer(response)

    def _log_rejection(self, request: ApiRequest, response: ApiResponse, *, is_event: bool) -> None:
        key, now = (request.method, response.status, is_event), self._loop.time()
        if now - self._logged_at.get(key, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged_at[key] = now
            # Without a response, the message has method and URL.
            what = "" if response.status == NO_ANSWER else f"{request.method} {request.path}: "
            _log.warning("%s%s", what, response.message)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after a delay; `drain` waits for it."""
        self._spawn(self._sleep(seconds, call))

    async def _sleep(self, seconds: float, call: Callable[[], None]) -> None:
        await asyncio.sleep(seconds)
        call()

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def wake(self) -> None:
        """Start all pending requests in the next iteration of the event loop."""
        if not self._is_awake:
            self._is_awake = True
            self._loop.call_soon(self._run_all)
