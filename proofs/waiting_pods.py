"""Random clusters with a pod that waits, from the generator that also feeds the real scheduler (`fuzz.clusters`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuzz.clusters import random_case
from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.engine.records import RecordLevel
from bayplan.library import Cluster
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.testing.object_builders import make_priority_class

CLASSES = (make_priority_class("high", 500), make_priority_class("highest", 5000))


@dataclass(frozen=True)
class WaitingPod:
    """A cluster and a pod that fits on none of its nodes.

    Attributes:
        name: of the case. objects: of the cluster, without the pod. pod: that waits.
    """

    name: str
    objects: Sequence[KubernetesObject]
    pod: Pod


def waiting_pods(seed: int) -> Iterator[WaitingPod]:
    """Yield such clusters without end, the same for the same seed."""
    number = 0
    while True:
        case = random_case(seed, number)
        number += 1
        try:
            objects = [*CLASSES, *(default_object(decode(item)) for item in _dicts(case["objects"]))]
            pods = [default_object(decode(item)) for item in _dicts(case["pods"])]
        except InputError:
            continue
        # Other pods that wait would be scheduled first where they matter more: only one pod is asked about.
        objects = [item for item in objects if not isinstance(item, Pod) or item.spec.node_name]
        for pod in pods:
            if isinstance(pod, Pod) and _can_wait(pod) and place(objects, pod, preempts=False) == "":
                yield WaitingPod(f"seed {seed}, number {number - 1}, pod {pod.key}", objects, pod)


def _dicts(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list)
    return [item for item in value if isinstance(item, dict)]


def _can_wait(pod: Pod) -> bool:
    """Return whether a pod is one for the scheduler: it has no node, is not on its way out, and asks for a known scheduler."""
    return (
        not pod.spec.node_name
        and pod.metadata.deletion_timestamp is None
        and pod.spec.scheduler_name == "default-scheduler"
        and pod.status.phase not in ("Succeeded", "Failed")
    )


def place(objects: Sequence[KubernetesObject], pod: Pod, *, preempts: bool = True) -> str:
    """Return the node that a pod gets in a new cluster; "" if it waits.

    Args:
        objects: of the cluster. pod: to schedule. preempts: whether others leave for it, and it is tried again.
    """
    if not preempts:
        spec = replace(pod.spec, preemption_policy="Never")
        pod = replace(pod, spec=spec)
    cluster = Cluster(objects, record_level=RecordLevel.OFF)
    cluster.schedule(pod)
    if preempts and not cluster.node_of(pod.key) and pod.key in cluster.scheduler.pods:
        # No time passes here that would end its backoff: it comes again.
        cluster.remove(pod.key)
        cluster.schedule(pod)
    return cluster.node_of(pod.key) or ""
