"""Ownership by selector: workloads adopt orphans that match, and release objects that no longer match.

In a simulation the owner reference alone decides ownership, except that a StatefulSet adopts orphans with the names of
its pods. On a server, people change labels: a pod that is taken out of its ReplicaSet for debugging keeps running on its
own, and a Deployment that is recreated adopts the orphans of the old Deployment.

A workload must not replace an object that it is about to adopt. So all pending changes of its ownership are handled before
each of its reconciles (`Ownership.claim`), as upstream claims objects at the start of each reconcile.

Source: pkg/controller/controller_ref_manager.go v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Generic, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from bayplan.cluster.owned_pods import JOB_TRACKING_FINALIZER, is_active
from bayplan.cluster.source_copies import is_copy
from bayplan.cluster.store import ChangeEvent, Kind
from bayplan.controllers.controller import Controller, ControllerTools, RejectedWrites
from bayplan.controllers.job_status import finish_condition, is_managed
from bayplan.controllers.pod_factory import controller_reference
from bayplan.controllers.stateful_pods import ordinal_of
from bayplan.objects.meta import KubernetesObject, LabelSelector
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import NOTHING, Selector, SelectorError, compile_label_selector
from bayplan.objects.workloads import DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet

K = TypeVar("K")
Owner: TypeAlias = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job
OwnerKey: TypeAlias = tuple[type[Owner], str]
Label: TypeAlias = tuple[str, str, str]
"""Namespace, key and value of a label; an empty key and value stand for any label."""
Labels: TypeAlias = tuple[Label, ...]


class SeenObjects:
    """The uids of the objects that a controller has seen, by key."""

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._uids)

    def is_new(self, item: KubernetesObject) -> bool:
        """Return whether an object was not seen before.

        An object that was recreated under the same name has a new uid, so it is new.
        """
        return self._uids.get(item.key) != item.metadata.uid

    def note(self, item: KubernetesObject) -> None:
        """Record that an object was seen and initialized."""
        self._uids[item.key] = item.metadata.uid

    def forget(self, key: str) -> None:
        """Forget a deleted object."""
        self._uids.pop(key, None)


_MAX_SELECTORS = 10_000


class Selectors:
    """Cache of compiled selectors, by the identity of the `LabelSelector` or of the map of a ReplicationController."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Selector]] = {}

    def match(self, owner: Owner, item: KubernetesObject) -> bool:
        """Return whether an owner selects an object; False for an absent, empty or invalid selector."""
        selector = owner.spec.selector
        if not selector:
            return False
        known = self._known.get(id(selector))
        if known is None:
            if len(self._known) >= _MAX_SELECTORS:
                self._known.clear()
            known = self._known[id(selector)] = (selector, _compiled(selector))
        return known[1].matches(item.metadata.labels)


def _compiled(selector: LabelSelector | dict[str, str]) -> Selector:
    if isinstance(selector, dict):
        selector = LabelSelector(match_labels=selector)
    if not (selector.match_labels or selector.match_expressions):
        return NOTHING
    try:
        return compile_label_selector(selector)
    except SelectorError:
        return NOTHING


def _labels_of(item: KubernetesObject) -> Labels:
    """Return the labels under which an index contains an object: its own labels, and an empty label for all objects."""
    namespace = item.metadata.namespace
    return (*((namespace, key, value) for key, value in sorted(item.metadata.labels.items())), (namespace, "", ""))


def _selected_labels(owner: Owner) -> Labels:
    """Return the labels that an owner selects, any label if its selector has only expressions, or none if it is empty."""
    namespace, selector = owner.metadata.namespace, owner.spec.selector
    if not selector:
        return ()
    labels = selector if isinstance(selector, dict) else selector.match_labels
    if labels:
        return tuple((namespace, key, value) for key, value in labels.items())
    return ((namespace, "", ""),) if isinstance(selector, LabelSelector) and selector.match_expressions else ()


class _LabelIndex(Generic[K]):
    """Keys by label, so that an owner or orphan costs no time when others of other labels change."""

    def __init__(self) -> None:
        self._keys: dict[Label, dict[K, None]] = {}

    def __contains__(self, label: Label) -> bool:
        return label in self._keys

    def add(self, label: Label, key: K) -> None:
        """Add a key with a label."""
        self._keys.setdefault(label, {})[key] = None

    def remove(self, label: Label, key: K) -> None:
        """Remove a key with a label."""
        keys = self._keys.get(label, {})
        keys.pop(key, None)
        if not keys:
            self._keys.pop(label, None)

    def find(self, label: Label) -> list[K]:
        """Return the keys with a label."""
        return list(self._keys.get(label, ()))

    def rarest(self, labels: Labels) -> Label:
        """Return the label that the fewest keys have."""
        return min(labels, key=lambda label: len(self._keys.get(label, ())))


