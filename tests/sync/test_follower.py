"""Tests of the follower: the effect of each policy, however the source's events are delivered."""

from __future__ import annotations

import pytest

from bayplan.base.plain_data import Document, part
from bayplan.sync.policy import SyncPolicy
from tests.sync.world import World, node, pod

pytestmark = pytest.mark.usefixtures("way")


def node_of(world: World, name: str) -> object:
    """Return the local node of a pod: "" without one, None if the pod does not exist."""
    found = world.here.get("pods", name)
    return None if found is None else part(found, "spec").get("nodeName", "")


def started(*, policy: SyncPolicy | None = None, **pods: str) -> World:
    """Return a world with two nodes that follows; pods by name, with their node there or ""."""
    world = World(policy=policy)
    for name in ("n1", "n2"):
        world.put("nodes", node(name))
    for name, where in pods.items():
        world.put("pods", pod(name, node_name=where))
    world.start()
    world.work()
    return world


def labels_of(document: Document | None) -> Document:
    """Return an object's labels."""
    assert document is not None
    return part(part(document, "metadata"), "labels")


def test_initial_pods_are_copied_with_their_node_or_as_pending() -> None:
    world = started(runs="n1", waits="")
    assert node_of(world, "runs") == "n1"
    assert node_of(world, "waits") == ""


def test_running_pods_are_copied_without_a_node_if_keep_nodes_is_off() -> None:
    world = started(policy=SyncPolicy(keep_nodes=False), runs="n1")
    assert node_of(world, "runs") == ""


def test_a_pod_first_seen_after_the_start_is_copied_without_its_node() -> None:
    world = started()
    world.put("pods", pod("late"))
    world.put("pods", pod("late", node_name="n1"))
    world.follow(merged=True)
    assert node_of(world, "late") == ""


def test_a_source_binding_does_not_override_the_local_node() -> None:
    world = started(waits="")
    world.here.bind("waits", "n2")
    world.put("pods", pod("waits", node_name="n1", labels={"new": "label"}))
    world.follow()
    assert node_of(world, "waits") == "n2"
    assert "new" not in labels_of(world.here.get("pods", "waits"))


def test_changes_of_a_pending_pod_are_applied() -> None:
    world = started(waits="")
    world.put("pods", pod("waits", labels={"new": "label"}))
    world.follow()
    assert labels_of(world.here.get("pods", "waits"))["new"] == "label"


def test_changes_of_scheduled_pods_are_applied_if_the_policy_allows_it() -> None:
    world = started(policy=SyncPolicy(update_scheduled_pods=True), runs="n1")
    world.put("pods", pod("runs", node_name="n1", labels={"new": "label"}))
    world.follow()
    found = world.here.get("pods", "runs")
    assert labels_of(found)["new"] == "label"
    assert node_of(world, "runs") == "n1"


def test_removed_gates_are_synced_even_if_the_pod_is_bound_in_the_same_event() -> None:
    world = started()
    world.put("pods", pod("gated", gates=("example.com/quota",)))
    world.follow()
    world.put("pods", pod("gated", node_name="n1", nodeSelector={"zone": "a"}))
    world.follow(merged=True)
    found = world.here.get("pods", "gated")
    assert found is not None
    assert "schedulingGates" not in part(found, "spec")
    assert part(found, "spec")["nodeSelector"] == {"zone": "a"}
    assert node_of(world, "gated") == ""


def test_a_locally_deleted_pod_stays_deleted_until_the_source_deletes_it() -> None:
    world = started(victim="n1")
    world.here.delete_pod("victim")
    world.work()
    world.put("pods", pod("victim", node_name="n1", labels={"still": "there"}))
    world.follow()
    world.relist()
    world.work()
    assert node_of(world, "victim") is None
    world.remove("pods", "victim")
    world.put("pods", pod("victim"))
    world.follow()
    assert node_of(world, "victim") == "", "a new pod of that name comes"


def test_local_deletions_survive_restarts_including_deletions_while_stopped() -> None:
    world = started(before="n1", meanwhile="n1")
    world.here.delete_pod("before")
    world.work()
    world.here.delete_pod("meanwhile")
    world.start()
    world.work()
    assert node_of(world, "before") is None
    assert node_of(world, "meanwhile") is None


