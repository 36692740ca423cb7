"""Hashes of the last written fields of a copy, so that local changes stay until the source changes the same field.

The annotation ``bayplan.io/source-applied`` of a copy has hashes of its fields as they were in the source when they
were written. It is written together with the fields, so it is consistent with them after any restart. Fields are the
labels, the annotations, the owners, each field of the spec, and each other field of the object; for nodes, also each
field of the status except the conditions, which are always synced.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import msgspec

from bayplan.base.plain_data import Document, part, text
from bayplan.cluster.source_copies import SOURCE_UID
from bayplan.sync.followed_kinds import FollowedKind
from bayplan.sync.merging import FOLLOWING_POD_FIELDS
from bayplan.sync.policy import SOURCE_APPLIED

_IDENTITY = ("apiVersion", "kind", "metadata", "spec", "status")
_OWN_METADATA = ("labels", "annotations", "ownerReferences")
_OWN_ANNOTATIONS = (SOURCE_UID, SOURCE_APPLIED)

_Path = tuple[str, ...]
_encode = msgspec.json.Encoder(order="deterministic").encode


def applied_fields(kind: FollowedKind, wanted: Document) -> dict[str, str]:
    """Return the hash of each non-empty field of a desired object, by dotted path."""
    return {
        ".".join(path): blake2b(_encode(value), digest_size=4).hexdigest()
        for path, value in _fields(kind, wanted)
        if value not in (None, {}, [])
    }


def as_annotation(fields: dict[str, str]) -> str:
    """Return the hashes of fields as one line: ``path=hash path=hash``, sorted."""
    return " ".join(f"{name}={fields[name]}" for name in sorted(fields))


def from_annotation(here: Document, source_uid: str) -> dict[str, str] | None:
    """Return the hashes in the annotation of a local object, or None if it is not a copy of that source object."""
    annotations = part(part(here, "metadata"), "annotations")
    if text(annotations, SOURCE_UID) != source_uid or SOURCE_APPLIED not in annotations:
        return None
    pairs = (each.partition("=") for each in text(annotations, SOURCE_APPLIED).split())
    return {name: value for name, _, value in pairs}


def with_hashes(kind: FollowedKind, document: Document, wanted: Document) -> Document:
    """Return the document with the annotation that holds the hashes of the desired fields.

    Args:
        kind: the kind of the object.
        document: the document to write.
        wanted: the source's object, translated.
    """
    metadata = part(document, "metadata")
    annotations = {**part(metadata, "annotations"), SOURCE_APPLIED: as_annotation(applied_fields(kind, wanted))}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def keep_local_changes(kind: FollowedKind, here: Document, wanted: Document, before: dict[str, str] | None) -> Document:
    """Return the desired object, with the local value of each field that has not changed in the source.

    Args:
        kind: the kind of the object.
        here: the local object.
        wanted: the source's object, translated.
        before: `from_annotation` of the local object; None to use all fields of the source.
    """
    if before is None:
        return wanted
    now = applied_fields(kind, wanted)
    merged: Document = {**wanted, "metadata": dict(part(wanted, "metadata")), "spec": dict(part(wanted, "spec"))}
    if "spec" not in wanted and "spec" not in here:
        del merged["spec"]
    if "status" in wanted:
        merged["status"] = dict(part(wanted, "status"))
    for path in dict.fromkeys(path for document in (wanted, here) for path, _ in _fields(kind, document)):
        name = ".".join(path)
        if before.get(name) != now.get(name):
            continue
        *outer, last = path
        into, found = (part(merged, outer[0]), part(here, outer[0])) if outer else (merged, here)
        if last in found:
            into[last] = found[last]
        elif outer != ["status"]:
            # A missing status was not written yet, or was lost. Users do not remove it on purpose.
            into.pop(last, None)
    own = {name: value for name, value in part(part(wanted, "metadata"), "annotations").items() if name == SOURCE_UID}
    metadata = part(merged, "metadata")
    if own:
        metadata["annotations"] = {**part(metadata, "annotations"), **own}
    return merged


def _fields(kind: FollowedKind, document: Document) -> Iterator[tuple[_Path, object]]:
    """Yield the fields of an object with their paths."""
    metadata = part(document, "metadata")
    for name in _OWN_METADATA:
        value = metadata.get(name)
        if name == "annotations" and isinstance(value, dict):
            value = {each: note for each, note in value.items() if each not in _OWN_ANNOTATIONS}
        yield ("metadata", name), value
    for name, value in part(document, "spec").items():
        if kind.kind != "Pod" or name in FOLLOWING_POD_FIELDS:
            yield ("spec", name), value
    if kind.kind == "Pod":
        return
    for name, value in document.items():
        if name not in _IDENTITY:
            yield (name,), value
    if kind.kind == "Node":
        for name, value in part(document, "status").items():
            if name != "conditions":
                yield ("status", name), value
