"""Responses about nodes: the table, the heat map, and the details of one node."""

from __future__ import annotations

import msgspec

from bayplan.http_api.contract.answer import Answer, Facet, Instant, ListAnswer
from bayplan.http_api.contract.pods import EventRow, PodRow


class NodeBlock(Answer, frozen=True, kw_only=True):
    """A pod on a node with its requests, in milli-CPU and bytes."""

    namespace: str
    name: str
    cpu: int
    memory: int
    priority: int


class NodeFacts(Answer, frozen=True, kw_only=True):
    """A node's properties and capacity.

    Attributes:
        allocatable, requested, free: the amounts by resource.
        shares: requested divided by allocatable, by resource.
        most_pods: the maximum number of pods.
        taints: the taints in kubectl's notation.
    """

    name: str
    zone: str
    pool: str
    ready: bool
    cordoned: bool
    allocatable: dict[str, int]
    requested: dict[str, int]
    free: dict[str, int]
    shares: dict[str, float]
    most_pods: int
    taints: list[str]
    created_at: Instant


class NodeRow(NodeFacts, frozen=True, kw_only=True):
    """A node in a table.

    Attributes:
        pods: the number of pods on the node.
        blocks: the largest pods on the node, if requested.
    """

    pods: int
    blocks: list[NodeBlock] | msgspec.UnsetType = msgspec.UNSET


class NodeFacets(Answer, frozen=True, kw_only=True):
    """The zones and pools of the matching nodes, those with the most nodes first."""

    zone: list[Facet]
    pool: list[Facet]


class NodeList(ListAnswer, frozen=True, kw_only=True):
    """A page of the table of nodes.

    Attributes:
        version: changes with the nodes.
        facets: the zones and pools of all matching nodes, if requested.
    """

    version: int
    items: list[NodeRow]
    facets: NodeFacets | msgspec.UnsetType = msgspec.UNSET


class NodeCondition(Answer, frozen=True, kw_only=True):
    """A condition of a node."""

    type: str
    status: str
    reason: str
    message: str


class PodsRejected(Answer, frozen=True, kw_only=True):
    """Waiting pods that a node rejected with the same message in their last attempts.

    Attributes:
        text: the message.
        pods: the number of pods.
        example: one of the pods, ``namespace/name``.
    """

    text: str
    pods: int
    example: str


class NodePage(NodeFacts, frozen=True, kw_only=True):
    """The details of one node.

    Attributes:
        version: changes with the nodes.
        summary: a summary of the node, with its free capacity.
        pods: a page of the pods on the node.
        pods_total: the number of pods on the node.
        rejected: why the node rejected waiting pods.
        rejected_is_exact: False if not all waiting pods were examined.
        rejected_missing: the failure of a plugin that could not give its reason, or "".
    """

    version: int
    summary: str
    labels: dict[str, str]
    conditions: list[NodeCondition]
    pods: list[PodRow]
    pods_total: int
    events: list[EventRow]
    rejected: list[PodsRejected]
    rejected_is_exact: bool
    rejected_missing: str


class CellGroup(Answer, frozen=True, kw_only=True):
    """A group of nodes in the heat map.

    Attributes:
        name: the name of the zone or other group.
        nodes: the names of the nodes.
        cells: for each node, the requested percentage; 101 if it is full, 255 if it has nothing of the resource.
        flags: for each node, bit 0 for cordoned and bit 1 for not ready.
    """

    name: str
    nodes: list[str]
    cells: list[int]
    flags: list[int]


class Cells(Answer, frozen=True, kw_only=True):
    """The heat map.

    Attributes:
        version: changes with the nodes.
        layout: changes with the names of the nodes.
        metric: the resource shown.
        by: what the nodes are grouped by.
        metrics: the resources that some node offers.
    """

    version: int
    layout: int
    metric: str
    by: str
    metrics: list[str]
    groups: list[CellGroup]


class CellsChanged(Answer, frozen=True, kw_only=True):
    """Changes of the heat map, in a frame of the stream.

    Attributes:
        version, layout, metric: as in `Cells`.
        known: whether some node offers the resource.
        complete: whether the frame contains all nodes or only the changed ones.
        names, cells, flags: the names, cells and flags of these nodes, as in `CellGroup`.
    """

    version: int
    layout: int
    metric: str
    known: bool
    complete: bool
    names: list[str]
    cells: list[int]
    flags: list[int]


class UsageRow(Answer, frozen=True, kw_only=True):
    """The utilisation of one resource, in the whole cluster (zone "") or in a zone.

    Attributes:
        nodes: the number of nodes.
        allocatable, requested, free: the sums over all nodes.
        share: requested divided by allocatable.
        largest_gap: the largest free amount on a single schedulable node.
    """

    resource: str
    zone: str
    nodes: int
    allocatable: int
    requested: int
    share: float
    free: int
    largest_gap: int


class Drained(Answer, frozen=True, kw_only=True):
    """The number of pods evicted from a node, and the pods that could not be evicted."""

    evicted: int
    refused: list[EvictionRefused]


class EvictionRefused(Answer, frozen=True, kw_only=True):
    """A pod that could not be evicted, and why."""

    pod: str
    message: str
