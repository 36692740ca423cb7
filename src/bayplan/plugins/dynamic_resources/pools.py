"""Devices in slices and pools, as a node can use them, with their taints and selectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bayplan.cel.problems import CompileProblem, RunProblem
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.affinity import NodeSelector
from bayplan.objects.node import Node
from bayplan.objects.quantity import Quantity, parse_quantity
from bayplan.objects.resource import (
    Counter,
    Device,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceSlice,
)
from bayplan.objects.selectors import compile_node_selector
from bayplan.plugins.dynamic_resources.device_use import DeviceId, PoolId
from bayplan.state.object_catalog import ObjectCatalog

PREVENTING = ("NoSchedule", "NoExecute")


def has_untolerated_taint(taints: Iterable[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    """Return whether a device has an untolerated taint with the effect NoSchedule or NoExecute."""
    return any(
        taint.effect in PREVENTING and not any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Return whether a toleration matches a taint; an empty effect or key matches all."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


CounterSets = dict[str, dict[str, Quantity]]
"""Amounts by counter set and counter."""


class PoolDevice:
    """A device of a slice, prepared for allocation.

    Attributes:
        id: driver, pool and name.
        consumes: the counter sets from which it consumes, each with its amounts by counter.
        taints: its own taints, and those that DeviceTaintRules add.
        matches: the cached results of selectors for this device, by expression.
    """

    __slots__ = ("consumes", "id", "matches", "slice", "source", "taints")

    def __init__(self, source: Device, slice_: PoolSlice, rules: Sequence[DeviceTaintRule]) -> None:
        self.id: DeviceId = (*slice_.pool, source.name)
        self.source = source
        self.slice = slice_
        self.consumes = [(part.counter_set, _amounts(part.counters)) for part in source.consumes_counters]
        self.taints = (*source.taints, *[rule.spec.taint for rule in rules if _taints(rule, self.id)])
        self.matches: dict[str, object] = {}

    def __str__(self) -> str:
        return "/".join(self.id)


def _taints(rule: DeviceTaintRule, device: DeviceId) -> bool:
    """Return whether a rule taints a device. A rule without selector taints all devices."""
    selector = rule.spec.device_selector
    return selector is None or (
        selector.driver in (None, device[0])
        and selector.pool in (None, device[1])
        and selector.device in (None, device[2])
    )


class PoolSlice:
    """A slice, prepared for allocation; `pool`: the driver and the name of its pool."""

    __slots__ = ("devices", "name", "pool", "source")

    def __init__(self, source: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> None:
        self.name = source.metadata.name
        self.source = source
        self.pool: PoolId = (source.spec.driver, source.spec.pool.name)
        self.devices = [PoolDevice(device, self, rules) for device in source.spec.devices]


def read_slices(
    catalog: ObjectCatalog, known: Mapping[str, PoolSlice], rules: Sequence[DeviceTaintRule] = ()
) -> dict[str, PoolSlice]:
    """Return all slices by name; unchanged ones of `known` are reused with the results of their selectors."""
    found = {}
    for source in catalog.all(ResourceSlice):
        name = source.metadata.name
        slice_ = known.get(name)
        found[name] = slice_ if slice_ is not None and slice_.source is source else PoolSlice(source, rules)
    return found


class Pool(msgspec.Struct, frozen=True, eq=False):
    """A pool, with the devices that a node can use.

    Attributes:
        incomplete: whether slices are missing.
        invalid: whether its slices contradict each other; nothing is allocated from an invalid or incomplete pool.
        slices: the slices with devices for the node, by name.
        elsewhere: the other slices of the pool, needed to count consumed counters.
        counter_sets: the counters that the devices consume.
    """

    id: PoolId
    incomplete: bool = False
    invalid: bool = False
    slices: tuple[PoolSlice, ...] = ()
    elsewhere: tuple[PoolSlice, ...] = ()
    counter_sets: CounterSets = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        return "/".join(self.id)


class PoolCatalog:
    """The pools that each node can use. Feature gates enable counters and per-device node selection."""

    def __init__(self, slices: Iterable[PoolSlice], gates: FeatureGates) -> None:
        self._partitionable = gates.enabled("DRAPartitionableDevices")
        self._on_node: dict[str, list[PoolSlice]] = {}
        self._shared: list[PoolSlice] = []
        self._by_pool: dict[PoolId, list[PoolSlice]] = {}
        # Pools of network-attached devices are the same for many nodes: with 128 devices for all nodes, the pools of a
        # node take 11 us instead of 33.
        self._built: dict[tuple[PoolId, tuple[int, ...]], Pool] = {}
        for slice_ in slices:
            spec = slice_.source.spec
            self._by_pool.setdefault(slice_.pool, []).append(slice_)
            if not spec.node_name or spec.shared_counters:
                self._shared.append(slice_)
            else:
                self._on_node.setdefault(spec.node_name, []).append(slice_)

    def pools_of(self, node: Node) -> tuple[Pool, ...]:
        """Return the pools that a node can use, sorted by driver and name; pools with binding conditions come last.

        Raises:
            ValueError: a node selector is invalid.
        """
        found: dict[PoolId, list[PoolSlice]] = {}
        for slice_ in (*self._on_node.get(node.metadata.name, ()), *self._shared):
            if self._is_relevant(slice_, node):
                _add_slice(found, slice_)
        pools = [pool for entry in found.items() if (pool := self._pool(*entry)) is not None]
        pools.sort(key=lambda pool: (_has_binding_conditions(pool), pool.id))
        return tuple(pools)

    def _is_relevant(self, slice_: PoolSlice, node: Node) -> bool:
        spec = slice_.source.spec
        if not self._partitionable and (spec.per_device_node_selection is not None or spec.shared_counters):
            return False
        if spec.shared_counters:
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector)
        if spec.per_device_node_selection:
            return any(
                node_matches(node, device.node_name, device.all_nodes, device.node_selector) for device in spec.devices
            )
        return False

    def _pool(self, pool: PoolId, slices: list[PoolSlice]) -> Pool | None:
        """Return the pool made of a node's slices; None if newer slices for other nodes show that it is outdated."""
        key = (pool, tuple(id(slice_) for slice_ in slices))
        if key in self._built:
            return self._built[key]
        spec = slices[0].source.spec.pool
        every = slices
        if len(slices) != spec.resource_slice_count:
            # The missing slices may be for other nodes.
            if any(slice_.source.spec.pool.generation > spec.generation for slice_ in self._by_pool[pool]):
                return None
            every = [item for item in self._by_pool[pool] if item.source.spec.pool.generation == spec.generation]
            if len(every) != spec.resource_slice_count:
                return Pool(pool, incomplete=True)
        self._built[key] = _build(pool, slices, every, partitionable=self._partitionable)
        return self._built[key]


