"""The interface between preemption and the engine: dry runs, nominations and random choices."""

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
    """The engine's interface for preemption, which `bayplan.engine.preemption.dry_runner` implements."""

    @property
    def cluster(self) -> ClusterState:
        """Return the state of the cluster."""
        ...

    def newest(self, key: str) -> Pod | None:
        """Return the newest version of a pod that the scheduler knows, or None."""
        ...

    def nominated_to(self, node_name: str) -> Sequence[Pod]:
        """Return the pods that are nominated to a node, oldest nomination first."""
        ...

    def in_visiting_order(self, rows: Bools | None) -> Index:
        """Return the rows that `rows` selects (None: all), in the order in which the scheduler visits the nodes."""
        ...

    def find_candidates(
        self, pod: Pod, state: CycleState, rows: Index, budgets: DisruptionBudgets, wanted: int, start: int = 0
    ) -> Shortlist:
        """Dry-run preemption by a pod on `rows` from index `start` (wrapping) until `wanted` candidates are found.

        The search continues while all candidates violate budgets; at most `wanted` of these are returned, after the
        others.
        """
        ...

    def draw(self, count: int) -> int:
        """Return a random integer from 0 up to, but excluding, `count`, from the stream of the run."""
        ...

    def pick(self, rows: Index) -> int:
        """Return one of several equally good rows."""
        ...
