"""The result of a simulation: decisions, timelines of pods and nodes, usage over time, counters.

Plain data, filled by `bayplan.sim.simulator` and read by `bayplan.analysis`. All times are virtual, in integer
nanoseconds since 1970; subtract `SimulationResult.start_ns` to get time since the start. Everything except
`SimulationResult.wall` follows from input, configuration and seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import msgspec

from bayplan.engine.records import Records
from bayplan.engine.scheduler import Scheduler
from bayplan.formats.manifest import LoadWarning
from bayplan.objects.pod import Pod
from bayplan.sim.descheduled import Descheduled
from bayplan.sim.scaling import NodeLifetime, ScalingSummary
from bayplan.sim.traced_queue import QueueMove
from bayplan.sim.virtual_cluster import VirtualCluster
from bayplan.state.cluster_state import ClusterState


class PodFate(StrEnum):
    """The state of a pod at the end of a run.

    PLACED: on a node, starting or running. SUCCEEDED, FAILED: finished. DELETED: deleted before it finished (also
    evicted, or its node removed). PENDING: waits for a node. GATED: held back by a PreEnqueue plugin. UNATTENDED: names
    a scheduler that has no profile.
    """

    PLACED = "placed"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DELETED = "deleted"
    PENDING = "pending"
    GATED = "gated"
    UNATTENDED = "unattended"


FATES = {"Succeeded": PodFate.SUCCEEDED, "Failed": PodFate.FAILED}
"""The fates of finished pods, by phase."""


class PodTimeline(msgspec.Struct, kw_only=True, gc=False):
    """The timeline of one pod. A pod recreated under the same name has its own timeline.

    Attributes:
        key: ``namespace/name``.
        uid: the uid, unique in the run.
        workload: its topmost controlling owner: ``Deployment shop/web``; "" if it has none.
        priority: its priority.
        scheduler_name: its ``spec.schedulerName``.
        arrived_ns: the time when it was added to the cluster.
        bound_ns: the time when it got its node; for an imported pod, when it was added. None while it waits.
        started_ns: the time when it started to run.
        ended_ns: the time when it finished or was removed.
        node: its node, or "".
        imported: whether it already had its node when it was added; no decision was made for it.
        attempts: the number of its scheduling cycles.
        last_failure_ns: the time of the last attempt without a node.
        message: the message of that attempt, in upstream's words.
        fate: the pod's state at the end.
        disruption: the reason of its condition DisruptionTarget, if it was evicted: ``PreemptionByScheduler``; else "".
        pod: the newest version, available even after the pod's deletion; the requests are read from it.
    """

    key: str
    uid: str
    workload: str
    priority: int
    scheduler_name: str
    arrived_ns: int
    bound_ns: int | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    node: str = ""
    imported: bool = False
    attempts: int = 0
    last_failure_ns: int | None = None
    message: str = ""
    fate: PodFate = PodFate.PENDING
    disruption: str = ""
    pod: Pod | None = None

    @property
    def wait_ns(self) -> int | None:
        """Return the time that the pod waited for its node; None if it never got a node, or was created with one."""
        if self.bound_ns is None or self.imported:
            return None
        return self.bound_ns - self.arrived_ns


class ResourceUsage(msgspec.Struct, frozen=True, kw_only=True):
    """One resource over the whole run, of the cluster or of one zone.

    Amounts are in the units of the state: milli-CPU for ``cpu``, bytes for memory, counts for ``pods`` and all others.
    Changes within one instant don't count.

    Attributes:
        resource: the name of the resource; ``pods`` is the number of pods.
        zone: the zone; "" for nodes without a zone, None for the whole cluster.
        nodes: the number of nodes at the end.
        allocatable, requested: the amounts at the end.
        peak_requested: the maximum of the requests.
        peak_ns: the time when the peak was first reached.
        peak_allocatable: the allocatable amount at that time.
        allocatable_ns, requested_ns: integrals over the run, amount times nanoseconds.
        duration_ns: the duration of the run.
    """

    resource: str
    zone: str | None
    nodes: int
    allocatable: int
    requested: int
    peak_requested: int
    peak_ns: int
    peak_allocatable: int
    allocatable_ns: int
    requested_ns: int
    duration_ns: int

    @property
    def share(self) -> float:
        """Return the share of the allocatable amount that is requested at the end; 0 if nothing is allocatable."""
        return self.requested / self.allocatable if self.allocatable else 0.0

    @property
    def peak_share(self) -> float:
        """Return the requested share of the allocatable amount, at the time when most was requested."""
        return self.peak_requested / self.peak_allocatable if self.peak_allocatable else 0.0

    @property
    def mean_share(self) -> float:
        """Return the share that was requested on average over time; the share at the end if no time passed."""
        return self.requested_ns / self.allocatable_ns if self.allocatable_ns else self.share


class SimulatedEvent(msgspec.Struct):
    """A Kubernetes event about a pod; equal events are counted, as in the API server's event series.

    Attributes:
        pod: ``namespace/name``.
        type: the type, ``Normal`` or ``Warning``.
        reason, action, note: the texts, in kube-scheduler's words.
        first_ns, last_ns: the times of the first and the last occurrence.
        count: the number of occurrences.
    """

    pod: str
    type: str
    reason: str
    action: str
    note: str
    first_ns: int
    last_ns: int
    count: int = 1


class Counters(msgspec.Struct, gc=False):
    """The amount of work in a run.

    Attributes:
        decisions: the number of cycles.
        scheduled, unschedulable, errors, skipped: the number of cycles with each outcome.
        events: the number of changes of the cluster that the scheduler received.
        instants: the number of moments of virtual time at which something happened.
        evictions: the number of victims of preemption.
    """

    decisions: int = 0
    scheduled: int = 0
    unschedulable: int = 0
    errors: int = 0
    skipped: int = 0
    events: int = 0
    instants: int = 0
    evictions: int = 0


class InputSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a run, and its warnings. Empty for a simulation that was set up in Python.

    Attributes:
        files: the names of the files, in the order read.
        objects: the number of objects added per kind; tasks of traces are Pods.
        unused: the number of objects per kind (``apiVersion Kind``) that Bayplan does not use.
        warnings: all warnings of the loaders.
    """

    files: Sequence[str] = ()
    objects: Mapping[str, int] = msgspec.field(default_factory=dict)
    unused: Mapping[str, int] = msgspec.field(default_factory=dict)
    warnings: Sequence[LoadWarning] = ()


