"""The result of a simulation: decisions, timelines of pods and nodes, usage over time, counters.

Plain data, which `bayplan.sim.simulator` creates and `bayplan.analysis` reads. All times are virtual, in integer
nanoseconds since 1970; subtract `SimulationResult.start_ns` for the time since the start. Input, configuration and seed
determine everything except `SimulationResult.wall`.
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

    PLACED: on a node, starting or running. SUCCEEDED, FAILED: finished. DELETED: deleted before it finished (also:
    evicted, or its node was removed). PENDING: waits for a node. GATED: a PreEnqueue plugin keeps it from being tried.
    UNATTENDED: it names a scheduler that no profile has.
    """

    PLACED = "placed"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DELETED = "deleted"
    PENDING = "pending"
    GATED = "gated"
    UNATTENDED = "unattended"


FATES = {"Succeeded": PodFate.SUCCEEDED, "Failed": PodFate.FAILED}
"""The states of finished pods, by phase."""


class PodTimeline(msgspec.Struct, kw_only=True, gc=False):
    """The history of one pod. A pod that is created again with the same name has a separate timeline.

    Attributes:
        key: `namespace/name`.
        uid: its uid, unique in the run.
        workload: its topmost controlling owner, e.g. `Deployment shop/web`; `""` if it has none.
        priority: its priority.
        scheduler_name: its `spec.schedulerName`.
        arrived_ns: when it was added to the cluster.
        bound_ns: when it got its node; for an imported pod, when it was added. None while it waits.
        started_ns: when it started to run.
        ended_ns: when it finished or was removed.
        node: its node, or `""`.
        imported: whether it already had a node when it was added; no decision was made for it.
        attempts: the number of its scheduling cycles.
        last_failure_ns: the time of its last attempt that found no node.
        message: the message of that attempt, in upstream's words.
        fate: its state at the end.
        disruption: if it was evicted, the reason in its condition DisruptionTarget, e.g. `PreemptionByScheduler`; else
            `""`.
        pod: its newest version, even after its deletion; its requests are read from it.
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
        """Return how long the pod waited for its node; None if it never got one, or had one when it was added."""
        if self.bound_ns is None or self.imported:
            return None
        return self.bound_ns - self.arrived_ns

    @property
    def state_text(self) -> str:
        """Return why the pod is not pending: ``is on node-1``, ``has succeeded``."""
        if self.fate in (PodFate.SUCCEEDED, PodFate.FAILED):
            return f"has {self.fate}"
        is_terminating = self.pod is not None and self.pod.metadata.deletion_timestamp is not None
        if not (is_terminating or self.fate is PodFate.DELETED):
            return f"is on {self.node}" if self.node else "is not pending"
        return f"is on {self.node} and is being deleted" if self.node else "is being deleted"


class ResourceUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of one resource over the whole run, in the cluster or in one zone.

    Amounts are in the units of the state: milli-CPU for `cpu`, bytes for memory, and numbers for `pods` and all others.
    Only the amounts at the end of each instant count.

    Attributes:
        resource: the name of the resource; `pods` is the number of pods.
        zone: the zone; `""` for nodes without a zone, None for the whole cluster.
        nodes: the number of nodes at the end.
        allocatable, requested: the amounts at the end.
        peak_requested: the maximum of the requested amount.
        peak_ns: the time when that was first reached.
        peak_allocatable: the allocatable amount at that time.
        allocatable_ns, requested_ns: the integrals over the run, in amounts times nanoseconds.
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
        """Return the requested share of the allocatable amount at the end; 0 if nothing is allocatable."""
        return self.requested / self.allocatable if self.allocatable else 0.0

    @property
    def peak_share(self) -> float:
        """Return the requested share of the allocatable amount at the time of the peak."""
        return self.peak_requested / self.peak_allocatable if self.peak_allocatable else 0.0

    @property
    def mean_share(self) -> float:
        """Return the requested share, averaged over time; the share at the end if no time passed."""
        return self.requested_ns / self.allocatable_ns if self.allocatable_ns else self.share


class SimulatedEvent(msgspec.Struct):
    """A Kubernetes event about a pod; equal events are counted, as in an event series of the API server.

    Attributes:
        pod: `namespace/name`.
        type: `Normal` or `Warning`.
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
    """Counts of the events of a run.

    Attributes:
        decisions: the number of scheduling cycles.
        scheduled, unschedulable, errors, skipped: the number of cycles with each outcome.
        events: the number of changes in the cluster that the scheduler received.
        instants: the number of instants of virtual time at which something happened.
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
    """The input of a run and its warnings. Empty for simulations that were set up in Python.

    Attributes:
        files: the names of the files, in the order in which they were read.
        objects: the number of added objects by kind; the tasks of a trace are Pods.
        unused: the number of objects by kind (`apiVersion Kind`) that Bayplan does not use.
        warnings: all warnings about the input.
    """

    files: Sequence[str] = ()
    objects: Mapping[str, int] = msgspec.field(default_factory=dict)
    unused: Mapping[str, int] = msgspec.field(default_factory=dict)
    warnings: Sequence[LoadWarning] = ()


class WallClock(msgspec.Struct):
    """Real durations in seconds. They differ in every run, so results are never compared by them.

    Attributes:
        load_seconds: the duration of reading the input.
        simulate_seconds: the duration of the simulation.
    """

    load_seconds: float = 0.0
    simulate_seconds: float = 0.0


class SimulationResult(msgspec.Struct, kw_only=True):
    """The result of a simulation.

    Attributes:
        seed: the seed of all random streams.
        digest: the hash of all decisions in order, see `Records.digest`.
        start_ns, end_ns: the virtual times of the start and of the last instant at which something happened, or the
            given end.
        stopped: why the run ended before the cluster was idle, in words; `""` if it was idle.
        scheduler: the scheduler at the end: state, records, queue, profiles.
        cluster: the cluster at the end: all objects.
        pods: the timelines of pods, in the order of arrival.
        nodes: the lifetimes of nodes, in the order of arrival.
        usage: the usage of each resource that any node has or any pod requests: of the whole cluster, then of the zones
            by name.
        counters: see `Counters`.
        list_events: returns the Kubernetes events about pods, in the order of their first occurrence.
        moves: the moves of each pod through the scheduling queue, if they were recorded.
        failures: the errors of controllers, by `Kind key`.
        scaling: the actions of the autoscaler and the costs of nodes; None without an autoscaler.
        descheduled: the evictions of the descheduler, in order; None without a descheduler.
        input: the input of the run.
        wall: real durations.
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
        """Return the records of all decisions."""
        return self.scheduler.records

    @property
    def state(self) -> ClusterState:
        """Return the scheduler's state at the end."""
        return self.scheduler.state

    @property
    def duration_ns(self) -> int:
        """Return the duration of the run in virtual time."""
        return self.end_ns - self.start_ns
