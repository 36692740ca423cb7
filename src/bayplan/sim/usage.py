"""Measures the requests of every resource over time, in the whole cluster and in each zone.

At the end of each instant of virtual time, the meter reads the placements and node changes that the state has recorded.
It does not see amounts in between, and takes time only for changes.
"""

from __future__ import annotations

from bayplan.sim.result import ResourceUsage
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT, Footprint
from bayplan.state.resource_table import PODS

ZONE_LABEL = "topology.kubernetes.io/zone"

MAX_FOOTPRINTS = 4096
"""Maximum number of footprints per zone whose times are summed up separately.

Above it, the sums are added to the moments.
"""


class _Totals:
    """Sums over a set of nodes, by row of the usage matrix, with the data for their integrals over time.

    The rows with amounts that are only used for scoring (from `NON_ZERO_CPU` to `FIRST_RESOURCE`) have no meaning here.

    A sum needs no work while time passes: a change by `d` at time `t` adds `d * t` to its moment, and the integral up
    to `T` is `sum * T - moment`. All are Python integers, which do not overflow.
    """

    def __init__(self) -> None:
        self.nodes = 0
        self.requested: list[int] = []
        self.requested_moment: list[int] = []
        self.allocatable: list[int] = []
        self.allocatable_moment: list[int] = []
        self.peak: list[int] = []
        self.peak_ns: list[int] = []
        self.peak_allocatable: list[int] = []
        # By footprint: the sum of the times at which such pods arrived, minus those at which they left, that is not yet
        # in the moments.
        self.times_ns: dict[Footprint, int] = {}

    def fit(self, count: int) -> None:
        """Make room for this many resources."""
        for values in (
            *(self.requested, self.requested_moment, self.allocatable, self.allocatable_moment),
            *(self.peak, self.peak_ns, self.peak_allocatable),
        ):
            values.extend([0] * (count - len(values)))

    def update_peak(self, time_ns: int, number: int) -> None:
        """Update the peak of a resource."""
        amount = self.requested[number]
        if amount > self.peak[number]:
            self.peak[number] = amount
            self.peak_ns[number] = time_ns
            self.peak_allocatable[number] = self.allocatable[number]


