"""Ownership by selector: Deployments and ReplicaSets adopt orphans and release pods that no longer match.

In the virtual cluster the owner reference alone decides ownership. On a server, people change labels: a pod that is
taken out of its ReplicaSet for debugging keeps running on its own, and a Deployment that is recreated adopts the
orphans of the old Deployment.

A Deployment or ReplicaSet must not replace an object that it is about to adopt. So it first handles all pending changes of
ownership (`Ownership.flush_pending`), as upstream claims objects at the start of each reconcile.

Source: pkg/controller/controller_ref_manager.go v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import replace

from bayplan.cluster.owned_pods import is_active
from bayplan.cluster.source_copies import is_copy
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.controller import Controller, ControllerTools, ReconcileResult, RejectedWrites
from bayplan.controllers.deployment import DeploymentController
from bayplan.controllers.pod_factory import controller_reference
from bayplan.controllers.replica_set import ReplicaSetController
from bayplan.controllers.writer import Writer
from bayplan.objects.meta import KubernetesObject, LabelSelector
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import NOTHING, Selector, SelectorError, compile_label_selector
from bayplan.objects.workloads import Deployment, ReplicaSet


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
    """Cache of compiled label selectors, by the identity of the `LabelSelector`."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[LabelSelector, Selector]] = {}

    def match(self, selector: LabelSelector | None, item: KubernetesObject) -> bool:
        """Return whether a selector matches an object; False for an absent, empty or invalid selector."""
        if selector is None or not (selector.match_labels or selector.match_expressions):
            return False
        known = self._known.get(id(selector))
        if known is None:
            try:
                compiled = compile_label_selector(selector)
            except SelectorError:
                compiled = NOTHING
            if len(self._known) >= _MAX_SELECTORS:
                self._known.clear()
            known = self._known[id(selector)] = (selector, compiled)
        return known[1].matches(item.metadata.labels)


def _adopt(writer: Writer, owner: KubernetesObject, item: KubernetesObject) -> None:
    owners = (*item.metadata.owner_references, controller_reference(owner))
    writer.update(replace(item, metadata=replace(item.metadata, owner_references=owners)))


def _is_orphan(item: KubernetesObject) -> bool:
    """Return whether an object may be adopted: it has no controller, is not being deleted, no finished pod and no copy."""
    if item.metadata.deletion_timestamp is not None or item.metadata.controller() is not None or is_copy(item):
        return False
    return not isinstance(item, Pod) or is_active(item)


def _may_adopt(owner: KubernetesObject) -> bool:
    return owner.metadata.deletion_timestamp is None and not is_copy(owner)


