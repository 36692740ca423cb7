"""Which filter rejects which node: the results of all filters, regardless of their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bayplan.engine.decision import Decision
from bayplan.framework.status import Status
from bayplan.state.arrays import Bools, Ints

FIT = "NodeResourcesFit"
TAINTS = "TaintToleration"
CORDON = "NodeUnschedulable"
NODE_AFFINITY = "NodeAffinity"
GATES = "SchedulingGates"

VOLUME_FILTERS = ("VolumeBinding", "VolumeZone")

VOLUME_PLUGINS = frozenset(("VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"))
"""The plugins that look up the volumes and claims of a pod."""

PINNED = (
    "NodeName",
    "VolumeZone",
    "VolumeBinding",
    NODE_AFFINITY,
    "NodeDeclaredFeatures",
    "DynamicResources",
    TAINTS,
    CORDON,
)
"""Filters on properties of the node, the hardest to resolve first. They reject the node regardless of its pods."""

LOAD = ("InterPodAffinity", "NodePorts", "NodeVolumeLimits", "VolumeRestrictions", "PodTopologySpread", FIT)
"""Filters that depend on existing pods. A node that only these reject could accept the pod if pods left."""


@dataclass(frozen=True)
class FilterMatrix:
    """The result of every filter for every node.

    Attributes:
        nodes: the names of the nodes, one per row.
        filters: the names of the plugins in `whole`, followed by those of the filters.
        failing: bool[filters, nodes], whether the filter rejects the node.
        known: bool[nodes], the nodes on which filters ran.
        whole: the status with which PreFilter or PreEnqueue rejected the pod as a whole, by plugin.
        decision: the decision with the reasons; None if the pod was rejected as a whole.
    """

    nodes: tuple[str, ...]
    filters: tuple[str, ...]
    failing: Bools
    known: Bools
    whole: Mapping[str, Status]
    decision: Decision | None

    def status(self, plugin: str, row: int) -> Status | None:
        """Return the status with which a filter rejects a node; None if it does not."""
        if plugin in self.whole:
            return self.whole[plugin]
        decision, number = self.decision, self.filters.index(plugin) - len(self.whole)
        if decision is None or not self.failing[number + len(self.whole), row]:
            return None
        if row in decision.overrides and decision.overrides[row][0] == number:
            return decision.statuses[decision.overrides[row]]
        code = int(decision.codes[number, row]) if number < len(decision.filters) else 0
        return decision.statuses[number, code] if code else decision.absent

    def ran_on(self, plugin: str, row: int) -> bool:
        """Return whether a filter ran on a node. Extenders are called only for nodes that pass all plugins."""
        number = self.filters.index(plugin) - len(self.whole)
        if self.decision is None or not 0 <= number < len(self.decision.filters):
            return True
        return self.decision.ran_on(number, row)

    @property
    def everywhere(self) -> tuple[str, ...]:
        """Return the filters that reject every evaluated node, the hardest to resolve first."""
        if not self.known.any():
            return tuple(self.whole)
        all_or_unknown: Bools = self.failing | ~self.known
        rejected = [bool(row.all()) for row in all_or_unknown]
        return tuple(
            sorted((name for name, all_of in zip(self.filters, rejected, strict=True) if all_of), key=hardness)
        )

    @property
    def sole(self) -> dict[str, int]:
        """Return, by filter, the number of nodes that no other filter rejects.

        Empty if the only known result is the rejection of the pod as a whole.
        """
        if self.decision is None:
            return {}
        alone = (self.failing.sum(axis=0) == 1) & self.known
        counts = (self.failing & alone).sum(axis=1).tolist()
        return {name: count for name, count in zip(self.filters, counts, strict=True) if count}

    @property
    def pinned_failures(self) -> Ints:
        """Return int64[nodes], the number of filters outside `LOAD` that reject each node."""
        about_node = [number for number, name in enumerate(self.filters) if name not in LOAD]
        found: Ints = self.failing[about_node].sum(axis=0, dtype=np.int64)
        return found

    def without_whole(self) -> FilterMatrix | None:
        """Return the matrix without the plugins that reject the pod as a whole.

        None if there are none, some nodes were not evaluated, or the pod would then fit on a node.
        """
        count = len(self.whole)
        failing = self.failing[count:].copy()
        if VOLUME_PLUGINS & self.whole.keys():
            # These filters probably reject the pod because of the same claim or volume.
            failing[[name in VOLUME_PLUGINS for name in self.filters[count:]]] = False
        if not count or self.decision is None or not self.known.all() or not failing.any(axis=0).all():
            return None
        return replace(self, filters=self.filters[count:], failing=failing, whole={})

    def reasons(self, plugin: str) -> dict[str, int]:
        """Map each reason of a filter to its number of nodes, the most frequent first."""
        if plugin in self.whole:
            return {self.whole[plugin].message: len(self.nodes)}
        number, counts = self.filters.index(plugin), dict[str, int]()
        for row in np.flatnonzero(self.failing[number]).tolist():
            status = self.status(plugin, row)
            for reason in status.reasons if status is not None else ():
                counts[reason] = counts.get(reason, 0) + 1
        return dict(sorted(counts.items(), key=lambda each: -each[1]))


def hardness(plugin: str) -> tuple[int, str]:
    """Return a sort key: gates, which come before all else, then filters on node properties, then all other filters."""
    if plugin == GATES:
        return -1, plugin
    if plugin in PINNED:
        return PINNED.index(plugin), plugin
    return len(PINNED) + (1 + LOAD.index(plugin) if plugin in LOAD else 0), plugin


def filter_matrix(decision: Decision, whole: Mapping[str, Status] | None = None) -> FilterMatrix:
    """Return the matrix of a decision.

    Args:
        decision: the decision, with a full record.
        whole: statuses from earlier dry runs, by plugin: these plugins rejected the pod before any node was checked, so
            they were disabled for this decision.
    """
    rejected = dict(whole or {})
    count = len(decision.names)
    if decision.pre_filter is not None:
        plugin = decision.pre_filter.plugin or "PreFilter"
        rejected[plugin] = decision.pre_filter
        # No filter ran, so nothing else is known.
        failing = np.ones((len(rejected), count), dtype=np.bool_)
        return FilterMatrix(decision.names, tuple(rejected), failing, np.ones(count, dtype=np.bool_), rejected, None)
    codes = decision.codes != 0
    for row, (number, _) in decision.overrides.items():
        codes[number, row] = True
    names = list(decision.filters)
    rows = [*codes]
    for pre_filter_result in decision.pre_filters:
        if pre_filter_result.node_names is None:
            continue
        left_out = np.array([name not in pre_filter_result.node_names for name in decision.names], dtype=np.bool_)
        if pre_filter_result.plugin not in names:
            names.append(pre_filter_result.plugin)
            rows.append(np.zeros(count, dtype=np.bool_))
        number = names.index(pre_filter_result.plugin)
        rows[number] = rows[number] | left_out
    all_rows = [*(np.ones(count, dtype=np.bool_) for _ in rejected), *rows]
    failing = np.array(all_rows, dtype=np.bool_).reshape(len(all_rows), count)
    known = np.ones(count, dtype=np.bool_)
    if not decision.pre_filters:
        # Stored records lack the nodes that PreFilter plugins excluded.
        known = decision.allowed.copy()
    known &= decision.examined | ~decision.allowed
    return FilterMatrix(decision.names, (*rejected, *names), failing, known, rejected, decision)
