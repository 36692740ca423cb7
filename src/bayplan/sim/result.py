"""The result of a simulation: decisions, timelines of pods and nodes, usage over time, counters.

Plain data, filled by `bayplan.sim.simulator` and read by `bayplan.analysis`. All times are virtual, in integer
nanoseconds since 1970; subtract `SimulationResult.start_ns` to get time since the start. Everything except
`SimulationResult.wall` follows from input, configuration and seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import msgspec

from bayplan.cluster.cluster import VirtualCluster
from bayplan.engine.records import Records
from bayplan.engine.scheduler import Scheduler
from bayplan.formats.manifest import LoadWarning
from bayplan.objects.pod import Pod
from bayplan.sim.traced_queue import QueueMove
from bayplan.state.cluster_state import ClusterState


class PodFate(StrEnum):
    """The state of a pod at the end of a run.

    PLACED: on a node, starting or running. SUCCEEDED, FAILED: finished. DELETED: gone without having finished (deleted,
    evicted, its node removed). PENDING: waits for a node. GATED: held back by a PreEnqueue plugin. UNATTENDED: waits for
    a scheduler that none of the profiles is.
    """

    PLACED = "placed"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DELETED = "deleted"
    PENDING = "pending"
    GATED = "gated"
    UNATTENDED = "unattended"


class PodTimeline(msgspec.Struct, kw_only=True):
    """The timeline of one pod. A pod recreated under the same name has a timeline of its own.

    Attributes:
        key: ``namespace/name``. uid: unique in the run.
        workload: what made it, by way of all controllers: ``Deployment shop/web``; "" for a pod of its own.
        priority: its priority. scheduler_name: who is to schedule it.
        arrived_ns: when it came into the cluster.
        bound_ns: when it got its node; for an imported pod, when it came. None while it waits.
        started_ns: when it began to run. ended_ns: when it finished or went.
        node: its node, or "".
        imported: it had its node already when it came; no decision was taken for it.
        attempts: how many cycles were run for it.
        last_failure_ns: time of the last attempt without a node. message: the message of that attempt, in upstream's words.
        fate: where it stands at the end.
        pod: its newest version, available even after its deletion; its requests are read from here.
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
    pod: Pod | None = None

    @property
    def wait_ns(self) -> int | None:
        """Return how long the pod waited for its node; None if it never got one, or was created with one."""
        if self.bound_ns is None or self.imported:
            return None
        return self.bound_ns - self.arrived_ns


class NodeLifetime(msgspec.Struct, kw_only=True):
    """When a node was there.

    Attributes:
        name: its name. zone: its label ``topology.kubernetes.io/zone``, or "".
        added_ns: when it came. removed_ns: when it went; None while it is there.
    """

    name: str
    zone: str
    added_ns: int
    removed_ns: int | None = None


class ResourceUsage(msgspec.Struct, frozen=True, kw_only=True):
    """One resource over the whole run, of the cluster or of one zone.

    Amounts are in the units of the state: milli-CPU for ``cpu``, bytes for memory, pieces for ``pods`` and all others.
    What passes within one instant does not count.

    Attributes:
        resource: its name; ``pods`` is the number of pods.
        zone: a zone, "" for the nodes that have none, None for the whole cluster.
        nodes: how many nodes there are at the end.
        allocatable, requested: at the end.
        peak_requested: the most that was requested at any time. peak_ns: when that was reached first.
        peak_allocatable: what was allocatable then.
        allocatable_ns, requested_ns: integrals over the run, amount times nanoseconds.
        duration_ns: of the run.
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
        """Return which part of what is allocatable is requested at the end; 0 where nothing is allocatable."""
        return self.requested / self.allocatable if self.allocatable else 0.0

    @property
    def peak_share(self) -> float:
        """Return which part was requested at the peak."""
        return self.peak_requested / self.peak_allocatable if self.peak_allocatable else 0.0

    @property
    def mean_share(self) -> float:
        """Return which part was requested in the mean over time; the share at the end where no time passed."""
        return self.requested_ns / self.allocatable_ns if self.allocatable_ns else self.share


class SimulatedEvent(msgspec.Struct):
    """A Kubernetes event about a pod; equal ones are counted, as the API server's event series are.

    Attributes:
        pod: ``namespace/name``.
        type: ``Normal`` or ``Warning``. reason, action, note: as kube-scheduler words them.
        first_ns, last_ns: when it came first and last. count: how often.
    """

    pod: str
    type: str
    reason: str
    action: str
    note: str
    first_ns: int
    last_ns: int
    count: int = 1


class Counters(msgspec.Struct):
    """The amount of work in a run.

    Attributes:
        decisions: cycles that were run. scheduled, unschedulable, errors, skipped: how they ended.
        events: changes of the cluster that the scheduler received.
        instants: moments of virtual time at which something happened.
        evictions: victims of preemption.
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
        files: names of the files, in the order read.
        objects: how many objects of each kind were taken in; tasks of traces are Pods.
        unused: how many objects of each kind (``apiVersion Kind``) Bayplan has no use for.
        warnings: all that the loaders noticed.
    """

    files: Sequence[str] = ()
    objects: Mapping[str, int] = msgspec.field(default_factory=dict)
    unused: Mapping[str, int] = msgspec.field(default_factory=dict)
    warnings: Sequence[LoadWarning] = ()


class WallClock(msgspec.Struct):
    """Seconds on a real clock: different in each run, so never part of a result that is compared.

    Attributes:
        load_seconds: reading the input. simulate_seconds: the simulation itself.
    """

    load_seconds: float = 0.0
    simulate_seconds: float = 0.0


class SimulationResult(msgspec.Struct, kw_only=True):
    """The outcome of a simulation.

    Attributes:
        seed: of all random streams. digest: hash of all decisions in order, see `Records.digest`.
        start_ns, end_ns: virtual time of the beginning and of the last instant at which something happened, or of the
            instant given as the end of the run.
            stopped: why the run ended before the cluster was idle, in words; "" if it was idle.
            scheduler: in its final state: state, records, queue, profiles.
            cluster: in its final state: all objects.
        pods: time lines, in the order of arrival. nodes: lifetimes, in the order of arrival.
        usage: of every resource that some node has or some pod asks for: the whole cluster first, then zones by name.
        counters: how much happened.
        tell_events: returns the Kubernetes events about pods, in the order in which they came first.
        moves: each pod's way through the scheduling queue, if it was recorded.
        failures: what controllers could not do, by ``Kind key``.
        input: what was read.
        wall: real time.
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
    tell_events: Callable[[], list[SimulatedEvent]]
    failures: dict[str, str]
    moves: list[QueueMove] | None = None
    input: InputSummary = msgspec.field(default_factory=InputSummary)
    wall: WallClock = msgspec.field(default_factory=WallClock)

    @property
    def events(self) -> list[SimulatedEvent]:
        """Return the Kubernetes events about pods, in the order in which they came first."""
        return self.tell_events()

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
        """Return how much virtual time passed."""
        return self.end_ns - self.start_ns
