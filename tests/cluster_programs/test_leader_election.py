"""The three recorded runs of leader election, repeated by `bayplan schedule`; the calls come from the audit log."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from bayplan.client.requests import USER_AGENT
from tests.cluster_programs.programs import program
from tests.cluster_programs.real_cluster import RealCluster
from tests.live.schedule_process import bayplan_schedule
from tests.live.test_leader_election import RECORDING, shape

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVENTS = "/api/v1/namespaces/kube-system/events"
METHODS = {"get": "GET", "create": "POST", "update": "PUT"}
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Request",
            "namespaces": ["kube-system"],
            "resources": [
                {"group": "coordination.k8s.io", "resources": ["leases"]},
                {"group": "", "resources": ["events"]},
            ],
        },
        {"level": "None"},
    ],
}


class AuditedCluster(RealCluster):
    """A control plane whose audit log contains the requests for leases and for the events about them."""

    def run(self, name: str, *options: str) -> None:
        policy = self.folder / "audit.json"
        policy.write_text(json.dumps(POLICY))
        audit = ("--audit-policy-file", str(policy), "--audit-log-path", str(self.folder / "audit.log"))
        super().run(name, *options, *(audit if name == "kube-apiserver" else ()))

    def audited(self) -> list[dict[str, Any]]:
        """Return the requests of Bayplan's schedulers, in the form of the recording."""
        found = []
        for line in (self.folder / "audit.log").read_text().splitlines():
            entry = json.loads(line)
            if entry["userAgent"] == USER_AGENT:
                found.append(
                    {
                        "method": METHODS[entry["verb"]],
                        "path": entry["requestURI"],
                        "status": entry["responseStatus"]["code"],
                        "body": entry.get("requestObject"),
                    }
                )
        return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[AuditedCluster]:
    for name in ("etcd", "kube-apiserver"):
        program(name)
    found = AuditedCluster(tmp_path / "cluster")
    try:
        found.start()
        yield found
    finally:
        found.kill()


def asked(calls: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    """Return the requests for leases; repeated ones (of a waiting candidate, or of the leader) only once."""
    rows = []
    for call in calls:
        if call["path"].startswith(LEASES):
            spec = (call["body"] or {}).get("spec")
            reported = (
                (bool(spec["holderIdentity"]), spec["leaseDurationSeconds"], spec["leaseTransitions"]) if spec else None
            )
            rows.append((call["method"], call["path"], call["status"], reported))
    return [row for row, _ in groupby(rows)]


def reported(calls: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    """Return the events about leases, without the parts that differ in each run."""
    found: list[tuple[object, ...]] = []
    for call in calls:
        if call["path"].startswith(EVENTS):
            body = call["body"]
            kept = {name: body[name] for name in ("reason", "type", "count", "source", "reportingComponent")}
            found.append((call["path"], call["status"], body["message"].rpartition(" became ")[2], json.dumps(kept)))
    return found


def test_leader_election_over_three_runs_sends_the_recorded_requests(cluster: AuditedCluster, tmp_path: Path) -> None:
    recorded = json.loads(RECORDING.read_text())
    [want] = [step["lease"] for step in recorded["steps"] if "lease" in step]
    seen: list[dict[str, Any]] = []

    def look() -> None:
        seen.append(cluster.ask("GET", f"{LEASES}/kube-scheduler")["spec"])

    with bayplan_schedule(cluster.kubeconfig, tmp_path / "first") as first:
        first.wait_for("scheduling")
        look()
        time.sleep(5)
        look()
        assert first.end() == 0
        look()
    with bayplan_schedule(cluster.kubeconfig, tmp_path / "second") as second:
        second.wait_for("scheduling")
        look()
        assert second.end(signal.SIGKILL) != 0
        look()
    with bayplan_schedule(cluster.kubeconfig, tmp_path / "third") as third:
        third.wait_for("leading")
        third.wait_for("scheduling")
        look()
        assert third.end() == 0
    assert [shape(spec) for spec in seen] == [shape(each["spec"]) for each in want]
    renewed, acquired = (
        datetime.fromisoformat(spec[name]) for spec, name in zip(seen[-2:], ("renewTime", "acquireTime"), strict=True)
    )
    assert acquired - renewed >= timedelta(seconds=seen[-1]["leaseDurationSeconds"]), "the lease had not expired"
    calls = cluster.audited()
    assert asked(calls) == asked(recorded["observed"]["calls"])
    assert reported(calls) == reported(recorded["observed"]["calls"])
