"""Fill in defaults: default plugins, merged with the declared ones, and default arguments.

The rules are those of kube-scheduler's v1 defaulting. Constants are the defaults of the fields.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from bayplan.framework.configuration.document import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
)
from bayplan.framework.configuration.plugin_arguments import argument_type_of
from bayplan.framework.feature_gates import FeatureGates

_DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"

_DEFAULT_MULTI_POINT: Final = (
    Plugin("SchedulingGates"),
    Plugin("PrioritySort"),
    Plugin("NodeUnschedulable"),
    Plugin("NodeName"),
    Plugin("TaintToleration", 3),
    Plugin("NodeAffinity", 2),
    Plugin("NodePorts"),
    Plugin("NodeResourcesFit", 1),
    Plugin("VolumeRestrictions"),
    Plugin("NodeVolumeLimits"),
    Plugin("VolumeBinding"),
    Plugin("VolumeZone"),
    Plugin("PodTopologySpread", 2),
    Plugin("InterPodAffinity", 2),
    Plugin("DefaultPreemption"),
    Plugin("NodeResourcesBalancedAllocation", 1),
    Plugin("ImageLocality", 1),
    Plugin("DefaultBinder"),
)


def default_plugins(feature_gates: FeatureGates) -> tuple[Plugin, ...]:
    """Return the plugins of the default profile, in order; all are enabled through ``multiPoint``."""
    plugins = list(_DEFAULT_MULTI_POINT)
    if feature_gates.enabled("NodeDeclaredFeatures"):
        plugins.append(Plugin("NodeDeclaredFeatures"))
    if feature_gates.enabled("DynamicResourceAllocation"):
        # Deallocating an idle claim is tried before evicting pods.
        plugins.insert(plugins.index(Plugin("DefaultPreemption")), Plugin("DynamicResources", 2))
    if feature_gates.enabled("GangScheduling"):
        plugins.append(Plugin("GangScheduling"))
    if feature_gates.enabled("TopologyAwareWorkloadScheduling"):
        plugins += [Plugin("TopologyPlacementGenerator"), Plugin("PodGroupPodsCount", 1)]
    return tuple(plugins)


def default_document(document: KubeSchedulerConfiguration, feature_gates: FeatureGates) -> KubeSchedulerConfiguration:
    """Return a configuration of version v1, whose arguments have their defaults, with all other defaults filled in."""
    profiles = document.profiles or (KubeSchedulerProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (replace(profiles[0], scheduler_name=_DEFAULT_SCHEDULER_NAME),)
    contention = document.enable_contention_profiling
    return replace(
        document,
        profiles=tuple(_default_profile(profile, feature_gates) for profile in profiles),
        enable_contention_profiling=document.enable_profiling if contention is None else contention,
    )


def _default_profile(profile: KubeSchedulerProfile, feature_gates: FeatureGates) -> KubeSchedulerProfile:
    declared = profile.plugins or Plugins()
    sets = {point: _merged((), getattr(declared, point)) for point in declared.__struct_fields__}
    sets["multi_point"] = _merged(default_plugins(feature_gates), declared.multi_point)
    plugin_config = [*profile.plugin_config]
    enabled = {plugin.name for plugin_set in sets.values() for plugin in plugin_set.enabled}
    configured = {entry.name for entry in plugin_config}
    for name in sorted(enabled - configured, key=str.encode):
        if argument_type := argument_type_of(name):
            plugin_config.append(PluginConfig(name, argument_type().with_defaults(feature_gates)))
    return replace(
        profile,
        scheduler_name=profile.scheduler_name or "",
        plugins=Plugins(**sets),
        plugin_config=tuple(plugin_config),
    )


def _merged(default: Sequence[Plugin], declared: PluginSet) -> PluginSet:
    """Merge a declared plugin set with default plugins.

    Defaults keep their positions, declared entries replace defaults of the same name, other declared entries are
    appended.
    """
    disabled = tuple(Plugin(plugin.name) for plugin in declared.disabled)
    names = {plugin.name for plugin in disabled}
    # If several entries have the same name, the last one replaces the default; validation rejects the others later.
    own = {plugin.name: position for position, plugin in enumerate(declared.enabled)}
    defaults = [] if "*" in names else [plugin for plugin in default if plugin.name not in names]
    replaced = {own[plugin.name] for plugin in defaults if plugin.name in own}
    enabled = [declared.enabled[own[plugin.name]] if plugin.name in own else plugin for plugin in defaults]
    enabled += [plugin for position, plugin in enumerate(declared.enabled) if position not in replaced]
    return PluginSet(tuple(enabled), disabled)
