"""The queue that threads share, over both kinds of queues: no lost wake-up, busy loop, or pod lost or popped twice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from random import Random
from threading import Barrier, Event, Lock, Thread

import pytest

from bayplan.base.clock import Clock
from bayplan.classic.queue import ClassicQueue
from bayplan.engine.queue import QueueOptions, SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.events import NODE_ADD
from bayplan.live.blocking_queue import BlockingQueue
from bayplan.objects.pod import Pod
from bayplan.testing import make_pod

SECOND = 1_000_000_000
START = 1_767_225_600 * SECOND
PATIENCE_S = 20.0
P = frozenset("P")
HINTS = {"default-scheduler": [(NODE_ADD, "P", None)]}


def pod(name: str, **labels: str) -> Pod:
    return make_pod(name).uid(f"uid-{name}").label(**labels).obj()


class Asked:
    """Counts how often threads check whether a pod is ready."""

    def __init__(self) -> None:
        self.times = 0


class CountingQueue(SchedulingQueue):
    asked: Asked

    @property
    def has_next(self) -> bool:
        self.asked.times += 1
        return super().has_next


class CountingClassicQueue(ClassicQueue):
    asked: Asked

    @property
    def has_next(self) -> bool:
        self.asked.times += 1
        return super().has_next


class QueueFixture:
    """A queue for threads, the pods that its lister knows, and its clock."""

    def __init__(self, kind: str, *, speed: float = 1.0, paused: bool = False) -> None:
        self.known: dict[str, Pod] = {}
        self.clock = Clock(start_ns=START, speed=speed, paused=paused)
        self.asked = Asked()
        inner: CountingQueue | CountingClassicQueue
        if kind == "classic":
            inner = CountingClassicQueue({}, {}, self.known.get, options=QueueOptions(start_ns=START))
        else:
            early = kind == "current"
            options = QueueOptions(start_ns=START, pop_from_backoff=early)
            inner = CountingQueue(HINTS, {}, self.known.get, options=options)
        inner.asked = self.asked
        self.queue = BlockingQueue(inner, self.clock)

    def add(self, *names: str) -> None:
        for name in names:
            self.known[f"default/{name}"] = pod(name)
            self.queue.add(self.known[f"default/{name}"])

    def popped(self) -> QueuedPod:
        queued = self.queue.pop(timeout_s=0)
        assert queued is not None
        return queued

    def counts(self) -> dict[str, int]:
        with self.queue.open() as opened:
            return {tier: count for tier, count in opened.pending_counts().items() if count}


class Poppers:
    """Threads that pop until the queue is closed."""

    def __init__(self, queue: BlockingQueue, count: int = 1) -> None:
        self.keys: list[str] = []
        self.threads = start(*[lambda: self._run(queue)] * count)

    def _run(self, queue: BlockingQueue) -> None:
        while (queued := queue.pop()) is not None:
            self.keys.append(queued.key)
            queue.done(queued.uid)

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.keys) < count and time.monotonic() < deadline:
            time.sleep(0.002)
        assert len(self.keys) == count


def start(*work: Callable[[], object]) -> list[Thread]:
    threads = [Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[Thread]) -> None:
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def let_wait(threads: list[Thread]) -> None:
    """Give threads the time to block."""
    threads[0].join(0.05)
    assert all(thread.is_alive() for thread in threads)


KINDS = [
    pytest.param("current", id="over the current queue"),
    pytest.param("current without early pops", id="over the current queue without SchedulerPopFromBackoffQ"),
    pytest.param("classic", id="over the classic queue"),
]
every_queue = pytest.mark.parametrize("kind", KINDS)
queues_that_wait_for_backoff = pytest.mark.parametrize("kind", KINDS[1:])


def poppers(fixture: QueueFixture, count: int = 1) -> Poppers:
    waiting = Poppers(fixture.queue, count)
    let_wait(waiting.threads)
    return waiting


# Waking.


@every_queue
def test_an_added_pod_wakes_pop(kind: str) -> None:
    fixture = QueueFixture(kind)
    waiting = poppers(fixture)
    fixture.add("a")
    waiting.wait_for(1)
    fixture.queue.close()
    join(waiting.threads)
    assert waiting.keys == ["default/a"]


@every_queue
def test_a_move_to_the_active_queue_wakes_pop(kind: str) -> None:
    """The clock is paused, so no timer runs; it has jumped past the end of the classic backoff before."""
    fixture = QueueFixture(kind, paused=True)
    fixture.add("a")
    fixture.queue.fail(fixture.popped(), unschedulable_plugins=P)
    fixture.clock.jump(START + 5 * SECOND)
    waiting = poppers(fixture)
    assert fixture.counts() == {"unschedulable": 1}
    assert fixture.queue.move_all(NODE_ADD, None, None) == 1
    waiting.wait_for(1)
    fixture.queue.close()
    join(waiting.threads)


@every_queue
def test_an_update_that_makes_a_pod_ready_wakes_pop(kind: str) -> None:
    fixture = QueueFixture(kind, paused=True)
    waiting = poppers(fixture)
    fixture.queue.update(pod("a"), pod("a", app="web"))
    waiting.wait_for(1)
    fixture.queue.close()
    join(waiting.threads)


def test_activating_a_pod_wakes_pop() -> None:
    fixture = QueueFixture("current", paused=True)
    fixture.add("a")
    fixture.queue.fail(fixture.popped(), unschedulable_plugins=P)
    waiting = poppers(fixture)
    assert fixture.queue.activate([pod("a")]) == 1
    waiting.wait_for(1)
    fixture.queue.close()
    join(waiting.threads)


@every_queue
def test_a_change_to_the_opened_queue_wakes_pop(kind: str) -> None:
    fixture = QueueFixture(kind)
    waiting = poppers(fixture)
    with fixture.queue.open() as opened:
        opened.add(pod("a"), fixture.clock.now_ns())
    waiting.wait_for(1)
    fixture.queue.close()
    join(waiting.threads)


def fail_into_backoff(fixture: QueueFixture, name: str) -> None:
    fixture.add(name)
    queued = fixture.popped()
    fixture.queue.move_all(NODE_ADD, None, None)
    fixture.queue.fail(queued, unschedulable_plugins=P)
    assert fixture.counts() == {"backoff": 1}


@queues_that_wait_for_backoff
def test_the_end_of_a_backoff_wakes_a_pop_that_started_before_the_failure(kind: str) -> None:
    """When the pod fails, pop is already waiting without a timeout: the failure must set a timer for it."""
    fixture = QueueFixture(kind, speed=10)
    fixture.add("a")
    queued = fixture.popped()
    waiting = poppers(fixture, 3)
    fixture.queue.move_all(NODE_ADD, None, None)
    fixture.queue.fail(queued, unschedulable_plugins=P)
    waiting.wait_for(1)
    fixture.queue.close()
    join(waiting.threads)


@every_queue
def test_the_unschedulable_timeout_wakes_pop(kind: str) -> None:
    """The timeout (1.5 minutes in classic mode, else 5.5) passes in under a second."""
    fixture = QueueFixture(kind, speed=1000)
    fixture.add("a")
    fixture.queue.fail(fixture.popped(), unschedulable_plugins=P)
    waiting = poppers(fixture)
    waiting.wait_for(1)
    fixture.queue.close()
    join(waiting.threads)


@queues_that_wait_for_backoff
def test_a_forward_clock_jump_wakes_pop(kind: str) -> None:
    fixture = QueueFixture(kind, paused=True)
    fail_into_backoff(fixture, "a")
    waiting = poppers(fixture)
    fixture.clock.jump(START + 3 * SECOND)
    waiting.wait_for(1)
    fixture.queue.close()
    join(waiting.threads)


@every_queue
def test_close_wakes_all_threads(kind: str) -> None:
    queue = QueueFixture(kind).queue
    found: list[object] = []
    threads = start(*[lambda: found.append(queue.pop())] * 8, *[lambda: found.append(queue.wait())] * 2)
    let_wait(threads)
    queue.close()
    join(threads)
    assert sorted(found, key=str) == [False] * 2 + [None] * 8
    assert queue.pop() is None
    assert not queue.wait()


@every_queue
def test_exiting_the_with_block_closes_the_queue(kind: str) -> None:
    fixture = QueueFixture(kind)
    with fixture.queue as queue:
        waiting = poppers(fixture)
        assert len(queue) == 0
    join(waiting.threads)


# Return values.


@every_queue
def test_pop_returns_none_after_its_timeout(kind: str) -> None:
    fixture = QueueFixture(kind)
    assert fixture.queue.pop(timeout_s=0.02) is None
    fixture.add("a")
    assert fixture.queue.pop(timeout_s=0.02) is not None


@every_queue
def test_a_ready_pod_is_returned_without_waiting(kind: str) -> None:
    fixture = QueueFixture(kind)
    fixture.add("a")
    assert fixture.queue.wait(timeout_s=0)
    assert fixture.popped().key == "default/a"


@every_queue
def test_ready_pods_can_be_popped_after_close(kind: str) -> None:
    fixture = QueueFixture(kind)
    fixture.add("a")
    fixture.queue.close()
    assert fixture.queue.wait()
    assert fixture.queue.pop() is not None
    assert fixture.queue.pop() is None


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        pytest.param("current", True, id="a pod that backs off is popped early when nothing else is ready"),
        pytest.param("current without early pops", False, id="without SchedulerPopFromBackoffQ it backs off"),
        pytest.param("classic", False, id="the classic queue knows no early pops"),
    ],
)
def test_only_current_mode_pops_from_the_backoff_queue_early(kind: str, want: bool) -> None:
    fixture = QueueFixture(kind, paused=True)
    fail_into_backoff(fixture, "a")
    assert (fixture.queue.pop(timeout_s=0.01) is not None) == want
    fixture.clock.jump(START + 3 * SECOND)
    assert (fixture.queue.pop(timeout_s=0.01) is None) == want


def test_an_in_flight_pod_is_discarded_and_pop_keeps_waiting() -> None:
    queue = QueueFixture("current").queue
    queue.add(pod("a"))
    assert queue.pop() is not None
    queue.add(pod("a"))
    assert queue.pop(timeout_s=0.01) is None


@every_queue
def test_a_deleted_pod_is_not_popped(kind: str) -> None:
    fixture = QueueFixture(kind)
    fixture.add("a", "b")
    fixture.queue.delete(fixture.known["default/a"])
    assert [queued.key for queued in iter(lambda: fixture.queue.pop(timeout_s=0), None)] == ["default/b"]


@every_queue
@pytest.mark.parametrize("method", ["pop", "wait"])
def test_waiting_inside_an_open_block_is_refused(kind: str, method: str) -> None:
    """Waiting would let other threads use the queue in the middle of the block."""
    queue = QueueFixture(kind).queue
    with queue.open(), pytest.raises(RuntimeError, match="while it has the queue open"):
        getattr(queue, method)()
    assert queue.pop(timeout_s=0) is None


# Time.


@pytest.mark.parametrize(
    ("kind", "limit_s"),
    [
        pytest.param("current without early pops", 300, id="the current queue: after five minutes"),
        pytest.param("classic", 60, id="the classic queue: after one minute"),
    ],
)
def test_unschedulable_pods_are_retried_at_multiples_of_30_s(kind: str, limit_s: int) -> None:
    """The timer for backoffs moves another pod in between; it must not bring the other timer forward."""
    fixture = QueueFixture(kind, paused=True)
    fixture.queue.move_all(NODE_ADD, None, None)
    fixture.add("late")
    fixture.queue.fail(fixture.popped(), unschedulable_plugins=P)
    fixture.clock.jump(START + (limit_s + 5) * SECOND)
    fixture.add("busy")
    busy = fixture.popped()
    with fixture.queue.open() as opened:
        now_ns = fixture.clock.now_ns()
        if isinstance(opened, ClassicQueue):
            opened.add_unschedulable_if_not_present(busy, now_ns, scheduling_cycle=0)
        else:
            opened.move_all(NODE_ADD, None, None, now_ns, lambda pod: pod.metadata.name == "busy")
            opened.fail(busy, now_ns, unschedulable_plugins=P)
    assert fixture.counts() == {"backoff": 1, "unschedulable": 1}
    fixture.clock.jump(START + (limit_s + 29) * SECOND)
    assert fixture.counts() == {"active": 1, "unschedulable": 1}
    assert fixture.popped().key == "default/busy"
    fixture.clock.jump(START + (limit_s + 30) * SECOND)
    assert fixture.popped().key == "default/late"


@every_queue
def test_missed_timers_run_on_the_next_access(kind: str) -> None:
    """The machine slept for a day: the first use of the queue runs the timers."""
    fixture = QueueFixture(kind, paused=True)
    fixture.add("a", "b", "c")
    for _ in range(3):
        fixture.queue.fail(fixture.popped(), unschedulable_plugins=P)
    fixture.clock.jump(START + 86_400 * SECOND)
    assert fixture.counts() == {"active": 3}


# No busy loop.


@queues_that_wait_for_backoff
@pytest.mark.parametrize(
    "backs_off", [pytest.param(False, id="an empty queue"), pytest.param(True, id="a backoff that lasts longer")]
)
def test_waiting_threads_do_not_poll(kind: str, backs_off: bool) -> None:
    # The clock is so slow that the backoff ends long after the test, also on a busy machine.
    fixture = QueueFixture(kind, speed=0.01)
    if backs_off:
        fail_into_backoff(fixture, "a")
    fixture.asked.times = 0
    join(start(*[lambda: fixture.queue.pop(timeout_s=0.3)] * 4))
    assert fixture.asked.times <= 24


@every_queue
def test_pop_does_not_poll_while_the_clock_is_paused(kind: str) -> None:
    fixture = QueueFixture(kind, paused=True)
    fixture.add("a")
    fixture.queue.fail(fixture.popped(), unschedulable_plugins=P)
    fixture.asked.times = 0
    assert fixture.queue.pop(timeout_s=0.2) is None
    assert fixture.asked.times <= 6


# Many threads.


class Storm:
    """Producers add pods, consumers end attempts or fail each pod once, a clock runs fast, events come."""

    def __init__(self, kind: str, *, producers: int, consumers: int, each: int) -> None:
        self.fixture = QueueFixture(kind, speed=500)
        self.pods = {f"default/p{number}": pod(f"p{number}") for number in range(producers * each)}
        self.fixture.known.update(self.pods)
        self.popped: Counter[str] = Counter()
        self.failed: set[str] = set()
        self.ended: list[str] = []
        self.events = 0
        self._ours, self._stop = Lock(), Event()
        self._go = Barrier(producers + consumers + 1)
        self._each = each
        self.workers = start(
            *[lambda first=number * each: self._produce(first) for number in range(producers)],
            *[lambda seed=number: self._consume(seed) for number in range(consumers)],
        )
        self.mover = start(self._move)

    def _produce(self, first: int) -> None:
        self._go.wait()
        for number in range(first, first + self._each):
            self.fixture.queue.add(self.pods[f"default/p{number}"])

    def _consume(self, seed: int) -> None:
        draws, queue = Random(seed), self.fixture.queue
        self._go.wait()
        while (queued := queue.pop()) is not None:
            with self._ours:
                self.popped[queued.key] += 1
                again = draws.random() < 0.3 and queued.key not in self.failed
                (self.failed.add if again else self.ended.append)(queued.key)
                finished = len(self.ended) == len(self.pods)
            if again:
                # Rejected or failed: then only the end of the backoff makes the pod active again.
                queue.fail(queued, unschedulable_plugins=frozenset(draws.choice(("P", ""))))
            else:
                queue.done(queued.uid)
            if finished:
                queue.close()

    def _move(self) -> None:
        self._go.wait()
        while not self._stop.wait(0.02):
            self.events += 1
            self.fixture.queue.move_all(NODE_ADD, None, None)

    def run(self) -> None:
        join(self.workers)
        self._stop.set()
        join(self.mover)


@every_queue
def test_concurrent_pops_return_each_pod_exactly_once(kind: str) -> None:
    storm = Storm(kind, producers=4, consumers=6, each=300)
    storm.run()
    assert sorted(storm.ended) == sorted(storm.pods)
    assert storm.failed
    assert storm.popped == Counter({key: 2 if key in storm.failed else 1 for key in storm.pods})
    with storm.fixture.queue.open() as opened:
        assert len(opened) == 0
        opened.check_invariants()


@every_queue
def test_no_wake_up_is_lost_for_pods_added_one_by_one(kind: str) -> None:
    """Each pod is added only when the one before is popped: a single lost wake-up stops everything."""
    fixture = QueueFixture(kind)
    waiting = poppers(fixture, 4)
    for number in range(500):
        fixture.queue.add(pod(f"p{number}"))
        waiting.wait_for(number + 1)
    fixture.queue.close()
    join(waiting.threads)
    assert waiting.keys == [f"default/p{number}" for number in range(500)]
