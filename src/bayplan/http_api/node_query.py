"""Query the frozen nodes: the heat map, the table by pages, and utilisation. Runs on a worker thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.selectors import parse_labels
from bayplan.base.go_text.times import format_instant
from bayplan.http_api.contract.answer import Facet
from bayplan.http_api.contract.nodes import CellGroup, Cells, NodeFacets, NodeRow, UsageRow
from bayplan.http_api.errors import RequestError
from bayplan.http_api.named_rows import ranks, sorted_rows
from bayplan.http_api.node_table import CORDONED, NOT_READY, NodeColumns
from bayplan.objects.node import Node, Taint
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.resource_table import PODS

SORTS = ("name", "zone", "pool", "pods", "age", "created_at")
FIRST_METRICS = ("cpu", "memory", PODS)
MAX_FACET_VALUES = 200


@dataclass(frozen=True, kw_only=True)
class NodeFilter:
    """A filter for nodes. Empty texts match all nodes.

    Attributes:
        words: words that must all occur in the name.
        zone, pool: the exact zone and pool; "" for nodes without one, None for all nodes.
        label: a label selector, as for kubectl's ``-l``.
        flags: bits of `bayplan.http_api.node_table` that must be set.
    """

    words: Sequence[str] = ()
    zone: str | None = None
    pool: str | None = None
    label: str = ""
    flags: int = 0


def metrics_of(nodes: NodeColumns) -> list[str]:
    """Return CPU, memory and pods, then the other resources that at least one node has."""
    offered = [name for name, values in nodes.allocatable.items() if values.any()]
    return [*FIRST_METRICS, *sorted(name for name in offered if name not in FIRST_METRICS)]


def find_nodes(nodes: NodeColumns, wanted: NodeFilter, sort: tuple[str, bool]) -> Index:
    """Return the rows of the matching nodes, sorted; equal nodes are sorted by name.

    Args:
        nodes: a copy of the columns that does not change.
        wanted: the filter.
        sort: (key, descending); the key is one of `SORTS`, or a resource (sorts by its share).

    Raises:
        RequestError: the label selector can't be parsed.
    """
    chosen = nodes.used.copy()
    if wanted.flags:
        chosen &= (nodes.flags & wanted.flags) == wanted.flags
    for value, codes, texts in ((wanted.zone, nodes.zone, nodes.zones), (wanted.pool, nodes.pool, nodes.pools)):
        if value is not None:
            chosen &= codes == (texts.index(value) if value in texts else -1)
    rows = _by_name(nodes, np.flatnonzero(chosen).tolist())
    words = [word.lower() for word in wanted.words if word]
    if words:
        rows = [row for row in rows if all(word in nodes.names[row].lower() for word in words)]
    if wanted.label:
        matches = label_test(wanted.label)
        rows = [row for row in rows if (node := nodes.nodes[row]) is not None and matches(node.metadata.labels)]
    return _sorted(nodes, np.array(rows, dtype=np.intp), *sort)


def label_test(text: str) -> Callable[[Mapping[str, str]], bool]:
    """Return a predicate for labels that match a selector.

    Raises:
        RequestError: the selector can't be parsed.
    """
    try:
        requirements = parse_labels(text)
    except ApiError as problem:
        raise RequestError(400, "label", got=f"'{text}'", wanted="a label selector", hint="'zone=a,!gpu'") from problem
    return lambda labels: all(each.matches(labels) for each in requirements)


def _by_name(nodes: NodeColumns, rows: Iterable[int]) -> list[int]:
    return sorted(rows, key=nodes.names.__getitem__)


def _sorted(nodes: NodeColumns, rows: Index, sort: str, descending: bool) -> Index:
    if sort == "name":
        return rows[::-1] if descending else rows
    if sort in ("age", "created_at"):
        values, descending = nodes.created_ns, descending == (sort == "created_at")
    elif sort in ("zone", "pool"):
        codes, texts = (nodes.zone, nodes.zones) if sort == "zone" else (nodes.pool, nodes.pools)
        values = ranks(texts)[codes]
    else:
        offered, asked = nodes.amounts(sort)
        values = asked if sort == PODS else (asked / np.maximum(offered, 1) * 1_000_000).astype(np.int64)
    return sorted_rows(rows, values, descending)


def facets_of(nodes: NodeColumns, rows: Index) -> NodeFacets:
    """Count the given nodes by zone and by pool, the most frequent values first."""
    return NodeFacets(
        zone=_facet_values(nodes.zone[rows], nodes.zones),
        pool=_facet_values(nodes.pool[rows], nodes.pools),
    )


def _facet_values(codes: Ints, texts: Sequence[str]) -> list[Facet]:
    counts = np.bincount(codes, minlength=1)
    order = np.argsort(-counts, kind="stable")[:MAX_FACET_VALUES].tolist()
    return [Facet(value=texts[code], count=int(counts[code])) for code in order if counts[code]]


def node_row(nodes: NodeColumns, row: int) -> NodeRow:
    """Return a node as a row of the table."""
    node = nodes.nodes[row]
    assert node is not None
    allocatable = {name: int(values[row]) for name, values in nodes.allocatable.items() if values[row]}
    requested = {name: int(values[row]) for name, values in nodes.requested.items() if values[row]}
    flags = int(nodes.flags[row])
    return NodeRow(
        name=nodes.names[row],
        zone=nodes.zones[int(nodes.zone[row])],
        pool=nodes.pools[int(nodes.pool[row])],
        ready=not flags & NOT_READY,
        cordoned=bool(flags & CORDONED),
        allocatable=allocatable,
        requested=requested,
        free={name: offered - requested.get(name, 0) for name, offered in allocatable.items()},
        shares={name: round(requested.get(name, 0) / offered, 4) for name, offered in allocatable.items()},
        pods=requested.get(PODS, 0),
        most_pods=allocatable.get(PODS, 0),
        taints=[taint_text(taint) for taint in node.spec.taints],
        created_at=format_instant(int(nodes.created_ns[row])),
    )


def taint_text(taint: Taint) -> str:
    """Return a taint in kubectl's notation: ``key=value:NoSchedule``."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


