"""The census of running pods by priority."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.objects.pod import Pod
from bayplan.sim.priority_census import PriorityCensus
from bayplan.testing import make_node, make_pod


def running(name: str, priority: int) -> Pod:
    return make_pod(name).priority(priority).node("n").obj()


def test_the_lowest_priority_is_that_of_the_unfinished_pods_on_nodes() -> None:
    census = PriorityCensus()
    assert census.lowest() is None
    low, high = running("low", -5), running("high", 10)
    for item in (low, high, running("other", 10), make_pod("waiting").priority(-9).obj(), make_node("n").obj()):
        census.record(None, item)
    assert census.lowest() == -5
    done = replace(low, status=replace(low.status, phase="Succeeded"))
    census.record(low, done)
    assert census.lowest() == 10
    # The end of a finished pod was counted already.
    census.record(done, None)
    census.record(high, None)
    assert census.lowest() == 10
    census.record(running("other", 10), None)
    assert census.lowest() is None
