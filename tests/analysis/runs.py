"""Small simulations for the tests of this folder, which run from objects in memory to a result without files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bayplan.base.random_streams import RandomStreams
from bayplan.engine.records import RecordLevel
from bayplan.framework.plugin import Plugin
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.sim.operations import Apply, Delete
from bayplan.sim.result import SimulationResult
from bayplan.sim.simulator import Simulator
from bayplan.sim.virtual_cluster import VirtualCluster
from bayplan.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.schedulers import default_scheduler

START_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000


def run(
    *objects: KubernetesObject,
    later: Mapping[int, Sequence[KubernetesObject | Delete]] | None = None,
    level: RecordLevel = RecordLevel.FULL,
    seed: int = 1,
    plugins: Sequence[type[Plugin[Any]]] = (),
) -> SimulationResult:
    """Simulate objects that exist from the start; `later` maps seconds to objects that are added or deleted then."""
    scheduler = default_scheduler(plugins, seed=seed, start_ns=START_NS, record_level=level)
    simulator = Simulator(scheduler, VirtualCluster(RandomStreams(seed)), seed=seed, start_ns=START_NS, check=True)
    for second, batch in ({0: objects} | dict(later or {})).items():
        for item in batch:
            operation = item if isinstance(item, Delete) else Apply(item)
            simulator.at(START_NS + second * SECOND_NS, operation)
    simulator.run()
    return simulator.result()


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", zone: str = "a") -> NodeBuilder:
    """Return the builder of a node with 4 CPUs and 8 GiB unless other amounts are given."""
    return make_node(name).capacity(cpu=cpu, memory=memory).zone(zone)


def pod(name: str, *, cpu: str = "1", memory: str = "1Gi") -> PodBuilder:
    """Return the builder of a pod that requests 1 CPU and 1 GiB unless other amounts are given."""
    return make_pod(name).req(cpu=cpu, memory=memory)


def deployment(name: str, replicas: int, *, cpu: str = "1") -> KubernetesObject:
    """Return a Deployment in the namespace ``default``, with the same label and name."""
    labels = {"app": name}
    container = {"name": "c", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": cpu}}}
    return decode(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
    )


def busy_run(level: RecordLevel = RecordLevel.FULL, seed: int = 1) -> SimulationResult:
    """Return a run with ties, taints, rejections by PreFilter, changing nodes, and pods that wait and finish."""
    nodes = [node(f"n{number}", zone="abc"[number % 3]).obj() for number in range(6)]
    nodes.append(node("tainted").taint("dedicated", "gpu").obj())
    nodes.append(node("soft").taint("slow", effect="PreferNoSchedule").obj())
    nodes.append(node("gpu").capacity({"example.com/gpu": "2"}).zone("a").obj())
    pods = [
        pod(f"web-{number}").annotation({"bayplan.io/run-time": f"{number % 7 + 1}m"}).obj() for number in range(20)
    ]
    pods += [pod(f"gpu-{number}").req({"example.com/gpu": "1"}).obj() for number in range(3)]
    pods.append(pod("nowhere").node_selector(disk="ssd").obj())
    pods.append(pod("big", cpu="3500m").obj())
    pods.append(pod("gated").gate("example.com/wait").obj())
    pods.append(pod("foreign").scheduler("another").obj())
    pods.append(pod("fixed").node("n1").obj())
    conflict = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n1", "n2")]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [conflict]}}
    pods.append(pod("conflict").spec(affinity={"nodeAffinity": required}).obj())
    later: dict[int, Sequence[KubernetesObject | Delete]] = {
        30: [node("late", zone="b").obj(), *(pod(f"more-{number}", cpu="500m").obj() for number in range(8))],
        90: [Delete(type(nodes[0]), "n3"), deployment("shop", 4)],
        200: [pod(f"last-{number}").obj() for number in range(12)],
    }
    return run(*nodes, *pods, later=later, level=level, seed=seed)
