"""Decoding of request bodies to objects of a kind: check types, report unknown fields, apply defaults."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import NamedTuple, cast

from bayplan.apiserver.codec import raw_values
from bayplan.apiserver.codec.bodies import BodyError, Parsed, parse_json, parse_yaml, summarize, with_literals
from bayplan.apiserver.codec.decode_error import DecodeError, go_kind, reported
from bayplan.apiserver.codec.protobuf import ProtobufError, decode_envelope, decode_message
from bayplan.apiserver.codec.repeated_fields import merge_repeated
from bayplan.apiserver.codec.shape import Unknown, shape_of
from bayplan.apiserver.kinds.custom_pruning import prune
from bayplan.apiserver.kinds.defaults import apply_defaults
from bayplan.apiserver.kinds.pods import unify_pod_ips
from bayplan.apiserver.kinds.spec_cache import SpecCache
from bayplan.apiserver.model.errors import ApiError, bad_request
from bayplan.apiserver.model.object_meta import drop_repeated_owners
from bayplan.apiserver.rest.body_types import (
    Target,
    check_kind,
    check_version,
    of_version,
    wrong_custom_type,
    wrong_version,
)
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.negotiation import PROTOBUF, YAML, input_type
from bayplan.base.plain_data import Document, part, with_sorted_keys

LONG_YAML = 128 * 1024
"""Minimum size in bytes of YAML bodies that a thread parses: 128 KiB take 50 ms, or 10 ms with the extra `fast`."""
_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SECRET = "io.k8s.api.core.v1.Secret"
_POD = "io.k8s.api.core.v1.Pod"
_SPECS = SpecCache()
KIND_STRUCT = (
    r'into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)
NO_KIND = "couldn't get version/kind; json parse error: "


class Decoded(NamedTuple):
    """A decoded object, and the warnings about its body for the client."""

    document: Document
    warnings: list[str]


def yaml_of(request: Request) -> Parsed:
    """Return the value of a YAML body. The result, or the error, is cached in the request.

    Raises:
        BodyError: the body is not valid YAML.
    """
    if not isinstance(request.parsed, Parsed | BodyError):
        try:
            request.parsed = parse_yaml(request.body)
        except BodyError as problem:
            request.parsed = problem
    if isinstance(request.parsed, BodyError):
        raise request.parsed
    return request.parsed


async def read_ahead(request: Request) -> None:
    """Parse a long YAML body in a thread, so that the server stays responsive: parsing 3 MB takes a second."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if len(request.body) < LONG_YAML or media_type not in (YAML, "application/apply-patch+yaml"):
        return
    try:
        request.parsed = await asyncio.to_thread(parse_yaml, request.body)
    except BodyError as problem:
        request.parsed = problem


def decode_request(target: Target, request: Request, validation: str) -> Decoded:
    """Return the object in the body of a request, with defaults applied.

    Args:
        target: the expected type.
        request: the request, which receives the warnings.
        validation: "Ignore", "Warn" or "Strict", as in the parameter `fieldValidation`.

    Raises:
        ApiError: the body cannot be decoded, is an object of a different kind, or fails strict validation.
    """
    media_type, body = input_type(request.headers.get("content-type", "")), request.body
    is_json = media_type not in (YAML, PROTOBUF)
    if media_type == PROTOBUF:
        sent_version, value = _protobuf_value(target, body)
        duplicates: list[str] = []
    else:
        value, duplicates = _text_value(target, request, is_yaml=media_type == YAML)
        sent_version = str(value.get("apiVersion") or "")
    places = raw_values.OF_TYPE.get(target.type_name)
    if places:
        value = raw_values.sent(places, value, body if is_json else None)
        duplicates = raw_values.outside(places, duplicates)
    sent_as = of_version(target, sent_version)
    try:
        decoded = decode_value(sent_as, value, duplicates, validation)
    except ApiError as problem:
        if is_json and target.type_name and _WRONG_NUMBER in problem.message and _POSSIBLE_FLOAT.search(body):
            _raise_with_literals(sent_as, body)
        raise
    request.warnings += decoded.warnings
    if target.type_name:
        check_version(target, sent_version)
    repeated = drop_repeated_owners(part(decoded.document, "metadata"))
    decoded.warnings.extend(repeated)
    request.warnings += repeated
    return decoded


def _protobuf_value(target: Target, body: bytes) -> tuple[str, Document]:
    """Return the apiVersion of an object in Protobuf, and the object as JSON.

    Raises:
        ApiError: the body is not Protobuf, or an object of a different kind.
    """
    try:
        api_version, kind, raw = decode_envelope(body)
    except ProtobufError as problem:
        raise _unrecognized(target, str(problem), body) from problem
    check_kind(target, api_version, kind)
    try:
        return api_version, decode_message(target.type_name, raw)
    except ProtobufError as problem:
        raise _unreadable(target, str(problem)) from problem


