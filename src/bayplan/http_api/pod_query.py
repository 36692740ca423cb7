"""Filter, sort and count the pods of a frozen copy, for the table of pods. Runs on a worker thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bayplan.analysis.reasons import ReasonCount, pods_by_reason, reasons_of
from bayplan.analysis.verdict import unattended_text
from bayplan.http_api.named_rows import ranks, sorted_rows
from bayplan.http_api.pod_table import STATUS_NAMES, PodColumns, PodStatus
from bayplan.http_api.query import Deadline
from bayplan.sim.result import PodTimeline
from bayplan.state.arrays import Bools, Index, Ints

SORTS = ("name", "namespace", "status", "node", "cpu", "memory", "priority", "attempts", "age", "created_at")
MAX_FACET_VALUES = 50
ROWS_AT_ONCE = 5_000

UNDECIDED = (PodStatus.WAITING, PodStatus.GATED)


@dataclass(frozen=True, kw_only=True)
class PodFilter:
    """A filter for pods. Empty texts match all pods.

    Attributes:
        words: words that must all occur in ``namespace/name``, ignoring case.
        status, reason, namespace, node: the exact values.
        priority: the exact priority; None for any.
        workload: the pods' workload, as in ``Deployment/web`` (in any namespace) or ``Deployment/shop/web``.
    """

    words: Sequence[str] = ()
    status: str = ""
    reason: str = ""
    namespace: str = ""
    node: str = ""
    priority: int | None = None
    workload: str = ""


@dataclass(frozen=True)
class Found:
    """The result of a query.

    Attributes:
        rows: the rows of the page, in order.
        total: the number of matching pods.
        is_exact: False if `total` is only a lower bound.
        facets: by field, the values with their numbers of matching pods; None if not requested.
    """

    rows: Sequence[int]
    total: int
    is_exact: bool
    facets: Mapping[str, Sequence[tuple[str, int]]] | None


def find_pods(
    pods: PodColumns,
    wanted: PodFilter,
    *,
    sort: tuple[str, bool],
    offset: int,
    limit: int,
    facets: bool,
    deadline: Deadline,
) -> Found:
    """Return a page of the matching pods.

    Args:
        pods: the pods.
        wanted: the filter.
        sort: (key, descending); the key is one of `SORTS`. Equal pods are ordered by name.
        offset, limit: the offset and limit of the page.
        facets: whether to count values.
        deadline: when to end the search. The matches found until then are returned, with `is_exact` False.
    """
    chosen = _matching(pods, wanted)
    chosen, complete = _with_words(pods, chosen, wanted.words, deadline)
    rows = _in_order(pods, chosen, *sort)
    counts = _facets(pods, chosen, wanted) if facets else None
    return Found(rows[offset : offset + limit].tolist(), len(rows), complete, counts)


# --- filters ----------------------------------------------------------------------------------------------------------


def _matching(pods: PodColumns, wanted: PodFilter) -> Bools:
    chosen = pods.used.copy()
    if wanted.status:
        chosen &= pods.status == STATUS_NAMES[wanted.status]
    if wanted.namespace:
        chosen &= pods.namespace == _code(pods.namespaces, wanted.namespace)
    if wanted.node:
        chosen &= pods.node == _code(pods.nodes, wanted.node)
    if wanted.priority is not None:
        chosen &= pods.priority == wanted.priority
    if wanted.workload:
        made = [row for row in np.flatnonzero(chosen).tolist() if _is_made_by(pods.lives[row], wanted.workload)]
        chosen = np.zeros_like(chosen)
        chosen[made] = True
    if wanted.reason:
        # A placed pod may still have the message of an earlier attempt, which is no reason for waiting.
        chosen &= np.isin(pods.status, UNDECIDED)
        codes = np.unique(pods.message[chosen]).tolist()
        matching = [
            code for code in codes if any(each.text == wanted.reason for each in reasons_of(pods.messages[code]))
        ]
        silent = [rows for name, rows in pods.unattended().items() if unattended_text(name) == wanted.reason]
        chosen &= np.isin(pods.message, matching) if not silent else silent[0]
    return chosen


def _is_made_by(life: PodTimeline | None, workload: str) -> bool:
    """Return whether a timeline's workload (``Deployment shop/web``) is ``Deployment/web`` or ``Deployment/shop/web``."""
    if life is None:
        return False
    kind, _, key = life.workload.partition(" ")
    return workload in (f"{kind}/{key}", f"{kind}/{key.rpartition('/')[2]}")


