"""Names of plugins, predicates and priorities in older releases, and their replacements in v1.

Source: the API types and the registry of Policy algorithms, as documented in the changelogs of Kubernetes 1.15 to 1.29.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FIT: Final = "NodeResourcesFit"
RATIO: Final = "RequestedToCapacityRatio"

STRATEGIES: Final[Mapping[str, str]] = {
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    RATIO: RATIO,
}
"""Score plugins that became strategies of NodeResourcesFit."""

RENAMED: Final[Mapping[str, str]] = {
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "SelectorSpread": "PodTopologySpread",
    "DefaultPodTopologySpread": "PodTopologySpread",
}
"""Plugins that another plugin replaces today."""

REMOVED: Final[Mapping[str, str]] = {
    "NodePreferAvoidPods": "the annotation that it read is no longer honoured; taints with PreferNoSchedule do this",
    "NodeResourceLimits": "limits are no longer scored",
    "ServiceAffinity": "pods of a service are no longer kept together by node labels; pod affinity does this",
}
"""Plugins without a replacement, with the reason to report."""

NODE_LABEL: Final = "NodeLabel"
"""A plugin whose arguments are converted to an added affinity of NodeAffinity."""

LEFT_OUT: Final[Mapping[str, str]] = {
    **REMOVED,
    **{name: f"{replacement}, on by default, does this" for name, replacement in RENAMED.items()},
    NODE_LABEL: "its arguments became an added affinity of NodeAffinity",
}
"""Plugins that are removed from all plugin lists, with the reason to report."""

OLD_WEIGHTS: Final[Mapping[str, int]] = {"InterPodAffinity": 1, "NodeAffinity": 1, "TaintToleration": 1}
"""Default weights before v1beta3 that differ from today's."""

PREDICATES: Final[Mapping[str, tuple[str, ...]]] = {
    "GeneralPredicates": (FIT, "NodeName", "NodePorts", "NodeAffinity"),
    "PodFitsResources": (FIT,),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    # Node conditions are taints today, and every profile filters by taints.
    "CheckNodeCondition": ("TaintToleration",),
    "CheckNodeMemoryPressure": ("TaintToleration",),
    "CheckNodeDiskPressure": ("TaintToleration",),
    "CheckNodePIDPressure": ("TaintToleration",),
}
"""The filter plugins that replace each predicate of a Policy."""

ESSENTIAL_FILTERS: Final = ("NodeUnschedulable", "TaintToleration")
"""Filters that run even if a Policy does not name them."""

PRIORITIES: Final[Mapping[str, str]] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceSpreadingPriority": "PodTopologySpread",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
}
"""The score plugin that replaces each priority of a Policy."""

STRATEGY_PRIORITIES: Final[Mapping[str, str]] = {
    "LeastRequestedPriority": "LeastAllocated",
    "MostRequestedPriority": "MostAllocated",
    "RequestedToCapacityRatioPriority": RATIO,
}

REMOVED_PRIORITIES: Final[Mapping[str, str]] = {
    "NodePreferAvoidPodsPriority": REMOVED["NodePreferAvoidPods"],
    "ResourceLimitsPriority": REMOVED["NodeResourceLimits"],
    "EqualPriority": "equal scores for all nodes decide nothing",
}
