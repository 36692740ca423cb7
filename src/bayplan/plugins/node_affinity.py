"""NodeAffinity: rejects nodes that the node selector or required affinity excludes, and scores preferred affinity.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#affinity-and-anti-affinity.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from bayplan.base.errors import ConfigurationError
from bayplan.framework.configuration.plugin_arguments import NodeAffinityArgs
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, HintAnswer, QueueingHint, hint
from bayplan.framework.plugin import (
    PROCEED,
    FilterPlugin,
    Handle,
    NormalizePlugin,
    Params,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
)
from bayplan.framework.rule import ScoreRule
from bayplan.framework.status import SKIP, UNRESOLVABLE_BIT, Status, error, unresolvable
from bayplan.objects.affinity import NodeSelector
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import (
    CompiledNodeSelector,
    CompiledPreferredTerms,
    RequiredNodeAffinity,
    compile_node_selector,
    compile_preferred_terms,
    compile_required_node_affinity,
)
from bayplan.plugins.normalize_score import StretchedArrayRule
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_matcher import matches_selector, matches_term, matching_rows
from bayplan.state.views import Rows

REASON_POD = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"
NOT_THE_PODS = 1 | UNRESOLVABLE_BIT
NOT_ENFORCED = 2 | UNRESOLVABLE_BIT


class NodeAffinitySpec(Struct, frozen=True, eq=False):
    """A pod's requirements on the labels and the name of its node.

    Attributes:
        key: equal for pods with equivalent requirements.
        skips_filter: whether the pod has neither a node selector, not even an empty one, nor required affinity.
        required: the node selector and the required affinity.
        node_names: the only node names that the required terms allow; None if a term is not restricted to names.
        preferred: the preferred affinity, or None.
    """

    key: Hashable
    skips_filter: bool
    required: RequiredNodeAffinity
    node_names: frozenset[str] | None
    preferred: CompiledPreferredTerms | None


class NodeAffinity(
    PreFilterPlugin[NodeAffinitySpec],
    FilterPlugin[NodeAffinitySpec],
    PreScorePlugin[NodeAffinitySpec],
    NormalizePlugin[NodeAffinitySpec],
):
    """Rejects nodes by their labels and names, and scores nodes by the terms that a pod prefers.

    Attributes:
        added_required: the required affinity that the plugin's arguments add to all pods of the profile, or None.
    """

    name = "NodeAffinity"
    texts = MappingProxyType({NOT_THE_PODS: REASON_POD, NOT_ENFORCED: REASON_ENFORCED})
    reads = Reads.NODES
    pre_reads = Reads.NOTHING
    reads_feasible = False
    compiles_requests = False
    compiles_volumes = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        added = arguments.added_affinity if isinstance(arguments, NodeAffinityArgs) else None
        self._added_selector: CompiledNodeSelector | None = None
        self._added_preferred: CompiledPreferredTerms | None = None
        self.added_required: NodeSelector | None = None
        if added is None:
            return
        required = self.added_required = added.required_during_scheduling_ignored_during_execution
        if required is not None:
            self._added_selector = compile_node_selector(required)
            _raise_for("required", self._added_selector.error)
        preferred = added.preferred_during_scheduling_ignored_during_execution
        if preferred:
            self._added_preferred = compile_preferred_terms(preferred)
            _raise_for("preferred", self._added_preferred.error)

    def compile(self, pod: Pod, cluster: ClusterState) -> NodeAffinitySpec:
        """Compile the node selector and the affinity terms."""
        required = compile_required_node_affinity(pod)
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
        selector = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
        terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else None
        preferred = compile_preferred_terms(terms) if terms is not None else None
        skips = selector is None and pod.spec.node_selector is None
        names = _node_names(selector) if selector is not None else None
        preferred_key = preferred and (tuple((weight, term.key) for weight, term in preferred.terms), preferred.error)
        return NodeAffinitySpec((skips, required.key, names, preferred_key), skips, required, names, preferred)

    def pre_filter(self, spec: NodeAffinitySpec, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return SKIP if nothing is required, else the node names that the required terms allow."""
        if spec.skips_filter and self._added_selector is None:
            return SKIP
        if spec.node_names is None:
            return PROCEED
        if not spec.node_names:
            return unresolvable(REASON_CONFLICT)
        return PreFilterResult(node_names=spec.node_names)

    def filter(self, spec: NodeAffinitySpec, params: Params | None, rows: Rows) -> Codes:
        """Check the pod's required terms; the affinity from the plugin's arguments takes precedence."""
        codes = rows.verdicts((~matching_rows(spec.required, rows), NOT_THE_PODS))
        if self._added_selector is not None:
            codes[~matches_selector(self._added_selector, rows)] = NOT_ENFORCED
        return codes

    def pre_score(self, spec: NodeAffinitySpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return SKIP if nothing is preferred; an Error, which ends the cycle, if a term is invalid."""
        if spec.preferred is None:
            return SKIP if self._added_preferred is None else ()
        return error(spec.preferred.error) if spec.preferred.error else ()

    def score_error(self, spec: NodeAffinitySpec, params: Params | None) -> str:
        """Return the error of the preferred terms if PreScore, which would report it, is disabled."""
        return spec.preferred.error if params is None and spec.preferred is not None else ""

    def score_rule(self, spec: NodeAffinitySpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule with which the largest sum becomes 100."""
        return StretchedArrayRule(self, spec, cluster)

    def score(self, spec: NodeAffinitySpec, params: Params | None, rows: Rows) -> Ints:
        """Sum the weights of the preferred terms that match."""
        scores = np.zeros(len(rows), dtype=np.int64)
        for preferred in (self._added_preferred, spec.preferred):
            for weight, term in preferred.terms if preferred is not None else ():
                scores += weight * matches_term(term, rows)
        return scores

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register nodes that are added or relabelled."""
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return ((node, self.is_schedulable_after_node_change),)

    @hint(Node, new=True)
    def is_schedulable_after_node_change(self, pod: Pod, before: Node | None, after: Node) -> HintAnswer:
        """Queue the pod if the node matches its requirements and did not match before."""
        if self._added_selector is not None and not self._added_selector.matches(
            after.metadata.labels, after.metadata.name
        ):
            return HintAnswer.SKIP
        required = compile_required_node_affinity(pod)
        answer = _match(required, after)
        if answer is not HintAnswer.QUEUE or before is None:
            return answer
        earlier = _match(required, before)
        if earlier is HintAnswer.ERROR:
            return earlier
        return HintAnswer.SKIP if earlier is HintAnswer.QUEUE else HintAnswer.QUEUE


def _match(required: RequiredNodeAffinity, node: Node) -> HintAnswer:
    """Return QUEUE if a node matches, SKIP if not, ERROR if a selector without matching terms has an invalid term."""
    labels, name = node.metadata.labels, node.metadata.name
    if required.labels is not None and not required.labels.matches(labels):
        return HintAnswer.SKIP
    selector = required.node_selector
    if selector is None or selector.matches(labels, name):
        return HintAnswer.QUEUE
    return HintAnswer.ERROR if selector.error else HintAnswer.SKIP


def _node_names(selector: NodeSelector) -> frozenset[str] | None:
    """Return the only node names that the alternative terms allow; None if a term does not require names."""
    names: set[str] = set()
    for term in selector.node_selector_terms:
        allowed = [
            frozenset(requirement.values or ())
            for requirement in term.match_fields
            if requirement.key == "metadata.name" and requirement.operator == "In"
        ]
        if not allowed:
            return None
        names |= frozenset.intersection(*allowed)
    return frozenset(names) if selector.node_selector_terms else None


def _raise_for(kind: str, problem: str) -> None:
    if problem:
        raise ConfigurationError(f"parsing addedAffinity.{kind}DuringSchedulingIgnoredDuringExecution: {problem}")
