"""All pairs of operations on one pod, from every state that a pod can have: the queue agrees with the naive one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import pytest

from bayplan.engine.queue import QueueOptions, SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.events import FORCE_ACTIVATE, NODE_ADD, ActionType, ClusterEvent, EventResource, Registration
from bayplan.objects.pod import Pod
from tests.engine.queue_pods import PROFILE, SECOND, gate, no_scheduling_gates, pod
from tests.engine.queue_states import state
from tests.oracle.queue import NaiveQueue, Record, name


class Pair:
    """A real queue and a naive one, and the cluster around them. Its clock moves on with every operation."""

    def __init__(self, *, pop_from_backoff: bool) -> None:
        def hint(action: ActionType, plugin: str, queues: bool) -> Registration:
            return ClusterEvent(EventResource.POD, action), plugin, lambda pod, old, new: queues

        hints = {
            PROFILE: [
                hint(ActionType.UPDATE_POD_LABEL, "P", True),
                hint(ActionType.UPDATE_POD_TOLERATION, "Q", False),
                hint(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, "SchedulingGates", True),
                (NODE_ADD, "P", None),
                (NODE_ADD, "G", None),
            ]
        }
        self.held = set[str]()
        self.known: dict[str, Pod] = {}
        self.now = 400_000_000
        self.popped: tuple[QueuedPod, Record] | None = None
        options = QueueOptions(pop_from_backoff=pop_from_backoff, start_ns=self.now)
        gates = [("G", lambda pod: pod.metadata.name not in self.held), ("SchedulingGates", no_scheduling_gates)]
        plugins = [(plugin, gate(passes)) for plugin, passes in gates]
        self.queue = SchedulingQueue(hints, {PROFILE: plugins}, self.known.get, options=options)
        self.naive = NaiveQueue(hints, {PROFILE: gates}, self.known.get, options)

    def add(self, pod: Pod) -> None:
        self.known[name(pod)] = pod
        self.queue.add(pod, self.now)
        self.naive.add(pod, self.now)

    def update(self, old: Pod, new: Pod) -> None:
        self.known[name(new)] = new
        self.queue.update(old, new, self.now)
        self.naive.update(old, new, self.now)

    def pop(self, queued: QueuedPod | None, record: Record | None) -> None:
        assert (queued is None) == (record is None)
        if queued is not None and record is not None:
            self.popped = queued, record

    def fail(self, plugins: str, pending: str = "", node_name: str = "") -> None:
        if self.popped is None:
            return
        (queued, record), self.popped = self.popped, None
        nominated_node_name = node_name if node_name else None
        outcome = self.queue.fail(
            queued,
            self.now,
            unschedulable_plugins=frozenset(plugins),
            pending_plugins=frozenset(pending),
            nominated_node_name=nominated_node_name,
        )
        naive = self.naive.fail(record, self.now, set(plugins), set(pending), nominated_node_name)
        assert (outcome is not None, outcome or "") == naive

    def hold(self, *names: str) -> None:
        self.held.clear()
        self.held.update(names)

    def flush(self, after: int) -> None:
        self.now += after
        self.queue.flush_backoff(self.now)
        self.naive.flush_backoff(self.now)
        self.queue.flush_unschedulable(self.now)
        self.naive.flush_unschedulable(self.now)


def version(number: int, *, gates: tuple[str, ...] = (), uid: str = "uid-a") -> Pod:
    """Return a version of pod a. Versions differ in all fields whose changes cause events."""
    return pod("a", version=str(number), uid=uid, priority=number, tolerations=number, gates=gates, x=str(number))


A0, A1, A2, GATED, REPLACED = version(0), version(1), version(2), version(3, gates=("g",)), version(4, uid="other")
Step = Callable[[Pair], None]


def popping(pair: Pair) -> None:
    pair.pop(pair.queue.pop(), pair.naive.pop())


def popping_a(pair: Pair) -> None:
    pair.pop(pair.queue.pop_specific(A1, pair.now), pair.naive.pop_specific(A1, pair.now))


def deleting(pair: Pair) -> None:
    pair.queue.delete(A1)
    pair.naive.delete(A1)


def ending(pair: Pair) -> None:
    pair.queue.done("uid-a")
    pair.naive.done("uid-a")


def activating(pair: Pair) -> None:
    pair.queue.activate([A1], pair.now)
    pair.naive.activate([A1], pair.now)


def moving(event: ClusterEvent, new: Pod | None = None) -> Step:
    def step(pair: Pair) -> None:
        pair.queue.move_all(event, None, new, pair.now)
        pair.naive.move_all(event, None, new, pair.now)

    return step


def adding(pod: Pod) -> Step:
    return lambda pair: pair.add(pod)


def updating(old: Pod, new: Pod) -> Step:
    return lambda pair: pair.update(old, new)


def failing(plugins: str, pending: str = "", node_name: str = "") -> Step:
    return lambda pair: pair.fail(plugins, pending, node_name)


STARTS: dict[str, Sequence[Step]] = {
    "active": [adding(A0)],
    "in flight": [adding(A0), popping],
    "rejected": [adding(A0), popping, failing("PQ")],
    "pending": [adding(A0), popping, failing("Q", "P")],
    "sent back by an error": [adding(A0), popping, failing("")],
    "nominated": [adding(A0), popping, failing("P", node_name="n1")],
    "updated while it backs off": [adding(A0), popping, failing("PQ"), updating(A0, A1)],
    "flushed for its age": [adding(A0), popping, failing("P"), lambda pair: pair.flush(301 * SECOND), popping],
    "gated": [lambda pair: pair.hold("a"), adding(A0)],
    "rejected, with a closed gate": [adding(A0), popping, failing("P"), lambda pair: pair.hold("a")],
    "rejected while another pod is in flight": [
        adding(pod("b", priority=9)),
        popping,
        adding(A0),
        popping,
        failing("P"),
    ],
}
STEPS: Sequence[Step] = [
    adding(A1),
    updating(A1, A2),
    updating(A1, GATED),
    updating(GATED, A1),
    updating(A1, REPLACED),
    deleting,
    popping,
    popping_a,
    activating,
    ending,
    failing("PQ"),
    moving(NODE_ADD),
    moving(FORCE_ACTIVATE, A1),
    lambda pair: pair.hold(),
    lambda pair: pair.hold("a"),
    lambda pair: pair.flush(0),
    lambda pair: pair.flush(3 * SECOND),
    lambda pair: pair.flush(301 * SECOND),
]


@pytest.mark.parametrize("pop_from_backoff", [True, False], ids=["popping from backoff", "not popping from backoff"])
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_any_two_operations_match_the_naive_queue(start: Sequence[Step], pop_from_backoff: bool) -> None:
    for first, second in product(STEPS, repeat=2):
        pair = Pair(pop_from_backoff=pop_from_backoff)
        for step in (*start, first, second):
            pair.now += 1
            step(pair)
        pair.queue.check_invariants()
        assert state(pair.queue) == state(pair.naive), (STEPS.index(first), STEPS.index(second))
