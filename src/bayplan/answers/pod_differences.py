"""Differences between two sides, such as a cluster before and after changes: the pods whose nodes differ, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property

import msgspec

from bayplan.analysis.units import format_first
from bayplan.answers.decisive_plugin import DecisionOutput, DecisivePlugin, already_better, decisive_plugin
from bayplan.answers.instant_host import Eviction
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.workloads import workload_of
from bayplan.base.counted_nouns import format_count
from bayplan.objects.pod import Pod

PREEMPTION = "DefaultPreemption"

SHOWN = 3
"""Maximum number of preempted pods to name."""


class DifferenceKind(StrEnum):
    """The difference of a pod between the two sides."""

    MOVED = "moved"
    WAITS = "waits"
    PLACED = "placed"
    GONE = "gone"
    NEW = "new"


WORST_FIRST = (
    DifferenceKind.WAITS, DifferenceKind.GONE, DifferenceKind.MOVED, DifferenceKind.PLACED, DifferenceKind.NEW,
)  # fmt: skip
"""The kinds in the order in which they are shown, the worst first."""


class PodDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A pod whose node differs.

    Attributes:
        pod, workload: the key of the pod, and its workload.
        kind: see `DifferenceKind`. A ``new`` pod may have a node or wait.
        before, after: the node of the pod on each side; "" for none.
        plugin: the plugin that decided; "" if unknown, or if no plugin decided.
        reason: the reason, in words.
    """

    pod: str
    workload: str
    kind: str
    before: str
    after: str
    plugin: str
    reason: str


class Side(msgspec.Struct, dict=True):
    """The cluster before or after the changes.

    Attributes:
        nodes: the node of every pod, by key; "" if the pod waits.
        messages: the messages of waiting pods, by key.
        reasons: why pods no longer exist on this side, by key.
        decision_of: returns the plugin results of the last decision about a pod; None if there was no decision on this
            side, or no full record of it.
        evictions, measures: the evictions and measures of this side.
        node_names: the names of the nodes of this side.
    """

    nodes: dict[str, str]
    messages: dict[str, str]
    reasons: dict[str, str]
    decision_of: Callable[[str], DecisionOutput | None]
    evictions: Sequence[Eviction]
    measures: dict[str, float]
    node_names: frozenset[str]

    @cached_property
    def preemptors(self) -> dict[str, str]:
        """The pod that evicts each evicted pod, by the key of the evicted pod; the first one of several."""
        return {each.pod: each.preemptor for each in reversed(self.evictions)}

    @cached_property
    def victims(self) -> dict[tuple[str, str], list[str]]:
        """The keys of the evicted pods, by the preempting pod and the node."""
        found: dict[tuple[str, str], list[str]] = {}
        for each in self.evictions:
            found.setdefault((each.preemptor, each.node), []).append(each.pod)
        return found


def differences(
    cluster: QuestionCluster, a: Side, b: Side, gone: Mapping[str, str], other: QuestionCluster | None = None
) -> tuple[list[PodDifference], int]:
    """Return the pods that differ, sorted by kind and key, and the number of moved pods with a known reason.

    `gone`: why pods were deleted on side b, by key. `other`: a second cluster in which to look up the pods' workloads.
    """
    rows, looked_at = [], 0
    order = {kind: number for number, kind in enumerate(DifferenceKind)}
    # Compare (pod, node) items as sets, because most pods do not differ.
    for key in sorted({key for key, _ in a.nodes.items() ^ b.nodes.items()}):
        before, after = a.nodes.get(key), b.nodes.get(key)
        if before is None and (key in a.reasons or key in a.preemptors):
            # The pod is not new: without the changes, it would be gone.
            continue
        kind = _kind(before, after)
        plugin, reason = "", ""
        if kind is DifferenceKind.MOVED:
            plugin, reason = _preemption(key, a, b) or _move_reason(key, a, b)
            looked_at += bool(reason)
        elif kind is DifferenceKind.GONE:
            reason = (
                gone.get(key)
                or b.reasons.get(key)
                or _evicted(key, b)
                or ("only in the first cluster" if other is not None else "it no longer exists")
            )
        elif not after:
            reason = b.messages.get(key, "")
        elif kind is DifferenceKind.PLACED and (preempted := _evicted_before(key, a)):
            plugin, reason = preempted
        elif kind is DifferenceKind.PLACED:
            reason = f"it was pending: {a.messages.get(key, '')}" if a.messages.get(key) else ""
        rows.append(
            PodDifference(
                pod=key,
                workload=_workload(key, cluster, other),
                kind=kind.value,
                before=before or "",
                after=after or "",
                plugin=plugin,
                reason=reason,
            )
        )
    return sorted(rows, key=lambda row: (order[DifferenceKind(row.kind)], row.pod)), looked_at


