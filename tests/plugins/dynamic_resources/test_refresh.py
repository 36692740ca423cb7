"""State cached about devices between cycles: equal to a new plugin's, and searched again only after a change."""

from random import Random
from typing import Any

import numpy as np
import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Plugin, PreFilterResult, Reads
from bayplan.framework.rule import ready
from bayplan.framework.status import verdict_code
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod
from bayplan.objects.resource import DeviceClass, ResourceClaim, ResourcePool, ResourceSlice, ResourceSliceSpec
from bayplan.plugins.dynamic_resources.device_environment import compile_device_expression
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.plugins.dynamic_resources.pools import PoolCatalog, PoolSlice
from bayplan.state.views import Rows
from tests.plugins.builders import make_node, make_plugin, make_pod
from tests.plugins.dynamic_resources.worlds import (
    DRIVER,
    World,
    allocation,
    claim,
    claiming,
    device,
    device_class,
    device_slice,
    request,
)

GPU = "example.com/gpu"
NODES = ("n1", "n2", "n3", "n4")
OFFER = {"cpu": "4", "memory": "8Gi", "pods": "110"}
INDEX = f'device.attributes["{DRIVER}"].index'
REQUESTS: tuple[dict[str, Any], ...] = (
    request(),
    request(count=2),
    request(expression=f"{INDEX} == 1"),
    request(deviceClassName="other"),
    request(allocationMode="All"),
    request(expression=f"{INDEX} == true"),
    {
        "name": "r",
        "firstAvailable": [
            {"name": "a", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
            {"name": "b", "deviceClassName": "other", "allocationMode": "ExactCount", "count": 1},
        ],
    },
)
PODS = (
    claiming("c0"),
    claiming("c1"),
    claiming("c2", "c0"),
    make_pod("e0", {GPU: "1"}),
    make_pod("e1", {GPU: "2", "example.com/plain": "1"}),
    make_pod("p", {GPU: "1"}, resourceClaims=[{"name": "x", "resourceClaimName": "c1"}]),
)


class History:
    """A cluster that changes at random, and the plugin that has seen it all."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World([], [device_class(extendedResourceName=GPU), device_class("other", f"{INDEX} < 2")])
        self.reserved: list[tuple[CycleState, Pod, str]] = []
        for name in NODES:
            self.change_node(name)
            self.change_slice(name)

    def change_node(self, name: str) -> None:
        more = {key: str(self.random.randrange(3)) for key in (GPU, "example.com/plain") if self.random.random() < 0.5}
        self.world.state.add_node(make_node(name, {**OFFER, **more}))

    def change_slice(self, name: str) -> None:
        devices = [device(f"d{number}", number) for number in range(self.random.randrange(4))]
        everywhere = self.random.random() < 0.2
        where = {"allNodes": True} if everywhere else {}
        self.world.put(device_slice("" if everywhere else name, devices, name=f"slice-{name}", pool=name, **where))

    def change_claim(self) -> None:
        name, node = f"c{self.random.randrange(3)}", self.random.choice(NODES)
        status = {"allocation": allocation((node, "d0"), node=self.random.choice(("", node)))}
        more: dict[str, Any] = {"status": status} if self.random.random() < 0.3 else {}
        self.world.put(claim(name, self.random.choice(REQUESTS), **more))

    def change(self) -> None:
        """Make a random change."""
        catalog, name = self.world.state.catalog, self.random.choice(NODES)
        # Changes of slices or classes repeat the whole search, so they must be rare to test the cache.
        choice = self.random.choices(range(8), (12, 3, 3, 1, 1, 1, 1, 1))[0]
        if choice == 0:
            self.change_claim()
        elif choice == 1:
            keys = [item.key for item in catalog.all(ResourceClaim)]
            catalog.remove(ResourceClaim, self.random.choice(keys or ["default/c0"]))
        elif choice == 2:
            self.change_node(name)
        elif choice == 3 and name in self.world.state.nodes.row_of:
            self.world.state.remove_node(name)
        elif choice == 4:
            self.change_slice(name)
        elif choice == 5:
            catalog.remove(ResourceSlice, f"slice-{name}")
        elif choice == 6:
            self.world.put(device_class("other", f"{INDEX} < {self.random.randrange(3)}"))
        elif choice == 7:
            catalog.remove(DeviceClass, "other")

    def bind(self) -> None:
        """Continue a reservation with PreBind and sometimes the binding's updates, or unreserve it."""
        if not self.reserved:
            return
        state, pod, node = self.reserved.pop(self.random.randrange(len(self.reserved)))
        plugin = self.world.plugin
        if self.random.random() < 0.3 or not plugin.pre_bind(state, pod, node).ok:
            plugin.unreserve(state, pod, node)
            return
        if self.random.random() < 0.7:
            for item in plugin.updates(state):
                self.world.put(item)

    def reserve(self, pod: Pod, found: dict[str, Any]) -> None:
        """Reserve a node for a pod, if one passes."""
        passing = sorted(name for name, verdict in found["nodes"].items() if verdict is None)
        if passing:
            name, state = self.random.choice(passing), found["state"]
            if self.world.plugin.reserve(state, pod, name).ok:
                self.reserved.append((state, pod, name))


def ask(plugin: DynamicResources, world: World, pod: Pod) -> dict[str, Any]:
    """Return a cycle's results: verdicts, for all rows and one by one, scores, and each node's devices."""
    state = CycleState()
    spec = plugin.compile(pod, world.state)
    answer = plugin.pre_filter(spec, world.state, state)
    found: dict[str, Any] = {"state": state, "nodes": {}}
    if not isinstance(answer, PreFilterResult):
        return {**found, "answer": answer}
    columns, nodes = world.state.columns, world.state.nodes
    rule, scorer = plugin.filter_rule(spec, world.state), plugin.score_rule(spec, world.state)
    ready(rule, answer.params, columns)
    ready(scorer, plugin.observe(spec, world.state), columns)
    codes, raw = np.zeros(columns.capacity, dtype=np.uint16), np.zeros(columns.capacity, dtype=np.int64)
    rule.filter_all(codes)
    scorer.score_all(raw)
    for name, row in nodes.row_of.items():
        assert rule.filter(row) == codes[row], (name, pod.key)
        verdict = int(codes[row])
        text = (verdict_code(verdict), plugin.reasons(spec, answer.params, verdict)) if verdict else None
        found["nodes"][name] = text
        if text is None:
            assert scorer.score(row) == raw[row]
            trial = CycleState()
            plugin.pre_filter(spec, world.state, trial)
            status = plugin.reserve(trial, pod, name)
            found[name] = (int(raw[row]), status, plugin.reserved(trial))
            plugin.unreserve(trial, pod, name)
    return found


@pytest.mark.parametrize("seed", range(25))
def test_a_refreshed_plugin_answers_like_a_new_one(seed: int) -> None:
    history = History(seed)
    for _ in range(40):
        history.change()
        history.bind()
        pod = history.random.choice(PODS)
        found = ask(history.world.plugin, history.world, pod)
        fresh = ask(make_plugin(DynamicResources, history.world.state), history.world, pod)
        assert {**found, "state": None} == {**fresh, "state": None}
        history.reserve(pod, found)


def many_nodes(count: int, classes: int = 1) -> World:
    """Return nodes with two devices each, and a class for each resource."""
    slices = [device_slice(f"n{number}", [device("d0"), device("d1")]) for number in range(count)]
    names = [device_class(f"class-{number}", extendedResourceName=f"{GPU}-{number}") for number in range(classes)]
    return World([f"n{number}" for number in range(count)], [device_class(), *names, *slices])


def searches(world: World) -> int:
    """Return how many searches for devices there were."""
    return world.plugin._allocator.searches


def test_allocation_on_one_node_repeats_the_search_only_on_that_node() -> None:
    world = many_nodes(50)
    for number in range(5):
        world.put(claim(f"c{number}", request()))
        world.filter(claiming(f"c{number}", name=f"p{number}"))
        assert world.plugin.reserve(world.cycle_state, claiming(f"c{number}"), f"n{number}").ok
    assert searches(world) == 50 + 4


def test_extended_resources_of_equal_classes_share_searches() -> None:
    world = many_nodes(50, classes=5)
    for number in range(5):
        pod = make_pod(f"p{number}", {f"{GPU}-{number}": "1"})
        assert world.filter(pod) == {}
        assert world.plugin.reserve(world.cycle_state, pod, f"n{number}").ok
    assert searches(world) == 50 + 4


def test_a_pool_for_all_nodes_is_built_once() -> None:
    source = ResourceSlice(
        metadata=ObjectMeta(name="s"),
        spec=ResourceSliceSpec(
            driver=DRIVER, pool=ResourcePool(name="p", generation=1, resource_slice_count=1), all_nodes=True
        ),
    )
    catalog = PoolCatalog([PoolSlice(source, ())], FeatureGates())
    pools = [catalog.pools_of(make_node(name))[0] for name in NODES]
    assert all(pool is pools[0] for pool in pools)


def test_equal_selectors_of_devices_are_compiled_once() -> None:
    world = many_nodes(10)
    compile_device_expression.cache_clear()
    for number in range(3):
        world.put(claim(f"c{number}", request(expression=f'device.driver == "{DRIVER}"')))
        assert world.filter(claiming(f"c{number}", name=f"p{number}")) == {}
    found = compile_device_expression.cache_info()
    assert found.misses == 1
    assert found.hits == 9


def test_only_a_changed_node_is_searched_again() -> None:
    world = many_nodes(20)
    world.put(claim("c", request()))
    world.filter(claiming("c"))
    world.state.update_node(make_node("n3", labels={"name": "n3", "more": "x"}))
    world.filter(claiming("c"))
    assert searches(world) == 20 + 1


def test_deleting_a_written_extended_resource_claim_frees_its_devices() -> None:
    world = World(["n1"], [device_class(extendedResourceName=GPU), device_slice("n1", [device("d0")])])
    first, second = make_pod("e0", {GPU: "1"}), make_pod("e1", {GPU: "1"})
    world.filter(first)
    assert world.plugin.reserve(world.cycle_state, first, "n1").ok
    assert world.plugin.pre_bind(world.cycle_state, first, "n1").ok
    (written,) = world.plugin.updates(world.cycle_state)
    assert set(world.filter(second)) == {"n1"}
    world.put(written)
    assert set(world.filter(second)) == {"n1"}
    world.state.catalog.remove(ResourceClaim, written.key)
    assert world.filter(second) == {}


def test_pods_without_claims_need_no_observation_and_are_not_scored_again() -> None:
    world = many_nodes(2)
    spec = world.plugin.compile(make_pod(), world.state)
    assert type(world.plugin).observe is Plugin.observe
    assert world.plugin.score_reads(spec) is Reads.NODES
    assert world.plugin.score(spec, (), Rows(world.state)).tolist() == [0, 0]
