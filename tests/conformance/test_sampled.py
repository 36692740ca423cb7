"""Sampled cases: the number of nodes examined, and which of the best nodes is taken."""

from __future__ import annotations

import pytest

from bayplan.conformance.answers import Answer, answer
from bayplan.conformance.cases import Json, JsonObject, RecordedCase, kind_of
from bayplan.conformance.comparer import compare
from bayplan.conformance.sampled import answer_sampled_case
from tests.conformance.recorded import at, put
from tests.conformance.semantics import rows

NAMES = [f"n{number:03d}" for number in range(120)]


def case_of(*pods: JsonObject, percentage: int = 0, follow: list[Json] | None = None) -> JsonObject:
    case: JsonObject = {
        "id": "sampled/x",
        "sampled": True,
        "objects": [rows.node(name) for name in NAMES],
        "pods": [*pods],
    }
    config: JsonObject = {"apiVersion": rows.API_VERSION, "kind": "KubeSchedulerConfiguration"}
    if percentage:
        config["percentageOfNodesToScore"] = percentage
    case["config"] = config
    if follow is not None:
        case["follow"] = follow
    return case


def reported(case: JsonObject, part: str) -> list[Json]:
    sampled = answer_sampled_case(case)["sampled"]
    assert isinstance(sampled, list)
    return [at(pod, part) for pod in sampled]


@pytest.mark.parametrize(
    ("percentage", "want"),
    [
        pytest.param(0, [100, 100], id="adaptive: never fewer than 100 feasible nodes"),
        pytest.param(90, [108, 108], id="as many as configured"),
        pytest.param(100, [120, 120], id="all"),
    ],
)
def test_percentage_of_nodes_to_score_limits_the_evaluated_nodes(percentage: int, want: list[int]) -> None:
    case = case_of(rows.pod("p", rows.cpu("1")), rows.pod("q", rows.cpu("1")), percentage=percentage)
    assert reported(case, "evaluated") == want
    assert reported(case, "feasible") == want


def test_the_search_continues_after_the_last_evaluated_node() -> None:
    case = case_of(rows.pod("p", rows.cpu("1")), rows.pod("q", rows.cpu("1")))
    first, second = reported(case, "hosts")
    assert first == NAMES[:100]
    # The node with p now scores lower than the other nodes, so it is not among the best.
    assert second == sorted(NAMES[100:] + NAMES[1:80])


def test_the_prescribed_node_is_chosen_if_it_is_among_the_best() -> None:
    pods = [rows.pod("p", rows.cpu("4")), rows.pod("q", nodeName="n042"), rows.pod("s", rows.cpu("1"))]
    assert reported(case_of(*pods), "host") == ["n000", "n042", "n001"]
    assert reported(case_of(*pods, follow=["n042", None, "n042"]), "host") == ["n042", "n042", "n000"]


def test_an_infeasible_pod_has_a_message_and_no_host() -> None:
    case = case_of(rows.pod("p", rows.cpu("9")))
    assert reported(case, "message") == ["0/120 nodes are available: 120 Insufficient cpu."]
    assert (reported(case, "host"), reported(case, "evaluated"), reported(case, "feasible")) == ([None], [0], [0])


def recorded() -> RecordedCase:
    case = case_of(rows.pod("p", rows.cpu("1")), rows.pod("q", rows.cpu("1")), follow=["n007", "n008"])
    pods: list[Json] = [
        {"pod": f"default/{name}", "host": host, "evaluated": 100, "feasible": 100, "message": None}
        for name, host in (("p", "n007"), ("q", "n008"))
    ]
    want: JsonObject = {"id": "sampled/x", "kubernetes": "v1.36.3", "error": None, "cycles": None, "sampled": pods}
    assert kind_of({"case": case, "want": want}) == "sampled"
    return RecordedCase("sampled", "sampled/x", "sampled", "", "f:1", case, want)


def test_any_best_host_agrees_but_a_different_set_of_hosts_does_not() -> None:
    case = recorded()
    ours = answer(case)
    assert not ours.failure
    assert compare(case, ours).differences == []
    put(ours.body, ("sampled", 0, "hosts"), ["n001", "n002"])
    assert [each.part for each in compare(case, ours).differences] == ["host"]


@pytest.mark.parametrize(
    ("part", "new"), [("pod", "default/x"), ("evaluated", 99), ("feasible", 101), ("message", "x")]
)
def test_a_different_count_or_text_is_a_difference(part: str, new: Json) -> None:
    case = recorded()
    ours = answer(case)
    put(ours.body, ("sampled", 1, part), new)
    assert [each.part for each in compare(case, ours).differences] == [part]


def test_pods_after_a_different_choice_are_not_compared() -> None:
    case = recorded()
    ours = answer(case)
    put(ours.body, ("sampled", 0, "host"), "n009")
    put(ours.body, ("sampled", 1, "evaluated"), 5)
    comparison = compare(case, Answer(ours.body))
    assert comparison.differences == []
    assert (comparison.parts["followed"].checks, comparison.parts["followed"].agreed) == (2, 1)
