"""The defaults that the API sets on the objects from which controllers create pods.

Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/ and the behavior of
k8s.io/kubernetes/pkg/apis/apps/v1 and batch/v1 v1.36.3.
"""

from bayplan.objects.meta import LabelSelector, ObjectMeta, changed, mapped
from bayplan.objects.pod_defaults import default_persistent_volume_claim, default_pod_spec
from bayplan.objects.workloads import (
    DEFAULT_REVISION_HISTORY_LIMIT,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    JobSpec,
    PodTemplate,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    RollingUpdate,
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetRollingUpdate,
    StatefulSetUpdateStrategy,
    UpdateStrategy,
)


def default_deployment(item: Deployment) -> Deployment:
    """Return a Deployment with default replicas, strategy, history limit and progress deadline."""
    spec = item.spec
    strategy = _default_strategy(spec.strategy, RollingUpdate(max_unavailable="25%", max_surge="25%"))
    spec = changed(
        spec,
        replicas=1 if spec.replicas is None else spec.replicas,
        selector=_default_selector(spec.selector, spec.template),
        template=_default_template(spec.template),
        strategy=strategy,
        revision_history_limit=_default_history_limit(spec.revision_history_limit),
        progress_deadline_seconds=600 if spec.progress_deadline_seconds is None else spec.progress_deadline_seconds,
    )
    return changed(item, spec=spec)


def default_daemon_set(item: DaemonSet) -> DaemonSet:
    """Return a DaemonSet with its default update strategy and history limit."""
    spec = item.spec
    spec = changed(
        spec,
        selector=_default_selector(spec.selector, spec.template),
        template=_default_template(spec.template),
        update_strategy=_default_strategy(spec.update_strategy, RollingUpdate(max_unavailable=1, max_surge=0)),
        revision_history_limit=_default_history_limit(spec.revision_history_limit),
    )
    return changed(item, spec=spec)


def _default_history_limit(limit: int | None) -> int:
    return DEFAULT_REVISION_HISTORY_LIMIT if limit is None else limit


def default_replica_set(item: ReplicaSet) -> ReplicaSet:
    """Return a ReplicaSet with its default number of replicas."""
    spec = item.spec
    spec = changed(
        spec,
        replicas=1 if spec.replicas is None else spec.replicas,
        selector=_default_selector(spec.selector, spec.template),
        template=_default_template(spec.template),
    )
    return changed(item, spec=spec)


def default_replication_controller(item: ReplicationController) -> ReplicationController:
    """Return a ReplicationController with default replicas; selector and labels default to the template's labels."""
    spec, metadata = item.spec, item.metadata
    template = spec.template
    labels = template.metadata.labels if template is not None else {}
    if labels:
        spec = changed(spec, selector=spec.selector or labels)
        metadata = changed(metadata, labels=metadata.labels or labels)
    spec = changed(
        spec,
        replicas=1 if spec.replicas is None else spec.replicas,
        template=template and _default_template(template),
    )
    return changed(item, spec=spec, metadata=metadata)


def default_stateful_set(item: StatefulSet) -> StatefulSet:
    """Return a StatefulSet with its default replicas and policies, and with the defaults of its claim templates."""
    spec = item.spec
    strategy = spec.update_strategy
    if not strategy.type:
        rolling = strategy.rolling_update or StatefulSetRollingUpdate()
        strategy = StatefulSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling)
    if strategy.type == "RollingUpdate" and strategy.rolling_update is not None:
        rolling = strategy.rolling_update
        rolling = changed(rolling, partition=0 if rolling.partition is None else rolling.partition)
        strategy = changed(strategy, rolling_update=rolling)
    retention = spec.persistent_volume_claim_retention_policy or StatefulSetPersistentVolumeClaimRetentionPolicy()
    spec = changed(
        spec,
        replicas=1 if spec.replicas is None else spec.replicas,
        selector=_default_selector(spec.selector, spec.template),
        template=_default_template(spec.template),
        volume_claim_templates=mapped(default_persistent_volume_claim, spec.volume_claim_templates),
        pod_management_policy=spec.pod_management_policy or "OrderedReady",
        update_strategy=strategy,
        revision_history_limit=_default_history_limit(spec.revision_history_limit),
        persistent_volume_claim_retention_policy=changed(
            retention,
            when_deleted=retention.when_deleted or "Retain",
            when_scaled=retention.when_scaled or "Retain",
        ),
    )
    return changed(item, spec=spec)


def default_job(item: Job) -> Job:
    """Return a Job with its default parallelism, completions, backoff and mode, and the labels of its template."""
    metadata = _labelled_as(item.metadata, item.spec.template)
    return changed(item, spec=default_job_spec(item.spec), metadata=metadata)


def default_job_spec(spec: JobSpec) -> JobSpec:
    """Return the spec of a Job, or of a CronJob's template, with its defaults."""
    backoff = spec.backoff_limit
    if backoff is None:
        backoff = 6 if spec.backoff_limit_per_index is None else 2**31 - 1
    replacement = "TerminatingOrFailed" if spec.pod_failure_policy is None else "Failed"
    return changed(
        spec,
        completions=1 if spec.completions is None and spec.parallelism is None else spec.completions,
        parallelism=1 if spec.parallelism is None else spec.parallelism,
        backoff_limit=backoff,
        template=_default_template(spec.template),
        completion_mode=spec.completion_mode or "NonIndexed",
        suspend=bool(spec.suspend),
        pod_replacement_policy=spec.pod_replacement_policy or replacement,
        manual_selector=bool(spec.manual_selector),
    )


def default_cron_job(item: CronJob) -> CronJob:
    """Return a CronJob with its default policy and history limits.

    Its Job template gets its own defaults when a Job is created.
    """
    spec = item.spec
    job = spec.job_template
    job = changed(job, spec=changed(job.spec, template=_default_template(job.spec.template)))
    successful, failed = spec.successful_jobs_history_limit, spec.failed_jobs_history_limit
    spec = changed(
        spec,
        job_template=job,
        concurrency_policy=spec.concurrency_policy or "Allow",
        suspend=bool(spec.suspend),
        successful_jobs_history_limit=3 if successful is None else successful,
        failed_jobs_history_limit=1 if failed is None else failed,
    )
    return changed(item, spec=spec)


def default_pod_template(item: PodTemplate) -> PodTemplate:
    """Return a stored pod template with the defaults of its pod spec."""
    return changed(item, template=_default_template(item.template))


def _default_template(template: PodTemplateSpec) -> PodTemplateSpec:
    return changed(template, spec=default_pod_spec(template.spec))


def _default_selector(selector: LabelSelector | None, template: PodTemplateSpec) -> LabelSelector | None:
    """Return the selector; if it is missing, as older API versions allow, one with the template's labels."""
    if selector is None and template.metadata.labels:
        return LabelSelector(match_labels=template.metadata.labels)
    return selector


def _labelled_as(metadata: ObjectMeta, template: PodTemplateSpec) -> ObjectMeta:
    return changed(metadata, labels=metadata.labels or template.metadata.labels)


def _default_strategy(strategy: UpdateStrategy, defaults: RollingUpdate) -> UpdateStrategy:
    kind = strategy.type or "RollingUpdate"
    if kind != "RollingUpdate":
        return changed(strategy, type=kind)
    rolling = strategy.rolling_update or RollingUpdate()
    rolling = changed(
        rolling,
        max_unavailable=defaults.max_unavailable if rolling.max_unavailable is None else rolling.max_unavailable,
        max_surge=defaults.max_surge if rolling.max_surge is None else rolling.max_surge,
    )
    return changed(strategy, type=kind, rolling_update=rolling)
