"""Conditions of Jobs: suspended, about to end, or finished; and the backoff after failures.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

from __future__ import annotations

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time, parse_time_ns
from bayplan.cluster.owned_pods import condition_time
from bayplan.objects.meta import Condition
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import Job

COMPLETE = "Complete"
FAILED = "Failed"
SUSPENDED = "Suspended"
SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"
FAILURE_TARGET = "FailureTarget"

_OWN_NAME = "kubernetes.io/job-controller"
_FIRST_BACKOFF_NS = 10 * SECOND_NS
_MAX_BACKOFF_NS = 600 * SECOND_NS


def is_managed(job: Job) -> bool:
    """Return whether the Job controller manages a Job: its ``managedBy`` names no other controller."""
    return job.spec.managed_by in (None, _OWN_NAME)


def find_condition(job: Job, type_: str) -> Condition | None:
    """Return the Job's condition of this type if its status is True, or None."""
    return next((item for item in job.status.conditions if item.type == type_ and item.status == "True"), None)


def finish_condition(job: Job) -> Condition | None:
    """Return the condition with which a Job is finished (Complete or Failed), or None."""
    return find_condition(job, COMPLETE) or find_condition(job, FAILED)


def with_job_condition(
    conditions: tuple[Condition, ...], type_: str, status: str, reason: str, message: str, now_ns: int
) -> tuple[Condition, ...]:
    """Return the conditions with one of them set; a missing condition is added only if its status is not False."""
    new = Condition(type=type_, status=status, reason=reason, message=message, last_transition_time=format_time(now_ns))
    for index, present in enumerate(conditions):
        if present.type == type_:
            if (present.status, present.reason, present.message) == (status, reason, message):
                return conditions
            return (*conditions[:index], new, *conditions[index + 1 :])
    return conditions if status == "False" else (*conditions, new)


def finished_ns(pod: Pod) -> int:
    """Return the time (ns) at which a pod ended: when it stopped being ready, else was deleted, else was created."""
    since = condition_time(pod, "Ready", "False")
    if since is not None:
        return parse_time_ns(since)
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return parse_time_ns(metadata.deletion_timestamp) - (metadata.deletion_grace_period_seconds or 0) * SECOND_NS
    return parse_time_ns(metadata.creation_timestamp) if metadata.creation_timestamp is not None else 0


def backoff_end_ns(failures: int, last_failure_ns: int) -> int:
    """Return the time until which no pod is created after consecutive failures: 10 s after the first, doubling up to 10 minutes."""
    if failures <= 0:
        return 0
    return last_failure_ns + min(_FIRST_BACKOFF_NS << min(failures - 1, 10), _MAX_BACKOFF_NS)


class Backoff:
    """The number of failures since the last success, and the time of the last failure; they delay the next pod."""

    def __init__(self) -> None:
        self.failures = 0
        self.last_failure_ns = 0

    def note(self, succeeded: list[Pod], failed: list[Pod]) -> None:
        """Count newly ended pods; a success resets the count of earlier failures."""
        if succeeded:
            self.failures = 0
            last_success_ns = max(map(finished_ns, succeeded))
            failed = [pod for pod in failed if finished_ns(pod) > last_success_ns]
        if failed:
            self.failures += len(failed)
            self.last_failure_ns = max(map(finished_ns, failed))

    def end_ns(self) -> int:
        """Return the time until which no pod is created."""
        return backoff_end_ns(self.failures, self.last_failure_ns)
