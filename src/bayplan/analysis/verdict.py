"""The verdict about a pod: its node or why it waits, in one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bayplan.analysis.explanation import Attempt
from bayplan.analysis.filter_matrix import filter_matrix
from bayplan.analysis.reasons import reasons_of, short_reasons
from bayplan.analysis.root_cause import RootCause, root_cause
from bayplan.analysis.run_source import RunSource
from bayplan.analysis.surroundings import surroundings_of
from bayplan.analysis.units import format_list
from bayplan.base.counted_nouns import format_count
from bayplan.engine.decision import Decision, Outcome, Record
from bayplan.sim.result import PodFate, PodTimeline

_NODES = re.compile(r"0/(\d+) nodes are available")

UNATTENDED = "no scheduler named "
"""The beginning of the message about a pod without a scheduler."""

SHOWN_VICTIMS = 3
"""Maximum number of victims named."""


def pod_verdict(source: RunSource, pod: PodTimeline, attempts: Sequence[Attempt]) -> str:
    """Return a pod's node or why it waits, in one sentence, which ``bayplan explain``, the API and the page show first.

    Args:
        source: the run.
        pod: the timeline of the pod.
        attempts: the attempts of the pod, in order.
    """
    fate = pod.fate.value
    if pod.bound_ns is None and fate in ("pending", "unattended"):
        verb = "" if _awaited_node(pod, attempts) else "is pending: "
        return f"{pod.key} {verb}{waiting_reason(source, pod, attempts)}"
    if pod.bound_ns is None and fate != "deleted":
        return f"{pod.key} is {fate}: {source.message_of(pod)}"
    if pod.bound_ns is None:
        suffix = f": {pod.message}" if pod.message else ""
        return f"{pod.key} was deleted before it got a node{suffix}"
    ends = {"placed": "is on", "succeeded": "has succeeded on", "failed": "has failed on", "deleted": "was on"}
    place = f"{pod.key} {ends.get(fate, 'is on')} {pod.node}"
    if pod.imported and not attempts:
        return f"{place}; it had this node when it was loaded"
    won = next((each for each in reversed(attempts) if each.node == pod.node), None)
    return place if won is None else f"{place}: {_why_there(won, attempts)}"


def unattended_text(scheduler_name: str) -> str:
    """Return why a pod waits if no profile has its scheduler name."""
    return f'{UNATTENDED}"{scheduler_name}" is configured'


def waiting_message_of(pod: PodTimeline) -> str:
    """Return the scheduler's message about a pending pod, in upstream's words; "" if it is not pending or was never tried."""
    return pod.message if pod.bound_ns is None and pod.fate is PodFate.PENDING else ""


def waiting_reason(source: RunSource, pod: PodTimeline, attempts: Sequence[Attempt]) -> str:
    """Return why a pod without a node waits, in plain words and without its name. `RunSource.message_of` has upstream's words."""
    if pod.fate is PodFate.UNATTENDED:
        return unattended_text(pod.scheduler_name)
    if room := _awaited_node(pod, attempts):
        return room
    cause, message = last_cause(source, pod, attempts), source.message_of(pod)
    if cause is not None:
        return cause.headline
    return _short_message(message) if attempts and attempts[-1].outcome == "unschedulable" else message


def _awaited_node(pod: PodTimeline, attempts: Sequence[Attempt]) -> str:
    """Return which node a pod waits for after preempting other pods in its last attempt; "" if it preempted none."""
    last = attempts[-1] if attempts and pod.fate is PodFate.PENDING else None
    if last is None or last.outcome != "unschedulable" or not last.nominated_node or not last.victims:
        return ""
    return f"waits for room on {last.nominated_node}, preempting {_named(last.victims)}"


def last_cause(source: RunSource, pod: PodTimeline, attempts: Sequence[Attempt]) -> RootCause | None:
    """Return why the last attempt found no node for a pod.

    None if there was no such attempt, it has no full record, the pod is unknown, or filters did not run on every node.
    """
    last = attempts[-1] if attempts else None
    decision = None if last is None or last.outcome != "unschedulable" else _decision(source, last.number)
    if last is None or decision is None or pod.pod is None:
        return None
    matrix = filter_matrix(decision)
    if not matrix.known.all():
        return None
    around = surroundings_of(source, last.number, pod.scheduler_name)
    return root_cause(matrix, pod.pod, source.nodes, source.requests_of(pod), around)


