"""helm with `bayplan up`: the life of a release of the chart that `helm create` writes, including its test."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster_programs.bayplan_processes import BayplanUp, bayplan_up
from tests.cluster_programs.programs import program
from tests.cluster_programs.test_workloads import NODES, Session

TIMEOUT = ("--timeout", "60s")

HOOK = """
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": before-hook-creation}
spec:
  template:
    spec: {restartPolicy: OnFailure, containers: [{name: migrate, image: "migrate:1"}]}
"""


class Helm:
    """helm with the kubeconfig of a running cluster and a chart.

    Attributes:
        kubectl: for the same cluster.
        chart: folder of the chart.
    """

    def __init__(self, up: BayplanUp, folder: Path) -> None:
        self._program = program("helm")
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(up.kubeconfig),
            **{f"HELM_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")},
        }
        self.kubectl = Session(up, folder)
        self.chart = folder / "shop"

    def __call__(self, *arguments: str) -> str:
        """Run a command that must succeed, and return its output."""
        command = [self._program, *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=self._environment,
            cwd=self.chart.parent,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def read(self, *arguments: str) -> Any:
        """Return the output of a command as JSON."""
        return json.loads(self(*arguments, "--output", "json"))

    def replicas(self) -> int:
        """Return the number of ready pods of the release."""
        return int(self.kubectl("get", "deployment/web-shop", "-o", "jsonpath={.status.readyReplicas}"))


@pytest.fixture
def helm(tmp_path: Path) -> Iterator[Helm]:
    program("helm")
    with bayplan_up(tmp_path / "up", "--run-time", "1s") as up:
        session = Helm(up, tmp_path)
        session.kubectl("create", "-f", "-", manifest=NODES)
        yield session


def test_a_release_is_installed_tested_upgraded_rolled_back_and_uninstalled(helm: Helm) -> None:
    assert helm("create", "shop").strip() == "Creating shop"
    (helm.chart / "templates" / "migrate.yaml").write_text(HOOK)
    assert helm.read("install", "web", "shop", "--wait", *TIMEOUT)["info"]["status"] == "deployed"
    assert helm.kubectl("get", "job/migrate", "-o", "jsonpath={.status.succeeded}") == "1", "the hook has run first"
    assert helm.replicas() == 1
    assert "Phase:          Succeeded" in helm("test", "web", *TIMEOUT)
    upgraded = helm.read("upgrade", "web", "shop", "--set", "replicaCount=3", "--wait", *TIMEOUT)
    assert (upgraded["version"], helm.replicas()) == (2, 3)
    helm("rollback", "web", "1", "--wait", *TIMEOUT)
    assert helm.replicas() == 1
    assert [(each["revision"], each["status"]) for each in helm.read("history", "web")] == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "deployed"),
    ]
    assert [(each["name"], each["revision"]) for each in helm.read("list")] == [("web", "3")]
    assert helm("uninstall", "web", "--wait", *TIMEOUT).strip() == 'release "web" uninstalled'
    assert helm.read("list") == []
    assert helm.kubectl.names("deployments,replicasets,serviceaccounts", "-l", "app.kubernetes.io/instance=web") == []
    assert helm.kubectl.names("services") == ["service/kubernetes"]


def test_a_server_dry_run_changes_nothing(helm: Helm) -> None:
    helm("create", "shop")
    assert "kind: Deployment" in helm("install", "web", "shop", "--dry-run=server")
    assert helm.kubectl.names("deployments,secrets") == []


def test_an_atomic_upgrade_that_never_becomes_ready_is_rolled_back(helm: Helm) -> None:
    helm("create", "shop")
    helm("install", "web", "shop", "--wait", *TIMEOUT)
    with pytest.raises(AssertionError, match="has been rolled back due to atomic being set"):
        helm("upgrade", "web", "shop", "--set", "resources.requests.cpu=100", "--atomic", "--timeout", "10s")
    assert [each["status"] for each in helm.read("history", "web")] == ["superseded", "failed", "deployed"]
    assert helm.replicas() == 1
