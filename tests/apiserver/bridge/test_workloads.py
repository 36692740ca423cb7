"""Workloads over the API: each kind creates pods from whole templates, rolls out, scales, finishes and emits events."""

from __future__ import annotations

from typing import cast

from bayplan.cluster.kubelet import KubeletOptions
from tests.apiserver.bridge.bridge_fixture import API, APPS, BATCH, BridgeFixture, job, workload
from tests.apiserver.client import PODS, STRATEGIC, Document, pod


def owners(document: Document) -> list[str]:
    metadata = cast("dict[str, list[dict[str, str]]]", document["metadata"])
    return [f"{each['kind']}/{each['name']}" for each in metadata.get("ownerReferences", [])]


def test_a_deployment_creates_running_pods_from_its_whole_template() -> None:
    fixture = BridgeFixture(nodes=2)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 3}))
    fixture.run()
    status = fixture.get(f"{APPS}/deployments/web").at("status")
    assert isinstance(status, dict)
    assert (status["readyReplicas"], status["updatedReplicas"], status["availableReplicas"]) == (3, 3, 3)
    (replica_set,) = fixture.names("apps/replicasets")
    for document in fixture.documents("pods"):
        assert owners(document) == [f"ReplicaSet/{replica_set}"]
        (container,) = cast("dict[str, list[Document]]", document["spec"])["containers"]
        assert container["env"] == [{"name": "GREETING", "value": "hello"}]
        assert cast("Document", container["livenessProbe"])["periodSeconds"] == 10
    assert fixture.reported("Deployment") == [f"ScalingReplicaSet: Scaled up replica set {replica_set} from 0 to 3"]
    created = [f"SuccessfulCreate: Created pod: {name}" for name in fixture.names("pods")]
    assert sorted(fixture.reported("ReplicaSet")) == created


def test_managed_fields_name_controller_manager_and_kubelet_as_managers() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 1}))
    fixture.run()
    (document,) = fixture.documents("pods")
    metadata = cast("dict[str, list[Document]]", document["metadata"])
    managers = [(entry["manager"], entry.get("subresource")) for entry in metadata["managedFields"]]
    assert managers == [("kube-controller-manager", None), ("kubelet", "status")]


def test_a_template_change_rolls_out_and_reverting_it_reuses_the_old_replica_set() -> None:
    fixture = BridgeFixture(nodes=2)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 4}))
    fixture.run()
    first = fixture.names("apps/replicasets")
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:2"}]
    fixture.patch(f"{APPS}/deployments/web", image, "application/json-patch+json")
    fixture.run(1)
    assert len(fixture.names("apps/replicasets")) == 2
    assert {
        cast("dict[str, list[Document]]", each["spec"])["containers"][0]["image"] for each in fixture.documents("pods")
    } == {"app:2"}
    image[0]["value"] = "app:1"
    fixture.patch(f"{APPS}/deployments/web", image, "application/json-patch+json")
    fixture.run(1)
    names = fixture.names("apps/replicasets")
    sizes = {name: fixture.get(f"{APPS}/replicasets/{name}").at("status.replicas") for name in names}
    assert sizes.pop(first[0]) == 4
    assert list(sizes.values()) == [0]


def progress(fixture: BridgeFixture) -> tuple[object, ...]:
    conditions = fixture.get(f"{APPS}/deployments/web").at("status.conditions")
    found = [each for each in conditions if each["type"] == "Progressing"]  # type: ignore[attr-defined]
    return tuple((each["status"], each["reason"]) for each in found)


def test_the_progressing_condition_follows_the_rollout() -> None:
    fixture = BridgeFixture(nodes=1)
    document = workload("Deployment", "web", {"replicas": 2, "progressDeadlineSeconds": 60})
    fixture.post(f"{APPS}/deployments", document)
    fixture.run(schedule=False)
    assert progress(fixture) == (("True", "ReplicaSetUpdated"),)
    fixture.run(59, schedule=False)
    assert progress(fixture) == (("True", "ReplicaSetUpdated"),)
    fixture.run(2, schedule=False)
    assert progress(fixture) == (("False", "ProgressDeadlineExceeded"),)
    fixture.run(1)
    assert progress(fixture) == (("True", "NewReplicaSetAvailable"),)
    fixture.patch(f"{APPS}/deployments/web", {"spec": {"paused": True}})
    fixture.run(1)
    assert progress(fixture) == (("Unknown", "DeploymentPaused"),)
    fixture.patch(f"{APPS}/deployments/web", {"spec": {"paused": False, "template": {"spec": {"hostname": "new"}}}})
    fixture.run(1)
    assert progress(fixture) == (("True", "NewReplicaSetAvailable"),)
    fixture.patch(f"{APPS}/deployments/web", {"spec": {"progressDeadlineSeconds": 2**31 - 1}})
    fixture.run(1)
    assert progress(fixture) == ()


