"""Fragmentation: idle capacity that the given workload can't use because it is on nodes where its pods don't fit.

Whether a pod fits a node is decided by the filters of its profile, on the cluster at the end of the run, so taints, selectors
and ports count as well as missing room. For a shape of pods `m` (pods with equal requests, see `pod_shapes`) and a resource `r`

    stranded_r(m) = sum of idle_r(n) over the nodes n on which one more pod of shape m does not fit
    idle_r(n)     = max(0, allocatable - requested) of r on node n

and for the workload M, in which the shape `m` has the share `p_m` of the pods that request `r`

    fragmentation_r = sum of p_m * stranded_r(m) over M / sum of idle_r(n) over all nodes

the average share of the idle amount that a pod of the workload can't use. This is the measure of FGD ("Beware of
Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023) with two differences:
nodes are evaluated as a whole, not GPU by GPU, and pods that don't request a resource are left out of its sum, while FGD counts
all GPUs as fragments for them.

The workload consists of the `COMMON_SHAPES` most common shapes of all pods of the run, except those of DaemonSets (each of which
fits only one node). A shape with waiting pods fits nowhere by definition; for such shapes the report shows how much
of the requested resources is idle on the nodes that lack only room, and the most on one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from bayplan.analysis.utilisation import stable
from bayplan.analysis.waits import WAITING
from bayplan.cluster.owned_pods import is_daemon_pod, is_finished
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.objects.pod import Pod, PodStatus
from bayplan.objects.requests import Amounts, fit_requests
from bayplan.sim.result import PodTimeline
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE

COMMON_SHAPES = 20
"""Number of the most common shapes that represent the workload."""

FIT = "NodeResourcesFit"
"""The plugin that compares requests with free amounts."""

WAITING_SHAPES = 10
"""Maximum number of shapes of waiting pods in the report."""


class PodShape(msgspec.Struct, kw_only=True):
    """Pods with the same requests, node selector, affinity, tolerations, ports and scheduler.

    Attributes:
        pod: the first pod of this shape, without its node.
        example: the key of the first waiting pod, or of the first pod if none waits.
        pods: the number of pods of this shape in the run.
        waiting: the number of these pods that have no node at the end.
    """

    pod: Pod
    example: str
    pods: int = 0
    waiting: int = 0


class ShapeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that one more pod of a shape would fit, and the idle amounts on them.

    Attributes:
        example: the key of a pod of this shape.
        pods, waiting: the number of pods, and of waiting pods.
        requests: the requested amounts, in state units (milli-CPU, bytes, counts).
        allowed: the number of nodes that pass all filters except NodeResourcesFit.
        fits: the number of nodes that pass all filters.
        idle: the total idle amount on the `allowed` nodes, by requested resource.
        idle_on_one: the largest idle amount on one of them, by requested resource.
    """

    example: str
    pods: int
    waiting: int
    requests: dict[str, int]
    allowed: int
    fits: int
    idle: dict[str, int]
    idle_on_one: dict[str, int]


class ResourceFragmentation(msgspec.Struct, frozen=True, kw_only=True):
    """The fragmentation of one resource; amounts are in units of the state.

    Attributes:
        resource: the resource's name.
        idle: the idle amount on all nodes.
        stranded: the part of `idle` that a random pod of the workload can't use, on average.
        share: `stranded` divided by `idle`.
        unusable: the idle amount on nodes where no shape of the workload that requests the resource fits.
        unusable_share: `unusable` divided by `idle`.
        shapes: the number of shapes of the workload that request the resource.
        pods: the number of pods of these shapes.
    """

    resource: str
    idle: int
    stranded: int
    share: float
    unusable: int
    unusable_share: float
    shapes: int
    pods: int


class FragmentationFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Fragmentation at the end of a run.

    Attributes:
        resources: every resource that the workload requests, in the order of the state.
        waiting: the most common shapes of waiting pods.
        shapes: the number of shapes of the run.
        common_pods: the number of pods whose shape is among those that represent the workload.
        pods: the number of pods of all shapes.
    """

    resources: list[ResourceFragmentation] = []
    waiting: list[ShapeFacts] = []
    shapes: int = 0
    common_pods: int = 0
    pods: int = 0


def fragmentation(pods: Iterable[PodTimeline], scheduler: Scheduler) -> FragmentationFacts:
    """Return the current fragmentation of the cluster, for the pods of a run.

    Runs the scheduler's plans as a cycle does, and changes only their caches.
    """
    shapes = pod_shapes(pods, scheduler)
    common = commonest(shapes)
    waiting = sorted((shape for shape in shapes if shape.waiting), key=lambda shape: -shape.waiting)[:WAITING_SHAPES]
    state = scheduler.state
    return FragmentationFacts(
        resources=shapes_fragmentation(common, scheduler),
        waiting=[_shape_facts(shape, _requests(shape.pod, state), scheduler) for shape in waiting],
        shapes=len(shapes),
        common_pods=sum(shape.pods for shape in common),
        pods=sum(shape.pods for shape in shapes),
    )


def commonest(shapes: Iterable[PodShape]) -> list[PodShape]:
    """Return the `COMMON_SHAPES` most common shapes, which represent the workload."""
    return sorted(shapes, key=lambda shape: -shape.pods)[:COMMON_SHAPES]


def shapes_fragmentation(common: Sequence[PodShape], scheduler: Scheduler) -> list[ResourceFragmentation]:
    """Return the current fragmentation of the cluster for every resource that a workload requests.

    Args:
        common: the shapes that represent the workload; those without a profile are ignored.
        scheduler: the scheduler whose filters are run.
    """
    state = scheduler.state
    common = [shape for shape in common if shape.pod.spec.scheduler_name in scheduler.profiles]
    fits = {id(shape): rows_that_fit(shape.pod, scheduler)[0] for shape in common}
    requests = {id(shape): _requests(shape.pod, state) for shape in common}
    return [
        _resource_fragmentation(name, asking, [fits[id(shape)] for shape in asking], state)
        for name in state.nodes.resources
        if (asking := [shape for shape in common if name in requests[id(shape)]])
    ]


def shapes_of_pods(pods: Iterable[Pod]) -> list[PodShape]:
    """Return the shapes that represent the workload, computed from all unfinished pods except those of DaemonSets.

    Pods of one controller in one namespace are assumed to have the same shape.
    """
    encode = msgspec.msgpack.Encoder().encode
    shapes: dict[bytes, PodShape] = {}
    known: dict[tuple[str, str, str], PodShape] = {}
    for pod in pods:
        if is_finished(pod) or is_daemon_pod(pod):
            continue
        owner = pod.metadata.controller()
        identity = (pod.metadata.namespace, owner.kind, owner.name) if owner is not None else None
        shape = known.get(identity) if identity is not None else None
        if shape is None:
            spec = replace(pod.spec, node_name="")
            asked = (spec.containers, spec.init_containers, spec.overhead, spec.resources)
            key = encode((asked, spec.node_selector, spec.affinity, spec.tolerations, spec.scheduler_name))
            shape = shapes.get(key)
            if shape is None:
                shape = shapes[key] = PodShape(pod=replace(pod, spec=spec, status=PodStatus()), example=pod.key)
            if identity is not None:
                known[identity] = shape
        shape.pods += 1
    return commonest(shapes.values())


def pod_shapes(pods: Iterable[PodTimeline], scheduler: Scheduler) -> list[PodShape]:
    """Return the shapes of pods in order of appearance, leaving out pods of DaemonSets and of unknown schedulers."""
    encode = msgspec.msgpack.Encoder().encode
    shapes: dict[bytes, PodShape] = {}
    # Pods of one template share these objects, so look up shapes by identity, and encode only unknown ones. The ids
    # stay valid, because the objects live as long as the pods.
    known: dict[tuple[object, ...], PodShape] = {}
    for timeline in pods:
        pod = timeline.pod
        if (
            pod is None
            or timeline.workload.startswith("DaemonSet ")
            or timeline.scheduler_name not in scheduler.profiles
        ):
            continue
        spec = pod.spec
        asked = (spec.containers, spec.init_containers, spec.overhead, spec.resources)
        allowed = (spec.node_selector, spec.affinity, spec.tolerations)
        identity = (*map(id, asked), *map(id, allowed), spec.scheduler_name)
        shape = known.get(identity)
        if shape is None:
            key = encode((asked, *allowed, spec.scheduler_name))
            shape = shapes.get(key)
            if shape is None:
                free = replace(pod, spec=replace(spec, node_name=""), status=PodStatus())
                shape = shapes[key] = PodShape(pod=free, example=timeline.key)
            known[identity] = shape
        shape.pods += 1
        if timeline.fate in WAITING:
            # The report presents the example as a waiting pod.
            shape.example = shape.example if shape.waiting else timeline.key
            shape.waiting += 1
    return list(shapes.values())


def rows_that_fit(pod: Pod, scheduler: Scheduler) -> tuple[Bools, Bools]:
    """Return two bool[rows]: the nodes that pass all filters of the pod's profile, and those that pass all but NodeResourcesFit.

    Nominated pods are ignored.
    """
    state = scheduler.state
    count = state.nodes.count
    nothing: Bools = np.zeros(count, dtype=np.bool_)
    if not len(state.nodes):
        return nothing, nothing
    plan = scheduler.plans.plan_for(scheduler.profiles[pod.spec.scheduler_name], pod)
    if plan.run_pre_filter_plugins(CycleState()).status is not None:
        return nothing, nothing
    plan.refresh_filters()
    allowed = plan.filtered.examined()[:count].copy()
    for part in plan.filtered.results:
        if part.name != FIT:
            allowed &= part.values[:count] == 0
    return plan.filtered.feasible[:count].copy(), allowed


def idle(state: ClusterState, resource: int) -> Ints:
    """Return int64[rows]: the amount of a resource that is allocatable and not requested, at least 0."""
    count = state.nodes.count
    free: Ints = state.nodes.allocatable[resource, :count] - state.usage[FIRST_RESOURCE + resource, :count]
    return np.maximum(free, 0)


def _requests(pod: Pod, state: ClusterState) -> Amounts:
    return {name: amount for name, amount in fit_requests(pod, state.request_gates).items() if amount > 0}


def _resource_fragmentation(
    name: str, shapes: list[PodShape], fits: list[Bools], state: ClusterState
) -> ResourceFragmentation:
    free = idle(state, state.register_resource(name))
    total, pods = int(free.sum()), sum(shape.pods for shape in shapes)
    weighted = sum(shape.pods * int(free[~fit].sum()) for shape, fit in zip(shapes, fits, strict=True))
    nowhere = ~np.logical_or.reduce(fits)
    unusable = int(free[nowhere].sum())
    return ResourceFragmentation(
        resource=name,
        idle=total,
        stranded=weighted // pods,
        share=stable(weighted / pods / total) if total else 0.0,
        unusable=unusable,
        unusable_share=stable(unusable / total) if total else 0.0,
        shapes=len(shapes),
        pods=pods,
    )


def _shape_facts(shape: PodShape, requests: Amounts, scheduler: Scheduler) -> ShapeFacts:
    state = scheduler.state
    fits, allowed = rows_that_fit(shape.pod, scheduler)
    frees = {name: idle(state, state.register_resource(name))[allowed] for name in requests}
    return ShapeFacts(
        example=shape.example,
        pods=shape.pods,
        waiting=shape.waiting,
        requests=dict(requests),
        allowed=int(allowed.sum()),
        fits=int(fits.sum()),
        idle={name: int(free.sum()) for name, free in frees.items()},
        idle_on_one={name: int(free.max(initial=0)) for name, free in frees.items()},
    )
