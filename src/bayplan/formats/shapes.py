"""Recognise objects without apiVersion and kind if their fields are unambiguous: pods, nodes, volumes, storage classes.

Archives such as those of OpenShift Insights contain objects without `apiVersion` and `kind`. The loader refuses objects
that cannot be recognised with certainty.
"""

from collections.abc import Mapping

_VOLUME_FIELDS = frozenset(("accessModes", "capacity", "persistentVolumeReclaimPolicy", "claimRef", "volumeMode"))
_NODE_FIELDS = frozenset(("nodeInfo", "allocatable", "daemonEndpoints"))


def infer_kind(value: Mapping[str, object]) -> tuple[str, str] | None:
    """Return (apiVersion, kind) of an object that has neither; None if its fields are ambiguous.

    - Pod: `spec.containers` is a list of objects with names.
    - Node: `status` has `capacity` and one of `nodeInfo`, `allocatable`, `daemonEndpoints`.
    - PersistentVolume: `spec` has `capacity` and two more of `accessModes`, `persistentVolumeReclaimPolicy`,
      `claimRef`, `volumeMode`.
    - StorageClass: `provisioner` is a string at the top level, and there is no `spec`.
    """
    if not isinstance(value.get("metadata"), Mapping):
        return None
    spec, status = _object(value, "spec"), _object(value, "status")
    containers = spec.get("containers")
    if isinstance(containers, list) and containers:
        named = all(isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in containers)
        return ("v1", "Pod") if named else None
    if isinstance(status.get("capacity"), Mapping) and not _NODE_FIELDS.isdisjoint(status):
        return ("v1", "Node")
    if isinstance(spec.get("capacity"), Mapping) and len(_VOLUME_FIELDS.intersection(spec)) > 2:
        return ("v1", "PersistentVolume")
    if isinstance(value.get("provisioner"), str) and "spec" not in value:
        return ("storage.k8s.io/v1", "StorageClass")
    return None


def _object(value: Mapping[str, object], name: str) -> Mapping[str, object]:
    item = value.get(name)
    return item if isinstance(item, Mapping) else {}
