"""Answers about nodes: the table, the heat map, and all about one of them."""

from __future__ import annotations

import msgspec

from bayplan.http_api.contract.answer import Answer, Facet, Instant, ListAnswer
from bayplan.http_api.contract.pods import EventRow, PodRow


class NodeBlock(Answer, frozen=True, kw_only=True):
    """A pod on a node, by what it takes: milli-CPU and bytes."""

    namespace: str
    name: str
    cpu: int
    memory: int
    priority: int


class NodeFacts(Answer, frozen=True, kw_only=True):
    """What a node is and offers.

    Attributes:
        allocatable, requested, free: amounts by resource. shares: requested of allocatable, by resource.
        most_pods: how many pods it takes. taints: as kubectl writes them.
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
        pods: how many are there. blocks: the largest of them, if they were asked for.
    """

    pods: int
    blocks: list[NodeBlock] | msgspec.UnsetType = msgspec.UNSET


class NodeFacets(Answer, frozen=True, kw_only=True):
    """The zones and pools of the nodes that were found, the largest first."""

    zone: list[Facet]
    pool: list[Facet]


class NodeList(ListAnswer, frozen=True, kw_only=True):
    """A page of the table of nodes.

    Attributes:
        version: changes with the nodes. facets: if they were asked for.
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
    """How many waiting pods a node rejected with the same words in their last attempts."""

    text: str
    pods: int


class NodePage(NodeFacts, frozen=True, kw_only=True):
    """All about one node.

    Attributes:
        version: changes with the nodes. sentence: what it is, and what is free. pods: a page of those on it. pods_total: how many.
        rejected: why waiting pods were rejected. rejected_is_exact: False if not all were looked at.
        rejected_missing: the failure of a plugin that could not say why, or "".
    """

    version: int
    sentence: str
    labels: dict[str, str]
    conditions: list[NodeCondition]
    pods: list[PodRow]
    pods_total: int
    events: list[EventRow]
    rejected: list[PodsRejected]
    rejected_is_exact: bool
    rejected_missing: str


class CellGroup(Answer, frozen=True, kw_only=True):
    """A group of the heat map.

    Attributes:
        name: of the zone or the like. nodes: names.
        cells: percent in use, 101 for a full node, 255 if it has nothing of the resource. flags: bit 0 cordoned, bit 1 not ready.
    """

    name: str
    nodes: list[str]
    cells: list[int]
    flags: list[int]


class Cells(Answer, frozen=True, kw_only=True):
    """The heat map.

    Attributes:
        version: changes with the nodes. layout: changes with their names. metric: the resource. by: what groups them.
        metrics: resources that some node offers.
    """

    version: int
    layout: int
    metric: str
    by: str
    metrics: list[str]
    groups: list[CellGroup]


class CellsChanged(Answer, frozen=True, kw_only=True):
    """A frame of the stream about the heat map.

    Attributes:
        version, layout, metric: as in `Cells`. known: whether some node offers the resource.
        whole: whether all nodes are in it, or only those that changed. names, cells, flags: of the nodes, as in `CellGroup`.
    """

    version: int
    layout: int
    metric: str
    known: bool
    whole: bool
    names: list[str]
    cells: list[int]
    flags: list[int]


class UsageRow(Answer, frozen=True, kw_only=True):
    """How full the cluster (zone "") or a zone is of a resource.

    Attributes:
        nodes: how many. allocatable, requested, free: sums. share: requested of allocatable.
        largest_gap: the most that is free on one node that pods may go to.
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
    """How many pods of a node were evicted, and which were not."""

    evicted: int
    refused: list[EvictionRefused]


class EvictionRefused(Answer, frozen=True, kw_only=True):
    """A pod that was not evicted, and why."""

    pod: str
    message: str
