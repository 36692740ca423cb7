"""The extension points of the scheduling framework, and which of them the in-tree plugins implement."""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Final, TypeAlias


class ExtensionPoint(StrEnum):
    """A point of a scheduling attempt at which plugins run; the value is its name in snake case.

    Members are in the order in which upstream builds its plugin lists: the first error in this order is reported.
    """

    PRE_FILTER = "pre_filter"
    FILTER = "filter"
    POST_FILTER = "post_filter"
    RESERVE = "reserve"
    PRE_SCORE = "pre_score"
    SCORE = "score"
    PRE_BIND = "pre_bind"
    BIND = "bind"
    POST_BIND = "post_bind"
    PERMIT = "permit"
    PRE_ENQUEUE = "pre_enqueue"
    QUEUE_SORT = "queue_sort"
    PLACEMENT_GENERATE = "placement_generate"
    PLACEMENT_SCORE = "placement_score"

    @property
    def interface(self) -> str:
        """Return the name of the Go interface, as in error texts: ``PreFilterPlugin``."""
        return "".join(part.capitalize() for part in self.value.split("_")) + "Plugin"

    @property
    def json_name(self) -> str:
        """Return the name in configuration files: ``preFilter``."""
        first, *others = self.value.split("_")
        return first + "".join(part.capitalize() for part in others)

    @property
    def has_weights(self) -> bool:
        """Return whether plugins have weights at this extension point."""
        return self in (ExtensionPoint.SCORE, ExtensionPoint.PLACEMENT_SCORE)


ExtensionPointsOf: TypeAlias = Callable[[str], Collection[str] | None]
"""Returns the extension points (snake-case names) that a plugin implements; None if there is no such plugin."""

_IN_TREE: Final[Mapping[str, str]] = {
    "DefaultBinder": "bind",
    "DefaultPreemption": "pre_enqueue post_filter",
    "DynamicResources": "pre_enqueue pre_filter filter post_filter score reserve pre_bind",
    "GangScheduling": "pre_enqueue permit",
    "ImageLocality": "score",
    "InterPodAffinity": "pre_filter filter pre_score score",
    "NodeAffinity": "pre_filter filter pre_score score",
    "NodeDeclaredFeatures": "pre_filter filter",
    "NodeName": "filter",
    "NodePorts": "pre_filter filter",
    "NodeResourcesBalancedAllocation": "pre_score score",
    "NodeResourcesFit": "pre_filter filter pre_score score placement_score",
    "NodeUnschedulable": "filter",
    "NodeVolumeLimits": "pre_filter filter",
    "PodGroupPodsCount": "placement_score",
    "PodTopologySpread": "pre_filter filter pre_score score",
    "PrioritySort": "queue_sort",
    "SchedulingGates": "pre_enqueue",
    "TaintToleration": "filter pre_score score",
    "TopologyPlacementGenerator": "placement_generate",
    "VolumeBinding": "pre_filter filter pre_score score reserve pre_bind",
    "VolumeRestrictions": "pre_filter filter",
    "VolumeZone": "pre_filter filter",
}

IN_TREE_EXTENSION_POINTS: Final[Mapping[str, frozenset[ExtensionPoint]]] = {
    plugin: frozenset(map(ExtensionPoint, points.split())) for plugin, points in _IN_TREE.items()
}
"""The extension points of every in-tree plugin of v1.36.3, including plugins outside the default profile."""


def in_tree_extension_points(plugin: str) -> frozenset[ExtensionPoint] | None:
    """Return the extension points of an in-tree plugin; None for any other name."""
    return IN_TREE_EXTENSION_POINTS.get(plugin)
