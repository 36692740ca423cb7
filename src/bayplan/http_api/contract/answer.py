"""Common parts of all responses: the base of their structs, instants, and lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

import msgspec

Instant = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""A time as RFC 3339 with milliseconds; see `bayplan.base.go_text.times`."""

KubernetesDocument = Annotated[dict[str, object], msgspec.Meta(description="A Kubernetes object, as its API has it.")]
"""A Kubernetes object. Kubernetes defines its fields."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A response or a part of one. A field that may be absent also has `msgspec.UnsetType`; all other fields are always present."""


class ListAnswer(Answer, frozen=True, kw_only=True):
    """A list or a page of one; subclasses add `items`.

    Attributes:
        total: number of items in all.
        total_is_exact: False if there may be more because counting ran out of time.
        offset, limit: the offset and limit of the page.
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
    """Return the extent of a list that is never split into pages."""
    return {"total": len(items), "total_is_exact": True, "offset": 0, "limit": len(items)}


class Facet(Answer, frozen=True, kw_only=True):
    """A value, and the number of matching items with it."""

    value: str
    count: int


class Refused(Answer, frozen=True, kw_only=True):
    """Why a request was rejected; texts that don't apply are empty.

    Attributes:
        what: the error.
        where: the location in the request.
        got, wanted: the actual and the expected value.
        hint: what to try.
        request_id: the ID of the request, as in the log.
    """

    what: str
    where: str
    got: str
    wanted: str
    hint: str
    request_id: str


class Error(Answer, frozen=True, kw_only=True):
    """The body of every response with a status of 400 or above."""

    error: Refused
