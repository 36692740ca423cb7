"""Deletion of owners, dependents, namespaces and claims in use; restarts and resets of a server."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bayplan.apiserver.bridge.document_owners import DELETED_OWNERS
from bayplan.apiserver.bridge.kubelet import Kubelet
from bayplan.apiserver.rest.loading import load_documents
from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.store import Store
from bayplan.cluster.store import ChangeEvent
from bayplan.formats.manifest import PlainObject
from tests.apiserver.bridge.bridge_fixture import API, APPS, BATCH, BridgeFixture, job, workload
from tests.apiserver.client import PODS, Document, pod

MAPS = f"{API}/namespaces/default/configmaps"


def owned_map(name: str, owner: str, uid: object, **reference: object) -> Document:
    """Return a ConfigMap that another ConfigMap owns: a kind that typed objects don't have."""
    owner_reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, **reference}
    return {"metadata": {"name": name, "ownerReferences": [owner_reference]}}


def maps(fixture: BridgeFixture) -> list[str]:
    return [name for name in fixture.names("configmaps") if name != "kube-root-ca.crt"]


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param("Background", [], id="background deletion: dependents of dependents follow the owner"),
        pytest.param("Foreground", [], id="foreground deletion: dependents precede the owner"),
        pytest.param("Orphan", ["child", "grandchild"], id="orphan: dependents stay"),
    ],
)
def test_deletion_propagates_to_dependents_by_policy(policy: str, want: list[str]) -> None:
    fixture = BridgeFixture()
    uid = fixture.post(MAPS, {"metadata": {"name": "owner"}}).at("metadata.uid")
    child = fixture.post(MAPS, owned_map("child", "owner", uid, blockOwnerDeletion=True)).at("metadata.uid")
    fixture.post(MAPS, owned_map("grandchild", "child", child, blockOwnerDeletion=True))
    fixture.run()
    fixture.delete(f"{MAPS}/owner", {"propagationPolicy": policy})
    fixture.run()
    assert maps(fixture) == want
    if want:
        assert fixture.get(f"{MAPS}/child").at("metadata.ownerReferences") is None
    assert fixture.names(DELETED_OWNERS, "") == []


def test_a_dependent_with_two_owners_only_loses_the_deleted_owner_reference() -> None:
    fixture = BridgeFixture()
    uids = {name: fixture.post(MAPS, {"metadata": {"name": name}}).at("metadata.uid") for name in ("one", "two")}
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid} for name, uid in uids.items()]
    fixture.post(MAPS, {"metadata": {"name": "child", "ownerReferences": references}})
    fixture.run()
    fixture.delete(f"{MAPS}/one")
    fixture.run()
    assert fixture.get(f"{MAPS}/child").at("metadata.ownerReferences.0.name") == "two"
    fixture.delete(f"{MAPS}/two")
    fixture.run()
    assert maps(fixture) == []


def test_dependents_with_finalizers_are_deleted_once_the_finalizers_are_removed() -> None:
    fixture = BridgeFixture()
    uid = fixture.post(MAPS, {"metadata": {"name": "owner"}}).at("metadata.uid")
    for number in range(40):
        held = owned_map(f"m{number:02}", "owner", uid)
        held["metadata"] = {**held["metadata"], "finalizers": ["example.com/held"]}  # type: ignore[dict-item]
        fixture.post(MAPS, held)
    fixture.delete(f"{MAPS}/owner", {"propagationPolicy": "Background"})
    fixture.run(10)
    assert len(maps(fixture)) == 40
    for name in maps(fixture):
        fixture.patch(f"{MAPS}/{name}", {"metadata": {"finalizers": None}})
    fixture.run()
    assert maps(fixture) == []


def test_dependents_of_an_owner_that_never_existed_are_not_deleted() -> None:
    fixture = BridgeFixture()
    fixture.post(MAPS, owned_map("child", "elsewhere", "7"))
    fixture.run(100)
    assert maps(fixture) == ["child"]


def test_a_new_deployment_adopts_orphaned_replica_sets_and_pods() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 2}))
    fixture.run()
    fixture.delete(f"{APPS}/deployments/web", {"propagationPolicy": "Orphan"})
    fixture.run(5)
    (replica_set,), pods = fixture.names("apps/replicasets"), fixture.names("pods")
    assert len(pods) == 2
    assert fixture.get(f"{APPS}/replicasets/{replica_set}").at("metadata.ownerReferences") is None
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 3}))
    fixture.run()
    assert fixture.names("apps/replicasets") == [replica_set]
    assert set(pods) < set(fixture.names("pods"))
    assert fixture.get(f"{APPS}/deployments/web").at("status.readyReplicas") == 3


