"""Workloads: the objects from which controllers create pods."""

from bayplan.objects.meta import (
    ApiStruct,
    Condition,
    Int32,
    Int64,
    IntOrString,
    KubernetesObject,
    LabelSelector,
    ObjectMeta,
    ObjectReference,
)
from bayplan.objects.pod import PodSpec
from bayplan.objects.storage import PersistentVolumeClaim

DEFAULT_REVISION_HISTORY_LIMIT = 10
"""Default number of old revisions to retain: of Deployments, StatefulSets and DaemonSets."""


class PodTemplateSpec(ApiStruct, frozen=True, kw_only=True):
    """The pod that a controller creates."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class PodTemplate(KubernetesObject, frozen=True, kw_only=True):
    """A stored pod template."""

    template: PodTemplateSpec = PodTemplateSpec()


class RollingUpdate(ApiStruct, frozen=True, kw_only=True):
    """The limits on unavailable and surplus pods during a rolling update."""

    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class UpdateStrategy(ApiStruct, frozen=True, kw_only=True):
    """The update strategy of a Deployment or DaemonSet. Type: RollingUpdate, Recreate or OnDelete."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a Deployment."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None
    paused: bool = False
    progress_deadline_seconds: Int32 | None = None


class DeploymentStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a Deployment."""

    observed_generation: Int64 = 0
    replicas: Int32 = 0
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    conditions: tuple[Condition, ...] = ()
    collision_count: Int32 | None = None


class Deployment(KubernetesObject, frozen=True, kw_only=True):
    """A Deployment: a sequence of ReplicaSets, one per revision of its template."""

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a ReplicaSet."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicaSetStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a ReplicaSet or ReplicationController."""

    replicas: Int32 = 0
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(KubernetesObject, frozen=True, kw_only=True):
    """A ReplicaSet: a number of pods with one template."""

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class ReplicationControllerSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a ReplicationController. `selector` is a plain map; None means the template's labels."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: dict[str, str] | None = None
    template: PodTemplateSpec | None = None


class ReplicationControllerStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a ReplicationController."""

    replicas: Int32 = 0
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0
    conditions: tuple[Condition, ...] = ()


class ReplicationController(KubernetesObject, frozen=True, kw_only=True):
    """A ReplicationController, the predecessor of ReplicaSet."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicationControllerStatus = ReplicationControllerStatus()


class StatefulSetRollingUpdate(ApiStruct, frozen=True, kw_only=True):
    """The settings of a StatefulSet's rolling update; only ordinals from `partition` on are updated."""

    partition: Int32 | None = None
    max_unavailable: IntOrString | None = None


class StatefulSetUpdateStrategy(ApiStruct, frozen=True, kw_only=True):
    """The update strategy of a StatefulSet. Type: RollingUpdate or OnDelete."""

    type: str = ""
    rolling_update: StatefulSetRollingUpdate | None = None


class StatefulSetPersistentVolumeClaimRetentionPolicy(ApiStruct, frozen=True, kw_only=True):
    """Policies for the claims when the set is deleted or scaled down: Retain or Delete."""

    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetOrdinals(ApiStruct, frozen=True, kw_only=True):
    """The first ordinal of the pods."""

    start: Int32 = 0


class StatefulSetSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a StatefulSet."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()
    revision_history_limit: Int32 | None = None
    min_ready_seconds: Int32 = 0
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    ordinals: StatefulSetOrdinals | None = None


class StatefulSetStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a StatefulSet."""

    observed_generation: Int64 = 0
    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    available_replicas: Int32 = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: tuple[Condition, ...] = ()
    collision_count: Int32 | None = None


class StatefulSet(KubernetesObject, frozen=True, kw_only=True):
    """A StatefulSet, which numbers its pods and creates volume claims for each of them."""

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a DaemonSet."""

    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    update_strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None


class DaemonSetStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a DaemonSet."""

    current_number_scheduled: Int32 = 0
    number_misscheduled: Int32 = 0
    desired_number_scheduled: Int32 = 0
    number_ready: Int32 = 0
    observed_generation: Int64 = 0
    updated_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_unavailable: Int32 = 0
    conditions: tuple[Condition, ...] = ()
    collision_count: Int32 | None = None


class DaemonSet(KubernetesObject, frozen=True, kw_only=True):
    """A DaemonSet: one pod on every matching node."""

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class PodFailurePolicyOnExitCodes(ApiStruct, frozen=True, kw_only=True):
    """The exit codes of a failed container to which a rule applies. Operator: In, NotIn."""

    container_name: str | None = None
    operator: str = ""
    values: tuple[Int32, ...] = ()


class PodFailurePolicyOnPodCondition(ApiStruct, frozen=True, kw_only=True):
    """The condition of a failed pod to which a rule applies."""

    type: str = ""
    status: str = ""


class PodFailurePolicyRule(ApiStruct, frozen=True, kw_only=True):
    """The action of a Job when a pod fails in a certain way. Action: FailJob, FailIndex, Ignore, Count."""

    action: str = ""
    on_exit_codes: PodFailurePolicyOnExitCodes | None = None
    on_pod_conditions: tuple[PodFailurePolicyOnPodCondition, ...] = ()


class PodFailurePolicy(ApiStruct, frozen=True, kw_only=True):
    """Rules for failed pods; the first rule that matches applies."""

    rules: tuple[PodFailurePolicyRule, ...] = ()


class SuccessPolicyRule(ApiStruct, frozen=True, kw_only=True):
    """The indexes that must succeed, or how many of them."""

    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(ApiStruct, frozen=True, kw_only=True):
    """The success policy of an indexed Job, which succeeds when one of the rules is met."""

    rules: tuple[SuccessPolicyRule, ...] = ()


class JobSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a Job."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    selector: LabelSelector | None = None
    manual_selector: bool | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None


class JobStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a Job."""

    conditions: tuple[Condition, ...] = ()
    start_time: str | None = None
    completion_time: str | None = None
    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    terminating: Int32 | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    ready: Int32 | None = None


class Job(KubernetesObject, frozen=True, kw_only=True):
    """A Job: pods that run to completion."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplateSpec(ApiStruct, frozen=True, kw_only=True):
    """The Job that a CronJob creates."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a CronJob."""

    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: JobTemplateSpec = JobTemplateSpec()
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None


class CronJobStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a CronJob."""

    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(KubernetesObject, frozen=True, kw_only=True):
    """A CronJob: creates Jobs on a schedule."""

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
