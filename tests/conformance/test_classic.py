"""Classic cases: findings of fuzzing against the real scheduler, and what the format records in addition to decisions."""

from __future__ import annotations

import pytest

from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.classic import answer_classic_case
from tests.conformance.recorded import at
from tests.conformance.semantics import rows


def _answer(objects: list[Json], pods: list[Json], **more: Json) -> JsonObject:
    return answer_classic_case({"id": "x", "objects": objects, "pods": pods, **more})


def test_an_assigned_preemptor_is_nominated_and_reserves_room() -> None:
    """Case k1-12553 of the fuzzer: other cycles see it as a pending pod, which reserves room on its nominated node."""
    victim = rows.pod("r", rows.cpu("2"), on="n1", priority=0)
    pods: list[Json] = [
        rows.pod("p", rows.cpu("3"), on="n1", priority=5),
        rows.pod("q", rows.cpu("2"), priority=0),
    ]
    answer = _answer([rows.node("n1", {"cpu": "4", "pods": "10"}), victim], pods)
    assert at(answer, "cycles", 0, "preemption", "victims") == ["default/r"]
    assert at(answer, "cycles", 1, "message") == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_single_node_is_chosen_and_its_scores_are_recorded() -> None:
    answer = _answer([rows.node("n1")], [rows.pod("p")])
    assert at(answer, "cycles", 0, "chosen") == "n1"
    assert at(answer, "cycles", 0, "best") == ["n1"]
    assert at(answer, "cycles", 0, "priorities", "NodePreferAvoidPodsPriority", "weight") == 10_000
    assert at(answer, "cycles", 0, "priorities", "InterPodAffinityPriority", "map") is None


@pytest.mark.parametrize(
    ("more", "want"),
    [
        pytest.param({"provider": "Mine"}, 'plugin "Mine" has not been registered', id="an unknown provider"),
        pytest.param({"policy": {"kind": "Policy", "apiVersion": "v2"}}, "no kind", id="a Policy of another version"),
        pytest.param({"featureGates": {"Nope": True}}, "unrecognized feature gate: Nope", id="an unknown gate"),
    ],
)
def test_a_refused_configuration_is_answered_with_an_error(more: JsonObject, want: str) -> None:
    answer = _answer([], [], **more)
    assert answer["cycles"] is None
    assert want in str(answer["error"])


def test_terminating_pods_and_pods_of_other_schedulers_are_skipped() -> None:
    other, gone = rows.pod("other"), rows.pod("gone")
    spec, metadata = other["spec"], gone["metadata"]
    assert isinstance(spec, dict)
    assert isinstance(metadata, dict)
    spec["schedulerName"] = "mine"
    metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    answer = _answer([rows.node("n1")], [other, gone])
    assert at(answer, "cycles", 0, "message") == 'not responsible for scheduler name "mine"'
    assert at(answer, "cycles", 1, "message") == "skip schedule deleting pod: default/gone"
