"""NodeResourcesFit: insufficient resources and the missing amounts, ignored resources, and scoring strategies."""

import numpy as np
import pytest

from bayplan.base.errors import ConfigurationError
from bayplan.framework.configuration.plugin_arguments import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from bayplan.framework.plugin import PROCEED, PreFilterResult, Reads
from bayplan.objects.kinds import decode
from bayplan.objects.pod import Pod
from bayplan.objects.requests import RequestGates
from bayplan.objects.resource import DeviceClass
from bayplan.plugins.node_resources_fit import NO_PRE_FILTER, NodeResourcesFit
from bayplan.plugins.scored_resources import DEFAULT_RESOURCES
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing.row_results import scores_of
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import filters, pre_filter, scores


def verdict(code: str, *reasons: str) -> dict[str, object]:
    return {"n1": (code, reasons)}


SHORT, TOO_SMALL = "Unschedulable", "UnschedulableAndUnresolvable"


@pytest.mark.parametrize(
    ("wanted", "used", "want"),
    [
        pytest.param({"cpu": "1"}, {"cpu": "3"}, {}, id="exactly the free amount"),
        pytest.param(
            {"cpu": "1001m"},
            {"cpu": "3"},
            verdict(SHORT, "Insufficient cpu"),
            id="a milli-CPU more than the free amount",
        ),
        pytest.param({"cpu": "4"}, {"cpu": "1m"}, verdict(SHORT, "Insufficient cpu"), id="all of the node"),
        pytest.param({"cpu": "4001m"}, {}, verdict(TOO_SMALL, "Insufficient cpu"), id="more than the whole node"),
        pytest.param({"cpu": "0.1m"}, {"cpu": "4"}, verdict(SHORT, "Insufficient cpu"), id="a fraction counts as one"),
        pytest.param({"memory": "1"}, {"memory": "8Gi"}, verdict(SHORT, "Insufficient memory"), id="a byte too many"),
        pytest.param({"cpu": "0", "memory": "0"}, {"cpu": "4", "memory": "8Gi"}, {}, id="nothing fits a full node"),
        pytest.param({}, {"cpu": "9"}, {}, id="nothing fits an overcommitted node"),
        pytest.param(
            {"memory": "9Gi", "cpu": "4"},
            {"cpu": "1"},
            verdict(TOO_SMALL, "Insufficient cpu", "Insufficient memory"),
            id="one of two resources that the node lacks makes it unresolvable",
        ),
        pytest.param(
            {"example.com/gpu": "1"}, {}, verdict(TOO_SMALL, "Insufficient example.com/gpu"), id="no such device"
        ),
        pytest.param({"example.com/gpu": "0"}, {}, {}, id="none of a device that is not there"),
        pytest.param(
            {"hugepages-2Mi": "2Mi"}, {}, verdict(TOO_SMALL, "Insufficient hugepages-2Mi"), id="no huge pages"
        ),
        pytest.param({"storage": "1Gi"}, {}, {}, id="a name that nodes don't count"),
        pytest.param({"cpu": "-1"}, {"cpu": "9"}, {}, id="a negative request counts as 0"),
    ],
)
def test_filter_reports_insufficient_resources(
    wanted: dict[str, str], used: dict[str, str], want: dict[str, object]
) -> None:
    state = make_state([make_node("n1")], [(make_pod("used", used), "n1")])
    assert filters(make_plugin(NodeResourcesFit, state), make_pod(requests=wanted), state) == want


@pytest.mark.parametrize(
    ("allowed", "running", "wanted", "want"),
    [
        pytest.param("2", 1, {}, {}, id="room for one more"),
        pytest.param("2", 2, {}, verdict(SHORT, "Too many pods"), id="no room, which preemption may free"),
        pytest.param("0", 0, {}, verdict(SHORT, "Too many pods"), id="no room for any pod counts as too many pods"),
        pytest.param(
            "1",
            1,
            {"cpu": "5"},
            verdict(TOO_SMALL, "Too many pods", "Insufficient cpu"),
            id="the pod count is reported first",
        ),
    ],
)
def test_filter_reports_too_many_pods(
    allowed: str, running: int, wanted: dict[str, str], want: dict[str, object]
) -> None:
    node = make_node("n1", {"cpu": "4", "memory": "8Gi", "pods": allowed})
    state = make_state([node], [(make_pod(f"r{number}"), "n1") for number in range(running)])
    assert filters(make_plugin(NodeResourcesFit, state), make_pod(requests=wanted), state) == want