def test_a_new_replica_set_adopts_orphaned_pods() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 2}))
    fixture.run()
    pods = fixture.names("pods")
    fixture.delete(f"{APPS}/replicasets/web", {"propagationPolicy": "Orphan"})
    fixture.run()
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "again", {"replicas": 2}))
    fixture.run()
    assert fixture.names("pods") == pods


def test_a_relabelled_pod_is_released_and_adopted_again_when_relabelled_back() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 2}))
    fixture.run()
    first, _ = fixture.names("pods")
    fixture.patch(f"{PODS}/{first}", {"metadata": {"labels": {"app": "looked-at"}}})
    fixture.run()
    assert len(fixture.names("pods")) == 3
    assert fixture.get(f"{PODS}/{first}").at("metadata.ownerReferences") is None
    assert fixture.get(f"{APPS}/replicasets/web").at("status.replicas") == 2
    fixture.patch(f"{PODS}/{first}", {"metadata": {"labels": {"app": "x"}}})
    fixture.run()
    assert len(fixture.names("pods")) == 2


def test_deleting_a_job_deletes_its_pods_despite_their_finalizer() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("sums", "60s", {"completions": 2, "parallelism": 2}))
    fixture.run(5)
    fixture.delete(f"{BATCH}/jobs/sums", {"propagationPolicy": "Background"})
    fixture.run(5)
    assert (fixture.names("batch/jobs"), fixture.names("pods")) == ([], [])


def test_deleting_a_cron_job_deletes_the_pods_of_its_jobs_although_jobs_orphan_their_pods_by_default() -> None:
    fixture = BridgeFixture(nodes=1)
    spec: Document = {"schedule": "* * * * *", "jobTemplate": {"spec": job("unused", "10m")["spec"]}}
    fixture.post(f"{BATCH}/cronjobs", {"metadata": {"name": "tick"}, "spec": spec})
    fixture.run(65)
    assert len(fixture.names("pods")) == 1
    fixture.delete(f"{BATCH}/cronjobs/tick", {"propagationPolicy": "Background"})
    fixture.run(5)
    assert (fixture.names("batch/jobs"), fixture.names("pods")) == ([], [])


def test_a_deleted_namespace_reports_remaining_content_until_it_is_empty() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{API}/namespaces", {"metadata": {"name": "demo"}})
    fixture.post(f"{APPS}/deployments".replace("default", "demo"), workload("Deployment", "web", {"replicas": 40}))
    fixture.post(
        f"{API}/namespaces/demo/configmaps", {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    )
    fixture.run()
    fixture.delete(f"{API}/namespaces/demo")
    fixture.run(1)
    assert [name for name in fixture.store.table_names() if fixture.names(name, "demo")] == ["configmaps"]
    conditions = fixture.get(f"{API}/namespaces/demo").at("status.conditions")
    assert isinstance(conditions, list)
    assert {each["type"]: each["message"] for each in conditions if each["status"] == "True"} == {
        "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 1 resource instances",
        "NamespaceFinalizersRemaining": "Some content in the namespace has finalizers remaining: "
        "example.com/held in 1 resource instances",
    }
    fixture.patch(f"{API}/namespaces/demo/configmaps/held", {"metadata": {"finalizers": None}})
    fixture.run(1)
    assert fixture.get(f"{API}/namespaces/demo").status == 404


def test_every_namespace_gets_a_default_service_account_and_root_certificate() -> None:
    fixture = BridgeFixture()
    fixture.post(f"{API}/namespaces", {"metadata": {"name": "demo"}})
    fixture.run()
    assert (fixture.names("serviceaccounts", "demo"), fixture.names("configmaps", "demo")) == (
        ["default"],
        ["kube-root-ca.crt"],
    )
    fixture.delete(f"{API}/namespaces/demo/configmaps/kube-root-ca.crt")
    fixture.run()
    assert fixture.names("configmaps", "demo") == ["kube-root-ca.crt"]


def test_a_claim_in_use_is_deleted_after_its_pod_along_with_its_volume() -> None:
    fixture = BridgeFixture(nodes=1)
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    fixture.post(classes, {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"})
    claims = f"{API}/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"}
    fixture.post(claims, {"metadata": {"name": "data"}, "spec": spec})

    def use(document: Document) -> None:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        document["spec"] = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}

    fixture.post(PODS, pod("user", use))
    fixture.run()
    assert fixture.get(f"{claims}/data").at("status.phase") == "Bound"
    fixture.delete(f"{claims}/data")
    fixture.run()
    assert fixture.names("persistentvolumeclaims") == ["data"]
    fixture.delete(f"{PODS}/user")
    fixture.run()
    assert (fixture.names("persistentvolumeclaims"), fixture.names("persistentvolumes", "")) == ([], [])


def test_pods_on_a_deleted_node_are_deleted_after_forty_seconds() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(PODS, pod("p"))
    fixture.run()
    fixture.delete(f"{API}/nodes/n0")
    fixture.run(39)
    assert fixture.names("pods") == ["p"]
    fixture.run(2)
    assert fixture.names("pods") == []


def test_pods_on_a_not_ready_node_are_evicted_when_their_toleration_expires() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(PODS, pod("p"))
    fixture.run()
    conditions = [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]
    fixture.patch(f"{API}/nodes/n0/status", {"status": {"conditions": conditions}})
    fixture.run(299)
    effects = [each["effect"] for each in fixture.get(f"{API}/nodes/n0").at("spec.taints")]  # type: ignore[attr-defined]
    assert (effects, fixture.names("pods")) == (["NoSchedule", "NoExecute"], ["p"])
    fixture.run(2)
    assert fixture.names("pods") == []
    assert "TaintManagerEviction: Marking for deletion Pod default/p" in fixture.reported("Pod")


# --- starts -----------------------------------------------------------------------------------------------------------


def test_controllers_resume_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    store = Store()
    recorder = DurableRecorder(path, store, on_failure=lambda problem: None)
    fixture = BridgeFixture(nodes=1, store=store)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 2}))
    fixture.post(f"{BATCH}/jobs", job("sums", "60s"))
    uid = fixture.post(MAPS, {"metadata": {"name": "owner"}}).at("metadata.uid")
    for number in range(40):
        fixture.post(MAPS, owned_map(f"m{number:02}", "owner", uid))
    fixture.run(20)
    pods = fixture.names("pods")
    # The recording ends after the owner has been deleted, but before its dependents are.
    fixture.delete(f"{MAPS}/owner")
    fixture.patch(f"{APPS}/deployments/web", {"spec": {"replicas": 5}})
    recorder.close()

    again = Store()
    recorder = DurableRecorder(path, again, on_failure=lambda problem: None)
    begun = fixture.seconds
    fixture = BridgeFixture(store=again)
    fixture.seconds = begun
    fixture.run(35)
    assert maps(fixture) == []
    assert set(pods) <= set(fixture.names("pods"))
    assert len(fixture.names("pods")) == 6
    assert fixture.get(f"{BATCH}/jobs/sums").at("status.active") == 1
    fixture.run(10)
    assert fixture.get(f"{BATCH}/jobs/sums").at("status.succeeded") == 1
    recorder.close()


