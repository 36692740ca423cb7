"""Preemption over time: victims leave with their grace, the preemptor waits, comes back by their leaving, and is bound."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.sim.operations import Apply, Operation
from bayplan.sim.result import SimulationResult
from bayplan.testing import make_pod
from tests.shared import shared_path
from tests.sim.worlds import MINUTE, SECOND, START, node, pod, simulate, simulator, story


def told(result: SimulationResult) -> list[tuple[str, str, str]]:
    """Return pod, reason and note of every event, without uids."""
    return [
        (event.pod.removeprefix("default/"), event.reason, re.sub(r"by pod \S+ on", "by pod UID on", event.note))
        for event in result.events
        if event.reason != "Scheduled"
    ]


def test_the_preemptor_is_bound_when_its_victim_is_gone() -> None:
    low = make_pod("low").req(cpu="3").priority(0).spec(terminationGracePeriodSeconds=30).obj()
    result = simulate((0, node("n")), (0, Apply(low)), (MINUTE, pod("vip", "2", priority=10)), termination_scale=1.0)
    assert story(result) == [
        ("low", "n", 0, 0, 90 * SECOND),
        ("vip", "n", MINUTE, 90 * SECOND, None),
    ]
    assert told(result) == [
        ("vip", "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu."),
        ("low", "Preempted", "Preempted by pod UID on node n"),
    ]
    assert [each.attempts for each in result.pods] == [1, 2]


def test_room_that_was_made_is_kept_from_pods_of_lower_priority() -> None:
    low = make_pod("low").req(cpu="4").priority(0).spec(terminationGracePeriodSeconds=30).obj()
    result = simulate(
        (0, node("n")),
        (0, Apply(low)),
        (MINUTE, pod("vip", "3", priority=10)),
        (MINUTE + SECOND, pod("late", "3", priority=5)),
        termination_scale=1.0,
    )
    assert [line[0] for line in story(result) if line[1]] == ["low", "vip"]


def test_a_nominated_pod_goes_elsewhere_when_that_is_possible_sooner() -> None:
    low = make_pod("low").req(cpu="3").priority(0).spec(terminationGracePeriodSeconds=600).obj()
    result = simulate(
        (0, node("n")),
        (0, Apply(low)),
        (MINUTE, pod("vip", "2", priority=10)),
        (2 * MINUTE, node("other")),
        termination_scale=1.0,
    )
    assert [line[:4] for line in story(result)] == [("low", "n", 0, 0), ("vip", "other", MINUTE, 2 * MINUTE)]


def test_a_preemptor_of_higher_priority_takes_the_place_of_another() -> None:
    low = make_pod("low").req(cpu="4").priority(0).spec(terminationGracePeriodSeconds=30).obj()
    result = simulate(
        (0, node("n")),
        (0, Apply(low)),
        (MINUTE, pod("mid", "3", priority=5)),
        (MINUTE + 10 * SECOND, pod("top", "3", priority=10)),
        termination_scale=1.0,
    )
    assert [(line[0], line[3]) for line in story(result)] == [("low", 0), ("mid", None), ("top", 90 * SECOND)]


def _operations(steps: list[dict[str, object]]) -> list[tuple[int, Operation]]:
    operations: list[tuple[int, Operation]] = []
    for step in steps:
        at_ns = int(str(step["at_ms"])) * 1_000_000
        document = step.get("object")
        if isinstance(document, dict):
            operations.append((at_ns, Apply(default_object(decode(document)))))
    return operations


@pytest.mark.parametrize(
    "name",
    ["preempts", "preempts_several", "preempts_choice", "preempts_grace0", "preempts_never", "nominated_elsewhere"],
)
def test_events_are_those_of_the_real_scheduler(name: str) -> None:
    recorded = json.loads(shared_path("conformance", "e2e", f"{name}.json").read_text())
    made = simulator(*_operations(recorded["steps"]), termination_scale=1.0)
    made.run(until_ns=START + MINUTE)
    result = made.result()
    observed = recorded["observed"]
    bound = {key: each["nodeName"] for key, each in observed["pods"].items() if each["nodeName"]}
    for key, node_name in bound.items():
        assert next(each.node for each in result.pods if each.key == f"default/{key}") == node_name
    # Which of several equal victims stays is left to the order in which the scheduler came to know them.
    named = name != "preempts_several"
    want = Counter(
        (
            each["regarding"]["name"] if named else "",
            each["reason"],
            re.sub(r"by pod \S+ on", "by pod UID on", each["note"]),
        )
        for each in observed["events"]
        if each["reason"] not in ("LeaderElection", "Scheduled")
    )
    assert Counter((key if named else "", reason, note) for key, reason, note in told(result)) == want
