"""Tests of events that arrive in another order than they happened: of different kinds, or of source and target."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.base.plain_data import Document, part
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.sync.sync_write import SyncWrite, Verb
from bayplan.sync.writing import execute_write
from tests.sync.follower_fixture import NS, FollowerFixture, LocalCluster, node, pod

pytestmark = pytest.mark.usefixtures("way")

VOLUME_KINDS = ("persistentvolumeclaims", "persistentvolumes", "pods")
CLAIM_KINDS = ("nodes", "pods", "resourceclaims")


def namespace(name: str) -> Document:
    """Return a namespace of the source."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def volume_claim(name: str, *, volume: str = "", owner: str = "") -> Document:
    """Return a claim of the source that is bound to a volume, or that a pod of a uid owns."""
    metadata: Document = {"name": name, "namespace": NS}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": owner, "controller": True}
        ]
    spec: Document = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
    }
    if volume:
        spec["volumeName"] = volume
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def volume(name: str, *, claim_uid: object, phase: str) -> Document:
    """Return a volume of the source that belongs to the claim ``data`` of a uid."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": NS, "name": "data", "uid": claim_uid},
        },
        "status": {"phase": phase},
    }


def uid_of(document: Document | None) -> object:
    """Return the uid of an object that must be there."""
    assert document is not None
    return part(document, "metadata")["uid"]


def claim_uid_of(fixture: FollowerFixture, name: str) -> object:
    """Return the uid in the claimRef of a volume of the target."""
    found = fixture.here.get("persistentvolumes", name)
    assert found is not None
    return part(part(found, "spec"), "claimRef")["uid"]


def unprotect(fixture: FollowerFixture, name: str) -> None:
    """Remove the finalizer of a local claim, as its controller does when no pod uses it any more."""
    found = fixture.here.get("persistentvolumeclaims", name)
    assert found is not None
    metadata = {key: value for key, value in part(found, "metadata").items() if key != "finalizers"}
    fixture.here.ask("PUT", f"/api/v1/namespaces/{NS}/persistentvolumeclaims/{name}", {**found, "metadata": metadata})
    fixture.work()


def begin_writes(fixture: FollowerFixture, verb: Verb) -> list[SyncWrite]:
    """Return the writes that are due now, all of which must have this verb."""
    writes = fixture.follower.next_writes(10)
    assert {write.verb for write in writes} == {verb}
    return writes


def test_a_change_during_creation_is_written_after_it() -> None:
    fixture = FollowerFixture()
    fixture.start()
    fixture.put("pods", pod("web"))
    fixture.tell()
    (write,) = begin_writes(fixture, Verb.CREATE)
    fixture.put("pods", pod("web", labels={"new": "label"}))
    fixture.tell()
    fixture.here.drive(execute_write(fixture.follower, write))
    fixture.work()
    found = fixture.here.get("pods", "web")
    assert found is not None
    assert part(part(found, "metadata"), "labels") == {"new": "label"}


def test_a_deletion_is_requested_only_once() -> None:
    fixture = FollowerFixture()
    fixture.put("pods", pod("web"))
    fixture.start()
    fixture.work()
    fixture.remove("pods", "web")
    fixture.tell()
    (write,) = begin_writes(fixture, Verb.DELETE)
    fixture.here.drive(execute_write(fixture.follower, write))
    assert fixture.follower.next_writes(10) == []
    assert not fixture.follower.is_idle
    fixture.put("pods", pod("web"))
    fixture.follow()
    assert fixture.here.get("pods", "web") is not None, "a new pod of that name comes when the name is free"


def test_a_late_deletion_event_does_not_delete_the_successor() -> None:
    fixture = FollowerFixture()
    fixture.put("pods", pod("web"))
    fixture.start()
    fixture.work()
    before = fixture.source[next(iter(fixture.source))]
    fixture.remove("pods", "web")
    fixture.put("pods", pod("web"))
    fixture.follow(merged=True)
    fixture.follower.source_deleted("pods", before)
    fixture.work()
    assert fixture.here.get("pods", "web") is not None


def test_a_refused_status_is_reported_once() -> None:
    fixture = FollowerFixture()
    fixture.put("pods", pod("job", node_name="n1"))
    fixture.start()
    fixture.work()
    ended = pod("job", node_name="n1", phase="Succeeded")
    fixture.put("pods", {**ended, "status": {"phase": "Succeeded", "startTime": "yesterday"}})
    fixture.follow()
    assert len(fixture.follower.problems) == 1


def test_a_released_volume_is_not_bound_to_a_later_claim_of_the_same_name() -> None:
    fixture = FollowerFixture(VOLUME_KINDS)
    claim = fixture.put("persistentvolumeclaims", volume_claim("data", volume="pv"))
    fixture.put("persistentvolumes", volume("pv", claim_uid=uid_of(claim), phase="Bound"))
    fixture.start()
    fixture.work()
    unprotect(fixture, "data")
    fixture.remove("persistentvolumeclaims", "data")
    fixture.follow()
    # Change the volume in any way before its phase becomes Released.
    changed = volume("pv", claim_uid=uid_of(claim), phase="Bound")
    changed["metadata"] = {"name": "pv", "labels": {"new": "label"}}
    fixture.put("persistentvolumes", changed)
    fixture.follow()
    fixture.put("persistentvolumes", volume("pv", claim_uid=uid_of(claim), phase="Released"))
    fixture.follow()
    fixture.put("persistentvolumeclaims", volume_claim("data"))
    fixture.follow()
    made, released = (fixture.here.get(kind, name) for kind, name in zip(VOLUME_KINDS, ("data", "pv"), strict=False))
    assert released is not None
    assert part(released, "status")["phase"] == "Released"
    assert claim_uid_of(fixture, "pv") != uid_of(made)


def test_a_volume_event_before_its_new_claim_still_gets_the_new_claim_uid() -> None:
    fixture = FollowerFixture(VOLUME_KINDS)
    fixture.put("persistentvolumeclaims", volume_claim("data", volume="old"))
    fixture.start()
    fixture.work()
    unprotect(fixture, "data")
    fixture.remove("persistentvolumeclaims", "data")
    claim = fixture.put("persistentvolumeclaims", volume_claim("data", volume="pv"))
    bound = fixture.put("persistentvolumes", volume("pv", claim_uid=uid_of(claim), phase="Bound"))
    fixture.follower.source_changed("persistentvolumes", bound)
    fixture.work()
    fixture.follow()
    assert claim_uid_of(fixture, "pv") == uid_of(fixture.here.get("persistentvolumeclaims", "data"))


def test_a_claim_of_a_recreated_pod_is_owned_by_the_new_pod() -> None:
    fixture = FollowerFixture(VOLUME_KINDS)
    first = fixture.put("pods", pod("web"))
    fixture.put("persistentvolumeclaims", volume_claim("web-scratch", owner=str(uid_of(first))))
    fixture.start()
    fixture.work()
    unprotect(fixture, "web-scratch")
    fixture.remove("persistentvolumeclaims", "web-scratch")
    fixture.remove("pods", "web")
    second = fixture.put("pods", pod("web"))
    fixture.put("persistentvolumeclaims", volume_claim("web-scratch", owner=str(uid_of(second))))
    fixture.follow()
    found = fixture.here.get("persistentvolumeclaims", "web-scratch")
    assert found is not None
    owners = part(found, "metadata")["ownerReferences"]
    assert isinstance(owners, list)
    assert [owner["uid"] for owner in owners] == [uid_of(fixture.here.get("pods", "web"))]


def test_a_pod_survives_a_late_replacement_event_of_its_namespace() -> None:
    fixture = FollowerFixture(("namespaces", "pods"))
    fixture.put("namespaces", namespace("team"))
    fixture.start()
    fixture.work()
    fixture.remove("namespaces", "team")
    fixture.put("namespaces", namespace("team"))
    lonely = pod("web")
    lonely["metadata"] = {"name": "web", "namespace": "team"}
    made = fixture.put("pods", lonely)
    fixture.follower.source_changed("pods", made)
    fixture.work()
    fixture.follow()
    assert fixture.here.get("pods", "web", "team") is not None


def test_an_object_that_precedes_its_namespace_is_created_with_it() -> None:
    fixture = FollowerFixture(("namespaces", "services"))
    fixture.start()
    service: Document = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    fixture.put("services", service)
    fixture.follow()
    assert fixture.here.get("services", "web", "team") is None
    fixture.put("namespaces", namespace("team"))
    fixture.follow()
    assert fixture.here.get("services", "web", "team") is not None
    assert fixture.follower.problems == {}


def resource_claim(*, pod_uid: object = "") -> Document:
    """Return a resource claim of the source; with `pod_uid`, it is allocated to the pod ``web`` with this uid."""
    request: Document = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    metadata: Document = {"name": "gpu", "namespace": NS}
    claim: Document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
    claim["spec"] = {"devices": {"requests": [request]}}
    if pod_uid:
        claim["status"] = allocation("there", pod_uid)
    return claim


def allocation(device: str, pod_uid: object) -> Document:
    """Return the status of a claim that has a device, for the pod ``web`` of a uid."""
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "pool", "device": device}
    users = [{"resource": "pods", "name": "web", "uid": pod_uid}]
    return {"allocation": {"devices": {"results": [result]}}, "reservedFor": users}


def test_a_local_allocation_survives_a_source_allocation() -> None:
    fixture = FollowerFixture(CLAIM_KINDS)
    fixture.put("nodes", node("n1"))
    there = fixture.put("pods", pod("web"))
    fixture.put("resourceclaims", resource_claim())
    fixture.start()
    fixture.work()
    claim = fixture.here.get("resourceclaims", "gpu")
    assert claim is not None
    decided = allocation("here", uid_of(fixture.here.get("pods", "web")))
    path = f"/apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaims/gpu/status"
    fixture.here.ask("PUT", path, {**claim, "status": decided})
    fixture.put("resourceclaims", resource_claim(pod_uid=uid_of(there)))
    fixture.follow()
    fixture.start()
    fixture.work()
    claim = fixture.here.get("resourceclaims", "gpu")
    assert claim is not None
    assert part(claim, "status") == decided


def test_a_source_allocation_is_copied_for_a_pod_that_keeps_its_node() -> None:
    fixture = FollowerFixture(CLAIM_KINDS)
    fixture.put("nodes", node("n1"))
    there = fixture.put("pods", pod("web", node_name="n1"))
    fixture.put("resourceclaims", resource_claim(pod_uid=uid_of(there)))
    fixture.start()
    fixture.work()
    claim = fixture.here.get("resourceclaims", "gpu")
    assert claim is not None
    assert part(claim, "status") == allocation("there", uid_of(fixture.here.get("pods", "web")))
    assert part(claim, "metadata")["finalizers"] == ["resource.kubernetes.io/delete-protection"], (
        "else it is never given back"
    )


def test_an_empty_cluster_at_the_same_address_is_filled_again() -> None:
    fixture = FollowerFixture(("namespaces", "nodes", "pods"))
    fixture.put("nodes", node("n1"))
    fixture.put("pods", pod("runs", node_name="n1"))
    fixture.start()
    fixture.work()
    fixture.put("pods", pod("later", node_name="n1"))
    fixture.follow()
    fixture.here = LocalCluster()
    fixture.list_local()
    fixture.work()
    found = {name: fixture.here.get("pods", name) for name in ("runs", "later")}
    nodes = {name: part(each or {}, "spec").get("nodeName") for name, each in found.items()}
    assert nodes == {"runs": "n1", "later": "n1"}, "both run there when following begins again"
    fixture.here.delete_pod("runs")
    fixture.start()
    fixture.work()
    assert fixture.here.get("pods", "runs") is None, "what came since is remembered in the new cluster"


def test_a_locally_removed_gate_stays_removed() -> None:
    fixture = FollowerFixture()
    fixture.start()
    fixture.put("pods", pod("web", gates=("example.com/a", "example.com/b")))
    fixture.follow()
    here = fixture.here.get("pods", "web")
    assert here is not None
    half_open = {**part(here, "spec"), "schedulingGates": [{"name": "example.com/b"}]}
    fixture.here.ask("PUT", f"/api/v1/namespaces/{NS}/pods/web", {**here, "spec": half_open})
    fixture.put("pods", pod("web", gates=("example.com/a", "example.com/b"), labels={"new": "label"}))
    fixture.follow()
    found = fixture.here.get("pods", "web")
    assert found is not None
    assert part(found, "spec")["schedulingGates"] == [{"name": "example.com/b"}]
    assert part(part(found, "metadata"), "labels") == {"new": "label"}
    assert fixture.follower.problems == {}


def test_local_result_annotations_survive_source_changes_of_a_pending_pod() -> None:
    fixture = FollowerFixture()
    fixture.put("pods", pod("web"))
    fixture.start()
    fixture.work()
    here = fixture.here.get("pods", "web")
    assert here is not None
    metadata = part(here, "metadata")
    with_hashes = {**part(metadata, "annotations"), "scheduler-simulator/result-history": "[]"}
    fixture.here.ask(
        "PUT", f"/api/v1/namespaces/{NS}/pods/web", {**here, "metadata": {**metadata, "annotations": with_hashes}}
    )
    fixture.put("pods", pod("web", labels={"new": "label"}))
    fixture.follow()
    found = fixture.here.get("pods", "web")
    assert found is not None
    assert part(part(found, "metadata"), "annotations")["scheduler-simulator/result-history"] == "[]"
    assert part(part(found, "metadata"), "labels") == {"new": "label"}


def test_the_sync_status_namespace_of_a_source_is_not_copied() -> None:
    fixture = FollowerFixture(("namespaces", "pods"))
    fixture.put("namespaces", namespace("bayplan-sync"))
    fixture.put("pods", pod("web"))
    fixture.start()
    fixture.work()
    fixture.here.delete_pod("web")
    fixture.work()
    fixture.remove("namespaces", "bayplan-sync")
    fixture.follow()
    fixture.start()
    fixture.work()
    assert fixture.here.get("pods", "web") is None


def test_a_recreated_pod_is_synced_although_its_predecessor_was_deleted_unseen() -> None:
    fixture = FollowerFixture()
    fixture.start()
    fixture.put("pods", pod("web"))
    fixture.tell()
    fixture.begin_writes()
    fixture.end_writes()
    fixture.here.delete_pod("web")
    fixture.lose_local_events()
    fixture.remove("pods", "web")
    fixture.put("pods", pod("web"))
    fixture.follow()
    assert fixture.here.get("pods", "web") is not None


def test_a_pod_deleted_locally_during_a_watch_outage_is_not_recreated() -> None:
    fixture = FollowerFixture()
    fixture.start()
    fixture.put("pods", pod("web"))
    fixture.tell()
    fixture.begin_writes()
    fixture.end_writes()
    fixture.here.delete_pod("web")
    fixture.lose_local_events()
    assert not fixture.follower.is_idle, "its event may still arrive"
    fixture.follower.local_bookmark("pods", fixture.here.backend.store.revision)
    fixture.work()
    fixture.put("pods", pod("web", labels={"still": "there"}))
    fixture.follow()
    assert fixture.here.get("pods", "web") is None


def test_a_creation_response_after_the_deletion_is_known_is_ignored() -> None:
    fixture = FollowerFixture()
    fixture.start()
    fixture.put("pods", pod("web"))
    fixture.tell()
    (write,) = begin_writes(fixture, Verb.CREATE)
    steps = execute_write(fixture.follower, write)
    request = next(steps)
    assert isinstance(request, ApiRequest)
    answer = fixture.here.send(request)
    fixture.here.delete_pod("web")
    fixture.lose_local_events()
    fixture.follower.local_bookmark("pods", fixture.here.backend.store.revision)
    with pytest.raises(StopIteration):
        steps.send(answer)
    fixture.work()
    assert fixture.follower.is_idle
    assert fixture.here.get("pods", "web") is None


def step(steps: RequestSteps[bool], answer: ApiResponse | None) -> ApiRequest | None:
    """Return the next request after an answer, or None at the end."""
    try:
        request = next(steps) if answer is None else steps.send(answer)
    except StopIteration:
        return None
    assert isinstance(request, ApiRequest)
    return request


def test_a_pod_cidr_set_between_read_and_write_survives() -> None:
    fixture = FollowerFixture()
    fixture.put("nodes", node("n1"))
    fixture.start()
    fixture.work()
    changed = node("n1", cpu="8")
    fixture.put("nodes", {**changed, "metadata": {"name": "n1", "labels": {"new": "label"}}})
    fixture.tell()
    (write,) = begin_writes(fixture, Verb.UPDATE)
    steps = execute_write(fixture.follower, write)
    requests, answer = [], None
    while (request := step(steps, answer)) is not None:
        answer = fixture.here.send(request)
        requests.append((request.method, request.path.rpartition("/")[2], answer.status))
        if request.method == "GET":
            here = msgspec.json.decode(answer.body)
            cidr = {**part(here, "spec"), "podCIDR": "10.128.0.0/24", "podCIDRs": ["10.128.0.0/24"]}
            fixture.here.ask("PUT", "/api/v1/nodes/n1", {**here, "spec": cidr})
    assert requests == [("GET", "n1", 200), ("PUT", "status", 200), ("PUT", "n1", 200)]
    found = fixture.here.get("nodes", "n1")
    assert found is not None
    assert part(found, "spec")["podCIDR"] == "10.128.0.0/24"
    assert part(part(found, "metadata"), "labels")["new"] == "label"
    assert fixture.follower.problems == {}