def messages(fixture: BridgeFixture) -> list[object]:
    conditions = cast("list[Document]", fixture.get(f"{APPS}/deployments/web").at("status.conditions"))
    return [each["message"] for each in conditions if each["type"] == "Progressing"]


def orphan(replicas: int, image: str) -> Document:
    """Return a ReplicaSet that a Deployment with the label `app: x` adopts."""
    made = workload("ReplicaSet", "mine", {"replicas": replicas}, image=image)
    return {**made, "metadata": {"name": "mine", "labels": {"app": "x"}}}


def test_an_adopted_replica_set_is_not_reported_as_a_new_one() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", orphan(0, "app:2"))
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 0}))
    fixture.run()
    [created] = set(fixture.names("apps/replicasets")) - {"mine"}
    assert messages(fixture) == [f'ReplicaSet "{created}" has successfully progressed.']
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:2"}]
    fixture.patch(f"{APPS}/deployments/web", image, "application/json-patch+json")
    fixture.run(1)
    assert fixture.get(f"{APPS}/deployments/web").at("metadata.annotations") == {
        "deployment.kubernetes.io/revision": "2"
    }
    assert messages(fixture) == [f'ReplicaSet "{created}" has successfully progressed.']


def test_the_pods_of_an_adopted_replica_set_count_as_progress() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", orphan(1, "app:1"))
    fixture.run(schedule=False)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 1}))
    fixture.run(schedule=False)
    assert progress(fixture) == (("True", "ReplicaSetUpdated"),)
    assert messages(fixture) == ['ReplicaSet "mine" is progressing.']


def test_unknown_fields_survive_controller_writes() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 1}))
    fixture.run()
    fixture.patch(f"{APPS}/deployments/web", {"metadata": {"annotations": {"note": "mine"}}, "spec": {"replicas": 2}})
    fixture.run()
    document = fixture.get(f"{APPS}/deployments/web").document
    assert fixture.get(f"{APPS}/deployments/web").at("spec.template.spec.containers.0.env.0.value") == "hello"
    assert cast("dict[str, Document]", document["metadata"])["annotations"] == {
        "deployment.kubernetes.io/revision": "1",
        "note": "mine",
    }


def test_a_large_replica_set_scales_up_in_bursts_and_down_to_zero() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "many", {"replicas": 100}))
    fixture.bridge.advance(fixture.bridge.now_ns(), 1)
    assert 0 <= len(fixture.names("pods")) < 100
    fixture.run(schedule=False)
    assert len(fixture.names("pods")) == 100
    assert len(fixture.reported("ReplicaSet")) <= 25
    fixture.patch(f"{APPS}/replicasets/many", {"spec": {"replicas": 0}})
    fixture.run(schedule=False)
    assert fixture.names("pods") == []


def test_a_stateful_set_creates_ordered_pods_and_claims_from_whole_templates() -> None:
    fixture = BridgeFixture(nodes=1)
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "seed"},
        },
    }
    spec: Document = {"replicas": 3, "serviceName": "db", "volumeClaimTemplates": [claim]}
    fixture.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", spec))
    fixture.run()
    assert fixture.names("pods") == ["db-0", "db-1", "db-2"]
    assert fixture.names("persistentvolumeclaims") == ["data-db-0", "data-db-1", "data-db-2"]
    first = fixture.documents("persistentvolumeclaims")[0]
    assert cast("dict[str, Document]", first["spec"])["dataSource"]["name"] == "seed"
    assert fixture.get(f"{PODS}/db-1").at("spec.hostname") == "db-1"
    assert fixture.get(f"{PODS}/db-1").at("spec.containers.0.env.0.value") == "hello"
    assert fixture.reported("StatefulSet")[:2] == [
        "SuccessfulCreate: Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        "SuccessfulCreate: Create Pod db-0 in StatefulSet db successful",
    ]
    fixture.delete(f"{PODS}/db-1")
    fixture.run()
    assert fixture.names("pods") == ["db-0", "db-1", "db-2"]


