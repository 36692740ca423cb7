"""Tests of the follower: the effect of each policy, however the source's events are delivered."""

from __future__ import annotations

import pytest

from bayplan.base.plain_data import Document, part
from bayplan.sync.policy import SyncPolicy
from tests.sync.follower_fixture import FollowerFixture, node, pod

pytestmark = pytest.mark.usefixtures("way")


def node_of(fixture: FollowerFixture, name: str) -> object:
    """Return the local node of a pod: "" without one, None if the pod does not exist."""
    found = fixture.here.get("pods", name)
    return None if found is None else part(found, "spec").get("nodeName", "")


def started(*, policy: SyncPolicy | None = None, **pods: str) -> FollowerFixture:
    """Return a started follower of a source with two nodes and with pods by name; each has a node or ""."""
    fixture = FollowerFixture(policy=policy)
    for name in ("n1", "n2"):
        fixture.put("nodes", node(name))
    for name, where in pods.items():
        fixture.put("pods", pod(name, node_name=where))
    fixture.start()
    fixture.work()
    return fixture


def labels_of(document: Document | None) -> Document:
    """Return an object's labels."""
    assert document is not None
    return part(part(document, "metadata"), "labels")


def test_initial_pods_are_copied_with_their_node_or_as_pending() -> None:
    fixture = started(runs="n1", waits="")
    assert node_of(fixture, "runs") == "n1"
    assert node_of(fixture, "waits") == ""


def test_running_pods_are_copied_without_a_node_if_keep_nodes_is_off() -> None:
    fixture = started(policy=SyncPolicy(keep_nodes=False), runs="n1")
    assert node_of(fixture, "runs") == ""


def test_a_pod_first_seen_after_the_start_is_copied_without_its_node() -> None:
    fixture = started()
    fixture.put("pods", pod("late"))
    fixture.put("pods", pod("late", node_name="n1"))
    fixture.follow(merged=True)
    assert node_of(fixture, "late") == ""


def test_a_source_binding_does_not_override_the_local_node() -> None:
    fixture = started(waits="")
    fixture.here.bind("waits", "n2")
    fixture.put("pods", pod("waits", node_name="n1", labels={"new": "label"}))
    fixture.follow()
    assert node_of(fixture, "waits") == "n2"
    assert "new" not in labels_of(fixture.here.get("pods", "waits"))


def test_changes_of_a_pending_pod_are_applied() -> None:
    fixture = started(waits="")
    fixture.put("pods", pod("waits", labels={"new": "label"}))
    fixture.follow()
    assert labels_of(fixture.here.get("pods", "waits"))["new"] == "label"


def test_changes_of_scheduled_pods_are_applied_if_the_policy_allows_it() -> None:
    fixture = started(policy=SyncPolicy(update_scheduled_pods=True), runs="n1")
    fixture.put("pods", pod("runs", node_name="n1", labels={"new": "label"}))
    fixture.follow()
    found = fixture.here.get("pods", "runs")
    assert labels_of(found)["new"] == "label"
    assert node_of(fixture, "runs") == "n1"


def test_removed_gates_are_synced_even_if_the_pod_is_bound_in_the_same_event() -> None:
    fixture = started()
    fixture.put("pods", pod("gated", gates=("example.com/quota",)))
    fixture.follow()
    fixture.put("pods", pod("gated", node_name="n1", nodeSelector={"zone": "a"}))
    fixture.follow(merged=True)
    found = fixture.here.get("pods", "gated")
    assert found is not None
    assert "schedulingGates" not in part(found, "spec")
    assert part(found, "spec")["nodeSelector"] == {"zone": "a"}
    assert node_of(fixture, "gated") == ""


def test_a_locally_deleted_pod_stays_deleted_until_the_source_deletes_it() -> None:
    fixture = started(victim="n1")
    fixture.here.delete_pod("victim")
    fixture.work()
    fixture.put("pods", pod("victim", node_name="n1", labels={"still": "there"}))
    fixture.follow()
    fixture.relist()
    fixture.work()
    assert node_of(fixture, "victim") is None
    fixture.remove("pods", "victim")
    fixture.put("pods", pod("victim"))
    fixture.follow()
    assert node_of(fixture, "victim") == "", "a new pod of that name comes"


def test_local_deletions_survive_restarts_including_deletions_while_stopped() -> None:
    fixture = started(before="n1", meanwhile="n1")
    fixture.here.delete_pod("before")
    fixture.work()
    fixture.here.delete_pod("meanwhile")
    fixture.start()
    fixture.work()
    assert node_of(fixture, "before") is None
    assert node_of(fixture, "meanwhile") is None


def test_a_restart_deletes_pods_that_the_source_deleted_during_the_stop() -> None:
    fixture = started(gone="n1", stays="n1")
    fixture.remove("pods", "gone")
    fixture.start()
    fixture.work()
    assert node_of(fixture, "gone") is None
    assert node_of(fixture, "stays") == "n1"


def test_an_interrupted_import_resumes_with_the_nodes_of_initial_pods() -> None:
    fixture = FollowerFixture()
    fixture.put("nodes", node("n1"))
    for number in range(5):
        fixture.put("pods", pod(f"p{number}", node_name="n1"))
    fixture.start()
    with pytest.raises(AssertionError, match="does not come to rest"):
        fixture.work(rounds=2)
    fixture.put("pods", pod("late", node_name="n1"))
    fixture.start()
    fixture.work()
    assert [node_of(fixture, f"p{number}") for number in range(5)] == ["n1"] * 5
    assert node_of(fixture, "late") == ""


