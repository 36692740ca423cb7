"""Build profiles, like kube-scheduler's frameworks: the plugins at every extension point, with weights and arguments."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from bayplan.base.go_arithmetic import wrap
from bayplan.base.go_text.quoting import quote
from bayplan.formats.json_tree import JsonValue, plain_value
from bayplan.framework.configuration.document import KubeSchedulerProfile, Plugins, PluginSet, RawArguments
from bayplan.framework.configuration.extension_points import ExtensionPoint, ExtensionPointsOf
from bayplan.framework.configuration.field_errors import ConfigurationRejectedError, Path, Remark, remarks_inside
from bayplan.framework.configuration.plugin_arguments import NodeResourcesFitArgs, PluginArguments, argument_type_of
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.selectors import join_errors

EffectiveArguments: TypeAlias = "PluginArguments | JsonValue"
"""Arguments as passed to a plugin: typed for in-tree plugins, plain data for others."""

_ALL = "*"
_MAX_NODE_SCORE = 100
_MAX_INT64 = (1 << 63) - 1
# The plugins' own messages when arguments are missing.
_MISSING_ARGUMENTS = {
    "DefaultPreemption": "got args of type <nil>, want *DefaultPreemptionArgs",
    "DynamicResources": "got args of type <nil>, want *DynamicResourcesArgs",
    "NodeAffinity": "args are not of type NodeAffinityArgs, got <nil>",
}


class BuildError(ConfigurationRejectedError):
    """A profile or extender can't be built.

    The path of an enabled plugin ends with its name instead of its index:
    ``("profiles", 0, "plugins", "filter", "enabled", "NodeName")``, for the profile alone without its first two steps.
    """


class PluginWeight(NamedTuple):
    """A plugin at an extension point, with its weight; 0 if weights do not apply."""

    name: str
    weight: int = 0


class ProfileConfiguration(msgspec.Struct, frozen=True):
    """A resolved profile.

    Attributes:
        scheduler_name: the value of ``spec.schedulerName`` in its pods.
        percentage_of_nodes_to_score: None to use the percentage of the whole configuration; 0 for adaptive.
        plugins: by extension point (a snake-case name, see `ExtensionPoint`), its plugins in execution order.
        plugin_arguments: the arguments of enabled plugins that have any, by plugin, in name order: typed for in-tree
            plugins, plain data (as in the file) for others.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    plugins: Mapping[str, tuple[PluginWeight, ...]]
    plugin_arguments: Mapping[str, EffectiveArguments]

    def names(self, point: str) -> tuple[str, ...]:
        """Return the names of the plugins at an extension point, in execution order."""
        return tuple(plugin.name for plugin in self.plugins[point])

    def with_plugin(
        self, name: str, weight: int, extension_points: Collection[str], declared: KubeSchedulerProfile
    ) -> "ProfileConfiguration":
        """Return the profile with a plugin added at all its extension points, as if it was enabled with ``multiPoint``.

        The plugin runs after the others, except at queueSort, where it replaces the only plugin, and at bind, where it
        runs first. If the configuration names the plugin, it decides where the plugin runs. The plugin's arguments come
        from the `declared` pluginConfig.
        """
        if any(plugin.name == name for plugins in self.plugins.values() for plugin in plugins):
            return self
        plugins = dict(self.plugins)
        for point in ExtensionPoint:
            if point not in extension_points:
                continue
            entry = PluginWeight(name, weight if point.has_weights else 0)
            if point is ExtensionPoint.QUEUE_SORT:
                plugins[point] = (entry,)
            elif point is ExtensionPoint.BIND:
                plugins[point] = (entry, *plugins.get(point, ()))
            else:
                plugins[point] = (*plugins.get(point, ()), entry)
        arguments = dict(self.plugin_arguments)
        for given in declared.plugin_config:
            if given.name == name and isinstance(given.args, RawArguments):
                arguments[name] = plain_value(given.args.tree)
        return replace(self, plugins=MappingProxyType(plugins), plugin_arguments=MappingProxyType(arguments))


