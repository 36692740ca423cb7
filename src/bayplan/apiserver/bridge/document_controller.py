"""Base of controllers that process documents of every kind, typed or not, and the metadata that they read."""

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
from bayplan.controllers.controller import Ask, Controller, ControllerTools
from bayplan.controllers.garbage_collector import OwnerRefs
from bayplan.objects.meta import KubernetesObject


class _Document(msgspec.Struct, gc=False):
    metadata: OwnerRefs


_decode = msgspec.json.Decoder(_Document).decode
_SIGNS = (b'"ownerReferences"', b'"finalizers"', b'"deletionTimestamp"')


def refs_of(item: Item) -> OwnerRefs:
    """Return the owner references and finalizers of a document; fast for most documents, which have only a uid."""
    raw = item.raw
    if any(sign in raw for sign in _SIGNS):
        with suppress(msgspec.MsgspecError):
            return _decode(raw).metadata
    return OwnerRefs(item.uid)


class DocumentFollower(Protocol):
    """A controller that receives every write, of documents of all kinds."""

    def begin(self, now_ns: int) -> None:
        """Process all existing objects: at the start, and after a gap."""
        ...

    def follow(self, write: Write, now_ns: int) -> None:
        """Process a write."""
        ...


class DocumentController(Controller):
    """A controller that receives every write.

    Args:
        tools: see `ControllerTools`.
        documents: the API's store.
        writer: the writer to the API.
        ask: the function that queues reconciles of this controller.
    """

    kind = KubernetesObject

    def __init__(self, tools: ControllerTools, documents: Store, writer: ObjectWriter, ask: Ask) -> None:
        super().__init__(tools)
        self.documents = documents
        self.object_writer = writer
        self._ask = ask

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return nothing: `follow` receives all writes, of which typed events are a part."""
        return ()

    def ask(self, key: str, now_ns: int) -> None:
        """Queue a reconcile of a key."""
        self._ask(self, key, now_ns)

    @abstractmethod
    def begin(self, now_ns: int) -> None:
        """Process all existing objects: at the start, and after a gap."""

    @abstractmethod
    def follow(self, write: Write, now_ns: int) -> None:
        """Process a write."""
