"""The answer about one attempt: nodes by plugins, and what plugins said at other extension points."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bayplan.http_api.contract.answer import Answer

Kept = Annotated[bool, msgspec.Meta(extra_json_schema={"const": True})]
NotKept = Annotated[bool, msgspec.Meta(extra_json_schema={"const": False})]


class MatrixCounts(Answer, frozen=True, kw_only=True):
    """How many nodes fit, failed, or were not looked at."""

    fit: int
    failed: int
    not_looked_at: int


class MatrixScorer(Answer, frozen=True, kw_only=True):
    """A score plugin.

    Attributes:
        weight: null if another scheduler decided, and its weights aren't known.
        scale: the smallest and the largest raw score; null if no node was scored.
    """

    name: str
    weight: int | None
    scale: list[int] | None


class MatrixStatus(Answer, frozen=True, kw_only=True):
    """A status that filters returned; `index` is what stands for it in the rows."""

    index: int
    code: str
    plugin: str
    reasons: list[str]


class MatrixRow(Answer, frozen=True, kw_only=True):
    """A node.

    Attributes:
        total: weighted score; null if it wasn't scored. tie: whether it is in the tie set. plugin: that rejected it, or "".
        gap: what is missing, in words. pre_filters: by PreFilter plugin the index of a status.
        filters: by filter the index of a status; null if it wasn't asked.
        raw, normalized, weighted: by scorer; null if the node wasn't scored.
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
    """The same as rows, one list a column; each has an entry for each node."""

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
    """What a PreFilter plugin said; `nodes` is how many nodes it left in, null for all."""

    plugin: str
    status: str
    message: str
    nodes: int | None


class PreScoreAnswer(Answer, frozen=True, kw_only=True):
    """What a PreScore plugin said."""

    plugin: str
    status: str


class ExtenderAnswer(Answer, frozen=True, kw_only=True):
    """What an HTTP extender did: see `bayplan.analysis.explanation.ExtenderReport`."""

    extender: str
    asked: int
    rejected: int
    scored: bool
    filter_error: str
    ignored: bool
    prioritize_error: str


class LateAnswer(Answer, frozen=True, kw_only=True):
    """What a plugin said after the choice of the node."""

    plugin: str
    status: str
    message: str


class MatrixPoints(Answer, frozen=True, kw_only=True):
    """What plugins said at the points around filters and scores; those after the choice of a node only if they are recorded."""

    pre_filter: list[PreFilterAnswer]
    pre_score: list[PreScoreAnswer]
    extenders: list[ExtenderAnswer]
    reserve: list[LateAnswer] | msgspec.UnsetType = msgspec.UNSET
    permit: list[LateAnswer] | msgspec.UnsetType = msgspec.UNSET
    pre_bind: list[LateAnswer] | msgspec.UnsetType = msgspec.UNSET
    bind: list[LateAnswer] | msgspec.UnsetType = msgspec.UNSET


class MatrixFacts(Answer, frozen=True, kw_only=True):
    """One attempt as nodes by plugins, without its rows.

    Attributes:
        number: of the decision. attempt: 1-based number of the pod's attempt. nodes: how many there were.
        winner: the node that was chosen, or "". runner_up: the best node outside of the tie set, or "". margin: the points between.
        pre_filters, filters: names, in the order of the rows' lists. total, offset, limit: of the rows.
        sentence: the decision in words. skipped: plugins with nothing to say. max_score: the largest normalized score.
        annotated: only there, and true, if another scheduler decided.
    """

    number: int
    kept: Kept = True
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
    sentence: str
    skipped: list[str]
    max_score: int
    points: MatrixPoints
    annotated: bool | msgspec.UnsetType = msgspec.UNSET


class RowMatrix(MatrixFacts, frozen=True, kw_only=True, tag_field="form", tag="rows"):
    """One attempt with an object a node."""

    rows: list[MatrixRow]


class ColumnMatrix(MatrixFacts, frozen=True, kw_only=True, tag_field="form", tag="columns"):
    """One attempt with a list a column: the answer to ``form=columns``."""

    rows: MatrixColumns


Matrix = RowMatrix | ColumnMatrix


class NoMatrix(Answer, frozen=True, kw_only=True, tag_field="form", tag="none"):
    """An attempt of which no full record is kept; `why` says the reason. Without any attempt the number is -1."""

    number: int
    kept: NotKept = False
    why: str
    record_level: str
    rows: list[MatrixRow]
    total: int
    attempt: int | msgspec.UnsetType = msgspec.UNSET


AnyMatrix = RowMatrix | ColumnMatrix | NoMatrix
"""What is answered about an attempt; ``form`` says which it is."""