def _text_value(target: Target, request: Request, *, is_yaml: bool) -> tuple[Document, list[str]]:
    """Return the object in a JSON or YAML body, and strict decoding's errors about repeated fields.

    Raises:
        ApiError: the body cannot be parsed, or is an object of a different kind.
    """
    body = request.body
    try:
        value, duplicates, repeated = yaml_of(request) if is_yaml else parse_json(body)
        if is_yaml:
            # Upstream converts YAML to JSON with sorted keys, and then finds errors in that order.
            value = with_sorted_keys(value)
    except BodyError as problem:
        # Upstream converts YAML to JSON before it looks for the kind, so its message has no such prefix.
        intro = "" if is_yaml else NO_KIND
        raise _unrecognized(target, f"{intro}{problem}", body) from problem
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise _unrecognized(target, f"{NO_KIND}json: cannot unmarshal {go_kind(value)} {KIND_STRUCT}", body)
    value = _version_parsed(target, _kinds_matched(target, value, body, is_yaml=is_yaml), body)
    if target.type_name:
        check_kind(target, value.get("apiVersion"), value.get("kind"))
        if repeated is not None:
            return _merged(target, cast("Document", repeated), value, None if is_yaml else body)
    else:
        _check_custom_kind(target, value, request)
    return value, duplicates


def _merged(target: Target, repeated: Document, value: Document, body: bytes | None) -> tuple[Document, list[str]]:
    """Return an object with repeated fields as Go decodes it, and the errors of strict decoding.

    Args:
        target: the type.
        repeated: the object.
        value: the object with the last value of each field; its type is checked.
        body: the body, if it is JSON.

    Raises:
        ApiError: a value does not fit its field.
    """
    try:
        merged, problems = merge_repeated(shape_of(target.type_name), repeated)
    except DecodeError as problem:
        if body is not None and _WRONG_NUMBER in str(problem) and _POSSIBLE_FLOAT.search(body):
            _raise_with_literals(target, body)
        raise _unreadable(target, str(problem)) from problem
    return {**merged, **{name: value[name] for name in ("apiVersion", "kind") if name in value}}, problems


def _version_parsed(target: Target, value: Document, body: bytes) -> Document:
    """Return a sent object with its apiVersion as upstream parses it, without a slash at the beginning.

    Raises:
        ApiError: the apiVersion has several slashes, or a group but no version.
    """
    version = str(value.get("apiVersion") or "")
    if version.count("/") > 1:
        raise _unrecognized(target, f"unexpected GroupVersion string: {version}", body)
    if version.endswith("/") and version != "/" and target.type_name:
        why = f"Object 'apiVersion' is missing in '{body.decode('utf-8', 'replace')}'"
        raise bad_request(f'{value.get("kind")} in version "" cannot be handled as a {target.kind}: {why}')
    return {**value, "apiVersion": version[1:]} if version.startswith("/") else value


_WRONG_NUMBER = "cannot unmarshal number"
_POSSIBLE_FLOAT = re.compile(rb"\d[.eE]")
"""Matches every body with a number that is not written as an integer, and some other bodies."""


def _raise_with_literals(target: Target, body: bytes) -> None:
    """Raise the error of a body that does not fit its type, with numbers as they were sent.

    Raises:
        ApiError: a value does not fit its field.
    """
    try:
        shape_of(target.type_name).read(cast("Document", with_literals(body)))
    except DecodeError as problem:
        raise _unreadable(target, str(problem)) from problem


def _kinds_matched(target: Target, value: Document, body: bytes, *, is_yaml: bool) -> Document:
    """Return a document with fields named exactly `kind` and `apiVersion`, because Go ignores the case of field names.

    Raises:
        ApiError: apiVersion or kind is not a string.
    """
    found = value
    for wanted in ("apiVersion", "kind"):
        for name, item in value.items():
            if name.lower() != wanted.lower() or item is None:
                continue
            if not isinstance(item, str):
                text = f"json: cannot unmarshal {go_kind(item)} into Go struct field .{wanted} of type string"
                raise _unrecognized(target, NO_KIND + text, body)
            if name != wanted:
                found = {**found, wanted: item} if not is_yaml or found is value else found
    return found


def _check_custom_kind(target: Target, value: Document, request: Request) -> None:
    """Reject a custom resource without a kind, or with another apiVersion or kind.

    Upstream compares the kind during validation, after it has refused updates without a resourceVersion.

    Raises:
        ApiError: it has no kind, or another apiVersion or kind.
    """
    version, kind = str(value.get("apiVersion") or ""), str(value.get("kind") or "")
    if not kind:
        raise _unrecognized(
            target, f"Object 'Kind' is missing in '{request.body.decode(errors='replace')}'", request.body
        )
    if version != target.api_version:
        raise wrong_version(target, version)
    metadata = part(value, "metadata")
    if kind != target.kind and (request.method != "PUT" or metadata.get("resourceVersion")):
        raise wrong_custom_type(target, value, str(metadata.get("name") or ""))


