"""Responses about decisions: summaries, lists, and counts over time."""

from __future__ import annotations

from bayplan.http_api.contract.answer import Answer, Instant, ListAnswer


class DecisionSummary(Answer, frozen=True, kw_only=True):
    """A decision in a list.

    Attributes:
        number: the number of the decision since the start of the server.
        at: the time of the decision.
        namespace, name: the namespace and name of the pod.
        attempt: 1-based number of the pod's attempt.
        outcome: scheduled, unschedulable, error or skipped.
        node, feasible_nodes, evaluated_nodes, ties, total, message, nominated_node, victims: as in the record.
        margin: the points by which the chosen node was ahead of the runner-up; null without a runner-up, or if unknown.
        runner_up: the best node outside the tie set, or "".
        tier: the queue tier from which the pod was popped.
        woken_by: the event that moved it to the active queue.
        annotated: whether another scheduler decided.
        text: the decision in a sentence.
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
        difference: the difference from the previous attempt, in words.
    """

    difference: str


class AttemptList(ListAnswer, frozen=True, kw_only=True):
    """A page of the attempts of one pod, the newest last."""

    items: list[AttemptSummary]


class DecisionList(Answer, frozen=True, kw_only=True):
    """Decisions, the newest last.

    Attributes:
        version: changes with new decisions.
        total: number of decisions.
        total_is_exact: False if there may be more.
        oldest: number of the oldest full record.
        oldest_summary: number of the oldest record.
        next: number of the next decision.
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
    """Number of decisions in equal parts of a span.

    Attributes:
        first, last: numbers of the decisions at its ends (``from`` and ``to``).
        from_at, to_at: the same as times.
        oldest, newest: numbers of the decisions in memory.
        bins: number of parts.
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
    """Pods on one node in each part of a span: running at its end, placed during it, and removed during it."""

    node: str
    running: list[int]
    placed: list[int]
    left: list[int]


class NodeLanes(ListAnswer, frozen=True, kw_only=True):
    """Pods on nodes over time, the nodes with the most changes first.

    Attributes:
        from_at, to_at: ends of the span.
        bins: number of parts.
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
        done: whether there was anything to step to.
        decisions: made in this step, the last 20 at most.
    """

    done: bool
    decisions: list[DecisionSummary]


class DecisionsChanged(Answer, frozen=True, kw_only=True):
    """New decisions in a frame of the stream.

    Attributes:
        version: number of the next decision.
        oldest: the number of the oldest full record.
        items: the newest decisions.
        left_out: number of decisions since the last frame that are not among the items.
    """

    version: int
    oldest: int
    items: list[DecisionSummary]
    left_out: int
