"""The fields that a kubelet writes to its node: conditions, addresses, versions, heartbeat times."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.apiserver.bridge.network import NodeAddresses, internal_address
from bayplan.base.plain_data import Document, part
from bayplan.base.version import KUBERNETES_VERSION, __version__
from bayplan.controllers.node_lifecycle import has_ready_condition
from bayplan.objects.node import Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo

OPERATING_SYSTEM = "Bayplan virtual node"
RUNTIME = f"bayplan://{__version__}"

_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_OS_LABEL, _ARCHITECTURE_LABEL = "kubernetes.io/os", "kubernetes.io/arch"


def is_incomplete(node: Node) -> bool:
    """Return whether a node lacks a field that its kubelet writes."""
    status = node.status
    return (
        not node.spec.pod_cidr
        or not status.addresses
        or not status.node_info.kubelet_version
        or not has_ready_condition(node)
        or any(not each.last_heartbeat_time for each in status.conditions)
    )


def completed(node: Node, addresses: NodeAddresses, now: str) -> Node:
    """Return a node with all fields that its kubelet writes. Existing fields do not change.

    Args:
        node: the stored node.
        addresses: allocates missing addresses.
        now: the current time as a timestamp.
    """
    return replace(node, spec=_spec(node, addresses), status=_status(node, addresses, now))


def _spec(node: Node, addresses: NodeAddresses) -> NodeSpec:
    if node.spec.pod_cidr:
        return node.spec
    cidr = addresses.new_cidr(node)
    return replace(node.spec, pod_cidr=cidr, pod_cidrs=(cidr,)) if cidr else node.spec


def _status(node: Node, addresses: NodeAddresses, now: str) -> NodeStatus:
    status, created = node.status, node.metadata.creation_timestamp or now
    conditions = tuple(
        replace(
            each,
            last_heartbeat_time=each.last_heartbeat_time or now,
            last_transition_time=each.last_transition_time or created,
        )
        for each in status.conditions
    )
    if not has_ready_condition(node):
        known = {each.type for each in conditions}
        conditions += tuple(
            NodeCondition(
                type=type_,
                status=value,
                reason=reason,
                message=message,
                last_heartbeat_time=now,
                last_transition_time=now,
            )
            for type_, value, reason, message in _CONDITIONS
            if type_ not in known
        )
    found = status.addresses
    if not internal_address(node):
        host = addresses.new_host()
        found = (*found, NodeAddress(type="InternalIP", address=host)) if host else found
    if not any(each.type == "Hostname" for each in found):
        found = (*found, NodeAddress(type="Hostname", address=node.metadata.name))
    return replace(status, conditions=conditions, addresses=found, node_info=_node_info(node))


def _node_info(node: Node) -> NodeSystemInfo:
    info, labels = node.status.node_info, node.metadata.labels
    return NodeSystemInfo(
        kernel_version=info.kernel_version or f"{__version__}-bayplan",
        os_image=info.os_image or OPERATING_SYSTEM,
        container_runtime_version=info.container_runtime_version or RUNTIME,
        kubelet_version=info.kubelet_version or KUBERNETES_VERSION,
        operating_system=info.operating_system or labels.get(_OS_LABEL, "linux"),
        architecture=info.architecture or labels.get(_ARCHITECTURE_LABEL, "amd64"),
    )


def with_identity(node: Document, status: Document) -> Document:
    """Return the status of a virtual node with its machine, system and boot IDs, which typed nodes lack.

    The IDs are derived from the node's uid; existing IDs do not change. The status of a node with a real kubelet is
    returned unchanged.

    Args:
        node: the stored node.
        status: the new status.
    """
    info = part(status, "nodeInfo")
    if info.get("containerRuntimeVersion") != RUNTIME:
        return status
    uid = str(part(node, "metadata").get("uid") or "")
    identity = {"machineID": uid.replace("-", ""), "systemUUID": uid, "bootID": uid}
    return {**status, "nodeInfo": {**info, **{name: info.get(name) or value for name, value in identity.items()}}}
