"""Rejects workloads with more pods than a simulation can hold, before any pod is created."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from bayplan.base.errors import InputError
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.workloads import CronJob, Deployment, Job, JobSpec, ReplicaSet, ReplicationController, StatefulSet

DEFAULT_MAX_PODS = 500_000
"""Maximum number of pods of all workloads together. Kubernetes supports clusters with 150,000 pods."""

_Workload: TypeAlias = CronJob | Deployment | Job | ReplicaSet | ReplicationController | StatefulSet
_WORKLOADS = (CronJob, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet)


def check_pod_count(objects: Iterable[KubernetesObject], max_pods: int, *, hint: str = "") -> None:
    """Check the total number of the pods of workloads.

    Args:
        objects: objects of any kinds. A workload is not counted if its controller is among them.
        max_pods: the limit.
        hint: how to raise the limit; `{}` is replaced by the number of pods.

    Raises:
        InputError: the workloads have more pods than that.
    """
    total, most, largest = 0, 0, ""
    workloads = [item for item in objects if isinstance(item, _WORKLOADS)]
    uids = {item.metadata.uid for item in workloads}
    for item in workloads:
        controller = item.metadata.controller()
        if controller is not None and controller.uid in uids:
            continue
        path, count = _wanted_pods(item)
        total += count
        if count > most:
            most, largest = count, f"{type(item).__name__} {item.key} $.spec.{path}"
    if total > max_pods:
        wanted = f"at most {max_pods:,} pods of all workloads together"
        got = f"{total:,}" if most == total else f"{total:,}, {most:,} of them here"
        raise InputError(largest, wanted=wanted, got=got, hint=hint.format(total))


def _wanted_pods(item: _Workload) -> tuple[str, int]:
    """Return the field that determines how many pods a workload has, and the number."""
    if isinstance(item, Job):
        return _pods_of_job(item.spec)
    if isinstance(item, CronJob):
        path, count = _pods_of_job(item.spec.job_template.spec)
        return f"jobTemplate.spec.{path}", count
    replicas = item.spec.replicas
    return "replicas", 1 if replicas is None else max(replicas, 0)


def _pods_of_job(spec: JobSpec) -> tuple[str, int]:
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:
        return "parallelism", parallelism
    return "completions", spec.completions
