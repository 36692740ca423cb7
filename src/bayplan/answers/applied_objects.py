"""Objects of a manifest that update existing ones, merged as `kubectl apply` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from bayplan.base.plain_data import Document, part
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode, encode
from bayplan.objects.meta import KubernetesObject, ObjectMeta

T = TypeVar("T", bound=KubernetesObject)

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl apply stores the last manifest of an object, as JSON."""


def updated(item: T, old: T | None, spec: Document) -> T:
    """Return an applied object, merged into the existing one; the status is the existing one's if the manifest has none.

    Args:
        item: the applied object, with defaults.
        old: the existing object; None if there is none.
        spec: the spec as written in the manifest.
    """
    if old is None:
        return item
    none = getattr(default_object(type(item)()), "status", None)
    if none is not None and getattr(item, "status", None) == none:
        item = replace(item, status=getattr(old, "status", none))
    if hasattr(item, "spec"):
        last = part(_last_applied(old.metadata), "spec")
        merged = _merged(spec, part(encode(old), "spec"), last)
        item = default_object(_decoded({**encode(item), "spec": merged}, type(item)))
    # Clear the resource version, or the scheduler would ignore the update as a duplicate.
    return replace(item, metadata=replace(merged_metadata(item.metadata, old.metadata), resource_version=""))


def _decoded(document: Document, kind: type[T]) -> T:
    found = decode(document)
    assert isinstance(found, kind)
    return found


def merged_metadata(metadata: ObjectMeta, old: ObjectMeta) -> ObjectMeta:
    """Merge the metadata of a manifest into those of the existing object."""
    last = part(_last_applied(old), "metadata")
    return replace(
        old,
        labels=_merged_texts(metadata.labels, old.labels, part(last, "labels")),
        annotations=_merged_texts(metadata.annotations, old.annotations, part(last, "annotations")),
        owner_references=metadata.owner_references or old.owner_references,
    )


def _merged_texts(new: Mapping[str, str], old: Mapping[str, str], last: Document) -> dict[str, str]:
    """Return labels or annotations of a manifest, and the existing ones that the last manifest did not have."""
    return {**{key: value for key, value in old.items() if key not in last}, **new}


def _merged(new: Document, old: Document, last: Document) -> Document:
    """Return the fields of a manifest, and the existing ones that the last manifest did not have; lists are replaced."""
    found = {name: value for name, value in old.items() if name not in last}
    for name, value in new.items():
        if isinstance(value, dict):
            found[name] = _merged(value, part(old, name), part(last, name))
        elif value is not None:
            found[name] = value
        else:
            found.pop(name, None)
    return found


def _last_applied(metadata: ObjectMeta) -> Document:
    """Return the manifest of the last `kubectl apply`; {} if there is none."""
    try:
        return msgspec.json.decode(metadata.annotations.get(LAST_APPLIED, "{}"), type=dict[str, object])
    except msgspec.MsgspecError:
        return {}
