"""The remaining priorities, computed by hand: map and reduce."""

from __future__ import annotations

import json

import pytest

from bayplan.testing.builders import PodBuilder, make_pod
from tests.classic.cycles import ZONE, Item, configured, cycle_of, node, only_priority

HOST = "kubernetes.io/hostname"
MIB = 2**20


def scores(
    priority: str,
    objects: list[Item],
    pod: PodBuilder,
    *,
    argument: object = None,
    gates: dict[str, bool] | None = None,
) -> dict[str, int]:
    """Return one priority's score for each node."""
    name = "Custom" if argument is not None else priority
    configuration = configured(policy=only_priority(name, argument), gates=gates)
    return cycle_of(objects, pod, configuration).scores(name)


def _service(name: str = "s", **selector: str) -> Item:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector}}


def _running(*places: str, app: str = "a") -> list[Item]:
    return [make_pod(f"r{number}").label(app=app).node(place) for number, place in enumerate(places)]


def _nodes(*zones: str) -> list[Item]:
    return [
        node(f"n{number}").label({ZONE: zone, HOST: f"n{number}"} if zone else {HOST: f"n{number}"})
        for number, zone in enumerate(zones, 1)
    ]


@pytest.mark.parametrize("priority", ["SelectorSpreadPriority", "ServiceSpreadingPriority"])
@pytest.mark.parametrize(
    ("zones", "places", "want"),
    [
        # Counts of 2, 1 and 0 pods; the maximum is 2.
        pytest.param(["", "", ""], ["n1", "n1", "n2"], [0, 5, 10], id="by node"),
        pytest.param(["", ""], [], [10, 10], id="no pod yet"),
        # n1 and n2 are in zone a with 2 pods, n3 in b with 0. n1: both terms 0; n2: 10 / 3 and 0; n3: 10.
        pytest.param(["a", "a", "b"], ["n1", "n1"], [0, 3, 10], id="a third by node, two thirds by zone"),
        # n1: 10 * (1 - 1) and zone 1 of 1; n2 without a zone: by node only.
        pytest.param(["a", ""], ["n1"], [0, 10], id="a node without a zone"),
    ],
)
def test_selector_spread_prefers_nodes_and_zones_with_fewer_pods(
    priority: str, zones: list[str], places: list[str], want: list[int]
) -> None:
    objects = [*_nodes(*zones), _service(app="a"), *_running(*places)]
    found = scores(priority, objects, make_pod("p").label(app="a"))
    assert [found[f"n{number}"] for number in range(1, len(zones) + 1)] == want


def test_selector_spread_counts_only_pods_matching_all_selectors() -> None:
    objects = [*_nodes("", ""), _service("s", app="a"), _service("t", tier="x"), *_running("n1")]
    # The pod on n1 lacks the label of the second service.
    found = scores("SelectorSpreadPriority", objects, make_pod("p").label(app="a", tier="x"))
    assert found == {"n1": 10, "n2": 10}


def test_service_anti_affinity_spreads_over_label_values() -> None:
    # Three pods in all: rack a has two of them, b one; n4 has no rack.
    objects: list[Item] = [node(f"n{number}").label(rack=rack) for number, rack in ((1, "a"), (2, "b"), (3, "c"))]
    objects += [node("n4"), _service(app="a"), *_running("n1", "n1", "n2")]
    argument = {"serviceAntiAffinity": {"label": "rack"}}
    found = scores("", objects, make_pod("p").label(app="a"), argument=argument)
    assert found == {"n1": 3, "n2": 6, "n3": 10, "n4": 0}


@pytest.mark.parametrize(("presence", "want"), [(True, {"n1": 10, "n2": 0}), (False, {"n1": 0, "n2": 10})])
def test_label_preference_scores_presence_or_absence(presence: bool, want: dict[str, int]) -> None:
    argument = {"labelPreference": {"label": "ssd", "presence": presence}}
    assert scores("", [node("n1").label(ssd=""), node("n2")], make_pod("p"), argument=argument) == want


def test_equal_priority_scores_all_nodes_1() -> None:
    assert scores("EqualPriority", [node("n1"), node("n2")], make_pod("p")) == {"n1": 1, "n2": 1}


def test_node_affinity_priority_sums_weights_and_normalizes_to_10() -> None:
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
        for key, weight in (("a", 3), ("b", 4))
    ]
    pod = make_pod("p").spec(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}})
    objects: list[Item] = [node("n1").label(a=""), node("n2").label(b=""), node("n3").label(a="", b=""), node("n4")]
    # Weights of 3, 4, 7 and 0; the maximum is 7.
    assert scores("NodeAffinityPriority", objects, pod) == {"n1": 4, "n2": 5, "n3": 10, "n4": 0}


