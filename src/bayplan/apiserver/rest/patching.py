"""The verb ``patch``: JSON, merge and strategic merge patches. Server-side apply is in `applying`."""

from __future__ import annotations

from typing import cast

from bayplan.apiserver.codec import raw_values
from bayplan.apiserver.codec.bodies import BodyError, Parsed, parse_json
from bayplan.apiserver.codec.decode_error import DecodeError, go_kind
from bayplan.apiserver.codec.unstructured import unstructured_problem
from bayplan.apiserver.model.errors import (
    ApiError,
    Cause,
    bad_request,
    invalid,
    not_found,
    too_large,
)
from bayplan.apiserver.model.object_meta import drop_repeated_owners, shown
from bayplan.apiserver.model.requests import RequestInfo
from bayplan.apiserver.patches.json_patch import MAX_OPERATIONS, JsonPatchError, check_spelling, json_patch, merge_patch
from bayplan.apiserver.patches.key_order import in_go_order, opened_by_merge
from bayplan.apiserver.patches.older_versions import of_older_version
from bayplan.apiserver.patches.quoting import as_quoted
from bayplan.apiserver.patches.strategic import StrategicPatchError, strategic_merge
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.applying import apply, read_wrapped
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.body_types import Target, kind_problem, of_version, target_of
from bayplan.apiserver.rest.decoding import KIND_STRUCT, NO_KIND, read_value
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.options import write_options
from bayplan.apiserver.rest.patched_kinds import custom_kind_problem, type_problem, with_custom_kind
from bayplan.apiserver.rest.paths import check_name
from bayplan.apiserver.rest.preconditions import find_namespace
from bayplan.apiserver.rest.updates import check_place, managers_after
from bayplan.apiserver.rest.writing import Written
from bayplan.base.go_text.json import go_map
from bayplan.base.plain_data import Document, part
from bayplan.objects.selectors import quote

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
_REJECTED = "the server rejected our request due to an error in our request"


def check_patch_type(request: Request) -> None:
    """Raise if no media type of the Content-Type header is that of a patch. Upstream's framework checks this first.

    Raises:
        ApiError: the type is not supported.
    """
    listed = request.headers.get("content-type", "").split(",")
    if not any(each.partition(";")[0].strip() in _TYPES for each in listed):
        raise ApiError(415, "415: Unsupported Media Type", details={})


def patch_type(request: Request, *, custom: bool) -> str:
    """Return the media type of a patch.

    Args:
        request: the request.
        custom: whether the resource is a custom resource, which has no strategic merge patches.

    Raises:
        ApiError: the type is not supported.
    """
    header = request.headers.get("content-type", "")
    media_type = header.partition(";")[0] or header
    if media_type not in _TYPES or (custom and media_type == STRATEGIC_PATCH):
        listed = ", ".join(each for each in _TYPES if not (custom and each == STRATEGIC_PATCH))
        text = f"the body of the request was in an unknown format - accepted media types include: {listed}"
        raise ApiError(415, text)
    return media_type


def patch(backend: Backend, info: RequestInfo, request: Request) -> Written:
    """Patch an object, or apply a configuration to it.

    Raises:
        ApiError: the patch cannot be decoded or applied, or the changed object is rejected.
    """
    resource = info.resource
    media_type = patch_type(request, custom=resource.custom is not None)
    options = write_options(request, "PatchOptions", apply=media_type == APPLY_PATCH)
    check_name(info.name)
    if media_type == APPLY_PATCH:
        return apply(backend, info, request, options)
    item = backend.store.get(resource.table, (info.namespace, info.name))
    if item is None:
        raise not_found(resource.name, resource.group, info.name)
    old = backend.document(resource, item)
    target = target_of(resource)
    new, warnings = patched(target, old, request.body, media_type, options.validation, info.subresource)
    warnings += drop_repeated_owners(part(new, "metadata"), when=" after mutating admission happens")
    request.warnings += warnings
    check_place(info, part(new, "metadata"))
    required = not backend.strategy(resource).unconditional_update
    writing.check_version(resource, info, new, old, required=required)
    managers = managers_after(backend, info, old, new, options)
    find_namespace(backend, info)
    written = writing.change(backend, info, old, new, managers, options)
    written.warnings = [*warnings, *written.warnings]
    return written


