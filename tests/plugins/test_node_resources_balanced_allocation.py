"""NodeResourcesBalancedAllocation: how a pod changes the balance of a node's resources."""

import numpy as np
import pytest

from bayplan.framework.configuration.plugin_arguments import NodeResourcesBalancedAllocationArgs, ResourceSpec
from bayplan.objects.pod import Pod
from bayplan.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.state.views import Rows
from bayplan.testing.row_results import scores_of
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import scores, skips_score


def arguments(*names: str) -> NodeResourcesBalancedAllocationArgs:
    return NodeResourcesBalancedAllocationArgs(resources=tuple(ResourceSpec(name, 1) for name in names))


@pytest.mark.parametrize(
    ("used", "wanted", "want"),
    [
        pytest.param({}, {"cpu": "2", "memory": "4Gi"}, 75, id="equal shares of both change nothing"),
        pytest.param({}, {"cpu": "4"}, 50, id="all of one and none of the other is worst"),
        pytest.param({"cpu": "4"}, {"memory": "8Gi"}, 100, id="a pod that balances the node is best"),
        pytest.param({}, {"cpu": "1"}, 68, id="a quarter of one: the deviation of 0.125 is cut to 87"),
        pytest.param({"cpu": "3"}, {"cpu": "3", "memory": "1"}, 69, id="more than the capacity counts as all of it"),
        pytest.param({"cpu": "3", "memory": "7Gi"}, {"memory": "1Gi"}, 72, id="a step away from even"),
    ],
)
def test_cpu_and_memory_are_scored_by_their_balance(used: dict[str, str], wanted: dict[str, str], want: int) -> None:
    state = make_state([make_node("n1")], [(make_pod("r", used), "n1")])
    plugin = make_plugin(NodeResourcesBalancedAllocation, state)
    assert scores(plugin, make_pod(requests=wanted), state) == {"n1": want}


@pytest.mark.parametrize(
    ("offered", "names", "wanted", "want"),
    [
        pytest.param({"cpu": "4"}, ("cpu", "memory"), {"cpu": "4"}, 75, id="one resource alone is even"),
        pytest.param({"pods": "9"}, ("cpu", "memory"), {"cpu": "4"}, 75, id="no resource is even"),
        pytest.param(
            {"cpu": "4", "memory": "8Gi", "example.com/gpu": "4"},
            ("cpu", "memory", "example.com/gpu"),
            {"cpu": "4", "example.com/gpu": "2"},
            54,
            id="three resources: the standard deviation of 1, 0 and 0.5",
        ),
        pytest.param(
            {"cpu": "4", "memory": "8Gi", "example.com/gpu": "4"},
            ("cpu", "memory", "example.com/gpu"),
            {"cpu": "4"},
            50,
            id="a device that the pod does not want does not count",
        ),
        pytest.param(
            {"cpu": "4", "example.com/gpu": "4"},
            ("cpu", "memory", "example.com/gpu"),
            {"cpu": "4", "example.com/gpu": "2"},
            62,
            id="of three resources the node has two: half of their difference",
        ),
        pytest.param(
            {"cpu": "4", "storage": "4"},
            ("cpu", "storage"),
            {"cpu": "4", "storage": "1"},
            75,
            id="an unknown name never counts",
        ),
    ],
)
def test_configured_resources_are_scored_by_their_balance(
    offered: dict[str, str], names: tuple[str, ...], wanted: dict[str, str], want: int
) -> None:
    state = make_state([make_node("n1", offered)])
    plugin = make_plugin(NodeResourcesBalancedAllocation, state, arguments(*names))
    assert scores(plugin, make_pod(requests=wanted), state) == {"n1": want}


