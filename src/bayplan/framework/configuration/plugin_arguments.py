"""The typed arguments of the in-tree plugins (kubescheduler.config.k8s.io/v1, ``pluginConfig``).

Each type declares its fields, their defaults and their validation; messages are upstream's, in upstream's order.
Plugins always receive arguments that are defaulted and valid. Durations are in nanoseconds; scores in shapes have
upstream's scale of 0 to 10.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Final, Self, TypeAlias

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InvariantError
from bayplan.base.go_text.durations import format_duration
from bayplan.framework.configuration.field_errors import Named, Path
from bayplan.framework.configuration.schema import (
    ALWAYS,
    EMPTY_IS_UNSET,
    EMPTY_LIST,
    DurationNs,
    Scalar,
    Struct,
    fields_of,
)
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.affinity import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from bayplan.objects.meta import Int32, Int64, LabelSelectorRequirement
from bayplan.objects.names import check_qualified_name
from bayplan.objects.selectors import compile_node_term

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"

_STRATEGIES: Final = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_DEFAULTING_TYPES: Final = (SYSTEM_DEFAULTING, LIST_DEFAULTING)
_UNSATISFIABLE_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")
_FILTER_TIMEOUT_NS: Final = 10 * SECOND_NS
_BINDING_TIMEOUT_NS: Final = 600 * SECOND_NS

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


class PluginArguments(Struct, frozen=True):
    """Base of the arguments of each plugin. The name of a class is the name of its plugin followed by ``Args``."""

    def with_defaults(self, feature_gates: FeatureGates) -> Self:
        """Return the arguments with those defaults filled in that are not constants."""
        return self

    def errors(self, path: Path, feature_gates: FeatureGates) -> list[str]:
        """Return the messages of all validation errors, after defaulting. `path` is the path of the arguments."""
        return list(dict.fromkeys(self._errors(path, feature_gates)))

    def _errors(self, path: Path, feature_gates: FeatureGates) -> Iterator[str]:
        return iter(())


class ResourceSpec(Struct, frozen=True):
    """A resource to include in a score, with its weight."""

    name: Annotated[str, ALWAYS] = ""
    weight: Annotated[Int64, EMPTY_IS_UNSET] = 1


_DEFAULT_RESOURCES: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class UtilizationShapePoint(Struct, frozen=True):
    """A point of a piecewise linear function: utilization in percent, score from 0 to 10."""

    utilization: Annotated[Int32, ALWAYS] = 0
    score: Annotated[Int32, ALWAYS] = 0


_DEFAULT_SHAPE: Final = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


class RequestedToCapacityRatioParam(Struct, frozen=True):
    """The arguments of the strategy RequestedToCapacityRatio: its function from utilization to score."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Struct, frozen=True):
    """The scoring strategy of NodeResourcesFit: ``type`` is one of the three strategies."""

    type: Annotated[str, Scalar("string", "v1.ScoringStrategyType", "config.ScoringStrategyType")] = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def errors(self, path: Path) -> Iterator[str]:
        """Yield the messages of all validation errors."""
        if self.type not in _STRATEGIES:
            yield path["type"].not_supported(Named(self.type), _STRATEGIES)
        for index, resource in enumerate(self.resources):
            if not 0 < resource.weight <= 100:
                detail = f"resource weight of {resource.name} not in valid range (0, 100]"
                yield path["resources"][index]["weight"].invalid(resource.weight, detail)
        ratio_path, ratio = path["requestedToCapacityRatio"], self.requested_to_capacity_ratio
        if self.type == REQUESTED_TO_CAPACITY_RATIO:
            if ratio is None:
                yield ratio_path.required("must be specified when type is RequestedToCapacityRatio")
            else:
                yield from _shape_errors(ratio_path["shape"], ratio.shape)
        elif ratio is not None:
            yield ratio_path.forbidden("must be nil when type is not RequestedToCapacityRatio")


class DefaultPreemptionArgs(PluginArguments, frozen=True):
    """The arguments of DefaultPreemption: the minimum number of candidates that it looks for."""

    min_candidate_nodes_percentage: Annotated[Int32, ALWAYS] = 10
    min_candidate_nodes_absolute: Annotated[Int32, ALWAYS] = 100

    def _errors(self, path: Path, feature_gates: FeatureGates) -> Iterator[str]:
        of_percentage, of_absolute = path["minCandidateNodesPercentage"], path["minCandidateNodesAbsolute"]
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        yield from _range_errors(of_percentage, percentage, 100)
        if absolute < 0:
            yield of_absolute.invalid(absolute, "not in valid range [0, inf)")
        if percentage == 0 and absolute == 0:
            yield of_percentage.invalid(percentage, "cannot be zero at the same time as minCandidateNodesAbsolute")
            yield of_absolute.invalid(absolute, "cannot be zero at the same time as minCandidateNodesPercentage")


