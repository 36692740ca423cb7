"""Random clusters with a pending pod, from the generator of cases for the real scheduler (`fuzz.clusters`)."""

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
        name: the name of the case.
        objects: the objects of the cluster, without the pod.
        pod: the pending pod.
    """

    name: str
    objects: Sequence[KubernetesObject]
    pod: Pod


def waiting_pods(seed: int) -> Iterator[WaitingPod]:
    """Yield random clusters, each with a pod that fits no node, without end; the same seed gives the same ones."""
    number = 0
    while True:
        case = random_case(seed, number)
        number += 1
        try:
            objects = [*CLASSES, *(default_object(decode(item)) for item in _dicts(case["objects"]))]
            pods = [default_object(decode(item)) for item in _dicts(case["pods"])]
        except InputError:
            continue
        # Other pending pods of higher priority would be scheduled first, so keep only the pod in question.
        objects = [item for item in objects if not isinstance(item, Pod) or item.spec.node_name]
        for pod in pods:
            if isinstance(pod, Pod) and _can_wait(pod) and place(objects, pod, preempts=False) == "":
                yield WaitingPod(f"seed {seed}, number {number - 1}, pod {pod.key}", objects, pod)


def _dicts(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list)
    return [item for item in value if isinstance(item, dict)]


def _can_wait(pod: Pod) -> bool:
    """Return whether the default scheduler must schedule a pod: no node, and neither terminating nor finished."""
    return (
        not pod.spec.node_name
        and pod.metadata.deletion_timestamp is None
        and pod.spec.scheduler_name == "default-scheduler"
        and pod.status.phase not in ("Succeeded", "Failed")
    )


def place(objects: Sequence[KubernetesObject], pod: Pod, *, preempts: bool = True) -> str:
    """Return the name of the node that a pod gets in a new cluster; "" if it stays pending.

    Args:
        objects: the objects of the cluster.
        pod: the pod to schedule.
        preempts: whether the pod may preempt others, and is retried after that.
    """
    if not preempts:
        spec = replace(pod.spec, preemption_policy="Never")
        pod = replace(pod, spec=spec)
    cluster = Cluster(objects, record_level=RecordLevel.OFF)
    cluster.schedule(pod)
    if preempts and not cluster.node_of(pod.key) and pod.key in cluster.scheduler.pods:
        # No time passes that would end its backoff, so add the pod again.
        cluster.remove(pod.key)
        cluster.schedule(pod)
    return cluster.node_of(pod.key) or ""
