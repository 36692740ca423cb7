"""Creates and changes of objects: the steps that all write verbs and subresources share, in kube-apiserver's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from bayplan.apiserver.admission.attributes import Attributes
from bayplan.apiserver.admission.pod_security import admit_security
from bayplan.apiserver.codec.shape import drop_empty_lists
from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.compare import compare
from bayplan.apiserver.kinds.conversion import from_storage, to_storage
from bayplan.apiserver.kinds.custom_pruning import through_storage
from bayplan.apiserver.kinds.gated_fields import drop_gated_fields
from bayplan.apiserver.kinds.spec_cache import CachedSpec
from bayplan.apiserver.kinds.strategy import Context, Strategy, copy_part
from bayplan.apiserver.model.errors import (
    ApiError,
    Cause,
    bad_request,
    forbidden,
    internal,
    invalid,
    modified,
)
from bayplan.apiserver.model.object_meta import (
    check_metadata,
    check_metadata_update,
    check_standard_finalizers,
    outline_of,
)
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.hooks import begin_hooks, check_hooks, mutated
from bayplan.apiserver.rest.preconditions import check_free, find_namespace, has_revision, sent_revision
from bayplan.apiserver.rest.quota_usage import charge
from bayplan.apiserver.rest.sameness import deletes_now, is_same
from bayplan.apiserver.store.item import Item
from bayplan.base.plain_data import Document, part

_GENERATE_ATTEMPTS = 8
_MAX_OUTLINES = 64


@dataclass(slots=True)
class Written:
    """The result of a write.

    Attributes:
        document: the object to return, in the API version of the request.
        item: the stored item; None if nothing was stored (a dry run, or no change) or the object was removed.
        created: whether the object is new.
        warnings: the warnings for the client.
    """

    document: Document
    item: Item | None
    created: bool
    warnings: list[str]


def zero_document(resource: Resource) -> Document:
    """Return the object of a kind that Go creates before decoding: required fields with zero values.

    Empty for custom resources.
    """
    return resource.shape.zero() if resource.shape is not None else {}


def ownership(
    backend: Backend, info: RequestInfo, options: WriteOptions, subresource: str | None = None
) -> managed.WriteContext:
    """Return the properties of a write that field management needs."""
    name = info.subresource if subresource is None else subresource
    return managed.WriteContext(
        options.manager,
        info.resource.api_version,
        info.resource.fields,
        backend.now(),
        name,
        backend.strategy(info.resource).reset_fields(info.resource, name),
        partial(backend.in_version, info.resource),
        partial(backend.resets_in, info.resource, name) if info.resource.custom is not None else None,
        backend.registry.serves,
    )


def set_managers(document: Document, managers: managed.Managers) -> None:
    """Set `managedFields` of an object, or remove the field if there are no managers."""
    metadata = part(document, "metadata")
    entries = managed.encode(managers)
    if entries:
        metadata["managedFields"] = entries
    else:
        metadata.pop("managedFields", None)


# --- creates ----------------------------------------------------------------------------------------------------------


def create(backend: Backend, info: RequestInfo, document: Document, options: WriteOptions) -> Written:
    """Store a new object.

    Args:
        backend: the backend of the API.
        info: the request.
        document: the decoded object with defaults, in the API version of the request.
        options: the options of the write.

    Raises:
        ApiError: admission or validation rejects the object, or its name is taken.
    """
    managers = begin_create(backend, info, document, options)
    return store_new(backend, info, document, managers, options)


_SET_BY_SERVER = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
"""Metadata fields that a client cannot set in a new object."""


def begin_create(backend: Backend, info: RequestInfo, document: Document, options: WriteOptions) -> managed.Managers:
    """Set the namespace of a new object, remove fields that only the server sets, and return its field managers.

    Raises:
        ApiError: the namespace does not exist, is being deleted, or differs from the request's.
    """
    metadata = cast("Document", document.setdefault("metadata", {}))
    place(info, metadata)
    check_namespace(backend, info, str(metadata.get("name") or ""))
    entries = metadata.pop("managedFields", None)
    for name in _SET_BY_SERVER:
        metadata.pop(name, None)
    owner = ownership(backend, info, options)
    # Conversion to the stored version can add fields, as in an update.
    shown = from_storage(info.resource, to_storage(info.resource, document))
    managers = managed.decode_sent(entries, info.resource.fields, info.resource.api_version) or {}
    return first_managers(owner, info.resource, shown, managers)


def first_managers(
    owner: managed.WriteContext, resource: Resource, document: Document, managers: managed.Managers
) -> managed.Managers:
    """Return the field managers of a new object. They are cached, too, for pods with a cached spec."""
    spec = document.get("spec")
    if not isinstance(spec, CachedSpec):
        return managed.after_create(owner, zero_document(resource), document, managers)
    facts = spec.facts
    outline = None if managers else outline_of(part(document, "metadata"))
    if outline is not None and outline in facts.objects:
        who = managed.Manager(owner.manager, managed.UPDATE, owner.api_version, owner.subresource)
        return {who: managed.Owned(facts.objects[outline], owner.api_version, owner.time)}
    zero = zero_document(resource)
    if facts.owned is None:
        facts.owned = compare(owner.kind, {"spec": zero["spec"]}, {"spec": facts.spec}).added.get("f:spec", {})
    managers = managed.after_create(owner, zero, document, managers, known={"spec": facts.owned})
    if outline is not None and len(managers) == 1 and len(facts.objects) < _MAX_OUTLINES:
        (facts.objects[outline],) = (owned.fields for owned in managers.values())
    return managers


def place(info: RequestInfo, metadata: Document) -> None:
    """Set the namespace of an object to the namespace of the request.

    Raises:
        ApiError: the object has a different namespace, or a cluster-scoped object a different name.
    """
    namespace = metadata.get("namespace") or ""
    if info.resource.namespaced:
        if namespace not in ("", info.namespace):
            text = "the namespace of the provided object does not match the namespace sent on the request"
            raise bad_request(text)
        metadata["namespace"] = info.namespace
        return
    metadata.pop("namespace", None)
    if info.name and metadata.get("name") not in (None, "", info.name):
        raise wrong_name(str(metadata["name"]), info.name)


def wrong_name(found: str, wanted: str) -> Exception:
    """Return the error 400 for a name in the body that differs from the name in the path."""
    return bad_request(f"the name of the object ({found}) does not match the name on the URL ({wanted})")


def check_namespace(backend: Backend, info: RequestInfo, name: str) -> None:
    """Raise if the namespace of a request does not exist or is being deleted.

    Raises:
        ApiError: the namespace does not exist, or is being deleted.
    """
    resource, item = info.resource, find_namespace(backend, info)
    if item is not None and is_terminating(item):
        cause = Cause("NamespaceTerminating", f"namespace {info.namespace} is being terminated", "metadata.namespace")
        why = f"unable to create new content in namespace {info.namespace} because it is being terminated"
        raise forbidden(resource.name, resource.group, name, why, [cause])


def is_terminating(namespace: Item) -> bool:
    """Return whether a namespace is being deleted."""
    return namespace.fields.get("status.phase") == "Terminating"


def store_new(
    backend: Backend, info: RequestInfo, document: Document, managers: managed.Managers, options: WriteOptions
) -> Written:
    """Admit, prepare, validate and store a new object with these field managers. A dry run is not stored."""
    made = new_object(backend, info, document, options, managers=managers)
    set_managers(made.document, managers)
    if not options.dry_run:
        made.item = backend.put(info.resource, made.document)
    made.document = through_storage(info.resource, made.document)
    return made


def new_object(
    backend: Backend,
    info: RequestInfo,
    document: Document,
    options: WriteOptions,
    *,
    managers: managed.Managers | None = None,
    imported: bool = False,
) -> Written:
    """Return a new object to store, without field managers: admitted, prepared and valid, with a free name.

    Args:
        backend: the backend of the API.
        info: the request.
        document: the decoded object with defaults, in the API version of the request.
        options: the options of the write.
        managers: the field managers that admission hooks see.
        imported: whether no hooks are asked, because the object is imported from another cluster, or the server's own.

    Raises:
        ApiError: admission or validation rejects the object, or its name is taken.
    """
    resource, strategy = info.resource, backend.strategy(info.resource)
    context = backend.context(resource, info.namespace, dry_run=options.dry_run, imported=imported, user=options.user)
    stored = to_storage(resource, document)
    metadata = part(stored, "metadata")
    admit = strategy.admit_imported if imported else strategy.admit
    admit(context, stored)
    hooks = None if imported else begin_hooks(backend, info, options, stored, None, managers)
    if hooks is not None:
        stored = mutated(backend, info, hooks, stored, lambda each: strategy.admit(context, each))
        metadata = part(stored, "metadata")
    for name in _SET_BY_SERVER:
        metadata.pop(name, None)
    metadata["creationTimestamp"] = backend.now()
    metadata["uid"] = backend.new_uid()
    if metadata.get("generateName") and not metadata.get("name"):
        # Upstream adds no suffix to the prefix of an address.
        prefix = str(metadata["generateName"])
        is_address = strategy.name_check == "address"
        metadata["name"] = prefix if is_address else _free_name(backend, resource, info.namespace, prefix)
    drop_gated_fields(resource.table, stored, None)
    if not info.subresource:  # Upstream allocates nothing for a Service that is created through its status.
        strategy.allocate(context, stored, None)
    prepared = strategy.preparation_warnings(stored)
    strategy.prepare_create(context, stored)
    causes = create_causes(strategy, context, stored, metadata)
    if causes:
        raise_invalid(resource, metadata, causes, prepared)
    warnings = prepared + strategy.warnings(context, stored, None)
    try:
        if not imported:
            warnings += admit_security(backend, context, strategy, stored, None)
        warnings += _admit_valid(backend, context, hooks, stored, None, managers)
        if not options.dry_run and has_revision(stored):
            raise internal("resourceVersion should not be set on objects to be created")
        check_free(backend, info, metadata)
    except ApiError as problem:
        # Upstream sends the warnings about a valid object even if a later step refuses it.
        problem.warnings[:0] = warnings
        raise
    return Written(from_storage(resource, stored), None, True, warnings)


def _admit_valid(
    backend: Backend,
    context: Context,
    hooks: Attributes | None,
    document: Document,
    before: Document | None,
    managers: managed.Managers | None,
) -> list[str]:
    """Run the steps of admission that follow the validation of an object, charge quotas for it, and return warnings of hooks.

    Raises:
        ApiError: admission rejects the object.
    """
    resource = context.resource
    backend.strategy(resource).admit_valid(context, document, before)
    if hooks is not None:
        check_hooks(backend, resource, hooks, document, managers)
    warnings = [] if hooks is None else hooks.warnings
    try:
        charge(backend, context, document, before)
    except ApiError as problem:
        problem.warnings[:0] = warnings
        raise
    # Upstream responds to a write that removes the object without reading it from storage.
    if before is None or not deletes_now(resource.table, document, before):
        show_as_stored(resource, document)
    backend.convert_ahead(resource, document)
    return warnings


def show_as_stored(resource: Resource, document: Document) -> None:
    """Replace empty lists of an object with null, as a read from upstream's storage would return them."""
    if resource.shape is not None and not isinstance(document.get("spec"), CachedSpec):
        drop_empty_lists(resource.shape, document)


