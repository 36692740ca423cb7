"""Capacity compared with brute force: copies scheduled one by one in a new cluster, with the same ten seeds."""

from __future__ import annotations

import random
from itertools import islice

from msgspec.structs import replace

from bayplan.answers.capacity import Share, capacity
from bayplan.objects.pod import Pod, PodStatus
from proofs.busy_clusters import BusyCluster, busy_clusters
from proofs.proof import Proof

SEEDS = range(10)
LIMIT = 80


def prove(cases: int, seed: int) -> Proof:
    """Check `cases` clusters and return the results."""
    proof, draw = Proof(), random.Random(f"capacity {seed}")
    for case in islice((each for each in busy_clusters(seed) if each.workloads), cases):
        proof.cases += 1
        check(case, _mix(draw, case), proof)
    return proof


def _mix(draw: random.Random, case: BusyCluster) -> list[Share]:
    names = draw.sample(case.workloads, min(len(case.workloads), draw.choice((1, 1, 2))))
    counts = [draw.choice((1, 2, 3)) if len(names) > 1 else 1 for _ in names]
    # Pods without a controller are named by their own name.
    models = [_model(case, name).metadata for name in names]
    asked = [name if model.controller() else model.name for name, model in zip(names, models, strict=True)]
    return [Share(name, count) for name, count in zip(asked, counts, strict=True)]


def check(case: BusyCluster, mix: list[Share], proof: Proof) -> None:
    """Compare the answer for one cluster and mix with brute force, under all seeds."""
    answer = capacity(case.asked(), mix, limit=LIMIT, seeds=SEEDS)
    want = {seed: brute_force(case, mix, seed) for seed in SEEDS}
    proof.counts["with a range" if len({len(found) for found in want.values()}) > 1 else "same for all seeds"] += 1
    proof.counts[
        "nothing fits" if not want[0] else "up to the limit" if len(want[0]) >= LIMIT else "something runs out"
    ] += 1
    counts = {seed: len(found) for seed, found in want.items()}
    if answer.by_seed != counts:
        proof.failures.append(f"{case.name} {mix}: {answer.by_seed}, want {counts}")
    nodes = [row.node for row in answer.placements]
    if nodes != want[0]:
        proof.failures.append(f"{case.name} {mix}: nodes {nodes}, want {want[0]}")


def brute_force(case: BusyCluster, mix: list[Share], seed: int) -> list[str]:
    """Return the nodes of the copies, in order, until one copy finds no node."""
    cluster = case.fresh(seed)
    models = [_model(case, share.workload) for share in mix]
    nodes: list[str] = []
    while True:
        for place in range(max(share.count for share in mix)):
            for share, model in zip(mix, models, strict=True):
                if place >= share.count:
                    continue
                if len(nodes) >= LIMIT:
                    return nodes
                name = f"{share.workload}-more-{len(nodes)}"
                metadata = replace(model.metadata, name=name, uid=name)
                pod = replace(model, metadata=metadata, spec=replace(model.spec, node_name=""), status=PodStatus())
                node = cluster.schedule(pod)[-1].record.node
                if not node:
                    return nodes
                nodes.append(node)


def _model(case: BusyCluster, workload: str) -> Pod:
    pods = [item for item in case.objects if isinstance(item, Pod)]
    return next(pod for pod in pods if pod.metadata.name.partition("-")[0] == workload.partition("-")[0])
