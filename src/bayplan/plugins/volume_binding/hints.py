"""The queueing hints of VolumeBinding. Source: KEP-4247."""

from __future__ import annotations

from bayplan.framework.events import HintAnswer, objects_of
from bayplan.objects.pod import Pod
from bayplan.objects.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from bayplan.plugins.pod_claims import is_claim_of
from bayplan.plugins.volume_binding.solve import MIGRATED_PLUGINS, volume_limit


class BindingHints:
    """The hints; they look at nothing but the objects of the event."""

    def is_schedulable_after_storage_class_change(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer:
        """Queue the pod if a class is new or its allowed topologies changed."""
        objects = objects_of(StorageClass, old, new)
        if objects is None or objects[1] is None:
            return HintAnswer.ERROR
        before = objects[0]
        return HintAnswer(before is None or before.allowed_topologies != objects[1].allowed_topologies)

    def is_schedulable_after_persistent_volume_claim_change(
        self, pod: Pod, old: object | None, new: object | None
    ) -> HintAnswer:
        """Queue the pod if the claim is one of its own."""
        objects = objects_of(PersistentVolumeClaim, old, new)
        if objects is None or objects[1] is None:
            return HintAnswer.ERROR
        return HintAnswer(is_claim_of(pod, objects[1]))

    def is_schedulable_after_csi_node_change(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer:
        """Queue the pod if a CSINode is new or declares other migrated plugins."""
        objects = objects_of(CSINode, old, new)
        if old is None:
            return HintAnswer.QUEUE
        if objects is None or objects[0] is None or objects[1] is None:
            return HintAnswer.ERROR
        before, after = (item.metadata.annotations.get(MIGRATED_PLUGINS, "") for item in (objects[0], objects[1]))
        return HintAnswer(before != after)

    def is_schedulable_after_csi_driver_change(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer:
        """Queue the pod if the driver of one of its inline volumes stopped tracking capacity."""
        objects = objects_of(CSIDriver, old, new)
        if objects is None or objects[0] is None or objects[1] is None:
            return HintAnswer.ERROR
        before, after = objects[0], objects[1]
        stopped = bool(before.spec.storage_capacity) and not after.spec.storage_capacity
        name = after.metadata.name
        return HintAnswer(
            stopped and any(volume.csi is not None and volume.csi.driver == name for volume in pod.spec.volumes)
        )

    def is_schedulable_after_csi_storage_capacity_change(
        self, pod: Pod, old: object | None, new: object | None
    ) -> HintAnswer:
        """Queue the pod if a capacity is new or has room for larger volumes than before."""
        objects = objects_of(CSIStorageCapacity, old, new)
        if objects is None or objects[1] is None:
            return HintAnswer.ERROR
        before = objects[0]
        if before is None:
            return HintAnswer.QUEUE
        was, is_now = volume_limit(before), volume_limit(objects[1])
        return HintAnswer(is_now is not None and (was is None or is_now > was))
