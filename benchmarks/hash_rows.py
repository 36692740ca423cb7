"""The rows of the decision baseline: every row of docs/performance.md, by name, in three sizes, without timing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bayplan.app.mode import Mode
from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from benchmarks import bench_custom_plugin, bench_engine, bench_preemption
from benchmarks.bench_simulation import OPENB, write_trace
from benchmarks.real_kinds import KINDS, TITLES, real_nodes, real_pods
from benchmarks.scheduler_perf.case import Case
from benchmarks.scheduler_perf.cases import CASES
from benchmarks.scheduler_perf.host import measure

SIZES = ("small", "medium", "large")
"""Sizes of rows: large is that of the documentation, medium a tenth of it; every test run checks small."""

DIVISORS = {"small": 20, "medium": 10}
"""Divisors of scheduler_perf cases. A twentieth of 5,000 nodes is still sampled, a hundredth would not be."""

MIN_CASE_NODES = {"small": 5, "medium": 10}
"""Minimum number of nodes of cases: pods that just fit on fifty nodes don't fit on two."""


class Hashes(NamedTuple):
    """Hashes of one row in one size.

    Attributes:
        decisions: the hash of the chosen nodes, in order; this is the hash in docs/performance.md.
        records: the hash of all decision records: time, pod, outcome, node or message. Equal to `decisions` for
            simulations.
    """

    decisions: str
    records: str


class Row(NamedTuple):
    """A row: its name, the function that runs it in a size, and its sizes."""

    name: str
    run: Callable[[str], Hashes]
    sizes: tuple[str, ...] = SIZES


class MissingDataError(Exception):
    """The row needs data that the repository does not contain."""


def hash_rows() -> Iterator[Row]:
    """Yield all rows, fast ones first."""
    yield from _simulation_rows()
    yield from _engine_rows()
    yield from _real_kind_rows()
    yield from _custom_plugin_rows()
    yield from _preemption_rows()
    yield from _scheduler_perf_rows()


# Simulations.


def _simulation_rows() -> Iterator[Row]:
    yield Row("simulation/made trace", partial(_made_trace, Mode.CURRENT))
    yield Row("simulation/made trace, classic", partial(_made_trace, Mode.CLASSIC))
    for nodes in ("all_node", "gpu_node"):
        yield Row(f"simulation/OpenB, {nodes}", partial(_openb, nodes), ("large",))


def _made_trace(mode: Mode, size: str) -> Hashes:
    nodes, tasks = {"small": (60, 200), "medium": (152, 815), "large": (1_523, 8_152)}[size]
    with TemporaryDirectory() as folder:
        return _simulated(write_trace(Path(folder), nodes, tasks), mode)


def _openb(nodes: str, _size: str) -> Hashes:
    if not OPENB.is_dir():
        raise MissingDataError("the OpenB trace is not on this machine")
    return _simulated(
        [str(OPENB / f"openb_node_list_{nodes}.csv"), str(OPENB / "openb_pod_list_default.csv")], Mode.CURRENT
    )


def _simulated(paths: list[str], mode: Mode) -> Hashes:
    result = simulate(SimulationOptions(paths=paths, seed=1, mode=mode))
    return Hashes(result.digest, result.digest)


# Decisions per second of the engine.

ENGINE_SIZES: Mapping[str, tuple[int, int]] = {"small": (200, 400), "medium": (500, 1_000), "large": (5_000, 10_000)}
ENGINE_CASES: Mapping[str, tuple[int, Mapping[str, object] | None]] = {
    "one template": (1, None),
    "50 templates in turn": (50, None),
    "every pod another request": (0, None),
    "required node affinity": (1, bench_engine.REQUIRED),
    "preferred node affinity": (1, bench_engine.PREFERRED),
}
"""The number of templates (0: as many as pods), and the node affinity of the pods."""


def _engine_rows() -> Iterator[Row]:
    for sampled in (False, True):
        suffix = _suffix(sampled)
        for case in ENGINE_CASES:
            if "affinity" not in case:
                first = partial(bench_engine.first_plugins_scheduler, sampled=sampled)
                yield Row(f"engine/first plugins, {case}, {suffix}", partial(_engine, first, case))
            default = bench_engine.default_scheduler if sampled else bench_engine.default_profile_scheduler
            yield Row(f"engine/default profile, {case}, {suffix}", partial(_engine, default, case))
        default = bench_engine.default_scheduler if sampled else bench_engine.default_profile_scheduler
        yield Row(f"engine/default profile, 100,000 nodes, {suffix}", partial(_many_nodes, default), ("large",))


