"""The overview: the problems of the cluster, counts, reasons, queue, utilisation and the newest decisions in one response."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from msgspec.structs import asdict

from bayplan.analysis.cluster_sentences import CommonCause, cluster_sentence
from bayplan.analysis.reasons import ReasonCount
from bayplan.base.clock import Clock
from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_instant
from bayplan.http_api.contract.cluster import (
    ClusterTotals,
    DecisionRate,
    FailedPlugin,
    Overview,
    QueueStatus,
    ReasonRow,
    SchedulerStatus,
    SourceRow,
    UsagePoint,
)
from bayplan.http_api.contract.decisions import ClockStatus
from bayplan.http_api.contract.pods import PodTotals
from bayplan.http_api.decision_summaries import DecisionSummaries
from bayplan.http_api.node_query import utilisation
from bayplan.http_api.node_table import CORDONED, NOT_READY, NodeColumns
from bayplan.http_api.pod_query import waiting_reasons
from bayplan.http_api.pod_table import PodColumns, PodStatus
from bayplan.http_api.query import Deadline
from bayplan.http_api.queue_view import TIERS, QueueCopy, next_retry_at
from bayplan.http_api.server_context import ServerContext
from bayplan.http_api.sources import source_facts
from bayplan.state.resource_table import PODS

MAX_REASONS = 12
LATEST = 12
HISTORY_SECONDS = 300
HISTORY_STEP_NS = 2 * SECOND_NS
MAX_HISTORY = HISTORY_SECONDS * SECOND_NS // HISTORY_STEP_NS


class UtilisationHistory:
    """The utilisation of the cluster in the last minutes, with one point every two seconds of the clock."""

    def __init__(self) -> None:
        self._points: deque[tuple[int, float, float]] = deque(maxlen=MAX_HISTORY)

    def note(self, nodes: NodeColumns, now_ns: int) -> None:
        """Add a point, unless the last one is too recent."""
        if self._points and now_ns - self._points[-1][0] < HISTORY_STEP_NS:
            return
        shares = []
        for resource in ("cpu", "memory"):
            offered, asked = nodes.amounts(resource)
            total = int(offered[nodes.used].sum())
            shares.append(round(int(asked[nodes.used].sum()) / total, 6) if total else 0.0)
        self._points.append((now_ns, shares[0], shares[1]))

    def document(self) -> list[UsagePoint]:
        """Return the points, the oldest first."""
        return [UsagePoint(at=format_instant(at_ns), cpu=cpu, memory=memory) for at_ns, cpu, memory in [*self._points]]


def overview_document(
    server: ServerContext,
    pods: PodColumns,
    nodes: NodeColumns,
    queue: QueueCopy | None,
    history: UtilisationHistory,
    summaries: DecisionSummaries,
    sources: Sequence[SourceRow] = (),
    cause: CommonCause | None = None,
) -> Overview:
    """Return the overview. Call on a worker thread.

    Args:
        server: the server.
        pods, nodes: frozen copies.
        queue: a copy of the queue; None if the engine does not respond.
        history: the history of utilisation.
        summaries: the summaries of decisions.
        sources: the source clusters of this cluster.
        cause: the root cause of most waiting pods, as on their pages; None if unknown.
    """
    status = server.engine.status()
    reasons = waiting_reasons(pods, pods.used)
    # The sentence counts gated pods separately, so their reasons are left out.
    ungated = waiting_reasons(pods, pods.used & (pods.status == PodStatus.WAITING))
    usage = utilisation(nodes)
    counts = ClusterTotals(**asdict(pod_counts(pods)), **_node_counts(nodes))
    tiers = {tier: int(status.queue.get(tier, 0)) for tier in TIERS} if queue is None else asdict(queue.counts)
    failures = [
        FailedPlugin(plugin=each.plugin, point=each.point, message=each.exception) for each in status.plugin_failures
    ]
    return Overview(
        version=f"{pods.version}.{nodes.version}.{len(server.decisions)}",
        summary=_sentence(counts, ungated, cause),
        counts=counts,
        decisions=DecisionRate(
            total=status.decisions, per_second=round(status.decisions_per_second, 1), p99_ms=round(status.p99_ms, 3)
        ),
        reasons=[ReasonRow(text=each.text, pods=each.pods, main_pods=each.main_pods) for each in reasons[:MAX_REASONS]],
        queue=QueueStatus(**tiers, next_retry_at=None if queue is None else next_retry_at(queue)),
        utilisation=usage,
        utilisation_history=history.document(),
        preemptions=status.preemptions,
        binding_failures=status.binding_failures,
        latest=summaries.newest(LATEST, Deadline(0.05)),
        clock=clock_document(server.clock),
        scheduler=SchedulerStatus(
            profiles=[profile.scheduler_name for profile in server.setup.configuration.profiles],
            plugins_failed=failures,
        ),
        source=source_facts(sources[0]) if sources else None,
    )


def clock_document(clock: Clock) -> ClockStatus:
    """Return the time, its speed, and whether it is ``real`` or ``virtual``."""
    return ClockStatus(now=format_instant(clock.now_ns()), paused=clock.paused, speed=clock.speed, mode=clock.mode)


def pod_counts(pods: PodColumns) -> PodTotals:
    """Return the number of unfinished pods, and the number of pods by status."""
    statuses = pods.counts()
    return PodTotals(
        pods=int(pods.used.sum()) - statuses[PodStatus.FINISHED.text],
        placed=statuses[PodStatus.PLACED.text],
        waiting=statuses[PodStatus.WAITING.text],
        gated=statuses[PodStatus.GATED.text],
        terminating=statuses[PodStatus.TERMINATING.text],
        finished=statuses[PodStatus.FINISHED.text],
    )


def _node_counts(nodes: NodeColumns) -> dict[str, int]:
    flags, used = nodes.flags, nodes.used
    _, on_nodes = nodes.amounts(PODS)
    return {
        "nodes": int(used.sum()),
        "nodes_not_ready": int((used & ((flags & NOT_READY) > 0)).sum()),
        "nodes_cordoned": int((used & ((flags & CORDONED) > 0)).sum()),
        "nodes_full": int(nodes.full().sum()),
        "nodes_empty": int((used & (np.asarray(on_nodes) == 0)).sum()),
    }


def _sentence(counts: ClusterTotals, reasons: Sequence[ReasonCount], cause: CommonCause | None) -> str:
    return cluster_sentence(
        pods=counts.pods,
        waiting=counts.waiting,
        gated=counts.gated,
        nodes=counts.nodes,
        reasons=reasons,
        cause=cause,
    )
