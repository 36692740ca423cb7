"""Rendering of objects and lists as bodies: JSON, YAML or protobuf; whole objects, tables, or metadata only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import cast

import msgspec

from bayplan.apiserver.codec.protobuf_encoding import encode_event, encode_object
from bayplan.apiserver.codec.yaml_encoding import encode_yaml
from bayplan.apiserver.kinds.conversion import is_renamed
from bayplan.apiserver.model.errors import ApiError, bad_request, internal
from bayplan.apiserver.model.requests import RequestInfo
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.apiserver.rest.listing import Page
from bayplan.apiserver.rest.negotiation import OBJECT_TYPES, PLAIN, PROTOBUF, YAML, Form
from bayplan.apiserver.schema.facts import internal_package
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.tables.table import INCLUDE, include_policy, shown_metadata, table_of
from bayplan.base.plain_data import Document, part

LINE_END = b"\n"
"""The end of JSON bodies that are not indented."""

_encode = msgspec.json.encode
_NOT_IN_YAML = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")
"""Matches the characters of JSON that go-yaml refuses to read."""


def encode_document(document: Document, form: Form) -> bytes:
    """Return a document as JSON, YAML or protobuf. JSON that is not indented ends with a line break, as in upstream.

    Raises:
        ApiError: the kind of the document has no protobuf encoding.
    """
    if form.media_type == PROTOBUF:
        found = encode_object(document)
        if found is None:
            raise ApiError(406, f"only the following media types are accepted: {', '.join(OBJECT_TYPES)}")
        return found
    if form.media_type == YAML:
        encoded = _encode(document)
        if _NOT_IN_YAML.search(encoded.decode()):
            raise ApiError(500, "yaml: control characters are not allowed", reason="")
        return encode_yaml(msgspec.json.decode(encoded))
    if form.pretty:
        return msgspec.json.format(_encode(document), indent=2)
    return _encode(document) + LINE_END


def render_error(problem: ApiError, form: Form) -> bytes:
    """Return an error as the body of a response; if it cannot be encoded, the error about that, as upstream does."""
    try:
        return encode_document(problem.status(), form)
    except ApiError as not_encoded:
        return encode_document(not_encoded.status(), form)


def render_item(backend: Backend, resource: Resource, item: Item, form: Form, include: str = INCLUDE) -> bytes:
    """Return a stored object as the body of a response.

    Raises:
        ApiError: the kind has no protobuf encoding.
    """
    if form is PLAIN:
        return backend.encode(resource, item) + LINE_END
    if form.kind == "Table":
        return encode_document(_table(backend, resource, item, form, include), form)
    return encode_document(render_document(backend, resource, backend.document(resource, item), form, include), form)


def render_document(
    backend: Backend, resource: Resource, document: Document, form: Form, include: str = INCLUDE
) -> Document:
    """Return an object as the document that a format requires: whole, as a table, or metadata only."""
    if form.kind == "Table":
        revision = str(part(document, "metadata").get("resourceVersion") or "")
        metadata: Document = {"resourceVersion": revision} if revision else {}
        return table_of(resource, [document], metadata, form.version, include, backend.clock())
    if form.kind == "PartialObjectMetadata":
        return metadata_only(document, form.version)
    return {"kind": resource.kind, "apiVersion": resource.api_version} | document


def reject_list_form(resource: Resource, form: Form, *, is_scale: bool = False) -> None:
    """Raise if the client requested a list kind for a single object, or for the scale of one.

    Raises:
        ApiError: the requested kind is a list kind.
    """
    if form.wanted.endswith("List"):
        if is_scale:
            go_type = "autoscaling.Scale" if resource.custom is None else "v1.Scale"
            raise _no_such_form(form, "not a list", go_type)
        raise _not_acceptable(resource, form, "not a list", "")


def _not_acceptable(resource: Resource, form: Form, what: str, suffix: str) -> ApiError:
    """Return the error 406 of a request for a list kind that gets one object, or vice versa."""
    go_type = f"{internal_package(resource.group, resource.kind)}.{resource.kind}{suffix}"
    if resource.custom is not None:
        if not suffix:
            return internal("content is not a list")
        go_type = "unstructured.UnstructuredList"
    return _no_such_form(form, what, go_type)


def _no_such_form(form: Form, what: str, go_type: str) -> ApiError:
    return ApiError(406, f"you requested {form.wanted}, but the requested object is {what} (*{go_type})")


def metadata_only(document: Document, version: str) -> Document:
    """Return the metadata of an object in a version of PartialObjectMetadata."""
    head: Document = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}"}
    return {**head, "metadata": shown_metadata(part(document, "metadata"))}


def render_page(backend: Backend, info: RequestInfo, page: Page, form: Form, include: str) -> bytes:
    """Return a list as the body of a response.

    Raises:
        ApiError: the client requested a kind that does not fit a list, or the format cannot encode it.
    """
    resource = info.resource
    metadata: Document = {"resourceVersion": str(page.revision)} if page.revision else {}
    if page.token or (resource.custom is not None and form.kind == ""):
        # Lists of custom resources are untyped, so their JSON includes the empty value.
        metadata["continue"] = page.token or ""
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    if form is PLAIN:
        head = _encode({"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata})
        head = head[:-1] + b',"items":['
        items = [backend.encode_bare(resource, item) for item in page.items]
        if not items:
            return head + b"]}" + LINE_END
        # Join everything at once, so that a large list is copied only once.
        items[0] = head + items[0]
        items[-1] += b"]}" + LINE_END
        return b",".join(items)
    if form.wanted == "PartialObjectMetadata":
        raise _not_acceptable(resource, form, "a list", "List")
    documents = [backend.document(resource, item) for item in page.items]
    if form.kind == "Table":
        stored = [decode_item(item) for item in page.items] if is_renamed(resource) else documents
        table = table_of(resource, documents, metadata, form.version, include, backend.clock(), stored)
        return encode_document(table, form)
    kind, version = resource.list_kind, resource.api_version
    if form.kind == "PartialObjectMetadata":
        kind, version = "PartialObjectMetadataList", f"meta.k8s.io/{form.version}"
        documents = [metadata_only(document, form.version) for document in documents]
        body: Document = {"kind": kind, "apiVersion": version, "metadata": metadata, "items": documents or None}
        return encode_document(body, form)
    if resource.custom is not None:
        documents = [{"kind": resource.kind, "apiVersion": resource.api_version} | each for each in documents]
    body = {"kind": kind, "apiVersion": version, "metadata": metadata, "items": cast("object", documents)}
    return encode_document(body, form)


def watch_form(
    backend: Backend, info: RequestInfo, form: Form, include: str = INCLUDE
) -> tuple[Callable[[Item], bytes], object]:
    """Return the encoder for the objects of a watch, and a key that is equal for watches with equal encoders."""
    resource = info.resource
    if form is PLAIN:
        return (lambda item: backend.encode(resource, item)), resource.api_version
    if form.kind == "Table":
        return (lambda item: _later_table(backend, resource, item, form, include)), (
            resource.api_version,
            form,
            include,
        )
    return (lambda item: render_item(backend, resource, item, form)), (resource.api_version, form)


def event_frame(kind: str, body: bytes, form: Form) -> bytes:
    """Return an event of a watch as bytes.

    Args:
        kind: the type, such as "ADDED".
        body: the encoded object.
        form: the format of the watch.
    """
    if form.media_type == PROTOBUF:
        return encode_event(kind, body)
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), body.removesuffix(LINE_END))


def _later_table(backend: Backend, resource: Resource, item: Item, form: Form, include: str) -> bytes:
    """Return a stored object as a table without column definitions, which only the first event of a watch has."""
    table = _table(backend, resource, item, form, include)
    return encode_document({**table, "columnDefinitions": None}, form)


def _table(backend: Backend, resource: Resource, item: Item, form: Form, include: str) -> Document:
    document, stored = backend.document(resource, item), decode_item(item) if is_renamed(resource) else None
    revision = str(part(document, "metadata").get("resourceVersion") or "")
    metadata: Document = {"resourceVersion": revision} if revision else {}
    cells_of = None if stored is None else [stored]
    return table_of(resource, [document], metadata, form.version, include, backend.clock(), cells_of)


def included(query: Mapping[str, str], form: Form) -> str:
    """Return the value of `includeObject`: the part of each object that a table's rows include; "Metadata" for other forms.

    Raises:
        ApiError: the value is unknown.
    """
    if form.kind != "Table":
        return "Metadata"
    query_value = query.get("includeObject")
    found = include_policy(query_value)
    if not found:
        must = "must be 'Metadata', 'Object', 'None', or empty"
        text = f'Unable to convert to Table as requested: includeObject: Invalid value: "{query_value}": {must}'
        raise bad_request(text)
    return found