def test_a_restart_preserves_the_old_revision_of_a_partitioned_stateful_set() -> None:
    store = Store()
    fixture = BridgeFixture(nodes=1, store=store)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    fixture.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", {"replicas": 2, "updateStrategy": strategy}))
    fixture.run()
    container = "/spec/template/spec/containers/0"
    changes = [
        {"op": "replace", "path": f"{container}/image", "value": "app:2"},
        {"op": "remove", "path": f"{container}/env"},
    ]
    fixture.patch(f"{APPS}/statefulsets/db", changes, "application/json-patch+json")
    fixture.run()
    images = ["app:1", "app:2"]
    assert [fixture.get(f"{PODS}/db-{n}").at("spec.containers.0.image") for n in range(2)] == images
    again = BridgeFixture(store=store)
    again.delete(f"{PODS}/db-0")
    again.run()
    assert [again.get(f"{PODS}/db-{n}").at("spec.containers.0.image") for n in range(2)] == images
    # Fields that Bayplan's structs of templates lack are restored, too.
    environments = [again.get(f"{PODS}/db-{n}").at("spec.containers.0.env") for n in range(2)]
    assert environments == [[{"name": "GREETING", "value": "hello"}], None]
    assert len(again.names("apps/controllerrevisions")) == 2


@pytest.mark.parametrize("has_revisions", [True, False], ids=["with revisions", "without revisions"])
def test_sets_of_a_recorded_cluster_preserve_their_pods_and_revision_names(has_revisions: bool) -> None:
    first = BridgeFixture(nodes=1)
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
    fixture = BridgeFixture(store=store)
    load_documents(fixture.backend, [PlainObject(document, "dump") for document in dump])
    pods = fixture.names("pods")
    fixture.run(100)
    assert fixture.names("pods") == pods
    assert fixture.names("apps/controllerrevisions") == revisions
    again = BridgeFixture(store=store)
    again.run(100)
    assert again.names("pods") == pods


def test_controllers_resume_from_a_restored_snapshot() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 3}))
    snapshot = fixture.store.snapshot()
    fixture.run()
    assert len(fixture.names("pods")) == 3
    fixture.store.restore(snapshot)
    assert fixture.names("pods") == []
    fixture.run()
    assert len(fixture.names("pods")) == 3
    fixture.delete(f"{APPS}/replicasets/web")
    fixture.run()
    assert fixture.names("pods") == []


