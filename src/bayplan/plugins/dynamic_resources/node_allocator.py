"""Allocate claims on nodes: keeps pools, uses of devices and solutions up to date, so that only what changed is searched again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from bayplan.objects.node import Node
from bayplan.objects.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from bayplan.plugins.dynamic_resources.allocation_checks import RequestChecks
from bayplan.plugins.dynamic_resources.allocator import Allocator, ChosenClaim
from bayplan.plugins.dynamic_resources.claim_tracker import ClaimTracker
from bayplan.plugins.dynamic_resources.device_use import DeviceUse
from bayplan.plugins.dynamic_resources.features import AllocationFeatures
from bayplan.plugins.dynamic_resources.pools import Pool, PoolCatalog, PoolSlice
from bayplan.plugins.dynamic_resources.selectors import AllocationFailed, Selectors
from bayplan.state.object_catalog import ObjectCatalog

KEPT_SOLUTIONS = 100_000

_encode = msgspec.msgpack.Encoder().encode


class InvalidPools(Exception):
    """Nothing was found, and a pool of the node is invalid: only this node is out. Caught in this package."""


class Solution(NamedTuple):
    """What a search found, and all that it depended on beside the claims."""

    node: Node
    pools: tuple[Pool, ...]
    revisions: tuple[int, ...]
    chosen: tuple[ChosenClaim, ...] | None


class NodeAllocator:
    """The devices of a cluster.

    Args:
        catalog: where slices, classes and rules are read from.
        tracker: where claims are read from.
        features: what is switched on.
        taint_rules: whether rules can taint devices.
    """

    def __init__(
        self, catalog: ObjectCatalog, tracker: ClaimTracker, features: AllocationFeatures, *, taint_rules: bool
    ) -> None:
        self.features = features
        self._catalog = catalog
        self._use = DeviceUse(tracker, consumable_capacity=features.consumable_capacity)
        self._selectors = Selectors(features)
        self._taint_rules = taint_rules
        self._seen: tuple[int, int] | None = None
        self._class_version = -1
        self._slices: dict[str, PoolSlice] = {}
        self._rules: tuple[DeviceTaintRule, ...] = ()
        self._pools = PoolCatalog((), partitionable_devices=features.partitionable_devices)
        self._solutions: dict[tuple[bytes, str], Solution] = {}

    @property
    def version(self) -> tuple[int, int, int]:
        """Return what moves whenever classes, slices or rules may have changed."""
        catalog = self._catalog
        rules = catalog.version(DeviceTaintRule) if self._taint_rules else 0
        return (catalog.version(DeviceClass), catalog.version(ResourceSlice), rules)

    def refresh(self) -> None:
        """Follow the cluster. Call it before nodes are asked about."""
        classes, *seen = self.version
        if classes != self._class_version:
            self._class_version = classes
            self._solutions.clear()
        if (seen[0], seen[1]) != self._seen:
            self._seen = (seen[0], seen[1])
            self._read_slices()
        self._use.refresh()

    def _read_slices(self) -> None:
        rules = tuple(self._catalog.all(DeviceTaintRule)) if self._taint_rules else ()
        known = self._slices if rules == self._rules else {}
        self._rules = rules
        self._slices = {}
        for source in self._catalog.all(ResourceSlice):
            name = source.metadata.name
            slice_ = known.get(name)
            if slice_ is None or slice_.source is not source:
                slice_ = PoolSlice(source, rules)
            self._slices[name] = slice_
        self._pools = PoolCatalog(self._slices.values(), partitionable_devices=self.features.partitionable_devices)

    def signature(self, claims: Sequence[ResourceClaim]) -> bytes:
        """Return what claims ask for; claims with one signature have the same solutions."""
        return _encode([claim.spec for claim in claims])

    def allocate(self, node: Node, claims: Sequence[ResourceClaim], signature: bytes) -> tuple[ChosenClaim, ...] | None:
        """Return what each claim would get on a node, or None where it can't serve them all.

        Raises:
            AllocationFailed: a claim, class or slice is wrong.
            InvalidPools: there is no solution, and the node has an invalid pool.
            SearchTimedOut: the search took too long.
        """
        try:
            pools = self._pools.pools_of(node)
        except ValueError as problem:
            raise AllocationFailed(f"gather pool information: {problem}") from problem
        revisions = tuple([self._use.revisions[pool.id] for pool in pools])
        key = (signature, node.metadata.name)
        known = self._solutions.get(key)
        if known is None or known.node is not node or known.pools != pools or known.revisions != revisions:
            checks = RequestChecks(self.features, self._use, self._catalog, self._selectors, node)
            chosen = Allocator(checks, pools, claims).allocate()
            if len(self._solutions) >= KEPT_SOLUTIONS:
                self._solutions.clear()
            known = self._solutions[key] = Solution(node, pools, revisions, chosen)
        if known.chosen is None and any(pool.invalid for pool in pools):
            raise InvalidPools("invalid resource pools were encountered")
        return known.chosen