class WallClock(msgspec.Struct):
    """Seconds on a real clock: different in each run, so never part of a compared result.

    Attributes:
        load_seconds: the duration of reading the input.
        simulate_seconds: the simulation itself.
    """

    load_seconds: float = 0.0
    simulate_seconds: float = 0.0


class SimulationResult(msgspec.Struct, kw_only=True):
    """The result of a simulation.

    Attributes:
        seed: the seed of all random streams.
        digest: the hash of all decisions in order, see `Records.digest`.
        start_ns, end_ns: the virtual times of the beginning and of the last instant at which something happened, or the given
            end of the run.
        stopped: why the run ended before the cluster was idle, in words; "" if it was idle.
        scheduler: the scheduler in its final state: state, records, queue, profiles.
        cluster: the cluster in its final state: all objects.
        pods: the timelines of pods, in the order of arrival.
        nodes: the lifetimes of nodes, in the order of arrival.
        usage: the usage of every resource that any node has or any pod requests: first of the whole cluster, then of zones by name.
        counters: the amount of work.
        list_events: the function that returns the Kubernetes events about pods, in the order of their first occurrence.
        moves: the moves of each pod through the scheduling queue, if they were recorded.
        failures: errors of controllers, by ``Kind key``.
        scaling: the actions of an autoscaler, and the cost of nodes; None if none ran.
        descheduled: the evictions of a descheduler, in order; None if none ran.
        input: the input of the run.
        wall: the durations in real time.
    """

    seed: int
    digest: str
    start_ns: int
    end_ns: int
    stopped: str
    scheduler: Scheduler
    cluster: VirtualCluster
    pods: list[PodTimeline]
    nodes: list[NodeLifetime]
    usage: list[ResourceUsage]
    counters: Counters
    list_events: Callable[[], list[SimulatedEvent]]
    failures: dict[str, str]
    moves: list[QueueMove] | None = None
    scaling: ScalingSummary | None = None
    descheduled: Sequence[Descheduled] | None = None
    input: InputSummary = msgspec.field(default_factory=InputSummary)
    wall: WallClock = msgspec.field(default_factory=WallClock)

    @property
    def events(self) -> list[SimulatedEvent]:
        """Return the Kubernetes events about pods, in the order of their first occurrence."""
        return self.list_events()

    @property
    def records(self) -> Records:
        """Return the decision records."""
        return self.scheduler.records

    @property
    def state(self) -> ClusterState:
        """Return the columns in their final state."""
        return self.scheduler.state

    @property
    def duration_ns(self) -> int:
        """Return the duration of the run in virtual time."""
        return self.end_ns - self.start_ns
