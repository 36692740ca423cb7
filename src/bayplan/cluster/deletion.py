"""How objects go: finalizers first, then the object, then, by way of the garbage collector, what it owned.

One way for everybody (user, host, controllers, garbage collector), so that a pod always gets its grace period and an
object with finalizers always waits for them.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec.structs import replace

from bayplan.base.go_text.times import format_time
from bayplan.cluster.kubelet import VirtualKubelet
from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.store import ObjectStore, object_key
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"

# Their controllers hold an object back while a pod uses it. Nobody runs them here, so waiting would never end.
_IGNORED_FINALIZERS = frozenset(("kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"))


class Propagation(StrEnum):
    """What becomes of the objects that a deleted object owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Deletion:
    """Delete objects from a store.

    Args:
        store: where they are.
        kubelet: takes care of pods.
    """

    def __init__(self, store: ObjectStore, kubelet: VirtualKubelet) -> None:
        self._store = store
        self._kubelet = kubelet

    def delete(
        self,
        item: KubernetesObject,
        now_ns: int,
        *,
        grace_seconds: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Delete an object: at once, or marked as being deleted until finalizers and grace period are over.

        Args:
            item: as it is stored.
            now_ns: when.
            grace_seconds: for pods; None takes the pod's own.
            propagation: for owners. Background deletes dependents after the owner, Foreground before it, Orphan not at
                all.
        """
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
        """Take a finalizer off an object; an object that only waited for that goes in the same write.

        Args:
            item: as it is stored.
            finalizer: the name.
        """
        metadata = item.metadata
        left = tuple(name for name in metadata.finalizers if name != finalizer)
        over = not isinstance(item, Pod) or not item.spec.node_name or is_finished(item)
        if not left and metadata.deletion_timestamp is not None and over:
            self._store.remove(type(item), object_key(metadata))
        elif left != metadata.finalizers:
            self._store.update(replace(item, metadata=replace(metadata, finalizers=left)))
