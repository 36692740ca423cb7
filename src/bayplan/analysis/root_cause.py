"""Why a pod has no feasible node: one sentence, the same in all commands, reports and pages."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.analysis.cause_words import CauseWords
from bayplan.analysis.filter_matrix import LOAD, FilterMatrix
from bayplan.analysis.near_spellings import near_spelling
from bayplan.analysis.surroundings import NoSurroundings, Surroundings
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.requests import Amounts


class SoleFilter(msgspec.Struct, frozen=True):
    """A filter that alone rejects some nodes: without it, the pod would fit on them. `nodes` is their number."""

    plugin: str
    nodes: int


class RootCause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod fits on no node.

    Attributes:
        plugin: the filter that rejects every node and is the hardest to resolve; "" if no filter rejects every node.
        summary: the cause as text, identical for all pods with this cause.
        headline: the summary with details of this pod: how much the nearest node lacks, and which other filters exclude all
            nodes although the pod was rejected before they ran.
        everywhere: the filters that reject every node, the hardest to resolve first.
        sole: the filters that alone reject some nodes, those with the most nodes first.
        usable: the number of nodes that only load filters reject: the pod could use them if other pods left.
        nodes: the number of all nodes.
        is_misspelt: whether the pod perhaps refers to a label or an object by a misspelt name, which the summary corrects.
    """

    plugin: str
    summary: str
    headline: str = ""
    everywhere: list[str]
    sole: list[SoleFilter]
    usable: int
    nodes: int
    is_misspelt: bool = False


def root_cause(
    matrix: FilterMatrix,
    pod: Pod,
    nodes: Mapping[str, Node],
    requests: Amounts,
    surroundings: Surroundings | None = None,
) -> RootCause:
    """Return why a pod fits on no node.

    If a filter on node properties rejects every node, it is the cause. Otherwise several filters together exclude all
    nodes, and the cause explains the nodes that only filters on existing pods reject; if there are none, the nodes that
    the pod selects.

    Args:
        matrix: the matrix of the decision.
        pod: the waiting pod.
        nodes: the nodes of the cluster, by name.
        requests: the requests of the pod.
        surroundings: the rest of the cluster at that time, if known.
    """
    everywhere = matrix.everywhere
    words = CauseWords(matrix, pod, nodes, requests, surroundings)
    clause = words.leading(everywhere)
    parts = [clause.text]
    for each in everywhere[1:]:
        if each in matrix.whole or each not in LOAD:
            parts.append(words.of(each))
    also = words.also(parts)
    rest, also_now = matrix.without_whole(), also
    if rest is not None and all(each in matrix.whole or each in LOAD for each in everywhere):
        # Once the pod is no longer rejected as a whole, it still fits on no node. That differs between pods with this cause.
        also_now = words.also(
            [*parts, CauseWords(rest, pod, nodes, requests, surroundings).leading(rest.everywhere).text]
        )
    around = NoSurroundings() if surroundings is None else surroundings
    meant = near_spelling("; ".join(parts), pod, nodes.values(), around)
    sole = sorted(matrix.sole.items(), key=lambda each: -each[1])
    return RootCause(
        plugin=everywhere[0] if everywhere else "",
        summary="; ".join(part for part in (clause.text, clause.others, also, meant) if part),
        headline="; ".join(part for part in (clause.text, clause.nearest, clause.others, also_now, meant) if part),
        everywhere=list(everywhere),
        sole=[SoleFilter(plugin, count) for plugin, count in sole],
        usable=int(words.usable.sum()),
        nodes=len(matrix.nodes),
        is_misspelt=bool(meant),
    )
