"""The cluster autoscaler in simulations: when groups grow and shrink, and what prevents the removal of a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.autoscaling.configuration import read_autoscaler
from bayplan.base.durations import MINUTE_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.sim.result import PodFate, SimulationResult
from bayplan.sim.scaling import ScalingKind

HEAD = "apiVersion: bayplan.io/v1alpha1\nkind: Autoscaler\n"
SMALL = "{name: small, maxSize: 3, template: {status: {allocatable: {cpu: '2', memory: 8Gi, pods: '9'}}}}"
LARGE = "{name: large, maxSize: 3, template: {status: {allocatable: {cpu: '8', memory: 8Gi, pods: '9'}}}}"


def node(name: str, cpu: int, *, group: str = "small", more: str = "") -> str:
    labels = f"labels: {{bayplan.io/node-group: {group}}}" if group else "labels: {}"
    status = f"status: {{allocatable: {{cpu: '{cpu}', memory: 8Gi, pods: '9'}}}}"
    return f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}, {labels}{more}}}, {status}}}"


def pod(name: str, cpu: str, *, runs: str = "", node_name: str = "", more: str = "", spec: str = "") -> str:
    annotations = f"annotations: {{bayplan.io/run-time: {runs}}}" if runs else "annotations: {}"
    placed = f"nodeName: {node_name}, " if node_name else ""
    owner = "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]"
    return (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{app: a}}, {owner}, {annotations}{more}}}, "
        f"spec: {{{placed}{spec}containers: [{{name: c, image: i, resources: {{requests: {{cpu: '{cpu}'}}}}}}]}}}}"
    )


def run(folder: Path, *items: str, groups: str = SMALL, options: str = "{}", until: int = 0) -> SimulationResult:
    cluster, scaling = folder / "cluster.yaml", folder / "autoscaler.yaml"
    cluster.write_text("\n---\n".join(items), encoding="utf-8")
    scaling.write_text(f"{HEAD}options: {options}\nnodeGroups: [{groups}]\n", encoding="utf-8")
    return simulate(
        SimulationOptions(
            paths=[str(cluster)], autoscaler=scaling, check=True, until_ns=until * MINUTE_NS if until else None
        )
    )


def scaling_events(result: SimulationResult) -> list[tuple[int, str, list[str]]]:
    """Return the events: seconds since the start, kind, nodes."""
    assert result.scaling is not None
    return [
        ((each.time_ns - result.start_ns) // SECOND_NS, each.kind.value, list(each.nodes))
        for each in result.scaling.events
    ]


UP, DOWN, GIVEN_UP = (each.value for each in ScalingKind)


def test_a_node_group_scales_up_for_pending_pods_and_down_ten_minutes_after_they_end(tmp_path: Path) -> None:
    result = run(tmp_path, pod("p", "2", runs="5m"), pod("q", "2", runs="5m"))
    (grown, *shrunk) = scaling_events(result)
    assert grown == (0, UP, ["small-1", "small-2"])
    (ended,) = {each.ended_ns for each in result.pods}
    assert ended is not None
    first_scan = -(-(ended - result.start_ns) // (10 * SECOND_NS)) * 10
    assert shrunk == [(first_scan + 600, DOWN, ["small-1"]), (first_scan + 600, DOWN, ["small-2"])]
    assert not result.cluster.store.nodes


def test_a_new_node_is_ready_after_its_start_up_delay(tmp_path: Path) -> None:
    result = run(tmp_path, pod("p", "2"), groups=SMALL.replace("maxSize", "startUpDelay: 90s, maxSize"))
    assert [each.added_ns - result.start_ns for each in result.nodes] == [90 * SECOND_NS]


def test_no_node_is_added_for_pods_that_fit_on_starting_nodes(tmp_path: Path) -> None:
    result = run(tmp_path, pod("p", "1"), pod("q", "1"), options="{scanInterval: 1s}")
    assert scaling_events(result) == [(0, UP, ["small-1"])]


def test_new_nodes_get_names_that_no_node_has(tmp_path: Path) -> None:
    result = run(tmp_path, node("small-1", 16), pod("old", "15", node_name="small-1"), pod("p", "2"), until=5)
    assert scaling_events(result) == [(0, UP, ["small-2"])]
    assert result.cluster.store.nodes["small-1"].status.allocatable["cpu"] == "16"
    assert [each.node for each in result.pods] == ["small-1", "small-2"]


def test_an_endless_workload_ends_although_nodes_come_and_go(tmp_path: Path) -> None:
    template = (
        "{metadata: {annotations: {bayplan.io/run-time: 5m}}, spec: {restartPolicy: Never, "
        "containers: [{name: c, image: i, resources: {requests: {cpu: '2'}}}]}}"
    )
    beat = (
        "{apiVersion: batch/v1, kind: CronJob, metadata: {name: beat, namespace: default}, "
        f"spec: {{schedule: '0 * * * *', jobTemplate: {{spec: {{template: {template}}}}}}}}}"
    )
    result = run(tmp_path, beat)
    assert result.stopped == "CronJob default/beat would run forever"
    assert result.duration_ns == 24 * 60 * MINUTE_NS
    assert len(result.pods) > 20


def test_a_group_never_exceeds_its_maximum_size(tmp_path: Path) -> None:
    result = run(tmp_path, *(pod(f"p{number}", "2") for number in range(5)))
    assert [nodes for _, _, nodes in scaling_events(result)] == [["small-1", "small-2", "small-3"]]
    assert sum(each.fate is PodFate.PENDING for each in result.pods) == 2


def test_a_group_scales_up_to_its_minimum_size_without_pods(tmp_path: Path) -> None:
    result = run(tmp_path, node("n0", 1, group=""), groups=SMALL.replace("maxSize", "minSize: 2, maxSize"))
    assert scaling_events(result) == [(0, UP, ["small-1", "small-2"])]


def test_nodes_without_a_group_count_against_max_nodes_total(tmp_path: Path) -> None:
    pods = [pod(f"p{number}", "2") for number in range(3)]
    result = run(tmp_path, node("n0", 1, group=""), *pods, options="{maxNodesTotal: 2}")
    assert [nodes for _, _, nodes in scaling_events(result)] == [["small-1"]]


def test_pods_that_fit_no_group_trigger_no_scale_up(tmp_path: Path) -> None:
    assert scaling_events(run(tmp_path, pod("p", "3"), pod("q", "1", spec="nodeSelector: {disk: ssd}, "))) == []


def test_new_pods_trigger_a_scale_up_only_after_the_delay(tmp_path: Path) -> None:
    result = run(tmp_path, pod("p", "2"), options="{newPodScaleUpDelay: 45s}")
    assert scaling_events(result)[0][0] == 50


def test_expendable_pods_trigger_no_scale_up(tmp_path: Path) -> None:
    assert scaling_events(run(tmp_path, pod("p", "1", spec="priority: -20, "))) == []


EXPANDERS = [
    ("the smallest waste", "least-waste", "small", ("2",)),
    ("the most pods", "most-pods", "large", ("2", "2", "2", "2", "2")),
    ("small nodes in a small cluster", "price", "small", ("2", "2")),
    ("the highest priority", "priority", "large", ("1",)),
]


@pytest.mark.parametrize(("expander", "want", "requests"), [pytest.param(*each[1:], id=each[0]) for each in EXPANDERS])
def test_each_expander_selects_its_preferred_group(
    expander: str, want: str, requests: tuple[str, ...], tmp_path: Path
) -> None:
    pods = [pod(f"p{number}", cpu) for number, cpu in enumerate(requests)]
    groups = (
        f"{SMALL.replace('maxSize', 'price: 1, maxSize')}, {LARGE.replace('maxSize', 'price: 2, priority: 9, maxSize')}"
    )
    result = run(tmp_path, *pods, groups=groups, options=f"{{expander: {expander}}}")
    assert scaling_events(result)[0][2][0] == f"{want}-1"


def test_the_choice_among_equal_groups_is_deterministic(tmp_path: Path) -> None:
    groups = ", ".join(SMALL.replace("small", f"group-{letter}") for letter in "abcd")
    first, again = (scaling_events(run(tmp_path, pod("p", "2"), groups=groups)) for _ in range(2))
    assert first == again


PODS_THAT_KEEP_THEIR_NODE = [
    (
        "a pod that must not be evicted",
        pod("p", "500m", node_name="n1")
        .replace("{app: a}", "{app: a}")
        .replace("annotations: {}", 'annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: "false"}'),
    ),
    ("a pod without a controller", pod("p", "500m", node_name="n1").replace("controller: true", "controller: false")),
    ("a pod with local storage", pod("p", "500m", node_name="n1", spec="volumes: [{name: v, emptyDir: {}}], ")),
    ("a pod of the system", pod("p", "500m", node_name="n1").replace("name: p,", "name: p, namespace: kube-system,")),
    (
        "a pod that fits nowhere else",
        pod("p", "500m", node_name="n1", spec="nodeSelector: {kubernetes.io/hostname: n1}, "),
    ),
    ("high utilization", pod("p", "1", node_name="n1")),
]


@pytest.mark.parametrize("item", [pytest.param(each[1], id=each[0]) for each in PODS_THAT_KEEP_THEIR_NODE])
def test_unmovable_pods_and_high_utilization_prevent_a_scale_down(item: str, tmp_path: Path) -> None:
    assert scaling_events(run(tmp_path, node("n1", 2), node("n2", 8, group=""), item, until=60)) == []


def test_an_underutilized_node_is_removed_and_its_pods_evicted(tmp_path: Path) -> None:
    result = run(tmp_path, node("n1", 2), node("n2", 8, group=""), pod("p", "900m", node_name="n1"), until=60)
    assert scaling_events(result) == [(600, DOWN, ["n1"])]
    assert result.pods[0].disruption == "EvictionByEvictionAPI"
    assert list(result.cluster.store.nodes) == ["n2"]


def test_nodes_with_pods_are_removed_one_by_one(tmp_path: Path) -> None:
    pods = [pod(f"p{number}", "500m", node_name=f"n{number}") for number in (1, 2)]
    result = run(tmp_path, node("n1", 2), node("n2", 2), node("n3", 8, group=""), *pods, until=60)
    assert [(time, nodes) for time, _, nodes in scaling_events(result)] == [(600, ["n1"]), (620, ["n2"])]


def test_a_scale_up_delays_later_scale_downs(tmp_path: Path) -> None:
    late = pod("q", "2").replace("labels: {app: a}", "labels: {app: a}, creationTimestamp: null")
    result = run(tmp_path, node("n1", 1), late, options="{scaleDownUnneededTime: 1m}", until=60)
    assert [each for each in scaling_events(result) if each[1] == DOWN] == [(600, DOWN, ["n1"])]


def test_the_minimum_size_and_the_scale_down_disabled_annotation_preserve_nodes(tmp_path: Path) -> None:
    kept = ', annotations: {cluster-autoscaler.kubernetes.io/scale-down-disabled: "true"}'
    groups = f"{SMALL.replace('maxSize', 'minSize: 1, maxSize')}, {LARGE}"
    result = run(
        tmp_path, node("n1", 2), node("n2", 2), node("n3", 2, group="large", more=kept), groups=groups, until=60
    )
    assert [nodes for _, _, nodes in scaling_events(result)] == [["n1"]]


def test_scale_down_can_be_disabled(tmp_path: Path) -> None:
    assert scaling_events(run(tmp_path, node("n1", 2), options="{scaleDownEnabled: false}", until=60)) == []


def test_costs_are_node_hours_times_the_group_price(tmp_path: Path) -> None:
    groups = SMALL.replace("maxSize", "price: 3, maxSize")
    result = run(tmp_path, node("n1", 2), node("n2", 2), pod("p", "2", node_name="n2"), groups=groups, until=60)
    assert result.scaling is not None
    (cost,) = result.scaling.costs
    assert (cost.nodes, cost.peak) == (2, 2)
    assert cost.node_hours == pytest.approx((600 + result.duration_ns / SECOND_NS) / 3600)
    assert cost.cost == pytest.approx(3 * cost.node_hours)


NAME = "at most 56 lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
MISTAKES = [
    (
        "a misspelt option",
        "options: {expandr: price}\nnodeGroups: []",
        "3 Autoscaler $.options.expandr: got an unknown field; try 'expander'",
    ),
    (
        "an expander that does not exist",
        "options: {expander: grpc}\nnodeGroups: []",
        "3 Autoscaler $.options.expander: expected least-waste, most-pods, price, priority or random, got 'grpc'",
    ),
    ("no groups", "options: {}", "1 Autoscaler $.nodeGroups: expected a value, got none"),
    (
        "a group twice",
        f"nodeGroups:\n- {SMALL}\n- {SMALL}",
        "5 Autoscaler $.nodeGroups[1].name: expected a unique name, got 'small', which an earlier node group has",
    ),
    (
        "a minimum above the maximum",
        f"nodeGroups:\n- {SMALL.replace('maxSize', 'minSize: 4, maxSize')}",
        "4 Autoscaler $.nodeGroups[0].maxSize: expected at least 4 (minSize), got 3",
    ),
    (
        "no scan interval",
        "options: {scanInterval: 0s}\nnodeGroups: []",
        "3 Autoscaler $.options.scanInterval: expected a duration above 0, got '0s'",
    ),
    (
        "a group whose nodes would have invalid names",
        "nodeGroups:\n- {name: Large_Nodes, maxSize: 1, template: {}}",
        f"4 Autoscaler $.nodeGroups[0].name: expected {NAME}, got 'Large_Nodes'",
    ),
    (
        "a name whose nodes would have invalid labels",
        f"nodeGroups:\n- {{name: {'n' * 57}, maxSize: 1, template: {{}}}}",
        f"4 Autoscaler $.nodeGroups[0].name: expected {NAME}, got '{'n' * 57}'",
    ),
    (
        "a template of another kind",
        "nodeGroups:\n- {name: a, maxSize: 1, template: {kind: Pod}}",
        "4 Autoscaler $.nodeGroups[0].template: expected a Node, got Pod",
    ),
]


@pytest.mark.parametrize(("text", "message"), [pytest.param(*each[1:], id=each[0]) for each in MISTAKES])
def test_an_invalid_configuration_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_autoscaler(path)
    assert str(caught.value) == f"{path}:{message}"
