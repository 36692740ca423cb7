"""The scheduling queue and the naive one agree after every operation, whatever the order of operations."""

from __future__ import annotations

import copy

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from bayplan.engine.queue import QueueOptions, SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
    Registration,
)
from bayplan.objects.pod import Pod
from tests.engine.queue_pods import NODE_LABEL, PROFILE, SECOND, gate, no_scheduling_gates, pod
from tests.engine.queue_states import naive_row, row, state
from tests.oracle.queue import NaiveQueue, Record, name

NAMES = ("a", "b", "c")
POD_UPDATE = ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
EVENTS = (NODE_ADD, NODE_LABEL, ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, FORCE_ACTIVATE)
VERSIONS = [
    pod(name, version=str(number), **variant)  # type: ignore[arg-type]
    for name in NAMES
    for number, variant in enumerate(
        (
            {"priority": 1},
            {"priority": 2, "x": "1"},
            {"tolerations": 1, "x": "2"},
            {"gates": ("g",)},
            {"nominated": "n1"},
            {"uid": f"other-{name}"},
        )
    )
]
plugin_sets = st.frozensets(st.sampled_from("PQ"), max_size=2)
versions = st.sampled_from(VERSIONS)


def registrations(answers: dict[str, bool]) -> list[Registration]:
    """Return registrations for events of nodes (P), of pods (Q), and of the pod itself.

    `answers`: the results of hints, by plugin and pod; Queue by default.
    """

    def hint(plugin: str) -> Registration:
        resource, actions = ("Node", ActionType.ADD | ActionType.UPDATE) if plugin == "P" else ("Pod", ActionType.ALL)
        return (
            ClusterEvent(resource, actions),
            plugin,
            lambda pod, old, new: answers.get(plugin + pod.metadata.name, True),
        )

    own_label = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)
    gates_eliminated = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    return [
        hint("P"),
        hint("Q"),
        (own_label, "P", None),
        (gates_eliminated, "SchedulingGates", None),
        (NODE_ADD, "G", None),
    ]


