"""The larger answers of the fake service as structs: overview, node, pod, queue, timeline, configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from bayplan.analysis.explanation import CandidateReport, PreemptionRefusal, PreemptionReport, Victim
from bayplan.http_api.contract.answer import Facet, whole
from bayplan.http_api.contract.cluster import (
    DecisionRate,
    Overview,
    QueueStatus,
    ReasonRow,
    Root,
    SchedulerStatus,
    UsagePoint,
)
from bayplan.http_api.contract.configuration import Configuration, PluginList, PluginRow, PointPlugin
from bayplan.http_api.contract.decisions import AttemptSummary, ClockStatus, DecisionSummary, Density, DensityLanes
from bayplan.http_api.contract.nodes import CellGroup, Cells, NodeCondition, NodePage, PodsRejected, UsageRow
from bayplan.http_api.contract.pods import EventRow, NodesRejected, PodFacets, PodFacts, PodList, PodPage, PodRow
from bayplan.http_api.contract.queue import QueueCounts, QueueList, QueueRow, WaitHistogram
from tests.ui.fake_cluster import REASONS, FakeCluster, FakeNode, FakePod, stamp, to_fields
from tests.ui.fake_matrix import FILTERS, SCORERS

STATUSES = ("waiting", "gated", "placed")
TEXT = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: LeastAllocated
"""


def overview(cluster: FakeCluster) -> Overview:
    """Return the overview."""
    waiting = [pod for pod in cluster.pods if pod.status == "waiting"]
    reasons = Counter(REASONS[pod.reason][1] for pod in waiting).most_common()
    usage = [
        _usage(zone, name, [node for node in cluster.nodes if zone in ("", node.zone)])
        for zone in ["", *sorted({node.zone for node in cluster.nodes})]
        for name in ("cpu", "memory")
    ]
    cpu, memory = usage[0].share, usage[1].share
    newest = len(cluster.decisions)
    return Overview(
        version=str(cluster.version),
        summary=f"{len(waiting):,} of {len(cluster.pods):,} pods wait; {reasons[0][1]:,} for CPU: no node has 4 free CPUs"
        if waiting
        else f"All {len(cluster.pods):,} pods are placed",
        counts=cluster.counts(),
        decisions=DecisionRate(total=newest, per_second=512.0, p99_ms=3.1),
        reasons=[ReasonRow(text=text, pods=pods, main_pods=pods) for text, pods in reasons],
        queue=QueueStatus(**to_fields(queue_counts(cluster)), next_retry_at=stamp()),
        utilisation=usage,
        utilisation_history=[
            UsagePoint(
                at=stamp(cluster.began + 5 * at), cpu=cpu * (0.7 + at / 200), memory=memory * (0.9 + at % 7 / 70)
            )
            for at in range(60)
        ],
        preemptions=14,
        binding_failures=0,
        latest=[cluster.decision(number) for number in range(newest - 1, max(-1, newest - 10), -1)],
        clock=ClockStatus(now=stamp(), paused=False, speed=1, mode="virtual"),
        source=None,
        scheduler=SchedulerStatus(profiles=["default-scheduler"], plugins_failed=[]),
    )


def _usage(zone: str, name: str, nodes: list[FakeNode]) -> UsageRow:
    whole = sum(getattr(node, name) for node in nodes)
    used = sum(getattr(node, f"used_{name}") for node in nodes)
    gap = max((getattr(node, name) - getattr(node, f"used_{name}") for node in nodes if node.ready), default=0)
    return UsageRow(
        resource=name,
        zone=zone,
        nodes=len(nodes),
        free=whole - used,
        allocatable=whole,
        requested=used,
        share=used / max(1, whole),
        largest_gap=gap,
    )


