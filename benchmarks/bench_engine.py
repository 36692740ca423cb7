"""Decisions per second of the engine: from parsed objects, queue and records included, all nodes scored.

The workloads are those of scheduler_perf's SchedulingBasic in shape: nodes of 4 CPU, 32Gi and 110 pods, pods of 100m and
500Mi. One core; nothing but the scheduler runs (no object store, no simulated kubelet).
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Iterable, Iterator

import msgspec

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import default_configuration, load_configuration_mapping
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode_json
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from benchmarks import Figure

FIRST_PLUGINS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "PrioritySort",
    "SchedulingGates",
)
"""The plugins without cross-pod rules, volumes, devices and preemption: the workload of the first figures."""


def make_nodes(count: int) -> list[Node]:
    """Return nodes in three zones, from JSON."""
    nodes = []
    for number in range(count):
        name = f"node-{number:06}"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
        amounts = {"cpu": "4", "memory": "32Gi", "pods": "110"}
        document = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"capacity": amounts, "allocatable": amounts},
        }
        nodes.append(default_object(decode_json(msgspec.json.encode(document), Node)))
    return nodes


def make_pods(count: int, templates: int) -> list[Pod]:
    """Return pods, each parsed from JSON of its own, of so many templates in turn (0: each with another request)."""
    pods = []
    for number in range(count):
        template = number % templates if templates else number
        requests = {"cpu": f"{100 + template}m", "memory": "500Mi"}
        container = {"name": "pause", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number:06}", "namespace": "default", "uid": f"uid-{number}"},
            "spec": {"containers": [container]},
        }
        pods.append(default_object(decode_json(msgspec.json.encode(document), Pod)))
    return pods


def first_plugins_scheduler(level: RecordLevel) -> Scheduler:
    """Return a scheduler with the plugins of `FIRST_PLUGINS` alone, seeded."""
    plugins = {"multiPoint": {"enabled": [{"name": name} for name in FIRST_PLUGINS], "disabled": [{"name": "*"}]}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    configuration = load_configuration_mapping(document)
    return assemble_scheduler(
        configuration, in_tree_registry(), feature_gates=FeatureGates(), seed=1, record_level=level
    )


def default_scheduler(level: RecordLevel) -> Scheduler:
    """Return a scheduler with the default profile that scores all nodes."""
    return assemble_scheduler(
        default_configuration(), in_tree_registry(), feature_gates=FeatureGates(), seed=1, record_level=level
    )


def run(scheduler: Scheduler, nodes: Iterable[Node], pods: Iterable[Pod]) -> tuple[float, str, int]:
    """Schedule all pods; return seconds from the first pod's arrival to the last decision, the hash and the number placed."""
    for node in nodes:
        scheduler.handle(None, node, 0)
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    for pod in pods:
        scheduler.handle(None, pod, 0)
    placed = 0
    chosen = []
    while (report := scheduler.schedule_one(0)) is not None:
        placed += bool(report.node_name)
        chosen.append(report.node_name)
    seconds = time.perf_counter() - start
    gc.unfreeze()
    digest = hashlib.blake2b("\n".join(chosen).encode(), digest_size=8).hexdigest()
    return seconds, digest, placed


def figures(size: str) -> Iterator[Figure]:
    """Yield decisions per second for one template, fifty in turn, and pods that all differ, then what records cost."""
    nodes_count, pods_count = (200, 400) if size == "small" else (5_000, 10_000)
    nodes = make_nodes(nodes_count)
    cases = [("one template", 1, pods_count), ("50 templates in turn", 50, pods_count)]
    cases.append(("every pod another request", 0, max(pods_count // 5, 1)))
    for name, templates, count in cases:
        pods = make_pods(count, templates)
        for level in (RecordLevel.SUMMARY, RecordLevel.FULL):
            scheduler = first_plugins_scheduler(level)
            seconds, digest, placed = run(scheduler, nodes, pods)
            label = f"{nodes_count:,} nodes, {name}, {level.name.lower()}"
            yield Figure(
                name=label,
                value=count / seconds,
                unit="decisions/s",
                decisions_hash=digest,
                note=f"{placed} placed, {scheduler.records.nbytes / max(len(scheduler.records), 1):.0f} B a record",
            )
