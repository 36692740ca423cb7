"""Volumes and claims are bound to each other without any pod."""

from __future__ import annotations

import pytest

from bayplan.controllers.persistent_volumes import BOUND_BY_SOURCE
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from tests.cluster.cluster_fixture import ClusterFixture, Json

STORAGE = "storage.k8s.io/v1"


def storage_class(name: str, *, waits: bool = False, provisioner: str = "csi.a", default: bool = False) -> Json:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    metadata = {"name": name, "annotations": annotations}
    return {
        "apiVersion": STORAGE,
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def volume(name: str, size: str = "10Gi", *, policy: str = "Retain", claim: str = "", **spec: object) -> Json:
    reference = {"claimRef": {"namespace": "default", "name": claim}} if claim else {}
    body = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": policy,
        "storageClassName": "",
        **reference,
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": body}


def claim(name: str = "c", size: str = "1Gi", **spec: object) -> Json:
    body = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": "",
        **spec,
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": body}


def bound(fixture: ClusterFixture, name: str = "c") -> str:
    """Return the volume of a claim; "" if it is unbound."""
    found = fixture.store.get(PersistentVolumeClaim, f"default/{name}")
    assert found is not None
    assert (found.status.phase == "Bound") is bool(found.metadata.annotations.get("pv.kubernetes.io/bind-completed"))
    return found.spec.volume_name if found.status.phase == "Bound" else ""


def phases(fixture: ClusterFixture) -> dict[str, str]:
    return {item.metadata.name: item.status.phase for item in fixture.store.all(PersistentVolume)}


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([volume("big", "9Gi"), volume("small", "2Gi"), claim()], "small", id="the smallest that fits"),
        pytest.param([claim(), volume("late")], "late", id="a volume that is created later"),
        pytest.param([volume("tiny", "1Mi"), claim()], "", id="none that is too small"),
        pytest.param([volume("pv"), claim(accessModes=["ReadWriteMany"])], "", id="none that lacks an access mode"),
        pytest.param([volume("pv"), claim(volumeMode="Block")], "", id="none of another mode"),
        pytest.param([volume("pv", storageClassName="x"), claim()], "", id="none of another class"),
        pytest.param(
            [volume("a", "2Gi"), volume("mine", claim="c"), claim()], "mine", id="a volume that names the claim"
        ),
        pytest.param([volume("other", claim="d"), claim()], "", id="not a volume reserved for another claim"),
        pytest.param([volume("a", "2Gi"), volume("b"), claim(volumeName="b")], "b", id="the volume that it names"),
        pytest.param([volume("b", claim="d"), claim(volumeName="b")], "", id="not the named volume if it is reserved"),
        pytest.param([volume("b", "1Mi"), claim(volumeName="b")], "", id="nor a volume that is too small"),
        pytest.param([claim(volumeName="late"), volume("late")], "late", id="the volume that it names, created later"),
        pytest.param(
            [storage_class("x", waits=True), volume("pv", storageClassName="x"), claim(storageClassName="x")],
            "",
            id="none before the first consumer",
        ),
        pytest.param(
            [
                storage_class("x", waits=True),
                volume("pv", claim="c", storageClassName="x"),
                claim(storageClassName="x"),
            ],
            "pv",
            id="a volume reserved for the claim is bound immediately",
        ),
        pytest.param(
            [storage_class("x", provisioner="kubernetes.io/no-provisioner"), claim(storageClassName="x")],
            "",
            id="none without a provisioner",
        ),
    ],
)
def test_a_claim_is_bound_to_the_smallest_matching_volume(objects: list[Json], want: str) -> None:
    fixture = ClusterFixture()
    fixture.apply(*objects)
    fixture.settle()
    assert bound(fixture) == want
    assert {name for name, phase in phases(fixture).items() if phase == "Bound"} == ({want} if want else set())


def test_an_immediate_binding_claim_is_provisioned() -> None:
    fixture = ClusterFixture()
    fixture.apply(storage_class("fast"), claim(storageClassName="fast"))
    fixture.settle()
    (made,) = fixture.store.all(PersistentVolume)
    assert bound(fixture) == made.metadata.name
    assert made.metadata.name.startswith("pvc-")
    assert (made.spec.capacity, made.spec.node_affinity) == ({"storage": "1Gi"}, None)


def test_a_claim_bound_by_the_source_cluster_is_ignored() -> None:
    fixture = ClusterFixture()
    copy = claim(storageClassName="fast")
    copy["metadata"] = {**copy["metadata"], "annotations": {BOUND_BY_SOURCE: "yes"}}
    fixture.apply(storage_class("fast"), volume("pv", storageClassName="fast"), copy)
    fixture.settle()
    assert bound(fixture) == ""
    assert [each.metadata.name for each in fixture.store.all(PersistentVolume)] == ["pv"]


def test_a_claim_without_a_storage_class_gets_the_default_class() -> None:
    fixture = ClusterFixture()
    without = claim()
    del without["spec"]["storageClassName"]
    fixture.apply(storage_class("slow"), storage_class("fast", default=True), without)
    fixture.settle()
    found = fixture.store.get(PersistentVolumeClaim, "default/c")
    assert found is not None
    assert (found.spec.storage_class_name, bound(fixture) != "") == ("fast", True)


def test_a_volume_is_bound_to_only_one_claim() -> None:
    fixture = ClusterFixture()
    fixture.apply(volume("one"), claim("a"), claim("b"))
    fixture.settle()
    assert sorted((bound(fixture, "a"), bound(fixture, "b"))) == ["", "one"]
    fixture.apply(volume("two"))
    fixture.settle()
    assert sorted((bound(fixture, "a"), bound(fixture, "b"))) == ["one", "two"]


@pytest.mark.parametrize(("policy", "want"), [("Retain", {"pv": "Released"}), ("Delete", {})])
def test_the_reclaim_policy_retains_or_deletes_the_volume_of_a_deleted_claim(policy: str, want: dict[str, str]) -> None:
    fixture = ClusterFixture()
    fixture.apply(volume("pv", policy=policy), claim())
    fixture.settle()
    assert phases(fixture) == {"pv": "Bound"}
    fixture.delete(PersistentVolumeClaim, "default/c")
    fixture.settle()
    assert phases(fixture) == want
