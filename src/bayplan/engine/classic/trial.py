"""Does a pod fit on one node with some pods added or taken off? What nominated pods and dry runs of preemption ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from bayplan.engine.plan import Plan
from bayplan.framework.status import ERROR_BIT
from bayplan.plugins.classic.pod_changes import CountingPredicate, PodChanges
from bayplan.state.arrays import Codes
from bayplan.state.pod_info import PodInfo


class NodeTrial:
    """One node on which pods are moved on trial; to be made inside of a trial of the state.

    Args:
        plan: of the pod that is to fit; its predicates were brought up to date before anything was moved.
        row: the node.
    """

    def __init__(self, plan: Plan, row: int) -> None:
        self._plan = plan
        self._row = row
        self._params = [plan.filter_params(part) for part in plan.filter_parts]
        self.changes = PodChanges()

    def remove(self, info: PodInfo) -> None:
        """Take a pod off the node."""
        self._plan.state.remove_pod(info.key)
        self.changes.removed[info.key] = info
        self.changes.restored.pop(info.key, None)

    def restore(self, info: PodInfo) -> None:
        """Put a pod back."""
        self._plan.state.place(info, self._row)
        self.changes.restored[info.key] = info

    @contextmanager
    def with_nominated(self, infos: Sequence[PodInfo]) -> Iterator[None]:
        """Put nominated pods on the node for the time of the block."""
        state = self._plan.state
        added = [info for info in infos if info.key not in state.pods]
        with state.trial():
            for info in added:
                state.place(info, self._row)
                self.changes.nominated[info.key] = info
            try:
                yield
            finally:
                self.changes.nominated.clear()

    def fits(self, nominated: Sequence[PodInfo]) -> bool:
        """Return whether the pod fits, with nominated pods and without them; an error of a predicate counts as no."""
        if nominated:
            with self.with_nominated(nominated):
                if self.verdicts(check_all=False).any():
                    return False
        return not self.verdicts(check_all=False).any()

    def verdicts(self, *, check_all: bool) -> Codes:
        """Return uint16[predicates]: what predicates say, up to the first that fails unless all are asked.

        An error ends it in any case.
        """
        plan = self._plan
        found: Codes = np.zeros(len(plan.filter_parts), dtype=np.uint16)
        for number, (part, params) in enumerate(zip(plan.filter_parts, self._params, strict=True)):
            plugin = part.plugin
            if isinstance(plugin, CountingPredicate):
                verdict = int(plugin.filter_changed(part.spec, params, plan.state, self._row, self.changes))
            elif part.static:
                verdict = int(part.values[self._row])
            else:
                part.rule.refresh()
                verdict = int(part.filter_rule.filter(self._row))
            found[number] = verdict
            if verdict and (verdict & ERROR_BIT or not check_all):
                break
        return found