class DynamicResourcesArgs(PluginArguments, frozen=True):
    """The arguments of DynamicResources: its time limits; None if a feature gate disables the limit."""

    filter_timeout_ns: Annotated[DurationNs | None, ALWAYS] = None
    binding_timeout_ns: DurationNs | None = None

    def with_defaults(self, feature_gates: FeatureGates) -> Self:
        """Set the time limits whose feature gates are enabled."""
        filter_timeout_ns, binding_timeout_ns = self.filter_timeout_ns, self.binding_timeout_ns
        if filter_timeout_ns is None and feature_gates.enabled("DRASchedulerFilterTimeout"):
            filter_timeout_ns = _FILTER_TIMEOUT_NS
        if binding_timeout_ns is None and binding_conditions_enabled(feature_gates):
            binding_timeout_ns = _BINDING_TIMEOUT_NS
        return replace(self, filter_timeout_ns=filter_timeout_ns, binding_timeout_ns=binding_timeout_ns)

    def _errors(self, path: Path, feature_gates: FeatureGates) -> Iterator[str]:
        if (timeout_ns := self.filter_timeout_ns) is not None:
            if not feature_gates.enabled("DRASchedulerFilterTimeout"):
                yield path["filterTimeout"].forbidden("DRASchedulingFilterTimeout feature gate is disabled")
            elif timeout_ns < 0:
                yield path["filterTimeout"].invalid(Named(format_duration(timeout_ns)), "must be zero or positive")
        if (timeout_ns := self.binding_timeout_ns) is not None:
            if not binding_conditions_enabled(feature_gates):
                detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
                yield path["bindingTimeout"].forbidden(detail)
            elif timeout_ns < SECOND_NS:
                yield path["bindingTimeout"].invalid(Named(format_duration(timeout_ns)), "must be at least 1 second")


class InterPodAffinityArgs(PluginArguments, frozen=True):
    """The arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Annotated[Int32, ALWAYS] = 1
    ignore_preferred_terms_of_existing_pods: Annotated[bool, ALWAYS] = False

    def _errors(self, path: Path, feature_gates: FeatureGates) -> Iterator[str]:
        return _range_errors(path["hardPodAffinityWeight"], self.hard_pod_affinity_weight, 100)


class NodeAffinityArgs(PluginArguments, frozen=True):
    """The arguments of NodeAffinity: an affinity that applies to all pods of the profile, in addition to their own."""

    added_affinity: NodeAffinity | None = None

    def _errors(self, path: Path, feature_gates: FeatureGates) -> Iterator[str]:
        affinity, affinity_path = self.added_affinity or NodeAffinity(), path["addedAffinity"]
        if selector := affinity.required_during_scheduling_ignored_during_execution:
            terms_path = affinity_path["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            for index, term in enumerate(selector.node_selector_terms):
                yield from compile_node_term(term, terms_path[index].text).errors
        preferred_path = affinity_path["preferredDuringSchedulingIgnoredDuringExecution"]
        for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
            # A term without weight is not validated.
            if preferred.weight:
                yield from compile_node_term(preferred.preference, preferred_path[index].text).errors

    def errors(self, path: Path, feature_gates: FeatureGates) -> list[str]:
        """Return all messages. Upstream repeats equal ones only for this plugin."""
        return list(self._errors(path, feature_gates))


class NodeResourcesBalancedAllocationArgs(PluginArguments, frozen=True):
    """The arguments of NodeResourcesBalancedAllocation: the resources to balance; every weight is 1."""

    resources: tuple[ResourceSpec, ...] = ()

    def with_defaults(self, feature_gates: FeatureGates) -> Self:
        """Balance CPU and memory by default."""
        return replace(self, resources=self.resources or _DEFAULT_RESOURCES)

    def _errors(self, path: Path, feature_gates: FeatureGates) -> Iterator[str]:
        seen: set[str] = set()
        for index, resource in enumerate(self.resources):
            resource_path = path["resources"][index]
            if resource.name in seen:
                yield resource_path["name"].duplicate(resource.name)
            seen.add(resource.name)
            if resource.weight != 1:
                yield resource_path["weight"].invalid(resource.weight, "must be 1")


class NodeResourcesFitArgs(PluginArguments, frozen=True):
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

    def with_defaults(self, feature_gates: FeatureGates) -> Self:
        """Score CPU and memory with the strategy LeastAllocated by default."""
        strategy = self.scoring_strategy or ScoringStrategy(LEAST_ALLOCATED)
        return replace(self, scoring_strategy=replace(strategy, resources=strategy.resources or _DEFAULT_RESOURCES))

    def _errors(self, path: Path, feature_gates: FeatureGates) -> Iterator[str]:
        for index, resource in enumerate(self.ignored_resources):
            yield from _label_key_errors(path["ignoredResources"][index], resource)
        for index, group in enumerate(self.ignored_resource_groups):
            group_path = path["ignoredResourceGroups"][index]
            if "/" in group:
                yield group_path.invalid(group, "resource group name can't contain '/'")
            yield from _label_key_errors(group_path, group)
        if self.scoring_strategy is None:
            yield path["scoringStrategy"].required("ScoringStrategy field is required")
        else:
            yield from self.scoring_strategy.errors(path["scoringStrategy"])


class PodTopologySpreadArgs(PluginArguments, frozen=True):
    """The arguments of PodTopologySpread: the constraints of pods without any: the system's defaults, or a list."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Annotated[str, _DEFAULTING_TYPE, EMPTY_IS_UNSET] = SYSTEM_DEFAULTING

    def _errors(self, path: Path, feature_gates: FeatureGates) -> Iterator[str]:
        shown = Named(self.defaulting_type)
        if self.defaulting_type not in _DEFAULTING_TYPES:
            yield path["defaultingType"].not_supported(shown, _DEFAULTING_TYPES)
        elif self.defaulting_type == SYSTEM_DEFAULTING and self.default_constraints:
            yield path["defaultingType"].invalid(shown, "when .defaultConstraints are not empty")
        seen = set[tuple[str, str]]()
        for index, constraint in enumerate(self.default_constraints):
            constraint_path = path["defaultConstraints"][index]
            yield from _constraint_errors(constraint_path, constraint)
            identity = constraint.topology_key, constraint.when_unsatisfiable
            if identity in seen:
                yield constraint_path.duplicate(f"{{{identity[0]}, {identity[1]}}}")
            seen.add(identity)