def _kind(before: str | None, after: str | None) -> DifferenceKind:
    if before is None:
        return DifferenceKind.NEW
    if after is None:
        return DifferenceKind.GONE
    if not after:
        return DifferenceKind.WAITS
    return DifferenceKind.MOVED if before else DifferenceKind.PLACED


def _preemption(key: str, a: Side, b: Side) -> tuple[str, str] | None:
    """Return the plugin and the reason, in words, if preemption moved a pod: its own or that of another pod; else None."""
    if evicted := _evicted(key, b):
        return PREEMPTION, evicted
    if a.nodes[key] not in b.node_names:
        # It leaves its node in any case.
        return None
    if victims := _victims(key, b):
        return PREEMPTION, f"it preempts {victims} there"
    if key in a.victims.get((a.preemptors.get(key, ""), b.nodes[key]), ()):
        return _evicted_before(key, a)
    victims = _victims(key, a)
    return (PREEMPTION, f"before, it preempted {victims} on {a.nodes[key]}") if victims else None


def _evicted_before(key: str, a: Side) -> tuple[str, str] | None:
    """Return the plugin and the reason, in words, if a pod is evicted on side a; else None."""
    evicted = _evicted(key, a)
    return (PREEMPTION, f"before, it was {evicted}") if evicted else None


def _evicted(key: str, side: Side) -> str:
    """Return in words for which pod a pod is evicted on a side; "" if it is not evicted."""
    return f"evicted for {side.preemptors[key]}" if key in side.preemptors else ""


def _victims(key: str, side: Side) -> str:
    """Return the pods that a pod evicts from its node on a side, in words; "" if there are none."""
    found = side.victims.get((key, side.nodes.get(key, "")), [])
    return format_first(found, SHOWN) if found else ""


def _move_reason(key: str, a: Side, b: Side) -> tuple[str, str]:
    """Return the plugin that moved a pod, and the reason in words; "" if unknown."""
    before, after = a.nodes[key], b.nodes[key]
    if before not in b.node_names:
        return "", f"{before} is gone"
    in_b = b.decision_of(key)
    in_a = a.decision_of(key) if in_b is not None else None
    if in_a is not None and in_b is not None:
        better, plugin, points = already_better(in_a, in_b, before, after)
        if better:
            return plugin, f"{after} already scored {format_count(points, 'point')} more than {before} before"
    found = decisive_plugin(in_a, in_b, before, after)
    if found is not None:
        return found.name, reason_of(found, before, after)
    if after not in a.node_names:
        return "", f"{after} is new"
    return "", "both nodes score the same; one is chosen at random" if in_a is not None else ""


def reason_of(found: DecisivePlugin, before: str, after: str) -> str:
    """Return in words why a plugin moved a pod."""
    if isinstance(found.b, str):
        return f"rejects {before}: {found.b}"
    if isinstance(found.a, str):
        return f"rejected {after}: {found.a}"
    # Without a rejection, both results are scores.
    assert found.a is not None
    assert found.b is not None
    return f"{_lead(before, after, found.a, 'scored')}, now {_lead(before, after, found.b, 'scores')}"


def _lead(first: str, second: str, points: int, verb: str) -> str:
    """Return which of two nodes scores higher, by how many points; `points`: the first node's lead, negative if it is behind."""
    if not points:
        return f"{first} and {second} {verb.removesuffix('s')} the same"
    ahead, behind = (first, second) if points > 0 else (second, first)
    return f"{ahead} {verb} {format_count(abs(points), 'point')} more than {behind}"


def _workload(key: str, cluster: QuestionCluster, other: QuestionCluster | None) -> str:
    for each in (cluster, other):
        pod = each.get(Pod, key) if each is not None else None
        if pod is not None and each is not None:
            kind, name = workload_of(pod, each)
            return "" if kind == "Pod" else f"{kind.lower()}/{pod.metadata.namespace}/{name}"
    return ""
