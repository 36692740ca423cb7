"""Nodes to add: shapes, prices, zones, DaemonSets, and pods that no node helps."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bayplan.answers.answer_text import addition_text
from bayplan.answers.dependent_pods import DependentPods
from bayplan.answers.node_addition import nodes_to_add
from bayplan.answers.node_groups import REGION, ZONE
from bayplan.answers.node_removal import nodes_to_remove
from bayplan.answers.node_shapes import parse_shape, shapes_of
from bayplan.answers.pod_orders import order_note
from bayplan.answers.prices import parse_prices, price_in
from bayplan.answers.trial import Trial
from bayplan.base.errors import InputError
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.node_prices import PRICE
from bayplan.objects.pod import Pod
from bayplan.testing import make_node, make_pod
from bayplan.testing.object_builders import make_object
from tests.answers.clusters import cluster_of, node, running, waiting

EBS = "topology.ebs.csi.aws.com/zone"
SMALL = "name=small,cpu=2,memory=4Gi,price=1"
LARGE = "name=large,cpu=8,memory=16Gi,price=3"
FULL = (node("n1", cpu="1"), running("web-1", "n1").obj())


@pytest.mark.parametrize(
    ("cpus", "shapes", "want"),
    [
        pytest.param(["1"], [SMALL, LARGE], {"small/a": 1}, id="the cheapest shape that is large enough"),
        pytest.param(["2"] * 4, [SMALL, LARGE], {"large/a": 1}, id="one large node instead of four small ones"),
        pytest.param(["6"], [SMALL], {}, id="no shape is large enough"),
        pytest.param(["2"] * 3, [f"{SMALL},most=1", LARGE], {"large/a": 1}, id="not enough nodes of a shape"),
        pytest.param([], [SMALL], {}, id="nothing waits"),
    ],
)
def test_the_cheapest_sufficient_shapes_are_chosen(cpus: list[str], shapes: list[str], want: dict[str, int]) -> None:
    pods = [waiting(f"p{number}", cpu=cpu) for number, cpu in enumerate(cpus)]
    answer = nodes_to_add(cluster_of(*FULL, *pods), [parse_shape(text) for text in shapes])
    assert answer.by_shape == want
    assert answer.bound <= answer.price
    assert answer.still_waiting == (0 if want or not cpus else len(cpus))


def test_an_unplaceable_pod_does_not_raise_the_price() -> None:
    pods = [waiting(f"p{number}", cpu=cpu) for number, cpu in enumerate(["2"] * 4 + ["9"])]
    answer = nodes_to_add(cluster_of(*FULL, *pods), [parse_shape(SMALL), parse_shape(LARGE)])
    assert (answer.by_shape, answer.still_waiting) == ({"large/a": 1}, 1)


def test_a_pod_that_lacks_its_resource_claim_has_a_reason() -> None:
    pod = make_pod("x").req(cpu="1").spec(resourceClaims=[{"name": "gpu", "resourceClaimName": "lost"}]).obj()
    answer = nodes_to_add(cluster_of(*FULL, pod), [parse_shape(SMALL)])
    assert [each.reason for each in answer.pods] == ['could not find ResourceClaim "default/lost"']


@pytest.mark.parametrize(
    ("cpus", "want"),
    [
        pytest.param(["3", "1", "1", "1"], 4, id="the oldest pod is the largest, but not in all orders"),
        pytest.param(["1", "1", "1", "3"], 4, id="small pods take some room on each of up to three nodes"),
        pytest.param(["1", "1", "1", "1"], 2, id="all orders are alike"),
    ],
)
def test_all_pods_are_placed_in_several_orders(cpus: list[str], want: int) -> None:
    pods = [waiting(f"p{number}", cpu=cpu) for number, cpu in enumerate(cpus)]
    answer = nodes_to_add(cluster_of(*FULL, *pods), [parse_shape("cpu=3,memory=8Gi")])
    assert (len(answer.nodes), answer.still_waiting) == (want, 0)
    assert answer.assumptions[-1].endswith("no more pods stay pending in 7 other orders of pods with equal priority")


def constrained(*rows: tuple[str, str, str]) -> list[Pod]:
    """Return pods: CPU, app, and "near" or "away" with the other app and the topology."""
    pods = []
    for number, (cpu, app, rule) in enumerate(rows):
        made = make_pod(f"p{number}").req(cpu=cpu).label(app=app)
        match rule.split():
            case "near", other, topology:
                made = made.pod_affinity({"app": other}, topology)
            case "away", other, topology:
                made = made.pod_anti_affinity({"app": other}, topology)
        pods.append(made.obj())
    return pods


LIMITED = ("name=l,cpu=4,memory=8Gi,price=1,zone=a", "name=s,cpu=2,memory=4Gi,price=0.6,zone=b,most=3")


def test_other_orders_leave_no_more_pods_pending_in_order_of_age() -> None:
    rows = (
        ("1100m", "z", ""),
        ("500m", "z", "away y zone"),
        ("600m", "z", ""),
        ("700m", "y", ""),
        ("1900m", "y", ""),
        ("2400m", "x", "away y hostname"),
        ("1900m", "x", ""),
        ("2000m", "y", "away z zone"),
        ("900m", "y", "away x zone"),
    )
    nodes = (node("n0", zone="a", cpu="2"), node("n1", zone="b"), node("n2", zone="a"))
    answer = nodes_to_add(cluster_of(*nodes, *constrained(*rows)), [parse_shape(text) for text in LIMITED])
    assert (answer.still_waiting, answer.price) == (1, 0.6)


def test_no_order_leaves_more_pods_pending_on_a_cheaper_set() -> None:
    rows = (("1800m", "z", ""), ("2100m", "x", "near y zone"), ("2400m", "y", "near y zone"))
    nodes = (node("n0", zone="a", cpu="2"), node("n1", zone="b"))
    answer = nodes_to_add(cluster_of(*nodes, *constrained(*rows)), [parse_shape(text) for text in LIMITED])
    # With one node less, the order by age leaves 1 pod without a node, as before; another order leaves one more.
    assert (answer.still_waiting, answer.price) == (1, 2)


def test_chained_pods_are_scheduled_about_twice_per_set(monkeypatch: pytest.MonkeyPatch) -> None:
    placements, place = 0, Trial.place

    def counting(trial: Trial, items: Iterable[KubernetesObject]) -> str:
        nonlocal placements
        placements += 1
        return place(trial, items)

    monkeypatch.setattr(Trial, "place", counting)
    rows = [("1m", f"a{number}", f"near a{number - 1} hostname" if number else "") for number in range(40)]
    answer = nodes_to_add(cluster_of(*FULL, *constrained(*reversed(rows))), [parse_shape(LARGE)])
    assert (len(answer.nodes), answer.still_waiting) == (1, 0)
    # All pods are scheduled 31 times, and each needs at most one retry.
    assert placements < 31 * 2 * len(rows)


def test_a_pod_is_retried_only_if_a_placed_pod_may_help_it() -> None:
    rows = (("1", "x", "near y zone"), ("1", "y", ""), ("1", "y", "away x zone"))
    pods = DependentPods(dict(enumerate(constrained(*rows))))
    assert [sorted(pods.helped_by(kind)) for kind in range(3)] == [[], [0], [0]]
    spread = make_pod("p").label(app="x").spread({"app": "x"}).obj()
    assert DependentPods({0: spread}).helped_by(0) == {0}


@pytest.mark.parametrize(
    ("more", "want"),
    [
        pytest.param([0], "priority and then by age", id="one possible order"),
        pytest.param([0, 0], "no more pods stay pending in 1 other order of pods with equal priority", id="one other"),
        pytest.param(
            [0, 0, 1],
            "in 1 of 2 other orders of pods with equal priority, up to 1 more pod stays pending",
            id="one more pod",
        ),
        pytest.param(
            [0, 3, 1],
            "in 2 of 2 other orders of pods with equal priority, up to 3 more pods stay pending",
            id="several more pods",
        ),
    ],
)
def test_the_note_states_in_which_orders_the_answer_holds(more: list[int], want: str) -> None:
    assert order_note(more).endswith(want)


def test_a_zone_without_nodes_is_an_assumption() -> None:
    shapes = [parse_shape(f"name={zone},cpu=4,memory=8Gi,zone={zone}") for zone in ("eu-1b", "us", "eu-1a")]
    answer = nodes_to_add(cluster_of(make_node("n").zone("eu-1a").obj(), waiting("p")), shapes)
    want = "no node of the cluster is in zones eu-1b and us (values of topology.kubernetes.io/zone: eu-1a)"
    assert answer.assumptions[1] == want


def test_only_different_orders_count() -> None:
    pods = [make_pod(f"p{number}").req(cpu="1").priority(number).obj() for number in range(2)]
    answer = nodes_to_add(cluster_of(*FULL, *pods), [parse_shape(SMALL)])
    assert answer.assumptions[-1].endswith("by priority and then by age")
    equal = [waiting("p0"), waiting("p1")]
    answer = nodes_to_add(cluster_of(*FULL, *equal), [parse_shape(SMALL)])
    assert answer.assumptions[-1].endswith("in 1 other order of pods with equal priority")
    identical = [waiting(f"p{number}", owner="web") for number in range(4)]
    answer = nodes_to_add(cluster_of(*FULL, *identical), [parse_shape(SMALL)])
    assert answer.assumptions[-1].endswith("by priority and then by age")
    answer = nodes_to_add(cluster_of(*FULL, waiting("other", cpu="2"), *identical[:2]), [parse_shape(SMALL)])
    assert answer.assumptions[-1].endswith("in 2 other orders of pods with equal priority")


def test_a_pod_that_needs_a_later_pod_is_retried_at_once() -> None:
    friend = make_pod("friend").req(cpu="1").label(app="friend").priority(0).obj()
    near = make_pod("near").req(cpu="2").pod_affinity({"app": "friend"}, "zone").priority(9).obj()
    answer = nodes_to_add(cluster_of(*FULL, near, friend), [parse_shape(LARGE)])
    assert [(each.pod, each.node) for each in answer.pods] == [
        ("default/near", "added-1"),
        ("default/friend", "added-1"),
    ]


def test_daemon_set_pods_reduce_the_room_on_new_nodes() -> None:
    agent = running("agent-1", "n1", owner="agent", kind="DaemonSet", cpu="500m").obj()
    pods = [waiting(f"p{number}", cpu="1") for number in range(2)]
    answer = nodes_to_add(cluster_of(node("n1", cpu="500m"), agent, *pods), [parse_shape(SMALL)])
    assert answer.by_shape == {"small/a": 2}


@pytest.mark.parametrize(
    ("shape", "want"),
    [
        pytest.param(SMALL, ["no shape offers example.com/gpu, which some pods ask for"], id="a resource is missing"),
        pytest.param(f"{SMALL},example.com/gpu=1", [], id="every resource is available"),
    ],
)
def test_resources_missing_from_all_shapes_are_named(shape: str, want: list[str]) -> None:
    pod = make_pod("train").req(cpu="1", **{"example.com/gpu": "1"}).obj()
    answer = nodes_to_add(cluster_of(*FULL, pod), [parse_shape(shape)])
    assert [text.partition(";")[0] for text in answer.assumptions if "offers" in text] == want
    assert bool(answer.by_shape) is (want == [])


def test_existing_room_is_used_first_and_more_copies_can_be_requested() -> None:
    cluster = cluster_of(node("n1", cpu="4"), running("web-1", "n1").obj())
    answer = nodes_to_add(cluster, [parse_shape(SMALL)], copies={"web": 5})
    assert (answer.placed_without, answer.by_shape, answer.price) == (3, {"small/a": 1}, 1.0)
    assert addition_text(answer)[0].startswith(
        "Add 1 node (1 x small/a) at a price of 1; no set of such nodes is cheaper"
    )
    cluster.state.check_invariants()


def test_the_verdict_compares_small_prices_too() -> None:
    cluster = cluster_of(*FULL, *(waiting(f"p{number}", cpu="3") for number in range(2)))
    answer = nodes_to_add(cluster, [parse_shape("cpu=4,memory=8Gi,price=0.0000001")])
    assert answer.price == 2e-7
    assert answer.bound == pytest.approx(1.5e-7)
    assert "no set of such nodes is cheaper than 1.5e-07" in addition_text(answer)[0]


def test_copies_of_workloads_with_the_same_name_need_room_each() -> None:
    cluster = cluster_of(*FULL, running("job-1", "n1", owner="web", kind="Job", cpu="0").obj())
    answer = nodes_to_add(cluster, [parse_shape(SMALL)], copies={"replicaset/web": 4, "job/web": 4})
    assert (answer.waiting, len(answer.pods), answer.price) == (8, 8, 2.0)


def test_shapes_of_groups_nodes_by_pool_and_zone() -> None:
    cluster = cluster_of(node("n1", pool="x"), node("n2", pool="x"), node("n3", zone="b", pool="x"))
    assert [each.name for each in shapes_of(cluster.state)] == ["x/a", "x/b"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("cpu=8", id="no memory"),
        pytest.param("cpu=8,memory=x", id="no quantity"),
        pytest.param("cpu=8,memory=1Gi,price=-1", id="a negative price"),
        pytest.param("like=nobody", id="no such node"),
        pytest.param("cpu=8,memory=1Gi,taint=x", id="no taint"),
        pytest.param("cpu", id="no value"),
    ],
)
def test_an_invalid_shape_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_shape(text, cluster_of(*FULL).state)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("cpu=8,memry=32Gi", "got 'memry'; try memory=32Gi", id="a misspelt resource"),
        pytest.param("cpu=8,memory=32Gi,disk=9", "got 'disk'; try cpu=8,memory=32Gi", id="an unknown resource"),
        pytest.param("cpu=-8,memory=32Gi", "shape cpu: expected an amount of at least 0, got '-8'", id="less than 0"),
        pytest.param("cpu=8,memory=32", "expected an amount with a unit, got 32 bytes; try memory=32Gi", id="no unit"),
    ],
)
def test_an_impossible_amount_of_a_shape_is_refused(text: str, want: str) -> None:
    with pytest.raises(InputError, match=want):
        parse_shape(text, cluster_of(*FULL).state)


def test_a_misspelt_node_in_a_shape_is_suggested() -> None:
    cluster = cluster_of(node("node-one"))
    with pytest.raises(InputError, match="expected a node of this cluster, got 'node-ome'; try 'like=node-one'"):
        parse_shape("like=node-ome", cluster.state)


def test_prices_are_parsed_per_instance_type() -> None:
    assert parse_prices(["m5.large=0.1", "n=1=2"]) == {"m5.large": 0.1, "n=1": 2.0}
    with pytest.raises(InputError, match="NAME=PRICE"):
        parse_prices(["0.1"])


def test_added_nodes_have_the_platform_of_the_cluster_and_the_region_of_their_zone() -> None:
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    nodes = [
        make_node(name).capacity(cpu="1", memory="2Gi", pods="9").zone(zone).region("eu").label(labels).obj()
        for name, zone in (("n1", "a"), ("n2", "b"))
    ]
    agent = make_pod("agent-1").req(cpu="1").node("n1").owner("DaemonSet", "agent").node_selector(labels).obj()
    alone = make_pod("alone-1").req(cpu="1", memory="1Gi").label({"app": "alone"}).node_selector(labels)
    alone = alone.pod_anti_affinity({"app": "alone"}, "topology.kubernetes.io/region")
    placed = make_pod("alone-0").label({"app": "alone"}).node("n2").obj()
    web = make_pod("web").req(cpu="2", memory="1Gi").node_selector(labels).obj()
    cluster = cluster_of(*nodes, agent, alone.obj(), placed, web)
    answer = nodes_to_add(cluster, [parse_shape("name=s,cpu=3,memory=4Gi", cluster.state)])
    # Without the labels, no pod would fit; without the region, the pod with anti-affinity would get a node.
    assert {row.pod: bool(row.node) for row in answer.pods} == {"default/web": True, "default/alone-1": False}
    # The agent takes 1 cpu of each new node.
    answer = nodes_to_add(cluster, [parse_shape("name=s,cpu=2,memory=4Gi,zone=b", cluster.state)])
    assert len(answer.nodes) == 0
    found = parse_shape("cpu=2,memory=4Gi,zone=b,label.kubernetes.io/arch=arm64", cluster.state)
    assert found.template.metadata.labels == {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64",
        "topology.kubernetes.io/zone": "b",
        "topology.kubernetes.io/region": "eu",
    }


@pytest.mark.parametrize(
    ("shape", "want"),
    [
        pytest.param("cpu=2,memory=4Gi,zone=eu-west-1d", {ZONE: "eu-west-1d", REGION: "eu-west-1"}, id="a new zone"),
        pytest.param("like=n1,zone=eu-west-1d", {ZONE: "eu-west-1d", REGION: "eu-west-1"}, id="a new zone of a model"),
        pytest.param("like=n1,zone=us-east-2a", {ZONE: "us-east-2a", REGION: "us-east-2"}, id="a model elsewhere"),
        pytest.param("like=n1,zone=ap-south-1a", {ZONE: "ap-south-1a"}, id="a model in an unknown region"),
        pytest.param("like=n1,zone=europe-west1-b", {ZONE: "europe-west1-b", REGION: "europe-west1"}, id="a hyphen"),
        pytest.param("like=n1,zone=europe-west12-a", {ZONE: "europe-west12-a"}, id="a region with more digits"),
        pytest.param("like=n1,zone=us-east-21", {ZONE: "us-east-21"}, id="a digit instead of a letter"),
        pytest.param("like=n1", {ZONE: "eu-west-1a", REGION: "eu-west-1", EBS: "eu-west-1a"}, id="the model's zone"),
    ],
)
def test_the_region_of_a_shape_is_that_of_its_zone(shape: str, want: dict[str, str]) -> None:
    nodes = [
        make_node("n1")
        .capacity(cpu="1", memory="2Gi")
        .zone("eu-west-1a")
        .region("eu-west-1")
        .label({EBS: "eu-west-1a"}),
        make_node("n2").capacity(cpu="1", memory="2Gi").zone("us-east-2b").region("us-east-2"),
        make_node("n3").capacity(cpu="1", memory="2Gi").zone("europe-west1-c").region("europe-west1"),
    ]
    labels = parse_shape(shape, cluster_of(*(each.obj() for each in nodes)).state).template.metadata.labels
    assert {key: text for key, text in labels.items() if "topology" in key} == want


def test_annotated_prices_of_nodes_are_used_unless_others_are_given() -> None:
    def priced(name: str, price: str) -> Node:
        return make_node(name).capacity(cpu="4", memory="8Gi").zone("a").annotation({PRICE: price}).obj()

    nodes = (priced("n1", "2.5"), priced("n2", "7"))
    answer = nodes_to_remove(cluster_of(*nodes), most=1)
    assert [row.node for row in answer.removed] == ["n2"]
    assert "all nodes cost the same" not in answer.assumptions
    assert [price_in({}, each) for each in nodes] == [2.5, 7.0]
    assert price_in({"n1": 1.0}, nodes[0]) == 1.0
    assert [price_in({}, priced("n", text)) for text in ("nan", "inf", "-1", "low", "0")] == [None] * 4 + [0.0]


def test_a_shape_has_the_devices_of_the_node_with_the_most() -> None:
    pool = {"name": "n2", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n2", "pool": pool, "devices": [{"name": "gpu-0"}]}
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
    driver = {"name": "csi.example.com", "nodeID": "n3", "topologyKeys": [], "allocatable": {"count": 2}}
    csi = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n3"},
        "spec": {"drivers": [driver]},
    }
    nodes = (node(name, pool="gpu") for name in ("n1", "n2", "n3"))
    (shape,) = shapes_of(cluster_of(*nodes, make_object(document), make_object(csi)).state)
    assert [each.metadata.name for each in shape.slices] == ["s"]
    assert shape.csi is not None, "the CSI drivers may be ready on another node than the devices"
    assert shape.csi.metadata.name == "n3"
