"""Ownership by selector: Deployments and ReplicaSets adopt orphans and release pods that no longer match.

In the virtual cluster the owner reference alone decides ownership. On a server, people change labels: a pod that is
taken out of its ReplicaSet for debugging keeps running on its own, and a Deployment that is recreated adopts the
orphans of the old Deployment.

Source: pkg/controller/controller_ref_manager.go v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.cluster.owned_pods import is_active
from bayplan.cluster.source_copies import is_copy
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.controller import Controller, ControllerTools, Outcome
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


def _is_orphan(item: KubernetesObject, namespace: str) -> bool:
    metadata = item.metadata
    return metadata.namespace == namespace and metadata.deletion_timestamp is None and metadata.controller() is None


class AdoptingDeployments(DeploymentController):
    """Reconciles Deployments; a new Deployment first adopts the ReplicaSets that it selects."""

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._selectors = _Selectors()
        self._met = SeenObjects()

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Adopt, then take one step of a rollout or of scaling; see `DeploymentController.reconcile`."""
        item = self.store.get(Deployment, key)
        if item is None:
            self._met.forget(key)
        elif self._met.is_new(item) and item.metadata.deletion_timestamp is None:
            for each in list(self.store.all(ReplicaSet)):
                if _is_orphan(each, item.metadata.namespace) and self._selectors.match(item.spec.selector, each):
                    _adopt(self.writer, item, each)
            self._met.note(item)
        return super().reconcile(key, now_ns)


class PodOwnership(Controller):
    """Reconciles pods whose labels or owners changed: releases them from their ReplicaSet, or lets a ReplicaSet adopt them.

    Args:
        tools: see `ControllerTools`.

    Attributes:
        orphans: the keys of the pods without a controller, by namespace.
    """

    kind = Pod
    watches = (ReplicaSet,)

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._selectors = _Selectors()
        self.orphans: dict[str, dict[str, None]] = {}
        self._by_namespace: dict[str, dict[str, None]] = {}
        # Labels that no ReplicaSet of the namespace selects, and `_changes` of the namespace when that was determined.
        self._unclaimed: dict[tuple[str, int], tuple[dict[str, str], int]] = {}
        self._changes: dict[str, int] = {}

    @property
    def watches_pods(self) -> bool:
        """True: the controller receives the events of all pods."""
        return True

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the key of a pod whose labels or owners changed, or of a new pod without a controller."""
        item, old = event.new, event.old
        if not isinstance(event.object, Pod):
            self._note_replica_set(event)
            return ()
        if item is None:
            self.orphans.get(event.object.metadata.namespace, {}).pop(event.object.key, None)
            return ()
        before, now = (old.metadata if old is not None else None), item.metadata
        if before is not None and before.labels is now.labels and before.owner_references is now.owner_references:
            return ()
        if now.controller() is None:
            self.orphans.setdefault(now.namespace, {})[item.key] = None
            known = self._unclaimed.get((now.namespace, id(now.labels)))
            is_known = known is not None and known[0] is now.labels and known[1] == self._changes.get(now.namespace, 0)
            return () if is_known or now.namespace not in self._by_namespace else (item.key,)
        self.orphans.get(now.namespace, {}).pop(item.key, None)
        return (item.key,) if before is not None else ()

    def _note_replica_set(self, event: ChangeEvent) -> None:
        metadata, key = event.object.metadata, event.object.key
        keys = self._by_namespace.setdefault(metadata.namespace, {})
        if event.new is None or event.old is None:
            self._changes[metadata.namespace] = self._changes.get(metadata.namespace, 0) + 1
        if event.new is not None:
            keys[key] = None
        else:
            keys.pop(key, None)
        if not keys:
            del self._by_namespace[metadata.namespace]

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Release the pod if its ReplicaSet no longer selects it; if it has no controller, let a ReplicaSet adopt it.

        Raises:
            WriteRejected: the API refuses the write.
        """
        pod = self.store.pods.get(key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return None
        if pod.metadata.controller() is not None:
            self._release(pod)
        elif is_active(pod):
            self._find_owner(pod)
        return None

    def _release(self, pod: Pod) -> None:
        """Release a pod from a ReplicaSet that no longer selects it."""
        controller = pod.metadata.controller()
        if controller is None or controller.kind != ReplicaSet.__name__:
            return
        owner = self.store.get(ReplicaSet, f"{pod.metadata.namespace}/{controller.name}")
        if owner is None or owner.metadata.uid != controller.uid or self._selectors.match(owner.spec.selector, pod):
            return
        left = tuple(each for each in pod.metadata.owner_references if each.uid != controller.uid)
        self.writer.update(replace(pod, metadata=replace(pod.metadata, owner_references=left)))

    def _find_owner(self, pod: Pod) -> None:
        metadata = pod.metadata
        for name in list(self._by_namespace.get(metadata.namespace, ())):
            owner = self.store.get(ReplicaSet, name)
            if owner is None or owner.metadata.deletion_timestamp is not None or is_copy(owner):
                continue
            if self._selectors.match(owner.spec.selector, pod):
                _adopt(self.writer, owner, pod)
                return
        if len(self._unclaimed) >= _MAX_SELECTORS:
            self._unclaimed.clear()
        changes = self._changes.get(metadata.namespace, 0)
        self._unclaimed[(metadata.namespace, id(metadata.labels))] = (metadata.labels, changes)


class AdoptingReplicaSets(ReplicaSetController):
    """Reconciles ReplicaSets; a new ReplicaSet first adopts the pods that it selects.

    Args:
        tools: see `ControllerTools`.
        ownership: the controller that tracks pods without a controller.
    """

    def __init__(self, tools: ControllerTools, ownership: PodOwnership) -> None:
        super().__init__(tools)
        self._selectors = _Selectors()
        self._ownership = ownership
        self._met = SeenObjects()

    def reconcile(self, key: str, now_ns: int) -> Outcome:
        """Adopt, then create or delete pods; see `ReplicaSetController.reconcile`."""
        item = self.store.get(ReplicaSet, key)
        if item is None:
            self._met.forget(key)
        elif self._met.is_new(item) and item.metadata.deletion_timestamp is None:
            if not is_copy(item):
                self._adopt_pods(item)
            self._met.note(item)
        return super().reconcile(key, now_ns)

    def _adopt_pods(self, item: ReplicaSet) -> None:
        namespace = item.metadata.namespace
        for key in list(self._ownership.orphans.get(namespace, ())):
            pod = self.store.pods.get(key)
            if pod is None or not _is_orphan(pod, namespace) or not is_active(pod):
                continue
            if self._selectors.match(item.spec.selector, pod):
                _adopt(self.writer, item, pod)
