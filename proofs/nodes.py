"""Nodes to remove, replayed pod by pod in a new cluster; and nodes to remove and to add compared with the best sets.

The best sets are found by trying all: to remove, every subset of the nodes that no rule keeps; to add, every number of
nodes of each shape that costs less than the answer. A set is good if the scheduler places all pods under some seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import combinations, islice, product

from msgspec.structs import replace

from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.drain_rules import DrainOptions
from bayplan.answers.node_addition import nodes_to_add
from bayplan.answers.node_removal import RemovalAnswer, nodes_to_remove
from bayplan.answers.node_shapes import NodeShape, parse_shape
from bayplan.library import Cluster
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodStatus
from bayplan.testing.builders import make_pod
from proofs.busy_clusters import WITHOUT_EVICTIONS, BusyCluster, busy_cluster, busy_clusters
from proofs.proof import Proof

SEEDS = range(3)
PACKING = find_spec("ortools") is not None
"""Whether bounds by packing can be checked, too."""

FORCED = DrainOptions(force=True)


def prove(cases: int, seed: int) -> Proof:
    """Check nodes to remove and nodes to add for `cases` clusters, and return the results."""
    proof = Proof()
    for case in islice(busy_clusters(seed, nodes=6), cases):
        proof.cases += 1
        check_removal(case, proof)
        check_addition(random.Random(f"nodes {case.name}"), case.name, proof)
    return proof


# --- removing ---------------------------------------------------------------------------------------------------------


def check_removal(case: BusyCluster, proof: Proof) -> None:
    """Replay one answer, and compare it with the largest set that can be removed."""
    answer = nodes_to_remove(case.asked(), options=FORCED)
    removed = [row.node for row in answer.removed]
    waiting = replay(case, answer)
    if waiting:
        proof.failures.append(f"{case.name}: removing {removed} leaves {waiting} waiting")
    if len(removed) > answer.bound.nodes:
        proof.failures.append(f"{case.name}: {len(removed)} removed, more than the bound {answer.bound.nodes}")
    ruled = {row.node for row in answer.kept if row.is_rule}
    names = [item.metadata.name for item in case.objects if isinstance(item, Node) and item.metadata.name not in ruled]
    best = largest_removal(case, names, len(removed))
    proof.counts[
        f"removal {best - len(removed)} below the best" if best > len(removed) else "removal as good as the best"
    ] += 1
    proof.counts["removal bound " + ("tight" if best == answer.bound.nodes else "loose")] += 1
    if PACKING:
        packed = nodes_to_remove(case.asked(), options=FORCED, packing=True).bound
        proof.counts["removal bound by packing " + ("tight" if best == packed.nodes else "loose")] += 1
        if not best <= packed.nodes <= answer.bound.nodes:
            proof.failures.append(
                f"{case.name}: {best} can be removed, {packed.nodes} by packing, {answer.bound.nodes}"
            )
    if best > answer.bound.nodes:
        proof.failures.append(f"{case.name}: {best} can be removed, more than the bound {answer.bound.nodes}")


def replay(case: BusyCluster, answer: RemovalAnswer) -> list[str]:
    """Cordon the nodes to remove, then drain and delete them in order.

    Return the pods that find no node or a different one than predicted, and predicted pods that did not move.
    """
    reported = {move.pod: move.to_node for move in answer.moves}
    cluster = case.fresh()
    wrong = []
    for pod, node in _drains(cluster, [row.node for row in answer.removed]):
        if not node or reported.pop(pod) != node:
            wrong.append(pod)
    return wrong + sorted(reported)


def _drains(cluster: Cluster, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Drain nodes in order, and yield each pod with its new node, or ""."""
    state = cluster.state
    for name in names:
        node = state.nodes.nodes[state.nodes.row_of[name]]
        assert node is not None
        cluster.add(replace(node, spec=replace(node.spec, unschedulable=True)))
    for name in names:
        infos = list(state.pods_on[state.nodes.row_of[name]].values())
        leaving = [info for info in infos if is_recreated_elsewhere(info.pod)]
        leaving.sort(key=lambda info: (-(info.pod.spec.priority or 0), -info.footprint.largest, info.key))
        for info in leaving:
            cluster.remove(info.key)
        for info in leaving:
            pod = info.pod
            again = replace(
                pod,
                metadata=replace(pod.metadata, uid=f"{pod.metadata.uid}-again"),
                spec=replace(pod.spec, node_name=""),
                status=PodStatus(phase="Pending"),
            )
            yield info.key, cluster.schedule(again)[-1].record.node
        for info in state.pods_on[state.nodes.row_of[name]].copy().values():
            cluster.remove(info.key)
        cluster.remove(name)


def largest_removal(case: BusyCluster, names: Sequence[str], found: int) -> int:
    """Return the size of the largest set of nodes that can be removed, at least `found`."""
    for size in range(len(names), found, -1):
        for chosen in combinations(names, size):
            for seed in SEEDS:
                if all(node for _, node in _drains(case.fresh(seed), chosen)):
                    return size
    return found