def test_a_recreated_source_pod_replaces_its_copy() -> None:
    fixture = started(web="n1")
    fixture.remove("pods", "web")
    fixture.put("pods", pod("web", node_name="n2"))
    fixture.follow(merged=True)
    assert node_of(fixture, "web") == ""


def test_a_finished_pod_frees_its_node_and_an_initially_finished_pod_is_skipped() -> None:
    fixture = started(job="n1")
    fixture.put("pods", pod("job", node_name="n1", phase="Succeeded"))
    fixture.put("pods", pod("unseen", node_name="n1", phase="Failed"))
    fixture.follow()
    found = fixture.here.get("pods", "job")
    assert found is not None
    assert part(found, "status")["phase"] == "Succeeded"
    assert node_of(fixture, "unseen") is None


def owned_by(driver: Document, name: str, **labels: str) -> Document:
    """Return a pending pod that another pod controls, as a Spark driver controls its executors."""
    document = pod(name, labels=labels)
    uid = part(driver, "metadata")["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "driver", "uid": uid, "controller": True}
    return {**document, "metadata": {**part(document, "metadata"), "ownerReferences": [owner]}}


def test_a_pod_of_a_pod_that_is_not_copied_is_copied() -> None:
    fixture = started()
    driver = fixture.put("pods", pod("driver", node_name="n1", phase="Succeeded"))
    fixture.put("pods", owned_by(driver, "executor"))
    fixture.follow()
    assert (node_of(fixture, "driver"), node_of(fixture, "executor")) == (None, "")
    executor = fixture.here.get("pods", "executor")
    assert executor is not None
    assert "ownerReferences" not in part(executor, "metadata")


def test_changes_of_a_pod_are_applied_after_its_controlling_pod_was_deleted_locally() -> None:
    fixture = started()
    driver = fixture.put("pods", pod("driver"))
    fixture.put("pods", owned_by(driver, "executor"))
    fixture.follow()
    fixture.here.delete_pod("driver")
    fixture.work()
    fixture.put("pods", owned_by(driver, "executor", new="label"))
    fixture.follow()
    assert labels_of(fixture.here.get("pods", "executor"))["new"] == "label"


def test_nodes_are_updated_with_their_status_and_deleted_with_their_source() -> None:
    fixture = started()
    made = fixture.here.get("nodes", "n1")
    assert made is not None
    assert "taints" not in part(made, "spec"), "admission here taints new nodes, and nobody there has asked for that"
    fixture.put("nodes", node("n1", cpu="8", ready="False"))
    fixture.follow()
    found = fixture.here.get("nodes", "n1")
    assert found is not None
    assert part(part(found, "status"), "allocatable")["cpu"] == "8"
    fixture.remove("nodes", "n2")
    fixture.follow()
    assert fixture.here.get("nodes", "n2") is None


def test_service_accounts_and_finalizers_are_not_copied() -> None:
    fixture = started(runs="n1")
    found = fixture.here.get("pods", "runs")
    assert found is not None
    metadata = part(found, "metadata")
    assert "finalizers" not in metadata
    assert metadata["uid"] != part(metadata, "annotations")["bayplan.io/source-uid"]
    assert "serviceAccountName" not in part(found, "spec")


def test_a_copied_volume_gets_the_target_claim_uid_in_either_order() -> None:
    fixture = FollowerFixture(("persistentvolumeclaims", "persistentvolumes"))
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "pv",
            "storageClassName": "",
        },
        "status": {"phase": "Bound"},
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "claimRef": {"namespace": "default", "name": "data", "uid": "source-2", "resourceVersion": "7"},
        },
        "status": {"phase": "Bound"},
    }
    fixture.put("persistentvolumes", dict(volume))
    fixture.start()
    fixture.work()
    assert fixture.here.get("persistentvolumes", "pv") is None, "its claim has no uid here yet"
    fixture.put("persistentvolumeclaims", dict(claim))
    fixture.follow()
    made, bound = fixture.here.get("persistentvolumeclaims", "data"), fixture.here.get("persistentvolumes", "pv")
    assert made is not None
    assert bound is not None
    assert part(part(bound, "spec"), "claimRef")["uid"] == part(made, "metadata")["uid"]
    assert part(bound, "status")["phase"] == "Bound"
    assert part(made, "status")["phase"] == "Bound"


def test_a_local_pod_with_the_same_name_is_reported_and_not_overwritten() -> None:
    fixture = started()
    mine = {"metadata": {"name": "mine"}, "spec": {"containers": [{"name": "c", "image": "mine"}]}}
    fixture.here.ask("POST", "/api/v1/namespaces/default/pods", mine)
    fixture.put("pods", pod("mine"))
    fixture.follow()
    found = fixture.here.get("pods", "mine")
    assert found is not None
    assert part(found, "metadata").get("annotations") is None
    assert [
        "created in the target by another client" in problem.message for problem in fixture.follower.problems.values()
    ] == [True]
    fixture.here.delete_pod("mine")
    fixture.work()
    assert node_of(fixture, "mine") == "", "the name is free again"


def test_a_refused_object_is_reported_and_retried_after_a_change() -> None:
    fixture = started()
    fixture.put("pods", pod("bad", containers=[]))
    fixture.follow()
    assert len(fixture.follower.problems) == 1
    fixture.put("pods", pod("bad"))
    fixture.follow()
    assert fixture.follower.problems == {}
    assert node_of(fixture, "bad") == ""
