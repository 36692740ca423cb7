"""kube-controller-manager with `bayplan up --no-controllers` rolls out workloads and fills EndpointSlices."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.serving import wait_until
from tests.cluster_programs.bayplan_processes import PATIENCE_SECONDS, BayplanUp, bayplan_up
from tests.cluster_programs.programs import program, running
from tests.cluster_programs.test_workloads import NODES, Session


@contextlib.contextmanager
def controller_manager(up: BayplanUp, folder: Path) -> Iterator[None]:
    """Run a kube-controller-manager; its log is shown if the test fails."""
    command = [program("kube-controller-manager"), "--kubeconfig", str(up.kubeconfig), "--leader-elect=false"]
    command += ["--secure-port=0", "--use-service-account-credentials=false"]
    with running(folder / "kube-controller-manager.log", *command):
        yield


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Session]:
    program("kube-controller-manager")
    with bayplan_up(tmp_path / "up", "--no-controllers", "--run-time", "1s") as up:
        session = Session(up, tmp_path)
        session("create", "-f", "-", manifest=NODES)
        with controller_manager(up, tmp_path):
            yield session


def endpoints(kubectl: Session) -> dict[str, str]:
    """Return the nodes of the ready endpoints of the Service ``web`` by their addresses."""
    slices: Any = json.loads(kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o", "json"))
    found = [each for item in slices["items"] for each in item["endpoints"] or [] if each["conditions"]["ready"]]
    return {address: each["nodeName"] for each in found for address in each["addresses"]}


def pods(kubectl: Session) -> dict[str, str]:
    """Return the nodes of the pods ``app: web`` by their addresses."""
    items: Any = json.loads(kubectl("get", "pods", "-l", "app=web", "-o", "json"))["items"]
    return {each["status"]["podIP"]: each["spec"]["nodeName"] for each in items}


def test_endpoint_slices_contain_the_running_pods(kubectl: Session) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3")
    kubectl("expose", "deployment", "web", "--port=80")
    kubectl.wait("deployment/web")
    assert len(pods(kubectl)) == 3
    wait_until(lambda: endpoints(kubectl) == pods(kubectl), PATIENCE_SECONDS)
    kubectl("scale", "deployment/web", "--replicas=5")
    kubectl.wait("deployment/web")
    wait_until(lambda: len(endpoints(kubectl)) == 5 and endpoints(kubectl) == pods(kubectl), PATIENCE_SECONDS)
    own = json.loads(kubectl("get", "endpointslice/kubernetes", "-o", "json"))
    assert own["endpoints"], "those of the API are left alone"


def test_jobs_complete(kubectl: Session) -> None:
    kubectl("create", "job", "sums", "--image=sum:1")
    kubectl("wait", "--for=condition=complete", "job/sums", "--timeout=60s")
