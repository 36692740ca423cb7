"""`bayplan schedule` on our own API: placements, evictions, a killed leader, probes, metrics, and a parallel dry run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import yaml

from bayplan.apiserver.http.kubeconfig import write_kubeconfig
from bayplan.apiserver.http.server import ApiServer
from tests.apiserver.serving import ask, call, serving, wait_until
from tests.live.schedule_process import ScheduleProcess, bayplan_schedule

Document = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
ALONE = ("--no-leader-elect", "--kube-api-qps", "-1")
QUICK_LEASE = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}


def node(name: str, cpu: str = "8") -> Document:
    capacity = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    status = {"capacity": capacity, "allocatable": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(name: str, cpu: str = "100m", **spec: object) -> Document:
    container = {"name": "c", "image": "pause:3.10", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def priority_class(name: str, value: int) -> Document:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def pods(server: ApiServer) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in call(server, "GET", PODS)["items"]}


def placed(server: ApiServer) -> dict[str, str]:
    return {name: each["spec"].get("nodeName", "") for name, each in pods(server).items()}


def notes(server: ApiServer, reason: str) -> dict[str, str]:
    events = call(server, "GET", EVENTS)["items"]
    return {each["regarding"]["name"]: each["note"] for each in events if each["reason"] == reason}


def _answer_to_a_long_header(url: str) -> bytes:
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), 30) as opened:
        with contextlib.suppress(ConnectionError):
            opened.sendall(b"GET /livez HTTP/1.1\r\nX: " + b"x" * 2_000_000)
        return opened.recv(100)


def condition(of: Document, kind: str) -> Document:
    found: list[Document] = [each for each in of["status"].get("conditions") or [] if each["type"] == kind]
    return found[0] if found else {}


@contextlib.contextmanager
def cluster(folder: Path, *documents: Document) -> Iterator[tuple[ApiServer, Path]]:
    """Serve nodes and other documents, without a scheduler."""
    with serving(documents) as server:
        path = folder / "kubeconfig"
        write_kubeconfig(path, server.kubeconfig())
        yield server, path


def configuration(folder: Path, **election: object) -> Path:
    path = folder / "config.yaml"
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path.write_text(yaml.safe_dump({**header, "leaderElection": election}))
    return path


def metrics(process: ScheduleProcess) -> dict[str, float]:
    status, body = ask(f"{process.url}/metrics")
    assert status == 200
    lines = (line.rpartition(" ") for line in body.decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def test_schedule_binds_pods_and_reports_events_conditions_and_metrics(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, node("a"), node("b")) as (server, kubeconfig),
        bayplan_schedule(kubeconfig, tmp_path / "log", *ALONE) as process,
    ):
        process.wait_for("scheduling")
        for number in range(40):
            call(server, "POST", PODS, pod(f"p{number}"))
        call(server, "POST", PODS, pod("large", cpu="9"))
        call(server, "POST", PODS, pod("theirs", schedulerName="other"))
        wait_until(lambda: sum(map(bool, placed(server).values())) == 40)
        wait_until(lambda: len(notes(server, "Scheduled")) == 40 and len(notes(server, "FailedScheduling")) == 1)
        wait_until(lambda: bool(condition(pods(server)["large"], "PodScheduled")))
        found = placed(server)
        assert (found.pop("large"), found.pop("theirs")) == ("", "")
        assert set(found.values()) == {"a", "b"}
        assert notes(server, "Scheduled")["p0"] == f"Successfully assigned default/p0 to {found['p0']}"
        reported = condition(pods(server)["large"], "PodScheduled")
        assert (reported["status"], reported["reason"]) == ("False", "Unschedulable")
        assert reported["message"] == notes(server, "FailedScheduling")["large"]
        assert reported["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
        measured = metrics(process)
        attempts = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="%s"}'
        assert (measured[attempts % "scheduled"], measured[attempts % "unschedulable"]) == (40, 1)
        assert measured['scheduler_pending_pods{queue="unschedulable"}'] == 1
        assert measured['scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"}'] == 1
        assert measured['scheduler_cache_size{type="nodes"}'] == 2
        assert measured['scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"}'] == 40
        for path in ("healthz", "livez", "readyz", "readyz/sched-handler-sync"):
            assert ask(f"{process.url}/{path}") == (200, b"ok")
        assert b"[+]leaderElection ok" in ask(f"{process.url}/livez?verbose")[1]
        assert _answer_to_a_long_header(process.url).startswith(b"HTTP/1.1 431")
        assert process.end() == 0


def test_schedule_goes_on_although_nobody_reads_its_output(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    with cluster(tmp_path, node("a")) as (server, kubeconfig):
        command = [sys.executable, "-m", "bayplan", "schedule", "--kubeconfig", str(kubeconfig), "--port", "0", *ALONE]
        with subprocess.Popen(command, stdout=writing, stderr=writing) as process:
            try:
                call(server, "POST", PODS, pod("p"))
                wait_until(lambda: placed(server)["p"] == "a")
                process.terminate()
                assert process.wait(30) == 0
            finally:
                process.kill()
    os.close(reading)
    os.close(writing)


def test_schedule_preempts_a_lower_priority_pod(tmp_path: Path) -> None:
    classes = (priority_class("low", 10), priority_class("high", 1000))
    low = [pod(f"low{number}", cpu="4", nodeName="a", priorityClassName="low") for number in range(2)]
    with (
        cluster(tmp_path, node("a"), *classes, *low) as (server, kubeconfig),
        bayplan_schedule(kubeconfig, tmp_path / "log", *ALONE) as process,
    ):
        process.wait_for("scheduling")
        call(server, "POST", PODS, pod("vip", cpu="4", priorityClassName="high"))
        wait_until(lambda: len(notes(server, "Preempted")) == 1)
        [victim] = notes(server, "Preempted")
        gone = pods(server)[victim]
        assert "deletionTimestamp" in gone["metadata"]
        assert condition(gone, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
        wait_until(lambda: pods(server)["vip"]["status"].get("nominatedNodeName") == "a")
        call(server, "DELETE", f"{PODS}/{victim}", {"gracePeriodSeconds": 0})
        wait_until(lambda: placed(server)["vip"] == "a")
        # The API clears the nomination on binding.
        assert "nominatedNodeName" not in pods(server)["vip"]["status"]


def local_volume() -> list[dict[str, Any]]:
    """Return a class that waits for pods, a volume of it on node b, and a claim for it."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "local": {"path": "/x"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
        "status": {"phase": "Available"},
    }  # fmt: skip
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"},
        "spec": {
            "storageClassName": "local", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        },
    }  # fmt: skip
    return [storage_class, volume, claim]


CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLAIM_VOLUMES = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]


def test_a_pod_with_an_unbound_claim_is_nominated_until_the_volume_is_bound(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, node("a"), node("b"), *local_volume()) as (server, kubeconfig),
        bayplan_schedule(kubeconfig, tmp_path / "log", *ALONE) as process,
    ):
        process.wait_for("scheduling")
        call(server, "POST", PODS, pod("p", volumes=CLAIM_VOLUMES))
        path = "/api/v1/persistentvolumes/v"
        wait_until(lambda: "claimRef" in call(server, "GET", path)["spec"])
        reference = call(server, "GET", path)["spec"]["claimRef"]
        assert (reference["name"], reference["uid"]) == ("c", call(server, "GET", f"{CLAIMS}/c")["metadata"]["uid"])
        assert call(server, "GET", path)["spec"]["local"] == {"path": "/x"}
        wait_until(lambda: pods(server)["p"]["status"].get("nominatedNodeName") == "b")
        assert placed(server)["p"] == ""
        bound = {"spec": {"volumeName": "v"}, "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
        call(server, "PATCH", f"{CLAIMS}/c", bound, "application/merge-patch+json")
        wait_until(lambda: placed(server)["p"] == "b")


def test_a_pod_waits_for_its_volumes_as_long_as_configured(tmp_path: Path) -> None:
    profile = {"pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 1}}]}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile],
    }  # fmt: skip
    config = tmp_path / "scheduler.json"
    config.write_text(json.dumps(document))
    with (
        cluster(tmp_path, node("a"), node("b"), *local_volume()) as (server, kubeconfig),
        bayplan_schedule(kubeconfig, tmp_path / "log", *ALONE, "--config", str(config)) as process,
    ):
        process.wait_for("scheduling")
        call(server, "POST", PODS, pod("p", volumes=CLAIM_VOLUMES))
        want = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
        wait_until(
            lambda: want in [each.get("message") for each in pods(server)["p"]["status"].get("conditions", ())], 60.0
        )


def test_an_extended_resource_request_creates_a_resource_claim(tmp_path: Path) -> None:
    api = "resource.k8s.io/v1"
    selector = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}
    device_class = {
        "apiVersion": api, "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [selector], "extendedResourceName": "example.com/gpu"},
    }  # fmt: skip
    resource_slice = {
        "apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": "slice"},
        "spec": {
            "driver": "gpu.example.com", "nodeName": "b", "devices": [{"name": "gpu-0"}],
            "pool": {"name": "b", "generation": 1, "resourceSliceCount": 1},
        },
    }  # fmt: skip
    with (
        cluster(tmp_path, node("a"), node("b"), device_class, resource_slice) as (server, kubeconfig),
        bayplan_schedule(kubeconfig, tmp_path / "log", *ALONE) as process,
    ):
        process.wait_for("scheduling")
        wanting = pod("p")
        amounts = {"cpu": "1", "example.com/gpu": "1"}
        wanting["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        call(server, "POST", PODS, wanting)
        wait_until(lambda: placed(server)["p"] == "b")
        reported = pods(server)["p"]["status"]["extendedResourceClaimStatus"]
        mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-1"}
        assert reported["requestMappings"] == [mapping]
        path = f"/apis/{api}/namespaces/default/resourceclaims/{reported['resourceClaimName']}"
        claim = call(server, "GET", path)
        assert [each["device"] for each in claim["status"]["allocation"]["devices"]["results"]] == ["gpu-0"]
        assert [each["name"] for each in claim["status"]["reservedFor"]] == ["p"]
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


def test_a_standby_takes_over_when_the_leader_is_killed(tmp_path: Path) -> None:
    config = configuration(tmp_path, leaderElect=True, **QUICK_LEASE)
    options = ("--config", str(config), "--kube-api-qps", "-1")
    with cluster(tmp_path, node("a")) as (server, kubeconfig), contextlib.ExitStack() as processes:
        first = processes.enter_context(bayplan_schedule(kubeconfig, tmp_path / "first", *options))
        first.wait_for("leading")
        second = processes.enter_context(bayplan_schedule(kubeconfig, tmp_path / "second", *options))
        second.wait_for("waiting for the lease")
        call(server, "POST", PODS, pod("before"))
        wait_until(lambda: placed(server)["before"] == "a")
        assert not any(line == "leading" for line in second.lines)
        first.end(signal.SIGKILL)
        call(server, "POST", PODS, pod("after"))
        wait_until(lambda: placed(server)["after"] == "a")
        spec = call(server, "GET", LEASE)["spec"]
        assert spec["leaseTransitions"] == 1
        assert f"waiting for the lease kube-system/kube-scheduler as {spec['holderIdentity']}" in second.lines
        assert metrics(second)['leader_election_master_status{name="kube-scheduler"}'] == 1
        assert second.end() == 0
        # Released at the end, so that the next one need not wait.
        assert call(server, "GET", LEASE)["spec"]["holderIdentity"] == ""


def test_a_leader_exits_when_it_loses_the_lease(tmp_path: Path) -> None:
    config = configuration(tmp_path, leaderElect=True, **QUICK_LEASE)
    with (
        cluster(tmp_path, node("a")) as (server, kubeconfig),
        bayplan_schedule(kubeconfig, tmp_path / "log", "--config", str(config)) as process,
    ):
        process.wait_for("scheduling")
        stolen = {"spec": {"holderIdentity": "somebody else", "leaseDurationSeconds": 600}}
        call(server, "PATCH", LEASE, stolen, "application/merge-patch+json")
        assert process.process.wait(60) == 1
        assert process.lines[-1] == "the lease was lost"


def test_a_parallel_dry_run_agrees_and_writes_nothing(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    with (
        cluster(tmp_path, *(node(f"n{number}") for number in range(5))) as (server, kubeconfig),
        contextlib.ExitStack() as both,
    ):
        watching = both.enter_context(
            bayplan_schedule(kubeconfig, tmp_path / "dry", "--dry-run", "--report", str(report))
        )
        watching.wait_for("watching")
        working = both.enter_context(bayplan_schedule(kubeconfig, tmp_path / "log", *ALONE))
        working.wait_for("scheduling")
        for number in range(60):
            call(server, "POST", PODS, pod(f"p{number:02}", cpu="500m" if number % 3 else "1"))
        wait_until(lambda: len(notes(server, "FailedScheduling")) + sum(map(bool, placed(server).values())) == 60)
        assert working.end() == 0
        assert watching.end() == 0
        controllers = {each["reportingController"] for each in call(server, "GET", EVENTS)["items"]}
        assert controllers == {"default-scheduler"}
    assert watching.lines[-1].startswith(f"{sum(map(bool, placed_in(report)))} of ")
    verdicts = [msgspec.json.decode(line) for line in report.read_bytes().splitlines()]
    assert all(verdict["agrees"] for verdict in verdicts)
    assert {verdict["pod"] for verdict in verdicts} == {f"default/p{number:02}" for number in range(60)}


def placed_in(report: Path) -> list[str]:
    return [msgspec.json.decode(line)["node"] for line in report.read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        pytest.param(("--report", "x"), "--report needs --dry-run", id="a report without a dry run"),
        pytest.param(
            ("--port", "1", "--listen", "203.0.113.1"), "--listen and --port", id="an address of another server"
        ),
        pytest.param(("--context", "other"), "other", id="a context that does not exist"),
        pytest.param(("--kube-api-qps", "nan"), "--kube-api-qps: expected a finite number, got nan", id="no number"),
        pytest.param(("--kube-api-burst", "0"), "--kube-api-burst: expected a positive number", id="an empty burst"),
        pytest.param(
            ("--dry-run", "--kube-api-burst", "0"),
            "--kube-api-burst: expected a positive number",
            id="an empty burst of a dry run",
        ),
        pytest.param(
            ("--dry-run", "--leader-elect"),
            "--leader-elect can't be combined with --dry-run",
            id="a lease of a dry run",
        ),
        pytest.param(("--dry-run", "--port", "1"), "--port can't be combined with", id="probes of a dry run"),
        pytest.param(("--plugin-deadline", "inf"), "--plugin-deadline: expected a positive", id="an endless deadline"),
        pytest.param(("--port", "-7"), "--port: expected a port from 0", id="a negative port"),
    ],
)
def test_invalid_schedule_options_are_refused(options: tuple[str, ...], want: str, tmp_path: Path) -> None:
    with (
        cluster(tmp_path) as (_, kubeconfig),
        bayplan_schedule(kubeconfig, tmp_path / "log", *options) as process,
    ):
        assert process.process.wait(60) == 2
        assert want in process.lines[-1]


def test_an_api_server_that_starts_later_is_awaited(tmp_path: Path) -> None:
    with cluster(tmp_path) as (first, kubeconfig):
        port = urlsplit(first.url).port or 0
    with bayplan_schedule(kubeconfig, tmp_path / "log", *ALONE) as process:
        wait_until(lambda: any("retrying" in line for line in process.lines))
        expected = re.compile(r"bayplan\.app API server .* does not respond: Get .*refused; retrying$")
        assert any(map(expected.search, process.lines))
        assert ask(f"{process.url}/livez") == (200, b"ok")
        assert ask(f"{process.url}/readyz")[0] == 500
        with serving([node("a")], at=port) as server:
            process.wait_for("scheduling")
            call(server, "POST", PODS, pod("p"))
            wait_until(lambda: placed(server)["p"] == "a")
            assert sum("retrying" in line for line in process.lines) == 1
            assert process.end() == 0


def test_a_process_that_waits_for_the_api_server_ends_with_code_0(tmp_path: Path) -> None:
    with cluster(tmp_path) as (_, kubeconfig):
        pass
    with bayplan_schedule(kubeconfig, tmp_path / "log") as process:
        wait_until(lambda: any("retrying" in line for line in process.lines))
        assert process.end() == 0


def test_rejected_credentials_are_refused(tmp_path: Path) -> None:
    with serving(token="secret") as server:
        path = tmp_path / "kubeconfig"
        document = server.kubeconfig()
        document["users"][0]["user"] = {"token": "wrong"}
        write_kubeconfig(path, document)
        with bayplan_schedule(path, tmp_path / "log") as process:
            assert process.process.wait(60) == 2
            assert "refuses access" in process.lines[-1]
