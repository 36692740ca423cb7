"""Cycle cases: what is told of a cycle beside the decision itself."""

from __future__ import annotations

import pytest

from bayplan.conformance.cases import JsonObject
from bayplan.conformance.cycles import answer_cycle_case
from tests.conformance.recorded import at


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
def test_the_trial_of_the_nominated_node_is_told(nominated_node: str, cpu: str, want: JsonObject | None) -> None:
    assert cycle_of(nominated_node, cpu=cpu).get("nominated") == want
