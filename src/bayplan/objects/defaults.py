"""The defaults that the API sets on stored objects, in the fields that scheduling and controllers read.

`default_object` is for components that accept objects (loaders, the API server). Every function here and in
`bayplan.objects.pod_defaults` and `bayplan.objects.workload_defaults` returns the same object if nothing changes.
Defaults that admission plugins set (priority, tolerations) are in `bayplan.objects.admission`.

Source: https://kubernetes.io/docs/reference/kubernetes-api/ and the behavior of k8s.io/kubernetes/pkg/apis v1.36.3.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from bayplan.objects.kinds import kind_of
from bayplan.objects.meta import KubernetesObject, changed, mapped
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.pod_defaults import (
    DEFAULT_SCHEDULER_NAME,
    default_azure_disk,
    default_persistent_volume_claim,
    default_pod,
    default_pod_spec,
    default_rbd,
    rounded,
)
from bayplan.objects.policy import PriorityClass
from bayplan.objects.resource import (
    Device,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)
from bayplan.objects.service import Service
from bayplan.objects.storage import CSIDriver, PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.objects.workload_defaults import (
    default_cron_job,
    default_daemon_set,
    default_deployment,
    default_job,
    default_job_spec,
    default_pod_template,
    default_replica_set,
    default_replication_controller,
    default_stateful_set,
)
from bayplan.objects.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

__all__ = [
    "default_object",
    "default_pod",
    "default_pod_template",
    "default_node",
    "default_namespace",
    "default_service",
    "default_priority_class",
    "default_storage_class",
    "default_persistent_volume",
    "default_persistent_volume_claim",
    "default_csi_driver",
    "default_resource_claim",
    "default_resource_claim_template",
    "default_resource_slice",
    "default_deployment",
    "default_replica_set",
    "default_replication_controller",
    "default_stateful_set",
    "default_daemon_set",
    "default_job",
    "default_cron_job",
    "default_pod_spec",
    "default_job_spec",
    "DEFAULT_SCHEDULER_NAME",
    "NAMESPACE_LABEL",
]

NAMESPACE_LABEL = "kubernetes.io/metadata.name"

Item = TypeVar("Item", bound=KubernetesObject)


def default_object(item: Item) -> Item:
    """Return an object with the API's defaults, including the namespace ``default`` if its kind is namespaced."""
    defaulter = _DEFAULTERS.get(type(item))
    if defaulter is not None:
        item = defaulter(item)
    if not item.metadata.namespace and kind_of(type(item)).namespaced:
        item = replace(item, metadata=replace(item.metadata, namespace="default"))
    return item


# --- nodes, namespaces, services, policy ------------------------------------------------------------------------------


def default_node(node: Node) -> Node:
    """Return a node whose missing allocatable amounts are its capacity; amounts are rounded up to thousandths."""
    status = node.status
    allocatable = status.allocatable or status.capacity
    return changed(node, status=changed(status, capacity=rounded(status.capacity), allocatable=rounded(allocatable)))


def default_namespace(namespace: Namespace) -> Namespace:
    """Return a namespace with the label that contains its name, and the phase Active if it has none."""
    metadata, status = namespace.metadata, namespace.status
    if metadata.name and metadata.labels.get(NAMESPACE_LABEL) != metadata.name:
        metadata = replace(metadata, labels={**metadata.labels, NAMESPACE_LABEL: metadata.name})
    return changed(namespace, metadata=metadata, status=changed(status, phase=status.phase or "Active"))


def default_service(service: Service) -> Service:
    """Return a service with its default type, session affinity, protocols and target ports."""
    spec = service.spec
    ports = mapped(
        lambda port: changed(port, protocol=port.protocol or "TCP", target_port=port.target_port or port.port),
        spec.ports,
    )
    spec = changed(spec, ports=ports, type=spec.type or "ClusterIP", session_affinity=spec.session_affinity or "None")
    return changed(service, spec=spec)


def default_priority_class(item: PriorityClass) -> PriorityClass:
    """Return a priority class with the default preemption policy."""
    return changed(item, preemption_policy=item.preemption_policy or "PreemptLowerPriority")


# --- storage ----------------------------------------------------------------------------------------------------------


def default_storage_class(item: StorageClass) -> StorageClass:
    """Return a storage class with the default reclaim policy and binding mode."""
    return changed(
        item,
        reclaim_policy=item.reclaim_policy or "Delete",
        volume_binding_mode=item.volume_binding_mode or "Immediate",
    )


def default_persistent_volume(volume: PersistentVolume) -> PersistentVolume:
    """Return a volume with a default phase, mode and reclaim policy."""
    spec, status = volume.spec, volume.status
    spec = changed(
        spec,
        persistent_volume_reclaim_policy=spec.persistent_volume_reclaim_policy or "Retain",
        volume_mode=spec.volume_mode or "Filesystem",
        capacity=rounded(spec.capacity),
        rbd=spec.rbd and default_rbd(spec.rbd),
        azure_disk=spec.azure_disk and default_azure_disk(spec.azure_disk),
    )
    return changed(volume, spec=spec, status=changed(status, phase=status.phase or "Pending"))


