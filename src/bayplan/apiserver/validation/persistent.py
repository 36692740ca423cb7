"""Validation rules of PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

import posixpath

from bayplan.apiserver.model.errors import forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.validation.claim_specs import CLAIM_SPEC, access_modes, changed_claim_spec
from bayplan.apiserver.validation.engine import (
    Causes,
    copied,
    field,
    for_update,
    if_filled,
    inside,
    kind,
    need,
    one_of,
    optional,
    sent,
    table,
    value,
)
from bayplan.apiserver.validation.formats import amount_of, dns_subdomain
from bayplan.apiserver.validation.internal_json import difference, shown_as
from bayplan.apiserver.validation.resources import basic_amount
from bayplan.apiserver.validation.selectors import NODE_SELECTOR
from bayplan.apiserver.validation.volumes import PERSISTENT_SOURCES
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part
from bayplan.objects.names import check_qualified_name
from bayplan.objects.selectors import quote

_INLINE = "in the context of inline volumes"
_SEVERAL = "may not specify more than 1 volume type"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_GA_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}

# --- volumes ----------------------------------------------------------------------------------------------------------


def _capacity(spec: Document, path: str, out: Causes) -> None:
    capacity, here = part(spec, "capacity"), f"{path}.capacity"
    if not capacity:
        out.append(required(here))
    if set(capacity) != {"storage"}:
        out.append(
            not_supported(here, json_text(dict(sorted(capacity.items())) or sent(spec, "capacity")), ("storage",))
        )
    for name, amount in sorted(capacity.items()):
        out.extend(basic_amount(str(amount), f"{here}[{name}]"))
        if amount_of(str(amount)).sign() <= 0:
            out.append(invalid_value(f"{here}[{name}]", quote(str(amount)), "must be greater than zero"))


def _node_affinity(affinity: Document, path: str, out: Causes) -> None:
    if isinstance(affinity.get("required"), dict):
        NODE_SELECTOR(part(affinity, "required"), f"{path}.required", out)
    else:
        out.append(required(f"{path}.required", "must specify required node constraints"))


_FIELDS = {"gcePersistentDisk": "persistentDisk"}
"""The field of a volume source in upstream's errors, if its name differs."""


def _sources(spec: Document, path: str, volume_name: str, out: Causes) -> None:
    count = 0
    for name, rule in PERSISTENT_SOURCES.items():
        source = spec.get(name)
        if not isinstance(source, dict):
            continue
        count += 1
        if count > 1 and name != "flexVolume":
            out.append(forbidden_value(f"{path}.{'cephFS' if name == 'cephfs' else name}", _SEVERAL))
            continue
        rule(source, f"{path}.{_FIELDS.get(name, name)}", out)
        if name == "local" and spec.get("nodeAffinity") is None:
            out.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
        portal = str(source.get("targetPortal") or "")
        if name == "iscsi" and source.get("initiatorName") is not None and len(f"{volume_name}:{portal}") > 64:
            detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
            detail += "iscsi.initiatorName is specified."
            out.append(invalid_value(f"{path}.iscsi.targetportal", quote(portal), detail))
    if not count:
        out.append(required(path, "must specify a volume type"))
    directory = part(spec, "hostPath").get("path")
    recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    if recycled and directory and posixpath.normpath(str(directory)) == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        out.append(forbidden_value(f"{path}.persistentVolumeReclaimPolicy", detail))


def _attributes_class(spec: Document, path: str, out: Causes) -> None:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    if not name:
        out.append(required(f"{path}.volumeAttributesClassName", "an empty string is disallowed"))
    else:
        dns_subdomain(name, f"{path}.volumeAttributesClassName", out)
    if spec.get("csi") is None:
        out.append(required(f"{path}.csi", "has to be specified when using volumeAttributesClassName"))


_RECLAIM = value("persistentVolumeReclaimPolicy", if_filled(one_of("Delete", "Recycle", "Retain")))
_CLASS_AND_MODE = table(
    value("storageClassName", if_filled(dns_subdomain)),
    field("volumeMode", one_of("Block", "Filesystem")),
    _attributes_class,
)


