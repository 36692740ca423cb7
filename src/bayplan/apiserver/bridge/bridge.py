"""The bridge: keeps typed objects in sync with the API's store, for listeners, controllers and the kubelet.

Only the thread of the event loop uses it. Every committed write reaches the typed store immediately. Listeners get
changes in batches, at the latest in the next iteration of the loop. `Bridge.advance` runs controllers and the kubelet
in slices, so that requests are served in between. The driver (`bayplan.apiserver.bridge.driver` in real time, or a
test) calls it when `Bridge.next_wakeup` is due.

Everything is level-triggered: the work follows from the objects, so a restart continues where the last run ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bayplan.apiserver.bridge.api_writer import ApiWriter
from bayplan.apiserver.bridge.controllers import ControllerSet, make_controllers
from bayplan.apiserver.bridge.event_recorder import EventRecorder
from bayplan.apiserver.bridge.housekeeping import EVENT_TTL_NS, EventExpiry, Leases
from bayplan.apiserver.bridge.kubelet import Kubelet
from bayplan.apiserver.bridge.object_writer import CONTROLLERS, KUBELET, ObjectWriter
from bayplan.apiserver.bridge.typed_store import TypedStore
from bayplan.apiserver.rest.api_endpoints import publish_api_server
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.store.item import Write
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.kubelet import KubeletOptions
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.writer import AwaitsAnswers

Listener = Callable[[Sequence[ChangeEvent]], None]

_MAX_HOUSEKEEPING = 20
_log = logging.getLogger("bayplan.bridge")


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeOptions:
    """Which components the bridge runs, and how.

    Attributes:
        controllers: whether controllers run; disable this if a kube-controller-manager does their work.
        kubelet: whether the virtual kubelet runs; disable this if nodes have real kubelets.
        pods: how the kubelet runs pods.
        certificate: the PEM certificate of the server, for the ConfigMap ``kube-root-ca.crt``; empty without TLS.
        event_ttl_ns: the time after which events are deleted.
        check: whether to compare both stores after every slice of work, for tests and debugging.
    """

    controllers: bool = True
    kubelet: bool = True
    pods: KubeletOptions = field(default_factory=lambda: KubeletOptions(container_statuses=True))
    certificate: str = ""
    event_ttl_ns: int = EVENT_TTL_NS
    check: bool = False


NOTHING_RUNS = BridgeOptions(controllers=False, kubelet=False)


class Bridge:
    """Keeps typed objects in sync with the API's store, notifies listeners, and runs controllers and the kubelet.

    Args:
        backend: the backend of the API; the bridge uses its clock.
        seed: the seed for the names that controllers generate.
        options: the components to run; none by default.

    Attributes:
        store: the typed objects; read-only, and only for the thread of the event loop.
        on_work: called when there is new work for `flush` or `advance`.
    """

    def __init__(self, backend: Backend, *, seed: int, options: BridgeOptions = NOTHING_RUNS) -> None:
        self.backend = backend
        self.options = options
        backend.runs_pods = options.kubelet
        if options.controllers:
            backend.runs.add("controller-manager")
        self.on_work: Callable[[], None] | None = None
        self._bugs: dict[str, Exception] = {}
        self._maintenance: tuple[tuple[str, Callable[[int], int]], ...] = (
            ("the API's Service", self._publish),
            ("leases", self._renew_leases),
            ("events", self._expire_events),
        )
        self._streams = RandomStreams(seed)
        self._writer = ObjectWriter(backend)
        self._recorder = EventRecorder(self._writer, self.now_ns)
        self.store = TypedStore(backend.store, self._streams.stream("bridge.uids"))
        self._api_writer = ApiWriter(self.store, backend.store, self._writer, self._recorder)
        self._listeners: list[Listener] = []
        self._unpublished: list[ChangeEvent] = []
        self._seen = 0
        self._turn = self._done = 0
        self._agent, self._leases, self._expiry, self._controllers = self._make_workers()
        self._begin()
        backend.store.follow(self._follow, self._restart)

    def _make_workers(self) -> tuple[Kubelet, Leases, EventExpiry, ControllerSet | None]:
        """Return a new kubelet, new maintenance components and, if enabled, new controllers, all without state."""
        agent = Kubelet(self.store, self._api_writer, self.options.pods, self._recorder)
        documents, certificate = self.backend.store, self.options.certificate
        leases = Leases(self.store, documents, self._writer, agent)
        expiry = EventExpiry(documents, self._writer, self.options.event_ttl_ns)
        controllers = None
        if self.options.controllers:
            controllers = make_controllers(
                self.backend, self.store, self._api_writer, self._writer, self._streams, certificate
            )
        return agent, leases, expiry, controllers

    def _begin(self) -> None:
        """Pass all existing objects to the kubelet and the controllers; the journal contains them as additions."""
        now_ns = self.now_ns()
        self._leases.begin(now_ns)
        self._expiry.begin()
        if self._controllers is not None:
            self._controllers.begin(now_ns)
        # Discard these additions: listeners get the existing objects when they are registered.
        self._take_journal()

    def now_ns(self) -> int:
        """Return the time of the backend's clock in nanoseconds since 1970."""
        return int(self.backend.clock() * SECOND_NS)

    # --- synchronization ----------------------------------------------------------------------------------------------

    def listen(self, listener: Listener) -> None:
        """Call a function with every change of a typed object, in revision order.

        It first gets the existing objects as additions.
        """
        self.flush()
        self._listeners.append(listener)
        events = self.store.initial_events()
        if events:
            listener(events)

    def flush(self) -> None:
        """Pass the changes since the last flush to the listeners. An exception of one does not affect the others."""
        events, self._unpublished = self._unpublished + self._take_journal(), []
        if events:
            for listener in self._listeners:
                try:
                    listener(events)
                except Exception as problem:
                    _log.exception("listener")
                    self._bugs[f"listener {problem}"] = problem

    def check(self) -> None:
        """Check that the typed objects equal the stored objects, and that all indexes are consistent.

        Raises:
            InvariantError: there is a difference.
        """
        self.backend.store.check_invariants()
        self.store.check()

    def _take_journal(self) -> list[ChangeEvent]:
        now_ns = self.now_ns()
        self._observe(now_ns)
        if self._controllers is not None:
            self._controllers.manager.close(now_ns)
        self._seen = 0
        return self.store.take_journal()

    def _observe(self, now_ns: int) -> None:
        """Pass the changes since the last call to the kubelet."""
        journal = self.store.journal()
        if self.options.kubelet:
            for position in range(self._seen, len(journal)):
                try:
                    self._agent.observe(journal[position], now_ns)
                except Exception as problem:
                    self._report(problem)
        self._seen = len(journal)

    def _follow(self, write: Write) -> None:
        self.store.follow(write)
        now_ns = self.now_ns()
        if self._controllers is not None:
            self._controllers.follow(write, now_ns)
        self._leases.follow(write)
        self._expiry.follow(write, now_ns)
        self._notify_work()

    def _restart(self) -> None:
        """Start again with new workers after a restore: the state of the old workers belongs to a discarded timeline."""
        self.store.read_all()
        self._unpublished += self.store.take_journal()
        self._seen = 0
        self._agent, self._leases, self._expiry, self._controllers = self._make_workers()
        self.store.journal().extend(self.store.initial_events())
        self._begin()
        self._notify_work()

    def _notify_work(self) -> None:
        if self.on_work is not None:
            self.on_work()

    # --- work ---------------------------------------------------------------------------------------------------------

    def next_wakeup(self) -> int | None:
        """Return the time in nanoseconds at which `advance` has work, possibly in the past; None if it has none."""
        now_ns = self.now_ns()
        self._observe(now_ns)
        times = [self._agent.next_wakeup()] if self.options.kubelet else []
        if self._controllers is not None:
            self._controllers.manager.follow(now_ns)
            times.append(self._controllers.manager.next_wakeup())
        if self._recorder.has_work:
            times.append(now_ns)
        return min((each for each in times if each is not None), default=None)

    def advance(self, now_ns: int, budget_ns: int | None = None) -> bool:
        """Do the work that is due, within the budget, then notify the listeners.

        Args:
            now_ns: the current time.
            budget_ns: the maximum real time in nanoseconds; a step can exceed it. None for no limit.

        Returns:
            Whether more work is due.
        """
        deadline = None if budget_ns is None else time.perf_counter_ns() + budget_ns
        while self._step(now_ns):
            if deadline is not None and time.perf_counter_ns() >= deadline:
                break
        self.flush()
        if self.options.check:
            self.check()
        wakeup_ns = self.next_wakeup()
        return wakeup_ns is not None and wakeup_ns <= now_ns

    def _step(self, now_ns: int) -> bool:
        """Do one unit of work, and return whether there was any.

        Kubelet and controllers take turns; events are written only when neither has work.
        """
        for _ in _TURNS:
            turn, most = _TURNS[self._turn]
            if self._done < most and turn(self, now_ns):
                self._done += 1
                return True
            self._turn, self._done = (self._turn + 1) % len(_TURNS), 0
        # A component may still have work although its turn has ended.
        return any(turn(self, now_ns) for turn, _ in _TURNS) or self._post_event() or self._complete_node(now_ns)

    def _run_pods(self, now_ns: int) -> bool:
        return self._run_kubelet(lambda: self._agent.advance_one(now_ns), now_ns)

    def _complete_node(self, now_ns: int) -> bool:
        return self._run_kubelet(lambda: self._agent.complete_one(now_ns), now_ns)

    def _run_kubelet(self, step: Callable[[], bool], now_ns: int) -> bool:
        if not self.options.kubelet:
            return False
        self._observe(now_ns)
        self._writer.manager = KUBELET
        try:
            return step()
        except AwaitsAnswers:
            pass
        except Exception as problem:
            self._report(problem)
        return True

    def _report(self, problem: Exception) -> None:
        """Report an exception of the kubelet, which must not affect other pods."""
        if isinstance(problem, InputError):
            _log.warning("kubelet: %s", problem)
        else:
            _log.error("kubelet", exc_info=problem)
            self._bugs[f"kubelet {problem}"] = problem

    def _run_controllers(self, now_ns: int) -> bool:
        if self._controllers is None:
            return False
        self._writer.manager = CONTROLLERS
        self._controllers.manager.follow(now_ns)
        return self._controllers.manager.step(now_ns)

    def _post_event(self) -> bool:
        self._writer.manager = CONTROLLERS
        return self._recorder.post_one()

    def run_maintenance(self, now_ns: int) -> bool:
        """Renew leases, delete expired events and restore the Service of the API, and return whether more is due.

        A server calls this about once a second; each call handles only a few objects.
        """
        done = 0
        for name, task in self._maintenance:
            try:
                done += task(now_ns)
            except Exception as problem:
                _log.exception("maintenance of %s failed", name)
                self._bugs[f"maintenance of {name}"] = problem
        return done >= _MAX_HOUSEKEEPING

    def _publish(self, now_ns: int) -> int:
        publish_api_server(self.backend)
        return 0

    def _renew_leases(self, now_ns: int) -> int:
        return self._leases.renew(now_ns, _MAX_HOUSEKEEPING) if self.options.kubelet else 0

    def _expire_events(self, now_ns: int) -> int:
        return self._expiry.expire(now_ns, _MAX_HOUSEKEEPING)

    # --- reporting ----------------------------------------------------------------------------------------------------

    def failures(self) -> dict[str, InputError]:
        """Return the current failures by object: rejected writes, and objects that cannot be decoded."""
        failures = self.store.undecodable | self._agent.failures
        if self._controllers is not None:
            failures |= self._controllers.manager.failures
        return failures

    def report_bug(self, component: str, problem: Exception) -> None:
        """Add an unexpected exception of a component that works with the bridge to `bugs`."""
        self._bugs[component] = problem

    def bugs(self) -> dict[str, Exception]:
        """Return unexpected exceptions of controllers, the kubelet, listeners and other components, by component and key."""
        found = self._bugs | self.backend.store.bugs
        return found | (self._controllers.manager.problems if self._controllers is not None else {})


# The workers with the maximum number of steps in a turn. If many pods start or end together, their owner is reconciled
# once.
_TURNS: tuple[tuple[Callable[[Bridge, int], bool], int], ...] = (
    (Bridge._run_pods, 32),
    (Bridge._run_controllers, 8),
)
