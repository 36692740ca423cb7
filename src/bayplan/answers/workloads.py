"""Workloads of a question's cluster: find the workload of a pod, and the workload that a user names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from bayplan.analysis.pod_lookup import SHORT_NAMES
from bayplan.analysis.units import format_choice
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.cluster.owned_pods import FINISHED_PHASES, is_active
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

T = TypeVar("T", bound=KubernetesObject)

TEMPLATE_HASH = "pod-template-hash"

Workload = Deployment | StatefulSet | ReplicaSet | ReplicationController | DaemonSet | Job

KINDS: dict[str, type[KubernetesObject]] = {
    kind.__name__.lower(): kind
    for kind in (Deployment, StatefulSet, ReplicaSet, ReplicationController, DaemonSet, Job, CronJob)
}

_OWNED: dict[str, type[KubernetesObject]] = {"ReplicaSet": ReplicaSet, "Job": Job}
"""Controllers that usually have an owner themselves."""

LISTED = 5
"""Maximum number of candidates to name in an error."""


class Objects(ObjectLookup, Protocol):
    """A lookup of workloads and pods that also lists them."""

    def all(self, kind: type[T]) -> Iterable[T]:
        """Return the objects of a kind, in their order."""
        ...


class WorkloadObjects:
    """A lookup of objects by kind and key.

    Args:
        items: the objects; if two have the same kind and key, the last one counts.
    """

    def __init__(self, items: Iterable[KubernetesObject]) -> None:
        self._items: dict[type[KubernetesObject], dict[str, KubernetesObject]] = {}
        for item in items:
            self._items.setdefault(type(item), {})[item.key] = item

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object by its key, or None."""
        return self._items.get(kind, {}).get(key)  # type: ignore[return-value]

    def all(self, kind: type[T]) -> Sequence[T]:
        """Return the objects of a kind, in their order."""
        return list(self._items.get(kind, {}).values())  # type: ignore[arg-type]


class Found(Struct, frozen=True):
    """A workload, or a pod without a workload.

    Attributes:
        kind, namespace, name: e.g. Deployment, shop, web. The kind is Pod for a pod without a controller.
        item: the object; None if the source has only the pods.
        pods: the active pods (neither finished nor terminating), in the order of the source.
    """

    kind: str
    namespace: str
    name: str
    item: KubernetesObject | None
    pods: Sequence[Pod]

    @property
    def label(self) -> str:
        """Return the workload's name in answers: ``deployment/shop/web``."""
        return f"{self.kind.lower()}/{self.namespace}/{self.name}"


def workload_of(pod: Pod, cluster: Objects) -> tuple[str, str]:
    """Return kind and name of the topmost owner of a pod, e.g. its Deployment, not its ReplicaSet; of a bare pod, ("Pod", name).

    The owner of a mirror pod is its node, which is no workload.

    The owner of a ReplicaSet is a Deployment, and that of a Job may be a CronJob. If the cluster lacks the ReplicaSet,
    the name of the Deployment is that of the ReplicaSet without the template hash.
    """
    owner = pod.metadata.controller()
    if owner is None or owner.kind == "Node":
        return "Pod", pod.metadata.name
    struct = _OWNED.get(owner.kind)
    item = cluster.get(struct, f"{pod.metadata.namespace}/{owner.name}") if struct is not None else None
    parent = item.metadata.controller() if item is not None else None
    if parent is not None:
        return parent.kind, parent.name
    ending = f"-{pod.metadata.labels.get(TEMPLATE_HASH, '')}"
    if item is None and owner.kind == "ReplicaSet" and len(ending) > 1 and owner.name.endswith(ending):
        return "Deployment", owner.name.removesuffix(ending)
    return owner.kind, owner.name


def find_workload(text: str, cluster: Objects) -> Found:
    """Return the workload or pod that a text refers to: ``kind/name``, ``kind/namespace/name``, ``namespace/name`` or ``name``.

    A name without a kind refers to the workload of that name, or else the pod.

    Raises:
        InputError: no workload or pod matches, or several do.
    """
    first, slash, rest = text.partition("/")
    kind = SHORT_NAMES.get(first.lower(), first.lower().removesuffix("s") if first.lower() != "ds" else first.lower())
    if slash and (kind in KINDS or kind == "pod"):
        namespace, slash, name = rest.rpartition("/")
    else:
        kind = ""
        namespace, slash, name = text.rpartition("/")
    found = _matching(kind, namespace, name, cluster)
    if len(found) == 1:
        return found[0]
    if not found:
        raise _inactive(text, kind, namespace, name, cluster) or _unknown(text, cluster)
    labels = format_choice([each.label for each in found[:LISTED]], more=max(len(found) - LISTED, 0))
    raise InputError(
        "workload",
        got=f"'{text}', which could be {labels}",
        wanted="the name of one workload or pod",
        hint=f"'{found[0].label}'",
    )


