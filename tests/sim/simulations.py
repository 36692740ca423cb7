"""Simulations for tests, written as pairs of a time and an operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.kubelet import KubeletOptions, PodRun
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.records import RecordLevel
from bayplan.framework.plugin import Plugin
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.sim.arrivals import DEFAULT_START_NS
from bayplan.sim.operations import Apply, Operation
from bayplan.sim.result import SimulationResult
from bayplan.sim.simulator import Simulator
from bayplan.sim.virtual_cluster import ClusterOptions, VirtualCluster
from bayplan.testing import make_node, make_pod
from tests.schedulers import default_scheduler

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
START = DEFAULT_START_NS


def simulator(
    *operations: tuple[int, Operation],
    run_of: Callable[[Pod], PodRun | None] | None = None,
    seed: int = 0,
    plugins: Sequence[type[Plugin[Any]]] = (),
    queue_type: type[SchedulingQueue] = EventDrivenQueue,
    record_level: RecordLevel = RecordLevel.SUMMARY,
    start_delay_ns: int = 0,
    termination_time_ns: int = 0,
    check: bool = True,
    cluster_type: type[VirtualCluster] = VirtualCluster,
) -> Simulator:
    """Return a simulator with operations at times since the start, which checks invariants after every event."""
    scheduler = default_scheduler(plugins, seed=seed, start_ns=START, record_level=record_level, queue_type=queue_type)
    kubelet = KubeletOptions(run_of=run_of, start_delay_ns=start_delay_ns, termination_time_ns=termination_time_ns)
    cluster = cluster_type(RandomStreams(seed), ClusterOptions(kubelet=kubelet))
    made = Simulator(scheduler, cluster, seed=seed, start_ns=START, check=check)
    for time_ns, operation in operations:
        made.at(START + time_ns, operation)
    return made


def simulate(*operations: tuple[int, Operation], until_ns: int | None = None, **options: Any) -> SimulationResult:
    """Run a simulation and return its result."""
    made = simulator(*operations, **options)
    made.run(until_ns=None if until_ns is None else START + until_ns)
    return made.result()


def node(name: str, cpu: str = "4", *, zone: str = "") -> Apply:
    """Return the creation of a node with this amount of CPU and 8 GiB of memory."""
    made = make_node(name).capacity(cpu=cpu, memory="8Gi")
    return Apply((made.zone(zone) if zone else made).obj())


def pod(name: str, cpu: str = "1", *, runs: str = "", priority: int = 0) -> Apply:
    """Return the creation of a pod that requests this amount of CPU; `runs` is its run time."""
    made = make_pod(name).req(cpu=cpu).priority(priority)
    return Apply((made.annotation({"bayplan.io/run-time": runs}) if runs else made).obj())


def document(api_version: str, kind: str, name: str, spec: Mapping[str, object]) -> KubernetesObject:
    """Return an object in the namespace ``default``, with defaults."""
    metadata = {"name": name, "namespace": "default"}
    return default_object(decode({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}))


def template(cpu: str = "1", *, app: str = "app", runs: str = "", **spec: object) -> dict[str, object]:
    """Return a pod template with one container."""
    metadata: dict[str, object] = {"labels": {"app": app}}
    if runs:
        metadata["annotations"] = {"bayplan.io/run-time": runs}
    container = {"name": "c", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def pod_times(result: SimulationResult) -> list[tuple[object, ...]]:
    """Return for each pod its name, its node, and the times since the start of its creation, binding and end."""

    def since(time_ns: int | None) -> int | None:
        return None if time_ns is None else time_ns - result.start_ns

    return [
        (
            each.key.removeprefix("default/"),
            each.node,
            since(each.arrived_ns),
            since(each.bound_ns),
            since(each.ended_ns),
        )
        for each in result.pods
    ]
