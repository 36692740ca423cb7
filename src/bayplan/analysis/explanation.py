"""The data of an explanation: plain structures, which ``bayplan explain --json`` prints.

`bayplan.analysis.explain` creates explanations, `bayplan.analysis.explanation_text` renders them.
"""

from __future__ import annotations

import msgspec


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """A change that gets the pod placed, tried by scheduling in a copy of the cluster (`bayplan.answers.unblock`).

    Attributes:
        kind: the kind of change, e.g. ``add node``.
        text: the change.
        nodes: the nodes that the pod is placed on.
    """

    kind: str
    text: str
    nodes: list[str]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to schedule the pod.

    Attributes:
        number: the index of the decision in the run.
        attempt: the 1-based number among the pod's attempts.
        time_ns: the time since the start of the run.
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
    """Nodes that the same plugin rejected with the same message.

    A node is in the group of the first plugin that rejected it. With alwaysCheckAllPredicates, it is in the groups of
    all plugins that rejected it.

    Attributes:
        plugin: the plugin that rejected the nodes; "" if several PreFilter plugins did so together.
        code: Unschedulable, UnschedulableAndUnresolvable (preemption can't help) or Error.
        reasons: the plugin's reasons, in upstream's words.
        nodes: the names of the nodes, in row order.
    """

    plugin: str
    code: str
    reasons: list[str]
    nodes: list[str]


class PluginScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one node by one plugin: raw, normalised to 0..100, and weighted."""

    plugin: str
    weight: int
    raw: int
    normalized: int
    weighted: int


class NodeScore(msgspec.Struct, frozen=True, kw_only=True):
    """A feasible node with its scores.

    Attributes:
        rank: 1 for the best; nodes with equal totals share a rank.
        tied: whether the node is in the tie set.
        chosen: whether the pod was placed on the node.
    """

    node: str
    rank: int
    total: int
    tied: bool
    chosen: bool
    scores: list[PluginScore]


class Advantage(msgspec.Struct, frozen=True, kw_only=True):
    """One plugin's weighted score of the chosen node, minus its weighted score of another node, usually the runner-up.

    Negative if the plugin preferred the other node.
    """

    plugin: str
    points: int


class ExtenderReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an HTTP extender in an attempt. Its rejections and scores are listed like a plugin's, under its name.

    Attributes:
        extender: the extender's URL prefix.
        asked, rejected: the number of nodes sent to its filter, and the number that it rejected.
        scored: whether it returned scores.
        filter_error: why its filter failed, or "".
        ignored: whether the attempt continued despite the failure.
        prioritize_error: why it returned no scores, or ""; this never ends an attempt.
    """

    extender: str
    asked: int
    rejected: int
    scored: bool
    filter_error: str
    ignored: bool
    prioritize_error: str


class Victim(msgspec.Struct, frozen=True, kw_only=True):
    """A pod to preempt. `started_ns` is the time since the start of the run; None if the pod has not started."""

    pod: str
    priority: int
    started_ns: int | None


class CandidateReport(msgspec.Struct, frozen=True, kw_only=True):
    """A node on which preemption could have made room.

    Attributes:
        node: the node's name.
        chosen: whether the node was selected.
        victims: the pods to preempt, the most important first.
        pdb_violations: the number of victims that a disruption budget protects.
        priority_sum: the sum of the victims' priorities.
        lost_by: the first criterion in which the best candidates were better; "" for the best candidates, among which the
        choice was random.
    """

    node: str
    chosen: bool
    victims: list[Victim]
    pdb_violations: int
    priority_sum: int
    lost_by: str


class PreemptionRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes on which a pod would not fit even without any pod of lower priority.

    Attributes:
        plugin, code, reasons: as in `Rejection`.
        nodes: the names of the nodes; only some of them if there are many.
        count: the number of nodes.
    """

    plugin: str
    code: str
    reasons: list[str]
    nodes: list[str]
    count: int


class PreemptionReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one search for pods to preempt.

    Attributes:
        attempt: the number of the attempt that the search belongs to.
        chosen: the node that was selected, or "".
        candidates: the nodes on which preemption could make room, the best first; truncated if there are many.
        candidate_count: the number of candidates.
        refusals: nodes on which the pod would not fit even without any pod of lower priority, grouped by reason.
        struck_out: the candidates that extenders removed.
        untried: the number of nodes that were not examined because enough candidates were found.
        not_helpful: the number of nodes on which preemption cannot help (UnschedulableAndUnresolvable).
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
    """The plugin results of one attempt.

    Attributes:
        attempt: the attempt.
        nodes: the number of nodes in the cluster at that time.
        examined: the number of nodes that filters ran on.
        feasible: the number of nodes that passed all filters.
        ended_early: whether the search ended before all nodes were evaluated (percentageOfNodesToScore).
        tried_alone: the nominated node, if it was the only node tried; else "".
        rejections: the nodes that did not pass, grouped by plugin and message, the largest group first.
        rejected_by_pre_filter: whether PreFilter ended the attempt.
        scored: whether nodes were scored; a single feasible node is not.
        best: the best nodes, with their scores.
        tie_set: the names of the nodes that share the best score.
        runner_up: the best node outside the tie set, or "".
        margin: the total of the chosen node minus that of the runner-up.
        advantages: the plugins' contributions to the margin, the largest first; plugins that contribute 0 are left out.
        remedies: the changes that would get the pod placed, if requested.
        extenders: the results of HTTP extenders, in the order of their calls.
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
    """The result of one filter for one node: Success, or another code with reasons.

    `change` is the smallest change that would turn a rejection into success, if requested.
    """

    plugin: str
    code: str
    reasons: list[str]
    change: str = ""


class NodeDetail(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all plugins for one node in one attempt.

    Attributes:
        node: the node's name.
        fate: the outcome for this node, in one sentence.
        verdicts: the results of all filters, including those after the first rejection; empty if PreFilter excluded the
            node.
        score: the node's scores, if it was feasible and nodes were scored.
        advantages: the chosen node's score advantages over this node; for the chosen node, over the runner-up.
        free: free amounts of the requested resources just before the attempt.
        requested: the pod's requests.
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
    """The explanation of one pod of a run. Times are nanoseconds of virtual time since the start of the run.

    Attributes:
        verdict: the pod's node or why it waits, in one sentence.
        message: the scheduler's message about a waiting pod in upstream's words, except that a message about an invalid
            score also names the node; "" if the pod does not wait.
        reported_at: the time at which `message` was written to the condition PodScheduled, in RFC 3339; "" if the
            message comes from an attempt of this run.
        message_now: the message of the explained attempt, if it differs from the reported one; else "".
        pod, workload, priority, scheduler_name, fate, node, imported: as in `PodTimeline`.
        arrived_ns, bound_ns, ended_ns: the times at which the pod arrived, was bound, and ended; None if it was not.
        attempts: all attempts, in order.
        detail: the requested attempt in full; None without attempts or without a full record.
        node_detail: the results for one node in this attempt, if requested.
        preemption: the search for victims in that attempt, or else in the last attempt before it that found some.
        events: the Kubernetes events about the pod.
        notes: what is missing from the explanation, and how to get it.
        assumptions: what the explanation assumes, in sentences.
        age_ns: the age of the pod if the present state of a cluster is explained; None for a run.
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
    age_ns: int | None = None
    reported_at: str = ""
    message_now: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the explanation as plain data."""
        plain: dict[str, object] = msgspec.to_builtins(self)
        return plain
