"""The cases of kube-scheduler's own benchmark at 5,000 nodes, by name: pods per second, all nodes scored and sampled.

The figures are CPU time of one core, from parsed objects, including the summary record of each decision. A floor is the
threshold of upstream's continuous integration: the worst of its runs, with an API server and etcd. Say so wherever you
compare a figure with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import Figure
from benchmarks.scheduler_perf.cases import CASES
from benchmarks.scheduler_perf.host import measure


def figures(size: str) -> Iterator[Figure]:
    """Yield two figures per case."""
    for case in CASES:
        sized = case if size == "large" else case.small()
        for sampled in (False, True):
            found = measure(sized, sampled=sampled)
            floor = f", upstream's floor {case.floor}" if case.floor else ""
            if case.unit == "cycles/s":
                floor = f" for {found.pods / max(found.seconds, 1e-9):,.0f} pods/s{floor}"
            yield Figure(
                name=f"{case.label}, {'sampled' if sampled else 'all scored'}",
                value=(found.decisions if case.unit == "cycles/s" else found.pods) / max(found.seconds, 1e-9),
                unit=case.unit,
                decisions_hash=found.decisions_hash,
                note=f"{found.decisions} cycles{floor}",
            )
