"""The typed arguments of the in-tree plugins (kubescheduler.config.k8s.io/v1, ``pluginConfig``).

Arguments that a plugin gets are always defaulted and valid. Durations are nanoseconds; shapes keep upstream's scale of 0 to 10.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from bayplan.base.errors import InvariantError
from bayplan.framework.configuration.core_types import describe_core_types
from bayplan.framework.configuration.schema import (
    BOOL,
    INT32,
    INT64,
    STRING,
    Duration,
    Nested,
    Pointer,
    Slice,
    Struct,
    named_string,
    wire,
)
from bayplan.objects.affinity import NodeAffinity, TopologySpreadConstraint

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"

describe_core_types()


@dataclass(frozen=True, slots=True)
class ResourceSpec(Struct):
    """A resource that counts for a score, and how much."""

    name: str = field(default="", metadata=wire("name", STRING))
    weight: int = field(default=0, metadata=wire("weight", INT64, omit_empty=True))


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint(Struct):
    """A point of a piecewise linear function: utilization in percent, score of 0 to 10."""

    utilization: int = field(default=0, metadata=wire("utilization", INT32))
    score: int = field(default=0, metadata=wire("score", INT32))


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatioParam(Struct):
    """The function of the strategy RequestedToCapacityRatio."""

    shape: tuple[UtilizationShapePoint, ...] = field(
        default=(), metadata=wire("shape", Slice(Nested(UtilizationShapePoint)), omit_empty=True)
    )


@dataclass(frozen=True, slots=True)
class ScoringStrategy(Struct):
    """How NodeResourcesFit scores: ``type`` is one of the three strategies."""

    type: str = field(
        default="",
        metadata=wire("type", named_string("v1.ScoringStrategyType", "config.ScoringStrategyType"), omit_empty=True),
    )
    resources: tuple[ResourceSpec, ...] = field(
        default=(), metadata=wire("resources", Slice(Nested(ResourceSpec)), omit_empty=True)
    )
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = field(
        default=None,
        metadata=wire(
            "requestedToCapacityRatio",
            Pointer(Nested(RequestedToCapacityRatioParam), everywhere=True),
            omit_empty=True,
        ),
    )


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs(Struct):
    """How many candidates DefaultPreemption looks at, at least."""

    min_candidate_nodes_percentage: int = field(
        default=0, metadata=wire("minCandidateNodesPercentage", Pointer(INT32), nil=10, omit_empty=True)
    )
    min_candidate_nodes_absolute: int = field(
        default=0, metadata=wire("minCandidateNodesAbsolute", Pointer(INT32), nil=100, omit_empty=True)
    )


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs(Struct):
    """Time limits of DynamicResources; None: the feature gates leave no such limit."""

    filter_timeout_ns: int | None = field(
        default=None, metadata=wire("filterTimeout", Pointer(Duration(), everywhere=True))
    )
    binding_timeout_ns: int | None = field(
        default=None, metadata=wire("bindingTimeout", Pointer(Duration(), everywhere=True), omit_empty=True)
    )


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs(Struct):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: int = field(
        default=0, metadata=wire("hardPodAffinityWeight", Pointer(INT32), nil=1, omit_empty=True)
    )
    ignore_preferred_terms_of_existing_pods: bool = field(
        default=False, metadata=wire("ignorePreferredTermsOfExistingPods", BOOL)
    )


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs(Struct):
    """An affinity that holds for all pods of the profile, in addition to their own."""

    added_affinity: NodeAffinity | None = field(
        default=None,
        metadata=wire("addedAffinity", Pointer(Nested(NodeAffinity), everywhere=True), omit_empty=True),
    )


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs(Struct):
    """The resources that are to be used evenly; every weight is 1."""

    resources: tuple[ResourceSpec, ...] = field(
        default=(), metadata=wire("resources", Slice(Nested(ResourceSpec)), omit_empty=True)
    )


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs(Struct):
    """What NodeResourcesFit does not check, and how it scores."""

    ignored_resources: tuple[str, ...] = field(
        default=(), metadata=wire("ignoredResources", Slice(STRING), omit_empty=True)
    )
    ignored_resource_groups: tuple[str, ...] = field(
        default=(), metadata=wire("ignoredResourceGroups", Slice(STRING), omit_empty=True)
    )
    scoring_strategy: ScoringStrategy | None = field(
        default=None,
        metadata=wire("scoringStrategy", Pointer(Nested(ScoringStrategy), everywhere=True), omit_empty=True),
    )

    @property
    def strategy(self) -> ScoringStrategy:
        """The scoring strategy of valid arguments.

        Raises:
            InvariantError: the arguments were not checked.
        """
        if self.scoring_strategy is None:
            raise InvariantError("NodeResourcesFitArgs without scoringStrategy passed the checks")
        return self.scoring_strategy


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs(Struct):
    """Which constraints a pod without any gets: those of the system, or a list."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = field(
        default=(), metadata=wire("defaultConstraints", Slice(Nested(TopologySpreadConstraint)), omit_empty=True)
    )
    defaulting_type: str = field(
        default="",
        metadata=wire(
            "defaultingType",
            named_string("v1.PodTopologySpreadConstraintsDefaulting", "config.PodTopologySpreadConstraintsDefaulting"),
            omit_empty=True,
        ),
    )


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs(Struct):
    """How long a bind may take, and the function that scores storage capacity (feature gate StorageCapacityScoring)."""

    bind_timeout_seconds: int = field(
        default=0, metadata=wire("bindTimeoutSeconds", Pointer(INT64), nil=600, omit_empty=True)
    )
    shape: tuple[UtilizationShapePoint, ...] = field(
        default=(), metadata=wire("shape", Slice(Nested(UtilizationShapePoint)), omit_empty=True)
    )


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

ARGUMENT_TYPES: Final[Mapping[str, type[PluginArguments]]] = MappingProxyType(
    {
        argument_type.__name__: argument_type
        for argument_type in (
            DefaultPreemptionArgs,
            DynamicResourcesArgs,
            InterPodAffinityArgs,
            NodeAffinityArgs,
            NodeResourcesBalancedAllocationArgs,
            NodeResourcesFitArgs,
            PodTopologySpreadArgs,
            VolumeBindingArgs,
        )
    }
)
"""The kinds of arguments: those of a plugin are called like the plugin, with ``Args`` behind."""


def argument_type_of(plugin: str) -> type[PluginArguments] | None:
    """Give the type of a plugin's arguments; None where they have none that is known."""
    return ARGUMENT_TYPES.get(plugin + "Args")