def _matching(kind: str, namespace: str, name: str, cluster: Objects) -> list[Found]:
    """Return the workloads with this name, or else the pods."""
    items: dict[tuple[str, str], KubernetesObject] = {}
    for key, struct in KINDS.items():
        if kind in ("", key):
            for item in cluster.all(struct):
                metadata = item.metadata
                if metadata.name == name and namespace in ("", metadata.namespace):
                    items[struct.__name__, metadata.namespace] = item
    pods: dict[tuple[str, str], list[Pod]] = {}
    single: list[Pod] = []
    for pod in cluster.all(Pod):
        if namespace not in ("", pod.metadata.namespace) or not is_active(pod):
            continue
        if pod.metadata.name == name and kind in ("", "pod"):
            single.append(pod)
        if kind == "pod":
            continue
        owner_kind, owner_name = workload_of(pod, cluster)
        if owner_name == name and owner_kind != "Pod" and kind in ("", owner_kind.lower()):
            pods.setdefault((owner_kind, pod.metadata.namespace), []).append(pod)
        controller = pod.metadata.controller()
        is_named = controller is not None and controller.name == name and kind in ("", controller.kind.lower())
        if controller is not None and is_named and controller.kind != owner_kind:
            pods.setdefault((controller.kind, pod.metadata.namespace), []).append(pod)
    found = [
        Found(each[0], each[1], name, items.get(each), pods.get(each, ())) for each in dict.fromkeys((*items, *pods))
    ]
    if found:
        return found
    return [Found("Pod", pod.metadata.namespace, name, pod, (pod,)) for pod in single]


def template_of(item: KubernetesObject) -> PodTemplateSpec | None:
    """Return the pod template of a workload; None if it is not a workload or has no template."""
    if isinstance(item, CronJob):
        return item.spec.job_template.spec.template
    if isinstance(item, Deployment | StatefulSet | ReplicaSet | ReplicationController | DaemonSet | Job):
        return item.spec.template
    return None


def _inactive(text: str, kind: str, namespace: str, name: str, cluster: Objects) -> InputError | None:
    """Return the error about a pod that has finished or is terminating; None if there is no such pod."""
    for pod in cluster.all(Pod) if kind in ("", "pod") else ():
        if pod.metadata.name == name and namespace in ("", pod.metadata.namespace) and not is_active(pod):
            state = "has finished" if pod.status.phase in FINISHED_PHASES else "is terminating"
            owner_kind, owner = workload_of(pod, cluster)
            is_known = owner_kind != "Pod" and _matching(owner_kind.lower(), pod.metadata.namespace, owner, cluster)
            hint = f"'{owner_kind.lower()}/{pod.metadata.namespace}/{owner}'" if is_known else ""
            wanted = "a workload, or a pod that runs or is pending"
            return InputError("workload", got=f"'{text}', which {state}", wanted=wanted, hint=hint)
    return None


def _unknown(text: str, cluster: Objects) -> InputError:
    names = _names(cluster)
    close = near_name(text.rpartition("/")[2], names)
    form = "KIND/NAMESPACE/NAME, such as deployment/shop/web" if text.count("/") < 2 else ""
    hint = f"'{names[close]}'" if close else form
    return InputError("workload", got=f"'{text}'", wanted="a workload or pod of this cluster", hint=hint)


def _names(cluster: Objects) -> dict[str, str]:
    found: dict[str, str] = {}
    items: Iterable[KubernetesObject] = (item for kind in KINDS.values() for item in cluster.all(kind))
    for item in items:
        found.setdefault(item.metadata.name, f"{type(item).__name__.lower()}/{item.key}")
    for pod in filter(is_active, cluster.all(Pod)):
        kind, name = workload_of(pod, cluster)
        found.setdefault(name, f"{kind.lower()}/{pod.metadata.namespace}/{name}")
    return found
