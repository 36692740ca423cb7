"""Full records of preemption: the candidates, why they lost, why other nodes are not candidates; and their size."""

from __future__ import annotations

import pytest

from bayplan.framework.preemption.account import MAX_CANDIDATES, MAX_NODES, PreemptionAccount
from bayplan.library import Cluster
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.testing import make_budget, make_node, make_pod


def node(name: str, cpu: str = "4") -> Node:
    return make_node(name).capacity(cpu=cpu, memory="8Gi").obj()


def running(name: str, where: str, priority: int, cpu: str = "3") -> Pod:
    pod = make_pod(name).req(cpu=cpu).node(where).priority(priority).label(app=name)
    return pod.started("2026-01-01T00:00:00Z").obj()


def account(*objects: Node | Pod, budget: str = "", **arguments: int) -> PreemptionAccount:
    """Return the record of a pod of priority 100 that requests 3 CPUs."""
    configuration = None
    if arguments:
        header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        given = [{"name": "DefaultPreemption", "args": arguments}]
        configuration = header | {"profiles": [{"schedulerName": "default-scheduler", "pluginConfig": given}]}
    cluster = Cluster(objects, configuration=configuration)
    if budget:
        cluster.add(make_budget("b", {"app": budget}))
    decision = cluster.schedule(make_pod("p").req(cpu="3").priority(100).obj())[0]
    assert decision.preemption is not None
    return decision.preemption


def test_candidates_are_recorded_with_the_criterion_they_lost_by() -> None:
    nodes = [node(name) for name in ("best", "dear", "many", "guarded")]
    pods = [
        running("low", "best", 1),
        running("high", "dear", 50),
        *(running(f"one-{number}", "many", 1, cpu="1500m") for number in (0, 1)),
        running("kept", "guarded", 1),
    ]
    found = account(*nodes, *pods, budget="kept")
    assert found.chosen == "best"
    assert {each.node: each.lost_by for each in found.candidates} == {
        "best": "",
        "many": "sum of priorities",
        "dear": "highest priority",
        "guarded": "pdb violations",
    }
    assert [each.node for each in found.candidates] == ["best", "many", "dear", "guarded"]
    assert [victim.pod for victim in found.candidates[1].victims] == ["default/one-0", "default/one-1"]


@pytest.mark.parametrize("count", [4, 40], ids=["a search node by node", "a search in lockstep"])
def test_rejected_candidate_nodes_are_recorded_with_a_reason(count: int) -> None:
    nodes = [node(f"n{number:02}") for number in range(count)]
    pods = [running(f"high-{number}", f"n{number:02}", 1000) for number in range(0, count, 2)]
    half = [running(f"low-{number}", f"n{number:02}", 1, cpu="1") for number in range(1, count, 2)]
    full = [running(f"high-{number}", f"n{number:02}", 1000, cpu="2") for number in range(1, count, 2)]
    found = account(*nodes, *pods, *half, *full, node("tiny", "1"))
    assert (found.chosen, found.candidates) == ("", ())
    reported = {(refusal.status.plugin, refusal.status.reasons): refusal for refusal in found.refusals}
    assert {key: refusal.count for key, refusal in reported.items()} == {
        ("", ("No preemption victims found for incoming pod",)): count // 2,
        ("NodeResourcesFit", ("Insufficient cpu",)): count // 2,
    }
    assert set(reported["NodeResourcesFit", ("Insufficient cpu",)].nodes) == {
        f"n{number:02}" for number in range(1, count, 2)
    }
    assert found.others == 1


def test_recorded_candidates_and_nodes_are_limited_but_all_are_counted() -> None:
    cheap, dear = MAX_CANDIDATES + 8, MAX_NODES + 6
    nodes = [node(f"n{number:03}") for number in range(cheap + dear)]
    pods = [running(f"r{number}", f"n{number:03}", 1 if number < cheap else 1000) for number in range(cheap + dear)]
    found = account(*nodes, *pods)
    assert (len(found.candidates), found.candidate_count) == (MAX_CANDIDATES, cheap)
    assert found.candidates[0].node == found.chosen
    [refusal] = found.refusals
    assert (len(refusal.nodes), refusal.count) == (MAX_NODES, dear)


def test_nodes_that_were_not_tried_are_counted() -> None:
    nodes = [node(f"n{number}") for number in range(6)]
    pods = [running(f"r{number}", f"n{number}", 1) for number in range(6)]
    found = account(*nodes, *pods, minCandidateNodesPercentage=0, minCandidateNodesAbsolute=2)
    assert (found.candidate_count, found.untried) == (2, 4)
