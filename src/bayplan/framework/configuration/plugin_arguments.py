"""The typed arguments of the in-tree plugins (kubescheduler.config.k8s.io/v1, ``pluginConfig``).

Plugins always receive arguments that are defaulted and valid. Durations are in nanoseconds; scores in shapes have
upstream's scale of 0 to 10.
"""

from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias, get_args

from bayplan.base.errors import InvariantError
from bayplan.framework.configuration.schema import ALWAYS, EMPTY_IS_UNSET, DurationNs, Scalar, Struct, fields_of
from bayplan.objects.affinity import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from bayplan.objects.meta import Int32, Int64, LabelSelectorRequirement

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"

_DEFAULTING_TYPE: Final = Scalar(
    "string", "v1.PodTopologySpreadConstraintsDefaulting", "config.PodTopologySpreadConstraintsDefaulting"
)


_Text: TypeAlias = Annotated[str, ALWAYS]
_Policy: TypeAlias = Annotated[str, Scalar("string", "v1.NodeInclusionPolicy")]

# Types of the Kubernetes API that occur in arguments; plugins compile them like those of a pod.
fields_of(
    NodeSelectorRequirement, key=_Text, operator=Annotated[str, Scalar("string", "v1.NodeSelectorOperator"), ALWAYS]
)
fields_of(NodeSelector, node_selector_terms=Annotated[tuple[NodeSelectorTerm, ...], ALWAYS])
fields_of(PreferredSchedulingTerm, weight=Annotated[Int32, ALWAYS])
fields_of(
    LabelSelectorRequirement, key=_Text, operator=Annotated[str, Scalar("string", "v1.LabelSelectorOperator"), ALWAYS]
)
fields_of(
    TopologySpreadConstraint,
    max_skew=Annotated[Int32, ALWAYS],
    topology_key=_Text,
    when_unsatisfiable=Annotated[str, Scalar("string", "v1.UnsatisfiableConstraintAction"), ALWAYS],
    node_affinity_policy=_Policy | None,
    node_taints_policy=_Policy | None,
)


class ResourceSpec(Struct, frozen=True):
    """A resource to include in a score, with its weight."""

    name: Annotated[str, ALWAYS] = ""
    weight: Annotated[Int64, EMPTY_IS_UNSET] = 1


class UtilizationShapePoint(Struct, frozen=True):
    """A point of a piecewise linear function: utilization in percent, score from 0 to 10."""

    utilization: Annotated[Int32, ALWAYS] = 0
    score: Annotated[Int32, ALWAYS] = 0


class RequestedToCapacityRatioParam(Struct, frozen=True):
    """The arguments of the strategy RequestedToCapacityRatio: its function from utilization to score."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Struct, frozen=True):
    """The scoring strategy of NodeResourcesFit: ``type`` is one of the three strategies."""

    type: Annotated[str, Scalar("string", "v1.ScoringStrategyType", "config.ScoringStrategyType")] = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class DefaultPreemptionArgs(Struct, frozen=True):
    """The arguments of DefaultPreemption: the minimum number of candidates that it looks for."""

    min_candidate_nodes_percentage: Annotated[Int32, ALWAYS] = 10
    min_candidate_nodes_absolute: Annotated[Int32, ALWAYS] = 100


class DynamicResourcesArgs(Struct, frozen=True):
    """The arguments of DynamicResources: its time limits; None if a feature gate disables the limit."""

    filter_timeout_ns: Annotated[DurationNs | None, ALWAYS] = None
    binding_timeout_ns: DurationNs | None = None


class InterPodAffinityArgs(Struct, frozen=True):
    """The arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Annotated[Int32, ALWAYS] = 1
    ignore_preferred_terms_of_existing_pods: Annotated[bool, ALWAYS] = False


class NodeAffinityArgs(Struct, frozen=True):
    """The arguments of NodeAffinity: an affinity that applies to all pods of the profile, in addition to their own."""

    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(Struct, frozen=True):
    """The arguments of NodeResourcesBalancedAllocation: the resources to balance; every weight is 1."""

    resources: tuple[ResourceSpec, ...] = ()


class NodeResourcesFitArgs(Struct, frozen=True):
    """The arguments of NodeResourcesFit: the resources that it ignores, and its scoring strategy."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None

    @property
    def strategy(self) -> ScoringStrategy:
        """Return the scoring strategy of valid arguments."""
        if self.scoring_strategy is None:
            raise InvariantError("NodeResourcesFitArgs without scoringStrategy passed the checks")
        return self.scoring_strategy


class PodTopologySpreadArgs(Struct, frozen=True):
    """The arguments of PodTopologySpread: the constraints of pods without any: the system's defaults, or a list."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Annotated[str, _DEFAULTING_TYPE, EMPTY_IS_UNSET] = SYSTEM_DEFAULTING


class VolumeBindingArgs(Struct, frozen=True):
    """The arguments of VolumeBinding; `shape` scores storage capacity (feature gate StorageCapacityScoring)."""

    bind_timeout_seconds: Annotated[Int64, ALWAYS] = 600
    shape: tuple[UtilizationShapePoint, ...] = ()


PluginArguments: TypeAlias = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)

ARGUMENT_TYPES: Final[Mapping[str, type[PluginArguments]]] = {
    argument_type.__name__: argument_type for argument_type in get_args(PluginArguments)
}
"""The argument types by their kind: the name of the plugin followed by ``Args``."""


def argument_type_of(plugin: str) -> type[PluginArguments] | None:
    """Return the type of a plugin's arguments; None if the plugin has no known argument type."""
    return ARGUMENT_TYPES.get(plugin + "Args")
