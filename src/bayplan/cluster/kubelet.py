"""The virtual kubelet of all nodes: pods start, run for their run time, and end.

It pulls no images and runs no containers. A bound pod is Running after the start delay (0: at once, in the same write
as the binding). When the pod ends is determined by the first of these:

* the host's function `run_of`, unless it returns None;
* the pod's annotations ``bayplan.io/run-time`` (a Go duration, such as ``90s``, or ``forever``), which it may get from
  its template, and ``bayplan.io/exit-code`` (by default 0; any other value makes the pod Failed);
* otherwise the pod runs until it is deleted.

With the annotation ``bayplan.io/runs-with`` the run time starts when all pods of the group have started; see
`bayplan.cluster.start_groups`.

A run time ends a pod regardless of its restart policy: containers are not restarted.

A deleted pod is terminating, and still uses its node's resources, for the termination time, but at most for its grace
period; then it is removed. By default the time is 0: deleted pods are removed at once, and are never seen terminating.

Future work is stored as timers (`next_wakeup`, `advance`). Timers contain the pod's UID, so that a timer is ignored if
the pod was deleted, or recreated under the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.base.go_text.durations import read_duration
from bayplan.base.go_text.times import format_time, parse_time_ns
from bayplan.cluster import owned_pods
from bayplan.cluster.pod_status import ended_status, running_status
from bayplan.cluster.run_time import EXIT_CODE_ANNOTATION, FOREVER, RUN_TIME_ANNOTATION
from bayplan.cluster.start_groups import RUNS_WITH_ANNOTATION, StartGroups
from bayplan.cluster.store import ObjectStore, object_key
from bayplan.cluster.timers import Timers
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

DEFAULT_GRACE_SECONDS = 30
RETRY_DELAY_NS = 10 * SECOND_NS
"""Delay before a refused write is tried again: the interval at which a real kubelet synchronizes statuses."""

_EXIT_CODE_OF_SIGTERM = 143
_MEMO_SIZE = 65536

START, FINISH, KILL = range(3)


class PodRun(msgspec.Struct, frozen=True, gc=False):
    """The run time and the exit code of a pod.

    Attributes:
        duration_ns: the time from its start to its end; None to run until it is deleted.
        exit_code: 0 makes the pod Succeeded, any other exit code makes it Failed.
    """

    duration_ns: int | None = None
    exit_code: int = 0


RunOf = Callable[[Pod], PodRun | None]


class KubeletOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the virtual kubelet.

    Attributes:
        start_delay_ns: the time from binding to Running, for image pulls, container starts and readiness.
        termination_time_ns: the time from the deletion of a pod to the end of its processes, at most its grace period. 0
            removes pods at once.
        container_statuses: whether to list the containers in statuses, for hosts that display them.
        default_run_time: the run time, in the format of the annotation, of pods without the annotation and with the
            restart policy Never or OnFailure. "" for none, as in simulations; servers set it.
        run_of: returns how long a pod runs, or None; called once for each pod, when it starts.
    """

    start_delay_ns: int = 0
    termination_time_ns: int = 0
    container_statuses: bool = False
    default_run_time: str = ""
    run_of: RunOf | None = None


# The action, key and UID of the pod, and its exit code.
_Task = tuple[int, str, str, int]


T = TypeVar("T", bound=KubernetesObject)


class PodWrites(Protocol):
    """Writes objects for the kubelet."""

    def update(self, new: T) -> T:
        """Replace an object with a newer version. Return the stored object."""
        ...

    def remove(self, kind: type[T], key: str) -> T:
        """Remove an object permanently. Return its last version."""
        ...


