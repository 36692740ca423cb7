"""Controllers that look at documents of every kind, typed or not: what they have in common, and what they read of metadata."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable

import msgspec

from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.store.item import Item, Write
from bayplan.apiserver.store.store import Store
from bayplan.cluster.controllers.controller import Controller, ControllerTools
from bayplan.cluster.store import ChangeEvent
from bayplan.objects.meta import KubernetesObject, OwnerReference

Ask = Callable[[Controller, str, int], None]
"""Queues a reconcile: the controller, the key, the time."""


class Ties(msgspec.Struct, gc=False, rename="camel", frozen=True):
    """What ties an object to others and to life.

    Attributes:
        deletion_timestamp: when it was, or will be, deleted.
        owner_references, finalizers: as in its metadata.
    """

    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class _Document(msgspec.Struct, gc=False):
    metadata: Ties


_decode = msgspec.json.Decoder(_Document).decode
_NO_TIES = Ties()
_SIGNS = (b'"ownerReferences"', b'"finalizers"', b'"deletionTimestamp"')


def ties_of(item: Item) -> Ties:
    """Return what ties a document to others; quickly for most, which have none."""
    raw = item.raw
    if not any(sign in raw for sign in _SIGNS):
        return _NO_TIES
    try:
        return _decode(raw).metadata
    except msgspec.MsgspecError:
        return _NO_TIES


class DocumentController(Controller):
    """A controller that is told of every write.

    Args:
        tools: see `ControllerTools`.
        documents: the API's store.
        writer: writes to the API.
        ask: queues its reconciles.
    """

    kind = KubernetesObject

    def __init__(self, tools: ControllerTools, documents: Store, writer: ObjectWriter, ask: Ask) -> None:
        super().__init__(tools)
        self.documents = documents
        self.writer = writer
        self._ask = ask

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return nothing: writes tell more than typed events."""
        return ()

    def ask(self, key: str, now_ns: int) -> None:
        """Queue a reconcile of a key."""
        self._ask(self, key, now_ns)

    @abstractmethod
    def begin(self, now_ns: int) -> None:
        """Look at everything there is: at the start, and after a gap."""

    @abstractmethod
    def follow(self, write: Write, now_ns: int) -> None:
        """Look at a write."""
