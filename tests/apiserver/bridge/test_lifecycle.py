"""Deletion of owners, dependents, namespaces and claims in use; restarts and resets of a server."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bayplan.apiserver.bridge.document_owners import DELETED_OWNERS
from bayplan.apiserver.rest.loading import load_documents
from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.store import Store
from bayplan.formats.manifest import PlainObject
from tests.apiserver.bridge.world import API, APPS, BATCH, World, job, workload
from tests.apiserver.client import PODS, Document, pod

MAPS = f"{API}/namespaces/default/configmaps"


def owned_map(name: str, owner: str, uid: object, **reference: object) -> Document:
    """Return a ConfigMap that another ConfigMap owns: a kind that typed objects don't have."""
    owner_reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, **reference}
    return {"metadata": {"name": name, "ownerReferences": [owner_reference]}}


def maps(world: World) -> list[str]:
    return [name for name in world.names("configmaps") if name != "kube-root-ca.crt"]


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param("Background", [], id="background deletion: dependents of dependents follow the owner"),
        pytest.param("Foreground", [], id="foreground deletion: dependents precede the owner"),
        pytest.param("Orphan", ["child", "grandchild"], id="orphan: dependents stay"),
    ],
)
def test_deletion_propagates_to_dependents_by_policy(policy: str, want: list[str]) -> None:
    world = World()
    uid = world.post(MAPS, {"metadata": {"name": "owner"}}).at("metadata.uid")
    child = world.post(MAPS, owned_map("child", "owner", uid, blockOwnerDeletion=True)).at("metadata.uid")
    world.post(MAPS, owned_map("grandchild", "child", child, blockOwnerDeletion=True))
    world.run()
    world.delete(f"{MAPS}/owner", {"propagationPolicy": policy})
    world.run()
    assert maps(world) == want
    if want:
        assert world.get(f"{MAPS}/child").at("metadata.ownerReferences") is None
    assert world.names(DELETED_OWNERS, "") == []


def test_a_dependent_with_two_owners_only_loses_the_deleted_owner_reference() -> None:
    world = World()
    uids = {name: world.post(MAPS, {"metadata": {"name": name}}).at("metadata.uid") for name in ("one", "two")}
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid} for name, uid in uids.items()]
    world.post(MAPS, {"metadata": {"name": "child", "ownerReferences": references}})
    world.run()
    world.delete(f"{MAPS}/one")
    world.run()
    assert world.get(f"{MAPS}/child").at("metadata.ownerReferences.0.name") == "two"
    world.delete(f"{MAPS}/two")
    world.run()
    assert maps(world) == []


def test_dependents_with_finalizers_are_deleted_once_the_finalizers_are_removed() -> None:
    world = World()
    uid = world.post(MAPS, {"metadata": {"name": "owner"}}).at("metadata.uid")
    for number in range(40):
        held = owned_map(f"m{number:02}", "owner", uid)
        held["metadata"] = {**held["metadata"], "finalizers": ["example.com/held"]}  # type: ignore[dict-item]
        world.post(MAPS, held)
    world.delete(f"{MAPS}/owner", {"propagationPolicy": "Background"})
    world.run(10)
    assert len(maps(world)) == 40
    for name in maps(world):
        world.patch(f"{MAPS}/{name}", {"metadata": {"finalizers": None}})
    world.run()
    assert maps(world) == []


def test_dependents_of_an_owner_that_never_existed_are_not_deleted() -> None:
    world = World()
    world.post(MAPS, owned_map("child", "elsewhere", "7"))
    world.run(100)
    assert maps(world) == ["child"]


def test_a_new_deployment_adopts_orphaned_replica_sets_and_pods() -> None:
    world = World(nodes=1)
    world.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 2}))
    world.run()
    world.delete(f"{APPS}/deployments/web", {"propagationPolicy": "Orphan"})
    world.run(5)
    (replica_set,), pods = world.names("apps/replicasets"), world.names("pods")
    assert len(pods) == 2
    assert world.get(f"{APPS}/replicasets/{replica_set}").at("metadata.ownerReferences") is None
    world.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 3}))
    world.run()
    assert world.names("apps/replicasets") == [replica_set]
    assert set(pods) < set(world.names("pods"))
    assert world.get(f"{APPS}/deployments/web").at("status.readyReplicas") == 3


