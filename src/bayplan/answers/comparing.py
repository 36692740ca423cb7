"""Compare the nodes of the same pods in two clusters, or under two configurations, and find which plugin decided."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.analysis.fragmentation import shapes_of_pods
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.what_if import (
    MAX_EXPLAINED,
    Answer,
    Side,
    answer_of,
    differences,
    hypothetical_decisions,
    measures,
    side_of,
)
from bayplan.engine.records import RecordLevel
from bayplan.objects.pod import Pod, waiting_message


def compare(
    a: QuestionCluster,
    b: QuestionCluster,
    *,
    names: tuple[str, str] = ("a", "b"),
    explained: int = MAX_EXPLAINED,
) -> Answer:
    """Return how two clusters differ, pod by pod. Pods with the same namespace and name are compared.

    For pods on different nodes, both schedulers decide again on their current clusters, to find the first plugin
    whose results for the two nodes differ.

    Args:
        a, b: the clusters.
        names: the names of the clusters.
        explained: the maximum number of moved pods for which to find the decisive plugin.
    """
    a_nodes, b_nodes = (_nodes(cluster) for cluster in (a, b))
    moved = [key for key, node in a_nodes.items() if node and b_nodes.get(key) not in (None, "", node)]
    sides = [_side(cluster, moved[:explained]) for cluster in (a, b)]
    rows, looked_at = differences(a, sides[0], sides[1], {}, b)
    texts = [
        f"to find the decisive plugin, up to {explained:,} moved pods are scheduled again, one at a time, in both clusters"
    ]
    return answer_of(names, sides[0], sides[1], rows, looked_at, texts)


def _nodes(cluster: QuestionCluster) -> dict[str, str]:
    found = dict.fromkeys(cluster.waiting, "")
    found.update((key, cluster.node_of(key)) for key in cluster.state.pods)
    return found


def _side(cluster: QuestionCluster, pods: Sequence[str]) -> Side:
    with cluster.trial(preempts=False, records=RecordLevel.FULL) as trial:
        side = side_of(trial)
        side.nodes = _nodes(cluster)
        side.messages |= {key: waiting_message(pod) for key, pod in cluster.waiting.items()}
        side.measures = measures(trial, side, shapes_of_pods(cluster.all(Pod)))
        hypothetical_decisions(trial, side, pods)
    return side
