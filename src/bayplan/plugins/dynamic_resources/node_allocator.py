"""Allocation of claims on all nodes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.node import Node
from bayplan.objects.resource import (
    DeviceClaim,
    DeviceClass,
    DeviceSubRequest,
    DeviceTaintRule,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from bayplan.plugins.dynamic_resources.allocator import Allocator, ChosenClaim
from bayplan.plugins.dynamic_resources.claims import ClaimTracker
from bayplan.plugins.dynamic_resources.device_requests import RequestChecks
from bayplan.plugins.dynamic_resources.device_use import DeviceUse, PoolId
from bayplan.plugins.dynamic_resources.pools import AllocationFailed, Pool, PoolCatalog, PoolSlice, read_slices
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_log import RowLog

MAX_PREFERENCE = 8
"""Maximum number of alternatives of a request, and the score of the first; each further alternative scores one less."""


def has_alternatives(claims: Iterable[ResourceClaim]) -> bool:
    """Return whether any request lists alternatives; otherwise every node scores 0."""
    return any(request.first_available for claim in claims for request in claim.spec.devices.requests)


def preference(claim: ResourceClaim, taken: Collection[str]) -> int:
    """Return the score of a claim for which these requests and alternatives (full names) were chosen."""
    return sum(
        MAX_PREFERENCE - place
        for request in claim.spec.devices.requests
        if request.exactly is None
        for place, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in taken
    )


SOLVED = 0
UNSOLVED = 1
INVALID = 2
FAILED = 3
"""The outcome of a search that failed with a text. The text names the claim, so finding it requires another search."""


class NodeSolutions:
    """The solutions for claims with equal signatures, by row. Only changed nodes are searched again.

    Attributes:
        outcomes: uint16[capacity], SOLVED, UNSOLVED, INVALID or FAILED; undefined in rows that are not in use.
        chosen: per row, the devices for each claim, or None without a solution.
        preferences: int64[capacity], the score of the chosen alternatives.
    """

    def __init__(self, searcher: NodeAllocator) -> None:
        self.outcomes: Codes = np.zeros(0, dtype=np.uint16)
        self.preferences: Ints = np.zeros(0, dtype=np.int64)
        self.chosen: list[tuple[ChosenClaim, ...] | None] = []
        self._searcher = searcher
        self._position = -1

    def refresh(self, claims: Sequence[ResourceClaim], nodes: Sequence[Node | None], capacity: int) -> None:
        """Search again on changed nodes. `claims`: any claims with the signature."""
        log = self._searcher.log
        rows = log.since(self._position)
        self._position = log.end
        missing = capacity - len(self.chosen)
        if missing > 0:
            self.outcomes = np.concatenate([self.outcomes, np.zeros(missing, dtype=np.uint16)])
            self.preferences = np.concatenate([self.preferences, np.zeros(missing, dtype=np.int64)])
            self.chosen += [None] * missing
        ranked = has_alternatives(claims)
        for row in range(len(nodes)) if rows is None else dict.fromkeys(rows):
            node = nodes[row]
            if node is not None:
                self._search(row, node, claims, ranked=ranked)

    def _search(self, row: int, node: Node, claims: Sequence[ResourceClaim], *, ranked: bool) -> None:
        outcome, chosen = FAILED, None
        with suppress(AllocationFailed):
            outcome, chosen = self._searcher.search(node, claims)
        self.chosen[row] = chosen
        self.outcomes[row] = outcome
        score = 0
        if ranked and chosen is not None:
            for claim, part in zip(claims, chosen, strict=True):
                score += preference(claim, {device.request.full_name for device in part.devices})
        self.preferences[row] = score


MAX_SOLUTIONS = 100_000
"""Maximum number of cached solutions over all nodes and kinds of claims. A solution takes about 500 bytes."""

Requested = TypeVar("Requested", ExactDeviceRequest, DeviceSubRequest)

_encode = msgspec.msgpack.Encoder().encode


class NodeAllocator:
    """Allocates the devices of a cluster.

    Attributes:
        log: the rows whose node or devices changed.
        searches: the number of searches.
    """

    def __init__(self, cluster: ClusterState, tracker: ClaimTracker, gates: FeatureGates) -> None:
        self.log = RowLog()
        self.searches = 0
        self._cluster = cluster
        self._catalog = cluster.catalog
        self._use = DeviceUse(tracker, consumable_capacity=gates.enabled("DRAConsumableCapacity"))
        self._gates = gates
        self._checks = RequestChecks(gates, self._use, self._catalog)
        self._taint_rules = gates.enabled("DRADeviceTaintRules")
        self._seen: tuple[int, int, int] | None = None
        self._slices: dict[str, PoolSlice] = {}
        self._rules: tuple[DeviceTaintRule, ...] = ()
        self._pools = PoolCatalog((), gates)
        self._node_position = -1
        self._pools_at: dict[int, tuple[Pool, ...]] = {}
        # The values are dictionaries, because sets have no defined order.
        self._rows_with: dict[PoolId, dict[int, None]] = {}
        self._solutions: OrderedDict[bytes, NodeSolutions] = OrderedDict()

    @property
    def _version(self) -> tuple[int, int, int]:
        """Return a value that changes whenever classes, slices or taint rules may have changed."""
        catalog = self._catalog
        rules = catalog.version(DeviceTaintRule) if self._taint_rules else 0
        return (catalog.version(DeviceClass), catalog.version(ResourceSlice), rules)

    def refresh(self) -> None:
        """Apply the cluster's changes. Call it before `solutions` and `search`."""
        version, node_log = self._version, self._cluster.node_log
        rows = node_log.since(self._node_position) if version == self._seen else None
        self._node_position = node_log.end
        if self._seen is None or version[1:] != self._seen[1:]:
            self._read_slices()
        self._seen = version
        if rows is None:
            self._pools_at.clear()
            self._rows_with.clear()
        for row in range(self._cluster.nodes.count) if rows is None else dict.fromkeys(rows):
            self._find_pools(row)
            self.log.append(row)
        self._use.refresh()
        for pool in self._use.take_changed_pools():
            for row in self._rows_with.get(pool, ()):
                self.log.append(row)

    def _find_pools(self, row: int) -> None:
        """Record which pools the node of a row can use."""
        for pool in self._pools_at.pop(row, ()):
            del self._rows_with[pool.id][row]
        node = self._cluster.nodes.nodes[row]
        if node is None:
            return
        try:
            found = self._pools.pools_of(node)
        except ValueError:
            # Every search on this node raises the error again.
            return
        self._pools_at[row] = found
        for pool in found:
            self._rows_with.setdefault(pool.id, {})[row] = None

    def _read_slices(self) -> None:
        rules = tuple(self._catalog.all(DeviceTaintRule)) if self._taint_rules else ()
        self._slices = read_slices(self._catalog, self._slices if rules == self._rules else {}, rules)
        self._rules = rules
        self._pools = PoolCatalog(self._slices.values(), self._gates)

    def signature(self, claims: Sequence[ResourceClaim]) -> bytes:
        """Return an encoding of the requests of these claims; claims with equal signatures have the same solutions.

        Device classes are included with their selectors and configuration, not by name.
        """
        numbers: dict[str, int] = {}
        specs = [_with_numbered_classes(claim.spec.devices, numbers) for claim in claims]
        classes = [
            (item.spec.selectors, item.spec.config) if (item := self._catalog.get(DeviceClass, name)) else None
            for name in numbers
        ]
        return _encode((specs, classes))

    def solutions(self, claims: Sequence[ResourceClaim], signature: bytes) -> NodeSolutions:
        """Return the up-to-date solutions for claims on all nodes; claims with equal signatures share them."""
        found = self._solutions.get(signature)
        if found is None:
            found = self._solutions[signature] = NodeSolutions(self)
            room = max(MAX_SOLUTIONS // max(self._cluster.nodes.count, 1), 2)
            while len(self._solutions) > room:
                self._solutions.popitem(last=False)
        self._solutions.move_to_end(signature)
        found.refresh(claims, self._cluster.nodes.nodes, self._cluster.nodes.capacity)
        return found

    def search(self, node: Node, claims: Sequence[ResourceClaim]) -> tuple[int, tuple[ChosenClaim, ...] | None]:
        """Return SOLVED and a `ChosenClaim` per claim on a node; or None with UNSOLVED, or with INVALID.

        INVALID: one of the node's pools is invalid.

        Raises:
            AllocationFailed: a claim, class or slice is invalid, or the search took too many steps.
        """
        self.searches += 1
        pools = self._pools_at.get(self._cluster.nodes.row_of[node.metadata.name])
        try:
            pools = self._pools.pools_of(node) if pools is None else pools
        except ValueError as problem:
            raise AllocationFailed(f"gather pool information: {problem}") from problem
        chosen = Allocator(self._checks, node, pools, claims).allocate()
        if chosen is not None:
            return SOLVED, chosen
        return INVALID if any(pool.invalid for pool in pools) else UNSOLVED, None


def _with_numbered_classes(devices: DeviceClaim, numbers: dict[str, int]) -> DeviceClaim:
    """Return a claim's requests with class names replaced by numbers. `numbers` assigns them in order of appearance."""

    def numbered(requested: Requested) -> Requested:
        name = requested.device_class_name
        return replace(requested, device_class_name=str(numbers.setdefault(name, len(numbers))) if name else "")

    requests = tuple(
        replace(
            request,
            exactly=None if request.exactly is None else numbered(request.exactly),
            first_available=tuple(map(numbered, request.first_available)),
        )
        for request in devices.requests
    )
    return replace(devices, requests=requests)