def patched(
    target: Target, old: Document, body: bytes, media_type: str, validation: str, subresource: str = ""
) -> tuple[Document, list[str]]:
    """Return the patched object, decoded and with defaults, and the warnings.

    Args:
        target: the type of the object.
        old: the current object.
        body: the patch.
        media_type: the type of the patch, except `APPLY_PATCH`.
        validation: "Ignore", "Warn" or "Strict".
        subresource: the endpoint.

    Raises:
        ApiError: the patch cannot be decoded or applied, or its result does not fit the type.
    """
    whole = {"apiVersion": target.api_version, "kind": target.kind, **old}
    if media_type == STRATEGIC_PATCH:
        return _strategic_patched(target, whole, body, validation)
    value, duplicates = _changed(whole, body, media_type)
    places = raw_values.OF_TYPE.get(target.type_name)
    if places:
        value = raw_values.patched(places, value, old)

    def ordered() -> Document:
        return _opened(target, whole, value, body, media_type)

    def invalid_result(why: str) -> ApiError:
        return _invalid_result(shown(ordered()), why)

    if target.type_name:
        problem = type_problem(value) or kind_problem(target, value.get("apiVersion"), value.get("kind"))
    else:
        problem = custom_kind_problem(value, lambda: shown(ordered()))
    if problem:
        raise invalid_result(problem)
    if not target.type_name:
        value = with_custom_kind(target, value, old, subresource)
    try:
        new, problems = _read_patched(target, value, duplicates, validation)
    except DecodeError as unreadable:
        raise invalid_result(str(unreadable)) from unreadable
    if problems and target.type_name:
        # The errors follow the keys of the patched JSON, which upstream's patch library sorts in the objects that it opens.
        _, problems = _read_patched(target, ordered(), duplicates, validation)
    if problems and validation == "Strict":
        raise invalid_result(f"strict decoding error: {', '.join(problems)}")
    return new, problems


def _changed(whole: Document, body: bytes, media_type: str) -> tuple[Document, list[str]]:
    """Return the object after a JSON or merge patch, and strict decoding's errors about the patch.

    Raises:
        ApiError: the patch cannot be decoded or applied, or its result is not an object.
    """
    if media_type == JSON_PATCH:
        value, duplicates = _json_patched(whole, body)
    else:
        changes, duplicates = _changes(body, "error decoding patch: ")
        if changes is None:
            raise bad_request("Invalid JSON Patch")
        value = merge_patch(whole, changes)
    if isinstance(value, list):
        raise _invalid_result(shown(value), f"{NO_KIND}json: cannot unmarshal array {KIND_STRUCT}")
    if not isinstance(value, dict):
        raise ApiError(422, _REJECTED, details={})
    # Upstream's patch library sorts the fields of an object, and error messages show them.
    return dict(sorted(value.items())), duplicates


def _opened(target: Target, whole: Document, value: Document, body: bytes, media_type: str) -> Document:
    """Return the patched object with the keys in the order of upstream's JSON. `whole` is the object before the patch."""
    ordered = cast("Document", in_go_order(target.type_name, whole if media_type == JSON_PATCH else value))
    if media_type == JSON_PATCH:
        return cast("Document", _json_patched(ordered, body)[0])
    return opened_by_merge(ordered, parse_json(body).value)


def _read_patched(
    target: Target, value: Document, duplicates: list[str], validation: str
) -> tuple[Document, list[str]]:
    """Return the object in the JSON after a patch; see `read_value`.

    If the patch removes apiVersion, upstream decodes to its internal Go type, whose fields have different names, so all
    fields are unknown.
    """
    if value.get("apiVersion") or not target.type_name:
        sent_as = of_version(target, str(value.get("apiVersion") or ""))
        if sent_as is not target:
            found, problems = read_value(sent_as, value, duplicates, validation)
            if problems:  # Fields that this version lacks are lost.
                return read_value(target, found, [], "Ignore")[0], problems
        return read_value(target, of_older_version(value), duplicates, validation)
    names = [name for name in value if name not in ("apiVersion", "kind")]
    unknown = [f'unknown field "{name}"' for name in names] if validation != "Ignore" else []
    return {"metadata": {}}, unknown


