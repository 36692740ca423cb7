"""How controllers delete: with the verb that clients use, which knows grace periods, finalizers and propagation."""

from __future__ import annotations

from bayplan.apiserver.bridge.controlled_store import ControlledStore
from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.bridge.typed_store import TABLE_OF_KIND
from bayplan.cluster.deletion import Deletion, Propagation
from bayplan.cluster.kubelet import VirtualKubelet
from bayplan.objects.meta import KubernetesObject


class ApiDeletion(Deletion):
    """Delete objects through the API.

    Args:
        store: typed objects.
        kubelet: takes pods away that the API lets terminate; it sees that by itself.
        writer: writes to the API.
    """

    def __init__(self, store: ControlledStore, kubelet: VirtualKubelet, writer: ObjectWriter) -> None:
        super().__init__(store, kubelet)
        self._writer = writer
        self._narrator = store.narrator

    def delete(
        self,
        item: KubernetesObject,
        now_ns: int,
        *,
        grace_seconds: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> None:
        """Delete an object as a client would; see `Deletion.delete`.

        Raises:
            WriteRefused: the API refuses it.
        """
        metadata = item.metadata
        self._writer.delete(
            TABLE_OF_KIND[type(item)],
            (metadata.namespace, metadata.name),
            grace_seconds=grace_seconds,
            propagation=propagation.value,
            uid=metadata.uid,
        )
        self._narrator.deleted(item)

    def drop_finalizer(self, item: KubernetesObject, finalizer: str) -> None:
        """Take a finalizer off an object; the API lets go of one that only waited for that.

        Raises:
            WriteRefused: the API refuses it.
        """
        metadata = item.metadata
        if finalizer in metadata.finalizers:
            self._writer.drop_finalizer(TABLE_OF_KIND[type(item)], (metadata.namespace, metadata.name), finalizer)
