"""The typed arguments of the in-tree plugins (kubescheduler.config.k8s.io/v1, ``pluginConfig``).

Arguments passed to a plugin are always defaulted and valid. Durations are in nanoseconds; shapes keep upstream's scale of 0 to 10.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, TypeAlias

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


class ResourceSpec(Struct, frozen=True):
    """A resource that counts for a score, with its weight."""

    name: Annotated[str, wire("name", STRING)] = ""
    weight: Annotated[int, wire("weight", INT64, omit_empty=True)] = 0


class UtilizationShapePoint(Struct, frozen=True):
    """A point of a piecewise linear function: utilization in percent, score of 0 to 10."""

    utilization: Annotated[int, wire("utilization", INT32)] = 0
    score: Annotated[int, wire("score", INT32)] = 0


class RequestedToCapacityRatioParam(Struct, frozen=True):
    """The function of the strategy RequestedToCapacityRatio."""

    shape: Annotated[
        tuple[UtilizationShapePoint, ...], wire("shape", Slice(Nested(UtilizationShapePoint)), omit_empty=True)
    ] = ()


class ScoringStrategy(Struct, frozen=True):
    """The scoring strategy of NodeResourcesFit: ``type`` is one of the three strategies."""

    type: Annotated[
        str, wire("type", named_string("v1.ScoringStrategyType", "config.ScoringStrategyType"), omit_empty=True)
    ] = ""
    resources: Annotated[tuple[ResourceSpec, ...], wire("resources", Slice(Nested(ResourceSpec)), omit_empty=True)] = ()
    requested_to_capacity_ratio: Annotated[
        RequestedToCapacityRatioParam | None,
        wire(
            "requestedToCapacityRatio",
            Pointer(Nested(RequestedToCapacityRatioParam), everywhere=True),
            omit_empty=True,
        ),
    ] = None


class DefaultPreemptionArgs(Struct, frozen=True):
    """The minimum number of candidates that DefaultPreemption looks for."""

    min_candidate_nodes_percentage: Annotated[
        int, wire("minCandidateNodesPercentage", Pointer(INT32), nil=10, omit_empty=True)
    ] = 0
    min_candidate_nodes_absolute: Annotated[
        int, wire("minCandidateNodesAbsolute", Pointer(INT32), nil=100, omit_empty=True)
    ] = 0


class DynamicResourcesArgs(Struct, frozen=True):
    """Time limits of DynamicResources; None if the feature gates disable the limit."""

    filter_timeout_ns: Annotated[int | None, wire("filterTimeout", Pointer(Duration(), everywhere=True))] = None
    binding_timeout_ns: Annotated[
        int | None, wire("bindingTimeout", Pointer(Duration(), everywhere=True), omit_empty=True)
    ] = None


class InterPodAffinityArgs(Struct, frozen=True):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Annotated[int, wire("hardPodAffinityWeight", Pointer(INT32), nil=1, omit_empty=True)] = 0
    ignore_preferred_terms_of_existing_pods: Annotated[bool, wire("ignorePreferredTermsOfExistingPods", BOOL)] = False


class NodeAffinityArgs(Struct, frozen=True):
    """An affinity that applies to all pods of the profile, in addition to their own."""

    added_affinity: Annotated[
        NodeAffinity | None, wire("addedAffinity", Pointer(Nested(NodeAffinity), everywhere=True), omit_empty=True)
    ] = None


class NodeResourcesBalancedAllocationArgs(Struct, frozen=True):
    """The resources to balance; every weight is 1."""

    resources: Annotated[tuple[ResourceSpec, ...], wire("resources", Slice(Nested(ResourceSpec)), omit_empty=True)] = ()


class NodeResourcesFitArgs(Struct, frozen=True):
    """The resources that NodeResourcesFit ignores, and its scoring strategy."""

    ignored_resources: Annotated[tuple[str, ...], wire("ignoredResources", Slice(STRING), omit_empty=True)] = ()
    ignored_resource_groups: Annotated[
        tuple[str, ...], wire("ignoredResourceGroups", Slice(STRING), omit_empty=True)
    ] = ()
    scoring_strategy: Annotated[
        ScoringStrategy | None,
        wire("scoringStrategy", Pointer(Nested(ScoringStrategy), everywhere=True), omit_empty=True),
    ] = None

    @property
    def strategy(self) -> ScoringStrategy:
        """The scoring strategy of valid arguments.

        Raises:
            InvariantError: the arguments were not validated.
        """
        if self.scoring_strategy is None:
            raise InvariantError("NodeResourcesFitArgs without scoringStrategy passed the checks")
        return self.scoring_strategy


class PodTopologySpreadArgs(Struct, frozen=True):
    """The constraints of pods that declare none: those of the system, or a list."""

    default_constraints: Annotated[
        tuple[TopologySpreadConstraint, ...],
        wire("defaultConstraints", Slice(Nested(TopologySpreadConstraint)), omit_empty=True),
    ] = ()
    defaulting_type: Annotated[
        str,
        wire(
            "defaultingType",
            named_string("v1.PodTopologySpreadConstraintsDefaulting", "config.PodTopologySpreadConstraintsDefaulting"),
            omit_empty=True,
        ),
    ] = ""


class VolumeBindingArgs(Struct, frozen=True):
    """The timeout of a bind, and the function that scores storage capacity (feature gate StorageCapacityScoring)."""

    bind_timeout_seconds: Annotated[int, wire("bindTimeoutSeconds", Pointer(INT64), nil=600, omit_empty=True)] = 0
    shape: Annotated[
        tuple[UtilizationShapePoint, ...], wire("shape", Slice(Nested(UtilizationShapePoint)), omit_empty=True)
    ] = ()


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
"""The kinds of arguments: the name of the plugin followed by ``Args``."""


def argument_type_of(plugin: str) -> type[PluginArguments] | None:
    """Return the type of a plugin's arguments; None if it has no known type."""
    return ARGUMENT_TYPES.get(plugin + "Args")
