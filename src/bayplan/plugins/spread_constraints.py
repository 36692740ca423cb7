"""Compiled topology spread constraints: a pod's own, or the profile's defaults for pods without their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bayplan.framework.configuration.plugin_arguments import PodTopologySpreadArgs
from bayplan.framework.events import HintAnswer, hint
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.affinity import TopologySpreadConstraint
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Requirement, Selector, SelectorError, compile_label_map, compile_label_selector
from bayplan.objects.service import Service
from bayplan.objects.workloads import ReplicaSet, ReplicationController, StatefulSet
from bayplan.state.object_catalog import ObjectCatalog

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"
HONOR = "Honor"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SOFT),
)
"""The constraints of pods that have none, if the profile uses the system's defaults."""


class SpreadConstraint(msgspec.Struct, frozen=True):
    """One compiled constraint, hard or soft.

    Attributes:
        selector: selects the pods to spread, with `matchLabelKeys` merged in.
        min_domains: 1 if not specified.
        honors_affinity, honors_taints: whether nodes are excluded that the pod's node affinity, or its missing
            tolerations, exclude.
    """

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


class SpreadConstraints:
    """Finds the constraints of pods, and compares them with events (queueing hints).

    Args:
        arguments: the arguments of the plugin.
        gates: the scheduler's feature gates.
        catalog: the services and workloads, from which the selector of default constraints is derived.

    Attributes:
        system_defaulted: whether pods without constraints get the system's defaults.
    """

    def __init__(self, arguments: object, gates: FeatureGates, catalog: ObjectCatalog) -> None:
        given = arguments if isinstance(arguments, PodTopologySpreadArgs) else PodTopologySpreadArgs()
        self.system_defaulted = given.defaulting_type in ("", "System")
        self._defaults = SYSTEM_DEFAULTS if self.system_defaulted else given.default_constraints
        self._inclusion_policies = gates.enabled("NodeInclusionPolicyInPodTopologySpread")
        self._match_label_keys = gates.enabled("MatchLabelKeysInPodTopologySpread")
        self._catalog = catalog

    def needs_catalog(self, pod: Pod) -> bool:
        """Return whether the pod's constraints depend on services and workloads."""
        return not pod.spec.topology_spread_constraints and bool(self._defaults)

    def version(self) -> tuple[int, ...]:
        """Return a value that changes when default constraints may have changed."""
        kinds = (Service, ReplicationController, ReplicaSet, StatefulSet)
        return tuple([self._catalog.version(kind) for kind in kinds])

    def of(self, pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
        """Return the pod's constraints with the action `HARD` or `SOFT`.

        Raises:
            SelectorError: a selector is invalid.
        """
        own = pod.spec.topology_spread_constraints
        if own:
            try:
                return self._compiled(own, pod, action, None)
            except SelectorError as problem:
                kind = "hard" if action == HARD else "soft"
                raise SelectorError(f"obtaining pod's {kind} topology spread constraints: {problem}") from None
        if not any(item.when_unsatisfiable == action for item in self._defaults):
            return ()
        selector = default_selector(pod, self._catalog)
        if selector.matches_everything:
            return ()
        return self._compiled(self._defaults, pod, action, selector)

    def _compiled(
        self, constraints: Iterable[TopologySpreadConstraint], pod: Pod, action: str, selector: Selector | None
    ) -> tuple[SpreadConstraint, ...]:
        return tuple(
            SpreadConstraint(
                item.max_skew,
                item.topology_key,
                selector if selector is not None else self._selector(item, pod),
                item.min_domains if item.min_domains is not None else 1,
                not self._inclusion_policies or item.node_affinity_policy in (None, HONOR),
                self._inclusion_policies and item.node_taints_policy == HONOR,
            )
            for item in constraints
            if item.when_unsatisfiable == action
        )

    def _selector(self, constraint: TopologySpreadConstraint, pod: Pod) -> Selector:
        selector = compile_label_selector(constraint.label_selector)
        if not self._match_label_keys:
            return selector
        labels = pod.metadata.labels
        keys = [key for key in constraint.match_label_keys if key in labels]
        return selector.adding(Requirement(key, "In", (labels[key],)) for key in keys) if keys else selector

    @hint(Pod)
    def is_schedulable_after_pod_change(self, pod: Pod, before: Pod | None, after: Pod | None) -> HintAnswer | bool:
        """Queue the pod if the number of pods that its hard constraints count may have changed."""
        if any(other is not None and not _is_involved(other, pod) for other in (before, after)):
            return False
        try:
            constraints = self.of(pod, HARD)
        except SelectorError:
            return HintAnswer.ERROR
        if before is not None and after is not None:
            own = pod.metadata.uid == after.metadata.uid
            tolerates_more = before.spec.tolerations != after.spec.tolerations
            if own and tolerates_more and any(item.honors_taints for item in constraints):
                return True
            labels = (before.metadata.labels, after.metadata.labels)
            if labels[0] == labels[1]:
                return False
            return any(item.selector.matches(labels[0]) != item.selector.matches(labels[1]) for item in constraints)
        other = after if after is not None else before
        if other is None:
            return HintAnswer.ERROR
        return any(constraint.selector.matches(other.metadata.labels) for constraint in constraints)

    @hint(Node)
    def is_schedulable_after_node_change(self, pod: Pod, before: Node | None, after: Node | None) -> HintAnswer | bool:
        """Queue the pod if a node joined a domain of its hard constraints, left it, or changed in it."""
        try:
            constraints = self.of(pod, HARD)
        except SelectorError:
            return HintAnswer.ERROR
        was = before is not None and _has_all_keys(before, constraints)
        now = after is not None and _has_all_keys(after, constraints)
        if before is None or after is None:
            return now if after is not None else was
        if was != now:
            return True
        keys = [item.topology_key for item in constraints]
        moved = any(before.metadata.labels.get(key) != after.metadata.labels.get(key) for key in keys)
        return now and (moved or before.spec.taints != after.spec.taints)


def default_selector(pod: Pod, catalog: ObjectCatalog) -> Selector:
    """Return the selector of the pods that have the same services and the same controlling workload as this pod."""
    metadata = pod.metadata
    merged: dict[str, str] = {}
    for service in catalog.all(Service):
        wanted = service.spec.selector or {}
        if service.metadata.namespace == metadata.namespace and wanted.items() <= metadata.labels.items():
            merged.update(wanted)
    selector = compile_label_map(merged)
    owner = metadata.controller()
    if owner is None:
        return selector
    key = f"{metadata.namespace}/{owner.name}"
    match (owner.api_version, owner.kind):
        case ("v1", "ReplicationController"):
            controller = catalog.get(ReplicationController, key)
            if controller is not None:
                return compile_label_map({**merged, **(controller.spec.selector or {})})
        case ("apps/v1", "ReplicaSet"):
            return _adding(selector, catalog.get(ReplicaSet, key))
        case ("apps/v1", "StatefulSet"):
            return _adding(selector, catalog.get(StatefulSet, key))
    return selector


def _adding(selector: Selector, workload: ReplicaSet | StatefulSet | None) -> Selector:
    if workload is None:
        return selector
    try:
        other = compile_label_selector(workload.spec.selector)
    except SelectorError:
        return selector
    return selector if other.matches_nothing else selector.adding(other.requirements)


def _is_involved(other: Pod, pod: Pod) -> bool:
    """Return whether a pod can count: it is the waiting pod itself, or has its namespace and a node or nomination."""
    if other.metadata.uid == pod.metadata.uid:
        return True
    if not other.spec.node_name and not other.status.nominated_node_name:
        return False
    return other.metadata.namespace == pod.metadata.namespace


def _has_all_keys(node: Node, constraints: Sequence[SpreadConstraint]) -> bool:
    return all(item.topology_key in node.metadata.labels for item in constraints)