def test_a_new_replica_set_adopts_orphaned_pods() -> None:
    world = World(nodes=1)
    world.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 2}))
    world.run()
    pods = world.names("pods")
    world.delete(f"{APPS}/replicasets/web", {"propagationPolicy": "Orphan"})
    world.run()
    world.post(f"{APPS}/replicasets", workload("ReplicaSet", "again", {"replicas": 2}))
    world.run()
    assert world.names("pods") == pods


def test_a_relabelled_pod_is_released_and_adopted_again_when_relabelled_back() -> None:
    world = World(nodes=1)
    world.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 2}))
    world.run()
    first, _ = world.names("pods")
    world.patch(f"{PODS}/{first}", {"metadata": {"labels": {"app": "looked-at"}}})
    world.run()
    assert len(world.names("pods")) == 3
    assert world.get(f"{PODS}/{first}").at("metadata.ownerReferences") is None
    assert world.get(f"{APPS}/replicasets/web").at("status.replicas") == 2
    world.patch(f"{PODS}/{first}", {"metadata": {"labels": {"app": "x"}}})
    world.run()
    assert len(world.names("pods")) == 2


def test_deleting_a_job_deletes_its_pods_despite_their_finalizer() -> None:
    world = World(nodes=1)
    world.post(f"{BATCH}/jobs", job("sums", "60s", {"completions": 2, "parallelism": 2}))
    world.run(5)
    world.delete(f"{BATCH}/jobs/sums", {"propagationPolicy": "Background"})
    world.run(5)
    assert (world.names("batch/jobs"), world.names("pods")) == ([], [])


def test_a_deleted_namespace_reports_remaining_content_until_it_is_empty() -> None:
    world = World(nodes=1)
    world.post(f"{API}/namespaces", {"metadata": {"name": "demo"}})
    world.post(f"{APPS}/deployments".replace("default", "demo"), workload("Deployment", "web", {"replicas": 40}))
    world.post(f"{API}/namespaces/demo/configmaps", {"metadata": {"name": "held", "finalizers": ["example.com/held"]}})
    world.run()
    world.delete(f"{API}/namespaces/demo")
    world.run(1)
    assert [name for name in world.store.table_names() if world.names(name, "demo")] == ["configmaps"]
    conditions = world.get(f"{API}/namespaces/demo").at("status.conditions")
    assert isinstance(conditions, list)
    assert {each["type"]: each["message"] for each in conditions if each["status"] == "True"} == {
        "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 1 resource instances",
        "NamespaceFinalizersRemaining": "Some content in the namespace has finalizers remaining: "
        "example.com/held in 1 resource instances",
    }
    world.patch(f"{API}/namespaces/demo/configmaps/held", {"metadata": {"finalizers": None}})
    world.run(1)
    assert world.get(f"{API}/namespaces/demo").status == 404


def test_every_namespace_gets_a_default_service_account_and_root_certificate() -> None:
    world = World()
    world.post(f"{API}/namespaces", {"metadata": {"name": "demo"}})
    world.run()
    assert (world.names("serviceaccounts", "demo"), world.names("configmaps", "demo")) == (
        ["default"],
        ["kube-root-ca.crt"],
    )
    world.delete(f"{API}/namespaces/demo/configmaps/kube-root-ca.crt")
    world.run()
    assert world.names("configmaps", "demo") == ["kube-root-ca.crt"]


def test_a_claim_in_use_is_deleted_after_its_pod_along_with_its_volume() -> None:
    world = World(nodes=1)
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    world.post(classes, {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"})
    claims = f"{API}/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"}
    world.post(claims, {"metadata": {"name": "data"}, "spec": spec})

    def use(document: Document) -> None:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        document["spec"] = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}

    world.post(PODS, pod("user", use))
    world.run()
    assert world.get(f"{claims}/data").at("status.phase") == "Bound"
    world.delete(f"{claims}/data")
    world.run()
    assert world.names("persistentvolumeclaims") == ["data"]
    world.delete(f"{PODS}/user")
    world.run()
    assert (world.names("persistentvolumeclaims"), world.names("persistentvolumes", "")) == ([], [])


def test_pods_on_a_deleted_node_are_deleted_after_forty_seconds() -> None:
    world = World(nodes=1)
    world.post(PODS, pod("p"))
    world.run()
    world.delete(f"{API}/nodes/n0")
    world.run(39)
    assert world.names("pods") == ["p"]
    world.run(2)
    assert world.names("pods") == []