class QueueMachine(RuleBasedStateMachine):
    """Both queues under the same operations, with small pods and a clock that jumps."""

    @initialize(
        pop_from_backoff=st.booleans(),
        max_backoff=st.sampled_from((0, 1, 4)),
        max_in_unschedulable=st.sampled_from((0, 3, 40)),
        start=st.sampled_from((0, 400_000_000)),
    )
    def begin(self, pop_from_backoff: bool, max_backoff: int, max_in_unschedulable: int, start: int) -> None:
        self.options = QueueOptions(
            max_backoff_ns=max_backoff * SECOND,
            max_in_unschedulable_ns=max_in_unschedulable * SECOND,
            pop_from_backoff=pop_from_backoff,
            start_ns=start,
        )
        self.now = start
        self.flushed_at = start - 1
        self.known: dict[str, Pod] = {}
        self.held: set[str] = set()
        self.answers: dict[str, bool] = {}
        self.popped: dict[str, tuple[QueuedPod, Record]] = {}
        hints = {PROFILE: registrations(self.answers)}
        gates = [("SchedulingGates", no_scheduling_gates), ("G", lambda pod: pod.metadata.name not in self.held)]
        self.queue = SchedulingQueue(
            hints,
            {PROFILE: [(plugin, gate(passes)) for plugin, passes in gates]},
            self.known.get,
            options=self.options,
        )
        self.naive = NaiveQueue(hints, {PROFILE: gates}, self.known.get, self.options)

    @rule(pod=versions)
    def add(self, pod: Pod) -> None:
        self.known[name(pod)] = pod
        self.queue.add(pod, self.now)
        self.naive.add(pod, self.now)
        self.compare()

    @rule(old=versions, new=versions)
    def update(self, old: Pod, new: Pod) -> None:
        old = next(
            each
            for each in VERSIONS
            if name(each) == name(new) and each.metadata.resource_version == old.metadata.resource_version
        )
        self.known[name(new)] = new
        self.queue.update(old, new, self.now)
        self.naive.update(old, new, self.now)
        self.compare()

    @rule(pod=versions, keep=st.booleans())
    def delete(self, pod: Pod, keep: bool) -> None:
        if not keep:
            self.known.pop(name(pod), None)
        self.queue.delete(pod)
        self.naive.delete(pod)
        self.compare()

    @rule()
    def pop(self) -> None:
        ready = self.queue.has_next
        queued = self.queue.pop()
        # The queue drops a popped pod that is already in flight. Then it had a next pod, but returns none.
        assert ready or queued is None
        assert not (queued is None and self.queue.has_next)
        self.remember(queued, self.naive.pop())

    @rule(pod=versions)
    def pop_specific(self, pod: Pod) -> None:
        self.remember(self.queue.pop_specific(pod, self.now), self.naive.pop_specific(pod, self.now))

    def remember(self, queued: QueuedPod | None, record: Record | None) -> None:
        assert (queued is None) == (record is None)
        if queued is not None and record is not None:
            assert row(queued) == naive_row(record)
            self.popped[queued.key] = (queued, record)
        self.compare()

    @precondition(lambda self: self.popped)
    @rule(
        pick=st.integers(0, 2), plugins=plugin_sets, pending=plugin_sets, node=st.sampled_from(("", "n1", "n2", None))
    )
    def fail(self, pick: int, plugins: frozenset[str], pending: frozenset[str], node: str | None) -> None:
        queued, record = self.popped.pop(sorted(self.popped)[pick % len(self.popped)])
        nominated_node_name = None if node is None else node
        outcome = self.queue.fail(
            queued,
            self.now,
            unschedulable_plugins=plugins,
            pending_plugins=pending,
            nominated_node_name=nominated_node_name,
        )
        naive = self.naive.fail(record, self.now, set(plugins), set(pending), nominated_node_name)
        assert (outcome is not None, outcome or "") == naive
        self.compare()

    @precondition(lambda self: self.popped)
    @rule(pick=st.integers(0, 2))
    def done(self, pick: int) -> None:
        queued, record = self.popped.pop(sorted(self.popped)[pick % len(self.popped)])
        self.queue.done(queued.uid)
        self.naive.done(record.pod.metadata.uid)
        self.compare()

    @rule(event=st.sampled_from(EVENTS), highest=st.sampled_from((None, 1)), new=st.none() | versions)
    def move(self, event: ClusterEvent, highest: int | None, new: Pod | None) -> None:
        check = None if highest is None else lambda pod: (pod.spec.priority or 0) <= highest
        self.queue.move_all(event, None, new, self.now, check)
        self.naive.move_all(event, None, new, self.now, check)
        self.compare()

    @rule(pods=st.lists(versions, max_size=2))
    def activate(self, pods: list[Pod]) -> None:
        self.queue.activate(pods, self.now)
        self.naive.activate(pods, self.now)
        self.compare()

    @rule(plugin=st.sampled_from("PQ"), pod_name=st.sampled_from(NAMES), answer=st.booleans())
    def answer(self, plugin: str, pod_name: str, answer: bool) -> None:
        self.answers[plugin + pod_name] = answer

    @rule(pod_name=st.sampled_from(NAMES))
    def hold_or_let_go(self, pod_name: str) -> None:
        self.held ^= {pod_name}

    @rule(step=st.sampled_from((1, 600_000_000, SECOND, 30 * SECOND)))
    def wait(self, step: int) -> None:
        self.now += step

    @rule()
    def flush(self) -> None:
        self.queue.flush_backoff(self.now)
        self.naive.flush_backoff(self.now)
        self.compare()
        self.queue.flush_unschedulable(self.now)
        self.naive.flush_unschedulable(self.now)
        self.flushed_at = self.now
        self.compare()

    @rule()
    def ask_for_the_next_flush(self) -> None:
        assert self.queue.next_flush_ns(self.now) == self.first_tick_that_changes_something()

    def first_tick_that_changes_something(self) -> int | None:
        # Backoffs last at most 4 s, and the flush of unschedulable pods comes after at most 40 s.
        start = self.options.start_ns
        first_window = start - start % SECOND if self.options.pop_from_backoff else start
        seconds = {first_window + number * SECOND for number in range(1, (self.now - start) // SECOND + 77)}
        halves = {start + number * 30 * SECOND for number in range((self.now - start) // (30 * SECOND) + 4)}
        ticks = sorted(tick for tick in seconds | halves if self.now <= tick <= self.now + 75 * SECOND)
        before = state(self.naive)
        for tick in ticks:
            future = copy.deepcopy(self.naive)
            future.gates = self.naive.gates
            if tick in seconds:
                future.flush_backoff(tick)
            if tick in halves and tick > self.flushed_at:
                future.flush_unschedulable(tick)
            if state(future) != before:
                return tick
        return None

    def compare(self) -> None:
        self.queue.check_invariants()
        assert state(self.queue) == state(self.naive)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
TestQueueAgreesWithTheNaiveOne = QueueMachine.TestCase
