"""Decisions per second by cluster size: 100 to 100,000 nodes; plain, spreading and affinity; all scored and sampled.

`python -m benchmarks.growth_plot` draws the figures. They are CPU time, including the first pass over the nodes.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Iterator, Sequence

from bayplan.base.garbage_collector import rare_collections
from bayplan.engine.records import RecordLevel
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from benchmarks import Figure
from benchmarks.bench_engine import default_profile_scheduler, default_scheduler
from benchmarks.real_kinds import TITLES, real_nodes, real_pods

NODES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
KINDS = ("basic", "spread", "prefaffinity")
PODS = 2_000
TRIES = 2
"""Number of runs. The fastest one counts, because other load only adds time."""


def decide(nodes: Sequence[Node], pods: Sequence[Pod], *, sampled: bool) -> tuple[float, str]:
    """Schedule the pods; return the CPU seconds, and a hash of the chosen nodes."""
    scheduler = (default_scheduler if sampled else default_profile_scheduler)(RecordLevel.SUMMARY)
    for node in nodes:
        scheduler.handle(None, node, 0)
    gc.collect()
    chosen = []
    with rare_collections():
        start = time.process_time()
        for pod in pods:
            scheduler.handle(None, pod, 0)
        while (report := scheduler.schedule_one(0)) is not None:
            chosen.append(report.node_name)
        seconds = time.process_time() - start
    return seconds, hashlib.blake2b("\n".join(chosen).encode(), digest_size=8).hexdigest()


def points(counts: Sequence[int], pods_count: int, tries: int = TRIES) -> Iterator[tuple[str, bool, int, float, str]]:
    """Yield the kind of pods, whether sampled, the number of nodes, decisions per second, and their hash."""
    most = real_nodes(max(counts))
    for count in counts:
        for kind in KINDS:
            pods = real_pods(kind, pods_count)
            for sampled in (False, True):
                runs = [decide(most[:count], pods, sampled=sampled) for _ in range(tries)]
                seconds, digest = min(runs)
                yield kind, sampled, count, pods_count / max(seconds, 1e-9), digest


def figures(size: str) -> Iterator[Figure]:
    """Yield decisions per second by number of nodes."""
    counts, pods_count, tries = ((100, 300), 100, 1) if size == "small" else (NODES, PODS, TRIES)
    for kind, sampled, count, rate, digest in points(counts, pods_count, tries):
        yield Figure(
            name=f"{count:,} nodes, {TITLES[kind]}, {'sampled' if sampled else 'all scored'}",
            value=rate,
            unit="decisions/s",
            decisions_hash=digest,
        )
