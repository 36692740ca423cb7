"""The contract of both scheduling queues with their hosts, tested only through public methods.

Scripts are short sequences of operations in words; a state machine generates long ones. The tests do not depend
on the implementation of a queue, so they apply to every implementation.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from bayplan.classic.queue import ClassicQueue
from bayplan.engine.queue import QueueOptions, SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.events import NODE_ADD, NODE_DELETE, ActionType, ClusterEvent, EventResource
from bayplan.objects.pod import Pod
from tests.engine.queue_pods import PROFILE, SECOND, gate, no_scheduling_gates, pod

CURRENT, LATE, CLASSIC = "current", "current without early pops", "classic"
KINDS = (CURRENT, LATE, CLASSIC)
EVENTS = {"node": NODE_ADD, "node-gone": NODE_DELETE}
START = 1_000 * SECOND
GATES_GONE = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


class Story:
    """A queue, the pods that its lister knows, the time, and the records that were popped.

    Steps: ``add NAME [PRIORITY]``, ``gated NAME``, ``open NAME`` (its gate goes), ``label NAME``, ``delete NAME``, ``pop``,
    ``fail NAME [PLUGIN]`` (without a plugin an error ended the attempt), ``bind NAME``, ``bound-elsewhere NAME``,
    ``forget NAME`` (the cluster deletes it), ``event node``, ``event node-gone``, ``activate NAME``,
    ``wait SECONDS`` (timers run when due), ``close``.
    """

    def __init__(self, kind: str) -> None:
        self.known: dict[str, Pod] = {}
        self.now = START
        self.popped: dict[str, QueuedPod] = {}
        self.order: list[str] = []
        self.results: list[object] = []
        if kind == CLASSIC:
            self.queue: SchedulingQueue = ClassicQueue({}, {}, self.known.get, options=QueueOptions(start_ns=START))
        else:
            self.queue = SchedulingQueue(
                {
                    PROFILE: [
                        (NODE_ADD, "P", None),
                        (NODE_ADD, "SchedulingGates", None),
                        (GATES_GONE, "SchedulingGates", None),
                    ]
                },
                {PROFILE: [("SchedulingGates", gate(no_scheduling_gates))]},
                self.known.get,
                options=QueueOptions(start_ns=START, pop_from_backoff=kind == CURRENT),
            )

    def play(self, script: str) -> Story:
        for step in script.split(","):
            verb, *words = step.split()
            getattr(self, f"_{verb.replace('-', '_')}")(*words)
            self.queue.check_invariants()
        return self

    def places(self) -> dict[str, str]:
        """Return the names of the pods in each tier that is not empty, sorted."""
        tiers = {
            "active": self.queue.active(),
            "backoff": self.queue.backing_off(),
            "unschedulable": self.queue.unschedulable(),
        }
        return {tier: " ".join(sorted(it.pod.metadata.name for it in pods)) for tier, pods in tiers.items() if pods}

    def _add(self, name: str, priority: str = "0") -> None:
        self.known[f"default/{name}"] = pod(name, priority=int(priority))
        self.queue.add(self.known[f"default/{name}"], self.now)
        self.now += 1

    def _gated(self, name: str) -> None:
        self.known[f"default/{name}"] = pod(name, gates=("g",))
        self.queue.add(self.known[f"default/{name}"], self.now)

    def _pop(self) -> None:
        queued = self.queue.pop()
        self.order.append("-" if queued is None else queued.pod.metadata.name)
        if queued is not None:
            self.popped[queued.pod.metadata.name] = queued

    def _fail(self, name: str, plugin: str = "") -> None:
        plugins = frozenset({plugin} - {""})
        found = self.queue.fail(self.popped.pop(name), self.now, unschedulable_plugins=plugins)
        self.results.append(found is not None)

    def _bind(self, name: str) -> None:
        queued = self.popped.pop(name)
        self.known[queued.key] = pod(name, node="n1")
        self.queue.done(queued.uid)

    def _bound_elsewhere(self, name: str) -> None:
        self.known[f"default/{name}"] = pod(name, node="n1")

    def _delete(self, name: str) -> None:
        self.queue.delete(self.known.pop(f"default/{name}"))

    def _forget(self, name: str) -> None:
        del self.known[f"default/{name}"]

    def _replace(self, name: str, **changes: object) -> None:
        old = self.known[f"default/{name}"]
        version = str(int(old.metadata.resource_version) + 1)
        new = pod(name, priority=old.spec.priority, version=version, **changes)  # type: ignore[arg-type]
        self.known[f"default/{name}"] = new
        self.queue.update(old, new, self.now)

    def _label(self, name: str) -> None:
        self._replace(name, app="web")

    def _open(self, name: str) -> None:
        self._replace(name)

    def _event(self, name: str) -> None:
        self.results.append(self.queue.move_all(EVENTS[name], None, None, self.now))

    def _activate(self, name: str) -> None:
        self.results.append(self.queue.activate([self.known[f"default/{name}"]], self.now))

    def _wait(self, seconds: str) -> None:
        until = self.now + int(float(seconds) * SECOND)
        while (due := self.queue.next_flush_ns(self.now)) is not None and due <= until:
            self.now = due
            self.queue.flush_backoff(due)
            self.queue.flush_unschedulable(due)
            self.now += 1
        self.now = max(self.now, until)

    def _close(self) -> None:
        self.queue.close()


ALL = "all"


@pytest.mark.parametrize(
    ("script", "want"),
    [
        pytest.param("pop", {ALL: "-"}, id="an empty queue has no pod"),
        pytest.param("add a, add b, pop, pop, pop", {ALL: "a b -"}, id="the older pod is popped first"),
        pytest.param("add a, add b 5, add c, pop, pop, pop", {ALL: "b a c"}, id="priority takes precedence over age"),
        pytest.param("add a -1, add b, pop", {ALL: "b"}, id="a negative priority is last"),
        pytest.param("add a, add b, delete a, pop, pop", {ALL: "b -"}, id="a deleted pod is not popped"),
        pytest.param("add a, pop, bind a, pop", {ALL: "a -"}, id="a bound pod is not requeued"),
        pytest.param("add a, pop, fail a P, pop", {ALL: "a -"}, id="a rejected pod waits for an event"),
        pytest.param(
            "add a, pop, fail a P, wait 5, event node, pop", {ALL: "a a"},
            id="an event after the backoff makes it ready at once",
        ),
        pytest.param(
            "add a, pop, fail a P, event node, pop", {CURRENT: "a a", LATE: "a -", CLASSIC: "a -"},
            id="an event during the backoff: only early pops ignore it",
        ),
        pytest.param(
            "add a, pop, fail a P, event node, wait 3, pop", {ALL: "a a"}, id="the end of the backoff makes it ready"
        ),
        pytest.param(
            "add a, pop, event node, fail a P, pop", {CURRENT: "a a", LATE: "a -", CLASSIC: "a -"},
            id="an event during the attempt counts when it fails",
        ),
        pytest.param(
            "add a, pop, event node, fail a P, wait 3, pop", {ALL: "a a"}, id="and then its backoff has to end"
        ),
        pytest.param(
            "add a, pop, fail a Q, wait 5, event node, pop", {CURRENT: "a -", LATE: "a -", CLASSIC: "a a"},
            id="an event that its plugin does not wait for helps in the classic queue only",
        ),
        pytest.param(
            "add a, pop, fail a P, wait 5, event node-gone, pop", {ALL: "a -"}, id="a deleted node helps no pod"
        ),
        pytest.param(
            "add a, pop, fail a, pop, wait 3, pop", {CURRENT: "a - a", LATE: "a - a", CLASSIC: "a - -"},
            id="after an error it is tried again by itself, except in the classic queue",
        ),
        pytest.param("add a, pop, fail a P, wait 91, pop", {CURRENT: "a -", LATE: "a -", CLASSIC: "a a"}, id="after 90 s"),
        pytest.param("add a, pop, fail a P, wait 331, pop", {ALL: "a a"}, id="after five and a half minutes"),
        pytest.param(
            "add a, pop, fail a P, activate a, pop", {ALL: "a a"}, id="a plugin or a user may activate a pod"
        ),
        pytest.param("add a, add b, close, pop, pop, pop", {ALL: "a b -"}, id="a closed queue is emptied"),
        pytest.param("gated a, pop, open a, pop", {CURRENT: "- a", LATE: "- a"}, id="a gated pod waits for its gate"),
        pytest.param("gated a, wait 1000, pop", {CURRENT: "-", LATE: "-"}, id="time opens no gate"),
        pytest.param("gated a, event node, pop", {CURRENT: "-", LATE: "-"}, id="no event opens a gate"),
    ],
)  # fmt: skip
def test_pods_are_popped_in_the_documented_order(script: str, want: Mapping[str, str]) -> None:
    """`want`: the order of all queues, or the order by kind of queue; the classic queue has no gates."""
    wanted = dict.fromkeys(KINDS, want[ALL]) if ALL in want else want
    assert {kind: " ".join(Story(kind).play(script).order) for kind in wanted} == wanted


@pytest.mark.parametrize(
    ("script", "want"),
    [
        pytest.param("add a, pop, forget a, fail a P", [False], id="a pod that is gone is not taken back"),
        pytest.param("add a, pop, bound-elsewhere a, fail a P", [False], id="a pod that has a node by now is not taken back"),
        pytest.param("add a, pop, fail a P", [True], id="any other is"),
        pytest.param("add a, pop, fail a P, wait 5, event node", [True, 1], id="an event returns how many pods it moved"),
        pytest.param("add a, event node", [0], id="a pod that is ready is not moved"),
        pytest.param(
            "add a, add b, pop, pop, fail a P, fail b P, wait 5, event node, event node", [True, True, 2, 0],
            id="each is moved once",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_queue_methods_return_the_documented_values(kind: str, script: str, want: list[object]) -> None:
    assert Story(kind).play(script).results == want


@pytest.mark.parametrize(
    ("script", "want"),
    [
        pytest.param("add a, add b", {"active": "a b"}, id="new pods are active"),
        pytest.param("add a, pop", {}, id="a pod in flight is in no tier"),
        pytest.param("add a, pop, fail a P", {"unschedulable": "a"}, id="a rejected pod is unschedulable"),
        pytest.param("add a, pop, fail a P, event node", {"backoff": "a"}, id="one that an event woke backs off"),
        pytest.param("add a, pop, fail a P, event node, wait 3", {"active": "a"}, id="its backoff ends"),
        pytest.param("add a, pop, fail a P, delete a", {}, id="a deleted pod is in no tier"),
        pytest.param("add a, pop, delete a, fail a P", {}, id="also if it was in flight"),
        pytest.param("add a, pop, fail a P, delete a, add a", {"active": "a"}, id="another of its name starts over"),
        pytest.param("add a, label a", {"active": "a"}, id="an update does not move an active pod"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_pods_wait_in_the_documented_tier(kind: str, script: str, want: dict[str, str]) -> None:
    story = Story(kind).play(script)
    assert story.places() == want
    assert {tier: len(names.split()) for tier, names in want.items()} == {
        tier: count for tier, count in story.queue.pending_counts().items() if count
    }
    assert len(story.queue) == sum(len(names.split()) for names in want.values())


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (40, 10)], ids=str)
@pytest.mark.parametrize("kind", [LATE, CLASSIC])
def test_backoff_doubles_up_to_ten_seconds(kind: str, failures: int, seconds: int) -> None:
    """Each failure comes after the backoff of the one before. A timer that finds it over may be up to a second late."""
    story = Story(kind).play("add a")
    for number in range(failures):
        story.play("pop, fail a P")
        failed_at = story.now
        story.play("event node")
        if number < failures - 1:
            story.play("wait 12" if kind == LATE else "wait 11.5")
    story.queue.flush_backoff(failed_at + seconds * SECOND - 1)
    assert story.places() == {"backoff": "a"}
    story.queue.flush_backoff(failed_at + seconds * SECOND + SECOND)
    assert story.places() == {"active": "a"}


@pytest.mark.parametrize("kind", KINDS)
def test_closed_is_true_after_close(kind: str) -> None:
    story = Story(kind).play("add a")
    assert not story.queue.closed
    story.play("close")
    assert story.queue.closed


# Long sequences.


class Contract(RuleBasedStateMachine):
    """The state after any sequence of calls: each pod waits, is in flight, or is gone, and never two of these."""

    kind = CURRENT

    def __init__(self) -> None:
        super().__init__()
        self.story = Story(self.kind)
        self.queue = self.story.queue
        self.waiting: set[str] = set()
        self.number = 0

    def check(self) -> None:
        queue = self.queue
        queue.check_invariants()
        tiers = [*queue.active(), *queue.backing_off(), *queue.unschedulable()]
        assert {queued.pod.metadata.name for queued in tiers} == self.waiting
        assert len(queue) == len(self.waiting) <= sum(queue.pending_counts().values())
        for name in self.waiting:
            queued = queue.get(f"default/{name}")
            assert queued is not None
            assert queued.pod is self.story.known[queued.key]
        for name in self.story.popped:
            assert queue.get(f"default/{name}") is None
        due = queue.next_flush_ns(self.story.now)
        assert due is None or due >= self.story.now
        assert (due is None) == (not queue.backing_off() and not queue.unschedulable())

    @rule(priority=st.integers(-1, 2))
    def add(self, priority: int) -> None:
        self.number += 1
        self.story.play(f"add p{self.number} {priority}")
        self.waiting.add(f"p{self.number}")
        self.check()

    @rule()
    def pop(self) -> None:
        ready, active = self.queue.has_next, self.queue.active()
        first = max(((it.priority, -it.timestamp_ns) for it in active), default=None)
        self.story.play("pop")
        name = self.story.order[-1]
        assert ready == (name != "-")
        if ready:
            self.waiting.remove(name)
            queued = self.story.popped[name]
            assert queued.attempts >= 1
            assert first is None or (queued.priority, -queued.timestamp_ns) == first
        self.check()

    @precondition(lambda self: self.story.popped)
    @rule(data=st.data(), plugin=st.sampled_from(("P", "Q", "")))
    def fail(self, data: st.DataObject, plugin: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.story.popped)))
        is_there = f"default/{name}" in self.story.known
        self.story.play(f"fail {name} {plugin}")
        assert self.story.results[-1] == is_there
        if is_there:
            self.waiting.add(name)
        self.check()

    @precondition(lambda self: any(f"default/{name}" in self.story.known for name in self.story.popped))
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        names = sorted(name for name in self.story.popped if f"default/{name}" in self.story.known)
        self.story.play(f"bind {data.draw(st.sampled_from(names))}")
        self.check()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), verb=st.sampled_from(("delete", "label", "activate")))
    def change(self, data: st.DataObject, verb: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.waiting)))
        self.story.play(f"{verb} {name}")
        if verb == "delete":
            self.waiting.remove(name)
        self.check()

    @precondition(lambda self: self.story.popped)
    @rule(data=st.data())
    def delete_in_flight(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.story.popped)))
        if f"default/{name}" in self.story.known:
            self.story.play(f"delete {name}")
        self.check()

    @rule(name=st.sampled_from(sorted(EVENTS)))
    def event(self, name: str) -> None:
        before = len(self.queue.unschedulable())
        self.story.play(f"event {name}")
        moved = self.story.results[-1]
        assert isinstance(moved, int)
        assert before - len(self.queue.unschedulable()) == moved or self.kind == LATE
        self.check()

    @rule(seconds=st.sampled_from(("0.3", "1", "2.5", "12", "100", "400")))
    def wait(self, seconds: str) -> None:
        self.story.play(f"wait {seconds}")
        self.check()

    @rule()
    def timers(self) -> None:
        """`next_flush_ns` returns the first tick at which a timer changes anything."""
        now, queue = self.story.now, self.queue
        due = queue.next_flush_ns(now)
        if due is None:
            return
        grid = [tick for tick in range(START, due, SECOND) if tick >= now][:3]
        for tick in grid:
            assert queue.flush_backoff(tick) == 0
            if (tick - START) % (30 * SECOND) == 0:
                assert queue.flush_unschedulable(tick) == 0
        assert queue.flush_backoff(due) + queue.flush_unschedulable(due) > 0
        self.story.now = due
        after = queue.next_flush_ns(due)
        assert after is None or after > due
        self.check()


class LateContract(Contract):
    """The current queue without SchedulerPopFromBackoffQ."""

    kind = LATE


class ClassicContract(Contract):
    """The classic queue."""

    kind = CLASSIC


SETTINGS = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestContract = Contract.TestCase
TestContract.settings = SETTINGS
TestLateContract = LateContract.TestCase
TestLateContract.settings = SETTINGS
TestClassicContract = ClassicContract.TestCase
TestClassicContract.settings = SETTINGS
