"""Bounds by bin packing: tighter than the relaxation if pods cannot be split or placed; an error without OR-Tools."""

from __future__ import annotations

import sys

import pytest

from bayplan.answers.drain_rules import DrainOptions
from bayplan.answers.node_addition import nodes_to_add
from bayplan.answers.node_removal import nodes_to_remove
from bayplan.answers.node_shapes import NodeShape, parse_shape
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.app.scheduler_setup import SchedulerOptions, read_setup
from bayplan.base.errors import MissingExtra
from bayplan.objects.node import Node
from bayplan.testing.builders import PodBuilder, make_node, make_pod
from tests.answers.clusters import cluster_of, node, running, waiting


def large(name: str, price: float) -> NodeShape:
    return parse_shape(f"name={name},cpu=4,memory=8Gi,pods=20,price={price}")


def test_a_missing_or_tools_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools", None)
    cluster = cluster_of(node("a"), node("b"), running("web-1", "a").obj())
    with pytest.raises(MissingExtra, match=r"\.\[bounds\]"):
        nodes_to_remove(cluster, packing=True)


def test_the_bound_of_the_price_is_that_of_whole_nodes() -> None:
    # Six of twelve cores stay. Of three nodes, one and a half could go, so only one.
    pods = [running(f"web-{name}", name, cpu="2").obj() for name in "abc"]
    bound = nodes_to_remove(cluster_of(node("a"), node("b"), node("c"), *pods)).bound
    assert (bound.nodes, bound.price, bound.resource) == (1, 1.0, "cpu")


def cordoned(name: str) -> Node:
    return make_node(name).capacity(cpu="4", memory="8Gi", pods="20").unschedulable().obj()


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize(
    ("items", "preempts", "want"),
    [
        pytest.param(
            [node("n"), running("low", "n", cpu="4"), make_pod("top").req(cpu="4").priority(9)], True, 0, id="evictable"
        ),
        pytest.param(
            [node("n"), running("low", "n", cpu="4"), make_pod("top").req(cpu="4").priority(9)], False, 1, id="occupied"
        ),
        pytest.param(
            [node("n"), running("same", "n", cpu="4", priority=9), make_pod("top").req(cpu="4").priority(9)],
            True,
            1,
            id="of equal priority",
        ),
        pytest.param([cordoned("n"), make_pod("any").req(cpu="4")], False, 1, id="cordoned"),
        pytest.param(
            [cordoned("n"), make_pod("any").req(cpu="4").toleration("", operator="Exists")], False, 0, id="tolerated"
        ),
    ],
)
def test_room_that_pods_may_use_lowers_the_bound_on_the_price(
    items: list[Node | PodBuilder], preempts: bool, want: float, packing: bool
) -> None:
    objects = [item.obj() if isinstance(item, PodBuilder) else item for item in items]
    answer = nodes_to_add(cluster_of(*objects), [large("l", 1.0)], preempts=preempts, packing=packing)
    assert (answer.price, answer.bound, answer.still_waiting) == (want, want, 0)


@pytest.mark.parametrize("packing", [False, True])
def test_resources_that_the_scheduler_ignores_do_not_count(packing: bool) -> None:
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/x]}}]}]\n"
    )
    setup = read_setup(SchedulerOptions(text=text, where="config.yaml"))
    small = make_node("n").capacity(cpu="4", memory="8Gi", pods="20", **{"example.com/x": "1"}).obj()
    other = make_node("m").capacity(cpu="4", memory="8Gi", pods="20", **{"example.com/x": "1"}).obj()
    pods = [make_pod(f"p{n}").req(cpu="1", **{"example.com/x": "1"}) for n in range(3)]
    cluster = QuestionCluster([small, other, *(pod.obj() for pod in pods)], setup)
    answer = nodes_to_add(cluster, [parse_shape("cpu=4,memory=8Gi,price=1,example.com/x=1")], packing=packing)
    assert (answer.price, answer.bound) == (0, 0)
    placed = [pod.node("n").owner("ReplicaSet", "p").obj() for pod in pods]
    removed = nodes_to_remove(QuestionCluster([small, other, *placed], setup), packing=packing)
    assert (len(removed.removed), removed.bound.nodes) == (1, 1)


class TestPacking:
    """With OR-Tools."""

    def test_packing_bounds_removal_by_whole_pods(self) -> None:
        # Three pods of 3 cores fill two nodes of 4 in parts, but take three whole ones.
        pods = [running(f"web-{name}", name, cpu="2500m").obj() for name in "abc"]
        cluster = cluster_of(node("a"), node("b"), node("c"), *pods)
        assert nodes_to_remove(cluster).bound.nodes == 1
        assert nodes_to_remove(cluster, packing=True).bound.nodes == 0

    def test_the_relaxed_saving_is_at_most_the_price_of_the_most_expensive_nodes(self) -> None:
        # Split nodes would save 1.125 times the price of one.
        pods = [running(f"web-{name}", name, cpu="2500m").obj() for name in "abc"]
        cluster = cluster_of(node("a"), node("b"), node("c"), *pods)
        bound = nodes_to_remove(cluster, prices={"a": 0.5, "b": 0.5, "c": 0.5}).bound
        assert (bound.nodes, bound.price) == (1, 0.5)

    def test_a_tainted_node_offers_no_room(self) -> None:
        tainted = make_node("t").capacity(cpu="64", memory="64Gi", pods="20").taint("gpu").obj()
        pods = [running(f"web-{name}", name, cpu="3").obj() for name in "ab"]
        answer = nodes_to_remove(cluster_of(node("a"), node("b"), tainted, *pods), candidates=["a", "b"], packing=True)
        assert (answer.bound.nodes, len(answer.removed)) == (0, 0)
        assert "OR-Tools" in answer.bound.method

    def test_packing_bounds_the_price_by_whole_nodes(self) -> None:
        cluster = cluster_of(node("a", cpu="1"), *(waiting(f"w-{number}", cpu="3") for number in range(3)))
        relaxed = nodes_to_add(cluster, [large("l", 2.0)])
        packed = nodes_to_add(cluster, [large("l", 2.0)], packing=True)
        assert relaxed.bound < packed.bound == packed.price == 6.0

    @pytest.mark.parametrize("count", range(5, 13))
    def test_rounded_prices_leave_room_for_all_nodes(self, count: int) -> None:
        pods = [waiting(f"w-{number}", cpu="3") for number in range(count)]
        answer = nodes_to_add(cluster_of(*pods), [large("l", 0.1)], packing=True)
        assert answer.bound == pytest.approx(answer.price)
        assert (len(answer.nodes), "OR-Tools" in answer.bound_method) == (count, True)

    @pytest.mark.parametrize("price", [1e-7, 0.000137, 1e11 / 3])
    def test_prices_of_any_size_are_compared(self, price: float) -> None:
        pods = [waiting(f"w-{number}", cpu="3") for number in range(3)]
        shapes = [large("l", price), parse_shape(f"name=m,cpu=7,memory=8Gi,pods=20,price={price * 1.9}")]
        answer = nodes_to_add(cluster_of(*pods), shapes, packing=True)
        assert answer.bound == pytest.approx(answer.price, rel=1e-6) == pytest.approx(2.9 * price, rel=1e-6)

    def test_the_bound_is_deterministic(self) -> None:
        pods = [running(f"web-{number}", "abcd"[number % 4], cpu="700m").obj() for number in range(12)]
        cluster = cluster_of(*(node(name) for name in "abcd"), *pods)
        options = DrainOptions()
        assert nodes_to_remove(cluster, options=options, packing=True).bound == (
            nodes_to_remove(cluster, options=options, packing=True).bound
        )