class Ownership(Controller):
    """Reconciles objects whose labels or owners changed: releases them from their owner, or lets an owner adopt them."""

    owner_kind: ClassVar[type[Deployment | ReplicaSet]]

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._selectors = _Selectors()
        self._met = SeenObjects()
        # The keys of the objects to reconcile, by namespace.
        self._pending: dict[str, dict[str, None]] = {}
        # The keys of the objects without a controller, and of the owners, by namespace.
        self._orphans: dict[str, dict[str, None]] = {}
        self._owners: dict[str, dict[str, None]] = {}
        # Labels that no owner of the namespace selects, and `_changes` of the namespace when that was determined.
        self._unclaimed: dict[tuple[str, int], tuple[dict[str, str], int]] = {}
        self._changes: dict[str, int] = {}

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the key of an object whose labels or owners changed, or of a new object without a controller."""
        if event.kind is not self.kind:
            self._note_owner(event)
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

    def _note_owner(self, event: ChangeEvent) -> None:
        metadata, key = event.object.metadata, event.object.key
        keys = self._owners.setdefault(metadata.namespace, {})
        if event.new is None or event.old is None:
            self._changes[metadata.namespace] = self._changes.get(metadata.namespace, 0) + 1
        if event.new is not None:
            keys[key] = None
        else:
            keys.pop(key, None)
        if not keys:
            del self._owners[metadata.namespace]

    def flush_pending(self, key: str, now_ns: int) -> None:
        """Handle the pending changes of the objects that an owner selects or controls.

        An owner that is seen for the first time adopts all orphans that it selects.

        The controller of the owners calls this at the start of each reconcile.

        Args:
            key: the key of the owner.
            now_ns: the current time.

        Raises:
            InputError: the API rejects a write; all others are made. The owner must not create or delete objects until
                it succeeds.
        """
        owner = self.store.get(self.owner_kind, key)
        if owner is None:
            self._met.forget(key)
            return
        rejected = RejectedWrites()
        for pending in list(self._pending.get(owner.metadata.namespace, ())):
            item = self.store.get(self.kind, pending)
            if item is not None and self._concerns(owner, item):
                with rejected:
                    self.reconcile(pending, now_ns)
        if self._met.is_new(owner) and _may_adopt(owner):
            for orphan in list(self._orphans.get(owner.metadata.namespace, ())):
                item = self.store.get(self.kind, orphan)
                if item is not None and _is_orphan(item) and self._selectors.match(owner.spec.selector, item):
                    with rejected:
                        _adopt(self.writer, owner, item)
        if rejected.problem is not None:
            raise rejected.problem
        if _may_adopt(owner):
            self._met.note(owner)

    def _concerns(self, owner: Deployment | ReplicaSet, item: KubernetesObject) -> bool:
        controller = item.metadata.controller()
        if controller is not None:
            return controller.uid == owner.metadata.uid
        return self._selectors.match(owner.spec.selector, item)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Release an object if its owner no longer selects it; if it has no controller, let an owner adopt it.

        Raises:
            WriteRejected: the API rejects the write. The change stays pending.
        """
        item = self.store.get(self.kind, key)
        if item is not None and _is_orphan(item):
            self._find_owner(item)
        elif item is not None and item.metadata.deletion_timestamp is None:
            self._release(item)
        namespace = key.partition("/")[0]
        pending = self._pending.get(namespace, {})
        pending.pop(key, None)
        if not pending:
            self._pending.pop(namespace, None)
        return None

    def _release(self, item: KubernetesObject) -> None:
        """Release an object from an owner that no longer selects it."""
        controller = item.metadata.controller()
        if controller is None or controller.kind != self.owner_kind.__name__:
            return
        owner = self.store.get(self.owner_kind, f"{item.metadata.namespace}/{controller.name}")
        if owner is None or owner.metadata.uid != controller.uid or self._selectors.match(owner.spec.selector, item):
            return
        left = tuple(each for each in item.metadata.owner_references if each.uid != controller.uid)
        self.writer.update(replace(item, metadata=replace(item.metadata, owner_references=left)))

    def _find_owner(self, item: KubernetesObject) -> None:
        metadata = item.metadata
        for name in list(self._owners.get(metadata.namespace, ())):
            owner = self.store.get(self.owner_kind, name)
            if owner is not None and _may_adopt(owner) and self._selectors.match(owner.spec.selector, item):
                _adopt(self.writer, owner, item)
                return
        if len(self._unclaimed) >= _MAX_SELECTORS:
            self._unclaimed.clear()
        changes = self._changes.get(metadata.namespace, 0)
        self._unclaimed[(metadata.namespace, id(metadata.labels))] = (metadata.labels, changes)


class PodOwnership(Ownership):
    """Reconciles the ownership of pods by ReplicaSets."""

    kind = Pod
    owner_kind = ReplicaSet
    watches = (ReplicaSet,)

    @property
    def watches_pods(self) -> bool:
        """True: the controller receives the events of all pods."""
        return True


class ReplicaSetOwnership(Ownership):
    """Reconciles the ownership of ReplicaSets by Deployments."""

    kind = ReplicaSet
    owner_kind = Deployment
    watches = (ReplicaSet, Deployment)


class AdoptingDeployments(DeploymentController):
    """Reconciles Deployments, after the changes of ownership.

    Args:
        tools: see `ControllerTools`.
        ownership: the controller that lets Deployments adopt ReplicaSets.
    """

    def __init__(self, tools: ControllerTools, ownership: ReplicaSetOwnership) -> None:
        super().__init__(tools)
        self._ownership = ownership

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Adopt, then take one step of a rollout or of scaling; see `DeploymentController.reconcile`."""
        self._ownership.flush_pending(key, now_ns)
        return super().reconcile(key, now_ns)


class AdoptingReplicaSets(ReplicaSetController):
    """Reconciles ReplicaSets, after the changes of ownership.

    Args:
        tools: see `ControllerTools`.
        ownership: the controller that lets ReplicaSets adopt pods.
    """

    def __init__(self, tools: ControllerTools, ownership: PodOwnership) -> None:
        super().__init__(tools)
        self._ownership = ownership

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Adopt, then create or delete pods; see `ReplicaSetController.reconcile`."""
        self._ownership.flush_pending(key, now_ns)
        return super().reconcile(key, now_ns)