def _volume(volume: Document, path: str, out: Causes) -> None:
    spec, here = part(volume, "spec"), "spec"
    need("accessModes")(spec, here, out)
    access_modes(spec, here, out)
    _capacity(spec, here, out)
    _RECLAIM(spec, here, out)
    optional("nodeAffinity", _node_affinity)(spec, here, out)
    _sources(spec, here, str(part(volume, "metadata").get("name") or ""), out)
    _CLASS_AND_MODE(spec, here, out)


def inline_volume(spec: Document, path: str, out: Causes) -> None:
    """Check the volume spec that a VolumeAttachment contains."""
    for name in ("claimRef", "capacity"):
        if spec.get(name):
            out.append(forbidden_value(f"{path}.{name}", f"may not be specified {_INLINE}"))
    if spec.get("csi") is None:
        out.append(required(f"{path}.csi", f"has to be specified {_INLINE}"))
    need("accessModes")(spec, path, out)
    access_modes(spec, path, out)
    if spec.get("persistentVolumeReclaimPolicy") not in (None, "", "Retain"):
        out.append(forbidden_value(f"{path}.persistentVolumeReclaimPolicy", f"may only be Retain {_INLINE}"))
    if spec.get("nodeAffinity") is not None:
        out.append(forbidden_value(f"{path}.nodeAffinity", f"may not be specified {_INLINE}"))
    _sources(spec, path, "", out)
    if spec.get("storageClassName"):
        out.append(forbidden_value(f"{path}.storageClassName", f"may not be specified {_INLINE}"))
    if spec.get("volumeMode") not in (None, "Filesystem"):
        detail = f"may not specify volumeMode other than Filesystem {_INLINE}"
        out.append(forbidden_value(f"{path}.volumeMode", detail))
    _attributes_class(spec, path, out)


def _source_of(spec: Document) -> Document:
    return {name: source for name, source in spec.items() if name in PERSISTENT_SOURCES}


def _source_stays(new: Document, old: Document, out: Causes) -> None:
    source, before = _source_of(part(new, "spec")), _source_of(part(old, "spec"))
    csi = source.get("csi")
    if isinstance(csi, dict) and "csi" in before and "controllerExpandSecretRef" not in part(before, "csi"):
        source["csi"] = {name: item for name, item in csi.items() if name != "controllerExpandSecretRef"}
    if source != before:
        detail = "spec.persistentvolumesource is immutable after creation\n"
        detail += difference("core.PersistentVolumeSource", before, source)
        out.append(forbidden_value("spec.persistentvolumesource", detail))


def _mode_stays(new: Document, old: Document, out: Causes) -> None:
    mode, before = (part(each, "spec").get("volumeMode") for each in (new, old))
    if mode != before:
        out.append(invalid_value("volumeMode", quote(str(mode)) if mode is not None else "null", "field is immutable"))


def _promoted(affinity: object, new: object) -> object:
    """Return the old node affinity with its beta labels replaced by the stable labels that the new affinity has instead."""
    if isinstance(affinity, dict) and isinstance(new, dict):
        inner = {key: _promoted(item, new.get(key)) for key, item in affinity.items()}
        if "key" in affinity and _GA_LABELS.get(str(affinity["key"]), "") == new.get("key", ""):
            inner["key"] = new.get("key", "")
        return inner
    if isinstance(affinity, list) and isinstance(new, list) and len(affinity) == len(new):
        return [_promoted(item, other) for item, other in zip(affinity, new, strict=True)]
    return affinity


def _affinity_stays(new: Document, old: Document, out: Causes) -> None:
    affinity, before = (part(each, "spec").get("nodeAffinity") for each in (new, old))
    if before is not None and _promoted(before, affinity) != affinity:
        shown = shown_as("*core.VolumeNodeAffinity")(affinity)
        detail = "field is immutable, except for updating from beta label to GA"
        out.append(invalid_value("nodeAffinity", shown, detail))


def _attributes_stay(new: Document, old: Document, out: Causes) -> None:
    name, before = (part(each, "spec").get("volumeAttributesClassName") for each in (new, old))
    if before is not None and name is None:
        detail = "update from non-nil value to nil is forbidden"
        out.append(forbidden_value("spec.volumeAttributesClassName", detail))


