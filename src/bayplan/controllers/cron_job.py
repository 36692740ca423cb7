"""The CronJob controller: creates a Job at each time of a schedule.

The name of a Job contains its scheduled time in minutes since 1970, so one time never creates two Jobs. A delayed
CronJob runs only the latest of the times it missed. Jobs start at the exact second of the schedule; upstream waits 100
ms longer, because the clocks of its machines differ.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ and pkg/controller/cronjob v1.36.3.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from bayplan.base.durations import MINUTE_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import format_time, format_time_in, parse_time_ns
from bayplan.cluster.job_labels import label_job
from bayplan.controllers.controller import Controller, ReconcileResult, RejectedWrites
from bayplan.controllers.cron_schedule import CronSchedule, load_time_zone, parse_cron_schedule
from bayplan.controllers.job_status import COMPLETE, FAILED, find_condition, finish_condition
from bayplan.controllers.pod_factory import controller_reference
from bayplan.controllers.writer import WARNING, AwaitsAnswers, WriteRejected
from bayplan.objects.defaults import default_object
from bayplan.objects.meta import ObjectMeta, ObjectReference
from bayplan.objects.workloads import CronJob, CronJobStatus, Job

SCHEDULED_TIME_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp"


class CronJobController(Controller):
    """Reconciles CronJobs."""

    kind = CronJob
    component = "cronjob-controller"

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Create the Job that is due, remove ended Jobs from the status, and return the next time (ns) or None."""
        item = self.store.get(CronJob, key)
        if item is None:
            return None
        jobs = self.store.dependents(item.metadata.uid, Job)
        self._report_unexpected(item, jobs)
        status = self._sync_active(item, jobs)
        self._report_ended(item, status)
        next_ns: int | None = None
        rejected = RejectedWrites()
        if item.metadata.deletion_timestamp is None:
            if not item.spec.suspend:
                with rejected:
                    status, next_ns = self._start_due(item, status, now_ns)
            self._trim_history(item, jobs, now_ns, rejected)
        if status != item.status:
            self.writer.update(replace(item, status=status))
        return rejected.result(next_ns, now_ns)

    def failed(self, key: str, problem: InputError) -> None:
        """Record an event about an invalid schedule."""
        item = self.store.get(CronJob, key)
        if item is not None and not isinstance(problem, WriteRejected):
            text = f'unparseable schedule: "{item.spec.schedule}" : {problem}'
            self.record(item, "UnparseableSchedule", text, type_=WARNING)

    def _report_unexpected(self, item: CronJob, jobs: list[Job]) -> None:
        """Record events about running Jobs that are not in the status, such as those that kubectl creates from a CronJob."""
        active = {reference.uid for reference in item.status.active}
        for job in jobs:
            if job.metadata.uid not in active and finish_condition(job) is None:
                text = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
                self.record(item, "UnexpectedJob", text, type_=WARNING)

    def _report_ended(self, item: CronJob, status: CronJobStatus) -> None:
        """Record events about the Jobs that are no longer active."""
        left = {reference.uid for reference in status.active}
        for reference in item.status.active:
            if reference.uid in left:
                continue
            job = self.store.get(Job, f"{item.metadata.namespace}/{reference.name}")
            ended = finish_condition(job) if job is not None else None
            if ended is not None:
                text = f"Saw completed job: {reference.name}, condition: {ended.type}"
                self.record(item, "SawCompletedJob", text)
            elif job is None:
                self.record(item, "MissingJob", f"Active job went missing: {reference.name}")

    def _delete(self, item: CronJob, job: Job, now_ns: int) -> None:
        self.writer.delete(job, now_ns)
        self.record(item, "SuccessfulDelete", f"Deleted job {job.metadata.name}")

    # --- existing Jobs ------------------------------------------------------------------------------------------------

    def _sync_active(self, item: CronJob, jobs: list[Job]) -> CronJobStatus:
        """Return the status without Jobs that have ended or are deleted, and with the time of the last success."""
        status = item.status
        running = {job.metadata.uid for job in jobs if finish_condition(job) is None}
        active = tuple(reference for reference in status.active if reference.uid in running)
        last = status.last_successful_time
        for job in jobs:
            ended = job.status.completion_time
            if ended is not None and find_condition(job, COMPLETE) is not None:
                last = ended if last is None or parse_time_ns(ended) > parse_time_ns(last) else last
        return replace(status, active=active, last_successful_time=last)

    def _trim_history(self, item: CronJob, jobs: list[Job], now_ns: int, rejected: RejectedWrites) -> None:
        """Delete the oldest ended Jobs beyond the history limits for successes and failures."""
        limits = (
            (COMPLETE, item.spec.successful_jobs_history_limit),
            (FAILED, item.spec.failed_jobs_history_limit),
        )
        for type_, limit in limits:
            if limit is None:
                continue
            ended = [job for job in jobs if find_condition(job, type_) is not None]
            for job in sorted(ended, key=_by_start)[: max(len(ended) - limit, 0)]:
                if job.metadata.deletion_timestamp is None:
                    with rejected:
                        self._delete(item, job, now_ns)

    # --- new Jobs -----------------------------------------------------------------------------------------------------

    def _start_due(self, item: CronJob, status: CronJobStatus, now_ns: int) -> tuple[CronJobStatus, int | None]:
        """Create the Job of the latest due time unless the concurrency policy forbids it.

        Returns:
            The new status, and the next time of the schedule (ns) or None.

        Raises:
            InputError: schedule or time zone is invalid, or the schedule never matches a day.
        """
        spec = item.spec
        schedule = _parse(spec.schedule, spec.time_zone)
        since_ns = parse_time_ns(item.metadata.creation_timestamp or format_time(now_ns))
        if status.last_schedule_time is not None:
            since_ns = parse_time_ns(status.last_schedule_time)
        earliest_ns = since_ns
        if spec.starting_deadline_seconds is not None:
            # Runs missed before this time are skipped.
            earliest_ns = max(since_ns, now_ns - spec.starting_deadline_seconds * SECOND_NS)
        due_ns = latest_time(schedule, earliest_ns, now_ns)
        job = self._start(item, status, due_ns, now_ns) if due_ns is not None else None
        if job is not None and due_ns is not None:
            reference = ObjectReference(
                api_version="batch/v1",
                kind="Job",
                namespace=job.metadata.namespace,
                name=job.metadata.name,
                uid=job.metadata.uid,
                resource_version=job.metadata.resource_version,
            )
            since_ns = due_ns
            kept = () if spec.concurrency_policy == "Replace" else status.active
            status = replace(status, active=(*kept, reference), last_schedule_time=format_time(due_ns))
        return status, following_time(schedule, since_ns, now_ns)

    def _start(self, item: CronJob, status: CronJobStatus, due_ns: int, now_ns: int) -> Job | None:
        """Create and return the Job of one scheduled time.

        Return None if it was created earlier, if the concurrency policy forbids it, or if another owner's Job has its
        name.
        """
        name = f"{item.metadata.name}-{due_ns // MINUTE_NS}"
        done = format_time(due_ns) == status.last_schedule_time or any(job.name == name for job in status.active)
        if done:
            return None
        if item.spec.concurrency_policy == "Forbid" and status.active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.record(item, "JobAlreadyActive", text)
            return None
        if item.spec.concurrency_policy == "Replace":
            self._delete_active(item, status, now_ns)
        return self._create(item, name, due_ns, now_ns)

    def _delete_active(self, item: CronJob, status: CronJobStatus, now_ns: int) -> None:
        for reference in status.active:
            job = self.store.get(Job, f"{item.metadata.namespace}/{reference.name}")
            if job is not None and job.metadata.uid == reference.uid:
                self._delete(item, job, now_ns)

    def _create(self, item: CronJob, name: str, due_ns: int, now_ns: int) -> Job | None:
        """Create and return the Job of one scheduled time.

        If it exists, return it if this CronJob owns it, else None.
        """
        template = item.spec.job_template
        existing = self.store.get(Job, f"{item.metadata.namespace}/{name}")
        if existing is not None:
            controller = existing.metadata.controller()
            return existing if controller is not None and controller.uid == item.metadata.uid else None
        scheduled = format_time_in(due_ns, load_time_zone(item.spec.time_zone))
        job = Job(
            metadata=ObjectMeta(
                name=name,
                namespace=item.metadata.namespace,
                labels=template.metadata.labels,
                annotations={**template.metadata.annotations, SCHEDULED_TIME_ANNOTATION: scheduled},
                owner_references=(controller_reference(item),),
            ),
            spec=template.spec,
        )
        try:
            created = self.writer.create(label_job(default_object(job), self.store), now_ns)
        except AwaitsAnswers:
            raise
        except WriteRejected as refusal:
            self.record(item, "FailedCreate", f"Error creating job: {refusal.message}", type_=WARNING)
            raise
        self.record(item, "SuccessfulCreate", f"Created job {name}")
        return created