def _engine(make_scheduler: Callable[[RecordLevel], Scheduler], case: str, size: str) -> Hashes:
    nodes_count, pods_count = ENGINE_SIZES[size]
    templates, affinity = ENGINE_CASES[case]
    pods = bench_engine.make_pods(pods_count if templates else pods_count // 5, templates, affinity)
    scheduler = make_scheduler(RecordLevel.SUMMARY)
    _, decisions, _ = bench_engine.run(scheduler, bench_engine.make_nodes(nodes_count), pods)
    return Hashes(decisions, scheduler.records.digest())


def _many_nodes(make_scheduler: Callable[[RecordLevel], Scheduler], _size: str) -> Hashes:
    scheduler = make_scheduler(RecordLevel.SUMMARY)
    nodes, pods = bench_engine.make_nodes(100_000), bench_engine.make_pods(2_000, 50)
    _, decisions, _ = bench_engine.run(scheduler, nodes, pods)
    return Hashes(decisions, scheduler.records.digest())


# The nodes and pods of the comparison with the real engine.

REAL_KIND_SIZES: Mapping[str, tuple[int, int]] = {"small": (200, 200), "medium": (500, 500), "large": (5_000, 2_000)}


def _real_kind_rows() -> Iterator[Row]:
    for sampled in (False, True):
        for kind in KINDS:
            yield Row(f"against real/{TITLES[kind]}, {_suffix(sampled)}", partial(_real_kind, kind, sampled))


def _real_kind(kind: str, sampled: bool, size: str) -> Hashes:
    nodes_count, pods_count = REAL_KIND_SIZES[size]
    scheduler = (bench_engine.default_scheduler if sampled else bench_engine.default_profile_scheduler)(
        RecordLevel.SUMMARY
    )
    _, decisions, _ = bench_engine.run(scheduler, real_nodes(nodes_count), real_pods(kind, pods_count))
    return Hashes(decisions, scheduler.records.digest())


# A user's plugin.


def _custom_plugin_rows() -> Iterator[Row]:
    for sampled in (False, True):
        yield Row(f"custom plugin/FewPods, {_suffix(sampled)}", partial(_custom_plugin, sampled))


def _custom_plugin(sampled: bool, size: str) -> Hashes:
    scheduler = bench_custom_plugin.scheduler_with_plugin(sampled=sampled)
    nodes_count, pods_count = {"small": (150, 300), "medium": (500, 500), "large": (5_000, 5_000)}[size]
    _, _, decisions = bench_custom_plugin.run(scheduler, nodes_count, pods_count)
    return Hashes(decisions, scheduler.records.digest())


# Preemption.


def _preemption_rows() -> Iterator[Row]:
    few, many = {"small": (50, 20), "medium": (200, 200), "large": (500, 500)}, {"large": (5_000, 1_000)}
    for sampled in (False, True):
        suffix = _suffix(sampled)
        yield Row(f"preemption/500 nodes, {suffix}", partial(_preemption, few, sampled))
        yield Row(f"preemption/5,000 nodes, {suffix}", partial(_preemption, many, sampled), ("large",))


def _preemption(counts: Mapping[str, tuple[int, int]], sampled: bool, size: str) -> Hashes:
    make = bench_engine.default_scheduler if sampled else bench_engine.default_profile_scheduler
    scheduler = make(RecordLevel.SUMMARY)
    _, decisions = bench_preemption.run(scheduler, *counts[size])
    return Hashes(decisions, scheduler.records.digest())


# scheduler_perf.


def _scheduler_perf_rows() -> Iterator[Row]:
    for sampled in (False, True):
        for case in CASES:
            yield Row(f"scheduler_perf/{case.label}, {_suffix(sampled)}", partial(_scheduler_perf, case, sampled))


def _scheduler_perf(case: Case, sampled: bool, size: str) -> Hashes:
    if size != "large":
        divisor = DIVISORS[size]
        if case.nodes:
            divisor = min(divisor, max(case.nodes // MIN_CASE_NODES[size], 5))
        case = case.scaled(divisor)
    found = measure(case, sampled=sampled)
    return Hashes(found.decisions_hash, found.records_digest)


def _suffix(sampled: bool) -> str:
    return "sampled" if sampled else "all"


def combined(hashes: Mapping[str, Hashes]) -> str:
    """Return one hash of many rows, which is equal only if all of their hashes are."""
    lines = [f"{name}\t{found.decisions}\t{found.records}\n" for name, found in sorted(hashes.items())]
    return hashlib.blake2b("".join(lines).encode(), digest_size=8).hexdigest()