class UsageMeter:
    """Measures the usage of a state through virtual time.

    Args:
        state: the state, without pods; only this object may empty its list of placements.
        start_ns: the start of the run.
    """

    def __init__(self, state: ClusterState, start_ns: int) -> None:
        self._state = state
        self._start_ns = start_ns
        state.placements = []
        self._node_position = state.node_log.start
        self._width = 0
        self._cluster = _Totals()
        self._zones: dict[str, _Totals] = {}
        # By row of a node: the totals of its zone, and its allocatable amounts.
        self._zone_of: dict[int, _Totals] = {}
        self._allocatable: dict[int, list[int]] = {}

    def settle(self, now_ns: int) -> None:
        """Process the changes since the last call. Called when everything at an instant has happened."""
        state, time_ns = self._state, now_ns - self._start_ns
        grown: list[tuple[_Totals, Footprint]] = []
        if state.placements:
            placements, state.placements = state.placements, []
            if len(state.usage) > self._width:
                self._fit(len(state.usage))
            for row, footprint, sign in placements:
                zone = self._zone_of.get(row)
                if zone is not None:
                    self._take_placement(zone, footprint, sign, time_ns)
                    if sign > 0:
                        grown.append((zone, footprint))
        touched: dict[int, _Totals] = {}
        if self._node_position != state.node_log.end:
            rows = state.node_log.since(self._node_position)
            self._node_position = state.node_log.end
            for row in dict.fromkeys(rows) if rows is not None else range(state.nodes.count):
                self._take_node(row, time_ns, touched)
        for zone, footprint in grown:
            for number, _ in footprint.amounts:
                zone.update_peak(now_ns, number)
                self._cluster.update_peak(now_ns, number)
        for totals in touched.values():
            for number in range(self._width):
                totals.update_peak(now_ns, number)

    def _take_placement(self, zone: _Totals, footprint: Footprint, sign: int, time_ns: int) -> None:
        """Add a pod's requests to a zone and the cluster, or subtract them."""
        requested, cluster, times_ns = zone.requested, self._cluster.requested, zone.times_ns
        for number, amount in footprint.amounts:
            # Amounts that are only used for scoring are not reported.
            if number == POD_COUNT or number >= FIRST_RESOURCE:
                change = amount if sign > 0 else -amount
                requested[number] += change
                cluster[number] += change
        times_ns[footprint] = times_ns.get(footprint, 0) + (time_ns if sign > 0 else -time_ns)
        if len(times_ns) > MAX_FOOTPRINTS:
            self._add_to_moments(zone)

    def _add_to_moments(self, zone: _Totals) -> None:
        """Add a zone's sums by footprint to the moments."""
        for footprint, time_ns in zone.times_ns.items():
            for number, amount in footprint.amounts:
                zone.requested_moment[number] += amount * time_ns
                self._cluster.requested_moment[number] += amount * time_ns
        zone.times_ns.clear()

    def _take_node(self, row: int, time_ns: int, touched: dict[int, _Totals]) -> None:
        """Process a node that was added, changed or removed: move it from its previous zone to its current one.

        The sums already contain the placements of this instant, so the previous zone loses the requests of the node's
        current pods.
        """
        state = self._state
        used: list[int] = state.usage[:, row].tolist()
        self._fit(len(used))
        before = self._zone_of.pop(row, None)
        if before is not None:
            had_offered = self._allocatable.pop(row)
            for totals in (before, self._cluster):
                totals.nodes -= 1
                _add(totals.requested, totals.requested_moment, used, -1, time_ns)
                _add(totals.allocatable, totals.allocatable_moment, had_offered, -1, time_ns)
                touched[id(totals)] = totals
        node = state.nodes.nodes[row]
        if node is None:
            return
        zone = node.metadata.labels.get(ZONE_LABEL, "")
        after = self._zones.get(zone)
        if after is None:
            after = self._zones[zone] = _Totals()
            after.fit(self._width)
        offered = [int(state.nodes.allowed_pods[row]), 0, 0, *state.nodes.allocatable[:, row].tolist()]
        self._zone_of[row], self._allocatable[row] = after, offered
        for totals in (after, self._cluster):
            totals.nodes += 1
            _add(totals.requested, totals.requested_moment, used, 1, time_ns)
            _add(totals.allocatable, totals.allocatable_moment, offered, 1, time_ns)
            touched[id(totals)] = totals

    def _fit(self, width: int) -> None:
        if width > self._width:
            self._width = width
            for totals in (self._cluster, *self._zones.values()):
                totals.fit(width)

    def usages(self, end_ns: int) -> list[ResourceUsage]:
        """Return the usage up to a time, of every resource that any node had or any pod requested.

        First of the whole cluster, then of the zones by name.
        """
        for zone in self._zones.values():
            self._add_to_moments(zone)
        duration_ns = end_ns - self._start_ns
        resources = self._state.nodes.resources
        names = {POD_COUNT: PODS} | {FIRST_RESOURCE + number: name for number, name in enumerate(resources)}
        cluster = self._cluster
        seen = [
            row
            for row in names
            if row < self._width
            and (
                cluster.peak[row]
                or cluster.allocatable[row]
                or cluster.allocatable_moment[row] != cluster.allocatable[row] * duration_ns
            )
        ]
        usages = []
        for name, totals in ((None, cluster), *sorted(self._zones.items())):
            for number in seen:
                offered, used = totals.allocatable[number], totals.requested[number]
                usage = ResourceUsage(
                    resource=names[number],
                    zone=name,
                    nodes=totals.nodes,
                    allocatable=offered,
                    requested=used,
                    peak_requested=totals.peak[number],
                    peak_ns=totals.peak_ns[number] or self._start_ns,
                    peak_allocatable=totals.peak_allocatable[number] or offered,
                    allocatable_ns=offered * duration_ns - totals.allocatable_moment[number],
                    requested_ns=used * duration_ns - totals.requested_moment[number],
                    duration_ns=duration_ns,
                )
                usages.append(usage)
        return usages


def _add(sums: list[int], moments: list[int], amounts: list[int], sign: int, time_ns: int) -> None:
    for number, amount in enumerate(amounts):
        if amount:
            sums[number] += sign * amount
            moments[number] += sign * amount * time_ns
