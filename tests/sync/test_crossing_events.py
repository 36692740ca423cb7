"""Tests of events that arrive in another order than they happened: of different kinds, or of source and target."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.base.plain_data import Document, part
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.sync.sync_write import SyncWrite, Verb
from bayplan.sync.writing import Exchange, execute_write
from tests.sync.world import NS, LocalCluster, World, node, pod

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


def claim_uid_of(world: World, name: str) -> object:
    """Return the uid in the claimRef of a volume here."""
    found = world.here.get("persistentvolumes", name)
    assert found is not None
    return part(part(found, "spec"), "claimRef")["uid"]


def unprotect(world: World, name: str) -> None:
    """Take away what keeps a claim here while pods use it, as its controller does when none does."""
    found = world.here.get("persistentvolumeclaims", name)
    assert found is not None
    metadata = {key: value for key, value in part(found, "metadata").items() if key != "finalizers"}
    world.here.ask("PUT", f"/api/v1/namespaces/{NS}/persistentvolumeclaims/{name}", {**found, "metadata": metadata})
    world.work()


def begin_writes(world: World, verb: Verb) -> list[SyncWrite]:
    """Return the writes that are due now; all of them are of one verb."""
    writes = world.follower.next_writes(10)
    assert {write.verb for write in writes} == {verb}
    return writes


def test_a_change_during_creation_is_written_after_it() -> None:
    world = World()
    world.start()
    world.put("pods", pod("web"))
    world.tell()
    (write,) = begin_writes(world, Verb.CREATE)
    world.put("pods", pod("web", labels={"new": "label"}))
    world.tell()
    world.here.drive(execute_write(world.follower, write))
    world.work()
    found = world.here.get("pods", "web")
    assert found is not None
    assert part(part(found, "metadata"), "labels") == {"new": "label"}


def test_a_deletion_is_requested_only_once() -> None:
    world = World()
    world.put("pods", pod("web"))
    world.start()
    world.work()
    world.remove("pods", "web")
    world.tell()
    (write,) = begin_writes(world, Verb.DELETE)
    world.here.drive(execute_write(world.follower, write))
    assert world.follower.next_writes(10) == []
    assert not world.follower.is_idle
    world.put("pods", pod("web"))
    world.follow()
    assert world.here.get("pods", "web") is not None, "a new pod of that name comes when the name is free"


def test_a_late_deletion_event_does_not_delete_the_successor() -> None:
    world = World()
    world.put("pods", pod("web"))
    world.start()
    world.work()
    before = world.source[next(iter(world.source))]
    world.remove("pods", "web")
    world.put("pods", pod("web"))
    world.follow(merged=True)
    world.follower.source_changed("pods", before, deleted=True)
    world.work()
    assert world.here.get("pods", "web") is not None


def test_a_refused_status_is_reported_once() -> None:
    world = World()
    world.put("pods", pod("job", node_name="n1"))
    world.start()
    world.work()
    ended = pod("job", node_name="n1", phase="Succeeded")
    world.put("pods", {**ended, "status": {"phase": "Succeeded", "startTime": "yesterday"}})
    world.follow()
    assert len(world.follower.problems) == 1


def test_a_released_volume_is_not_bound_to_a_later_claim_of_the_same_name() -> None:
    world = World(VOLUME_KINDS)
    claim = world.put("persistentvolumeclaims", volume_claim("data", volume="pv"))
    world.put("persistentvolumes", volume("pv", claim_uid=uid_of(claim), phase="Bound"))
    world.start()
    world.work()
    unprotect(world, "data")
    world.remove("persistentvolumeclaims", "data")
    world.follow()
    # Change the volume in any way before its phase becomes Released.
    changed = volume("pv", claim_uid=uid_of(claim), phase="Bound")
    changed["metadata"] = {"name": "pv", "labels": {"new": "label"}}
    world.put("persistentvolumes", changed)
    world.follow()
    world.put("persistentvolumes", volume("pv", claim_uid=uid_of(claim), phase="Released"))
    world.follow()
    world.put("persistentvolumeclaims", volume_claim("data"))
    world.follow()
    made, released = (world.here.get(kind, name) for kind, name in zip(VOLUME_KINDS, ("data", "pv"), strict=False))
    assert released is not None
    assert part(released, "status")["phase"] == "Released"
    assert claim_uid_of(world, "pv") != uid_of(made)


def test_a_volume_event_before_its_new_claim_still_gets_the_new_claim_uid() -> None:
    world = World(VOLUME_KINDS)
    world.put("persistentvolumeclaims", volume_claim("data", volume="old"))
    world.start()
    world.work()
    unprotect(world, "data")
    world.remove("persistentvolumeclaims", "data")
    claim = world.put("persistentvolumeclaims", volume_claim("data", volume="pv"))
    bound = world.put("persistentvolumes", volume("pv", claim_uid=uid_of(claim), phase="Bound"))
    world.follower.source_changed("persistentvolumes", bound)
    world.work()
    world.follow()
    assert claim_uid_of(world, "pv") == uid_of(world.here.get("persistentvolumeclaims", "data"))


def test_a_claim_of_a_recreated_pod_is_owned_by_the_new_pod() -> None:
    world = World(VOLUME_KINDS)
    first = world.put("pods", pod("web"))
    world.put("persistentvolumeclaims", volume_claim("web-scratch", owner=str(uid_of(first))))
    world.start()
    world.work()
    unprotect(world, "web-scratch")
    world.remove("persistentvolumeclaims", "web-scratch")
    world.remove("pods", "web")
    second = world.put("pods", pod("web"))
    world.put("persistentvolumeclaims", volume_claim("web-scratch", owner=str(uid_of(second))))
    world.follow()
    found = world.here.get("persistentvolumeclaims", "web-scratch")
    assert found is not None
    owners = part(found, "metadata")["ownerReferences"]
    assert isinstance(owners, list)
    assert [owner["uid"] for owner in owners] == [uid_of(world.here.get("pods", "web"))]


def test_a_pod_survives_a_late_replacement_event_of_its_namespace() -> None:
    world = World(("namespaces", "pods"))
    world.put("namespaces", namespace("team"))
    world.start()
    world.work()
    world.remove("namespaces", "team")
    world.put("namespaces", namespace("team"))
    lonely = pod("web")
    lonely["metadata"] = {"name": "web", "namespace": "team"}
    made = world.put("pods", lonely)
    world.follower.source_changed("pods", made)
    world.work()
    world.follow()
    assert world.here.get("pods", "web", "team") is not None


def test_an_object_that_precedes_its_namespace_is_created_with_it() -> None:
    world = World(("namespaces", "services"))
    world.start()
    service: Document = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    world.put("services", service)
    world.follow()
    assert world.here.get("services", "web", "team") is None
    world.put("namespaces", namespace("team"))
    world.follow()
    assert world.here.get("services", "web", "team") is not None
    assert world.follower.problems == {}


def resource_claim(*, pod_uid: object = "") -> Document:
    """Return a resource claim of the source, allocated to the pod ``web`` of a uid where there is one."""
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
    world = World(CLAIM_KINDS)
    world.put("nodes", node("n1"))
    there = world.put("pods", pod("web"))
    world.put("resourceclaims", resource_claim())
    world.start()
    world.work()
    claim = world.here.get("resourceclaims", "gpu")
    assert claim is not None
    decided = allocation("here", uid_of(world.here.get("pods", "web")))
    path = f"/apis/resource.k8s.io/v1/namespaces/{NS}/resourceclaims/gpu/status"
    world.here.ask("PUT", path, {**claim, "status": decided})
    world.put("resourceclaims", resource_claim(pod_uid=uid_of(there)))
    world.follow()
    world.start()
    world.work()
    claim = world.here.get("resourceclaims", "gpu")
    assert claim is not None
    assert part(claim, "status") == decided


def test_a_source_allocation_is_copied_for_a_pod_that_keeps_its_node() -> None:
    world = World(CLAIM_KINDS)
    world.put("nodes", node("n1"))
    there = world.put("pods", pod("web", node_name="n1"))
    world.put("resourceclaims", resource_claim(pod_uid=uid_of(there)))
    world.start()
    world.work()
    claim = world.here.get("resourceclaims", "gpu")
    assert claim is not None
    assert part(claim, "status") == allocation("there", uid_of(world.here.get("pods", "web")))
    assert part(claim, "metadata")["finalizers"] == ["resource.kubernetes.io/delete-protection"], (
        "else it is never given back"
    )


def test_an_empty_cluster_at_the_same_address_is_filled_again() -> None:
    world = World(("namespaces", "nodes", "pods"))
    world.put("nodes", node("n1"))
    world.put("pods", pod("runs", node_name="n1"))
    world.start()
    world.work()
    world.put("pods", pod("later", node_name="n1"))
    world.follow()
    world.here = LocalCluster()
    world.list_local()
    world.work()
    found = {name: world.here.get("pods", name) for name in ("runs", "later")}
    nodes = {name: part(each or {}, "spec").get("nodeName") for name, each in found.items()}
    assert nodes == {"runs": "n1", "later": "n1"}, "both run there when following begins again"
    world.here.delete_pod("runs")
    world.start()
    world.work()
    assert world.here.get("pods", "runs") is None, "what came since is remembered in the new cluster"


def test_a_locally_removed_gate_stays_removed() -> None:
    world = World()
    world.start()
    world.put("pods", pod("web", gates=("example.com/a", "example.com/b")))
    world.follow()
    here = world.here.get("pods", "web")
    assert here is not None
    half_open = {**part(here, "spec"), "schedulingGates": [{"name": "example.com/b"}]}
    world.here.ask("PUT", f"/api/v1/namespaces/{NS}/pods/web", {**here, "spec": half_open})
    world.put("pods", pod("web", gates=("example.com/a", "example.com/b"), labels={"new": "label"}))
    world.follow()
    found = world.here.get("pods", "web")
    assert found is not None
    assert part(found, "spec")["schedulingGates"] == [{"name": "example.com/b"}]
    assert part(part(found, "metadata"), "labels") == {"new": "label"}
    assert world.follower.problems == {}


def test_local_result_annotations_survive_source_changes_of_a_pending_pod() -> None:
    world = World()
    world.put("pods", pod("web"))
    world.start()
    world.work()
    here = world.here.get("pods", "web")
    assert here is not None
    metadata = part(here, "metadata")
    with_hashes = {**part(metadata, "annotations"), "scheduler-simulator/result-history": "[]"}
    world.here.ask(
        "PUT", f"/api/v1/namespaces/{NS}/pods/web", {**here, "metadata": {**metadata, "annotations": with_hashes}}
    )
    world.put("pods", pod("web", labels={"new": "label"}))
    world.follow()
    found = world.here.get("pods", "web")
    assert found is not None
    assert part(part(found, "metadata"), "annotations")["scheduler-simulator/result-history"] == "[]"
    assert part(part(found, "metadata"), "labels") == {"new": "label"}


def test_the_sync_status_namespace_of_a_source_is_not_copied() -> None:
    world = World(("namespaces", "pods"))
    world.put("namespaces", namespace("bayplan-sync"))
    world.put("pods", pod("web"))
    world.start()
    world.work()
    world.here.delete_pod("web")
    world.work()
    world.remove("namespaces", "bayplan-sync")
    world.follow()
    world.start()
    world.work()
    assert world.here.get("pods", "web") is None


def test_a_recreated_pod_is_synced_although_its_predecessor_was_deleted_unseen() -> None:
    world = World()
    world.start()
    world.put("pods", pod("web"))
    world.tell()
    world.begin_writes()
    world.end_writes()
    world.here.delete_pod("web")
    world.lose_local_events()
    world.remove("pods", "web")
    world.put("pods", pod("web"))
    world.follow()
    assert world.here.get("pods", "web") is not None


def test_a_pod_deleted_locally_during_a_watch_outage_is_not_recreated() -> None:
    world = World()
    world.start()
    world.put("pods", pod("web"))
    world.tell()
    world.begin_writes()
    world.end_writes()
    world.here.delete_pod("web")
    world.lose_local_events()
    assert not world.follower.is_idle, "its event may still arrive"
    world.follower.local_bookmark("pods", world.here.backend.store.revision)
    world.work()
    world.put("pods", pod("web", labels={"still": "there"}))
    world.follow()
    assert world.here.get("pods", "web") is None


def test_a_creation_response_after_the_deletion_is_known_is_ignored() -> None:
    world = World()
    world.start()
    world.put("pods", pod("web"))
    world.tell()
    (write,) = begin_writes(world, Verb.CREATE)
    steps = execute_write(world.follower, write)
    request = next(steps)
    assert isinstance(request, ApiRequest)
    answer = world.here.send(request)
    world.here.delete_pod("web")
    world.lose_local_events()
    world.follower.local_bookmark("pods", world.here.backend.store.revision)
    with pytest.raises(StopIteration):
        steps.send(answer)
    world.work()
    assert world.follower.is_idle
    assert world.here.get("pods", "web") is None


def step(steps: Exchange[None], answer: ApiResponse | None) -> ApiRequest | None:
    """Return the next request after an answer, or None at the end."""
    try:
        request = next(steps) if answer is None else steps.send(answer)
    except StopIteration:
        return None
    assert isinstance(request, ApiRequest)
    return request


def test_a_pod_cidr_set_between_read_and_write_survives() -> None:
    world = World()
    world.put("nodes", node("n1"))
    world.start()
    world.work()
    changed = node("n1", cpu="8")
    world.put("nodes", {**changed, "metadata": {"name": "n1", "labels": {"new": "label"}}})
    world.tell()
    (write,) = begin_writes(world, Verb.UPDATE)
    steps = execute_write(world.follower, write)
    requests, answer = [], None
    while (request := step(steps, answer)) is not None:
        answer = world.here.send(request)
        requests.append((request.method, request.path.rpartition("/")[2], answer.status))
        if request.method == "GET":
            here = msgspec.json.decode(answer.body)
            cidr = {**part(here, "spec"), "podCIDR": "10.128.0.0/24", "podCIDRs": ["10.128.0.0/24"]}
            world.here.ask("PUT", "/api/v1/nodes/n1", {**here, "spec": cidr})
    assert requests == [("GET", "n1", 200), ("PUT", "status", 200), ("PUT", "n1", 200)]
    found = world.here.get("nodes", "n1")
    assert found is not None
    assert part(found, "spec")["podCIDR"] == "10.128.0.0/24"
    assert part(part(found, "metadata"), "labels")["new"] == "label"
    assert world.follower.problems == {}