def node_matches(node: Node, name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> bool:
    """Return whether devices with this node selection are available on a node.

    Raises:
        ValueError: the selector is invalid.
    """
    if name:
        return node.metadata.name == name
    if all_nodes:
        return True
    if selector is None:
        return False
    compiled = compile_node_selector(selector)
    if compiled.error:
        raise ValueError(f"failed to parse node selector: {compiled.error}")
    return compiled.matches(node.metadata.labels, node.metadata.name)


def _add_slice(pools: dict[PoolId, list[PoolSlice]], slice_: PoolSlice) -> None:
    known = pools.get(slice_.pool)
    generation = slice_.source.spec.pool.generation
    if known is None or generation > known[0].source.spec.pool.generation:
        pools[slice_.pool] = [slice_]
    elif generation == known[0].source.spec.pool.generation:
        known.append(slice_)


def _build(pool: PoolId, slices: list[PoolSlice], every: list[PoolSlice], *, partitionable: bool) -> Pool:
    """Return a complete pool with these slices for a node; `every`: all its slices."""
    ordered = sorted(slices, key=lambda slice_: slice_.name)
    with_devices = tuple(item for item in ordered if not (partitionable and item.source.spec.shared_counters))
    names = [device.source.name for item in with_devices for device in item.devices]
    if len(set(names)) != len(names):
        return Pool(pool, invalid=True)
    if not partitionable:
        return Pool(pool, slices=with_devices)
    counter_sets: CounterSets = {}
    for item in ordered:
        for counter_set in item.source.spec.shared_counters:
            if counter_set.name in counter_sets:
                return Pool(pool, invalid=True)
            counter_sets[counter_set.name] = _amounts(counter_set.counters)
    if not _draws_on_known(counter_sets, every):
        return Pool(pool, invalid=True)
    here = {item.name for item in slices}
    elsewhere = tuple(item for item in every if item.name not in here)
    return Pool(pool, slices=with_devices, elsewhere=elsewhere, counter_sets=counter_sets)


def _draws_on_known(counter_sets: CounterSets, slices: Sequence[PoolSlice]) -> bool:
    """Return whether all counters that the slices' devices consume exist in `counter_sets`."""
    return all(
        counter_set in counter_sets and counters.keys() <= counter_sets[counter_set].keys()
        for item in slices
        for device in item.devices
        for counter_set, counters in device.consumes
    )


def _has_binding_conditions(pool: Pool) -> bool:
    return any(device.source.binding_conditions for item in pool.slices for device in item.devices)


def _amounts(counters: Mapping[str, Counter]) -> dict[str, Quantity]:
    return {name: parse_quantity(counter.value) for name, counter in counters.items()}


class AllocationFailed(Exception):
    """A claim, class or slice is invalid, or the search timed out; this ends the cycle. The text is upstream's."""


def meets_selectors(
    device: PoolDevice, selectors: Sequence[DeviceSelector], owner: str, *, list_attributes: bool
) -> bool:
    """Return whether a device meets all selectors. `owner`: the request or class that has them, for error texts.

    Raises:
        AllocationFailed: an expression can't be compiled, or fails on the device.
    """
    for number, selector in enumerate(selectors):
        expression = selector.cel.expression if selector.cel is not None else ""
        answer = device.matches.get(expression)
        if answer is None:
            answer = device.matches[expression] = _evaluate(expression, device, list_attributes=list_attributes)
        if isinstance(answer, CompileProblem):
            raise AllocationFailed(f"{owner}: selector #{number}: CEL compile error: {answer}")
        if isinstance(answer, RunProblem):
            raise AllocationFailed(f"{owner}: selector #{number}: CEL runtime error: {answer}")
        if not answer:
            return False
    return True


def _evaluate(expression: str, device: PoolDevice, *, list_attributes: bool) -> bool | CompileProblem | RunProblem:
    # Imported only when needed: importing CEL is slow, and most clusters have no devices.
    from bayplan.plugins.dynamic_resources.device_environment import compile_device_expression

    try:
        program = compile_device_expression(expression, list_attributes=list_attributes)
        return program(device.id[0], device.source)
    except (CompileProblem, RunProblem) as problem:
        return problem.with_traceback(None)
