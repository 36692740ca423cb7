"""Ask a plan's filters about one row as if pods were there that are not, or were gone: by moving them, asking, and moving them back.

Upstream filters a node with nominated pods twice, with these pods and without: a pod that needs them must not count on them,
and one that they would crowd out must not take their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bayplan.engine.plan import Plan
from bayplan.state.pod_info import PodInfo


@contextmanager
def trial(plan: Plan) -> Iterator[None]:
    """Undo, at the end of the block, every change of the state, and let the plan's rules see it as it was."""
    try:
        with plan.state.trial():
            yield
    finally:
        for part in plan.filter_parts:
            if not part.static:
                part.rule.before_changes(part.params)


def place_all(plan: Plan, row: int, pods: Sequence[PodInfo]) -> None:
    """Place pods on a row, except those that are on a node already; to be called in a trial."""
    state = plan.state
    for info in pods:
        if info.key not in state.pods:
            state.place(info, row)


def filter_row_with(plan: Plan, row: int, pods: Sequence[PodInfo]) -> tuple[int, int]:
    """Filter one row as if pods ran there; return the number of the first filter that fails (-1: none) and its verdict."""
    with trial(plan):
        place_all(plan, row, pods)
        return filter_row_now(plan, row)


def filter_row_now(plan: Plan, row: int) -> tuple[int, int]:
    """Filter one row as the state is now; return the same. To be called in a trial."""
    for number, part in enumerate(plan.filter_parts):
        if part.static:
            verdict = part.codes[row]
        else:
            part.rule.after_changes(part.params)
            verdict = part.filter_rule.filter(row)
        if verdict:
            return number, int(verdict)
    return -1, 0
