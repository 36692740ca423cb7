"""Which parts of device allocation are switched on."""

from __future__ import annotations

import msgspec

from bayplan.framework.feature_gates import FeatureGates


class AllocationFeatures(msgspec.Struct, frozen=True):
    """The optional parts of device allocation, each behind feature gates of its own. Defaults are those of the release."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True
    list_attributes: bool = False

    @property
    def is_oldest(self) -> bool:
        """Return whether upstream would use its oldest allocator, as it does without the newest features.

        It does not support distinctAttribute, capacity requests, or devices that bind to their node.
        """
        return not (self.consumable_capacity or self.binding_conditions)


def allocation_features(gates: FeatureGates) -> AllocationFeatures:
    """Return the features that the gates of a scheduler switch on."""
    return AllocationFeatures(
        admin_access=gates.enabled("DRAAdminAccess"),
        prioritized_list=gates.enabled("DRAPrioritizedList"),
        partitionable_devices=gates.enabled("DRAPartitionableDevices"),
        device_taints=gates.enabled("DRADeviceTaints"),
        binding_conditions=gates.enabled("DRADeviceBindingConditions")
        and gates.enabled("DRAResourceClaimDeviceStatus"),
        consumable_capacity=gates.enabled("DRAConsumableCapacity"),
        # Selectors know lists; the allocator that would let constraints compare them is never asked for by the scheduler.
        list_attributes=gates.enabled("DRAListTypeAttributes"),
    )
