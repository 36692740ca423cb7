"""Carry out what the scheduler wants, in process: each exchange a stock scheduler would have over HTTP, with our own API.

Actions come from the engine's thread; everything else happens on the loop, in slices, so that requests go between. Exchanges
of one pod follow one another. Events are written when no binding waits.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from bayplan.apiserver.bridge.bridge import Bridge
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.messages import Request, Response, parse_query
from bayplan.base.clock import Clock
from bayplan.client.event_recorder import EventRecorder, EventRecording, PodEvent
from bayplan.client.exchanges import Exchange, Steps, exchanges_of
from bayplan.client.requests import USER_AGENT, ApiRequest, ApiResponse
from bayplan.engine.actions import Action, Bind
from bayplan.live.engine_host import EngineHost
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

T = TypeVar("T", bound=KubernetesObject)

SLICE_SECONDS = 0.004
MOST_EVENTS = 20_000
"""So many events may wait to be written; more are dropped, as upstream does with a queue of 1,000."""

USER = "system:kube-scheduler"
_log = logging.getLogger("bayplan.scheduler")


class ActionPump:
    """Turns actions into requests to the API.

    Args:
        api: that answers. bridge: knows the typed objects.
        clock: of API and engine.

    Attributes:
        engine: is told what was refused; set before anything is taken.
        on_written: is called with a pod when an exchange about it has ended: its binding, its condition, its nomination.
        dropped_events: events that were not written because too many waited.
        failures: exchanges that ended in an exception: bugs.
    """

    engine: EngineHost

    def __init__(self, api: Api, bridge: Bridge, clock: Clock) -> None:
        self._api = api
        self._bridge = bridge
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._recorder = EventRecorder(socket.gethostname(), clock.now_ns)
        self._arrived: deque[tuple[int, Sequence[Action]]] = deque()
        self._exchanges: deque[tuple[Exchange, int]] = deque()
        self._events: deque[tuple[EventRecording, Pod]] = deque()
        self._behind: dict[str, deque[tuple[Exchange, int]]] = {}
        self._is_awake = False
        self._generation = 0
        self.on_written: Callable[[Pod], None] | None = None
        self.dropped_events = 0
        self.failures = 0

    # --- from the engine ----------------------------------------------------------------------------------------------

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to carry out what was taken, on a loop."""
        self._loop = loop
        self._wake()

    def take(self, actions: Sequence[Action]) -> None:
        """Take what the engine wants done; called on its thread."""
        self._arrived.append((self.engine.generation, actions))
        if not self._is_awake:
            self._wake()

    def _wake(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._is_awake = True
            self._loop.call_soon_threadsafe(self.turn)

    @property
    def is_idle(self) -> bool:
        """Return whether nothing waits to be carried out. On the loop."""
        return not (self._arrived or self._exchanges or self._events or self._behind)

    # --- on the loop --------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Carry out as much as fits into a slice, and come again if there is more."""
        self._is_awake = False
        end = time.perf_counter() + SLICE_SECONDS
        while self._take_next():
            if time.perf_counter() >= end:
                break
        else:
            return
        if self._loop is not None and not self._is_awake:
            self._is_awake = True
            self._loop.call_soon(self.turn)

    def _take_next(self) -> bool:
        """Do the next thing; return whether there was one."""
        if self._arrived:
            self._generation, actions = self._arrived.popleft()
            self._plan(actions)
        elif self._exchanges:
            self._begin(*self._exchanges.popleft())
        elif self._events:
            recording, pod = self._events.popleft()
            self._begin(Exchange(pod, _recorded(recording)), self._generation)
        else:
            return False
        return True

    def _plan(self, actions: Sequence[Action]) -> None:
        """Make exchanges of actions; they wait for their turn."""
        try:
            for exchange in exchanges_of(actions, self):
                self._exchanges.append((exchange, self._generation))
        except Exception:
            self.failures += 1
            _log.exception("actions of the scheduler")
            for action in actions:
                if isinstance(action, Bind):
                    self._give_up(action.pod.key)

    def _give_up(self, key: str) -> None:
        """Tell the engine that nothing will come of a binding, for a bug of ours: the pod must not wait for ever."""
        self.engine.binding_failed(key, "internal error", generation=self._generation)

    def tick(self) -> None:
        """Let the recorder of events write its counts, where that is due. Called now and then."""
        if self._clock.now_ns() >= self._recorder.next_wakeup_ns():
            for recording in self._recorder.tick():
                self._events.append((recording, _NO_POD))
            self._wake()

    def _begin(self, exchange: Exchange, generation: int) -> None:
        key = exchange.pod.key
        behind = self._behind.get(key)
        if behind is not None:
            behind.append((exchange, generation))
            return
        self._go_on(exchange, generation, None)

    def _go_on(self, exchange: Exchange, generation: int, response: ApiResponse | None) -> None:
        """Drive an exchange until it ends or wants to wait."""
        self._generation = generation
        steps = exchange.steps
        try:
            step = next(steps) if response is None else steps.send(response)
            while not isinstance(step, float):
                step = steps.send(self._answer(step))
        except StopIteration:
            self._ended(exchange)
            return
        except Exception:
            self.failures += 1
            _log.exception("an exchange about %s", exchange.pod.key)
            if exchange.is_binding:
                self._give_up(exchange.pod.key)
            self._ended(exchange)
            return
        self._behind.setdefault(exchange.pod.key, deque())
        self._sleep(step, exchange, generation)

    def _sleep(self, seconds: float, exchange: Exchange, generation: int) -> None:
        # Real seconds, whatever the clock does: these are waits for the API to be able again.
        if self._loop is not None:
            self._loop.call_later(seconds, self._go_on, exchange, generation, None)

    def _ended(self, exchange: Exchange) -> None:
        pod = exchange.pod
        behind = self._behind.pop(pod.key, None)
        if behind:
            self._exchanges.extendleft(reversed(behind))
            self._wake()
        if self.on_written is not None and pod is not _NO_POD:
            self.on_written(pod)

    def _answer(self, request: ApiRequest) -> ApiResponse:
        """Return what the API says; it does so at once, as nothing of this waits for anything."""
        headers = {"content-type": request.content_type, "user-agent": USER_AGENT, "accept": "application/json"}
        asked = Request(
            request.method, request.path, parse_query(request.query), headers, request.body, USER, waits=False
        )
        answering = self._api.handle(asked)
        try:
            answering.send(None)
        except StopIteration as ended:
            answer = ended.value
            if isinstance(answer, Response):
                return ApiResponse(answer.status, answer.body)
        answering.close()
        return ApiResponse(500, b"the API did not answer at once")

    # --- what exchanges want to know and tell (`bayplan.client.exchanges.ExchangeHost`) -------------------------------

    def now_ns(self) -> int:
        """Return the time."""
        return self._clock.now_ns()

    def find(self, kind: type[T], key: str) -> T | None:
        """Return an object as the API has it, or None."""
        return self._bridge.store.get(kind, key)

    def happened(self, event: PodEvent) -> None:
        """Have an event recorded."""
        recording = self._recorder.record(event)
        if recording is None:
            return
        if len(self._events) >= MOST_EVENTS:
            self.dropped_events += 1
            return
        self._events.append((recording, event.pod))

    def binding_failed(self, key: str, message: str, *, plugin: str, point: str) -> None:
        """Tell the engine that a pod could not be bound."""
        self.engine.binding_failed(key, message, plugin=plugin, point=point, generation=self._generation)

    def preemption_failed(self, pod: Pod) -> None:
        """Tell the engine that victims could not be evicted."""
        self.engine.preemption_failed(pod, generation=self._generation)


def _recorded(recording: EventRecording) -> Steps:
    yield from recording.exchange()


_NO_POD = Pod()
