"""Devices that stand for extended resources, in the scores of NodeResourcesFit and NodeResourcesBalancedAllocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from bayplan.framework.configuration.plugin_arguments import (
    MOST_ALLOCATED,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
)
from bayplan.framework.plugin import Params
from bayplan.framework.status import Status
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.cluster_state import ClusterState
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import scores

GPU = "example.com/gpu"
ONE_GPU = make_pod(requests={"cpu": "2", GPU: "1"})


def device_class(name: str = "gpu", selector: str | None = None, resource: str | None = GPU) -> KubernetesObject:
    spec: dict[str, object] = {"selectors": [{"cel": {"expression": selector}}] if selector is not None else []}
    if resource is not None:
        spec["extendedResourceName"] = resource
    return decode({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec})


def resource_slice(
    name: str, devices: Sequence[str | Mapping[str, object]], *, generation: int = 1, count: int = 1, **where: object
) -> KubernetesObject:
    written = [{"name": device} if isinstance(device, str) else dict(device) for device in devices]
    pool = {"name": "pool", "generation": generation, "resourceSliceCount": count}
    spec = {"driver": "d", "pool": pool, "devices": written, **where}
    return decode(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}
    )


def claim(name: str, *devices: str, **result: object) -> KubernetesObject:
    results = [{"request": "r", "driver": "d", "pool": "pool", "device": device, **result} for device in devices]
    return decode(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "status": {"allocation": {"devices": {"results": results}}},
        }
    )


def two_nodes(*objects: KubernetesObject, offers: Mapping[str, str] | None = None) -> ClusterState:
    state = make_state(
        [
            make_node("n1", {"cpu": "4", "memory": "8Gi", "pods": "9", **(offers or {})}),
            make_node("n2", labels={"a": "b"}),
        ]
    )
    for item in objects:
        state.catalog.put(item.key, item)
    return state


def most_allocated_gpu(state: ClusterState, *, without_pre_score: bool = False, **gates: bool) -> dict[str, int]:
    """Return the MostAllocated score of each node for a pod that requests one GPU."""
    strategy = ScoringStrategy(type=MOST_ALLOCATED, resources=(ResourceSpec(GPU, 1),))
    plugin = make_plugin(NodeResourcesFit, state, NodeResourcesFitArgs(scoring_strategy=strategy), **gates)
    params: Params | Status | None = None
    if not without_pre_score:
        params = plugin.pre_score(plugin.compile(ONE_GPU, state), state, state.nodes.alive[: state.nodes.count])
    assert not isinstance(params, Status)
    return scores(plugin, ONE_GPU, state, params)


TAINTED = {"name": "y", "taints": [{"key": "k", "effect": "NoExecute"}]}
SOLD = {"name": "y", "attributes": {"sold": {"bool": True}}}
SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}
ON_N1: dict[str, object] = {"nodeName": "n1"}


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([], {"n1": 0, "n2": 0}, id="no class, no devices: the resource does not count"),
        pytest.param(
            [device_class(), resource_slice("s", ["x", "y"], nodeName="n1")],
            {"n1": 50, "n2": 0},
            id="devices of the node count as what it offers",
        ),
        pytest.param(
            [device_class(), resource_slice("s", ["x", "y", "z", "u"], nodeName="n1"), claim("c", "x")],
            {"n1": 50, "n2": 0},
            id="allocated devices count as requested",
        ),
        pytest.param(
            [device_class(), resource_slice("s", ["x", "y"], nodeName="n1"), claim("c", "x", adminAccess=True)],
            {"n1": 50, "n2": 0},
            id="a device in use with admin access is not allocated",
        ),
        pytest.param(
            [device_class(), resource_slice("s", ["x", "y"], nodeName="n1"), claim("c", "x", shareID="7")],
            {"n1": 100, "n2": 0},
            id="a shared device is allocated",
        ),
        pytest.param(
            [device_class(), resource_slice("s", ["x", "y"], allNodes=True)],
            {"n1": 50, "n2": 50},
            id="devices for all nodes count everywhere",
        ),
        pytest.param(
            [device_class(), resource_slice("s", ["x", "y"], nodeSelector=SELECTOR)],
            {"n1": 0, "n2": 50},
            id="a node selector limits the nodes on which a slice counts",
        ),
        pytest.param(
            [
                device_class(),
                resource_slice(
                    "s",
                    [{"name": "x", **ON_N1}, {"name": "y", "allNodes": True}, {"name": "z", "nodeSelector": SELECTOR}],
                    perDeviceNodeSelection=True,
                ),
            ],
            {"n1": 50, "n2": 50},
            id="or each device has its own node selection",
        ),
        pytest.param(
            [
                device_class(),
                resource_slice("s", ["x"], nodeName="n1"),
                resource_slice("t", ["y"], generation=2, count=3, nodeName="n1"),
            ],
            {"n1": 50, "n2": 0},
            id="old generations and incomplete pools count: nothing is allocated here",
        ),
        pytest.param(
            [device_class(), resource_slice("s", ["x", TAINTED], nodeName="n1")],
            {"n1": 50, "n2": 0},
            id="tainted devices count",
        ),
        pytest.param(
            [
                device_class(selector='!("d" in device.attributes) || !("sold" in device.attributes["d"])'),
                resource_slice("s", ["x", SOLD], nodeName="n1"),
            ],
            {"n1": 100, "n2": 0},
            id="selectors of the class leave devices out",
        ),
        pytest.param(
            [device_class(selector="device.attributes["), resource_slice("s", ["x", "y"], allNodes=True)],
            {"n1": 0, "n2": 0},
            id="a selector that can't be compiled leaves the resource out",
        ),
        pytest.param(
            [device_class(resource="example.com/other"), resource_slice("s", ["x", "y"], allNodes=True)],
            {"n1": 0, "n2": 0},
            id="a class for another resource does not serve this one",
        ),
    ],
)
def test_devices_count_on_nodes_without_the_extended_resource(
    objects: Sequence[KubernetesObject], want: dict[str, int]
) -> None:
    assert most_allocated_gpu(two_nodes(*objects)) == want
    assert most_allocated_gpu(two_nodes(*objects), without_pre_score=True) == want


def test_a_nodes_own_extended_resource_takes_precedence_over_devices() -> None:
    state = two_nodes(device_class(), resource_slice("s", ["x", "y"], allNodes=True), offers={GPU: "4"})
    assert most_allocated_gpu(state) == {"n1": 25, "n2": 50}


def test_devices_count_only_if_the_gate_is_on() -> None:
    state = two_nodes(device_class(), resource_slice("s", ["x", "y"], allNodes=True))
    assert most_allocated_gpu(state, DRAExtendedResource=False) == {"n1": 0, "n2": 0}


def test_the_device_count_follows_claim_changes() -> None:
    state = two_nodes(device_class(), resource_slice("s", ["x", "y"], allNodes=True))
    strategy = ScoringStrategy(type=MOST_ALLOCATED, resources=(ResourceSpec(GPU, 1),))
    plugin = make_plugin(NodeResourcesFit, state, NodeResourcesFitArgs(scoring_strategy=strategy))
    spec, alive = plugin.compile(ONE_GPU, state), state.nodes.alive[: state.nodes.count]
    before = plugin.pre_score(spec, state, alive)
    assert plugin.pre_score(spec, state, alive) == before
    taken = claim("c", "x")
    state.catalog.put(taken.key, taken)
    after = plugin.pre_score(spec, state, alive)
    assert after != before
    assert not isinstance(after, Status)
    assert scores(plugin, ONE_GPU, state, after) == {"n1": 100, "n2": 100}


def test_balanced_allocation_counts_devices_too() -> None:
    state = two_nodes(device_class(), resource_slice("s", ["x", "y"], nodeName="n1"))
    given = NodeResourcesBalancedAllocationArgs(resources=(ResourceSpec("cpu", 1), ResourceSpec(GPU, 1)))
    plugin = make_plugin(NodeResourcesBalancedAllocation, state, given)
    params = plugin.pre_score(plugin.compile(ONE_GPU, state), state, state.nodes.alive[: state.nodes.count])
    assert not isinstance(params, Status)
    # On n1 the pod would use half of both resources, which is balanced; on n2 there is no GPU, and CPU alone is
    # balanced, too.
    assert scores(plugin, ONE_GPU, state, params) == {"n1": 75, "n2": 75}
