"""The follower's writes as values."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from bayplan.base.plain_data import Document
from bayplan.sync.followed_kinds import ObjectRef


class Verb(Enum):
    """The operation: create an object; update it (read it, merge with `Follower.merged`, write it); or delete it."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class SyncWrite(Struct, frozen=True):
    """A write to the target.

    Attributes:
        verb: the operation.
        ref: the object.
        uid: the uid of the object in the source; for a deletion, the uid of the local object.
        document: the document to create; None for other operations.
        version: the hash of the source's version that the document was translated from.
    """

    verb: Verb
    ref: ObjectRef
    uid: str
    document: Document | None = None
    version: bytes = b""


class Put(Struct, frozen=True):
    """The replacement of an object or of one of its subresources.

    Attributes:
        subresource: the subresource: ``status``, ``resize``, or "" for the object itself.
        document: the complete object.
    """

    subresource: str
    document: Document
