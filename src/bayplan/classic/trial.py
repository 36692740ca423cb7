"""Evaluation of a pod on one node with some pods added or removed, for nominated pods and dry runs of preemption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from bayplan.classic.plugins.pod_changes import CountingRule, PodChanges
from bayplan.engine.plan import Plan
from bayplan.framework.status import ERROR_BIT
from bayplan.state.arrays import Codes
from bayplan.state.pod_info import PodInfo
from bayplan.state.pod_moves import PodMoves


class NodeTrial:
    """A trial that moves pods on one node. Always call `close` at its end.

    Args:
        plan: the plan of the pod to schedule; its predicates must be up to date before pods are moved.
        row: the row of the node.
        custom: the names of custom plugins, whose filters run regardless of the predicates' results.
    """

    def __init__(self, plan: Plan, row: int, custom: frozenset[str]) -> None:
        self._plan = plan
        self._custom = custom
        self._row = row
        # Predicates in plain Python may read single pods.
        self._moves = PodMoves(plan.state, with_pods=True)
        self.changes = PodChanges()

    def close(self) -> None:
        """Move all pods back."""
        self._moves.undo()

    def remove(self, info: PodInfo) -> None:
        """Remove a pod from the node."""
        self._moves.remove(info, self._row)
        self.changes.removed[info.key] = info
        self.changes.restored.pop(info.key, None)

    def restore(self, info: PodInfo) -> None:
        """Add a removed pod back to the node."""
        self._moves.add(info, self._row)
        self.changes.restored[info.key] = info

    @contextmanager
    def with_nominated(self, infos: Sequence[PodInfo]) -> Iterator[None]:
        """Return a context manager that adds nominated pods to the node during its block."""
        length, known = len(self._moves), self._plan.state.pods
        for info in infos:
            if info.key not in known:
                self._moves.add(info, self._row)
                self.changes.nominated[info.key] = info
        try:
            yield
        finally:
            self._moves.undo(length)
            self.changes.nominated.clear()

    def fits(self, nominated: Sequence[PodInfo]) -> bool:
        """Return whether the pod fits with and without nominated pods.

        An error of a predicate counts as a rejection.
        """
        if nominated:
            with self.with_nominated(nominated):
                if self.verdicts(check_all=False).any():
                    return False
        return not self.verdicts(check_all=False).any()

    def verdicts(self, *, check_all: bool) -> Codes:
        """Return the verdicts (uint16[predicates]), up to the first failure unless `check_all`.

        An error always ends the evaluation.
        """
        plan = self._plan
        found: Codes = np.zeros(len(plan.filtered.results), dtype=np.uint16)
        ended = False
        for number, part in enumerate(plan.filtered.results):
            if ended and part.name not in self._custom:
                continue
            rule = part.rule
            if isinstance(rule, CountingRule):
                verdict = rule.filter_changed(self._row, self.changes)
            elif part.static:
                verdict = int(part.values[self._row])
            else:
                part.rule.refresh()
                verdict = int(part.filter_rule.filter(self._row))
            found[number] = verdict
            if verdict and (verdict & ERROR_BIT or part.name in self._custom):
                break
            ended = ended or (verdict != 0 and not check_all)
        return found
