"""Extended resources backed by devices: their special claim, whose requests depend on the node (KEP-5004)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bayplan.objects.meta import ObjectMeta, OwnerReference
from bayplan.objects.pod import Container, ContainerExtendedResourceRequest, Pod, PodSpec
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
from bayplan.state.device_classes import DeviceClassResolver
from bayplan.state.resource_table import FIRST_RESOURCES

IN_MEMORY_NAME = "<extended-resources>"
"""The name of the special claim until the API generates one; real claims can't have this name."""

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"

_REQUEST_NAME = re.compile(r"container-(\d+)-request-(\d+)")


def requested_resources(pod: Pod) -> list[str]:
    """Return the extended resources that a pod requests, with amounts above 0."""
    requests = pod_requests(pod, RequestOptions())
    return [name for name, quantity in requests.items() if is_dra_extended(name) and quantity.sign() != 0]


def requests_extended(spec: PodSpec) -> bool:
    """Return whether a pod requests extended resources that devices may serve. Fast, because few pods do."""
    listed = [container.resources.requests for container in (*spec.init_containers, *spec.containers)]
    if spec.overhead:
        listed.append(spec.overhead)
    if spec.resources is not None:
        listed.append(spec.resources.requests)
    for requests in listed:
        for name in requests:
            if name not in FIRST_RESOURCES and is_dra_extended(name):
                return True
    return False


def is_served_by_devices(pod: Pod, classes: DeviceClassResolver | None) -> bool:
    """Return whether a device class serves any resource of which the pod requests more than 0.

    `classes` is None if the feature gate DRAExtendedResource is disabled.
    """
    if not classes or not requests_extended(pod.spec):
        return False
    return any(classes.get(name) is not None for name in requested_resources(pod))


def owners_of_special_claim(claim: ResourceClaim) -> list[tuple[str, str]]:
    """Return the names and UIDs of the pods whose special claim this is, without duplicates; empty for other claims."""
    metadata = claim.metadata
    if metadata.annotations.get(ANNOTATION) != "true":
        return []
    return list(dict.fromkeys((owner.name, owner.uid) for owner in metadata.owner_references if owner.controller))


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


def node_requests(
    pod: Pod, resources: Iterable[str], class_of: Callable[[str], DeviceClass | None]
) -> tuple[tuple[DeviceRequest, ...], tuple[ContainerExtendedResourceRequest, ...]]:
    """Return the device requests for the resources that a node can provide only as devices.

    Also return which request serves which resource of which container. Containers that run at the same time each get
    their own devices. Init containers run before them: they use the same devices, and share one additional request, of
    the size that the largest of them needs.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    brief = [container.restart_policy != "Always" for container in pod.spec.init_containers]
    brief += [False] * len(pod.spec.containers)
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        device_class = class_of(resource)
        if device_class is None:
            continue
        name = device_class.metadata.name
        own = [
            None if brief[number] else _request(number, container, resource, name, (), mappings)
            for number, container in enumerate(containers)
        ]
        mapped: list[ContainerExtendedResourceRequest] = []
        additional = [
            _request(number, container, resource, name, own[number:], mapped)
            for number, container in enumerate(containers)
            if brief[number]
        ]
        shared = [request for request in additional if request is not None]
        requests += [request for request in own if request is not None]
        if shared:
            largest = max(shared, key=_count)
            requests.append(largest)
            names = {request.name for request in shared}
            mapped = [
                msgspec.structs.replace(item, request_name=largest.name) if item.request_name in names else item
                for item in mapped
            ]
        mappings += mapped
    requests.sort(key=lambda request: request.name)
    return tuple(requests), tuple(mappings)


def mappings_of(pod: Pod, claim: ResourceClaim) -> tuple[ContainerExtendedResourceRequest, ...]:
    """Return which request of the special claim serves which resource of which container, from the requests' names."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    classes: dict[str, DeviceClass] = {}
    for request in claim.spec.devices.requests:
        found = _REQUEST_NAME.fullmatch(request.name)
        if found is not None and request.exactly is not None:
            resource = sorted(containers[int(found[1])].resources.requests)[int(found[2])]
            classes[resource] = DeviceClass(metadata=ObjectMeta(name=request.exactly.device_class_name))
    return node_requests(pod, classes, classes.get)[1]


def _request(
    number: int,
    container: Container,
    resource: str,
    device_class: str,
    reusable: Sequence[DeviceRequest | None],
    mappings: list[ContainerExtendedResourceRequest],
) -> DeviceRequest | None:
    """Return one container's request for a resource beyond the reusable devices of other requests, or None.

    Add the requests that serve the container to `mappings`.
    """
    wanted = _whole_amount(container.resources.requests, resource)
    if not wanted:
        return None
    found = 0
    for request in reusable:
        if request is not None:
            found += _count(request)
            mappings.append(_mapping(container, resource, request.name))
            if found >= wanted:
                return None
    place = sorted(container.resources.requests).index(resource)
    name = f"container-{number}-request-{place}"
    mappings.append(_mapping(container, resource, name))
    exact = ExactDeviceRequest(device_class_name=device_class, allocation_mode=EXACT_COUNT, count=wanted - found)
    return DeviceRequest(name=name, exactly=exact)


def _mapping(container: Container, resource: str, request: str) -> ContainerExtendedResourceRequest:
    return ContainerExtendedResourceRequest(container_name=container.name, resource_name=resource, request_name=request)


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _whole_amount(requests: Mapping[str, str | int | float], resource: str) -> int:
    """Return the requested amount of a resource; 0 if it is not an integer."""
    quantity = parse_quantity(requests.get(resource, 0))
    return 0 if quantity.is_decimal or quantity.scale < 0 else quantity.value()