def test_a_node_without_allocatable_pods_fits_no_pod() -> None:
    state = make_state([make_node("n1", {"cpu": "1"})])
    assert filters(make_plugin(NodeResourcesFit, state), make_pod(), state) == verdict(SHORT, "Too many pods")


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            make_pod(requests={"cpu": "1"}, resources={"requests": {"cpu": "5"}}),
            verdict(TOO_SMALL, "Insufficient cpu"),
            id="pod-level requests replace the sum of the containers",
        ),
        pytest.param(
            make_pod(requests={"cpu": "5"}, resources={"requests": {"cpu": "4"}}), {}, id="even if they are lower"
        ),
        pytest.param(
            make_pod(requests={"cpu": "4"}, overhead={"cpu": "1m"}),
            verdict(TOO_SMALL, "Insufficient cpu"),
            id="overhead",
        ),
    ],
)
def test_pod_level_resources_and_overhead_count(pod: Pod, want: dict[str, object]) -> None:
    state = make_state([make_node("n1")])
    assert filters(make_plugin(NodeResourcesFit, state), pod, state) == want


def test_pod_level_resources_are_ignored_if_the_gate_is_off() -> None:
    state = ClusterState(RequestGates(pod_level_resources=False))
    state.add_node(make_node("n1"))
    pod = make_pod(requests={"cpu": "1"}, resources={"requests": {"cpu": "5"}})
    assert filters(make_plugin(NodeResourcesFit, state), pod, state) == {}


@pytest.mark.parametrize(
    ("resources", "groups", "name", "want"),
    [
        pytest.param(("example.com/gpu",), (), "example.com/gpu", True, id="by name"),
        pytest.param(("example.com/gpu",), (), "example.com/nic", False, id="by another name"),
        pytest.param((), ("example.com",), "example.com/nic", True, id="by group"),
        pytest.param((), ("example.com",), "sub.example.com/nic", False, id="a group is the whole prefix"),
        pytest.param(("hugepages-2Mi",), (), "hugepages-2Mi", False, id="only extended resources are ignored"),
        pytest.param(
            ("kubernetes.io/batch",), ("kubernetes.io",), "kubernetes.io/batch", False, id="not Kubernetes' own"
        ),
        pytest.param(("cpu",), (), "cpu", False, id="nor CPU"),
    ],
)
def test_ignored_resources_match_by_name_or_group(
    resources: tuple[str, ...], groups: tuple[str, ...], name: str, want: bool
) -> None:
    state = make_state([make_node("n1")])
    arguments = NodeResourcesFitArgs(
        ignored_resources=resources, ignored_resource_groups=groups, scoring_strategy=strategy("LeastAllocated")
    )
    found = filters(make_plugin(NodeResourcesFit, state, arguments), make_pod(requests={name: "5"}), state)
    assert (found == {}) is want


def strategy(
    kind: str, *shape: tuple[int, int], resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
) -> ScoringStrategy:
    points = tuple(UtilizationShapePoint(utilization, score) for utilization, score in shape)
    ratio = RequestedToCapacityRatioParam(points) if shape else None
    return ScoringStrategy(type=kind, resources=resources, requested_to_capacity_ratio=ratio)


def device_class(name: str, claimed: str | None = None) -> DeviceClass:
    spec = {"extendedResourceName": claimed} if claimed else {}
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}
    found = decode(document)
    assert isinstance(found, DeviceClass)
    return found


def test_devices_can_provide_an_extended_resource_on_nodes_without_it() -> None:
    nodes = [
        make_node("n1"),
        make_node("n2", {"cpu": "4", "memory": "1Gi", "pods": "9", "example.com/gpu": "1"}),
        make_node("n3", {"example.com/gpu": "0", "pods": "9"}),
    ]
    state = make_state(nodes)
    plugin = make_plugin(NodeResourcesFit, state)
    pod = make_pod(requests={"example.com/gpu": "2"})
    number = state.register_resource("example.com/gpu")
    short = (TOO_SMALL, ("Insufficient example.com/gpu",))
    assert pre_filter(plugin, pod, state) == PROCEED
    assert filters(plugin, pod, state) == dict.fromkeys(("n1", "n2", "n3"), short)
    state.catalog.put("gpus", device_class("gpus", "example.com/gpu"))
    assert pre_filter(plugin, pod, state) == PreFilterResult((number,))
    assert filters(plugin, pod, state, (number,)) == {"n2": short}
    implicit = make_pod(requests={"deviceclass.resource.kubernetes.io/gpus": "1"})
    answer = pre_filter(plugin, implicit, state)
    assert isinstance(answer, PreFilterResult)
    assert filters(plugin, implicit, state, answer.params) == {}
    without = make_plugin(NodeResourcesFit, state, DRAExtendedResource=False)
    assert pre_filter(without, pod, state) == PROCEED


def test_only_pods_with_scalar_resources_read_device_classes() -> None:
    state = make_state([])
    plugin = make_plugin(NodeResourcesFit, state)
    assert plugin.pre_filter_reads(plugin.compile(make_pod(requests={"cpu": "1"}), state)) is Reads.NOTHING
    assert plugin.pre_filter_reads(plugin.compile(make_pod(requests={"example.com/gpu": "1"}), state)) is Reads.OBJECTS


