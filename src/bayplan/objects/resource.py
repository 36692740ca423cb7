"""Dynamic resource allocation (resource.k8s.io/v1): claims, slices of devices, classes, taints of devices."""

# ruff: noqa: RUF012 - msgspec gives every instance its own empty dict.

from msgspec import field

from bayplan.objects.affinity import NodeSelector
from bayplan.objects.meta import ApiStruct, Condition, Int64, KubernetesObject, ObjectMeta, QuantityText, ResourceList


class CELDeviceSelector(ApiStruct, frozen=True, kw_only=True):
    """A CEL expression over a device."""

    expression: str = ""


class DeviceSelector(ApiStruct, frozen=True, kw_only=True):
    """A condition that a device must meet."""

    cel: CELDeviceSelector | None = None


class DeviceToleration(ApiStruct, frozen=True, kw_only=True):
    """The device taints that a request tolerates. Operator: Equal (the default), Exists."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(ApiStruct, frozen=True, kw_only=True):
    """A request for capacities of a device."""

    requests: ResourceList = {}


class ExactDeviceRequest(ApiStruct, frozen=True, kw_only=True):
    """A request for devices of one class. Allocation mode: ExactCount or All."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ApiStruct, frozen=True, kw_only=True):
    """One alternative of a prioritized list."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(ApiStruct, frozen=True, kw_only=True):
    """A request of a claim: one exact request, or alternatives, of which the first available one is allocated."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(ApiStruct, frozen=True, kw_only=True):
    """A constraint on the devices of several requests: an attribute must be equal, or different, for all of them."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(ApiStruct, frozen=True, kw_only=True):
    """Parameters that only the driver interprets."""

    driver: str = ""
    parameters: object = None


class DeviceClaimConfiguration(ApiStruct, frozen=True, kw_only=True):
    """Parameters for the devices of some requests of a claim."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassConfiguration(ApiStruct, frozen=True, kw_only=True):
    """Parameters for the devices of a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(ApiStruct, frozen=True, kw_only=True):
    """The devices that a claim requests."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a claim."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(ApiStruct, frozen=True, kw_only=True):
    """A device allocated for a request, or for an alternative (then `request` is `request/alternative`)."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: ResourceList = {}


class DeviceAllocationConfiguration(ApiStruct, frozen=True, kw_only=True):
    """Parameters of allocated devices. Source: FromClass or FromClaim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(ApiStruct, frozen=True, kw_only=True):
    """The devices of a claim."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(ApiStruct, frozen=True, kw_only=True):
    """The allocation of a claim, and the nodes that can use its devices (None: all)."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(ApiStruct, frozen=True, kw_only=True):
    """A user of a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of an allocated device, as reported by its driver."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(name="shareID", default=None)
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubernetesObject, frozen=True, kw_only=True):
    """A claim for devices."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(ApiStruct, frozen=True, kw_only=True):
    """The metadata and spec of the claims that are created from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubernetesObject, frozen=True, kw_only=True):
    """A template of claims."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class ResourcePool(ApiStruct, frozen=True, kw_only=True):
    """The pool to which a slice belongs; complete when all slices of the newest generation exist."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class DeviceAttribute(ApiStruct, frozen=True, kw_only=True):
    """An attribute of a device: one value, or a list of one type."""

    int_value: Int64 | None = field(name="int", default=None)
    bool_value: bool | None = field(name="bool", default=None)
    string_value: str | None = field(name="string", default=None)
    version_value: str | None = field(name="version", default=None)
    int_values: tuple[Int64, ...] | None = field(name="ints", default=None)
    bool_values: tuple[bool, ...] | None = field(name="bools", default=None)
    string_values: tuple[str, ...] | None = field(name="strings", default=None)
    version_values: tuple[str, ...] | None = field(name="versions", default=None)


class CapacityRequestPolicyRange(ApiStruct, frozen=True, kw_only=True):
    """The amounts of a capacity that a request may consume: from `min` to `max` in steps."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(ApiStruct, frozen=True, kw_only=True):
    """Rounding of requests for a capacity, and the amount consumed without a request."""

    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiStruct, frozen=True, kw_only=True):
    """A capacity of a device."""

    value: QuantityText = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiStruct, frozen=True, kw_only=True):
    """The amount of one shared counter."""

    value: QuantityText = "0"


class CounterSet(ApiStruct, frozen=True, kw_only=True):
    """A set of counters that the devices of a pool consume together."""

    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(ApiStruct, frozen=True, kw_only=True):
    """The amounts that a device consumes of a counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}


class DeviceTaint(ApiStruct, frozen=True, kw_only=True):
    """A taint, which repels requests without a matching toleration. Effect: None, NoSchedule, NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeAllocatableResourceMapping(ApiStruct, frozen=True, kw_only=True):
    """The amount of a node's resource that a device consumes when it is allocated."""

    capacity_key: str | None = None
    allocation_multiplier: QuantityText | None = None


class Device(ApiStruct, frozen=True, kw_only=True):
    """A device of a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = {}


class ResourceSliceSpec(ApiStruct, frozen=True, kw_only=True):
    """The devices of a slice, and the nodes that can use them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubernetesObject, frozen=True, kw_only=True):
    """A part of a pool of devices, as its driver publishes it."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceClassSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a device class."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubernetesObject, frozen=True, kw_only=True):
    """A class of devices."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(ApiStruct, frozen=True, kw_only=True):
    """The devices that a rule taints; a field that is None matches all."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(ApiStruct, frozen=True, kw_only=True):
    """A taint, and the devices that get it. Without a selector, the scheduler applies it to all devices."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a rule."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(KubernetesObject, frozen=True, kw_only=True):
    """A rule that taints devices."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()