def test_a_stateful_set_retains_revisions_up_to_its_limit_and_can_roll_back_to_them() -> None:
    fixture = BridgeFixture(nodes=1)
    path = f"{APPS}/statefulsets/db"
    fixture.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", {"replicas": 1, "revisionHistoryLimit": 1}))
    fixture.run()
    (first,) = fixture.documents("apps/controllerrevisions")
    name = cast("dict[str, str]", first["metadata"])["name"]
    assert (name, first["revision"]) == (fixture.get(path).at("status.updateRevision"), 1)
    fixture.patch(path, {"spec": {"template": {"spec": {"hostname": "two"}}}})
    fixture.run()
    assert [each["revision"] for each in fixture.documents("apps/controllerrevisions")] != [1]
    patch = first["data"]
    assert fixture.patch(path, patch, STRATEGIC).status == 200
    fixture.run()
    revisions = [(each["metadata"], each["revision"]) for each in fixture.documents("apps/controllerrevisions")]
    numbers = {cast("dict[str, str]", metadata)["name"]: number for metadata, number in revisions}
    assert (len(numbers), numbers[name]) == (2, 3)
    fixture.patch(path, {"spec": {"template": {"spec": {"hostname": "three"}}}})
    fixture.run()
    fixture.patch(path, {"spec": {"template": {"spec": {"hostname": "four"}}}})
    fixture.run()
    assert len(fixture.names("apps/controllerrevisions")) == 2
    fixture.delete(path)
    fixture.run()
    assert fixture.names("apps/controllerrevisions") == []


def test_a_daemon_set_creates_a_pod_on_every_node_including_new_ones() -> None:
    fixture = BridgeFixture(nodes=2)
    fixture.post(f"{APPS}/daemonsets", workload("DaemonSet", "agent"))
    fixture.run()
    fixture.add_node("late")
    fixture.run()
    assert len(fixture.names("pods")) == 3
    assert fixture.get(f"{APPS}/daemonsets/agent").at("status.numberReady") == 3


def test_a_job_completes_and_removes_the_finalizers_of_its_pods() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("sums", "20s", {"completions": 3, "parallelism": 2}))
    fixture.run(45)
    answer = fixture.get(f"{BATCH}/jobs/sums")
    assert (answer.at("status.succeeded"), answer.at("status.completionTime") is not None) == (3, True)
    assert answer.at("spec.template.metadata.labels") == {
        "app": "x",
        "batch.kubernetes.io/controller-uid": answer.at("metadata.uid"),
        "batch.kubernetes.io/job-name": "sums",
        "controller-uid": answer.at("metadata.uid"),
        "job-name": "sums",
    }
    phases = [cast("Document", each["status"])["phase"] for each in fixture.documents("pods")]
    assert phases == ["Succeeded"] * 3
    assert all("finalizers" not in cast("Document", each["metadata"]) for each in fixture.documents("pods"))
    assert fixture.reported("Job")[-1] == "Completed: Job completed"


def test_a_job_counts_a_deleted_pod_as_failed_and_replaces_it() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("sums", "60s"))
    fixture.run(10)
    (first,) = fixture.names("pods")
    fixture.delete(f"{PODS}/{first}")
    fixture.run(30)
    assert fixture.get(f"{BATCH}/jobs/sums").at("status.failed") == 1
    assert fixture.names("pods") != [first]


