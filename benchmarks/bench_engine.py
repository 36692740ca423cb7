"""Decisions per second of the engine, from parsed objects, including queue and records, with all nodes scored.

The workloads have the shape of scheduler_perf's SchedulingBasic: nodes of 4 CPU, 32Gi and 110 pods, pods of 100m and
500Mi. They run on one core. Only the scheduler runs (no object store, no simulated kubelet), and the garbage collector
is configured as while ``bayplan simulate`` runs.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from bayplan.base.garbage_collector import rare_collections
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import default_configuration, load_configuration
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


ZONES = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-1", "zone-2"]}]}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ZONES]}}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": ZONES}]}
"""Node affinity for two of the three zones."""


def make_pods(count: int, templates: int, node_affinity: Mapping[str, object] | None = None) -> list[Pod]:
    """Return pods, each parsed from its own JSON, cycling through `templates` templates (0: each with a different request)."""
    affinity = {} if node_affinity is None else {"affinity": {"nodeAffinity": node_affinity}}
    pods = []
    for number in range(count):
        template = number % templates if templates else number
        requests = {"cpu": f"{100 + template}m", "memory": "500Mi"}
        container = {"name": "pause", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number:06}", "namespace": "default", "uid": f"uid-{number}"},
            "spec": {"containers": [container], **affinity},
        }
        pods.append(default_object(decode_json(msgspec.json.encode(document), Pod)))
    return pods


def first_plugins_scheduler(level: RecordLevel, *, sampled: bool = False) -> Scheduler:
    """Return a seeded scheduler with only the plugins in `FIRST_PLUGINS`; it scores all nodes unless `sampled`."""
    plugins = {"multiPoint": {"enabled": [{"name": name} for name in FIRST_PLUGINS], "disabled": [{"name": "*"}]}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 0 if sampled else 100,
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    configuration = load_configuration(document)
    return assemble_scheduler(
        configuration, in_tree_registry(), feature_gates=FeatureGates(), seed=1, record_level=level
    )


def default_profile_scheduler(level: RecordLevel) -> Scheduler:
    """Return a seeded scheduler with the complete default profile that scores all nodes."""
    configuration = load_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": 100,
        }
    )
    return assemble_scheduler(
        configuration, in_tree_registry(), feature_gates=FeatureGates(), seed=1, record_level=level
    )


def default_scheduler(level: RecordLevel) -> Scheduler:
    """Return a seeded scheduler with the default configuration, which ends searches as early as the real one."""
    return assemble_scheduler(
        default_configuration(), in_tree_registry(), feature_gates=FeatureGates(), seed=1, record_level=level
    )


def run(scheduler: Scheduler, nodes: Iterable[Node], pods: Iterable[Pod]) -> tuple[float, str, int]:
    """Schedule all pods; return seconds from first arrival to last decision, hash, and number of placed pods."""
    for node in nodes:
        scheduler.handle(None, node, 0)
    gc.collect()
    placed = 0
    chosen = []
    with rare_collections():
        start = time.perf_counter()
        for pod in pods:
            scheduler.handle(None, pod, 0)
        while (report := scheduler.schedule_one(0)) is not None:
            placed += bool(report.node_name)
            chosen.append(report.node_name)
        seconds = time.perf_counter() - start
    digest = hashlib.blake2b("\n".join(chosen).encode(), digest_size=8).hexdigest()
    return seconds, digest, placed


TRIES = 3
"""Number of measurements per row. The fastest one counts, because other work on the machine only adds time."""


class Case(NamedTuple):
    """One row of figures: its name, the profile, the pods, and the levels of records."""

    name: str
    make_scheduler: Callable[[RecordLevel], Scheduler]
    pods: list[Pod]
    levels: tuple[RecordLevel, ...] = (RecordLevel.SUMMARY,)


def cases(count: int) -> Iterator[Case]:
    """Yield the rows; the pods of each are created when it is reached."""
    first, whole = first_plugins_scheduler, default_profile_scheduler
    both = (RecordLevel.SUMMARY, RecordLevel.FULL)
    few = max(count // 5, 1)
    yield Case("one template", first, make_pods(count, 1), both)
    yield Case("50 templates in turn", first, make_pods(count, 50), both)
    yield Case("every pod another request", first, make_pods(few, 0), both)
    yield Case("default profile, one template", whole, make_pods(count, 1))
    yield Case("default profile, 50 templates in turn", whole, make_pods(count, 50))
    yield Case("default profile, every pod another request", whole, make_pods(few, 0))
    yield Case("default profile, required node affinity", whole, make_pods(count, 1, REQUIRED))
    yield Case("default profile, preferred node affinity", whole, make_pods(count, 1, PREFERRED))


def figures(size: str) -> Iterator[Figure]:
    """Yield decisions per second: first plugins at both levels of records, then the complete default profile."""
    small = size == "small"
    nodes_count, pods_count = (200, 400) if small else (5_000, 10_000)
    yield from _figures(nodes_count, cases(pods_count))
    whole, sampled = default_profile_scheduler, default_scheduler
    yield from _figures(
        400 if small else 100_000,
        [
            Case("default profile, 50 templates in turn", whole, make_pods(2 * pods_count, 50)),
            Case("default profile, 50 templates in turn, sampled", sampled, make_pods(2 * pods_count, 50)),
        ],
    )


def _figures(nodes_count: int, rows: Iterable[Case]) -> Iterator[Figure]:
    nodes = make_nodes(nodes_count)
    for case in rows:
        for level in case.levels:
            fastest, digest, note = float("inf"), "", ""
            for _ in range(TRIES):
                scheduler = case.make_scheduler(level)
                seconds, digest, placed = run(scheduler, nodes, case.pods)
                fastest = min(fastest, seconds)
                note = f"{placed} placed, {scheduler.records.nbytes / max(len(scheduler.records), 1):.0f} B a record"
            yield Figure(
                name=f"{nodes_count:,} nodes, {case.name}, {level.name.lower()}",
                value=len(case.pods) / fastest,
                unit="decisions/s",
                decisions_hash=digest,
                note=note,
            )