def queue_counts(cluster: FakeCluster) -> QueueCounts:
    """Return the number of waiting pods in each part of the queue."""
    waiting = sum(pod.status == "waiting" for pod in cluster.pods)
    return QueueCounts(
        active=min(12, waiting // 9),
        backoff=waiting // 6,
        unschedulable=waiting - waiting // 6 - min(12, waiting // 9),
        gated=sum(pod.gated for pod in cluster.pods),
    )


def cells(cluster: FakeCluster, by: str) -> Cells:
    """Return the heat map of the nodes, grouped by pool or zone."""
    groups: dict[str, list[FakeNode]] = {}
    for node in cluster.nodes:
        groups.setdefault(node.pool if by == "pool" else node.zone, []).append(node)
    return Cells(
        version=cluster.version,
        layout=cluster.layout,
        metric="cpu",
        by=by,
        metrics=["cpu", "memory", "pods", "nvidia.com/gpu"],
        groups=[
            CellGroup(
                name=name,
                nodes=[node.name for node in nodes],
                cells=[node.cell for node in nodes],
                flags=[node.flags for node in nodes],
            )
            for name, nodes in sorted(groups.items())
        ],
    )


def node_page(cluster: FakeCluster, name: str) -> NodePage | None:
    """Return the page of a node, or None."""
    node = cluster.by_name.get(name)
    if node is None:
        return None
    free = (node.cpu - node.used_cpu) / 1000
    pods = [cluster.pod_row(cluster.pods[number]) for number in node.pods]
    return NodePage(
        **to_fields(cluster.node_facts(node)),
        version=cluster.version,
        conditions=[NodeCondition(type="Ready", status="True", reason="KubeletReady", message="")],
        summary=f"{name} has {free:g} of {node.cpu // 1000} CPUs free; {len(node.pods)} pods run there",
        labels={"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": node.zone, "pool": node.pool},
        pods=pods,
        pods_total=len(pods),
        events=[_event("Normal", "Starting", "kubelet started", 1)],
        rejected=[PodsRejected(text="Insufficient cpu", pods=14, example="shop/web-0")],
        rejected_is_exact=True,
        rejected_missing="",
    )


def _event(kind: str, reason: str, note: str, count: int) -> EventRow:
    return EventRow(type=kind, reason=reason, note=note, first_at=stamp(), last_at=stamp(), count=count)


def pod_list(cluster: FakeCluster, query: Mapping[str, str]) -> PodList:
    """Return the pods for the table's query, filtered and sorted."""
    offset, limit = int(query.get("offset", 0)), int(query.get("limit", 50))
    text, status, reason = query.get("q", "").lower(), query.get("status", ""), query.get("reason", "")
    found = [
        pod
        for pod in cluster.pods
        if text in pod.name.lower()
        and status in ("", pod.status)
        and (not reason or (pod.status == "waiting" and REASONS[pod.reason][1] == reason))
        and query.get("namespace", "") in ("", pod.namespace)
        and (not query.get("node") or (pod.node >= 0 and cluster.nodes[pod.node].name == query["node"]))
    ]
    sort = query.get("sort", "")
    if sort.lstrip("-") == "status":
        found.sort(key=lambda pod: STATUSES.index(pod.status), reverse=sort.startswith("-"))
    elif sort.lstrip("-") in ("attempts", "cpu", "memory", "priority", "name"):
        found.sort(key=lambda pod: getattr(pod, sort.lstrip("-")), reverse=sort.startswith("-"))
    return PodList(
        version=cluster.version,
        items=[cluster.pod_row(pod) for pod in found[offset : offset + limit]],
        total=len(found),
        total_is_exact=True,
        offset=offset,
        limit=limit,
        facets=_pod_facets(cluster, found) if query.get("facets") else msgspec.UNSET,
    )


def _pod_facets(cluster: FakeCluster, pods: list[FakePod]) -> PodFacets:
    return PodFacets(
        status=facets(pod.status for pod in pods),
        namespace=facets(pod.namespace for pod in pods),
        reason=facets(REASONS[pod.reason][1] for pod in pods if pod.status == "waiting"),
        node=facets(cluster.nodes[pod.node].name for pod in pods[:50] if pod.node >= 0),
        priority=facets(str(pod.priority) for pod in pods),
    )


def facets(values: Iterable[str]) -> list[Facet]:
    """Return the values with their counts, the most frequent value first."""
    return [Facet(value=value, count=count) for value, count in Counter(values).most_common()]


def pod_page(cluster: FakeCluster, namespace: str, name: str) -> PodPage | None:
    """Return the page of a pod, or None."""
    number = cluster.by_key.get(f"{namespace}/{name}")
    if number is None:
        return None
    pod = cluster.pods[number]
    row = cluster.pod_row(pod)
    total = len(cluster.nodes)
    waits = pod.node < 0
    sentence = (
        f"{name} is pending: none of {total:,} nodes fits; {cluster.nodes[0].name} is nearest: it lacks 0.8 CPU"
        if waits
        else f"{name} runs on {row.node}: best of {total - total // 3:,} nodes that fit, {row.why}"
    )
    newest = cluster.decision(cluster.decisions.index(number)) if number in cluster.decisions else None
    message = newest.message if newest is not None else ""
    note = message or f"Successfully assigned to {row.node}"
    return PodPage(
        summary=sentence,
        short=sentence.removeprefix(f"{name} "),
        message=message if waits else "",
        status=pod.status,
        pod=_pod_facts(row),
        attempts=[] if newest is None else [_attempt(pod, newest, at) for at in range(1, pod.attempts + 1)],
        rejections=[
            NodesRejected(text=text, plugin=plugin, nodes=max(1, total * part // 10))
            for (plugin, text), part in zip(REASONS, (6, 2, 1, 1), strict=True)
        ],
        events=[
            _event("Warning", "FailedScheduling", note, pod.attempts)
            if waits
            else _event("Normal", "Scheduled", note, pod.attempts)
        ],
        queue=_queue_row(pod, "unschedulable", 0, stamp(), None, ["NodeResourcesFit"]) if waits else None,
        deleted=False,
        manifest={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}},
        manifest_text=f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: {namespace}\n",
    )


def _attempt(pod: FakePod, newest: DecisionSummary, at: int) -> AttemptSummary:
    failed = pod.node < 0 or at < pod.attempts
    told = replace(
        newest,
        attempt=at,
        outcome="unschedulable" if failed else "scheduled",
        tier="backoff" if at > 1 else "active",
        woken_by="Node/Add" if at > 1 else "",
    )
    return AttemptSummary(**to_fields(told), difference="12 nodes fewer fit" if at > 1 else "")


def _queue_row(
    pod: FakePod, tier: str, position: int, since: str, retry_at: str | None, rejected_by: list[str]
) -> QueueRow:
    return QueueRow(
        namespace=pod.namespace,
        name=pod.name,
        position=position,
        priority=pod.priority,
        attempts=pod.attempts,
        message="",
        tier=tier,
        since=since,
        retry_at=retry_at,
        rejected_by=rejected_by,
        wakes_on=["Node/Add", "Pod/Delete"],
    )


def _pod_facts(row: PodRow) -> PodFacts:
    return PodFacts(
        namespace=row.namespace,
        name=row.name,
        uid=f"uid-{row.name}",
        workload=row.workload,
        priority=row.priority,
        priority_class="",
        scheduler_name=row.scheduler_name,
        qos="Burstable",
        phase="Running" if row.node else "Pending",
        cpu=row.cpu,
        memory=row.memory,
        requests={"cpu": row.cpu, "memory": row.memory},
        node=row.node,
        nominated_node="",
        imported=False,
        created_at=row.created_at,
        bound_at=None,
        ended_at=None,
        labels={"app": row.name.partition("-")[0]},
    )


def report(cluster: FakeCluster) -> PreemptionReport:
    """Return the report of a preemption."""
    victims = [
        Victim(pod=f"{pod.namespace}/{pod.name}", priority=pod.priority, started_ns=0) for pod in cluster.pods[:3]
    ]
    candidates = [
        CandidateReport(
            node=node.name,
            chosen=at == 0,
            victims=victims[: at + 1],
            pdb_violations=at,
            priority_sum=1000 * at,
            lost_by="" if at == 0 else "more violated budgets",
        )
        for at, node in enumerate(cluster.nodes[:3])
    ]
    refusal = PreemptionRefusal(
        plugin="TaintToleration", code="UnschedulableAndUnresolvable", reasons=[REASONS[1][1]], nodes=[], count=4
    )
    return PreemptionReport(
        attempt=1,
        chosen=cluster.nodes[0].name,
        candidates=candidates,
        candidate_count=3,
        refusals=[refusal],
        struck_out=[],
        untried=0,
        not_helpful=4,
    )


def queue(cluster: FakeCluster, query: Mapping[str, str]) -> QueueList:
    """Return the pods of one part of the queue."""
    tier = query.get("tier") or "active"
    counts = queue_counts(cluster)
    waiting = [pod for pod in cluster.pods if pod.status == "waiting"]
    first = {"active": 0, "backoff": counts.active, "unschedulable": counts.active + counts.backoff}
    chosen = (
        [pod for pod in cluster.pods if pod.gated]
        if tier == "gated"
        else waiting[first[tier] : first[tier] + int(getattr(counts, tier))]
    )
    offset, limit = int(query.get("offset", 0)), int(query.get("limit", 50))
    items = [
        _queue_row(
            pod,
            tier,
            offset + at,
            stamp(cluster.began + 90),
            stamp(cluster.began + 425 + at) if tier == "backoff" else None,
            ["SchedulingGates"] if pod.gated else [REASONS[pod.reason][0]],
        )
        for at, pod in enumerate(chosen[offset : offset + limit])
    ]
    return QueueList(
        version=cluster.version,
        counts=counts,
        summary=f"{counts.backoff} in backoff; {counts.unschedulable} unschedulable; {counts.gated} gated",
        next_retry_at=stamp(),
        items=items,
        total=len(chosen),
        total_is_exact=True,
        offset=offset,
        limit=limit,
        histogram=WaitHistogram(seconds=[1, 10, 60, 300], pods=[2, 5, 11, len(waiting) // 3, len(waiting) // 2]),
    )


def density(cluster: FakeCluster, query: Mapping[str, str]) -> Density:
    """Return the numbers of decisions by kind in equal parts of a range."""
    newest = len(cluster.decisions) - 1
    low, high = int(query.get("from") or 0), min(newest, int(query.get("to") or newest))
    bins = int(query.get("bins") or 200)
    lanes = DensityLanes(
        scheduled=[0] * bins, waits=[0] * bins, error=[0] * bins, preemptions=[0] * bins, nodes=[0] * bins
    )
    for number in range(low, high + 1):
        pod = cluster.pods[cluster.decisions[number]]
        at = (number - low) * bins // max(1, high - low + 1)
        (lanes.scheduled if pod.node >= 0 else lanes.waits)[at] += 1
        lanes.preemptions[at] += number % 997 == 99
        lanes.nodes[at] += number % 611 == 40
    return Density(
        first=low,
        last=high,
        oldest=0,
        newest=newest,
        from_at=stamp(cluster.began),
        to_at=stamp(),
        bins=bins,
        lanes=lanes,
        numbers=[low + at * (high - low + 1) // bins for at in range(bins)],
    )


def config() -> Configuration:
    """Return the configuration."""
    filters = [PointPlugin(plugin=name, weight=0, source="default") for name in FILTERS]
    scores = [PointPlugin(plugin=name, weight=weight, source="default") for name, weight in SCORERS]
    points = {"pre_filter": filters[:6], "filter": filters, "score": scores}
    return Configuration(text=TEXT, effective={}, extension_points={"default-scheduler": points})


def plugins() -> PluginList:
    """Return a list with one plugin."""
    plugin = PluginRow(
        name="NodeResourcesFit",
        points=["filter", "score"],
        enabled=["filter", "score"],
        file=None,
        built_in=True,
        failures=[],
        documentation=None,
    )
    return PluginList(items=[plugin], **whole([plugin]))


def root(instance: str) -> Root:
    """Return the answer of the API's root, with the instance's id."""
    return Root(
        version="0.1",
        kubernetes_version="v1.36.3",
        build="uncompiled",
        links={},
        instance=instance,
        started_at=stamp(),
    )
