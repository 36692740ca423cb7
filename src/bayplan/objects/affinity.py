"""Constraints on the placement of pods: node selectors, affinity, tolerations, topology spreading."""

from bayplan.objects.meta import ApiStruct, Int32, Int64, LabelSelector


class NodeSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    """One expression over a node's labels or fields. Operator: In, NotIn, Exists, DoesNotExist, Gt, Lt.

    `values` is None if omitted and () if present but empty: upstream's errors show null for the former, [] for the
    latter.
    """

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(ApiStruct, frozen=True, kw_only=True):
    """Expressions that must all hold. A term without expressions matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct, frozen=True, kw_only=True):
    """Terms, at least one of which must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(ApiStruct, frozen=True, kw_only=True):
    """A node term that adds its weight (1 to 100) to the score of a node that matches."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiStruct, frozen=True, kw_only=True):
    """The node affinity of a pod. As upstream, an empty list of preferred terms differs from an omitted one."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] | None = None


class PodAffinityTerm(ApiStruct, frozen=True, kw_only=True):
    """A term that selects pods by labels and namespaces. Nodes with the same value of `topology_key` form a domain."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(ApiStruct, frozen=True, kw_only=True):
    """A pod affinity term with a weight of 1 to 100."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiStruct, frozen=True, kw_only=True):
    """The terms of a pod that say which pods it should be near."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(ApiStruct, frozen=True, kw_only=True):
    """The terms of a pod that say which pods it should be away from."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(ApiStruct, frozen=True, kw_only=True):
    """The node affinity, pod affinity and pod anti-affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(ApiStruct, frozen=True, kw_only=True):
    """The taints that a pod tolerates. Operator: Equal (the default), Exists, Gt, Lt."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(ApiStruct, frozen=True, kw_only=True):
    """A constraint on how evenly matching pods are spread over the values of a node label."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()
