"""kubectl with the API server alone, without controllers: create, get, change, wait and delete."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bayplan.apiserver.http.server import ApiServer
from tests.apiserver.client import MERGE
from tests.apiserver.serving import call, serving
from tests.cluster_programs.programs import kubeconfig, program
from tests.cluster_programs.test_kube_scheduler import PODS, node, pod

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {team: a}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "web:1", resources: {requests: {cpu: 500m}}}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""


class Result(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table."""
        return [re.split(r"  +", line.rstrip()) for line in self.out.splitlines()]


class Kubectl:
    """kubectl with the kubeconfig of a server."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self._command = [program("kubectl"), "--kubeconfig", kubeconfig(server, folder)]
        self._command += ["--cache-dir", str(folder / "cache")]

    def __call__(self, *arguments: str, manifest: str = "") -> Result:
        """Run a command; a manifest goes to its standard input."""
        command = [*self._command, *arguments]
        done = subprocess.run(command, input=manifest, capture_output=True, text=True, timeout=60, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    def output(self, *arguments: str, manifest: str = "") -> str:
        """Run a command that must succeed, and return its output."""
        result = self(*arguments, manifest=manifest)
        assert result.code == 0, result.err
        return result.out.strip()


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    big, bound = pod("big", "100"), pod("bound", nodeName="n1")
    bound["metadata"]["labels"] = {"app": "bound"}
    bound["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    with serving([node("n1"), node("n2"), big, bound]) as server:
        yield Kubectl(server, tmp_path)


def test_apply_creates_updates_and_reports_unchanged_objects_and_conflicts(kubectl: Kubectl) -> None:
    assert kubectl.output("apply", "-f", "-", manifest=DEPLOYMENT) == "deployment.apps/web created\nservice/web created"
    assert kubectl.output("apply", "-f", "-", manifest=DEPLOYMENT).endswith("web unchanged")
    changed = DEPLOYMENT.replace("web:1", "web:2").replace(", labels: {team: a}", "")
    assert "+      - image: web:2" in kubectl("diff", "-f", "-", manifest=changed).out
    assert kubectl.output("apply", "-f", "-", manifest=changed).startswith("deployment.apps/web configured")
    found = call(kubectl.server, "GET", "/apis/apps/v1/namespaces/default/deployments/web")
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2"
    assert "labels" not in found["metadata"]
    # kubectl migrates the fields that client-side apply owns to server-side apply.
    assert kubectl.output("apply", "--server-side", "-f", "-", manifest=changed).startswith(
        "deployment.apps/web serverside"
    )
    other = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    refused = kubectl(*other, manifest=DEPLOYMENT)
    assert refused.code == 1
    assert 'conflict with "kubectl": .spec.template.spec.containers[name="c"].image' in refused.err
    assert kubectl.output(*other, "--force-conflicts", manifest=DEPLOYMENT).startswith("deployment.apps/web serverside")
    assert (
        kubectl("apply", "-f", "-", manifest=DEPLOYMENT.replace("replicas", "replcas")).err.count("unknown field") == 1
    )


def test_get_prints_tables(kubectl: Kubectl) -> None:
    wide = kubectl("get", "pods", "-o", "wide").rows
    assert wide[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert [[row[0], row[1], row[2], row[6]] for row in wide[1:]] == [
        ["big", "0/1", "Pending", "<none>"],
        ["bound", "0/1", "Running", "n1"],
    ]
    assert [row[:2] for row in kubectl("get", "nodes").rows] == [["NAME", "STATUS"], ["n1", "Ready"], ["n2", "Ready"]]
    assert kubectl.output("get", "pods", "--field-selector", "spec.nodeName=n1", "-o", "name") == "pod/bound"
    assert kubectl.output("get", "pods", "-l", "app=bound", "-o", "jsonpath={.items[*].metadata.name}") == "bound"
    assert kubectl.output("get", "pods", "-A", "--sort-by=.metadata.name", "--no-headers").splitlines()[0].split()[
        0:2
    ] == [
        "default",
        "big",
    ]
    assert kubectl("get", "pod", "nope").err.strip() == 'Error from server (NotFound): pods "nope" not found'


def test_describe_shows_events_of_a_pending_pod(kubectl: Kubectl) -> None:
    uid = call(kubectl.server, "GET", f"{PODS}/big")["metadata"]["uid"]
    regarding = {"kind": "Pod", "namespace": "default", "name": "big", "uid": uid, "apiVersion": "v1"}
    event = {
        "metadata": {"name": "big.1"},
        "regarding": regarding,
        "reason": "FailedScheduling",
        "note": "0/2 nodes are available: 2 Insufficient cpu.",
        "type": "Warning",
        "action": "Scheduling",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-1",
    }
    call(kubectl.server, "POST", "/apis/events.k8s.io/v1/namespaces/default/events", event)
    output = kubectl.output("describe", "pod", "big")
    assert re.search(r"^Node: +<none>$", output, re.MULTILINE)
    assert re.search(r"Warning +FailedScheduling .* default-scheduler +0/2 nodes are available: 2 Insufficient", output)
    assert re.search(r"cpu +250m \(0%\)", kubectl.output("describe", "node", "n1"))
    assert kubectl.output("get", "events", "--no-headers").split()[1:3] == ["Warning", "FailedScheduling"]


@pytest.mark.parametrize(
    ("command", "want"),
    [
        pytest.param("logs bound", "no preferred addresses found", id="logs of a pod on an unreachable node"),
        pytest.param("exec bound -- ls", "unable to upgrade connection", id="exec"),
        pytest.param("get nonsense", """the server doesn't have a resource type "nonsense\"""", id="no such resource"),
        pytest.param("delete pod nope", 'pods "nope" not found', id="nothing to delete"),
        pytest.param("create ns Bad_Name", "Invalid value", id="a bad name"),
    ],
)
def test_failed_commands_report_clear_errors(command: str, want: str, kubectl: Kubectl) -> None:
    refused = kubectl(*command.split())
    assert refused.code == 1
    assert want in refused.err


