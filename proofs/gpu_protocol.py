"""The published protocol of the FGD experiments: an inflated list of tasks, submitted one by one, that never end.

Source: Weng et al., USENIX ATC 2023, and the scripts of its artifact. Tasks are shuffled. More are drawn from the list
until they request 130 % of the cluster's GPUs. A task that does not fit is dropped. Each policy is the only score
plugin. Among equally good nodes, the one with the smallest name is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from bayplan.answers.instant_host import InstantHost
from bayplan.base.random_streams import RandomStream, RandomStreams
from bayplan.contrib.gpu_sharing import POLICIES, GpuPolicy
from bayplan.contrib.gpu_sharing.devices import DeviceTable
from bayplan.contrib.gpu_sharing.fragmentation import FragmentationMeasure, typical_pods, typical_pods_argument
from bayplan.contrib.gpu_sharing.requests import GPU_SIZE_MILLI, GpuRequest, gpu_request, gpus_of
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.records import Outcome, RecordLevel
from bayplan.engine.select_host import first_by_name
from bayplan.formats.trace import Trace
from bayplan.framework.configuration.loading import SchedulerConfiguration, load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.registry import Registry
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.arrays import Index
from bayplan.state.cluster_state import ClusterState
from bayplan.state.resource_table import CPU

LOAD = 1.3
"""GPUs that the inflated list requests, as a multiple of the cluster's GPUs."""


@dataclass
class Curve:
    """The results of a run, by the GPUs requested so far in percent of the cluster's GPUs: 0, 1, ... 130.

    Attributes:
        allocation: allocated GPUs in percent of all GPUs.
        amount: fragments in percent of all GPUs.
        ratio: fragments in percent of the GPUs that are not allocated.
        failed: the number of tasks that were dropped.
    """

    allocation: list[float]
    amount: list[float]
    ratio: list[float]
    failed: int = 0


def registry() -> Registry:
    """Return a registry with the in-tree plugins and the policies."""
    return in_tree_registry().with_plugins(*POLICIES)


def configuration(policy: type[GpuPolicy], arguments: dict[str, object]) -> SchedulerConfiguration:
    """Return a configuration with a policy as the only score plugin and without preemption."""
    name, points = policy.name, registry()
    enabled = [{"name": name}]
    plugins: dict[str, object] = {
        "filter": {"enabled": enabled},
        "score": {"disabled": [{"name": "*"}], "enabled": enabled},
        "reserve": {"enabled": enabled},
        "preScore": {"disabled": [{"name": "*"}]},
        "postFilter": {"disabled": [{"name": "*"}]},
    }
    profile: dict[str, object] = {"schedulerName": "default-scheduler", "plugins": plugins}
    if arguments:
        profile["pluginConfig"] = [{"name": name, "args": arguments}]
    return load_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": 100,
            "profiles": [profile],
        },
        feature_gates=FeatureGates(),
        extension_points_of=points.extension_points_for_configuration,
    )


def inflated(tasks: Sequence[Pod], capacity_milli: int, seed: int) -> list[Pod]:
    """Return the shuffled tasks, followed by randomly drawn ones until the next would exceed the load.

    If the tasks alone exceed the load, random tasks are dropped.
    """
    random = RandomStreams(seed).stream("tasks")
    found = sorted(tasks, key=lambda pod: pod.metadata.name)
    for place in range(len(found) - 1, 0, -1):
        other = int(random.random() * (place + 1))
        found[place], found[other] = found[other], found[place]
    wanted = LOAD * capacity_milli
    total = sum(_milli(pod) for pod in found)
    while total > wanted:
        total -= _milli(found.pop(int(random.random() * len(found))))
    return found + _drawn(tasks, wanted - total, random)


def _drawn(tasks: Sequence[Pod], room_milli: float, random: RandomStream) -> list[Pod]:
    drawn: list[Pod] = []
    while True:
        pod = tasks[int(random.random() * len(tasks))]
        room_milli -= _milli(pod)
        if room_milli < 0:
            return drawn
        drawn.append(pod)


