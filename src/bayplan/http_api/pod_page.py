"""The page of one pod: its verdict, attempts, events and entry in the queue. Runs on a worker thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus
from typing import Protocol

import yaml
from msgspec.structs import asdict

from bayplan.analysis.decision_detail import rejections_of
from bayplan.analysis.explain import BEST_NODES, attempts_of, explain
from bayplan.analysis.explanation import Attempt, Explanation, PreemptionReport
from bayplan.analysis.preemption_detail import preemption_report
from bayplan.analysis.run_source import RunSource
from bayplan.analysis.verdict import attempt_difference, pod_verdict, waiting_message_of
from bayplan.answers.current_source import CurrentSource
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import format_instant
from bayplan.engine.decision import Decision
from bayplan.http_api.contract.decisions import AttemptSummary
from bayplan.http_api.contract.pods import EventRow, NodesRejected, PodChanged, PodFacts
from bayplan.http_api.contract.pods import PodPage as PodPageAnswer
from bayplan.http_api.decision_summaries import DecisionSummaries
from bayplan.http_api.errors import RequestError
from bayplan.http_api.pod_table import PodStatus, status_of
from bayplan.http_api.query import Deadline
from bayplan.http_api.queue_view import QueueCopy, queue_row
from bayplan.objects.pod import Pod
from bayplan.sim.result import PodTimeline, SimulatedEvent


class PodSource(RunSource, Protocol):
    """A run that looks up the timelines of a pod by key."""

    def timelines_of(self, key: str) -> list[PodTimeline]:
        """Return the timelines of all pods that had this key, the newest last."""
        ...


class TrialSource(CurrentSource):
    """A pod with the decision of a trial, as a source of explanations."""

    def timelines_of(self, key: str) -> list[PodTimeline]:
        """Return the timelines of all pods that had this key, the newest last."""
        return [life for life in self.pods if life.key == key]


def timelines_of(source: PodSource, key: str) -> list[PodTimeline]:
    """Return the timelines of a pod, the newest last.

    Raises:
        RequestError: there is neither such a pod nor a recently deleted one.
    """
    lives = source.timelines_of(key)
    if not lives:
        raise RequestError(HTTPStatus.NOT_FOUND, "pod", got=f"'{key}'", wanted="an existing or recently deleted pod")
    return lives


def chosen_attempt(attempts: Sequence[Attempt], text: str, key: str) -> Attempt | None:
    """Return the attempt for a path segment, which is a number or ``latest``; None for ``latest`` if the pod has no attempts.

    Raises:
        RequestError: the attempt does not exist, or its record is no longer in memory.
    """
    if text == "latest":
        return attempts[-1] if attempts else None
    for attempt in attempts:
        if str(attempt.attempt) == text:
            return attempt
    have = f"{attempts[0].attempt:,} to {attempts[-1].attempt:,}, or latest" if attempts else "latest"
    raise RequestError(HTTPStatus.NOT_FOUND, f"attempt of {key}", got=f"'{text}'", wanted=have)


class PodPage:
    """Creates the page of one pod, and its parts.

    Args:
        source: the run.
        key: ``namespace/name``.
        summaries: the summaries of decisions.

    Raises:
        RequestError: there is no such pod.
    """

    def __init__(self, source: PodSource, key: str, summaries: DecisionSummaries) -> None:
        self.source, self.key = source, key
        self._summaries = summaries
        self.lives = timelines_of(source, key)
        self.life = self.lives[-1]
        self.attempts = attempts_of(source, self.life, self.lives)

    def document(self, queue: QueueCopy | None, manifest: dict[str, object] | None) -> PodPageAnswer:
        """Return the whole page.

        Args:
            queue: a copy of the queue; None if the engine does not respond.
            manifest: the pod's document, or None if the pod has been deleted.
        """
        life, source = self.life, self.source
        verdict = pod_verdict(source, life, self.attempts)
        waiting = None if queue is None else queue.by_key.get(self.key)
        text = "" if manifest is None else yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)
        return PodPageAnswer(
            summary=verdict,
            short=verdict.removeprefix(f"{life.key} "),
            message=waiting_message_of(life),
            status="deleted" if manifest is None else _status(life),
            deleted=manifest is None,
            pod=_facts(source, life),
            attempts=self.attempt_list(),
            rejections=self._rejections(),
            events=[event_row(event) for event in source.events],
            queue=None if waiting is None or queue is None else queue_row(queue, waiting, 0),
            manifest=manifest,
            manifest_text=text,
        )

    def outline(self, version: str) -> PodChanged:
        """Return what to show until the page has been fetched. `version`: the pod's resource version; "" for a deleted pod."""
        verdict = pod_verdict(self.source, self.life, self.attempts)
        return PodChanged(
            version=f"{version}.{len(self.attempts)}",
            exists=True,
            deleted=not version,
            summary=verdict,
            short=verdict.removeprefix(f"{self.life.key} "),
            status=_status(self.life),
            node=self.life.node,
            attempts=len(self.attempts),
        )

    def attempt_list(self) -> list[AttemptSummary]:
        """Return all attempts in order, each with its difference from the previous one."""
        deadline, before = Deadline(0.05), None
        found = []
        for attempt in self.attempts:
            record = self.source.records[attempt.number]
            summary = self._summaries.summary(attempt.number, record, deadline)
            found.append(AttemptSummary(**asdict(summary), difference=attempt_difference(before, attempt)))
            before = attempt
        return found

    def _rejections(self) -> list[NodesRejected]:
        """Count the nodes that each plugin rejected with each message in the newest attempt, the largest number first.

        A plugin may reject nodes with the same message for good and until pods are gone: these are counted together.
        """
        decision = self.decision(self.attempts[-1]) if self.attempts else None
        groups: Counter[tuple[str, str]] = Counter()
        for each in rejections_of(decision) if decision is not None else ():
            groups[each.plugin, ", ".join(each.reasons) or each.code] += len(each.nodes)
        return [NodesRejected(text=text, plugin=plugin, nodes=count) for (plugin, text), count in groups.most_common()]

    def decision(self, attempt: Attempt) -> Decision | None:
        """Return the full record of an attempt; None if there is none."""
        if self.source.records[attempt.number].frame < 0:
            return None
        try:
            return self.source.decision(attempt.number)
        except LookupError:
            return None

    def recorded(self, attempt: Attempt) -> tuple[Attempt, Decision | None]:
        """Return the record of an attempt that has the plugin results for nodes, and its decision; None if there is none.

        A rejection after the choice of a node (Reserve, Permit, PreBind, Bind) has a separate record with the same
        attempt number and no matrix. In this case, return the record before it.
        """
        same = [each for each in self.attempts if each.attempt == attempt.attempt and each.number <= attempt.number]
        for each in reversed(same):
            decision = self.decision(each)
            if decision is not None:
                return each, decision
        return attempt, None

    def preemption(self, text: str) -> PreemptionReport | None:
        """Return the report on the search for victims in an attempt, or in the last attempt before it that nominated a node."""
        return preemption_report(self.source, self.attempts, chosen_attempt(self.attempts, text, self.key))

    def explanation(self, attempt: int | None, node: str, best: int = BEST_NODES) -> Explanation:
        """Return the explanation of the pod, as printed by ``bayplan explain --json``.

        Raises:
            RequestError: there is no such attempt, or no such node.
        """
        try:
            return explain(self.source, self.lives, attempt=attempt, node=node, best=best)
        except InputError as problem:
            what = {"--node": "node"}.get(problem.what, problem.what.removeprefix("--"))
            raise RequestError(
                HTTPStatus.NOT_FOUND, what, got=problem.got, wanted=problem.wanted, hint=problem.hint
            ) from problem


