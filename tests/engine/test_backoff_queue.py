"""Backoff: how long it lasts, when it ends, and when the timer moves the pod."""

from __future__ import annotations

import pytest

from bayplan.engine.backoff_queue import BackoffQueue
from bayplan.engine.queue_options import QueueOptions, first_on_grid
from bayplan.engine.queued_pod import QueuedPod, priority_sort
from tests.engine.queue_pods import SECOND, pod

MS = 1_000_000


def failed(name: str = "a", *, at: int = 0, rejections: int = 0, errors: int = 0, priority: int = 0) -> QueuedPod:
    queued = QueuedPod(pod(name, priority=priority), f"default/{name}", name, 0, at)
    queued.unschedulable_count, queued.error_count = rejections, errors
    queued.unschedulable_plugins = frozenset("P") if rejections and not errors else frozenset()
    return queued


EXPIRIES: list[tuple[str, QueueOptions, QueuedPod, int | None]] = [
    ("never failed", QueueOptions(), failed(), None),
    ("the first rejection", QueueOptions(), failed(rejections=1), 1000),
    ("the second", QueueOptions(), failed(rejections=2), 2000),
    ("the fourth", QueueOptions(), failed(rejections=4), 8000),
    ("the fifth, at the maximum", QueueOptions(), failed(rejections=5), 10_000),
    ("the hundredth", QueueOptions(), failed(rejections=100), 10_000),
    ("errors count for themselves", QueueOptions(), failed(rejections=4, errors=1), 1000),
    ("the maximum is less than the start", QueueOptions(max_backoff_ns=300 * MS), failed(rejections=1), 0),
    ("no backoff at all", QueueOptions(max_backoff_ns=0), failed(rejections=1), None),
    ("cut to the window", QueueOptions(), failed(at=1700 * MS, rejections=1), 2000),
    ("no windows", QueueOptions(pop_from_backoff=False), failed(at=1700 * MS, rejections=1), 2700),
    (
        "no windows, the maximum is less than the start",
        QueueOptions(pop_from_backoff=False, max_backoff_ns=300 * MS),
        failed(rejections=1),
        300,
    ),
]


@pytest.mark.parametrize(
    ("options", "queued", "want_ms"), [row[1:] for row in EXPIRIES], ids=[row[0] for row in EXPIRIES]
)
def test_backoff_expires_at_the_expected_time(options: QueueOptions, queued: QueuedPod, want_ms: int | None) -> None:
    queued.backoff_expiry_ns = None
    assert BackoffQueue(options, priority_sort).is_backing_off(queued, queued.timestamp_ns) == (want_ms is not None)
    assert queued.backoff_expiry_ns == (None if want_ms is None else want_ms * MS)


@pytest.mark.parametrize(
    ("now_ms", "windows", "want"),
    [
        pytest.param(1400, True, True, id="with windows: before the expiry"),
        pytest.param(2999, True, True, id="with windows: after it, within its second"),
        pytest.param(3000, True, False, id="with windows: the next second begins"),
        pytest.param(2500, False, True, id="without: at the expiry"),
        pytest.param(2501, False, False, id="without: after it"),
    ],
)
def test_a_pod_backs_off_until_the_end_of_its_window(now_ms: int, windows: bool, want: bool) -> None:
    queue = BackoffQueue(QueueOptions(pop_from_backoff=windows), priority_sort)
    assert queue.is_backing_off(failed(at=1500 * MS, rejections=1), now_ms * MS) is want


def filled(options: QueueOptions, *pods: QueuedPod) -> BackoffQueue:
    queue = BackoffQueue(options, priority_sort)
    for queued in pods:
        queued.backoff_expiry_ns = None
        assert queue.is_backing_off(queued, queued.timestamp_ns)
        queue.push(queued)
    return queue


def test_pods_in_one_backoff_window_are_sorted_like_the_active_queue() -> None:
    pods = failed("a", at=100 * MS, rejections=1), failed("b", at=300 * MS, rejections=1, priority=5)
    assert [each.key for each in filled(QueueOptions(), *pods)] == ["default/b", "default/a"]
    assert [each.key for each in filled(QueueOptions(pop_from_backoff=False), *pods)] == ["default/a", "default/b"]


def test_pods_requeued_after_an_error_are_not_popped_early() -> None:
    queue = filled(QueueOptions(), failed("a", errors=1), failed("b", at=5, rejections=1))
    first = queue.rejected.pop()
    assert first is not None
    assert (first.key, queue.rejected.pop(), len(queue)) == ("default/b", None, 1)


def test_rejected_pods_leave_backoff_before_pods_with_errors() -> None:
    queue = filled(
        QueueOptions(),
        failed("a", errors=1),
        failed("b", rejections=1),
        failed("c", rejections=3),
        failed("d", errors=2),
    )
    assert [each.key for each in queue.pop_finished(2 * SECOND)] == ["default/b", "default/a"]
    assert [each.key for each in queue.pop_finished(60 * SECOND)] == ["default/c", "default/d"]


def test_a_priority_change_reorders_the_backoff_queue() -> None:
    a, b = failed("a", rejections=1), failed("b", rejections=1, at=1)
    queue = filled(QueueOptions(), a, b)
    b.replace_version(pod("b", priority=9))
    queue.reorder(b)
    assert [each.key for each in queue] == ["default/b", "default/a"]


NEXT: list[tuple[str, QueueOptions, list[QueuedPod], int, int | None]] = [
    ("no pod waits", QueueOptions(), [], 0, None),
    ("the second after the window", QueueOptions(), [failed(at=1500 * MS, rejections=1)], 1600, 3000),
    ("long over: the next whole second", QueueOptions(), [failed(rejections=1)], 77_700, 78_000),
    ("long over, at a whole second: now", QueueOptions(), [failed(rejections=1)], 78_000, 78_000),
    ("the earlier of both queues", QueueOptions(), [failed("a", rejections=3), failed("b", errors=2)], 0, 3000),
    (
        "without windows: seconds since the start",
        QueueOptions(pop_from_backoff=False, start_ns=400 * MS),
        [failed(at=1500 * MS, rejections=1)],
        1600,
        3400,
    ),
    (
        "without windows: not at the expiry itself",
        QueueOptions(pop_from_backoff=False, start_ns=400 * MS),
        [failed(at=1400 * MS, rejections=1)],
        1600,
        3400,
    ),
]


@pytest.mark.parametrize(
    ("options", "pods", "now_ms", "want_ms"), [row[1:] for row in NEXT], ids=[row[0] for row in NEXT]
)
def test_the_next_flush_time_finds_a_finished_pod(
    options: QueueOptions, pods: list[QueuedPod], now_ms: int, want_ms: int | None
) -> None:
    queue = filled(options, *pods)
    tick_ns = queue.next_flush_ns(now_ms * MS)
    assert tick_ns == (None if want_ms is None else want_ms * MS)
    if tick_ns is not None:
        assert queue.pop_finished(tick_ns)


@pytest.mark.parametrize(
    ("earliest", "want"),
    [(0, 3), (3, 3), (4, 13), (13, 13), (-8, -7)],
    ids=["before", "on it", "after", "later", "negative"],
)
def test_first_on_grid_returns_the_next_grid_point(earliest: int, want: int) -> None:
    assert first_on_grid(earliest, 3, 10) == want
