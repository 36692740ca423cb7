"""Rules of the ``resize`` and ``ephemeralcontainers`` subresources of pods: allowed changes and errors."""

from __future__ import annotations

from typing import cast

from bayplan.apiserver.kinds.pod_resources import quality_of_service
from bayplan.apiserver.kinds.strategy import copy_part
from bayplan.apiserver.model.errors import Cause, forbidden_value, invalid_value
from bayplan.apiserver.validation.pod_specs import check_pod_spec
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

RESIZE = "resize"
EPHEMERAL = "ephemeralcontainers"
_KEPT = ("deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences")
_SIZED = ("cpu", "memory")
_LISTS = ("containers", "initContainers")


def keep_the_rest(new: Document, old: Document, subresource: str) -> None:
    """Restore the parts that an endpoint does not change."""
    spec, before = part(new, "spec"), part(old, "spec")
    kept = dict(before)
    if subresource == EPHEMERAL:
        copy_part(kept, spec, "ephemeralContainers")
    elif any(len(parts(spec, name)) != len(parts(before, name)) for name in _LISTS):
        return  # Validation reports it.
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
    """Check that only amounts of CPU and memory have changed, and that the quality of service stays the same."""
    spec, before = part(new, "spec"), part(old, "spec")
    causes: list[Cause] = []
    if part(before, "os").get("name") == "windows":
        return [forbidden_value("[]", "windows pods cannot be resized")]
    check_pod_spec(spec, "spec", causes)
    quality = part(old, "status").get("qosClass") or quality_of_service(old)
    if quality != quality_of_service(new):
        text = "Pod QOS Class may not change as a result of resizing"
        causes.append(invalid_value("spec", quote(str(quality)), text))
    running = [each for each in parts(part(old, "status"), "containerStatuses") if part(each, "state").get("running")]
    if running and running[0].get("resources") is None:
        causes.append(forbidden_value("spec", "Pod running on node without support for resize"))
    order = [cause for name in _LISTS for cause in _check_order(name, parts(spec, name), parts(before, name))]
    if order:
        return causes + order
    for name in reversed(_LISTS):
        for index, (each, last) in enumerate(zip(parts(spec, name), parts(before, name), strict=True)):
            causes += _check_removed(each, last, f"spec.{name}[{index}].resources")
    for each, last in zip(parts(spec, "containers"), parts(before, "containers"), strict=True):
        if _without_sizes(each) != _without_sizes(last):
            causes.append(forbidden_value("spec", "only cpu and memory resources are mutable"))
    inits = zip(parts(spec, "initContainers"), parts(before, "initContainers"), strict=True)
    for index, (each, last) in enumerate(inits):
        causes += _check_init(each, last, f"spec.initContainers[{index}]")
    return causes


def _check_init(new: Document, old: Document, path: str) -> list[Cause]:
    causes = []
    if _without_sizes(new) != _without_sizes(old):
        text = "only cpu and memory resources for init or sidecar containers are mutable"
        causes.append(forbidden_value(path, text))
    if new != old and old.get("restartPolicy") != "Always":
        text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        policies = [each for each in parts(old, "resizePolicy") if each.get("restartPolicy") == "RestartContainer"]
        causes += [forbidden_value(path, text) for _ in policies]
    return causes


def _check_order(name: str, new: list[Document], old: list[Document]) -> list[Cause]:
    if len(new) != len(old):
        return [forbidden_value(f"spec.{name}", f"{name} may not be added or removed on resize")]
    text = f"{name} may not be renamed or reordered on resize"
    pairs = enumerate(zip(new, old, strict=True))
    return [forbidden_value(f"spec.{name}[{i}].name", text) for i, (a, b) in pairs if a.get("name") != b.get("name")]


def _check_removed(new: Document, old: Document, path: str) -> list[Cause]:
    return [
        forbidden_value(f"{path}.{what}", f"resource {what} cannot be removed")
        for what in ("requests", "limits")
        if part(old, "resources", what).keys() - part(new, "resources", what).keys()
    ]


def _without_sizes(container: Document) -> Document:
    resources = part(container, "resources")
    amounts: Document = {
        what: {name: amount for name, amount in part(resources, what).items() if name not in _SIZED}
        for what in ("requests", "limits")
    }
    return {**container, "resources": {**resources, **amounts, "claims": None}, "resizePolicy": None}


def check_ephemeral(new: Document, old: Document) -> list[Cause]:
    """Check that ephemeral containers have only been added."""
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
            text = f"existing ephemeral containers {quote(called)} may not be changed\n"
            causes.append(forbidden_value(f"spec.{name}", text))
    return causes