def test_a_restart_deletes_pods_that_the_source_deleted_during_the_stop() -> None:
    world = started(gone="n1", stays="n1")
    world.remove("pods", "gone")
    world.start()
    world.work()
    assert node_of(world, "gone") is None
    assert node_of(world, "stays") == "n1"


def test_an_interrupted_import_resumes_with_the_nodes_of_initial_pods() -> None:
    world = World()
    world.put("nodes", node("n1"))
    for number in range(5):
        world.put("pods", pod(f"p{number}", node_name="n1"))
    world.start()
    with pytest.raises(AssertionError, match="does not come to rest"):
        world.work(rounds=2)
    world.put("pods", pod("late", node_name="n1"))
    world.start()
    world.work()
    assert [node_of(world, f"p{number}") for number in range(5)] == ["n1"] * 5
    assert node_of(world, "late") == ""


def test_a_recreated_source_pod_replaces_its_copy() -> None:
    world = started(web="n1")
    world.remove("pods", "web")
    world.put("pods", pod("web", node_name="n2"))
    world.follow(merged=True)
    assert node_of(world, "web") == ""


def test_a_finished_pod_frees_its_node_and_an_initially_finished_pod_is_skipped() -> None:
    world = started(job="n1")
    world.put("pods", pod("job", node_name="n1", phase="Succeeded"))
    world.put("pods", pod("unseen", node_name="n1", phase="Failed"))
    world.follow()
    found = world.here.get("pods", "job")
    assert found is not None
    assert part(found, "status")["phase"] == "Succeeded"
    assert node_of(world, "unseen") is None


def test_nodes_are_updated_with_their_status_and_deleted_with_their_source() -> None:
    world = started()
    made = world.here.get("nodes", "n1")
    assert made is not None
    assert "taints" not in part(made, "spec"), "admission here taints new nodes, and nobody there has asked for that"
    world.put("nodes", node("n1", cpu="8", ready="False"))
    world.follow()
    found = world.here.get("nodes", "n1")
    assert found is not None
    assert part(part(found, "status"), "allocatable")["cpu"] == "8"
    world.remove("nodes", "n2")
    world.follow()
    assert world.here.get("nodes", "n2") is None


def test_service_accounts_and_finalizers_are_not_copied() -> None:
    world = started(runs="n1")
    found = world.here.get("pods", "runs")
    assert found is not None
    metadata = part(found, "metadata")
    assert "finalizers" not in metadata
    assert metadata["uid"] != part(metadata, "annotations")["bayplan.io/source-uid"]
    assert "serviceAccountName" not in part(found, "spec")


def test_a_copied_volume_gets_the_target_claim_uid_in_either_order() -> None:
    world = World(("persistentvolumeclaims", "persistentvolumes"))
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
    world.put("persistentvolumes", dict(volume))
    world.start()
    world.work()
    assert world.here.get("persistentvolumes", "pv") is None, "its claim has no uid here yet"
    world.put("persistentvolumeclaims", dict(claim))
    world.follow()
    made, bound = world.here.get("persistentvolumeclaims", "data"), world.here.get("persistentvolumes", "pv")
    assert made is not None
    assert bound is not None
    assert part(part(bound, "spec"), "claimRef")["uid"] == part(made, "metadata")["uid"]
    assert part(bound, "status")["phase"] == "Bound"
    assert part(made, "status")["phase"] == "Bound"


def test_a_local_pod_with_the_same_name_is_reported_and_not_overwritten() -> None:
    world = started()
    mine = {"metadata": {"name": "mine"}, "spec": {"containers": [{"name": "c", "image": "mine"}]}}
    world.here.ask("POST", "/api/v1/namespaces/default/pods", mine)
    world.put("pods", pod("mine"))
    world.follow()
    found = world.here.get("pods", "mine")
    assert found is not None
    assert part(found, "metadata").get("annotations") is None
    assert ["created here by another client" in problem.message for problem in world.follower.problems.values()] == [
        True
    ]
    world.here.delete_pod("mine")
    world.work()
    assert node_of(world, "mine") == "", "the name is free again"


def test_a_refused_object_is_reported_and_retried_after_a_change() -> None:
    world = started()
    world.put("pods", pod("bad", containers=[]))
    world.follow()
    assert len(world.follower.problems) == 1
    world.put("pods", pod("bad"))
    world.follow()
    assert world.follower.problems == {}
    assert node_of(world, "bad") == ""
