"""Extended resources backed by devices: their special claim, whose requests depend on the node (KEP-5004)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bayplan.objects.meta import ObjectMeta, OwnerReference
from bayplan.objects.pod import Container, ContainerExtendedResourceRequest, Pod
from bayplan.objects.quantity import parse_quantity
from bayplan.objects.requests import RequestOptions, pod_requests
from bayplan.objects.resource import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from bayplan.objects.resource_names import is_dra_extended
from bayplan.plugins.dynamic_resources.device_requests import EXACT_COUNT

IN_MEMORY_NAME = "<extended-resources>"
"""The name of the special claim until the API generates one; real claims can't have this name."""

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"

_REQUEST_NAME = re.compile(r"container-(\d+)-request-(\d+)")


class NodeRequests(msgspec.Struct, frozen=True, eq=False):
    """The device requests of a pod's special claim on one kind of nodes.

    Attributes:
        requests: the requests.
        mappings: the request that serves each resource of each container.
    """

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]


def requested_resources(pod: Pod) -> dict[str, int]:
    """Return the extended resources that a pod requests, with amounts above 0."""
    found = {}
    for name, quantity in pod_requests(pod, RequestOptions()).items():
        if is_dra_extended(name) and quantity.sign() != 0:
            found[name] = quantity.value()
    return found


def owners_of_special_claim(claim: ResourceClaim) -> list[tuple[str, str]]:
    """Return the names and UIDs of the pods whose special claim this is, without duplicates; empty for other claims."""
    metadata = claim.metadata
    if metadata.annotations.get(ANNOTATION) != "true":
        return []
    return list(dict.fromkeys((owner.name, owner.uid) for owner in metadata.owner_references if owner.controller))


def find_special_claim(pod: Pod, claims: Iterable[ResourceClaim]) -> ResourceClaim | None:
    """Return the special claim that an earlier attempt created for a pod, or None."""
    owner = (pod.metadata.name, pod.metadata.uid)
    return next((claim for claim in claims if owner in owners_of_special_claim(claim)), None)


def make_special_claim(pod: Pod) -> ResourceClaim:
    """Return a pod's special claim before a node is chosen, without requests."""
    metadata = pod.metadata
    owner = OwnerReference(api_version="v1", kind="Pod", name=metadata.name, uid=metadata.uid, controller=True)
    return ResourceClaim(
        metadata=ObjectMeta(
            namespace=metadata.namespace,
            name=IN_MEMORY_NAME,
            uid=f"{metadata.namespace}/{metadata.name}/{metadata.uid}/{IN_MEMORY_NAME}",
            generate_name=f"{metadata.name}-extended-resources-",
            owner_references=(owner,),
            annotations={ANNOTATION: "true"},
        )
    )


def with_requests(claim: ResourceClaim, requests: tuple[DeviceRequest, ...]) -> ResourceClaim:
    """Return the special claim with the requests for a node."""
    return msgspec.structs.replace(claim, spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)))


def node_requests(pod: Pod, resources: Iterable[str], class_of: Callable[[str], DeviceClass | None]) -> NodeRequests:
    """Return the device requests for the resources that a node can provide only as devices.

    Containers that run at the same time each get their own devices. Init containers run before them: they use the same
    devices, and share one additional request, of the size that the largest of them needs.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    inits = len(pod.spec.init_containers)
    brief = [number < inits and container.restart_policy != "Always" for number, container in enumerate(containers)]
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        device_class = class_of(resource)
        if device_class is None:
            continue
        own: list[DeviceRequest | None] = [None] * len(containers)
        for number, container in enumerate(containers):
            if not brief[number]:
                own[number], mapped = _request(number, container, resource, device_class.metadata.name, ())
                mappings += mapped
        most, mapped = _brief_request(containers, brief, resource, device_class.metadata.name, own)
        mappings += mapped
        requests += [request for request in (most, *own) if request is not None]
    requests.sort(key=lambda request: request.name)
    return NodeRequests(tuple(requests), tuple(mappings))


def mappings_of(pod: Pod, claim: ResourceClaim) -> tuple[ContainerExtendedResourceRequest, ...]:
    """Return which request of the special claim serves which resource of which container, from the requests' names."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    classes: dict[str, DeviceClass] = {}
    for request in claim.spec.devices.requests:
        found = _REQUEST_NAME.fullmatch(request.name)
        if found is not None and request.exactly is not None:
            resource = sorted(containers[int(found[1])].resources.requests)[int(found[2])]
            classes[resource] = DeviceClass(metadata=ObjectMeta(name=request.exactly.device_class_name))
    return node_requests(pod, classes, classes.get).mappings


def _brief_request(
    containers: Sequence[Container],
    brief: Sequence[bool],
    resource: str,
    device_class: str,
    own: Sequence[DeviceRequest | None],
) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
    """Return the one request that all init containers share for a resource, or None, and the mappings of each."""
    most: DeviceRequest | None = None
    names: set[str] = set()
    mappings: list[ContainerExtendedResourceRequest] = []
    for number, container in enumerate(containers):
        if not brief[number]:
            continue
        request, mapped = _request(number, container, resource, device_class, own[number:])
        mappings += mapped
        if request is not None:
            names.add(request.name)
            if most is None or _count(most) < _count(request):
                most = request
    if most is None:
        return None, mappings
    renamed = [
        msgspec.structs.replace(mapping, request_name=most.name) if mapping.request_name in names else mapping
        for mapping in mappings
    ]
    return most, renamed


def _request(
    number: int,
    container: Container,
    resource: str,
    device_class: str,
    reusable: Sequence[DeviceRequest | None],
) -> tuple[DeviceRequest | None, list[ContainerExtendedResourceRequest]]:
    """Return one container's request for a resource, beyond the reusable devices of other requests, and its mappings.

    The request is None if the reusable devices are enough.
    """
    wanted = _whole_amount(container.resources.requests, resource)
    mappings: list[ContainerExtendedResourceRequest] = []
    if not wanted:
        return None, mappings
    found = 0
    for request in reusable:
        if request is None:
            continue
        found += _count(request)
        mappings.append(_mapping(container, resource, request.name))
        if found >= wanted:
            return None, mappings
    place = sorted(container.resources.requests).index(resource)
    name = f"container-{number}-request-{place}"
    mappings.append(_mapping(container, resource, name))
    exact = ExactDeviceRequest(device_class_name=device_class, allocation_mode=EXACT_COUNT, count=wanted - found)
    return DeviceRequest(name=name, exactly=exact), mappings


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=request)


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _whole_amount(requests: Mapping[str, str | int | float], resource: str) -> int:
    """Return the requested amount of a resource; 0 if it is not an integer."""
    written = requests.get(resource)
    if written is None:
        return 0
    quantity = parse_quantity(written)
    if quantity.is_decimal or quantity.scale < 0:
        return 0
    return quantity.value()
