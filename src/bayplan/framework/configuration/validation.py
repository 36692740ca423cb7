"""Validate a defaulted configuration and the arguments of the in-tree plugins, in upstream's order and words.

Problems such as unknown plugins appear only when profiles are built; see ``profiles.py``.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.durations import format_duration
from bayplan.framework.configuration.defaults import binding_conditions_enabled
from bayplan.framework.configuration.document import (
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Plugins,
    PluginSet,
)
from bayplan.framework.configuration.field_errors import Named, Path
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
    argument_type_of,
)
from bayplan.framework.configuration.schema import EMPTY_LIST, fields_of
from bayplan.framework.configuration.struct_codec import encode_arguments, encode_struct
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.affinity import NodeAffinity, TopologySpreadConstraint
from bayplan.objects.names import check_qualified_name
from bayplan.objects.resource_names import is_extended
from bayplan.objects.selectors import compile_node_term

_REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_CHECKED_WHEN_BUILT = "NodeResourcesFit"
"""The plugin whose arguments upstream validates when it creates the plugin, not with the configuration."""

_POINTS_WITH_REMOVED = ("multi_point", "placement_generate", "placement_score")
"""Extension points at which upstream does not check for removed plugins."""

_UNSATISFIABLE_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_DEFAULTING_TYPES = (SYSTEM_DEFAULTING, LIST_DEFAULTING)


def validate_document(document: KubeSchedulerConfiguration, feature_gates: FeatureGates) -> list[str]:
    """Return the messages of all validation errors, in upstream's order; empty if the configuration is valid."""
    return list(_document(Path(), document, feature_gates))


def _document(path: Path, document: KubeSchedulerConfiguration, feature_gates: FeatureGates) -> Iterator[str]:
    if document.client_connection.burst < 0:
        yield path["clientConnection"]["burst"].invalid(document.client_connection.burst, "must be non-negative")
    if document.leader_election.leader_elect:
        yield from _leader_election(path["leaderElection"], document.leader_election)
    if document.parallelism <= 0:
        yield path["parallelism"].invalid(document.parallelism, "should be an integer value greater than zero")
    yield from _profiles(path["profiles"], document, feature_gates)
    yield from _percentage(path["percentageOfNodesToScore"], document.percentage_of_nodes_to_score)
    initial, maximum = document.pod_initial_backoff_seconds, document.pod_max_backoff_seconds
    if initial <= 0:
        yield path["podInitialBackoffSeconds"].invalid(initial, "must be greater than 0")
    if maximum < initial:
        yield path["podMaxBackoffSeconds"].invalid(maximum, "must be greater than or equal to PodInitialBackoffSeconds")
    yield from _extenders(path["extenders"], document.extenders)


def _leader_election(path: Path, election: LeaderElectionConfiguration) -> Iterator[str]:
    yield from dict.fromkeys(_election_fields(path, election))
    if election.resource_lock != "leases":
        yield path["resourceLock"].invalid(election.resource_lock, 'resourceLock value must be "leases"')


def _election_fields(path: Path, election: LeaderElectionConfiguration) -> Iterator[str]:
    for name, duration_ns in (
        ("leaseDuration", election.lease_duration_ns),
        ("renewDeadline", election.renew_deadline_ns),
        ("retryPeriod", election.retry_period_ns),
    ):
        if duration_ns <= 0:
            yield path[name].invalid(Named(format_duration(duration_ns)), "must be greater than zero")
    if election.lease_duration_ns <= election.renew_deadline_ns:
        # Upstream shows the deadline, not the duration that the path refers to.
        shown = Named(format_duration(election.renew_deadline_ns))
        yield path["leaseDuration"].invalid(shown, "must be greater than `RenewDeadline`")
    for name, text in (
        ("resourceLock", election.resource_lock),
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    ):
        if not text:
            yield path[name].required()


def _percentage(path: Path, percentage: int | None) -> Iterator[str]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield path.invalid(percentage, "not in valid range [0-100]")


