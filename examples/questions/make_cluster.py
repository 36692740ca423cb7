"""Write the cluster of docs/questions.md: 60 nodes in three zones, about 700 pods of five teams, some of them pending.

The output is a dump as `kubectl get ... -A -o json` prints it, always the same:

    python examples/questions/make_cluster.py > cluster.json

The cluster is fictitious. Bayplan itself placed the pods, except those that are pending on purpose.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from documents import ZONES, Document, container, digest, dump, make, named, near, nodes, spread, uid_of

from bayplan import Cluster

NOW = "2026-03-09T08:30:00Z"
DRAW = random.Random("questions pods")
GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
SPOT = {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
EVERYWHERE = {"operator": "Exists"}
POOL, ZONE = "eks.amazonaws.com/nodegroup", "topology.kubernetes.io/zone"
TEAMS = ("catalog", "checkout", "data", "ml", "search")


class World:
    """The objects so far; the scheduler places the pods, except those that are pending on purpose."""

    def __init__(self) -> None:
        self.objects: list[Document] = []
        self.pods: list[Document] = []
        self.waiting: list[Document] = []

    def pod(
        self, owner: Document, name: str, spec: Document, labels: dict[str, str], *, waits: bool, priority: int = 0
    ) -> Document:
        """Add a pod of a workload and return it."""
        namespace = owner["metadata"]["namespace"]
        created = (
            f"2026-03-09T0{DRAW.randrange(6, 8)}:{DRAW.randrange(60):02d}:00Z"
            if waits
            else f"2026-02-{DRAW.randrange(1, 28):02d}T11:{DRAW.randrange(60):02d}:00Z"
        )
        spec = {"schedulerName": "default-scheduler", "priority": priority, "restartPolicy": "Always", **spec}
        found = make("Pod", name, namespace, labels=labels, owner=owner, created=created, spec=spec)
        (self.waiting if waits else self.pods).append(found)
        return found

    def deployment(
        self,
        team: str,
        app: str,
        count: int,
        spec: Document,
        *,
        waiting: int = 0,
        budget: int | None = None,
        **more: Any,
    ) -> None:
        """Add a Deployment with its ReplicaSet, `count` running pods and `waiting` pending ones."""
        labels = {"app": app, "team": team}
        template = {"metadata": {"labels": labels}, "spec": spec}
        wanted = count + waiting + more.get("refused", 0)
        body = {"replicas": wanted, "selector": {"matchLabels": {"app": app}}, "template": template}
        status = {"replicas": count + waiting, "readyReplicas": count, "availableReplicas": count}
        top = make("Deployment", app, team, labels=labels, spec=body, status=status)
        mark = digest(team, app)
        hashed = {**labels, "pod-template-hash": mark}
        inner = {
            **body,
            "selector": {"matchLabels": hashed},
            "template": {"metadata": {"labels": hashed}, "spec": spec},
        }
        middle = make("ReplicaSet", f"{app}-{mark}", team, labels=hashed, owner=top, spec=inner, status=status)
        self.objects += [top, middle]
        if budget is not None:
            selector = {"matchLabels": {"app": app}}
            allowed = {
                "disruptionsAllowed": budget,
                "currentHealthy": count,
                "desiredHealthy": count - budget,
                "expectedPods": count,
            }
            self.objects.append(
                make(
                    "PodDisruptionBudget",
                    app,
                    team,
                    spec={"maxUnavailable": budget, "selector": selector},
                    status=allowed,
                )
            )
        for number in range(count + waiting):
            name = f"{app}-{mark}-{digest(app, number)[:5]}"
            self.pod(middle, name, spec, hashed, waits=number >= count, priority=more.get("priority", 0))

    def stateful_set(
        self, team: str, app: str, zones: list[str], spec: Document, *, size: str, waiting: int = 0, budget: bool = True
    ) -> None:
        """Add a StatefulSet whose pods have volumes in zones; the last pods are pending."""
        labels = {"app": app, "team": team}
        claim = {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "gp3",
                "resources": {"requests": {"storage": size}},
            },
        }
        body = {
            "replicas": len(zones),
            "serviceName": app,
            "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
            "volumeClaimTemplates": [claim],
        }
        ready = len(zones) - waiting
        top = make(
            "StatefulSet", app, team, labels=labels, spec=body, status={"replicas": len(zones), "readyReplicas": ready}
        )
        self.objects.append(top)
        if budget:
            allowed = {
                "disruptionsAllowed": 1 if not waiting else 0,
                "currentHealthy": ready,
                "desiredHealthy": len(zones) - 1,
                "expectedPods": len(zones),
            }
            self.objects.append(
                make(
                    "PodDisruptionBudget",
                    app,
                    team,
                    spec={"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
                    status=allowed,
                )
            )
        for number, zone in enumerate(zones):
            name = f"{app}-{number}"
            own = {**spec, "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]}
            self.pod(top, name, own, {**labels, "apps.kubernetes.io/pod-index": str(number)}, waits=number >= ready)
            if zone:
                self.volume(team, f"data-{name}", size, {"topology.kubernetes.io/zone": zone})
            else:
                self.objects.append(
                    make("PersistentVolumeClaim", f"data-{name}", team, spec=claim["spec"], status={"phase": "Pending"})
                )

    def volume(self, team: str, claim: str, size: str, where: dict[str, str]) -> None:
        """Add a bound volume with its claim."""
        name = f"pvc-{uid_of('volume', team, claim)}"
        terms = [
            {"matchExpressions": [{"key": key, "operator": "In", "values": [text]} for key, text in where.items()]}
        ]
        reference = {
            "kind": "PersistentVolumeClaim",
            "namespace": team,
            "name": claim,
            "uid": uid_of("PersistentVolumeClaim", team, claim),
        }
        local = "kubernetes.io/hostname" in where
        kind: Document = (
            {"local": {"path": "/mnt/nvme0"}}
            if local
            else {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{digest(claim)}"}}
        )
        storage = "local-nvme" if local else "gp3"
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage,
            "claimRef": reference,
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            **kind,
        }
        self.objects.append(make("PersistentVolume", name, spec=spec, status={"phase": "Bound"}))
        wanted = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage,
            "volumeName": name,
            "resources": {"requests": {"storage": size}},
        }
        bound = make(
            "PersistentVolumeClaim", claim, team, spec=wanted, status={"phase": "Bound", "capacity": {"storage": size}}
        )
        bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        self.objects.append(bound)

    def daemon_set(self, team: str, app: str, among: list[Document], spec: Document, *, priority: int) -> None:
        """Add a DaemonSet with one pod on each of these nodes."""
        labels = {"app": app}
        body = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}
        top = make("DaemonSet", app, team, labels=labels, spec=body, status={"desiredNumberScheduled": len(among)})
        self.objects.append(top)
        for node in among:
            name = node["metadata"]["name"]
            field = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]
            pinned = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": field}}}
            own = {**spec, "affinity": pinned, "nodeName": name}
            self.pod(top, f"{app}-{digest(app, name)[:5]}", own, labels, waits=False, priority=priority)

    def job(
        self,
        team: str,
        app: str,
        spec: Document,
        *,
        priority: int = 0,
        waits: bool,
        runs: str = "",
    ) -> None:
        """Add a Job with one pod; `runs` is the pod's run time."""
        labels = {"app": app, "team": team}
        spec = {**spec, "restartPolicy": "Never"}
        body = {"completions": 1, "parallelism": 1, "template": {"metadata": {"labels": labels}, "spec": spec}}
        top = make("Job", app, team, labels=labels, created="2026-03-09T06:00:00Z", spec=body, status={"active": 1})
        self.objects.append(top)
        own = {
            **labels,
            "batch.kubernetes.io/job-name": app,
            "batch.kubernetes.io/controller-uid": top["metadata"]["uid"],
        }
        pod = self.pod(top, f"{app}-{digest(app)[:5]}", spec, own, waits=waits, priority=priority)
        pod["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
        if runs:
            pod["metadata"] |= {
                "annotations": {"bayplan.io/run-time": runs},
                "creationTimestamp": "2026-03-09T07:40:00Z",
            }


def fixed_objects() -> Iterator[Document]:
    """Yield namespaces, priority classes, storage classes, quotas and limits."""
    for team in (*TEAMS, "platform", "kube-system"):
        yield make("Namespace", team, labels={"kubernetes.io/metadata.name": team})
    for name, value in (("batch-low", -100), ("business-critical", 10_000), ("system-node-critical", 2_000_001_000)):
        yield make("PriorityClass", name, value=value)
    topology = {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"}
    yield make("StorageClass", "gp3", provisioner="ebs.csi.aws.com", **topology)
    yield make("Service", "kubernetes", "default", spec={"ports": [{"port": 443}]})
    yield make("StorageClass", "local-nvme", provisioner="kubernetes.io/no-provisioner", **topology)
    hard = {"requests.cpu": "41", "requests.memory": "120Gi"}
    used = {"requests.cpu": "40", "requests.memory": "78080Mi"}
    yield make("ResourceQuota", "team", "catalog", spec={"hard": hard}, status={"hard": hard, "used": used})
    limits = [{"type": "Container", "defaultRequest": {"cpu": "100m", "memory": "128Mi"}, "max": {"memory": "48Gi"}}]
    yield make("LimitRange", "defaults", "search", spec={"limits": limits})


def spec(cpu: str, memory: str, **more: Any) -> Document:
    """Return the spec of a pod with one container."""
    return {"containers": [container(cpu, memory)], **more}


def running(world: World, all_nodes: list[Document]) -> None:
    """Add the running workloads, including replicas of them that are pending."""
    platform(world, all_nodes)
    shop(world)
    search(world)
    data_and_learning(world, named("general", "eu-west-1b", 4, all_nodes))


def platform(world: World, all_nodes: list[Document]) -> None:
    """Add the DaemonSets of the platform team on all nodes, and its Deployments."""
    plain, gpu = EVERYWHERE, [node for node in all_nodes if "nvidia.com/gpu" in node["status"]["capacity"]]
    critical = 2_000_001_000
    for app, cpu, memory in (("aws-node", "50m", "64Mi"), ("kube-proxy", "50m", "64Mi")):
        world.daemon_set(
            "kube-system",
            app,
            all_nodes,
            {"containers": [container(cpu, memory)], "tolerations": [plain], "hostNetwork": True},
            priority=critical,
        )
    world.daemon_set(
        "platform",
        "node-exporter",
        all_nodes,
        {"containers": [container("30m", "64Mi")], "tolerations": [plain]},
        priority=critical,
    )
    world.daemon_set(
        "kube-system",
        "nvidia-device-plugin",
        gpu,
        {"containers": [container("20m", "64Mi")], "tolerations": [plain], "nodeSelector": {POOL: "gpu"}},
        priority=critical,
    )

    world.deployment("kube-system", "coredns", 3, spec("100m", "170Mi"), priority=critical, budget=1)
    world.deployment(
        "platform",
        "edge-proxy",
        3,
        {"containers": [container("500m", "512Mi", port=8443)], "nodeSelector": {"node.example.com/edge": "true"}},
        waiting=1,
    )
    world.deployment("platform", "prometheus", 2, spec("2", "12Gi", nodeSelector={POOL: "memory"}), budget=1)


def shop(world: World) -> None:
    """Add the workloads of the teams checkout and catalog."""
    world.deployment(
        "checkout", "cart", 48, spec("900m", "1Gi", topologySpreadConstraints=spread("cart")), budget=4, priority=10_000
    )
    world.deployment(
        "checkout",
        "payments",
        30,
        spec("1100m", "2Gi", topologySpreadConstraints=spread("payments", hard=True)),
        budget=2,
        priority=10_000,
    )
    world.deployment("checkout", "receipts", 44, spec("160m", "512Mi"))
    world.stateful_set(
        "checkout",
        "ledger-db",
        [*ZONES, ""],
        spec("800m", "8Gi", affinity=near("ledger-db", ZONE, apart=True)),
        size="200Gi",
        waiting=1,
    )
    # The catalog has a quota: the last two thumbnailer pods are not even created.
    world.deployment("catalog", "web", 40, spec("500m", "1Gi", topologySpreadConstraints=spread("web")), budget=4)
    world.deployment("catalog", "thumbnailer", 18, spec("1100m", "2Gi"), refused=2)


def search(world: World) -> None:
    """Add the workloads of the team search."""
    world.deployment("search", "query", 32, spec("900m", "3Gi", topologySpreadConstraints=spread("query")), budget=3)
    world.deployment(
        "search",
        "query-cache",
        8,
        spec(
            "500m",
            "20Gi",
            nodeSelector={POOL: "memory"},
            topologySpreadConstraints=spread("query-cache", "kubernetes.io/hostname", hard=True),
        ),
        waiting=1,
        budget=1,
    )
    world.stateful_set(
        "search",
        "index",
        [ZONES[0], ZONES[1], "eu-west-1d"],
        spec("2", "16Gi", nodeSelector={POOL: "memory"}),
        size="500Gi",
        waiting=1,
    )
    world.deployment(
        "search", "suggest", 0, spec("400m", "1Gi", affinity=near("feature-store", ZONE, apart=False)), waiting=2
    )


def data_and_learning(world: World, dead: str) -> None:
    """Add the workloads of the teams data and ml; `dead` is the node that has stopped reporting."""
    world.stateful_set(
        "data",
        "kafka",
        [*ZONES],
        spec("1500m", "6Gi", affinity=near("kafka", "kubernetes.io/hostname", apart=True)),
        size="1Ti",
    )
    world.deployment("data", "ingest", 40, spec("400m", "768Mi"))
    world.deployment("data", "stream-worker", 60, spec("600m", "1Gi", tolerations=[SPOT], nodeSelector={POOL: "spot"}))
    world.deployment("data", "etl", 34, spec("600m", "2Gi"))
    local = {
        **spec("1", "4Gi"),
        "volumes": [{"name": "scratch", "persistentVolumeClaim": {"claimName": "scratch-compactor"}}],
    }
    world.volume("data", "scratch-compactor", "400Gi", {"kubernetes.io/hostname": dead})
    world.job("data", "compactor", local, waits=True)
    world.deployment(
        "ml", "inference", 5, {"containers": [container("6", "24Gi", gpus=1)], "tolerations": [GPU]}, budget=1
    )
    world.deployment(
        "ml",
        "features-arm",
        18,
        spec(
            "800m",
            "2Gi",
            tolerations=[{"key": "arch", "operator": "Exists"}],
            nodeSelector={"kubernetes.io/arch": "arm64"},
        ),
    )
    world.deployment("ml", "labelling", 102, spec("80m", "512Mi"))
    for number in range(5):
        world.job("ml", f"evaluate-{number}", spec("3200m", "4Gi"), waits=False, runs=f"{90 + 20 * number}m")


def waiting(world: World) -> None:
    """Add workloads of which all pods are pending."""

    world.job("ml", "train-ranker", {"containers": [container("8", "32Gi", gpus=1)]}, waits=True)
    world.job("ml", "finetune-7b", {"containers": [container("8", "32Gi", gpus=4)], "tolerations": [GPU]}, waits=True)
    world.job("data", "warehouse-rebuild", spec("6", "96Gi"), waits=True)
    world.job(
        "catalog", "firmware-check", spec("200m", "256Mi", nodeSelector={"kubernetes.io/arch": "riscv64"}), waits=True
    )
    world.job("data", "nightly-report", spec("3300m", "8Gi", priorityClassName="batch-low"), priority=-100, waits=True)
    missing = [{"name": "scratch", "persistentVolumeClaim": {"claimName": "reindex-scratch"}}]
    world.job("search", "reindex", spec("500m", "1Gi", volumes=missing), waits=True)
    world.job("data", "backfill", spec("500m", "1Gi", schedulingGates=[{"name": "example.com/approved"}]), waits=True)


def place(world: World, first: list[Document]) -> None:
    """Let the scheduler place the running pods, the most constrained first, and write nodes and status to the pods."""
    ended = {
        "metadata": {"name": "ended", "namespace": "data", "uid": "ended"},
        "apiVersion": "batch/v1",
        "kind": "Job",
    }
    # These pods make the scheduler leave room on some nodes, as after a batch job.
    short = spec("1700m", "8Gi", schedulerName="default-scheduler")
    gone = [make("Pod", f"ended-{number}", "data", owner=ended, spec=short) for number in range(5)]
    special = {"nodeSelector", "volumes", "affinity"}
    world.pods.sort(key=lambda pod: (not special & pod["spec"].keys(), pod["spec"]["restartPolicy"] != "Never"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        path.write_text(dump([*first, *world.objects, *gone, *world.pods]), encoding="utf-8")
        cluster = Cluster.load(str(path), seed=1)
    cluster.schedule()
    for pod in world.pods:
        metadata = pod["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        node = cluster.node_of(key)
        if node is None:
            raise SystemExit(f"{key} finds no node")
        pod["spec"]["nodeName"] = node
        pod["status"] = {
            "phase": "Running",
            "startTime": metadata["creationTimestamp"],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
    for pod in world.waiting:
        gated = "schedulingGates" in pod["spec"]
        reason = "SchedulingGated" if gated else "Unschedulable"
        pod["status"] = {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": reason}],
        }


def main() -> None:
    """Print the cluster as JSON."""
    all_nodes = list(nodes())
    for zone in ZONES:
        edge = named("general", zone, 0, all_nodes)
        next(each for each in all_nodes if each["metadata"]["name"] == edge)["metadata"]["labels"][
            "node.example.com/edge"
        ] = "true"
    world = World()
    running(world, all_nodes)
    waiting(world)
    first = [*fixed_objects(), *all_nodes]
    place(world, first)
    sys.stdout.write(dump([*first, *world.objects, *world.pods, *world.waiting]))


if __name__ == "__main__":
    main()