def test_a_pending_pod_has_empty_logs(kubectl: Kubectl) -> None:
    assert kubectl("logs", "big") == Result(0, "", "")


def test_imperative_commands_change_objects(kubectl: Kubectl) -> None:
    kubectl.output("apply", "-f", "-", manifest=DEPLOYMENT)
    assert kubectl.output("scale", "deployment/web", "--replicas=5") == "deployment.apps/web scaled"
    assert kubectl.output("get", "deployment/web", "-o", "jsonpath={.spec.replicas}") == "5"
    assert kubectl("scale", "deployment/web", "--replicas=1", "--current-replicas=3").code == 1
    assert kubectl.output("set", "image", "deployment/web", "c=web:3").endswith("image updated")
    assert kubectl.output("label", "node", "n1", "zone=a").endswith("labeled")
    assert kubectl.output("get", "nodes", "-l", "zone=a", "-o", "name") == "node/n1"
    assert kubectl.output("annotate", "node", "n1", "note=x").endswith("annotated")
    assert kubectl.output("taint", "node", "n1", "k=v:NoSchedule").endswith("tainted")
    assert kubectl.output("taint", "node", "n1", "k-").endswith("untainted")
    assert kubectl.output(
        "patch", "node", "n1", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/zone"}]'
    )
    assert kubectl.output("get", "nodes", "-l", "zone=a", "-o", "name") == ""
    assert kubectl.output("expose", "deployment/web", "--port=80", "--name=other").endswith("exposed")
    assert kubectl.output("autoscale", "deployment/web", "--max=3", "--cpu=50%").endswith("autoscaled")
    assert kubectl.output("replace", "--force", "-f", "-", manifest=DEPLOYMENT).endswith("replaced")


