"""Why the API server rejects bindings and the writes before them, in its words."""

from __future__ import annotations

from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.store import ObjectStore
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

_RESOURCES = {
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "ResourceClaim": "resourceclaims.resource.k8s.io",
}


def binding_problem(store: ObjectStore, pod_key: str) -> str:
    """Return why a pod cannot be bound; `""` if it can."""
    name = pod_key.partition("/")[2]
    pod = store.pods.get(pod_key)
    if pod is None:
        return f'pods "{name}" not found'
    return _conflict(pod, name)


def _conflict(pod: Pod, name: str) -> str:
    reason = ""
    if pod.metadata.deletion_timestamp is not None:
        reason = f"pod {name} is being deleted, cannot be assigned to a host"
    elif pod.spec.node_name:
        reason = f'pod {name} is already assigned to node "{pod.spec.node_name}"'
    elif is_finished(pod):
        # The API server would accept this, but there pods without a node do not finish.
        reason = f"pod {name} has finished"
    return f'Operation cannot be fulfilled on pods/binding "{name}": {reason}' if reason else ""


def update_problem(store: ObjectStore, item: KubernetesObject) -> str:
    """Return why an object cannot be updated; `""` if it exists."""
    if store.get(type(item), item.key) is not None:
        return ""
    kind = type(item).__name__
    return f'{_RESOURCES.get(kind, kind.lower() + "s")} "{item.metadata.name}" not found'
