"""Policies: priority classes, disruption budgets, limit ranges, resource quotas and pod groups."""

# ruff: noqa: RUF012 - msgspec gives every instance its own empty dict.

from bayplan.objects.meta import (
    ApiStruct,
    Condition,
    Int32,
    Int64,
    IntOrString,
    KubernetesObject,
    LabelSelector,
    ResourceList,
)


class PodDisruptionBudgetSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a disruption budget: how many of the selected pods must stay available, or may be unavailable."""

    min_available: IntOrString | None = None
    selector: LabelSelector | None = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a disruption budget: how many of the selected pods may be disrupted now.

    `disrupted_pods` maps the name of each pod whose eviction has been accepted to the time of acceptance.
    """

    observed_generation: Int64 = 0
    disrupted_pods: dict[str, str | None] = {}
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(KubernetesObject, frozen=True, kw_only=True):
    """A disruption budget."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(KubernetesObject, frozen=True, kw_only=True):
    """A priority by name, and whether pods with it preempt other pods."""

    value: Int32 = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None


class LimitRangeItem(ApiStruct, frozen=True, kw_only=True):
    """Bounds and defaults for one type of object.

    `max_limit_request_ratio`: the maximum of limit divided by request.
    """

    type: str = ""
    min: ResourceList = {}
    max: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(ApiStruct, frozen=True, kw_only=True):
    """The entries of a limit range."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(KubernetesObject, frozen=True, kw_only=True):
    """Bounds and defaults for the objects of a namespace."""

    spec: LimitRangeSpec = LimitRangeSpec()


class ScopedResourceSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    """One requirement that an object must meet for a quota to count it."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(ApiStruct, frozen=True, kw_only=True):
    """The requirements that an object must meet for a quota to count it."""

    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(ApiStruct, frozen=True, kw_only=True):
    """The maximum amounts of a quota, and the requirements on the objects that it counts."""

    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(ApiStruct, frozen=True, kw_only=True):
    """The maximum amounts that a quota enforces, and the used amounts."""

    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(KubernetesObject, frozen=True, kw_only=True):
    """Maximum amounts that the objects of a namespace may use together."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class GangSchedulingPolicy(ApiStruct, frozen=True, kw_only=True):
    """The gang scheduling policy: at least `min_count` pods of the group are scheduled together."""

    min_count: Int32 = 0


class BasicSchedulingPolicy(ApiStruct, frozen=True, kw_only=True):
    """The basic policy: pods of the group are scheduled one by one."""


class PodGroupSchedulingPolicy(ApiStruct, frozen=True, kw_only=True):
    """The scheduling policy of a pod group: one of `basic` and `gang`."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(ApiStruct, frozen=True, kw_only=True):
    """The node label whose value must be the same for all pods of a group."""

    key: str = ""


class PodGroupSchedulingConstraints(ApiStruct, frozen=True, kw_only=True):
    """The scheduling constraints of a pod group."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """A resource claim that the pods of a group share."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class WorkloadPodGroupTemplateReference(ApiStruct, frozen=True, kw_only=True):
    """The workload, and the template in it, from which a pod group was created."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(ApiStruct, frozen=True, kw_only=True):
    """The template from which a pod group was created."""

    workload: WorkloadPodGroupTemplateReference | None = None


class PodGroupSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a pod group."""

    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroupResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The claim that was created for an entry of a group's `resource_claims`."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a pod group."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(KubernetesObject, frozen=True, kw_only=True):
    """Pods that are scheduled together (scheduling.k8s.io/v1alpha2)."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
