"""Two clusters whose pods have the same nodes may differ in requests, allocatable amounts, labels and taints."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.answers.answer_text import difference_text
from bayplan.answers.comparing import compare
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node, Taint
from bayplan.testing.builders import make_node
from tests.answers.clusters import cluster_of, node, running, waiting

TAINTED = make_node("n").taint("x", "y", "NoSchedule").taint("gpu", "yes", "NoExecute").obj()
LATER = tuple(replace(taint, time_added="2026-03-01T00:00:00Z") for taint in TAINTED.spec.taints)
GKE = "gke-prod-pool-1a2b3c4d-x9z8"


def with_taints(taints: tuple[Taint, ...]) -> Node:
    return replace(TAINTED, spec=replace(TAINTED.spec, taints=taints))


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        pytest.param(
            [running("web-1", GKE).obj(), waiting("big", cpu="9")],
            [running("web-1", GKE, cpu="2").obj(), waiting("big", cpu="7")],
            ["2 pods have different requests: default/big and default/web-1"],
            id="requests",
        ),
        pytest.param(
            [running("web-ab", GKE).obj()],
            [running("web-cd", GKE, cpu="2").obj()],
            ["1 pod has different requests: default/web-ab"],
            id="requests of a replica with another name",
        ),
        pytest.param(
            [running("web-1", GKE, cpu="1000m").obj()], [running("web-1", GKE).obj()], [], id="another spelling"
        ),
        pytest.param(
            [node("n", cpu="4")], [node("n", cpu="8")], ["1 node has different allocatable amounts: n"], id="amounts"
        ),
        pytest.param(
            [make_node("n").zone("a").obj()],
            [make_node("n").zone("b").unschedulable().obj()],
            ["1 node has different labels: n", "1 node has different taints: n"],
            id="labels and taints",
        ),
        pytest.param([TAINTED], [with_taints(LATER)], [], id="time of taints"),
        pytest.param([TAINTED], [with_taints(LATER[::-1])], [], id="order of taints"),
        pytest.param(
            [node("old"), node("n")],
            [node("n"), node("x"), node("y")],
            ["1 node is only in a: old", "2 nodes are only in b: x and y"],
            id="nodes of one cluster",
        ),
    ],
)
def test_other_differences_are_listed(
    before: list[KubernetesObject], after: list[KubernetesObject], want: list[str]
) -> None:
    answer = compare(cluster_of(node(GKE), *before), cluster_of(node(GKE), *after))
    assert answer.changed == want
    assert not answer.differences
    first, *lines = difference_text(answer, names=("a", "b"))
    assert first.startswith("a and b: no difference; ") is (want == [])
    assert [each for each in lines if each.rstrip(".") in want] == [f"{each}." for each in want]


def test_a_notebook_shows_other_differences() -> None:
    shown = compare(cluster_of(node("n"), node("old")), cluster_of(node("n")))._repr_html_()
    assert "of 0 pods, other differences" in shown
    assert "<td>1 node is only in a: old</td>" in shown
