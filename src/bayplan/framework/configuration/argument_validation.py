"""Validate the arguments of the in-tree plugins, in upstream's order and words.

All but those of NodeResourcesFit are validated with the configuration; that plugin validates its own when it is built.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.durations import format_duration
from bayplan.framework.configuration.defaults import binding_conditions_enabled
from bayplan.framework.configuration.encode import encode_list
from bayplan.framework.configuration.field_errors import (
    Named,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    without_repeats,
)
from bayplan.framework.configuration.plugin_arguments import (
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArguments,
    PodTopologySpreadArgs,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from bayplan.framework.configuration.schema import EMPTY_LIST
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.affinity import NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, TopologySpreadConstraint
from bayplan.objects.names import check_qualified_name
from bayplan.objects.selectors import compile_node_term

_UNSATISFIABLE_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


def validate_arguments(path: Path, args: PluginArguments, feature_gates: FeatureGates) -> list[str]:
    """Validate the arguments of one plugin, after defaulting; return the messages, none if they are valid."""
    match args:
        case DefaultPreemptionArgs():
            errors = _default_preemption(path, args)
        case DynamicResourcesArgs():
            errors = _dynamic_resources(path, args, feature_gates)
        case InterPodAffinityArgs():
            errors = _inter_pod_affinity(path, args)
        case NodeAffinityArgs():
            # Upstream does not drop duplicates here.
            return _node_affinity(path.child("addedAffinity"), args.added_affinity)
        case NodeResourcesBalancedAllocationArgs():
            errors = _balanced_allocation(path, args)
        case NodeResourcesFitArgs():
            errors = _resources_fit(path, args)
        case PodTopologySpreadArgs():
            errors = _pod_topology_spread(path, args)
        case VolumeBindingArgs():
            errors = _volume_binding(path, args, feature_gates)
    return without_repeats(errors)


def _default_preemption(path: Path, args: DefaultPreemptionArgs) -> list[str]:
    errors = []
    percentage_path, absolute_path = path.child("minCandidateNodesPercentage"), path.child("minCandidateNodesAbsolute")
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    if not 0 <= percentage <= 100:
        errors.append(invalid(percentage_path, percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        errors.append(invalid(absolute_path, absolute, "not in valid range [0, inf)"))
    if percentage == 0 and absolute == 0:
        errors.append(
            invalid(percentage_path, percentage, "cannot be zero at the same time as minCandidateNodesAbsolute")
        )
        errors.append(
            invalid(absolute_path, absolute, "cannot be zero at the same time as minCandidateNodesPercentage")
        )
    return errors


def _dynamic_resources(path: Path, args: DynamicResourcesArgs, feature_gates: FeatureGates) -> list[str]:
    errors = []
    filter_path, binding_path = path.child("filterTimeout"), path.child("bindingTimeout")
    if args.filter_timeout_ns is not None:
        if not feature_gates.enabled("DRASchedulerFilterTimeout"):
            errors.append(forbidden(filter_path, "DRASchedulingFilterTimeout feature gate is disabled"))
        elif args.filter_timeout_ns < 0:
            shown = Named(format_duration(args.filter_timeout_ns))
            errors.append(invalid(filter_path, shown, "must be zero or positive"))
    if args.binding_timeout_ns is not None:
        if not binding_conditions_enabled(feature_gates):
            detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            errors.append(forbidden(binding_path, detail))
        elif args.binding_timeout_ns < SECOND_NS:
            shown = Named(format_duration(args.binding_timeout_ns))
            errors.append(invalid(binding_path, shown, "must be at least 1 second"))
    return errors


def _inter_pod_affinity(path: Path, args: InterPodAffinityArgs) -> list[str]:
    weight = args.hard_pod_affinity_weight
    if 0 <= weight <= 100:
        return []
    return [invalid(path.child("hardPodAffinityWeight"), weight, "not in valid range [0, 100]")]


def _balanced_allocation(path: Path, args: NodeResourcesBalancedAllocationArgs) -> list[str]:
    errors = []
    seen: set[str] = set()
    for index, resource in enumerate(args.resources):
        resource_path = path.child("resources").index(index)
        if resource.name in seen:
            errors.append(duplicate(resource_path.child("name"), resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            errors.append(invalid(resource_path.child("weight"), resource.weight, "must be 1"))
    return errors


def _label_key(path: Path, key: str) -> list[str]:
    return [invalid(path, key, error) for error in check_qualified_name(key)]


def _resources_fit(path: Path, args: NodeResourcesFitArgs) -> list[str]:
    errors = []
    for index, resource in enumerate(args.ignored_resources):
        errors += _label_key(path.child("ignoredResources").index(index), resource)
    for index, group in enumerate(args.ignored_resource_groups):
        group_path = path.child("ignoredResourceGroups").index(index)
        if "/" in group:
            errors.append(invalid(group_path, group, "resource group name can't contain '/'"))
        errors += _label_key(group_path, group)
    strategy_path = path.child("scoringStrategy")
    if args.scoring_strategy is None:
        errors.append(required(strategy_path, "ScoringStrategy field is required"))
    else:
        errors += _scoring_strategy(strategy_path, args.scoring_strategy)
    return errors


def _scoring_strategy(path: Path, strategy: ScoringStrategy) -> list[str]:
    errors = []
    types = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
    if strategy.type not in types:
        errors.append(not_supported(path.child("type"), Named(strategy.type), types))
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            errors.append(invalid(path.child("resources").index(index).child("weight"), resource.weight, detail))
    ratio_path, ratio = path.child("requestedToCapacityRatio"), strategy.requested_to_capacity_ratio
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            errors.append(required(ratio_path, "must be specified when type is RequestedToCapacityRatio"))
        else:
            errors += _shape(ratio_path.child("shape"), ratio.shape)
    elif ratio is not None:
        errors.append(forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio"))
    return errors


def _shape(path: Path, shape: Sequence[UtilizationShapePoint]) -> list[str]:
    if not shape:
        return [required(path, "at least one point must be specified")]
    errors = []
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            utilization_path = path.index(index).child("utilization")
            errors.append(
                invalid(utilization_path, shape[index].utilization, "values must be sorted in increasing order")
            )
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            utilization_path = path.index(index).child("utilization")
            errors.append(invalid(utilization_path, point.utilization, "not in valid range [0, 100]"))
        if not 0 <= point.score <= 10:
            errors.append(invalid(path.index(index).child("score"), point.score, "not in valid range [0, 10]"))
    return errors


def _volume_binding(path: Path, args: VolumeBindingArgs, feature_gates: FeatureGates) -> list[str]:
    errors = []
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        errors.append(invalid(path.child("bindTimeoutSeconds"), args.bind_timeout_seconds, detail))
    shape_path, shape = path.child("shape"), encode_list(args.shape, names="go")
    if feature_gates.enabled("StorageCapacityScoring"):
        errors += _shape(shape_path, args.shape)
    elif shape is not None:
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        errors.append(invalid(shape_path, shape, detail))
    return errors


def _pod_topology_spread(path: Path, args: PodTopologySpreadArgs) -> list[str]:
    errors = []
    type_path, constraints = path.child("defaultingType"), args.default_constraints
    if args.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        supported = (SYSTEM_DEFAULTING, LIST_DEFAULTING)
        errors.append(not_supported(type_path, Named(args.defaulting_type), supported))
    elif args.defaulting_type == SYSTEM_DEFAULTING and constraints:
        errors.append(invalid(type_path, Named(args.defaulting_type), "when .defaultConstraints are not empty"))
    for index, constraint in enumerate(constraints):
        constraint_path = path.child("defaultConstraints").index(index)
        errors += _spread_constraint(constraint_path, constraint)
        identity = constraint.topology_key, constraint.when_unsatisfiable
        if any((other.topology_key, other.when_unsatisfiable) == identity for other in constraints[:index]):
            errors.append(duplicate(constraint_path, f"{{{identity[0]}, {identity[1]}}}"))
    return errors


def _spread_constraint(path: Path, constraint: TopologySpreadConstraint) -> list[str]:
    errors = []
    if constraint.max_skew <= 0:
        errors.append(invalid(path.child("maxSkew"), constraint.max_skew, "not in valid range (0, inf)"))
    if not constraint.topology_key:
        errors.append(required(path.child("topologyKey"), "can not be empty"))
    else:
        errors += _label_key(path.child("topologyKey"), constraint.topology_key)
    action_path, action = path.child("whenUnsatisfiable"), constraint.when_unsatisfiable
    if not action:
        errors.append(required(action_path, "can not be empty"))
    elif action not in _UNSATISFIABLE_ACTIONS:
        errors.append(not_supported(action_path, Named(action), _UNSATISFIABLE_ACTIONS))
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        errors.append(forbidden(path.child("labelSelector"), detail))
    return errors


def _node_affinity(path: Path, affinity: NodeAffinity | None) -> list[str]:
    if affinity is None:
        return []
    errors: list[str] = []
    if selector := affinity.required_during_scheduling_ignored_during_execution:
        terms_path = path.child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
        for index, term in enumerate(selector.node_selector_terms):
            errors += compile_node_term(_as_written(term), terms_path.index(index).text).errors
    preferred_path = path.child("preferredDuringSchedulingIgnoredDuringExecution")
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
        # A term without weight is not validated.
        if preferred.weight:
            errors += compile_node_term(_as_written(preferred.preference), preferred_path.index(index).text).errors
    return errors


def _as_written(term: NodeSelectorTerm) -> NodeSelectorTerm:
    """Return a term whose omitted requirement values are None, as in objects."""
    return replace(
        term,
        match_expressions=tuple(map(_requirement_as_written, term.match_expressions)),
        match_fields=tuple(map(_requirement_as_written, term.match_fields)),
    )


def _requirement_as_written(requirement: NodeSelectorRequirement) -> NodeSelectorRequirement:
    values = requirement.values
    return requirement if values or values is EMPTY_LIST else replace(requirement, values=None)
