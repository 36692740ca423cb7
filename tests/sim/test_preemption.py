"""Preemption over time: victims end after their grace period, which activates the preemptor, and it is bound."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from bayplan.sim.operations import Apply
from bayplan.sim.result import SimulationResult
from bayplan.testing import make_pod
from tests.sim.simulations import MINUTE, SECOND, node, pod, pod_times, simulate


def reported(result: SimulationResult) -> list[tuple[str, str, str]]:
    """Return pod, reason and note of every event, without uids."""
    return [
        (event.pod.removeprefix("default/"), event.reason, re.sub(r"by pod \S+ on", "by pod UID on", event.note))
        for event in result.events
        if event.reason != "Scheduled"
    ]


def test_a_preemptor_is_bound_when_its_victim_terminates() -> None:
    low = make_pod("low").req(cpu="3").priority(0).spec(terminationGracePeriodSeconds=30).obj()
    result = simulate(
        (0, node("n")), (0, Apply(low)), (MINUTE, pod("vip", "2", priority=10)), termination_time_ns=MINUTE
    )
    assert pod_times(result) == [
        ("low", "n", 0, 0, 90 * SECOND),
        ("vip", "n", MINUTE, 90 * SECOND, None),
    ]
    assert reported(result) == [
        ("vip", "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu."),
        ("low", "Preempted", "Preempted by pod UID on node n"),
    ]
    assert [each.attempts for each in result.pods] == [1, 2]


def test_freed_resources_are_reserved_for_the_nominated_pod() -> None:
    low = make_pod("low").req(cpu="4").priority(0).spec(terminationGracePeriodSeconds=30).obj()
    result = simulate(
        (0, node("n")),
        (0, Apply(low)),
        (MINUTE, pod("vip", "3", priority=10)),
        (MINUTE + SECOND, pod("late", "3", priority=5)),
        termination_time_ns=MINUTE,
    )
    assert [line[0] for line in pod_times(result) if line[1]] == ["low", "vip"]


def test_a_nominated_pod_is_bound_to_another_node_that_fits_earlier() -> None:
    low = make_pod("low").req(cpu="3").priority(0).spec(terminationGracePeriodSeconds=600).obj()
    result = simulate(
        (0, node("n")),
        (0, Apply(low)),
        (MINUTE, pod("vip", "2", priority=10)),
        (2 * MINUTE, node("other")),
        termination_time_ns=10 * MINUTE,
    )
    assert [line[:4] for line in pod_times(result)] == [("low", "n", 0, 0), ("vip", "other", MINUTE, 2 * MINUTE)]


def test_a_higher_priority_pod_takes_over_a_nominated_node() -> None:
    low = make_pod("low").req(cpu="4").priority(0).spec(terminationGracePeriodSeconds=30).obj()
    result = simulate(
        (0, node("n")),
        (0, Apply(low)),
        (MINUTE, pod("mid", "3", priority=5)),
        (MINUTE + 10 * SECOND, pod("top", "3", priority=10)),
        termination_time_ns=MINUTE,
    )
    assert [(line[0], line[3]) for line in pod_times(result)] == [("low", 0), ("mid", None), ("top", 90 * SECOND)]


@pytest.mark.parametrize(
    ("starts", "want"),
    [
        pytest.param(("9999-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), "a", id="after those of int64"),
        pytest.param(("0000-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), "b", id="before those of int64"),
    ],
)
def test_the_pod_that_started_last_is_preempted_at_any_start_time(starts: tuple[str, str], want: str) -> None:
    running = []
    for name, start in zip("ab", starts, strict=True):
        low = make_pod(name).req(cpu="4").node(f"node-{name}").obj()
        running.append(Apply(replace(low, status=replace(low.status, phase="Running", start_time=start))))
    result = simulate(
        *((0, node(f"node-{name}")) for name in "ab"),
        *((0, low) for low in running),
        (SECOND, pod("high", "4", priority=1)),
        until_ns=MINUTE,
    )
    assert [record.victims for record in result.records if record.victims] == [(f"default/{want}",)]
