"""The verb ``patch``: JSON, merge and strategic merge patches, and server-side apply."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import cast

from bayplan.apiserver.codec import raw_values
from bayplan.apiserver.codec.bodies import BodyError, Parsed, parse_json
from bayplan.apiserver.codec.decode_error import DecodeError, go_kind
from bayplan.apiserver.codec.unstructured import unstructured_problem, wrapped
from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.compare import KeylessItemError, fields_of
from bayplan.apiserver.fields.field_declarations import configuration_problem
from bayplan.apiserver.fields.field_set import paths
from bayplan.apiserver.fields.field_type import FieldType
from bayplan.apiserver.model.errors import (
    ApiError,
    Cause,
    bad_request,
    conflict,
    internal,
    invalid,
    not_found,
    too_large,
)
from bayplan.apiserver.model.object_meta import drop_repeated_owners, shown
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.patches.json_patch import MAX_OPERATIONS, JsonPatchError, check_spelling, json_patch, merge_patch
from bayplan.apiserver.patches.key_order import in_go_order, opened_by_merge, opened_by_operations
from bayplan.apiserver.patches.older_versions import of_older_version
from bayplan.apiserver.patches.quoting import as_quoted
from bayplan.apiserver.patches.strategic import StrategicPatchError, go_map, strategic_merge
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.decoding import (
    Target,
    kind_problem,
    of_version,
    read_custom,
    read_value,
    target_of,
    yaml_of,
    yaml_warnings,
)
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.options import write_options
from bayplan.apiserver.rest.patched_kinds import custom_kind_problem, type_problem, with_custom_kind
from bayplan.apiserver.rest.paths import check_name
from bayplan.apiserver.rest.updates import check_place, managers_after, undeterminable_name
from bayplan.apiserver.rest.writing import Written
from bayplan.base.plain_data import Document, part, text
from bayplan.objects.selectors import quote

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL = "kubectl"
_DECIMAL = re.compile(
    r"json: cannot unmarshal number -?\d+\.\d+ into Go (?:struct field \S+|value) of type (int32|int64)"
)
_OWN_DECODER = re.compile(r"Go struct field \S+ of type (int32|string)$")
"""Matches the end of an error about a value whose type has its own decoder; upstream's converter shows no path there."""
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
        return _apply(backend, info, request, options)
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
    duplicates: list[str] = []
    if media_type == JSON_PATCH:
        value, duplicates = _json_patched(whole, body)
    else:
        changes, duplicates = _changes(body, "error decoding patch: ")
        if changes is None:
            raise bad_request("Invalid JSON Patch")
        value = merge_patch(whole, changes)
    if not isinstance(value, dict):
        raise ApiError(422, _REJECTED, details={})
    # Upstream's patch library sorts the fields of an object, and error messages show them.
    value = dict(sorted(value.items()))
    places = raw_values.OF_TYPE.get(target.type_name)
    if places:
        value = raw_values.patched(places, value, old)
    if target.type_name:
        problem = type_problem(value) or kind_problem(target, value.get("apiVersion"), value.get("kind"))
    else:
        problem = custom_kind_problem(value, partial(_quoted, target, whole, value, body, media_type))
    if problem:
        raise _unfit(_quoted(target, whole, value, body, media_type), problem)
    if not target.type_name:
        value = with_custom_kind(target, value, old, subresource)
    try:
        new, problems = _read_patched(target, value, duplicates, validation)
    except DecodeError as unreadable:
        raise _unfit(_quoted(target, whole, value, body, media_type), str(unreadable)) from unreadable
    if problems and target.type_name:
        # The errors follow the keys of the patched JSON, which upstream's patch library sorts in the objects that it opens.
        ordered = _opened(target, whole, value, body, media_type)
        _, problems = _read_patched(target, ordered, duplicates, validation)
    if problems and validation == "Strict":
        raise _unfit(_quoted(target, whole, value, body, media_type), f"strict decoding error: {', '.join(problems)}")
    return new, problems


def _quoted(target: Target, whole: Document, value: Document, body: bytes, media_type: str) -> str:
    """Return the patched object as upstream's errors quote it."""
    return shown(_opened(target, whole, value, body, media_type))


