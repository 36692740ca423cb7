"""Tests of local changes: they survive restarts, and last until the source changes the same field."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.base.plain_data import Document, part
from bayplan.cluster.source_copies import SOURCE_UID
from bayplan.sync.applied_fields import applied_fields, as_annotation, from_annotation, keep_local_changes, with_hashes
from bayplan.sync.followed_kinds import BY_PLURAL
from bayplan.sync.policy import SOURCE_APPLIED
from tests.sync.follower_fixture import NS, FollowerFixture, node, pod

pytestmark = pytest.mark.usefixtures("way")

NODES = BY_PLURAL["nodes"]
TAINT = {"key": "k", "effect": "NoSchedule"}
Change = Callable[[Document], Document]


def labelled(document: Document, **labels: str) -> Document:
    """Return an object with these labels alone."""
    return {**document, "metadata": {**part(document, "metadata"), "labels": labels}}


def specified(document: Document, **spec: object) -> Document:
    """Return an object with fields of its spec."""
    return {**document, "spec": {**part(document, "spec"), **spec}}


def with_cpu(document: Document, cpu: str) -> Document:
    """Return a node with a number of allocatable CPUs."""
    status = part(document, "status")
    return {**document, "status": {**status, "allocatable": {**part(status, "allocatable"), "cpu": cpu}}}


def not_ready(document: Document) -> Document:
    """Return a node whose status is not ready."""
    return {**document, "status": {**part(document, "status"), "conditions": [{"type": "Ready", "status": "False"}]}}


def shown(document: Document | None) -> Document:
    """Return the parts of a local node that the cases check."""
    assert document is not None
    spec, status = part(document, "spec"), part(document, "status")
    conditions = status["conditions"]
    assert isinstance(conditions, list)
    return {
        "cordoned": spec.get("unschedulable", False),
        "taints": spec.get("taints", []),
        "labels": part(part(document, "metadata"), "labels"),
        "cpu": part(status, "allocatable")["cpu"],
        "ready": conditions[0]["status"],
    }


def write_node(fixture: FollowerFixture, change: Change) -> None:
    """Change a node of the target as a user does: the object, then its status."""
    here = fixture.here.get("nodes", "n1")
    assert here is not None
    changed = change(here)
    for subresource in ("", "/status"):
        found = fixture.here.get("nodes", "n1")
        assert found is not None
        metadata = {**part(changed, "metadata"), "resourceVersion": part(found, "metadata")["resourceVersion"]}
        fixture.here.ask("PUT", f"/api/v1/nodes/n1{subresource}", {**changed, "metadata": metadata})


@pytest.mark.parametrize("again", [False, True], ids=["while the sync runs", "and after a restart of the sync"])
@pytest.mark.parametrize(
    ("here", "there", "want"),
    [
        pytest.param(
            lambda it: specified(it, unschedulable=True),
            lambda it: it,
            {"cordoned": True},
            id="a cordon stays if nothing changes in the source",
        ),
        pytest.param(
            lambda it: specified(it, unschedulable=True),
            lambda it: not_ready(labelled(specified(it, taints=[TAINT]), new="label")),
            {"cordoned": True, "taints": [TAINT], "labels": {"new": "label"}, "ready": "False"},
            id="a cordon stays if other fields change in the source, which are synced",
        ),
        pytest.param(
            lambda it: labelled(specified(it, taints=[TAINT]), mine="here"),
            lambda it: specified(it, unschedulable=True),
            {"cordoned": True, "taints": [TAINT], "labels": {"mine": "here"}},
            id="labels and taints stay if the source cordons",
        ),
        pytest.param(
            lambda it: labelled(it, mine="here"),
            lambda it: labelled(it, theirs="there"),
            {"labels": {"theirs": "there"}},
            id="labels follow when labels change there",
        ),
        pytest.param(
            lambda it: with_cpu(it, "64"),
            not_ready,
            {"cpu": "64", "ready": "False"},
            id="allocatable stays if conditions change in the source",
        ),
        pytest.param(
            lambda it: with_cpu(it, "64"),
            lambda it: with_cpu(it, "8"),
            {"cpu": "8"},
            id="allocatable changes with the source",
        ),
    ],
)
def test_local_changes_last_until_the_source_changes_the_same_field(
    here: Change, there: Change, want: Document, again: bool
) -> None:
    fixture = FollowerFixture()
    fixture.put("nodes", node("n1"))
    fixture.start()
    fixture.work()
    before = shown(fixture.here.get("nodes", "n1"))
    write_node(fixture, here)
    fixture.work()
    if again:
        fixture.start()
        fixture.work()
    fixture.put("nodes", there(node("n1")))
    if again:
        fixture.start()
    fixture.follow()
    assert shown(fixture.here.get("nodes", "n1")) == {**before, **want}
    fixture.start()
    fixture.work()
    assert shown(fixture.here.get("nodes", "n1")) == {**before, **want}, "begun anew, nothing changes"


def test_a_locally_changed_field_is_synced_after_it_changes_back_in_the_source() -> None:
    fixture = FollowerFixture()
    fixture.put("nodes", node("n1"))
    fixture.start()
    fixture.work()
    write_node(fixture, lambda it: specified(it, unschedulable=True))
    fixture.put("nodes", node("n1", unschedulable=True))
    fixture.follow()
    fixture.put("nodes", node("n1"))
    fixture.follow()
    assert shown(fixture.here.get("nodes", "n1"))["cordoned"] is False


def test_local_changes_to_a_pending_pod_survive_restarts() -> None:
    fixture = FollowerFixture()
    fixture.put("pods", pod("web", labels={"there": "1"}))
    fixture.start()
    fixture.work()
    here = fixture.here.get("pods", "web")
    assert here is not None
    fixture.here.ask("PUT", f"/api/v1/namespaces/{NS}/pods/web", labelled(here, here="1"))
    fixture.start()
    fixture.work()
    found = fixture.here.get("pods", "web")
    assert part(part(found or {}, "metadata"), "labels") == {"here": "1"}
    fixture.put("pods", pod("web", labels={"there": "2"}))
    fixture.start()
    fixture.work()
    found = fixture.here.get("pods", "web")
    assert part(part(found or {}, "metadata"), "labels") == {"there": "2"}


def test_a_sync_restart_without_changes_writes_nothing() -> None:
    fixture = FollowerFixture()
    fixture.put("nodes", node("n1", unschedulable=True))
    fixture.put("pods", pod("waits", labels={"a": "b"}))
    fixture.put("pods", pod("runs", node_name="n1"))
    fixture.start()
    fixture.work()
    revision = fixture.here.backend.store.revision
    fixture.start()
    fixture.work()
    assert fixture.here.backend.store.revision == revision


def test_a_lost_status_write_is_repeated() -> None:
    wanted = with_hashes(NODES, node("n1"), node("n1"))
    metadata = {
        **part(wanted, "metadata"),
        "annotations": {**part(part(wanted, "metadata"), "annotations"), SOURCE_UID: "u"},
    }
    lost = {**wanted, "metadata": metadata, "status": {}}
    before = from_annotation(lost, "u")
    assert before is not None
    assert part(keep_local_changes(NODES, lost, node("n1"), before), "status") == node("n1")["status"]


def test_applied_fields_round_trip_through_the_annotation_of_one_uid() -> None:
    fields = applied_fields(NODES, node("n1", unschedulable=True))
    assert sorted(fields) == ["spec.unschedulable", "status.allocatable", "status.capacity"]
    here: Document = {"metadata": {"annotations": {SOURCE_UID: "u", SOURCE_APPLIED: as_annotation(fields)}}}
    assert from_annotation(here, "u") == fields
    assert from_annotation(here, "v") is None
    assert from_annotation({"metadata": {"annotations": {SOURCE_UID: "u"}}}, "u") is None