def decode_value(target: Target, value: Document, duplicates: list[str], validation: str) -> Decoded:
    """Return the object in a JSON value, with defaults, and its warnings.

    Raises:
        ApiError: a value does not fit its field, or strict validation fails.
    """
    try:
        document, problems = read_value(target, value, duplicates, validation)
    except DecodeError as problem:
        raise _unreadable(target, str(problem)) from problem
    if problems and validation == "Strict":
        raise _unreadable(target, f"strict decoding error: {', '.join(problems)}")
    return Decoded(document, [line for problem in problems for line in yaml_warnings(problem)])


def yaml_warnings(problem: str) -> list[str]:
    """Return the warnings for one error of strict decoding. An error of go-yaml has several lines, one per field."""
    _, found, lines = problem.partition("yaml: unmarshal errors:\n")
    return [line.strip() for line in lines.split("\n")] if found else [problem]


def _go_numbers(value: object) -> object:
    """Return a value with whole floating point numbers converted to integers, as Go writes them."""
    if isinstance(value, dict):
        return {name: _go_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_go_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_WHOLE else value


_MAX_WHOLE = 2.0**63


def read_value(target: Target, value: Document, duplicates: list[str], validation: str) -> tuple[Document, list[str]]:
    """Return the object in a JSON value, with defaults, and the errors of strict validation (empty for "Ignore").

    Raises:
        DecodeError: a value does not fit its field.
    """
    problems = [] if validation == "Ignore" else [*duplicates]
    if not target.type_name:
        document, unknown = read_custom(target, value, validation)
        return document, problems + unknown
    if target.type_name == _POD:
        remembered = _pod_with_cached_spec(value)
        if remembered is not None:
            return remembered, problems
    shape, marked = shape_of(target.type_name), Unknown()
    try:
        document = cast("Document", shape.read(value, marked))
    except DecodeError as problem:
        raise reported(shape.read, value, problem) from None
    if validation != "Ignore" and marked.found:
        problems += [f'unknown field "{path}"' for path in shape.unknown_fields(value)]
    apply_defaults(target.type_name, document)
    if target.type_name == _POD:
        unify_pod_ips(document)
    if target.type_name == _SECRET:
        fold_string_data(document)
    return document, problems


def read_custom(
    target: Target, value: Document, validation: str, *, preserve_nulls: bool = False
) -> tuple[Document, list[str]]:
    """Return the custom resource in a JSON value, and the errors of strict validation about unknown fields.

    Args:
        target: the type.
        value: the JSON value.
        validation: "Ignore", "Warn" or "Strict".
        preserve_nulls: whether to keep nulls of fields that are not nullable and have no default.
    """
    # The schema does not apply to another kind, which validation refuses.
    resource = target.resource if value.get("kind", target.kind) == target.kind else None
    document, unknown = prune(resource, cast("Document", _go_numbers(value)), preserve_nulls=preserve_nulls)
    metadata = part(document, "metadata")
    sent = document.get("metadata")
    if isinstance(sent, list):
        raise DecodeError("json: cannot unmarshal array into Go value of type v1.ObjectMeta")
    document["metadata"] = shape_of(_METADATA).read(sent or {})
    if validation == "Ignore":
        return document, []
    unknown[:0] = sorted(f"metadata.{path}" for path in shape_of(_METADATA).unknown_fields(metadata))
    return document, [f'unknown field "{path}"' for path in unknown]


def fold_string_data(secret: Document) -> None:
    """Move the write-only field ``stringData`` of a Secret to ``data``, base64-encoded."""
    texts = secret.pop("stringData", None)
    if isinstance(texts, dict) and texts:
        encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
        secret["data"] = dict(sorted((part(secret, "data") | encoded).items()))


def _pod_with_cached_spec(value: Document) -> Document | None:
    """Return a decoded pod that shares its spec with equal pods; None if it is invalid or has unknown fields."""
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return None
    shape, unknown = shape_of(_POD), Unknown()

    def compute() -> Document | None:
        try:
            whole = cast("Document", shape.read({"spec": spec}, unknown))
        except DecodeError:
            return None
        if unknown.found:
            return None
        apply_defaults(_POD, whole)
        return cast("Document", whole["spec"])

    remembered = _SPECS.get(spec, compute)
    if remembered is None:
        return None
    # An empty placeholder preserves the position of the spec among the fields.
    others: Document = {name: {} if name == "spec" else item for name, item in value.items()}
    document = cast("Document", shape.read(others, unknown))
    if unknown.found:
        return None
    unify_pod_ips(document)
    document["spec"] = remembered
    return document


def _unreadable(target: Target, why: str) -> ApiError:
    return bad_request(f'{target.kind} in version "{target.version}" cannot be handled as a {target.kind}: {why}')


def _unrecognized(target: Target, why: str, body: bytes) -> ApiError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {target.kind}): {why} ({summarize(body)})"
    )
