"""Consolidation by Karpenter's rules: which nodes are removed, what replaces them, and what prevents their removal."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.autoscaling.configuration import BudgetSpec, Disruption, Reason, read_autoscaler
from bayplan.autoscaling.consolidation import disruption_cost
from bayplan.base.durations import MINUTE_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.sim.result import SimulationResult
from bayplan.sim.scaling import ScalingKind
from bayplan.testing.builders import make_pod

HEAD = "apiVersion: bayplan.io/v1alpha1\nkind: Autoscaler\n"
UP, DOWN = ScalingKind.SCALE_UP.value, ScalingKind.SCALE_DOWN.value


def group(name: str, cpu: int, price: float, more: str = "") -> str:
    template = f"{{status: {{allocatable: {{cpu: '{cpu}', memory: 8Gi, pods: '9'}}}}}}"
    return f"{{name: {name}, maxSize: 9, price: {price}, startUpDelay: 1m, template: {template}{more}}}"


GROUPS = [group("small", 2, 1), group("large", 8, 3)]


def node(name: str, cpu: int, pool: str = "large", more: str = "") -> str:
    status = f"status: {{allocatable: {{cpu: '{cpu}', memory: 8Gi, pods: '9'}}}}"
    metadata = f"{{name: {name}, labels: {{bayplan.io/node-group: {pool}, kubernetes.io/hostname: {name}}}{more}}}"
    return f"{{apiVersion: v1, kind: Node, metadata: {metadata}, {status}}}"


def replicas(name: str, cpu: str, *nodes: str, more: str = "", annotations: str = "{}") -> str:
    """Return a ReplicaSet, and a pod of it on each of some nodes; the ReplicaSet replaces evicted pods."""
    spec = f"containers: [{{name: c, image: i, resources: {{requests: {{cpu: '{cpu}'}}}}}}]{more}"
    labels = f"labels: {{app: {name}}}"
    owner = (
        f"ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: {name}, uid: uid-{name}, controller: true}}]"
    )
    items = [
        f"{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: {name}, uid: uid-{name}}}, spec: {{replicas: {len(nodes)}, "
        f"selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{{labels}}}, spec: {{{spec}}}}}}}}}"
    ]
    items += [
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}-{number}, {labels}, {owner}, annotations: {annotations}}}, "
        f"spec: {{nodeName: {place}, {spec}}}}}"
        for number, place in enumerate(nodes)
    ]
    return "\n---\n".join(items)


def run(
    folder: Path,
    *items: str,
    disruption: str = "{budgets: [{nodes: 100%}]}",
    groups: list[str] = GROUPS,
    until: int = 60,
) -> SimulationResult:
    cluster, scaling = folder / "cluster.yaml", folder / "autoscaler.yaml"
    cluster.write_text("\n---\n".join(items), encoding="utf-8")
    scaling.write_text(f"{HEAD}disruption: {disruption}\nnodeGroups: [{', '.join(groups)}]\n", encoding="utf-8")
    return simulate(SimulationOptions(paths=[str(cluster)], autoscaler=scaling, check=True, until_ns=until * MINUTE_NS))


def scaling_events(result: SimulationResult) -> list[tuple[int, str, str, str]]:
    """Return the events: seconds since the start, kind, nodes, reason."""
    assert result.scaling is not None
    return [
        ((each.time_ns - result.start_ns) // SECOND_NS, each.kind.value, ", ".join(each.nodes), each.reason)
        for each in result.scaling.events
    ]


def remaining_nodes(result: SimulationResult) -> list[str]:
    return sorted(result.cluster.store.nodes)


def test_empty_nodes_are_removed_together_immediately(tmp_path: Path) -> None:
    result = run(tmp_path, node("a", 8), node("b", 8), node("c", 8), replicas("web", "4", "c"))
    assert scaling_events(result) == [(0, DOWN, "a", "empty"), (0, DOWN, "b", "empty")]
    assert remaining_nodes(result) == ["c"]


def test_a_node_is_removed_if_its_pods_fit_elsewhere(tmp_path: Path) -> None:
    result = run(tmp_path, node("a", 8), node("b", 8), replicas("web", "3", "a", "b"))
    assert scaling_events(result) == [(0, DOWN, "a", "its pods fit elsewhere")]
    assert remaining_nodes(result) == ["b"]
    assert [pod.spec.node_name for pod in result.cluster.store.pods.values()] == ["b", "b"]


def test_a_cheaper_replacement_starts_before_the_node_is_removed(tmp_path: Path) -> None:
    result = run(tmp_path, node("a", 8), replicas("web", "1", "a"))
    assert scaling_events(result) == [(0, UP, "small-1", "replaces a"), (0, DOWN, "a", "replaced by small-1")]
    (old,) = [pod for pod in result.pods if pod.node == "a"]
    assert old.ended_ns is not None
    assert old.ended_ns - result.start_ns >= 60 * SECOND_NS
    assert remaining_nodes(result) == ["small-1"]


def test_a_node_without_a_cheaper_replacement_is_not_removed(tmp_path: Path) -> None:
    assert scaling_events(run(tmp_path, node("a", 8), replicas("web", "3", "a"))) == []


def test_several_nodes_are_replaced_by_a_single_cheaper_one(tmp_path: Path) -> None:
    nodes = [node(name, 2, "small") for name in "abcd"]
    groups = [group("small", 2, 1), group("large", 8, 1.9)]
    result = run(tmp_path, *nodes, replicas("web", "1500m", *"abcd"), groups=groups)
    assert scaling_events(result) == [
        (0, UP, "large-1", "replaces a, b, c, d"),
        *((0, DOWN, name, "replaced by large-1") for name in "abcd"),
    ]
    assert remaining_nodes(result) == ["large-1"]


def test_several_nodes_are_not_replaced_by_one_of_the_same_group(tmp_path: Path) -> None:
    groups = [group("small", 2, 1)]
    result = run(tmp_path, *(node(name, 2, "small") for name in "ab"), replicas("web", "1", "a", "b"), groups=groups)
    assert scaling_events(result) == [(0, DOWN, "a", "its pods fit elsewhere")]


def test_a_group_at_its_maximum_size_provides_no_replacement(tmp_path: Path) -> None:
    groups = [group("small", 2, 1).replace("maxSize: 9", "maxSize: 0"), group("large", 8, 3)]
    assert scaling_events(run(tmp_path, node("a", 8), replicas("web", "1", "a"), groups=groups)) == []


def test_the_when_empty_policy_removes_only_empty_nodes(tmp_path: Path) -> None:
    disruption = "{consolidationPolicy: WhenEmpty, budgets: [{nodes: 100%}]}"
    result = run(
        tmp_path, node("a", 8), node("b", 8), node("c", 8), replicas("web", "1", "a", "b"), disruption=disruption
    )
    assert scaling_events(result) == [(0, DOWN, "c", "empty")]


def test_consolidate_after_delays_removal_after_the_last_pod_event(tmp_path: Path) -> None:
    short = "{apiVersion: v1, kind: Pod, metadata: {name: short, annotations: {bayplan.io/run-time: 5m}}, "
    short += "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '5'}}}]}}"
    result = run(tmp_path, node("a", 8), short, disruption="{consolidateAfter: 90s}")
    assert scaling_events(result) == [(390, DOWN, "a", "empty")]


BUDGETS = [
    ("ten percent, rounded up", "{}", 1),
    ("a number", "{budgets: [{nodes: 2}]}", 2),
    ("the strictest", "{budgets: [{nodes: 50%}, {nodes: 1}]}", 1),
    ("none for empty nodes", "{budgets: [{nodes: 0, reasons: [Empty]}, {nodes: 100%}]}", 0),
    ("one for another reason", "{budgets: [{nodes: 0, reasons: [Underutilized]}]}", 4),
]


@pytest.mark.parametrize(("disruption", "want"), [pytest.param(*each[1:], id=each[0]) for each in BUDGETS])
def test_a_budget_limits_simultaneous_disruptions(disruption: str, want: int, tmp_path: Path) -> None:
    result = run(tmp_path, *(node(name, 8) for name in "abcd"), disruption=disruption, until=10)
    assert sum(time == 0 for time, *_ in scaling_events(result)) == want


@pytest.mark.parametrize(
    ("nodes", "reason", "want"),
    [("10%", "Empty", 2), ("0%", "Empty", 0), (3, "Empty", 3), ("10%", "Drifted", 11)],
)
def test_allowed_disruptions_depend_on_percentage_and_reason(nodes: str | int, reason: Reason, want: int) -> None:
    budgets = [BudgetSpec(nodes=nodes, reasons=("Empty", "Underutilized"))]
    rules = Disruption(policy="WhenEmpty", consolidate_after_ns=0, budgets=budgets)
    assert rules.allowed(11, reason) == want


BUDGET_OF_PODS = (
    "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, "
    "spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}}"
)
UNDISRUPTABLE = [
    (
        "a pod that must not be disrupted",
        replicas("web", "1", "a", annotations="{karpenter.sh/do-not-disrupt: 'true'}"),
    ),
    ("a disruption budget", replicas("web", "1", "a") + "\n---\n" + BUDGET_OF_PODS),
    (
        "a pod that fits nowhere else",
        replicas("web", "1", "a", more=", nodeSelector: {kubernetes.io/hostname: a}"),
    ),
]


@pytest.mark.parametrize("items", [pytest.param(each[1], id=each[0]) for each in UNDISRUPTABLE])
def test_undisruptable_pods_and_budgets_prevent_consolidation(items: str, tmp_path: Path) -> None:
    assert scaling_events(run(tmp_path, node("a", 8), node("b", 8, "none"), items)) == []


def test_the_do_not_disrupt_annotation_and_the_minimum_size_preserve_nodes(tmp_path: Path) -> None:
    kept = ", annotations: {karpenter.sh/do-not-disrupt: 'true'}"
    groups = [group("small", 2, 1, ", minSize: 1"), GROUPS[1]]
    nodes = [node("a", 8, more=kept), node("b", 2, "small"), node("c", 2, "small")]
    assert remaining_nodes(run(tmp_path, *nodes, groups=groups)) == ["a", "c"]


def test_nodes_with_the_lowest_disruption_cost_are_removed_first(tmp_path: Path) -> None:
    precious = replicas("web", "3", "a", annotations="{controller.kubernetes.io/pod-deletion-cost: '2147483647'}")
    result = run(tmp_path, node("a", 8), node("b", 8), precious, replicas("db", "3", "b"))
    assert scaling_events(result)[0] == (0, DOWN, "b", "its pods fit elsewhere")


@pytest.mark.parametrize(
    ("priority", "cost", "want"),
    [(0, "0", 1), (2**25, "0", 2), (0, str(2**27), 2), (0, "x", 1), (10**9, "0", 10), (-(2**31), "0", -10)],
)
def test_disruption_cost_depends_on_priority_and_deletion_cost(priority: int, cost: str, want: float) -> None:
    pod = make_pod("p").spec(priority=priority).annotation({"controller.kubernetes.io/pod-deletion-cost": cost}).obj()
    assert disruption_cost(pod) == want


MISTAKES = [
    ("a wrong share", "{budgets: [{nodes: 101%}]}"),
    ("a schedule", "{budgets: [{nodes: 1, schedule: '@daily'}]}"),
    ("an unknown policy", "{consolidationPolicy: Always}"),
    ("no duration", "{consolidateAfter: soon}"),
]


@pytest.mark.parametrize("text", [pytest.param(each[1], id=each[0]) for each in MISTAKES])
def test_an_invalid_disruption_setting_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"{HEAD}disruption: {text}\nnodeGroups: []\n", encoding="utf-8")
    with pytest.raises(InputError, match="3 Autoscaler"):
        read_autoscaler(path)
