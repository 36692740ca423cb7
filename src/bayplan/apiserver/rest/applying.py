"""Server-side apply: merge an applied configuration with the object, and store the result."""

from __future__ import annotations

import re
from typing import cast

from bayplan.apiserver.codec import raw_values
from bayplan.apiserver.codec.bodies import BodyError
from bayplan.apiserver.codec.decode_error import DecodeError, go_kind
from bayplan.apiserver.codec.shape import shape_of
from bayplan.apiserver.codec.unstructured import wrapped
from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.compare import KeylessItemError
from bayplan.apiserver.fields.field_declarations import configuration_problem, object_problem
from bayplan.apiserver.fields.field_type import FieldType
from bayplan.apiserver.fields.pruning import ConversionError
from bayplan.apiserver.model.errors import (
    ApiError,
    bad_request,
    conflict,
    internal,
    not_found,
)
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest import last_applied, writing
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.body_types import Target, target_of
from bayplan.apiserver.rest.decoding import read_custom, read_value, yaml_of, yaml_warnings
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.preconditions import find_namespace, sent_revision
from bayplan.apiserver.rest.updates import check_place, stored_managers, undeterminable_name
from bayplan.apiserver.rest.writing import Written
from bayplan.base.plain_data import Document, part, text

_DECIMAL = re.compile(
    r"json: cannot unmarshal number -?\d+\.\d+ into Go (?:struct field \S+|value) of type (int32|int64)"
)
_OWN_DECODER = re.compile(r"Go struct field \S+ of type (int32|string)$")
"""Matches the end of an error about a value whose type has its own decoder; upstream's converter shows no path there."""


def apply(backend: Backend, info: RequestInfo, request: Request, options: WriteOptions) -> Written:
    """Apply the configuration in the body of a request to an object, which is created if it does not exist.

    Raises:
        ApiError: the configuration cannot be decoded, conflicts with other managers, or its result is rejected.
    """
    resource = info.resource
    item = backend.store.get(resource.table, (info.namespace, info.name))
    if item is None and info.subresource:
        strategy = backend.strategy(resource)
        if not strategy.create_on_update and not strategy.created_by_applied_status:
            raise not_found(resource.name, resource.group, info.name)
    old = writing.zero_document(resource) if item is None else backend.document(resource, item)
    config = applied_value(request)
    if item is not None and not part(old, "metadata").get("managedFields"):
        _check_live(
            resource,
            old,
            "failed to create manager for existing fields: failed to convert new object ({}) to smd typed",
        )
    check_configuration(target_of(resource), resource.fields, config)
    if item is not None:
        _check_live(resource, old, "failed to create typed live object ({})")
    if item is None and not part(config, "metadata").get("name"):
        raise undeterminable_name(info)
    repeated = [] if options.validation == "Ignore" else _repeated_keys(request)
    merged, managers = _merged(backend, info, old, config, options)
    if repeated and options.validation == "Strict":
        raise bad_request(f"error strict decoding YAML: {repeated[0]}")
    new, warnings = _read_merged(resource, merged, old, config, options.validation)
    warnings = [line for problem in repeated for line in yaml_warnings(problem)] + warnings
    request.warnings += warnings
    metadata = part(new, "metadata")
    if metadata.get("name") not in (None, "", info.name):
        raise writing.wrong_name(str(metadata["name"]), info.name)
    if item is None:
        written = _created(backend, info, new, managers, options)
    else:
        check_place(info, metadata)
        required = not backend.strategy(resource).unconditional_update
        writing.check_version(resource, info, new, old, required=required)
        find_namespace(backend, info)
        written = writing.change(backend, info, old, new, managers, options)
    written.warnings = [*warnings, *written.warnings]
    return written


def _check_live(resource: Resource, old: Document, text: str) -> None:
    """Raise ApiError if a custom resource does not fit its schema, which may have changed.

    Args:
        resource: the resource.
        old: the stored object.
        text: the start of the message; the braces stand for the identity of the object.
    """
    problem = object_problem(resource.fields, old) if resource.custom is not None else ""
    if problem:
        raise internal(f"{text.format(_identity(target_of(resource), old))}: {problem}")


