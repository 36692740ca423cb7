"""Executes the scheduler's actions: sends their requests to an API, in order for each pod, and writes events.

Hosts differ in how a request reaches the API, how time passes and when work is done; each implements a `Channel`. The
implementations are `app.action_loop` (Bayplan's own API, in process, in slices), `live.dispatcher` (a cluster, over
connections) and `conformance.e2e` (Bayplan's own API, in virtual time).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct

from bayplan.client.event_recorder import EventRecorder, EventRecording, PodEvent
from bayplan.client.exchanges import Exchange, exchanges_of
from bayplan.client.pre_bind import DEFAULT_LIMITS, BindLimits, PreBind
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.engine.actions import Action, Bind
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.pod import Pod

T = TypeVar("T", bound=KubernetesObject)

MAX_EVENTS = 20_000
"""Maximum number of pending events; further events are dropped.

Upstream has a queue of 1,000 before its rate limit and none after it.
"""

_log = logging.getLogger("bayplan.scheduler")


class Engine(Protocol):
    """The engine, which gets reports of rejected requests (`bayplan.live.scheduler_thread.SchedulerThread`)."""

    def binding_failed(
        self, pod: Pod, message: str, *, plugin: str = ..., point: str = ..., generation: int | None = ...
    ) -> None:
        """Report that a pod could not be bound; see `bayplan.engine.scheduler.Scheduler.binding_failed`."""
        ...

    def binding_written(self, pod: Pod, *, generation: int | None = ...) -> None:
        """Report that the API has accepted a binding."""
        ...

    def preemption_failed(self, pod: Pod, *, generation: int | None = ...) -> None:
        """Report that victims could not be evicted; see `Scheduler.preemption_failed`."""
        ...


class Channel(Protocol):
    """The interface through which requests reach the API; each host implements it."""

    def send(self, request: ApiRequest, *, is_event: bool, answer: Callable[[ApiResponse], None]) -> ApiResponse | None:
        """Send a request. Return the response, or None and call `answer` with the response later."""
        ...

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after this number of seconds."""
        ...

    def wake(self) -> None:
        """Arrange that `ActionExecutor.run_next` is called, because there is work."""
        ...


class _Work(Struct, gc=False):
    """The requests of an exchange about a pod, or those that write an event.

    Attributes:
        steps: the requests, one after the other.
        exchange: the exchange that has these steps; None for an event.
        generation: the number of the scheduler that returned the actions; a later scheduler gets no reports of
            failures.
    """

    steps: RequestSteps[None]
    exchange: Exchange | None = None
    generation: int = 0


