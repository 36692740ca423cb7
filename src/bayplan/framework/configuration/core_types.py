"""Wire descriptions of the Kubernetes API types used in a configuration.

The types themselves are those of `bayplan.objects`; plugins compile them like those of a pod.
"""

from bayplan.framework.configuration.schema import (
    INT32,
    STRING,
    Nested,
    Pointer,
    Slice,
    StringMap,
    describe,
    named_string,
    wire,
)
from bayplan.objects.affinity import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from bayplan.objects.meta import LabelSelector, LabelSelectorRequirement


def describe_core_types() -> None:
    """Register the types with the schema. Called once, when the plugins' arguments are defined."""
    describe(
        NodeSelectorRequirement,
        key=wire("key", STRING),
        operator=wire("operator", named_string("v1.NodeSelectorOperator")),
        values=wire("values", Slice(STRING), omit_empty=True),
    )
    requirements = Slice(Nested(NodeSelectorRequirement))
    describe(
        NodeSelectorTerm,
        match_expressions=wire("matchExpressions", requirements, omit_empty=True),
        match_fields=wire("matchFields", requirements, omit_empty=True),
    )
    describe(NodeSelector, node_selector_terms=wire("nodeSelectorTerms", Slice(Nested(NodeSelectorTerm))))
    describe(
        PreferredSchedulingTerm,
        weight=wire("weight", INT32),
        preference=wire("preference", Nested(NodeSelectorTerm)),
    )
    describe(
        NodeAffinity,
        required_during_scheduling_ignored_during_execution=wire(
            "requiredDuringSchedulingIgnoredDuringExecution",
            Pointer(Nested(NodeSelector), everywhere=True),
            omit_empty=True,
        ),
        preferred_during_scheduling_ignored_during_execution=wire(
            "preferredDuringSchedulingIgnoredDuringExecution",
            Slice(Nested(PreferredSchedulingTerm)),
            omit_empty=True,
        ),
    )
    describe(
        LabelSelectorRequirement,
        key=wire("key", STRING),
        operator=wire("operator", named_string("v1.LabelSelectorOperator")),
        values=wire("values", Slice(STRING), omit_empty=True),
    )
    describe(
        LabelSelector,
        match_labels=wire("matchLabels", StringMap(), omit_empty=True),
        match_expressions=wire("matchExpressions", Slice(Nested(LabelSelectorRequirement)), omit_empty=True),
    )
    inclusion_policy = Pointer(named_string("v1.NodeInclusionPolicy"), everywhere=True)
    describe(
        TopologySpreadConstraint,
        max_skew=wire("maxSkew", INT32),
        topology_key=wire("topologyKey", STRING),
        when_unsatisfiable=wire("whenUnsatisfiable", named_string("v1.UnsatisfiableConstraintAction")),
        label_selector=wire("labelSelector", Pointer(Nested(LabelSelector), everywhere=True), omit_empty=True),
        min_domains=wire("minDomains", Pointer(INT32, everywhere=True), omit_empty=True),
        node_affinity_policy=wire("nodeAffinityPolicy", inclusion_policy, omit_empty=True),
        node_taints_policy=wire("nodeTaintsPolicy", inclusion_policy, omit_empty=True),
        match_label_keys=wire("matchLabelKeys", Slice(STRING), omit_empty=True),
    )
