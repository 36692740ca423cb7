"""What all answers have in common: the base of their structs, instants, and lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

import msgspec

Instant = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""A time as RFC 3339 with milliseconds; see `bayplan.base.go_text.times`."""

KubernetesDocument = Annotated[dict[str, object], msgspec.Meta(description="A Kubernetes object, as its API has it.")]
"""A Kubernetes object. Its fields are Kubernetes' contract, not ours."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, or a part of one. A field that may be missing is of `msgspec.UnsetType`, too; all others are always there."""


class ListAnswer(Answer, frozen=True, kw_only=True):
    """A list, or a page of one; subclasses add `items`.

    Attributes:
        total: how many items there are in all. total_is_exact: False if there may be more, as counting took too long.
        offset, limit: of the page.
    """

    total: int
    total_is_exact: bool
    offset: int
    limit: int


class Extent(TypedDict):
    """The fields of `ListAnswer`."""

    total: int
    total_is_exact: bool
    offset: int
    limit: int


def whole(items: Sequence[object]) -> Extent:
    """Return the extent of a list that is never cut into pages: one page holds all."""
    return {"total": len(items), "total_is_exact": True, "offset": 0, "limit": len(items)}


class Facet(Answer, frozen=True, kw_only=True):
    """A value, and how many of the items that were found have it."""

    value: str
    count: int


class Refused(Answer, frozen=True, kw_only=True):
    """Why a request was refused; texts that don't apply are empty.

    Attributes:
        what: is wrong. where: in the request. got, wanted: there. hint: what to try. request_id: of the request, as in the log.
    """

    what: str
    where: str
    got: str
    wanted: str
    hint: str
    request_id: str


class Error(Answer, frozen=True, kw_only=True):
    """The body of every answer with a status from 400 on."""

    error: Refused
