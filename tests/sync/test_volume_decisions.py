"""Tests of who chooses a claim's volume, the source or the target's controllers, in whichever order events arrive."""

from __future__ import annotations

import pytest

from bayplan.base.plain_data import Document, part
from bayplan.controllers.persistent_volumes import BOUND_BY_SOURCE
from bayplan.sync.policy import SyncPolicy
from tests.sync.follower_fixture import NS, FollowerFixture
from tests.sync.test_crossing_events import unprotect

pytestmark = pytest.mark.usefixtures("way")

KINDS = ("storageclasses", "persistentvolumeclaims", "persistentvolumes")
CLAIM = f"/api/v1/namespaces/{NS}/persistentvolumeclaims/data"
BY_CONTROLLER = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
MADE_FOR_A_CLAIM = {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}


def storage_class(name: str, mode: str) -> Document:
    """Return a class of the source."""
    metadata: Document = {"name": name}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": mode,
    }


def claim(name: str = "data", *, of: str = "waits", volume: str = "", annotations: Document | None = None) -> Document:
    """Return a claim of the source; with `volume`, it was bound by the source's controller."""
    with_hashes = annotations if annotations is not None else dict(BY_CONTROLLER) if volume else {}
    spec: Document = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": of,
    }
    if volume:
        spec["volumeName"] = volume
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NS, "annotations": with_hashes},
        "spec": spec,
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(
    name: str, *, of: str = "waits", claimed_by: Document | None = None, phase: str = "", made: bool = True
) -> Document:
    """Return a volume of the source; with `made`, it was provisioned for its claim."""
    spec: Document = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": of,
        "hostPath": {"path": "/data"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    annotations: Document = dict(MADE_FOR_A_CLAIM) if made else {}
    if claimed_by is not None:
        metadata = part(claimed_by, "metadata")
        spec["claimRef"] = {"namespace": NS, "name": metadata["name"], "uid": metadata["uid"]}
        annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
        "status": {"phase": phase or ("Bound" if claimed_by is not None else "Available")},
    }


def made_fixture(policy: SyncPolicy | None = None) -> FollowerFixture:
    """Return a follower that has not started, with two storage classes in its source."""
    fixture = FollowerFixture(KINDS, policy)
    fixture.put("storageclasses", storage_class("waits", "WaitForFirstConsumer"))
    fixture.put("storageclasses", storage_class("at-once", "Immediate"))
    return fixture


def started(policy: SyncPolicy | None = None) -> FollowerFixture:
    """Return a follower that has started."""
    fixture = made_fixture(policy)
    fixture.start()
    fixture.work()
    return fixture


def bind_in_source(fixture: FollowerFixture, *, of: str = "waits", name: str = "pvc-there") -> None:
    """Let the source make a volume for the claim ``data``, and bind it."""
    bound = fixture.put("persistentvolumeclaims", claim(of=of, volume=name))
    fixture.put("persistentvolumes", volume(name, of=of, claimed_by=bound))


def bind_locally(fixture: FollowerFixture, name: str) -> None:
    """Let the target's controllers bind the claim ``data``."""
    found = fixture.here.get("persistentvolumeclaims", "data")
    assert found is not None
    metadata = part(found, "metadata")
    annotations = {**part(metadata, "annotations"), **BY_CONTROLLER}
    bound = {**found, "metadata": {**metadata, "annotations": annotations}}
    fixture.here.ask("PUT", CLAIM, {**bound, "spec": {**part(found, "spec"), "volumeName": name}})
    found = fixture.here.get("persistentvolumeclaims", "data")
    assert found is not None
    fixture.here.ask("PUT", f"{CLAIM}/status", {**found, "status": {"phase": "Bound"}})


def outcome(fixture: FollowerFixture) -> tuple[object, object, list[str]]:
    """Return the volume and the phase of the local claim ``data`` (None if missing), and the names of all volumes."""
    found = fixture.here.get("persistentvolumeclaims", "data")
    volumes = sorted(str(part(each, "metadata")["name"]) for each in fixture.here.list("persistentvolumes")[0])
    assert fixture.follower.problems == {}
    if found is None:
        return None, None, volumes
    return part(found, "spec").get("volumeName"), part(found, "status").get("phase"), volumes


@pytest.mark.parametrize("of", ["waits", "at-once"])
def test_an_initially_bound_claim_uses_the_source_volume(of: str) -> None:
    fixture = made_fixture()
    bind_in_source(fixture, of=of)
    fixture.start()
    fixture.work()
    assert outcome(fixture) == ("pvc-there", "Bound", ["pvc-there"])
    found = fixture.here.get("persistentvolumes", "pvc-there")
    claimed = fixture.here.get("persistentvolumeclaims", "data")
    assert found is not None
    assert claimed is not None
    assert part(part(found, "spec"), "claimRef")["uid"] == part(claimed, "metadata")["uid"]


@pytest.mark.parametrize("again", [False, True], ids=["while the sync runs", "and after a restart of the sync"])
@pytest.mark.parametrize("order", ["here first", "there first", "first seen bound", "unbound at the beginning"])
def test_a_wait_for_first_consumer_claim_is_bound_locally_regardless_of_order(order: str, again: bool) -> None:
    fixture = made_fixture()
    if order == "unbound at the beginning":
        fixture.put("persistentvolumeclaims", claim())
    fixture.start()
    fixture.work()
    if order in ("here first", "there first"):
        fixture.put("persistentvolumeclaims", claim())
        fixture.follow()
    if order == "here first":
        bind_locally(fixture, "pvc-here")
    bind_in_source(fixture)
    fixture.follow()
    if order != "here first":
        assert outcome(fixture) == (None, "Pending", [])
        bind_locally(fixture, "pvc-here")
    if again:
        fixture.start()
    fixture.put("persistentvolumeclaims", {**claim(volume="pvc-there"), "status": {"phase": "Bound", "capacity": {}}})
    fixture.follow()
    assert outcome(fixture) == ("pvc-here", "Bound", [])


