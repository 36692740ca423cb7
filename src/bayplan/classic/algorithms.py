"""The tables of the classic scheduler: predicates and their order, priorities, algorithm providers.

Names, weights and the order are those of Kubernetes 1.16.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import msgspec

from bayplan.base.errors import ConfigurationError
from bayplan.classic.gates import ClassicGates
from bayplan.classic.plugins.balanced_volumes import BalancedVolumes
from bayplan.classic.plugins.check_volume_binding import CheckVolumeBinding
from bayplan.classic.plugins.equal_priority import EqualPriority
from bayplan.classic.plugins.essential_predicates import HostName, MatchNodeSelector, PodFitsHostPorts
from bayplan.classic.plugins.even_pods_spread import EvenPodsSpread, EvenPodsSpreadPriority
from bayplan.classic.plugins.general_predicates import GeneralPredicates
from bayplan.classic.plugins.image_locality import ImageLocalityPriority
from bayplan.classic.plugins.inter_pod_affinity_priority import InterPodAffinityPriority
from bayplan.classic.plugins.match_inter_pod_affinity import MatchInterPodAffinity
from bayplan.classic.plugins.max_csi_volume_count import MaxCSIVolumeCountPred
from bayplan.classic.plugins.max_volume_count import (
    MaxAzureDiskVolumeCount,
    MaxCinderVolumeCount,
    MaxEBSVolumeCount,
    MaxGCEPDVolumeCount,
)
from bayplan.classic.plugins.no_disk_conflict import NoDiskConflict
from bayplan.classic.plugins.no_volume_zone_conflict import NoVolumeZoneConflict
from bayplan.classic.plugins.node_affinity_priority import NodeAffinityPriority
from bayplan.classic.plugins.node_conditions import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CheckNodeUnschedulable,
)
from bayplan.classic.plugins.node_label_presence import CheckNodeLabelPresence, NodeLabelPriority
from bayplan.classic.plugins.node_prefer_avoid_pods import NodePreferAvoidPodsPriority
from bayplan.classic.plugins.pod_fits_resources import PodFitsResources
from bayplan.classic.plugins.resource_allocation import (
    BalancedResourceAllocation,
    LeastRequestedPriority,
    MostRequestedPriority,
    RequestedToCapacityRatioPriority,
    checked_shape,
)
from bayplan.classic.plugins.resource_limits import ResourceLimitsPriority
from bayplan.classic.plugins.selector_spread import (
    SelectorSpreadPriority,
    ServiceAntiAffinity,
    ServiceSpreadingPriority,
)
from bayplan.classic.plugins.service_affinity import CheckServiceAffinity
from bayplan.classic.plugins.taints import PodToleratesNodeTaints, TaintTolerationPriority
from bayplan.classic.policy import Policy, PolicyArgument, PolicyRule
from bayplan.framework.plugin import Plugin

PREDICATE_ORDER = (
    "CheckNodeCondition",
    "CheckNodeUnschedulable",
    "GeneralPredicates",
    "HostName",
    "PodFitsHostPorts",
    "MatchNodeSelector",
    "PodFitsResources",
    "NoDiskConflict",
    "PodToleratesNodeTaints",
    "PodToleratesNodeNoExecuteTaints",
    "CheckNodeLabelPresence",
    "CheckServiceAffinity",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxCSIVolumeCountPred",
    "MaxAzureDiskVolumeCount",
    "MaxCinderVolumeCount",
    "CheckVolumeBinding",
    "NoVolumeZoneConflict",
    "CheckNodeMemoryPressure",
    "CheckNodePIDPressure",
    "CheckNodeDiskPressure",
    "EvenPodsSpread",
    "MatchInterPodAffinity",
)
"""The order in which predicates run. A predicate that is missing here never runs, even if it is configured."""

DEFAULT_PROVIDER = "DefaultProvider"
CLUSTER_AUTOSCALER_PROVIDER = "ClusterAutoscalerProvider"
OTHER_SPELLINGS = MappingProxyType({"ClusterAutoScalerProvider": CLUSTER_AUTOSCALER_PROVIDER})

NODE_PREFER_AVOID_PODS_WEIGHT = 10_000

_VALID_NAME = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])", re.ASCII)

PluginClass = type[Plugin[Any]]

_PREDICATES: Mapping[str, PluginClass] = {
    "PodFitsPorts": PodFitsHostPorts,
    "PodFitsHostPorts": PodFitsHostPorts,
    "PodFitsResources": PodFitsResources,
    "HostName": HostName,
    "MatchNodeSelector": MatchNodeSelector,
    "NoVolumeZoneConflict": NoVolumeZoneConflict,
    "MaxEBSVolumeCount": MaxEBSVolumeCount,
    "MaxGCEPDVolumeCount": MaxGCEPDVolumeCount,
    "MaxAzureDiskVolumeCount": MaxAzureDiskVolumeCount,
    "MaxCSIVolumeCountPred": MaxCSIVolumeCountPred,
    "MaxCinderVolumeCount": MaxCinderVolumeCount,
    "MatchInterPodAffinity": MatchInterPodAffinity,
    "NoDiskConflict": NoDiskConflict,
    "GeneralPredicates": GeneralPredicates,
    "PodToleratesNodeTaints": PodToleratesNodeTaints,
    "CheckVolumeBinding": CheckVolumeBinding,
}
_CONDITION_PREDICATES: Mapping[str, PluginClass] = {
    "CheckNodeCondition": CheckNodeCondition,
    "CheckNodeMemoryPressure": CheckNodeMemoryPressure,
    "CheckNodeDiskPressure": CheckNodeDiskPressure,
    "CheckNodePIDPressure": CheckNodePIDPressure,
}
_DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
)
_PRIORITIES: Mapping[str, tuple[PluginClass, int]] = {
    "SelectorSpreadPriority": (SelectorSpreadPriority, 1),
    "InterPodAffinityPriority": (InterPodAffinityPriority, 1),
    "LeastRequestedPriority": (LeastRequestedPriority, 1),
    "BalancedResourceAllocation": (BalancedResourceAllocation, 1),
    "NodePreferAvoidPodsPriority": (NodePreferAvoidPodsPriority, NODE_PREFER_AVOID_PODS_WEIGHT),
    "NodeAffinityPriority": (NodeAffinityPriority, 1),
    "TaintTolerationPriority": (TaintTolerationPriority, 1),
    "ImageLocalityPriority": (ImageLocalityPriority, 1),
    "ServiceSpreadingPriority": (ServiceSpreadingPriority, 1),
    "EqualPriority": (EqualPriority, 1),
    "MostRequestedPriority": (MostRequestedPriority, 1),
    "RequestedToCapacityRatioPriority": (RequestedToCapacityRatioPriority, 1),
}
_DEFAULT_PRIORITIES = (
    "SelectorSpreadPriority",
    "InterPodAffinityPriority",
    "LeastRequestedPriority",
    "BalancedResourceAllocation",
    "NodePreferAvoidPodsPriority",
    "NodeAffinityPriority",
    "TaintTolerationPriority",
    "ImageLocalityPriority",
)


class Algorithm(msgspec.Struct, frozen=True):
    """A configured predicate or priority: its name, class and argument, and its weight, 0 for a predicate."""

    name: str
    kind: PluginClass
    argument: PolicyArgument
    weight: int = 0


class Algorithms(msgspec.Struct, frozen=True):
    """The plugins of a classic scheduler, by name.

    Attributes:
        predicates: the predicates: those that run, in order, then the others.
        priorities: the priorities, sorted by name.
    """

    predicates: tuple[Algorithm, ...]
    priorities: tuple[Algorithm, ...]


class AlgorithmTable:
    """The predicates and priorities that exist with given feature gates; a Policy adds to them, or replaces some.

    Args:
        gates: the feature gates.

    Attributes:
        predicates, priorities: the algorithms by name.
        mandatory: the names of the predicates that are part of every configuration.
    """

    def __init__(self, gates: ClassicGates) -> None:
        nothing = PolicyArgument()
        self.predicates = {name: Algorithm(name, kind, nothing) for name, kind in _PREDICATES.items()}
        self.priorities = {name: Algorithm(name, kind, nothing, weight) for name, (kind, weight) in _PRIORITIES.items()}
        defaults, priorities = list(_DEFAULT_PREDICATES), list(_DEFAULT_PRIORITIES)
        if gates.taint_nodes_by_condition:
            self.predicates["CheckNodeUnschedulable"] = Algorithm(
                "CheckNodeUnschedulable", CheckNodeUnschedulable, nothing
            )
            self.mandatory: tuple[str, ...] = ("PodToleratesNodeTaints", "CheckNodeUnschedulable")
            defaults.append("CheckNodeUnschedulable")
        else:
            self.predicates |= {name: Algorithm(name, kind, nothing) for name, kind in _CONDITION_PREDICATES.items()}
            self.mandatory = ("CheckNodeCondition",)
            defaults += _CONDITION_PREDICATES
        if gates.even_pods_spread:
            self.predicates["EvenPodsSpread"] = Algorithm("EvenPodsSpread", EvenPodsSpread, nothing)
            self._add_priority("EvenPodsSpreadPriority", EvenPodsSpreadPriority)
            defaults.append("EvenPodsSpread")
            priorities.append("EvenPodsSpreadPriority")
        if gates.resource_limits_priority_function:
            self._add_priority("ResourceLimitsPriority", ResourceLimitsPriority)
            priorities.append("ResourceLimitsPriority")
        if gates.balance_attached_node_volumes:
            self._add_priority("BalancedResourceAllocation", BalancedVolumes)
        packing = ["MostRequestedPriority" if name == "LeastRequestedPriority" else name for name in priorities]
        self._providers = {
            DEFAULT_PROVIDER: (frozenset(defaults), frozenset(priorities)),
            CLUSTER_AUTOSCALER_PROVIDER: (frozenset(defaults), frozenset(packing)),
        }

    def _add_priority(self, name: str, kind: PluginClass) -> None:
        self.priorities[name] = Algorithm(name, kind, PolicyArgument(), 1)

    # Configurations.

    def of_provider(self, name: str) -> Algorithms:
        """Return the algorithms of a provider.

        Raises:
            ConfigurationError: there is no such provider.
        """
        provider = self._providers.get(OTHER_SPELLINGS.get(name, name))
        if provider is None:
            text = f'couldn\'t create scheduler using provider "{name}": plugin "{name}" has not been registered'
            raise ConfigurationError(text, hint=" or ".join(self._providers))
        return self._chosen(*provider)

    def of_policy(self, policy: Policy) -> Algorithms:
        """Return the algorithms of a Policy. A list that the Policy omits is that of the default provider.

        Raises:
            ConfigurationError: the Policy names an unknown algorithm, or an argument is invalid.
        """
        predicates, priorities = self._providers[DEFAULT_PROVIDER]
        if policy.predicates is not None:
            predicates = frozenset([self._register_predicate(rule) for rule in policy.predicates])
        if policy.priorities is not None:
            priorities = frozenset([self._register_priority(rule) for rule in policy.priorities])
        return self._chosen(predicates, priorities)

    def _chosen(self, predicates: frozenset[str], priorities: frozenset[str]) -> Algorithms:
        names = predicates | frozenset(self.mandatory)
        ordered = [name for name in PREDICATE_ORDER if name in names]
        others = sorted(names - frozenset(PREDICATE_ORDER))
        return Algorithms(
            tuple(self.predicates[name] for name in (*ordered, *others)),
            tuple(self.priorities[name] for name in sorted(priorities)),
        )

    # Algorithms that a Policy defines.

    def _register_predicate(self, rule: PolicyRule) -> str:
        argument = rule.argument
        if argument is None:
            if rule.name not in self.predicates:
                text = f"Invalid configuration: Predicate type not found for {rule.name}"
                raise ConfigurationError(text, hint=_closest(rule.name, self.predicates))
            return rule.name
        given = (argument.service_affinity is not None) + (argument.labels_presence is not None)
        if given != 1:
            text = f"Exactly 1 predicate argument is required, numArgs: {given}, Predicate: {rule.name}"
            raise ConfigurationError(text)
        kind: PluginClass = CheckServiceAffinity if argument.service_affinity is not None else CheckNodeLabelPresence
        _check_name(rule.name)
        self.predicates[rule.name] = Algorithm(rule.name, kind, argument)
        return rule.name

    def _register_priority(self, rule: PolicyRule) -> str:
        argument = rule.argument
        if argument is None:
            known = self.priorities.get(rule.name)
            if known is None:
                text = f"Invalid configuration: Priority type not found for {rule.name}"
                raise ConfigurationError(text, hint=_closest(rule.name, self.priorities))
            self.priorities[rule.name] = Algorithm(rule.name, known.kind, known.argument, rule.weight)
            return rule.name
        kinds: list[PluginClass] = []
        if argument.service_anti_affinity is not None:
            kinds.append(ServiceAntiAffinity)
        if argument.label_preference is not None:
            kinds.append(NodeLabelPriority)
        if argument.requested_to_capacity_ratio is not None:
            kinds.append(RequestedToCapacityRatioPriority)
        if len(kinds) != 1:
            text = f"Exactly 1 priority argument is required, numArgs: {len(kinds)}, Priority: {rule.name}"
            raise ConfigurationError(text)
        if argument.requested_to_capacity_ratio is not None:
            checked_shape(argument.requested_to_capacity_ratio)
        _check_name(rule.name)
        self.priorities[rule.name] = Algorithm(rule.name, kinds[0], argument, rule.weight)
        return rule.name


def _closest(name: str, known: Mapping[str, Algorithm]) -> str:
    """Return the most similar known name, or ""."""
    return next(iter(get_close_matches(name, known, n=1)), "")


def _check_name(name: str) -> None:
    if not _VALID_NAME.fullmatch(name):
        pattern = "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$"
        raise ConfigurationError(f'Algorithm name {name} does not match the name validation regexp "{pattern}".')
