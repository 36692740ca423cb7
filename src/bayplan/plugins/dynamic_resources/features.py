"""The optional features of device allocation."""

from __future__ import annotations

import msgspec

from bayplan.framework.feature_gates import FeatureGates


class AllocationFeatures(msgspec.Struct, frozen=True):
    """The optional features of device allocation, each with its own feature gates. Defaults are the release's."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True
    list_attributes: bool = False

    @property
    def is_oldest(self) -> bool:
        """Return whether upstream would use its oldest allocator, which it does if the newest features are disabled.

        That allocator does not support distinctAttribute, capacity requests, or devices that bind to their node.
        """
        return not (self.consumable_capacity or self.binding_conditions)


def allocation_features(gates: FeatureGates) -> AllocationFeatures:
    """Return the features that a scheduler's gates enable."""
    return AllocationFeatures(
        admin_access=gates.enabled("DRAAdminAccess"),
        prioritized_list=gates.enabled("DRAPrioritizedList"),
        partitionable_devices=gates.enabled("DRAPartitionableDevices"),
        device_taints=gates.enabled("DRADeviceTaints"),
        binding_conditions=gates.enabled("DRADeviceBindingConditions")
        and gates.enabled("DRAResourceClaimDeviceStatus"),
        consumable_capacity=gates.enabled("DRAConsumableCapacity"),
        # Only selectors support lists: the scheduler never requests the allocator whose constraints could compare
        # lists.
        list_attributes=gates.enabled("DRAListTypeAttributes"),
    )
