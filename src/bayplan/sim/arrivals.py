"""Converts input to operations in virtual time: when the objects of manifests and the pods of a trace come and go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import parse_time_ns
from bayplan.cluster.kubelet import PodRun
from bayplan.formats.inputs import Inputs
from bayplan.formats.manifest import Manifest
from bayplan.formats.trace import Trace
from bayplan.objects.defaults import default_object
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.namespace import Namespace
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from bayplan.sim.operations import Apply, Delete, Operation

DEFAULT_START_NS = 1_767_225_600 * SECOND_NS
"""The start of virtual time if the input contains no times: 2026-01-01T00:00:00Z, a Thursday."""

MAX_OWNERS = 5
"""Maximum length of a chain of owners, such as pod, Job, CronJob. It ends chains that go round in a circle."""

_PODS_AND_WORKLOADS = (Pod, CronJob, DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet)


def start_time_ns(manifest: Manifest, *, creation_times: bool = False) -> int:
    """Return the start of virtual time: the latest time in the objects, so that all of their times are in the past.

    With `creation_times`, the earliest creation time instead. Rounded up to a whole second.
    """
    times = [time_ns for item in manifest.objects() for time_ns in _times_of(item, creation_times)]
    if not times:
        return DEFAULT_START_NS
    found = min(times) if creation_times else max(times)
    return -(-found // SECOND_NS) * SECOND_NS


def _times_of(item: KubernetesObject, creation_only: bool) -> Iterator[int]:
    texts = [item.metadata.creation_timestamp]
    if isinstance(item, Pod) and not creation_only:
        texts.append(item.status.start_time)
    for text in texts:
        time_ns = _time_or_none(text)
        if time_ns is not None:
            yield time_ns


def _time_or_none(text: str | None) -> int | None:
    """Return the nanoseconds of a timestamp; None if it is missing or invalid: templates contain `<nil>` or `null`."""
    try:
        return parse_time_ns(text) if text else None
    except InputError:
        return None


def run_times(trace: Trace | None) -> dict[str, PodRun]:
    """Return the run times of the pods in a trace that have one, by key."""
    if trace is None:
        return {}
    return {timed.pod.key: PodRun(timed.run_time_ns) for timed in trace.pods if timed.run_time_ns is not None}


def operations(inputs: Inputs, start_ns: int, *, creation_times: bool = False) -> Iterator[tuple[int, Operation]]:
    """Yield the operations and their times.

    The objects of manifests are added at the start: first those that others refer to (namespaces, priority classes,
    volumes), then pods that have a node, then everything else, in the order of the input. Namespaces that are missing
    are created: an API server would have rejected the objects in them.

    Args:
        inputs: the loaded input.
        start_ns: the start of virtual time; the times in a trace are relative to it.
        creation_times: whether objects are added at their creationTimestamp instead, but workloads not before their pods.
    """
    items = in_order(inputs.manifest.objects())
    times = _creation_times(items) if creation_times else [0] * len(items)
    timed_pods = inputs.trace.pods if inputs.trace is not None else []
    for namespace in missing_namespaces([*items, *(timed.pod for timed in timed_pods)]):
        yield start_ns, Apply(namespace)
    for item, arrival_ns in zip(items, times, strict=True):
        yield max(start_ns, arrival_ns), Apply(item)
    if inputs.trace is not None:
        for node in inputs.trace.nodes:
            yield start_ns, Apply(node)
    for timed in timed_pods:
        yield start_ns + timed.arrival_ns, Apply(timed.pod)
        if timed.gone_at_ns is not None:
            yield start_ns + timed.gone_at_ns, Delete(Pod, timed.pod.key)


def _creation_times(items: Sequence[KubernetesObject]) -> list[int]:
    """Return the creation times of objects, 0 if unknown. That of a controlling object is at least those of its dependents.

    Otherwise, its controller would create the dependents that come later a second time.
    """
    numbers = {
        (type(item).__name__, item.metadata.namespace, item.metadata.name): number for number, item in enumerate(items)
    }
    times = [_time_or_none(item.metadata.creation_timestamp) or 0 for item in items]
    for number, item in enumerate(items):
        owner = item.metadata.controller()
        for _ in range(MAX_OWNERS):
            above = None if owner is None else numbers.get((owner.kind, item.metadata.namespace, owner.name))
            if above is None:
                break
            times[above] = max(times[above], times[number])
            owner = items[above].metadata.controller()
    return times


def in_order(items: Iterable[KubernetesObject]) -> list[KubernetesObject]:
    """Return objects in the order of creation: those that others refer to, then pods on nodes, then the others."""
    return sorted(items, key=_order)


def _order(item: KubernetesObject) -> int:
    if not isinstance(item, _PODS_AND_WORKLOADS):
        return 0
    return 1 if isinstance(item, Pod) and item.spec.node_name else 2


def missing_namespaces(items: Iterable[KubernetesObject], known: Collection[str] = ()) -> list[KubernetesObject]:
    """Return the namespaces that the objects are in, but that are neither among the objects nor known."""
    items = list(items)
    declared = {item.metadata.name for item in items if isinstance(item, Namespace)}.union(known)
    used = dict.fromkeys(item.metadata.namespace for item in items)
    return [default_object(Namespace(metadata=ObjectMeta(name=name))) for name in used if name and name not in declared]