def create_causes(strategy: Strategy, context: Context, document: Document, metadata: Document) -> list[Cause]:
    """Return the validation errors of a new object and of its metadata."""
    rule, namespaced = strategy.name_check, context.resource.namespaced
    if strategy.checks_own_metadata:
        return strategy.validate(context, document) or check_metadata(metadata, namespaced, rule)
    causes = check_metadata(metadata, namespaced, rule, standard=_wants_standard_finalizers(context.resource))
    causes += strategy.validate(context, document)
    if not causes and rule == "any":
        causes = check_metadata(metadata, namespaced, "path")
    return causes


_ANY_FINALIZER = (
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
)
"""Groups whose kinds accept any qualified name as a finalizer, like custom resources."""


def _wants_standard_finalizers(resource: Resource) -> bool:
    return resource.custom is None and resource.group not in _ANY_FINALIZER


def raise_invalid(resource: Resource, metadata: Document, causes: list[Cause], warnings: Sequence[str] = ()) -> None:
    """Raise ApiError 422 with these validation errors and warnings if there are any errors."""
    if causes:
        problem = invalid(resource.kind, kind_group(resource), str(metadata.get("name") or ""), causes)
        problem.warnings = list(warnings)
        raise problem


def kind_group(resource: Resource) -> str:
    """Return the group that errors about a kind show: always the core group for events."""
    return "" if resource.table == "events" else resource.group


