"""Rules of the pod subresources ``resize`` and ``ephemeralcontainers``: which changes they allow, and the errors."""

from __future__ import annotations

from typing import cast

from bayplan.apiserver.kinds.strategy import copy_part
from bayplan.apiserver.model.errors import Cause, forbidden_value, invalid_value
from bayplan.apiserver.validation.internal_json import difference
from bayplan.apiserver.validation.pod_annotations import MIRROR
from bayplan.apiserver.validation.pod_resources import quality_of_service
from bayplan.apiserver.validation.pod_specs import check_pod_spec
from bayplan.apiserver.validation.pods import check_pod_metadata_and_spec
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

RESIZE = "resize"
EPHEMERAL = "ephemeralcontainers"
_KEPT = ("deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences")
_SIZED = ("cpu", "memory")
_AMOUNTS = ("requests", "limits")
_ONLY_SIZES = "only cpu and memory resources are mutable"
_LISTS = ("containers", "initContainers")


def restore_immutable_fields(new: Document, old: Document, subresource: str) -> None:
    """Restore everything in the new pod that the subresource must not change."""
    spec, before = part(new, "spec"), part(old, "spec")
    kept = dict(before)
    if subresource == EPHEMERAL:
        copy_part(kept, spec, "ephemeralContainers")
    elif any(len(parts(spec, name)) != len(parts(before, name)) for name in _LISTS):
        return  # Validation reports the changed number of containers.
    else:
        copy_part(kept, spec, "resources")
        for name in _LISTS:
            if name in before:
                kept[name] = _resized(parts(spec, name), parts(before, name))
    new["spec"] = kept
    copy_part(new, old, "status")
    for name in _KEPT:
        copy_part(part(new, "metadata"), part(old, "metadata"), name)


def _resized(new: list[Document], old: list[Document]) -> list[Document]:
    if [each.get("name") for each in new] != [each.get("name") for each in old]:
        return new
    result = []
    for each, before in zip(new, old, strict=True):
        merged = dict(before)
        copy_part(merged, each, "resources")
        copy_part(merged, each, "resizePolicy")
        result.append(merged)
    return result


def check_resize(new: Document, old: Document) -> list[Cause]:
    """Return the errors of a resize: only CPU and memory amounts may change, and the QoS class must stay the same."""
    spec, before = part(new, "spec"), part(old, "spec")
    if MIRROR in part(old, "metadata", "annotations"):
        return [forbidden_value("[]", "static pods cannot be resized")]
    if part(before, "os").get("name") == "windows":
        return [forbidden_value("[]", "windows pods cannot be resized")]
    causes: list[Cause] = []
    check_pod_metadata_and_spec(new, "", causes)
    status = part(old, "status")
    if (status.get("qosClass") or quality_of_service(old)) != quality_of_service(new):
        text = "Pod QOS Class may not change as a result of resizing"
        causes.append(invalid_value("spec", quote(str(status.get("qosClass") or "")), text))
    running = [each for each in parts(status, "containerStatuses") if part(each, "state").get("running")]
    if running and running[0].get("resources") is None:
        causes.append(forbidden_value("spec", "Pod running on node without support for resize"))
    causes += _check_pod_level(spec.get("resources"), before.get("resources"))
    if parts(status, "nodeAllocatableResourceClaimStatuses"):
        causes.append(forbidden_value("spec", "pods with node allocatable resource claims cannot be resized"))
    order = [cause for name in _LISTS for cause in _check_order(name, parts(spec, name), parts(before, name))]
    if order:
        return causes + order
    for name in reversed(_LISTS):
        for index, (each, last) in enumerate(zip(parts(spec, name), parts(before, name), strict=True)):
            resources, of_old = part(each, "resources"), part(last, "resources")
            causes += _check_removed(resources, of_old, f"spec.{name}[{index}].resources", "resource")
    for each, last in zip(parts(spec, "containers"), parts(before, "containers"), strict=True):
        if not _differs_in_sizes_only(each, last):
            causes.append(forbidden_value("spec", _ONLY_SIZES))
    inits = zip(parts(spec, "initContainers"), parts(before, "initContainers"), strict=True)
    for index, (each, last) in enumerate(inits):
        causes += _check_init(each, last, f"spec.initContainers[{index}]")
    if not causes and (spec.get("resources") is None) != (before.get("resources") is None) and not _is_set(spec):
        causes.append(forbidden_value("spec", _ONLY_SIZES))
    return causes


