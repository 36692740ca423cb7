"""Workloads over the API: each kind creates pods from whole templates, rolls out, scales, finishes and emits events."""

from __future__ import annotations

from typing import cast

from bayplan.cluster.kubelet import KubeletOptions
from tests.apiserver.bridge.world import API, APPS, BATCH, World, job, workload
from tests.apiserver.client import PODS, STRATEGIC, Document, pod


def owners(document: Document) -> list[str]:
    metadata = cast("dict[str, list[dict[str, str]]]", document["metadata"])
    return [f"{each['kind']}/{each['name']}" for each in metadata.get("ownerReferences", [])]


def test_a_deployment_creates_running_pods_from_its_whole_template() -> None:
    world = World(nodes=2)
    world.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 3}))
    world.run()
    status = world.get(f"{APPS}/deployments/web").at("status")
    assert isinstance(status, dict)
    assert (status["readyReplicas"], status["updatedReplicas"], status["availableReplicas"]) == (3, 3, 3)
    (replica_set,) = world.names("apps/replicasets")
    for document in world.documents("pods"):
        assert owners(document) == [f"ReplicaSet/{replica_set}"]
        (container,) = cast("dict[str, list[Document]]", document["spec"])["containers"]
        assert container["env"] == [{"name": "GREETING", "value": "hello"}]
        assert cast("Document", container["livenessProbe"])["periodSeconds"] == 10
    assert world.reported("Deployment") == [f"ScalingReplicaSet: Scaled up replica set {replica_set} from 0 to 3"]
    created = [f"SuccessfulCreate: Created pod: {name}" for name in world.names("pods")]
    assert sorted(world.reported("ReplicaSet")) == created


def test_managed_fields_name_controller_manager_and_kubelet_as_managers() -> None:
    world = World(nodes=1)
    world.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 1}))
    world.run()
    (document,) = world.documents("pods")
    metadata = cast("dict[str, list[Document]]", document["metadata"])
    managers = [(entry["manager"], entry.get("subresource")) for entry in metadata["managedFields"]]
    assert managers == [("kube-controller-manager", None), ("kubelet", "status")]


def test_a_template_change_rolls_out_and_reverting_it_reuses_the_old_replica_set() -> None:
    world = World(nodes=2)
    world.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 4}))
    world.run()
    first = world.names("apps/replicasets")
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:2"}]
    world.patch(f"{APPS}/deployments/web", image, "application/json-patch+json")
    world.run(1)
    assert len(world.names("apps/replicasets")) == 2
    assert {
        cast("dict[str, list[Document]]", each["spec"])["containers"][0]["image"] for each in world.documents("pods")
    } == {"app:2"}
    image[0]["value"] = "app:1"
    world.patch(f"{APPS}/deployments/web", image, "application/json-patch+json")
    world.run(1)
    names = world.names("apps/replicasets")
    sizes = {name: world.get(f"{APPS}/replicasets/{name}").at("status.replicas") for name in names}
    assert sizes.pop(first[0]) == 4
    assert list(sizes.values()) == [0]


def progress(world: World) -> tuple[object, ...]:
    conditions = world.get(f"{APPS}/deployments/web").at("status.conditions")
    found = [each for each in conditions if each["type"] == "Progressing"]  # type: ignore[attr-defined]
    return tuple((each["status"], each["reason"]) for each in found)


