"""`bayplan schedule` on a real kube-apiserver: pods, preemptions, killed leaders; a dry run next to the real scheduler."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from bayplan.plugins.pod_claims import SELECTED_NODE
from tests.apiserver.serving import Document, wait_until
from tests.cluster_programs.programs import program
from tests.cluster_programs.real_cluster import RealCluster, real_cluster
from tests.cluster_programs.test_kube_scheduler import condition, node, pod
from tests.live.schedule_process import bayplan_schedule

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
DEPLOY = Path(__file__).resolve().parents[2] / "examples" / "deploy"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/bayplan/serviceaccounts",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/bayplan/roles",
    "RoleBinding": f"{RBAC}/namespaces/bayplan/rolebindings",
}
NODES, COUNT, PREEMPTORS = 100, 1000, 20
ALONE = ("--no-leader-elect", "--kube-api-qps", "1000", "--kube-api-burst", "1000")
PATIENCE = 180.0
SIZES = (("250m", "512Mi"), ("500m", "1Gi"), ("250m", "512Mi"), ("1", "2Gi"))


@contextlib.contextmanager
def cluster(folder: Path, *, scheduler: bool = False, nodes: int = NODES, cpu: str = "32") -> Iterator[RealCluster]:
    """Run a control plane with nodes that are ready."""
    with real_cluster(folder / "cluster", scheduler=scheduler) as found:
        for number in range(nodes):
            found.ask("POST", "/api/v1/nodes", node(f"node-{number}", cpu))
            # No other component runs that would remove the taint of a new node.
            patch: Document = {"spec": {"taints": None}}
            found.ask("PATCH", f"/api/v1/nodes/node-{number}", patch, "application/merge-patch+json")
        for name, value in (("low", 10), ("high", 1000)):
            path = "/apis/scheduling.k8s.io/v1/priorityclasses"
            found.ask("POST", path, {"metadata": {"name": name}, "value": value})
        yield found


def create(on: RealCluster, documents: list[Document]) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda document: on.ask("POST", PODS, document), documents))


def placed(on: RealCluster) -> dict[str, str]:
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in on.items(PODS)}


def events(on: RealCluster, reason: str) -> list[Document]:
    return [each for each in on.items(EVENTS) if each["reason"] == reason]


def test_schedule_binds_a_thousand_pods(tmp_path: Path) -> None:
    with cluster(tmp_path) as real, bayplan_schedule(real.kubeconfig, tmp_path / "log", *ALONE) as process:
        process.wait_for("scheduling")
        create(real, [pod(f"pod-{number}", *SIZES[number % 4]) for number in range(COUNT)])
        wait_until(lambda: all(placed(real).values()), PATIENCE)
        wait_until(lambda: len(events(real, "Scheduled")) == COUNT, PATIENCE)
        found = real.items(PODS)
        assert {condition(each, "PodScheduled")["status"] for each in found} == {"True"}
        assert len(set(placed(real).values())) == NODES
        reported = {each["regarding"]["name"]: each for each in events(real, "Scheduled")}
        for each in found:
            name = each["metadata"]["name"]
            assert reported[name]["note"] == f"Successfully assigned default/{name} to {each['spec']['nodeName']}"
            assert reported[name]["regarding"]["uid"] == each["metadata"]["uid"]
            assert (reported[name]["action"], reported[name]["reportingController"]) == ("Binding", "default-scheduler")
        assert process.end() == 0


def test_schedule_goes_on_after_the_database_is_lost(tmp_path: Path) -> None:
    """A new etcd starts at revision 1, so that watches from the previous revision would wait for a long time."""
    with cluster(tmp_path, nodes=2) as real, bayplan_schedule(real.kubeconfig, tmp_path / "log", *ALONE) as process:
        process.wait_for("scheduling")
        create(real, [pod(f"pod-{number}") for number in range(150)])
        wait_until(lambda: len(events(real, "Scheduled")) == 150, PATIENCE)
        real.kill("kube-apiserver", "etcd")
        shutil.rmtree(real.folder / "etcd")
        real.start()
        real.ask("POST", "/api/v1/nodes", node("new", "4"))
        real.ask("PATCH", "/api/v1/nodes/new", {"spec": {"taints": None}}, "application/merge-patch+json")
        create(real, [pod("after")])
        wait_until(lambda: placed(real) == {"after": "new"}, PATIENCE)
        assert any("older than" in line for line in process.lines)
        assert process.end() == 0


def test_schedule_notices_an_api_server_that_hangs(tmp_path: Path) -> None:
    with cluster(tmp_path, nodes=1) as real, bayplan_schedule(real.kubeconfig, tmp_path / "log", *ALONE) as process:
        process.wait_for("scheduling")
        real.pause("kube-apiserver")
        wait_until(lambda: any("/api/v1/pods" in line and "does not respond" in line for line in process.lines), 90)
        real.resume("kube-apiserver")
        create(real, [pod("after")])
        wait_until(lambda: placed(real) == {"after": "node-0"}, PATIENCE)
        assert process.end() == 0


def test_schedule_preempts_twenty_pods(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, nodes=PREEMPTORS, cpu="2") as real,
        bayplan_schedule(real.kubeconfig, tmp_path / "log", *ALONE) as process,
    ):
        process.wait_for("scheduling")
        low = [
            pod(f"low-{n}", "2", priorityClassName="low", terminationGracePeriodSeconds=0) for n in range(PREEMPTORS)
        ]
        create(real, low)
        wait_until(lambda: all(placed(real).values()), PATIENCE)
        create(real, [pod(f"high-{n}", "2", priorityClassName="high") for n in range(PREEMPTORS)])
        wait_until(lambda: len(events(real, "Preempted")) == PREEMPTORS, PATIENCE)
        wait_until(lambda: sum(map(bool, placed(real).values())) == PREEMPTORS, PATIENCE)
        found = placed(real)
        assert sorted(found) == sorted(f"high-{n}" for n in range(PREEMPTORS))
        assert len(set(found.values())) == PREEMPTORS
        victims = {each["regarding"]["name"] for each in events(real, "Preempted")}
        assert victims == {each["metadata"]["name"] for each in low}
        assert all("nominatedNodeName" not in each["status"] for each in real.items(PODS))


def test_a_preempted_pod_gets_a_disruption_target_condition_before_deletion(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, nodes=1, cpu="2") as real,
        bayplan_schedule(real.kubeconfig, tmp_path / "log", *ALONE) as process,
    ):
        process.wait_for("scheduling")
        create(real, [pod("low", "2", priorityClassName="low")])
        wait_until(lambda: all(placed(real).values()), PATIENCE)
        create(real, [pod("high", "2", priorityClassName="high")])
        wait_until(lambda: bool(events(real, "Preempted")), PATIENCE)
        by_name = {each["metadata"]["name"]: each for each in real.items(PODS)}
        assert "deletionTimestamp" in by_name["low"]["metadata"]
        reported = condition(by_name["low"], "DisruptionTarget")
        assert reported["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
        assert by_name["high"]["status"]["nominatedNodeName"] == "node-0"
        assert condition(by_name["high"], "PodScheduled")["message"] == "0/1 nodes are available: 1 Insufficient cpu."
        real.ask("DELETE", f"{PODS}/low", {"gracePeriodSeconds": 0})
        wait_until(lambda: placed(real).get("high") == "node-0", PATIENCE)


@pytest.mark.parametrize("scheduler", ["kube-scheduler", "bayplan"])
def test_a_victim_that_waits_for_its_volume_returns_to_the_queue(scheduler: str, tmp_path: Path) -> None:
    with (
        cluster(tmp_path, scheduler=scheduler != "bayplan", nodes=1, cpu="2") as real,
        contextlib.ExitStack() as running,
    ):
        if scheduler == "bayplan":
            running.enter_context(bayplan_schedule(real.kubeconfig, tmp_path / "log", *ALONE)).wait_for("scheduling")
        # No provisioner creates the volume.
        late = {"provisioner": "example.com/none", "volumeBindingMode": "WaitForFirstConsumer"}
        real.ask("POST", "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "late"}, **late})
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"metadata": {"name": "data"}, "spec": {**wanted, "storageClassName": "late"}}
        real.ask("POST", CLAIMS, claim)
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        create(real, [pod("low", "2", priorityClassName="low", volumes=volumes)])
        wait_until(lambda: SELECTED_NODE in real.items(CLAIMS)[0]["metadata"].get("annotations", {}), PATIENCE)
        create(real, [pod("high", "2", priorityClassName="high")])
        wait_until(lambda: placed(real).get("high") == "node-0", PATIENCE)
        low, high = (real.ask("GET", f"{PODS}/{name}") for name in ("low", "high"))
        assert "deletionTimestamp" not in low["metadata"]
        assert condition(low, "DisruptionTarget") == {}
        [preempted] = events(real, "Preempted")
        uid = high["metadata"]["uid"]
        assert preempted["note"] == f"Preempted by pod {uid} on node node-0 (in kube-scheduler memory)."
        canceled = 'running PreBind plugin "VolumeBinding": preempted by DefaultPreemption'
        wait_until(lambda: canceled in [each["note"] for each in events(real, "FailedScheduling")], PATIENCE)
        wait_until(
            lambda: condition(real.ask("GET", f"{PODS}/low"), "PodScheduled")["reason"] == "Unschedulable", PATIENCE
        )


def test_a_standby_takes_over_when_the_leader_is_killed(tmp_path: Path) -> None:
    quick = ("--kube-api-qps", "1000", "--kube-api-burst", "1000")
    with cluster(tmp_path, nodes=20) as real, contextlib.ExitStack() as processes:
        first = processes.enter_context(bayplan_schedule(real.kubeconfig, tmp_path / "first", *quick))
        first.wait_for("leading")
        second = processes.enter_context(bayplan_schedule(real.kubeconfig, tmp_path / "second", *quick))
        second.wait_for("waiting for the lease")
        with ThreadPoolExecutor(1) as background:
            creating = background.submit(create, real, [pod(f"pod-{number}") for number in range(COUNT)])
            # Kill the leader in the middle of its work: neither requests under way nor waiting pods may be lost.
            wait_until(lambda: sum(map(bool, placed(real).values())) > COUNT // 20, PATIENCE)
            first.end(signal.SIGKILL)
            creating.result()
        wait_until(lambda: all(placed(real).values()), PATIENCE)
        assert "leading" in second.lines
        spec = real.ask("GET", LEASE)["spec"]
        assert (spec["leaseTransitions"], spec["leaseDurationSeconds"]) == (1, 15)
        load = Counter(placed(real).values())
        assert max(load.values()) <= 110
        assert second.end() == 0
        assert real.ask("GET", LEASE)["spec"]["holderIdentity"] == ""


def test_schedule_continues_after_an_api_server_restart(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, nodes=10) as real,
        bayplan_schedule(real.kubeconfig, tmp_path / "log", *ALONE) as process,
    ):
        process.wait_for("scheduling")
        create(real, [pod(f"before-{number}") for number in range(100)])
        wait_until(lambda: all(placed(real).values()), PATIENCE)
        # When the server is killed, some of these pods are bound, some bindings are under way, and some pods are only
        # known.
        with ThreadPoolExecutor(1) as background:
            creating = background.submit(create, real, [pod(f"cut-{number}") for number in range(300)])
            wait_until(lambda: len(placed(real)) > 150, PATIENCE)
            real.kill("kube-apiserver", "etcd")
            with pytest.raises((OSError, AssertionError)):
                creating.result()
        real.start()
        create(real, [pod(f"after-{number}") for number in range(100)])
        wait_until(lambda: all(placed(real).values()), PATIENCE)
        assert max(Counter(placed(real).values()).values()) <= 110
        assert process.end() == 0


class GuardedCluster(RealCluster):
    """A control plane that forbids everything that no role allows."""

    def run(self, name: str, *options: str) -> None:
        super().run(name, *("RBAC" if each == "AlwaysAllow" else each for each in options))


def test_the_example_roles_grant_all_required_permissions(tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver"):
        program(name)
    real = GuardedCluster(tmp_path / "cluster")
    try:
        real.start()
        config = tmp_path / "config.yaml"
        for file in sorted(DEPLOY.glob("*.yaml")):
            for document in yaml.safe_load_all(file.read_text()):
                if document["kind"] == "ConfigMap":
                    config.write_text(document["data"]["config.yaml"])
                elif document["kind"] != "Deployment":
                    real.ask("POST", COLLECTIONS[document["kind"]], document)
        account = "/api/v1/namespaces/bayplan/serviceaccounts/bayplan-scheduler"
        token = real.ask("POST", f"{account}/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]
        guarded = json.loads(real.kubeconfig.read_text())
        guarded["users"][0]["user"] = {"token": token}
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(json.dumps(guarded))
        real.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        real.ask("POST", "/api/v1/nodes", node("node-0", "2"))
        real.ask("PATCH", "/api/v1/nodes/node-0", {"spec": {"taints": None}}, "application/merge-patch+json")
        with bayplan_schedule(kubeconfig, tmp_path / "log", "--config", str(config)) as process:
            process.wait_for("scheduling")
            own: dict[str, Any] = {"schedulerName": "bayplan", "terminationGracePeriodSeconds": 0}
            create(real, [pod("low", "2", **own)])
            wait_until(lambda: all(placed(real).values()), PATIENCE)
            create(real, [pod("high", "2", priorityClassName="high", **own)])
            wait_until(lambda: placed(real) == {"high": "node-0"}, PATIENCE)
            for reason in ("Preempted", "FailedScheduling"):
                wait_until(lambda reason=reason: bool(events(real, reason)), PATIENCE)  # type: ignore[misc]
            wait_until(lambda: len(events(real, "Scheduled")) == 2, PATIENCE)
            assert process.end() == 0
            # Requests that RBAC forbids would be in the log.
            assert not any("forbidden" in line for line in process.lines), process.lines
            lease = "/apis/coordination.k8s.io/v1/namespaces/bayplan/leases/bayplan-scheduler"
            assert real.ask("GET", lease)["spec"]["holderIdentity"] == ""
    finally:
        real.kill()


@pytest.mark.parametrize("count", [COUNT])
def test_a_dry_run_agrees_with_the_real_scheduler_and_writes_nothing(count: int, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    with (
        cluster(tmp_path, scheduler=True) as real,
        bayplan_schedule(real.kubeconfig, tmp_path / "log", "--dry-run", "--report", str(report)) as process,
    ):
        process.wait_for("watching")
        create(real, [pod(f"pod-{number}", *SIZES[number % 4]) for number in range(count)])
        create(real, [pod("large", "64")])
        wait_until(lambda: sum(map(bool, placed(real).values())) == count, PATIENCE)
        wait_until(lambda: any(each["regarding"]["name"] == "large" for each in events(real, "FailedScheduling")))
        assert process.end() == 0, process.lines
        verdicts = [msgspec.json.decode(line) for line in report.read_bytes().splitlines()]
        assert sum(bool(verdict["node"]) for verdict in verdicts) == count
        assert all(verdict["agrees"] and verdict["same_message"] for verdict in verdicts)
        assert process.lines[-1].startswith(f"{count:,} of {count:,} placed pods went to one of Bayplan's best nodes")
        # The dry run has written nothing: other managers own all managed fields of the pods.
        managers = {entry["manager"] for each in real.items(PODS) for entry in each["metadata"]["managedFields"]}
        assert managers <= {"Python-urllib", "kube-scheduler"}
        assert {each["reportingInstance"].rpartition("-")[0] for each in events(real, "Scheduled")} != {""}
