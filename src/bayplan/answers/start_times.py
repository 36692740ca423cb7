"""When a waiting pod or Job would start: simulates the cluster in virtual time until the pods have nodes.

Pods that end make room. A pod's run time comes from its annotation ``bayplan.io/run-time``, else from the history of
its workload (finished pods of the same Job or CronJob), else from an assumption for pods that end by themselves. All
other pods never end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from statistics import median_low

import msgspec
from msgspec.structs import replace

from bayplan.analysis.rows import Rows
from bayplan.analysis.units import format_duration
from bayplan.analysis.verdict import unattended_text
from bayplan.answers.missing_replicas import missing_replicas
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.workloads import find_workload, workload_of
from bayplan.base.counted_nouns import format_count
from bayplan.base.durations import DAY_NS, MINUTE_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import parse_time_ns
from bayplan.base.random_streams import RandomStream, RandomStreams
from bayplan.cluster.kubelet import KubeletOptions, PodRun
from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.run_time import ENDS_BY_ITSELF, FOREVER, RUN_TIME_ANNOTATION
from bayplan.controllers.node_lifecycle import UNREACHABLE_TAINT
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.records import RecordLevel
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import DaemonSet, Job, StatefulSet
from bayplan.plugins.scheduling_gates import gates_message
from bayplan.sim.operations import Apply, Delete
from bayplan.sim.result import PodTimeline
from bayplan.sim.simulator import Simulator
from bayplan.sim.virtual_cluster import ClusterOptions, VirtualCluster

DEFAULT_HORIZON_NS = 7 * DAY_NS
DEFAULT_SEEDS = 5

FIRST_STEP_NS = 10 * MINUTE_NS
"""Virtual time before the first check. Each further interval is twice as long."""


class PendingReason(StrEnum):
    """Why a pod does not start."""

    UNATTENDED = "unattended"
    GATED = "gated"
    UNSCHEDULABLE = "unschedulable"


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a pod under one seed.

    Attributes:
        pod, seed: the key of the pod, and the seed.
        starts_at_ns: the time at which the pod gets its node; None if it gets none before the horizon.
        wait_ns: the time from now until then; None if the pod gets no node before the horizon.
        node: the node that the pod gets.
        reason: why the pod still waits at the horizon; None if it starts.
        message: the same in words, or "".
    """

    pod: str
    seed: int
    starts_at_ns: int | None
    wait_ns: int | None
    node: str
    reason: PendingReason | None
    message: str


class StartAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """When pods would start.

    Attributes:
        asked: the name of the pod or workload in question.
        pods: the number of its waiting pods.
        starts: the start of each pod under each seed.
        earliest_ns, median_ns, latest_ns: the minimum, median and maximum, over all seeds, of the time until the last
        pod has a node. If a pod gets no node before the horizon under some seed, `median_ns` and `latest_ns` are
        None, and `earliest_ns` is the minimum over the other seeds, or None.
        horizon_ns: the length of the simulation.
        assumptions: the assumptions behind the answer, in sentences.
    """

    asked: str
    pods: int
    starts: Rows[Start]
    earliest_ns: int | None
    median_ns: int | None
    latest_ns: int | None
    horizon_ns: int
    assumptions: Sequence[str]


def start_times(
    cluster: QuestionCluster,
    asked: str,
    *,
    assumed_run_ns: int | None = None,
    seeds: Sequence[int] = tuple(range(DEFAULT_SEEDS)),
    horizon_ns: int = DEFAULT_HORIZON_NS,
) -> StartAnswer:
    """Return when a waiting pod, or the pods of a workload, would start.

    Args:
        cluster: the current cluster.
        asked: the pod or workload in question.
        assumed_run_ns: the run time to assume for pods that end by themselves and have no known run time; None to
            assume that they run forever.
        seeds: the seeds for tie-breaking and for drawing from histories.
        horizon_ns: the virtual time to look ahead.

    Raises:
        InputError: the pod or workload does not exist, or has no waiting pods.
    """
    found = find_workload(asked, cluster)
    waiting = [pod.key for pod in found.pods if pod.key in cluster.waiting]
    unmade = isinstance(found.item, Job) and not found.pods
    if not waiting and not unmade:
        count = len(found.pods)
        got = f"{count:,} pods, none of them pending" if count > 1 else "1 pod with a node" if count else "no pods"
        if missing := missing_replicas(asked, cluster):
            got = f"{got}: {missing}"
        raise InputError(
            f"{found.label} is not pending", wanted="a pending pod, or a workload with pending pods", got=got
        )
    runs = _Runs(cluster, assumed_run_ns)
    profiles = cluster.scheduler.make(record_level=RecordLevel.OFF).profiles
    starts: list[Start] = []
    waits: list[int | None] = []
    pods = 0
    for seed in seeds:
        timelines = _simulate(cluster, runs, seed, horizon_ns, _Wanted(frozenset(waiting), found.label, unmade))
        rows = [_start(each, seed, cluster.now_ns, profiles) for each in timelines]
        starts += rows
        # The names of pods that a Job creates differ between seeds.
        pods = max(pods, len({row.pod for row in rows}))
        times = [row.wait_ns for row in rows if row.wait_ns is not None]
        waits.append(max(times) if times and len(times) == len(rows) else None)
    known = sorted(wait for wait in waits if wait is not None)
    complete = len(known) == len(waits)
    return StartAnswer(
        asked=found.label,
        pods=pods,
        starts=Rows(starts, Start),
        earliest_ns=known[0] if known else None,
        median_ns=median_low(known) if complete and known else None,
        latest_ns=known[-1] if complete and known else None,
        horizon_ns=horizon_ns,
        assumptions=runs.assumptions(len(seeds)),
    )


