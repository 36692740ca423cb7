"""Pod garbage collection: pods of deleted nodes, and finished pods over the limit."""

from __future__ import annotations

import pytest

from bayplan.objects.node import Node
from tests.cluster.cluster_fixture import ClusterFixture, as_pod, pod


def test_pods_on_a_deleted_node_fail_and_are_deleted() -> None:
    fixture = ClusterFixture(nodes=1, termination_scale=1.0)
    fixture.apply(pod("p", nodeName="node-0"))
    fixture.delete(Node, "node-0")
    fixture.settle()
    failed, gone = fixture.events[-2:]
    assert (failed.type, gone.type) == ("MODIFIED", "DELETED")
    status = as_pod(failed.new).status
    assert status.phase == "Failed"
    assert [(item.reason, item.message) for item in status.conditions if item.type == "DisruptionTarget"] == [
        ("DeletionByPodGC", "PodGC: node no longer exists")
    ]


@pytest.mark.parametrize(
    ("threshold", "want"),
    [
        pytest.param(0, ["a", "b", "c", "d"], id="no threshold keeps all"),
        pytest.param(4, ["a", "b", "c", "d"], id="not too many"),
        pytest.param(2, ["c", "d"], id="the oldest pods are deleted"),
    ],
)
def test_the_oldest_finished_pods_are_deleted_above_the_threshold(threshold: int, want: list[str]) -> None:
    fixture = ClusterFixture(nodes=1, terminated_pod_threshold=threshold)
    for number, name in enumerate("abcd"):
        fixture.run_until(number)
        fixture.apply(pod(name, annotations={"bayplan.io/run-time": "10s"}))
        fixture.settle()
    fixture.run_until(60)
    assert fixture.names() == want
    assert fixture.phases() == {"Succeeded": len(want)}


def test_running_pods_do_not_count_against_the_threshold() -> None:
    fixture = ClusterFixture(nodes=1, terminated_pod_threshold=1)
    fixture.apply(pod("a"), pod("b"), pod("c", annotations={"bayplan.io/run-time": "1s"}))
    fixture.settle()
    fixture.run_until(100)
    assert fixture.names() == ["a", "b", "c"]
