"""Dry-run preemption on one node in plain numbers: between two preemptors of a kind hardly more than one node changes.

Gives what `bayplan.engine.preemption.lockstep` gives for that row; asked only where filters look at amounts of what is there.
"""

from __future__ import annotations

from typing import NamedTuple

from bayplan.engine.nominated_pods import Crowd
from bayplan.engine.plan import Plan
from bayplan.engine.supposing import SupposedParts, filter_one_supposing
from bayplan.state.arrays import SMALL
from bayplan.state.hypothetical import HypotheticalRow
from bayplan.state.pod_info import PodInfo


class OneRow(NamedTuple):
    """What was found on one node.

    Attributes:
        first: the filter that fails without all potential victims, -1 where none does; verdict: its verdict.
        victims: the slots of the pods that must go, ascending; empty where none of them is in the way.
    """

    first: int
    verdict: int
    victims: list[int]


class RowTrial:
    """Plays preemption through on single nodes.

    Args:
        plan: of the pod that preempts.
        supposed: its filters that pods can change; they need no pods.
        crowd: the nominated pods that count.
    """

    __slots__ = ("_crowd", "_plan", "_supposed", "_view")

    def __init__(self, plan: Plan, supposed: SupposedParts, crowd: Crowd) -> None:
        self._plan = plan
        self._supposed = supposed
        self._crowd = crowd
        self._view = HypotheticalRow(plan.state)

    def run(self, row: int, potential: list[PodInfo]) -> OneRow | None:
        """Find the victims on a row among pods of lower priority, the least important first; None where numbers are too large."""
        usage: list[int] = self._plan.state.usage[:, row].tolist()
        extra = self._crowd.extra_on(row)
        if max(usage) + (max(extra) if extra else 0) >= SMALL:
            return None
        self._view.number = row
        for info in potential:
            for number, amount in info.footprint.amounts:
                usage[number] -= amount
        first, verdict = self._failure(usage, extra)
        if first >= 0:
            return OneRow(first, verdict, [])
        victims = []
        for slot in range(len(potential) - 1, -1, -1):
            amounts = potential[slot].footprint.amounts
            for number, amount in amounts:
                usage[number] += amount
            if self._failure(usage, extra)[0] >= 0:
                victims.append(slot)
                for number, amount in amounts:
                    usage[number] -= amount
        return OneRow(-1, 0, victims[::-1])

    def _failure(self, usage: list[int], extra: list[int] | None) -> tuple[int, int]:
        """Return the first failing filter (-1: none) and its verdict: with nominated pods, then without."""
        view, parts = self._view, self._supposed.parts
        if extra is not None:
            view.usage = [amount + more for amount, more in zip(usage, extra, strict=True)]
            found = filter_one_supposing(self._plan, view, parts)
            if found[0] >= 0:
                return found
        view.usage = usage
        return filter_one_supposing(self._plan, view, parts)
