"""ReplicaSets and ReplicationControllers: a number of pods from one template."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.controllers.controller import ReconcileResult
from bayplan.controllers.replica_set import ReplicaSetController
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import ReplicaSet, ReplicationController
from tests.cluster.cluster_fixture import SECOND, ClusterFixture, pod, template, workload

KINDS = [pytest.param(ReplicaSet, id="ReplicaSet"), pytest.param(ReplicationController, id="ReplicationController")]


@pytest.mark.parametrize("kind", KINDS)
def test_pods_have_the_name_labels_and_owner_of_their_controller(
    kind: type[ReplicaSet] | type[ReplicationController],
) -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(workload(kind.__name__, "web", replicas=2))
    fixture.settle()
    [stored] = fixture.store.all(kind)
    for item in fixture.pods():
        assert len(item.metadata.name) == len("web-") + 5
        assert item.metadata.generate_name == "web-"
        assert item.metadata.labels == {"app": "x"}
        [owner] = item.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid) == (kind.__name__, "web", stored.metadata.uid)
        assert (owner.controller, owner.block_owner_deletion) == (True, True)
        assert (item.metadata.generation, item.status.phase, item.spec.priority) == (1, "Pending", 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("steps", "want"),
    [
        pytest.param([3], 3, id="the requested number"),
        pytest.param([3, 5], 5, id="more"),
        pytest.param([5, 2], 2, id="fewer"),
        pytest.param([3, 0], 0, id="none"),
        pytest.param([0, 1], 1, id="from none"),
    ],
)
def test_the_number_of_pods_follows_the_replicas(kind: type[Any], steps: list[int], want: int) -> None:
    fixture = ClusterFixture(nodes=2)
    for replicas in steps:
        fixture.apply(workload(kind.__name__, "web", replicas=replicas))
        fixture.settle()
    assert len(fixture.names()) == want
    [stored] = fixture.store.all(kind)
    status = stored.status
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (want, want, want)
    assert status.observed_generation == stored.metadata.generation


def test_replicas_default_to_one_and_a_controller_without_template_creates_no_pods() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(workload("ReplicaSet", "web"))
    document = workload("ReplicationController", "bare", replicas=3)
    del document["spec"]["template"]
    fixture.apply(document)
    fixture.settle()
    assert len(fixture.names("web-")) == 1
    assert fixture.names("bare-") == []


@pytest.mark.parametrize(
    ("phase", "want"),
    [
        pytest.param("Succeeded", {"Succeeded": 1, "Running": 2}, id="a pod that ended well"),
        pytest.param("Failed", {"Failed": 1, "Running": 2}, id="a pod that failed"),
    ],
)
def test_a_finished_pod_is_replaced_and_not_deleted(phase: str, want: dict[str, int]) -> None:
    fixture = ClusterFixture(nodes=1)
    exit_code = "0" if phase == "Succeeded" else "1"
    annotations = {"bayplan.io/run-time": "90s", "bayplan.io/exit-code": exit_code}
    fixture.apply(workload("ReplicaSet", "web", replicas=1, template=template(annotations=annotations)))
    fixture.settle()
    fixture.apply(workload("ReplicaSet", "web", replicas=2))
    fixture.settle()
    fixture.run_until(90)
    assert fixture.phases() == want


def test_a_deleted_pod_is_replaced() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(workload("ReplicaSet", "web", replicas=2))
    fixture.settle()
    first, second = fixture.names()
    fixture.delete(Pod, f"default/{first}")
    fixture.settle()
    assert len(fixture.names()) == 2
    assert second in fixture.names()
    assert first not in fixture.names()


def test_a_terminating_pod_is_replaced_immediately_and_counted_separately() -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
    fixture.apply(workload("ReplicaSet", "web", replicas=2))
    fixture.settle()
    fixture.delete(Pod, f"default/{fixture.names()[0]}")
    fixture.settle()
    assert fixture.phases() == {"Running": 2, "Terminating": 1}
    [stored] = fixture.store.all(ReplicaSet)
    assert (stored.status.replicas, stored.status.terminating_replicas) == (2, 1)
    fixture.run_until(30)
    [stored] = fixture.store.all(ReplicaSet)
    assert (stored.status.replicas, stored.status.terminating_replicas) == (2, 0)


def test_pods_without_an_owner_are_not_adopted() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("stranger", labels={"app": "x"}), workload("ReplicaSet", "web", replicas=1))
    fixture.settle()
    assert len(fixture.names("web-")) == 1
    assert fixture.pods("stranger")[0].metadata.owner_references == ()


def test_pods_are_available_after_min_ready_seconds() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(workload("ReplicaSet", "web", replicas=2, minReadySeconds=10))
    fixture.settle()
    [stored] = fixture.store.all(ReplicaSet)
    assert (stored.status.ready_replicas, stored.status.available_replicas) == (2, 0)
    assert fixture.cluster.next_wakeup() == 10 * SECOND
    fixture.run_until(10)
    [stored] = fixture.store.all(ReplicaSet)
    assert stored.status.available_replicas == 2


def test_pods_of_a_large_replica_set_share_spec_labels_owners_and_status() -> None:
    fixture = ClusterFixture(binds=False)
    fixture.apply(workload("ReplicaSet", "web", replicas=10_000))
    fixture.settle()
    pods = fixture.pods()
    assert len(pods) == 10_000
    assert len({id(item.spec) for item in pods}) == 1
    assert len({id(item.metadata.labels) for item in pods}) == 1
    assert len({id(item.metadata.owner_references) for item in pods}) == 1
    assert len({id(item.status) for item in pods}) == 1
    assert len({item.metadata.name for item in pods}) == 10_000
    fixture.store.check_invariants()


def test_each_bound_pod_causes_one_reconcile_and_simultaneous_deletions_two(monkeypatch: pytest.MonkeyPatch) -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(workload("ReplicaSet", "web", replicas=200))
    fixture.settle()
    calls: list[str] = []
    original = ReplicaSetController.reconcile

    def counting(self: ReplicaSetController, key: str, now_ns: int) -> ReconcileResult:
        calls.append(key)
        return original(self, key, now_ns)

    monkeypatch.setattr(ReplicaSetController, "reconcile", counting)
    for number, item in enumerate(fixture.pods()):
        fixture.now_ns = number
        fixture.events += fixture.cluster.bind(item.key, "node-0", number)
        fixture.settle()
    assert len(calls) == 200
    calls.clear()
    for item in fixture.pods():
        fixture.delete(Pod, item.key)
    fixture.settle()
    # However many pods are deleted at one time, there is one reconcile for the deletions and one for the replacements.
    assert len(calls) == 2
