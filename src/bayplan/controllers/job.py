"""The Job controller: creates pods until enough pods have succeeded, or too many have failed.

Every pod has a finalizer until it is counted, so that a deleted pod is counted exactly once. The status and the set of
pods with the finalizer together are the full state. A reconcile processes the pods that ended since the last reconcile.

Not implemented: ``podFailurePolicy`` and ``successPolicy`` (the typed objects lack them), and container restarts, since
the virtual kubelet does not restart containers. Source: pkg/controller/job and pkg/controller/ttlafterfinished v1.36.3.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.base.go_text.times import format_time, parse_time_ns
from bayplan.cluster.naming import indexed_pod_name_prefix
from bayplan.cluster.owned_pods import JOB_TRACKING_FINALIZER, is_active
from bayplan.cluster.store import ChangeEvent, object_key
from bayplan.controllers.controller import Controller, ControllerTools, ReconcileResult, RejectedWrites
from bayplan.controllers.job_indexes import INDEX_ANNOTATION, PendingIndexes, completion_index
from bayplan.controllers.job_status import (
    COMPLETE,
    FAILED,
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    SUSPENDED,
    Backoff,
    backoff_end_ns,
    find_condition,
    finish_condition,
    finished_ns,
    is_managed,
    with_job_condition,
)
from bayplan.controllers.pod_factory import PreparedTemplate
from bayplan.controllers.pod_ranking import rank_active
from bayplan.controllers.writer import WARNING, Propagation
from bayplan.objects.meta import Condition
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import Job

INDEX_FAILURES_ANNOTATION = "batch.kubernetes.io/job-index-failure-count"

_DEFAULT_BACKOFF_LIMIT = 6


class _State:
    """Cached state of one Job, derived from its pods and status.

    Attributes:
        backoff: delays new pods after failures.
        indexes: the completion indexes that are free.
        index_failures: the number of failures and the time (ns) of the last failure, by index.
        released: the ended pods without the finalizer that the status does not count yet, by UID: the removal of
            another pod's finalizer, or the status, was refused.
        killed: the number of pods deleted because the Job fails, without the finalizer, that the status does not count yet.
        noted: the UIDs of the ended pods that `backoff` counts, but the status does not count yet.
        prepared: the template from which pods are created, or None before the first pod.
    """

    def __init__(self, job: Job) -> None:
        self.backoff = Backoff()
        self.indexes = PendingIndexes(job.status.completed_indexes, job.status.failed_indexes or "")
        self.index_failures: dict[int, tuple[int, int]] = {}
        self.released: dict[str, Pod] = {}
        self.killed = 0
        self.noted: dict[str, None] = {}
        self.prepared: PreparedTemplate | None = None


class JobController(Controller):
    """Reconciles Jobs."""

    kind = Job
    component = "job-controller"
    follows_pods = True
    retry_delays_ns = (SECOND_NS, 60 * SECOND_NS)

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._states: dict[str, _State] = {}
        self._orphans: dict[str, dict[str, None]] = {}

    def pod_changed(self, key: str, event: ChangeEvent) -> None:
        """Track which indexes have active pods, and which pods still have the finalizer but no Job."""
        pod = event.object
        controller = pod.metadata.controller()
        if controller is None or not isinstance(pod, Pod):
            return
        state = self._states.get(controller.uid)
        if state is not None:
            was = isinstance(event.old, Pod) and is_active(event.old)
            now = isinstance(event.new, Pod) and is_active(event.new)
            if was != now and (index := completion_index(pod)) >= 0:
                (state.indexes.start if now else state.indexes.stop)(index)
        if JOB_TRACKING_FINALIZER in pod.metadata.finalizers:
            job = self.store.get(Job, key)
            if event.new is None or job is None or job.metadata.uid != controller.uid:
                self._orphans.setdefault(key, {})[object_key(pod.metadata)] = None

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Count ended pods, decide whether the Job is finished, create or delete pods, write the status."""
        rejected = RejectedWrites()
        self._release_orphans(key, rejected)
        if (job := self.store.get(Job, key)) is None:
            self._forget_deleted()
        if job is None or not is_managed(job):
            return rejected.result(None, now_ns)
        if finish_condition(job) is not None:
            self._states.pop(job.metadata.uid, None)
            return rejected.result(self._clean_up(job, now_ns, rejected), now_ns)
        run = _Run(self, job, self._state(job), now_ns, rejected)
        run.reconcile()
        if run.finished:
            return self.reconcile(key, now_ns)
        return rejected.result(run.again_ns, now_ns)

    def _state(self, job: Job) -> _State:
        state = self._states.get(job.metadata.uid)
        if state is None:
            state = self._states[job.metadata.uid] = _State(job)
            for pod in self.store.owned_pods(job.metadata.uid).active.values():
                if (index := completion_index(pod)) >= 0:
                    state.indexes.start(index)
        return state

    def _release_orphans(self, key: str, rejected: RejectedWrites) -> None:
        orphans = self._orphans.pop(key, {})
        for pod_key in list(orphans):
            pod = self.store.pods.get(pod_key)
            with rejected:
                if pod is not None and (
                    pod.metadata.deletion_timestamp is not None or pod.metadata.controller() is None
                ):
                    self.writer.drop_finalizer(pod, JOB_TRACKING_FINALIZER)
                del orphans[pod_key]
        if orphans:
            self._orphans[key] = orphans

    def _forget_deleted(self) -> None:
        stored = {item.metadata.uid for item in self.store.all(Job)}
        self._states = {uid: state for uid, state in self._states.items() if uid in stored}

    def _clean_up(self, job: Job, now_ns: int, rejected: RejectedWrites) -> int | None:
        """Remove the finalizer from the pods of a finished Job.

        Delete the Job when its TTL has passed, or return that time.
        """
        for pod in list(self.store.owned_pods(job.metadata.uid).uncounted.values()):
            with rejected:
                self.writer.drop_finalizer(pod, JOB_TRACKING_FINALIZER)
        ttl_seconds = job.spec.ttl_seconds_after_finished
        condition = finish_condition(job)
        if ttl_seconds is None or condition is None or job.metadata.deletion_timestamp is not None:
            return None
        ended = condition.last_transition_time
        expires_ns = (parse_time_ns(ended) if ended is not None else now_ns) + ttl_seconds * SECOND_NS
        if now_ns < expires_ns:
            return expires_ns
        self.writer.delete(job, now_ns, propagation=Propagation.FOREGROUND)
        return None


