"""The scale subresource: get, update, patch or apply the number of replicas of an object."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.field_set import Node, difference, intersection, union
from bayplan.apiserver.fields.field_type import field_type
from bayplan.apiserver.kinds.custom_pruning import prune
from bayplan.apiserver.model.errors import (
    ApiError,
    Cause,
    bad_request,
    conflict,
    internal,
    internal_error,
    invalid,
    not_found,
)
from bayplan.apiserver.model.object_meta import check_metadata
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.applying import applied_value, check_configuration, conflicting
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.body_types import Target
from bayplan.apiserver.rest.decoding import decode_request
from bayplan.apiserver.rest.hooks import admit_unstored
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.options import write_options
from bayplan.apiserver.rest.patching import APPLY_PATCH, patch_type, patched
from bayplan.apiserver.rest.preconditions import find_namespace, storage_error
from bayplan.apiserver.rest.updates import check_place
from bayplan.apiserver.tables.cells import format_selector
from bayplan.base.plain_data import Document, part
from bayplan.objects.selectors import quote


@dataclass(frozen=True, slots=True)
class Scale:
    """The paths (tuples of field names) of the values that a Scale shows.

    Attributes:
        spec_path: the requested number of replicas.
        status_path: the current number of replicas.
        selector_path: the selector of the pods; empty if the kind has none.
    """

    spec_path: tuple[str, ...] = ("spec", "replicas")
    status_path: tuple[str, ...] = ("status", "replicas")
    selector_path: tuple[str, ...] = ("spec", "selector")

    def spec_replicas(self, document: Document) -> int:
        """Return the requested number of replicas, 0 if it is not set."""
        return _number(document, self.spec_path)

    def sets_replicas(self, document: Document) -> bool:
        """Return whether an object sets the requested number of replicas."""
        return isinstance(part(document, *self.spec_path[:-1]).get(self.spec_path[-1]), int)

    def status_replicas(self, document: Document) -> int:
        """Return the current number of replicas, 0 if it is not set."""
        return _number(document, self.status_path)

    def selector(self, document: Document) -> object:
        """Return the selector as a LabelSelector (also for a plain map of labels) or a string; "" if there is none."""
        if not self.selector_path:
            return ""
        found = part(document, *self.selector_path[:-1]).get(self.selector_path[-1])
        if isinstance(found, dict) and not {"matchLabels", "matchExpressions"} & found.keys():
            return {"matchLabels": found}
        return found or ""

    def with_replicas(self, document: Document, replicas: int) -> Document:
        """Return a copy of the object with this requested number of replicas."""
        return _with(document, self.spec_path, replicas)


def _number(document: Document, path: tuple[str, ...]) -> int:
    found = part(document, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) else 0


def _with(document: Document, path: tuple[str, ...], value: object) -> Document:
    if len(path) == 1:
        return {**document, path[0]: value}
    return {**document, path[0]: _with(part(document, path[0]), path[1:], value)}


def scale_paths(resource: Resource) -> Scale:
    """Return the paths of a resource; for a custom resource, its CustomResourceDefinition declares them."""
    if resource.custom is None:
        return Scale()
    declared = part(resource.custom, "subresources", "scale")
    paths = [
        tuple(str(declared.get(name) or "").strip(".").split("."))
        for name in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    ]
    return Scale(paths[0], paths[1], paths[2] if declared.get("labelSelectorPath") else ())


_VERSION = "autoscaling/v1"
_UNSET = -(2**31)
"""Upstream's placeholder for the replicas of a custom resource that does not set them."""
_SCALE = Target(_VERSION, "Scale", "io.k8s.api.autoscaling.v1.Scale")
_FIELDS = field_type(_SCALE.type_name)


def read_scale(backend: Backend, info: RequestInfo) -> Document:
    """Return the Scale of an object.

    Raises:
        ApiError: the object does not exist, or does not set the number of replicas.
    """
    old, paths = _stored(backend, info), scale_paths(info.resource)
    if _lacks_replicas(info.resource, paths, old):
        raise internal_error(f"the spec replicas field {_place(paths)} does not exist")
    return _scale_of(info.resource, old, paths)