def _created(
    backend: Backend, info: RequestInfo, new: Document, managers: managed.Managers, options: WriteOptions
) -> Written:
    """Store an object that an apply creates.

    Raises:
        ApiError: the configuration is for an existing object, or the new object is rejected.
    """
    resource, metadata = info.resource, part(new, "metadata")
    if metadata.get("uid"):
        why = f"the provided object specified uid {metadata['uid']}, and no existing object was found"
        raise conflict(resource.name, resource.group, info.name, f"uid mismatch: {why}")
    metadata["name"] = info.name
    sent_revision(new)
    if not options.dry_run:  # Only upstream's storage removes the version.
        metadata.pop("resourceVersion", None)
    writing.place(info, metadata)
    writing.check_namespace(backend, info, info.name)
    return writing.store_new(backend, info, new, managers, options)


def _merged(
    backend: Backend, info: RequestInfo, old: Document, config: Document, options: WriteOptions
) -> tuple[Document, managed.Managers]:
    """Return the object with a configuration applied, not decoded yet, and its field managers.

    Raises:
        ApiError: other managers own a changed field, or the fields of the object cannot be tracked.
    """
    resource, context = info.resource, writing.ownership(backend, info, options)
    managers = stored_managers(backend, resource, old)
    try:
        return _applied(context, resource, old, config, managers, force=options.force)
    except managed.ApplyConflict as problem:
        raise conflicting(problem) from problem
    except ConversionError as problem:
        raise internal(str(problem)) from problem
    except KeylessItemError as problem:
        where, why = _identity(target_of(resource), old), configuration_problem("", resource.fields, old)
        text = f"failed to convert new object ({where}) to smd typed: {why}"
        raise internal(f"failed to create manager for existing fields: {text}") from problem


def _applied(
    request: managed.WriteContext,
    resource: Resource,
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
    zero, by_kubectl = writing.zero_document(resource), request.manager == last_applied.KUBECTL
    try:
        merged, left = managed.apply(request, zero, old, config, managers, force=force)
    except managed.ApplyConflict as problem:
        if not by_kubectl:
            raise
        last_applied.check_conflicts(resource, old, problem)
        merged, left = managed.apply(request, zero, old, config, managers, force=True)
    return last_applied.updated(merged, config) if by_kubectl else merged, left


def _read_merged(
    resource: Resource, merged: Document, old: Document, config: Document, validation: str
) -> tuple[Document, list[str]]:
    """Return the decoded object that an apply results in, and its warnings.

    Raises:
        ApiError: a value does not fit its field.
    """
    target, places = target_of(resource), raw_values.OF_TABLE.get(resource.table)
    if places:
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        unchanged = {**managed.bare(old), **head}
        merged = unchanged if {**merged, **head} == unchanged else raw_values.rewritten(places, merged)
    try:
        if target.type_name:
            return read_wrapped(target, merged, [], validation)
        # The fields of custom resources were checked before.
        return read_custom(target, merged, "Ignore", preserve_nulls=True)
    except DecodeError as problem:
        identity = _identity(target, config)
        kind = identity.partition("; ")[2]
        # Upstream converts Go maps here, in which a number with decimals is a float64.
        text = _OWN_DECODER.sub(r"Go value of type \1", str(problem))
        text = text if problem.is_own else _DECIMAL.sub(r"cannot convert float64 to \1", text)
        why = f"unable to convert unstructured object to {kind}: {text}"
        raise internal(f"failed to convert new object ({identity}) to proper version: {why}") from problem


def read_wrapped(target: Target, value: Document, duplicates: list[str], validation: str) -> tuple[Document, list[str]]:
    """Return the object in a document that upstream decodes from Go maps instead of JSON; see `read_value`."""
    try:
        return read_value(target, value, duplicates, validation)
    except DecodeError:
        pass
    converted = cast("Document", wrapped(target.type_name, value))
    try:
        shape_of(target.type_name).read(
            converted
        )  # Unlike the decoder of JSON, the converter stops at the first error.
        return read_value(target, converted, duplicates, validation)
    except DecodeError as problem:
        if str(problem).startswith("illegal base64 data"):
            raise DecodeError(f"error decoding from json: {problem}") from problem
        raise


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
