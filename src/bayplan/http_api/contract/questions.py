"""Answers to questions about the current cluster: why pods wait, how many copies fit, and what changes would do."""

from __future__ import annotations

from bayplan.answers.capacity import GroupCapacity, VictimRow, WorkloadCapacity
from bayplan.answers.instant_host import Eviction
from bayplan.answers.pod_differences import PodDifference
from bayplan.answers.waiting_reasons import WaitingReason
from bayplan.answers.what_if import Measure
from bayplan.http_api.contract.answer import Answer, Instant, ListAnswer


class WaitingReasons(ListAnswer, frozen=True, kw_only=True):
    """Why pods wait, sorted by the number of pods that have no other reason.

    Attributes:
        summary: the number of waiting pods, and the first reason; "" if none of the evaluated pods waits.
        evaluated, waiting: the number of pods that were evaluated, and the number of waiting pods.
        assumptions: the assumptions behind the answer, in sentences.
    """

    items: list[WaitingReason]
    summary: str
    evaluated: int
    waiting: int
    assumptions: list[str]


class Capacity(Answer, frozen=True, kw_only=True):
    """The number of further copies of a workload, or of a mix, that fit; see `bayplan.answers.capacity.CapacityAnswer`.

    Attributes:
        summary: the answer in one sentence.
        copies, mixes, reached_limit, stopped_by, message, runs_out: as in `CapacityAnswer`.
        workloads, groups, victims: see the types of their rows.
        seeds: the number of copies by seed, if several seeds were requested.
        assumptions: the assumptions behind the answer, in sentences.
    """

    summary: str
    copies: int
    mixes: int
    reached_limit: bool
    workloads: list[WorkloadCapacity]
    groups: list[GroupCapacity]
    victims: list[VictimRow]
    stopped_by: str
    message: str
    runs_out: dict[str, int]
    seeds: dict[str, int]
    assumptions: list[str]


class WhatIfReport(Answer, frozen=True, kw_only=True):
    """The effects of changes.

    Attributes:
        id: the ID of a stored answer; "" if the answer is not stored.
        fork: the ID of the fork of a stored answer, which starts from the changed cluster; "" otherwise.
        name: a label for users.
        at: the time of the answer, by the server's clock.
        changes, configuration, reschedule: as requested.
        summary: the answer in one sentence.
        effect: the same sentence without the changes.
        pods: the number of pods that exist before or after the changes.
        counts: the number of pods by kind of difference.
        differences: the pods whose node differs, the worst first.
        left_out: the number of differences that are not included.
        measures, evictions: see the types of their rows.
        warnings: what a real cluster does differently, and where pods are now if not where they are before the changes.
        assumptions: the assumptions behind the answer, in sentences.
    """

    id: str
    fork: str
    name: str
    at: Instant
    changes: list[str]
    configuration: str | None
    reschedule: list[str]
    summary: str
    effect: str
    pods: int
    counts: dict[str, int]
    differences: list[PodDifference]
    left_out: int
    measures: list[Measure]
    evictions: list[Eviction]
    warnings: list[str]
    assumptions: list[str]


class WhatIfSummary(Answer, frozen=True, kw_only=True):
    """A stored what-if answer in the list."""

    id: str
    name: str
    at: Instant
    changes: list[str]
    summary: str


class WhatIfList(ListAnswer, frozen=True, kw_only=True):
    """The stored what-if answers, the oldest first."""

    items: list[WhatIfSummary]