def _start(timeline: PodTimeline, seed: int, now_ns: int, profiles: Collection[str]) -> Start:
    bound_ns = timeline.bound_ns
    reason: PendingReason | None = None
    message = ""
    if bound_ns is None:
        reason, message = PendingReason.UNSCHEDULABLE, timeline.message
        if timeline.scheduler_name not in profiles:
            reason, message = PendingReason.UNATTENDED, unattended_text(timeline.scheduler_name)
        elif timeline.pod is not None and timeline.pod.spec.scheduling_gates:
            reason, message = PendingReason.GATED, message or gates_message(timeline.pod)
    return Start(
        pod=timeline.key,
        seed=seed,
        starts_at_ns=bound_ns,
        wait_ns=None if bound_ns is None else max(bound_ns - now_ns, 0),
        node=timeline.node,
        reason=reason,
        message=message,
    )


class _Wanted(msgspec.Struct, frozen=True):
    """The pods in question: selected by key or, for a workload whose pods do not exist yet, by workload."""

    keys: frozenset[str]
    label: str
    unmade: bool

    def of(self, timelines: Sequence[PodTimeline]) -> list[PodTimeline]:
        """Return the timelines of these pods."""
        if not self.unmade:
            return [each for each in timelines if each.key in self.keys]
        kind, _, name = self.label.partition("/")
        return [each for each in timelines if each.workload.lower() == f"{kind} {name}"]


def _simulate(cluster: QuestionCluster, runs: _Runs, seed: int, horizon_ns: int, wanted: _Wanted) -> list[PodTimeline]:
    """Simulate until the wanted pods have nodes, nothing happens any more, or the horizon is reached. Return their timelines."""
    scheduler = cluster.scheduler.make(
        seed=seed, start_ns=cluster.now_ns, record_level=RecordLevel.OFF, queue_type=EventDrivenQueue, sampling=False
    )
    streams = RandomStreams(seed)
    options = ClusterOptions(kubelet=KubeletOptions(run_of=runs.under(streams.stream("questions.run_times"))))
    simulator = Simulator(scheduler, VirtualCluster(streams, options), seed=seed, start_ns=cluster.now_ns)
    for items in cluster.objects.values():
        for item in items.values():
            if not isinstance(item, Pod):
                simulator.at(cluster.now_ns, Apply(_without_rollout(item)))
    # Add pods with a node before pods that wait for one.
    for pod in sorted(cluster.all(Pod), key=lambda pod: not pod.spec.node_name):
        end_ns = _termination_ns(pod, cluster)
        if end_ns is not None:
            # The kubelet ignores a deletion unless its grace period is shorter than that of the pod.
            pod = replace(pod, metadata=replace(pod.metadata, deletion_grace_period_seconds=1))
            simulator.at(end_ns, Delete(Pod, pod.key, grace_seconds=0))
        simulator.at(cluster.now_ns, Apply(pod))
    step_ns = FIRST_STEP_NS
    while True:
        simulator.run(until_ns=cluster.now_ns + min(step_ns, horizon_ns))
        result = simulator.result()
        found = wanted.of(result.pods)
        if (found and all(each.bound_ns is not None for each in found)) or step_ns >= horizon_ns or not result.stopped:
            return found
        step_ns *= 2


def _termination_ns(pod: Pod, cluster: QuestionCluster) -> int | None:
    """Return when a terminating pod is gone; None if it is not terminating, or if its node can't confirm the end."""
    time, node = pod.metadata.deletion_timestamp, cluster.get(Node, pod.spec.node_name)
    if time is None or node is None or any(taint.key == UNREACHABLE_TAINT for taint in node.spec.taints):
        return None
    return max(parse_time_ns(time), cluster.now_ns + SECOND_NS)


