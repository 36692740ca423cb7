"""The follower's knowledge of one object: in the source, locally, and why it could not be synced."""

from __future__ import annotations

from hashlib import blake2b

import msgspec
from msgspec import Struct

from bayplan.base.plain_data import Document, part, text
from bayplan.sync.followed_kinds import BY_PLURAL, ObjectRef
from bayplan.sync.merging import is_finished, is_gated, is_scheduled

_encode = msgspec.json.Encoder(order="deterministic").encode


class SourceObject(Struct):
    """An object of the source.

    Attributes:
        uid: the uid in the source.
        raw: the newest version, as JSON.
        version: the hash of `raw`.
        initial: whether the object existed when the sync began.
        scheduled, gated, finished: its state if it is a pod.
    """

    uid: str
    raw: bytes
    version: bytes
    initial: bool
    scheduled: bool
    gated: bool
    finished: bool


class LocalObject(Struct, frozen=True):
    """The relevant properties of a local object.

    Attributes:
        uid: the local uid.
        source_uid: the uid of its original; "" for none.
        gated, finished: its state if it is a pod.
    """

    uid: str
    source_uid: str
    gated: bool
    finished: bool


class Problem(Struct, frozen=True):
    """Why an object of the source could not be synced."""

    ref: ObjectRef
    message: str


def source_object(ref: ObjectRef, document: Document, *, initial: bool) -> SourceObject:
    """Return the record of an object of the source, without its managed fields."""
    metadata = {name: value for name, value in part(document, "metadata").items() if name != "managedFields"}
    uid = metadata["uid"] = text(metadata, "uid") or placeholder_uid(ref)
    raw = _encode({**document, "metadata": metadata})
    what = (is_scheduled(document), is_gated(document), is_finished(document))
    return SourceObject(uid, raw, blake2b(raw, digest_size=12).digest(), initial, *what)


def ref_of(plural: str, document: Document) -> ObjectRef:
    """Return the reference to an object."""
    metadata = part(document, "metadata")
    namespace = text(metadata, "namespace") if BY_PLURAL[plural].namespaced else ""
    return ObjectRef(plural, namespace, text(metadata, "name"))


def placeholder_uid(ref: ObjectRef) -> str:
    """Return a substitute for the uid of an object without one, as in a handwritten manifest."""
    return ".".join(each for each in ref if each)
