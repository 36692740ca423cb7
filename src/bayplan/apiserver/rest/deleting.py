"""The verbs ``delete`` and ``deletecollection``: grace periods, finalizers, preconditions and propagation policies."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from bayplan.apiserver.kinds.custom_resources import DEFINITIONS
from bayplan.apiserver.kinds.definition_status import terminating
from bayplan.apiserver.kinds.strategy import Strategy
from bayplan.apiserver.model.errors import conflict, forbidden, not_found
from bayplan.apiserver.model.requests import DeleteOptions, RequestInfo
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.definitions import begin_instance_deletion, remove_terminating
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.validation.policy import SYSTEM_CLASSES
from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time, parse_time_ns
from bayplan.base.plain_data import Document, part, texts

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_NAMED_BY_RESOURCE = ("namespaces", DEFINITIONS)
"""Tables for which precondition errors name the resource instead of the kind."""
_PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public")


@dataclass(slots=True)
class Deleted:
    """The result of a deletion.

    Attributes:
        document: the last state of the object, in the API version of the request.
        removed: whether the object was removed, or would be if this were not a dry run.
        is_zero: whether the response is an object without values, as for a dry run that would remove the last finalizer: upstream
            returns the object into which it would have read the update.
    """

    document: Document
    removed: bool
    is_zero: bool = False


def delete(
    backend: Backend, info: RequestInfo, options: DeleteOptions, *, admitted: bool = False, in_collection: bool = False
) -> Deleted:
    """Remove an object, or only mark it as terminating if it has a grace period or finalizers.

    Args:
        backend: the backend of the API.
        info: the request.
        options: the options of the deletion, which receive the warnings of hooks.
        admitted: whether admission has already run.
        in_collection: whether this is part of a collection deletion; hooks then receive no name.

    Raises:
        ApiError: the object does not exist, fails the preconditions, or must not be deleted.
    """
    resource, strategy = info.resource, backend.strategy(info.resource)
    item = backend.store.get(resource.table, (info.namespace, info.name))
    if resource.table == "namespaces" and info.name in _PROTECTED_NAMESPACES:
        raise forbidden(resource.name, resource.group, info.name, "this namespace may not be deleted")
    if resource.table == "scheduling.k8s.io/priorityclasses" and info.name in SYSTEM_CLASSES and not in_collection:
        why = "this is a system priority class and cannot be deleted"
        raise forbidden(resource.name, resource.group, info.name, why)
    if item is None:
        raise not_found(resource.name, resource.group, info.name)
    old = backend.document(resource, item)
    check_preconditions(resource, info, old, options)
    if resource.table == "namespaces":
        if not part(old, "metadata").get("deletionTimestamp"):
            if not admitted:
                _call_hooks(backend, info, old, options, in_collection=in_collection)
            return _terminate_namespace(backend, info, old, options)
        if texts(part(old, "spec"), "finalizers"):
            return Deleted(old, False)
    if resource.table == DEFINITIONS and not part(old, "metadata").get("deletionTimestamp"):
        _call_hooks(backend, info, old, options, in_collection=in_collection)
        return _delete_definition(backend, info, old, options)
    new = _copy(old)
    graceful, pending = _begin(backend, strategy, new, options)
    if pending:
        return Deleted(old, False)
    if not admitted:
        _call_hooks(backend, info, old, options, in_collection=in_collection)
    metadata = part(new, "metadata")
    before = texts(metadata, "finalizers")
    finalizers = _finalizers(before, options, strategy)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if finalizers and not graceful:
        _mark(backend, metadata)
    wait = bool(finalizers) or bool(graceful and metadata.get("deletionGracePeriodSeconds"))
    if options.dry_run and before and not finalizers and not graceful:
        zero: Document = {} if resource.custom is not None else {"metadata": {}}
        return Deleted(zero | writing.zero_document(resource), removed=True, is_zero=True)
    if options.dry_run:
        return Deleted(new if graceful or finalizers else old, not wait)
    if wait:
        if new != old:
            backend.put(resource, new)
        return Deleted(new, False)
    if graceful:
        backend.put(resource, new)
    else:
        # Upstream does not store the removal of the last finalizer.
        new = _copy(old)
    backend.remove(resource, new)
    return Deleted(new, True)


def _call_hooks(
    backend: Backend, info: RequestInfo, old: Document, options: DeleteOptions, *, in_collection: bool
) -> None:
    """Call admission policies and webhooks for a deletion.

    Raises:
        ApiError: a hook denies the deletion, or fails and its failure policy is Fail.
    """
    if backend.admission.is_active:
        hooks = backend.admission.begin_deletion(info, options, old, "" if in_collection else info.name)
        backend.admission.mutate(hooks)
        backend.admission.validate(hooks)
        options.warnings.extend(hooks.warnings)


def _copy(document: Document) -> Document:
    return {**document, "metadata": dict(part(document, "metadata"))}


def check_preconditions(resource: Resource, info: RequestInfo, old: Document, options: DeleteOptions) -> None:
    """Raise if an object is not the one, or not in the version, that a deletion is for.

    Raises:
        ApiError: a precondition is not met.
    """
    metadata = part(old, "metadata")
    for name, wanted, found, rest in (
        ("UID", options.uid, metadata.get("uid"), "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, metadata.get("resourceVersion"), "modified"),
    ):
        if wanted is not None and wanted != found:
            why = f"the {name} in the precondition ({wanted}) does not match the {name} in record ({found})."
            kind = resource.name if resource.table in _NAMED_BY_RESOURCE else resource.kind
            raise conflict(kind, resource.group, info.name, f"{why} The object might have been {rest}")


def _begin(backend: Backend, strategy: Strategy, new: Document, options: DeleteOptions) -> tuple[bool, bool]:
    """Mark an object as terminating, with its grace period, if its kind supports graceful deletion.

    Returns:
        Whether the deletion is graceful, and whether an earlier deletion continues unchanged because it ends no later.
    """
    metadata = part(new, "metadata")
    wanted = options.grace_seconds
    if wanted is not None and wanted < 0:
        wanted = 1
    if not strategy.graceful:
        return False, False
    if metadata.get("deletionTimestamp"):
        before = metadata.get("deletionGracePeriodSeconds")
        if not isinstance(before, int) or before == 0:
            return False, False
        if wanted is None or wanted >= before:
            return False, True
        _shorten(backend, metadata, before, wanted)
        return True, False
    grace = strategy.grace_seconds(new, wanted)
    if grace is None:
        return False, False
    metadata["deletionTimestamp"] = backend.time_after(grace)
    metadata["deletionGracePeriodSeconds"] = grace
    _raise_generation(metadata)
    return True, False


def _shorten(backend: Backend, metadata: Document, before: int, wanted: int) -> None:
    until_ns = parse_time_ns(str(metadata["deletionTimestamp"])) + (wanted - before) * SECOND_NS
    if until_ns < parse_time_ns(backend.now()):
        metadata["deletionTimestamp"] = backend.now()
        wanted = 1 if wanted else 0
    else:
        metadata["deletionTimestamp"] = format_time(until_ns)
    metadata["deletionGracePeriodSeconds"] = wanted


def _raise_generation(metadata: Document) -> None:
    generation = metadata.get("generation")
    if isinstance(generation, int) and generation > 0:
        metadata["generation"] = generation + 1


def _mark(backend: Backend, metadata: Document) -> None:
    """Mark an object that has finalizers as terminating, with a grace period of 0."""
    if not metadata.get("deletionTimestamp"):
        _raise_generation(metadata)
        metadata["deletionTimestamp"] = backend.now()
    metadata["deletionGracePeriodSeconds"] = 0


def _finalizers(found: list[str], options: DeleteOptions, strategy: Strategy) -> list[str]:
    """Return the finalizers of an object after the propagation policy has added or removed finalizers."""
    orphan = options.propagation == "Orphan" or bool(options.orphan)
    foreground = options.propagation == "Foreground"
    if not options.propagation and options.orphan is None:
        orphan, foreground = ORPHAN in found, FOREGROUND in found
        if not orphan and not foreground:
            orphan = strategy.orphans_by_default
    if not strategy.is_garbage_collected:
        orphan = foreground = False
    kept = [each for each in found if each not in (ORPHAN, FOREGROUND)]
    wanted = kept + [ORPHAN] * orphan + [FOREGROUND] * foreground
    return found if set(wanted) == set(found) else wanted


def _terminate_namespace(backend: Backend, info: RequestInfo, old: Document, options: DeleteOptions) -> Deleted:
    """Mark a namespace as Terminating."""
    resource = info.resource
    new = _copy(old)
    metadata = part(new, "metadata")
    metadata["deletionTimestamp"] = backend.now()
    new["status"] = {**part(old, "status"), "phase": "Terminating"}
    # For namespaces, unlike other kinds, the older option orphanDependents=false means the policy Foreground.
    foreground = options.orphan is False
    chosen = replace(options, propagation="Foreground") if foreground else options
    finalizers = _finalizers(texts(metadata, "finalizers"), chosen, backend.strategy(resource))
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if not options.dry_run:
        backend.put(resource, new)
    return Deleted(new, False)


def _delete_definition(backend: Backend, info: RequestInfo, old: Document, options: DeleteOptions) -> Deleted:
    """Mark a definition as terminating, and delete its custom resources. The definition is removed with the last of them.

    Upstream's controller needs some milliseconds for this; here it is done when the response is sent.
    """
    new = terminating(old, backend.now())
    if options.dry_run:
        return Deleted(new, False)
    backend.put(info.resource, new)
    begin_instance_deletion(backend, new)
    spec = part(old, "spec")
    table = f"{spec.get('group')}/{part(spec, 'names').get('plural')}"
    registry = backend.registry
    unserved = (each for each in registry.unserved.values() if each.table == table)
    instances = registry.by_table().get(table) or next(unserved, None)
    if instances is not None:
        target = RequestInfo("deletecollection", instances)
        delete_collection(backend, target, list(backend.store.between(table)), DeleteOptions())
    remove_terminating(backend, table)
    return Deleted(new, False)


def delete_collection(backend: Backend, info: RequestInfo, items: list[Item], options: DeleteOptions) -> None:
    """Delete the listed objects, except those that no longer exist."""
    for item in items:
        target = replace(info, verb="delete", namespace=item.namespace, name=item.name)
        if backend.store.get(info.resource.table, item.key) is not None:
            delete(backend, target, replace(options), in_collection=True)