# --- the heat map -----------------------------------------------------------------------------------------------------


def cells_document(nodes: NodeColumns, rows: Index, metric: str, by: str) -> Cells:
    """Return the heat map.

    Args:
        nodes: a copy of the columns that does not change.
        rows: the nodes to show, ordered by name.
        metric: a resource.
        by: ``zone``, ``pool``, ``label:KEY``, or ``none`` or "" for one group.

    Raises:
        RequestError: `by` is not supported.
    """
    cells, flags = nodes.cells(metric), nodes.flags
    groups: dict[str, list[int]] = {}
    for row, name in zip(rows.tolist(), _groups(nodes, rows, by), strict=True):
        groups.setdefault(name, []).append(row)
    return Cells(
        version=nodes.version,
        layout=nodes.names_version,
        metric=metric,
        by=by,
        metrics=metrics_of(nodes),
        groups=[
            CellGroup(
                name=name,
                nodes=[nodes.names[row] for row in of_group],
                cells=cells[of_group].tolist(),
                flags=flags[of_group].tolist(),
            )
            for name, of_group in sorted(groups.items())
        ],
    )


def _groups(nodes: NodeColumns, rows: Index, by: str) -> list[str]:
    if by in ("zone", "pool"):
        codes, texts = (nodes.zone, nodes.zones) if by == "zone" else (nodes.pool, nodes.pools)
        return [texts[code] for code in codes[rows].tolist()]
    if not by or by == "none":
        return [""] * len(rows)
    if not by.startswith("label:"):
        raise RequestError(400, "by", got=f"'{by}'", wanted="zone, pool, none, or label:KEY")
    key = by.removeprefix("label:")
    found: list[Node | None] = [nodes.nodes[row] for row in rows.tolist()]
    return [node.metadata.labels.get(key, "") if node is not None else "" for node in found]


# --- utilisation ------------------------------------------------------------------------------------------------------


def utilisation(nodes: NodeColumns, *, by_zone: bool = True) -> list[UsageRow]:
    """Return the utilisation by resource, for the cluster and each zone, with the largest free amount on a schedulable node."""
    found = []
    usable = nodes.used & (nodes.flags == 0)
    for resource in metrics_of(nodes):
        offered, asked = nodes.amounts(resource)
        free = np.where(usable, np.maximum(offered - asked, 0), 0)
        found.append(_usage(resource, "", offered[nodes.used], asked[nodes.used], free[nodes.used]))
        if not by_zone:
            continue
        for code in np.unique(nodes.zone[nodes.used]).tolist():
            if code:
                of_zone: Bools = nodes.used & (nodes.zone == code)
                found.append(_usage(resource, nodes.zones[code], offered[of_zone], asked[of_zone], free[of_zone]))
    return found


def _usage(resource: str, zone: str, offered: Ints, asked: Ints, free: Ints) -> UsageRow:
    total, requested = int(offered.sum()), int(asked.sum())
    return UsageRow(
        resource=resource,
        zone=zone,
        nodes=len(offered),
        allocatable=total,
        requested=requested,
        share=round(requested / total, 6) if total else 0.0,
        free=int(free.sum()),
        largest_gap=int(free.max(initial=0)),
    )
