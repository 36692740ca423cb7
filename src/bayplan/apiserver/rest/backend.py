"""What all verbs share: the store, the resources, strategies, the clock, uids and names; documents to items and back."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import cast

import msgspec

from bayplan.apiserver.kinds import custom_resources
from bayplan.apiserver.kinds.conversion import from_storage, is_converted, to_storage
from bayplan.apiserver.kinds.registry import strategy_of
from bayplan.apiserver.kinds.selectable_fields import selectable_values
from bayplan.apiserver.kinds.strategy import Context, Strategy, part
from bayplan.apiserver.rest.resources import Resource, ResourceRegistry
from bayplan.apiserver.store.item import Item, Write
from bayplan.apiserver.store.store import Store
from bayplan.base.plain_data import Document
from bayplan.cluster.naming import ALPHABET
from bayplan.cluster.timestamps import format_time

_FIRST = ("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")
_LONGEST_PREFIX = 58
_SERVICE_NETWORK = "10.96"
_encode = msgspec.json.encode
_decode = msgspec.json.decode


class Backend:
    """The state behind the verbs.

    Args:
        store: of documents.
        clock: returns seconds since 1970.
        entropy: returns random bytes, for uids and names.

    Attributes:
        runs_pods: whether the nodes' kubelet is ours, so that nobody else can answer for a container.
        advertised: address and port of the server, for the endpoints of the Service `default/kubernetes`; None without a server.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.store = store
        self.registry = ResourceRegistry()
        self.runs_pods = False
        self.clock = clock
        self.advertised: tuple[str, int] | None = None
        self._entropy = entropy
        self._second = -1
        self._now = ""
        self._random = random.Random(entropy(16))
        self._uids: list[str] = []
        self._decoded: dict[str, tuple[int, list[Document]]] = {}

    # --- what strategies may ask --------------------------------------------------------------------------------------

    def find(self, table: str, namespace: str, name: str) -> Document | None:
        """Return a decoded document, or None."""
        item = self.store.get(table, (namespace, name))
        return None if item is None else decode_item(item)

    def all(self, table: str) -> list[Document]:
        """Return the decoded documents of a table; nobody changes them."""
        version = self.store.table(table).version
        kept = self._decoded.get(table)
        if kept is None or kept[0] != version:
            kept = self._decoded[table] = (version, [decode_item(item) for item in self.store.between(table)])
        return kept[1]

    def now(self) -> str:
        """Return the time as a timestamp of whole seconds."""
        second = int(self.clock())
        if second != self._second:
            self._second = second
            self._now = format_time(second * 1_000_000_000)
        return self._now

    def later(self, seconds: int) -> str:
        """Return a time from now as a timestamp."""
        return format_time((int(self.clock()) + seconds) * 1_000_000_000)

    def new_uid(self) -> str:
        """Return a fresh uid in the form of a version 4 UUID."""
        if not self._uids:
            digits = self._entropy(16 * 256).hex()
            self._uids = [
                f"{d[:8]}-{d[8:12]}-4{d[13:16]}-{'89ab'[int(d[16], 16) & 3]}{d[17:20]}-{d[20:]}"
                for d in (digits[at : at + 32] for at in range(0, len(digits), 32))
            ]
        return self._uids.pop()

    def generate_name(self, prefix: str) -> str:
        """Return a name that begins with a prefix."""
        return prefix[:_LONGEST_PREFIX] + "".join(self._random.choice(ALPHABET) for _ in range(5))

    def allocate_address(self) -> str:
        """Return a cluster address that no service has."""
        taken = {item.fields.get("spec.clusterIP") for item in self.store.table("services").items()}
        while True:
            address = f"{_SERVICE_NETWORK}.{self._random.randrange(256)}.{self._random.randrange(1, 255)}"
            if address not in taken:
                return address

    # --- documents and items ------------------------------------------------------------------------------------------

    def strategy(self, resource: Resource) -> Strategy:
        """Return the strategy of a resource."""
        return strategy_of(resource.table, custom=resource.custom is not None)

    def context(self, resource: Resource, namespace: str, subresource: str = "") -> Context:
        """Return the context of a write."""
        return Context(resource, self, namespace, subresource)

    def document(self, resource: Resource, item: Item) -> Document:
        """Return the document of an item in the version of a resource, without kind and apiVersion."""
        return from_storage(resource, decode_item(item))

    def item(self, resource: Resource, document: Document) -> Item:
        """Return the item that a document becomes with the next revision; the document gets that revision.

        Args:
            resource: the version in which the document is.
            document: complete; kind and apiVersion are not stored.
        """
        revision = self.store.revision + 1
        metadata = part(document, "metadata")
        metadata["resourceVersion"] = str(revision)
        metadata = ordered_metadata(metadata)
        document["metadata"] = metadata
        stored = to_storage(resource, document)
        body: Document = {"metadata": metadata}
        body.update((name, value) for name, value in stored.items() if name not in ("kind", "apiVersion", "metadata"))
        return Item(
            raw=_encode(body),
            revision=revision,
            namespace=cast("str", metadata.get("namespace") or ""),
            name=cast("str", metadata["name"]),
            uid=cast("str", metadata.get("uid") or ""),
            labels=cast("dict[str, str]", metadata.get("labels") or {}),
            fields=selectable_values(resource.table, stored),
        )

    def put(self, resource: Resource, document: Document) -> Item:
        """Store a document and return its item."""
        item = self.item(resource, document)
        self.store.put(resource.table, item)
        self._react(resource, item, None)
        return item

    def remove(self, resource: Resource, document: Document) -> Item:
        """Remove an object; the document is its last state."""
        item = self.item(resource, document)
        write = self.store.remove(resource.table, item)
        self._react(resource, None, write)
        return item

    def _react(self, resource: Resource, stored: Item | None, removed: Write | None) -> None:
        """Do what follows from a write within the API itself."""
        if resource.table == "apiextensions.k8s.io/customresourcedefinitions":
            if stored is not None:
                custom_resources.serve(self.registry, decode_item(stored))
            elif removed is not None and removed.old is not None:
                custom_resources.stop_serving(self.registry, decode_item(removed.old))

    def encode(self, resource: Resource, item: Item) -> bytes:
        """Return an item as JSON with kind and apiVersion, in the version of a resource."""
        if is_converted(resource):
            return resource.prefix + _encode(self.document(resource, item))[1:]
        return resource.prefix + item.raw[1:]

    def encode_bare(self, resource: Resource, item: Item) -> bytes:
        """Return an item as it stands in lists: without kind and apiVersion, but for custom resources."""
        if resource.custom is not None:
            return resource.prefix + item.raw[1:]
        return _encode(self.document(resource, item)) if is_converted(resource) else item.raw


def ordered_metadata(metadata: Document) -> Document:
    """Return metadata in the order in which it is stored: what tells objects apart comes first."""
    return {name: metadata[name] for name in _FIRST if name in metadata} | metadata


def decode_item(item: Item) -> Document:
    """Return the document of an item, as it is stored."""
    return cast("Document", _decode(item.raw))
