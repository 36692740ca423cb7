"""The order of the active queue, and the fields of a record that are reset when its pod changes."""

from __future__ import annotations

from random import Random

from bayplan.engine.queued_pod import QueuedPod, priority_sort, uid_of
from tests.engine.queue_pods import pod

BIGGEST = 2_000_001_000


def record(number: int, *, priority: int | None, timestamp_ns: int) -> QueuedPod:
    return QueuedPod(pod(f"p{number}", priority=priority), f"default/p{number}", f"{number}", number, timestamp_ns)


def test_the_active_queue_sorts_by_priority_then_age() -> None:
    random = Random(7)
    priorities = (None, 0, 1, -1, BIGGEST, -(2**31), 2**31 - 1)
    pods = [
        record(number, priority=random.choice(priorities), timestamp_ns=random.choice((0, 1, 2**62, 2**63 - 1)))
        for number in range(200)
    ]
    by_hand = sorted(pods, key=lambda each: (-each.priority, each.timestamp_ns))
    assert sorted(pods, key=priority_sort) == by_hand


def test_queued_pods_compare_by_identity() -> None:
    assert record(1, priority=0, timestamp_ns=0) != record(1, priority=0, timestamp_ns=0)


def test_a_pod_without_uid_is_identified_by_its_key() -> None:
    assert uid_of(pod("a", uid="")) == "default/a"
