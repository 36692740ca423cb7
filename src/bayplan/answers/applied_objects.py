"""Objects of a manifest that update existing ones, merged as client-side `kubectl apply` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

import msgspec
from msgspec.structs import replace

from bayplan.apiserver.patches.strategic import StrategicPatchError, strategic_merge
from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, part
from bayplan.formats.schema import FieldFacts, TypeFacts, find_kind, schema
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode, encode
from bayplan.objects.meta import KubernetesObject, ObjectMeta

T = TypeVar("T", bound=KubernetesObject)

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl apply stores the last manifest of an object, as JSON."""


def apply_to(old: T | None, item: T, spec: Document) -> T:
    """Return an existing object after a manifest is applied to it.

    Fields of the manifest win. The existing object keeps those that neither the manifest nor the last applied one has,
    and its status if the manifest has none.

    Args:
        old: the existing object; None if there is none.
        item: the applied object, with defaults.
        spec: the spec as written in the manifest.

    Raises:
        InputError: a list item of the manifest lacks its merge key.
    """
    if old is None:
        return item
    none = getattr(default_object(type(item)()), "status", None)
    if none is not None and getattr(item, "status", None) == none:
        item = replace(item, status=getattr(old, "status", none))
    if hasattr(item, "spec"):
        item = default_object(_decoded({**encode(item), "spec": _merged_spec(spec, old)}, type(item)))
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


def _merged_spec(spec: Document, old: KubernetesObject) -> object:
    document = encode(old)
    kind = find_kind(str(document["apiVersion"]), str(document["kind"]))
    type_name = "" if kind is None else kind.type
    before: Document = {"spec": part(document, "spec")}
    last: Document = {"spec": part(_last_applied(old.metadata), "spec")}
    try:
        return strategic_merge(type_name, before, _patch(type_name, {"spec": spec}, last, before))["spec"]
    except StrategicPatchError as problem:
        raise InputError(f"apply {document['kind']} {old.key}", got=str(problem), wanted="a valid manifest") from None


def _patch(type_name: str, new: Document, last: Document, old: Document, *, retains: bool = False) -> Document:
    """Return the strategic merge patch that turns an object into that of a manifest.

    It contains the fields of the manifest, and deletes those that only the last manifest had. If it changes anything,
    and the object `retains` only the fields of the manifest (retainKeys), it deletes all others.
    """
    fields = schema().types.get(type_name, TypeFacts({})).fields
    patch: Document = dict.fromkeys(name for name in last if name not in new)
    for name, value in new.items():
        field, before = fields.get(name, FieldFacts("any")), old.get(name)
        patch[name] = value
        if isinstance(value, dict) and isinstance(before, dict) and field.strategy != "replace":
            inner = "" if field.containers else field.type
            patch[name] = _patch(inner, value, part(last, name), before, retains="retainKeys" in field.strategy)
        elif isinstance(value, list) and isinstance(before, list) and "merge" in field.strategy:
            items = last.get(name)
            gone = items if isinstance(items, list) else []
            if field.merge_key:
                patch[name] = _list_patch(field, cast("list[Document]", value), gone, before)
            else:
                patch[f"$deleteFromPrimitiveList/{name}"] = [item for item in gone if item not in value]
    if retains and strategic_merge(type_name, old, patch) != old:
        patch["$retainKeys"] = list(new)
    return patch


def _list_patch(field: FieldFacts, new: list[Document], last: list[object], old: list[object]) -> list[Document]:
    """Return the patch of a list with a merge key; a list with equal keys (such as one port for TCP and UDP) is replaced."""
    keyed_new, keyed_last, keyed_old = (_by_key(items, field.merge_key) for items in (new, last, old))
    if len(keyed_new) < len(new):
        return [*new, {"$patch": "replace"}]
    retains = "retainKeys" in field.strategy
    patches = [
        _patch(field.type, item, keyed_last.get(key, {}), keyed_old[key], retains=retains) if key in keyed_old else item
        for key, item in keyed_new.items()
    ]
    gone = [item for key, item in keyed_last.items() if key not in keyed_new]
    return [*patches, *({field.merge_key: item.get(field.merge_key), "$patch": "delete"} for item in gone)]


def _by_key(items: Sequence[object], key: str) -> dict[str, Document]:
    return {str(item.get(key)): item for item in items if isinstance(item, dict)}


def _last_applied(metadata: ObjectMeta) -> Document:
    """Return the manifest of the last `kubectl apply`; {} if there is none."""
    try:
        return msgspec.json.decode(metadata.annotations.get(LAST_APPLIED, "{}"), type=dict[str, object])
    except msgspec.MsgspecError:
        return {}