class _Orphans:
    """The objects without a controller, in groups with equal labels. The index contains each group once for each label."""

    def __init__(self) -> None:
        self._groups: dict[Labels, dict[str, None]] = {}
        self._index = _LabelIndex[Labels]()

    def add(self, item: KubernetesObject) -> None:
        """Add an object."""
        labels = _labels_of(item)
        group = self._groups.get(labels)
        if group is None:
            group = self._groups[labels] = {}
            for label in labels:
                self._index.add(label, labels)
        group[item.key] = None

    def remove(self, item: KubernetesObject) -> None:
        """Remove an object, which has the same labels as when it was added."""
        labels = _labels_of(item)
        group = self._groups.get(labels)
        if group is not None:
            group.pop(item.key, None)
            if not group:
                del self._groups[labels]
                for label in labels:
                    self._index.remove(label, labels)

    def find(self, owner: Owner) -> list[str]:
        """Return the keys of the objects that an owner may select, and few others."""
        wanted = _selected_labels(owner)
        groups = self._index.find(self._index.rarest(wanted)) if wanted else []
        return [key for labels in groups for key in self._groups[labels]]


class _Owners:
    """The owners, each by the rarest label that it selects."""

    def __init__(self) -> None:
        self._labels: dict[OwnerKey, Label] = {}
        self._index = _LabelIndex[OwnerKey]()

    def put(self, key: OwnerKey, owner: Owner) -> None:
        """Add an owner, or note its changed selector."""
        self.remove(key)
        wanted = _selected_labels(owner)
        if wanted:
            label = self._labels[key] = self._index.rarest(wanted)
            self._index.add(label, key)

    def remove(self, key: OwnerKey) -> None:
        """Remove an owner."""
        label = self._labels.pop(key, None)
        if label is not None:
            self._index.remove(label, key)

    def may_select(self, item: KubernetesObject) -> bool:
        """Return whether `find` returns any owner."""
        return any(label in self._index for label in _labels_of(item))

    def find(self, item: KubernetesObject) -> list[OwnerKey]:
        """Return the owners that may select an object, and few others."""
        return [key for label in _labels_of(item) for key in self._index.find(label)]


def is_orphan(item: KubernetesObject) -> bool:
    """Return whether an object may be adopted: it has no controller, is not being deleted, and is no copy."""
    return item.metadata.deletion_timestamp is None and item.metadata.controller() is None and not is_copy(item)


def _may_claim(owner: Owner) -> bool:
    """Return whether an owner adopts and releases objects.

    Owners that are being deleted, copies, finished Jobs and Jobs of other controllers don't.
    """
    if isinstance(owner, Job) and (finish_condition(owner) is not None or not is_managed(owner)):
        return False
    return owner.metadata.deletion_timestamp is None and not is_copy(owner)


def _ignores(owner: Owner, item: KubernetesObject) -> bool:
    """Return whether an owner neither adopts nor releases an object: ReplicaSets and ReplicationControllers ignore ended pods."""
    return isinstance(owner, ReplicaSet | ReplicationController) and isinstance(item, Pod) and not is_active(item)


def _is_member(owner: Owner, item: KubernetesObject) -> bool:
    """Return whether the name of an object fits its owner: pods of a StatefulSet are named ``<set>-<ordinal>``."""
    if not isinstance(owner, StatefulSet):
        return True
    name = item.metadata.name
    return name.rpartition("-")[0] == owner.metadata.name and ordinal_of(name) >= 0


