"""Pending pods that may fit only after certain pods were placed, and which placements may help them."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.answers.trial import Trial, helper_selectors
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Selector, SelectorError, compile_label_selector

_PLUGINS = frozenset(("InterPodAffinity", "PodTopologySpread"))
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

    @staticmethod
    def needs_others(trial: Trial, key: str) -> bool:
        """Return whether the placement of another pod may help a pod that was just scheduled without success.

        It does not, for example, if no node has enough free amounts.
        """
        queued = trial.scheduler.queue.get(key)
        return queued is not None and not _PLUGINS.isdisjoint(queued.unschedulable_plugins)


def _selectors(pod: Pod) -> list[Selector]:
    """Return the selectors of the pods whose placement may help a pod. Selectors that can't be read match nothing."""
    selectors = []
    for selector in helper_selectors(pod):
        try:
            selectors.append(compile_label_selector(selector))
        except SelectorError:
            continue
    return selectors
