"""Responses about the cluster as a whole: the server, the overview, and the source clusters."""

from __future__ import annotations

from bayplan.http_api.contract.answer import Answer, Instant, ListAnswer
from bayplan.http_api.contract.decisions import ClockStatus, DecisionSummary
from bayplan.http_api.contract.nodes import UsageRow
from bayplan.http_api.contract.pods import PodTotals
from bayplan.http_api.contract.queue import QueueCounts


class Root(Answer, frozen=True, kw_only=True):
    """The server that responds.

    Attributes:
        build: the build ID of the compiled modules.
        instance: an ID that differs after each start.
        links: the paths of the API, by name.
    """

    version: str
    kubernetes_version: str
    build: str
    instance: str
    started_at: Instant
    links: dict[str, str]


class ClusterTotals(PodTotals, frozen=True, kw_only=True):
    """The number of pods and nodes, by status."""

    nodes: int
    nodes_not_ready: int
    nodes_cordoned: int
    nodes_full: int
    nodes_empty: int


class DecisionRate(Answer, frozen=True, kw_only=True):
    """The number of decisions, their recent rate per second, and the 99th percentile of their duration."""

    total: int
    per_second: float
    p99_ms: float


class ReasonRow(Answer, frozen=True, kw_only=True):
    """A reason why pods wait.

    Attributes:
        pods: the number of pods that at least one node rejects for this reason.
        main_pods: the number of these pods for which no other reason rejects more nodes.
    """

    text: str
    pods: int
    main_pods: int


class QueueStatus(QueueCounts, frozen=True, kw_only=True):
    """The number of pods in each tier, and the time when the next backoff ends; null if no pod is in backoff, or if unknown."""

    next_retry_at: Instant | None


class UsagePoint(Answer, frozen=True, kw_only=True):
    """The utilisation of the cluster at one time, as fractions of 1."""

    at: Instant
    cpu: float
    memory: float


class FailedPlugin(Answer, frozen=True, kw_only=True):
    """A failure of a plugin.

    Attributes:
        plugin: the plugin's name.
        point: the extension point, e.g. ``Filter``.
        message: the error.
    """

    plugin: str
    point: str
    message: str


class SchedulerStatus(Answer, frozen=True, kw_only=True):
    """The scheduler names of the profiles, and the failures of plugins."""

    profiles: list[str]
    plugins_failed: list[FailedPlugin]


class SourceFacts(Answer, frozen=True, kw_only=True):
    """A source cluster of this cluster, in short.

    Attributes:
        kind: the command that reads the source: import, sync or replay.
        state: listing, following, done or stopped.
        summary: the state in words.
    """

    name: str
    kind: str
    state: str
    lag_seconds: float
    summary: str


class SourceCounts(Answer, frozen=True, kw_only=True):
    """The number of objects written to this cluster, and of those that wait to be written."""

    created: int
    updated: int
    deleted: int
    waiting: int


class SourceRow(SourceFacts, frozen=True, kw_only=True):
    """A source cluster of this cluster.

    Attributes:
        position: how far a recording has been replayed; null if unknown.
        message: the problems, one per line.
        left_out: the kinds that are not read.
    """

    address: str
    position: str | None
    policies: dict[str, str]
    counts: SourceCounts
    message: str
    left_out: list[str]


class SourceList(ListAnswer, frozen=True, kw_only=True):
    """The source clusters of this cluster; at most one."""

    items: list[SourceRow]


class Overview(Answer, frozen=True, kw_only=True):
    """A summary of the cluster and its problems.

    Attributes:
        version: changes with pods, nodes and decisions.
        summary: the summary in one sentence.
        utilisation: the utilisation by resource and zone.
        utilisation_history: the utilisation in the last five minutes, the oldest first.
        latest: the newest decisions, the newest first.
        source: the source cluster; null if there is none.
    """

    version: str
    summary: str
    counts: ClusterTotals
    decisions: DecisionRate
    reasons: list[ReasonRow]
    queue: QueueStatus
    utilisation: list[UsageRow]
    utilisation_history: list[UsagePoint]
    preemptions: int
    binding_failures: int
    latest: list[DecisionSummary]
    clock: ClockStatus
    scheduler: SchedulerStatus
    source: SourceFacts | None