class Ownership(Controller):
    """Reconciles objects whose labels or owners changed: releases them from their owner, or lets an owner adopt them.

    Attributes:
        owner_kinds: the kinds that own the objects.
    """

    owner_kinds: ClassVar[tuple[type[Owner], ...]]

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._kinds: dict[str, type[Owner]] = {kind.__name__: kind for kind in self.owner_kinds}
        self._selectors = Selectors()
        self._met: dict[Kind, SeenObjects] = {kind: SeenObjects() for kind in self.owner_kinds}
        # The keys of the objects to reconcile, by namespace.
        self._pending: dict[str, dict[str, None]] = {}
        self._orphans = _Orphans()
        self._owners = _Owners()

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the key of an object whose labels or owners changed, or of a new object without a controller."""
        if event.kind is not self.kind:
            self._note_owner(self._kinds[event.kind.__name__], event)
            return ()
        item, old = event.new, event.old
        if old is not None and item is not None:
            before, now = old.metadata, item.metadata
            if before.labels == now.labels and before.owner_references == now.owner_references:
                return ()
        if old is not None and old.metadata.controller() is None:
            self._orphans.remove(old)
        if item is None:
            return ()
        if item.metadata.controller() is None:
            self._orphans.add(item)
            if not self._owners.may_select(item):
                return ()
        elif old is None:
            return ()
        self._pending.setdefault(item.metadata.namespace, {})[item.key] = None
        return (item.key,)

    def _note_owner(self, kind: type[Owner], event: ChangeEvent) -> None:
        key, old, new = event.object.key, cast("Owner | None", event.old), cast("Owner | None", event.new)
        if new is None:
            self._owners.remove((kind, key))
        elif old is None:
            self._owners.put((kind, key), new)
        elif old.spec.selector != new.spec.selector:
            # Only a ReplicationController may change its selector. It then adopts and releases as if it were new.
            self._owners.put((kind, key), new)
            self._met[kind].forget(key)
            owned = (pod.key for pod in self.store.owned_pods(new.metadata.uid))
            self._pending.setdefault(new.metadata.namespace, {}).update(dict.fromkeys(owned))

    def claim(self, kind: Kind, key: str, now_ns: int) -> bool:
        """Handle the pending changes of the objects that an owner selects or controls; return whether any was written.

        An owner that is seen for the first time adopts all orphans that it selects. The manager calls this before each
        reconcile of an owner.

        Args:
            kind: the kind of the owner.
            key: the key of the owner.
            now_ns: the current time.

        Raises:
            InputError: the API rejects a write; all others are made. The owner must not create or delete objects until
                it succeeds.
        """
        owner = self.store.get(self._kinds[kind.__name__], key)
        if owner is None:
            self._met[kind].forget(key)
            return False
        rejected = RejectedWrites()
        written = False
        for pending in list(self._pending.get(owner.metadata.namespace, ())):
            item = self.store.get(self.kind, pending)
            if item is not None and self._concerns(owner, item):
                with rejected:
                    written = self._flush(pending) or written
        if self._met[kind].is_new(owner) and _may_claim(owner):
            for orphan in self._orphans.find(owner):
                item = self.store.get(self.kind, orphan)
                if item is not None and is_orphan(item) and self._adopts(owner, item):
                    with rejected:
                        written = True
                        self._adopt(owner, item)
        if rejected.problem is not None:
            raise rejected.problem
        if _may_claim(owner):
            self._met[kind].note(owner)
        return written

    def _concerns(self, owner: Owner, item: KubernetesObject) -> bool:
        controller = item.metadata.controller()
        if controller is not None:
            return controller.uid == owner.metadata.uid
        return self._selectors.match(owner, item)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Release an object if its owner no longer selects it; if it has no controller, let an owner adopt it.

        Raises:
            WriteRejected: the API rejects the write. The change stays pending.
        """
        self._flush(key)
        return None

    def _flush(self, key: str) -> bool:
        """Adopt or release a pending object; return whether it was written."""
        item = self.store.get(self.kind, key)
        written = item is not None and (self._find_owner(item) if is_orphan(item) else self._release(item))
        namespace = key.partition("/")[0]
        pending = self._pending.get(namespace, {})
        pending.pop(key, None)
        if not pending:
            self._pending.pop(namespace, None)
        return written

    def _release(self, item: KubernetesObject) -> bool:
        """Release an object from an owner that no longer selects it; return whether it was released."""
        controller = item.metadata.controller()
        kind = self._kinds.get(controller.kind) if controller is not None else None
        if controller is None or kind is None:
            return False
        owner = self.store.get(kind, f"{item.metadata.namespace}/{controller.name}")
        if owner is None or owner.metadata.uid != controller.uid or not _may_claim(owner):
            return False
        if _ignores(owner, item) or (self._selectors.match(owner, item) and _is_member(owner, item)):
            return False
        left = tuple(each for each in item.metadata.owner_references if each.uid != controller.uid)
        self.writer.update(replace(item, metadata=replace(item.metadata, owner_references=left)))
        return True

    def _adopts(self, owner: Owner, item: KubernetesObject) -> bool:
        return self._selectors.match(owner, item) and not _ignores(owner, item) and _is_member(owner, item)

    def _adopt(self, owner: Owner, item: KubernetesObject) -> None:
        metadata = item.metadata
        owners = (*metadata.owner_references, controller_reference(owner))
        finalizers = metadata.finalizers
        if isinstance(owner, Job) and JOB_TRACKING_FINALIZER not in finalizers:
            finalizers = (*finalizers, JOB_TRACKING_FINALIZER)
        self.writer.update(replace(item, metadata=replace(metadata, owner_references=owners, finalizers=finalizers)))

    def _find_owner(self, item: KubernetesObject) -> bool:
        """Let an owner that selects an object adopt it; return whether there is one."""
        for kind, key in self._owners.find(item):
            owner = self.store.get(kind, key)
            if owner is not None and _may_claim(owner) and self._adopts(owner, item):
                self._adopt(owner, item)
                return True
        return False


class PodOwnership(Ownership):
    """Reconciles the ownership of pods by workloads."""

    kind = Pod
    owner_kinds = (ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job)
    watches = owner_kinds

    @property
    def watches_pods(self) -> bool:
        """True: the controller receives the events of all pods."""
        return True


class ReplicaSetOwnership(Ownership):
    """Reconciles the ownership of ReplicaSets by Deployments."""

    kind = ReplicaSet
    owner_kinds = (Deployment,)
    watches = (ReplicaSet, Deployment)
