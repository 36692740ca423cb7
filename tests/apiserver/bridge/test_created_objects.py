"""The objects that controllers create: labels, annotations and variables in addition to those of the template."""

from __future__ import annotations

from typing import cast

import pytest

from tests.apiserver.bridge.bridge_fixture import API, APPS, BATCH, BridgeFixture, job, workload
from tests.apiserver.bridge.test_refused_writes import refuse
from tests.apiserver.client import Document

PODS = f"{API}/namespaces/default/pods"


def test_pods_and_revisions_of_a_daemon_set_have_the_generation_of_the_template() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/daemonsets", workload("DaemonSet", "agent", image="app:1"))
    fixture.run()
    for generation in ("1", "2"):
        (pod,) = fixture.documents("pods")
        labels = cast("dict[str, Document]", pod["metadata"])["labels"]
        assert labels["pod-template-generation"] == generation
        newest = max(fixture.documents("apps/controllerrevisions"), key=lambda each: cast("int", each["revision"]))
        metadata = cast("dict[str, Document]", newest["metadata"])
        assert metadata["annotations"] == {"deprecated.daemonset.template.generation": generation}
        assert metadata["labels"] == {"app": "x", "controller-revision-hash": labels["controller-revision-hash"]}
        fixture.patch(f"{APPS}/daemonsets/agent", {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}})
        fixture.run()


def test_a_revision_of_a_stateful_set_has_its_annotations_and_the_label_of_the_hash() -> None:
    fixture = BridgeFixture(nodes=1)
    document = workload("StatefulSet", "db", {"replicas": 1, "serviceName": "db"})
    document["metadata"] = {"name": "db", "annotations": {"team": "a"}}
    fixture.post(f"{APPS}/statefulsets", document)
    fixture.run()
    (revision,) = fixture.documents("apps/controllerrevisions")
    metadata = cast("dict[str, Document]", revision["metadata"])
    digest = str(metadata["name"]).removeprefix("db-")
    assert metadata["labels"] == {"app": "x", "controller.kubernetes.io/hash": digest}
    assert metadata["annotations"] == {"team": "a"}


@pytest.mark.parametrize(
    ("env", "want"),
    [
        pytest.param([{"name": "A", "value": "1"}], ["A", "JOB_COMPLETION_INDEX"], id="the variable comes last"),
        pytest.param(
            [{"name": "JOB_COMPLETION_INDEX", "value": "1"}], ["JOB_COMPLETION_INDEX"], id="it is not replaced"
        ),
    ],
)
def test_containers_of_an_indexed_job_know_their_index(env: list[Document], want: list[str]) -> None:
    fixture = BridgeFixture(nodes=1)
    document = job("sums", spec={"completionMode": "Indexed", "completions": 1})
    spec = cast("dict[str, dict[str, Document]]", document["spec"])["template"]["spec"]
    spec["initContainers"] = [{"name": "i", "image": "app:1"}]
    cast("list[Document]", spec["containers"])[0]["env"] = env
    fixture.post(f"{BATCH}/jobs", document)
    fixture.run()
    made = fixture.get(f"{PODS}/{fixture.names('pods')[0]}")
    assert [each["name"] for each in cast("list[Document]", made.at("spec.containers.0.env"))] == want
    assert made.at("spec.initContainers.0.env") == [
        {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {
                "fieldRef": {
                    "apiVersion": "v1",
                    "fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']",
                }
            },
        }
    ]


def test_the_status_of_a_job_has_an_empty_list_of_uncounted_pods() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("sums", "5s"))
    for seconds in (0, 30):
        fixture.run(seconds)
        assert fixture.get(f"{BATCH}/jobs/sums").at("status.uncountedTerminatedPods") == {}


def test_a_cron_job_that_replaces_its_job_does_not_miss_it_but_reports_jobs_of_clients() -> None:
    fixture = BridgeFixture(nodes=1)
    inner = job("unused", "10m")["spec"]
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Replace", "jobTemplate": {"spec": inner}}
    uid = fixture.post(f"{BATCH}/cronjobs", {"metadata": {"name": "tick"}, "spec": spec}).at("metadata.uid")
    fixture.run(150)
    (name,) = fixture.names("batch/jobs")
    (active,) = cast("list[Document]", fixture.get(f"{BATCH}/cronjobs/tick").at("status.active"))
    version = str(active.pop("resourceVersion"))
    assert version.isdecimal()
    assert active["name"] == name
    reasons = [each.partition(":")[0] for each in fixture.reported("CronJob")]
    assert reasons == ["SuccessfulCreate", "SuccessfulDelete", "SuccessfulCreate"]
    made = job("by-hand", "10m")
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": uid, "controller": True}
    made["metadata"] = {"name": "by-hand", "ownerReferences": [owner]}
    fixture.post(f"{BATCH}/jobs", made)
    fixture.run()
    text = "UnexpectedJob: Saw a job that the controller did not create or forgot: by-hand"
    assert fixture.reported("CronJob")[3:] == [text]


