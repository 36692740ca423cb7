"""VolumeBinding: rejects nodes that can't access a pod's volumes, or for which no volume can be found or provisioned.

Source: https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode, KEP-490 (topology-aware
scheduling), KEP-1472 (storage capacity), KEP-4049 (storage capacity scoring).
"""
