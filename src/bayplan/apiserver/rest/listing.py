"""The verb ``list``: select a page of items at a revision, and encode or decode continue tokens."""

from __future__ import annotations

import base64
import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bayplan.apiserver.codec.decode_error import go_kind
from bayplan.apiserver.model.errors import ApiError, bad_request
from bayplan.apiserver.model.requests import ListOptions, RequestInfo
from bayplan.apiserver.rest import component_statuses
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.options import EXACT, NOT_OLDER_THAN, read_revision
from bayplan.apiserver.rest.selection import Selection
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.store import Compacted
from bayplan.base.go_text.json import json_problem

_VERSION = "meta.k8s.io/v1"
CONSISTENT_NO_MORE = -1
"""Revision in a token that continues an expired list with the current objects, inconsistently, as any negative one does."""


class Continue(NamedTuple):
    """The position in a continue token.

    Attributes:
        revision: the revision of the list, or `CONSISTENT_NO_MORE`.
        start: the first key of the next page, without the namespace if the list is limited to one namespace.
    """

    revision: int
    start: str


_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_\r\n")


def encode_continue(revision: int, last_key: str) -> str:
    """Return the continue token of a page whose last key is `last_key`."""
    start = last_key if revision == CONSISTENT_NO_MORE else f"/{last_key}"
    body = json.dumps({"v": _VERSION, "rv": revision, "start": f"{start}\0"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")


def decode_continue(token: str) -> Continue:
    """Return the position in a continue token.

    Raises:
        ApiError: the token is malformed.
    """
    # Go's decoder skips line breaks, knows no padding, and names the first byte that it cannot use.
    source = token.encode()
    wrong = next((at for at, byte in enumerate(source) if byte not in _BASE64), -1)
    digits = bytes(byte for byte in source if byte not in b"\r\n")
    if wrong < 0 and len(digits) % 4 == 1:
        wrong = len(source) - 1
    if wrong >= 0:
        raise _unusable(f"continue key is not valid: illegal base64 data at input byte {wrong}")
    data = base64.urlsafe_b64decode(digits + b"=" * (-len(digits) % 4))
    text = data.decode("utf-8", "surrogateescape")
    try:
        found = json.loads(text)
    except ValueError:
        raise _unusable(f"continue key is not valid: {json_problem(text)}") from None
    if not isinstance(found, dict) or found.get("v") != _VERSION:
        version = found.get("v", "") if isinstance(found, dict) else ""
        raise _unusable(f"continue key is not valid: server does not recognize this encoded version {version}")
    revision, start = found.get("rv"), found.get("start")
    for name, value, go_type in (("rv", revision, int), ("start", start, str)):
        if value is not None and type(value) is not go_type:
            shown = f"number {value}" if isinstance(value, float) else go_kind(value)
            wanted = f"of type {'int64' if name == 'rv' else 'string'}"
            raise _unusable(
                f"continue key is not valid: json: cannot unmarshal {shown} into Go struct field continueToken.{name} {wanted}"
            )
    if not isinstance(revision, int) or revision == 0:
        raise _unusable("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise _unusable("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    key = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(key.rstrip("\0")) != key.rstrip("\0"):
        raise _unusable(f"continue key is not valid: {start}")
    return Continue(revision, key[1:])


def _unusable(why: str) -> ApiError:
    return bad_request(f"invalid continue token: {why}")


_TOO_OLD = "The resourceVersion for the provided list is too old."
_TOKEN_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(slots=True)
class Page:
    """One page of a list.

    Attributes:
        items: the items in key order.
        revision: the revision of the list; 0 for objects that are not stored.
        token: the continue token of the next page, empty for the last page.
        remaining: the number of items after the page; None if not reported.
    """

    items: list[Item]
    revision: int
    token: str = ""
    remaining: int | None = None


def too_large(wanted: int, current: int, *, retry: bool = True) -> ApiError:
    """Return the error 504 of a read whose revision the store has not reached in time.

    Args:
        wanted: the requested revision.
        current: the revision of the store.
        retry: whether to ask the client to try again, as upstream's watch cache does.
    """
    details: dict[str, object] = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    }
    text = f"Timeout: Too large resource version: {wanted}, current: {current}"
    if not retry:
        return ApiError(504, text, details=details)
    return ApiError(504, text, details={**details, "retryAfterSeconds": 1}, headers={"retry-after": "1"})


def check_revision(query: Mapping[str, str]) -> None:
    """Check the revision of a list or get and its continue token. Upstream checks selectors and bodies first.

    Raises:
        ApiError: the revision or the token is malformed, or a list has both.
    """
    text = query.get("resourceVersion", "")
    if query.get("continue"):
        decode_continue(query["continue"])
        if text not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
    try:
        read_revision(text)
    except ApiError as problem:
        raise bad_request(f"invalid resource version: {problem.message}") from None


def is_ahead(backend: Backend, options: ListOptions) -> bool:
    """Return whether the requested revision is newer than the store's."""
    return options.resource_version is not None and options.resource_version > backend.store.revision


def list_items(backend: Backend, info: RequestInfo, options: ListOptions, chosen: Selection) -> Page:
    """Return one page of a list. `chosen`: the selection of the options.

    Raises:
        ApiError: the token is malformed, options conflict, or the revision has been compacted.
    """
    if info.resource.table == component_statuses.TABLE:
        return Page([each for each in component_statuses.component_items(backend) if chosen.matches(each)], 0)
    start, namespace = "", chosen.namespace
    if options.continue_token:
        # Only first pages come from upstream's watch cache, whose keys are limited to the namespace of a field selector.
        namespace = info.namespace
        at, start = decode_continue(options.continue_token)
        revision = backend.store.revision if at < 0 else at
        if revision > backend.store.revision:
            raise too_large(revision, backend.store.revision)
    else:
        revision = _revision(backend, options, is_single=chosen.is_single(info.resource))
    try:
        found = backend.store.between(info.resource.table, namespace, start=start, at=revision)
    except Compacted as problem:
        raise _compacted(options, start) from problem
    return _page(info, chosen, namespace, found, revision, options)


def _revision(backend: Backend, options: ListOptions, *, is_single: bool) -> int:
    """Return the revision to list: the requested revision if it must be exact, else the latest revision.

    A limit makes the revision exact, except in a list that can contain only a single object, which upstream reads by name.
    """
    wanted, current = options.resource_version, backend.store.revision
    if not wanted or wanted > current:
        return current
    exact = options.match == EXACT or (options.match != NOT_OLDER_THAN and options.limit > 0 and not is_single)
    return wanted if exact else current


def _compacted(options: ListOptions, start: str) -> ApiError:
    if not options.continue_token:
        return ApiError(410, _TOO_OLD)
    token = encode_continue(CONSISTENT_NO_MORE, start.rstrip("\0"))
    return ApiError(410, _TOKEN_TOO_OLD, metadata={"continue": token})


def _selected(chosen: Selection, found: list[Item], limit: int, only: bool) -> tuple[list[Item], int]:
    """Return the first `limit` selected items, or all if it is 0, and the number of items after them.

    As in upstream, these count even if they are not selected, unless there can be `only` one: by name in a namespace.
    """
    items = []
    for index, item in enumerate(found, 1):
        if chosen.matches(item):
            items.append(item)
            if len(items) == limit:
                return items, 0 if only else len(found) - index
    return items, 0


def _page(
    info: RequestInfo, chosen: Selection, namespace: str, found: list[Item], revision: int, options: ListOptions
) -> Page:
    # Upstream serves resourceVersion=0 from its watch cache, which ignores the limit.
    limit = 0 if options.resource_version == 0 else options.limit
    if chosen.is_everything and namespace == chosen.namespace:
        rest, items = max(len(found) - limit, 0), found[:limit] if limit else found
    else:
        only = bool(chosen.name) and bool(namespace or not info.resource.namespaced)
        items, rest = _selected(chosen, found, limit, only)
    if not limit or not rest:
        return Page(items, revision)
    last = items[-1]
    key = last.name if namespace or not info.resource.namespaced else f"{last.namespace}/{last.name}"
    remaining = rest if not options.label_selector and not options.field_selector else None
    return Page(items, revision, encode_continue(revision, key), remaining)
