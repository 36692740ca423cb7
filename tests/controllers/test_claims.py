"""Claims of pods: created from templates, reserved, released, and deleted with the pods they were created for."""

from __future__ import annotations

import pytest

from bayplan.controllers.pod_claims import POD_CLAIM_ANNOTATION
from bayplan.controllers.resource_claims import DELETE_PROTECTION
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim
from tests.cluster.world import CONTAINERS, Json, World

API = "resource.k8s.io/v1"
SPEC: Json = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
ALLOCATION: Json = {"devices": {"results": [{"request": "gpu", "driver": "d", "pool": "p", "device": "gpu-0"}]}}


def template(name: str = "gpu", **metadata: object) -> Json:
    spec = {"metadata": metadata, "spec": SPEC}
    return {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": named(name), "spec": spec}


def named(name: str, **more: object) -> Json:
    return {"name": name, "namespace": "default", **more}


def pod(name: str = "p", *, run_time: str = "", node: str = "", entry: str = "gpu", **claim: str) -> Json:
    """Return a pod with one entry for a claim, from the template ``gpu`` unless given otherwise."""
    annotations = {"bayplan.io/run-time": run_time} if run_time else {}
    entries = [{"name": entry, **(claim or {"resourceClaimTemplateName": "gpu"})}]
    spec: Json = {"containers": CONTAINERS, "resourceClaims": entries, "nodeName": node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named(name, annotations=annotations), "spec": spec}


def claim(name: str, *users: Pod, allocated: bool = True, finalizers: tuple[str, ...] = (DELETE_PROTECTION,)) -> Json:
    """Return a claim as the scheduler leaves it."""
    reserved = [{"resource": "pods", "name": user.metadata.name, "uid": user.metadata.uid} for user in users]
    status = {"allocation": ALLOCATION, "reservedFor": reserved} if allocated else {}
    metadata = named(name, finalizers=list(finalizers))
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": SPEC, "status": status}


def claims(world: World) -> list[ResourceClaim]:
    return list(world.store.all(ResourceClaim))


def test_a_claim_is_created_from_its_template_and_recorded_in_the_pod_status() -> None:
    world = World(binds=False)
    world.apply(template(labels={"app": "a"}, annotations={"note": "b"}), pod())
    world.settle()
    (made,), owner = claims(world), world.store.pods["default/p"]
    assert made.metadata.name.startswith("p-gpu-")
    assert made.metadata.generate_name == "p-gpu-"
    assert made.metadata.labels == {"app": "a"}
    assert made.metadata.annotations == {"note": "b", POD_CLAIM_ANNOTATION: "gpu"}
    assert [(each.kind, each.uid, each.controller) for each in made.metadata.owner_references] == [
        ("Pod", owner.metadata.uid, True)
    ]
    assert made.spec.devices.requests[0].name == "gpu"
    (noted,) = owner.status.resource_claim_statuses
    assert (noted.name, noted.resource_claim_name) == ("gpu", made.metadata.name)


@pytest.mark.parametrize(
    ("name", "entry", "want"),
    [
        pytest.param("p", "gpu", "p-gpu-", id="short names are not truncated"),
        pytest.param("p" * 50, "gpu", "p" * 50 + "-gpu-", id="names of up to 57 characters as well"),
        pytest.param("p" * 60, "e" * 30, "p" * 37 + "-" + "e" * 18, id="longer names are truncated in proportion"),
    ],
)
def test_claim_names_contain_the_truncated_pod_and_entry_names(name: str, entry: str, want: str) -> None:
    world = World(binds=False)
    world.apply(template(), pod(name, entry=entry))
    world.settle()
    (made,) = claims(world)
    assert made.metadata.generate_name == want
    assert made.metadata.name[:-5] == want


def test_a_deleted_claim_is_recreated() -> None:
    world = World(binds=False)
    world.apply(template(), pod())
    world.settle()
    (first,) = claims(world)
    world.delete(ResourceClaim, first.key)
    world.settle()
    (second,) = claims(world)
    assert second.metadata.uid != first.metadata.uid
    (noted,) = world.store.pods["default/p"].status.resource_claim_statuses
    assert noted.resource_claim_name == second.metadata.name


def test_a_missing_template_is_reported_until_it_is_created() -> None:
    world = World(binds=False)
    world.apply(template("other"), pod())
    world.settle()
    assert claims(world) == []
    assert list(world.cluster.failures()) == ["Pod default/p"]
    world.apply(template())
    world.settle()
    assert len(claims(world)) == 1
    assert world.cluster.failures() == {}


def test_an_allocated_claim_is_reserved_for_a_pod_with_a_node_name() -> None:
    world = World(nodes=1, binds=False)
    world.apply(claim("shared"), pod(node="node-0", resourceClaimName="shared"))
    world.settle()
    (shared,) = claims(world)
    assert [user.name for user in shared.status.reserved_for] == ["p"]


def test_a_claim_is_deallocated_when_its_last_pod_ends() -> None:
    world = World(nodes=1, binds=False)
    for name, run_time in (("short", "10s"), ("long", "20s")):
        world.apply(pod(name, node="node-0", run_time=run_time, resourceClaimName="shared"))
    world.settle()
    world.apply(claim("shared", *world.store.pods.values()))
    world.run_until(15)
    (shared,) = claims(world)
    assert ([user.name for user in shared.status.reserved_for], shared.status.allocation is None) == (["long"], False)
    world.run_until(25)
    (shared,) = claims(world)
    assert (shared.status.reserved_for, shared.status.allocation, shared.metadata.finalizers) == ((), None, ())


def test_a_claim_without_users_stays_allocated() -> None:
    world = World()
    world.apply(claim("unused"))
    world.settle()
    (unused,) = claims(world)
    assert unused.status.allocation is not None


def test_a_reservation_is_removed_if_the_pod_was_recreated() -> None:
    world = World(nodes=1, binds=False)
    world.apply(pod(resourceClaimName="shared"))
    world.settle()
    world.apply(claim("shared", world.store.pods["default/p"]))
    world.delete(Pod, "default/p")
    world.apply(pod(resourceClaimName="shared"))
    world.settle()
    (shared,) = claims(world)
    assert (shared.status.reserved_for, shared.status.allocation) == ((), None)


def test_a_deleted_resource_claim_is_removed_when_no_pod_uses_it() -> None:
    world = World(nodes=1, binds=False)
    world.apply(pod(node="node-0", resourceClaimName="shared"))
    world.settle()
    world.apply(claim("shared", world.store.pods["default/p"]))
    world.delete(ResourceClaim, "default/shared")
    world.settle()
    assert [each.metadata.deletion_timestamp is not None for each in claims(world)] == [True]
    world.delete(Pod, "default/p")
    world.settle()
    assert claims(world) == []


def test_a_generated_claim_is_deleted_with_its_finished_pod_and_not_recreated() -> None:
    world = World(nodes=1)
    world.apply(template(), pod(run_time="10s"))
    world.run_until(5)
    assert len(claims(world)) == 1
    world.run_until(20)
    assert world.phases() == {"Succeeded": 1}
    assert claims(world) == []
