"""Execution of the scheduler's actions on a cluster: many API exchanges at once, those of one pod in order.

Actions come from the engine's thread; everything else runs on the event loop. Bindings and events have separate connections,
as in upstream, so neither waits for the other's rate limit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol, TypeVar

from bayplan.client.connection import ApiConnection
from bayplan.client.event_recorder import EventRecorder, EventRecording, PodEvent
from bayplan.client.exchanges import Exchange, carry_out, exchanges_of
from bayplan.engine.actions import Action, Bind
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

T = TypeVar("T", bound=KubernetesObject)

MAX_PENDING_EVENTS = 20_000
"""Maximum number of events that wait for the rate limit; further ones are dropped. Upstream has no limit."""

TICK_SECONDS = 10.0
_log = logging.getLogger("bayplan.scheduler")


class Engine(Protocol):
    """The receiver of failures: `bayplan.live.engine_host.EngineHost`."""

    @property
    def generation(self) -> int:
        """Return how often its scheduler was replaced."""
        ...

    def binding_failed(
        self, key: str, message: str, *, plugin: str = ..., point: str = ..., generation: int | None = ...
    ) -> None:
        """Handle a failed binding."""
        ...

    def preemption_failed(self, pod: Pod, *, generation: int | None = ...) -> None:
        """Handle a failed eviction of victims."""
        ...


class KnownObjects(Protocol):
    """The cached objects of the cluster: `bayplan.live.cluster_feed.ClusterFeed`."""

    def find(self, kind: type[T], key: str) -> T | None:
        """Return an object by its key, or None."""
        ...


class Dispatcher:
    """Sends the requests for the engine's actions.

    Args:
        connection: for bindings, patches and deletions. events: for events.
        objects: the cached objects of the cluster.
        host_name: of this machine, for events.
        now_ns: the time.

    Attributes:
        engine: gets refused requests; set before the first call of `take`.
        dropped_events: number of events that were dropped because too many waited.
    """

    engine: Engine

    def __init__(
        self,
        connection: ApiConnection,
        events: ApiConnection,
        objects: KnownObjects,
        *,
        host_name: str,
        now_ns: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._events = events
        self._objects = objects
        self._now_ns = now_ns
        self._recorder = EventRecorder(host_name, now_ns)
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, deque[tuple[Exchange, _Asked]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._pending_events = 0
        self._is_closed = False
        self._ticker = self._loop.create_task(self._tick())
        self.dropped_events = 0

    def take(self, actions: Sequence[Action]) -> None:
        """Execute actions; called on the engine's thread."""
        self._loop.call_soon_threadsafe(self._carry_out, actions, _Asked(self, self.engine.generation))

    def _carry_out(self, actions: Sequence[Action], asked: _Asked) -> None:
        if self._is_closed:
            return
        try:
            exchanges = exchanges_of(actions, asked)
        except Exception:
            # A bug; none of these was started.
            _log.exception("actions of the scheduler")
            for action in actions:
                if isinstance(action, Bind):
                    asked.give_up(action.pod.key)
            return
        for exchange in exchanges:
            key = exchange.pod.key
            behind = self._waiting.get(key)
            if behind is not None:
                behind.append((exchange, asked))
                continue
            self._waiting[key] = deque(((exchange, asked),))
            self._spawn(self._run_all(key))

    async def _run_all(self, key: str) -> None:
        """Run the exchanges of one pod in order, until none is left."""
        row = self._waiting[key]
        while row:
            exchange, asked = row[0]
            try:
                await carry_out(exchange.steps, self._connection.send, asyncio.sleep)
            except Exception:
                # A bug; the next exchange may succeed.
                _log.exception("an exchange about %s", key)
                if exchange.is_binding:
                    asked.give_up(key)
            row.popleft()
        del self._waiting[key]

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, seconds: float) -> None:
        """Wait for running exchanges with a timeout; then stop sending."""
        self._ticker.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        self._is_closed = True
        for task in list(self._tasks):
            task.cancel()

    # --- events -------------------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._now_ns() >= self._recorder.next_wakeup_ns():
                for recording in self._recorder.tick():
                    self._write(recording)

    def _write(self, recording: EventRecording) -> None:
        if self._pending_events >= MAX_PENDING_EVENTS:
            self.dropped_events += 1
            return
        self._pending_events += 1
        self._spawn(self._written(recording))

    async def _written(self, recording: EventRecording) -> None:
        try:
            await carry_out(recording.exchange(), self._events.send, asyncio.sleep)
        finally:
            self._pending_events -= 1

    # --- services for exchanges -----------------------------------------------------------------------------------------

    def now_ns(self) -> int:
        """Return the time."""
        return self._now_ns()

    def find(self, kind: type[T], key: str) -> T | None:
        """Return an object as the API has it, or None."""
        return self._objects.find(kind, key)

    def happened(self, event: PodEvent) -> None:
        """Write an event."""
        recording = self._recorder.record(event)
        if recording is not None:
            self._write(recording)


class _Asked:
    """The host of exchanges (`bayplan.client.exchanges.ExchangeHost`), with the generation of the scheduler."""

    def __init__(self, dispatcher: Dispatcher, generation: int) -> None:
        self._dispatcher = dispatcher
        self._generation = generation

    def now_ns(self) -> int:
        """Return the time."""
        return self._dispatcher.now_ns()

    def find(self, kind: type[T], key: str) -> T | None:
        """Return an object as the API has it, or None."""
        return self._dispatcher.find(kind, key)

    def happened(self, event: PodEvent) -> None:
        """Write an event."""
        self._dispatcher.happened(event)

    def binding_failed(self, key: str, message: str, *, plugin: str, point: str) -> None:
        """Report a failed binding to the engine, which ignores it if the scheduler was replaced."""
        engine = self._dispatcher.engine
        engine.binding_failed(key, message, plugin=plugin, point=point, generation=self._generation)

    def preemption_failed(self, pod: Pod) -> None:
        """Report a failed eviction to the engine, which ignores it if the scheduler was replaced."""
        self._dispatcher.engine.preemption_failed(pod, generation=self._generation)

    def give_up(self, key: str) -> None:
        """Report a binding that failed because of a bug, so the pod does not wait for ever."""
        self.binding_failed(key, "internal error", plugin="DefaultBinder", point="Bind")
