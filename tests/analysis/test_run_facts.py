"""The facts of a run: counts, groups of waiting pods, waiting times, fragmentation."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.analysis.fragmentation import fragmentation
from bayplan.analysis.pending import pending_groups
from bayplan.analysis.run_facts import RunFacts, run_facts
from bayplan.analysis.waits import attempts_of, bound_waits, unbound_waits, waits_of
from bayplan.engine.records import RecordLevel
from bayplan.sim.operations import Delete
from bayplan.sim.result import PodFate, PodTimeline, SimulationResult
from tests.analysis.runs import SECOND_NS, busy_run, deployment, node, pod, run

GI = 1 << 30


@pytest.fixture(scope="module")
def busy() -> SimulationResult:
    return busy_run()


def test_every_pod_is_counted_once(busy: SimulationResult) -> None:
    counts = run_facts(busy).pods
    fates = (
        counts.placed,
        counts.succeeded,
        counts.failed,
        counts.deleted,
        counts.pending,
        counts.gated,
        counts.unattended,
    )
    assert sum(fates) == counts.total == len(busy.pods)
    assert (counts.imported, counts.gated, counts.unattended) == (1, 1, 1)
    assert counts.waiting == counts.pending + 2


def test_nodes_decisions_and_zones_are_counted(busy: SimulationResult) -> None:
    facts = run_facts(busy)
    assert (facts.nodes.total, facts.nodes.added, facts.nodes.removed, facts.nodes.zones) == (9, 10, 1, 3)
    decisions = facts.decisions
    assert decisions.total == len(busy.records) == decisions.scheduled + decisions.unschedulable
    assert decisions.record_level == "full"
    assert 0 < decisions.bytes_per_record < 5_000


def test_run_facts_round_trip_through_json(busy: SimulationResult) -> None:
    facts = run_facts(busy)
    assert msgspec.json.decode(msgspec.json.encode(facts.as_dict()), type=RunFacts) == facts
    assert "seconds" not in str(facts.as_dict())


def test_pending_pods_are_grouped_by_upstreams_message(busy: SimulationResult) -> None:
    groups = {group.message: group for group in pending_groups(busy.pods, busy.scheduler)}
    assert "waiting for scheduling gates: [example.com/wait]" in groups
    assert groups['no profile for scheduler name "another"'].fate == "unattended"
    nowhere = next(group for group in groups.values() if "default/nowhere" in group.examples)
    assert nowhere.message.startswith(
        "0/9 nodes are available: 1 node(s) had untolerated taint(s), 8 node(s) didn't match Pod's node affinity/selector."
    )


def test_the_largest_group_comes_first_and_lists_three_pods() -> None:
    pods = [pod(f"big-{number}", cpu="9").obj() for number in range(5)]
    result = run(node("n1").obj(), pod("picky").node_selector(disk="ssd").obj(), *pods)
    first, second = pending_groups(result.pods, result.scheduler)
    assert (first.pods, first.examples) == (5, ["default/big-0", "default/big-1", "default/big-2"])
    assert first.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert second.pods == 1


def timeline(**fields: object) -> PodTimeline:
    given: dict[str, object] = {
        "key": "d/p",
        "uid": "",
        "workload": "",
        "priority": 0,
        "scheduler_name": "",
        "arrived_ns": 0,
    }
    return PodTimeline(**(given | fields))  # type: ignore[arg-type]


def test_waiting_times_cover_only_pods_that_the_run_placed() -> None:
    placed = [timeline(bound_ns=wait, fate=PodFate.PLACED) for wait in (10, 20, 30, 1000)]
    brought = timeline(bound_ns=0, imported=True, fate=PodFate.PLACED)
    waiting = timeline(arrived_ns=40)
    waits = bound_waits([*placed, brought, waiting])
    assert (waits.pods, waits.median_ns, waits.p95_ns, waits.max_ns) == (4, 20, 1000, 1000)
    assert unbound_waits([*placed, brought, waiting], 100) == waits_of([60])


def test_waiting_times_and_attempts_without_pods_are_zero() -> None:
    assert bound_waits([]).pods == 0
    assert attempts_of([timeline()]).most == 0


def test_attempts_name_the_pod_with_the_most_attempts() -> None:
    facts = attempts_of([timeline(attempts=1), timeline(key="d/q", attempts=7), timeline(key="d/r", attempts=7)])
    assert (facts.pods, facts.total, facts.most, facts.most_pod, facts.repeated) == (3, 15, 7, "d/q", 2)


# --- fragmentation ----------------------------------------------------------------------------------------------------


def test_idle_cpu_is_fragmented_where_typical_pods_do_not_fit() -> None:
    # Three nodes of 4: pods of 3 leave 1 idle on each, where no pod of 3 fits; one of 2 leaves 2.
    nodes = [node(f"n{number}", memory="64Gi").obj() for number in range(3)]
    result = run(*nodes, *(pod(f"p{number}", cpu="3", memory="1Gi").obj() for number in range(3)))
    facts = fragmentation(result.pods, result.scheduler)
    cpu, memory = facts.resources
    assert (cpu.resource, cpu.idle, cpu.stranded, cpu.share) == ("cpu", 3000, 3000, 1.0)
    assert (cpu.unusable, cpu.unusable_share, cpu.shapes, cpu.pods) == (3000, 1.0, 1, 3)
    assert (memory.idle, memory.share) == (189 * GI, 1.0)
    assert facts.waiting == []


def test_stranded_amounts_are_weighted_by_the_number_of_pods_per_shape() -> None:
    # On n0, three pods of 1 CPU leave 1 CPU free: enough for one more such pod, not for a pod of 4 CPUs, such as that on n1.
    nodes = [node(f"n{number}").obj() for number in range(2)]
    big = pod("big", cpu="4").obj()
    small = [pod(f"small-{number}", cpu="1").obj() for number in range(3)]
    result = run(*nodes, big, later={1: small})
    cpu, memory = fragmentation(result.pods, result.scheduler).resources
    assert (cpu.idle, cpu.stranded, cpu.share) == (1000, 250, 0.25)
    assert (cpu.unusable, cpu.unusable_share) == (0, 0.0)
    # n1 has free memory, but no free CPU, so no pod can use it.
    assert (memory.idle, memory.unusable) == (12 * GI, 7 * GI)
    assert memory.stranded == (1 * 12 * GI + 3 * 7 * GI) // 4


def test_an_unreachable_gpu_is_unusable() -> None:
    gpu = node("gpu", cpu="2").capacity({"example.com/gpu": "4"}).obj()
    one = pod("one", cpu="2").req({"example.com/gpu": "1"}).obj()
    two = pod("two", cpu="2").req({"example.com/gpu": "1"}).obj()
    result = run(gpu, node("plain", cpu="8").obj(), one, two)
    facts = fragmentation(result.pods, result.scheduler)
    found = next(row for row in facts.resources if row.resource == "example.com/gpu")
    assert (found.idle, found.unusable_share) == (3, 1.0)
    (shape,) = facts.waiting
    assert (shape.example, shape.waiting, shape.allowed, shape.fits) == ("default/two", 1, 2, 0)
    assert shape.idle == {"cpu": 8000, "memory": 15 * GI, "example.com/gpu": 3}
    assert shape.idle_on_one == {"cpu": 8000, "memory": 8 * GI, "example.com/gpu": 3}


def test_a_pod_excluded_by_labels_counts_no_idle_amounts() -> None:
    result = run(node("n1").obj(), pod("picky").node_selector(disk="ssd").obj())
    (shape,) = fragmentation(result.pods, result.scheduler).waiting
    assert (shape.allowed, shape.idle["cpu"]) == (0, 0)


def test_replicas_form_one_shape_and_daemon_set_pods_none() -> None:
    result = run(node("n1").obj(), node("n2").obj(), deployment("web", 5))
    facts = fragmentation(result.pods, result.scheduler)
    assert (facts.shapes, facts.pods, facts.common_pods) == (1, 5, 5)
    for each in result.pods:
        each.workload = "DaemonSet default/agent"
    assert fragmentation(result.pods, result.scheduler).shapes == 0


@pytest.mark.parametrize("level", list(RecordLevel), ids=[str(level) for level in RecordLevel])
def test_empty_clusters_have_facts(level: RecordLevel) -> None:
    for result in (run(level=level), run(pod("p").obj(), level=level), run(node("n").obj(), level=level)):
        facts = run_facts(result)
        assert facts.pods.total == len(result.pods)
        assert facts.fragmentation.common_pods == len(result.pods)
    gone = run(node("n").obj(), pod("p").obj(), later={5: [Delete(type(node("n").obj()), "n")]}, level=level)
    assert run_facts(gone).nodes.total == 0
    assert gone.duration_ns >= 5 * SECOND_NS
