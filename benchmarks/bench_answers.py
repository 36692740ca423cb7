"""Questions about a large cluster: loading its dump, then unblock, capacity, nodes remove and what-if.

The dump is generated: pods as the API server prints them, with managed fields, of Deployments and DaemonSets, in three
zones and four pools; some pods are pending for different reasons. All seconds are CPU time. The hash is that of the
answers.
"""

from __future__ import annotations

import gc
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from bayplan.answers.capacity import Share, capacity
from bayplan.answers.changes import parse_change
from bayplan.answers.node_removal import nodes_to_remove
from bayplan.answers.what_if import what_if
from bayplan.app.question_clusters import question_cluster
from bayplan.app.sources.cluster_source import ClusterSource, SourceOptions
from bayplan.app.sources.opening import open_source
from bayplan.engine.records import RecordLevel
from bayplan.library import Cluster
from benchmarks import Figure

ZONES = ("a", "b", "c")
ZONE = "topology.kubernetes.io/zone"
POOLS = (("general", 8, 32, ""), ("memory", 8, 64, ""), ("gpu", 16, 64, "nvidia.com/gpu"), ("spot", 4, 16, "spot"))
SUBNETS = 20
DEPLOYMENTS = 400
COPIES = 1_000
FILLED = ("name", "owner", "cpu", "memory")
"""Fields of a pod that replace placeholders in the text of its template."""
CHANGES = ("lose-zone=eu-west-1b", "drain=ip-10-1-*", "scale=replicaset/app-3:500")

Document = dict[str, Any]

WAITS: dict[str, Document] = {
    "too-large": {"cpu": "40"},
    "no-room": {"cpu": "7900m"},
    "label": {"cpu": "1", "nodeSelector": {"disk": "nvme"}},
    "spread": {"cpu": "7900m", "spread": True},
}
"""The pending pods: their requests and constraints, by name."""


def node_document(number: int, subnet_nodes: int) -> Document:
    """Return a node as clusters print it. `subnet_nodes` nodes share the beginning of their names."""
    pool, cpu, memory, taint = POOLS[(0, 0, 0, 0, 0, 0, 1, 1, 2, 3)[number % 10]]
    subnet, place = divmod(number, subnet_nodes)
    name, zone = f"ip-10-{subnet}-{place}-7.eu-west-1.compute.internal", f"eu-west-1{ZONES[number % 3]}"
    amounts = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "58", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{number}",
            "labels": {
                "kubernetes.io/hostname": name,
                ZONE: zone,
                "eks.amazonaws.com/nodegroup": pool,
                "kubernetes.io/arch": "amd64",
            },
        },
        "spec": {"taints": [{"key": taint, "value": "true", "effect": "NoSchedule"}] if taint else []},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
            "images": [{"names": [f"registry.example/app-{image}:v1"], "sizeBytes": 10**8} for image in range(20)],
        },
    }


class PodText(NamedTuple):
    """A pod of the dump; `extra` is the key in `WAITS` if the pod is pending, else ""."""

    name: str
    kind: str
    owner: str
    node: str
    cpu: str
    memory: str
    extra: str = ""


