"""Bayplan syncs from a real cluster with a real kube-scheduler: all policies, kills, recordings, two targets."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.apiserver.serving import Document, wait_until
from tests.cluster_programs.bayplan_processes import BayplanUp, bayplan_up, bayplan_verb, start_bayplan
from tests.cluster_programs.real_cluster import RealCluster, real_cluster

PATIENCE = 60.0
PODS = "/api/v1/namespaces/default/pods"
CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/data"
MERGE = "application/merge-patch+json"
MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    score:
      disabled: [{name: PodTopologySpread}, {name: NodeResourcesBalancedAllocation}]
"""


def node(name: str) -> Document:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, **spec: object) -> Document:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "none-here", "controller": True}
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def add_nodes(source: RealCluster, count: int) -> None:
    """Add ready nodes, without the taint of new nodes: no controller runs that would remove it."""
    for number in range(count):
        source.ask("POST", "/api/v1/nodes", node(f"n{number}"))
        source.ask("PATCH", f"/api/v1/nodes/n{number}", {"spec": {"taints": None}}, MERGE)


def add_pods(source: RealCluster, *names: str, **spec: object) -> None:
    """Add pods, and wait until the source's scheduler has bound them."""
    for name in names:
        source.ask("POST", PODS, pod(name, **spec))
    wait_until(lambda: all(nodes_of(source).get(name) for name in names), PATIENCE)


def nodes_of(cluster: RealCluster | BayplanUp) -> dict[str, str]:
    """Return the node of each pod, "" without one."""
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in cluster.items(PODS)}


def wait_until_synced(what: Callable[[], bool]) -> None:
    """Wait until a condition about synced objects holds."""
    wait_until(what, PATIENCE)


def sync_words(source: RealCluster, here: BayplanUp) -> tuple[str, ...]:
    return ("sync", "--from", str(source.kubeconfig), "--to", str(here.kubeconfig), "--qps", "-1")


def test_new_source_pods_are_scheduled_by_the_target_configuration(tmp_path: Path) -> None:
    (tmp_path / "most.yaml").write_text(MOST_ALLOCATED)
    with real_cluster(tmp_path / "source", scheduler=True) as source:
        add_nodes(source, 6)
        add_pods(source, *(f"before-{number}" for number in range(12)))
        ran = nodes_of(source)
        with bayplan_up(tmp_path / "here", "--config", str(tmp_path / "most.yaml")) as here:
            log = tmp_path / "sync.log"
            with bayplan_verb(log, *sync_words(source, here)):
                wait_until_synced(lambda: nodes_of(here) == ran)

                later = [f"later-{number}" for number in range(24)]
                add_pods(source, *later)
                wait_until_synced(lambda: all(nodes_of(here).get(name) for name in later))
                there, decided = nodes_of(source), nodes_of(here)
                # The target packs the pods on one node after the other. The source spreads them over all nodes.
                assert len({decided[name] for name in later}) < len({there[name] for name in later})
                assert {name: decided[name] for name in ran} == ran
                seen = here.ask("GET", "/bayplan/v1/pods/default/later-0")
                assert [each["outcome"] for each in seen["attempts"]] == ["scheduled"], "decided here, and recorded"

                found = next(each for each in here.items(PODS) if each["metadata"]["name"] == "later-0")
                # Default spreading counts pods by their controller, which exists only in the source.
                assert found["metadata"]["ownerReferences"] == pod("later-0")["metadata"]["ownerReferences"]
                assert "serviceAccountName" not in found["spec"]

                source.ask("PATCH", f"{PODS}/later-0", {"metadata": {"labels": {"new": "label"}}}, MERGE)
                here.ask("DELETE", f"{PODS}/later-1", {"gracePeriodSeconds": 0})
                source.ask("PATCH", f"{PODS}/later-1", {"metadata": {"labels": {"new": "label"}}}, MERGE)
                source.ask("PATCH", f"{PODS}/later-2/status", {"status": {"phase": "Succeeded"}}, MERGE)
                source.ask("DELETE", f"{PODS}/later-3", {"gracePeriodSeconds": 0})
                source.ask("PATCH", "/api/v1/nodes/n0", {"spec": {"unschedulable": True}}, MERGE)
                source.ask("PATCH", "/api/v1/nodes/n1/status", {"status": {"allocatable": {"cpu": "6"}}}, MERGE)
                wait_until_synced(lambda: "later-3" not in nodes_of(here))
                wait_until_synced(lambda: here.ask("GET", "/api/v1/nodes/n0")["spec"].get("unschedulable") is True)
                wait_until_synced(lambda: here.ask("GET", "/api/v1/nodes/n1")["status"]["allocatable"]["cpu"] == "6")
                wait_until_synced(lambda: here.ask("GET", f"{PODS}/later-2")["status"]["phase"] == "Succeeded")
                assert "new" not in here.ask("GET", f"{PODS}/later-0")["metadata"]["labels"]
                assert "later-1" not in nodes_of(here), "it was deleted here"


