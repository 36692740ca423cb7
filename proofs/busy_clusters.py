"""Small random clusters with running workloads, for questions about room, nodes and drains."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from bayplan.answers.question_cluster import QuestionCluster
from bayplan.app.scheduler_setup import read_setup
from bayplan.engine.records import RecordLevel
from bayplan.library import Cluster
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodStatus
from bayplan.testing.builders import PodBuilder, Selector, make_node, make_pod

WITHOUT_EVICTIONS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    postFilter: {disabled: [{name: "*"}]}
"""
"""The default configuration without preemption, because questions don't evict unless that is requested."""

ZONES = ("a", "b", "c")


@dataclass
class BusyCluster:
    """A cluster with running workloads.

    Attributes:
        name: the name of the case.
        objects: nodes, pods with their nodes, and disruption budgets.
        workloads: the names of ReplicaSets with pods.
    """

    name: str
    objects: list[KubernetesObject] = field(default_factory=list)
    workloads: list[str] = field(default_factory=list)

    def asked(self, seed: int = 0) -> QuestionCluster:
        """Return the cluster for questions."""
        return QuestionCluster(self.objects, read_setup(), seed=seed)

    def fresh(self, seed: int = 0) -> Cluster:
        """Return a new cluster with the same objects, in which no pod is evicted."""
        return Cluster(self.objects, configuration=WITHOUT_EVICTIONS, seed=seed, record_level=RecordLevel.FULL)


def busy_clusters(seed: int, *, nodes: int = 7) -> Iterator[BusyCluster]:
    """Yield clusters without end; the same seed gives the same clusters."""
    number = 0
    while True:
        number += 1
        yield busy_cluster(random.Random(f"{seed}/{number}"), f"cluster {seed}/{number}", nodes)


def busy_cluster(draw: random.Random, name: str, nodes: int) -> BusyCluster:
    """Return a random cluster whose pods the scheduler has placed while some nodes were cordoned."""
    found = BusyCluster(name)
    names = [f"n{number}" for number in range(draw.randint(2, nodes))]
    made = [_node(draw, each) for each in names]
    closed = frozenset(draw.sample(names, draw.randint(0, len(names) - 1)))
    cluster = Cluster(
        [replace(node, spec=replace(node.spec, unschedulable=node.metadata.name in closed)) for node in made],
        configuration=WITHOUT_EVICTIONS,
        seed=draw.randint(0, 1000),
        record_level=RecordLevel.OFF,
    )
    for number in range(draw.randint(1, 4)):
        workload = f"w{number}"
        pod = _pod(draw, workload)
        opened = draw.random() < 0.5
        if opened:
            cluster.add(*made)
        for replica in range(draw.randint(1, 5)):
            metadata = replace(pod.metadata, name=f"{workload}-{replica}", uid=f"{workload}-{replica}")
            cluster.schedule(replace(pod, metadata=metadata))
    pods = [info.pod for info in cluster.state.pods.values()]
    running = [replace(pod, status=PodStatus(phase="Running")) for pod in pods]
    found.workloads = sorted({pod.metadata.name.partition("-")[0] for pod in running})
    found.objects = [*made, *running, *_daemons(draw, made)]
    found.objects += [_budget(draw, workload) for workload in found.workloads if draw.random() < 0.25]
    return found


def _node(draw: random.Random, name: str) -> Node:
    cpu = draw.choice(("2", "4", "4", "8"))
    node = make_node(name).capacity(cpu=cpu, memory=draw.choice(("4Gi", "8Gi", "16Gi")), pods=draw.choice(("6", "20")))
    node.zone(draw.choice(ZONES))
    if draw.random() < 0.15:
        node.taint("dedicated", "x", draw.choice(("NoSchedule", "PreferNoSchedule")))
    return node.label({"disk": draw.choice(("ssd", "hdd"))}).obj()


def _pod(draw: random.Random, workload: str) -> Pod:
    labels: Selector = {"app": workload}
    pod = make_pod(workload).label({"app": workload}).req(cpu=draw.choice(("250m", "500m", "1", "2")))
    pod.req(memory=draw.choice(("128Mi", "512Mi", "1Gi", "3Gi"))).priority(draw.choice((0, 0, 10)))
    if draw.random() < 0.85:
        pod.owner("ReplicaSet", workload)
    _constrain(draw, pod, labels)
    return pod.obj()


def _constrain(draw: random.Random, pod: PodBuilder, labels: Selector) -> None:
    chance = draw.random()
    if chance < 0.15:
        pod.spread(labels, draw.choice(("zone", "hostname")), max_skew=draw.choice((1, 2)))
    elif chance < 0.25:
        pod.spread(labels, "zone", soft=True)
    elif chance < 0.4:
        pod.pod_anti_affinity(labels, draw.choice(("zone", "hostname")))
    elif chance < 0.5:
        pod.pod_affinity(labels, "zone")
    elif chance < 0.6:
        pod.node_selector(disk="ssd")
    elif chance < 0.7:
        pod.toleration("dedicated")
    elif chance < 0.75:
        pod.host_port(8080)


def _daemons(draw: random.Random, nodes: list[Node]) -> list[Pod]:
    if draw.random() < 0.6:
        return []
    pod = make_pod("agent").label({"app": "agent"}).req(cpu="100m").owner("DaemonSet", "agent").obj()
    found = []
    for node in nodes:
        name = node.metadata.name
        spec = replace(pod.spec, node_name=name)
        metadata = replace(pod.metadata, name=f"agent-{name}", uid=f"agent-{name}")
        found.append(replace(pod, metadata=metadata, spec=spec, status=PodStatus(phase="Running")))
    return found


def _budget(draw: random.Random, workload: str) -> KubernetesObject:
    return decode(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": workload, "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": workload}}},
            "status": {"disruptionsAllowed": draw.choice((0, 1)), "expectedPods": 3},
        }
    )
