"""Decides whether a change in the cluster may alter a decision. If not, it is no reason to try waiting pods again."""

from __future__ import annotations

from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod


def affects_decisions(old: KubernetesObject | None, new: KubernetesObject | None) -> bool:
    """Return whether a change may affect a decision about this or any other pod.

    Conditions in the status of a waiting pod, which the scheduler writes itself, do not.
    """
    return not isinstance(old, Pod) or not isinstance(new, Pod) or _pod_affects_decisions(old, new)


def _pod_affects_decisions(old: Pod, new: Pod) -> bool:
    return (
        bool(new.spec.node_name)
        or old.spec is not new.spec
        or old.metadata.labels is not new.metadata.labels
        or old.metadata.annotations is not new.metadata.annotations
        or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or old.status.nominated_node_name != new.status.nominated_node_name
        or old.status.phase != new.status.phase
    )