def event_row(event: SimulatedEvent) -> EventRow:
    """Return an event as a row of a page."""
    return EventRow(
        type=event.type,
        reason=event.reason,
        note=event.note,
        first_at=format_instant(event.first_ns),
        last_at=format_instant(event.last_ns),
        count=event.count,
    )


def _status(life: PodTimeline) -> str:
    return status_of(life.pod).text if life.pod is not None else PodStatus.WAITING.text


def _facts(source: PodSource, life: PodTimeline) -> PodFacts:
    pod = life.pod if life.pod is not None else Pod()
    requests = source.requests_of(life)
    return PodFacts(
        namespace=life.key.partition("/")[0],
        name=life.key.partition("/")[2],
        uid=life.uid,
        workload=life.workload,
        priority=life.priority,
        priority_class=pod.spec.priority_class_name,
        scheduler_name=life.scheduler_name,
        qos=pod.status.qos_class,
        phase=pod.status.phase,
        cpu=requests.get("cpu", 0),
        memory=requests.get("memory", 0),
        requests=dict(requests),
        node=life.node,
        nominated_node=pod.status.nominated_node_name,
        imported=life.imported,
        created_at=pod.metadata.creation_timestamp,
        bound_at=None if life.bound_ns is None else format_instant(life.bound_ns),
        ended_at=None if life.ended_ns is None else format_instant(life.ended_ns),
        labels=dict(pod.metadata.labels),
    )
