"""The summary sentences of the overview, a node, the queue, a source and a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.analysis.nearness import INSUFFICIENT
from bayplan.analysis.reasons import ReasonCount
from bayplan.analysis.units import format_amount, format_duration
from bayplan.base.counted_nouns import format_count, is_or_are


class CommonCause(NamedTuple):
    """The root cause of most waiting pods.

    Attributes:
        summary: the cause.
        pods: the number of pods with this cause.
    """

    summary: str
    pods: int


def cluster_sentence(
    *,
    pods: int,
    waiting: int,
    gated: int,
    nodes: int,
    reasons: Sequence[ReasonCount],
    cause: CommonCause | None = None,
) -> str:
    """Summarise a cluster in one sentence: how many pods are pending and why, or that all pods have their nodes.

    Args:
        pods: the number of unfinished pods.
        waiting: the number of waiting pods, except gated ones.
        gated: the number of gated pods.
        nodes: the number of nodes.
        reasons: the reasons why pods wait, starting with the most frequent main reason.
        cause: the root cause of most waiting pods; None to use the first of `reasons` instead.
    """
    if not nodes and not pods:
        return "The cluster is empty: there are no nodes and no pods"
    if not nodes:
        return f"There are no nodes, so none of {format_count(pods, 'pod')} can be placed"
    if not pods:
        return f"{format_count(nodes, 'node')}, and no pods"
    held = f"; {gated:,} more {is_or_are(gated)} held back by gates" if gated else ""
    if not waiting:
        rest = pods - gated
        placed = f"All {format_count(rest, 'pod')} have their nodes" if rest > 1 else "The only pod has its node"
        return f"{placed}{held}" if rest else f"No pod has a node{held.replace(' more', '')}"
    sentence = f"{waiting:,} of {format_count(pods, 'pod')} {is_or_are(waiting)} pending"
    why = _why(waiting, reasons) if cause is None else cause_text(cause, waiting)
    return f"{sentence}{why}{held}"


def cause_text(cause: CommonCause, waiting: int) -> str:
    """Return the root cause of most waiting pods, as the continuation of a sentence that starts with their number."""
    if waiting == 1:
        return f": {cause.summary}"
    if cause.pods == 1:
        return f"; the first reason: {cause.summary}"
    share = "all" if cause.pods >= waiting else f"{cause.pods:,}"
    return f"; {share} for the same reason: {cause.summary}"


def _why(waiting: int, reasons: Sequence[ReasonCount]) -> str:
    if not reasons:
        return ", not tried yet"
    text, count = reasons[0].text, reasons[0].main_pods
    text = f"for lack of {text.removeprefix(INSUFFICIENT)}" if text.startswith(INSUFFICIENT) else f"because {text}"
    mainly = "mainly " if reasons[0].pods > count or len(reasons) > 1 else ""
    if waiting == 1:
        return f" {mainly}{text}"
    return f", {'all' if count >= waiting else f'{count:,}'} {mainly}{text}"


def node_sentence(
    *,
    name: str,
    ready: bool,
    cordoned: bool,
    pods: int,
    full_by: Sequence[str],
    free: Sequence[tuple[str, int, int]],
    named_by: int,
) -> str:
    """Summarise a node in one sentence.

    Args:
        name: the node's name.
        ready, cordoned: the state of the node.
        pods: the number of pods on the node.
        full_by: the resources of which nothing is free.
        free: (resource, free amount, allocatable amount), the scarcest resource first.
        named_by: the number of waiting pods that the node rejected for a reason that more room would resolve.
    """
    state = [] if ready else ["not ready"]
    state += ["cordoned"] if cordoned else []
    if full_by:
        state.append(f"full by {' and '.join(full_by)}")
    elif not pods:
        state.append("empty")
    sentence = f"{name} is {', '.join(state)}" if state else f"{name} has {format_count(pods, 'pod')}"
    if free:
        resource, left, offered = free[0]
        sentence += f": {format_amount(resource, left)} of {format_amount(resource, offered)} {resource} free"
    if named_by:
        sentence += f"; {format_count(named_by, 'pending pod')} {'was' if named_by == 1 else 'were'} rejected here"
    return sentence


def queue_sentence(counts: dict[str, int], *, next_retry_in_ns: int | None, next_pod: str) -> str:
    """Summarise the scheduling queue in one sentence.

    Args:
        counts: the number of pods by tier: active, backoff, unschedulable, gated.
        next_retry_in_ns: the time until the next backoff ends; None if no pod is in backoff.
        next_pod: the pod whose backoff ends next; "" to leave it out.
    """
    pieces = []
    if counts.get("active"):
        pieces.append(f"{counts['active']:,} active")
    if counts.get("backoff"):
        when = ""
        if next_retry_in_ns is not None:
            when = f", next retry in {format_duration(max(next_retry_in_ns, 0))}" + (
                f" ({next_pod})" if next_pod else ""
            )
        pieces.append(f"{counts['backoff']:,} in backoff{when}")
    if counts.get("unschedulable"):
        pieces.append(f"{counts['unschedulable']:,} unschedulable")
    if counts.get("gated"):
        pieces.append(f"{counts['gated']:,} gated")
    total = sum(counts.get(tier, 0) for tier in ("active", "backoff", "unschedulable", "gated"))
    if not pieces:
        return "No pod is pending"
    return f"{format_count(total, 'pod')} {is_or_are(total)} pending: {'; '.join(pieces)}"


def source_sentence(*, name: str, kind: str, state: str, lag_seconds: int) -> str:
    """Describe the source of the cluster's objects, and its progress, in one sentence.

    Args:
        name: the name of the source.
        kind: import, sync or replay.
        state: listing, following, done or stopped.
        lag_seconds: how long the oldest unapplied change has been waiting.
    """
    running, done = {"import": ("Imports", "Imported"), "replay": ("Replays", "Replayed")}.get(
        kind, ("Syncs with", "Synced with")
    )
    if state == "stopped":
        return f"{done} {name} in part: the session was stopped" if kind == "import" else f"{done} {name}; now stopped"
    if state == "done":
        return f"{done} {name}"
    if state == "listing" and kind == "sync":
        return f"Reads {name}"
    if kind == "import":
        return f"{running} {name}"
    behind = "less than a second" if lag_seconds < 1 else format_duration(lag_seconds * 1_000_000_000)
    return f"{running} {name}, {behind} behind"


def comparison_sentence(
    *, a: str, b: str, pods: int, moved: int, only_a: int, only_b: int, nodes_a: int, nodes_b: int
) -> str:
    """Return how two runs differ, in one sentence.

    Args:
        a, b: the names of the runs.
        pods: the number of pods that exist in both runs.
        moved: the number of pods on different nodes.
        only_a, only_b: the number of pods that have a node in only one of the runs.
        nodes_a, nodes_b: the number of nodes with pods in each run.
    """
    differ = moved + only_a + only_b
    if not differ:
        return f"{a} and {b} place all {format_count(pods, 'pod')} on the same nodes"
    parts = ((moved, "on another node"), (only_a, f"placed only by {a}"), (only_b, f"placed only by {b}"))
    sentence = f"{differ:,} of {format_count(pods, 'pod')} {'differs' if differ == 1 else 'differ'}: "
    sentence += ", ".join(f"{count:,} {how}" for count, how in parts if count)
    if nodes_a != nodes_b:
        fewer = a if nodes_a < nodes_b else b
        sentence += f"; {fewer} uses {format_count(abs(nodes_a - nodes_b), 'node')} fewer"
    return sentence
