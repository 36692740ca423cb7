"""Pods per second with a user's plugin in the default profile: plain Python, one call per node, with declared reads.

The first pass calls the plugin for every node and is reported separately. Later cycles call it only for changed nodes.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Hashable, Iterator

from bayplan.base.garbage_collector import rare_collections
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import Reads
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from benchmarks import Figure
from benchmarks.bench_engine import make_nodes, make_pods

MAX_PODS = 20
"""The plugin rejects nodes with at least this many pods."""


class FewPods(PerNodePlugin):
    """Prefers nodes with few pods and nodes of the first zone, and rejects full nodes."""

    name = "FewPods"
    reads = Reads.NODES | Reads.USAGE

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return the labels: pods of one template are equal for this plugin."""
        return tuple(sorted(pod.metadata.labels.items()))

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        """Reject a node with too many pods."""
        return "node(s) had too many pods" if len(node.pods) >= MAX_PODS else None

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        """Return 100, minus 5 for every pod, minus 2 outside the first zone."""
        outside = node.labels.get("topology.kubernetes.io/zone") != "zone-0"
        return max(100 - 5 * len(node.pods) - 2 * outside, 0)


def scheduler_with_plugin(*, sampled: bool) -> Scheduler:
    """Return a scheduler with the default profile and `FewPods`."""
    registry = in_tree_registry().with_plugins(FewPods)
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": FewPods.name, "weight": 2}]}},
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 0 if sampled else 100,
        "profiles": [profile],
    }
    configuration = load_configuration(document, extension_points_of=registry.extension_points_for_configuration)
    return assemble_scheduler(
        configuration, registry, feature_gates=FeatureGates(), seed=1, record_level=RecordLevel.SUMMARY
    )


def run(scheduler: Scheduler, nodes_count: int, pods_count: int) -> tuple[float, float, str]:
    """Schedule all pods; return the seconds of the first pod and of the others, and a hash of the chosen nodes."""
    for node in make_nodes(nodes_count):
        scheduler.handle(None, node, 0)
    pods = make_pods(pods_count, 1)
    gc.collect()
    chosen: list[str] = []
    with rare_collections():
        for pod in pods:
            scheduler.handle(None, pod, 0)
        start = time.process_time()
        first = 0.0
        while (report := scheduler.schedule_one(0)) is not None:
            chosen.append(report.node_name)
            first = first or time.process_time() - start
        others = time.process_time() - start - first
    return first, others, hashlib.blake2b("\n".join(chosen).encode(), digest_size=8).hexdigest()


def figures(size: str) -> Iterator[Figure]:
    """Yield pods per second after the first pass, with all nodes scored and with sampling."""
    nodes_count, pods_count = (50, 60) if size == "small" else (5_000, 5_000)
    for sampled in (False, True):
        first, others, digest = run(scheduler_with_plugin(sampled=sampled), nodes_count, pods_count)
        yield Figure(
            name=f"{nodes_count:,} nodes, plugin in plain Python, {'sampled' if sampled else 'all scored'}",
            value=(pods_count - 1) / max(others, 1e-9),
            unit="decisions/s",
            decisions_hash=digest,
            note=f"after the first pass, which took {first * 1000:.0f} ms",
        )