def test_a_cron_job_creates_jobs_from_its_whole_template_and_reports_their_completion() -> None:
    fixture = BridgeFixture(nodes=1)
    inner = cast("Document", job("unused", "5s")["spec"])
    cron = {"metadata": {"name": "each"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": inner}}}
    fixture.post(f"{BATCH}/cronjobs", cron)
    fixture.run(130)
    jobs = fixture.documents("batch/jobs")
    assert len(jobs) == 2
    assert (
        fixture.get(f"{BATCH}/jobs/{fixture.names('batch/jobs')[0]}").at("spec.template.spec.containers.0.env.0.value")
        == "hello"
    )
    reported = fixture.reported("CronJob")
    assert reported[0] == f"SuccessfulCreate: Created job {fixture.names('batch/jobs')[0]}"
    assert reported[1] == f"SawCompletedJob: Saw completed job: {fixture.names('batch/jobs')[0]}, condition: Complete"


def test_an_invalid_schedule_is_refused_and_an_invalid_run_time_emits_an_event() -> None:
    fixture = BridgeFixture(nodes=1)
    inner = cast("Document", job("unused")["spec"])
    refused = fixture.post(
        f"{BATCH}/cronjobs", {"metadata": {"name": "odd"}, "spec": {"schedule": "a b", "jobTemplate": {"spec": inner}}}
    )
    manifest = pod("odd")
    manifest["metadata"] = {"name": "odd", "annotations": {"bayplan.io/run-time": "soon"}}
    fixture.post(PODS, manifest)
    fixture.run(1)
    assert (refused.status, fixture.reported("CronJob")) == (422, [])
    assert fixture.reported("Pod")[-1].startswith("InvalidRunTime: Pod default/odd $.metadata.annotations")
    assert fixture.get(f"{PODS}/odd").at("status.phase") == "Running"


def test_refused_pod_creations_emit_events_and_are_retried() -> None:
    fixture = BridgeFixture(nodes=1)
    document = workload("ReplicaSet", "urgent", {"replicas": 1})
    cast("dict[str, dict[str, Document]]", document)["spec"]["template"]["spec"]["priorityClassName"] = "high"  # type: ignore[index]
    fixture.post(f"{APPS}/replicasets", document)
    fixture.run()
    assert fixture.names("pods") == []
    assert list(fixture.bridge.failures()) == ["ReplicaSet default/urgent"]
    text = 'FailedCreate: Error creating: pods "urgent-'
    assert fixture.reported("ReplicaSet")[0].startswith(text)
    fixture.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 7})
    fixture.run(20)
    assert [cast("Document", each["spec"])["priority"] for each in fixture.documents("pods")] == [7]
    assert fixture.bridge.failures() == {}


def test_an_indexed_job_creates_its_pods_once_the_api_accepts_them() -> None:
    fixture = BridgeFixture(nodes=1)
    document = job("urgent")
    spec = cast("Document", document["spec"])
    spec |= {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    cast("dict[str, dict[str, Document]]", spec)["template"]["spec"]["priorityClassName"] = "high"
    fixture.post(f"{BATCH}/jobs", document)
    fixture.run(2)
    assert fixture.names("pods") == []
    fixture.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 7})
    fixture.run(20)
    indexes = [cast("Document", each["spec"])["hostname"] for each in fixture.documents("pods")]
    assert sorted(map(str, indexes)) == ["urgent-0", "urgent-1"]


def test_the_budget_status_is_updated_and_limits_evictions() -> None:
    fixture = BridgeFixture(nodes=2)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 3}))
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}}}
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    fixture.post(budgets, budget)
    fixture.run()
    assert fixture.get(f"{budgets}/web").at("status.disruptionsAllowed") == 1
    first, second, _ = fixture.names("pods")
    evict = {"apiVersion": "policy/v1", "kind": "Eviction"}
    assert fixture.post(f"{PODS}/{first}/eviction", {**evict, "metadata": {"name": first}}).status == 201
    assert fixture.post(f"{PODS}/{second}/eviction", {**evict, "metadata": {"name": second}}).status == 429
    fixture.run()
    assert first not in fixture.names("pods")
    assert fixture.get(f"{budgets}/web").at("status.disruptionsAllowed") == 1
    assert fixture.get(f"{budgets}/web").at("status.disruptedPods") is None


def test_the_kubelet_deletes_a_pod_after_its_grace_period() -> None:
    fixture = BridgeFixture(nodes=1, pods=KubeletOptions(container_statuses=True, termination_time_ns=60_000_000_000))
    fixture.post(PODS, pod("slow"))
    fixture.run()
    fixture.delete(f"{PODS}/slow")
    fixture.run(29)
    assert fixture.get(f"{PODS}/slow").at("metadata.deletionGracePeriodSeconds") == 30
    assert fixture.reported("Pod")[-1] == "Killing: Stopping container c"
    fixture.run(2)
    assert fixture.names("pods") == []


def test_a_new_node_becomes_ready_and_loses_the_not_ready_taint() -> None:
    fixture = BridgeFixture()
    fixture.add_node("n")
    assert fixture.get(f"{API}/nodes/n").at("spec.taints.0.key") == "node.kubernetes.io/not-ready"
    fixture.run()
    answer = fixture.get(f"{API}/nodes/n")
    assert answer.at("spec.taints") is None
    conditions = {each["type"]: each["status"] for each in answer.at("status.conditions")}  # type: ignore[attr-defined]
    assert conditions == {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
    assert sorted(fixture.reported("Node")) == [
        "NodeReady: Node n status is now: NodeReady",
        "RegisteredNode: Node n event: Registered Node n in Controller",
    ]
