"""How a search for pods to preempt went: the candidates, why one of them was taken, and why other nodes are none.

The facts are those of the decision record (`bayplan.framework.preemption.account`): nothing is searched again.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.analysis.explanation import Attempt, CandidateReport, PreemptionReport, Rejection, Victim
from bayplan.analysis.run_source import RunSource
from bayplan.framework.preemption.account import CRITERIA, CandidateAccount, PreemptionAccount
from bayplan.framework.preemption.importance import JUST_STARTED_NS


def preemption_report(source: RunSource, attempts: Sequence[Attempt], shown: Attempt | None) -> PreemptionReport | None:
    """Return the search of the attempt that is shown; where it had none, of the last one before it that made room.

    Args:
        source: the run. attempts: of one life of a pod. shown: the attempt that is told in full.
    """
    if shown is None:
        return None
    account = _account(source, shown)
    if account is not None:
        return _report(account, shown, source.start_ns)
    for attempt in reversed(attempts):
        if attempt.number < shown.number and attempt.nominated_node:
            account = _account(source, attempt)
            return None if account is None else _report(account, attempt, source.start_ns)
    return None


def _account(source: RunSource, attempt: Attempt) -> PreemptionAccount | None:
    return source.decision(attempt.number).preemption if source.records[attempt.number].frame >= 0 else None


def _report(account: PreemptionAccount, attempt: Attempt, start_ns: int) -> PreemptionReport:
    def rank(candidate: CandidateAccount) -> tuple[bool, int]:
        """Sort the chosen one first, then its equals, then those that lost late."""
        lost = CRITERIA.index(candidate.lost_by) if candidate.lost_by else len(CRITERIA)
        return (candidate.node != account.chosen, -lost)

    return PreemptionReport(
        attempt=attempt.attempt,
        chosen=account.chosen,
        candidates=[_candidate(each, account, start_ns) for each in sorted(account.candidates, key=rank)],
        refusals=[
            Rejection(plugin=status.plugin, code=status.code.text, reasons=list(status.reasons), nodes=list(nodes))
            for status, nodes in account.refusals
        ],
        struck_out=list(account.struck_out),
        untried=list(account.untried),
        not_helpful=account.others,
    )


def _candidate(candidate: CandidateAccount, account: PreemptionAccount, start_ns: int) -> CandidateReport:
    return CandidateReport(
        node=candidate.node,
        chosen=candidate.node == account.chosen,
        victims=[
            Victim(
                pod=victim.pod,
                priority=victim.priority,
                started_ns=None if victim.start_ns == JUST_STARTED_NS else victim.start_ns - start_ns,
            )
            for victim in candidate.victims
        ],
        pdb_violations=candidate.pdb_violations,
        priority_sum=candidate.priority_sum,
        lost_by=candidate.lost_by,
    )
