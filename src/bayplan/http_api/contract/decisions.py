"""Responses about decisions: summaries, lists, and counts over time."""

from __future__ import annotations

from bayplan.http_api.contract.answer import Answer, Instant, ListAnswer


class DecisionSummary(Answer, frozen=True, kw_only=True):
    """A decision in a list.

    Attributes:
        number: the number of the decision since the start of the server.
        at: the time of the decision.
        namespace, name: the namespace and name of the pod.
        attempt: the 1-based number among the pod's attempts.
        outcome: scheduled, unschedulable, error or skipped.
        node, feasible_nodes, evaluated_nodes, ties, total, message, nominated_node, victims: as in the record.
        margin: the total of the chosen node minus that of the runner-up; null without a runner-up, or if unknown.
        runner_up: the best node outside the tie set, or "".
        tier: the queue tier from which the pod was popped; null if unknown.
        woken_by: the event that moved the pod to the active queue; null if unknown.
        annotated: whether another scheduler decided.
        text: the decision in one sentence.
    """

    number: int
    at: Instant
    namespace: str
    name: str
    attempt: int
    outcome: str
    node: str
    feasible_nodes: int
    evaluated_nodes: int
    ties: int
    total: int
    margin: int | None
    runner_up: str
    message: str
    nominated_node: str
    victims: list[str]
    tier: str | None
    woken_by: str | None
    annotated: bool
    text: str


class AttemptSummary(DecisionSummary, frozen=True, kw_only=True):
    """A decision in the list of one pod's attempts.

    Attributes:
        difference: how the attempt differs from the previous one, in words.
    """

    difference: str


class AttemptList(ListAnswer, frozen=True, kw_only=True):
    """A page of the attempts of one pod, the newest last."""

    items: list[AttemptSummary]


class DecisionList(Answer, frozen=True, kw_only=True):
    """Decisions, the newest last.

    Attributes:
        version: changes with new decisions.
        total: the number of matching decisions.
        total_is_exact: False if there may be more.
        oldest: the number of the oldest decision with a full record.
        oldest_summary: the number of the oldest decision in memory.
        next: the number that the next decision will have.
        limit: the limit of the list.
    """

    version: int
    items: list[DecisionSummary]
    total: int
    total_is_exact: bool
    oldest: int
    oldest_summary: int
    next: int
    limit: int


class DensityLanes(Answer, frozen=True, kw_only=True):
    """Counts in each part of a span: decisions by outcome, decisions that preempted pods, and changes of nodes."""

    scheduled: list[int]
    waits: list[int]
    error: list[int]
    preemptions: list[int]
    nodes: list[int]


class Density(Answer, frozen=True, kw_only=True, rename={"first": "from", "last": "to"}):
    """The number of decisions in equal parts of a span.

    Attributes:
        first, last: the numbers of the first and last decision in the span (``from`` and ``to``).
        from_at, to_at: the start and end of the span.
        oldest, newest: the numbers of the oldest and newest decision in memory.
        bins: the number of parts.
        lanes: the counts in each part.
        numbers: the number of the first decision in each part.
    """

    first: int
    last: int
    oldest: int
    newest: int
    from_at: Instant
    to_at: Instant
    bins: int
    lanes: DensityLanes
    numbers: list[int]


class NodeLane(Answer, frozen=True, kw_only=True):
    """The pods on one node in each part of a span: running at its end, placed during it, and removed during it."""

    node: str
    running: list[int]
    placed: list[int]
    left: list[int]


class NodeLanes(ListAnswer, frozen=True, kw_only=True):
    """The pods on nodes over time, the nodes with the most changes first.

    Attributes:
        from_at, to_at: the start and end of the span.
        bins: the number of parts.
    """

    items: list[NodeLane]
    from_at: Instant
    to_at: Instant
    bins: int


class ClockStatus(Answer, frozen=True, kw_only=True):
    """The time, its speed, and whether it is ``real`` or ``virtual``."""

    now: Instant
    paused: bool
    speed: float
    mode: str


class ClockStep(ClockStatus, frozen=True, kw_only=True):
    """The clock after a step.

    Attributes:
        done: whether there was a decision or event to step to.
        decisions: the decisions made in this step, at most the last 20.
    """

    done: bool
    decisions: list[DecisionSummary]


class DecisionsChanged(Answer, frozen=True, kw_only=True):
    """New decisions, in a frame of the stream.

    Attributes:
        version: the number that the next decision will have.
        oldest: the number of the oldest decision with a full record.
        items: the newest decisions.
        left_out: the number of new decisions since the last frame that are not among the items.
    """

    version: int
    oldest: int
    items: list[DecisionSummary]
    left_out: int
