"""Delays of other threads, such as that of an API, while the engine schedules.

Compiled code holds the GIL until it calls Python, at the latest after each cycle; `bayplan up` lets other threads run
every 0.5 ms. So the wait is 0.5 ms, or the rest of the cycle if that is longer.
"""

from __future__ import annotations

import gc
import hashlib
import threading
import time
from collections.abc import Iterator, Sequence

from bayplan.base.garbage_collector import rare_collections
from bayplan.engine.records import RecordLevel
from bayplan.live.switch_interval import short_switch_interval
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from benchmarks import Figure
from benchmarks.bench_engine import default_profile_scheduler, make_nodes, make_pods

SLEEP_S = 0.0002
"""Time that the other thread sleeps between two requests to run."""


def waits(nodes: Sequence[Node], pods: Sequence[Pod]) -> tuple[list[float], str]:
    """Schedule the pods; return the waits of another thread in seconds, ascending, and the hash of the decisions."""
    scheduler = default_profile_scheduler(RecordLevel.SUMMARY)
    for item in (*nodes, *pods):
        scheduler.handle(None, item, 0)
    gc.collect()
    found, chosen, ended = [0.0], [], threading.Event()

    def ask() -> None:
        while not ended.is_set():
            start = time.perf_counter()
            time.sleep(SLEEP_S)
            found.append(time.perf_counter() - start - SLEEP_S)

    asking = threading.Thread(target=ask)
    try:
        with short_switch_interval(), rare_collections():
            asking.start()
            while (report := scheduler.schedule_one(0)) is not None:
                chosen.append(report.node_name)
    finally:
        ended.set()
        asking.join()
    return sorted(found), hashlib.blake2b("\n".join(chosen).encode(), digest_size=8).hexdigest()


def figures(size: str) -> Iterator[Figure]:
    """Yield the median, the 99th percentile and the longest of the waits."""
    counts, pods_count = ((200,), 400) if size == "small" else ((5_000, 100_000), 20_000)
    for count in counts:
        nodes = make_nodes(count)
        for templates, kind in ((1, "one template"), (50, "50 templates"), (0, "every pod another request")):
            number = pods_count if templates else pods_count // 10
            found, digest = waits(nodes, make_pods(number, templates))
            for share, what in ((0.5, "median"), (0.99, "99th percentile"), (1.0, "longest")):
                yield Figure(
                    name=f"{count:,} nodes, {kind}, {what}",
                    value=found[min(int(len(found) * share), len(found) - 1)] * 1e3,
                    unit="ms",
                    decisions_hash=digest,
                    note=f"{len(found):,} waits",
                )
