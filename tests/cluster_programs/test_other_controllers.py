"""Controllers of other projects on `bayplan up`: descheduler, JobSet with its webhooks, KWOK.

`make other-controllers` builds them into the folder of the other programs. Tests whose program is missing are skipped.
"""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

from tests.apiserver.serving import wait_until
from tests.cluster_programs.bayplan_processes import PATIENCE_SECONDS, bayplan_up
from tests.cluster_programs.programs import program, running
from tests.cluster_programs.test_workloads import Session

HOOK_PORT = 19450


def node(name: str) -> str:
    """Return the manifest of a node."""
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    status = {"allocatable": resources, "capacity": resources}
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})


def nodes_of_pods(kubectl: Session) -> list[str]:
    """Return the nodes of all running pods."""
    items: Any = json.loads(kubectl("get", "pods", "-o", "json"))["items"]
    return sorted(each["spec"].get("nodeName", "") for each in items if each["status"].get("phase") == "Running")


def test_the_descheduler_spreads_replicas_over_a_new_node(tmp_path: Path) -> None:
    descheduler = program("descheduler")
    policy = tmp_path / "policy.yaml"
    plugins = {"balance": {"enabled": ["RemoveDuplicates"]}}
    configurations = [{"name": "DefaultEvictor"}, {"name": "RemoveDuplicates"}]
    profile = {"name": "p", "pluginConfig": configurations, "plugins": plugins}
    head = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
    policy.write_text(json.dumps({**head, "profiles": [profile]}))
    with bayplan_up(tmp_path / "up") as up:
        kubectl = Session(up, tmp_path)
        kubectl("create", "-f", "-", manifest=node("n1"))
        kubectl("create", "deployment", "web", "--image=web:1", "--replicas=4")
        kubectl.wait("deployment/web")
        assert nodes_of_pods(kubectl) == ["n1"] * 4
        kubectl("create", "-f", "-", manifest=node("n2"))
        command = [descheduler, "--kubeconfig", str(up.kubeconfig), "--policy-config-file", str(policy)]
        subprocess.run([*command, "--descheduling-interval=0", "--secure-port=0"], check=True, timeout=120)
        wait_until(lambda: nodes_of_pods(kubectl) == ["n1", "n1", "n2", "n2"], PATIENCE_SECONDS)


def test_kwok_runs_nodes_and_pods(tmp_path: Path) -> None:
    kwok, stages = program("kwok"), program("kwok-stages.yaml")
    with bayplan_up(tmp_path / "up", "--no-kubelet") as up:
        kubectl = Session(up, tmp_path)
        command = [kwok, "--kubeconfig", str(up.kubeconfig), "--config", stages, "--manage-all-nodes=true"]
        with running(tmp_path / "kwok.log", *command, "--server-address="):
            kubectl("create", "-f", "-", manifest=node("k1"))
            kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3")
            kubectl.wait("deployment/web")
            assert nodes_of_pods(kubectl) == ["k1"] * 3
            kubectl("delete", "deployment", "web")
            wait_until(lambda: nodes_of_pods(kubectl) == [], PATIENCE_SECONDS)


def test_a_job_set_completes_and_its_mutating_webhook_is_called(tmp_path: Path) -> None:
    jobset, manifests = program("jobset"), Path(program("jobset-manifests"))
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    names = "subjectAltName=DNS:webhook-service.system.svc"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=hook"]
    command += ["-addext", names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    configuration = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": HOOK_PORT, "certDir": str(tmp_path)},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(configuration))
    bundle = base64.b64encode(certificate.read_bytes()).decode()
    hooks = (
        (manifests / "webhooks.yaml").read_text().replace("clientConfig:\n", f"clientConfig:\n    caBundle: {bundle}\n")
    )
    service = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "webhook-service", "namespace": "system"}}
    service |= {"spec": {"ports": [{"port": 443}], "selector": {"a": "b"}}}
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": {"spec": pod}}
    replicated = {"name": "workers", "replicas": 2, "template": {"spec": job}}
    train = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"}}
    place = f"system/webhook-service=127.0.0.1:{HOOK_PORT}"
    with bayplan_up(tmp_path / "up", "--run-time", "1s", "--webhooks", place) as up:
        kubectl = Session(up, tmp_path)
        kubectl("create", "-f", "-", manifest=node("n1"))
        kubectl("create", "-f", str(manifests / "crd.yaml"))
        kubectl("create", "namespace", "system")
        kubectl("create", "-f", "-", manifest=json.dumps(service))
        command = [jobset, "-kubeconfig", str(up.kubeconfig), "-config", str(tmp_path / "config.yaml")]
        log = tmp_path / "jobset.log"
        with running(log, *command):
            wait_until(lambda: "Serving webhook server" in log.read_text(), PATIENCE_SECONDS)
            kubectl("create", "-f", "-", manifest=hooks)
            kubectl("create", "-f", "-", manifest=json.dumps({**train, "spec": {"replicatedJobs": [replicated]}}))
            kubectl("wait", "--for=condition=Completed", "jobset/train", "--timeout=60s")
            stored: Any = json.loads(kubectl("get", "jobset", "train", "-o", "json"))
            # The mutating webhook sets this default.
            defaults = stored["spec"]["replicatedJobs"][0]["template"]["spec"]
            assert defaults["completionMode"] == "Indexed"


def test_kubectl_top_shows_node_and_pod_usage(tmp_path: Path) -> None:
    program("kubectl")
    with bayplan_up(tmp_path / "up") as up:
        kubectl = Session(up, tmp_path)
        kubectl("create", "-f", "-", manifest=node("n1"))
        kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
        kubectl("set", "resources", "deployment/web", "--requests=cpu=250m,memory=64Mi")
        kubectl("rollout", "status", "deployment/web")
        wait_until(lambda: "500m" in kubectl("top", "nodes"), PATIENCE_SECONDS)
        assert kubectl("top", "pods", "--no-headers").count("64Mi") == 2
