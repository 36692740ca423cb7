"""Replicas that a controller has not created: a quota or a limit refuses them, or earlier replicas have to be ready first."""

from __future__ import annotations

from collections import Counter

from bayplan.answers.copies import Template, admission_of
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.workloads import Workload, find_workload, workload_of
from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import InputError
from bayplan.cluster.owned_pods import is_active, is_ready
from bayplan.objects.pod import Pod
from bayplan.objects.policy import LimitRange, ResourceQuota
from bayplan.objects.workloads import DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet


def missing_replicas(text: str, cluster: QuestionCluster) -> str:
    """Return why replicas of a workload do not exist, in one sentence; "" if all exist, or the workload's object is unknown."""
    try:
        found = find_workload(text, cluster)
    except InputError:
        return ""
    item = found.item
    if not isinstance(item, Workload) or isinstance(item, DaemonSet | Job):
        return ""
    missing = (1 if item.spec.replicas is None else item.spec.replicas) - len(found.pods)
    if missing <= 0:
        return ""
    lacking = f"{format_count(missing, 'replica')} of {found.label} {'was' if missing == 1 else 'were'} never created"
    try:
        refusal = _refusal(Template(found, cluster), cluster, found.namespace)
    except InputError as problem:
        # Admission refuses the template, or the workload has no pod whose claims could be copied.
        refusal = problem.got if problem.got.startswith("forbidden") else ""
    if not refusal and isinstance(item, StatefulSet) and item.spec.pod_management_policy != "Parallel":
        first = next((pod.key for pod in found.pods if not is_ready(pod)), "")
        return f"{lacking}: {first} has to be ready first" if first else lacking
    return f"{lacking}: {refusal}" if refusal else lacking


def refused_replicas(cluster: QuestionCluster) -> list[str]:
    """Return a sentence for each workload some of whose replicas a quota or a limit range refuses."""
    limited = {item.metadata.namespace for kind in (ResourceQuota, LimitRange) for item in cluster.all(kind)}
    if not limited:
        return []
    pods = Counter(
        (pod.metadata.namespace, *workload_of(pod, cluster))
        for pod in cluster.all(Pod)
        if pod.metadata.namespace in limited and is_active(pod)
    )
    found = []
    workloads: list[Deployment | StatefulSet | ReplicaSet | ReplicationController] = [
        *cluster.all(Deployment),
        *cluster.all(StatefulSet),
        *cluster.all(ReplicaSet),
        *cluster.all(ReplicationController),
    ]
    for item in workloads:
        namespace, name, kind = item.metadata.namespace, item.metadata.name, type(item).__name__
        wanted = 1 if item.spec.replicas is None else item.spec.replicas
        if namespace in limited and item.metadata.controller() is None and pods[namespace, kind, name] < wanted:
            sentence = missing_replicas(f"{kind.lower()}/{namespace}/{name}", cluster)
            found += [sentence] if ": forbidden" in sentence else []
    return found


def _refusal(template: Template, cluster: QuestionCluster, namespace: str) -> str:
    """Return why admission refuses the next replica; "" if it admits it."""
    pod = template.next()[-1]
    assert isinstance(pod, Pod)
    try:
        admission_of(cluster, [namespace]).charge(pod)
    except InputError as refused:
        return refused.got
    return ""