def latest_time(schedule: CronSchedule, after_ns: int, now_ns: int) -> int | None:
    """Return the latest time of a schedule that is after `after_ns` and not after `now_ns`, or None.

    A long gap is not iterated: the distance between the first two times gives an estimate of the latest, and the search
    starts one step before it. Like upstream, it may find no time if the times are unevenly spaced.

    Raises:
        InputError: the schedule never matches a day, like 31 February.
    """
    first_ns = schedule.next_after(after_ns)
    if first_ns is not None and now_ns < first_ns:
        return None
    second_ns = schedule.next_after(first_ns) if first_ns is not None else None
    if first_ns is None or second_ns is None:
        raise InputError(
            "cron schedule", wanted="a schedule with an existing date", got="one that never matches a date"
        )
    if now_ns < second_ns:
        return first_ns
    distance_ns = second_ns - first_ns
    missed = (now_ns - first_ns) // distance_ns + 1
    latest_ns: int | None = None
    time_ns = schedule.next_after(first_ns + (missed - 2) * distance_ns)
    while time_ns is not None and time_ns <= now_ns:
        latest_ns = time_ns
        time_ns = schedule.next_after(time_ns)
    return latest_ns


def following_time(schedule: CronSchedule, after_ns: int, now_ns: int) -> int | None:
    """Return the next time of a schedule. For ``@every``, it is counted from the latest time that has passed."""
    latest_ns = latest_time(schedule, after_ns, now_ns)
    if latest_ns is None:
        first_ns = schedule.next_after(after_ns)
        latest_ns = after_ns if first_ns is not None and first_ns > now_ns else now_ns
    return schedule.next_after(latest_ns)


@lru_cache(maxsize=1024)
def _parse(schedule: str, time_zone: str | None) -> CronSchedule:
    return parse_cron_schedule(schedule, time_zone=time_zone)


def _by_start(job: Job) -> tuple[bool, int, str]:
    start = job.status.start_time
    return start is None, parse_time_ns(start) if start is not None else 0, job.metadata.name
