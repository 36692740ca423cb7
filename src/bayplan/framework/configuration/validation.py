"""Validate a defaulted configuration, in upstream's order and words; arguments of plugins validate themselves.

Problems such as unknown plugins appear only when profiles are built; see ``profiles.py``.
"""

from collections.abc import Iterator, Sequence

from bayplan.base.go_text.durations import format_duration
from bayplan.framework.configuration.document import (
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Plugins,
    PluginSet,
)
from bayplan.framework.configuration.field_errors import Named, Path
from bayplan.framework.configuration.plugin_arguments import argument_type_of
from bayplan.framework.configuration.schema import fields_of
from bayplan.framework.configuration.struct_codec import encode_arguments, encode_struct
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.names import check_qualified_name
from bayplan.objects.resource_names import is_extended

_REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_CHECKED_WHEN_BUILT = "NodeResourcesFit"
"""The plugin whose arguments upstream validates when it creates the plugin, not with the configuration."""

_POINTS_WITH_REMOVED = ("multi_point", "placement_generate", "placement_score")
"""Extension points at which upstream does not check for removed plugins."""


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
                yield from entry.args.errors(entry_path["args"], feature_gates)
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
