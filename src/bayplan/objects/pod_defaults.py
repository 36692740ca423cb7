"""The defaults that the API sets on pods and claims, and the rounding of all resource lists.

Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/, KEP-2837 (pod-level resources)
and the behaviour of k8s.io/kubernetes/pkg/apis/core/v1 v1.36.3.
"""

from functools import lru_cache

from msgspec.structs import replace

from bayplan.objects.meta import ResourceList, changed, mapped
from bayplan.objects.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from bayplan.objects.quantity import Quantity, QuantityLike, parse_quantity
from bayplan.objects.requests import RequestOptions, pod_requests, sum_container_limits
from bayplan.objects.resource_names import is_huge_page, is_pod_level
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.objects.volumes import AzureDiskVolumeSource, PersistentVolumeClaimSpec, RBDVolumeSource, Volume

DEFAULT_SCHEDULER_NAME = "default-scheduler"
DEFAULT_TERMINATION_GRACE_PERIOD_SECONDS = 30

_MILLI_IN_NANOS = 1_000_000


def default_pod(pod: Pod, *, pod_level_resources: bool = True) -> Pod:
    """Return a pod with the API's defaults.

    Absent requests are set to the limits; on the host network, container ports become host ports; a pod with pod-level
    limits gets pod-level requests; amounts are rounded up to thousandths.

    Args:
        pod: the pod as submitted.
        pod_level_resources: the gate PodLevelResources.
    """
    spec = pod.spec
    containers = mapped(_with_requests, spec.containers)
    init_containers = mapped(_with_requests, spec.init_containers)
    spec = changed(spec, containers=containers, init_containers=init_containers)
    if pod_level_resources and spec.resources is not None:
        spec = changed(spec, resources=_pod_level_resources(changed(pod, spec=spec), spec.resources))
    if spec.host_network:
        spec = changed(
            spec,
            containers=mapped(_with_host_ports, spec.containers),
            init_containers=mapped(_with_host_ports, spec.init_containers),
        )
    pod = changed(pod, spec=default_pod_spec(spec))
    if pod.spec.resources is not None:
        pod = changed(pod, spec=changed(pod.spec, resources=rounded_requirements(pod.spec.resources)))
    return changed(pod, status=default_pod_status(pod.status))


def default_pod_status(status: PodStatus) -> PodStatus:
    """Return a pod's status with its amounts rounded up to thousandths."""
    if not (
        status.container_statuses or status.init_container_statuses or status.resources or status.allocated_resources
    ):
        return status
    return changed(
        status,
        container_statuses=mapped(_rounded_status, status.container_statuses),
        init_container_statuses=mapped(_rounded_status, status.init_container_statuses),
        allocated_resources=rounded(status.allocated_resources),
        resources=status.resources and rounded_requirements(status.resources),
    )


def default_pod_spec(spec: PodSpec) -> PodSpec:
    """Return the spec of a pod or a pod template with its defaults."""
    grace = spec.termination_grace_period_seconds
    return changed(
        spec,
        restart_policy=spec.restart_policy or "Always",
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER_NAME,
        termination_grace_period_seconds=DEFAULT_TERMINATION_GRACE_PERIOD_SECONDS if grace is None else grace,
        containers=mapped(_default_container, spec.containers),
        init_containers=mapped(_default_container, spec.init_containers),
        volumes=mapped(_default_volume, spec.volumes) if spec.volumes else spec.volumes,
        overhead=rounded(spec.overhead) if spec.overhead else spec.overhead,
    )


def default_requirements(resources: ResourceRequirements) -> ResourceRequirements:
    """Return a container's resources with absent requests set to the limits, and amounts rounded up."""
    return rounded_requirements(_requests_from_limits(resources))


def _requests_from_limits(resources: ResourceRequirements) -> ResourceRequirements:
    requests = resources.requests
    if not resources.limits or all(name in requests for name in resources.limits):
        return resources
    merged = {**requests, **{name: limit for name, limit in resources.limits.items() if name not in requests}}
    return replace(resources, requests=merged)


def _with_requests(container: Container) -> Container:
    """Return a container with absent requests set to the limits."""
    resources = _requests_from_limits(container.resources)
    return container if resources is container.resources else replace(container, resources=resources)


def _with_host_ports(container: Container) -> Container:
    if all(port.host_port for port in container.ports):
        return container
    ports = tuple(port if port.host_port else replace(port, host_port=port.container_port) for port in container.ports)
    return replace(container, ports=ports)


def _pod_level_resources(pod: Pod, resources: ResourceRequirements) -> ResourceRequirements:
    """Return a pod's pod-level resources with their defaults.

    Limits for huge pages default to the sums of the containers. If there are limits, requests default to the sums of
    the containers (except for huge pages), else to the limits.
    """
    limits, requests = dict(resources.limits), dict(resources.requests)
    if limits or requests:
        for name, quantity in sum_container_limits(pod).items():
            if is_huge_page(name) and name not in requests:
                limits.setdefault(name, str(_rounded_quantity(quantity)))
    if limits:
        options = RequestOptions(exclude_overhead=True, skip_pod_level_resources=True)
        for name, quantity in pod_requests(pod, options).items():
            if is_pod_level(name) and not is_huge_page(name):
                summed = _rounded_quantity(quantity)
                requests.setdefault(name, _as_decimal(summed) if name in pod.spec.overhead else str(summed))
        for name, limit in limits.items():
            if is_pod_level(name):
                requests.setdefault(name, limit)
    return changed(resources, limits=limits, requests=requests)


