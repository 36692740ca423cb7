"""The annotation of objects that are copies of another cluster's objects, which controllers leave unchanged.

Workloads are copied because default spreading finds a pod's owner by its name and counts by the owner's selector. A copy has
`replicas: 0`, and its pods refer to the owner's uid in the source, so it owns no pod. With this mark it adopts none either.
"""

from __future__ import annotations

from bayplan.objects.meta import KubernetesObject

SOURCE_UID = "bayplan.io/source-uid"
"""The annotation with the object in the source that an object here is a copy of."""


def is_copy(item: KubernetesObject) -> bool:
    """Return whether an object is a copy of an object in a source cluster."""
    return SOURCE_UID in item.metadata.annotations
