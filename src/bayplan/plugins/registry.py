"""The registry of the in-tree plugins."""

from __future__ import annotations

from typing import Any

from bayplan.framework.plugin import Plugin
from bayplan.framework.registry import Registry
from bayplan.plugins.default_binder import DefaultBinder
from bayplan.plugins.default_preemption import DefaultPreemption
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.plugins.gang_scheduling import GangScheduling
from bayplan.plugins.image_locality import ImageLocality
from bayplan.plugins.inter_pod_affinity import InterPodAffinity
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_declared_features import NodeDeclaredFeatures
from bayplan.plugins.node_name import NodeName
from bayplan.plugins.node_ports import NodePorts
from bayplan.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.plugins.node_unschedulable import NodeUnschedulable
from bayplan.plugins.node_volume_limits.plugin import NodeVolumeLimits
from bayplan.plugins.pod_topology_spread import PodTopologySpread
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.plugins.scheduling_gates import SchedulingGates
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.plugins.volume_binding.plugin import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions
from bayplan.plugins.volume_zone import VolumeZone

IN_TREE: tuple[type[Plugin[Any]], ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DynamicResources,
    DefaultPreemption,
    DefaultBinder,
    NodeDeclaredFeatures,
    GangScheduling,
)
"""The plugin classes, in the order of the default profile. GangScheduling belongs to it only if its gate is enabled."""


def in_tree_registry() -> Registry:
    """Return a registry with all in-tree plugins; `Registry.with_plugins` adds custom ones."""
    plugins = {plugin.name: plugin for plugin in IN_TREE}
    return Registry(plugins, in_tree=plugins)
