"""The volume plugins compared with naive rules: on random clusters, over all rows and row by row, after pods changed.

All small clusters with two nodes, up to two volumes and up to two claims are enumerated.
"""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import SKIP
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolume
from bayplan.plugins.node_volume_limits.plugin import NodeVolumeLimits
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions
from bayplan.plugins.volume_zone import VolumeZone
from bayplan.state.cluster_state import ClusterState
from tests.oracle import volume_rules as oracle
from tests.oracle.volume_rules import World
from tests.plugins.builders import make_node, make_plugin
from tests.plugins.forms import Verdict, filters, pre_filter
from tests.plugins.volume_worlds import make_claim, make_class, make_volume, state_of, using, worlds

IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def verdicts(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, Verdict] | None:
    """Return a plugin's verdict for each node, after its PreFilter; None if that rejects the pod."""
    answer = pre_filter(plugin, pod, state)
    if answer == SKIP:
        return {}
    return filters(plugin, pod, state, answer.params) if isinstance(answer, PreFilterResult) else None


def unbindable(world: World) -> bool:
    """Return whether the pod has an unbound claim whose class binds immediately."""
    claims = world.claims(world.pod)
    return any(not oracle.is_bound(claim) and oracle.waiting(world, claim) is None for claim in claims)


def missing_volume(world: World) -> bool:
    """Return whether a claim of the pod names a volume that does not exist."""
    names = {volume.metadata.name for volume in world.all(PersistentVolume)}
    return any(claim.spec.volume_name and claim.spec.volume_name not in names for claim in world.claims(world.pod))


def reported(world: World, rule: Any, code: str) -> dict[str, Verdict]:
    """Return the result of a naive rule for each node, in a plugin's form."""
    found = {node.metadata.name: rule(world, node) for node in world.nodes}
    return {name: (code, (text,)) for name, text in found.items() if text}


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_volume_restrictions_matches_the_naive_rules(world: World) -> None:
    state = state_of(world)
    want = reported(world, oracle.disk_conflict, "Unschedulable")
    if oracle.exclusive_claims_in_use(world):
        in_use = ("Unschedulable", (IN_USE,))
        want = {node.metadata.name: want.get(node.metadata.name, in_use) for node in world.nodes}
    assert verdicts(make_plugin(VolumeRestrictions, state), world.pod, state) == want


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_volume_zone_matches_the_naive_rules(world: World) -> None:
    state = state_of(world)
    found = verdicts(make_plugin(VolumeZone, state), world.pod, state)
    if missing_volume(world):
        assert found is None
    else:
        assert found == reported(world, oracle.zone_conflict, "UnschedulableAndUnresolvable")


@settings(max_examples=200, deadline=None)
@given(worlds())
def test_node_volume_limits_matches_the_naive_rules(world: World) -> None:
    state = state_of(world)
    plugin = make_plugin(NodeVolumeLimits, state)
    want = reported(world, oracle.too_many_volumes, "Unschedulable")
    assert verdicts(plugin, world.pod, state) == want
    # Cached state must be updated when pods are removed, permanently or temporarily.
    for pod, _ in world.pods[:1]:
        fewer = World(world.nodes, world.pods[1:], world.objects, world.pod)
        with state.trial():
            state.remove_pod(f"default/{pod.metadata.name}")
            assert verdicts(plugin, world.pod, state) == reported(fewer, oracle.too_many_volumes, "Unschedulable")
        assert verdicts(plugin, world.pod, state) == want


@settings(max_examples=300, deadline=None)
@given(worlds())
def test_volume_binding_matches_the_naive_rules(world: World) -> None:
    check_volume_binding(world)


def check_volume_binding(world: World) -> None:
    """Let both bind the claims of a pod, and compare."""
    state = state_of(world)
    plugin = make_plugin(VolumeBinding, state)
    found = verdicts(plugin, world.pod, state)
    if unbindable(world):
        assert found is None
        return
    want = {node.metadata.name: oracle.binding(world, node) for node in world.nodes}
    assert found == {
        name: ("UnschedulableAndUnresolvable", reasons) for name, (reasons, _, _) in want.items() if reasons
    }
    for name, (reasons, volumes, provision) in want.items():
        if reasons:
            continue
        cycle_state = CycleState()
        spec = plugin.compile(world.pod, state)
        plugin.pre_filter(spec, state, cycle_state)
        assert plugin.reserve(cycle_state, world.pod, name).ok
        reserved = plugin.reserved(cycle_state)
        assert (reserved.get("volumes", {}), reserved.get("provision", [])) == (volumes, provision)
        plugin.unreserve(cycle_state, world.pod, name)
        assert verdicts(plugin, world.pod, state) == found


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_cached_volume_columns_follow_catalog_writes(world: World) -> None:
    """Plugins that saw the cluster grow object by object agree with new ones."""
    state = state_of(World(world.nodes, (), (), world.pod))
    grown = [make_plugin(kind, state) for kind in (NodeVolumeLimits, VolumeBinding, VolumeZone, VolumeRestrictions)]
    for item in world.objects:
        state.catalog.put(item.key, item)
        for plugin in grown:
            verdicts(plugin, world.pod, state)
    for pod, node_name in world.pods:
        state.place(state.pod_info(pod), state.nodes.row_of[node_name])
        for plugin in grown:
            verdicts(plugin, world.pod, state)
    for plugin in grown:
        fresh = make_plugin(type(plugin), state)
        assert verdicts(plugin, world.pod, state) == verdicts(fresh, world.pod, state)


SMALL_VOLUMES = [*product(("1Gi", "2Gi"), ((), ("n0",), ("n1",)))]
SMALL_CLAIMS = [*product(("1Gi", "2Gi"), ("", "pv0"))]
NODES = [make_node(name, labels={"host": name}) for name in ("n0", "n1")]


@pytest.mark.parametrize("first", [None, *SMALL_VOLUMES], ids=str)
def test_volume_binding_matches_the_naive_rules_for_all_pairs_of_volumes_and_claims(
    first: tuple[str, tuple[str, ...]] | None,
) -> None:
    for second, claims in product((None, *SMALL_VOLUMES), (*product(SMALL_CLAIMS), *product(SMALL_CLAIMS, repeat=2))):
        volumes = [
            make_volume(f"pv{number}", size, storage_class="local", nodes=nodes)
            for number, (size, nodes) in enumerate(item for item in (first, second) if item is not None)
        ]
        wanted = [
            make_claim(f"c{number}", size, storage_class="local", volume=volume)
            for number, (size, volume) in enumerate(claims)
        ]
        objects = [make_class("local", "kubernetes.io/no-provisioner"), *volumes, *wanted]
        check_volume_binding(World(NODES, (), objects, using(*(f"c{number}" for number in range(len(claims))))))
