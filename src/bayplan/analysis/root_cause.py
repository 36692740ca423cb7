"""Why a pod has no feasible node: the one sentence that all commands, reports and pages show."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.analysis.cause_words import CauseWords
from bayplan.analysis.filter_matrix import LOAD, FilterMatrix
from bayplan.analysis.surroundings import Surroundings
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.requests import Amounts


class SoleFilter(msgspec.Struct, frozen=True):
    """A filter that is the only one to reject some nodes: without it, the pod would fit there."""

    plugin: str
    nodes: int


class RootCause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod fits on no node.

    Attributes:
        plugin: the filter that leads; "" if no single one rejects every node.
        sentence: why, in words that are the same for all pods that wait for this reason.
        headline: the sentence, with the shortage of the nearest node if resources are short.
        everywhere: the filters that reject every node, the hardest to resolve first.
        sole: the filters that are the only ones to reject some nodes, those with the most nodes first.
        usable: the number of nodes that only filters about their pods reject: the pod may use them once there is room.
        nodes: the number of all nodes.
    """

    plugin: str
    sentence: str
    headline: str = ""
    everywhere: list[str]
    sole: list[SoleFilter]
    usable: int
    nodes: int


def root_cause(
    matrix: FilterMatrix,
    pod: Pod,
    nodes: Mapping[str, Node],
    requests: Amounts,
    surroundings: Surroundings | None = None,
) -> RootCause:
    """Return why a pod fits on no node.

    If a filter on node properties rejects every node, it is the cause. Otherwise filters exclude the nodes together: then the
    nodes that the pod may use count (which only filters about their pods reject), or else those that it selects.

    Args:
        matrix: the matrix of the decision.
        pod: the pod that waits.
        nodes: the nodes of the cluster, by name.
        requests: the requests of the pod.
        surroundings: the cluster at that time, if it is known.
    """
    everywhere = matrix.everywhere
    words = CauseWords(matrix, pod, nodes, requests, surroundings)
    clause = words.leading(everywhere)
    parts = [clause.text]
    for each in everywhere[1:]:
        if each in matrix.whole or each not in LOAD:
            parts.append(words.of(each))
    also = words.also(parts)
    sole = sorted(matrix.sole.items(), key=lambda each: -each[1])
    return RootCause(
        plugin=everywhere[0] if everywhere else "",
        sentence="; ".join(part for part in (clause.text, clause.others, also) if part),
        headline="; ".join(part for part in (clause.text, clause.nearest, clause.others, also) if part),
        everywhere=list(everywhere),
        sole=[SoleFilter(plugin, count) for plugin, count in sole],
        usable=int(words.usable.sum()),
        nodes=len(matrix.nodes),
    )
