"""Carry out on a cluster what the scheduler wants: exchanges with the API, many at once, those of one pod one after the other.

Actions come from the engine's thread; everything else happens on the event loop. Bindings and events have connections of their
own, as upstream's do, so that neither has to wait for the other's rate limit.
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

MOST_EVENTS = 20_000
"""So many events may wait for the rate limit; what comes then is dropped. Upstream lets them wait without a limit."""

TICK_SECONDS = 10.0
_log = logging.getLogger("bayplan.scheduler")


class Engine(Protocol):
    """Who is told how it went: `bayplan.live.engine_host.EngineHost`."""

    @property
    def generation(self) -> int:
        """Return how often its scheduler was made anew."""
        ...

    def binding_failed(
        self, key: str, message: str, *, plugin: str = ..., point: str = ..., generation: int | None = ...
    ) -> None:
        """Take that a pod could not be bound."""
        ...

    def preemption_failed(self, pod: Pod, *, generation: int | None = ...) -> None:
        """Take that victims could not be evicted."""
        ...


class KnownObjects(Protocol):
    """The cluster as it is known: `bayplan.live.cluster_feed.ClusterFeed`."""

    def find(self, kind: type[T], key: str) -> T | None:
        """Return an object by its key, or None."""
        ...


class Dispatcher:
    """Sends what the engine wants sent.

    Args:
        connection: for bindings, patches and deletions. events: for events.
        objects: the cluster as it is known.
        host_name: of this machine, for events.
        now_ns: the time.

    Attributes:
        engine: is told what was refused; set before anything is taken.
        dropped_events: events that were not written because too many waited.
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
        """Take what the engine wants done; called on its thread."""
        self._loop.call_soon_threadsafe(self._carry_out, actions, _Asked(self, self.engine.generation))

    def _carry_out(self, actions: Sequence[Action], asked: _Asked) -> None:
        if self._is_closed:
            return
        try:
            exchanges = exchanges_of(actions, asked)
        except Exception:
            # A bug of ours; none of these was begun.
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
        """Run the exchanges of one pod, one after the other, until there is none."""
        row = self._waiting[key]
        while row:
            exchange, asked = row[0]
            try:
                await carry_out(exchange.steps, self._connection.send, asyncio.sleep)
            except Exception:
                # A bug of ours; the next exchange may fare better.
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
        """Wait for what was begun, but no longer than that; then nothing is sent any more."""
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
        if self._pending_events >= MOST_EVENTS:
            self.dropped_events += 1
            return
        self._pending_events += 1
        self._spawn(self._written(recording))

    async def _written(self, recording: EventRecording) -> None:
        try:
            await carry_out(recording.exchange(), self._events.send, asyncio.sleep)
        finally:
            self._pending_events -= 1

    # --- what exchanges want to know ------------------------------------------------------------------------------------

    def now_ns(self) -> int:
        """Return the time."""
        return self._now_ns()

    def find(self, kind: type[T], key: str) -> T | None:
        """Return an object as the API has it, or None."""
        return self._objects.find(kind, key)

    def happened(self, event: PodEvent) -> None:
        """Have an event written."""
        recording = self._recorder.record(event)
        if recording is not None:
            self._write(recording)


class _Asked:
    """Whom exchanges tell what came of them (`bayplan.client.exchanges.ExchangeHost`), and which scheduler had asked for it."""

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
        """Have an event written."""
        self._dispatcher.happened(event)

    def binding_failed(self, key: str, message: str, *, plugin: str, point: str) -> None:
        """Tell the engine that a pod could not be bound; a scheduler that came later does not hear of it."""
        engine = self._dispatcher.engine
        engine.binding_failed(key, message, plugin=plugin, point=point, generation=self._generation)

    def preemption_failed(self, pod: Pod) -> None:
        """Tell the engine that victims could not be evicted; a scheduler that came later does not hear of it."""
        self._dispatcher.engine.preemption_failed(pod, generation=self._generation)

    def give_up(self, key: str) -> None:
        """Tell the engine that nothing will come of a binding, for a bug of ours: the pod must not wait for ever."""
        self.binding_failed(key, "internal error", plugin="DefaultBinder", point="Bind")
