"""The requests of pods in the classic scheduler: sums of extreme amounts wrap around, as in Go."""

from __future__ import annotations

import pytest

from bayplan.classic.requests import classic_accounting, resource_request, scored_pod_request
from bayplan.objects.requests import DEFAULT_GATES
from bayplan.testing.builders import make_pod

MAX_INT64 = 2**63 - 1


@pytest.mark.parametrize(
    ("pod_overhead", "want"),
    [
        pytest.param(True, -(2**63) + 99, id="with the gate PodOverhead"),
        pytest.param(False, MAX_INT64, id="without it, overhead is ignored"),
    ],
)
def test_overhead_that_overflows_an_int64_wraps_around(*, pod_overhead: bool, want: int) -> None:
    large = {"name": "i", "image": "i", "resources": {"requests": {"memory": str(MAX_INT64)}}}
    pod = make_pod("p").spec(initContainers=[large], overhead={"memory": "100"}).obj()
    accounted = classic_accounting(pod_overhead=pod_overhead)(pod, DEFAULT_GATES, 0)
    assert accounted.non_zero_memory_bytes == want
    assert accounted.requests["memory"] == want
    assert resource_request(pod, pod_overhead=pod_overhead)["memory"] == want
    assert scored_pod_request(pod, "memory", pod_overhead=pod_overhead) == want