def _milli(pod: Pod) -> int:
    request = gpu_request(pod)
    return request.total_milli if isinstance(request, GpuRequest) else 0


class ProtocolRun:
    """One run of the protocol.

    Args:
        trace: the nodes and tasks.
        policy: the only score plugin.
        seed: the seed of the order and of the drawn tasks.
        by_name: whether to choose the node with the smallest name among equally good ones, as the artifact does;
            otherwise a random one, as kube-scheduler does.
    """

    def __init__(self, trace: Trace, policy: type[GpuPolicy], seed: int, *, by_name: bool = True) -> None:
        self._tasks = [each.pod for each in trace.pods]
        typical = typical_pods(self._tasks)
        arguments: dict[str, object] = {}
        if policy.name == "FGD":
            arguments = {"typicalPods": typical_pods_argument(typical)}
        elif policy.name == "Random":
            arguments = {"seed": seed}
        self._measure = FragmentationMeasure(typical)
        state = ClusterState()
        self.scheduler = assemble_scheduler(
            configuration(policy, arguments),
            registry(),
            feature_gates=FeatureGates(),
            seed=seed,
            record_level=RecordLevel.OFF,
            state=state,
            # Random scores all nodes equally, so a seeded choice decides, as in the artifact.
            pick=first_by_name if by_name and policy.name != "Random" else None,
        )
        self._host = InstantHost(self.scheduler)
        for node in trace.nodes:
            self._host.handle(None, node)
        (profile,) = self.scheduler.profiles.values()
        chooser = next(each for each in profile.reserve if isinstance(each, GpuPolicy))
        self._devices: DeviceTable = chooser.table(state)
        self._capacity = sum(gpus_of(node)[0] for node in trace.nodes) * GPU_SIZE_MILLI
        self._tasks = inflated(self._tasks, self._capacity, seed)
        self._amounts = np.zeros(state.nodes.capacity, dtype=np.float64)

    def run(self) -> Curve:
        """Schedule all tasks and return the curve."""
        curve = Curve([], [], [])
        self._measure_rows(np.arange(self.scheduler.state.nodes.count))
        arrived = allocated = 0
        self._note(curve, 0, arrived)
        for number, task in enumerate(self._tasks):
            pod = _renamed(task, number)
            self._host.handle(None, pod)
            report = self.scheduler.schedule_one(0)
            assert report is not None
            arrived += _milli(pod)
            if report.outcome is Outcome.SCHEDULED:
                self._host.execute(report.actions)
                allocated += _milli(pod)
                row = self.scheduler.state.pods[f"{pod.metadata.namespace}/{pod.metadata.name}"].row
                self._measure_rows(np.array([row]))
            else:
                curve.failed += 1
                self._host.handle(self.scheduler.pods[f"{pod.metadata.namespace}/{pod.metadata.name}"], None)
            self._note(curve, allocated, arrived)
        self._note(curve, allocated, int(LOAD * self._capacity))
        return curve

    def _measure_rows(self, rows: Index) -> None:
        self._devices.refresh()
        state, devices = self.scheduler.state, self._devices
        cpu = (state.nodes.allocatable[CPU] - state.usage[3 + CPU])[rows]
        allowed = self._measure.allowed(devices.model_names)[devices.models[rows]]
        self._amounts[rows] = self._measure.amounts(cpu, devices.free[rows], allowed)

    def _note(self, curve: Curve, allocated: int, arrived: int) -> None:
        """Add the points of the curve up to the GPUs requested so far."""
        while len(curve.allocation) <= 100 * arrived / self._capacity + 1e-9:
            fragments, idle = float(self._amounts.sum()), self._capacity - allocated
            curve.allocation.append(100 * allocated / self._capacity)
            curve.amount.append(100 * fragments / self._capacity)
            curve.ratio.append(100 * fragments / idle if idle else 0.0)


def _renamed(pod: Pod, number: int) -> Pod:
    name = f"task-{number:05}"
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=name))
