"""Responses about one attempt: a matrix of nodes by plugins, and the plugin results at other extension points."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bayplan.analysis.explanation import ExtenderReport
from bayplan.http_api.contract.answer import Answer

Recorded = Annotated[bool, msgspec.Meta(extra_json_schema={"const": True})]
NotRecorded = Annotated[bool, msgspec.Meta(extra_json_schema={"const": False})]


class MatrixCounts(Answer, frozen=True, kw_only=True):
    """The number of nodes that fit, failed, or were not evaluated."""

    fit: int
    failed: int
    not_evaluated: int


class MatrixScorer(Answer, frozen=True, kw_only=True):
    """A score plugin.

    Attributes:
        weight: the weight; null if another scheduler decided and its weights are unknown.
        scale: the smallest and the largest raw score; null if no node was scored.
    """

    name: str
    weight: int | None
    scale: list[int] | None


class MatrixStatus(Answer, frozen=True, kw_only=True):
    """A status that filters returned; rows refer to it by `index`."""

    index: int
    code: str
    plugin: str
    reasons: list[str]


class MatrixRow(Answer, frozen=True, kw_only=True):
    """A node.

    Attributes:
        total: the weighted total score; null if the node was not scored.
        tie: whether the node is in the tie set.
        plugin: the plugin that rejected the node, or "".
        gap: what the node lacks, in words.
        pre_filters: for each PreFilter plugin, the index of a status.
        filters: for each filter, the index of a status; null if the filter did not run.
        raw, normalized, weighted: the scores of each score plugin; null if the node was not scored.
    """

    node: str
    total: int | None
    tie: bool
    plugin: str
    gap: str
    pre_filters: list[int]
    filters: list[int | None]
    raw: list[int | None]
    normalized: list[int | None]
    weighted: list[int | None]


class MatrixColumns(Answer, frozen=True, kw_only=True):
    """The rows as one list per column, each with an entry for each node."""

    node: list[str]
    total: list[int | None]
    tie: list[bool]
    plugin: list[str]
    gap: list[str]
    pre_filters: list[list[int]]
    filters: list[list[int | None]]
    raw: list[list[int | None]]
    normalized: list[list[int | None]]
    weighted: list[list[int | None]]


class PreFilterAnswer(Answer, frozen=True, kw_only=True):
    """The result of a PreFilter plugin. `nodes` is the number of nodes that it allows; null if it allows all."""

    plugin: str
    status: str
    message: str
    nodes: int | None


class PreScoreAnswer(Answer, frozen=True, kw_only=True):
    """The result of a PreScore plugin."""

    plugin: str
    status: str


class LateAnswer(Answer, frozen=True, kw_only=True):
    """The result of a plugin that runs after a node has been chosen."""

    plugin: str
    status: str
    message: str


class MatrixPoints(Answer, frozen=True, kw_only=True):
    """Plugin results at extension points other than Filter and Score. Points from Reserve on are present only if recorded."""

    pre_filter: list[PreFilterAnswer]
    pre_score: list[PreScoreAnswer]
    extenders: list[ExtenderReport]
    reserve: list[LateAnswer] | msgspec.UnsetType = msgspec.UNSET
    permit: list[LateAnswer] | msgspec.UnsetType = msgspec.UNSET
    pre_bind: list[LateAnswer] | msgspec.UnsetType = msgspec.UNSET
    bind: list[LateAnswer] | msgspec.UnsetType = msgspec.UNSET


class MatrixFacts(Answer, frozen=True, kw_only=True):
    """One attempt as a matrix of nodes by plugins, without its rows.

    Attributes:
        number: the number of the decision.
        attempt: the 1-based number among the pod's attempts.
        nodes: the number of nodes in the cluster.
        winner: the chosen node, or "".
        runner_up: the best node outside the tie set, or "".
        margin: the total of the winner minus that of the runner-up; null without a runner-up.
        pre_filters, filters: the names of plugins, in the order of the rows' lists.
        total, offset, limit: the number of matching rows, and the offset and limit of the page.
        summary: the decision in one sentence.
        skipped: the plugins that returned Skip.
        max_score: the largest normalised score.
        annotated: present, and true, only if another scheduler decided.
    """

    number: int
    recorded: Recorded = True
    record_level: str
    nodes: int
    counts: MatrixCounts
    winner: str
    runner_up: str
    margin: int | None
    tie_set: list[str]
    pre_filters: list[str]
    filters: list[str]
    scorers: list[MatrixScorer]
    statuses: list[MatrixStatus]
    total: int
    total_is_exact: bool
    offset: int
    limit: int
    attempt: int
    summary: str
    skipped: list[str]
    max_score: int
    points: MatrixPoints
    annotated: bool | msgspec.UnsetType = msgspec.UNSET


class RowMatrix(MatrixFacts, frozen=True, kw_only=True, tag_field="form", tag="rows"):
    """One attempt with one object per node."""

    rows: list[MatrixRow]


class ColumnMatrix(MatrixFacts, frozen=True, kw_only=True, tag_field="form", tag="columns"):
    """One attempt with one list per column: the response to ``form=columns``."""

    rows: MatrixColumns


Matrix = RowMatrix | ColumnMatrix


class NoMatrix(Answer, frozen=True, kw_only=True, tag_field="form", tag="none"):
    """An attempt without a full record; `why` gives the reason. `number` is -1 if the pod has no attempts."""

    number: int
    recorded: NotRecorded = False
    why: str
    record_level: str
    rows: list[MatrixRow]
    total: int
    attempt: int | msgspec.UnsetType = msgspec.UNSET


AnyMatrix = RowMatrix | ColumnMatrix | NoMatrix
"""The response about an attempt. ``form`` distinguishes the types."""
