"""Unschedulable pods: groups by reason of rejection, and the oldest pod that no flush has marked."""

from __future__ import annotations

from itertools import count
from random import Random

import pytest

from bayplan.engine.queued_pod import NO_PLUGINS, QueuedPod
from bayplan.engine.unschedulable_pods import UnschedulablePods
from tests.engine.queue_pods import pod

NUMBERS = count()


def rejected(name: str, plugins: str, *, at: int = 0, gating: str = "") -> QueuedPod:
    queued = QueuedPod(pod(name), f"default/{name}", name, next(NUMBERS), at)
    queued.unschedulable_plugins, queued.gating_plugin = frozenset(plugins), gating
    return queued


def grouped(pods: UnschedulablePods) -> list[str]:
    pods.check_invariants()
    return [
        "".join(each.pod.metadata.name for each in group.members.values())
        for group in pods.groups.values()
        if group.members
    ]


def test_pods_are_grouped_by_rejection_and_gate() -> None:
    pods = UnschedulablePods()
    for name, plugins, gating in (("a", "P", ""), ("b", "Q", ""), ("c", "P", ""), ("d", "P", "G"), ("e", "QP", "")):
        pods.put(rejected(name, plugins, gating=gating))
    assert grouped(pods) == ["ac", "b", "d", "e"]
    assert (len(pods), pods.count_gated()) == (5, 1)


def test_a_changed_gate_regroups_the_pod_once() -> None:
    pods = UnschedulablePods()
    first, second = rejected("a", "P"), rejected("b", "P")
    pods.put(first)
    pods.put(second)
    first.gating_plugin = "G"
    pods.put(first)
    pods.put(first)
    assert grouped(pods) == ["b", "a"]
    pods.discard(first.key)
    assert (grouped(pods), len(pods)) == (["b"], 1)


def oldest_ns(pods: UnschedulablePods) -> int | None:
    oldest = pods.ages.peek()
    return None if oldest is None else oldest.timestamp_ns


def test_overdue_pods_stay_marked_while_they_wait() -> None:
    pods = UnschedulablePods()
    for name, at, gating in (("a", 1, ""), ("b", 2, "G"), ("c", 3, "G")):
        pods.put(rejected(name, "P", at=at, gating=gating))
    assert [each.uid for each in pods.mark_overdue(3)] == ["a", "b"]
    assert ([*pods.overdue], oldest_ns(pods)) == (["default/a", "default/b"], 3)
    [a, b, _] = sorted(pods, key=lambda each: each.uid)
    b.gating_plugin = "H"
    pods.put(b)
    pods.discard(a.key)
    assert [each.uid for each in pods.mark_overdue(100)] == ["b", "c"]
    pods.check_invariants()
    assert ([*pods.overdue], oldest_ns(pods)) == (["default/b", "default/c"], None)


@pytest.mark.parametrize("disorder", [0, 50], ids=["in the order of time", "some come late"])
def test_the_oldest_pod_is_tracked_through_random_changes(disorder: int) -> None:
    random, pods = Random(3), UnschedulablePods()
    inside: list[QueuedPod] = []
    for step in range(3000):
        if random.random() < 0.5 or not inside:
            queued = rejected(str(step), "P", at=step - random.randrange(disorder + 1))
            pods.put(queued)
            inside.append(queued)
        else:
            queued = inside.pop(random.randrange(len(inside)) if random.random() < 0.5 else 0)
            pods.discard(queued.key)
            if random.random() < 0.5:
                queued.timestamp_ns = step
                pods.put(queued)
                inside.append(queued)
        if step % 50 == 0:
            pods.check_invariants()
            assert oldest_ns(pods) == min((each.timestamp_ns for each in inside), default=None)


def test_an_empty_set_has_no_oldest_overdue_or_grouped_pods() -> None:
    pods = UnschedulablePods()
    assert (oldest_ns(pods), pods.mark_overdue(5), grouped(pods)) == (None, [], [])
    assert rejected("a", "").unschedulable_plugins == NO_PLUGINS