def test_taint_toleration_priority_counts_untolerated_soft_taints() -> None:
    soft = "PreferNoSchedule"
    objects: list[Item] = [
        node("n1"),
        node("n2").taint("a", effect=soft),
        node("n3").taint("a", effect=soft).taint("b", effect=soft).taint("c", effect=soft),
    ]
    # 0, 1 and 3 taints; the maximum is 3: 10 - 0, 10 - 3, 10 - 10.
    assert scores("TaintTolerationPriority", objects, make_pod("p")) == {"n1": 10, "n2": 7, "n3": 0}
    assert scores("TaintTolerationPriority", objects, make_pod("q").toleration("a", operator="Exists")) == {
        "n1": 10,
        "n2": 10,
        "n3": 0,
    }


def _preferring(kind: str, weight: int) -> PodBuilder:
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": HOST}
    preferred = [{"weight": weight, "podAffinityTerm": term}]
    return make_pod("p").spec(affinity={kind: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        # Sums 20, 10, 0.
        pytest.param(_preferring("podAffinity", 10), [10, 5, 0], id="near"),
        # Sums of -20, -10 and 0; the largest is initially 0, as upstream.
        pytest.param(_preferring("podAntiAffinity", 10), [0, 5, 10], id="away"),
        pytest.param(make_pod("p"), [0, 0, 0], id="no wish"),
    ],
)
def test_inter_pod_affinity_priority_normalizes_weighted_sums(pod: PodBuilder, want: list[int]) -> None:
    found = scores("InterPodAffinityPriority", [*_nodes("", "", ""), *_running("n1", "n1", "n2")], pod)
    assert [found[f"n{number}"] for number in (1, 2, 3)] == want


def test_required_affinity_of_running_pods_counts_with_the_hard_weight() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "p"}}, "topologyKey": HOST}
    required = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    preferred = {"weight": 4, "podAffinityTerm": term}
    wishes = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}
    objects = [
        *_nodes("", ""),
        make_pod("hard").spec(affinity=required).node("n1"),
        make_pod("soft").spec(affinity=wishes).node("n2"),
    ]
    for weight, want in ((0, {"n1": 2, "n2": 10}), (8, {"n1": 10, "n2": 5})):
        policy = only_priority("InterPodAffinityPriority")
        # The default weight is 1: sums of 1 and 4 with a maximum of 4, then 8 and 4 with a maximum of 8.
        configuration = configured(policy={**policy, "hardPodAffinitySymmetricWeight": weight})
        pod = make_pod("p").label(app="p")
        assert cycle_of(objects, pod, configuration).scores("InterPodAffinityPriority") == want


def test_prefer_avoid_pods_scores_avoided_nodes_0_and_others_10() -> None:
    avoid = {"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "u"}}}]}
    annotated = node("n1").annotation({"scheduler.alpha.kubernetes.io/preferAvoidPods": json.dumps(avoid)})
    pod = make_pod("p")
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}
    pod.document()["metadata"]["ownerReferences"] = [reference]
    assert scores("NodePreferAvoidPodsPriority", [annotated, node("n2")], pod) == {"n1": 0, "n2": 10}
    assert scores("NodePreferAvoidPodsPriority", [annotated, node("n2")], make_pod("q")) == {"n1": 10, "n2": 10}


@pytest.mark.parametrize(
    ("size", "want"),
    [
        # One of two nodes has the image, so half of its size counts, between 23 and 1000 MiB.
        (23 * 2, 0),
        (500 * 2, 4),
        (1000 * 2, 10),
        (5000, 10),
    ],
)
def test_image_locality_priority_scales_the_size_by_the_share_of_nodes(size: int, want: int) -> None:
    objects: list[Item] = [node("n2"), node("n1").image("app:v1", size * MIB)]
    assert scores("ImageLocalityPriority", objects, make_pod("p").image("app:v1")) == {"n1": want, "n2": 0}


def test_resource_limits_priority_prefers_nodes_that_satisfy_the_limits() -> None:
    objects: list[Item] = [node("n1", cpu="2", memory="1Gi"), node("n2", cpu="1", memory="512Mi")]
    gates = {"ResourceLimitsPriorityFunction": True}
    pod = make_pod("p").limit(cpu="2", memory="2Gi")
    assert scores("ResourceLimitsPriority", objects, pod, gates=gates) == {"n1": 1, "n2": 0}
    assert scores("ResourceLimitsPriority", objects, make_pod("q"), gates=gates) == {"n1": 0, "n2": 0}


def test_even_pods_spread_priority_prefers_emptier_zones() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    pod = make_pod("p").label(app="a").spec(topologySpreadConstraints=[constraint])
    objects = [*_nodes("a", "b", "c"), *_running("n1", "n1", "n2")]
    found = scores("EvenPodsSpreadPriority", objects, pod, gates={"EvenPodsSpread": True})
    # Each node gets 3 (all pods) minus the pods of its zone: 1, 2 and 3, scaled so that 3 becomes 10.
    assert found == {"n1": 3, "n2": 6, "n3": 10}
