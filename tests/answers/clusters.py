"""Small clusters for tests of answers."""

from __future__ import annotations

from bayplan.answers.question_cluster import QuestionCluster
from bayplan.app.scheduler_setup import read_setup
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.testing.builders import PodBuilder, make_node, make_pod


def cluster_of(*items: KubernetesObject, seed: int = 0) -> QuestionCluster:
    """Return the cluster of these objects, with the default scheduler."""
    return QuestionCluster(items, read_setup(), seed=seed)


def node(name: str, *, zone: str = "a", cpu: str = "4", memory: str = "8Gi", pool: str = "") -> Node:
    """Return a node."""
    made = make_node(name).capacity(cpu=cpu, memory=memory, pods="20").zone(zone)
    return (made.label({"pool": pool}) if pool else made).obj()


def running(
    name: str, on: str, *, cpu: str = "1", owner: str = "web", kind: str = "ReplicaSet", priority: int = 0
) -> PodBuilder:
    """Return the builder of a pod that runs on a node."""
    made = make_pod(name).req(cpu=cpu, memory="256Mi").node(on).label({"app": owner}).priority(priority)
    made.started("2026-01-01T00:00:00Z")
    return made.owner(kind, owner) if kind else made


def waiting(name: str, *, cpu: str = "1", owner: str = "") -> Pod:
    """Return a pod without a node."""
    made = make_pod(name).req(cpu=cpu, memory="256Mi").label({"app": owner or name}).priority(0)
    return (made.owner("ReplicaSet", owner) if owner else made).obj()
