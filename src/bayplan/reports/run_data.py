"""The data of one run that a report shows, as arrays computed from a result directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from bayplan.analysis.result_directory import ResultDirectory
from bayplan.base.durations import SECOND_NS
from bayplan.objects.node import Node
from bayplan.objects.node_prices import price_of
from bayplan.reports.rejections import rejections_by_plugin
from bayplan.state.arrays import Floats, Index, Ints

MAX_SHAPES = 20
"""Number of the most common kinds of pods whose room is measured."""

HOUR_NS = 3600 * SECOND_NS
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Pods:
    """The pods of a run. Times are nanoseconds since its start, or `_NEVER`.

    Attributes:
        names, workloads: the names of the pods and of their workloads.
        priorities: int64[pods].
        nodes: int64[pods], the index of the pod's node; -1 for none.
        arrived, bound, ended: int64[pods], times.
        waited: the indexes of the pods that waited for a decision in this run.
        requests: int64[resources, pods].
    """

    names: list[str]
    workloads: list[str]
    priorities: Ints
    nodes: Ints
    arrived: Ints
    bound: Ints
    ended: Ints
    waited: Index
    requests: Ints


@dataclass(frozen=True)
class Nodes:
    """The nodes of a run.

    Attributes:
        names: the names of the nodes.
        groups: the node group of each node; "" for none.
        added, removed: int64[nodes], times as in `Pods`.
        allocatable: int64[resources, nodes].
        prices: float64[nodes], the price per hour; NaN without a price.
    """

    names: list[str]
    groups: list[str]
    added: Ints
    removed: Ints
    allocatable: Ints
    prices: Floats


class RunData:
    """The data of one run.

    Args:
        result: the result directory.
        label: the label of the run; runs with the same label differ only in their seed.

    Attributes:
        label, result: the arguments of these names.
        facts: the facts that the report on the terminal shows.
        duration_ns: the duration of the run, at least 1.
        resources: the names of the resources that nodes offer, with CPU and memory first.
    """

    def __init__(self, result: ResultDirectory, label: str) -> None:
        self.label = label
        self.result = result
        self.facts = result.facts
        self.duration_ns = max(result.end_ns - result.start_ns, 1)
        self._start_ns = result.start_ns
        self._node_rows = result.table("nodes").to_pydict()
        found = dict.fromkeys(name for amounts in self._node_rows["allocatable"] for name, _ in amounts)
        self.resources = sorted(found, key=lambda name: (name not in ("cpu", "memory"), name))

    @cached_property
    def nodes(self) -> Nodes:
        """Return the nodes, sorted by name."""
        rows = self._node_rows
        order = sorted(range(len(rows["node"])), key=lambda row: str(rows["node"][row]))
        allocatable = np.zeros((len(self.resources), len(order)), dtype=np.int64)
        prices = np.full(len(order), np.nan)
        for place, row in enumerate(order):
            for name, amount in rows["allocatable"][row]:
                allocatable[self.resources.index(name), place] = amount
            if "price" in rows:
                price = rows["price"][row]
            else:
                text = rows["object"][row]
                price = price_of(msgspec.json.decode(text, type=Node)) if text else None
            prices[place] = np.nan if price is None else price
        return Nodes(
            [str(rows["node"][row]) for row in order],
            [rows["group"][row] if "group" in rows else "" for row in order],
            self._times([rows["added_ns"][row] for row in order]),
            self._times([rows["removed_ns"][row] for row in order]),
            allocatable,
            prices,
        )

    @cached_property
    def pods(self) -> Pods:
        """Return the pods by arrival."""
        rows = self.result.table("pods").to_pydict()
        bound = self._times(rows["bound_ns"])
        row_of = self._rows_of_nodes(rows["node"], bound.tolist())
        requests = np.zeros((len(self.resources), len(rows["pod"])), dtype=np.int64)
        number_of = {name: number for number, name in enumerate(self.resources)}
        for place, amounts in enumerate(rows["requests"]):
            for name, amount in amounts or ():
                if name in number_of:
                    requests[number_of[name], place] = amount
        return Pods(
            rows["pod"],
            rows["workload"],
            np.array(rows["priority"], dtype=np.int64),
            np.array(row_of, dtype=np.int64),
            self._times(rows["arrived_ns"]),
            bound,
            self._times(rows["ended_ns"]),
            np.flatnonzero(~np.array(rows["imported"], dtype=np.bool_)),
            requests,
        )

    def _rows_of_nodes(self, names: Sequence[str | None], bound: Sequence[int]) -> list[int]:
        """Return the row of each pod's node, -1 without one.

        Of several nodes with one name, it is the node that existed when the pod was bound.
        """
        rows: dict[str | None, list[int]] = {}
        for row, node_name in enumerate(self.nodes.names):
            rows.setdefault(node_name, []).append(row)
        added = self.nodes.added.tolist()
        found = []
        for name, time in zip(names, bound, strict=True):
            known = rows.get(name, [-1])
            found.append(known[0] if len(known) == 1 else max(known, key=lambda row: (added[row] <= time, added[row])))
        return found

    def _times(self, values: list[int | None]) -> Ints:
        return np.array([_NEVER if value is None else value - self._start_ns for value in values], dtype=np.int64)

    # Over time.

    def utilisation(self, times: Ints, *, resource: str) -> Floats:
        """Return the requested percentage of a resource at each time; 0 if no node offers the resource."""
        if not self.has(resource):
            return np.zeros(len(times))
        pods, nodes, number = self.pods, self.nodes, self.resources.index(resource)
        # Older results lack the allocatable amounts of removed nodes, so ignore the pods on these nodes, too.
        placed = (pods.nodes >= 0) & nodes.allocatable[number, pods.nodes].astype(np.bool_)
        used = level(pods.bound[placed], pods.ended[placed], pods.requests[number, placed], times)
        offered = level(nodes.added, nodes.removed, nodes.allocatable[number], times)
        return np.divide(100.0 * used, offered, out=np.zeros(len(times)), where=offered > 0)

    def has(self, resource: str) -> bool:
        """Return whether any node offers a resource."""
        return resource in self.resources

    def queue_length(self, times: Ints) -> Floats:
        """Return the number of pods that wait for a node at each time."""
        pods, waited = self.pods, self.pods.waited
        left = np.minimum(pods.bound, pods.ended)[waited]
        return level(pods.arrived[waited], left, np.ones(len(waited), dtype=np.int64), times)

    def node_count(self, times: Ints, *, group: str | None = None) -> Floats:
        """Return the number of nodes at each time, optionally only those of one group."""
        nodes = self.nodes
        counted = np.array([group in (None, name) for name in nodes.groups], dtype=np.int64)
        return level(nodes.added, nodes.removed, counted, times)

    def usage_of_nodes(self, time: int) -> Ints:
        """Return int64[resources, nodes]: the requests of the pods on each node at a time."""
        pods = self.pods
        there = np.flatnonzero((pods.nodes >= 0) & (pods.bound <= time) & (pods.ended > time))
        used = np.zeros(self.nodes.allocatable.shape, dtype=np.int64)
        for number in range(len(used)):
            np.add.at(used[number], pods.nodes[there], pods.requests[number, there])
        return used

    def idle_without_room(self, times: Ints, *, resource: str) -> Floats:
        """Return the percentage of the idle amount of a resource that is on nodes without room for a typical pod, at each time.

        It is the mean over the most common kinds of pods that request the resource. Only amounts count, not affinity or
        taints, unlike in `bayplan.analysis.fragmentation`, which runs all filters.
        """
        if not self.has(resource):
            return np.zeros(len(times))
        number = self.resources.index(resource)
        shapes, weights = self._shapes
        asking = shapes[:, number] > 0
        found = np.zeros(len(times))
        if not asking.any():
            return found
        for place, time in enumerate(times.tolist()):
            alive = (self.nodes.added <= time) & (self.nodes.removed > time)
            free = (self.nodes.allocatable - self.usage_of_nodes(time))[:, alive]
            idle = np.maximum(free[number], 0)
            fits = (free[np.newaxis] >= shapes[asking][:, :, np.newaxis]).all(axis=1)
            lost = np.where(fits, 0, idle).sum(axis=1) / max(int(idle.sum()), 1)
            found[place] = 100 * float(np.average(lost, weights=weights[asking]))
        return found

    @cached_property
    def _shapes(self) -> tuple[Ints, Floats]:
        """Return the most common requests, int64[shapes, resources], and the number of pods with each of them."""
        counted = Counter(map(tuple, self.pods.requests.T.tolist())).most_common(MAX_SHAPES)
        shapes = np.array([shape for shape, _ in counted], dtype=np.int64).reshape(len(counted), len(self.resources))
        return shapes, np.array([count for _, count in counted], dtype=np.float64)

    # Totals.

    def waits_s(self) -> Floats:
        """Return the waiting times in seconds of the pods that were bound in this run."""
        pods, waited = self.pods, self.pods.waited
        bound = waited[pods.bound[waited] != _NEVER]
        waits: Floats = (pods.bound[bound] - pods.arrived[bound]) / SECOND_NS
        return waits

    def waits_by(self, names: list[str]) -> dict[str, Floats]:
        """Return waiting times in seconds, grouped by the given name of each pod."""
        pods, groups = self.pods, dict[str, list[float]]()
        for row in pods.waited.tolist():
            if pods.bound[row] != _NEVER:
                waited = int(pods.bound[row] - pods.arrived[row]) / SECOND_NS
                groups.setdefault(names[row] or "no workload", []).append(waited)
        return {name: np.array(values) for name, values in groups.items()}

    @cached_property
    def rejections(self) -> Counter[str]:
        """Return the number of nodes that each plugin rejected in failed attempts."""
        table = self.result.table("decisions").select(["outcome", "message"]).to_pydict()
        failed = (
            text for outcome, text in zip(table["outcome"], table["message"], strict=True) if outcome == "unschedulable"
        )
        return rejections_by_plugin(failed)

    @cached_property
    def scaling_events(self) -> list[dict[str, Any]] | None:
        """Return the events of an autoscaler as rows of `result_layout.SCALING`; None without an autoscaler."""
        return self._optional("scaling")

    @cached_property
    def descheduled(self) -> list[dict[str, Any]] | None:
        """Return the evictions of a descheduler as rows of `result_layout.DESCHEDULED`; None without a descheduler."""
        return self._optional("descheduled")

    def _optional(self, name: str) -> list[dict[str, Any]] | None:
        return self.result.table(name).to_pylist() if self.result.has_table(name) else None

    def node_hours(self) -> float:
        """Return the total hours of all nodes."""
        return float(self._hours().sum())

    def cost(self) -> float | None:
        """Return the cost of the nodes according to their prices; None if any node has no price."""
        prices = self.nodes.prices
        return None if np.isnan(prices).any() or not len(prices) else float((prices * self._hours()).sum())

    def _hours(self) -> Floats:
        last = np.minimum(self.nodes.removed, self.duration_ns)
        hours: Floats = np.maximum(last - np.maximum(self.nodes.added, 0), 0) / HOUR_NS
        return hours

    def node_changes(self) -> list[tuple[int, str, str]]:
        """Return (time, event, node) for nodes that were added after the start, or removed."""
        found = []
        for row, name in enumerate(self.nodes.names):
            if self.nodes.added[row] > 0:
                found.append((int(self.nodes.added[row]), "added", name))
            if self.nodes.removed[row] <= self.duration_ns:
                found.append((int(self.nodes.removed[row]), "removed", name))
        return sorted(found)


def level(starts: Ints, ends: Ints, amounts: Ints, times: Ints) -> Floats:
    """Return, at each time, the sum of the amounts that have started and not ended yet."""
    return _sum_until(starts, amounts, times) - _sum_until(np.maximum(ends, starts), amounts, times)


def _sum_until(instants: Ints, amounts: Ints, times: Ints) -> Floats:
    order = np.argsort(instants, kind="stable")
    sums = np.concatenate(([0.0], np.cumsum(amounts[order], dtype=np.float64)))
    found: Floats = sums[np.searchsorted(instants[order], times, side="right")]
    return found
