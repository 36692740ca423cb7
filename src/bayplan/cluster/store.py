"""The object store of the virtual cluster: typed objects, their changes, and the indexes that controllers read.

It is like the API server's storage without the API: it assigns UIDs and resource versions, stores the newest version of
every object, and journals each write as a watch event. It makes no decisions; controllers, the kubelet and the host do.

Objects are immutable and stored without copying. A write takes about a microsecond, because a simulation writes
hundreds of thousands of pods. For this reason, pods are indexed only by what every change needs (owner and node). Every
iteration is in insertion order, never over a set.
"""

from __future__ import annotations

from collections.abc import Callable, KeysView, ValuesView
from typing import TypeVar, cast

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import InputError, InvariantError
from bayplan.base.go_text.times import format_time
from bayplan.base.random_streams import RandomStream
from bayplan.cluster.owned_pods import OwnedPods
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

T = TypeVar("T", bound=KubernetesObject)
V = TypeVar("V")
Kind = type[KubernetesObject]

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"

_UID_BLOCK = 256
# The 17th digit of a version 4 UUID has two random bits.
_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_NO_PODS = OwnedPods()


class ChangeEvent(msgspec.Struct, frozen=True, gc=False):
    """One write, as a watch event.

    Attributes:
        type: ``ADDED``, ``MODIFIED`` or ``DELETED``.
        kind: the struct of the object, e.g. ``Pod``.
        old: the object before the write; None if it was added.
        new: the object after the write; None if it was deleted.
        resource_version: the revision of the write; consecutive writes have consecutive numbers.
    """

    type: str
    kind: Kind
    old: KubernetesObject | None
    new: KubernetesObject | None
    resource_version: int

    @property
    def object(self) -> KubernetesObject:
        """The object after the write, or the last version of a deleted object."""
        found = self.new if self.new is not None else self.old
        if found is None:
            raise InvariantError("a change event without an object")
        return found


def changes_owners(old: KubernetesObject | None, new: KubernetesObject | None) -> bool:
    """Return whether the owners of an object differ before and after a change; an object that does not exist has none."""
    before = () if old is None else old.metadata.owner_references
    after = () if new is None else new.metadata.owner_references
    return before is not after and before != after


