"""Ownership by selector: Deployments and ReplicaSets adopt what nobody controls, and let go of pods that no longer match.

In the virtual cluster ownership is the owner reference alone. People change labels: a pod that is taken out of its ReplicaSet to be
looked at lives on by itself, and a Deployment that is made anew over orphans of an older one takes them over.

Source: pkg/controller/controller_ref_manager.go v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.apiserver.bridge.document_controller import Ask
from bayplan.cluster.controllers.controller import Controller, ControllerTools
from bayplan.cluster.controllers.deployment import DeploymentController
from bayplan.cluster.controllers.replica_set import ReplicaSetController
from bayplan.cluster.owned_pods import is_active
from bayplan.cluster.pod_maker import controller_reference
from bayplan.cluster.store import ChangeEvent, ObjectStore
from bayplan.objects.meta import KubernetesObject, LabelSelector
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import NOTHING, Selector, SelectorError, compile_label_selector
from bayplan.objects.workloads import Deployment, ReplicaSet

_MOST_SELECTORS = 10_000


class _Selectors:
    """Compiled selectors, by the identity of what they were compiled from."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[LabelSelector, Selector]] = {}

    def match(self, selector: LabelSelector | None, item: KubernetesObject) -> bool:
        """Say whether a selector takes an object; one that is absent, empty or wrong takes none."""
        if selector is None or not (selector.match_labels or selector.match_expressions):
            return False
        known = self._known.get(id(selector))
        if known is None:
            try:
                compiled = compile_label_selector(selector)
            except SelectorError:
                compiled = NOTHING
            if len(self._known) >= _MOST_SELECTORS:
                self._known.clear()
            known = self._known[id(selector)] = (selector, compiled)
        return known[1].matches(item.metadata.labels)


def _adopt(store: ObjectStore, owner: KubernetesObject, item: KubernetesObject) -> None:
    owners = (*item.metadata.owner_references, controller_reference(owner))
    store.update(replace(item, metadata=replace(item.metadata, owner_references=owners)))


def _is_orphan(item: KubernetesObject, namespace: str) -> bool:
    metadata = item.metadata
    return metadata.namespace == namespace and metadata.deletion_timestamp is None and metadata.controller() is None


class AdoptingDeployments(DeploymentController):
    """Reconcile Deployments; a new one first adopts the ReplicaSets that it selects."""

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._selectors = _Selectors()
        self._met: dict[str, None] = {}

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Adopt, then take one step of a rollout or of scaling; see `DeploymentController.reconcile`."""
        item = self.store.get(Deployment, key)
        if item is not None and item.metadata.uid not in self._met and item.metadata.deletion_timestamp is None:
            for each in list(self.store.all(ReplicaSet)):
                if _is_orphan(each, item.metadata.namespace) and self._selectors.match(item.spec.selector, each):
                    _adopt(self.store, item, each)
            self._met[item.metadata.uid] = None
        return super().reconcile(key, now_ns)


class AdoptingReplicaSets(ReplicaSetController):
    """Reconcile ReplicaSets; a new one first adopts the pods that it selects."""

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._selectors = _Selectors()
        self._met: dict[str, None] = {}

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Adopt, then create or delete pods; see `ReplicaSetController.reconcile`."""
        item = self.store.get(ReplicaSet, key)
        if item is not None and item.metadata.uid not in self._met and item.metadata.deletion_timestamp is None:
            for each in list(self.store.pods.values()):
                if (
                    _is_orphan(each, item.metadata.namespace)
                    and is_active(each)
                    and self._selectors.match(item.spec.selector, each)
                ):
                    _adopt(self.store, item, each)
            self._met[item.metadata.uid] = None
        return super().reconcile(key, now_ns)


class PodOwnership(Controller):
    """Reconcile pods whose labels are new, by key: with the ReplicaSet that controls them, or one that selects them.

    Args:
        tools: see `ControllerTools`.
        replica_sets: the controller that is asked again when one of its pods is let go.
        ask: queues a reconcile.
    """

    kind = Pod
    watches = (ReplicaSet,)

    def __init__(self, tools: ControllerTools, replica_sets: Controller, ask: Ask) -> None:
        super().__init__(tools)
        self._selectors = _Selectors()
        self._replica_sets = replica_sets
        self._ask = ask
        self._by_namespace: dict[str, dict[str, None]] = {}

    @property
    def watches_pods(self) -> bool:
        """Whether there are ReplicaSets."""
        return bool(self._by_namespace)

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return a pod whose labels or owners have changed, or that came without an owner."""
        item, old = event.new, event.old
        if not isinstance(item, Pod):
            if not isinstance(event.object, Pod):
                self._note(event)
            return ()
        before, now = (old.metadata if old is not None else None), item.metadata
        if before is not None and before.labels is now.labels and before.owner_references is now.owner_references:
            return ()
        if before is None and now.owner_references:
            return ()
        return (item.key,) if now.namespace in self._by_namespace else ()

    def _note(self, event: ChangeEvent) -> None:
        item = event.object
        keys = self._by_namespace.setdefault(item.metadata.namespace, {})
        if event.new is not None:
            keys[item.key] = None
        else:
            keys.pop(item.key, None)
        if not keys:
            del self._by_namespace[item.metadata.namespace]

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Let go of a pod that does not match, or find it an owner.

        Raises:
            WriteRefused: the API refuses it.
        """
        pod = self.store.pods.get(key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return None
        controller = pod.metadata.controller()
        namespace = pod.metadata.namespace
        if controller is not None:
            owner = (
                self.store.get(ReplicaSet, f"{namespace}/{controller.name}")
                if controller.kind == "ReplicaSet"
                else None
            )
            if owner is None or owner.metadata.uid != controller.uid or self._selectors.match(owner.spec.selector, pod):
                return None
            left = tuple(each for each in pod.metadata.owner_references if each.uid != controller.uid)
            self.store.update(replace(pod, metadata=replace(pod.metadata, owner_references=left)))
            self._ask(self._replica_sets, owner.key, now_ns)
            return None
        for name in list(self._by_namespace.get(namespace, ())) if is_active(pod) else ():
            owner = self.store.get(ReplicaSet, name)
            if (
                owner is not None
                and owner.metadata.deletion_timestamp is None
                and self._selectors.match(owner.spec.selector, pod)
            ):
                _adopt(self.store, owner, pod)
                return None
        return None
