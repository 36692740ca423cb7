"""The queueing hints of NodeVolumeLimits. Source: KEP-4247."""

from __future__ import annotations

from bayplan.framework.events import HintAnswer, hint
from bayplan.objects.pod import Pod
from bayplan.objects.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from bayplan.plugins.csi_migration import (
    DRIVERS,
    MIGRATED,
    TranslationError,
    in_tree_plugin,
    is_migratable,
    translate_inline_volume,
)
from bayplan.plugins.pod_claims import is_claim_of


class LimitHints:
    """The queueing hints; they read only the objects of the event."""

    @hint(CSINode, old=True, new=True)
    def is_schedulable_after_csi_node_updated(self, pod: Pod, old: CSINode, new: CSINode) -> bool:
        """Queue the pod if the limit of a driver increased; a missing limit counts as 0."""
        before = _limits(old)
        return any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())

    @hint(Pod, old=True)
    def is_schedulable_after_pod_deleted(self, pod: Pod, left: Pod, new: Pod | None) -> bool:
        """Queue the pod if the deleted pod had a node or a nomination, and volumes that may count towards limits."""
        if not left.spec.node_name and not left.status.nominated_node_name:
            return False
        return any(
            volume.persistent_volume_claim is not None or volume.ephemeral is not None or is_migratable(volume)
            for volume in left.spec.volumes
        )

    @hint(PersistentVolumeClaim, new=True)
    def is_schedulable_after_pvc_added(
        self, pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
    ) -> bool:
        """Queue the pod if it uses the added claim."""
        return is_claim_of(pod, new)

    @hint(VolumeAttachment, old=True)
    def is_schedulable_after_volume_attachment_deleted(
        self, pod: Pod, old: VolumeAttachment, new: VolumeAttachment | None
    ) -> bool | HintAnswer:
        """Queue the pod if it has a claim, or an inline volume of the same driver as the detached volume."""
        attacher = old.spec.attacher
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                return True
            plugin = in_tree_plugin(volume)
            if plugin in MIGRATED:
                try:
                    translate_inline_volume(volume)
                except TranslationError:
                    return HintAnswer.ERROR
            if plugin and DRIVERS[plugin] == attacher:
                return True
        return False


def _limits(csi_node: CSINode) -> dict[str, int]:
    return {
        item.name: item.allocatable.count or 0 if item.allocatable is not None else 0 for item in csi_node.spec.drivers
    }
