"""Cycle cases: what they record of a scheduling cycle in addition to the decision."""

from __future__ import annotations

import pytest

from bayplan.conformance.cases import JsonObject
from bayplan.conformance.cluster_objects import read_objects
from bayplan.conformance.cycles import answer_cycle_case
from tests.conformance.recorded import at
from tests.conformance.semantics import rows


def cycle_of(nominated_node: str, *, cpu: str = "1") -> JsonObject:
    node: JsonObject = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    node["status"] = {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}}
    container: JsonObject = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    pod: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [container]},
    }
    if nominated_node:
        pod["status"] = {"nominatedNodeName": nominated_node}
    answer = answer_cycle_case({"id": "x", "objects": [node], "pods": [pod]})
    cycle = at(answer, "cycles", 0)
    assert isinstance(cycle, dict)
    return cycle


@pytest.mark.parametrize(
    ("nominated_node", "cpu", "want"),
    [
        pytest.param("", "1", None, id="a pod without nomination"),
        pytest.param("n1", "1", {"node": "n1", "feasible": True}, id="a nominated node that fits"),
        pytest.param("n1", "3", {"node": "n1", "feasible": False}, id="a nominated node that does not"),
        pytest.param("gone", "1", {"node": "gone", "feasible": False}, id="a nominated node that does not exist"),
    ],
)
def test_an_answer_reports_whether_the_nominated_node_is_feasible(
    nominated_node: str, cpu: str, want: JsonObject | None
) -> None:
    assert cycle_of(nominated_node, cpu=cpu).get("nominated") == want


def test_an_assigned_pod_is_filtered_by_node_name_and_can_be_nominated() -> None:
    """The recording program treats such a pod as pending, so it reserves room on its nominated node."""
    victim = rows.pod("r", rows.cpu("3"), on="n1", priority=0)
    pods = [rows.pod("p", rows.cpu("2"), on="n1", priority=5), rows.pod("q", rows.cpu("1"), priority=0)]
    answer = answer_cycle_case(
        {"id": "x", "objects": [rows.node("n1"), rows.node("n2", {"cpu": "2"}), victim], "pods": [*pods]}
    )
    assert at(answer, "cycles", 0, "filterAll", "NodeName", "n2", "code") == "UnschedulableAndUnresolvable"
    assert at(answer, "cycles", 0, "preemption", "nominatedNode") == "n1"
    assert at(answer, "cycles", 1, "filter", "n1", "reasons") == ["Insufficient cpu"]
    assert at(answer, "cycles", 1, "chosen") == "n2"


def test_objects_are_sorted_like_api_server_lists_and_nodes_are_not() -> None:
    documents = [rows.node("n2"), rows.device_class("b"), rows.node("n1"), rows.device_class("a")]
    objects = read_objects({"id": "x", "objects": [*documents], "pods": []})
    assert [item.metadata.name for item in objects.others] == ["n2", "n1", "a", "b"]


@pytest.mark.parametrize(
    ("request_", "want"),
    [
        pytest.param("9.5Gi", ["Insufficient memory"], id="no room is left after the sums of another PreFilter"),
        pytest.param("9728Mi", [], id="amounts as an API server writes them don't grow"),
        pytest.param("9223372036854775807", [], id="a sum beyond 64 bits counts as 0"),
    ],
)
def test_each_filter_runs_separately_after_its_own_pre_filter(request_: str, want: list[str]) -> None:
    pod = rows.pod("p", resources={"requests": {"memory": request_}}, overhead={"memory": "3Gi"})
    answer = answer_cycle_case({"id": "x", "objects": [rows.node()], "pods": [pod]})
    assert at(answer, "cycles", 0, "filter") == {}
    reported = at(answer, "cycles", 0, "filterAll")
    assert isinstance(reported, dict)
    assert (at(reported, "NodeResourcesFit", "n1", "reasons") if reported else []) == want


@pytest.mark.parametrize(
    ("memory", "want"),
    [
        # Upstream adds overhead with each sum. Six sums precede the balance of memory: 1.5Gi + 6 * 2Gi; for the next
        # pod 1.5Gi + 7 * 2Gi.
        pytest.param("1.5Gi", [69, 71], id="upstream adds overhead to the pod itself, with every sum"),
        pytest.param("1536Mi", [74, 86], id="but not to the same amount as an API server writes it"),
    ],
)
def test_overhead_of_a_pod_level_request_accumulates_like_upstream(memory: str, want: list[int]) -> None:
    level: JsonObject = {"requests": {"cpu": "1", "memory": memory}}
    pods = [
        rows.pod("p", resources=level, overhead={"cpu": "4", "memory": "2Gi"}),
        rows.pod("q", {"cpu": "1", "memory": "1Gi"}),
    ]
    objects = [rows.node("n1", {"cpu": "40", "memory": "40Gi"})]
    cycles = answer_cycle_case({"id": "x", "objects": [*objects], "pods": [*pods]})["cycles"]
    balance = at(cycles, 0, "scores", "NodeResourcesBalancedAllocation", "raw", "n1")
    assert [balance, at(cycles, 1, "scores", "NodeResourcesFit", "raw", "n1")] == want
