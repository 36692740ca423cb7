"""The base class of controllers that process objects of all kinds, including custom resources."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

import msgspec

from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.store.item import Item, Write
from bayplan.apiserver.store.store import Store
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.controller import Controller, ControllerTools, Enqueue
from bayplan.controllers.garbage_collector import OwnerRefs
from bayplan.objects.meta import KubernetesObject


class _Document(msgspec.Struct, gc=False):
    metadata: OwnerRefs


_decode = msgspec.json.Decoder(_Document).decode
_SIGNS = (b'"ownerReferences"', b'"finalizers"', b'"deletionTimestamp"')


def refs_of(item: Item) -> OwnerRefs:
    """Return the uid, owner references, finalizers and deletion time of a stored object.

    Fast for most objects, which have only a uid.
    """
    raw = item.raw
    if any(sign in raw for sign in _SIGNS):
        with suppress(msgspec.MsgspecError):
            return _decode(raw).metadata
    return OwnerRefs(item.uid)


class DocumentFollower(Protocol):
    """A controller that receives every write, to objects of all kinds."""

    def begin(self, now_ns: int) -> None:
        """Read all existing objects and queue reconciles, at the start and after a gap in the history."""
        ...

    def follow(self, write: Write, now_ns: int) -> None:
        """Queue the reconciles that a write requires."""
        ...


class DocumentController(Controller):
    """A controller that receives every write instead of typed events.

    Args:
        tools: see `ControllerTools`.
        documents: the API's store.
        writer: writes untyped objects through the API.
        enqueue: queues a reconcile of a controller.
    """

    kind = KubernetesObject

    def __init__(self, tools: ControllerTools, documents: Store, writer: ObjectWriter, enqueue: Enqueue) -> None:
        super().__init__(tools)
        self.documents = documents
        self.object_writer = writer
        self._enqueue = enqueue

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return no keys: `follow` receives all writes, including those of typed objects."""
        return ()

    def enqueue(self, key: str, now_ns: int) -> None:
        """Queue a reconcile of a key of this controller."""
        self._enqueue(self, key, now_ns)

    @abstractmethod
    def begin(self, now_ns: int) -> None:
        """Read all existing objects and queue reconciles, at the start and after a gap in the history."""

    @abstractmethod
    def follow(self, write: Write, now_ns: int) -> None:
        """Queue the reconciles that a write requires."""