# --- adding -----------------------------------------------------------------------------------------------------------


def check_addition(draw: random.Random, name: str, proof: Proof) -> None:
    """Add pending pods to a small cluster, and compare the nodes that the answer adds with the cheapest set."""
    case = busy_cluster(draw, name, 3)
    waiting = [_waiting(draw, number) for number in range(draw.randint(1, 5))]
    shapes = [
        parse_shape("name=small,cpu=2,memory=4Gi,pods=20,zone=a,label.disk=ssd,price=1"),
        parse_shape("name=large,cpu=6,memory=8Gi,pods=20,zone=b,label.disk=ssd,price=2.5"),
    ]
    case.objects += waiting
    answer = nodes_to_add(case.asked(), shapes)
    counts = [answer.by_shape.get(shape.name, 0) for shape in shapes]
    left = {row.pod for row in answer.pods if not row.node}
    still = _still_waiting(case, waiting, shapes, counts, SEEDS[:1])
    if not still <= left:
        proof.failures.append(f"{name}: with {answer.by_shape} wait {sorted(still)}, reported {sorted(left)}")
    hopeless = _still_waiting(case, waiting, shapes, [6, 6], SEEDS)
    if left - hopeless:
        proof.failures.append(f"{name}: {sorted(left - hopeless)} reported as impossible to place, are not")
    best = _cheapest(case, waiting, shapes, answer.price, left)
    proof.counts[
        "addition as cheap as the best" if best >= answer.price else f"addition {answer.price - best:g} dearer"
    ] += 1
    if PACKING:
        packed = nodes_to_add(case.asked(), shapes, packing=True).bound
        proof.counts["addition bound by packing " + ("tight" if packed > best - 1e-6 else "loose")] += 1
        if not answer.bound - 1e-6 <= packed <= best + 1e-6:
            proof.failures.append(f"{name}: {best} is enough, {packed} by packing, {answer.bound}")
    if answer.bound > best + 1e-9:
        proof.failures.append(f"{name}: {best} is enough, less than the bound {answer.bound}")


def _waiting(draw: random.Random, number: int) -> Pod:
    pod = make_pod(f"waits-{number}").label({"app": "waits"})
    pod.req(cpu=draw.choice(("1", "1500m", "3", "5")), memory=draw.choice(("1Gi", "3Gi", "6Gi")))
    if draw.random() < 0.2:
        pod.pod_anti_affinity({"app": "waits"}, "hostname")
    if draw.random() < 0.1:
        pod.node_selector(disk="tape")
    return pod.obj()


def _cheapest(
    case: BusyCluster, waiting: Sequence[Pod], shapes: Sequence[NodeShape], price: float, left: set[str]
) -> float:
    """Return the price of the cheapest set that leaves only pods in `left` pending; `price` if none is cheaper."""
    most = [int(price / shape.price) for shape in shapes]
    sets = product(*(range(count + 1) for count in most))
    priced = sorted((sum(n * shape.price for n, shape in zip(counts, shapes, strict=True)), counts) for counts in sets)
    for cost, counts in priced:
        if cost >= price:
            break
        if _still_waiting(case, waiting, shapes, counts, SEEDS) <= left:
            return cost
    return price


def _still_waiting(
    case: BusyCluster, waiting: Sequence[Pod], shapes: Sequence[NodeShape], counts: Sequence[int], seeds: Sequence[int]
) -> set[str]:
    """Return the pods that stay pending with these numbers of nodes per shape, under the best seed."""
    keys = {pod.key for pod in waiting}
    there: list[KubernetesObject] = [item for item in case.objects if item.key not in keys or not isinstance(item, Pod)]
    nodes = [
        shape.node(f"{shape.name}-{number}")
        for shape, count in zip(shapes, counts, strict=True)
        for number in range(count)
    ]
    daemon = next((item for item in there if isinstance(item, Pod) and item.metadata.name.startswith("agent-")), None)
    agents = [_agent(daemon, node) for node in nodes] if daemon is not None else []
    best: set[str] | None = None
    for seed in seeds:
        cluster = Cluster([*there, *nodes, *agents], configuration=WITHOUT_EVICTIONS, seed=seed)
        ordered = sorted(waiting, key=lambda pod: -cluster.state.footprint(pod).largest)
        for pod in ordered:
            cluster.schedule(pod)
        left = {pod.key for pod in waiting if cluster.node_of(pod.key) is None}
        if best is None or len(left) < len(best):
            best = left
    return best or set()


def _agent(daemon: Pod, node: Node) -> Pod:
    name = node.metadata.name
    metadata = replace(daemon.metadata, name=f"agent-{name}", uid=f"agent-{name}")
    return replace(daemon, metadata=metadata, spec=replace(daemon.spec, node_name=name))