def _is_set(spec: Document) -> bool:
    """Return whether a spec has pod-level requests or limits."""
    return any(part(spec, "resources", what) for what in _AMOUNTS)


def _check_pod_level(new: object, old: object) -> list[Cause]:
    """Return the errors of changed pod-level resources: only amounts of CPU and memory may change."""
    resources, before = part({"": new}, ""), part({"": old}, "")
    if not any(part(each, what) for each in (resources, before) for what in _AMOUNTS):
        return []
    if old is not None and new is None:
        return [forbidden_value("spec.resources", "pod-level resources cannot be removed")]
    causes = _check_removed(resources, before, "spec.resources", "pod-level resource")
    same = all(_masked(part(resources, what), part(before, what)) == part(before, what) for what in _AMOUNTS)
    if not same or parts(resources, "claims") != parts(before, "claims"):
        causes.append(forbidden_value("spec", f"{_ONLY_SIZES} at pod-level"))
    return causes


def _check_init(new: Document, old: Document, path: str) -> list[Cause]:
    causes = []
    if not _differs_in_sizes_only(new, old):
        text = "only cpu and memory resources for init or sidecar containers are mutable"
        causes.append(forbidden_value(path, text))
    if new != old and old.get("restartPolicy") != "Always":
        text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        policies = [each for each in parts(new, "resizePolicy") if each.get("restartPolicy") == "RestartContainer"]
        causes += [forbidden_value(path, text) for _ in policies]
    return causes


def _check_order(name: str, new: list[Document], old: list[Document]) -> list[Cause]:
    if len(new) != len(old):
        return [forbidden_value(f"spec.{name}", f"{name} may not be added or removed on resize")]
    text = f"{name} may not be renamed or reordered on resize"
    pairs = enumerate(zip(new, old, strict=True))
    return [forbidden_value(f"spec.{name}[{i}].name", text) for i, (a, b) in pairs if a.get("name") != b.get("name")]


def _check_removed(new: Document, old: Document, path: str, name: str) -> list[Cause]:
    return [
        forbidden_value(f"{path}.{what}", f"{name} {what} cannot be removed")
        for what in _AMOUNTS
        if part(old, what).keys() - part(new, what).keys()
    ]


def _masked(new: Document, old: Document) -> Document:
    """Return the new amounts with CPU and memory replaced by the old amounts."""
    kept: Document = {name: amount for name, amount in new.items() if name not in _SIZED}
    return kept | {name: old[name] for name in _SIZED if name in old}


def _differs_in_sizes_only(new: Document, old: Document) -> bool:
    """Return whether a container equals the old one except for CPU and memory.

    Always false if the old container has claims: upstream drops the claims of the new container before it compares.
    """
    resources, before = part(new, "resources"), part(old, "resources")
    return (
        all(_masked(part(resources, what), part(before, what)) == part(before, what) for what in _AMOUNTS)
        and not parts(before, "claims")
        and parts(new, "resizePolicy") == parts(old, "resizePolicy")
    )


def check_ephemeral(new: Document, old: Document) -> list[Cause]:
    """Return the errors of an update of ephemeral containers, which may only be added."""
    name = "ephemeralContainers"
    causes: list[Cause] = []
    check_pod_spec(part(new, "spec"), "spec", causes)
    now = {each.get("name"): each for each in parts(part(new, "spec"), name)}
    for before in parts(part(old, "spec"), name):
        called = cast("str", before.get("name"))
        if called not in now:
            text = f"existing ephemeral containers {quote(called)} may not be removed\n"
            causes.append(forbidden_value(f"spec.{name}", text))
        elif now[called] != before:
            changes = difference("core.EphemeralContainer", before, now[called])
            text = f"existing ephemeral containers {quote(called)} may not be changed\n{changes}"
            causes.append(forbidden_value(f"spec.{name}", text))
    return causes
