"""Replicas that a controller has not created: a quota or a limit refuses them, or earlier replicas have to be ready first."""

from __future__ import annotations

from bayplan.answers.copies import Template, admission_of
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.workloads import Found, find_workload, workload_of
from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import InputError
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.namespace_policies import PodForbidden
from bayplan.cluster.owned_pods import is_active, is_ready
from bayplan.objects.pod import Pod
from bayplan.objects.policy import LimitRange, ResourceQuota
from bayplan.objects.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet


def missing_replicas(text: str, cluster: QuestionCluster, *, only_if_all: bool = False) -> str:
    """Return why replicas of a workload do not exist, in one sentence; "" if all exist, or the workload's object is unknown.

    `only_if_all`: whether to return "" if any replica exists.
    """
    try:
        found = find_workload(text, cluster)
    except InputError:
        return ""
    count = _missing_count(found)
    if count <= 0 or (only_if_all and found.pods):
        return ""
    refusal = _refusal(found, cluster, admission_of(cluster, [found.namespace]))
    return _sentence(found, count, refusal)


def refused_replicas(cluster: QuestionCluster) -> list[str]:
    """Return a sentence for each workload some of whose replicas a quota or a limit range refuses."""
    limited = {item.metadata.namespace for kind in (ResourceQuota, LimitRange) for item in cluster.all(kind)}
    if not limited:
        return []
    pods: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in cluster.all(Pod):
        if pod.metadata.namespace in limited and is_active(pod):
            pods.setdefault((pod.metadata.namespace, *workload_of(pod, cluster)), []).append(pod)
    # Counting the usage of quotas reads all pods, so do it once.
    admission = admission_of(cluster, sorted(limited))
    sentences = []
    for struct in (Deployment, StatefulSet, ReplicaSet, ReplicationController):
        for item in cluster.all(struct):
            namespace, name, kind = item.metadata.namespace, item.metadata.name, struct.__name__
            found = Found(kind, namespace, name, item, pods.get((namespace, kind, name), ()))
            count = _missing_count(found)
            if namespace in limited and item.metadata.controller() is None and count > 0:
                refusal = _refusal(found, cluster, admission)
                sentences += [_sentence(found, count, refusal)] if refusal else []
    return sentences


def _missing_count(found: Found) -> int:
    """Return how many more replicas a workload specifies than it has; 0 if its object is unknown."""
    item = found.item
    if not isinstance(item, Deployment | StatefulSet | ReplicaSet | ReplicationController):
        return 0
    return (1 if item.spec.replicas is None else item.spec.replicas) - len(found.pods)


def _sentence(found: Found, count: int, refusal: str) -> str:
    """Return that `count` replicas of a workload do not exist, and why if that is known."""
    item = found.item
    lacking = f"{format_count(count, 'replica')} of {found.label} {'was' if count == 1 else 'were'} never created"
    if not refusal and isinstance(item, StatefulSet) and item.spec.pod_management_policy != "Parallel":
        first = next((pod.key for pod in found.pods if not is_ready(pod)), "")
        return f"{lacking}: {first} has to be ready first" if first else lacking
    return f"{lacking}: {refusal}" if refusal else lacking


def _refusal(found: Found, cluster: QuestionCluster, admission: PodAdmission) -> str:
    """Return why admission refuses the next replica of a workload; "" if it admits it, or if there is no template."""
    try:
        pod = Template(found, cluster).next()[-1]
    except PodForbidden as refused:
        return refused.got
    except InputError:
        # The workload has no pod whose claims could be copied.
        return ""
    assert isinstance(pod, Pod)
    try:
        admission.policies.check(pod)
    except PodForbidden as refused:
        return refused.got
    return ""
