"""What the follower says is to be done here, as values."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from bayplan.base.plain_data import Document
from bayplan.sync.followed_kinds import ObjectRef


class Verb(Enum):
    """What is to be done: make an object, bring it up to date (read it, `Follower.merged`, write it), delete it."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class SyncWrite(Struct, frozen=True):
    """One thing to do here.

    Attributes:
        verb: what.
        ref: the object.
        uid: of the object in the source; for a deletion, of the object here.
        document: to be created; None else.
        version: the hash of the source's version that it was made of.
    """

    verb: Verb
    ref: ObjectRef
    uid: str
    document: Document | None = None
    version: bytes = b""


class Put(Struct, frozen=True):
    """One replacement: of an object, or of a subresource of it.

    Attributes:
        subresource: ``status``, ``resize``, or "" for the object itself.
        document: the whole object.
    """

    subresource: str
    document: Document
