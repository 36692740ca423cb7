"""Responses about pods: the table, and the details of one pod."""

from __future__ import annotations

import msgspec

from bayplan.http_api.contract.answer import Answer, Facet, Instant, KubernetesDocument, ListAnswer
from bayplan.http_api.contract.decisions import AttemptSummary
from bayplan.http_api.contract.queue import QueueCounts, QueueRow


class PodRow(Answer, frozen=True, kw_only=True):
    """A pod in a table.

    Attributes:
        status: waiting, gated, placed, terminating or finished.
        node: the name of its node, or "".
        why: why the pod waits, or how its node compared with the others.
        runner_up: the node with the next best score, with which `why` ends; "" if it names none.
        cpu, memory: the requests in milli-CPU and bytes.
        workload: kind, namespace and name of its workload, or "".
    """

    namespace: str
    name: str
    status: str
    node: str
    why: str
    runner_up: str
    cpu: int
    memory: int
    priority: int
    attempts: int
    created_at: Instant
    workload: str
    scheduler_name: str


class PodFacets(Answer, frozen=True, kw_only=True):
    """The values of each field among the matching pods, the most frequent first."""

    status: list[Facet]
    reason: list[Facet]
    namespace: list[Facet]
    node: list[Facet]
    priority: list[Facet]


class PodList(ListAnswer, frozen=True, kw_only=True):
    """A page of the table of pods.

    Attributes:
        version: changes with the pods.
        facets: the facets of all matching pods, if requested.
    """

    version: int
    items: list[PodRow]
    facets: PodFacets | msgspec.UnsetType = msgspec.UNSET


class PodFacts(Answer, frozen=True, kw_only=True):
    """A pod's properties and requests.

    Attributes:
        cpu, memory: the requests in milli-CPU and bytes.
        requests: the requests by resource.
        imported: whether the pod was created with its node set.
        created_at: the creation time in its metadata; null if it has none.
        bound_at, ended_at: when it was bound and when it ended; null if it has not been bound, or has not ended.
    """

    namespace: str
    name: str
    uid: str
    workload: str
    priority: int
    priority_class: str
    scheduler_name: str
    qos: str
    phase: str
    cpu: int
    memory: int
    requests: dict[str, int]
    node: str
    nominated_node: str
    imported: bool
    created_at: str | None
    bound_at: Instant | None
    ended_at: Instant | None
    labels: dict[str, str]


class NodesRejected(Answer, frozen=True, kw_only=True):
    """Nodes that the same plugin rejected with the same message. `nodes` is their number."""

    text: str
    plugin: str
    nodes: int


class EventRow(Answer, frozen=True, kw_only=True):
    """A Kubernetes event."""

    type: str
    reason: str
    note: str
    first_at: Instant
    last_at: Instant
    count: int


class PodPage(Answer, frozen=True, kw_only=True):
    """The details of one pod.

    Attributes:
        summary: its node, or why it waits.
        short: the same sentence without the pod's name.
        message: the scheduler's message about a waiting pod, in upstream's words.
        status: as in `PodRow`, or ``deleted``.
        deleted: whether the pod has been deleted.
        pod: the properties of the pod.
        attempts: all attempts in memory, the newest last.
        rejections: the rejections in the newest attempt.
        events: the Kubernetes events about the pod.
        queue: the pod's entry in the scheduling queue; null if it is not queued.
        manifest: the object; null if the pod has been deleted.
        manifest_text: the object as YAML.
    """

    summary: str
    short: str
    message: str
    status: str
    deleted: bool
    pod: PodFacts
    attempts: list[AttemptSummary]
    rejections: list[NodesRejected]
    events: list[EventRow]
    queue: QueueRow | None
    manifest: KubernetesDocument | None
    manifest_text: str


class PodTotals(Answer, frozen=True, kw_only=True):
    """The number of unfinished pods, and the number of pods by status."""

    pods: int
    placed: int
    waiting: int
    gated: int
    terminating: int
    finished: int


class PodsChanged(Answer, frozen=True, kw_only=True):
    """A frame of the stream: the pods changed."""

    version: int
    counts: PodTotals


class PodChanged(Answer, frozen=True, kw_only=True):
    """A frame of the stream about one pod: what to show until its details have been fetched.

    Attributes:
        version: changes with the pod.
        exists: whether the pod is known.
        deleted: whether the pod has been deleted.
        summary, short, status, node: as in `PodPage`.
        attempts: the number of attempts. Present only if the pod exists, like `summary`, `short`, `status` and `node`.
    """

    version: str
    exists: bool
    deleted: bool
    summary: str | msgspec.UnsetType = msgspec.UNSET
    short: str | msgspec.UnsetType = msgspec.UNSET
    status: str | msgspec.UnsetType = msgspec.UNSET
    node: str | msgspec.UnsetType = msgspec.UNSET
    attempts: int | msgspec.UnsetType = msgspec.UNSET


class QueueChanged(Answer, frozen=True, kw_only=True):
    """A frame of the stream about the queue.

    Attributes:
        version: the version of the queue; 0 if the engine was too busy to answer.
        busy: whether the engine was too busy to answer; `summary` and `next_retry_at` are then absent.
    """

    version: int
    busy: bool
    counts: QueueCounts
    summary: str | msgspec.UnsetType = msgspec.UNSET
    next_retry_at: Instant | msgspec.UnsetType | None = msgspec.UNSET