def _without_rollout(item: KubernetesObject) -> KubernetesObject:
    """Return a workload without rolling updates: the source lacks the revisions, so every pod would seem outdated."""
    if isinstance(item, DaemonSet | StatefulSet):
        strategy = replace(item.spec.update_strategy, type="OnDelete", rolling_update=None)
        return replace(item, spec=replace(item.spec, update_strategy=strategy))
    return item


class _Runs:
    """The run times of pods.

    Args:
        cluster: the cluster; its finished pods are the history.
        assumed_ns: the run time to assume for pods with unknown run times; None: forever.
    """

    def __init__(self, cluster: QuestionCluster, assumed_ns: int | None) -> None:
        self._cluster = cluster
        self._assumed_ns = assumed_ns
        self._history: dict[tuple[str, str, str], list[int]] = {}
        for pod in cluster.all(Pod):
            duration_ns = _duration_ns(pod)
            if duration_ns is not None:
                self._history.setdefault(self._family(pod), []).append(duration_ns)
        # An annotated pod ends whatever its restart policy.
        ending = [pod for pod in cluster.all(Pod) if not is_finished(pod) and _run_time(pod) != FOREVER]
        annotated = [pod for pod in ending if RUN_TIME_ANNOTATION in pod.metadata.annotations]
        known = [pod for pod in ending if pod not in annotated and self._family(pod) in self._history]
        self._counts = len(ending), len(annotated), len(known)
        self._terminating = sum(
            _termination_ns(pod, cluster) is not None for pod in cluster.all(Pod) if not is_finished(pod)
        )
        self._all_end_by_policy = all(_ends(pod) for pod in ending)

    def _family(self, pod: Pod) -> tuple[str, str, str]:
        """Return the workload whose pods are assumed to have similar run times: of a Job's pod, its CronJob if there is one."""
        return pod.metadata.namespace, *workload_of(pod, self._cluster)

    def under(self, stream: RandomStream) -> Callable[[Pod], PodRun | None]:
        """Return a function that draws a pod's run time from the finished pods of its workload; without any, the assumed run time.

        It returns None if the pod has a run time annotation, does not end by itself, or no run time is assumed.
        """

        def run_of(pod: Pod) -> PodRun | None:
            if RUN_TIME_ANNOTATION in pod.metadata.annotations or not _ends(pod):
                return None
            history = self._history.get(self._family(pod))
            if history:
                return PodRun(history[int(stream.random() * len(history))])
            return PodRun(self._assumed_ns) if self._assumed_ns is not None else None

        return run_of

    def assumptions(self, seeds: int) -> list[str]:
        """Return the assumptions about run times."""
        ending, annotated, known = self._counts
        rest = ending - annotated - known
        why = "restartPolicy Never or OnFailure"
        if not self._all_end_by_policy:
            why += f", or annotation {RUN_TIME_ANNOTATION}"
        found = [f"{format_count(ending, 'pod') if ending else 'no pod'} may end ({why})"]
        if annotated:
            runs = "runs as long as its" if annotated == 1 else "run as long as their"
            found.append(f"{annotated:,} of them {runs} annotation {RUN_TIME_ANNOTATION} says")
        if known:
            runs, their = ("runs", "its") if known == 1 else ("run", "their")
            found.append(f"{known:,} of them {runs} as long as a finished pod of {their} workload")
        if rest:
            assumed = (
                f"for {format_duration(self._assumed_ns)}"
                if self._assumed_ns is not None
                else "forever (--assume-run-time)"
            )
            have, are = ("has", "is") if rest == 1 else ("have", "are")
            found.append(f"{rest:,} of them {have} no known run time, and {are} assumed to run {assumed}")
        if self._terminating:
            ends = "ends when its grace period is" if self._terminating == 1 else "end when their grace periods are"
            found.append(f"{format_count(self._terminating, 'terminating pod')} {ends} over")
        found.append("no node is added or removed, and only controllers create new pods")
        if seeds > 1:
            found.append(
                f"{seeds} seeds are tried, which vary tie-breaking and the run times sampled from finished pods"
            )
        return found


def _ends(pod: Pod) -> bool:
    return pod.spec.restart_policy in ENDS_BY_ITSELF


def _run_time(pod: Pod) -> str:
    """Return the run time in a pod's annotation; without one, "" if the pod ends by itself, else `FOREVER`."""
    return pod.metadata.annotations.get(RUN_TIME_ANNOTATION, "" if _ends(pod) else FOREVER)


def _duration_ns(pod: Pod) -> int | None:
    """Return the run time of a succeeded pod; None if the pod has not succeeded, or lacks times."""
    if pod.status.phase != "Succeeded" or pod.status.start_time is None:
        return None
    ends = [
        parse_time_ns(status.state.terminated.finished_at)
        for status in pod.status.container_statuses
        if status.state.terminated is not None and status.state.terminated.finished_at is not None
    ]
    return max(max(ends) - parse_time_ns(pod.status.start_time), 0) if ends else None
