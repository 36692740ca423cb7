"""The rows of the table of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from bayplan.analysis.pending import NOT_TRIED
from bayplan.analysis.reasons import short_reasons
from bayplan.analysis.verdict import unattended_text
from bayplan.base.go_text.times import format_instant
from bayplan.engine.decision import Outcome
from bayplan.http_api.contract.pods import PodRow
from bayplan.http_api.decision_summaries import DecisionSummaries
from bayplan.http_api.pod_table import PodColumns, PodStatus
from bayplan.http_api.query import Deadline
from bayplan.http_api.server_context import Decisions
from bayplan.http_api.waiting_causes import WaitingCause, WaitingCauses


class PodRows:
    """Creates the rows of the table of pods. For any thread.

    Args:
        decisions: the records.
        summaries: the summaries of decisions.

    Attributes:
        causes: finds why pods wait.
    """

    def __init__(self, decisions: Decisions, summaries: DecisionSummaries) -> None:
        self._decisions = decisions
        self._summaries = summaries
        self.causes = WaitingCauses()

    def rows(
        self,
        pods: PodColumns,
        rows: Sequence[int],
        deadline: Deadline,
        causes: Mapping[int, WaitingCause] = MappingProxyType({}),
    ) -> list[PodRow]:
        """Return the table rows of some pods.

        Args:
            pods: all pods.
            rows: the rows of the pods in `pods`.
            deadline: when to stop looking up margins; later rows have none.
            causes: why pods wait, by row. A pod without a cause gets the reasons in its message.
        """
        return [self._row(pods, row, deadline, causes.get(row)) for row in rows]

    def _row(self, pods: PodColumns, row: int, deadline: Deadline, cause: WaitingCause | None) -> PodRow:
        life = pods.lives[row]
        assert life is not None
        namespace, _, name = pods.keys[row].partition("/")
        status = PodStatus(int(pods.status[row]))
        why, runner_up = self._why(pods, row, status, deadline) if cause is None else (cause.text, "")
        return PodRow(
            namespace=namespace,
            name=name,
            status=status.text,
            node=pods.nodes[int(pods.node[row])],
            why=why,
            runner_up=runner_up,
            cpu=int(pods.cpu[row]),
            memory=int(pods.memory[row]),
            priority=int(pods.priority[row]),
            attempts=int(pods.attempts[row]),
            created_at=format_instant(int(pods.created_ns[row])),
            workload=life.workload,
            scheduler_name=life.scheduler_name,
        )

    def _why(self, pods: PodColumns, row: int, status: PodStatus, deadline: Deadline) -> tuple[str, str]:
        """Return why a pod waits, or how its node compared with the others, and the runner-up that the text names."""
        life = pods.lives[row]
        assert life is not None
        if status in (PodStatus.WAITING, PodStatus.GATED):
            reasons = short_reasons(pods.messages[int(pods.message[row])])
            if not reasons and pods.is_unattended(life.scheduler_name):
                return unattended_text(life.scheduler_name), ""
            return reasons or ("held back by scheduling gates" if status is PodStatus.GATED else NOT_TRIED), ""
        text, runner_up = self._margin(pods.keys[row], life.node, deadline)
        return text or ("already had a node when it was loaded" if life.imported else ""), runner_up

    def _margin(self, key: str, node: str, deadline: Deadline) -> tuple[str, str]:
        for number in reversed(self._decisions.numbers_of(key)):
            try:
                record = self._decisions[number]
            except LookupError:
                break
            if record.outcome is not Outcome.SCHEDULED or record.node != node:
                continue
            if record.feasible_nodes == 1:
                return ("the only node that fits" if record.evaluated_nodes > 1 else "the only node examined"), ""
            margin = self._summaries.margin(number, record, deadline)
            if margin.points is not None:
                return f"{margin.points:,} ahead of {margin.runner_up}", margin.runner_up
            if record.ties > 1:
                return f"one of {record.ties:,} equal nodes", ""
            return f"best of {record.feasible_nodes:,} nodes", ""
        return "", ""
