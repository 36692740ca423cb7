"""A session of kubectl with a whole `bayplan up`, with kubectl of this release and of an older one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster_programs.bayplan_processes import bayplan_up
from tests.cluster_programs.programs import program
from tests.cluster_programs.test_workloads import NODES, Session

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""


@pytest.fixture(params=[pytest.param("kubectl", id="v1.36"), pytest.param("kubectl-1.28", id="v1.28")])
def kubectl(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    program(request.param)
    with bayplan_up(tmp_path / "up", "--run-time", "1s") as up:
        session = Session(up, tmp_path, request.param)
        session("create", "-f", "-", manifest=NODES)
        yield session


def test_a_deployment_is_applied_updated_scaled_and_deleted(kubectl: Session) -> None:
    assert kubectl("apply", "-f", "-", manifest=WEB).splitlines() == [
        "deployment.apps/web created",
        "service/web created",
    ]
    kubectl.wait("deployment/web")
    newer = WEB.replace("web:1", "web:2")
    assert kubectl("apply", "-f", "-", manifest=newer).startswith("deployment.apps/web configured")
    kubectl.wait("deployment/web")
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", manifest=newer)
    kubectl("rollout", "undo", "deployment/web")
    kubectl.wait("deployment/web")
    images = kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].status.containerStatuses[0].image}")
    assert images == "web:1 web:1"
    kubectl("scale", "deployment/web", "--replicas=4")
    kubectl.wait("deployment/web")
    addresses = kubectl("get", "pods", "-o", "jsonpath={.items[*].status.podIP}").split()
    assert len(set(addresses)) == 4
    kubectl("patch", "deployment", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":1}]')
    kubectl.wait("deployment/web")
    kubectl("delete", "deployment,service", "web")
    kubectl("wait", "--for=delete", "pod", "-l", "app=web", "--timeout=60s")
    assert kubectl.names("services") == ["service/kubernetes"]


def test_jobs_and_pods_that_never_restart_complete(kubectl: Session) -> None:
    kubectl("create", "job", "sums", "--image=sum:1")
    kubectl("wait", "--for=condition=complete", "job/sums", "--timeout=60s")
    kubectl("create", "cronjob", "tick", "--image=tick:1", "--schedule=* * * * *")
    kubectl("create", "job", "now", "--from=cronjob/tick")
    kubectl("wait", "--for=condition=complete", "job/now", "--timeout=60s")
    kubectl("run", "once", "--image=once:1", "--restart=Never")
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/once", "--timeout=60s")
    shown = kubectl("describe", "pod", "once")
    for words in ("Status:       Succeeded", "Reason:       Completed", "bayplan.io/run-time: 1s"):
        assert words in shown


def test_nodes_are_described_labeled_tainted_and_drained(kubectl: Session) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3")
    kubectl.wait("deployment/web")
    rows = [line.split() for line in kubectl("get", "nodes", "-o", "wide", "--no-headers").splitlines()]
    assert [row[1:2] + row[4:5] for row in rows] == [["Ready", "v1.36.3"]] * 3
    assert len({row[5] for row in rows}) == 3
    shown = kubectl("describe", "node", "n0")
    assert "0001" not in shown
    assert "InternalIP:  172.16." in shown
    kubectl("label", "node", "n0", "disk=ssd")
    kubectl("taint", "node", "n1", "dedicated=db:NoSchedule")
    assert kubectl("drain", "n2", "--timeout=60s").endswith("node/n2 drained")
    kubectl.wait("deployment/web")
    assert set(kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").split()) <= {"n0", "n1"}
    kubectl("uncordon", "n2")


def test_the_kubernetes_service_and_its_endpoints_exist(kubectl: Session) -> None:
    shown = kubectl("get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
    assert shown == "10.96.0.1:443"
    address = kubectl("get", "endpoints/kubernetes", "-o", "jsonpath={.subsets[0].addresses[0].ip}")
    assert kubectl("get", "endpointslices", "-o", "jsonpath={.items[0].endpoints[0].addresses[0]}") == address