def test_an_imported_volume_references_the_target_claim_uid(tmp_path: Path) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "pv"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {**spec, "resources": {"requests": {"storage": "1Gi"}}},
    }
    with real_cluster(tmp_path / "source") as source, bayplan_up(tmp_path / "here") as here:
        made = source.ask("POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim)
        reference = {"namespace": "default", "name": "data", "uid": made["metadata"]["uid"]}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/data"},
                "claimRef": reference,
            },
        }
        source.ask("POST", "/api/v1/persistentvolumes", volume)
        words = ("--from", str(source.kubeconfig), "--to", str(here.kubeconfig))
        subprocess.run([sys.executable, "-m", "bayplan", "import", *words, "--strict"], check=True)
        claim_here = here.ask("GET", "/api/v1/namespaces/default/persistentvolumeclaims/data")
        bound = here.ask("GET", "/api/v1/persistentvolumes/pv")["spec"]["claimRef"]
        assert bound["uid"] == claim_here["metadata"]["uid"] != reference["uid"]


def disk_class() -> Document:
    """Return a class whose volumes are provisioned once their first pod has a node."""
    header: Document = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disks"}}
    return {**header, "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer"}


def disk_claim() -> Document:
    """Return a claim of that class."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "disks"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {**spec, "resources": {"requests": {"storage": "1Gi"}}},
    }


def bind_disk(source: RealCluster) -> None:
    """Make the volume of the claim in the source, and bind it, as provisioner and controllers do."""
    claim = source.ask("GET", CLAIM)
    reference = {"namespace": "default", "name": "data", "uid": claim["metadata"]["uid"]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pvc-there", "annotations": {"pv.kubernetes.io/provisioned-by": "example.com/disks"}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "storageClassName": "disks",
            "claimRef": reference,
        },
    }
    source.ask("POST", "/api/v1/persistentvolumes", volume)
    bound = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    source.ask("PATCH", CLAIM, {"metadata": {"annotations": bound}, "spec": {"volumeName": "pvc-there"}}, MERGE)
    source.ask("PATCH", f"{CLAIM}/status", {"status": {"phase": "Bound"}}, MERGE)


def test_target_decisions_and_changes_survive_source_updates(tmp_path: Path) -> None:
    with real_cluster(tmp_path / "source", scheduler=True) as source, bayplan_up(tmp_path / "here") as here:
        add_nodes(source, 3)
        source.ask("POST", "/apis/storage.k8s.io/v1/storageclasses", disk_class())
        source.ask("POST", CLAIM.rpartition("/")[0], disk_claim())
        with bayplan_verb(tmp_path / "first.log", *sync_words(source, here)):
            wait_until_synced(lambda: len(here.items("/api/v1/nodes")) == 3)
            disk = {"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}
            source.ask("POST", PODS, pod("web", volumes=[disk]))
            wait_until_synced(lambda: bool(nodes_of(here).get("web")))
            bind_disk(source)
            add_pods(source, "last")
            wait_until_synced(lambda: bool(nodes_of(here).get("last")))
            found = here.ask("GET", "/api/v1/nodes/n0")
            here.ask("PUT", "/api/v1/nodes/n0", {**found, "spec": {**found.get("spec", {}), "unschedulable": True}})
        source.ask("PATCH", "/api/v1/nodes/n0", {"metadata": {"labels": {"new": "label"}}}, MERGE)
        with bayplan_verb(tmp_path / "second.log", *sync_words(source, here)):
            wait_until_synced(
                lambda: here.ask("GET", "/api/v1/nodes/n0")["metadata"].get("labels", {}).get("new") == "label"
            )
            assert here.ask("GET", "/api/v1/nodes/n0")["spec"]["unschedulable"] is True
            claim = here.ask("GET", CLAIM)
            assert claim["status"]["phase"] == "Bound"
            assert claim["spec"]["volumeName"] == f"pvc-{claim['metadata']['uid']}"
            assert [each["metadata"]["name"] for each in here.items("/api/v1/persistentvolumes")] == [
                claim["spec"]["volumeName"]
            ]
            status = here.ask("GET", "/api/v1/namespaces/bayplan-sync/configmaps/status")
            assert status["data"]["problems"] == ""


def test_sync_loses_nothing_when_source_follower_and_simulator_are_killed(tmp_path: Path) -> None:
    with real_cluster(tmp_path / "source", scheduler=True) as source, bayplan_up(tmp_path / "here") as here:
        add_nodes(source, 4)
        add_pods(source, *(f"before-{number}" for number in range(8)))
        ran = nodes_of(source)
        log = tmp_path / "sync.log"
        follower = start_bayplan(log, *sync_words(source, here))
        try:
            wait_until_synced(lambda: nodes_of(here) == ran)
            here.ask("DELETE", f"{PODS}/before-0", {"gracePeriodSeconds": 0})

            # Kill the simulator while the sync is writing to it.
            for number in range(10):
                source.ask("POST", PODS, pod(f"first-{number}"))
            here.kill()
            source.ask("DELETE", f"{PODS}/before-1", {"gracePeriodSeconds": 0})
            here.start()
            left = {f"before-{number}" for number in range(2, 8)} | {f"first-{number}" for number in range(10)}
            wait_until_synced(lambda: set(nodes_of(here)) == left)

            # Kill the sync.
            follower.kill()
            follower.wait()
            here.ask("DELETE", f"{PODS}/before-2", {"gracePeriodSeconds": 0})
            source.ask("DELETE", f"{PODS}/before-3", {"gracePeriodSeconds": 0})
            add_pods(source, *(f"second-{number}" for number in range(5)))
            follower = start_bayplan(log, *sync_words(source, here))
            wait_until_synced(lambda: len(nodes_of(here)) == 16 - 2 + 5)

            # Kill the source.
            source.kill()
            time.sleep(1)
            source.start()
            source.start_scheduler()
            add_pods(source, *(f"third-{number}" for number in range(5)))
            wait_until_synced(lambda: len(nodes_of(here)) == 19 + 5)

            there = nodes_of(source)
            assert set(nodes_of(here)) == set(there) - {"before-0", "before-2"}
            kept = {name: node_name for name, node_name in nodes_of(here).items() if name.startswith("before")}
            assert kept == {name: ran[name] for name in kept}
            wait_until_synced(lambda: all(nodes_of(here).values()))
        except BaseException:
            print(log.read_text()[-3000:])
            raise
        finally:
            follower.kill()
            follower.wait()


def test_a_recording_of_a_real_cluster_replays_to_the_same_pods(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl.gz"
    with real_cluster(tmp_path / "source", scheduler=True) as source:
        add_nodes(source, 4)
        add_pods(source, "before")
        record = ("record", str(tape), "--from", str(source.kubeconfig), "--redact", "--qps", "-1")
        with bayplan_verb(tmp_path / "record.log", *record):
            wait_until_synced(lambda: "changes" in (tmp_path / "record.log").read_text())
            add_pods(source, "one", "two", "three")
            source.ask("DELETE", f"{PODS}/two", {"gracePeriodSeconds": 0})
            time.sleep(1.5)
        left, ran = set(nodes_of(source)), nodes_of(source)["before"]
    with bayplan_up(tmp_path / "here") as here:
        words = ("replay", str(tape), "--to", str(here.kubeconfig), "--speed", "20")
        subprocess.run([sys.executable, "-m", "bayplan", *words], check=True, stdin=subprocess.DEVNULL)
        wait_until_synced(lambda: set(nodes_of(here)) == left and all(nodes_of(here).values()))
        assert nodes_of(here)["before"] == ran


def test_two_simulators_with_different_schedulers_sync_one_source(tmp_path: Path) -> None:
    (tmp_path / "most.yaml").write_text(MOST_ALLOCATED)
    with (
        real_cluster(tmp_path / "source", scheduler=True) as source,
        bayplan_up(tmp_path / "a") as a,
        bayplan_up(tmp_path / "b", "--config", str(tmp_path / "most.yaml")) as b,
    ):
        add_nodes(source, 4)
        with (
            bayplan_verb(tmp_path / "sync-a.log", *sync_words(source, a)),
            bayplan_verb(tmp_path / "sync-b.log", *sync_words(source, b)),
        ):
            wait_until_synced(lambda: all(len(each.items("/api/v1/nodes")) == 4 for each in (a, b)))
            names = [f"p{number}" for number in range(16)]
            add_pods(source, *names)
            wait_until_synced(lambda: all(nodes_of(each).get(name) for each in (a, b) for name in names))
            one, other = nodes_of(a), nodes_of(b)
            differ = [name for name in names if one[name] != other[name]]
            assert len(set(one.values())) > len(set(other.values()))
            reported = a.ask("GET", f"/bayplan/v1/compare?a=now&b={b.url}&limit=200")
            assert sorted(each["pod"] for each in reported["items"]) == sorted(f"default/{name}" for name in differ)


def test_imported_running_pods_are_not_restarted_and_end_with_their_source_pods(tmp_path: Path) -> None:
    with real_cluster(tmp_path / "source", scheduler=True) as source, bayplan_up(tmp_path / "here") as here:
        add_nodes(source, 3)
        names = [f"runs-{number}" for number in range(20)]
        add_pods(source, *names)
        started = "2026-01-01T00:00:00Z"
        for name in names:
            source.ask("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running", "startTime": started}}, MERGE)
        words = ("--from", str(source.kubeconfig), "--to", str(here.kubeconfig), "--qps", "-1")
        subprocess.run([sys.executable, "-m", "bayplan", "import", *words, "--strict"], check=True)
        assert nodes_of(here) == nodes_of(source)
        assert {(each["status"]["phase"], each["status"]["startTime"]) for each in here.items(PODS)} == {
            ("Running", started)
        }
        managers = {entry["manager"] for each in here.items(PODS) for entry in each["metadata"]["managedFields"]}
        assert managers == {"bayplan-sync"}, "nobody else has written to them"
        reasons = {each["reason"] for each in here.items("/api/v1/events") if each["involvedObject"]["kind"] == "Pod"}
        assert not reasons

        with bayplan_verb(tmp_path / "sync.log", *sync_words(source, here)):
            source.ask("PATCH", f"{PODS}/runs-0/status", {"status": {"phase": "Succeeded"}}, MERGE)
            source.ask("DELETE", f"{PODS}/runs-1", {"gracePeriodSeconds": 0})
            wait_until_synced(lambda: here.ask("GET", f"{PODS}/runs-0")["status"]["phase"] == "Succeeded")
            wait_until_synced(lambda: "runs-1" not in nodes_of(here))
            running = here.ask("GET", "/bayplan/v1/nodes")["items"]
            assert sum(each["pods"] for each in running) == len(names) - 2, "their room is free"