def _free_name(backend: Backend, resource: Resource, namespace: str, prefix: str) -> str:
    for _ in range(_GENERATE_ATTEMPTS):
        name = backend.generate_name(prefix)
        if backend.store.get(resource.table, (namespace, name)) is None:
            break
    return name


# --- changes ----------------------------------------------------------------------------------------------------------


def check_version(resource: Resource, info: RequestInfo, new: Document, old: Document, *, required: bool) -> None:
    """Raise if a change is based on an old version of the object. A change without a version applies to the current version.

    Raises:
        ApiError: the object has changed in the meantime, or the kind requires a version.
    """
    wanted, current = sent_revision(new), part(old, "metadata").get("resourceVersion")
    if not wanted:
        if required:
            text = "Invalid value: 0: must be specified for an update"
            causes = [Cause("FieldValueInvalid", text, "metadata.resourceVersion")]
            raise invalid(resource.name, resource.group, info.name, causes)
        part(new, "metadata")["resourceVersion"] = current
    elif str(wanted) != current:
        raise modified(resource.name, resource.group, info.name)


def change(
    backend: Backend,
    info: RequestInfo,
    old: Document,
    new: Document,
    managers: managed.Managers,
    options: WriteOptions,
    *,
    admitted: bool = False,
) -> Written:
    """Prepare, validate and store a changed object, or remove it if it was only waiting for its last finalizer.

    Args:
        backend: the backend of the API.
        info: the request; its subresource determines which parts may change.
        old: the current object, in the API version of the request.
        new: the changed object.
        managers: the field managers after the change.
        options: the options of the write.
        admitted: whether admission has already run.

    Raises:
        ApiError: the change is rejected.
    """
    resource, strategy = info.resource, backend.strategy(info.resource)
    context = backend.context(resource, info.namespace, info.subresource, dry_run=options.dry_run)
    stored, before = to_storage(resource, new), to_storage(resource, old)
    hooks = None if admitted else begin_hooks(backend, info, options, stored, before, managers)
    stored = stored if hooks is None else mutated(backend, info, hooks, stored, None)
    metadata, metadata_before = part(stored, "metadata"), part(before, "metadata")
    copy_part(metadata, metadata_before, "generation")
    if context.is_status:
        strategy.prepare_status(context, stored, before)
    else:
        drop_gated_fields(resource.table, stored, before)
        strategy.allocate(context, stored, before)
        strategy.prepare_update(context, stored, before)
    _keep_identity(metadata, metadata_before)
    if not options.dry_run:
        # Upstream removes this field when it stores the object.
        metadata.pop("selfLink", None)
    raise_invalid(resource, {"name": info.name}, _causes_of_change(strategy, context, stored, before))
    warnings = strategy.status_warnings(stored) if context.is_status else []
    warnings += [] if info.subresource else strategy.warnings(context, stored, before)
    try:
        if not admitted:
            warnings += admit_security(backend, context, strategy, stored, before)
        warnings += _admit_valid(backend, context, hooks, stored, before, managers)
    except ApiError as problem:
        problem.warnings[:0] = warnings
        raise
    new = from_storage(resource, stored)
    set_managers(new, managers)
    return _store_change(backend, resource, old, new, options, warnings)


