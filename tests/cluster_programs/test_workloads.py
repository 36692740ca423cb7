"""kubectl with a whole `bayplan up`: rollouts, scaling, drains and deletions, with their output, also after a kill."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster_programs.bayplan_processes import BayplanUp, bayplan_up
from tests.cluster_programs.programs import program

# In block style, because kubectl 1.28 takes a stream that starts with a brace for JSON.
NODES = "---\n".join(
    f"""apiVersion: v1
kind: Node
metadata: {{name: n{i}}}
status: {{capacity: {{cpu: "8", memory: 16Gi, pods: "50"}}}}
"""
    for i in range(3)
)
SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "db:1"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: sums}
spec:
  completions: 2
  template:
    metadata: {annotations: {bayplan.io/run-time: 1s}}
    spec: {restartPolicy: Never, containers: [{name: c, image: "sum:1"}]}
"""


class Session:
    """kubectl with the kubeconfig of a running cluster.

    Args:
        up: the cluster.
        folder: for its cache.
        name: of the program.

    Attributes:
        up: the cluster.
    """

    def __init__(self, up: BayplanUp, folder: Path, name: str = "kubectl") -> None:
        self._kubectl = program(name)
        self._cache = str(folder / "cache")
        self.up = up

    def __call__(self, *arguments: str, manifest: str = "") -> str:
        """Run a command that must succeed, and return its output."""
        command = [self._kubectl, "--kubeconfig", str(self.up.kubeconfig), "--cache-dir", self._cache, *arguments]
        done = subprocess.run(command, input=manifest, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def names(self, *what: str) -> list[str]:
        """Return the names of objects."""
        return self("get", *what, "-o", "name").split()

    def wait(self, what: str) -> str:
        """Wait for a rollout, and return the last message about it."""
        return self("rollout", "status", what, "--timeout=60s").splitlines()[-1]


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Session]:
    program("kubectl")
    with bayplan_up(tmp_path / "up") as up:
        session = Session(up, tmp_path)
        session("create", "-f", "-", manifest=NODES)
        yield session


def test_a_deployment_rolls_out_rolls_back_and_scales(kubectl: Session) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3")
    assert kubectl.wait("deployment/web") == 'deployment "web" successfully rolled out'
    kubectl("set", "image", "deployment/web", "web=web:2")
    kubectl.wait("deployment/web")
    assert [line.split()[0] for line in kubectl("rollout", "history", "deployment/web").splitlines()[2:]] == ["1", "2"]
    kubectl("rollout", "undo", "deployment/web")
    kubectl.wait("deployment/web")
    images = kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}").split()
    assert images == ["web:1"] * 3
    kubectl("scale", "deployment/web", "--replicas=6")
    kubectl.wait("deployment/web")
    shown = kubectl("describe", "deployment", "web")
    assert "Progressing    True    NewReplicaSetAvailable" in shown
    assert "Scaled up replica set web-" in shown
    pod = kubectl.names("pods")[0]
    reported = kubectl("describe", pod)
    for words in ("Successfully assigned default/", "Container started", "Controlled By:  ReplicaSet/web-"):
        assert words in reported


def test_a_drain_waits_for_a_disruption_budget(kubectl: Session) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=4")
    kubectl.wait("deployment/web")
    kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=4")
    node = kubectl("get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}")
    with pytest.raises(AssertionError, match="disruption budget"):
        kubectl("drain", node, "--timeout=3s")
    kubectl("patch", "pdb", "web", "--type=merge", "-p", '{"spec":{"minAvailable":2}}')
    assert kubectl("drain", node, "--timeout=60s").endswith(f"node/{node} drained")
    assert kubectl.names("pods", f"--field-selector=spec.nodeName={node}") == []


def test_stateful_sets_roll_out_and_roll_back_and_jobs_complete(kubectl: Session) -> None:
    kubectl("apply", "-f", "-", manifest=SET)
    kubectl.wait("statefulset/db")
    kubectl("wait", "--for=condition=complete", "job/sums", "--timeout=60s")
    kubectl("set", "image", "statefulset/db", "c=db:2")
    kubectl.wait("statefulset/db")
    kubectl("rollout", "undo", "statefulset/db")
    kubectl.wait("statefulset/db")
    assert kubectl("get", "pod", "db-1", "-o", "jsonpath={.spec.containers[0].image}") == "db:1"
    kubectl("delete", "pod", "db-0")
    kubectl("wait", "--for=condition=ready", "pod/db-0", "--timeout=60s")


def test_a_deleted_namespace_deletes_its_objects(kubectl: Session) -> None:
    kubectl("create", "namespace", "demo")
    kubectl("-n", "demo", "create", "deployment", "web", "--image=web:1", "--replicas=3")
    kubectl("-n", "demo", "rollout", "status", "deployment/web", "--timeout=60s")
    kubectl("delete", "namespace", "demo", "--timeout=60s")
    assert kubectl.names("pods,replicasets,deployments,events,configmaps", "-n", "demo") == []


def test_up_continues_after_a_kill_without_restarting_pods(kubectl: Session) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3")
    kubectl.wait("deployment/web")
    before = json.loads(kubectl("get", "pods", "-o", "json"))["items"]
    kubectl("create", "deployment", "gone", "--image=web:1", "--replicas=3")
    kubectl("delete", "deployment", "gone", "--wait=false")
    kubectl.up.kill()
    kubectl.up.start()
    kubectl("scale", "deployment/web", "--replicas=5")
    kubectl.wait("deployment/web")
    kubectl("wait", "--for=delete", "replicaset,pod", "-l", "app=gone", "--timeout=60s")
    after = {each["metadata"]["uid"]: each for each in json.loads(kubectl("get", "pods", "-o", "json"))["items"]}
    assert len(after) == 5
    for pod in before:
        assert after[pod["metadata"]["uid"]]["status"]["startTime"] == pod["status"]["startTime"]
