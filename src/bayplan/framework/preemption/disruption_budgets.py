"""PodDisruptionBudgets in preemption: which victims they protect."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from bayplan.objects.policy import PodDisruptionBudget
from bayplan.objects.selectors import Selector, SelectorError, compile_label_selector
from bayplan.state.object_catalog import ObjectCatalog
from bayplan.state.pod_info import PodClass, PodInfo


class DisruptionBudgets:
    """The disruption budgets of a cluster, recompiled when any of them changes."""

    def __init__(self, catalog: ObjectCatalog) -> None:
        self._catalog = catalog
        self._version = -1
        self._by_namespace: dict[str, list[tuple[int, Selector, PodDisruptionBudget]]] = {}
        self._allowed: list[int] = []
        self._matching: WeakKeyDictionary[PodClass, tuple[tuple[int, PodDisruptionBudget], ...]] = WeakKeyDictionary()

    @property
    def version(self) -> int:
        """Return a number that changes whenever a budget is written."""
        return self._catalog.version(PodDisruptionBudget)

    def any(self) -> bool:
        """Return whether there is a budget that could protect a pod."""
        self._compile()
        return bool(self._by_namespace)

    def violated_by(self, infos: Sequence[PodInfo]) -> list[bool]:
        """Return for each pod whether evicting it violates a budget, when the pods are evicted in this order.

        A pod that the API server already counts as disrupted (`disrupted_pods`) violates no budget. Any other pod
        counts against every budget that selects it, even if another budget is exhausted.
        """
        self._compile()
        left = list(self._allowed)
        violations = []
        for info in infos:
            violates = False
            for number, budget in self._budgets_of(info.pod_class) if self._by_namespace else ():
                if info.pod.metadata.name not in budget.status.disrupted_pods:
                    left[number] -= 1
                    violates |= left[number] < 0
            violations.append(violates)
        return violations

    def _compile(self) -> None:
        version = self._catalog.version(PodDisruptionBudget)
        if version == self._version:
            return
        self._version = version
        self._by_namespace, self._allowed, self._matching = {}, [], WeakKeyDictionary()
        for budget in self._catalog.all(PodDisruptionBudget):
            try:
                selector = compile_label_selector(budget.spec.selector)
            except SelectorError:
                continue
            # An invalid selector selects nothing; so does an empty one here, unlike in the disruption controller.
            if selector.matches_nothing or selector.matches_everything:
                continue
            entries = self._by_namespace.setdefault(budget.metadata.namespace, [])
            entries.append((len(self._allowed), selector, budget))
            self._allowed.append(budget.status.disruptions_allowed)

    def _budgets_of(self, pod_class: PodClass) -> tuple[tuple[int, PodDisruptionBudget], ...]:
        found = self._matching.get(pod_class)
        if found is None:
            labels = pod_class.labels
            entries = self._by_namespace.get(pod_class.namespace, ()) if labels else ()
            found = tuple((number, budget) for number, selector, budget in entries if selector.matches(labels))
            self._matching[pod_class] = found
        return found
