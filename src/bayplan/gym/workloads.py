"""Workloads for the environment: nodes, and pods with arrival and run times."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from bayplan.base.durations import SECOND_NS
from bayplan.base.random_streams import RandomStreams
from bayplan.formats.inputs import Inputs
from bayplan.formats.manifest import Manifest
from bayplan.formats.trace import TimedPod, Trace
from bayplan.objects.defaults import default_pod_spec
from bayplan.objects.meta import ObjectMeta, ResourceList
from bayplan.objects.node import Node, NodeStatus
from bayplan.objects.pod import Container, Pod, PodSpec, ResourceRequirements

Workload: TypeAlias = Callable[[int], Inputs]
"""Returns the nodes and pods of an episode for its seed."""

_SIZES = ((1, 2), (1, 4), (2, 4), (2, 2), (7, 14))
"""CPU cores and GiB of memory of the pods of `random_workload`. The last size fills most of a node."""


def random_workload(seed: int, *, nodes: int = 8, pods: int = 120) -> Inputs:
    """Return nodes with 8 cores, and pods of five sizes that arrive at random times and run for 10 to 70 minutes.

    On average, the pods request about as much as the nodes offer. So large pods wait if small ones are spread over all
    nodes.
    """
    random = RandomStreams(seed).stream("gym-workload").random
    offered: ResourceList = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    found = [
        Node(metadata=ObjectMeta(name=f"node-{number:02}"), status=NodeStatus(capacity=offered, allocatable=offered))
        for number in range(nodes)
    ]
    timed: list[TimedPod] = []
    now_s = 0.0
    # On average, a pod uses 2.6 cores for 40 minutes.
    gap_s = 2.6 * 2400 / (8 * nodes)
    for number in range(pods):
        now_s += 2 * gap_s * random()
        cores, gib = _SIZES[int(random() * len(_SIZES))]
        run_s = 600 + int(3600 * random())
        timed.append(
            TimedPod(
                pod=_pod(f"pod-{number:04}", cores, gib),
                arrival_ns=int(now_s) * SECOND_NS,
                run_time_ns=run_s * SECOND_NS,
            )
        )
    return Inputs(manifest=Manifest(), trace=Trace(format="random", nodes=found, pods=timed))


def _pod(name: str, cores: int, gib: int) -> Pod:
    amounts: ResourceList = {"cpu": str(cores), "memory": f"{gib}Gi"}
    container = Container(name="main", image="app", resources=ResourceRequirements(requests=amounts))
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default"), spec=default_pod_spec(PodSpec(containers=(container,)))
    )
