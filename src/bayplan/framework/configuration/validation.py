"""Validate a defaulted configuration, in upstream's order and words.

Problems that only appear when the profiles are built, such as unknown plugins, are found in ``profiles.py``.
"""

from collections.abc import Sequence

from bayplan.base.go_text.durations import format_duration
from bayplan.framework.configuration.argument_validation import validate_arguments
from bayplan.framework.configuration.document import (
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Plugins,
    PluginSet,
)
from bayplan.framework.configuration.encode import encode_arguments, encode_struct
from bayplan.framework.configuration.field_errors import Named, Path, duplicate, invalid, required, without_repeats
from bayplan.framework.configuration.plugin_arguments import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    PluginArguments,
    PodTopologySpreadArgs,
    VolumeBindingArgs,
)
from bayplan.framework.configuration.schema import fields_of
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.names import check_qualified_name
from bayplan.objects.resource_names import is_extended

_REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_CHECKED_ARGUMENTS: dict[str, type[PluginArguments]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
# Upstream checks for removed plugins at these points only.
_POINTS_WITHOUT_REMOVED = frozenset(Plugins.__struct_fields__) - {
    "multi_point",
    "placement_generate",
    "placement_score",
}


def validate_document(document: KubeSchedulerConfiguration, feature_gates: FeatureGates) -> list[str]:
    """Validate a configuration; return all messages in upstream's order, none if it is valid so far."""
    errors = []
    connection_path = Path("clientConnection")
    if document.client_connection.burst < 0:
        errors.append(invalid(connection_path.child("burst"), document.client_connection.burst, "must be non-negative"))
    errors += _leader_election(Path("leaderElection"), document.leader_election)
    if document.parallelism <= 0:
        detail = "should be an integer value greater than zero"
        errors.append(invalid(Path("parallelism"), document.parallelism, detail))
    errors += _profiles(Path("profiles"), document, feature_gates)
    errors += _percentage(Path("percentageOfNodesToScore"), document.percentage_of_nodes_to_score)
    initial, maximum = document.pod_initial_backoff_seconds, document.pod_max_backoff_seconds
    if initial <= 0:
        errors.append(invalid(Path("podInitialBackoffSeconds"), initial, "must be greater than 0"))
    if maximum < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        errors.append(invalid(Path("podMaxBackoffSeconds"), maximum, detail))
    return errors + _extenders(Path("extenders"), document.extenders)


def _leader_election(path: Path, election: LeaderElectionConfiguration) -> list[str]:
    if not election.leader_elect:
        return []
    errors = []
    for name, duration_ns in (
        ("leaseDuration", election.lease_duration_ns),
        ("renewDeadline", election.renew_deadline_ns),
        ("retryPeriod", election.retry_period_ns),
    ):
        if duration_ns <= 0:
            errors.append(invalid(path.child(name), Named(format_duration(duration_ns)), "must be greater than zero"))
    if election.lease_duration_ns <= election.renew_deadline_ns:
        # Upstream shows the deadline, not the duration that the path refers to.
        shown = Named(format_duration(election.renew_deadline_ns))
        errors.append(invalid(path.child("leaseDuration"), shown, "must be greater than `RenewDeadline`"))
    for name, text in (
        ("resourceLock", election.resource_lock),
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    ):
        if not text:
            errors.append(required(path.child(name)))
    errors = without_repeats(errors)
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        errors.append(invalid(path.child("resourceLock"), election.resource_lock, detail))
    return errors


def _percentage(path: Path, percentage: int | None) -> list[str]:
    if percentage is None or 0 <= percentage <= 100:
        return []
    return [invalid(path, percentage, "not in valid range [0-100]")]


def _profiles(path: Path, document: KubeSchedulerConfiguration, feature_gates: FeatureGates) -> list[str]:
    if not document.profiles:
        return [required(path)]
    errors = []
    names: set[str | None] = set()
    for index, profile in enumerate(document.profiles):
        profile_path = path.index(index)
        errors += _profile(profile_path, profile, document.api_version, feature_gates)
        if profile.scheduler_name in names:
            # Upstream passes a path instead of the name; it has no JSON form.
            errors.append(duplicate(profile_path.child("schedulerName"), {}))
        names.add(profile.scheduler_name)
    return errors + _common_queue_sort(path, document.profiles)


def _profile(path: Path, profile: KubeSchedulerProfile, api_version: str, feature_gates: FeatureGates) -> list[str]:
    errors = []
    if not profile.scheduler_name:
        errors.append(required(path.child("schedulerName")))
    errors += _percentage(path.child("percentageOfNodesToScore"), profile.percentage_of_nodes_to_score)
    if profile.plugins is not None:
        errors += _removed_plugins(path.child("plugins"), profile.plugins, api_version)
    seen: set[str] = set()
    for index, entry in enumerate(profile.plugin_config):
        entry_path = path.child("pluginConfig").index(index)
        if entry.name in seen:
            errors.append(duplicate(entry_path, entry.name))
        seen.add(entry.name)
        if entry.name in _REMOVED_PLUGINS:
            errors.append(_removed(entry_path, entry.name, api_version))
        elif argument_type := _CHECKED_ARGUMENTS.get(entry.name):
            args_path = entry_path.child("args")
            if isinstance(entry.args, argument_type):
                errors += validate_arguments(args_path, entry.args, feature_gates)
            else:
                errors.append(invalid(args_path, encode_arguments(entry.args, names="go"), "has to match plugin args"))
    return errors


def _removed_plugins(path: Path, plugins: Plugins, api_version: str) -> list[str]:
    return [
        _removed(path.child(point.wire.json).child("enabled").index(index), plugin.name, api_version)
        for point in fields_of(Plugins)
        if point.attribute in _POINTS_WITHOUT_REMOVED
        for index, plugin in enumerate(getattr(plugins, point.attribute).enabled)
        if plugin.name in _REMOVED_PLUGINS
    ]


def _removed(path: Path, plugin: str, api_version: str) -> str:
    return invalid(path, plugin, f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{api_version}")')


def _common_queue_sort(path: Path, profiles: Sequence[KubeSchedulerProfile]) -> list[str]:
    """Check that all profiles sort the queue in the same way: literally, before any default is merged in."""
    errors = []
    first = _queue_sort(profiles[0])
    name = first.enabled[0].name if first.enabled else ""
    if len(first.enabled) > 1:
        point_path = path.index(0).child("plugins", "queueSort", "Enabled")
        errors.append(invalid(point_path, len(first.enabled), "only one queue sort plugin can be enabled"))
    first_args = None
    for entry in profiles[0].plugin_config:
        if name and entry.name == name:
            first_args = entry.args
    for index, profile in enumerate(profiles[1:], 1):
        other = _queue_sort(profile)
        if other != first:
            shown = encode_struct(other, names="go")
            point_path = path.index(index).child("plugins", "queueSort")
            errors.append(invalid(point_path, shown, "must be the same for all profiles"))
        for entry in profile.plugin_config:
            if entry.name == name and entry.args != first_args:
                args_path = path.index(index).child("pluginConfig", "args")
                shown_args = encode_arguments(entry.args, names="go")
                errors.append(invalid(args_path, shown_args, "queueSort must be the same for all profiles"))
    return errors


def _queue_sort(profile: KubeSchedulerProfile) -> PluginSet:
    return profile.plugins.queue_sort if profile.plugins is not None else PluginSet()


def _extenders(path: Path, extenders: Sequence[Extender]) -> list[str]:
    errors = []
    seen: set[str] = set()
    for index, extender in enumerate(extenders):
        extender_path = path.index(index)
        if extender.prioritize_verb and extender.weight <= 0:
            detail = "must have a positive weight applied to it"
            errors.append(invalid(extender_path.child("weight"), extender.weight, detail))
        for number, resource in enumerate(extender.managed_resources):
            name_path = extender_path.child("managedResources").index(number).child("name")
            errors += _managed_resource(name_path, resource.name)
            if resource.name in seen:
                errors.append(invalid(name_path, resource.name, "duplicate extender managed resource name"))
            seen.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        errors.append(invalid(path, found, "only one extender can implement bind"))
    return errors


def _managed_resource(path: Path, name: str) -> list[str]:
    if errors := [invalid(path, Named(name), error) for error in check_qualified_name(name)]:
        return errors
    if not is_extended(name):
        return [invalid(path, name, "is an invalid extended resource name")]
    return []
