"""Options of requests: decode them from the query or the body of a deletion, and check them as apimachinery does."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.apiserver.codec.bodies import BodyError, parse_json, parse_yaml
from bayplan.apiserver.codec.decode_error import DecodeError, go_kind
from bayplan.apiserver.codec.protobuf import ProtobufError, decode_envelope, decode_message
from bayplan.apiserver.codec.shape import shape_of
from bayplan.apiserver.model.errors import (
    ApiError,
    Cause,
    bad_request,
    forbidden_value,
    internal,
    invalid,
    invalid_value,
    not_supported,
)
from bayplan.apiserver.model.requests import DeleteOptions, ListOptions, WriteOptions
from bayplan.apiserver.model.selectors import parse_fields, parse_labels
from bayplan.apiserver.rest.messages import Request, values_of
from bayplan.apiserver.rest.negotiation import PROTOBUF, YAML, input_type
from bayplan.base.durations import SECOND_NS
from bayplan.base.go_arithmetic import whole_number
from bayplan.base.go_text.durations import parse_duration
from bayplan.base.go_text.quoting import GoTextError
from bayplan.base.plain_data import Document
from bayplan.objects.selectors import quote

_META_GROUP = "meta.k8s.io"
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_FALSE = frozenset(("0", "false", "FALSE", "False"))
_MIN_INT64, _MAX_INT64, _MAX_UINT64 = -(2**63), 2**63 - 1, 2**64 - 1
_KIND_STRUCT = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
NOT_OLDER_THAN = "NotOlderThan"
EXACT = "Exact"


def read_bool(query: Mapping[str, str], name: str) -> bool | None:
    """Return a boolean parameter, or None if it is absent. A parameter without a value is true."""
    text = query.get(name)
    if text is None:
        return None
    # Upstream's conversion of query parameters treats every text as true that is not listed as false.
    return text not in _FALSE


def read_integer(query: Mapping[str, str], name: str) -> int | None:
    """Return an integer parameter, or None if it is absent.

    Raises:
        ApiError: the value is not a 64-bit integer.
    """
    text = query.get(name)
    if text is None:
        return None
    digits = text[1:] if text[:1] in ("+", "-") else text
    number = whole_number(digits) if digits.isascii() and digits.isdigit() else None
    if number is None:
        raise bad_request(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    number = -number if text[0] == "-" else number
    if not _MIN_INT64 <= number <= _MAX_INT64:
        raise bad_request(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def request_timeout(text: str) -> float:
    """Return the seconds in a Go duration such as ``1m30s``, or 0 for an empty text.

    Raises:
        ApiError: the text is not a duration.
    """
    try:
        return parse_duration(text) / SECOND_NS if text else 0.0
    except GoTextError as problem:
        raise bad_request(f"invalid timeout specified in the request URL: {problem}") from None


def check_timeout(text: str) -> None:
    """Raise if the timeout of a request that is not a watch is malformed; its value has no effect.

    Raises:
        ApiError: the text is neither a duration nor empty.
    """
    try:
        parse_duration(text) if text else 0
    except GoTextError as problem:
        raise bad_request(f"invalid timeout specified in the request URL - {problem}") from None


def list_options(query: Mapping[str, str], *, watch: bool) -> ListOptions:
    """Return the options of a list or watch, without the revision if it is malformed; see `listing.check_revision`.

    Raises:
        ApiError: an option is malformed, or options conflict.
    """
    limit, timeout_seconds = read_integer(query, "limit"), read_integer(query, "timeoutSeconds")
    # Upstream checks the options of the deprecated paths /watch/... as those of a list.
    causes = _watch_causes(query) if read_bool(query, "watch") else _list_causes(query)
    if causes:
        # Upstream checks the syntax of selectors first.
        parse_labels(query.get("labelSelector", ""))
        parse_fields(query.get("fieldSelector", ""), lambda field: "")
        raise invalid("ListOptions", _META_GROUP, "", causes)
    initial = read_bool(query, "sendInitialEvents")
    if watch and initial is None and query.get("resourceVersion", "") in ("", "0"):
        # A watch without a version starts with the existing objects, as if it requested them.
        initial = True
    return ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        resource_version=_revision(query),
        match=query.get("resourceVersionMatch", ""),
        limit=max(0, limit or 0),
        continue_token=query.get("continue", ""),
        timeout_seconds=timeout_seconds,
        bookmarks=bool(read_bool(query, "allowWatchBookmarks")),
        send_initial_events=initial,
    )


def _revision(query: Mapping[str, str]) -> int | None:
    try:
        return read_revision(query.get("resourceVersion", ""))
    except ApiError:
        return None


def read_revision(text: str) -> int | None:
    """Return a resource version, or None for an empty string.

    Raises:
        ApiError: the text is not an unsigned 64-bit number; the code is 500, as in upstream.
    """
    if not text:
        return None
    number = whole_number(text) if text.isascii() and text.isdigit() else None
    if number is None or number > _MAX_UINT64:
        why = "invalid syntax" if number is None else "value out of range"
        problem = f"Invalid value: {quote(text)}: strconv.ParseUint: parsing {quote(text)}: {why}"
        raise internal(f"resourceVersion: {problem}")
    return number


def _list_causes(query: Mapping[str, str]) -> list[Cause]:
    causes = []
    match, revision = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    if match:
        field = "resourceVersionMatch"
        if not revision:
            causes.append(forbidden_value(field, f"{field} is forbidden unless resourceVersion is provided"))
        if query.get("continue"):
            causes.append(forbidden_value(field, f"{field} is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER_THAN):
            causes.append(not_supported(field, quote(match), (EXACT, NOT_OLDER_THAN, "")))
        if match == EXACT and revision == "0":
            causes.append(forbidden_value(field, f'{field} "exact" is forbidden for resourceVersion "0"'))
    if "sendInitialEvents" in query:
        causes.append(forbidden_value("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return causes


def _watch_causes(query: Mapping[str, str]) -> list[Cause]:
    causes = []
    match, field = query.get("resourceVersionMatch", ""), "resourceVersionMatch"
    initial = "sendInitialEvents" in query
    if initial and match != NOT_OLDER_THAN:
        causes.append(forbidden_value(field, f"sendInitialEvents requires setting {field} to {NOT_OLDER_THAN}"))
    if match:
        if not initial:
            causes.append(
                forbidden_value(field, f"{field} is forbidden for watch unless sendInitialEvents is provided")
            )
        if match != NOT_OLDER_THAN:
            causes.append(not_supported(field, quote(match), (NOT_OLDER_THAN,)))
    # A watch from the newest or any revision gets initial events by default, and with them this parameter.
    is_set = match or (not initial and query.get("resourceVersion", "") in ("", "0"))
    if is_set and query.get("continue"):
        causes.append(forbidden_value(field, f"{field} is forbidden when continue is provided"))
    return causes


def write_options(request: Request, kind: str, *, apply: bool = False) -> WriteOptions:
    """Return the options of a create, update or patch.

    Args:
        request: the request with the options in its query.
        kind: ``CreateOptions``, ``UpdateOptions`` or ``PatchOptions``.
        apply: whether the write is a server-side apply, which requires a field manager.

    Raises:
        ApiError: the options are invalid.
    """
    query = request.query
    causes: list[Cause] = []
    manager = query.get("fieldManager", "")
    if apply and not manager:
        causes.append(Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager"))
    if "force" in query and kind == "PatchOptions" and not apply:
        causes.append(forbidden_value("force", "may not be specified for non-apply patch"))
    if len(manager.encode()) > 128:
        causes.append(Cause("FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager"))
    at = 0
    for each in manager:
        if not each.isprintable():
            why = f"invalid character U+{ord(each):04X} (at position {at})"
            causes.append(invalid_value("fieldManager", quote(manager), why))
            break
        at += len(each.encode())
    dry_run = values_of(query, "dryRun")
    causes += _dry_run_causes(dry_run)
    validation = query.get("fieldValidation", "")
    if validation not in ("", "Ignore", "Warn", "Strict"):
        causes.append(not_supported("fieldValidation", quote(validation), ("", "Ignore", "Strict", "Warn")))
    if causes:
        raise invalid(kind, _META_GROUP, "", causes)
    return WriteOptions(
        dry_run=bool(dry_run),
        manager=manager or _agent(request.headers.get("user-agent", "")),
        validation=validation or "Warn",
        force=bool(read_bool(query, "force")),
        user=request.user,
        query=query,
    )


def _dry_run_causes(values: list[str]) -> list[Cause]:
    if all(each == "All" for each in values):
        return []
    return [not_supported("dryRun", f"[{','.join(quote(each) for each in values)}]", ("All",))]


def _agent(header: str) -> str:
    """Return the default field manager: the user agent up to its first slash."""
    return header.partition("/")[0][:128] or "unknown"


def delete_options(request: Request) -> DeleteOptions:
    """Return the options of a deletion, from the body, or from the query if there is no body.

    Raises:
        ApiError: the options cannot be decoded, or are invalid.
    """
    document = _body_options(request) if request.body else _query_options(request.query)
    options = check_delete_options(document)
    options.user = request.user
    return options


def check_delete_options(document: Document) -> DeleteOptions:
    """Return the options in a document after checking them.

    Raises:
        ApiError: the options are invalid.
    """
    causes: list[Cause] = []
    sent = document.get("propagationPolicy")
    propagation = str(sent or "")
    orphan = document.get("orphanDependents")
    if orphan is not None and sent is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(Cause("FieldValueInvalid", f'Invalid value: "{propagation}": {text}', "propagationPolicy"))
    if sent is not None and propagation not in ("Foreground", "Background", "Orphan"):
        listed = ("Foreground", "Background", "Orphan", "nil")
        causes.append(not_supported("propagationPolicy", quote(propagation), listed))
    dry_run = document.get("dryRun")
    if isinstance(dry_run, list):
        causes += _dry_run_causes([str(each) for each in dry_run])
    if causes:
        raise invalid("DeleteOptions", _META_GROUP, "", causes)
    return read_delete_options(document)


def read_delete_options(document: Document) -> DeleteOptions:
    """Return the options in a document without checking them."""
    dry_run, orphan = document.get("dryRun"), document.get("orphanDependents")
    grace = document.get("gracePeriodSeconds")
    conditions = document.get("preconditions")
    conditions = conditions if isinstance(conditions, dict) else {}
    return DeleteOptions(
        grace_seconds=grace if isinstance(grace, int) else None,
        uid=conditions.get("uid"),
        resource_version=conditions.get("resourceVersion"),
        propagation=str(document.get("propagationPolicy") or ""),
        orphan=orphan if isinstance(orphan, bool) else None,
        dry_run=bool(dry_run),
    )


def _query_options(query: Mapping[str, str]) -> Document:
    document: Document = {}
    if "gracePeriodSeconds" in query:
        document["gracePeriodSeconds"] = read_integer(query, "gracePeriodSeconds")
    if "propagationPolicy" in query:
        document["propagationPolicy"] = query["propagationPolicy"]
    if query.get("orphanDependents"):
        document["orphanDependents"] = read_bool(query, "orphanDependents")
    if "dryRun" in query:
        document["dryRun"] = list(values_of(query, "dryRun"))
    conditions: Document = {name: query[name] for name in ("uid", "resourceVersion") if query.get(name)}
    if conditions:
        document["preconditions"] = conditions
    return document


def _body_options(request: Request) -> Document:
    media_type = input_type(request.headers.get("content-type", ""))
    try:
        if media_type == PROTOBUF:
            api_version, kind, raw = decode_envelope(request.body)
            document = decode_message(_DELETE_OPTIONS, raw)
        else:
            parse = parse_yaml if media_type == YAML else parse_json
            value = parse(request.body).value
            if value is None:
                value = {}
            if not isinstance(value, dict):
                problem = f"json: cannot unmarshal {go_kind(value)} into Go value of type {_KIND_STRUCT}"
                raise bad_request(f"couldn't get version/kind; json parse error: {problem}")
            api_version, kind = str(value.get("apiVersion") or ""), str(value.get("kind") or "")
            document = value
        if kind and kind != "DeleteOptions":
            scheme = 'in scheme "pkg/runtime/scheme.go:111"'
            version = api_version or "meta.k8s.io/v1"
            raise bad_request(f'no kind "{kind}" is registered for version "{version}" {scheme}')
        read = shape_of(_DELETE_OPTIONS).read(document)
    except BodyError as problem:
        if media_type == YAML:
            raise bad_request(str(problem)) from problem
        raise bad_request(f"couldn't get version/kind; json parse error: {problem}") from problem
    except (DecodeError, ProtobufError) as problem:
        raise bad_request(str(problem)) from problem
    assert isinstance(read, dict)
    return read
