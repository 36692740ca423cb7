"""Pod garbage collection: pods of deleted nodes, and finished pods over the limit."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.base.durations import SECOND_NS
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.kubelet import KubeletOptions, VirtualKubelet
from bayplan.cluster.naming import NameGenerator
from bayplan.cluster.store import ObjectStore
from bayplan.controllers.controller import ControllerTools, PartialFailure
from bayplan.controllers.pod_factory import PodFactory
from bayplan.controllers.pod_gc import PodGarbageCollector
from bayplan.controllers.writer import WriteRejected
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodStatus
from bayplan.sim.store_writer import StoreWriter
from tests.cluster.cluster_fixture import ClusterFixture, as_pod, pod


def test_pods_on_a_deleted_node_fail_and_are_deleted() -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
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


def test_an_unscheduled_pod_that_finalizers_keep_fails() -> None:
    fixture = ClusterFixture()
    fixture.apply(pod("p", finalizers=["example.com/hold"]))
    fixture.settle()
    fixture.delete(Pod, "default/p")
    fixture.settle()
    assert fixture.store.pods["default/p"].status.phase == "Failed"


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


def test_a_rejected_deletion_of_a_finished_pod_is_a_failure_until_it_succeeds() -> None:
    kept = ["a"]

    class PickyWriter(StoreWriter):
        def delete(self, item: KubernetesObject, now_ns: int, **options: Any) -> None:
            if item.metadata.name in kept:
                raise WriteRejected("Pod default/a", "is protected")
            super().delete(item, now_ns, **options)

    store = ObjectStore(RandomStreams(1).stream("uids"))
    writer = PickyWriter(store, VirtualKubelet(store, KubeletOptions()))
    names = NameGenerator(RandomStreams(1).stream("names"))
    tools = ControllerTools(store, writer, PodFactory(store, writer, names, PodAdmission(store)))
    collector = PodGarbageCollector(tools, terminated_pod_threshold=1)
    for name in "abc":
        metadata = ObjectMeta(name=name, namespace="default")
        store.add(Pod(metadata=metadata, status=PodStatus(phase="Succeeded")), 0)
    for event in store.journal():
        collector.keys_for(event)
    for now_ns in (0, SECOND_NS):
        assert isinstance(collector.reconcile("", now_ns), PartialFailure)
        for event in store.journal():
            collector.keys_for(event)
    assert [*store.pods] == ["default/a", "default/c"]
    kept.clear()
    assert collector.reconcile("", 2 * SECOND_NS) is None
    assert [*store.pods] == ["default/c"]