class ObjectStore:
    """Objects by kind, then by key (``namespace/name``, or ``name`` without a namespace), in insertion order.

    Args:
        uid_stream: the random stream for UIDs.
    """

    def __init__(self, uid_stream: RandomStream) -> None:
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.resource_version = 0
        self._tables: dict[Kind, dict[str, KubernetesObject]] = {
            Pod: cast("dict[str, KubernetesObject]", self.pods),
            Node: cast("dict[str, KubernetesObject]", self.nodes),
        }
        self._journal: list[ChangeEvent] = []
        self._pods_by_node: dict[str, dict[str, None]] = {}
        self._pods_by_owner: dict[str, OwnedPods] = {}
        self._dependents: dict[str, dict[tuple[Kind, str], None]] = {}
        self._uid_stream = uid_stream
        self._uids: list[str] = []

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object by its key, or None."""
        table = self._tables.get(kind)
        return None if table is None else cast("T | None", table.get(key))

    def all(self, kind: type[T]) -> ValuesView[T]:
        """Return the objects of a kind in insertion order. This is a live view: copy it to write while iterating."""
        return cast("ValuesView[T]", self._tables.get(kind, {}).values())

    def keys(self, kind: Kind) -> KeysView[str]:
        """Return the keys of the objects of a kind. This is a live view with fast membership tests."""
        return self._tables.get(kind, {}).keys()

    def kinds(self) -> list[Kind]:
        """Return the kinds that have objects."""
        return [kind for kind, table in self._tables.items() if table]

    def pods_on(self, node_name: str) -> list[Pod]:
        """Return the pods bound to a node, including finished ones, in the order in which they were bound."""
        pods = self.pods
        return [pods[key] for key in self._pods_by_node.get(node_name, ())]

    def owned_pods(self, uid: str) -> OwnedPods:
        """Return the pods that the object with this UID controls. Read-only; call again after writing pods."""
        return self._pods_by_owner.get(uid, _NO_PODS)

    def dependents(self, uid: str, kind: type[T]) -> list[T]:
        """Return the objects of a kind that have an owner reference to this UID, controlling or not."""
        table = self._tables.get(kind, {})
        return [cast("T", table[key]) for dependent, key in self._dependents.get(uid, ()) if dependent is kind]

    def places_of_dependents(self, uid: str) -> list[tuple[Kind, str]]:
        """Return kind and key of every object that has an owner reference to this UID, controlling or not."""
        return list(self._dependents.get(uid, ()))

    def has_dependents(self, uid: str) -> bool:
        """Return whether any object has an owner reference to this UID."""
        return bool(self._dependents.get(uid))

    # --- writing ------------------------------------------------------------------------------------------------------

    def add(self, new: T, now_ns: int) -> T:
        """Store a new object. Return the stored object, with resource version, UID and creation time.

        An existing UID or creation time does not change.

        Raises:
            InputError: an object of this kind and key exists.
        """
        metadata = new.metadata
        key = object_key(metadata)
        kind = type(new)
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = {}
        elif key in table:
            raise InputError(f"{kind.__name__} {key} already exists", hint="another name")
        self.resource_version = revision = self.resource_version + 1
        new = replace(
            new,
            metadata=replace(
                metadata,
                uid=metadata.uid or self.new_uid(),
                resource_version=str(revision),
                creation_timestamp=metadata.creation_timestamp or format_time(now_ns),
            ),
        )
        table[key] = new
        if isinstance(new, Pod) and new.spec.node_name:
            self._pods_by_node.setdefault(new.spec.node_name, {})[key] = None
        if metadata.owner_references:
            self._link(key, new)
        self._journal.append(ChangeEvent(ADDED, kind, None, new, revision))
        return new

    def update(self, new: T) -> T:
        """Replace an object with a newer version. Return the stored object, with its resource version.

        Raises:
            InvariantError: the object does not exist, or has a different UID.
        """
        metadata = new.metadata
        key = object_key(metadata)
        kind = type(new)
        table = self._tables.get(kind, {})
        old = table.get(key)
        if old is None or old.metadata.uid != metadata.uid:
            raise InvariantError(f"update of {kind.__name__} {key} with uid {metadata.uid!r}, which is not stored")
        self.resource_version = revision = self.resource_version + 1
        new = replace(new, metadata=replace(metadata, resource_version=str(revision)))
        table[key] = new
        if isinstance(new, Pod) and isinstance(old, Pod):
            self._move(key, old, new)
        owners, owners_before = metadata.owner_references, old.metadata.owner_references
        if owners is not owners_before and owners != owners_before:
            self._unlink(key, old)
            self._link(key, new)
        elif owners and isinstance(new, Pod):
            for owner in owners:
                if owner.controller:
                    self._pods_by_owner[owner.uid].put(key, new)
        self._journal.append(ChangeEvent(MODIFIED, kind, old, new, revision))
        return new

    def remove(self, kind: type[T], key: str) -> T:
        """Remove an object permanently. Return its last version.

        Raises:
            InvariantError: the object does not exist.
        """
        table = self._tables.get(kind, {})
        old = table.pop(key, None)
        if old is None:
            raise InvariantError(f"removal of {kind.__name__} {key}, which is not stored")
        self.resource_version = revision = self.resource_version + 1
        if isinstance(old, Pod):
            self._leave_node(key, old.spec.node_name)
        if old.metadata.owner_references:
            self._unlink(key, old)
        self._journal.append(ChangeEvent(DELETED, kind, old, None, revision))
        return cast("T", old)

    def new_uid(self) -> str:
        """Return a new UID in the form of a version 4 UUID, drawn from the seeded stream."""
        if not self._uids:
            digits = self._uid_stream.getrandbits(128 * _UID_BLOCK).to_bytes(16 * _UID_BLOCK, "big").hex()
            for start in range(32 * (_UID_BLOCK - 1), -1, -32):
                self._uids.append(_uid_of(digits[start : start + 32]))
        return self._uids.pop()

    # --- the journal --------------------------------------------------------------------------------------------------

    def journal(self) -> list[ChangeEvent]:
        """Return the live list of writes since `take_journal` was last called. For readers that remember a position in it."""
        return self._journal

    def take_journal(self) -> list[ChangeEvent]:
        """Return the writes since the last call, and start an empty journal."""
        taken, self._journal = self._journal, []
        return taken

    # --- indexes ------------------------------------------------------------------------------------------------------

    def _move(self, key: str, old: Pod, new: Pod) -> None:
        if new.spec is old.spec:
            return
        old_node, new_node = old.spec.node_name, new.spec.node_name
        if old_node == new_node:
            return
        if old_node:
            self._leave_node(key, old_node)
        if new_node:
            on_node = self._pods_by_node.get(new_node)
            if on_node is None:
                on_node = self._pods_by_node[new_node] = {}
            on_node[key] = None

    def _leave_node(self, key: str, node_name: str) -> None:
        on_node = self._pods_by_node.get(node_name)
        if on_node is not None:
            on_node.pop(key, None)
            if not on_node:
                del self._pods_by_node[node_name]

    def _link(self, key: str, item: KubernetesObject) -> None:
        entry = (type(item), key)
        for owner in item.metadata.owner_references:
            uid = owner.uid
            entries = self._dependents.get(uid)
            if entries is None:
                entries = self._dependents[uid] = {}
            entries[entry] = None
            if owner.controller and isinstance(item, Pod):
                owned = self._pods_by_owner.get(uid)
                if owned is None:
                    owned = self._pods_by_owner[uid] = OwnedPods()
                owned.put(key, item)

    def _unlink(self, key: str, item: KubernetesObject) -> None:
        entry = (type(item), key)
        for owner in item.metadata.owner_references:
            entries = self._dependents.get(owner.uid)
            if entries is not None:
                entries.pop(entry, None)
                if not entries:
                    del self._dependents[owner.uid]
            if owner.controller and isinstance(item, Pod):
                owned = self._pods_by_owner.get(owner.uid)
                if owned is not None:
                    owned.discard(key)
                    if not owned:
                        del self._pods_by_owner[owner.uid]

    def check_invariants(self) -> None:
        """Compare every index with an index rebuilt from the objects. Called by tests, and by simulations with ``--check``.

        Raises:
            InvariantError: an index differs.
        """
        fresh = ObjectStore(self._uid_stream)
        for kind, table in self._tables.items():
            for key, item in table.items():
                if type(item) is not kind or object_key(item.metadata) != key:
                    raise InvariantError(f"{kind.__name__} {key} is stored under the key of another object")
                if item.metadata.owner_references:
                    fresh._link(key, item)
        for pod_key, pod in self.pods.items():
            if pod.spec.node_name:
                fresh._pods_by_node.setdefault(pod.spec.node_name, {})[pod_key] = None
        _compare("pods by node", self._pods_by_node, fresh._pods_by_node, dict)
        _compare("dependents", self._dependents, fresh._dependents, dict)
        _compare("pods by owner", self._pods_by_owner, fresh._pods_by_owner, _groups)


def _uid_of(digits: str) -> str:
    """Return the version 4 UUID of 32 random hexadecimal digits."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"


def object_key(metadata: ObjectMeta) -> str:
    """Return the key of an object from its metadata."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def _groups(owned: OwnedPods) -> tuple[dict[str, Pod], ...]:
    ready = {key: owned.active[key] for key in owned.ready}
    return owned.active, owned.terminating, owned.finished, ready, owned.uncounted


def _compare(what: str, kept: dict[str, V], made: dict[str, V], view: Callable[[V], object]) -> None:
    if {key: view(value) for key, value in kept.items()} != {key: view(value) for key, value in made.items()}:
        raise InvariantError(f"the index of {what} does not agree with the objects")
