"""Compare the nodes of the same pods in two clusters, or under two configurations, and find which plugin decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from bayplan.analysis.fragmentation import shapes_of_pods
from bayplan.analysis.units import format_first
from bayplan.answers.matching_pods import matching_pods
from bayplan.answers.pod_differences import SHOWN, Side, differences
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.what_if import MAX_EXPLAINED, Answer, answer_of, hypothetical_decisions, measures, side_of
from bayplan.base.counted_nouns import format_count
from bayplan.engine.records import RecordLevel
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, waiting_message
from bayplan.objects.requests import fit_requests, node_amounts

_NODE_FACTS: Mapping[str, Callable[[Node], object]] = {
    "different allocatable amounts": lambda node: node_amounts(node.status.allocatable),
    "different labels": lambda node: node.metadata.labels,
    # Neither the order of taints nor their time matters to the scheduler.
    "different taints": lambda node: (
        node.spec.unschedulable,
        sorted((taint.key, taint.value, taint.effect) for taint in node.spec.taints),
    ),
}


def compare(
    a: QuestionCluster,
    b: QuestionCluster,
    *,
    names: tuple[str, str] = ("a", "b"),
    explained: int = MAX_EXPLAINED,
) -> Answer:
    """Return how two clusters differ, pod by pod.

    Nodes without pods, and pods on the same node, may differ, too: in requests, allocatable amounts, labels and taints.
    Nodes that only one cluster has are differences.
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
    changed = [*_changed_pods(a, b, names_in_a), *_changed_nodes(a, b, names)]
    return replace(answer_of(names, before, after, rows, looked_at, texts), changed=changed)


def _changed_pods(a: QuestionCluster, b: QuestionCluster, names_in_a: Mapping[str, str]) -> list[str]:
    """Return the pods of both clusters with different requests, in words; [] if there are none."""
    pods = {names_in_a.get(pod.key, pod.key): pod for pod in b.all(Pod)}
    changed = [
        pod.key
        for pod in a.all(Pod)
        if (other := pods.get(pod.key)) is not None and fit_requests(pod) != fit_requests(other)
    ]
    return _counted(changed, "pod", ("has different requests", "have different requests"))


def _changed_nodes(a: QuestionCluster, b: QuestionCluster, names: tuple[str, str]) -> list[str]:
    """Return the nodes that only one cluster has, or that differ in what the scheduler reads of them, in words; [] if none."""
    found: list[str] = []
    for here, there, name in ((a, b, names[0]), (b, a, names[1])):
        alone = [node.key for node in here.all(Node) if there.get(Node, node.key) is None]
        found += _counted(alone, "node", (f"is only in {name}", f"are only in {name}"))
    pairs = [(node, other) for node in a.all(Node) if (other := b.get(Node, node.key)) is not None]
    for what, read in _NODE_FACTS.items():
        changed = [node.key for node, other in pairs if read(node) != read(other)]
        found += _counted(changed, "node", (f"has {what}", f"have {what}"))
    return found


def _counted(names: Sequence[str], noun: str, verbs: tuple[str, str]) -> list[str]:
    """Return a sentence about objects; [] without any. `verbs`: what is true of one, and of several."""
    if not names:
        return []
    shown = format_first(sorted(names), SHOWN)
    return [f"{format_count(len(names), noun)} {verbs[len(names) > 1]}: {shown}"]


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
