"""The report on a search for pods to preempt: the candidates, why one was selected, and why other nodes are not candidates.

The facts come from the decision record (`bayplan.framework.preemption.account`); the search does not run again.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.analysis.explanation import Attempt, CandidateReport, PreemptionRefusal, PreemptionReport, Victim
from bayplan.analysis.run_source import RunSource
from bayplan.framework.preemption.account import CandidateAccount, PreemptionAccount
from bayplan.state.pod_info import JUST_STARTED_NS


def preemption_report(source: RunSource, attempts: Sequence[Attempt], shown: Attempt | None) -> PreemptionReport | None:
    """Return the report on the preemption of the shown attempt, or of the last attempt before it that nominated a node.

    None if there is no such attempt, or it has no full record.

    Args:
        source: the run.
        attempts: the attempts of one pod from creation to deletion.
        shown: the attempt that is shown in full, or None.
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
    if source.records[attempt.number].frame < 0:
        return None
    try:
        return source.decision(attempt.number).preemption
    except LookupError:  # A server keeps only the newest full records.
        return None


def _report(account: PreemptionAccount, attempt: Attempt, start_ns: int) -> PreemptionReport:
    return PreemptionReport(
        attempt=attempt.attempt,
        chosen=account.chosen,
        candidates=[_candidate(each, account, start_ns) for each in account.candidates],
        candidate_count=account.candidate_count,
        refusals=[
            PreemptionRefusal(
                plugin=refusal.status.plugin,
                code=refusal.status.code.text,
                reasons=list(refusal.status.reasons),
                nodes=list(refusal.nodes),
                count=refusal.count,
            )
            for refusal in account.refusals
        ],
        struck_out=list(account.struck_out),
        untried=account.untried,
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
