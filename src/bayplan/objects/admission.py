"""Admission of new pods: priority, tolerations, label keys. Stored pods are not changed.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/, KEP-3633 and KEP-3243 (label
keys), and the behavior of k8s.io/kubernetes/plugin/pkg/admission v1.36.3.
"""

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.objects.affinity import PodAffinity, PodAffinityTerm, PodAntiAffinity, TopologySpreadConstraint
from bayplan.objects.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta, changed, mapped
from bayplan.objects.pod import Pod, Toleration
from bayplan.objects.policy import PriorityClass

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
DEFAULT_TOLERATION_SECONDS = 300
NOT_READY_TAINT = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"

SYSTEM_PRIORITY_CLASSES = (
    PriorityClass(
        metadata=ObjectMeta(name="system-node-critical"),
        value=SYSTEM_CRITICAL_PRIORITY + 1000,
        description="Used for system critical pods that must not be moved from their current node.",
        preemption_policy="PreemptLowerPriority",
    ),
    PriorityClass(
        metadata=ObjectMeta(name="system-cluster-critical"),
        value=SYSTEM_CRITICAL_PRIORITY,
        description=(
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
        ),
        preemption_policy="PreemptLowerPriority",
    ),
)


Terms = TypeVar("Terms", PodAffinity, PodAntiAffinity)


class PriorityClasses:
    """The priority classes of a cluster, always including the two system classes.

    Attributes:
        default: the class of pods that name none: the global default (of several, the one with the lowest value), or
            None.
    """

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        self._by_name = {item.metadata.name: item for item in (*SYSTEM_PRIORITY_CLASSES, *classes)}
        defaults = [item for item in self._by_name.values() if item.global_default]
        self.default = min(defaults, key=lambda item: (item.value, item.metadata.name), default=None)

    def find(self, name: str) -> PriorityClass | None:
        """Return the class with a name, or None."""
        return self._by_name.get(name)

    def names(self) -> list[str]:
        """Return the names of all classes in alphabetical order."""
        return sorted(self._by_name)

    def resolve(self, pod: Pod) -> Pod:
        """Return a pod with the priority and preemption policy of its class.

        A pod with a priority is returned unchanged.

        Raises:
            InputError: the pod names a class that does not exist.
        """
        spec = pod.spec
        if spec.priority is not None:
            return pod
        found = self._by_name.get(spec.priority_class_name) if spec.priority_class_name else self.default
        if found is None and spec.priority_class_name:
            raise InputError(
                f"Pod {pod.key} $.spec.priorityClassName",
                wanted="the name of a PriorityClass",
                got=repr(spec.priority_class_name),
            )
        admitted = with_priority_class(pod, found or PriorityClass())
        policy = spec.preemption_policy or admitted.spec.preemption_policy
        return replace(admitted, spec=replace(admitted.spec, preemption_policy=policy))


def with_priority_class(pod: Pod, chosen: PriorityClass) -> Pod:
    """Return a pod with a priority class, its priority and its preemption policy."""
    spec = replace(
        pod.spec,
        priority=chosen.value,
        priority_class_name=chosen.metadata.name,
        preemption_policy=chosen.preemption_policy or "PreemptLowerPriority",
    )
    return replace(pod, spec=spec)


def with_default_tolerations(pod: Pod, *, seconds: int = DEFAULT_TOLERATION_SECONDS) -> Pod:
    """Return a pod with tolerations of the not-ready and unreachable taints, unless it already has them."""
    tolerations = pod.spec.tolerations
    added = tuple(
        Toleration(key=taint, operator="Exists", effect="NoExecute", toleration_seconds=seconds)
        for taint in (NOT_READY_TAINT, UNREACHABLE_TAINT)
        if not any(item.key in (taint, "") and item.effect in ("NoExecute", "") for item in tolerations)
    )
    return replace(pod, spec=replace(pod.spec, tolerations=tolerations + added)) if added else pod


def with_label_keys(pod: Pod, *, topology_spread: bool = True) -> Pod:
    """Return a pod whose selectors contain the requirements of its `matchLabelKeys` and `mismatchLabelKeys`.

    The API server does this once, when the pod is created, because the scheduler reads only the selectors. A term
    without a selector is unchanged.

    Args:
        pod: the new pod.
        topology_spread: the gate MatchLabelKeysInPodTopologySpreadSelectorMerge.
    """
    spec, labels = pod.spec, pod.metadata.labels
    affinity = spec.affinity
    if affinity is not None:
        near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
        affinity = changed(
            affinity,
            pod_affinity=near and _merge_affinity(near, labels),
            pod_anti_affinity=apart and _merge_affinity(apart, labels),
        )
    constraints = spec.topology_spread_constraints
    if topology_spread and constraints:
        constraints = mapped(lambda constraint: _merge_constraint(constraint, labels), constraints)
    return changed(pod, spec=changed(spec, affinity=affinity, topology_spread_constraints=constraints))


def _merge_affinity(terms: Terms, labels: dict[str, str]) -> Terms:
    preferred = mapped(
        lambda item: changed(item, pod_affinity_term=_merge_term(item.pod_affinity_term, labels)),
        terms.preferred_during_scheduling_ignored_during_execution,
    )
    required = mapped(lambda item: _merge_term(item, labels), terms.required_during_scheduling_ignored_during_execution)
    return changed(
        terms,
        preferred_during_scheduling_ignored_during_execution=preferred,
        required_during_scheduling_ignored_during_execution=required,
    )


def _merge_term(term: PodAffinityTerm, labels: dict[str, str]) -> PodAffinityTerm:
    if term.label_selector is None:
        return term
    selector = _extended(term.label_selector, term.match_label_keys, "In", labels)
    return changed(term, label_selector=_extended(selector, term.mismatch_label_keys, "NotIn", labels))


def _merge_constraint(constraint: TopologySpreadConstraint, labels: dict[str, str]) -> TopologySpreadConstraint:
    if constraint.label_selector is None:
        return constraint
    selector = _extended(constraint.label_selector, constraint.match_label_keys, "In", labels)
    return changed(constraint, label_selector=selector)


def _extended(selector: LabelSelector, keys: tuple[str, ...], operator: str, labels: dict[str, str]) -> LabelSelector:
    added = tuple(
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],)) for key in keys if key in labels
    )
    return replace(selector, match_expressions=selector.match_expressions + added) if added else selector
