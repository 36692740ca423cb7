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

_P = ExtensionPoint

IN_TREE_EXTENSION_POINTS: Final[Mapping[str, frozenset[ExtensionPoint]]] = {
    "DefaultBinder": frozenset({_P.BIND}),
    "DefaultPreemption": frozenset({_P.PRE_ENQUEUE, _P.POST_FILTER}),
    "DynamicResources": frozenset(
        {_P.PRE_ENQUEUE, _P.PRE_FILTER, _P.FILTER, _P.POST_FILTER, _P.SCORE, _P.RESERVE, _P.PRE_BIND}
    ),
    "GangScheduling": frozenset({_P.PRE_ENQUEUE, _P.PERMIT}),
    "ImageLocality": frozenset({_P.SCORE}),
    "InterPodAffinity": frozenset({_P.PRE_FILTER, _P.FILTER, _P.PRE_SCORE, _P.SCORE}),
    "NodeAffinity": frozenset({_P.PRE_FILTER, _P.FILTER, _P.PRE_SCORE, _P.SCORE}),
    "NodeDeclaredFeatures": frozenset({_P.PRE_FILTER, _P.FILTER}),
    "NodeName": frozenset({_P.FILTER}),
    "NodePorts": frozenset({_P.PRE_FILTER, _P.FILTER}),
    "NodeResourcesBalancedAllocation": frozenset({_P.PRE_SCORE, _P.SCORE}),
    "NodeResourcesFit": frozenset({_P.PRE_FILTER, _P.FILTER, _P.PRE_SCORE, _P.SCORE, _P.PLACEMENT_SCORE}),
    "NodeUnschedulable": frozenset({_P.FILTER}),
    "NodeVolumeLimits": frozenset({_P.PRE_FILTER, _P.FILTER}),
    "PodGroupPodsCount": frozenset({_P.PLACEMENT_SCORE}),
    "PodTopologySpread": frozenset({_P.PRE_FILTER, _P.FILTER, _P.PRE_SCORE, _P.SCORE}),
    "PrioritySort": frozenset({_P.QUEUE_SORT}),
    "SchedulingGates": frozenset({_P.PRE_ENQUEUE}),
    "TaintToleration": frozenset({_P.FILTER, _P.PRE_SCORE, _P.SCORE}),
    "TopologyPlacementGenerator": frozenset({_P.PLACEMENT_GENERATE}),
    "VolumeBinding": frozenset({_P.PRE_FILTER, _P.FILTER, _P.PRE_SCORE, _P.SCORE, _P.RESERVE, _P.PRE_BIND}),
    "VolumeRestrictions": frozenset({_P.PRE_FILTER, _P.FILTER}),
    "VolumeZone": frozenset({_P.PRE_FILTER, _P.FILTER}),
}
"""The extension points of every in-tree plugin of v1.36.3, including plugins outside the default profile."""


def in_tree_extension_points(plugin: str) -> frozenset[ExtensionPoint] | None:
    """Return the extension points of an in-tree plugin; None for any other name."""
    return IN_TREE_EXTENSION_POINTS.get(plugin)
