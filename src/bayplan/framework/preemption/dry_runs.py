"""What preemption asks of the engine: to play through what would happen if pods were not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.shortlist import Shortlist
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Index
from bayplan.state.cluster_state import ClusterState


class DryRuns(Protocol):
    """The engine, as far as preemption sees it."""

    @property
    def cluster(self) -> ClusterState:
        """The state."""
        ...

    def newest(self, key: str) -> Pod | None:
        """Return the newest version of a pod that the scheduler knows, or None."""
        ...

    def nominated_to(self, node_name: str) -> Sequence[Pod]:
        """Return the pods that are nominated to a node, oldest nomination first."""
        ...

    def in_visiting_order(self, rows: Bools) -> Index:
        """Return the numbers of the rows that are set, in the order in which the scheduler visits nodes."""
        ...

    def find_candidates(
        self, pod: Pod, state: CycleState, rows: Index, budgets: DisruptionBudgets, wanted: int
    ) -> Shortlist:
        """Dry-run preemption by a pod on rows, in this order, until `wanted` candidates are found.

        The search goes on while all that were found violate budgets; at most `wanted` of these are kept, behind the others.
        """
        ...

    def draw(self, count: int) -> int:
        """Return a number from 0 to below `count`, from the stream of the run."""
        ...

    def pick(self, rows: Index) -> int:
        """Return one of several rows that are equally good."""
        ...
