"""The queue that threads share: nobody waits in vain, nothing is lost or handed out twice, and closing it ends all waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from threading import Barrier, Event, Lock, Thread
from time import monotonic

import pytest

from bayplan.engine.queue import QueueOptions, SchedulingQueue
from bayplan.framework.events import NODE_ADD
from bayplan.live.blocking_queue import BlockingQueue
from bayplan.objects.pod import Pod
from bayplan.testing import make_pod

SECOND = 1_000_000_000
PATIENCE_S = 20.0


def pod(name: str) -> Pod:
    return make_pod(name).uid(f"uid-{name}").obj()


def make_queue(known: dict[str, Pod] | None = None, **options: bool) -> BlockingQueue:
    hints = {"default-scheduler": [(NODE_ADD, "P", None)]}
    lister = {} if known is None else known
    return BlockingQueue(SchedulingQueue(hints, {}, lister.get, options=QueueOptions(**options)))  # type: ignore[arg-type]


def start(*work: Callable[[], None]) -> list[Thread]:
    threads = [Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[Thread]) -> None:
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_pop_waits_for_a_pod_and_is_woken_by_it() -> None:
    queue = make_queue()
    found: list[str] = []

    def take() -> None:
        queued = queue.pop()
        found.append("" if queued is None else queued.key)

    threads = start(take)
    threads[0].join(0.05)
    assert threads[0].is_alive()
    queue.add(pod("a"), 0)
    join(threads)
    assert found == ["default/a"]


def test_pop_gives_up_when_its_time_is_over() -> None:
    before = monotonic()
    assert make_queue().pop(timeout_s=0.02) is None
    assert monotonic() - before >= 0.02


def test_close_wakes_all_who_wait() -> None:
    queue = make_queue()
    found: list[object] = []
    threads = start(*[lambda: found.append(queue.pop())] * 8)
    threads[0].join(0.05)
    assert all(thread.is_alive() for thread in threads)
    queue.close()
    join(threads)
    assert found == [None] * 8
    assert not queue.wait()


def test_what_a_closed_queue_holds_can_still_be_popped() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0)
    queue.close()
    first = queue.pop()
    assert first is not None
    assert queue.pop() is None


@pytest.mark.parametrize(
    ("pop_from_backoff", "want"),
    [
        pytest.param(True, True, id="a pod that backs off is handed out when nothing else waits"),
        pytest.param(False, False, id="without the gate it is waited for"),
    ],
)
def test_pods_that_back_off(pop_from_backoff: bool, want: bool) -> None:
    known = {"default/a": pod("a")}
    queue = make_queue(known, pop_from_backoff=pop_from_backoff)
    queue.add(known["default/a"], 0)
    popped = queue.pop()
    assert popped is not None
    with queue.open() as opened:
        opened.fail(popped, 0, unschedulable_plugins=frozenset("P"))
        opened.move_all(NODE_ADD, None, None, 0)
    assert (queue.pop(timeout_s=0.01) is not None) == want
    with queue.open() as opened:
        opened.flush_backoff(3 * SECOND)
    assert (queue.pop(timeout_s=0.01) is None) == want


def test_a_pod_that_is_in_flight_already_is_thrown_away_and_the_wait_goes_on() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0)
    assert queue.pop() is not None
    queue.add(pod("a"), 1)
    assert queue.pop(timeout_s=0.01) is None


def test_threads_that_hammer_it_lose_nothing_and_get_nothing_twice() -> None:
    """Producers add, consumers end attempts or fail them (once), a third kind flushes and wakes; then everything is drained."""
    producers, consumers, each = 4, 6, 400
    pods = {f"default/p{number}": pod(f"p{number}") for number in range(producers * each)}
    queue = make_queue(pods)
    popped: Counter[str] = Counter()
    failed: set[str] = set()
    ended: list[str] = []
    ours, go, stop = Lock(), Barrier(producers + consumers + 1), Event()
    clock = iter(range(1 << 62))

    def produce(first: int) -> None:
        go.wait()
        for number in range(first, first + each):
            queue.add(pods[f"default/p{number}"], next(clock))

    def consume(seed: int) -> None:
        draws = Random(seed)
        go.wait()
        while (queued := queue.pop()) is not None:
            with ours:
                popped[queued.key] += 1
                again = draws.random() < 0.3 and queued.key not in failed
                if again:
                    failed.add(queued.key)
                else:
                    ended.append(queued.key)
                finished = len(ended) == len(pods)
            if again:
                with queue.open() as opened:
                    opened.fail(queued, next(clock), unschedulable_plugins=frozenset(draws.choice(("P", ""))))
            else:
                queue.done(queued.uid)
            if finished:
                queue.close()

    def tick() -> None:
        go.wait()
        now_ns = 0
        while not stop.is_set():
            now_ns += 30 * SECOND
            with queue.open() as opened:
                opened.flush_backoff(now_ns)
                opened.flush_unschedulable(now_ns)
                opened.move_all(NODE_ADD, None, None, now_ns)
            stop.wait(0.001)

    ticker = start(tick)
    workers = start(
        *[lambda first=number * each: produce(first) for number in range(producers)],
        *[lambda seed=number: consume(seed) for number in range(consumers)],
    )
    join(workers)
    stop.set()
    join(ticker)
    assert sorted(ended) == sorted(pods)
    assert failed
    assert popped == Counter({key: 2 if key in failed else 1 for key in pods})
    with queue.open() as opened:
        assert len(opened) == 0
        opened.check_invariants()