def _decision(source: RunSource, number: int) -> Decision | None:
    """Return the full record of a cycle; None if it has none or is no longer in memory."""
    try:
        return source.decision(number) if source.records[number].frame >= 0 else None
    except LookupError:
        return None


def _short_message(message: str) -> str:
    """Return a scheduler's message in short form, without preemption: ``none of 5 nodes fits: Insufficient cpu (5)``."""
    nodes = _NODES.match(message)
    if nodes is None:
        return message
    count = int(nodes[1])
    listed = short_reasons(message, most=3)
    if all(reason.nodes for reason in reasons_of(message)):
        return f"{'the only node does not fit' if count == 1 else f'none of {count:,} nodes fits'}: {listed}"
    return listed


def _why_there(won: Attempt, attempts: Sequence[Attempt]) -> str:
    for each in reversed(attempts):
        if each.number < won.number and each.nominated_node == won.node and each.victims:
            return f"attempt {each.attempt:,} preempted {_named(each.victims)} for it"
    if won.evaluated_nodes == 1 and won.feasible_nodes == 1:
        return "the only node that was examined"
    if won.feasible_nodes == 1:
        return f"the only one of {won.evaluated_nodes:,} nodes that it fits on"
    text = f"{won.feasible_nodes:,} of {won.evaluated_nodes:,} nodes fit"
    if not won.ties:
        return f"{text}; other totals in its annotations are higher, so other weights decided"
    if won.ties > 1:
        return f"{text}; {won.ties:,} of them tie for the best total, {won.total:,}, and this one was drawn at random"
    return f"{text}, and it is the best of them with a total of {won.total:,}"


def _named(pods: Sequence[str]) -> str:
    """Format pods as in a sentence; if there are many, the first ones and the number of the rest."""
    # Name a single remaining pod: "and 1 more" would be as long.
    shown = pods if len(pods) <= SHOWN_VICTIMS + 1 else pods[:SHOWN_VICTIMS]
    return format_list(shown, more=len(pods) - len(shown))


def decision_text(record: Record, margin: int | None) -> str:
    """Return a decision in one line, for lists.

    Args:
        record: the summary record of the decision.
        margin: the total of the chosen node minus that of the best node outside the tie set; None if there is no such
            node, or no full record.
    """
    pod = record.pod
    if record.outcome is Outcome.SCHEDULED:
        if record.feasible_nodes <= 1:
            return f"{pod} -> {record.node}: {'the only one that fits' if record.evaluated_nodes > 1 else 'the only one examined'}"
        if not record.ties:
            return f"{pod} -> {record.node}: chosen from {record.feasible_nodes:,}"
        ahead = f", {margin:,} ahead" if margin is not None else ""
        equals = f", {record.ties:,} equal" if record.ties > 1 else ""
        return f"{pod} -> {record.node}: best of {record.feasible_nodes:,}{equals}{ahead}"
    if record.nominated_node:
        victims = f", preempting {format_count(len(record.victims), 'pod')}" if record.victims else ""
        return f"{pod} waits for room on {record.nominated_node}{victims}"
    why = short_reasons(record.message) or record.outcome.name.lower()
    state = {Outcome.UNSCHEDULABLE: "is pending", Outcome.ERROR: "failed"}.get(record.outcome, "was skipped")
    return f"{pod} {state}: {why}"


def attempt_difference(before: Attempt | None, after: Attempt) -> str:
    """Return how an attempt differs from the previous one; "" for the first attempt, or if they do not differ."""
    if before is None:
        return ""
    differences = []
    fewer = before.feasible_nodes - after.feasible_nodes
    if fewer:
        fit = "fit" if abs(fewer) > 1 else "fits"
        differences.append(f"{format_count(abs(fewer), 'node')} {'fewer' if fewer > 0 else 'more'} {fit}")
    if after.evaluated_nodes != before.evaluated_nodes:
        differences.append(f"{after.evaluated_nodes:,} nodes examined instead of {before.evaluated_nodes:,}")
    if after.outcome != before.outcome:
        differences.append(f"{after.outcome} instead of {before.outcome}")
    elif not differences and after.message != before.message:
        differences.append(f"now {short_reasons(after.message)}")
    return ", ".join(differences)
