"""Explain one pod of a run: its node or why it waits, the outcome of every attempt, and the plugin results of one attempt."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.analysis.decision_detail import attempt_detail, node_detail, ranked_rows
from bayplan.analysis.explanation import Attempt, EventLine, Explanation
from bayplan.analysis.preemption_detail import preemption_report
from bayplan.analysis.run_source import RunSource
from bayplan.analysis.verdict import pod_verdict, waiting_message_of
from bayplan.base.errors import InputError
from bayplan.engine.decision import Decision, Outcome, Record
from bayplan.engine.records import RecordLevel
from bayplan.sim.result import PodTimeline

BEST_NODES = 5
"""Default number of nodes in the table of scores."""

FULL_RECORDS_HINT = (
    "this run has no full records, so nothing is known about single nodes; "
    "run it again with --records full, or give explain the input files"
)

NOT_KEPT_HINT = (
    "the full record of this attempt was dropped, and only its summary is left; retry the pod to get a new one"
)


def explain(
    source: RunSource,
    lives: Sequence[PodTimeline],
    *,
    attempt: int | None = None,
    node: str = "",
    best: int = BEST_NODES,
) -> Explanation:
    """Explain a pod.

    Args:
        source: the run.
        lives: the timelines of one pod, see `bayplan.analysis.pod_lookup.find_pods`; the last one is explained.
        attempt: the number of the attempt to show in full; by default the last one.
        node: a node for which to show the results of all plugins; "" for none.
        best: the maximum number of nodes whose scores are compared.

    Raises:
        InputError: the attempt or node does not exist.
    """
    pod = lives[-1]
    attempts = attempts_of(source, pod, lives)
    chosen = _chosen_attempt(attempts, attempt, pod)
    detail = one_node = None
    decision = None if chosen is None else _decision(source, chosen.number)
    if chosen is not None and decision is not None:
        rows = ranked_rows(decision)
        detail = attempt_detail(source, chosen, decision, rows, pod, best)
        if node:
            one_node = node_detail(source, chosen, decision, rows, pod, node)
    start_ns = source.start_ns
    return Explanation(
        verdict=pod_verdict(source, pod, attempts),
        message=waiting_message_of(pod),
        pod=pod.key,
        workload=pod.workload,
        priority=pod.priority,
        scheduler_name=pod.scheduler_name,
        fate=pod.fate.value,
        node=pod.node,
        imported=pod.imported,
        arrived_ns=pod.arrived_ns - start_ns,
        bound_ns=None if pod.bound_ns is None else pod.bound_ns - start_ns,
        ended_ns=None if pod.ended_ns is None else pod.ended_ns - start_ns,
        attempts=attempts,
        detail=detail,
        node_detail=one_node,
        preemption=preemption_report(source, attempts, chosen),
        events=_events(source, pod, lives),
        notes=_notes(source, lives, chosen, decision),
    )


def _notes(
    source: RunSource, lives: Sequence[PodTimeline], chosen: Attempt | None, decision: Decision | None
) -> list[str]:
    """Return what limits the explanation: earlier pods of this name, and records that are missing."""
    notes = []
    if len(lives) > 1:
        notes.append(f"{len(lives)} pods had this name, one after the other; this is about the last one")
    if chosen is not None and decision is None:
        skipped = chosen.outcome == Outcome.SKIPPED.name.lower()
        if source.records[chosen.number].frame >= 0:
            notes.append(NOT_KEPT_HINT)
        else:
            notes.append("no plugin ran in this attempt" if _has_full(source) or skipped else FULL_RECORDS_HINT)
    if source.level is RecordLevel.OFF:
        notes.append("this run was not recorded; run it again with --records full")
    return notes


def attempts_of(source: RunSource, pod: PodTimeline, lives: Sequence[PodTimeline]) -> list[Attempt]:
    """Return the attempts of one of the pods that had the same name: those before the next of them arrived."""
    later = [life.arrived_ns for life in lives if life.arrived_ns > pod.arrived_ns]
    end_ns = min(later, default=source.end_ns + 1)
    return [
        _attempt(number, record, source.start_ns)
        for number, record in source.records_of(pod.key)
        if pod.arrived_ns <= record.time_ns < end_ns
    ]


def _attempt(number: int, record: Record, start_ns: int) -> Attempt:
    return Attempt(
        number=number,
        attempt=record.attempt,
        time_ns=record.time_ns - start_ns,
        outcome=record.outcome.name.lower(),
        node=record.node,
        feasible_nodes=record.feasible_nodes,
        evaluated_nodes=record.evaluated_nodes,
        ties=record.ties,
        total=record.total,
        message=record.message,
        nominated_node=record.nominated_node,
        victims=list(record.victims),
    )


def _decision(source: RunSource, number: int) -> Decision | None:
    """Return the full record of a cycle; None if there is none, or if a server has dropped it."""
    if source.records[number].frame < 0:
        return None
    try:
        return source.decision(number)
    except LookupError:
        return None


def _chosen_attempt(attempts: Sequence[Attempt], wanted: int | None, pod: PodTimeline) -> Attempt | None:
    if wanted is None:
        return attempts[-1] if attempts else None
    for each in attempts:
        if each.attempt == wanted:
            return each
    if attempts:
        numbers = [f"{each.attempt:,}" for each in attempts]
        have = ", ".join(numbers) if len(numbers) <= 12 else f"{', '.join(numbers[:6])}, ..., {numbers[-1]}"
        have = f"one of {have}" if len(numbers) > 1 else have
    else:
        have = "none: the pod was never scheduled"
    raise InputError(f"--attempt of {pod.key}", got=str(wanted), wanted=have)


def _has_full(source: RunSource) -> bool:
    return source.level is RecordLevel.FULL


def _events(source: RunSource, pod: PodTimeline, lives: Sequence[PodTimeline]) -> list[EventLine]:
    start_ns = source.start_ns
    return [
        EventLine(
            type=event.type,
            reason=event.reason,
            note=event.note,
            first_ns=event.first_ns - start_ns,
            last_ns=event.last_ns - start_ns,
            count=event.count,
        )
        for event in source.events
        if event.pod == pod.key and (len(lives) == 1 or event.last_ns >= pod.arrived_ns)
    ]