def pod_document(pod: PodText) -> Document:
    """Return a pod as clusters print it."""
    name, kind, owner_name, node = pod[:4]
    requests = {"cpu": pod.cpu, "memory": pod.memory}
    fields: Document = {
        f"f:{each}": {".": {}, "f:name": {}, "f:image": {}, "f:resources": {"f:requests": {"f:cpu": {}}}}
        for each in ("containers", "volumes", "tolerations")
    }
    managed = [
        {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-03-01T00:00:00Z"}
        | {"fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": fields, "f:spec": fields}}
        for manager in ("kube-controller-manager", "kubelet")
    ]
    container = {
        "name": "app",
        "image": f"registry.example/{owner_name}:v1",
        "resources": {"requests": requests, "limits": requests},
        "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(4)],
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    ready = {"status": "True", "lastTransitionTime": "2026-03-01T00:00:00Z"}
    status = {
        "phase": "Running" if node else "Pending",
        "conditions": [{"type": each, **ready} for each in ("Initialized", "Ready", "ContainersReady", "PodScheduled")],
        "startTime": "2026-03-01T00:00:00Z",
        "containerStatuses": [{"name": "app", "ready": True, "restartCount": 0, "image": container["image"]}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-03-01T00:00:00Z",
            "labels": {"app": owner_name},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": kind, "name": owner_name, "uid": owner_name, "controller": True}
            ],
            "managedFields": managed,
        },
        "spec": {
            "nodeName": node,
            "containers": [container],
            "volumes": [{"name": "token", "projected": {"sources": [{"configMap": {"name": "root-ca"}}]}}],
            "tolerations": [
                {"key": f"node.kubernetes.io/{each}", "operator": "Exists", "tolerationSeconds": 300}
                for each in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "serviceAccountName": "default",
            **extra_fields(pod),
        },
        "status": status if node else {"phase": "Pending"},
    }


def pod_texts(nodes: int, pods: int) -> Iterator[PodText]:
    """Yield the pods: two of DaemonSets per node, the others of Deployments; every ninth node is almost empty."""
    names = [str(node_document(number, nodes // SUBNETS)["metadata"]["name"]) for number in range(nodes)]
    for number, name in enumerate(names):
        for daemon in ("logs", "network"):
            yield PodText(f"{daemon}-{number}", "DaemonSet", daemon, name, "100m", "128Mi")
    open_names = [name for number, name in enumerate(names) if number % 10 < 8]
    for number in range(pods - 2 * nodes - len(WAITS)):
        deployment, place = number % DEPLOYMENTS, number % len(open_names)
        if place % 9 == 0 and number >= len(open_names):
            place = (place + 1 + number % 8) % len(open_names)
        owner = f"app-{deployment}"
        cpu, memory = f"{300 + 100 * (deployment % 7)}m", f"{512 + 256 * (deployment % 5)}Mi"
        yield PodText(f"{owner}-{number}", "ReplicaSet", owner, open_names[place], cpu, memory)
    for name, asked in WAITS.items():
        yield PodText(f"{name}-0", "ReplicaSet", name, "", str(asked["cpu"]), str(asked.get("memory", "1Gi")), name)


def extra_fields(pod: PodText) -> Document:
    """Return the fields of a pod's spec that only some pods have."""
    if pod.kind == "DaemonSet":
        return {"tolerations": [{"operator": "Exists"}]}
    asked = WAITS.get(pod.extra, {})
    found: Document = {"nodeSelector": asked["nodeSelector"]} if "nodeSelector" in asked else {}
    if "spread" in asked:
        selector = {"matchLabels": {"app": pod.owner}}
        constraint = {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }
        found["topologySpreadConstraints"] = [constraint]
    return found


def write(folder: Path, nodes: int, pods: int, *, as_yaml: bool) -> Path:
    """Write the dump as a JSON List or as YAML documents; return its path. Pods are written from text templates."""
    path = folder / ("dump.yaml" if as_yaml else "dump.json")

    def dump(document: Document) -> str:
        return str(yaml.safe_dump(document, sort_keys=False)) if as_yaml else json.dumps(document)

    templates: dict[tuple[str, str], str] = {}
    with path.open("w") as file:
        file.write("" if as_yaml else '{"apiVersion": "v1", "kind": "List", "items": [')
        file.write(
            ("---\n" if as_yaml else ",\n").join(
                dump(node_document(number, nodes // SUBNETS)) for number in range(nodes)
            )
        )
        for pod in pod_texts(nodes, pods):
            if (pod.kind, pod.extra) not in templates:
                places = {field: f"zz{field}" for field in FILLED}
                templates[pod.kind, pod.extra] = dump(pod_document(pod._replace(**places, node=pod.node and "zznode")))
            text = templates[pod.kind, pod.extra]
            file.write("---\n" if as_yaml else ",\n")
            for field in (*FILLED, "node"):
                text = text.replace(f"zz{field}", getattr(pod, field))
            file.write(text)
        file.write("" if as_yaml else "]}")
    return path


def timed(name: str, ask: Callable[[], tuple[object, str]]) -> Figure:
    """Return the CPU seconds of a question, with a hash of its answer."""
    gc.collect()
    start = time.process_time()
    answer, note = ask()
    seconds = time.process_time() - start
    digest = hashlib.blake2b(repr(answer).encode(), digest_size=8).hexdigest()
    return Figure(name=name, value=seconds, unit="s", decisions_hash=digest, note=note)


def figures(size: str) -> Iterator[Figure]:
    """Yield the CPU seconds of loading the dump, and of each question."""
    nodes, pods, copies = (60, 600, 20) if size == "small" else (5_000, 50_000, COPIES)
    with TemporaryDirectory() as folder:
        for as_yaml in (True, False):
            path = write(Path(folder), nodes, pods, as_yaml=as_yaml)
            note = f"{path.stat().st_size / 1e6:,.0f} MB, {pods:,} pods"
            gc.collect()
            start = time.process_time()
            source = open_source(SourceOptions(paths=(str(path),)))
            yield Figure(name=f"load {path.name}", value=time.process_time() - start, unit="s", note=note)
            path.unlink()
    yield from answers(source, copies)


def answers(source: ClusterSource, copies: int) -> Iterator[Figure]:
    """Yield the CPU seconds of each question."""
    asked = question_cluster(source)
    cluster = Cluster.of(source, record_level=RecordLevel.OFF)

    def removal() -> tuple[object, str]:
        answer = nodes_to_remove(asked)
        return [*answer.moves], f"{len(answer.removed):,} of {answer.nodes:,} nodes, {len(answer.moves):,} moves"

    def unblocked(name: str) -> tuple[object, str]:
        answer = cluster.unblock(f"shop/{name}-0")
        return [each.text for each in answer.suggestions], f"{answer.trials:,} trials"

    def changed(text: str) -> tuple[object, str]:
        answer = what_if(asked, [parse_change(text)])
        return [*answer.differences], f"{len(answer.differences):,} pods differ"

    def filled() -> tuple[object, str]:
        answer = capacity(asked, [Share("replicaset/app-3")], limit=copies)
        return [*answer.placements], ""

    for name in WAITS:
        yield timed(f"unblock {name}", partial(unblocked, name))
    yield timed(f"capacity of {copies:,} copies", filled)
    yield timed("nodes remove", removal)
    for text in CHANGES:
        yield timed(f"what-if {text}", partial(changed, text))
