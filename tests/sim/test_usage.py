"""Usage over time compared with a naive sum over all pods."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.sim.operations import Apply, Delete, Operation
from bayplan.sim.result import ResourceUsage, SimulationResult
from bayplan.testing import make_node
from tests.sim.simulations import SECOND, START, node, pod, simulate


def usage(result: SimulationResult, resource: str, zone: str | None = None) -> ResourceUsage:
    (found,) = [each for each in result.usage if (each.resource, each.zone) == (resource, zone)]
    return found


def test_usage_reports_shares_peaks_and_means() -> None:
    result = simulate(
        (0, node("a", "4", zone="x")),
        (10 * SECOND, pod("p", "3", runs="10s")),
        (20 * SECOND, pod("q", "1", runs="20s")),
    )
    cpu = usage(result, "cpu")
    assert cpu.duration_ns == 40 * SECOND
    assert (cpu.allocatable, cpu.requested, cpu.peak_requested) == (4000, 0, 3000)
    assert cpu.peak_ns == START + 10 * SECOND
    assert cpu.requested_ns == 3000 * 10 * SECOND + 1000 * 20 * SECOND
    assert cpu.allocatable_ns == 4000 * 40 * SECOND
    assert (cpu.share, cpu.peak_share, cpu.mean_share) == (0.0, 0.75, 50 / 160)
    assert usage(result, "pods").peak_requested == 1
    assert usage(result, "cpu", "x") == _in_zone(cpu, "x")


def _in_zone(whole: ResourceUsage, zone: str) -> ResourceUsage:
    fields = {name: getattr(whole, name) for name in ResourceUsage.__struct_fields__}
    return ResourceUsage(**{**fields, "zone": zone})


def test_the_time_of_a_repeated_peak_is_that_of_the_first() -> None:
    result = simulate(
        (0, node("a", "4", zone="x")),
        (10 * SECOND, pod("p", "3", runs="10s")),
        (30 * SECOND, pod("q", "3", runs="10s")),
    )
    cpu = usage(result, "cpu")
    assert (cpu.peak_requested, cpu.peak_ns) == (3000, START + 10 * SECOND)


def test_changes_within_one_instant_do_not_count_as_a_peak() -> None:
    result = simulate((0, node("a")), (5, pod("p", "4", runs="0s")), (5, pod("q", "4", runs="0s")))
    assert usage(result, "cpu").peak_requested == 0


def test_a_zone_change_of_a_node_moves_the_usage_of_its_pods() -> None:
    moved = Apply(make_node("a").capacity(cpu="4", memory="8Gi").zone("y").obj())
    result = simulate((0, node("a", zone="x")), (0, pod("p")), (6, moved), (10, pod("q")))
    assert [(each.zone, each.requested, each.requested_ns) for each in result.usage if each.resource == "cpu"] == [
        (None, 2000, 10 * 1000),
        ("x", 0, 6 * 1000),
        ("y", 2000, 4 * 1000),
    ]


def test_a_resource_added_later_is_counted_from_that_time() -> None:
    gpu = Apply(make_node("g").capacity({"example.com/gpu": "2"}, cpu="1").obj())
    result = simulate((0, node("a")), (30, gpu), (40, pod("p")))
    found = usage(result, "example.com/gpu")
    assert (found.allocatable, found.allocatable_ns, found.requested_ns) == (2, 20, 0)


STEPS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from(["node", "pod", "lose a node", "delete a pod"]),
        st.integers(0, 3),
        st.integers(1, 9),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_usage_integrals_match_the_time_lines(steps: list[tuple[int, str, int, int]]) -> None:
    operations: list[tuple[int, Operation]] = []
    for number, (time, what, which, size) in enumerate(steps):
        operation: Operation
        if what == "node":
            operation = node(f"n{which}", str(size), zone="xy"[which % 2])
        elif what == "pod":
            operation = pod(f"p{number}", f"{size}00m", runs=f"{size}s" if which else "")
        elif what == "lose a node":
            operation = Delete(Node, f"n{which}")
        else:
            operation = Delete(Pod, f"default/p{which}")
        operations.append((time * SECOND, operation))
    result = simulate(*operations)
    wanted: dict[str | None, int] = {None: 0}
    zone_of = {each.name: each.zone for each in result.nodes}
    for each in result.pods:
        if each.bound_ns is None or each.pod is None:
            continue
        milli = int(str(each.pod.spec.containers[0].resources.requests["cpu"]).removesuffix("m"))
        area = milli * ((result.end_ns if each.ended_ns is None else each.ended_ns) - each.bound_ns)
        for zone in (None, zone_of[each.node]):
            wanted[zone] = wanted.get(zone, 0) + area
    got = {each.zone: each.requested_ns for each in result.usage if each.resource == "cpu"}
    assert {zone: area for zone, area in got.items() if area} == {zone: area for zone, area in wanted.items() if area}
    for each_usage in result.usage:
        assert 0 <= each_usage.requested <= each_usage.peak_requested
        assert each_usage.requested_ns <= each_usage.peak_requested * max(each_usage.duration_ns, 0)