class _Run:
    """One reconcile of one Job."""

    def __init__(
        self, controller: JobController, job: Job, state: _State, now_ns: int, rejected: RejectedWrites
    ) -> None:
        self._controller = controller
        self._store = controller.store
        self._writer = controller.writer
        self._pods = controller.pods
        self._burst = controller.burst
        self._job = job
        self._state = state
        self._now_ns = now_ns
        self._uid = job.metadata.uid
        spec = job.spec
        self._indexed = spec.completion_mode == "Indexed"
        self._completions = spec.completions
        if self._completions is None and spec.parallelism is None:
            self._completions = 1
        self._parallelism = 1 if spec.parallelism is None else spec.parallelism
        self._per_index = self._indexed and spec.backoff_limit_per_index is not None
        self._status = job.status
        self._conditions = job.status.conditions
        self.finished = False
        self._rejected = rejected
        self.again_ns: int | None = None

    def reconcile(self) -> None:
        """Run all steps; see `JobController.reconcile`."""
        job = self._job
        succeeded, failed, ignored = self._newly_ended()
        noted = self._state.noted
        self._state.backoff.note(
            *([pod for pod in ended if pod.metadata.uid not in noted] for ended in (succeeded, failed))
        )
        noted.update((pod.metadata.uid, None) for pod in succeeded + failed)
        self._count(succeeded, failed)
        killed: list[Pod] = []
        suspended = bool(job.spec.suspend)
        if self._status.start_time is None and not suspended:
            self._status = replace(self._status, start_time=format_time(self._now_ns))
        end = self._find_end()
        if end is not None:
            killed = self._kill_active()
        elif job.metadata.deletion_timestamp is None:
            self._manage(suspended)
            if self._is_complete():
                text = "Reached expected number of succeeded pods"
                end = self._condition(SUCCESS_CRITERIA_MET, "CompletionsReached", text)
            else:
                self._note_suspension(suspended)
        ended = succeeded + failed + ignored
        released = {pod.metadata.uid: pod for pod in ended + killed if self._release(pod)}
        if end is not None and end.type == FAILURE_TARGET:
            # Pods that are deleted because the Job fails count as failed.
            self._state.killed += sum(pod.metadata.uid in released and self._counts(pod) for pod in killed)
        self._state.released = {pod.metadata.uid: pod for pod in ended if pod.metadata.uid in released}
        if len(released) == len(ended) + len(killed):
            self._status = replace(self._status, failed=self._status.failed + self._state.killed)
            self._write(end)
            self._state.released.clear()
            self._state.noted.clear()
            self._state.killed = 0

    # --- counting -----------------------------------------------------------------------------------------------------

    def _newly_ended(self) -> tuple[list[Pod], list[Pod], list[Pod]]:
        """Return the ended pods that are not counted yet: succeeded, failed, and pods with indexes out of range."""
        succeeded: list[Pod] = []
        failed: list[Pod] = []
        ignored: list[Pod] = []
        for pod in (*self._state.released.values(), *self._store.owned_pods(self._uid).uncounted.values()):
            if pod.status.phase == "Succeeded":
                kind = succeeded
            elif pod.status.phase == "Failed" or not self._replaces_failed_only():
                # A pod that is being deleted counts as failed, since it may never report its result.
                kind = failed
            else:
                continue
            (kind if self._counts(pod) else ignored).append(pod)
        return succeeded, failed, ignored

    def _counts(self, pod: Pod) -> bool:
        return not self._indexed or 0 <= completion_index(pod) < (self._completions or 0)

    def _replaces_failed_only(self) -> bool:
        return self._job.spec.pod_replacement_policy == "Failed"

    def _count(self, succeeded: list[Pod], failed: list[Pod]) -> None:
        status = self._status
        if not self._indexed:
            status = replace(status, succeeded=status.succeeded + len(succeeded))
        else:
            indexes = self._state.indexes
            for pod in succeeded:
                indexes.done.add(completion_index(pod))
            if self._per_index:
                self._count_failures_of_indexes(failed)
                status = replace(status, failed_indexes=str(indexes.failed))
            if succeeded:
                status = replace(status, succeeded=len(indexes.done), completed_indexes=str(indexes.done))
        self._status = replace(status, failed=status.failed + len(failed))

    def _count_failures_of_indexes(self, failed: list[Pod]) -> None:
        limit = self._job.spec.backoff_limit_per_index or 0
        for pod in failed:
            index = completion_index(pod)
            text = pod.metadata.annotations.get(INDEX_FAILURES_ANNOTATION, "0")
            before = whole_number(text) if text.isascii() and text.isdecimal() else 0
            if before >= limit:
                self._state.indexes.failed.add(index)
            known = self._state.index_failures.get(index, (0, 0))
            self._state.index_failures[index] = max(known, (before + 1, finished_ns(pod)))

    def _release(self, pod: Pod) -> bool:
        """Remove the finalizer from a counted pod; return whether it has none."""
        stored = self._store.pods.get(object_key(pod.metadata))
        if stored is None or stored.metadata.uid != pod.metadata.uid:
            return True
        if JOB_TRACKING_FINALIZER not in stored.metadata.finalizers:
            return True
        with self._rejected:
            self._writer.drop_finalizer(stored, JOB_TRACKING_FINALIZER)
            return True
        return False

    # --- the end ------------------------------------------------------------------------------------------------------

    def _find_end(self) -> Condition | None:
        """Return the condition with which the Job ends, decided earlier or now, or None while it is active."""
        known = find_condition(self._job, SUCCESS_CRITERIA_MET) or find_condition(self._job, FAILURE_TARGET)
        if known is not None:
            return known
        spec = self._job.spec
        limit = spec.backoff_limit
        if limit is None:
            limit = 2**31 - 1 if self._per_index else _DEFAULT_BACKOFF_LIMIT
        if self._status.failed > limit:
            text = "Job has reached the specified backoff limit"
            return self._condition(FAILURE_TARGET, "BackoffLimitExceeded", text)
        if spec.active_deadline_seconds is not None and self._status.start_time is not None and not spec.suspend:
            deadline_ns = parse_time_ns(self._status.start_time) + spec.active_deadline_seconds * SECOND_NS
            if self._now_ns >= deadline_ns:
                text = "Job was active longer than specified deadline"
                return self._condition(FAILURE_TARGET, "DeadlineExceeded", text)
            self._requeue_at(deadline_ns)
        return self._find_failed_indexes() if self._per_index else None

    def _find_failed_indexes(self) -> Condition | None:
        indexes = self._state.indexes
        most = self._job.spec.max_failed_indexes
        if most is not None and len(indexes.failed) > most:
            text = "Job has exceeded the specified maximal number of failed indexes"
            return self._condition(FAILURE_TARGET, "MaxFailedIndexesExceeded", text)
        if len(indexes.failed) > 0 and len(indexes.failed) + len(indexes.done) >= (self._completions or 0):
            return self._condition(FAILURE_TARGET, "FailedIndexes", "Job has failed indexes")
        return None

    def _kill_active(self) -> list[Pod]:
        """Delete up to `burst` active pods, and return the deleted pods."""
        return self._write_each(list(self._store.owned_pods(self._uid).active.values()), self._delete)

    def _delete(self, pod: Pod) -> None:
        self._controller.delete_pod(self._job, pod, self._now_ns)

    def _write_each(self, pods: list[Pod], write: Callable[[Pod], None]) -> list[Pod]:
        """Write up to `burst` pods, and return those whose writes succeeded."""
        written, more = self._controller.write_each(self._job.key, pods, write, self._rejected)
        if more:
            self._requeue_at(self._now_ns)
        return written

    def _is_complete(self) -> bool:
        if self._store.owned_pods(self._uid).active:
            return False
        if self._completions is None:
            return self._status.succeeded > 0
        return self._status.succeeded >= self._completions

    def _condition(self, type_: str, reason: str, message: str) -> Condition:
        return Condition(
            type=type_, status="True", reason=reason, message=message, last_transition_time=format_time(self._now_ns)
        )

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _manage(self, suspended: bool) -> None:
        """Create missing pods, or delete surplus ones; a suspended Job has no pods."""
        owned = self._store.owned_pods(self._uid)
        active = len(owned.active)
        wanted = 0 if suspended else self._wanted(active)
        if active > wanted:
            pods = list(owned.active.values())
            surplus = pods if wanted == 0 else rank_active(pods)[: active - wanted]
            self._write_each(surplus, self._delete_uncounted)
            return
        leaving = len(owned.terminating) if self._replaces_failed_only() else 0
        missing = wanted - leaving - active
        if missing <= 0:
            return
        if not self._per_index:
            end_ns = self._state.backoff.end_ns()
            if self._now_ns < end_ns:
                self._requeue_at(end_ns)
                return
        with self._rejected:
            if self._indexed:
                created = self._create_indexed(missing)
            else:
                prepared = self._prepared()
                created = min(missing, self._burst)
                for _ in range(created):
                    self._controller.create_pod(self._job, prepared, self._now_ns)
            if missing > created == self._burst:
                self._requeue_at(self._now_ns)

    def _delete_uncounted(self, pod: Pod) -> None:
        # Remove the finalizer first, so that the deleted pod is not counted as failed.
        self._writer.drop_finalizer(pod, JOB_TRACKING_FINALIZER)
        self._delete(self._store.pods[object_key(pod.metadata)])

    def _wanted(self, active: int) -> int:
        """Return the number of pods that should be active."""
        if self._completions is None:
            # A work queue: once a pod has succeeded, no more pods are started.
            return active if self._status.succeeded > 0 else self._parallelism
        return max(min(self._completions - self._status.succeeded, self._parallelism), 0)

    def _create_indexed(self, missing: int) -> int:
        """Create up to `burst` pods for missing indexes that do not wait after a failure; return their number."""
        job, state = self._job, self._state
        prepared = self._prepared()
        ready, held = self._allocate(missing)
        for position, index in enumerate(ready):
            annotations = {**prepared.annotations, INDEX_ANNOTATION: str(index)}
            if self._per_index:
                annotations[INDEX_FAILURES_ANNOTATION] = str(state.index_failures.get(index, (0, 0))[0])
            try:
                self._controller.create_pod(
                    job,
                    prepared,
                    self._now_ns,
                    name_prefix=indexed_pod_name_prefix(job.metadata.name, index),
                    spec=replace(prepared.spec, hostname=f"{job.metadata.name}-{index}"),
                    labels={**prepared.labels, INDEX_ANNOTATION: str(index)},
                    annotations=annotations,
                )
            except InputError:
                # The API rejects the pod; this index and the following indexes are started when it accepts pods again.
                state.indexes.release([*held, *ready[position:]])
                raise
        state.indexes.release(held)
        return len(ready)

    def _allocate(self, missing: int) -> tuple[list[int], list[int]]:
        """Return up to `burst` indexes to start, and the indexes before them that wait after a failure."""
        ready: list[int] = []
        held: list[int] = []
        while (count := min(self._burst - len(ready), missing - len(ready) - len(held))) > 0:
            indexes = self._state.indexes.allocate(count, self._completions or 0)
            for index in indexes:
                end_ns = backoff_end_ns(*self._state.index_failures.get(index, (0, 0))) if self._per_index else 0
                if self._now_ns < end_ns:
                    held.append(index)
                    self._requeue_at(end_ns)
                else:
                    ready.append(index)
            if len(indexes) < count:
                break
        return ready, held

    def _prepared(self) -> PreparedTemplate:
        prepared = self._state.prepared
        template = self._job.spec.template
        if prepared is None or not self._pods.is_current(prepared, template):
            prepared = self._pods.prepare(self._job, template, finalizers=(JOB_TRACKING_FINALIZER,))
            self._state.prepared = prepared
        return prepared

    def _requeue_at(self, time_ns: int) -> None:
        self.again_ns = time_ns if self.again_ns is None else min(self.again_ns, time_ns)

    # --- status -------------------------------------------------------------------------------------------------------

    def _note_suspension(self, suspended: bool) -> None:
        reason, message = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
        status = "True" if suspended else "False"
        conditions = with_job_condition(self._conditions, SUSPENDED, status, reason, message, self._now_ns)
        if conditions is not self._conditions:
            # The active deadline of a Job counts from its last resumption.
            start = None if suspended else format_time(self._now_ns)
            self._conditions, self._status = conditions, replace(self._status, start_time=start)

    def _write(self, end: Condition | None) -> None:
        owned = self._store.owned_pods(self._uid)
        conditions = self._conditions
        status = self._status
        if end is not None:
            if end not in conditions:
                conditions = (*conditions, end)
            if not owned.active and not owned.terminating and not owned.uncounted:
                type_ = FAILED if end.type == FAILURE_TARGET else COMPLETE
                conditions = with_job_condition(conditions, type_, "True", end.reason, end.message, self._now_ns)
                if type_ == COMPLETE:
                    status = replace(status, completion_time=format_time(self._now_ns))
                self.finished = True
        status = replace(
            status,
            active=len(owned.active),
            ready=len(owned.ready),
            terminating=len(owned.terminating),
            conditions=conditions,
        )
        if status != self._job.status:
            self._writer.update(replace(self._job, status=status))
            self._report(status.conditions)

    def _report(self, conditions: tuple[Condition, ...]) -> None:
        """Record events about the end of the Job, its suspension and its resumption."""
        job, record = self._job, self._controller.record
        new = replace(job, status=replace(job.status, conditions=conditions))
        ended = finish_condition(new)
        if ended is not None and finish_condition(job) is None:
            if ended.type == COMPLETE:
                record(job, "Completed", "Job completed")
            elif ended.type == FAILED:
                record(job, ended.reason, ended.message, type_=WARNING)
        was, suspended = (find_condition(each, SUSPENDED) is not None for each in (job, new))
        if suspended and not was:
            record(job, "Suspended", "Job suspended")
        elif was and not suspended:
            record(job, "Resumed", "Job resumed")
