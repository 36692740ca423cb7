"""Two clusters whose pods have the same nodes may differ in requests, allocatable amounts, labels and taints."""

from __future__ import annotations

import pytest

from bayplan.answers.answer_text import difference_text
from bayplan.answers.comparing import compare
from bayplan.objects.meta import KubernetesObject
from bayplan.testing.builders import make_node
from tests.answers.clusters import cluster_of, node, running, waiting

GKE = "gke-prod-pool-1a2b3c4d-x9z8"


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
