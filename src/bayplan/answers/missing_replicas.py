"""Replicas that a controller could not create because a quota or a limit refuses them."""

from __future__ import annotations

from bayplan.answers.copies import Template, admission_of
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.workloads import Workload, find_workload
from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import InputError
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import DaemonSet, Job


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
    return f"{lacking}: {refusal}" if refusal else lacking


def _refusal(template: Template, cluster: QuestionCluster, namespace: str) -> str:
    """Return why admission refuses the next replica; "" if it admits it."""
    pod = template.next()[-1]
    assert isinstance(pod, Pod)
    try:
        admission_of(cluster, [namespace]).charge(pod)
    except InputError as refused:
        return refused.got
    return ""
