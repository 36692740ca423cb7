"""Common parts of all responses: the base class, times, lists, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

import msgspec

Instant = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""A time as RFC 3339 with milliseconds; see `bayplan.base.go_text.times`."""

KubernetesDocument = Annotated[
    dict[str, object], msgspec.Meta(description="A Kubernetes object, as in the Kubernetes API.")
]
"""A Kubernetes object, with the fields that Kubernetes defines for its kind."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A response or a part of one. A field may be absent only if its type includes `msgspec.UnsetType`."""


class ListAnswer(Answer, frozen=True, kw_only=True):
    """A list, or a page of one. Subclasses add `items`.

    Attributes:
        total: the number of items on all pages.
        total_is_exact: False if there may be more items, because counting ran out of time.
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
    """A value of a field, and the number of matching items that have it."""

    value: str
    count: int


class Refused(Answer, frozen=True, kw_only=True):
    """Why a request was rejected. Texts that don't apply are empty.

    Attributes:
        what: the error.
        where: the location of the error in the request.
        got, wanted: the actual and the expected value.
        hint: what to try instead.
        request_id: the ID of the request, as in the server's log.
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
