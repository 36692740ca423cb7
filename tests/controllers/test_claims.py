"""Claims of pods: created from templates, reserved, released, and deleted with the pods they were created for."""

from __future__ import annotations

import pytest

from bayplan.controllers.pod_claims import POD_CLAIM_ANNOTATION
from bayplan.controllers.resource_claims import DELETE_PROTECTION
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim
from tests.cluster.cluster_fixture import CONTAINERS, ClusterFixture, Json

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


def claims(fixture: ClusterFixture) -> list[ResourceClaim]:
    return list(fixture.store.all(ResourceClaim))


def test_a_claim_is_created_from_its_template_and_recorded_in_the_pod_status() -> None:
    fixture = ClusterFixture(binds=False)
    fixture.apply(template(labels={"app": "a"}, annotations={"note": "b"}), pod())
    fixture.settle()
    (made,), owner = claims(fixture), fixture.store.pods["default/p"]
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
    fixture = ClusterFixture(binds=False)
    fixture.apply(template(), pod(name, entry=entry))
    fixture.settle()
    (made,) = claims(fixture)
    assert made.metadata.generate_name == want
    assert made.metadata.name[:-5] == want


def test_a_deleted_claim_is_recreated() -> None:
    fixture = ClusterFixture(binds=False)
    fixture.apply(template(), pod())
    fixture.settle()
    (first,) = claims(fixture)
    fixture.delete(ResourceClaim, first.key)
    fixture.settle()
    (second,) = claims(fixture)
    assert second.metadata.uid != first.metadata.uid
    (noted,) = fixture.store.pods["default/p"].status.resource_claim_statuses
    assert noted.resource_claim_name == second.metadata.name


def test_a_missing_template_is_reported_until_it_is_created() -> None:
    fixture = ClusterFixture(binds=False)
    fixture.apply(template("other"), pod())
    fixture.settle()
    assert claims(fixture) == []
    assert list(fixture.cluster.failures()) == ["Pod default/p"]
    fixture.apply(template())
    fixture.settle()
    assert len(claims(fixture)) == 1
    assert fixture.cluster.failures() == {}


def test_an_allocated_claim_is_reserved_for_a_pod_with_a_node_name() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(claim("shared"), pod(node="node-0", resourceClaimName="shared"))
    fixture.settle()
    (shared,) = claims(fixture)
    assert [user.name for user in shared.status.reserved_for] == ["p"]


def test_a_claim_is_deallocated_when_its_last_pod_ends() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    for name, run_time in (("short", "10s"), ("long", "20s")):
        fixture.apply(pod(name, node="node-0", run_time=run_time, resourceClaimName="shared"))
    fixture.settle()
    fixture.apply(claim("shared", *fixture.store.pods.values()))
    fixture.run_until(15)
    (shared,) = claims(fixture)
    assert ([user.name for user in shared.status.reserved_for], shared.status.allocation is None) == (["long"], False)
    fixture.run_until(25)
    (shared,) = claims(fixture)
    assert (shared.status.reserved_for, shared.status.allocation, shared.metadata.finalizers) == ((), None, ())


def test_a_claim_without_users_stays_allocated() -> None:
    fixture = ClusterFixture()
    fixture.apply(claim("unused"))
    fixture.settle()
    (unused,) = claims(fixture)
    assert unused.status.allocation is not None


def test_a_reservation_is_removed_if_the_pod_was_recreated() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(pod(resourceClaimName="shared"))
    fixture.settle()
    fixture.apply(claim("shared", fixture.store.pods["default/p"]))
    fixture.delete(Pod, "default/p")
    fixture.apply(pod(resourceClaimName="shared"))
    fixture.settle()
    (shared,) = claims(fixture)
    assert (shared.status.reserved_for, shared.status.allocation) == ((), None)


def test_a_deleted_resource_claim_is_removed_when_no_pod_uses_it() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(pod(node="node-0", resourceClaimName="shared"))
    fixture.settle()
    fixture.apply(claim("shared", fixture.store.pods["default/p"]))
    fixture.delete(ResourceClaim, "default/shared")
    fixture.settle()
    assert [each.metadata.deletion_timestamp is not None for each in claims(fixture)] == [True]
    fixture.delete(Pod, "default/p")
    fixture.settle()
    assert claims(fixture) == []


def test_a_generated_claim_is_deleted_with_its_finished_pod_and_not_recreated() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(template(), pod(run_time="10s"))
    fixture.run_until(5)
    assert len(claims(fixture)) == 1
    fixture.run_until(20)
    assert fixture.phases() == {"Succeeded": 1}
    assert claims(fixture) == []
