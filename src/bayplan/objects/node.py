"""Nodes: their resources, taints, conditions and images."""

# ruff: noqa: RUF012 - msgspec gives every instance its own empty dict.

from msgspec import field

from bayplan.objects.meta import ApiStruct, Int64, KubernetesObject, ResourceList


class Taint(ApiStruct, frozen=True, kw_only=True):
    """A taint, which repels pods without a matching toleration. Effect: NoSchedule, PreferNoSchedule, NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a node: settings of administrators and controllers."""

    pod_cidr: str = field(name="podCIDR", default="")
    pod_cidrs: tuple[str, ...] = field(name="podCIDRs", default=())
    provider_id: str = field(name="providerID", default="")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(ApiStruct, frozen=True, kw_only=True):
    """One condition of a node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class ContainerImage(ApiStruct, frozen=True, kw_only=True):
    """An image on a node, with all its names."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class AttachedVolume(ApiStruct, frozen=True, kw_only=True):
    """A volume that is attached to a node."""

    name: str = ""
    device_path: str = ""


class NodeAddress(ApiStruct, frozen=True, kw_only=True):
    """An address of a node."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(ApiStruct, frozen=True, kw_only=True):
    """The software on a node, as reported by its kubelet."""

    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class NodeStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a node: its allocatable resources, conditions and images."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    phase: str = ""
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    images: tuple[ContainerImage, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubernetesObject, frozen=True, kw_only=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


def is_ready(node: Node) -> bool:
    """Return whether a node is ready. A node without the condition counts as ready, because manifests omit it."""
    return all(each.status == "True" for each in node.status.conditions if each.type == "Ready")
