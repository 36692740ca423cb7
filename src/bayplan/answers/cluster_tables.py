"""The nodes and pods of a cluster as typed rows, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import msgspec

from bayplan.analysis.node_taints import taint_text
from bayplan.analysis.rows import Rows
from bayplan.answers.node_groups import group_of
from bayplan.answers.workloads import WorkloadObjects, workload_of
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import parse_time_ns
from bayplan.objects.pod import Pod
from bayplan.objects.requests import accounted_requests, node_amounts
from bayplan.objects.workloads import Job, ReplicaSet
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node.

    Attributes:
        node, zone, pool: the name, zone and node pool.
        cordoned: whether the node is unschedulable.
        taints: the taints in kubectl's notation.
        pods: the number of pods on the node.
        allowed_pods: the maximum number of pods.
        cpu_milli, memory_bytes: the allocatable amounts.
        cpu_requested_milli, memory_requested_bytes: the amounts that its pods request.
        created_at_ns: the creation time in nanoseconds since 1970; None if unknown.
    """

    node: str
    zone: str
    pool: str
    cordoned: bool
    taints: list[str]
    pods: int
    allowed_pods: int
    cpu_milli: int
    cpu_requested_milli: int
    memory_bytes: int
    memory_requested_bytes: int
    created_at_ns: int | None


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pod.

    Attributes:
        pod: ``namespace/name``.
        workload: ``kind/namespace/name`` of the pod's workload; "" if it has none.
        node: the name of the node; "" if the pod waits.
        phase, priority: the phase and priority of the pod.
        cpu_milli, memory_bytes: the requested amounts.
        created_at_ns: the creation time in nanoseconds since 1970; None if unknown.
        age_ns: the age; None if unknown.
    """

    pod: str
    workload: str
    node: str
    phase: str
    priority: int
    cpu_milli: int
    memory_bytes: int
    created_at_ns: int | None
    age_ns: int | None


def node_rows(state: ClusterState) -> Rows[NodeRow]:
    """Return the nodes of a cluster, in order."""
    names, rows = state.nodes.resources, []
    for row, node in enumerate(state.nodes.nodes):
        if node is None:
            continue
        group, offered = group_of(node.metadata.labels), node_amounts(node.status.allocatable)
        used = {name: state.usage.item(FIRST_RESOURCE + place, row) for place, name in enumerate(names)}
        rows.append(
            NodeRow(
                node=node.metadata.name,
                zone=group.zone,
                pool=group.pool,
                cordoned=node.spec.unschedulable,
                taints=[taint_text(taint) for taint in node.spec.taints],
                pods=state.usage.item(POD_COUNT, row),
                allowed_pods=state.nodes.allowed_pods.item(row),
                cpu_milli=offered.get("cpu", 0),
                cpu_requested_milli=used.get("cpu", 0),
                memory_bytes=offered.get("memory", 0),
                memory_requested_bytes=used.get("memory", 0),
                created_at_ns=_time_ns(node.metadata.creation_timestamp),
            )
        )
    return Rows(rows, NodeRow)


def pod_rows(state: ClusterState, pods: Mapping[str, Pod], now_ns: int = 0) -> Rows[PodRow]:
    """Return the pods of a cluster, in order.

    Args:
        state: the state, with the nodes of the pods.
        pods: the pods by key.
        now_ns: the present time, in nanoseconds since 1970; 0 if unknown.
    """
    owners, rows = WorkloadObjects(chain(state.catalog.all(ReplicaSet), state.catalog.all(Job))), []
    for key, pod in pods.items():
        info = state.pods.get(key)
        kind, name = workload_of(pod, owners)
        requests = accounted_requests(pod, state.request_gates).requests
        created_ns = _time_ns(pod.metadata.creation_timestamp)
        rows.append(
            PodRow(
                pod=key,
                workload="" if kind == "Pod" else f"{kind.lower()}/{pod.metadata.namespace}/{name}",
                node="" if info is None else state.nodes.names[info.row] or "",
                phase=pod.status.phase or "Pending",
                priority=pod.spec.priority or 0,
                cpu_milli=requests.get("cpu", 0),
                memory_bytes=requests.get("memory", 0),
                created_at_ns=created_ns,
                age_ns=max(now_ns - created_ns, 0) if now_ns and created_ns is not None else None,
            )
        )
    return Rows(rows, PodRow)


def _time_ns(text: str | None) -> int | None:
    try:
        return parse_time_ns(text) if text else None
    except InputError:
        return None