def test_cordon_and_drain_work_and_drain_honours_budgets(kubectl: Kubectl) -> None:
    assert kubectl.output("cordon", "n2") == "node/n2 cordoned"
    assert kubectl("get", "nodes").rows[2][1] == "Ready,SchedulingDisabled"
    assert kubectl.output("uncordon", "n2") == "node/n2 uncordoned"
    refused = kubectl("drain", "n1")
    assert "cannot delete Pods that declare no controller (use --force to override): default/bound" in refused.err
    kubectl.output("create", "pdb", "keep", "--selector=app=bound", "--min-available=1")
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/keep/status"
    call(kubectl.server, "PATCH", path, {"status": status}, MERGE)
    held = kubectl("drain", "n1", "--force", "--timeout=2s")
    assert "Cannot evict pod as it would violate the pod's disruption budget" in held.err
    kubectl.output("delete", "pdb", "keep")
    # No kubelet runs that would stop the pod. Without a grace period the API server deletes it at once.
    assert kubectl.output("drain", "n1", "--force", "--grace-period=0").endswith("node/n1 drained")
    assert kubectl("get", "pod", "bound").code == 1


def test_wait_and_rollout_status_react_to_status_changes(kubectl: Kubectl) -> None:
    late = kubectl("wait", "--for=condition=Ready", "pod/big", "--timeout=1s")
    assert late.err.strip() == "error: timed out waiting for the condition on pods/big"
    condition = {"type": "Ready", "status": "True"}
    call(kubectl.server, "PATCH", f"{PODS}/big/status", {"status": {"conditions": [condition]}}, MERGE)
    assert kubectl.output("wait", "--for=condition=Ready", "pod/big", "--timeout=5s") == "pod/big condition met"
    kubectl.output("apply", "-f", "-", manifest=DEPLOYMENT)
    waiting = kubectl("rollout", "status", "deployment/web", "--timeout=1s")
    assert "Waiting for deployment spec update to be observed" in waiting.out
    status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}
    path = "/apis/apps/v1/namespaces/default/deployments/web/status"
    call(kubectl.server, "PATCH", path, {"status": status}, MERGE)
    assert kubectl.output("rollout", "status", "deployment/web") == 'deployment "web" successfully rolled out'


def test_explain_api_resources_version_and_auth_work(kubectl: Kubectl) -> None:
    assert "FIELD: nodeName <string>" in kubectl.output("explain", "pod.spec.nodeName")
    assert "-required-" in kubectl.output("explain", "deployment.spec")
    rows = {row[0] for row in kubectl("api-resources", "--no-headers").rows}
    assert {"pods", "nodes", "deployments", "resourceclaims", "customresourcedefinitions"} <= rows
    assert "apps/v1" in kubectl.output("api-versions").splitlines()
    assert "Server Version: v1.36.3" in kubectl.output("version")
    assert kubectl.output("get", "--raw", "/readyz") == "ok"
    assert kubectl.output("auth", "can-i", "create", "pods") == "yes"


def test_delete_waits_until_objects_are_deleted(kubectl: Kubectl) -> None:
    kubectl.output("apply", "-f", "-", manifest=DEPLOYMENT)
    output = kubectl.output("delete", "-f", "-", manifest=DEPLOYMENT)
    assert output.splitlines() == [
        'deployment.apps "web" deleted from default namespace',
        'service "web" deleted from default namespace',
    ]
    assert kubectl.output("delete", "pod", "bound", "--now", "--wait=false").startswith('pod "bound" deleted')
    assert kubectl.output("get", "pod", "bound", "--no-headers").split()[2] == "Terminating"
    kubectl("delete", "pod", "bound", "--force", "--grace-period=0")
    assert kubectl.output("delete", "pods", "--all").startswith('pod "big" deleted')
    assert kubectl("get", "pods").err.strip() == "No resources found in default namespace."
