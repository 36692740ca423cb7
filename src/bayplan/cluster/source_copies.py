"""The mark of objects that are copies of another cluster's objects, which controllers leave alone.

Workloads are copied because default spreading finds a pod's owner by its name and counts by the owner's selector. A copy has
`replicas: 0`, and its pods refer to the owner's uid in the source, so it owns no pod. With this mark it adopts none either.
"""

from __future__ import annotations

from bayplan.objects.meta import KubernetesObject

SOURCE_UID = "bayplan.io/source-uid"
"""The annotation that says of which object in the source an object here is the copy."""


def is_copy(item: KubernetesObject) -> bool:
    """Return whether an object is the copy of one in a cluster that is followed."""
    return SOURCE_UID in item.metadata.annotations