class ActionExecutor:
    """Converts actions to requests, and reports rejections to the engine. Everything runs on one thread.

    Args:
        channel: the channel to the API.
        objects: the cached objects of the cluster.
        host_name: the host name of this machine, for events.
        now_ns: returns the time in nanoseconds since 1970.

    Attributes:
        engine: the engine; must be set before actions are executed.
        limits: how long pods wait for volumes and devices, by scheduler name; other pods have the default limits.
        on_written: called with a pod when an exchange about it has ended: its binding, condition or nomination.
        dropped_events: the number of events dropped because too many were pending.
        failures: the number of exchanges that ended with an exception, which is a bug.
    """

    engine: Engine

    def __init__(self, channel: Channel, objects: ObjectLookup, *, host_name: str, now_ns: Callable[[], int]) -> None:
        self._channel = channel
        self._objects = objects
        self._now_ns = now_ns
        self._recorder = EventRecorder(host_name, now_ns)
        self._ready: deque[_Work] = deque()
        self._events: deque[_Work] = deque()
        # By key and uid: a pod that replaces one of the same name does not wait for its predecessor.
        self._behind: dict[tuple[str, str], deque[_Work]] = {}
        self._pre_binds: dict[tuple[str, str], PreBind] = {}
        self._unwritten_events = 0
        self.limits: Mapping[str, BindLimits] = {}
        self.on_written: Callable[[Pod], None] | None = None
        self.dropped_events = 0
        self.failures = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is pending or in progress."""
        return not (self._ready or self._behind or self._unwritten_events)

    def execute(self, actions: Sequence[Action], generation: int = 0) -> None:
        """Queue the exchanges of actions; `run_next` starts them.

        Args:
            actions: all actions that one call of the scheduler returned.
            generation: the number of the scheduler that returned them.
        """
        host = _Outcomes(self, generation)
        try:
            exchanges = exchanges_of(actions, host)
        except Exception:
            self.failures += 1
            _log.exception("actions of the scheduler")
            for action in actions:
                if isinstance(action, Bind):
                    host.report_internal_error(action.pod)
            return
        for each in exchanges:
            if each.pre_bind is not None:
                self._pre_binds[_identity(each.pod)] = each.pre_bind
            self._ready.append(_Work(each.steps, each, generation))

    def run_next(self) -> bool:
        """Start the first pending exchange, else the first pending event; return whether there was one."""
        if self._ready:
            self._begin(self._ready.popleft())
        elif self._events:
            self._drive(self._events.popleft(), None)
        else:
            return False
        return True

    def run_all(self) -> None:
        """Start all pending exchanges and events."""
        while self.run_next():
            pass

    def next_wakeup_ns(self) -> int:
        """Return the time in nanoseconds since 1970 at which `tick` next has work."""
        return self._recorder.next_wakeup_ns()

    def tick(self) -> None:
        """Write the counts of repeated events that are due."""
        if self._now_ns() < self._recorder.next_wakeup_ns():
            return
        for recording in self._recorder.tick():
            self._write(recording)

    # --- one exchange -------------------------------------------------------------------------------------------------

    def _begin(self, work: _Work) -> None:
        """Start an exchange, or queue it behind the exchange of its pod that is in progress."""
        assert work.exchange is not None
        identity = _identity(work.exchange.pod)
        behind = self._behind.get(identity)
        if behind is not None:
            behind.append(work)
            return
        self._behind[identity] = deque()
        self._drive(work, None)

    def _drive(self, work: _Work, response: ApiResponse | None) -> None:
        """Continue an exchange until it ends, or has to wait for a response or a delay."""
        steps, exchange = work.steps, work.exchange
        resume = partial(self._drive, work)
        try:
            step = next(steps) if response is None else steps.send(response)
            while not isinstance(step, float):
                answer = self._channel.send(step, is_event=exchange is None, answer=resume)
                if answer is None:
                    return
                step = steps.send(answer)
        except StopIteration:
            self._ended(exchange)
            return
        except Exception:
            self.failures += 1
            _log.exception("an exchange about %s", exchange.pod.key if exchange is not None else "an event")
            if exchange is not None and exchange.is_binding:
                _Outcomes(self, work.generation).report_internal_error(exchange.pod)
            self._ended(exchange)
            return
        self._channel.call_later(step, partial(resume, None))

    def _ended(self, exchange: Exchange | None) -> None:
        if exchange is None:
            self._unwritten_events -= 1
            return
        identity = _identity(exchange.pod)
        if exchange.pre_bind is not None and self._pre_binds.get(identity) is exchange.pre_bind:
            del self._pre_binds[identity]
        behind = self._behind.pop(identity)
        if behind:
            self._ready.extendleft(reversed(behind))
            self._channel.wake()
        if self.on_written is not None:
            self.on_written(exchange.pod)

    def _cancel_pre_bind(self, pod: Pod) -> bool:
        pre_bind = self._pre_binds.get(_identity(pod))
        return pre_bind is not None and pre_bind.cancel()

    # --- events -------------------------------------------------------------------------------------------------------

    def _record(self, event: PodEvent) -> None:
        recording = self._recorder.record(event)
        if recording is not None:
            self._write(recording)

    def _write(self, recording: EventRecording) -> None:
        if self._unwritten_events >= MAX_EVENTS:
            self.dropped_events += 1
            return
        self._unwritten_events += 1
        self._events.append(_Work(_recorded(recording)))
        self._channel.wake()


class _Outcomes:
    """Reports the outcomes of exchanges to the engine (`bayplan.client.exchanges.ExchangeHost`)."""

    def __init__(self, executor: ActionExecutor, generation: int) -> None:
        self._executor = executor
        self._generation = generation

    def now_ns(self) -> int:
        """Return the time in nanoseconds since 1970."""
        return self._executor._now_ns()

    def get(self, kind: type[T], key: str) -> T | None:
        """Return a cached object, or None if it does not exist."""
        return self._executor._objects.get(kind, key)

    def record_event(self, event: PodEvent) -> None:
        """Queue an event."""
        self._executor._record(event)

    def bind_limits(self, pod: Pod) -> BindLimits:
        """Return how long a pod waits for its volumes and devices."""
        return self._executor.limits.get(pod.spec.scheduler_name, DEFAULT_LIMITS)

    def binding_failed(self, pod: Pod, message: str, *, plugin: str, point: str) -> None:
        """Report that a pod could not be bound. The engine ignores it if the scheduler was replaced in the meantime."""
        self._executor.engine.binding_failed(pod, message, plugin=plugin, point=point, generation=self._generation)

    def binding_written(self, pod: Pod) -> None:
        """Report that the API has accepted a binding."""
        self._executor.engine.binding_written(pod, generation=self._generation)

    def cancel_pre_bind(self, pod: Pod) -> bool:
        """Cancel the PreBind phase of a pod's binding; return False if the pod is not in this phase."""
        return self._executor._cancel_pre_bind(pod)

    def preemption_failed(self, pod: Pod) -> None:
        """Report that victims could not be evicted.

        The engine ignores it if the scheduler was replaced in the meantime.
        """
        self._executor.engine.preemption_failed(pod, generation=self._generation)

    def report_internal_error(self, pod: Pod) -> None:
        """Report that a binding failed because of a bug in Bayplan, so that the pod does not wait forever."""
        self.binding_failed(pod, "internal error", plugin="DefaultBinder", point="Bind")


def _identity(pod: Pod) -> tuple[str, str]:
    return pod.key, pod.metadata.uid


def _recorded(recording: EventRecording) -> RequestSteps[None]:
    yield from recording.exchange()
