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
from typing import ClassVar, TypeAlias

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

Owner: TypeAlias = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job


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


class _Selectors:
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


def _changes_selector(event: ChangeEvent) -> bool:
    old, new = event.old, event.new
    if not isinstance(old, ReplicationController) or not isinstance(new, ReplicationController):
        return False
    return old.spec.selector != new.spec.selector


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
        self._selectors = _Selectors()
        self._met: dict[Kind, SeenObjects] = {kind: SeenObjects() for kind in self.owner_kinds}
        # The keys of the objects to reconcile, by namespace.
        self._pending: dict[str, dict[str, None]] = {}
        # The keys of the objects without a controller, and kind and key of the owners, by namespace.
        self._orphans: dict[str, dict[str, None]] = {}
        self._owners: dict[str, dict[tuple[type[Owner], str], None]] = {}
        # Labels that no owner of the namespace selects, and `_changes` of the namespace when that was determined.
        self._unclaimed: dict[tuple[str, int], tuple[dict[str, str], int]] = {}
        self._changes: dict[str, int] = {}

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the key of an object whose labels or owners changed, or of a new object without a controller."""
        if event.kind is not self.kind:
            self._note_owner(self._kinds[event.kind.__name__], event)
            return ()
        item, old = event.new, event.old
        if item is None:
            self._orphans.get(event.object.metadata.namespace, {}).pop(event.object.key, None)
            return ()
        before, now = (old.metadata if old is not None else None), item.metadata
        if before is not None and before.labels == now.labels and before.owner_references == now.owner_references:
            return ()
        if now.controller() is None:
            self._orphans.setdefault(now.namespace, {})[item.key] = None
            known = self._unclaimed.get((now.namespace, id(now.labels)))
            if known is not None and known[0] is now.labels and known[1] == self._changes.get(now.namespace, 0):
                return ()
            if now.namespace not in self._owners:
                return ()
        else:
            self._orphans.get(now.namespace, {}).pop(item.key, None)
            if before is None:
                return ()
        self._pending.setdefault(now.namespace, {})[item.key] = None
        return (item.key,)

    def _note_owner(self, kind: type[Owner], event: ChangeEvent) -> None:
        metadata, key = event.object.metadata, event.object.key
        keys = self._owners.setdefault(metadata.namespace, {})
        if _changes_selector(event):
            # No other kind may change its selector. It then adopts and releases as if it were new.
            self._met[kind].forget(key)
            owned = (pod.key for pod in self.store.owned_pods(metadata.uid))
            self._pending.setdefault(metadata.namespace, {}).update(dict.fromkeys(owned))
            self._changes[metadata.namespace] = self._changes.get(metadata.namespace, 0) + 1
        if event.new is None or event.old is None:
            self._changes[metadata.namespace] = self._changes.get(metadata.namespace, 0) + 1
        if event.new is not None:
            keys[kind, key] = None
        else:
            keys.pop((kind, key), None)
        if not keys:
            del self._owners[metadata.namespace]

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
            for orphan in list(self._orphans.get(owner.metadata.namespace, ())):
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
        metadata = item.metadata
        is_selected = False
        for kind, name in list(self._owners.get(metadata.namespace, ())):
            owner = self.store.get(kind, name)
            if owner is None or not self._selectors.match(owner, item):
                continue
            is_selected = True
            if _may_claim(owner) and self._adopts(owner, item):
                self._adopt(owner, item)
                return True
        if not is_selected:
            if len(self._unclaimed) >= _MAX_SELECTORS:
                self._unclaimed.clear()
            changes = self._changes.get(metadata.namespace, 0)
            self._unclaimed[(metadata.namespace, id(metadata.labels))] = (metadata.labels, changes)
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
