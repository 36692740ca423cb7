"""State that all verbs share (store, resources, clock, random names), and conversion of objects to items and back."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeAlias, cast

import msgspec

from bayplan.apiserver.admission.chain import Admission
from bayplan.apiserver.admission.conversions import WebhookConverter, attach_converters
from bayplan.apiserver.admission.outgoing import Outgoing, Session
from bayplan.apiserver.codec import raw_values
from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.compare import fields_of
from bayplan.apiserver.fields.field_declarations import configuration_problem
from bayplan.apiserver.fields.field_type import FieldType
from bayplan.apiserver.fields.pruning import ConversionError
from bayplan.apiserver.kinds import custom_resources
from bayplan.apiserver.kinds.accepted_names import AcceptedNames
from bayplan.apiserver.kinds.conversion import is_converted, served_form, stored_form
from bayplan.apiserver.kinds.custom_pruning import PruningConverter, as_read, stored_earlier
from bayplan.apiserver.kinds.registry import strategy_of
from bayplan.apiserver.kinds.selectable_fields import selectable_values
from bayplan.apiserver.kinds.service_allocation import FIRST_NODE_PORT, LAST_NODE_PORT, SERVICE_NETWORK
from bayplan.apiserver.kinds.strategy import Context, Strategy
from bayplan.apiserver.model.errors import ApiError, internal
from bayplan.apiserver.model.requests import APPROVAL
from bayplan.apiserver.model.resources import Resource, ResourceRegistry
from bayplan.apiserver.model.users import User
from bayplan.apiserver.rest.signing_key import SigningKey
from bayplan.apiserver.store.item import Item, Write
from bayplan.apiserver.store.store import Store
from bayplan.apiserver.validation.tables import rules_of
from bayplan.base.go_text.times import format_time
from bayplan.base.plain_data import Document, part, parts, same_json
from bayplan.cluster.naming import ALPHABET

_FIRST = ("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")
_MAX_PREFIX_LENGTH = 58
_FIXED_ADDRESSES = 257
"""Number of addresses at the start of the service range that are only allocated on explicit request. `_FIXED_PORTS` is
the same for node ports.
"""
_FIXED_PORTS = 86
_SESSION_UIDS = 8
"""Number of uids reserved for a request, so that each attempt assigns the same uids."""
_encode = msgspec.json.encode
_decode = msgspec.json.decode

MANAGER = "kube-apiserver"
"""The field manager of kube-apiserver's own writes."""

CUSTOM_RESOURCES = "custom resources"
"""Key of the reactions to writes of custom resources, which have a table per definition."""

Reaction: TypeAlias = "Callable[[Backend, Resource, Write], None]"
Reactions: TypeAlias = Mapping[str, Sequence[Reaction]]


