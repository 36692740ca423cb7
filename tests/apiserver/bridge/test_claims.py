"""Claims of a server: events about claims that stay unbound, and which pods keep a claim that is being deleted."""

from __future__ import annotations

from typing import cast

import pytest

from tests.apiserver.bridge.bridge_fixture import API, APPS, BridgeFixture, template, workload
from tests.apiserver.bridge.test_refused_writes import refuse
from tests.apiserver.client import PODS, Document

CLAIMS = f"{API}/namespaces/default/persistentvolumeclaims"


def claim(name: str, **spec: object) -> Document:
    fields = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"metadata": {"name": name}, "spec": fields}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"storageClassName": "fast"},
            ['ProvisioningFailed: storageclass.storage.k8s.io "fast" not found'],
            id="a missing class",
        ),
        pytest.param(
            {},
            ["FailedBinding: no persistent volumes available for this claim and no storage class is set"],
            id="no class",
        ),
        pytest.param({"storageClassName": "", "volumeName": "later"}, [], id="a volume that does not exist yet"),
    ],
)
def test_a_claim_reports_why_it_is_not_bound(spec: Document, want: list[str]) -> None:
    fixture = BridgeFixture()
    fixture.post(CLAIMS, claim("data", **spec))
    fixture.run()
    assert fixture.reported("PersistentVolumeClaim") == want


def test_a_claim_reports_pods_that_come_and_go() -> None:
    fixture = BridgeFixture(nodes=1, kubelet=False)
    storage_class = {"metadata": {"name": "late"}, "provisioner": "csi.a", "volumeBindingMode": "WaitForFirstConsumer"}
    fixture.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    fixture.post(CLAIMS, claim("data", storageClassName="late"))
    fixture.run(1, schedule=False)
    for name in ("a", "b", "c"):
        fixture.post(PODS, pod_with_claim(name))
    fixture.run(15, schedule=False)
    fixture.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    fixture.patch(f"{PODS}/b/status", {"status": {"phase": "Failed"}})
    fixture.run(15, schedule=False)
    fixture.run(15)
    assert fixture.reported("PersistentVolumeClaim")[:3] == [
        "WaitForFirstConsumer: waiting for first consumer to be created before binding",
        "WaitForPodScheduled: waiting for pods a,b,c to be scheduled",
        "WaitForPodScheduled: waiting for pod c to be scheduled",
    ]


def pod_with_claim(name: str, *, node: str = "") -> Document:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    spec = {"containers": [{"name": "c", "image": "app:1"}], "volumes": volumes, "nodeName": node}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([], "WaitForFirstConsumer: waiting for first consumer to be created before binding", id="no pod"),
        pytest.param(
            [pod_with_claim("bound", node="n0")],
            "WaitForFirstConsumer: waiting for first consumer to be created before binding",
            id="a pod with a node",
        ),
        pytest.param([pod_with_claim("a")], "WaitForPodScheduled: waiting for pod a to be scheduled", id="one pod"),
        pytest.param(
            [pod_with_claim("a"), template(name="other"), pod_with_claim("b")],
            "WaitForPodScheduled: waiting for pods a,b to be scheduled",
            id="two pods",
        ),
    ],
)
def test_a_claim_that_waits_for_pods_reports_that_every_15_seconds(pods: list[Document], want: str) -> None:
    fixture = BridgeFixture(kubelet=False)
    mode = "WaitForFirstConsumer"
    storage_class = {"metadata": {"name": "late"}, "provisioner": "csi.a", "volumeBindingMode": mode}
    fixture.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    fixture.run()
    for pod in pods:
        fixture.post(PODS, pod)
    fixture.post(CLAIMS, claim("data", storageClassName="late"))
    fixture.run(50, schedule=False)
    assert fixture.reported("PersistentVolumeClaim") == [want]
    assert [each["count"] for each in fixture.documents("events")] == [4]


@pytest.mark.parametrize(
    ("bound", "phase", "want"),
    [
        pytest.param(False, "Pending", False, id="an unscheduled pod does not keep the claim"),
        pytest.param(True, "Running", True, id="a running pod keeps the claim"),
        pytest.param(True, "Succeeded", True, id="an ended pod keeps the claim"),
    ],
)
def test_pods_on_nodes_keep_a_claim_that_is_being_deleted(bound: bool, phase: str, want: bool) -> None:
    fixture = BridgeFixture(nodes=1, kubelet=False)
    fixture.post(CLAIMS, claim("data"))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    spec = {"containers": [{"name": "c", "image": "app:1"}], "volumes": volumes}
    fixture.post(PODS, {"metadata": {"name": "user"}, "spec": {**spec, **({"nodeName": "n0"} if bound else {})}})
    fixture.patch(f"{PODS}/user/status", {"status": {"phase": phase}})
    fixture.delete(f"{CLAIMS}/data")
    fixture.run(schedule=False)
    assert fixture.names("persistentvolumeclaims") == ["data"] * want
    fixture.delete(f"{PODS}/user", {"gracePeriodSeconds": 0})
    fixture.run(schedule=False)
    assert fixture.names("persistentvolumeclaims") == []


