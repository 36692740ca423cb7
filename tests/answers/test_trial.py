"""A trial searches for victims only if some pod is more important than another one."""

from __future__ import annotations

import pytest

from tests.answers.clusters import cluster_of, node, running, waiting


@pytest.mark.parametrize(
    ("priority", "searched"),
    [
        pytest.param(0, False, id="all pods are equally important"),
        pytest.param(-1, True, id="a running pod is less important"),
    ],
)
def test_victims_are_searched_for_only_if_there_may_be_any(priority: int, searched: bool) -> None:
    kept = running("web-1", "a", cpu="1", priority=priority).obj()
    cluster = cluster_of(node("a"), kept, waiting("big", cpu="8"))
    with cluster.trial(preempts=True) as trial:
        trial.put(cluster.waiting["default/big"])
        trial.settle()
        message = trial.messages["default/big"]
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert ("preemption: " in message) is searched


def test_a_pod_that_became_less_important_is_evicted_all_the_same() -> None:
    high = running("high", "a", cpu="4", priority=5).obj()
    cluster = cluster_of(node("a"), high)
    with cluster.trial(preempts=True) as trial:
        trial.remove_pod("default/high")
        low, top = waiting("low", cpu="4"), running("top", "", cpu="4", priority=9).obj()
        trial.put(low)
        trial.settle()
        assert trial.placed == {"default/low": "a"}
        trial.put(top)
        trial.settle()
        assert trial.placed == {"default/top": "a"}
    assert [each.pod for each in trial.evictions] == ["default/low"]
