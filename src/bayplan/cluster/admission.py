"""Admission of new pods: defaults and admission are computed once for each distinct spec object.

The rules for defaults, priority, default tolerations and label keys are those of `bayplan.objects`. This module caches
their results by spec object: thousands of pods of one template or trace share one spec, and the admitted pods share one
admitted spec, which the scheduler compiles once.
"""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.cluster.namespace_policies import NamespacePolicies
from bayplan.cluster.store import ObjectStore
from bayplan.objects.admission import PriorityClasses, with_default_tolerations, with_label_keys
from bayplan.objects.affinity import PodAffinityTerm
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.pod_defaults import default_pod
from bayplan.objects.policy import PriorityClass

_MEMO_SIZE = 65536


class PodAdmission:
    """Admits the specs of new pods, with the priority classes, limit ranges and quotas of a store.

    Args:
        store: the store.

    Attributes:
        version: changes whenever a priority class, limit range or quota changes. Specs admitted under an older version
            may be outdated.
        policies: the limit ranges and quotas of the store.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.version = 0
        self._classes: PriorityClasses | None = None
        self.policies = NamespacePolicies(store)
        # Keyed by the objects' ids. The values contain the objects, so that their ids can't be reused.
        self._specs: dict[object, tuple[PodSpec, PodSpec]] = {}
        self._labelled: dict[tuple[int, int], tuple[PodSpec, dict[str, str], PodSpec]] = {}

    def charge(self, pod: Pod) -> None:
        """Add the usage of a new pod to the quotas of its namespace.

        Raises:
            InputError: the pod exceeds a quota.
        """
        self.policies.charge(pod)

    def forget(self) -> None:
        """Clear the cache, because a priority class, limit range or quota has changed. Existing pods do not change."""
        self.version += 1
        self.policies.forget()
        self._classes = None
        self._specs.clear()
        self._labelled.clear()

    def admit(self, pod: Pod) -> PodSpec:
        """Return the spec of a new pod as the API server stores it.

        Pods that share a spec object get the same result object, unless the result depends on their labels
        (``matchLabelKeys``).

        Raises:
            InputError: the pod's priority class does not exist, or a limit range rejects it.
        """
        spec = pod.spec
        namespace = pod.metadata.namespace
        limited = self.policies.has_limits(namespace)
        key: object = (id(spec), namespace) if limited else id(spec)
        known = self._specs.get(key)
        if known is not None:
            admitted = known[1]
        else:
            if self._classes is None:
                self._classes = PriorityClasses(self._store.all(PriorityClass))
            if limited:
                pod = self.policies.limited(pod)
            admitted = with_default_tolerations(self._classes.resolve(default_pod(pod))).spec
            if len(self._specs) >= _MEMO_SIZE:
                self._specs.clear()
            self._specs[key] = (spec, admitted)
        if admitted.affinity is None and not admitted.topology_spread_constraints:
            return admitted
        return self._with_label_keys(pod, admitted) if _has_label_keys(admitted) else admitted

    def _with_label_keys(self, pod: Pod, admitted: PodSpec) -> PodSpec:
        labels = pod.metadata.labels
        key = (id(admitted), id(labels))
        known = self._labelled.get(key)
        if known is not None:
            return known[2]
        merged = with_label_keys(replace(pod, spec=admitted)).spec
        if len(self._labelled) >= _MEMO_SIZE:
            self._labelled.clear()
        self._labelled[key] = (admitted, labels, merged)
        return merged


def _has_label_keys(spec: PodSpec) -> bool:
    affinity = spec.affinity
    terms: list[PodAffinityTerm] = []
    if affinity is not None:
        for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
            if side is not None:
                terms.extend(side.required_during_scheduling_ignored_during_execution)
                preferred = side.preferred_during_scheduling_ignored_during_execution
                terms.extend(item.pod_affinity_term for item in preferred)
    return any(term.match_label_keys or term.mismatch_label_keys for term in terms) or any(
        constraint.match_label_keys for constraint in spec.topology_spread_constraints
    )
