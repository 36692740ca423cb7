"""Pods of two clusters that correspond: pods with the same name, and replicas of a workload, whose names end in random suffixes."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.workloads import workload_of
from bayplan.cluster.owned_pods import is_daemon_pod
from bayplan.objects.pod import Pod

_INDEX = "batch.kubernetes.io/job-completion-index"


def matching_pods(a: QuestionCluster, b: QuestionCluster) -> dict[str, str]:
    """Return the key in cluster a of each pod of cluster b that corresponds to a pod with another name.

    Pods whose name only one cluster has are matched within their workload (and, for indexed Jobs, within their index).
    Such replicas are interchangeable, so first those on the same node are matched, then the others by their order: pods
    with a node first, then the oldest. Pods of StatefulSets have fixed names, so they are never matched.
    """
    ours, theirs = map(_unfinished, (a, b))
    rest_a = _by_workload((pod for key, pod in ours.items() if key not in theirs), a)
    rest_b = _by_workload((pod for key, pod in theirs.items() if key not in ours), b)
    found: dict[str, str] = {}
    for workload, pods in rest_b.items():
        candidates = rest_a.get(workload, [])
        by_node: dict[str, list[Pod]] = {}
        for pod in reversed(candidates):
            by_node.setdefault(pod.spec.node_name, []).append(pod)
        left: list[Pod] = []
        taken: set[str] = set()
        for pod in pods:
            same = by_node.get(pod.spec.node_name)
            if same:
                found[pod.key] = other = same.pop().key
                taken.add(other)
            else:
                left.append(pod)
        free = (pod for pod in candidates if pod.key not in taken)
        found.update((pod.key, replica.key) for pod, replica in zip(left, free, strict=False))
    return found


def _unfinished(cluster: QuestionCluster) -> dict[str, Pod]:
    placed = cluster.state.pods
    return {pod.key: pod for pod in cluster.all(Pod) if pod.key in placed or pod.key in cluster.waiting}


def _by_workload(pods: Iterable[Pod], cluster: QuestionCluster) -> dict[tuple[str, ...], list[Pod]]:
    """Return pods in their order, by namespace, workload and index; pods without a workload or with a fixed name are left out."""
    found: dict[tuple[str, ...], list[Pod]] = {}
    for pod in pods:
        owner = pod.metadata.controller()
        if owner is not None and owner.kind not in ("StatefulSet", "Node"):
            # A pod of a DaemonSet can't move to another node.
            index = pod.spec.node_name if is_daemon_pod(pod) else pod.metadata.labels.get(_INDEX, "")
            workload = (pod.metadata.namespace, *workload_of(pod, cluster), index)
            found.setdefault(workload, []).append(pod)
    for replicas in found.values():
        replicas.sort(key=lambda pod: (not pod.spec.node_name, pod.metadata.creation_timestamp or ""))
    return found