VOLUME = kind(
    _volume,
    # Upstream validates the new volume twice, and reports its errors twice.
    before=[for_update(_volume)],
    after=[_source_stays, _mode_stays, _affinity_stays, _attributes_stay],
    metadata=("object", "object"),
)

# --- claims -----------------------------------------------------------------------------------------------------------


def _claim_stays(new: Document, old: Document, out: Causes) -> None:
    spec, before = copied(part(new, "spec")), copied(part(old, "spec"))
    if not before.get("volumeName") and "volumeName" in spec:
        before["volumeName"] = spec["volumeName"]
    annotation, annotation_before = (part(each, "metadata", "annotations").get(_BETA_CLASS) for each in (new, old))
    name, name_before = spec.get("storageClassName"), before.get("storageClassName")
    if (annotation or "") != (annotation_before or ""):
        here = f"metadata.annotations.{_BETA_CLASS}"
        out.append(invalid_value(here, quote(str(annotation or "")), "field is immutable"))
    if name is not None and name_before is None and annotation_before in (None, name):
        spec.pop("storageClassName")
    size, size_before = (part(each, "spec", "resources", "requests").get("storage") for each in (new, old))
    if part(new, "status").get("phase") == "Bound":
        requests = {**part(spec, "resources", "requests"), "storage": size_before}
        if part(spec, "resources", "requests"):
            spec["resources"] = {**part(spec, "resources"), "requests": requests}
        spec.pop("volumeAttributesClassName", None)
        if "volumeAttributesClassName" in before:
            spec["volumeAttributesClassName"] = before["volumeAttributesClassName"]
    if spec != before:
        detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
        detail += difference("core.PersistentVolumeClaimSpec", before, spec)
        out.append(forbidden_value("spec", detail))
    if amount_of(str(size or 0)) < amount_of(str(size_before or 0)):
        of_status = part(old, "status", "capacity").get("storage")
        if amount_of(str(size or 0)) <= amount_of(str(of_status or 0)):
            detail = "field can not be less than status.capacity"
            out.append(forbidden_value("spec.resources.requests.storage", detail))


def _current_attributes_stay(new: Document, old: Document, out: Causes) -> None:
    name, before = (part(each, "spec").get("volumeAttributesClassName") for each in (new, old))
    if name != before and part(old, "status").get("currentVolumeAttributesClassName") is not None and not name:
        what = "nil" if name is None else "empty string"
        detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        out.append(forbidden_value("spec.volumeAttributesClassName", detail))


_RESIZE_STATES = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip


def _claim_resource(name: str, path: str, out: Causes) -> bool:
    problems = check_qualified_name(name)
    out.extend(invalid_value(path, quote(name), problem) for problem in problems)
    is_native = "/" not in name or "kubernetes.io/" in name
    if not problems and is_native and name != "storage":
        out.append(not_supported(path, quote(name), ("storage",)))
        return False
    return not problems


def _claim_status(new: Document, _old: Document, out: Causes) -> None:
    status = part(new, "status")
    for name, amount in sorted(part(status, "capacity").items()):
        out.extend(basic_amount(str(amount), f"status.capacity[{name}]"))
    here = "status.allocatedResourceStatuses"
    for name, state in sorted(part(status, "allocatedResourceStatuses").items()):
        _claim_resource(name, here, out)
        if state not in _RESIZE_STATES:
            out.append(not_supported(here, quote(name), _RESIZE_STATES))
    for name, amount in sorted(part(status, "allocatedResources").items()):
        if _claim_resource(name, "status.allocatedResources", out):
            out.extend(basic_amount(str(amount), f"status.allocatedResources[{name}]"))


CLAIM = kind(
    inside("spec", CLAIM_SPEC),
    status=[_claim_status],
    update=[changed_claim_spec, _claim_stays, _mode_stays, _current_attributes_stay],
    metadata=("change", "object"),
)
KINDS = {"persistentvolumes": VOLUME, "persistentvolumeclaims": CLAIM}
