"""An upstream kube-scheduler with its default configuration schedules on Bayplan's API: a thousand pods, preemption."""

from __future__ import annotations

from pathlib import Path

from bayplan.apiserver.http.server import ApiServer
from tests.apiserver.serving import Document, call, serving, wait_until
from tests.cluster_programs.programs import kube_scheduler

PODS = "/api/v1/namespaces/default/pods"
NODES, COUNT = 100, 1000
# By default, upstream's scheduler sends at most 50 requests per second, and needs two for each pod.
PATIENCE = 120.0


def node(name: str, cpu: str = "32", memory: str = "128Gi") -> Document:
    capacity = {"cpu": cpu, "memory": memory, "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [ready]}
    labels = {"kubernetes.io/hostname": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(name: str, cpu: str = "250m", memory: str = "512Mi", **spec: object) -> Document:
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, **spec},
    }


def pods(server: ApiServer) -> list[Document]:
    found: list[Document] = call(server, "GET", PODS)["items"]
    return found


def reasons(server: ApiServer, kind: str = "Pod") -> dict[str, int]:
    """Return the number of events about objects of a kind, by reason."""
    found: dict[str, int] = {}
    for event in call(server, "GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]:
        if event["regarding"]["kind"] == kind:
            found[event["reason"]] = found.get(event["reason"], 0) + 1
    return found


def condition(found: Document, kind: str) -> Document:
    """Return a condition of a pod; an empty document if the pod does not have it."""
    conditions: list[Document] = found["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), {})


def test_kube_scheduler_binds_a_thousand_pods(tmp_path: Path) -> None:
    with serving([node(f"node-{number}") for number in range(NODES)]) as server:
        with kube_scheduler(server, tmp_path):
            sizes = [("250m", "512Mi"), ("500m", "1Gi"), ("250m", "512Mi"), ("1", "2Gi")]
            for number in range(COUNT):
                call(server, "POST", PODS, pod(f"pod-{number}", *sizes[number % 4]))
            wait_until(lambda: all(each["spec"].get("nodeName") for each in pods(server)), PATIENCE)
            wait_until(lambda: reasons(server).get("Scheduled", 0) == COUNT, PATIENCE)
        found = pods(server)
        assert {condition(each, "PodScheduled")["status"] for each in found} == {"True"}
        # The default scores must have spread the pods over all nodes.
        assert len({each["spec"]["nodeName"] for each in found}) == NODES
        lease = call(server, "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
        # The lease was released at the end, by a request in protobuf like all of kube-scheduler's.
        assert lease["spec"]["holderIdentity"] == ""
        server.backend.store.check_invariants()


def test_kube_scheduler_preempts_pods(tmp_path: Path) -> None:
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("low", 10), ("high", 1000))
    ]
    full = [pod(f"low-{number}", "1", nodeName=f"node-{number // 2}", priorityClassName="low") for number in range(6)]
    nodes = [node(f"node-{number}", cpu="2") for number in range(3)]
    with serving([*nodes, *classes, *full]) as server:
        with kube_scheduler(server, tmp_path):
            call(server, "POST", PODS, pod("high", "2", priorityClassName="high"))
            wait_until(lambda: bool(by_name(server)["high"]["status"].get("nominatedNodeName")))
            wait_until(lambda: sum("deletionTimestamp" in each["metadata"] for each in pods(server)) == 2)
            nominated = by_name(server)["high"]["status"]["nominatedNodeName"]
            victims = [each for each in pods(server) if "deletionTimestamp" in each["metadata"]]
            assert {each["spec"]["nodeName"] for each in victims} == {nominated}
            for victim in victims:
                assert condition(victim, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
                # Instead of a kubelet, the test deletes terminating pods.
                call(server, "DELETE", f"{PODS}/{victim['metadata']['name']}", {"gracePeriodSeconds": 0})
            wait_until(lambda: by_name(server)["high"]["spec"].get("nodeName") == nominated)
            wait_until(lambda: reasons(server).get("Preempted") == 2 and reasons(server).get("Scheduled") == 1)
        assert reasons(server)["FailedScheduling"] >= 1
        assert "nominatedNodeName" not in by_name(server)["high"]["status"]


def by_name(server: ApiServer) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in pods(server)}