def write_scale(backend: Backend, info: RequestInfo, request: Request) -> Document:
    """Update, patch or apply the Scale of an object, and return it.

    Raises:
        ApiError: the object does not exist or has changed in the meantime, or the change is rejected.
    """
    resource, paths = info.resource, scale_paths(info.resource)
    # Upstream reads the options and a replacement before it looks for the object.
    if info.verb == "update":
        options = write_options(request, "UpdateOptions")
        wanted = _replacement(info, request, options)
        check_place(info, part(wanted, "metadata"))
        old = _stored(backend, info)
        before = _writable_scale(resource, old, paths)
    else:
        media_type = patch_type(request, custom=resource.custom is not None)
        options = write_options(request, "PatchOptions", apply=media_type == APPLY_PATCH)
        old = _stored(backend, info)
        if media_type == APPLY_PATCH:
            return _apply(backend, info, request, old, options)
        before = _writable_scale(resource, old, paths)
        shown = _with_managers(before, _managers(backend, resource, old)[0], _field(paths))
        wanted, warnings = patched(_SCALE, shown, request.body, media_type, options.validation)
        part(wanted, "metadata").pop("managedFields", None)
        request.warnings += warnings
    if resource.custom is not None and part(wanted, "spec").get("replicas") == _UNSET:
        raise bad_request(f"the spec replicas field {_place(paths)} cannot be empty")
    replicas = _admitted(backend, info, request, options, _checked(info, wanted, old), before)
    new = _changed(paths, old, replicas)
    managers, others = _managers(backend, resource, old)
    field = _field(paths)
    owners = _owners(managers, field)
    # If no manager owns the field, upstream does not start to track it.
    if not replicas and paths.spec_replicas(old):
        # JSON omits zero replicas, and an absent field has no owner.
        managers = {who: replace(owned, fields=difference(owned.fields, field)) for who, owned in managers.items()}
        managers = {who: owned for who, owned in managers.items() if owned.fields}
    elif replicas and owners:
        owner = _owner(backend, info, options, managers, managed.UPDATE)
        is_same = replicas == paths.spec_replicas(old)
        managers = (
            _split(managers, field, owners, owner)
            if is_same
            else managed.after_update(owner, _only(old, paths), _only(new, paths), managers)
        )
    return _store(backend, info, request, old, new, managers | others, options)


def _managers(backend: Backend, resource: Resource, old: Document) -> tuple[managed.Managers, managed.Managers]:
    """Return the field managers of an object that can own its Scale, and those whose version of a custom resource has none."""
    managers = managed.decode(part(old, "metadata").get("managedFields"))
    without: managed.Managers = {}
    for who in list(managers) if resource.custom is not None else ():
        other = backend.in_group(resource, managers[who].api_version)
        if other is None:
            del managers[who]  # Upstream drops managers of versions that have been removed.
        elif other.custom is not None and part(other.custom, "subresources").get("scale") is None:
            without[who] = managers.pop(who)
    return managers, without


def _stored(backend: Backend, info: RequestInfo) -> Document:
    """Return the object that is scaled.

    Raises:
        ApiError: the object does not exist.
    """
    item = backend.store.get(info.resource.table, (info.namespace, info.name))
    if item is None:
        raise not_found(info.resource.name, info.resource.group, info.name)
    return backend.document(info.resource, item)


def _lacks_replicas(resource: Resource, paths: Scale, document: Document) -> bool:
    return resource.custom is not None and not paths.sets_replicas(document)


def _writable_scale(resource: Resource, document: Document, paths: Scale) -> Document:
    """Return the Scale that a write changes, with a placeholder for replicas that are not set."""
    found = _scale_of(resource, document, paths)
    if _lacks_replicas(resource, paths, document):
        found["spec"] = {"replicas": _UNSET}
    return found


def _with_managers(scale: Document, managers: managed.Managers, field: Node) -> Document:
    """Return a Scale with the managers that own the replicas, which patches and their errors see."""
    fields: Node = {"f:spec": {"f:replicas": {}}}
    found = {who: replace(managers[who], fields=fields, api_version=_VERSION) for who in _owners(managers, field)}
    metadata = part(scale, "metadata")
    return {**scale, "metadata": {**metadata, "managedFields": managed.encode(found)}} if found else scale


def _place(paths: Scale) -> str:
    return quote("." + ".".join(paths.spec_path))


