"""Pods that count as available after ``minReadySeconds``."""

from __future__ import annotations

import pytest

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time
from bayplan.cluster.owned_pods import OwnedPods
from bayplan.controllers.availability import count_available, is_available
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod, PodCondition, PodStatus


def ready_since(seconds: int | None, *, ready: str = "True") -> Pod:
    since = None if seconds is None else format_time(seconds * SECOND_NS)
    condition = PodCondition(type="Ready", status=ready, last_transition_time=since)
    return Pod(metadata=ObjectMeta(name=f"p{seconds}"), status=PodStatus(conditions=(condition,)))


@pytest.mark.parametrize(
    ("pod", "min_ready_seconds", "want"),
    [
        pytest.param(ready_since(100), 0, True, id="ready"),
        pytest.param(ready_since(50, ready="False"), 0, False, id="not ready"),
        pytest.param(ready_since(90), 10, True, id="ready for exactly the minimum"),
        pytest.param(ready_since(91), 10, False, id="ready for less than the minimum"),
        pytest.param(ready_since(None), 10, False, id="ready since an unknown time"),
    ],
)
def test_a_pod_is_available_once_it_has_been_ready_for_the_minimum(
    pod: Pod, min_ready_seconds: int, want: bool
) -> None:
    assert is_available(pod, min_ready_seconds, 100 * SECOND_NS) is want


def test_available_pods_are_counted_with_the_time_of_the_next() -> None:
    owned = OwnedPods()
    for seconds in (80, 90, 99, 95, 97):
        owned.active[f"p{seconds}"] = ready_since(seconds)
        owned.ready[f"p{seconds}"] = None
    owned.active["unready"] = ready_since(50, ready="False")
    assert count_available(owned, 10, 100 * SECOND_NS) == (2, 105 * SECOND_NS)
    assert count_available(owned, 0, 100 * SECOND_NS) == (5, None)
    assert count_available(owned, 1, 100 * SECOND_NS) == (5, None)
