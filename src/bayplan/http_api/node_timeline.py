"""Pods on nodes over time: for each node, how many ran, were placed and left in equal parts of a span. On a worker thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from bayplan.base.go_text.times import format_instant
from bayplan.http_api.contract.decisions import NodeLane, NodeLanes
from bayplan.http_api.pod_table import PodColumns
from bayplan.sim.result import PodTimeline
from bayplan.state.arrays import Ints

MAX_LANES = 60
MAX_LANE_BINS = 600


class PodLifetimes(NamedTuple):
    """Pods that have or had a node, as columns.

    Attributes:
        node: int64[pods], the code of the pod's node.
        began_ns, ended_ns: int64[pods], when the pod was bound, and when it left its node.
        names: the names of the nodes, by code.
    """

    node: Ints
    began_ns: Ints
    ended_ns: Ints
    names: Sequence[str]


def lifetimes_on_nodes(pods: PodColumns, deleted: Collection[PodTimeline]) -> PodLifetimes:
    """Return the existing pods that have a node, and the remembered deleted pods that had one."""
    names = list(pods.nodes)
    codes = {name: code for code, name in enumerate(names)}
    rows = np.flatnonzero(pods.used & (pods.node > 0))
    gone = [life for life in deleted if life.node and life.bound_ns is not None and life.ended_ns is not None]
    for life in gone:
        if life.node not in codes:
            codes[life.node] = len(names)
            names.append(life.node)
    parts = (
        (pods.node[rows], [codes[life.node] for life in gone]),
        (pods.bound_ns[rows], [life.bound_ns for life in gone]),
        (pods.ended_ns[rows], [life.ended_ns for life in gone]),
    )
    node, began_ns, ended_ns = (np.concatenate((here, np.array(past, dtype=np.int64))) for here, past in parts)
    return PodLifetimes(node, began_ns, ended_ns, names)


def node_lanes(
    lives: PodLifetimes, words: Sequence[str], span_ns: tuple[int, int], bins: int, *, offset: int, limit: int
) -> NodeLanes:
    """Return a page of nodes with the counts of their pods, those with the most changes in the span first.

    Args:
        lives: the pods.
        words: words that must all occur in the node's name.
        span_ns: the first and last time of the span.
        bins: the number of parts.
        offset, limit: the offset and limit of the page.
    """
    begin, end = span_ns
    edges = np.linspace(begin, end + 1, bins + 1)
    count = len(lives.names)
    came = (lives.began_ns >= begin) & (lives.began_ns <= end)
    left = (lives.ended_ns >= begin) & (lives.ended_ns <= end)
    changes = np.bincount(lives.node[came], minlength=count) + np.bincount(lives.node[left], minlength=count)
    present = (lives.began_ns <= end) & (lives.ended_ns >= begin)
    seen = np.bincount(lives.node[present], minlength=count)
    lowered = [name.lower() for name in lives.names]
    found = [code for code in np.flatnonzero(seen).tolist() if all(word.lower() in lowered[code] for word in words)]
    found.sort(key=lambda code: (-int(changes[code]), lives.names[code]))
    items = [_lane(lives, code, edges) for code in found[offset : offset + limit]]
    return NodeLanes(
        items=items,
        total=len(found),
        total_is_exact=True,
        offset=offset,
        limit=limit,
        from_at=format_instant(begin),
        to_at=format_instant(end),
        bins=bins,
    )


def _lane(lives: PodLifetimes, code: int, edges: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> NodeLane:
    rows = lives.node == code
    began, ended = np.sort(lives.began_ns[rows]), np.sort(lives.ended_ns[rows])
    placed = np.diff(np.searchsorted(began, edges))
    left = np.diff(np.searchsorted(ended, edges))
    running = np.searchsorted(began, edges[1:]) - np.searchsorted(ended, edges[1:])
    return NodeLane(node=lives.names[code], running=running.tolist(), placed=placed.tolist(), left=left.tolist())
