"""Admission policies and webhooks of a write: their input, and the processing of changed objects."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.apiserver.admission.attributes import Attributes, GroupVersionKind
from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.field_type import field_type
from bayplan.apiserver.kinds.conversion import from_storage, to_storage
from bayplan.apiserver.model.errors import bad_request, internal_error
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend, ordered_metadata
from bayplan.apiserver.rest.decoding import Target, read_value, target_of
from bayplan.apiserver.rest.messages import Request
from bayplan.base.plain_data import Document, part


def begin_hooks(
    backend: Backend,
    info: RequestInfo,
    options: WriteOptions,
    stored: Document,
    before: Document | None,
    managers: managed.Managers | None,
) -> Attributes | None:
    """Return the attributes of a write for policies and webhooks, or None if the cluster has none.

    Args:
        backend: the backend of the API.
        info: the request.
        options: the options of the write.
        stored: the object in the stored version.
        before: the stored object before the write, None for a create.
        managers: the field managers of the object.
    """
    if not backend.admission.is_active:
        return None
    resource = info.resource
    shown = with_managers(from_storage(resource, stored), managers)
    old = None if before is None else from_storage(resource, before)
    return backend.admission.begin(info, options, shown, old, reader(target_of(resource)))


def ask_about(
    backend: Backend,
    info: RequestInfo,
    request: Request,
    options: WriteOptions,
    target: Target,
    documents: tuple[Document, Document | None],
) -> Document:
    """Call hooks for an object that is not stored (a Scale, a Binding, an Eviction ...), and return it with their changes.

    Args:
        backend: the backend of the API.
        info: the request; its subresource names the object.
        request: the request that receives the warnings.
        options: the options of the write.
        target: the kind of the object.
        documents: the new object and the old object.

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
        owner = managed.Request(options.manager, target.api_version, fields, backend.now(), info.subresource)
        new = with_managers(new, managed.after_update(owner, {}, new, {}, is_create=True))
    hooks = backend.admission.begin(info, options, new, old, reader(target), kind=kind)
    backend.admission.mutate(hooks)
    backend.admission.validate(hooks)
    request.warnings += hooks.warnings
    return hooks.object or new


def reader(target: Target) -> Callable[[Document], Document]:
    """Return the function that decodes and defaults an object that a hook has changed."""

    def read(document: Document) -> Document:
        try:
            return read_value(target, document, [], "Ignore")[0]
        except DecodeError as problem:
            raise internal_error(str(problem)) from None

    return read


def with_managers(document: Document, managers: managed.Managers | None) -> Document:
    """Return a document with its managedFields."""
    if not managers:
        return document
    metadata = {**part(document, "metadata"), "managedFields": managed.encode(managers)}
    return {**document, "metadata": ordered_metadata(metadata)}


def mutated(
    backend: Backend, info: RequestInfo, hooks: Attributes, stored: Document, admit: Callable[[Document], None] | None
) -> Document:
    """Return an object after the mutating hooks, in the stored version; hooks do not change ownership.

    Args:
        backend: the backend of the API.
        info: the request.
        hooks: the attributes for the hooks.
        stored: the object.
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
    """Call validating hooks for an object that is complete and valid.

    Raises:
        ApiError: a hook denies the write, or fails and its failure policy is Fail.
    """
    hooks.object = with_managers(from_storage(resource, stored), managers)
    hooks.name = hooks.name or str(part(stored, "metadata").get("name") or "")
    backend.admission.validate(hooks)