def _code(texts: Sequence[str], text: str) -> int:
    try:
        return texts.index(text)
    except ValueError:
        return -1


def _with_words(pods: PodColumns, chosen: Bools, words: Sequence[str], deadline: Deadline) -> tuple[Bools, bool]:
    """Keep the rows whose keys contain all words. The second value is False if time ran out before all rows were searched."""
    words = [word.lower() for word in words if word]
    if not words:
        return chosen, True
    rows = np.flatnonzero(chosen)
    found = np.zeros_like(chosen)
    keys = pods.keys
    first, *others = words
    for start in range(0, len(rows), ROWS_AT_ONCE):
        if start and deadline.is_over:
            return found, False
        part = rows[start : start + ROWS_AT_ONCE].tolist()
        kept = [row for row in part if first in keys[row].lower()]
        for word in others:
            kept = [row for row in kept if word in keys[row].lower()]
        found[kept] = True
    return found, True


# --- order ------------------------------------------------------------------------------------------------------------


def _in_order(pods: PodColumns, chosen: Bools, sort: str, descending: bool) -> Index:
    by_name = pods.by_name()
    rows = by_name[chosen[by_name]]
    if sort == "name":
        return rows[::-1] if descending else rows
    if sort in ("age", "created_at"):
        values, descending = pods.created_ns, descending == (sort == "created_at")
    elif sort == "namespace":
        values = ranks(pods.namespaces)[pods.namespace]
    elif sort == "node":
        values = ranks(pods.nodes)[pods.node]
    else:
        columns: Mapping[str, Ints] = {
            "status": pods.status,
            "cpu": pods.cpu,
            "memory": pods.memory,
            "priority": pods.priority,
            "attempts": pods.attempts,
        }
        values = columns[sort]
    return sorted_rows(rows, values, descending)


# --- facets -----------------------------------------------------------------------------------------------------------


def _facets(pods: PodColumns, chosen: Bools, wanted: PodFilter) -> dict[str, list[tuple[str, int]]]:
    statuses = np.bincount(pods.status[chosen], minlength=len(PodStatus)).tolist()
    counts = {
        "status": [(status.text, statuses[status]) for status in PodStatus if statuses[status]],
        "reason": sorted(
            ((each.text, each.pods) for each in waiting_reasons(pods, chosen)), key=lambda each: (-each[1], each[0])
        ),
        "namespace": _counted(pods.namespace[chosen], pods.namespaces),
        "node": [each for each in _counted(pods.node[chosen], pods.nodes) if each[0]],
        "priority": _numbers(pods.priority[chosen]),
    }
    return {name: values[:MAX_FACET_VALUES] for name, values in counts.items()}


def waiting_reasons(pods: PodColumns, chosen: Bools) -> list[ReasonCount]:
    """Return why those of the given pods that have no node wait, the most frequent main reason first."""
    waiting = chosen & np.isin(pods.status, UNDECIDED)
    codes, counts = np.unique(pods.message[waiting], return_counts=True)
    messages = pods.messages
    reported = [(messages[code], count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True) if code]
    silent = ((unattended_text(name), int((rows & waiting).sum())) for name, rows in pods.unattended().items())
    return pods_by_reason([*reported, *(each for each in silent if each[1])])


def _counted(codes: Ints, texts: Sequence[str]) -> list[tuple[str, int]]:
    counts = np.bincount(codes, minlength=1)
    found = np.flatnonzero(counts)
    order = found[np.argsort(-counts[found], kind="stable")][: MAX_FACET_VALUES + 1]
    return [(texts[code], int(counts[code])) for code in order.tolist()]


def _numbers(values: Ints) -> list[tuple[str, int]]:
    found, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(str(int(found[each])), int(counts[each])) for each in order.tolist()]