def _default_container(container: Container) -> Container:
    ports = container.ports
    if ports:
        ports = mapped(lambda port: port if port.protocol else replace(port, protocol="TCP"), ports)
    return changed(container, ports=ports, resources=rounded_requirements(container.resources))


def _default_volume(volume: Volume) -> Volume:
    if volume.rbd is not None:
        return changed(volume, rbd=default_rbd(volume.rbd))
    if volume.azure_disk is not None:
        return changed(volume, azure_disk=default_azure_disk(volume.azure_disk))
    ephemeral = volume.ephemeral
    if ephemeral is not None and ephemeral.volume_claim_template is not None:
        template = ephemeral.volume_claim_template
        template = changed(template, spec=default_claim_spec(template.spec))
        return changed(volume, ephemeral=changed(ephemeral, volume_claim_template=template))
    return volume


def default_rbd(source: RBDVolumeSource) -> RBDVolumeSource:
    """Return a Ceph disk with default pool and user."""
    return changed(source, pool=source.pool or "rbd", user=source.user or "admin")


def default_azure_disk(source: AzureDiskVolumeSource) -> AzureDiskVolumeSource:
    """Return an Azure disk with its defaults: shared, cached and writable."""
    return changed(
        source,
        caching_mode="ReadWrite" if source.caching_mode is None else source.caching_mode,
        fs_type="ext4" if source.fs_type is None else source.fs_type,
        read_only=bool(source.read_only),
        kind="Shared" if source.kind is None else source.kind,
    )


def _rounded_status(status: ContainerStatus) -> ContainerStatus:
    return changed(
        status,
        allocated_resources=rounded(status.allocated_resources),
        resources=status.resources and rounded_requirements(status.resources),
    )


# --- claims -------------------------------------------------------------------------------------------------------------


def default_persistent_volume_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Return a claim with its default phase and volume mode, and rounded amounts."""
    status = claim.status
    status = changed(
        status,
        phase=status.phase or "Pending",
        capacity=rounded(status.capacity),
        allocated_resources=rounded(status.allocated_resources),
    )
    return changed(claim, spec=default_claim_spec(claim.spec), status=status)


def default_claim_spec(spec: PersistentVolumeClaimSpec) -> PersistentVolumeClaimSpec:
    """Return the spec of a claim, or of a claim template, with its default volume mode and rounded amounts."""
    resources = spec.resources
    resources = changed(resources, limits=rounded(resources.limits), requests=rounded(resources.requests))
    return changed(spec, volume_mode=spec.volume_mode or "Filesystem", resources=resources)


# --- amounts ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def round_up_to_milli(quantity: QuantityLike) -> QuantityLike:
    """Return an amount rounded up, away from zero, to thousandths, as the API does in every resource list. Cached."""
    parsed = parse_quantity(quantity)
    rounded_up = _rounded_quantity(parsed)
    return quantity if rounded_up is parsed else str(rounded_up)


def _rounded_quantity(quantity: Quantity) -> Quantity:
    nanos = quantity.as_nanos()
    if nanos % _MILLI_IN_NANOS == 0:
        return quantity
    milli = -(-nanos // _MILLI_IN_NANOS) if nanos > 0 else nanos // _MILLI_IN_NANOS
    return Quantity(milli, -3, format=quantity.format)


def _as_decimal(quantity: Quantity) -> str:
    """Return a sum as text that parses to the form in which upstream stores the sum (see `Quantity`).

    This matters only together with overhead (`bayplan.objects.requests.repeats_overhead`).
    """
    if not quantity.is_decimal or parse_quantity(str(quantity)).is_decimal:
        return str(quantity)
    # Write a fraction of a binary unit, which always parses as a decimal; 10 ** 10 / 1024 is an integer.
    digits = quantity.as_nanos() * (10**10 // 1024)
    return f"{digits // 10**19}.{digits % 10**19:019d}Ki"


def rounded(resources: ResourceList) -> ResourceList:
    """Return a resource list with all amounts rounded up to thousandths; the same object if nothing changes."""
    for quantity in resources.values():
        if round_up_to_milli(quantity) is not quantity:
            return {name: round_up_to_milli(quantity) for name, quantity in resources.items()}
    return resources


def rounded_requirements(resources: ResourceRequirements) -> ResourceRequirements:
    """Return resources with all requests and limits rounded up to thousandths."""
    if not resources.limits and not resources.requests:
        return resources
    return changed(resources, limits=rounded(resources.limits), requests=rounded(resources.requests))