def test_restoring_a_snapshot_discards_later_job_progress() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("sums", "20s", {"completions": 3, "parallelism": 1, "completionMode": "Indexed"}))
    fixture.bridge.advance(fixture.bridge.now_ns())
    fixture.schedule()
    snapshot = fixture.store.snapshot()
    fixture.run(50)
    assert fixture.get(f"{BATCH}/jobs/sums").at("status.completedIndexes") == "0,1"
    fixture.store.restore(snapshot)
    (name,) = fixture.names("pods")
    assert fixture.get(f"{PODS}/{name}").at("status.phase") == "Pending"
    fixture.run(5)
    assert fixture.get(f"{PODS}/{name}").at("status.phase") == "Running"
    fixture.run(20)
    assert fixture.get(f"{BATCH}/jobs/sums").at("status.completedIndexes") == "0"
    fixture.run(50)
    assert fixture.get(f"{BATCH}/jobs/sums").at("status.conditions.1.type") == "Complete"


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
    fixture = BridgeFixture(controllers=controllers, kubelet=kubelet)
    fixture.add_node("n")
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 1}))
    manifest = pod("mine")
    manifest["spec"] = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    fixture.post(PODS, manifest)
    fixture.run(100)
    made = [name.rpartition("-")[0] for name in fixture.names("pods") if name != "mine"]
    assert (made, fixture.get(f"{PODS}/mine").at("status.phase")) == want


def test_nodes_with_an_external_kubelet_and_their_leases_are_ignored() -> None:
    fixture = BridgeFixture(nodes=1)
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    fixture.post(leases, {"metadata": {"name": "real"}, "spec": {"holderIdentity": "real"}})
    fixture.patch(f"{leases}/real", {"spec": {"holderIdentity": "real", "leaseDurationSeconds": 40}})
    fixture.add_node("real")
    manifest = pod("theirs")
    manifest["spec"] = {"containers": [{"name": "c", "image": "i"}], "nodeName": "real"}
    fixture.post(PODS, manifest)
    fixture.run(10)
    assert fixture.get(f"{PODS}/theirs").at("status.phase") == "Pending"
    assert fixture.get(f"{API}/nodes/real").at("spec.taints.0.key") == "node.kubernetes.io/not-ready"
    fixture.bridge.run_maintenance(fixture.bridge.now_ns())
    assert fixture.get(f"{leases}/n0").at("spec.leaseDurationSeconds") == 40
    assert fixture.get(f"{leases}/n0").at("metadata.ownerReferences.0.kind") == "Node"
    assert fixture.get(f"{leases}/real").at("metadata.annotations") is None
    fixture.delete(f"{API}/nodes/n0")
    fixture.run()
    assert fixture.get(f"{leases}/n0").status == 404


def test_events_are_deleted_an_hour_after_their_last_occurrence() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(PODS, pod("p"))
    fixture.run()
    assert fixture.names("events")
    fixture.seconds += 3601
    while fixture.bridge.run_maintenance(fixture.bridge.now_ns()):
        pass
    assert fixture.names("events") == []


def test_an_exception_about_one_pod_does_not_keep_the_kubelet_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fixture, observe = BridgeFixture(nodes=1), Kubelet.observe

    def fail(agent: Kubelet, event: ChangeEvent, now_ns: int) -> None:
        if event.object.metadata.name == "bad":
            raise OverflowError("a bad pod")
        observe(agent, event, now_ns)

    with monkeypatch.context() as patch:
        patch.setattr(Kubelet, "observe", fail)
        for name in ("bad", "good"):
            spec = {"nodeName": "n0", "containers": [{"name": "c", "image": "i"}]}
            fixture.post(PODS, {**pod(name), "spec": spec})
        fixture.bridge.advance(fixture.bridge.now_ns())
    assert [*fixture.bridge.bugs()] == ["kubelet a bad pod"]
    assert {name: fixture.bridge.store.pods[f"default/{name}"].status.phase for name in ("bad", "good")} == {
        "bad": "Pending",
        "good": "Running",
    }


def test_an_unscheduled_pod_that_waits_for_finalizers_fails_so_that_its_job_replaces_it() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("sums", spec={"podReplacementPolicy": "Failed"}))
    fixture.run(schedule=False)
    (first,) = fixture.names("pods")
    fixture.delete(f"{PODS}/{first}")
    fixture.run(20, schedule=False)
    assert first not in fixture.names("pods")
    assert len(fixture.names("pods")) == 1
    sums = fixture.get(f"{BATCH}/jobs/sums")
    assert [sums.at(f"status.{name}") for name in ("active", "failed", "terminating")] == [1, 1, 0]
