"""Forks: copies of the cluster that run in virtual time, independently of the server, to try changes.

A fork starts with the typed objects of the present or of a snapshot: pods with a node stay there, and waiting pods are
tried. It shares only these objects with the server, and they are immutable. Forks run one after another on a daemon
thread, which does not keep the process from exiting.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from queue import SimpleQueue
from threading import Event, Lock, Thread

import msgspec

from bayplan.analysis.run_facts import RunFacts, run_facts
from bayplan.answers.copies import replacement
from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.question_cluster import SchedulerFactory
from bayplan.answers.workloads import WorkloadObjects, find_workload
from bayplan.apiserver.bridge.typed_store import KIND_OF_TABLE
from bayplan.apiserver.store.store import Snapshot
from bayplan.base.errors import BayplanError, InputError
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.store import Kind, ObjectStore
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.records import RecordLevel
from bayplan.formats.object_decoder import ObjectDecoder
from bayplan.framework.configuration.loading import SchedulerConfiguration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.http_api.errors import RequestError
from bayplan.http_api.read_models import ForkReadModel
from bayplan.http_api.server_context import Setup
from bayplan.http_api.trial_runner import TrialEnded, TrialRunner, deadline_of
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import KINDS, decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.sim.operations import Apply
from bayplan.sim.pod_count import DEFAULT_MAX_PODS, check_pod_count
from bayplan.sim.progress import Progress
from bayplan.sim.result import SimulationResult
from bayplan.sim.simulator import Simulator
from bayplan.sim.virtual_cluster import VirtualCluster

MAX_FORKS = 16
"""Maximum number of forks. Each holds a cluster and the records of its run."""

NOW = "now"
"""The name of the live cluster as the origin of a fork, or as a compared run."""

Objects = dict[tuple[Kind, str], KubernetesObject]


class Reference(msgspec.Struct, forbid_unknown_fields=True):
    """A reference to an object by kind, name and namespace."""

    kind: str
    name: str
    namespace: str = ""


class ForkRequest(msgspec.Struct, forbid_unknown_fields=True, rename={"origin": "from"}):
    """The change to try in a fork.

    Attributes:
        origin: ``now`` or the name of a snapshot.
        config: another configuration; None for the server's.
        objects: documents of objects to create or replace.
        delete: objects to delete.
        seed: the seed for tie-breaking; None for the server's.
        until: the end in seconds of virtual time; null to run until nothing is left to do. The default is long enough
            for graceful evictions, and so short that few pods finish.
        reschedule: the placed pods to schedule again: none (the default), ``["*"]`` for all from an empty cluster, or
            pods and workloads, e.g. ``["deployment/shop/web"]``. Pods of DaemonSets and static pods stay.
        name: a label for users.
    """

    origin: str = NOW
    config: str | None = None
    objects: list[dict[str, object]] = []
    delete: list[Reference] = []
    seed: int | None = None
    until: float | None = 60.0
    name: str = ""
    reschedule: list[str] = []


@dataclass(frozen=True, kw_only=True)
class ForkSetup:
    """Everything needed to create a fork's simulation.

    Attributes:
        objects: returns the initial objects; called on the fork's thread.
        server: the setup of the server's scheduler. Custom plugins run with a separate runner.
        configuration: the configuration of the fork's scheduler.
        seed: the seed of all random streams.
        start_ns: the virtual time at which the fork starts.
        until_ns: when it ends, relative to the start; None to run until nothing is left to do.
    """

    objects: Callable[[], Iterable[KubernetesObject]]
    server: Setup
    configuration: SchedulerConfiguration
    seed: int
    start_ns: int
    until_ns: int | None


@dataclass
class Fork:
    """One fork.

    Attributes:
        id: the ID of the fork in URLs.
        name, origin: as requested.
        created_ns: when it was created, by the server's clock.
        state: ``running``, ``done`` or ``failed``.
        message: why it failed, or "".
        progress: the progress of the run.
        result, facts: the outcome of the run; None until it is done.
        read_model: the read model of the outcome, once a request has needed it.
        feature_gates: the feature gates that the fork runs with.
    """

    id: str
    name: str
    origin: str
    created_ns: int
    feature_gates: FeatureGates
    state: str = "running"
    message: str = ""
    progress: Progress | None = None
    result: SimulationResult | None = None
    facts: RunFacts | None = None
    read_model: ForkReadModel | None = None
    cancelled: Event = field(default_factory=Event)


class Forks:
    """The forks of a server. Use on the event loop; the forks run on a thread."""

    def __init__(self) -> None:
        self._forks: dict[str, Fork] = {}
        self._lock = Lock()
        self._waiting: SimpleQueue[tuple[Fork, ForkSetup] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def all(self) -> Sequence[Fork]:
        """Return all forks, the oldest first."""
        return tuple(self._forks.values())

    def get(self, fork_id: str) -> Fork:
        """Return a fork by its ID.

        Raises:
            RequestError: no fork has this ID.
        """
        found = self._forks.get(fork_id)
        if found is None:
            known = ", ".join(self._forks) or "none"
            raise RequestError(
                HTTPStatus.NOT_FOUND, "fork", got=f"'{fork_id}'", wanted=f"one of the existing forks: {known}"
            )
        return found

    def finished(self, fork_id: str) -> SimulationResult:
        """Return the outcome of a fork.

        Raises:
            RequestError: no fork has this ID, or the fork is not done.
        """
        fork = self.get(fork_id)
        if fork.result is None:
            raise RequestError(
                HTTPStatus.CONFLICT, f"fork {fork_id}", got=fork.message or fork.state, wanted="a completed fork"
            )
        return fork.result

    def read_model_of(self, fork_id: str) -> ForkReadModel:
        """Return the read model for lists and pages about a fork. Call on a worker thread.

        Raises:
            RequestError: no fork has this ID, or the fork is not done.
        """
        fork, result = self.get(fork_id), self.finished(fork_id)
        with self._lock:
            if fork.read_model is None:
                fork.read_model = ForkReadModel(result, fork.feature_gates)
            return fork.read_model

    def begin(self, request: ForkRequest, setup: ForkSetup, created_ns: int) -> Fork:
        """Queue a fork and return it. Forks run one at a time, in order.

        Raises:
            RequestError: there are too many forks.
        """
        if len(self._forks) >= MAX_FORKS:
            raise RequestError(
                HTTPStatus.CONFLICT, f"there are already {MAX_FORKS} forks, the maximum", hint="to delete one"
            )
        fork = Fork(uuid.uuid4().hex[:8], request.name, request.origin, created_ns, setup.server.feature_gates)
        self._forks[fork.id] = fork
        self._waiting.put((fork, setup))
        if self._thread is None:
            # Use a daemon thread, not an executor, because a fork must not keep the process from exiting.
            self._thread = Thread(target=_run_all, args=(self._waiting,), name="bayplan-fork", daemon=True)
            self._thread.start()
        return fork

    def delete(self, fork_id: str) -> None:
        """Delete a fork. Stop it if it is still running.

        Raises:
            RequestError: no fork has this ID.
        """
        self.get(fork_id).cancelled.set()
        del self._forks[fork_id]

    def close(self) -> None:
        """Stop all forks."""
        for fork in self._forks.values():
            fork.cancelled.set()
        self._waiting.put(None)


# --- on the fork thread -----------------------------------------------------------------------------------------------


def _run_all(waiting: SimpleQueue[tuple[Fork, ForkSetup] | None]) -> None:
    while (found := waiting.get()) is not None:
        _run(*found)
        # Drop the references before waiting for the next fork: they hold a whole cluster.
        del found


def _run(fork: Fork, setup: ForkSetup) -> None:
    def progress(now: Progress) -> None:
        fork.progress = now
        if fork.cancelled.is_set():
            raise TrialEnded("stopped before it was done")

    runner = TrialRunner(deadline_of(setup.server.runner), lambda: not fork.cancelled.is_set())
    try:
        trial = setup.server.for_trial(setup.configuration, runner, calls_extenders=True)
        with trial.connections:
            simulator = simulator_of(setup, trial)
            progress(Progress(setup.start_ns, 0, 0, 0, 0))
            until_ns = None if setup.until_ns is None else setup.start_ns + setup.until_ns
            simulator.run(until_ns=until_ns, progress=progress)
        fork.result = simulator.result()
        fork.facts = run_facts(fork.result)
        fork.state = "done"
    except BayplanError as problem:
        fork.state, fork.message = "failed", str(problem)
    except Exception as problem:
        # Most likely a custom plugin failed. The server continues, and the fork reports the error.
        fork.state, fork.message = "failed", f"{type(problem).__name__}: {problem}"
    finally:
        # Requests that read the fork may still call its plugins.
        runner.over = True
        runner.close()


def simulator_of(setup: ForkSetup, trial: SchedulerFactory) -> Simulator:
    """Return a simulator with the fork's objects. `trial` creates its scheduler."""
    scheduler = trial.make(
        seed=setup.seed, start_ns=setup.start_ns, record_level=RecordLevel.FULL, queue_type=EventDrivenQueue
    )
    cluster = VirtualCluster(RandomStreams(setup.seed))
    simulator = Simulator(scheduler, cluster, seed=setup.seed, start_ns=setup.start_ns)
    objects = list(setup.objects())
    check_pod_count(objects, DEFAULT_MAX_PODS)
    for item in objects:
        simulator.at(setup.start_ns, Apply(item))
    return simulator