class VirtualKubelet:
    """Starts, finishes and removes the pods of all nodes in a store.

    Args:
        store: the store of the pods.
        options: see `KubeletOptions`.
        pods: the writer of pods, in `advance` and `terminate`; the store itself by default.
    """

    def __init__(self, store: ObjectStore, options: KubeletOptions, pods: PodWrites | None = None) -> None:
        self._store = store
        self._pods: PodWrites = store if pods is None else pods
        self._options = options
        self._timers: Timers[_Task] = Timers()
        self._runs: dict[str, PodRun] = {}
        self._start_groups = StartGroups()

    # --- starting -----------------------------------------------------------------------------------------------------

    def add_pod(self, pod: Pod, now_ns: int) -> Pod:
        """Manage a pod that is being bound. Return its next version: pending, or already running.

        The caller stores the returned pod. A pod that is already running (an import) keeps its status; only its end is
        planned.
        """
        if pod.status.phase == "Running":
            started = pod.status.start_time
            self._plan_end(pod, parse_time_ns(started) if started is not None else now_ns, now_ns)
            return pod
        if owned_pods.is_finished(pod):
            return pod
        if self._options.start_delay_ns > 0:
            self._set(now_ns + self._options.start_delay_ns, START, pod)
            return pod
        running = self._started(pod, now_ns)
        self._plan_end(running, now_ns, now_ns)
        return running

    def _started(self, pod: Pod, now_ns: int) -> Pod:
        """Return the version of a pod that has started. When it is stored, the caller plans the end."""
        status = running_status(pod, format_time(now_ns), container_statuses=self._options.container_statuses)
        return replace(pod, status=status)

    def _plan_end(self, pod: Pod, start_ns: int, now_ns: int) -> None:
        # The run time of a group starts when its last pod starts.
        together = RUNS_WITH_ANNOTATION in pod.metadata.annotations
        for each in self._start_groups.started(pod) if together else (pod,):
            run = self.run_of(each)
            if run is not None and run.duration_ns is not None:
                self._set(max(start_ns + run.duration_ns, now_ns), FINISH, each, run.exit_code)

    def run_of(self, pod: Pod) -> PodRun | None:
        """Return how long a pod runs, and its exit code: from the host, else from annotations, else None (it runs forever).

        Raises:
            InputError: an annotation is invalid.
        """
        if self._options.run_of is not None:
            run = self._options.run_of(pod)
            if run is not None:
                return run
        annotations = pod.metadata.annotations
        if not annotations:
            return None
        run_time = annotations.get(RUN_TIME_ANNOTATION)
        if run_time is None or run_time == FOREVER:
            return None
        exit_code = annotations.get(EXIT_CODE_ANNOTATION, "0")
        if exit_code == "0" and run_time in self._runs:
            return self._runs[run_time]
        if not exit_code.isdecimal():
            raise InputError(
                f"Pod {pod.key} $.metadata.annotations['{EXIT_CODE_ANNOTATION}']",
                wanted="a whole number",
                got=repr(exit_code),
                hint="'1'",
            )
        try:
            run = PodRun(max(read_duration(run_time), 0), whole_number(exit_code))
        except InputError as problem:
            raise InputError(
                f"Pod {pod.key} $.metadata.annotations['{RUN_TIME_ANNOTATION}']",
                wanted=problem.wanted,
                got=problem.got,
                hint=problem.hint,
            ) from None
        if run.exit_code == 0:
            if len(self._runs) >= _MEMO_SIZE:
                self._runs.clear()
            self._runs[run_time] = run
        return run

    # --- ending -------------------------------------------------------------------------------------------------------

    def terminate(self, pod: Pod, now_ns: int, *, grace_seconds: int | None = None) -> None:
        """Delete a pod, at once or after the termination time, at most its grace period.

        A pod without a node, a finished pod, or a pod whose node does not exist is removed at once. A second call can
        only shorten the remaining time. A pod with finalizers becomes Failed and stays until the finalizers are
        removed.

        Args:
            pod: the stored pod.
            now_ns: the current time.
            grace_seconds: a grace period that overrides the pod's ``terminationGracePeriodSeconds``; 0 removes the pod
                at once.
        """
        metadata, spec = pod.metadata, pod.spec
        if not spec.node_name or owned_pods.is_finished(pod) or spec.node_name not in self._store.nodes:
            grace_seconds = 0
        elif grace_seconds is None:
            own = spec.termination_grace_period_seconds
            grace_seconds = DEFAULT_GRACE_SECONDS if own is None else max(own, 0)
        if metadata.deletion_timestamp is not None and grace_seconds >= (metadata.deletion_grace_period_seconds or 0):
            return
        remaining_ns = min(grace_seconds * SECOND_NS, self._options.termination_time_ns)
        if remaining_ns <= 0:
            self._remove(pod, now_ns)
            return
        self._pods.update(
            replace(
                pod,
                metadata=replace(
                    metadata,
                    deletion_timestamp=format_time(now_ns + grace_seconds * SECOND_NS),
                    deletion_grace_period_seconds=grace_seconds,
                ),
            )
        )
        self._set(now_ns + remaining_ns, KILL, pod)

    def _remove(self, pod: Pod, now_ns: int) -> None:
        metadata = pod.metadata
        self._start_groups.remove(pod)
        if not metadata.finalizers:
            self._pods.remove(Pod, pod.key)
            return
        timestamp = format_time(now_ns)
        status = pod.status
        if not owned_pods.is_finished(pod):
            listed = self._options.container_statuses and bool(pod.spec.node_name)
            status = ended_status(pod, timestamp, _EXIT_CODE_OF_SIGTERM, container_statuses=listed)
        self._pods.update(
            replace(
                pod,
                metadata=replace(
                    metadata,
                    deletion_timestamp=metadata.deletion_timestamp or timestamp,
                    deletion_grace_period_seconds=0,
                ),
                status=status,
            )
        )

    # --- time ---------------------------------------------------------------------------------------------------------

    def next_wakeup(self) -> int | None:
        """Return the earliest time at which `advance` has work, or None."""
        return self._timers.next_time

    def advance(self, now_ns: int) -> None:
        """Do all work that is due: start, finish and remove pods."""
        while self.advance_one(now_ns):
            pass

    def advance_one(self, now_ns: int) -> bool:
        """Execute the first task that is due. Return whether there was one.

        Raises:
            InputError: an annotation is invalid, or the API refuses the write. The task is due again later.
        """
        due = self._timers.pop_due(now_ns)
        if due is None:
            return False
        time_ns, task = due
        what, key, uid, exit_code = task
        pod = self._store.pods.get(key)
        if pod is None or pod.metadata.uid != uid:
            return True
        try:
            if what == KILL:
                self._kill(pod, time_ns)
            elif owned_pods.is_finished(pod):
                return True
            elif what == FINISH:
                self._finish(pod, exit_code, time_ns)
            elif pod.metadata.deletion_timestamp is None:
                self._start(pod, time_ns)
        except InputError as problem:
            self._timers.set(now_ns + self.retry_delay_ns(key, problem), task)
            raise
        return True

    def retry_delay_ns(self, key: str, problem: InputError) -> int:
        """Return the delay after which a task of the pod with this key, which has just failed, is tried again."""
        return RETRY_DELAY_NS

    def _start(self, pod: Pod, time_ns: int) -> None:
        # The end is planned after the write, because the write may be refused and tried again.
        self._plan_end(self._pods.update(self._started(pod, time_ns)), time_ns, time_ns)

    def _finish(self, pod: Pod, exit_code: int, time_ns: int) -> None:
        listed = self._options.container_statuses
        status = ended_status(pod, format_time(time_ns), exit_code, container_statuses=listed)
        pod = self._pods.update(replace(pod, status=status))
        if pod.metadata.deletion_timestamp is not None:
            self._kill(pod, time_ns)

    def _kill(self, pod: Pod, time_ns: int) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._remove(pod, time_ns)

    def _set(self, time_ns: int, what: int, pod: Pod, exit_code: int = 0) -> None:
        metadata = pod.metadata
        self._timers.set(time_ns, (what, object_key(metadata), metadata.uid, exit_code))