def test_a_source_binding_of_an_existing_volume_is_not_copied() -> None:
    fixture = made_fixture()
    fixture.put("persistentvolumes", volume("disk", made=False))
    fixture.start()
    fixture.work()
    bound = fixture.put("persistentvolumeclaims", claim(volume="disk"))
    fixture.put("persistentvolumes", volume("disk", claimed_by=bound, made=False))
    fixture.follow()
    unprotect(fixture, "data")
    fixture.remove("persistentvolumeclaims", "data")
    fixture.put("persistentvolumes", volume("disk", claimed_by=bound, phase="Released", made=False))
    fixture.follow()
    found = fixture.here.get("persistentvolumes", "disk")
    assert found is not None
    assert "claimRef" not in part(found, "spec")
    assert part(found, "status").get("phase") in (None, "Pending", "Available")


@pytest.mark.parametrize("again", [False, True], ids=["while the sync runs", "and after a restart of the sync"])
def test_local_binding_annotations_survive_source_annotation_changes(again: bool) -> None:
    fixture = started()
    fixture.put("persistentvolumeclaims", claim())
    fixture.put("persistentvolumes", volume("disk", made=False))
    fixture.follow()
    bind_locally(fixture, "disk")
    found = fixture.here.get("persistentvolumes", "disk")
    assert found is not None
    metadata = part(found, "metadata")
    with_hashes = {**part(metadata, "annotations"), **BY_CONTROLLER}
    bound = {**found, "metadata": {**metadata, "annotations": with_hashes}}
    fixture.here.ask("PUT", "/api/v1/persistentvolumes/disk", bound)
    if again:
        fixture.start()
    reported: Document = {"team": "shop"}
    fixture.put("persistentvolumeclaims", claim(volume="pvc-there", annotations={**BY_CONTROLLER, **reported}))
    changed = volume("disk", made=False)
    part(changed, "metadata")["annotations"] = reported
    fixture.put("persistentvolumes", changed)
    fixture.follow()
    for plural, name in (("persistentvolumeclaims", "data"), ("persistentvolumes", "disk")):
        annotations = part(part(fixture.here.get(plural, name) or {}, "metadata"), "annotations")
        assert {**BY_CONTROLLER, **reported}.items() <= annotations.items()
    assert outcome(fixture)[:2] == ("disk", "Bound")


def test_a_preset_claim_ref_of_a_volume_is_copied() -> None:
    fixture = started()
    meant = volume("disk", made=False)
    meant["spec"] = {**part(meant, "spec"), "claimRef": {"namespace": NS, "name": "data"}}
    fixture.put("persistentvolumes", meant)
    fixture.follow()
    found = fixture.here.get("persistentvolumes", "disk")
    assert found is not None
    assert part(part(found, "spec"), "claimRef") == {"namespace": NS, "name": "data"}


def test_a_claim_with_a_volume_name_is_bound_to_that_volume() -> None:
    fixture = started()
    recording = fixture.put("persistentvolumeclaims", claim(volume="disk", annotations={}))
    fixture.put("persistentvolumes", volume("disk", claimed_by=recording, made=False))
    fixture.follow()
    assert outcome(fixture) == ("disk", "Bound", ["disk"])


def test_an_immediate_binding_claim_waits_for_the_source_binding() -> None:
    fixture = started()
    fixture.put("persistentvolumeclaims", claim(of="at-once"))
    fixture.follow()
    found = fixture.here.get("persistentvolumeclaims", "data")
    assert part(part(found or {}, "metadata"), "annotations")[BOUND_BY_SOURCE] == "yes"
    assert outcome(fixture) == (None, "Pending", [])
    bind_in_source(fixture, of="at-once")
    fixture.follow()
    assert outcome(fixture) == ("pvc-there", "Bound", ["pvc-there"])


@pytest.mark.parametrize("of", ["waits", "at-once"])
def test_unbound_claims_of_an_import_are_bound_locally_even_in_a_later_sync(of: str) -> None:
    fixture = made_fixture(SyncPolicy(follow=False))
    fixture.put("persistentvolumeclaims", claim(of=of))
    fixture.start()
    fixture.work()
    found = fixture.here.get("persistentvolumeclaims", "data")
    assert BOUND_BY_SOURCE not in part(part(found or {}, "metadata"), "annotations")
    bind_locally(fixture, "pvc-here")
    fixture.policy = SyncPolicy()
    bind_in_source(fixture, of=of)
    fixture.start()
    fixture.work()
    assert outcome(fixture) == ("pvc-here", "Bound", [])


def test_with_source_volumes_a_claim_is_copied_once_it_is_bound() -> None:
    fixture = started(SyncPolicy(source_volumes=True))
    fixture.put("persistentvolumeclaims", claim())
    fixture.follow()
    assert outcome(fixture) == (None, None, [])
    bind_in_source(fixture)
    fixture.follow()
    assert outcome(fixture) == ("pvc-there", "Bound", ["pvc-there"])


def test_a_claim_with_an_unknown_storage_class_uses_the_source_volume() -> None:
    fixture = started()
    bind_in_source(fixture, of="manual")
    fixture.follow()
    assert outcome(fixture) == ("pvc-there", "Bound", ["pvc-there"])
