"""Fields behind disabled feature gates: the API server drops them, unless the old object already uses them.

Source: the functions dropDisabledFields and the strategies of v1.36.3, and the defaults of its feature gates.
"""

from __future__ import annotations

from bayplan.apiserver.kinds.spec_cache import CachedSpec
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.base.plain_data import Document

_CONTAINERS = ("containers[]", "initContainers[]", "ephemeralContainers[]")
_STOP_SIGNAL = "stopSignal"
_POD = (
    "volumes[].projected.sources[].clusterTrustBundle",  # ClusterTrustBundleProjection
    "volumes[].projected.sources[].podCertificate",  # PodCertificateRequest
    "schedulingGroup",  # GenericWorkload
    *(f"{container}.lifecycle.stopSignal" for container in _CONTAINERS),  # ContainerStopSignals
)
_TEMPLATES = {
    "pods": "spec",
    "podtemplates": "template.spec",
    "replicationcontrollers": "spec.template.spec",
    "apps/deployments": "spec.template.spec",
    "apps/replicasets": "spec.template.spec",
    "apps/statefulsets": "spec.template.spec",
    "apps/daemonsets": "spec.template.spec",
    "batch/jobs": "spec.template.spec",
    "batch/cronjobs": "spec.jobTemplate.spec.template.spec",
}
_PATHS: dict[str, tuple[str, ...]] = {
    "apps/statefulsets": ("spec.updateStrategy.rollingUpdate.maxUnavailable",),  # MaxUnavailableStatefulSet
    "coordination.k8s.io/leases": ("spec.strategy", "spec.preferredHolder"),  # CoordinatedLeaderElection
    "nodes": ("spec.configSource",),  # DynamicKubeletConfig, removed in v1.26
    "resource.k8s.io/resourceslices": (
        "spec.devices[].nodeAllocatableResourceMappings",  # DRANodeAllocatableResources
        *(
            f"spec.devices[].attributes{{}}.{name}" for name in ("ints", "bools", "strings", "versions")
        ),  # DRAListTypeAttributes
    ),
    "batch/jobs": ("spec.schedulingGroup",),  # WorkloadWithJob
    "storage.k8s.io/csidrivers": ("spec.preventPodSchedulingIfMissing",),  # VolumeLimitScaling
}
_TOKENS: dict[str, tuple[tuple[str, ...], ...]] = {
    table: tuple(
        tuple(path.replace("[]", ".[]").replace("{}", ".{}").split("."))
        for path in (
            *_PATHS.get(table, ()),
            *((f"{_TEMPLATES[table]}.{path}" for path in _POD) if table in _TEMPLATES else ()),
        )
    )
    for table in {**_TEMPLATES, **_PATHS}
}


def drop_gated_fields(table: str, new: Document, old: Document | None) -> None:
    """Remove the fields that belong to disabled feature gates from a new object, in place, unless the current object has them.

    Nested parts are copied before they are changed.

    Args:
        table: the table of the object.
        new: the new object.
        old: the current object, None for a create.
    """
    if isinstance(new.get("spec"), CachedSpec):
        return  # Specs with such fields are never cached.
    for path in _TOKENS.get(table, ()):
        if _holds(new, path) and (old is None or not _holds(old, path)):
            changed = _without(new, path)
            if isinstance(changed, dict):
                new.update(changed)


def _holds(value: object, path: tuple[str, ...]) -> bool:
    for position, name in enumerate(path):
        if name == "[]":
            items = value if isinstance(value, list) else []
            return any(_holds(each, path[position + 1 :]) for each in items)
        if not isinstance(value, dict):
            return False
        if name == "{}":
            return any(_holds(each, path[position + 1 :]) for each in value.values())
        if name not in value:
            return False
        value = value[name]
    return True


def _without(value: object, path: tuple[str, ...]) -> object:
    """Return a copy of a value without the field at a path. Parts without the field are shared.

    A lifecycle of which only the stop signal was set is removed as a whole.
    """
    name, *rest = path
    if name == "[]" and isinstance(value, list):
        return [_without(each, tuple(rest)) for each in value]
    if name == "{}" and isinstance(value, dict):
        return {key: _without(item, tuple(rest)) for key, item in value.items()}
    if not isinstance(value, dict) or name not in value:
        return value
    inner = _without(value[name], tuple(rest)) if rest else None
    if not rest or (rest == [_STOP_SIGNAL] and not inner and value[name]):
        kept = {key: item for key, item in value.items() if key != name}
    else:
        kept = {**value, name: inner}
    return Emptied(kept, value.empties) if isinstance(value, Emptied) else kept
