"""Shared counters of pools, which the partitions of a device consume (KEP-4815)."""

from __future__ import annotations

from bayplan.objects.quantity import Quantity
from bayplan.plugins.dynamic_resources.device_use import DeviceUse
from bayplan.plugins.dynamic_resources.pools import CounterSets, Pool, PoolDevice

NOTHING = Quantity(0)


class CounterUse:
    """The counters that a search consumes, in addition to those that existing allocations consume.

    As upstream does, pools are identified only by name, without the driver: if two drivers have pools of the same name,
    the counters of the pool that is evaluated first count for both.
    """

    def __init__(self, use: DeviceUse) -> None:
        self._use = use
        self._available: dict[str, CounterSets] = {}
        self._drawn: dict[str, CounterSets] = {}

    def draw(self, device: PoolDevice, pool: Pool) -> bool:
        """Consume a device's counters; return False, and consume nothing, if they are insufficient."""
        name = pool.id[1]
        available = self._available.get(name)
        if available is None:
            available = self._available[name] = self._remaining(pool)
        drawn = self._drawn.setdefault(name, {})
        for counter_set, counters in device.consumes:
            mine = drawn.setdefault(counter_set, {})
            for counter, amount in counters.items():
                mine[counter] = mine[counter] + amount if counter in mine else amount
        for counter_set, left in available.items():
            mine = drawn.get(counter_set, {})
            if any(amount < mine.get(counter, NOTHING) for counter, amount in left.items()):
                self.release(device, pool)
                return False
        return True

    def release(self, device: PoolDevice, pool: Pool) -> None:
        """Undo `draw`."""
        drawn = self._drawn[pool.id[1]]
        for counter_set, counters in device.consumes:
            mine = drawn[counter_set]
            for counter, amount in counters.items():
                mine[counter] = mine[counter] - amount

    def _remaining(self, pool: Pool) -> CounterSets:
        """Return the remaining amounts of a pool's counters; negative if too much was allocated."""
        left = {name: dict(counters) for name, counters in pool.counter_sets.items()}
        for slice_ in (*pool.slices, *pool.elsewhere):
            for device in slice_.devices:
                if not device.consumes or not self._use.is_allocated(device.id):
                    continue
                for counter_set, counters in device.consumes:
                    amounts = left.get(counter_set, {})
                    for counter, amount in counters.items():
                        if counter in amounts:
                            amounts[counter] = amounts[counter] - amount
        return left