def test_the_progressing_condition_follows_the_rollout() -> None:
    world = World(nodes=1)
    document = workload("Deployment", "web", {"replicas": 2, "progressDeadlineSeconds": 60})
    world.post(f"{APPS}/deployments", document)
    world.run(schedule=False)
    assert progress(world) == (("True", "ReplicaSetUpdated"),)
    world.run(59, schedule=False)
    assert progress(world) == (("True", "ReplicaSetUpdated"),)
    world.run(2, schedule=False)
    assert progress(world) == (("False", "ProgressDeadlineExceeded"),)
    world.run(1)
    assert progress(world) == (("True", "NewReplicaSetAvailable"),)
    world.patch(f"{APPS}/deployments/web", {"spec": {"paused": True}})
    world.run(1)
    assert progress(world) == (("Unknown", "DeploymentPaused"),)
    world.patch(f"{APPS}/deployments/web", {"spec": {"paused": False, "template": {"spec": {"hostname": "new"}}}})
    world.run(1)
    assert progress(world) == (("True", "NewReplicaSetAvailable"),)
    world.patch(f"{APPS}/deployments/web", {"spec": {"progressDeadlineSeconds": 2**31 - 1}})
    world.run(1)
    assert progress(world) == ()


def test_unknown_fields_survive_controller_writes() -> None:
    world = World(nodes=1)
    world.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 1}))
    world.run()
    world.patch(f"{APPS}/deployments/web", {"metadata": {"annotations": {"note": "mine"}}, "spec": {"replicas": 2}})
    world.run()
    document = world.get(f"{APPS}/deployments/web").document
    assert world.get(f"{APPS}/deployments/web").at("spec.template.spec.containers.0.env.0.value") == "hello"
    assert cast("dict[str, Document]", document["metadata"])["annotations"] == {
        "deployment.kubernetes.io/revision": "1",
        "note": "mine",
    }


def test_a_large_replica_set_scales_up_in_bursts_and_down_to_zero() -> None:
    world = World(nodes=1)
    world.post(f"{APPS}/replicasets", workload("ReplicaSet", "many", {"replicas": 100}))
    world.bridge.advance(world.bridge.now_ns(), 1)
    assert 0 <= len(world.names("pods")) < 100
    world.run(schedule=False)
    assert len(world.names("pods")) == 100
    assert len(world.reported("ReplicaSet")) <= 25
    world.patch(f"{APPS}/replicasets/many", {"spec": {"replicas": 0}})
    world.run(schedule=False)
    assert world.names("pods") == []


def test_a_stateful_set_creates_ordered_pods_and_claims_from_whole_templates() -> None:
    world = World(nodes=1)
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "seed"},
        },
    }
    spec: Document = {"replicas": 3, "serviceName": "db", "volumeClaimTemplates": [claim]}
    world.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", spec))
    world.run()
    assert world.names("pods") == ["db-0", "db-1", "db-2"]
    assert world.names("persistentvolumeclaims") == ["data-db-0", "data-db-1", "data-db-2"]
    first = world.documents("persistentvolumeclaims")[0]
    assert cast("dict[str, Document]", first["spec"])["dataSource"]["name"] == "seed"
    assert world.get(f"{PODS}/db-1").at("spec.hostname") == "db-1"
    assert world.get(f"{PODS}/db-1").at("spec.containers.0.env.0.value") == "hello"
    assert world.reported("StatefulSet")[:2] == [
        "SuccessfulCreate: create Claim data-db-0 Pod db-0 in StatefulSet db success",
        "SuccessfulCreate: create Pod db-0 in StatefulSet db successful",
    ]
    world.delete(f"{PODS}/db-1")
    world.run()
    assert world.names("pods") == ["db-0", "db-1", "db-2"]


def test_a_stateful_set_retains_revisions_up_to_its_limit_and_can_roll_back_to_them() -> None:
    world = World(nodes=1)
    path = f"{APPS}/statefulsets/db"
    world.post(f"{APPS}/statefulsets", workload("StatefulSet", "db", {"replicas": 1, "revisionHistoryLimit": 1}))
    world.run()
    (first,) = world.documents("apps/controllerrevisions")
    name = cast("dict[str, str]", first["metadata"])["name"]
    assert (name, first["revision"]) == (world.get(path).at("status.updateRevision"), 1)
    world.patch(path, {"spec": {"template": {"spec": {"hostname": "two"}}}})
    world.run()
    assert [each["revision"] for each in world.documents("apps/controllerrevisions")] != [1]
    patch = first["data"]
    assert world.patch(path, patch, STRATEGIC).status == 200
    world.run()
    revisions = [(each["metadata"], each["revision"]) for each in world.documents("apps/controllerrevisions")]
    numbers = {cast("dict[str, str]", metadata)["name"]: number for metadata, number in revisions}
    assert (len(numbers), numbers[name]) == (2, 3)
    world.patch(path, {"spec": {"template": {"spec": {"hostname": "three"}}}})
    world.run()
    world.patch(path, {"spec": {"template": {"spec": {"hostname": "four"}}}})
    world.run()
    assert len(world.names("apps/controllerrevisions")) == 2
    world.delete(path)
    world.run()
    assert world.names("apps/controllerrevisions") == []


