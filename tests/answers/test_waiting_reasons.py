"""Reasons why pods wait are ranked by the number of pods that nothing else blocks."""

from __future__ import annotations

import pytest

from bayplan import Cluster, RecordLevel, make_node, make_pod
from bayplan.answers.waiting_reasons import WaitingReason, waiting_sentence


def test_reasons_are_sorted_by_pods_with_no_other_obstacle() -> None:
    nodes = [make_node("a").capacity(cpu="4").obj(), make_node("gpu").capacity(cpu="4").taint("gpu").obj()]
    large = [make_pod(f"large-{number}").req(cpu="8").obj() for number in range(2)]
    both = [make_pod(f"both-{number}").req(cpu="8").node_selector(disk="ssd").obj() for number in range(3)]
    foreign = make_pod("foreign").scheduler("mine").obj()
    fits = make_pod("fits").obj()
    cluster = Cluster([*nodes, *large, *both, foreign, fits], record_level=RecordLevel.OFF)
    rows = cluster.waiting_reasons()
    assert [(row.plugin, row.sole_pods, row.pods) for row in rows] == [
        ("NodeResourcesFit", 2, 2),
        ("no scheduler", 1, 1),
        ("NodeAffinity", 0, 3),
        ("NodeResourcesFit", 0, 3),
    ]
    assert rows[0].summary == "it requests 8 cpu, but the largest node offers 4"
    assert rows[2].summary == "no node has the label disk=ssd (nodeSelector)"
    assert rows[2].examples == ["default/both-0", "default/both-1", "default/both-2"]


def test_each_reason_counts_only_the_nodes_it_rejects() -> None:
    nodes = [make_node(name).capacity(cpu="4", memory="4Gi").obj() for name in ("a", "b")]
    tainted = make_node("c").capacity(cpu="4", memory="4Gi").taint("gpu").obj()
    cluster = Cluster([*nodes, tainted], record_level=RecordLevel.OFF)
    cluster.add(make_pod("x").node("a").req(cpu="2", memory="3Gi").obj(), make_pod("y").node("b").req(cpu="2").obj())
    cluster.add(make_pod("p").req(cpu="3", memory="2Gi").obj())
    (row,) = cluster.waiting_reasons()
    assert row.plugin == "several filters"
    assert row.summary == (
        "none of the 2 nodes that it may use has room: Insufficient cpu (2), Insufficient memory (1); "
        "the other node is excluded: taint gpu:NoSchedule"
    )


def test_a_cluster_without_nodes_is_the_reason() -> None:
    (row,) = Cluster([make_pod("p").obj()], record_level=RecordLevel.OFF).waiting_reasons()
    assert row.summary == "the cluster has no nodes"
    sentence = waiting_sentence([row], waiting=1, gated=0, pods=2, nodes=0)
    assert sentence == "There are no nodes, so none of 2 pods can be placed"


@pytest.mark.parametrize(
    ("counts", "want"),
    [
        pytest.param((5, 0), "5 of 9 pods are pending; 2 for the same reason: no room", id="some for one reason"),
        pytest.param((2, 0), "2 of 9 pods are pending; all for the same reason: no room", id="all for one reason"),
        pytest.param((1, 2), "1 of 9 pods is pending: no room; 2 more are held back by gates", id="one, and gates"),
    ],
)
def test_waiting_sentence_starts_with_the_first_reason_other_than_gates(counts: tuple[int, int], want: str) -> None:
    rows = [
        WaitingReason(plugin="SchedulingGates", sole_pods=3, pods=3, summary="a gate", examples=[]),
        WaitingReason(plugin="NodeResourcesFit", sole_pods=2, pods=2, summary="no room", examples=[]),
    ]
    waiting, gated = counts
    assert waiting_sentence(rows, waiting=waiting, gated=gated, pods=9, nodes=3) == want


def test_waiting_sentence_is_empty_if_only_gates_block_pods() -> None:
    gate = WaitingReason(plugin="SchedulingGates", sole_pods=3, pods=3, summary="a gate", examples=[])
    assert waiting_sentence([gate], waiting=0, gated=3, pods=9, nodes=3) == ""