def _store(
    backend: Backend,
    info: RequestInfo,
    request: Request,
    old: Document,
    new: Document,
    managers: managed.Managers,
    options: WriteOptions,
) -> Document:
    """Store the changed object, and return its Scale."""
    if info.resource.custom is not None:
        # The change can create the object that contains the replicas, whose other fields may have defaults.
        new, _ = prune(info.resource, new)
    find_namespace(backend, info)
    written = writing.change(backend, replace(info, subresource=""), old, new, managers, options, admitted=True)
    request.warnings += written.warnings
    return _scale_of(info.resource, written.document, scale_paths(info.resource))


def _replacement(info: RequestInfo, request: Request, options: WriteOptions) -> Document:
    """Return the Scale in the body of an update.

    Raises:
        ApiError: it cannot be decoded. Upstream's error for custom resources names no reason.
    """
    try:
        return decode_request(_SCALE, request, options.validation).document
    except ApiError as problem:
        if info.resource.custom is None or problem.code != 400:
            raise
        why = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(why) from problem


def _checked(info: RequestInfo, wanted: Document, old: Document) -> int:
    """Return the replicas of a Scale after validating it.

    Raises:
        ApiError: the Scale is invalid, or is not for the current version of the object.
    """
    resource, metadata = info.resource, part(wanted, "metadata")
    check_place(info, metadata)
    wanted["metadata"] = metadata
    uid, found = metadata.get("uid"), part(old, "metadata").get("uid")
    if uid and uid != found and info.verb == "update":
        text = storage_error(resource, info, str(uid), str(found))
        raise conflict(resource.name, resource.group, info.name, text)
    causes = check_metadata(metadata, resource.namespaced, "subdomain", standard=True)
    replicas = part(wanted, "spec").get("replicas")
    replicas = replicas if isinstance(replicas, int) else 0
    if replicas < 0 and resource.custom is None:  # The validation of a custom resource checks its own field.
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        causes.append(Cause("FieldValueInvalid", text, "spec.replicas"))
    if causes:
        raise invalid("Scale", "autoscaling", info.name, causes)
    if uid and uid != found:
        text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
        name = resource.name if resource.custom is not None else f"{resource.name}/scale"
        raise conflict(name, resource.group, info.name, text)
    writing.check_version(resource, info, wanted, old, required=False)
    return replicas


def _admitted(
    backend: Backend, info: RequestInfo, request: Request, options: WriteOptions, replicas: int, before: Document
) -> int:
    """Return the replicas of a Scale after policies and webhooks, which may change them."""
    asked: Document = {**before, "spec": {"replicas": replicas} if replicas else {}}
    asked = admit_unstored(backend, info, request, options, _SCALE, (asked, before))
    found = part(asked, "spec").get("replicas")
    return found if isinstance(found, int) else 0


def _apply(
    backend: Backend,
    info: RequestInfo,
    request: Request,
    old: Document,
    options: WriteOptions,
) -> Document:
    resource, paths = info.resource, scale_paths(info.resource)
    managers, unscaled = _managers(backend, resource, old)
    sent = applied_value(request)
    check_configuration(_SCALE, _FIELDS, sent)
    before, current = _scale_of(resource, old, paths), paths.spec_replicas(old)
    owner, field = _owner(backend, info, options, managers, managed.APPLY), _field(paths)
    who = managed.Manager(owner.manager, managed.APPLY, "", "scale")
    owners = _owners(managers, field)
    if resource.custom is not None and not owners:
        raise _unconverted("failed to create manager for existing fields: failed to convert live object", {})
    if current and not owners:
        owners = [managed.Manager(managed.BEFORE_FIRST_APPLY, managed.UPDATE, owner.api_version, "scale")]
    others = [each for each in owners if each != who]
    wanted: Document = {**before, "metadata": {**part(before, "metadata"), **part(sent, "metadata")}}
    sets, given = "replicas" in part(sent, "spec"), part(sent, "spec").get("replicas")
    # The current Scale omits zero replicas, so a configuration that contains them adds the field.
    if others and not options.force and sets and (given != current or not current):
        found = [replace(each, api_version=_VERSION) for each in others]
        raise conflicting(managed.ApplyConflict([(each, ".spec.replicas") for each in found]))
    if isinstance(given, float):
        identity = f"{part(sent, 'metadata').get('namespace') or ''}/{info.name}; {_VERSION}, Kind=Scale"
        why = f"unable to convert unstructured object to {_VERSION}, Kind=Scale: cannot convert float64 to int32"
        raise internal(f"failed to convert new object ({identity}) to proper version: {why}")
    if sets:
        wanted["spec"] = {"replicas": _int32(given)} if isinstance(given, int) else {}
    elif not others:
        wanted["spec"] = {}
    replicas = _admitted(backend, info, request, options, _checked(info, wanted, old), before)
    is_same = replicas == current and not (sets and replicas == 0)
    if resource.custom is not None and replicas != current:
        raise _unconverted("failed to convert new object", part(sent, "metadata"))
    new = _changed(paths, old, replicas)
    # A manager that still applies anything else, such as an empty spec, keeps the replicas.
    stays = sets or (who in owners and bool(managed.owned_fields(_FIELDS, sent)))
    left = [*(others if is_same else ()), *([who] if stays else ())]
    managers = _split(managers, field, left, owner)
    return _store(backend, info, request, old, new, managers | unscaled, options)