class Backend:
    """The state that all verbs share.

    Args:
        store: the store of encoded objects.
        clock: returns seconds since 1970.
        entropy: returns the given number of random bytes, for uids, names and the token key.

    Attributes:
        runs_pods: whether the virtual kubelet runs the pods, so that there is no real kubelet to ask about a container.
        runs: the built-in components that run: ``scheduler`` and ``controller-manager``.
        token_key: the key that signs service account tokens.
        outgoing: the webhook calls that are allowed, and their results; by default no calls are allowed.
        admission: admission policies and webhooks.
        admits_service_accounts: whether the admission plugin ServiceAccount is enabled.
        reactions: called after each write (see `bayplan.apiserver.rest.reactions`); `bootstrap` sets them.
        accepted_names: the accepted names of the stored CustomResourceDefinitions.
        advertised: the server's address and port, for the endpoints of the Service `default/kubernetes`; None without a
            server.
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
        self.runs: set[str] = set()
        self.admits_service_accounts = False
        self.reactions: Reactions = {}
        self.clock = clock
        self.advertised: tuple[str, int] | None = None
        self._entropy = entropy
        self.token_key = SigningKey()
        self._second = -1
        self._now = ""
        self._random = random.Random(entropy(16))
        self._uids: list[str] = []
        self._decoded: dict[str, tuple[int, list[Document]]] = {}
        # The spec of each CustomResourceDefinition, and the revision since which it is in effect.
        self._definitions: dict[str, tuple[Document, int, list[tuple[int, str]]]] = {}
        self.accepted_names = AcceptedNames()
        self.outgoing = Outgoing()
        self.admission = Admission(self)

    # --- for strategies -----------------------------------------------------------------------------------------------

    def find(self, table: str, namespace: str, name: str) -> Document | None:
        """Return a decoded object in the stored version, or None if it does not exist."""
        item = self.store.get(table, (namespace, name))
        return None if item is None else decode_item(item)

    def all(self, table: str) -> list[Document]:
        """Return the decoded objects of a table in the stored version.

        The list is cached and shared, so callers must not change it.
        """
        version = self.store.table(table).version
        kept = self._decoded.get(table)
        if kept is None or kept[0] != version:
            kept = self._decoded[table] = (version, [decode_item(item) for item in self.store.between(table)])
        return kept[1]

    def labelled(self, table: str, namespace: str, key: str, value: str) -> list[Document]:
        """Return the decoded objects of a namespace with this label value, in the stored version.

        Other objects are not decoded.
        """
        return [decode_item(item) for item in self.store.between(table, namespace) if item.labels.get(key) == value]

    def now(self) -> str:
        """Return the current time as an RFC 3339 timestamp in whole seconds."""
        second = int(self.clock())
        if second != self._second:
            self._second = second
            self._now = format_time(second * 1_000_000_000)
        return self._now

    def time_after(self, seconds: int) -> str:
        """Return the current time plus `seconds` as an RFC 3339 timestamp."""
        # As in Go, a duration of more than 292 years overflows.
        nanoseconds = (seconds * 1_000_000_000 + (1 << 63)) % (1 << 64) - (1 << 63)
        return format_time(int(self.clock()) * 1_000_000_000 + nanoseconds)

    def new_uid(self) -> str:
        """Return a new random uid in the form of a version 4 UUID."""
        if not self._uids:
            digits = self._entropy(16 * 256).hex()
            self._uids = [
                f"{d[:8]}-{d[8:12]}-4{d[13:16]}-{'89ab'[int(d[16], 16) & 3]}{d[17:20]}-{d[20:]}"
                for d in (digits[at : at + 32] for at in range(0, len(digits), 32))
            ]
        return self._uids.pop()

    def generate_name(self, prefix: str) -> str:
        """Return the prefix, cut to 58 characters, followed by five random characters, like `generateName`."""
        return prefix[:_MAX_PREFIX_LENGTH] + "".join(self._random.choice(ALPHABET) for _ in range(5))

    def begin_session(self) -> Session:
        """Return a session for a request that may call webhooks.

        The session fixes random numbers, time and uids for all attempts.
        """
        return Session(self._random.getrandbits(64), self.clock(), [self.new_uid() for _ in range(_SESSION_UIDS)])

    @contextmanager
    def drawing(self, stream: random.Random, second: float, uids: Sequence[str]) -> Iterator[None]:
        """Within the context, take random choices, time and uids from these arguments.

        Every attempt of a request thus generates the same values.
        """
        kept = (self._random, self.clock, self._uids)
        self._random, self.clock, self._uids = stream, lambda: second, list(reversed(uids))
        try:
            yield
        finally:
            self._random, self.clock, self._uids = kept

    def addresses_in_use(self) -> set[str]:
        """Return the names of all IPAddresses: the cluster IPs of Services, and addresses that clients reserve."""
        return {item.name for item in self.store.table("networking.k8s.io/ipaddresses").items()}

    def allocate_address(self) -> str:
        """Return a random unused cluster address outside the range that is reserved for explicit requests."""
        taken = self.addresses_in_use()
        while True:
            address = str(SERVICE_NETWORK[self._random.randrange(_FIXED_ADDRESSES, SERVICE_NETWORK.num_addresses - 1)])
            if address not in taken:
                return address

    def node_ports_in_use(self) -> set[int]:
        """Return the node ports and health check node ports of all services."""
        specs = [part(each, "spec") for each in self.all("services")]
        ports = {port.get("nodePort") for spec in specs for port in parts(spec, "ports")}
        ports |= {spec.get("healthCheckNodePort") for spec in specs}
        return {port for port in ports if isinstance(port, int)}

    def allocate_node_port(self, taken: Iterable[int]) -> int:
        """Return a random node port that no service uses and that is not in `taken`.

        Raises:
            ApiError: all ports of the range are in use.
        """
        used = self.node_ports_in_use().union(taken)
        free = [port for port in range(FIRST_NODE_PORT + _FIXED_PORTS, LAST_NODE_PORT + 1) if port not in used]
        if not free:
            raise internal("failed to allocate a nodePort: range is full")
        return self._random.choice(free)

    # --- documents and items ------------------------------------------------------------------------------------------

    def strategy(self, resource: Resource) -> Strategy:
        """Return the strategy of a resource: the rules of its kind for create, update and delete."""
        return strategy_of(resource.table, custom=resource.custom is not None)

    def context(
        self,
        resource: Resource,
        namespace: str,
        subresource: str = "",
        *,
        dry_run: bool = False,
        imported: bool = False,
        user: User | None = None,
    ) -> Context:
        """Return the context that strategies receive for a write."""
        table = f"{resource.table}/{APPROVAL}" if subresource == APPROVAL else resource.table
        return Context(resource, self, rules_of(table), namespace, subresource, dry_run, imported, user)

    def document(self, resource: Resource, item: Item) -> Document:
        """Return the object of an item in the API version of a resource, without kind and apiVersion."""
        return served_form(resource, stored_document(resource, item))

    def item(self, resource: Resource, document: Document) -> Item:
        """Return the item to store for an object. Its revision is the next revision of the store, which is also set in `document`.

        Args:
            resource: the resource in the API version of the document.
            document: the complete object; kind and apiVersion are not stored.
        """
        revision = self.store.revision + 1
        metadata = part(document, "metadata")
        metadata["resourceVersion"] = str(revision)
        metadata = ordered_metadata(metadata)
        document["metadata"] = metadata
        stored = stored_form(resource, document)
        # A conversion may move annotations to fields.
        metadata = ordered_metadata(part(stored, "metadata")) if stored is not document else metadata
        body: Document = {"metadata": metadata}
        body.update((name, value) for name, value in stored.items() if name not in ("kind", "apiVersion", "metadata"))
        places = raw_values.OF_TABLE.get(resource.table)
        if places:
            body = raw_values.stored(places, body)
        namespace, name = cast("str", metadata.get("namespace") or ""), cast("str", metadata["name"])
        labels: Mapping[str, str] = cast("dict[str, str]", metadata.get("labels") or {})
        fields: Mapping[str, str] = selectable_values(resource.table, stored)
        uid = cast("str", metadata.get("uid") or "")
        old = self.store.get(resource.table, (namespace, name))
        if old is not None:
            # The history holds both versions: share the unchanged values to save memory.
            namespace, name, uid = old.namespace, old.name, old.uid if old.uid == uid else uid
            labels, fields = (
                old.labels if old.labels == labels else labels,
                old.fields if old.fields == fields else fields,
            )
        return Item(_encode(body), revision, namespace, name, uid, labels, fields)

    def put(self, resource: Resource, document: Document) -> Item:
        """Store an object, and return its item."""
        item = self.item(resource, document)
        self._react(resource, self.store.put(resource.table, item))
        return item

    def remove(self, resource: Resource, document: Document) -> Item:
        """Remove an object, and return the item of its last state, `document`."""
        item = self.item(resource, document)
        self._react(resource, self.store.remove(resource.table, item))
        return item

    def serve_custom(self, definition: Document) -> None:
        """Serve the versions that a CustomResourceDefinition declares."""
        custom_resources.serve(self.registry, definition)
        attach_converters(self, definition)
        spec = part(definition, "spec")
        name = str(part(definition, "metadata").get("name"))
        before = self._definitions.get(name)
        revision = int(str(part(definition, "metadata").get("resourceVersion") or 0))
        if before is not None and before[0] == spec:
            revision = min(revision, before[1])
        stored, version = [] if before is None else before[2], custom_resources.stored_version(spec)
        if not stored or stored[-1][1] != version:
            stored = [*stored, (revision, version)]
        self._definitions[name] = (spec, revision, stored)
        custom_resources.set_stored_schema(self.registry, spec, revision, stored)

    def stop_custom(self, definition: Document) -> None:
        """Stop serving the custom resources of a deleted CustomResourceDefinition."""
        custom_resources.stop_serving(self.registry, definition)
        self._definitions.pop(str(part(definition, "metadata").get("name")), None)

    def in_version(
        self, resource: Resource, source: str, target: str, document: Document
    ) -> tuple[FieldType, Document] | None:
        """Return a document converted from one version of a resource to another, and its type in the second one.

        None if a built-in resource has no such version, or a webhook would have to convert the document.

        Raises:
            ConversionError: a custom resource has no such version, or the version does not declare a field of the document.
        """
        before, after = (self.in_group(resource, each) for each in (source, target))
        if before is None or after is None:
            if resource.custom is not None:
                raise ConversionError(f"request to convert CR to an invalid group/version: {target}")
            return None
        if any(isinstance(each.converter, WebhookConverter) for each in (before, after)):
            return None
        if resource.custom is not None:
            # Upstream does not drop fields that this version lacks before it compares.
            problem = configuration_problem("", after.fields, document)
            if problem:
                raise ConversionError(problem)
            return after.fields, document
        return after.fields, served_form(after, stored_form(before, document))

    def resets_in(self, resource: Resource, subresource: str, api_version: str) -> bool:
        """Return whether an endpoint of a custom resource ignores the same fields in another version.

        Only the status endpoint does, in versions that have it.
        """
        other = self.in_group(resource, api_version)
        return subresource == "status" and other is not None and other.has_status

    def in_group(self, resource: Resource, api_version: str) -> Resource | None:
        """Return a resource in another version of its group, which may be unserved, or None if there is none."""
        if api_version == resource.api_version:
            return resource
        group, _, version = api_version.rpartition("/")
        if group != resource.group:
            return None
        return self.registry.find(group, version, resource.name) or self.registry.unserved.get(
            (group, version, resource.name)
        )

    def convert_ahead(self, resource: Resource, document: Document) -> None:
        """Convert an object to all served versions before it is stored, so that watches need not wait for a webhook.

        Raises:
            CallsNeededError: a webhook must be called first.
            ApiError: the webhook fails to convert the object to the stored version.
        """
        if resource.custom is None:
            return
        others = [each for each in self.registry.all() if each.table == resource.table and each.converter is not None]
        stored = stored_form(resource, document) if others else document
        for other in others:
            # An error affects only clients of that version, so the write succeeds.
            with suppress(ApiError):
                served_form(other, stored)

    def _react(self, resource: Resource, write: Write) -> None:
        table = resource.table if resource.custom is None else CUSTOM_RESOURCES
        for react in self.reactions.get(table, ()):
            react(self, resource, write)

    def with_status(self, resource: Resource, document: Document, status: Document) -> Document:
        """Return an object with a status that kube-apiserver itself sets, and the field managers after this update."""
        return self.updated(resource, document, {**document, "status": status}, "status")

    def updated(self, resource: Resource, before: Document, after: Document, subresource: str = "") -> Document:
        """Return an object that kube-apiserver itself changes, with the field managers after this update."""
        metadata = dict(part(after, "metadata"))
        new: Document = {**after, "metadata": metadata}
        owner = managed.WriteContext(
            MANAGER,
            resource.api_version,
            resource.fields,
            self.now(),
            subresource,
            self.strategy(resource).reset_fields(resource, subresource),
            partial(self.in_version, resource),
        )
        entries = managed.decode(metadata.get("managedFields"))
        managers = managed.after_update(owner, before, new, entries)
        if managers:
            metadata["managedFields"] = managed.encode(managers)
        return new

    def apply_conditions(
        self, resource: Resource, document: Document, conditions: list[Document], manager: str
    ) -> None:
        """Apply conditions to the status of an object, as kube-apiserver's controllers do, and store it."""
        status = part(document, "status")
        types = {each["type"] for each in conditions}
        others = [each for each in parts(status, "conditions") if each.get("type") not in types]
        metadata = dict(part(document, "metadata"))
        sent = [{name: value for name, value in each.items() if value != ""} for each in conditions]
        owned = fields_of(resource.fields, {"status": {"conditions": sent}})
        who = managed.Manager(manager, managed.APPLY, resource.api_version, "status")
        managers = managed.decode(metadata.get("managedFields"))
        managers[who] = managed.Owned(owned, resource.api_version, self.now())
        metadata["managedFields"] = managed.encode(managers)
        self.put(
            resource, {**document, "metadata": metadata, "status": {**status, "conditions": [*others, *conditions]}}
        )

    def encode(self, resource: Resource, item: Item) -> bytes:
        """Return an item as JSON in the API version of a resource, with kind and apiVersion."""
        if is_converted(resource) or item.revision < resource.schema_revision:
            return resource.prefix + _encode(self.document(resource, item))[1:]
        return resource.prefix + item.raw[1:]

    def encode_bare(self, resource: Resource, item: Item) -> bytes:
        """Return an item as JSON for a list: without kind and apiVersion, which only items of custom resources have."""
        if resource.custom is not None:
            return self.encode(resource, item)
        return _encode(self.document(resource, item)) if is_converted(resource) else item.raw

    def is_outdated(self, resource: Resource, document: Document) -> bool:
        """Return whether a write that changes nothing for readers stores the object in a different form."""
        is_pruned = isinstance(resource.converter, PruningConverter)
        if not resource.schema_revision:
            return False
        metadata = part(document, "metadata")
        item = self.store.get(resource.table, (str(metadata.get("namespace") or ""), str(metadata.get("name"))))
        if item is None or (item.revision >= resource.schema_revision and not is_pruned):
            return False
        if any(item.revision < until for until, _ in resource.earlier_schemas):
            return True
        form = stored_form(resource, document) if is_pruned else stored_document(resource, item)
        return not same_json(decode_item(item), form)


def ordered_metadata(metadata: Document) -> Document:
    """Return metadata in its stored field order: identifying fields first."""
    return {name: metadata[name] for name in _FIRST if name in metadata} | metadata


def decode_item(item: Item) -> Document:
    """Return the object of an item in the stored version, without kind and apiVersion."""
    return cast("Document", _decode(item.raw))


def stored_document(resource: Resource, item: Item) -> Document:
    """Return the object of an item in the stored version, with the defaults that its schema has gained since then."""
    document = decode_item(item)
    places = raw_values.OF_TABLE.get(resource.table)
    if places:
        return raw_values.sent(places, document, item.raw)
    if item.revision < resource.schema_revision and resource.stored_schema is not None:
        earlier = stored_earlier(resource, item.revision, document)
        return as_read(resource.stored_schema, document) if earlier is None else earlier
    return document