def build_profiles(
    profiles: Collection[KubeSchedulerProfile], feature_gates: FeatureGates, extension_points_of: ExtensionPointsOf
) -> tuple[ProfileConfiguration, ...]:
    """Build all profiles of a configuration, in the configuration's order.

    Raises:
        BuildError: the first problem, in upstream's words.
    """
    built: list[ProfileConfiguration] = []
    for number, profile in enumerate(profiles):
        try:
            following = _build(profile, feature_gates, extension_points_of)
        except BuildError as error:
            name = profile.scheduler_name or ""
            remarks = remarks_inside(("profiles", number), error.remarks)
            raise BuildError(f"creating profile for scheduler name {name}: {error}", remarks) from None
        _check_against(built, profile, following)
        built.append(following)
    return tuple(built)


def _check_against(
    built: list[ProfileConfiguration], profile: KubeSchedulerProfile, following: ProfileConfiguration
) -> None:
    """Check that a profile has a unique name, and sorts the queue like the first profile."""
    name = quote(following.scheduler_name)
    if profile.plugins is None:
        raise BuildError(f"plugins required for profile with scheduler name {name}")
    if any(other.scheduler_name == following.scheduler_name for other in built):
        raise BuildError(f"duplicate profile with scheduler name {name}")
    if not built:
        return
    (first_sort,), (sort,) = built[0].names(ExtensionPoint.QUEUE_SORT), following.names(ExtensionPoint.QUEUE_SORT)
    if first_sort != sort:
        raise BuildError(f"different queue sort plugins for profile {name}: {quote(sort)}, first: {quote(first_sort)}")
    if built[0].plugin_arguments.get(sort) != following.plugin_arguments.get(sort):
        raise BuildError(f"different queue sort plugin args for profile {name}")


def _build(
    profile: KubeSchedulerProfile, feature_gates: FeatureGates, extension_points_of: ExtensionPointsOf
) -> ProfileConfiguration:
    plugins = profile.plugins or Plugins()
    declared = [plugin for point in plugins.__struct_fields__ for plugin in getattr(plugins, point).enabled]
    needed = sorted({plugin.name for plugin in declared})
    implemented = {name: found for name in needed if (found := extension_points_of(name)) is not None}
    arguments = _arguments(profile, implemented, feature_gates)
    at_points: dict[ExtensionPoint, tuple[str, ...]] = dict.fromkeys(ExtensionPoint, ())
    if profile.plugins is not None:
        own = {point: _own_plugins(point, _plugin_set(plugins, point), implemented) for point in ExtensionPoint}
        at_points = {point: _with_multi_point(point, names, plugins, implemented) for point, names in own.items()}
        _check_counts(profile.scheduler_name or "", at_points)
    weights = {point: _weights(plugins, implemented, point) for point in ExtensionPoint if point.has_weights}
    effective: dict[str, tuple[PluginWeight, ...]] = {
        point: tuple(PluginWeight(name, weights.get(point, {}).get(name, 0)) for name in names)
        for point, names in at_points.items()
    }
    return ProfileConfiguration(
        scheduler_name=profile.scheduler_name or "",
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        plugins=MappingProxyType(effective),
        plugin_arguments=MappingProxyType(arguments),
    )


def _plugin_set(plugins: Plugins, point: ExtensionPoint) -> PluginSet:
    declared = getattr(plugins, point.value)
    assert isinstance(declared, PluginSet)
    return declared


def _arguments(
    profile: KubeSchedulerProfile, implemented: Collection[str], feature_gates: FeatureGates
) -> dict[str, EffectiveArguments]:
    """Return the arguments of the implemented plugins.

    Raises:
        BuildError: a plugin has two entries, lacks arguments, or rejects them.
    """
    places: dict[str, int] = {}
    for number, entry in enumerate(profile.plugin_config):
        if entry.name in places:
            raise BuildError(f"repeated config for plugin {entry.name}")
        places[entry.name] = number
    arguments: dict[str, EffectiveArguments] = {}
    for name in implemented:
        args = profile.plugin_config[places[name]].args if name in places else None
        if isinstance(args, RawArguments):
            arguments[name] = plain_value(args.tree)
        elif args is not None:
            # The arguments of other plugins were validated with the configuration, by the same rules.
            errors = args.errors(Path(), feature_gates) if isinstance(args, NodeResourcesFitArgs) else []
            if errors:
                remarks = [Remark(each, ("pluginConfig", places[name], "args")) for each in errors]
                raise BuildError(f"initializing plugin {quote(name)}: {join_errors(errors)}", remarks)
            arguments[name] = args
        elif (argument_type := argument_type_of(name)) is not None:
            missing = _MISSING_ARGUMENTS.get(name, f"want args to be of type {argument_type.__name__}, got <nil>")
            remarks = [Remark(missing, ("pluginConfig", "args"))]
            raise BuildError(f"initializing plugin {quote(name)}: {missing}", remarks)
    return arguments


