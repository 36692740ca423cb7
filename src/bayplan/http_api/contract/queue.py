"""Responses about the scheduling queue."""

from __future__ import annotations

from typing import Literal

from bayplan.http_api.contract.answer import Answer, Instant, ListAnswer

Tier = Literal["active", "backoff", "unschedulable", "gated"]


class QueueCounts(Answer, frozen=True, kw_only=True):
    """The number of pods in each tier."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class QueueRow(Answer, frozen=True, kw_only=True):
    """A pod in the scheduling queue.

    Attributes:
        position: the position in the list.
        attempts: the number of scheduling attempts.
        tier: ``active``, ``backoff``, ``unschedulable`` or ``gated``.
        since: the time when the pod was queued, or of its last failed attempt.
        retry_at: when its backoff ends; null unless it is in backoff.
        rejected_by: the plugins that rejected the pod or gate it.
        message: the message of the plugin that gates the pod, or "".
        wakes_on: the labels of the events after which these plugins let the pod be retried.
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
    """The number of pods by waiting time: up to each bound in seconds; the last number is for pods beyond all bounds."""

    seconds: list[int]
    pods: list[int]


class QueueList(ListAnswer, frozen=True, kw_only=True):
    """A page of the queue, or of one of its tiers.

    Attributes:
        version: changes with the queue.
        summary: a summary of the queue.
        next_retry_at: when the next backoff ends; null if no pod is in backoff.
    """

    version: int
    summary: str
    counts: QueueCounts
    next_retry_at: Instant | None
    items: list[QueueRow]
    histogram: WaitHistogram


class Moved(Answer, frozen=True, kw_only=True):
    """The number of pods moved to the active queue."""

    moved: int
