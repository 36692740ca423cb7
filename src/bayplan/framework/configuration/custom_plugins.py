"""Enable custom plugins that are not named in the configuration, e.g. from the command line."""

from collections.abc import Collection
from types import MappingProxyType

from msgspec.structs import replace

from bayplan.framework.configuration.document import KubeSchedulerProfile, RawArguments
from bayplan.framework.configuration.extension_points import ExtensionPoint
from bayplan.framework.configuration.json_tree import plain_value
from bayplan.framework.configuration.profiles import EffectiveArguments, PluginWeight, ProfileConfiguration


def enable_plugin(
    profile: ProfileConfiguration,
    declared: KubeSchedulerProfile,
    name: str,
    weight: int,
    extension_points: Collection[str],
) -> ProfileConfiguration:
    """Return a profile in which a plugin runs at all its extension points, after the others, as ``multiPoint`` would enable it.

    Two points have room for only one: at queueSort it replaces the other plugin, at bind it goes first. A profile whose
    configuration names the plugin is returned unchanged, because it decides where the plugin runs. Arguments come from its
    pluginConfig.
    """
    if any(plugin.name == name for plugins in profile.plugins.values() for plugin in plugins):
        return profile
    plugins: dict[str, tuple[PluginWeight, ...]] = dict(profile.plugins)
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
    arguments: dict[str, EffectiveArguments] = dict(profile.plugin_arguments)
    for given in declared.plugin_config:
        if given.name == name and isinstance(given.args, RawArguments):
            arguments[name] = plain_value(given.args.tree)
    return replace(profile, plugins=MappingProxyType(plugins), plugin_arguments=MappingProxyType(arguments))