def _opened(target: Target, whole: Document, value: Document, body: bytes, media_type: str) -> Document:
    """Return the patched object with the keys in the order of upstream's JSON. `whole` is the object before the patch."""
    patch = parse_json(body).value
    ordered = in_go_order(target.type_name, whole if media_type == JSON_PATCH else value)
    assert isinstance(ordered, dict)
    if media_type == JSON_PATCH:
        return cast("Document", opened_by_operations(ordered, patch))
    return opened_by_merge(ordered, patch)


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

    def unfit(why: str) -> ApiError:
        return _unfit(go_map(as_quoted(whole, changes or {})), why)

    why = unstructured_problem(target.type_name, value)
    if why:
        raise unfit(why)
    places = raw_values.OF_TYPE.get(target.type_name)
    if places:
        value = raw_values.rewritten(places, value)
    try:
        new, problems = _read_wrapped(target, value, [], validation)
    except DecodeError as unreadable:
        raise unfit(str(unreadable)) from unreadable
    # The converter of Go maps, unlike the decoder of JSON, sorts its errors.
    problems = [*(duplicates if validation != "Ignore" else ()), *sorted(problems)]
    if problems and validation == "Strict":
        raise unfit(f"strict decoding error: {', '.join(problems)}")
    return new, problems


def _strategic_error(problem: StrategicPatchError) -> ApiError:
    if problem.code == 422:
        return ApiError(422, _REJECTED, details={})
    return ApiError(500, str(problem), reason="") if problem.code == 500 else ApiError(problem.code, str(problem))


def _read_wrapped(
    target: Target, value: Document, duplicates: list[str], validation: str
) -> tuple[Document, list[str]]:
    """Return the object in a document that upstream decodes from Go maps instead of JSON; see `read_value`."""
    try:
        return read_value(target, value, duplicates, validation)
    except DecodeError:
        pass
    try:
        return read_value(target, cast("Document", wrapped(target.type_name, value)), duplicates, validation)
    except DecodeError as problem:
        if str(problem).startswith("illegal base64 data"):
            raise DecodeError(f"error decoding from json: {problem}") from problem
        raise


def _read_applied(target: Target, value: Document, validation: str) -> tuple[Document, list[str]]:
    """Return the object that an apply results in; see `read_value`."""
    if target.type_name:
        return _read_wrapped(target, value, [], validation)
    # The fields of custom resources were checked before.
    return read_custom(target, value, "Ignore", preserve_nulls=True)


def _unfit(given: str, why: str) -> ApiError:
    return invalid("", "", "", [Cause("FieldValueInvalid", f"Invalid value: {quote(given)}: {why}", "patch")])


def _read(body: bytes, intro: str) -> Parsed:
    try:
        return parse_json(body)
    except BodyError as problem:
        raise bad_request(f"{intro}{problem}") from problem


def _changes(body: bytes, intro: str) -> tuple[Document | None, list[str]]:
    """Return the object in a patch (None for null), and strict decoding's errors about duplicate keys."""
    value, duplicates = _read(body, intro)
    if value is not None and not isinstance(value, dict):
        text = f"json: cannot unmarshal {go_kind(value)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"{intro}{text}")
    return value, duplicates


_OPERATION_TEXTS = ("op", "path", "from")
_OPERATION_FIELDS = ("op", "path", "from", "value")


def _json_patched(whole: Document, body: bytes) -> tuple[object, list[str]]:
    """Return the patched object, and strict decoding's errors about the operations."""
    operations, problems = _read(body, "error decoding patch: ")
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


# --- server-side apply ------------------------------------------------------------------------------------------------


def _apply(backend: Backend, info: RequestInfo, request: Request, options: WriteOptions) -> Written:
    resource = info.resource
    item = backend.store.get(resource.table, (info.namespace, info.name))
    if item is None and info.subresource:
        strategy = backend.strategy(resource)
        if not strategy.create_on_update and not strategy.created_by_applied_status:
            raise not_found(resource.name, resource.group, info.name)
    zero = writing.zero_document(resource)
    old = zero if item is None else backend.document(resource, item)
    config = applied_value(request)
    check_configuration(target_of(resource), resource.fields, config)
    if item is None and not part(config, "metadata").get("name"):
        raise undeterminable_name(info)
    repeated = [] if options.validation == "Ignore" else _repeated_keys(request)
    sent = part(config, "metadata").get("resourceVersion")
    request_facts = writing.ownership(backend, info, options)
    managers = managed.decode(part(old, "metadata").get("managedFields"))
    try:
        merged, managers = _applied(request_facts, zero, old, config, managers, force=options.force)
    except managed.ApplyConflict as problem:
        raise conflicting(problem) from problem
    except managed.UndeclaredFieldError as problem:
        raise internal(str(problem)) from problem
    except KeylessItemError as problem:
        where, why = _identity(target_of(resource), old), configuration_problem("", resource.fields, old)
        text = f"failed to convert new object ({where}) to smd typed: {why}"
        raise internal(f"failed to create manager for existing fields: {text}") from problem
    if repeated and options.validation == "Strict":
        raise bad_request(f"error strict decoding YAML: {repeated[0]}")
    places, head = raw_values.OF_TABLE.get(resource.table), {"apiVersion": resource.api_version, "kind": resource.kind}
    if places:
        unchanged = {**managed.bare(old), **head}
        merged = unchanged if {**merged, **head} == unchanged else raw_values.rewritten(places, merged)
    try:
        new, warnings = _read_applied(target_of(resource), merged, options.validation)
    except DecodeError as problem:
        identity = _identity(target_of(resource), config)
        kind = identity.partition("; ")[2]
        # Upstream converts Go maps here, in which a number with decimals is a float64.
        text = _DECIMAL.sub(r"cannot convert float64 to \1", _OWN_DECODER.sub(r"Go value of type \1", str(problem)))
        why = f"unable to convert unstructured object to {kind}: {text}"
        raise internal(f"failed to convert new object ({identity}) to proper version: {why}") from problem
    warnings = [line for problem in repeated for line in yaml_warnings(problem)] + warnings
    request.warnings += warnings
    metadata = part(new, "metadata")
    if metadata.get("name") not in (None, "", info.name):
        raise writing.wrong_name(str(metadata["name"]), info.name)
    if item is None:
        if metadata.get("uid"):
            why = f"the provided object specified uid {metadata['uid']}, and no existing object was found"
            raise conflict(resource.name, resource.group, info.name, f"uid mismatch: {why}")
        metadata["name"] = info.name
        metadata.pop("resourceVersion", None)
        writing.place(info, metadata)
        writing.check_namespace(backend, info, info.name)
        written = writing.store_new(backend, info, new, managers, options)
    else:
        check_place(info, metadata)
        part(new, "metadata")["resourceVersion"] = sent or ""
        writing.check_version(resource, info, new, old, required=False)
        written = writing.change(backend, info, old, new, managers, options)
    written.warnings = [*warnings, *written.warnings]
    return written


