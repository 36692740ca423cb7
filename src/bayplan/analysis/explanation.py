"""What an explanation holds: plain data, which is also what ``bayplan explain --json`` prints.

`bayplan.analysis.explain` makes explanations, `bayplan.analysis.explanation_text` shows them.
"""

from __future__ import annotations

import msgspec


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """A change that gets the pod placed, tried by scheduling in a fork of the cluster (`bayplan.answers.unblock`).

    Attributes:
        kind: of change, e.g. ``add node``. text: the change.
        nodes: where the pod then goes.
    """

    kind: str
    text: str
    nodes: list[str]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One cycle of the pod.

    Attributes:
        number: of the decision in the run. attempt: the how manieth of the pod.
        time_ns: when, since the start of the run.
        outcome, node, feasible_nodes, evaluated_nodes, ties, total, message, nominated_node, victims: as in `Record`.
    """

    number: int
    attempt: int
    time_ns: int
    outcome: str
    node: str
    feasible_nodes: int
    evaluated_nodes: int
    ties: int
    total: int
    message: str
    nominated_node: str
    victims: list[str]


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that were rejected in the same words by the same plugin.

    It was the first to reject them; with alwaysCheckAllPredicates any that did, so that a node may stand in several groups.

    Attributes:
        plugin: who; "" where several PreFilter plugins did together.
        code: Unschedulable, UnschedulableAndUnresolvable (preemption can't help) or Error.
        reasons: upstream's words. nodes: the nodes, in row order.
    """

    plugin: str
    code: str
    reasons: list[str]
    nodes: list[str]


class PluginScore(msgspec.Struct, frozen=True, kw_only=True):
    """What one plugin gave one node: raw, normalised to 0..100, and that times its weight."""

    plugin: str
    weight: int
    raw: int
    normalized: int
    weighted: int


class NodeScore(msgspec.Struct, frozen=True, kw_only=True):
    """A feasible node with its scores.

    Attributes:
        rank: 1 for the best; equals share a rank.
        tied: whether it is in the tie set. chosen: whether the pod went there.
    """

    node: str
    rank: int
    total: int
    tied: bool
    chosen: bool
    scores: list[PluginScore]


class Advantage(msgspec.Struct, frozen=True, kw_only=True):
    """By how much one plugin preferred the chosen node to the runner-up, in weighted points; below 0: it preferred the other."""

    plugin: str
    points: int


class ExtenderReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an HTTP extender did in an attempt. Whom it rejected and what it scored stands with the plugins, under its name.

    Attributes:
        extender: its URL prefix.
        asked, rejected: how many nodes its filter was asked about, and how many it rejected.
        scored: whether it gave scores.
        filter_error: why its filter failed, or "". ignored: whether the attempt went on all the same.
        prioritize_error: why it gave no scores, which never ends an attempt; or "".
    """

    extender: str
    asked: int
    rejected: int
    scored: bool
    filter_error: str
    ignored: bool
    prioritize_error: str


class Victim(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that would have to go; `started_ns` is since the start of the run, None for one that has not started."""

    pod: str
    priority: int
    started_ns: int | None


class CandidateReport(msgspec.Struct, frozen=True, kw_only=True):
    """A node on which preemption could have made room.

    Attributes:
        node: its name. chosen: whether it was taken.
        victims: the most important first. pdb_violations: how many of them a disruption budget protects.
        priority_sum: of the victims.
        lost_by: the criterion by which others were better; "" for the best, of which the seed chose one.
    """

    node: str
    chosen: bool
    victims: list[Victim]
    pdb_violations: int
    priority_sum: int
    lost_by: str


class PreemptionRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes on which a pod would not fit even without all pods of lower priority; of many only some are named.

    Attributes:
        plugin, code, reasons: as in `Rejection`. nodes: names. count: how many there are.
    """

    plugin: str
    code: str
    reasons: list[str]
    nodes: list[str]
    count: int


class PreemptionReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a search for pods to preempt went.

    Attributes:
        attempt: the attempt that it belongs to. chosen: the node, or "".
        candidates: where room could have been made, the best first; of many only the first ones. candidate_count: how many.
        refusals: where the pod would not fit in any case; each reason once.
        struck_out: candidates that extenders took off the list.
        untried: at how many nodes nobody looked, as enough candidates were found.
        not_helpful: on how many nodes no pod's leaving would help (UnschedulableAndUnresolvable).
    """

    attempt: int
    chosen: str
    candidates: list[CandidateReport]
    candidate_count: int
    refusals: list[PreemptionRefusal]
    struck_out: list[str]
    untried: int
    not_helpful: int


class AttemptDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What the plugins said in one attempt.

    Attributes:
        attempt: which one.
        nodes: nodes in the cluster then. examined: those that filters looked at. feasible: those that passed.
        ended_early: whether the search ended before all nodes were looked at (percentageOfNodesToScore).
        tried_alone: the node that was tried first and alone because the pod was nominated to it, or "".
        rejections: the other nodes, the largest group first. rejected_by_pre_filter: whether PreFilter ended the attempt.
        scored: whether nodes were scored; a single feasible node is not.
        best: the best nodes. tie_set: the names of the best of all.
        runner_up: the best node outside of the tie set, or "". margin: by how many points it was beaten.
        advantages: where these points come from, the largest first; plugins that made no difference are left out.
        remedies: what would get the pod placed, if that was asked for.
        extenders: what HTTP extenders did, in the order in which they were asked.
    """

    attempt: Attempt
    nodes: int
    examined: int
    feasible: int
    ended_early: bool
    tried_alone: str
    rejections: list[Rejection]
    rejected_by_pre_filter: bool
    scored: bool
    best: list[NodeScore]
    tie_set: list[str]
    runner_up: str
    margin: int
    advantages: list[Advantage]
    remedies: list[Remedy]
    extenders: list[ExtenderReport]


class PluginVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one filter said about one node: Success, or another code with reasons.

    `change` is the smallest change that would turn a rejection, if that was asked for.
    """

    plugin: str
    code: str
    reasons: list[str]
    change: str = ""


class NodeDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One node in one attempt, through all plugins.

    Attributes:
        node: its name. fate: what became of it, in one sentence.
        verdicts: what every filter says, also those behind the first that rejected it; empty where PreFilter left the node out.
        score: its scores, where it was feasible and nodes were scored.
        advantages: how the chosen node beat it (or it the runner-up, if it was chosen).
        free: what was free of the resources that the pod asks for, just before. requested: what the pod asks for.
    """

    node: str
    fate: str
    verdicts: list[PluginVerdict]
    score: NodeScore | None
    advantages: list[Advantage]
    free: dict[str, int]
    requested: dict[str, int]


class EventLine(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes event about the pod; times since the start of the run."""

    type: str
    reason: str
    note: str
    first_ns: int
    last_ns: int
    count: int


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """All about one pod of a run. Times are nanoseconds of virtual time since the start of the run.

    Attributes:
        verdict: where the pod is or why it waits, in one sentence.
        message: of a pod that waits, what the scheduler said in upstream's words; else "".
        pod, workload, priority, scheduler_name, fate, node, imported: as in `PodTimeline`.
        arrived_ns, bound_ns, ended_ns: its life.
        attempts: all of them, in order.
        detail: one of them in full; None where there is none, or no full record.
        node_detail: one node of it, if asked for.
        preemption: the search for victims in that attempt, or else in the one before it that found some.
        events: Kubernetes events.
        notes: what could not be told, and how to learn it.
        assumptions: what the explanation takes for granted.
    """

    verdict: str
    message: str
    pod: str
    workload: str
    priority: int
    scheduler_name: str
    fate: str
    node: str
    imported: bool
    arrived_ns: int
    bound_ns: int | None
    ended_ns: int | None
    attempts: list[Attempt]
    detail: AttemptDetail | None
    node_detail: NodeDetail | None
    preemption: PreemptionReport | None
    events: list[EventLine]
    notes: list[str]
    assumptions: list[str] = []

    def as_dict(self) -> dict[str, object]:
        """Return the explanation as plain data."""
        plain: dict[str, object] = msgspec.to_builtins(self)
        return plain