def _int32(number: int) -> int:
    """Return a number as Go converts it to 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


def _unconverted(what: str, metadata: Document) -> ApiError:
    """Return upstream's error for an applied Scale of a custom resource, which it cannot convert."""
    identity = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}; {_VERSION}, Kind=Scale"
    why = f"request to convert CR to an invalid group/version: {_VERSION}"
    return internal(f"{what} ({identity}) to proper version: {why}")


def _changed(paths: Scale, old: Document, replicas: int) -> Document:
    """Return a copy of the object with this requested number of replicas, and with metadata that may be modified."""
    new = paths.with_replicas(old, replicas)
    return {**new, "metadata": dict(part(old, "metadata"))}


def _owners(managers: managed.Managers, field: Node) -> list[managed.Manager]:
    """Return the managers that own at least a part of a field."""
    return [who for who, owned in managers.items() if intersection(owned.fields, field)]


def _split(
    managers: managed.Managers, field: Node, owners: list[managed.Manager], owner: managed.WriteContext
) -> managed.Managers:
    """Return the managers with entries of their own for the owners of the replicas.

    As in upstream, the entry of an update has no time, and is added to the manager's entry for its other fields. The entry
    of an apply stays as it is.
    """
    split: managed.Managers = {}
    for who, owned in managers.items():
        fields = difference(owned.fields, field)
        if fields:
            split[who] = replace(owned, fields=fields)
    for who in owners:
        if who.operation == managed.APPLY:
            before = managers.get(who) or managed.Owned({}, owner.api_version)
            owns = bool(intersection(before.fields, field))
            split[who] = before if owns else managed.Owned(union(before.fields, field), owner.api_version, before.time)
            continue
        key = replace(who, api_version=owner.api_version)
        split[replace(key, is_split=key in split)] = managed.Owned(field, owner.api_version)
    return split


def _only(document: Document, paths: Scale) -> Document:
    """Return a document with nothing but the requested number of replicas: upstream compares nothing else."""
    only: Document = {paths.spec_path[-1]: paths.spec_replicas(document)} if paths.sets_replicas(document) else {}
    for name in reversed(paths.spec_path[:-1]):
        only = {name: only}
    return only


def _field(paths: Scale) -> Node:
    """Return the field set that contains only the requested number of replicas."""
    field: Node = {}
    for name in reversed(paths.spec_path):
        field = {f"f:{name}": field}
    return field


def _owner(
    backend: Backend, info: RequestInfo, options: WriteOptions, managers: managed.Managers, operation: str
) -> managed.WriteContext:
    """Return the properties of the write for field management.

    As in upstream, the time is taken from the manager's existing entry; it is empty if the manager has no entry.

    Source: ScaleHandler.ToParent of k8s.io/apimachinery/pkg/util/managedfields
    """
    owner = writing.ownership(backend, replace(info, subresource=""), options, "scale")
    version = owner.api_version if operation == managed.UPDATE else ""
    before = managers.get(managed.Manager(owner.manager, operation, version, "scale"))
    return replace(owner, time=before.time if before else "")


def _scale_of(resource: Resource, document: Document, paths: Scale) -> Document:
    metadata = part(document, "metadata")
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Document = {"replicas": paths.status_replicas(document)}
    selector = paths.selector(document)
    text = format_selector(selector) if isinstance(selector, dict) else selector
    if text:
        status["selector"] = text
    replicas = paths.spec_replicas(document)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in names if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }
