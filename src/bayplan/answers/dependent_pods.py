"""Pending pods that may fit only after certain pods were placed, and which placements may help them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.objects.meta import LabelSelector
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Selector, SelectorError, compile_label_selector

HELPED_BY_PODS = frozenset(("InterPodAffinity", "PodTopologySpread"))
"""The plugins that may reject a pod until other pods have their nodes."""


class DependentPods:
    """The pods with required affinity to other pods, or with constraints that require an even spread.

    Args:
        kinds: a pod of each kind, by the number of the kind.
    """

    def __init__(self, kinds: Mapping[int, Pod]) -> None:
        self._kinds = kinds
        self._selectors = {kind: found for kind, pod in kinds.items() if (found := _selectors(pod))}
        self._helped: dict[int, frozenset[int]] = {}

    def helped_by(self, kind: int) -> frozenset[int]:
        """Return the kinds of pods that the placement of a pod of a kind may help: those with a selector that matches it.

        Namespaces and additional keys of selectors are ignored, so it may help fewer.
        """
        found = self._helped.get(kind)
        if found is None:
            labels = self._kinds[kind].metadata.labels
            found = self._helped[kind] = frozenset(
                other
                for other, selectors in self._selectors.items()
                if any(selector.matches(labels) for selector in selectors)
            )
        return found


def is_helped(pod: Pod, placed: Iterable[Pod]) -> bool:
    """Return whether the placement of any of these pods may help a pod, as in `DependentPods.helped_by`."""
    selectors = _selectors(pod)
    return bool(selectors) and any(each.matches(other.metadata.labels) for other in placed for each in selectors)


def _selectors(pod: Pod) -> list[Selector]:
    """Return the selectors of the pods whose placement may help a pod. Selectors that can't be read match nothing."""
    selectors = []
    for selector in _helper_selectors(pod):
        try:
            selectors.append(compile_label_selector(selector))
        except SelectorError:
            continue
    return selectors


def _helper_selectors(pod: Pod) -> list[LabelSelector | None]:
    """Return the selectors of a pod's required affinity and hard spreading."""
    affinity = pod.spec.affinity
    near = affinity.pod_affinity if affinity is not None else None
    terms = near.required_during_scheduling_ignored_during_execution if near is not None else ()
    found = [term.label_selector for term in terms]
    spread = pod.spec.topology_spread_constraints
    return found + [each.label_selector for each in spread if each.when_unsatisfiable == "DoNotSchedule"]
