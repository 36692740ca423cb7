"""Nodes that can be removed: the rules of a drain, the order, the pods' new nodes, and the bound."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from msgspec.structs import replace

from bayplan.answers.answer_text import removal_text
from bayplan.answers.drain_rules import DrainOptions
from bayplan.answers.node_removal import nodes_to_remove
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod, Volume
from bayplan.objects.volumes import EmptyDirVolumeSource
from tests.answers.clusters import cluster_of, node, running, waiting


def budget(allowed: int, name: str = "web") -> KubernetesObject:
    return decode(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed, "expectedPods": 2},
        }
    )


def with_empty_dir(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, volumes=(Volume(name="d", empty_dir=EmptyDirVolumeSource()),)))


NODES = (node("n1"), node("n2"))
WEB = running("web-1", "n1").obj()
BARE = running("bare", "n1", kind="").obj()
AGENT = running("agent-1", "n1", owner="agent", kind="DaemonSet").obj()
MIRROR = running("static-n1", "n1", owner="n1", kind="Node").annotation({"kubernetes.io/config.mirror": "x"}).obj()
OTHER = running("other-1", "n2", owner="other", cpu="3").obj()


@pytest.mark.parametrize(
    ("items", "options", "removed", "kept"),
    [
        pytest.param((*NODES, WEB, OTHER), DrainOptions(), ["n1"], "", id="the node with the least to move"),
        pytest.param((*NODES, AGENT, OTHER), DrainOptions(), ["n1"], "", id="pods of DaemonSets end with their node"),
        pytest.param((*NODES, MIRROR, OTHER), DrainOptions(), ["n1"], "", id="mirror pods end with their node"),
        pytest.param((*NODES, BARE, OTHER), DrainOptions(), ["n2"], "no controller", id="a bare pod keeps its node"),
        pytest.param(
            (*NODES, BARE, OTHER), DrainOptions(force=True), ["n1"], "", id="a bare pod is evicted with force"
        ),
        pytest.param(
            (*NODES, with_empty_dir(WEB), OTHER), DrainOptions(), ["n2"], "emptyDir", id="emptyDir data keeps its node"
        ),
        pytest.param(
            (*NODES, with_empty_dir(WEB), OTHER),
            DrainOptions(delete_emptydir_data=True),
            ["n1"],
            "",
            id="emptyDir data is deleted with the option",
        ),
        pytest.param(
            (*NODES, WEB, OTHER, budget(1)),
            DrainOptions(),
            ["n1"],
            "",
            id="a budget with one disruption left allows the eviction",
        ),
        pytest.param(
            (*NODES, WEB, OTHER, budget(0)),
            DrainOptions(),
            ["n2"],
            "allows no disruption",
            id="a budget without disruptions left forbids the eviction",
        ),
        pytest.param(
            (*NODES, WEB, OTHER, budget(1), budget(1, "more")),
            DrainOptions(),
            ["n2"],
            "more than one",
            id="two budgets",
        ),
        pytest.param(
            (*NODES, WEB, OTHER, budget(0)),
            DrainOptions(disable_eviction=True),
            ["n1"],
            "",
            id="disruption budgets are ignored",
        ),
        pytest.param(
            (*NODES, running("tied-1", "n1").node_selector({"kubernetes.io/hostname": "n1"}).obj(), OTHER),
            DrainOptions(),
            ["n2"],
            "",
            id="a pod that is tied to its node",
        ),
    ],
)
def test_drain_rules_determine_which_nodes_can_be_removed(
    items: tuple[KubernetesObject, ...], options: DrainOptions, removed: list[str], kept: str
) -> None:
    answer = nodes_to_remove(cluster_of(*items), options=options)
    assert [each.node for each in answer.removed] == removed
    ruled = [each.reason for each in answer.kept if each.is_rule]
    assert bool(ruled) is bool(kept)
    assert all(kept in reason for reason in ruled)


def test_each_pod_moves_once_and_the_bound_is_reached() -> None:
    nodes = [node(f"n{number}") for number in range(6)]
    pods = [running(f"web-{number}", f"n{number}", cpu="1500m").obj() for number in range(6)]
    cluster = cluster_of(*nodes, *pods)
    answer = nodes_to_remove(cluster)
    gone = {each.node for each in answer.removed}
    assert len(gone) == 3 == answer.bound.nodes
    assert sorted(each.pod for each in answer.moves) == sorted(f"default/web-{name[1:]}" for name in gone)
    assert not {each.to_node for each in answer.moves} & gone
    assert removal_text(answer)[0].startswith(
        "3 of 6 nodes can be removed: 3 pods move, and no placed pod becomes pending. No larger set"
    )
    cluster.state.check_invariants()
    assert [*nodes_to_remove(cluster).moves] == [*answer.moves]


def test_the_text_about_a_single_node_has_no_numbers() -> None:
    answer = nodes_to_remove(cluster_of(node("n1"), running("p", "n1").obj()))
    assert removal_text(answer)[0] == "The only node can't be removed."


def test_other_orders_are_tried_if_the_first_one_leaves_nodes() -> None:
    # The large node has the smallest share to move, but only if it stays can all others be removed.
    nodes = [node(name, cpu=cpu) for name, cpu in (("a", "2"), ("b", "4"), ("c", "2"), ("large", "8"))]
    pods = [running(f"p-{name}", name, cpu=cpu).obj() for name, cpu in (("a", "2"), ("b", "1"), ("c", "2"))]
    pods += [running(f"large-{number}", "large").obj() for number in range(2)]
    answer = nodes_to_remove(cluster_of(*nodes, *pods))
    assert sorted(each.node for each in answer.removed) == ["a", "b", "c"]
    assert [each.node for each in answer.kept] == ["large"]


def test_expensive_nodes_are_removed_first() -> None:
    nodes = [node("cheap"), node("dear"), node("other")]
    pods = [running(f"web-{name}", name, cpu="2").obj() for name in ("cheap", "dear", "other")]
    answer = nodes_to_remove(cluster_of(*nodes, *pods), prices={"dear": 9.0}, most=1)
    assert [(each.node, each.price) for each in answer.removed] == [("dear", 9.0)]
    assert answer.price <= answer.bound.price


@pytest.mark.parametrize(
    ("prices", "most", "cpus", "want"),
    [
        pytest.param({"x": 1, "y": 2, "z": 1}, None, ("1", "4"), ["y"], id="either of two, but not both"),
        pytest.param({"x": 1, "y": 1.5, "z": 1}, 1, ("1", "2"), ["y"], id="the most expensive one of two"),
        pytest.param({"x": 5, "y": 1, "z": 1}, None, ("4", "1"), ["x"], id="the one with the larger pod"),
        pytest.param({}, 1, ("1", "2"), ["x"], id="without prices, the one with the smallest pod"),
        pytest.param({"x": 1, "y": 2, "z": 1}, None, ("1", "2"), ["x", "y"], id="both"),
    ],
)
def test_the_set_of_nodes_that_saves_most_is_removed(
    prices: dict[str, float], most: int | None, cpus: tuple[str, str], want: list[str]
) -> None:
    pods = [running(f"web-{name}", name, cpu=cpu).obj() for name, cpu in zip("xy", cpus, strict=True)]
    cluster = cluster_of(node("x"), node("y"), node("z"), *pods)
    answer = nodes_to_remove(cluster, ["x", "y"], prices=prices, most=most)
    assert sorted(each.node for each in answer.removed) == want
    assert answer.price == sum(prices.get(name, 1.0) for name in want) <= answer.bound.price


@pytest.mark.parametrize("seed", [7, 12, 13, 16, 27])
def test_no_set_of_a_small_random_cluster_saves_more(seed: int) -> None:
    draw = Random(seed)
    names = "abcde"[: draw.randint(3, 5)]
    nodes = [node(name, cpu=str(draw.choice([2, 4, 8]))) for name in names]
    pods = [
        running(f"p{number}", draw.choice(names), cpu=str(draw.choice([1, 1, 2, 3])), owner=f"o{number}").obj()
        for number in range(draw.randint(2, 7))
    ]
    cluster = cluster_of(*nodes, *pods)
    prices = {name: draw.choice([1, 2, 3, 0.5]) for name in names}
    sets = [chosen for count in range(1, len(names) + 1) for chosen in combinations(names, count)]
    possible = [chosen for chosen in sets if len(nodes_to_remove(cluster, chosen, prices={}).removed) == len(chosen)]
    want = max(sum(prices[name] for name in chosen) for chosen in possible)
    assert nodes_to_remove(cluster, prices=prices).price == want


def test_the_saving_and_its_bound_are_stated_if_nodes_have_prices() -> None:
    pods = [running(f"web-{name}", name, cpu="1").obj() for name in "xyz"]
    nodes = [node(name) for name in "xyz"]
    for prices, want in (
        ({"x": 1.0}, "saving 2.00: 2 pods move, and no placed pod becomes pending. No set of nodes saves more."),
        ({}, "can be removed: 2 pods move, and no placed pod becomes pending. No larger set of nodes can be removed."),
    ):
        assert removal_text(nodes_to_remove(cluster_of(*nodes, *pods), prices=prices))[0].endswith(want)
    pods = [running(f"web-{name}", name, cpu="2500m").obj() for name in "xyz"]
    (first, *_) = removal_text(nodes_to_remove(cluster_of(*nodes, *pods), prices={"x": 1.0}))
    assert first == "None of 3 nodes can be removed."


@pytest.mark.parametrize(
    ("prices", "cpu", "want"),
    [
        pytest.param({}, "1", "The limit of --most is reached.", id="without prices"),
        pytest.param({"x": 3.0, "y": 2.0}, "1", "No set of at most 1 node saves more.", id="with prices"),
        pytest.param(
            {"x": 3.0, "y": 2.0}, "3", "Upper bound: 1 node, saving 3.00 (relaxation", id="another node saves more"
        ),
    ],
)
def test_the_bound_respects_the_maximum_number_of_nodes(prices: dict[str, float], cpu: str, want: str) -> None:
    nodes = [node("x"), node("y", cpu="2"), node("z", cpu="2")]
    pods = [running("p", "x", cpu=cpu).obj(), running("q", "y", cpu="500m").obj()]
    assert want in removal_text(nodes_to_remove(cluster_of(*nodes, *pods), prices=prices, most=1))[0]


@pytest.mark.parametrize(
    ("prices", "want"),
    [
        pytest.param({"x": 2.0, "y": 3.0, "z": 4.0}, [], id="all given"),
        pytest.param({"x": 2.0, "z": 4.0}, ["no price is given for node y: 1 is assumed"], id="one missing"),
        pytest.param({"z": 4.0}, ["no price is given for 2 nodes, such as x: 1 is assumed"], id="several missing"),
        pytest.param({}, ["all nodes cost the same"], id="none given"),
    ],
)
def test_nodes_without_a_price_are_named(prices: dict[str, float], want: list[str]) -> None:
    answer = nodes_to_remove(cluster_of(*map(node, "xyz")), prices=prices)
    assert [text for text in answer.assumptions if "price" in text or "cost" in text] == want


def test_pending_pods_are_ignored() -> None:
    answer = nodes_to_remove(cluster_of(*NODES, WEB, OTHER, waiting("new", cpu="2")))
    assert [each.node for each in answer.removed] == ["n1"]
    assert any("1 pending pod is ignored" in text for text in answer.assumptions)
