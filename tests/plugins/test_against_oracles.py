"""On random small clusters each form of a plugin's rule agrees with a naive implementation of the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.framework.configuration.plugin_arguments import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import milli_value, value
from bayplan.plugins.image_locality import ImageLocality
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_ports import NodePorts
from bayplan.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.plugins.node_unschedulable import NodeUnschedulable
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.state.cluster_state import ClusterState
from tests.oracle import node_rules, resource_rules
from tests.oracle.requests import needs
from tests.plugins.builders import make_plugin
from tests.plugins.clusters import GPU, NIC, clusters, pods
from tests.plugins.forms import filters, scores

RESOURCES = ("cpu", "memory", "ephemeral-storage", GPU, NIC)
DEFAULTS = {"cpu": "100m", "memory": "200Mi"}
Cluster = tuple[ClusterState, dict[str, list[Pod]]]


def node_of(state: ClusterState, name: str) -> Node:
    node = state.nodes.nodes[state.nodes.row_of[name]]
    assert node is not None
    return node


def request(pod: Pod, missing: Mapping[str, str] | None = None) -> dict[str, int]:
    return {name: needs(pod, name, missing or {}) for name in RESOURCES}


def used(running: Sequence[Pod], missing: Mapping[str, str] | None = None) -> dict[str, int]:
    return {name: sum(request(pod, missing)[name] for pod in running) for name in RESOURCES}


def offered(node: Node) -> dict[str, int]:
    amounts = node.status.allocatable
    return {name: milli_value(amount) if name == "cpu" else value(amount) for name, amount in amounts.items()}


@given(cluster=clusters(), pod=pods())
@settings(max_examples=80, deadline=None)
def test_single_node_filters_match_the_naive_rules(cluster: Cluster, pod: Pod) -> None:
    state, running = cluster
    passing: dict[type[Any], set[str]] = {}
    for kind in (NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts):
        passing[kind] = running.keys() - filters(make_plugin(kind, state), pod, state).keys()
    for name, held in running.items():
        node = node_of(state, name)
        assert (name in passing[NodeUnschedulable]) is node_rules.passes_cordon(pod, node)
        assert (name in passing[TaintToleration]) is node_rules.passes_taints(pod, node)
        assert (name in passing[NodeAffinity]) is node_rules.passes_affinity(pod, node)
        assert (name in passing[NodePorts]) is node_rules.passes_ports(pod, held)


@given(cluster=clusters(), pod=pods())
@settings(max_examples=80, deadline=None)
def test_single_node_scores_match_the_naive_rules(cluster: Cluster, pod: Pod) -> None:
    state, running = cluster
    nodes = [node for node in state.nodes.nodes if node is not None]
    nodes.sort(key=lambda node: node.metadata.name)  # In the order in which the nodes were added.
    for name in running:
        node = node_of(state, name)
        assert scores(make_plugin(TaintToleration, state), pod, state)[name] == node_rules.count_soft_taints(pod, node)
        assert scores(make_plugin(NodeAffinity, state), pod, state)[name] == node_rules.preference(pod, node)
        locality = scores(make_plugin(ImageLocality, state), pod, state, None)
        assert locality[name] == node_rules.image_score(pod, node, nodes)


@given(cluster=clusters(), pod=pods())
@settings(max_examples=80, deadline=None)
def test_node_resources_fit_matches_the_naive_rules(cluster: Cluster, pod: Pod) -> None:
    state, running = cluster
    found = filters(make_plugin(NodeResourcesFit, state), pod, state)
    for name, held in running.items():
        want = resource_rules.fit_verdict(request(pod), used(held), len(held), offered(node_of(state, name)))
        assert found.get(name) == want


WEIGHTS = st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from((1, 1, 2, 100)), min_size=1)
SHAPES = st.dictionaries(st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=4).map(
    lambda points: tuple(sorted(points.items()))
)


@given(cluster=clusters(), pod=pods(), weights=WEIGHTS | st.just({"cpu": 1, "memory": 1}), shape=SHAPES)
@settings(max_examples=80, deadline=None)
def test_scoring_strategies_match_the_naive_rules(
    cluster: Cluster, pod: Pod, weights: dict[str, int], shape: tuple[tuple[int, int], ...]
) -> None:
    state, running = cluster
    resources = tuple(ResourceSpec(name, weight) for name, weight in weights.items())
    ratio = RequestedToCapacityRatioParam(tuple(UtilizationShapePoint(*point) for point in shape))
    found = {}
    for kind in ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"):
        strategy = ScoringStrategy(type=kind, resources=resources, requested_to_capacity_ratio=ratio)
        plugin = make_plugin(NodeResourcesFit, state, NodeResourcesFitArgs(scoring_strategy=strategy))
        found[kind] = scores(plugin, pod, state)
    tenfold = [(utilization, score * 10) for utilization, score in shape]
    for name, held in running.items():
        mine, theirs, all_of_it = request(pod, DEFAULTS), used(held, DEFAULTS), offered(node_of(state, name))
        least = resource_rules.least_allocated(weights, mine, theirs, all_of_it)
        most = resource_rules.most_allocated(weights, mine, theirs, all_of_it)
        ratio_score = resource_rules.requested_to_capacity_ratio(weights, tenfold, mine, theirs, all_of_it)
        assert found["LeastAllocated"][name] == least
        assert found["MostAllocated"][name] == most
        assert found["RequestedToCapacityRatio"][name] == ratio_score


@given(
    cluster=clusters(),
    pod=pods(),
    names=st.lists(st.sampled_from(RESOURCES), min_size=1, unique=True) | st.just(["cpu", "memory"]),
)
@settings(max_examples=80, deadline=None)
def test_balanced_allocation_matches_the_naive_rules(cluster: Cluster, pod: Pod, names: list[str]) -> None:
    state, running = cluster
    arguments = NodeResourcesBalancedAllocationArgs(resources=tuple(ResourceSpec(name, 1) for name in names))
    found = scores(make_plugin(NodeResourcesBalancedAllocation, state, arguments), pod, state)
    for name, held in running.items():
        want = resource_rules.balanced_allocation(names, request(pod), used(held), offered(node_of(state, name)))
        assert found[name] == want
