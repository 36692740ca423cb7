"""Answers about the scheduling queue."""

from __future__ import annotations

from typing import Literal

from bayplan.http_api.contract.answer import Answer, Instant, ListAnswer

Tier = Literal["active", "backoff", "unschedulable", "gated"]


class QueueCounts(Answer, frozen=True, kw_only=True):
    """How many pods are in each tier."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class QueueRow(Answer, frozen=True, kw_only=True):
    """A pod in the queue.

    Attributes:
        position: its place in the list. since: when it came to its tier, or failed last. retry_at: when its backoff ends.
        rejected_by: plugins that rejected it, or hold it back. message: of the plugin that holds it back.
        wakes_on: labels of the events for which those plugins look at it again.
    """

    namespace: str
    name: str
    position: int
    priority: int
    attempts: int
    tier: str
    since: Instant
    retry_at: Instant | None
    rejected_by: list[str]
    message: str
    wakes_on: list[str]


class WaitHistogram(Answer, frozen=True, kw_only=True):
    """How many pods have waited how long: up to each number of seconds, and, in the last place, longer than all of them."""

    seconds: list[int]
    pods: list[int]


class QueueList(ListAnswer, frozen=True, kw_only=True):
    """A page of the queue, or of one of its tiers.

    Attributes:
        version: changes with the queue. sentence: what it holds. next_retry_at: when the next backoff ends.
    """

    version: int
    sentence: str
    counts: QueueCounts
    next_retry_at: Instant | None
    items: list[QueueRow]
    histogram: WaitHistogram


class Moved(Answer, frozen=True, kw_only=True):
    """How many pods were moved to the active queue."""

    moved: int
