"""What-if questions about random clusters, compared with clusters that are built in their changed form."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.answers.changes import Change, parse_change
from bayplan.answers.copies import replacement_of_victim
from bayplan.answers.displaced_pods import as_waiting, is_recreated_elsewhere
from bayplan.answers.trial import Trial
from bayplan.answers.what_if import MAX_ROUNDS, what_if
from bayplan.base.random_streams import RandomStream, RandomStreams
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.testing.builders import make_node, make_pod
from tests.answers.clusters import cluster_of

CLUSTERS = 100
WORKLOADS = {"web": "ReplicaSet", "db": "StatefulSet", "agent": "DaemonSet", "bare": ""}
CHANGES = ("drain", "remove-nodes", "cordon", "uncordon", "taint", "resize", "delete", "priority")


class RebuiltCluster:
    """The objects of a cluster, which changes edit directly.

    Attributes:
        nodes: the nodes by name.
        bound, waiting, displaced: the pods with a node, those without one, and those that lose it, by key.
    """

    def __init__(self, nodes: list[Node], pods: list[Pod]) -> None:
        self.nodes = {node.metadata.name: node for node in nodes}
        self.bound = {pod.key: pod for pod in pods if pod.spec.node_name}
        self.waiting = {pod.key: pod for pod in pods if not pod.spec.node_name}
        self.displaced: dict[str, Pod] = {}

    def apply(self, kind: str, target: str, value: str) -> None:
        if kind in ("delete", "priority"):
            self._change_workload(kind, target, value)
            return
        node = self.nodes[target]
        spec, status = node.spec, node.status
        if kind == "remove-nodes":
            del self.nodes[target]
        elif kind == "taint":
            taint = Taint(key="x", value="y", effect=value.partition(":")[2])
            spec = replace(spec, taints=(*(old for old in spec.taints if old != taint), taint))
        elif kind == "resize":
            amounts = {**status.allocatable, "cpu": value.removeprefix("cpu=")}
            status = replace(status, allocatable=amounts, capacity=amounts)
        else:
            spec = replace(spec, unschedulable=kind != "uncordon")
        if kind != "remove-nodes":
            self.nodes[target] = replace(node, spec=spec, status=status)
        for key in sorted(self.bound):
            pod = self.bound[key]
            if pod.spec.node_name != target or not (kind in ("remove-nodes", "drain") or value.endswith("NoExecute")):
                continue
            if is_recreated_elsewhere(pod):
                self.displaced[key] = pod
            if key in self.displaced or kind != "drain":
                del self.bound[key]

    def _change_workload(self, kind: str, name: str, value: str) -> None:
        for pods in (self.bound, self.waiting, self.displaced):
            for key in [key for key, pod in pods.items() if pod.metadata.labels["app"] == name]:
                if kind == "delete":
                    del pods[key]
                else:
                    pods[key] = replace(pods[key], spec=replace(pods[key].spec, priority=int(value)))

    def scheduled(self) -> dict[str, str]:
        """Return the nodes of the pods after everything was scheduled, and evicted pods were scheduled again."""
        cluster = cluster_of(*self.nodes.values(), *self.bound.values())
        with cluster.trial(preempts=True) as trial:
            trial.add_all([*self.waiting.values(), *map(as_waiting, self.displaced.values())])
            trial.settle()
            done = 0
            for last_round in range(MAX_ROUNDS - 1, -1, -1):
                evicted, done = trial.evictions[done:], len(trial.evictions)
                if not evicted:
                    break
                for each in evicted:
                    if each.pod not in trial.scheduler.pods:
                        trial.add_all(replacement_of_victim(trial.victims[each.pod], cluster))
                trial.settle(preempts=last_round > 0)
            trial.retry_outdated()
            return {key: trial.node_of(key) for key in trial.scheduler.pods}


def random_nodes(draw: RandomStream) -> list[Node]:
    found = []
    for number in range(draw.randint(2, 5)):
        made = make_node(f"n{number}").zone(draw.choice("abc"))
        made.capacity(cpu=str(draw.randint(1, 5)), memory=f"{draw.randint(3, 9)}Gi", pods=draw.choice(["3", "4", "10"]))
        if draw.random() < 0.15:
            made.taint("reserved")
        if draw.random() < 0.1:
            made.unschedulable()
        found.append(made.obj())
    return found


def random_pods(draw: RandomStream, nodes: list[Node]) -> list[Pod]:
    """Return pods of all workloads. A third of them wait, some with a nominated node."""
    found = []
    for number in range(draw.randint(0, 9)):
        name = draw.choice(sorted(WORKLOADS))
        made = make_pod(f"{name}-{number}").label(app=name).priority(draw.choice([0, 0, 5, -5]))
        made.req(cpu=draw.choice(["500m", "700m", "1", "2"]), memory=draw.choice(["1Gi", "1500Mi"]))
        made.created(f"2026-01-01T00:00:{number:02}Z")
        if WORKLOADS[name]:
            made.owner(WORKLOADS[name], name)
        node = draw.choice(nodes).metadata.name
        if draw.random() < 0.7:
            made.node(node).started(f"2026-01-01T00:01:{number:02}Z")
            if draw.random() < 0.1:
                made.terminating()
        elif draw.random() < 0.3:
            made.nominated(node)
        if draw.random() < 0.12:
            made.pod_anti_affinity({"app": draw.choice(["db", "web"])})
        if draw.random() < 0.1:
            made.spread({"app": name})
        found.append(made.obj())
    return found


def random_change(draw: RandomStream, nodes: list[Node], pods: list[Pod]) -> tuple[str, str, str]:
    """Return kind, target and value. Workloads with terminating pods are left out: only other pods belong to them."""
    ending = {pod.metadata.labels["app"] for pod in pods if pod.metadata.deletion_timestamp is not None}
    named = sorted({pod.metadata.labels["app"] for pod in pods} - ending - {"bare"})
    kind = draw.choice(CHANGES if named else CHANGES[:-2])
    target = draw.choice(named) if kind in ("delete", "priority") else draw.choice(nodes).metadata.name
    values = {
        "taint": ["x=y:NoSchedule", "x=y:NoExecute"],
        "resize": ["cpu=1", "cpu=3", "cpu=8"],
        "priority": ["-9", "9"],
    }
    return kind, target, draw.choice(values.get(kind, [""]))


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_changes_of_random_clusters_have_the_effect_of_a_changed_cluster(seed: int) -> None:
    draw = RandomStreams(seed).stream("what-if")
    nodes = random_nodes(draw)
    pods = random_pods(draw, nodes)
    rebuilt = RebuiltCluster(nodes, pods)
    changes: list[Change] = []
    for _ in range(draw.randint(1, 2)):
        kind, target, value = random_change(draw, nodes, pods)
        is_possible = target in rebuilt.nodes or kind in ("delete", "priority")
        is_done = any(change.kind == "delete" for change in changes)
        if is_possible and not is_done:
            rebuilt.apply(kind, target, value)
            changes.append(parse_change(f"{kind}={target}:{value}" if value else f"{kind}={target}"))
    found: dict[str, str] = {}

    def look(trial: Trial) -> None:
        found.update((key, trial.node_of(key)) for key in trial.scheduler.pods)

    what_if(cluster_of(*nodes, *pods), changes, after=look)
    assert found == rebuilt.scheduled(), changes
