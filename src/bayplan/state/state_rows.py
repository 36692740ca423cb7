"""One row for each state that nodes are in: what rules about amounts are asked about instead of all rows."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.objects.requests import HostPort
from bayplan.objects.selectors import Requirement
from bayplan.state.amount_columns import AmountColumns
from bayplan.state.arrays import Bools, Floats, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import Counter
from bayplan.state.pod_info import FIRST_RESOURCE, NON_ZERO_CPU, POD_COUNT
from bayplan.state.views import Rows


class StateRows(Rows):
    """The states of `ClusterState.usage_states`, which must be up to date: all of them, or those of an index.

    It knows amounts alone: neither names nor labels nor what pods are there. Asked are only rules that promise to look at nothing
    else (`Plugin.amounts_only`).
    """

    __slots__ = ()

    def __init__(self, state: ClusterState, index: Index | None = None) -> None:
        super().__init__(state, index)
        if index is None:
            self._all = slice(0, state.usage_states.size)

    def __len__(self) -> int:
        return self.state.usage_states.size if self.index is None else len(self.index)

    def at(self, index: Index) -> StateRows:
        """Return a view of some states (intp)."""
        return StateRows(self.state, index)

    def row_numbers(self) -> Index:
        """Refuse: states are of many rows, or of none.

        Raises:
            TypeError: always.
        """
        raise _refusal("row numbers")

    def unschedulable(self) -> Bools:
        """Refuse, as `row_numbers` does."""
        raise _refusal("cordons")

    def taints(self) -> Index:
        """Refuse, as `row_numbers` does."""
        raise _refusal("taints")

    def label(self, key: str) -> Index:
        """Refuse, as `row_numbers` does; so does what is asked by way of labels."""
        raise _refusal(f"the label {key}")

    def counts(self, counter: Counter) -> Ints:
        """Refuse, as `row_numbers` does."""
        raise _refusal("counts of pods")

    def matches(self, requirement: Requirement) -> Bools:
        """Refuse, as `row_numbers` does."""
        raise _refusal(f"the label {requirement.key}")

    def named(self, names: Sequence[str]) -> Bools:
        """Refuse, as `row_numbers` does."""
        raise _refusal("names of nodes")

    def has_image(self, name: str) -> Bools:
        """Refuse, as `row_numbers` does."""
        raise _refusal(f"the image {name}")

    def host_port_conflicts(self, wanted: HostPort) -> Bools:
        """Refuse, as `row_numbers` does."""
        raise _refusal("host ports")

    def columns(self) -> AmountColumns:
        """Return what is kept of cpu and memory as floats, of all states."""
        return self.state.usage_states

    def allocatable(self, resource: int) -> Ints:
        """Return what nodes in each state offer of a resource."""
        return self.state.usage_states.allocatable[resource, self._all]

    def divisor(self, resource: int) -> Floats:
        """Return the same as floats, 1 where there is none."""
        whole = self.allocatable(resource)
        return self.to_float(self.where(whole != 0, whole, 1))

    def requested(self, resource: int) -> Ints:
        """Return what pods request on a node in each state."""
        return self.state.usage_states.usage[FIRST_RESOURCE + resource, self._all]

    def non_zero_requested(self, resource: int) -> Ints:
        """Return the same of cpu or memory, with the scoring defaults for containers without."""
        return self.state.usage_states.usage[NON_ZERO_CPU + resource, self._all]

    def cpu_memory_divisors(self) -> Floats:
        """Return float64[2, states], `divisor` of cpu and memory."""
        return self.state.usage_states.offered[:, self._all]

    def pod_count(self) -> Ints:
        """Return how many pods are on a node in each state."""
        return self.state.usage_states.usage[POD_COUNT, self._all]

    def allowed_pods(self) -> Ints:
        """Return how many pods nodes in each state allow."""
        return self.state.usage_states.allowed_pods[self._all]


def _refusal(asked: str) -> TypeError:
    return TypeError(f"a plugin with amounts_only promises to look at amounts alone, and asks for {asked}")