def test_pods_on_a_not_ready_node_are_evicted_when_their_toleration_expires() -> None:
    world = World(nodes=1)
    world.post(PODS, pod("p"))
    world.run()
    conditions = [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]
    world.patch(f"{API}/nodes/n0/status", {"status": {"conditions": conditions}})
    world.run(299)
    effects = [each["effect"] for each in world.get(f"{API}/nodes/n0").at("spec.taints")]  # type: ignore[attr-defined]
    assert (effects, world.names("pods")) == (["NoSchedule", "NoExecute"], ["p"])
    world.run(2)
    assert world.names("pods") == []
    assert "TaintManagerEviction: Marking for deletion Pod default/p" in world.reported("Pod")


# --- starts -----------------------------------------------------------------------------------------------------------


def test_controllers_resume_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    store = Store()
    recorder = DurableRecorder(path, store, on_failure=lambda problem: None)
    world = World(nodes=1, store=store)
    world.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 2}))
    world.post(f"{BATCH}/jobs", job("sums", "60s"))
    uid = world.post(MAPS, {"metadata": {"name": "owner"}}).at("metadata.uid")
    for number in range(40):
        world.post(MAPS, owned_map(f"m{number:02}", "owner", uid))
    world.run(20)
    pods = world.names("pods")
    # The recording ends after the owner has been deleted, but before its dependents are.
    world.delete(f"{MAPS}/owner")
    world.patch(f"{APPS}/deployments/web", {"spec": {"replicas": 5}})
    recorder.close()

    again = Store()
    recorder = DurableRecorder(path, again, on_failure=lambda problem: None)
    begun = world.seconds
    world = World(store=again)
    world.seconds = begun
    world.run(35)
    assert maps(world) == []
    assert set(pods) <= set(world.names("pods"))
    assert len(world.names("pods")) == 6
    assert world.get(f"{BATCH}/jobs/sums").at("status.active") == 1
    world.run(10)
    assert world.get(f"{BATCH}/jobs/sums").at("status.succeeded") == 1
    recorder.close()


def test_a_restart_preserves_the_old_revision_of_a_partitioned_stateful_set() -> None:
    store = Store()
    world = World(nodes=1, store=store)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    world.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", {"replicas": 2, "updateStrategy": strategy}))
    world.run()
    container = "/spec/template/spec/containers/0"
    changes = [
        {"op": "replace", "path": f"{container}/image", "value": "app:2"},
        {"op": "remove", "path": f"{container}/env"},
    ]
    world.patch(f"{APPS}/statefulsets/db", changes, "application/json-patch+json")
    world.run()
    images = ["app:1", "app:2"]
    assert [world.get(f"{PODS}/db-{n}").at("spec.containers.0.image") for n in range(2)] == images
    again = World(store=store)
    again.delete(f"{PODS}/db-0")
    again.run()
    assert [again.get(f"{PODS}/db-{n}").at("spec.containers.0.image") for n in range(2)] == images
    # Fields that Bayplan's structs of templates lack are restored, too.
    environments = [again.get(f"{PODS}/db-{n}").at("spec.containers.0.env") for n in range(2)]
    assert environments == [[{"name": "GREETING", "value": "hello"}], None]
    assert len(again.names("apps/controllerrevisions")) == 2


@pytest.mark.parametrize("has_revisions", [True, False], ids=["with revisions", "without revisions"])
def test_sets_of_a_recorded_cluster_preserve_their_pods_and_revision_names(has_revisions: bool) -> None:
    first = World(nodes=1)
    first.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", {"replicas": 1}))
    first.post(f"{APPS}/daemonsets", workload("DaemonSet", "agent", labels={"app": "x"}))
    first.run()
    kinds = {"nodes": ("v1", "Node"), "pods": ("v1", "Pod"), "apps/statefulsets": ("apps/v1", "StatefulSet")}
    kinds |= {
        "apps/daemonsets": ("apps/v1", "DaemonSet"),
        "apps/controllerrevisions": ("apps/v1", "ControllerRevision"),
    }
    digests = [name.rpartition("-")[2] for name in first.names("apps/controllerrevisions")]
    text = msgspec.json.encode(
        [
            {"apiVersion": version, "kind": kind, **document}
            for table, (version, kind) in kinds.items()
            for document in first.documents(table, "" if kind == "Node" else "default")
        ]
    ).decode()
    for number, digest in enumerate(digests):
        text = text.replace(digest, f"upstream{number}")
    documents = msgspec.json.decode(text)
    revisions = [each["metadata"]["name"] for each in documents if each["kind"] == "ControllerRevision"]
    dump = [each for each in documents if has_revisions or each["kind"] != "ControllerRevision"]
    store = Store()
    world = World(store=store)
    load_documents(world.backend, [PlainObject(document, "dump") for document in dump])
    pods = world.names("pods")
    world.run(100)
    assert world.names("pods") == pods
    assert world.names("apps/controllerrevisions") == revisions
    again = World(store=store)
    again.run(100)
    assert again.names("pods") == pods