def test_a_daemon_set_creates_a_pod_on_every_node_including_new_ones() -> None:
    world = World(nodes=2)
    world.post(f"{APPS}/daemonsets", workload("DaemonSet", "agent"))
    world.run()
    world.add_node("late")
    world.run()
    assert len(world.names("pods")) == 3
    assert world.get(f"{APPS}/daemonsets/agent").at("status.numberReady") == 3


def test_a_job_completes_and_removes_the_finalizers_of_its_pods() -> None:
    world = World(nodes=1)
    world.post(f"{BATCH}/jobs", job("sums", "20s", {"completions": 3, "parallelism": 2}))
    world.run(45)
    answer = world.get(f"{BATCH}/jobs/sums")
    assert (answer.at("status.succeeded"), answer.at("status.completionTime") is not None) == (3, True)
    assert answer.at("spec.template.metadata.labels") == {
        "app": "x",
        "batch.kubernetes.io/controller-uid": answer.at("metadata.uid"),
        "batch.kubernetes.io/job-name": "sums",
        "controller-uid": answer.at("metadata.uid"),
        "job-name": "sums",
    }
    phases = [cast("Document", each["status"])["phase"] for each in world.documents("pods")]
    assert phases == ["Succeeded"] * 3
    assert all("finalizers" not in cast("Document", each["metadata"]) for each in world.documents("pods"))
    assert world.reported("Job")[-1] == "Completed: Job completed"


def test_a_job_counts_a_deleted_pod_as_failed_and_replaces_it() -> None:
    world = World(nodes=1)
    world.post(f"{BATCH}/jobs", job("sums", "60s"))
    world.run(10)
    (first,) = world.names("pods")
    world.delete(f"{PODS}/{first}")
    world.run(30)
    assert world.get(f"{BATCH}/jobs/sums").at("status.failed") == 1
    assert world.names("pods") != [first]


def test_a_cron_job_creates_jobs_from_its_whole_template_and_reports_their_completion() -> None:
    world = World(nodes=1)
    inner = cast("Document", job("unused", "5s")["spec"])
    cron = {"metadata": {"name": "each"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": inner}}}
    world.post(f"{BATCH}/cronjobs", cron)
    world.run(130)
    jobs = world.documents("batch/jobs")
    assert len(jobs) == 2
    assert (
        world.get(f"{BATCH}/jobs/{world.names('batch/jobs')[0]}").at("spec.template.spec.containers.0.env.0.value")
        == "hello"
    )
    reported = world.reported("CronJob")
    assert reported[0] == f"SuccessfulCreate: Created job {world.names('batch/jobs')[0]}"
    assert reported[1] == f"SawCompletedJob: Saw completed job: {world.names('batch/jobs')[0]}, condition: Complete"


def test_an_invalid_schedule_is_refused_and_an_invalid_run_time_emits_an_event() -> None:
    world = World(nodes=1)
    inner = cast("Document", job("unused")["spec"])
    refused = world.post(
        f"{BATCH}/cronjobs", {"metadata": {"name": "odd"}, "spec": {"schedule": "a b", "jobTemplate": {"spec": inner}}}
    )
    manifest = pod("odd")
    manifest["metadata"] = {"name": "odd", "annotations": {"bayplan.io/run-time": "soon"}}
    world.post(PODS, manifest)
    world.run(1)
    assert (refused.status, world.reported("CronJob")) == (422, [])
    assert world.reported("Pod")[-1].startswith("InvalidRunTime: Pod default/odd $.metadata.annotations")
    assert world.get(f"{PODS}/odd").at("status.phase") == "Running"


def test_refused_pod_creations_emit_events_and_are_retried() -> None:
    world = World(nodes=1)
    document = workload("ReplicaSet", "urgent", {"replicas": 1})
    cast("dict[str, dict[str, Document]]", document)["spec"]["template"]["spec"]["priorityClassName"] = "high"  # type: ignore[index]
    world.post(f"{APPS}/replicasets", document)
    world.run()
    assert world.names("pods") == []
    assert list(world.bridge.failures()) == ["ReplicaSet default/urgent"]
    text = 'FailedCreate: Error creating: pods "urgent-'
    assert world.reported("ReplicaSet")[0].startswith(text)
    world.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 7})
    world.run(20)
    assert [cast("Document", each["spec"])["priority"] for each in world.documents("pods")] == [7]
    assert world.bridge.failures() == {}


