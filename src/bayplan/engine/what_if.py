"""Ask a plan's filters about one row as if pods were there that are not, or were gone: by moving them, asking, and moving them back.

Upstream filters a node with nominated pods twice, with these pods and without: a pod that needs them must not count on them,
and one that they would crowd out must not take their place.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.engine.plan import Plan
from bayplan.state.pod_info import PodInfo


def filter_row_with(plan: Plan, row: int, pods: Sequence[PodInfo]) -> tuple[int, int]:
    """Filter one row as if pods ran there; return the number of the first filter that fails (-1: none) and its verdict."""
    state = plan.state
    with state.trial():
        for info in pods:
            if info.key not in state.pods:
                state.place(info, row)
        return filter_row_now(plan, row)


def filter_row_now(plan: Plan, row: int) -> tuple[int, int]:
    """Filter one row as the state is now, pods having been moved since PreFilter; return the same."""
    asked = 0
    found = (-1, 0)
    try:
        for number, part in enumerate(plan.filter_parts):
            if part.static:
                verdict = part.codes[row]
            else:
                asked = number + 1
                part.rule.after_changes(part.params)
                verdict = part.filter_rule.filter(row)
            if verdict:
                found = (number, int(verdict))
                break
    finally:
        for part in plan.filter_parts[:asked]:
            if not part.static:
                part.rule.before_changes(part.params)
    return found
