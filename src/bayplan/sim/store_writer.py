"""Writes of controllers, directly into the store of a virtual cluster.

All deletions (by the user, the host, controllers, or the garbage collector) work alike: finalizers first, then the
object, then its dependents through the garbage collector. Pods therefore always get their grace period, and objects
with finalizers always wait for them. No one reads the events of a simulation's controllers, so they are not recorded.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from bayplan.base.go_text.times import format_time
from bayplan.cluster.kubelet import VirtualKubelet
from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.store import ObjectStore, object_key
from bayplan.controllers.writer import FOREGROUND_FINALIZER, NORMAL, ORPHAN_FINALIZER, Propagation, WriteRejected
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

T = TypeVar("T", bound=KubernetesObject)

# The controllers that remove these finalizers do not run here, so the objects would never be deleted.
_IGNORED_FINALIZERS = frozenset(("kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"))


class StoreWriter:
    """Writes to a store; see `bayplan.controllers.writer.Writer`.

    Args:
        store: the store of the objects.
        kubelet: the kubelet, which terminates deleted pods.
    """

    records_events = False

    def __init__(self, store: ObjectStore, kubelet: VirtualKubelet) -> None:
        self._store = store
        self._kubelet = kubelet

    def create(self, new: T, now_ns: int) -> T:
        """Store a new object; see `ObjectStore.add`."""
        return self._store.add(new, now_ns)

    def update(self, new: T) -> T:
        """Replace an object; see `ObjectStore.update`.

        Raises:
            WriteRejected: the volumes of a pod change.
        """
        if isinstance(new, Pod):
            stored = self._store.pods.get(new.key)
            if stored is not None and stored.spec.volumes != new.spec.volumes:
                name = new.metadata.name
                text = f'Pod "{name}" is invalid: spec: Forbidden: pod updates may not change the volumes'
                raise WriteRejected(f"Pod {new.key}", text)
        return self._store.update(new)

    def delete(
        self,
        item: KubernetesObject,
        now_ns: int,
        *,
        grace_seconds: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Delete an object; see `Writer.delete`."""
        if isinstance(item, Pod):
            self._kubelet.terminate(item, now_ns, grace_seconds=grace_seconds)
            return
        metadata = item.metadata
        finalizers = tuple(name for name in metadata.finalizers if name not in _IGNORED_FINALIZERS)
        if propagation is not Propagation.BACKGROUND and self._store.has_dependents(metadata.uid):
            wanted = FOREGROUND_FINALIZER if propagation is Propagation.FOREGROUND else ORPHAN_FINALIZER
            if wanted not in finalizers:
                finalizers = (*finalizers, wanted)
        if not finalizers:
            self._store.remove(type(item), object_key(metadata))
        elif metadata.deletion_timestamp is None or finalizers != metadata.finalizers:
            marked = replace(
                metadata,
                deletion_timestamp=metadata.deletion_timestamp or format_time(now_ns),
                deletion_grace_period_seconds=0,
                finalizers=finalizers,
            )
            self._store.update(replace(item, metadata=marked))

    def drop_finalizer(self, item: KubernetesObject, finalizer: str) -> None:
        """Remove a finalizer from an object; see `Writer.drop_finalizer`."""
        metadata = item.metadata
        left = tuple(name for name in metadata.finalizers if name != finalizer)
        over = not isinstance(item, Pod) or not item.spec.node_name or is_finished(item)
        if not left and metadata.deletion_timestamp is not None and over:
            self._store.remove(type(item), object_key(metadata))
        elif left != metadata.finalizers:
            self._store.update(replace(item, metadata=replace(metadata, finalizers=left)))

    def record(self, item: KubernetesObject, reason: str, message: str, component: str, *, type_: str = NORMAL) -> None:
        """Ignore the event; see `Writer.record`."""