@pytest.mark.parametrize(
    ("volume", "is_owner", "is_shut_down", "want"),
    [
        pytest.param("named", False, True, True, id="a pod that only finalizers keep keeps a named claim"),
        pytest.param(
            "ephemeral", True, True, False, id="a pod that only finalizers keep does not keep its ephemeral claim"
        ),
        pytest.param("ephemeral", True, False, True, id="a pod that is not deleted keeps its ephemeral claim"),
        pytest.param("ephemeral", False, False, False, id="a pod does not keep the claim of another owner"),
    ],
)
def test_pods_on_nodes_keep_named_and_ephemeral_claims(
    volume: str, is_owner: bool, is_shut_down: bool, want: bool
) -> None:
    fixture = BridgeFixture(nodes=1, kubelet=False)
    sources: Document = {
        "named": {"persistentVolumeClaim": {"claimName": "user-v"}},
        "ephemeral": {"ephemeral": {"volumeClaimTemplate": {"spec": claim("unused")["spec"]}}},
    }
    volumes = [{"name": "v", **cast("Document", sources[volume])}]
    spec = {"containers": [{"name": "c", "image": "app:1"}], "volumes": volumes, "nodeName": "n0"}
    fixture.post(PODS, {"metadata": {"name": "user", "finalizers": ["example.com/hold"]}, "spec": spec})
    user = fixture.bridge.store.pods["default/user"].metadata
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "user", "uid": user.uid, "controller": True}
    used = claim("user-v")
    fixture.post(CLAIMS, {**used, "metadata": {"name": "user-v", "ownerReferences": [owner] * is_owner}})
    fixture.run(schedule=False)
    fixture.delete(f"{CLAIMS}/user-v")
    if is_shut_down:
        fixture.delete(f"{PODS}/user", {"gracePeriodSeconds": 0})
    fixture.run(schedule=False)
    assert fixture.names("pods") == ["user"]
    assert fixture.names("persistentvolumeclaims") == ["user-v"] * want


def test_the_claims_of_a_pending_pod_follow_a_changed_retention_policy() -> None:
    fixture = BridgeFixture()
    spec: Document = {"replicas": 1, "serviceName": "db", "volumeClaimTemplates": [claim("data")]}
    fixture.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", spec))
    fixture.run()
    assert fixture.get(f"{CLAIMS}/data-db-0").at("metadata.ownerReferences") is None
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    fixture.patch(f"{APPS}/statefulsets/db", {"spec": {"persistentVolumeClaimRetentionPolicy": policy}})
    fixture.run()
    assert fixture.get(f"{CLAIMS}/data-db-0").at("metadata.ownerReferences.0.name") == "db"


def test_a_stateful_set_waits_for_an_adopted_pod_that_lacks_its_claim() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(PODS, template(name="db-0"))
    spec: Document = {"replicas": 2, "serviceName": "db", "volumeClaimTemplates": [claim("data")]}
    fixture.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", spec))
    fixture.run(5)
    text = 'FailedUpdate: Update Pod db-0 in StatefulSet db failed error: Pod "db-0" is invalid: spec: Forbidden: '
    assert any(each.startswith(text) for each in fixture.reported("StatefulSet"))
    assert fixture.names("pods") == ["db-0"]
    fixture.delete(f"{PODS}/db-0")
    fixture.run(60)
    assert fixture.names("pods") == ["db-0", "db-1"]
    assert fixture.bridge.failures() == {}


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param([], "FailedCreate: Create", id="of a new pod"),
        pytest.param(["db-0"], "FailedUpdate: Update", id="of an adopted pod"),
    ],
)
def test_refused_claims_are_reported(pods: list[str], want: str) -> None:
    fixture = BridgeFixture(nodes=1)
    for name in pods:
        fixture.post(PODS, template(name=name))
    fixture.run(5)
    refuse(fixture, "CREATE", "object.metadata.name != 'data-db-0'", "persistentvolumeclaims")
    spec: Document = {"replicas": 1, "serviceName": "db", "volumeClaimTemplates": [claim("data"), claim("logs")]}
    fixture.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", spec))
    fixture.run(5)
    reported = sorted(set(fixture.reported("StatefulSet")))
    starts = (
        "FailedCreate: Create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: ",
        f"{want} Pod db-0 in StatefulSet db failed error: failed to create PVC data-db-0: ",
        "SuccessfulCreate: Create Claim logs-db-0 Pod db-0 in StatefulSet db success",
    )
    assert len(reported) == len(starts)
    assert all(text.startswith(start) for text, start in zip(reported, starts, strict=True))
    assert fixture.names("persistentvolumeclaims") == ["logs-db-0"]
    assert fixture.names("pods") == pods
    assert list(fixture.bridge.failures()) == ["StatefulSet default/db"]
