"""NodeVolumeLimits: rejects nodes that can't attach another volume of a CSI driver, according to their CSINode.

Source: https://kubernetes.io/docs/concepts/storage/storage-limits/, and KEP-4876 (limits that change).
"""