def test_a_verdict_covers_more_resources_than_it_has_bits() -> None:
    names = [f"example.com/r{number:02}" for number in range(20)]
    node = make_node("n1", {"pods": "1", "cpu": "1", **dict.fromkeys(names[:10], "2")})
    state = make_state([node, make_node("n2")], [(make_pod("r", {names[3]: "2"}), "n1")])
    plugin = make_plugin(NodeResourcesFit, state)
    pod = make_pod(requests={"cpu": "1", **dict.fromkeys(names, "2")})
    short = tuple(f"Insufficient {name}" for name in names)
    assert filters(plugin, pod, state) == {
        "n1": (TOO_SMALL, ("Too many pods", short[3], *short[10:])),
        "n2": (TOO_SMALL, short),
    }
    resolvable = make_pod(requests={name: "1" if name in names[:10] else "0" for name in names})
    assert filters(plugin, resolvable, state)["n1"] == (SHORT, ("Too many pods", short[3]))


def test_filter_without_pre_filter_is_an_error_on_every_node() -> None:
    state = make_state([make_node("n1")])
    assert filters(make_plugin(NodeResourcesFit, state), make_pod(), state, None) == verdict("Error", NO_PRE_FILTER)


def test_scores_are_equal_without_pre_score() -> None:
    state = make_state([make_node("n1")])
    plugin = make_plugin(NodeResourcesFit, state)
    assert scores(plugin, make_pod(), state, None) == scores(plugin, make_pod(), state, ()) == {"n1": 97}


@pytest.mark.parametrize(
    ("kind", "shape", "want"),
    [
        pytest.param(
            "LeastAllocated", (), 62, id="LeastAllocated: half of the CPU and three quarters of the memory free"
        ),
        pytest.param("MostAllocated", (), 37, id="MostAllocated: the other way round"),
        pytest.param("RequestedToCapacityRatio", ((0, 0), (100, 10)), 38, id="a rising shape, the mean rounded up"),
        pytest.param(
            "RequestedToCapacityRatio", ((0, 10), (50, 0)), 50, id="a resource with score 0 in the shape does not count"
        ),
    ],
)
def test_each_strategy_scores_by_its_formula(kind: str, shape: tuple[tuple[int, int], ...], want: int) -> None:
    state = make_state([make_node("n1")], [(make_pod("r", {"cpu": "1", "memory": "1Gi"}), "n1")])
    plugin = make_plugin(NodeResourcesFit, state, NodeResourcesFitArgs(scoring_strategy=strategy(kind, *shape)))
    assert scores(plugin, make_pod(requests={"cpu": "1", "memory": "1Gi"}), state) == {"n1": want}


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="scoring strategy Best is not supported"):
        make_plugin(NodeResourcesFit, make_state([]), NodeResourcesFitArgs(scoring_strategy=strategy("Best")))


def test_a_strategy_without_resources_is_a_score_error() -> None:
    state = make_state([])
    arguments = NodeResourcesFitArgs(scoring_strategy=strategy("LeastAllocated", resources=()))
    plugin = make_plugin(NodeResourcesFit, state, arguments)
    assert plugin.score_error(plugin.compile(make_pod(), state), ()) == "resources not found"


@pytest.mark.parametrize(
    ("memory", "used", "wanted", "want"),
    [
        pytest.param("93P", "0", "100Mi", -11, id="a hundredfold wraps around"),
        pytest.param("64Ti", "0", "32Ti", 62, id="2^46 does not"),
        pytest.param("8Gi", "0", "8Ei", 37, id="the largest int64 is more than the node has"),
        pytest.param("8Gi", "1Gi", "8Ei", 81, id="the sum with running pods wraps to a negative number"),
        pytest.param("63Ti", "1", "8Ei", 87, id="even if the node is almost too large"),
    ],
)
def test_large_amounts_overflow_like_upstream(memory: str, used: str, wanted: str, want: int) -> None:
    node = make_node("n1", {"cpu": "4", "memory": memory, "pods": "9"})
    state = make_state([node], [(make_pod("r", {"cpu": "0", "memory": used}), "n1")])
    pod = make_pod(requests={"cpu": "1", "memory": wanted})
    assert scores(make_plugin(NodeResourcesFit, state), pod, state) == {"n1": want}


def test_pods_with_equal_requests_share_results() -> None:
    state = make_state([make_node("n1")])
    plugin = make_plugin(NodeResourcesFit, state)
    one = plugin.compile(make_pod(requests={"cpu": "1000m", "memory": "1024Mi"}, image="a"), state)
    other = plugin.compile(make_pod(requests={"memory": "1Gi", "cpu": "1"}, image="b"), state)
    assert one.key == other.key
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    third = plugin.compile(make_pod(initContainers=[sidecar]), state)
    assert third.key != one.key  # Scoring counts a default request for the container that requests nothing.


def test_scores_of_freed_rows_are_finite() -> None:
    state = make_state([make_node("n1"), make_node("n2")])
    state.remove_node("n1")
    plugin = make_plugin(NodeResourcesFit, state)
    spec = plugin.compile(make_pod(requests={"cpu": "1"}), state)
    assert np.isfinite(scores_of(plugin, spec, (), Rows(state))).all()
