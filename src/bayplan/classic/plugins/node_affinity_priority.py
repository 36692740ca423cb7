"""NodeAffinityPriority: prefers nodes that match the terms of a pod's preferred node affinity, by their weights."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayplan.classic.plugins.label_selectors import node_requirement_error
from bayplan.classic.plugins.priority import FailingPriority, ReducedScoreRule
from bayplan.framework.plugin import Reads
from bayplan.framework.rule import ScoreRule
from bayplan.objects.affinity import PreferredSchedulingTerm
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import wrap_int64
from bayplan.objects.selectors import Requirement, Selector
from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_matcher import matches_labels
from bayplan.state.views import Rows


@dataclass(frozen=True, slots=True)
class PreferredSpec:
    """The preferred terms.

    Attributes:
        terms: weight and label selector of each term with label requirements; field requirements are ignored.
        error: upstream's error about the first invalid term, with which every node fails, or "".
    """

    key: Hashable
    terms: tuple[tuple[int, Selector], ...] = field(compare=False)
    error: str = field(compare=False)


class NodeAffinityPriority(FailingPriority[PreferredSpec]):
    """Scores the sum of the weights of the preferred terms that match."""

    name = "NodeAffinityPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> PreferredSpec:
        """Compile the terms."""
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
        preferred = affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else None
        terms, error = [], ""
        for term in preferred or ():
            if not term.weight:
                continue
            error = _error(term)
            if error:
                break
            expressions = term.preference.match_expressions
            if expressions:
                # The operator is valid: `_error` has checked it.
                found = [Requirement(item.key, item.operator, item.values or ()) for item in expressions]  # type: ignore[arg-type]
                terms.append((wrap_int64(term.weight), Selector(found)))
        return PreferredSpec((tuple((weight, terms_of.key) for weight, terms_of in terms), error), tuple(terms), error)

    def map_error(self, spec: PreferredSpec) -> str:
        """Return why no node can be scored, or ""."""
        return spec.error

    def score_rule(self, spec: PreferredSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that sums the weights of the preferred terms."""
        return PreferredTerms(spec.terms, cluster)


class PreferredTerms(ReducedScoreRule):
    """Scores the sum of the weights of the terms that match."""

    def __init__(self, terms: tuple[tuple[int, Selector], ...], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._terms, self._cluster = terms, cluster
        self._sums: Any = np.zeros(0, dtype=np.int64)

    def bind(self) -> None:
        """Sum the weights of the terms that the current nodes match."""
        rows = Rows(self._cluster)
        sums = np.zeros(len(rows), dtype=np.int64)
        for weight, selector in self._terms:
            sums += weight * matches_labels(selector, rows)
        self._sums = sums

    def score(self, row: int) -> int:
        """Return the sum of the weights of the matching terms."""
        return self._sums[row]


def _error(term: PreferredSchedulingTerm) -> str:
    for item in term.preference.match_expressions:
        problem = node_requirement_error(item.key, item.operator, item.values or ())
        if problem:
            return problem
    return ""
