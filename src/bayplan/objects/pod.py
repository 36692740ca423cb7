"""Pods: the fields of the spec that scheduling reads, and the status.

Affinity, tolerations and spreading constraints are in `bayplan.objects.affinity`, volumes in `bayplan.objects.volumes`;
their names are re-exported here, so that one import provides all parts of a pod.
"""

# ruff: noqa: RUF012 - msgspec gives every instance its own empty dict.

from msgspec import field

from bayplan.objects.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from bayplan.objects.meta import ApiStruct, Int32, Int64, KubernetesObject, ResourceList
from bayplan.objects.volumes import Volume

__all__ = [
    "Pod",
    "PodSpec",
    "PodStatus",
    "Container",
    "ContainerPort",
    "ContainerRestartRule",
    "ContainerStatus",
    "ContainerState",
    "ContainerExtendedResourceRequest",
    "NodeAllocatableResourceClaimStatus",
    "PodCondition",
    "PodExtendedResourceClaimStatus",
    "PodOS",
    "PodReadinessGate",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "ResourceClaimReference",
    "ResourceRequirements",
    "Affinity",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PreferredSchedulingTerm",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "WeightedPodAffinityTerm",
]


class ContainerPort(ApiStruct, frozen=True, kw_only=True):
    """A port of a container; with `host_port` 0, it uses no port of the node."""

    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = 0
    protocol: str = ""
    host_ip: str = field(name="hostIP", default="")


class ResourceClaimReference(ApiStruct, frozen=True, kw_only=True):
    """A claim of the pod that a container uses (upstream's core/v1 ResourceClaim)."""

    name: str = ""
    request: str = ""


class ResourceRequirements(ApiStruct, frozen=True, kw_only=True):
    """The requests and limits of a container or a pod."""

    limits: ResourceList = {}
    requests: ResourceList = {}
    claims: tuple[ResourceClaimReference, ...] = ()


class ContainerStateRunning(ApiStruct, frozen=True, kw_only=True):
    """The running state of a container, with its start time."""

    started_at: str | None = None


class ContainerStateTerminated(ApiStruct, frozen=True, kw_only=True):
    """The terminated state of a container."""

    exit_code: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerStateWaiting(ApiStruct, frozen=True, kw_only=True):
    """The waiting state of a container, with the reason."""

    reason: str = ""
    message: str = ""


class ContainerState(ApiStruct, frozen=True, kw_only=True):
    """The state of a container: waiting, running or terminated."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class VolumeMount(ApiStruct, frozen=True, kw_only=True):
    """The mount point of a pod's volume in a container."""

    name: str = ""
    read_only: bool = False
    mount_path: str = ""
    sub_path: str = ""


class VolumeDevice(ApiStruct, frozen=True, kw_only=True):
    """The device path of a pod's raw block volume in a container."""

    name: str = ""
    device_path: str = ""


class ContainerResizePolicy(ApiStruct, frozen=True, kw_only=True):
    """The resize policy of a resource: whether resizing restarts the container."""

    resource_name: str = ""
    restart_policy: str = ""


class ContainerRestartRule(ApiStruct, frozen=True, kw_only=True):
    """The action when a container exits with certain codes: Restart or RestartAllContainers."""

    action: str = ""


class Container(ApiStruct, frozen=True, kw_only=True):
    """A container. `restart_policy` "Always" makes an init container a sidecar."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[VolumeDevice, ...] = ()
    image_pull_policy: str = ""


class PodOS(ApiStruct, frozen=True, kw_only=True):
    """The operating system of a pod's containers."""

    name: str = ""


class PodReadinessGate(ApiStruct, frozen=True, kw_only=True):
    """A condition that must be True before the pod counts as ready."""

    condition_type: str = ""


class PodSchedulingGate(ApiStruct, frozen=True, kw_only=True):
    """A gate that keeps a pod out of the active queue until it is removed."""

    name: str = ""


class PodResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """A resource claim of the pod: an existing one by name, or one created from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(ApiStruct, frozen=True, kw_only=True):
    """The pod group with which a pod is scheduled."""

    pod_group_name: str | None = None


class PodSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a pod. As upstream, `node_selector` distinguishes None and {}."""

    volumes: tuple[Volume, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    node_selector: dict[str, str] | None = None
    service_account_name: str = ""
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = field(name="hostPID", default=False)
    host_ipc: bool = field(name="hostIPC", default=False)
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    priority_class_name: str = ""
    priority: Int32 | None = None
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    runtime_class_name: str | None = None
    preemption_policy: str | None = None
    overhead: ResourceList = {}
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    os: PodOS | None = None
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    scheduling_group: PodSchedulingGroup | None = None


class PodCondition(ApiStruct, frozen=True, kw_only=True):
    """One condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_probe_time: str | None = None
    last_transition_time: str | None = None


class ContainerStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a container. `resources`: what the kubelet has applied; None if it has not reported it."""

    name: str = ""
    state: ContainerState = ContainerState()
    ready: bool = False
    restart_count: Int32 = 0
    started: bool | None = None
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The name of the claim that was created for an entry of `resource_claims`."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(ApiStruct, frozen=True, kw_only=True):
    """The request, in the special claim, that serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The resource claim for a pod's extended resources, and the requests in it that serve them."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class NodeAllocatableResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The resources of the node that a claim of the pod uses."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    resources: ResourceList = {}


class PodStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a pod."""

    observed_generation: Int64 = 0
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = field(name="hostIP", default="")
    pod_ip: str = field(name="podIP", default="")
    start_time: str | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()


class Pod(KubernetesObject, frozen=True, kw_only=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


def not_scheduled(pod: Pod) -> PodCondition | None:
    """Return a pod's condition PodScheduled if it is False, else None."""
    return next(
        (each for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "False"), None
    )


def waiting_message(pod: Pod) -> str:
    """Return why a pod has no node, from the message of its condition PodScheduled, or ""."""
    condition = not_scheduled(pod)
    return "" if condition is None else condition.message