class VolumeBindingArgs(PluginArguments, frozen=True):
    """The arguments of VolumeBinding; `shape` scores storage capacity (feature gate StorageCapacityScoring)."""

    bind_timeout_seconds: Annotated[Int64, ALWAYS] = 600
    shape: tuple[UtilizationShapePoint, ...] = ()

    def with_defaults(self, feature_gates: FeatureGates) -> Self:
        """Set a shape if storage capacity is scored."""
        scores = feature_gates.enabled("StorageCapacityScoring")
        return replace(self, shape=_DEFAULT_SHAPE) if scores and not self.shape else self

    def _errors(self, path: Path, feature_gates: FeatureGates) -> Iterator[str]:
        if self.bind_timeout_seconds < 0:
            detail = "invalid BindTimeoutSeconds, should not be a negative value"
            yield path["bindTimeoutSeconds"].invalid(self.bind_timeout_seconds, detail)
        if feature_gates.enabled("StorageCapacityScoring"):
            yield from _shape_errors(path["shape"], self.shape)
        elif self.shape or self.shape is EMPTY_LIST:
            shown = [{"Utilization": point.utilization, "Score": point.score} for point in self.shape]
            detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            yield path["shape"].invalid(shown, detail)


ARGUMENT_TYPES: Final[Mapping[str, type[PluginArguments]]] = {
    argument_type.__name__: argument_type for argument_type in PluginArguments.__subclasses__()
}
"""The argument types by their kind: the name of the plugin followed by ``Args``."""


def argument_type_of(plugin: str) -> type[PluginArguments] | None:
    """Return the type of a plugin's arguments; None if the plugin has no known argument type."""
    return ARGUMENT_TYPES.get(plugin + "Args")


def binding_conditions_enabled(feature_gates: FeatureGates) -> bool:
    """Return whether devices can have binding conditions; only then does waiting for them have a timeout."""
    return feature_gates.enabled("DRADeviceBindingConditions") and feature_gates.enabled("DRAResourceClaimDeviceStatus")


def _range_errors(path: Path, value: int, largest: int) -> Iterator[str]:
    if not 0 <= value <= largest:
        yield path.invalid(value, f"not in valid range [0, {largest}]")


def _label_key_errors(path: Path, key: str) -> Iterator[str]:
    return (path.invalid(key, error) for error in check_qualified_name(key))


def _shape_errors(path: Path, shape: Sequence[UtilizationShapePoint]) -> Iterator[str]:
    if not shape:
        yield path.required("at least one point must be specified")
    for index, (before, point) in enumerate(pairwise(shape), 1):
        if before.utilization >= point.utilization:
            yield path[index]["utilization"].invalid(point.utilization, "values must be sorted in increasing order")
            break
    for index, point in enumerate(shape):
        yield from _range_errors(path[index]["utilization"], point.utilization, 100)
        yield from _range_errors(path[index]["score"], point.score, 10)


def _constraint_errors(path: Path, constraint: TopologySpreadConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield path["maxSkew"].invalid(constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield path["topologyKey"].required("can not be empty")
    else:
        yield from _label_key_errors(path["topologyKey"], constraint.topology_key)
    action = constraint.when_unsatisfiable
    if not action:
        yield path["whenUnsatisfiable"].required("can not be empty")
    elif action not in _UNSATISFIABLE_ACTIONS:
        yield path["whenUnsatisfiable"].not_supported(Named(action), _UNSATISFIABLE_ACTIONS)
    if constraint.label_selector is not None:
        yield path["labelSelector"].forbidden("constraint must not define a selector, as they deduced for each pod")