def default_csi_driver(driver: CSIDriver) -> CSIDriver:
    """Return a CSI driver with its defaults: volumes are attached, and capacity is not reported."""
    spec = driver.spec
    spec = changed(
        spec,
        attach_required=True if spec.attach_required is None else spec.attach_required,
        pod_info_on_mount=bool(spec.pod_info_on_mount),
        storage_capacity=bool(spec.storage_capacity),
        fs_group_policy=spec.fs_group_policy or "ReadWriteOnceWithFSType",
        volume_lifecycle_modes=spec.volume_lifecycle_modes or ("Persistent",),
        requires_republish=bool(spec.requires_republish),
        se_linux_mount=bool(spec.se_linux_mount),
    )
    return changed(driver, spec=spec)


# --- devices ----------------------------------------------------------------------------------------------------------


def default_resource_claim(claim: ResourceClaim) -> ResourceClaim:
    """Return a claim whose requests have an allocation mode and a count, and whose tolerations have an operator."""
    claim = changed(claim, spec=_default_resource_claim_spec(claim.spec))
    allocation = claim.status.allocation
    if allocation is None:
        return claim
    results = mapped(
        lambda result: changed(result, tolerations=mapped(_default_device_toleration, result.tolerations)),
        allocation.devices.results,
    )
    allocation = changed(allocation, devices=changed(allocation.devices, results=results))
    return changed(claim, status=changed(claim.status, allocation=allocation))


def default_resource_claim_template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    """Return a claim template with the defaults of its claim."""
    spec = template.spec
    return changed(template, spec=changed(spec, spec=_default_resource_claim_spec(spec.spec)))


def default_resource_slice(item: ResourceSlice) -> ResourceSlice:
    """Return a slice whose mappings to node resources have a multiplier.

    Taints get no time, which would need a clock.
    """
    spec = item.spec
    return changed(item, spec=changed(spec, devices=mapped(_default_device, spec.devices)))


def _default_device(device: Device) -> Device:
    mappings = device.node_allocatable_resource_mappings
    if all(mapping.allocation_multiplier is not None for mapping in mappings.values()):
        return device
    completed = {
        name: mapping if mapping.allocation_multiplier is not None else replace(mapping, allocation_multiplier="1")
        for name, mapping in mappings.items()
    }
    return replace(device, node_allocatable_resource_mappings=completed)


def _default_resource_claim_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = mapped(_default_device_request, spec.devices.requests)
    return changed(spec, devices=changed(spec.devices, requests=requests))


def _default_device_request(request: DeviceRequest) -> DeviceRequest:
    return changed(
        request,
        exactly=request.exactly and _default_exact_request(request.exactly),
        first_available=mapped(_default_sub_request, request.first_available),
    )


def _default_exact_request(request: ExactDeviceRequest) -> ExactDeviceRequest:
    mode = request.allocation_mode or "ExactCount"
    count = 1 if mode == "ExactCount" and request.count == 0 else request.count
    tolerations = mapped(_default_device_toleration, request.tolerations)
    return changed(request, allocation_mode=mode, count=count, tolerations=tolerations)


def _default_sub_request(request: DeviceSubRequest) -> DeviceSubRequest:
    mode = request.allocation_mode or "ExactCount"
    count = 1 if mode == "ExactCount" and request.count == 0 else request.count
    tolerations = mapped(_default_device_toleration, request.tolerations)
    return changed(request, allocation_mode=mode, count=count, tolerations=tolerations)


def _default_device_toleration(toleration: DeviceToleration) -> DeviceToleration:
    return changed(toleration, operator=toleration.operator or "Equal")


# Any: each function takes and returns its own kind, which the type of a dict can't express.
_DEFAULTERS: dict[type[KubernetesObject], Callable[[Any], Any]] = {
    Pod: default_pod,
    PodTemplate: default_pod_template,
    Node: default_node,
    Namespace: default_namespace,
    Service: default_service,
    PriorityClass: default_priority_class,
    StorageClass: default_storage_class,
    PersistentVolume: default_persistent_volume,
    PersistentVolumeClaim: default_persistent_volume_claim,
    CSIDriver: default_csi_driver,
    ResourceClaim: default_resource_claim,
    ResourceClaimTemplate: default_resource_claim_template,
    ResourceSlice: default_resource_slice,
    Deployment: default_deployment,
    ReplicaSet: default_replica_set,
    ReplicationController: default_replication_controller,
    StatefulSet: default_stateful_set,
    DaemonSet: default_daemon_set,
    Job: default_job,
    CronJob: default_cron_job,
}
