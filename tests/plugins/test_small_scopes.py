"""All small clusters of up to three nodes, three pods and two resources, compared with the naive rules.

In these rules, nodes do not affect each other. Therefore it is enough to evaluate each possible state of a node once as
a row of one large cluster state, and once alone in a small one.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import pytest

from bayplan.objects.pod import Pod
from bayplan.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.cluster_state import ClusterState
from tests.oracle import resource_rules
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import filters, scores

MEBI = 1 << 20
SIZES = (0, 1, 2, 3)
"""Amounts in units of 100m and of 200 MiB, what a container that asks for nothing counts with."""

Situation = tuple[tuple[int, int, int], tuple[tuple[int, int], ...]]
"""A node's capacity (CPU, memory, pods), the requests of up to two pods on it, and those of the third, which is scheduled."""


def situations() -> list[Situation]:
    """Return all nodes with all running pods."""
    shapes = [*product(SIZES[:3], SIZES[:3])]
    running = [held for count in range(3) for held in combinations_with_replacement(shapes, count)]
    offers = [(cpu, memory, 2) for cpu, memory in product(SIZES, SIZES)] + [(3, 3, pods) for pods in (0, 1)]
    return [*product(offers, running)]


def amounts(cpu: int, memory: int) -> dict[str, int]:
    return {"cpu": 100 * cpu, "memory": 200 * MEBI * memory}


def pod_of(name: str, cpu: int, memory: int) -> Pod:
    return make_pod(name, {"cpu": f"{100 * cpu}m", "memory": f"{200 * memory}Mi"})


def place(state: ClusterState, name: str, held: tuple[tuple[int, int], ...], number: int) -> None:
    for place_number, shape in enumerate(held):
        info = state.pod_info(pod_of(f"r{number}-{place_number}", *shape))
        state.place(info, state.nodes.row_of[name])


@pytest.fixture(scope="module")
def everything() -> tuple[ClusterState, dict[str, Situation]]:
    """Return one state that holds every situation as a node."""
    state = make_state([])
    names: dict[str, Situation] = {}
    for number, situation in enumerate(situations()):
        (cpu, memory, pods), held = situation
        offers = {"cpu": f"{100 * cpu}m", "memory": f"{200 * memory}Mi", "pods": str(pods)}
        name = f"n{number}"
        names[name] = situation
        state.add_node(make_node(name, offers))
        place(state, name, held, number)
    return state, names


@pytest.mark.parametrize("shape", [*product(SIZES, SIZES)], ids=lambda shape: f"{shape[0]} CPU and {shape[1]} memory")
def test_every_small_node_matches_the_naive_rules(
    everything: tuple[ClusterState, dict[str, Situation]], shape: tuple[int, int]
) -> None:
    state, names = everything
    pod = pod_of("p", *shape)
    request = amounts(*shape)
    verdicts = filters(make_plugin(NodeResourcesFit, state), pod, state)
    least = scores(make_plugin(NodeResourcesFit, state), pod, state)
    balance = scores(make_plugin(NodeResourcesBalancedAllocation, state), pod, state)
    for name, ((cpu, memory, pods), held) in names.items():
        offered = {**amounts(cpu, memory), "pods": pods}
        used = {key: sum(amounts(*other)[key] for other in held) for key in ("cpu", "memory")}
        # All requests are explicit, so that no defaults of scoring apply.
        assert verdicts.get(name) == resource_rules.fit_verdict(request, used, len(held), offered)
        assert least[name] == resource_rules.least_allocated({"cpu": 1, "memory": 1}, request, used, offered)
        assert balance[name] == resource_rules.balanced_allocation(("cpu", "memory"), request, used, offered)


def test_results_of_a_node_do_not_depend_on_other_nodes(everything: tuple[ClusterState, dict[str, Situation]]) -> None:
    state, names = everything
    pod = pod_of("p", 1, 2)
    together = (
        filters(make_plugin(NodeResourcesFit, state), pod, state),
        scores(make_plugin(NodeResourcesBalancedAllocation, state), pod, state),
    )
    chosen = sorted(names)[::97]
    for trio in zip(chosen, chosen[1:], chosen[2:], strict=False):
        alone = make_state([node for name in trio if (node := state.nodes.nodes[state.nodes.row_of[name]]) is not None])
        for number, name in enumerate(trio):
            place(alone, name, names[name][1], number)
        verdicts = filters(make_plugin(NodeResourcesFit, alone), pod, alone)
        balance = scores(make_plugin(NodeResourcesBalancedAllocation, alone), pod, alone)
        for name in trio:
            assert verdicts.get(name) == together[0].get(name)
            assert balance[name] == together[1][name]