def _profiles(path: Path, document: KubeSchedulerConfiguration, feature_gates: FeatureGates) -> Iterator[str]:
    if not document.profiles:
        yield path.required()
        return
    names: set[str | None] = set()
    for index, profile in enumerate(document.profiles):
        yield from _profile(path[index], profile, document.api_version, feature_gates)
        if profile.scheduler_name in names:
            # Upstream passes a path where the name belongs; a path has no JSON form.
            yield path[index]["schedulerName"].duplicate({})
        names.add(profile.scheduler_name)
    yield from _common_queue_sort(path, document.profiles)


def _profile(path: Path, profile: KubeSchedulerProfile, api_version: str, feature_gates: FeatureGates) -> Iterator[str]:
    if not profile.scheduler_name:
        yield path["schedulerName"].required()
    yield from _percentage(path["percentageOfNodesToScore"], profile.percentage_of_nodes_to_score)
    if profile.plugins is not None:
        yield from _removed_plugins(path["plugins"], profile.plugins, api_version)
    seen: set[str] = set()
    for index, entry in enumerate(profile.plugin_config):
        entry_path = path["pluginConfig"][index]
        if entry.name in seen:
            yield entry_path.duplicate(entry.name)
        seen.add(entry.name)
        if entry.name in _REMOVED_PLUGINS:
            yield _removed(entry_path, entry.name, api_version)
        elif entry.name != _CHECKED_WHEN_BUILT and (argument_type := argument_type_of(entry.name)):
            if isinstance(entry.args, argument_type):
                yield from validate_arguments(entry_path["args"], entry.args, feature_gates)
            else:
                yield entry_path["args"].invalid(
                    encode_arguments(entry.args, internal=True), "has to match plugin args"
                )


def _removed_plugins(path: Path, plugins: Plugins, api_version: str) -> Iterator[str]:
    for point in fields_of(Plugins):
        for index, plugin in enumerate(getattr(plugins, point.attribute).enabled):
            if plugin.name in _REMOVED_PLUGINS and point.attribute not in _POINTS_WITH_REMOVED:
                yield _removed(path[point.json]["enabled"][index], plugin.name, api_version)


