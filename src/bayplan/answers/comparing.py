"""Compare the nodes of the same pods in two clusters, or under two configurations, and find which plugin decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from bayplan.analysis.fragmentation import shapes_of_pods
from bayplan.answers.matching_pods import matching_pods
from bayplan.answers.pod_differences import Side, differences
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.what_if import MAX_EXPLAINED, Answer, answer_of, hypothetical_decisions, measures, side_of
from bayplan.base.counted_nouns import format_count
from bayplan.engine.records import RecordLevel
from bayplan.objects.pod import Pod, waiting_message


def compare(
    a: QuestionCluster,
    b: QuestionCluster,
    *,
    names: tuple[str, str] = ("a", "b"),
    explained: int = MAX_EXPLAINED,
) -> Answer:
    """Return how two clusters differ, pod by pod.

    Pods with the same namespace and name are compared, and replicas of a workload with different names, which the answer
    shows with their name in `a`; see `bayplan.answers.matching_pods`.

    For pods on different nodes, both schedulers decide again on their current clusters, to find the first plugin
    whose results for the two nodes differ.

    Args:
        a, b: the clusters.
        names: the names of the clusters.
        explained: the maximum number of moved pods for which to find the decisive plugin.
    """
    names_in_a = matching_pods(a, b)
    names_in_b = {key: other for other, key in names_in_a.items()}
    a_nodes = _nodes(a)
    b_nodes = {names_in_a.get(key, key): node for key, node in _nodes(b).items()}
    moved = [key for key, node in a_nodes.items() if node and b_nodes.get(key) not in (None, "", node)][:explained]
    before = _side(a, moved)
    after = _renamed(_side(b, [names_in_b.get(key, key) for key in moved]), names_in_a, names_in_b)
    rows, looked_at = differences(a, before, after, {}, b)
    texts = [
        f"to find the decisive plugin, up to {explained:,} moved pods are scheduled again, one at a time, in both clusters"
    ]
    if names_in_a:
        count = format_count(len(names_in_a), "pod")
        texts.append(
            f"{count} of workloads {'has a different name' if len(names_in_a) == 1 else 'have different names'} in {names[1]}: "
            "replicas on the same node are compared, then the others, those with a node first, in the order of their creation"
        )
    return answer_of(names, before, after, rows, looked_at, texts)


def _renamed(side: Side, new_names: Mapping[str, str], old_names: Mapping[str, str]) -> Side:
    """Return a side with other names for some pods. `new_names`, `old_names`: the new name by the old one, and the reverse."""
    return replace(
        side,
        nodes={new_names.get(key, key): node for key, node in side.nodes.items()},
        messages={new_names.get(key, key): text for key, text in side.messages.items()},
        decision_of=lambda key: side.decision_of(old_names.get(key, key)),
    )


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