def _applied(
    request: managed.WriteContext,
    zero: Document,
    old: Document,
    config: Document,
    managers: managed.Managers,
    *,
    force: bool,
) -> tuple[Document, managed.Managers]:
    """Apply a configuration, and update kubectl's annotation of client-side apply if the object has it.

    Fields of kubectl's last client-side apply do not conflict.

    Raises:
        ApplyConflict: other managers own a field that the configuration changes.
    """
    before = part(old, "metadata", "annotations").get(_LAST_APPLIED)
    by_kubectl = request.manager == _KUBECTL and isinstance(before, str) and bool(before)
    try:
        merged, managers = managed.apply(request, zero, old, config, managers, force=force)
    except managed.ApplyConflict as problem:
        if not by_kubectl or not _is_own(request, str(before), problem):
            raise
        merged, managers = managed.apply(request, zero, old, config, managers, force=True)
    if by_kubectl:
        metadata = {**part(merged, "metadata")}
        text = json.dumps(config, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
        metadata["annotations"] = {**part(metadata, "annotations"), _LAST_APPLIED: text}
        merged = {**merged, "metadata": metadata}
    return merged, managers


def _is_own(request: managed.WriteContext, before: str, problem: managed.ApplyConflict) -> bool:
    """Return whether all conflicts are about fields of the configuration in kubectl's annotation."""
    try:
        config = parse_json(before.encode()).value
    except BodyError:
        return False
    known = set(paths(fields_of(request.kind, config)))
    return all(path in known for _, path in problem.conflicts)


def applied_value(request: Request) -> Document:
    """Return the configuration in the body of an apply.

    Raises:
        ApiError: the body is not YAML, or not an object.
    """
    try:
        value = yaml_of(request).value
    except BodyError as problem:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {problem}") from problem
    if value is None:
        return {}
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {go_kind(value)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    return cast("Document", value)


def _repeated_keys(request: Request) -> list[str]:
    """Return strict decoding's errors about keys that occur twice in an applied configuration."""
    return [f"error converting YAML to JSON: {problem}" for problem in yaml_of(request).duplicates]


def check_configuration(target: Target, fields: FieldType, config: Document) -> None:
    """Check the kind and the fields of an applied configuration.

    Raises:
        ApiError: the configuration has a different kind, field managers, or fields that do not fit the type.
    """
    api_version, kind = text(config, "apiVersion"), text(config, "kind")
    if (api_version, kind) != (target.api_version, target.kind):
        group, _, version = api_version.rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
    if part(config, "metadata").get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    problem = configuration_problem(target.type_name, fields, config)
    if problem:
        raise internal(f"failed to create typed patch object ({_identity(target, config)}): {problem}")


def _identity(target: Target, config: Document) -> str:
    metadata, (group, _, version) = part(config, "metadata"), target.api_version.rpartition("/")
    return f"{text(metadata, 'namespace')}/{text(metadata, 'name')}; {group}/{version}, Kind={target.kind}"


def conflicting(problem: managed.ApplyConflict) -> ApiError:
    """Return the error 409 of an apply that conflicts with other managers."""
    causes: list[object] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
        for manager, path in problem.conflicts
    ]
    return ApiError(409, str(problem), details={"causes": causes})