def _strategic_patched(target: Target, whole: Document, body: bytes, validation: str) -> tuple[Document, list[str]]:
    changes, duplicates = _changes(body, "")
    try:
        value = whole if changes is None else strategic_merge(target.type_name, whole, changes)
    except StrategicPatchError as problem:
        raise _strategic_error(problem) from problem

    def invalid_result(why: str) -> ApiError:
        return _invalid_result(go_map(as_quoted(whole, changes or {})), why)

    why = unstructured_problem(target.type_name, value)
    if why:
        raise invalid_result(why)
    places = raw_values.OF_TYPE.get(target.type_name)
    if places:
        value = raw_values.rewritten(places, value)
    try:
        new, problems = read_wrapped(target, value, [], validation)
    except DecodeError as unreadable:
        raise invalid_result(str(unreadable)) from unreadable
    # The converter of Go maps, unlike the decoder of JSON, sorts its errors.
    problems = [*(duplicates if validation != "Ignore" else ()), *sorted(problems)]
    if problems and validation == "Strict":
        raise invalid_result(f"strict decoding error: {', '.join(problems)}")
    return new, problems


def _strategic_error(problem: StrategicPatchError) -> ApiError:
    if problem.code == 422:
        return ApiError(422, _REJECTED, details={})
    return ApiError(500, str(problem), reason="") if problem.code == 500 else ApiError(problem.code, str(problem))


def _invalid_result(given: str, why: str) -> ApiError:
    return invalid("", "", "", [Cause("FieldValueInvalid", f"Invalid value: {quote(given)}: {why}", "patch")])


def _read(body: bytes, intro: str) -> Parsed:
    try:
        return parse_json(body)
    except BodyError as problem:
        raise bad_request(f"{intro}{problem}") from problem


def _changes(body: bytes, intro: str) -> tuple[Document | None, list[str]]:
    """Return the object in a patch (None for null), and strict decoding's errors about duplicate keys."""
    value, duplicates, _ = _read(body, intro)
    if value is not None and not isinstance(value, dict):
        text = f"json: cannot unmarshal {go_kind(value)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"{intro}{text}")
    return value, duplicates


_OPERATION_TEXTS = ("op", "path", "from")
_OPERATION_FIELDS = ("op", "path", "from", "value")


def _json_patched(whole: Document, body: bytes) -> tuple[object, list[str]]:
    """Return the patched object, and strict decoding's errors about the operations."""
    operations, problems, _ = _read(body, "error decoding patch: ")
    if operations is None:
        operations = []
    if not isinstance(operations, list):
        text = f"json: cannot unmarshal {go_kind(operations)} into Go value of type []handlers.jsonPatchOp"
        raise bad_request(f"error decoding patch: {text}")
    operations = [{} if each is None else each for each in operations]
    for each in operations:
        if not isinstance(each, dict):
            text = f"json: cannot unmarshal {go_kind(each)} into Go value of type handlers.jsonPatchOp"
            raise bad_request(f"error decoding patch: {text}")
        for name, value in each.items():
            if name in _OPERATION_TEXTS and not isinstance(value, str | None):
                text = f"json: cannot unmarshal {go_kind(value)} into Go struct field jsonPatchOp.{name} of type string"
                raise bad_request(f"error decoding patch: {text}")
    if len(operations) > MAX_OPERATIONS:
        raise too_large(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")
    unknown = [
        f'unknown field "[{index}].{name}"'
        for index, each in enumerate(operations)
        for name in each
        if name not in _OPERATION_FIELDS
    ]
    try:
        found = json_patch(whole, operations)
        check_spelling(whole, operations, body)
        return found, [f"json patch {each}" for each in (*problems, *unknown)]
    except JsonPatchError as problem:
        raise ApiError(422, _REJECTED, details={}) from problem
