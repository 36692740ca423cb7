"""The annotation of objects that are copied from another cluster, which controllers leave unchanged.

Workloads are copied because default spreading finds a pod's owner by name and counts the pods that the owner's selector
selects. A copy has `replicas: 0`, and its pods refer to the owner's UID in the source, so it owns no pod. Because of
this annotation, it adopts no pods either.
"""

from __future__ import annotations

from bayplan.objects.meta import KubernetesObject

SOURCE_UID = "bayplan.io/source-uid"
"""The annotation with the UID of the source cluster's object that an object is a copy of."""


def is_copy(item: KubernetesObject) -> bool:
    """Return whether an object is a copy of an object in a source cluster."""
    return SOURCE_UID in item.metadata.annotations
