"""Invented answers as structs: unblocking, capacity, what-if, causes of waiting, nodes over time."""

from __future__ import annotations

from typing import cast

from bayplan.analysis.root_cause import RootCause
from bayplan.answers.capacity import GroupCapacity, WorkloadCapacity
from bayplan.answers.pod_differences import PodDifference
from bayplan.answers.trial import Placement
from bayplan.answers.unblock import Suggestion, Unblocking
from bayplan.answers.waiting_reasons import WaitingReason
from bayplan.answers.what_if import Measure
from bayplan.base.plain_data import Plain
from bayplan.http_api.contract.decisions import NodeLane, NodeLanes
from bayplan.http_api.contract.questions import Capacity, WaitingReasons, WhatIfList, WhatIfReport
from tests.ui.fake_cluster import FakeCluster, stamp

ASSUMED = ["kube-scheduler's defaults apply, because this server has no configuration"]
MAX_DIFFERENCES = 2_000


def unblocking(cluster: FakeCluster, target: str) -> Unblocking:
    """Return suggestions that unblock a pod: moving other pods, and a smaller request."""
    key = target.removeprefix("pod/")
    nodes = [node.name for node in cluster.nodes]
    moved = [Placement(f"shop/{cluster.pods[number].name}", nodes[1]) for number in cluster.nodes[0].pods[:2]]
    cause = RootCause(
        plugin="NodeResourcesFit",
        summary="it requests 64 cpu, but the largest node offers 16",
        everywhere=["NodeResourcesFit"],
        sole=[],
        usable=0,
        nodes=len(nodes),
    )
    texts = (
        ("move pods", f"move {len(moved)} pods (off {nodes[0]})", "the moved pods restart"),
        ("shrink request", "request 12 cpu instead of 64", "the pod may run slower"),
    )
    suggestions = [
        Suggestion(
            rank=rank,
            kind=kind,
            text=text,
            risk=risk,
            cost=0.1,
            node=nodes[0],
            placed=1,
            waiting=1,
            moved=moved if kind == "move pods" else [],
            evicted=[],
            commands=[f"kubectl drain {nodes[0]}"] if kind == "move pods" else [],
            objects=[{"kind": "Pod"}],
            deleted=[],
            ended=[],
        )
        for rank, (kind, text, risk) in enumerate(texts, start=1)
    ]
    return Unblocking(
        verdict=f"{key} is pending: {cause.summary}; best: {suggestions[0].text}",
        pods=[key],
        waiting=[key],
        fits=False,
        cause=cause,
        suggestions=suggestions,
        trials=7,
        limits=["single changes were tried"],
        assumptions=ASSUMED,
    )


def capacity(cluster: FakeCluster, target: str) -> Capacity:
    """Return the number of further copies of a target that fit."""
    zones = sorted({node.zone for node in cluster.nodes})
    groups = [
        GroupCapacity(
            zone=zone,
            pool="general",
            nodes=sum(node.zone == zone for node in cluster.nodes),
            nodes_with_room=2,
            nodes_left=0,
            copies=12,
            runs_out={"Insufficient cpu": 2},
        )
        for zone in zones
    ]
    copies = 12 * len(groups)
    return Capacity(
        summary=f"{copies} more copies of {target} fit; cpu runs out first (on 2 nodes).",
        copies=copies,
        mixes=copies,
        reached_limit=False,
        workloads=[WorkloadCapacity(workload=target, copies=copies, share=1)],
        groups=groups,
        victims=[],
        stopped_by=target,
        message=f"0/{len(cluster.nodes)} nodes are available: {len(cluster.nodes)} Insufficient cpu.",
        runs_out={"Insufficient cpu": 2},
        seeds={},
        assumptions=ASSUMED,
    )


def waiting(cluster: FakeCluster) -> WaitingReasons:
    """Return the causes of waiting: one that all waiting pods share."""
    pods = [f"{pod.namespace}/{pod.name}" for pod in cluster.pods if pod.status == "waiting"]
    items = [
        WaitingReason(
            plugin="NodeResourcesFit",
            sole_pods=len(pods),
            pods=len(pods),
            summary="none of the nodes that it may use has room",
            examples=pods,
        )
    ]
    return WaitingReasons(
        items=items if pods else [],
        summary=f"{len(pods):,} of {len(cluster.pods):,} pods wait; all for the same reason: {items[0].summary}"
        if pods
        else "",
        total=len(items),
        total_is_exact=True,
        offset=0,
        limit=1,
        evaluated=len(pods),
        waiting=len(pods),
        assumptions=ASSUMED,
    )


def what_if(cluster: FakeCluster, request: Plain) -> WhatIfReport:
    """Return the differences of a what-if: the pods of the first nodes move, and the last of these pods waits."""
    changes = [str(each) for each in cast("list[object]", request.get("changes") or [])]
    names = [node.name for node in cluster.nodes]
    chosen = [cluster.pods[number] for node in cluster.nodes[:-1] for number in node.pods][:MAX_DIFFERENCES]
    rows = [
        PodDifference(
            pod=f"{pod.namespace}/{pod.name}",
            workload="",
            kind="waits" if at == 0 else "moved",
            before=names[pod.node],
            after="" if at == 0 else names[-1],
            plugin="" if at else "NodeResourcesFit",
            reason=f"{names[pod.node]} is gone" if at else "Insufficient cpu",
        )
        for at, pod in enumerate(chosen)
    ]
    effect = f"of {len(cluster.pods):,} pods, {len(rows) - 1:,} move, 1 becomes pending."
    return WhatIfReport(
        id="",
        fork="",
        name=str(request.get("name") or ""),
        at=stamp(),
        changes=changes,
        configuration=None,
        reschedule=[],
        summary=f"{', '.join(changes)}: {effect}",
        effect=effect,
        pods=len(cluster.pods),
        counts={"moved": len(rows) - 1, "waits": 1, "placed": 0, "gone": 0, "new": 0},
        differences=rows,
        left_out=0,
        measures=[
            Measure(name="nodes", before=len(names), after=len(names) - 1),
            Measure(name="cpu requested", before=0.61, after=0.72),
        ],
        evictions=[],
        warnings=[
            "kubectl drain would not evict default/web-0: the pod has no controller that would recreate it (--force)"
        ],
        assumptions=ASSUMED,
    )


def what_ifs() -> WhatIfList:
    """Return an empty list of what-ifs."""
    return WhatIfList(items=[], total=0, total_is_exact=True, offset=0, limit=0)


def node_lanes(cluster: FakeCluster, bins: int, limit: int) -> NodeLanes:
    """Return lanes of nodes on which pods start one after the other."""
    items = [
        NodeLane(
            node=node.name,
            running=[len(node.pods) * (at + 1) // bins for at in range(bins)],
            placed=[int(at % 9 == 3) for at in range(bins)],
            left=[int(at % 31 == 30) for at in range(bins)],
        )
        for node in cluster.nodes[:limit]
    ]
    return NodeLanes(
        items=items,
        total=len(cluster.nodes),
        total_is_exact=True,
        offset=0,
        limit=limit,
        from_at=stamp(cluster.began),
        to_at=stamp(),
        bins=bins,
    )