def _removed(path: Path, plugin: str, api_version: str) -> str:
    return path.invalid(plugin, f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{api_version}")')


def _common_queue_sort(path: Path, profiles: Sequence[KubeSchedulerProfile]) -> Iterator[str]:
    """Yield errors if the profiles' queueSort settings differ before defaults are merged in."""
    first, *others = profiles
    sort = _queue_sort(first)
    name = sort.enabled[0].name if sort.enabled else ""
    if len(sort.enabled) > 1:
        point_path = path[0]["plugins"]["queueSort"]["Enabled"]
        yield point_path.invalid(len(sort.enabled), "only one queue sort plugin can be enabled")
    first_args = {entry.name: entry.args for entry in first.plugin_config}.get(name) if name else None
    for index, profile in enumerate(others, 1):
        if _queue_sort(profile) != sort:
            shown = encode_struct(_queue_sort(profile), internal=True)
            yield path[index]["plugins"]["queueSort"].invalid(shown, "must be the same for all profiles")
        for entry in profile.plugin_config:
            if entry.name == name and entry.args != first_args:
                shown_args = encode_arguments(entry.args, internal=True)
                args_path = path[index]["pluginConfig"]["args"]
                yield args_path.invalid(shown_args, "queueSort must be the same for all profiles")


def _queue_sort(profile: KubeSchedulerProfile) -> PluginSet:
    return profile.plugins.queue_sort if profile.plugins is not None else PluginSet()


def _extenders(path: Path, extenders: Sequence[Extender]) -> Iterator[str]:
    seen: set[str] = set()
    for index, extender in enumerate(extenders):
        if extender.prioritize_verb and extender.weight <= 0:
            yield path[index]["weight"].invalid(extender.weight, "must have a positive weight applied to it")
        for number, resource in enumerate(extender.managed_resources):
            name_path = path[index]["managedResources"][number]["name"]
            if errors := check_qualified_name(resource.name):
                yield from (name_path.invalid(Named(resource.name), error) for error in errors)
            elif not is_extended(resource.name):
                yield name_path.invalid(resource.name, "is an invalid extended resource name")
            if resource.name in seen:
                yield name_path.invalid(resource.name, "duplicate extender managed resource name")
            seen.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        yield path.invalid(f"found {binders} extenders implementing bind", "only one extender can implement bind")


def validate_arguments(path: Path, args: PluginArguments, feature_gates: FeatureGates) -> list[str]:
    """Validate the arguments of one plugin, after defaulting; return the messages, none if they are valid."""
    match args:
        case DefaultPreemptionArgs():
            errors = _default_preemption(path, args)
        case DynamicResourcesArgs():
            errors = _dynamic_resources(path, args, feature_gates)
        case InterPodAffinityArgs():
            errors = _in_range(path["hardPodAffinityWeight"], args.hard_pod_affinity_weight, 100)
        case NodeAffinityArgs():
            # Upstream repeats equal messages only for this plugin.
            return list(_node_affinity(path["addedAffinity"], args.added_affinity))
        case NodeResourcesBalancedAllocationArgs():
            errors = _balanced_allocation(path["resources"], args)
        case NodeResourcesFitArgs():
            errors = _resources_fit(path, args)
        case PodTopologySpreadArgs():
            errors = _pod_topology_spread(path, args)
        case VolumeBindingArgs():
            errors = _volume_binding(path, args, feature_gates)
    return list(dict.fromkeys(errors))


def _in_range(path: Path, value: int, largest: int) -> Iterator[str]:
    if not 0 <= value <= largest:
        yield path.invalid(value, f"not in valid range [0, {largest}]")


def _default_preemption(path: Path, args: DefaultPreemptionArgs) -> Iterator[str]:
    of_percentage, of_absolute = path["minCandidateNodesPercentage"], path["minCandidateNodesAbsolute"]
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    yield from _in_range(of_percentage, percentage, 100)
    if absolute < 0:
        yield of_absolute.invalid(absolute, "not in valid range [0, inf)")
    if percentage == 0 and absolute == 0:
        yield of_percentage.invalid(percentage, "cannot be zero at the same time as minCandidateNodesAbsolute")
        yield of_absolute.invalid(absolute, "cannot be zero at the same time as minCandidateNodesPercentage")


def _dynamic_resources(path: Path, args: DynamicResourcesArgs, feature_gates: FeatureGates) -> Iterator[str]:
    if (timeout_ns := args.filter_timeout_ns) is not None:
        if not feature_gates.enabled("DRASchedulerFilterTimeout"):
            yield path["filterTimeout"].forbidden("DRASchedulingFilterTimeout feature gate is disabled")
        elif timeout_ns < 0:
            yield path["filterTimeout"].invalid(Named(format_duration(timeout_ns)), "must be zero or positive")
    if (timeout_ns := args.binding_timeout_ns) is not None:
        if not binding_conditions_enabled(feature_gates):
            detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            yield path["bindingTimeout"].forbidden(detail)
        elif timeout_ns < SECOND_NS:
            yield path["bindingTimeout"].invalid(Named(format_duration(timeout_ns)), "must be at least 1 second")


def _balanced_allocation(path: Path, args: NodeResourcesBalancedAllocationArgs) -> Iterator[str]:
    seen: set[str] = set()
    for index, resource in enumerate(args.resources):
        if resource.name in seen:
            yield path[index]["name"].duplicate(resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield path[index]["weight"].invalid(resource.weight, "must be 1")


def _label_key(path: Path, key: str) -> Iterator[str]:
    return (path.invalid(key, error) for error in check_qualified_name(key))


def _resources_fit(path: Path, args: NodeResourcesFitArgs) -> Iterator[str]:
    for index, resource in enumerate(args.ignored_resources):
        yield from _label_key(path["ignoredResources"][index], resource)
    for index, group in enumerate(args.ignored_resource_groups):
        group_path = path["ignoredResourceGroups"][index]
        if "/" in group:
            yield group_path.invalid(group, "resource group name can't contain '/'")
        yield from _label_key(group_path, group)
    if args.scoring_strategy is None:
        yield path["scoringStrategy"].required("ScoringStrategy field is required")
    else:
        yield from _scoring_strategy(path["scoringStrategy"], args.scoring_strategy)


def _scoring_strategy(path: Path, strategy: ScoringStrategy) -> Iterator[str]:
    if strategy.type not in _STRATEGIES:
        yield path["type"].not_supported(Named(strategy.type), _STRATEGIES)
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield path["resources"][index]["weight"].invalid(resource.weight, detail)
    ratio_path, ratio = path["requestedToCapacityRatio"], strategy.requested_to_capacity_ratio
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            yield ratio_path.required("must be specified when type is RequestedToCapacityRatio")
        else:
            yield from _shape(ratio_path["shape"], ratio.shape)
    elif ratio is not None:
        yield ratio_path.forbidden("must be nil when type is not RequestedToCapacityRatio")


def _shape(path: Path, shape: Sequence[UtilizationShapePoint]) -> Iterator[str]:
    if not shape:
        yield path.required("at least one point must be specified")
    for index, (before, point) in enumerate(pairwise(shape), 1):
        if before.utilization >= point.utilization:
            yield path[index]["utilization"].invalid(point.utilization, "values must be sorted in increasing order")
            break
    for index, point in enumerate(shape):
        yield from _in_range(path[index]["utilization"], point.utilization, 100)
        yield from _in_range(path[index]["score"], point.score, 10)


def _volume_binding(path: Path, args: VolumeBindingArgs, feature_gates: FeatureGates) -> Iterator[str]:
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield path["bindTimeoutSeconds"].invalid(args.bind_timeout_seconds, detail)
    if feature_gates.enabled("StorageCapacityScoring"):
        yield from _shape(path["shape"], args.shape)
    elif args.shape or args.shape is EMPTY_LIST:
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        yield path["shape"].invalid([encode_struct(point, internal=True) for point in args.shape], detail)


def _pod_topology_spread(path: Path, args: PodTopologySpreadArgs) -> Iterator[str]:
    shown = Named(args.defaulting_type)
    if args.defaulting_type not in _DEFAULTING_TYPES:
        yield path["defaultingType"].not_supported(shown, _DEFAULTING_TYPES)
    elif args.defaulting_type == SYSTEM_DEFAULTING and args.default_constraints:
        yield path["defaultingType"].invalid(shown, "when .defaultConstraints are not empty")
    seen = set[tuple[str, str]]()
    for index, constraint in enumerate(args.default_constraints):
        constraint_path = path["defaultConstraints"][index]
        yield from _spread_constraint(constraint_path, constraint)
        identity = constraint.topology_key, constraint.when_unsatisfiable
        if identity in seen:
            yield constraint_path.duplicate(f"{{{identity[0]}, {identity[1]}}}")
        seen.add(identity)


def _spread_constraint(path: Path, constraint: TopologySpreadConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield path["maxSkew"].invalid(constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield path["topologyKey"].required("can not be empty")
    else:
        yield from _label_key(path["topologyKey"], constraint.topology_key)
    action = constraint.when_unsatisfiable
    if not action:
        yield path["whenUnsatisfiable"].required("can not be empty")
    elif action not in _UNSATISFIABLE_ACTIONS:
        yield path["whenUnsatisfiable"].not_supported(Named(action), _UNSATISFIABLE_ACTIONS)
    if constraint.label_selector is not None:
        yield path["labelSelector"].forbidden("constraint must not define a selector, as they deduced for each pod")


def _node_affinity(path: Path, affinity: NodeAffinity | None) -> Iterator[str]:
    if affinity is None:
        return
    if selector := affinity.required_during_scheduling_ignored_during_execution:
        terms_path = path["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        for index, term in enumerate(selector.node_selector_terms):
            yield from compile_node_term(term, terms_path[index].text).errors
    preferred_path = path["preferredDuringSchedulingIgnoredDuringExecution"]
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
        # A term without weight is not validated.
        if preferred.weight:
            yield from compile_node_term(preferred.preference, preferred_path[index].text).errors