def _store_change(
    backend: Backend, resource: Resource, old: Document, new: Document, options: WriteOptions, warnings: list[str]
) -> Written:
    deletes = deletes_now(resource.table, new, old)
    if not deletes and is_same(new, old) and not backend.is_outdated(resource, old):
        return Written(old, None, False, warnings)
    if options.dry_run:
        copy_part(part(new, "metadata"), part(old, "metadata"), "resourceVersion")
        return Written(through_storage(resource, new), None, False, warnings)
    if deletes:
        # The response to a write that removes the last finalizer shows the new object with the old version. The store
        # removes the previous state, so no event shows this change.
        version = part(old, "metadata")["resourceVersion"]
        backend.remove(resource, {**old, "metadata": dict(part(old, "metadata"))})
        part(new, "metadata")["resourceVersion"] = version
        return Written(new, None, False, warnings)
    item = backend.put(resource, new)
    return Written(through_storage(resource, new), item, False, warnings)


def _causes_of_change(strategy: Strategy, context: Context, new: Document, old: Document) -> list[Cause]:
    """Return the errors of an update.

    Kinds repeat the checks of metadata as upstream does, so errors can occur several times.
    """
    resource, metadata = context.resource, part(new, "metadata")
    updates, standard = check_metadata_update(metadata, part(old, "metadata")), _wants_standard_finalizers(resource)
    changes = updates + (check_standard_finalizers(metadata) if standard else [])
    causes = check_metadata(metadata, resource.namespaced, "path") + updates
    for step in strategy.metadata_steps(context):
        if step == "change":
            causes += changes
        else:
            causes += check_metadata(metadata, resource.namespaced, strategy.name_check, standard=standard)
    validate = strategy.validate_status if context.is_status else strategy.validate_update
    return causes + validate(context, new, old)


def _keep_identity(new: Document, old: Document) -> None:
    if not new.get("uid"):
        copy_part(new, old, "uid")
    copy_part(new, old, "creationTimestamp")
    if old.get("deletionTimestamp"):
        copy_part(new, old, "deletionTimestamp")
        if new.get("deletionGracePeriodSeconds") is None:
            copy_part(new, old, "deletionGracePeriodSeconds")
