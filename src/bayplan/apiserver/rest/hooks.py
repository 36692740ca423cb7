"""Admission policies and webhooks during a write: prepare their input, and decode the objects that they change."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from bayplan.apiserver.admission.attributes import Attributes, GroupVersionKind
from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.field_type import field_type
from bayplan.apiserver.kinds.conversion import from_storage, to_storage
from bayplan.apiserver.model.errors import bad_request, internal_error
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend, ordered_metadata
from bayplan.apiserver.rest.body_types import Target, target_of
from bayplan.apiserver.rest.decoding import read_value
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.schema.emptied import without_empties
from bayplan.base.plain_data import Document, part


def begin_hooks(
    backend: Backend,
    info: RequestInfo,
    options: WriteOptions,
    stored: Document,
    before: Document | None,
    managers: managed.Managers | None,
) -> Attributes | None:
    """Return the attributes of a write that hooks receive, or None if the cluster has no policies or webhooks.

    Args:
        backend: the backend of the API.
        info: the request.
        options: the options of the write.
        stored: the new object in the stored version.
        before: the current object in the stored version, None for a create.
        managers: the field managers of the new object.
    """
    if not backend.admission.is_active:
        return None
    resource = info.resource
    shown = with_managers(from_storage(resource, stored), managers)
    old = None if before is None else from_storage(resource, before)
    return backend.admission.begin(info, options, shown, old, reader(target_of(resource)))


def admit_unstored(
    backend: Backend,
    info: RequestInfo,
    request: Request,
    options: WriteOptions,
    target: Target,
    documents: tuple[Document, Document | None],
) -> Document:
    """Call hooks for an object that is not stored (a Scale, Binding or Eviction), and return it with their changes.

    Args:
        backend: the backend of the API.
        info: the request; its subresource names the object.
        request: the request that receives the warnings.
        options: the options of the write.
        target: the kind of the object.
        documents: the new object, and the old object or None.

    Raises:
        ApiError: a hook denies the write, or fails and its failure policy is Fail.
    """
    new, old = documents
    if not backend.admission.is_active:
        return new
    group, _, version = target.api_version.rpartition("/")
    kind = GroupVersionKind(group, version, target.kind)
    if old is None:
        if info.namespace:
            new = {**new, "metadata": {**part(new, "metadata"), "namespace": info.namespace}}
        fields = field_type(target.type_name)
        owner = managed.WriteContext(options.manager, target.api_version, fields, backend.now(), info.subresource)
        new = with_managers(new, managed.after_create(owner, {}, new, {}))
    hooks = backend.admission.begin(info, options, new, old, reader(target), kind=kind)
    backend.admission.mutate(hooks)
    backend.admission.validate(hooks)
    request.warnings += hooks.warnings
    return hooks.object or new


def reader(target: Target) -> Callable[[Document], Document]:
    """Return the function that decodes an object that a hook has changed, and applies defaults to it."""

    def read(document: Document) -> Document:
        try:
            return read_value(target, cast("Document", without_empties(document)), [], "Ignore")[0]
        except DecodeError as problem:
            raise internal_error(str(problem)) from None

    return read


def with_managers(document: Document, managers: managed.Managers | None) -> Document:
    """Return a copy of the object with `managedFields`, or the object itself if there are no managers."""
    if not managers:
        return document
    metadata = {**part(document, "metadata"), "managedFields": managed.encode(managers)}
    return {**document, "metadata": ordered_metadata(metadata)}


def mutated(
    backend: Backend, info: RequestInfo, hooks: Attributes, stored: Document, admit: Callable[[Document], None] | None
) -> Document:
    """Return an object in the stored version after the mutating hooks, whose changes do not affect field ownership.

    Args:
        backend: the backend of the API.
        info: the request.
        hooks: the attributes that hooks receive and change.
        stored: the object in the stored version.
        admit: built-in admission, which runs again if a hook changes the object.

    Raises:
        ApiError: a hook denies the write, or fails and its failure policy is Fail.
    """
    resource = info.resource

    def admit_again(attributes: Attributes) -> None:
        if admit is not None and attributes.object is not None:
            again = to_storage(resource, attributes.object)
            admit(again)
            attributes.object = from_storage(resource, again)

    if not backend.admission.mutate(hooks, admit_again) or hooks.object is None:
        return stored
    new = to_storage(resource, hooks.object)
    metadata = part(new, "metadata")
    metadata.pop("managedFields", None)
    if metadata.get("namespace") not in (None, "", info.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return new


def check_hooks(
    backend: Backend, resource: Resource, hooks: Attributes, stored: Document, managers: managed.Managers | None
) -> None:
    """Call the validating hooks for an object that is complete and valid.

    Raises:
        ApiError: a hook denies the write, or fails and its failure policy is Fail.
    """
    hooks.object = with_managers(from_storage(resource, stored), managers)
    hooks.name = hooks.name or str(part(stored, "metadata").get("name") or "")
    backend.admission.validate(hooks)
