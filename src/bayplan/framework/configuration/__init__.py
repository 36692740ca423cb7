"""The configuration of the scheduler: reading, defaulting, validation, and the resulting profiles."""

from bayplan.framework.configuration.document import Extender, KubeSchedulerConfiguration
from bayplan.framework.configuration.extension_points import (
    ExtensionPoint,
    ExtensionPointsOf,
    in_tree_extension_points,
    with_custom_plugins,
)
from bayplan.framework.configuration.loading import (
    Examination,
    SchedulerConfiguration,
    declared_document,
    default_configuration,
    examine_configuration,
    load_configuration,
)
from bayplan.framework.configuration.profiles import PluginWeight, ProfileConfiguration

__all__ = [
    "load_configuration",
    "default_configuration",
    "SchedulerConfiguration",
    "ProfileConfiguration",
    "PluginWeight",
    "Extender",
    "ExtensionPoint",
    "ExtensionPointsOf",
    "in_tree_extension_points",
    "with_custom_plugins",
    "examine_configuration",
    "Examination",
    "KubeSchedulerConfiguration",
    "declared_document",
]