@pytest.mark.parametrize(
    ("pod", "names", "want"),
    [
        pytest.param(make_pod(), ("cpu", "memory"), True, id="a pod without requests"),
        pytest.param(make_pod(requests={"cpu": "0"}), ("cpu", "memory"), True, id="a pod that requests 0"),
        pytest.param(
            make_pod(requests={"example.com/gpu": "1"}),
            ("cpu", "memory"),
            True,
            id="a pod that requests other resources",
        ),
        pytest.param(
            make_pod(requests={"example.com/gpu": "1"}),
            ("example.com/gpu",),
            False,
            id="a pod that requests the resource",
        ),
        pytest.param(make_pod(requests={"storage": "1"}), ("storage",), False, id="even if no node counts it"),
        pytest.param(
            make_pod(resources={"requests": {"cpu": "1"}}), ("cpu",), False, id="a pod with pod-level requests"
        ),
    ],
)
def test_best_effort_pods_skip_the_score(pod: Pod, names: tuple[str, ...], want: bool) -> None:
    state = make_state([make_node("n1")])
    plugin = make_plugin(NodeResourcesBalancedAllocation, state, arguments(*names))
    assert skips_score(plugin, pod, state) is want


def test_best_effort_pods_score_0_without_pre_score() -> None:
    state = make_state([make_node("n1")])
    plugin = make_plugin(NodeResourcesBalancedAllocation, state)
    assert scores(plugin, make_pod(), state, None) == {"n1": 0}
    assert scores(plugin, make_pod(requests={"cpu": "4"}), state, None) == {"n1": 50}


def test_scoring_without_resources_is_an_error() -> None:
    state = make_state([])
    plugin = make_plugin(NodeResourcesBalancedAllocation, state, arguments())
    assert plugin.score_error(plugin.compile(make_pod(), state), ()) == "resources not found"


@pytest.mark.parametrize(
    ("memory", "used", "want"),
    [
        pytest.param("8Gi", "0", 56, id="the largest int64 is all of the node"),
        pytest.param("8Gi", "1Gi", -26843545524, id="the sum with running pods wraps to a negative number"),
        pytest.param("63Ti", "1", -3328743, id="halves are rounded towards zero"),
    ],
)
def test_large_amounts_overflow_like_upstream(memory: str, used: str, want: int) -> None:
    node = make_node("n1", {"cpu": "4", "memory": memory, "pods": "9"})
    state = make_state([node], [(make_pod("r", {"cpu": "0", "memory": used}), "n1")])
    pod = make_pod(requests={"cpu": "1", "memory": "8Ei"})
    assert scores(make_plugin(NodeResourcesBalancedAllocation, state), pod, state) == {"n1": want}


def test_an_in_progress_resize_counts_and_changes_the_signature() -> None:
    state = make_state([make_node("n1")])
    plugin = make_plugin(NodeResourcesBalancedAllocation, state)
    container_status = {"name": "c", "resources": {"requests": {"cpu": "4"}}}
    resized = make_pod(requests={"cpu": "1"}, status={"containerStatuses": [container_status]})
    assert scores(plugin, resized, state) == {"n1": 50}
    assert plugin.sign_pod(resized) is not None
    assert plugin.sign_pod(make_pod(requests={"cpu": "1"})) is None


def test_cached_values_follow_the_state() -> None:
    state = make_state([make_node(f"n{number}", {"cpu": "4", "memory": "8Gi", "pods": "9"}) for number in range(30)])
    kept = make_plugin(NodeResourcesBalancedAllocation, state)
    pod = make_pod(requests={"cpu": "1", "memory": "1Gi"})

    def check() -> None:
        fresh = make_plugin(NodeResourcesBalancedAllocation, state)
        spec = kept.compile(pod, state)
        np.testing.assert_array_equal(scores_of(kept, spec, (), Rows(state)), scores_of(fresh, spec, (), Rows(state)))

    check()
    for number in range(26):
        state.place(state.pod_info(make_pod(f"a{number}", {"cpu": f"{1 + number % 3}"})), number)
        if number % 5 == 0:
            check()
    check()
    with state.trial():
        state.remove_pod("default/a3")
        check()
    check()
    state.remove_node("n4")
    check()
    state.add_node(make_node("m", {"cpu": "1", "memory": "1Gi"}))
    check()
    fork = state.fork()
    fork.place(fork.pod_info(make_pod("f", {"cpu": "1"})), 0)
    spec = kept.compile(pod, fork)
    fresh = scores_of(make_plugin(NodeResourcesBalancedAllocation, fork), spec, (), Rows(fork))
    np.testing.assert_array_equal(scores_of(kept, spec, (), Rows(fork)), fresh)
    check()