def test_a_cron_job_reports_ended_jobs_that_it_deletes_and_runs_that_its_policy_forbids() -> None:
    fixture = BridgeFixture(nodes=1)
    spec: Document = {"schedule": "* * * * *", "successfulJobsHistoryLimit": 0, "concurrencyPolicy": "Forbid"}
    spec["jobTemplate"] = {"spec": job("unused", "80s")["spec"]}
    fixture.post(f"{BATCH}/cronjobs", {"metadata": {"name": "tick"}, "spec": spec})
    fixture.run(175)
    reasons = [each.partition(":")[0] for each in fixture.reported("CronJob")]
    assert reasons == [
        "SuccessfulCreate",
        "JobAlreadyActive",
        "SawCompletedJob",
        "SuccessfulCreate",
        "SuccessfulDelete",
    ]


def test_a_cron_job_reports_a_refused_job() -> None:
    fixture = BridgeFixture(nodes=1)
    refuse(fixture, "CREATE", "false", "jobs")
    spec: Document = {"schedule": "* * * * *", "jobTemplate": {"spec": job("unused", "5s")["spec"]}}
    fixture.post(f"{BATCH}/cronjobs", {"metadata": {"name": "tick"}, "spec": spec})
    fixture.run(61)
    assert fixture.reported("CronJob")[0].startswith("FailedCreate: Error creating job: jobs.batch ")


def test_a_replica_set_lists_its_former_revisions_once_its_deployment_returns_to_it() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 1}))
    fixture.run(30)
    (first,) = fixture.names("apps/replicasets")
    for version, want in (("2", None), (None, "1"), ("2", "1"), (None, "1,3")):
        patch = {"spec": {"template": {"metadata": {"annotations": {"v": version}}}}}
        fixture.patch(f"{APPS}/deployments/web", patch)
        fixture.run(30)
        metadata = cast("dict[str, Document]", fixture.get(f"{APPS}/replicasets/{first}").document["metadata"])
        assert metadata["annotations"].get("deployment.kubernetes.io/revision-history") == want


def test_the_progress_of_a_deployment_stays_when_it_returns_to_an_older_replica_set() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 1}))
    fixture.run(30)
    (first,) = fixture.names("apps/replicasets")
    for version in ("2", None):
        fixture.patch(f"{APPS}/deployments/web", {"spec": {"template": {"metadata": {"annotations": {"v": version}}}}})
        fixture.run(30)
        quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
        fixture.post(f"{API}/namespaces/default/resourcequotas", quota)
        fixture.run()
    conditions = cast("list[Document]", fixture.get(f"{APPS}/deployments/web").at("status.conditions"))
    (progress,) = [each for each in conditions if each["type"] == "Progressing"]
    assert progress["reason"] == "NewReplicaSetAvailable"
    assert first not in str(progress["message"])
    fixture.run(700)
    assert fixture.get(f"{APPS}/deployments/web").at("status.conditions") == conditions


def test_a_replica_set_drops_its_oldest_revisions_if_their_list_gets_too_long() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 1}))
    fixture.run(30)
    (first,) = fixture.names("apps/replicasets")
    history = ",".join(str(number) for number in range(1000, 1400))
    annotations = {"deployment.kubernetes.io/revision-history": history}
    fixture.patch(f"{APPS}/replicasets/{first}", {"metadata": {"annotations": annotations}})
    for version in ("2", None):
        fixture.patch(f"{APPS}/deployments/web", {"spec": {"template": {"metadata": {"annotations": {"v": version}}}}})
        fixture.run(30)
    metadata = cast("dict[str, Document]", fixture.get(f"{APPS}/replicasets/{first}").document["metadata"])
    assert metadata["annotations"]["deployment.kubernetes.io/revision-history"] == history[5:] + ",1"
