"""The verb ``list``: revision, items, and the start of the next page."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.apiserver.model.errors import ApiError, bad_request
from bayplan.apiserver.model.options import ListOptions
from bayplan.apiserver.model.request_info import RequestInfo
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.continue_token import CONSISTENT_NO_MORE, decode_continue, encode_continue
from bayplan.apiserver.rest.options import EXACT, NOT_OLDER_THAN
from bayplan.apiserver.rest.selection import Selection, selection
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.store import Compacted

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
        items: in order.
        revision: of the list.
        token: to continue with, or empty.
        remaining: number of items after the page; None if not reported.
    """

    items: list[Item]
    revision: int
    token: str = ""
    remaining: int | None = None


def too_large(wanted: int, current: int) -> ApiError:
    """504: the revision has not been reached, and was not within the time that the server waits."""
    details: dict[str, object] = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    text = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return ApiError(504, text, details=details, headers={"retry-after": "1"})


def is_ahead(backend: Backend, options: ListOptions) -> bool:
    """Return whether a list requests a revision in the future."""
    return options.resource_version is not None and options.resource_version > backend.store.revision


def list_items(backend: Backend, info: RequestInfo, options: ListOptions) -> Page:
    """Return a page.

    Raises:
        ApiError: the options contradict one another, or history does not reach back that far.
    """
    chosen = selection(info, options)
    start = ""
    if options.continue_token:
        at, start = decode_continue(options.continue_token)
        if options.resource_version not in (None, 0):
            raise bad_request("specifying resource version is not allowed when using continue")
        revision = backend.store.revision if at == CONSISTENT_NO_MORE else at
    else:
        revision = _revision(backend, options)
    try:
        found = backend.store.between(info.resource.table, chosen.namespace, start=start, at=revision)
    except Compacted as problem:
        raise _compacted(options, start) from problem
    return _page(info, chosen, found, revision, options)


def _revision(backend: Backend, options: ListOptions) -> int:
    """Return the revision of a list: the latest, unless an exact one is asked for."""
    wanted, current = options.resource_version, backend.store.revision
    if not wanted or wanted > current:
        return current
    exact = options.match == EXACT or (options.match != NOT_OLDER_THAN and options.limit > 0)
    return wanted if exact else current


def _compacted(options: ListOptions, start: str) -> ApiError:
    if not options.continue_token:
        return ApiError(410, _TOO_OLD)
    token = encode_continue(CONSISTENT_NO_MORE, start.rstrip("\0"))
    return ApiError(410, _TOKEN_TOO_OLD, metadata={"continue": token})


def _page(info: RequestInfo, chosen: Selection, found: list[Item], revision: int, options: ListOptions) -> Page:
    items = found if chosen.is_everything else [item for item in found if chosen.matches(item)]
    # A cached list (resourceVersion=0) is answered whole, whatever the limit says.
    limit = 0 if options.resource_version == 0 and not options.continue_token else options.limit
    if not limit or len(items) <= limit:
        return Page(items, revision)
    rest = len(items) - limit
    items = items[:limit]
    last = items[-1]
    key = last.name if info.namespace or not info.resource.namespaced else f"{last.namespace}/{last.name}"
    remaining = rest if not options.label_selector and not options.field_selector else None
    return Page(items, revision, encode_continue(revision, key), remaining)
