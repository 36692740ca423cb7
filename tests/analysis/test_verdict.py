"""The verdict about a pod, and decisions in one line."""

from __future__ import annotations

import pytest

from bayplan.analysis.explain import attempts_of
from bayplan.analysis.explanation import Attempt
from bayplan.analysis.run_source import SimulationSource
from bayplan.analysis.verdict import attempt_difference, decision_text, pod_verdict, waiting_reason
from bayplan.engine.decision import Outcome, Record
from bayplan.engine.records import RecordLevel
from bayplan.testing.builders import NodeBuilder, PodBuilder
from tests.analysis.runs import busy_run, node, pod, run

FULL, SUMMARY = RecordLevel.FULL, RecordLevel.SUMMARY
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NOBODY: tuple[str, ...] = ()


def record(
    outcome: Outcome,
    *,
    node: str = "",
    feasible: int = 0,
    evaluated: int = 5,
    ties: int = 1,
    message: str = "",
    nominated: str = "",
    victims: tuple[str, ...] = NOBODY,
) -> Record:
    return Record(0, "web/api-7", 1, outcome, node, feasible, evaluated, ties, 796, message, nominated, victims, -1)


@pytest.mark.parametrize(
    ("decision", "margin", "want"),
    [
        pytest.param(
            record(Outcome.SCHEDULED, node="n-12", feasible=297),
            12,
            "web/api-7 -> n-12: best of 297, 12 ahead",
            id="a clear winner",
        ),
        pytest.param(
            record(Outcome.SCHEDULED, node="n-12", feasible=297, ties=3),
            None,
            "web/api-7 -> n-12: best of 297, 3 equal",
            id="a tie without a known margin",
        ),
        pytest.param(
            record(Outcome.SCHEDULED, node="n-12", feasible=1),
            None,
            "web/api-7 -> n-12: the only one that fits",
            id="only one feasible node",
        ),
        pytest.param(
            record(Outcome.SCHEDULED, node="n-12", feasible=1, evaluated=1),
            None,
            "web/api-7 -> n-12: the only one examined",
            id="the nominated node was tried alone",
        ),
        pytest.param(
            record(Outcome.UNSCHEDULABLE, message="0/5 nodes are available: 5 Insufficient cpu."),
            None,
            "web/api-7 is pending: Insufficient cpu (5)",
            id="nothing fits",
        ),
        pytest.param(
            record(Outcome.UNSCHEDULABLE, nominated="n-3", victims=("a/b", "a/c"), message="0/5 ..."),
            None,
            "web/api-7 waits for room on n-3, preempting 2 pods",
            id="other pods must be removed",
        ),
        pytest.param(
            record(Outcome.ERROR, message='running Filter plugin "X": KeyError'),
            None,
            'web/api-7 failed: running Filter plugin "X": KeyError',
            id="a plugin failed",
        ),
        pytest.param(
            record(Outcome.SKIPPED, message="skip schedule deleting pod: web/api-7"),
            None,
            "web/api-7 was skipped: skip schedule deleting pod: web/api-7",
            id="a pod that is being deleted",
        ),
    ],
)
def test_decision_text_describes_a_decision_in_one_line(decision: Record, margin: int | None, want: str) -> None:
    assert decision_text(decision, margin) == want


def attempt(feasible: int, *, evaluated: int = 5, outcome: str = "unschedulable", message: str = "x") -> Attempt:
    return Attempt(
        number=0,
        attempt=1,
        time_ns=0,
        outcome=outcome,
        node="",
        feasible_nodes=feasible,
        evaluated_nodes=evaluated,
        ties=0,
        total=0,
        message=message,
        nominated_node="",
        victims=[],
    )


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param(None, attempt(0), "", id="the first attempt"),
        pytest.param(attempt(0), attempt(0), "", id="an identical attempt"),
        pytest.param(attempt(13), attempt(1), "12 nodes fewer fit", id="fewer feasible nodes"),
        pytest.param(
            attempt(0),
            attempt(1, outcome="scheduled"),
            "1 node more fits, scheduled instead of unschedulable",
            id="feasible now",
        ),
        pytest.param(attempt(0), attempt(0, evaluated=6), "6 nodes examined instead of 5", id="a node was added"),
        pytest.param(attempt(0), attempt(0, message="y"), "now y", id="another reason"),
    ],
)
def test_attempt_difference_describes_changes_since_the_previous_attempt(
    before: Attempt | None, after: Attempt, want: str
) -> None:
    assert attempt_difference(before, after) == want


def test_the_verdict_names_the_pod_and_its_node() -> None:
    result = busy_run()
    source = SimulationSource(result)
    for life in result.pods:
        sentence = pod_verdict(source, life, attempts_of(source, life, [life]))
        assert sentence.startswith(f"{life.key} ")
        assert life.node in sentence


SMALL = [node(f"n{number}", cpu=f"{number + 1}") for number in range(3)]
NOWHERE = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n0", "n1")]}]


@pytest.mark.parametrize(
    ("nodes", "made", "level", "want"),
    [
        pytest.param(
            SMALL,
            pod("p", cpu="3500m"),
            FULL,
            "it requests 3.5 cpu, but the largest node offers 3",
            id="larger than any node",
        ),
        pytest.param(
            SMALL,
            pod("p", cpu="3500m", memory="9Gi"),
            FULL,
            "it requests 3.5 cpu, but the largest node offers 3; it requests 9Gi memory, but the largest node offers 8Gi",
            id="too large in two resources",
        ),
        pytest.param(
            SMALL[:1], pod("p", cpu="3"), FULL, "it requests 3 cpu, but the only node, n0, offers 1", id="a single node"
        ),
        pytest.param(
            [*SMALL, node("t").taint("gpu")],
            pod("p", cpu="3500m"),
            FULL,
            "it requests 3.5 cpu, but the largest of the 3 nodes that it may use offers 3; "
            "the other node is excluded: taint gpu:NoSchedule",
            id="a node with room and a taint",
        ),
        pytest.param(
            SMALL, pod("p", cpu="4"), SUMMARY, "none of 3 nodes fits: Insufficient cpu (3)", id="no full record is kept"
        ),
        pytest.param(
            SMALL,
            pod("p").spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": NOWHERE}}}),
            FULL,
            "pod affinity terms conflict",
            id="PreFilter rejected it",
        ),
        pytest.param([], pod("p"), FULL, "the cluster has no nodes", id="there are no nodes"),
    ],
)
def test_waiting_reason_explains_a_pending_pod_in_one_sentence(
    nodes: list[NodeBuilder], made: PodBuilder, level: RecordLevel, want: str
) -> None:
    result = run(*(each.obj() for each in nodes), made.obj(), level=level)
    source, life = SimulationSource(result), result.pods[0]
    attempts = attempts_of(source, life, [life])
    assert waiting_reason(source, life, attempts) == want
    assert pod_verdict(source, life, attempts) == f"default/p is pending: {want}"
