"""Execute the scheduler's actions on the server's own API, in process: the requests that a stock scheduler would send over HTTP.

Actions come from the engine's thread; everything else runs on the loop, in slices, so that other requests run in between. Events
are written when no binding is pending.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence

from bayplan.apiserver.bridge.bridge import Bridge
from bayplan.apiserver.model.users import component
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.in_process import answer_at_once
from bayplan.base.clock import Clock
from bayplan.client.action_executor import ActionExecutor
from bayplan.client.requests import USER_AGENT, ApiRequest, ApiResponse
from bayplan.engine.actions import Action
from bayplan.live.scheduler_thread import SchedulerThread

SLICE_SECONDS = 0.004
USER = component("system:kube-scheduler")


class ActionLoop:
    """Executes actions on a loop, a slice at a time; the `Channel` of its executor.

    Args:
        api: the API that handles requests.
        bridge: the bridge with the typed objects.
        clock: the clock of API and engine.

    Attributes:
        executor: the executor of queued actions.
    """

    _engine: SchedulerThread

    def __init__(self, api: Api, bridge: Bridge, clock: Clock) -> None:
        self._api = api
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived: deque[tuple[int, Sequence[Action]]] = deque()
        self._is_awake = False
        self.executor = ActionExecutor(self, bridge.store, host_name=socket.gethostname(), now_ns=clock.now_ns)

    def connect(self, engine: SchedulerThread) -> None:
        """Set the engine that is notified of rejected writes; call before the first action is queued."""
        self._engine = self.executor.engine = engine

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start executing queued actions, on a loop."""
        self._loop = loop
        self.wake()

    def submit(self, actions: Sequence[Action]) -> None:
        """Queue the engine's actions. Called on the engine's thread."""
        self._arrived.append((self._engine.generation, actions))
        self.wake()

    @property
    def is_idle(self) -> bool:
        """Whether no action is pending. Call on the loop."""
        return not self._arrived and self.executor.is_idle

    # --- on the loop --------------------------------------------------------------------------------------------------

    def run_slice(self) -> None:
        """Execute as many actions as fit into a time slice, and schedule the next slice if there are more."""
        self._is_awake = False
        end = time.perf_counter() + SLICE_SECONDS
        while self._run_next():
            if time.perf_counter() >= end:
                break
        else:
            return
        if self._loop is not None and not self._is_awake:
            self._is_awake = True
            self._loop.call_soon(self.run_slice)

    def _run_next(self) -> bool:
        if not self._arrived:
            return self.executor.run_next()
        generation, actions = self._arrived.popleft()
        self.executor.execute(actions, generation)
        return True

    # --- the channel --------------------------------------------------------------------------------------------------

    def send(self, request: ApiRequest, *, is_event: bool, answer: Callable[[ApiResponse], None]) -> ApiResponse:
        """Execute a request and return its response. These requests never wait, so `answer` is not used."""
        return answer_at_once(self._api, request, user_agent=USER_AGENT, user=USER)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after a delay in real time, independent of the clock: these delays wait for the API to recover."""
        if self._loop is not None:
            self._loop.call_later(seconds, call)

    def wake(self) -> None:
        """Schedule a call of `run_slice`."""
        if not self._is_awake and self._loop is not None and not self._loop.is_closed():
            self._is_awake = True
            self._loop.call_soon_threadsafe(self.run_slice)