# --- the objects ------------------------------------------------------------------------------------------------------


def objects_now(store: ObjectStore) -> Objects:
    """Return the current objects, by kind and key. Call on the event loop; takes milliseconds for 50,000 objects."""
    found: Objects = {}
    for kind in store.kinds():
        found.update(zip(((kind, key) for key in store.keys(kind)), store.all(kind), strict=True))
    return found


def objects_of(snapshot: Snapshot) -> Objects:
    """Return the objects of a snapshot by kind and key, without documents that have no typed form."""
    decoder, found = ObjectDecoder(), Objects()
    for table, (items, _) in snapshot.tables.items():
        kind = KIND_OF_TABLE.get(table)
        if kind is None:
            continue
        for item in items.values():
            try:
                typed = decoder.decode(item.raw, kind)
            except InputError:
                continue
            found[kind, typed.key] = typed
    return found


ALL_PODS = "*"
"""Selects all pods for rescheduling."""


def changed_objects(
    objects: Objects,
    documents: Sequence[Mapping[str, object]],
    delete: Sequence[Reference],
    reschedule: Sequence[str] = (),
) -> list[KubernetesObject]:
    """Return the objects after the changes, in an order in which they can be applied.

    Pods of deleted nodes are recreated without a node and with the same names, as if by their controllers; pods
    without a controller are recreated as copies.

    Args:
        objects: the current objects; modified in place.
        documents: objects to create or replace.
        delete: objects to delete.
        reschedule: placed pods to schedule again; see `ForkRequest`.

    Raises:
        InputError: a document is invalid, or an object to delete or to reschedule does not exist.
    """
    kinds = {kind.struct.__name__.lower(): kind.struct for kind in KINDS}
    for reference in delete:
        struct = kinds.get(reference.kind.lower())
        key = f"{reference.namespace}/{reference.name}" if reference.namespace else reference.name
        if struct is None or objects.pop((struct, key), None) is None:
            raise InputError("delete", got=f"{reference.kind} {key}", wanted="an existing object")
    for number, document in enumerate(documents):
        item = default_object(decode(document, where=f"objects[{number}]"))
        objects[type(item), item.key] = item
    gone = [reference.name for reference in delete if reference.kind.lower() == "node"]
    displace(objects, frozenset(name for name in gone if (Node, name) not in objects), reschedule)
    # Objects that pods refer to come first, then pods with a node, then the others.
    return sorted(objects.values(), key=_order)


def displace(objects: Objects, gone: Collection[str], reschedule: Sequence[str]) -> None:
    """Replace pods of deleted nodes, and pods to reschedule, by waiting copies.

    Of the pods that are not recreated elsewhere, those of deleted nodes are deleted, and the others stay.

    Raises:
        InputError: a pod or workload to reschedule does not exist.
    """
    cluster = WorkloadObjects(item for item in objects.values())
    again = {pod.key for text in reschedule if text != ALL_PODS for pod in find_workload(text, cluster).pods}
    for pod in cluster.all(Pod):
        if not pod.spec.node_name:
            continue
        lost = pod.spec.node_name in gone
        if not lost and ALL_PODS not in reschedule and pod.key not in again:
            continue
        if is_recreated_elsewhere(pod):
            for item in replacement(pod, cluster):
                objects[type(item), item.key] = item
        elif lost:
            del objects[Pod, pod.key]


def _order(item: KubernetesObject) -> int:
    if not isinstance(item, Pod):
        return 0
    return 1 if item.spec.node_name else 2
