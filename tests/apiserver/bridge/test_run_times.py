"""Pods that finish by themselves: the default run time of a server's kubelet, and the pods that it excludes."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.rest.loading import load_documents
from bayplan.cluster.kubelet import KubeletOptions
from bayplan.formats.manifest import PlainObject
from tests.apiserver.bridge.bridge_fixture import API, BATCH, BridgeFixture, job, workload

PODS = f"{API}/namespaces/default/pods"
RUN_TIME, EXIT_CODE = "bayplan.io/run-time", "bayplan.io/exit-code"
TEN_SECONDS = KubeletOptions(container_statuses=True, default_run_time="10s")


def shown(fixture: BridgeFixture, path: str) -> Any:
    """Return an object as a client sees it."""
    return fixture.get(path).document


def listed(fixture: BridgeFixture, table: str, namespace: str = "default") -> list[Any]:
    """Return all objects of a table in a namespace."""
    return list(fixture.documents(table, namespace))


def pod(policy: str, **metadata: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "app:1"}]
    metadata = {"name": "p", "namespace": "default", **metadata}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, "restartPolicy": policy},
    }


def phase(fixture: BridgeFixture, name: str = "p") -> str:
    found: str = shown(fixture, f"{PODS}/{name}")["status"]["phase"]
    return found


@pytest.mark.parametrize(
    ("policy", "annotations", "want"),
    [
        pytest.param("Never", {}, ["Running", "Succeeded"], id="a pod that is never restarted ends"),
        pytest.param("OnFailure", {}, ["Running", "Succeeded"], id="a pod that is restarted on failure ends"),
        pytest.param("Always", {}, ["Running", "Running"], id="a pod that is always restarted keeps running"),
        pytest.param("Never", {RUN_TIME: "5s"}, ["Succeeded", "Succeeded"], id="its own run time counts"),
        pytest.param("Never", {RUN_TIME: "1h"}, ["Running", "Running"], id="a longer run time of its own counts"),
        pytest.param("Never", {RUN_TIME: "forever"}, ["Running", "Running"], id="or none"),
        pytest.param(
            "Always", {RUN_TIME: "5s"}, ["Succeeded", "Succeeded"], id="a run time of its own counts for any policy"
        ),
        pytest.param("Never", {EXIT_CODE: "3"}, ["Running", "Failed"], id="an exit code alone has the default"),
    ],
)
def test_default_run_time_ends_pods_by_restart_policy_unless_annotated(
    policy: str, annotations: dict[str, str], want: list[str]
) -> None:
    fixture = BridgeFixture(nodes=1, pods=TEN_SECONDS)
    fixture.post(PODS, pod(policy, annotations=annotations))
    found: list[str] = []
    for _ in range(2):
        fixture.run(9)
        found.append(phase(fixture))
    assert found == want


def test_pods_without_a_default_run_time_run_until_deleted() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(PODS, pod("Never"))
    fixture.run(100_000)
    assert phase(fixture) == "Running"
    assert RUN_TIME not in shown(fixture, f"{PODS}/p")["metadata"].get("annotations", {})


def test_the_default_run_time_completes_jobs_and_cron_jobs() -> None:
    fixture = BridgeFixture(nodes=2, pods=TEN_SECONDS)
    fixture.post(f"{BATCH}/jobs", job("sums", spec={"completions": 3, "parallelism": 1}))
    template = job("each")["spec"]
    fixture.post(
        f"{BATCH}/cronjobs",
        {"metadata": {"name": "each"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": template}}},
    )
    fixture.run(250)
    assert shown(fixture, f"{BATCH}/jobs/sums")["status"]["succeeded"] == 3
    done = [each for each in listed(fixture, "batch/jobs") if each["metadata"]["name"].startswith("each-")]
    assert len(done) >= 3
    assert [each["status"].get("succeeded") for each in done][:3] == [1, 1, 1]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"phase": "Pending"}, id="one that waited there"),
        pytest.param({"phase": "Running", "startTime": "2025-01-01T00:00:00Z"}, id="one that ran there"),
    ],
)
def test_dumped_pods_ignore_the_default_run_time(status: dict[str, Any]) -> None:
    fixture = BridgeFixture(nodes=1, pods=TEN_SECONDS)
    dumped = pod("Never", uid="7f3a", creationTimestamp="2025-01-01T00:00:00Z")
    if status["phase"] == "Running":
        dumped["spec"]["nodeName"] = "n0"
    load_documents(fixture.backend, [PlainObject({**dumped, "status": status}, "dump.yaml:1")])
    fixture.run(1_000)
    assert phase(fixture) == "Running"
    assert shown(fixture, f"{PODS}/p")["metadata"]["annotations"][RUN_TIME] == "forever"


def test_a_pod_loaded_from_a_manifest_ends_after_the_default_run_time() -> None:
    fixture = BridgeFixture(nodes=1, pods=TEN_SECONDS)
    load_documents(fixture.backend, [PlainObject(pod("Never"), "pod.yaml:1")])
    fixture.run(11)
    assert phase(fixture) == "Succeeded"


def test_an_externally_started_pod_ignores_the_default_run_time() -> None:
    fixture = BridgeFixture(nodes=1, pods=TEN_SECONDS)
    running: dict[str, Any] = {**pod("Never"), "status": {"phase": "Running", "startTime": "2025-12-31T00:00:00Z"}}
    running["spec"]["nodeName"] = "n0"
    load_documents(fixture.backend, [PlainObject(running, "pod.yaml:1")])
    fixture.run(1_000)
    assert phase(fixture) == "Running"


def test_a_running_pod_ends_on_time_after_a_restart() -> None:
    fixture = BridgeFixture(nodes=1, pods=TEN_SECONDS)
    fixture.post(PODS, pod("Never"))
    fixture.run(4)
    again = BridgeFixture(store=fixture.store, pods=KubeletOptions(container_statuses=True, default_run_time="1h"))
    again.seconds = fixture.seconds
    again.run(5)
    assert phase(again) == "Running"
    again.run(2)
    assert phase(again) == "Succeeded"


def test_deployment_pods_ignore_the_default_run_time() -> None:
    fixture = BridgeFixture(nodes=1, pods=TEN_SECONDS)
    fixture.post("/apis/apps/v1/namespaces/default/deployments", workload("Deployment", "web", {"replicas": 2}))
    fixture.run(1_000)
    assert {each["status"]["phase"] for each in listed(fixture, "pods")} == {"Running"}
