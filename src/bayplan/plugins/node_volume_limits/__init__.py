"""NodeVolumeLimits: a node takes no more volumes of a CSI driver than its CSINode says.

Source: https://kubernetes.io/docs/concepts/storage/storage-limits/, and KEP-4876 (limits that change).
"""

from bayplan.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
