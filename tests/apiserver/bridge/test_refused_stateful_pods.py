"""StatefulSets some of whose writes a policy refuses: which other writes follow depends on the pod management policy."""

from __future__ import annotations

import pytest

from tests.apiserver.bridge.bridge_fixture import API, APPS, BridgeFixture, template, workload
from tests.apiserver.bridge.test_refused_writes import allow, refuse


def stateful_set(fixture: BridgeFixture, policy: str, replicas: int) -> None:
    spec = {"replicas": replicas, "podManagementPolicy": policy, "serviceName": "db"}
    fixture.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", spec))
    fixture.run(30)


def ordinals(fixture: BridgeFixture) -> list[int]:
    return sorted(int(name.removeprefix("db-")) for name in fixture.names("pods"))


@pytest.mark.parametrize(
    ("policy", "refused", "want"),
    [
        pytest.param("OrderedReady", 1, [0], id="an ordered set stops at the first refused pod"),
        pytest.param("Parallel", 0, [], id="a parallel set stops after its first batch of 1 pod"),
        pytest.param("Parallel", 1, [0, 2], id="a parallel set stops after its second batch of 2 pods"),
        pytest.param("Parallel", 4, [0, 1, 2, 3, 5, 6], id="a parallel set stops after its third batch of 4 pods"),
    ],
)
def test_other_pods_are_created_as_the_policy_allows(policy: str, refused: int, want: list[int]) -> None:
    fixture = BridgeFixture(nodes=1)
    refuse(fixture, "CREATE", f"object.metadata.name != 'db-{refused}'")
    stateful_set(fixture, policy, 9)
    assert ordinals(fixture) == want
    assert list(fixture.bridge.failures()) == ["StatefulSet default/db"]
    allow(fixture)
    assert ordinals(fixture) == list(range(9))
    assert fixture.bridge.failures() == {}


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param("OrderedReady", [0, 1, 2, 3], id="an ordered set stops"),
        pytest.param("Parallel", [0, 1, 3], id="a parallel set stops after the batch of 2 pods"),
    ],
)
def test_surplus_pods_are_deleted_as_the_policy_allows(policy: str, want: list[int]) -> None:
    fixture = BridgeFixture(nodes=1)
    stateful_set(fixture, policy, 5)
    refuse(fixture, "DELETE", "oldObject.metadata.name != 'db-3'")
    fixture.patch(f"{APPS}/statefulsets/db", {"spec": {"replicas": 0}})
    fixture.run(60)
    assert ordinals(fixture) == want
    allow(fixture)
    assert ordinals(fixture) == []


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_orphans_are_adopted_although_one_cannot_be_and_then_nothing_is_created(policy: str) -> None:
    fixture = BridgeFixture(nodes=1)
    stateful_set(fixture, policy, 3)
    fixture.delete(f"{APPS}/statefulsets/db", {"propagationPolicy": "Orphan"})
    fixture.run()
    refuse(fixture, "UPDATE", "object.metadata.name != 'db-0'")
    stateful_set(fixture, policy, 4)
    owned = [pod.metadata.name for pod in fixture.bridge.store.pods.values() if pod.metadata.owner_references]
    assert (owned, ordinals(fixture)) == (["db-1", "db-2"], [0, 1, 2])
    allow(fixture)
    assert ordinals(fixture) == [0, 1, 2, 3]
    assert all(pod.metadata.owner_references for pod in fixture.bridge.store.pods.values())


def test_only_a_refused_pod_is_reported_and_not_a_taken_name() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{API}/namespaces/default/pods", template(name="db-0", labels={"app": "other"}))
    stateful_set(fixture, "OrderedReady", 1)
    assert list(fixture.bridge.failures()) == ["StatefulSet default/db"]
    assert fixture.reported("StatefulSet") == []
    refuse(fixture, "CREATE", "object.metadata.name != 'db-0'")
    fixture.delete(f"{API}/namespaces/default/pods/db-0")
    fixture.run(30)
    assert fixture.reported("StatefulSet")[0].startswith(
        "FailedCreate: Create Pod db-0 in StatefulSet db failed error: "
    )