def _own_plugins(
    point: ExtensionPoint, declared: PluginSet, implemented: Mapping[str, Collection[str]]
) -> tuple[str, ...]:
    """Return the names of the plugins enabled at the extension point itself, after checking them."""
    names: list[str] = []
    for plugin in declared.enabled:
        name, steps = quote(plugin.name), ("plugins", point.json_name, "enabled", plugin.name)
        if plugin.name not in implemented:
            raise BuildError(f"{point.interface} {name} does not exist", steps=steps)
        if point not in implemented[plugin.name]:
            raise BuildError(f"plugin {name} does not extend {point.interface} plugin", steps=steps)
        if plugin.name in names:
            raise BuildError(f"plugin {name} already registered as {quote(point.interface)}", steps=steps)
        names.append(plugin.name)
    return tuple(names)


def _with_multi_point(
    point: ExtensionPoint, own: tuple[str, ...], plugins: Plugins, implemented: Mapping[str, Collection[str]]
) -> tuple[str, ...]:
    """Return the plugins of an extension point together with those of ``multiPoint`` that implement it.

    The point's own entries that are also in ``multiPoint`` come first, and all other own entries last.
    """
    disabled = {plugin.name for plugin in _plugin_set(plugins, point).disabled}
    if _ALL in disabled:
        return own
    overridden: set[str] = set()
    added: list[str] = []
    for plugin in plugins.multi_point.enabled:
        name, steps = quote(plugin.name), ("plugins", "multiPoint", "enabled", plugin.name)
        if plugin.name not in implemented:
            raise BuildError(f"{point.interface} {name} does not exist", steps=steps)
        if point not in implemented[plugin.name] or plugin.name in disabled:
            continue
        if plugin.name in own:
            overridden.add(plugin.name)
        elif plugin.name in added:
            raise BuildError(f"plugin {name} already registered as {quote(point.interface)}", steps=steps)
        else:
            added.append(plugin.name)
    first = [name for name in own if name in overridden]
    last = [name for name in own if name not in overridden]
    return (*first, *added, *last)


def _check_counts(scheduler_name: str, at_points: Mapping[ExtensionPoint, tuple[str, ...]]) -> None:
    name = quote(scheduler_name)
    sorters = len(at_points[ExtensionPoint.QUEUE_SORT])
    if sorters != 1:
        required = "only one queue sort plugin required for profile with scheduler name"
        raise BuildError(f"{required} {name}, but got {sorters}")
    if not at_points[ExtensionPoint.BIND]:
        raise BuildError(f"at least one bind plugin is needed for profile with scheduler name {name}")
    if len(at_points[ExtensionPoint.PLACEMENT_GENERATE]) > 1:
        raise BuildError(f"at most one placement generate plugin is allowed for profile with scheduler name {name}")


def _weights(plugins: Plugins, implemented: Mapping[str, Collection[str]], point: ExtensionPoint) -> dict[str, int]:
    """Return the weight of each plugin that scores: from the extension point, else from ``multiPoint``; 0 becomes 1."""
    weights: dict[str, int] = {}
    total = 0
    for plugin in (*_plugin_set(plugins, point).enabled, *plugins.multi_point.enabled):
        if point not in implemented.get(plugin.name, ()) or plugin.name in weights:
            continue
        weights[plugin.name] = plugin.weight or 1
        # Upstream's overflow check overflows itself if the total so far is negative.
        room = wrap(_MAX_INT64 - total)
        if weights[plugin.name] * _MAX_NODE_SCORE > room:
            what = point.value.replace("_", " ")
            raise BuildError(f"{what} plugins: total score of Score plugins could overflow")
        total += weights[plugin.name] * _MAX_NODE_SCORE
    return weights