def test_controllers_resume_from_a_restored_snapshot() -> None:
    world = World(nodes=1)
    world.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 3}))
    snapshot = world.store.snapshot()
    world.run()
    assert len(world.names("pods")) == 3
    world.store.restore(snapshot)
    assert world.names("pods") == []
    world.run()
    assert len(world.names("pods")) == 3
    world.delete(f"{APPS}/replicasets/web")
    world.run()
    assert world.names("pods") == []


def test_restoring_a_snapshot_discards_later_job_progress() -> None:
    world = World(nodes=1)
    world.post(f"{BATCH}/jobs", job("sums", "20s", {"completions": 3, "parallelism": 1, "completionMode": "Indexed"}))
    world.bridge.advance(world.bridge.now_ns())
    world.schedule()
    snapshot = world.store.snapshot()
    world.run(50)
    assert world.get(f"{BATCH}/jobs/sums").at("status.completedIndexes") == "0,1"
    world.store.restore(snapshot)
    (name,) = world.names("pods")
    assert world.get(f"{PODS}/{name}").at("status.phase") == "Pending"
    world.run(5)
    assert world.get(f"{PODS}/{name}").at("status.phase") == "Running"
    world.run(20)
    assert world.get(f"{BATCH}/jobs/sums").at("status.completedIndexes") == "0"
    world.run(50)
    assert world.get(f"{BATCH}/jobs/sums").at("status.conditions.1.type") == "Complete"


@pytest.mark.parametrize(
    ("controllers", "kubelet", "want"),
    [
        pytest.param(False, True, ([], "Running"), id="without controllers no pods are created, and existing pods run"),
        pytest.param(True, False, (["web"], "Pending"), id="without a kubelet pods are created, but do not run"),
        pytest.param(False, False, ([], "Pending"), id="without components only the API runs"),
    ],
)
def test_disabled_controllers_and_kubelet_do_nothing(
    controllers: bool, kubelet: bool, want: tuple[list[str], str]
) -> None:
    world = World(controllers=controllers, kubelet=kubelet)
    world.add_node("n")
    world.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 1}))
    manifest = pod("mine")
    manifest["spec"] = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    world.post(PODS, manifest)
    world.run(100)
    made = [name.rpartition("-")[0] for name in world.names("pods") if name != "mine"]
    assert (made, world.get(f"{PODS}/mine").at("status.phase")) == want


def test_nodes_with_an_external_kubelet_and_their_leases_are_ignored() -> None:
    world = World(nodes=1)
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    world.post(leases, {"metadata": {"name": "real"}, "spec": {"holderIdentity": "real"}})
    world.patch(f"{leases}/real", {"spec": {"holderIdentity": "real", "leaseDurationSeconds": 40}})
    world.add_node("real")
    manifest = pod("theirs")
    manifest["spec"] = {"containers": [{"name": "c", "image": "i"}], "nodeName": "real"}
    world.post(PODS, manifest)
    world.run(10)
    assert world.get(f"{PODS}/theirs").at("status.phase") == "Pending"
    assert world.get(f"{API}/nodes/real").at("spec.taints.0.key") == "node.kubernetes.io/not-ready"
    world.bridge.run_maintenance(world.bridge.now_ns())
    assert world.get(f"{leases}/n0").at("spec.leaseDurationSeconds") == 40
    assert world.get(f"{leases}/n0").at("metadata.ownerReferences.0.kind") == "Node"
    assert world.get(f"{leases}/real").at("metadata.annotations") is None
    world.delete(f"{API}/nodes/n0")
    world.run()
    assert world.get(f"{leases}/n0").status == 404


def test_events_are_deleted_an_hour_after_their_last_occurrence() -> None:
    world = World(nodes=1)
    world.post(PODS, pod("p"))
    world.run()
    assert world.names("events")
    world.seconds += 3601
    while world.bridge.run_maintenance(world.bridge.now_ns()):
        pass
    assert world.names("events") == []
