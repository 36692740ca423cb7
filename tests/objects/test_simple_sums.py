"""Sums of simple pods equal fully computed ones, and callers may modify them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.objects import requests
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from bayplan.objects.simple_sums import SimpleSums

NAMES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "pods", "storage")
AMOUNTS = (
    "0",
    "7m",
    "007",
    "100m",
    "1.5",
    "1500m",
    "2k",
    "1Ki",
    "1e3",
    "1n",
    "99999999999m",
    "8Ei",
    "9223372036854775807",
    "-1",
)
REQUESTS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(AMOUNTS), max_size=4)

SUMS: dict[str, Callable[[Pod], object]] = {
    "fit": requests.fit_requests,
    "fit score": requests.fit_score_requests,
    "balance": requests.balance_requests,
    "accounted": requests.accounted_requests,
}


class NoSimpleSums(SimpleSums):
    """Leaves all pods to the sums in full."""

    def of(self, pod: Pod) -> None:
        return None


def pod_of(containers: list[dict[str, str]]) -> Pod:
    made = (
        Container(name=f"c{number}", resources=ResourceRequirements(requests=dict(it)))
        for number, it in enumerate(containers)
    )
    return Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=tuple(made)))


@given(containers=st.lists(REQUESTS, max_size=3))
def test_simple_sums_equal_full_sums(containers: list[dict[str, str]]) -> None:
    pod = pod_of(containers)
    simple = {name: ask(pod) for name, ask in SUMS.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests, "SIMPLE_SUMS", NoSimpleSums())
        assert simple == {name: ask(pod) for name, ask in SUMS.items()}


@pytest.mark.parametrize("name", ["fit", "fit score", "balance"])
def test_changing_a_returned_sum_does_not_affect_later_sums(name: str) -> None:
    pod, ask = pod_of([{"cpu": "1"}]), SUMS[name]
    found = ask(pod)
    assert isinstance(found, dict)
    found["cpu"] = 7
    again = ask(pod)
    assert isinstance(again, dict)
    assert again["cpu"] == 1000
