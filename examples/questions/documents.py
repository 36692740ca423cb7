"""Documents of Kubernetes objects for the cluster of docs/questions.md."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
DRAW = random.Random("questions nodes")

# Pool: nodes of each zone, instance type, cores, GiB, GPUs, taints.
POOLS: dict[str, tuple[tuple[int, int, int], str, int, int, int, list[Document]]] = {
    "general": ((9, 9, 9), "m6i.2xlarge", 8, 32, 0, []),
    "memory": ((3, 3, 3), "r6i.2xlarge", 8, 64, 0, []),
    "gpu": (
        (3, 3, 0),
        "g5.4xlarge",
        16,
        64,
        1,
        [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
    ),
    "spot": ((4, 4, 4), "m5.xlarge", 4, 16, 0, [{"key": "spot", "value": "true", "effect": "NoSchedule"}]),
    "arm": ((2, 2, 2), "m7g.xlarge", 4, 16, 0, [{"key": "arch", "value": "arm64", "effect": "NoSchedule"}]),
}


def digest(*parts: object) -> str:
    """Return eight letters and digits that depend only on the arguments."""
    number, letters = zlib.crc32(repr(parts).encode()) + (1 << 32), "bcdfghjklmnpqrstvwxz2456789"
    found = ""
    while len(found) < 8:
        number, place = divmod(number * 7 + 11, len(letters))
        found += letters[place]
    return found


def uid_of(kind: str, namespace: str, name: str) -> str:
    """Return the uid of an object."""
    numbers = random.Random(f"{kind} {namespace}/{name}").getrandbits(128)
    text = f"{numbers:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def make(kind: str, name: str, namespace: str = "", **parts: Any) -> Document:
    """Return an object; `labels` and `owner` (an object) become part of its metadata."""
    versions = {
        "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
        "Job": "batch/v1", "PodDisruptionBudget": "policy/v1", "StorageClass": "storage.k8s.io/v1",
        "PriorityClass": "scheduling.k8s.io/v1",
    }  # fmt: skip
    metadata: Document = {
        "name": name,
        "uid": uid_of(kind, namespace, name),
        "creationTimestamp": parts.pop("created", "2026-01-12T09:00:00Z"),
    }
    if namespace:
        metadata["namespace"] = namespace
    if labels := parts.pop("labels", None):
        metadata["labels"] = labels
    if owner := parts.pop("owner", None):
        above = owner["metadata"]
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": above["name"],
                "uid": above["uid"],
                "controller": True,
            }
        ]
    return {"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": metadata, **parts}


def container(cpu: str, memory: str, *, image: str = "app:v1", gpus: int = 0, port: int = 0) -> Document:
    """Return a container with requests."""
    requests = {"cpu": cpu, "memory": memory} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    found: Document = {"name": "main", "image": f"registry.example/{image}", "resources": {"requests": requests}}
    if gpus:
        found["resources"]["limits"] = {"nvidia.com/gpu": str(gpus)}
    if port:
        found["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
    return found


def spread(app: str, key: str = "topology.kubernetes.io/zone", *, hard: bool = False) -> list[Document]:
    """Return topology spread constraints over the pods of an app."""
    action = "DoNotSchedule" if hard else "ScheduleAnyway"
    return [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": {"matchLabels": {"app": app}}}
    ]


def near(app: str, key: str, *, apart: bool) -> Document:
    """Return a required pod affinity, or anti-affinity."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"podAntiAffinity" if apart else "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def dump(items: list[Document]) -> str:
    """Return objects as a List, as kubectl prints them, with one object per line."""
    lines = ",\n".join(json.dumps(item, separators=(",", ":")) for item in items)
    return f'{{"apiVersion":"v1","kind":"List","items":[\n{lines}\n]}}\n'


def nodes() -> Iterator[Document]:
    """Yield the nodes; one is cordoned, and one has stopped reporting."""
    for pool, (counts, instance, cores, memory, gpus, taints) in POOLS.items():
        for zone_number, (zone, count) in enumerate(zip(ZONES, counts, strict=True)):
            for number in range(count):
                address = f"ip-10-{40 + zone_number}-{DRAW.randrange(256)}-{DRAW.randrange(4, 251)}"
                name = f"{address}.eu-west-1.compute.internal"
                labels = {
                    "kubernetes.io/arch": "arm64" if pool == "arm" else "amd64",
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "node.kubernetes.io/instance-type": instance,
                    "eks.amazonaws.com/nodegroup": pool,
                    "topology.kubernetes.io/region": "eu-west-1",
                    "topology.kubernetes.io/zone": zone,
                }
                capacity = {"cpu": str(cores), "memory": f"{memory}Gi", "ephemeral-storage": "80Gi", "pods": "58"}
                allocatable = {
                    **capacity,
                    "cpu": f"{cores * 1000 - 90}m",
                    "memory": f"{memory * 1024 - 1100}Mi",
                    "ephemeral-storage": "72Gi",
                }
                if gpus:
                    capacity["nvidia.com/gpu"] = allocatable["nvidia.com/gpu"] = str(gpus)
                found = make("Node", name, labels=labels, spec={"providerID": f"aws:///{zone}/i-{digest(name)}"})
                own = list(taints)
                if pool == "memory" and zone == "eu-west-1c" and number == 1:
                    found["spec"]["unschedulable"] = True
                    own.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
                dead = pool == "general" and zone == "eu-west-1b" and number == 4
                if dead:
                    own += [
                        {"key": "node.kubernetes.io/unreachable", "effect": effect, "timeAdded": "2026-03-09T08:21:00Z"}
                        for effect in ("NoSchedule", "NoExecute")
                    ]
                if own:
                    found["spec"]["taints"] = own
                ready = {
                    "type": "Ready",
                    "status": "Unknown" if dead else "True",
                    "reason": "NodeStatusUnknown" if dead else "KubeletReady",
                }
                found["status"] = {"capacity": capacity, "allocatable": allocatable, "conditions": [ready]}
                yield found


def named(pool: str, zone: str, number: int, among: list[Document]) -> str:
    """Return the name of a node in a pool and a zone, by its number."""
    wanted = {"eks.amazonaws.com/nodegroup": pool, "topology.kubernetes.io/zone": zone}
    found = [each["metadata"]["name"] for each in among if wanted.items() <= each["metadata"]["labels"].items()]
    return str(found[number])