def test_an_indexed_job_creates_its_pods_once_the_api_accepts_them() -> None:
    world = World(nodes=1)
    document = job("urgent")
    spec = cast("Document", document["spec"])
    spec |= {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    cast("dict[str, dict[str, Document]]", spec)["template"]["spec"]["priorityClassName"] = "high"
    world.post(f"{BATCH}/jobs", document)
    world.run(2)
    assert world.names("pods") == []
    world.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 7})
    world.run(20)
    indexes = [cast("Document", each["spec"])["hostname"] for each in world.documents("pods")]
    assert sorted(map(str, indexes)) == ["urgent-0", "urgent-1"]


def test_the_budget_status_is_updated_and_limits_evictions() -> None:
    world = World(nodes=2)
    world.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 3}))
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}}}
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    world.post(budgets, budget)
    world.run()
    assert world.get(f"{budgets}/web").at("status.disruptionsAllowed") == 1
    first, second, _ = world.names("pods")
    evict = {"apiVersion": "policy/v1", "kind": "Eviction"}
    assert world.post(f"{PODS}/{first}/eviction", {**evict, "metadata": {"name": first}}).status == 201
    assert world.post(f"{PODS}/{second}/eviction", {**evict, "metadata": {"name": second}}).status == 429
    world.run()
    assert first not in world.names("pods")
    assert world.get(f"{budgets}/web").at("status.disruptionsAllowed") == 1
    assert world.get(f"{budgets}/web").at("status.disruptedPods") is None


def test_the_kubelet_deletes_a_pod_after_its_grace_period() -> None:
    world = World(nodes=1, pods=KubeletOptions(container_statuses=True, termination_scale=1.0))
    world.post(PODS, pod("slow"))
    world.run()
    world.delete(f"{PODS}/slow")
    world.run(29)
    assert world.get(f"{PODS}/slow").at("metadata.deletionGracePeriodSeconds") == 30
    assert world.reported("Pod")[-1] == "Killing: Stopping container c"
    world.run(2)
    assert world.names("pods") == []


def test_a_new_node_becomes_ready_and_loses_the_not_ready_taint() -> None:
    world = World()
    world.add_node("n")
    assert world.get(f"{API}/nodes/n").at("spec.taints.0.key") == "node.kubernetes.io/not-ready"
    world.run()
    answer = world.get(f"{API}/nodes/n")
    assert answer.at("spec.taints") is None
    conditions = {each["type"]: each["status"] for each in answer.at("status.conditions")}  # type: ignore[attr-defined]
    assert conditions == {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
    assert sorted(world.reported("Node")) == [
        "NodeReady: Node n status is now: NodeReady",
        "RegisteredNode: Node n event: Registered Node n in Controller",
    ]
