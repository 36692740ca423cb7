"""One episode: a simulation that pauses at each decision until the agent has chosen a node.

The simulation runs in its own thread. It waits while the agent acts, and the agent waits while it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.kubelet import KubeletOptions
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.queued_pod import QueuedPod
from bayplan.engine.records import RecordLevel
from bayplan.engine.select_host import Ties
from bayplan.formats.inputs import Inputs
from bayplan.framework.configuration.loading import SchedulerConfiguration, load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Params, Reads, ScorePlugin
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.sim import arrivals
from bayplan.sim.result import SimulationResult
from bayplan.sim.simulator import Simulator
from bayplan.sim.virtual_cluster import ClusterOptions, VirtualCluster
from bayplan.state.arrays import Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

SWITCH_TIMEOUT_S = 600.0
"""After this time without a question or the end of the episode, the simulation counts as stuck."""


@dataclass(frozen=True)
class NoSpec:
    """The spec of a plugin that needs no data of the pod."""

    key: tuple[object, ...] = ()


class EqualScores(ScorePlugin[NoSpec]):
    """Gives every feasible node the same score, so that all of them are left for the agent to choose from."""

    name = "EqualScores"
    reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> NoSpec:
        """Return the empty spec."""
        return NoSpec()

    def score(self, spec: NoSpec, params: Params | None, rows: Rows) -> Ints:
        """Return 0 for all nodes."""
        return np.zeros(len(rows), np.int64)


class WatchedQueue(EventDrivenQueue):
    """The scheduling queue of simulations; it also stores the pod of the current cycle.

    Attributes:
        current: the pod of the current cycle.
        before_next: called before the next pod is popped.
    """

    current: QueuedPod | None = None
    before_next: Callable[[], None] | None = None

    def pop(self) -> QueuedPod | None:
        """Return the next pod and remember it."""
        if self.before_next is not None:
            self.before_next()
        self.current = super().pop()
        return self.current


@dataclass(frozen=True)
class Question:
    """A pod to place: the rows of the nodes that it fits on, when it arrived, and the current time, in nanoseconds."""

    pod: Pod
    rows: Index
    arrived_ns: int
    now_ns: int


class Abandoned(Exception):
    """Ends the simulation's thread: the environment was closed or reset before the episode ended."""


class Episode:
    """A simulation that asks for a node for each pod.

    Args:
        inputs: the nodes and pods.
        seed: the seed of the simulation.

    Attributes:
        state: the cluster.
        question: the current question; None after the end of the episode.
        result: the result of the simulation; None before its end.
        waited_ns: the total time that the pods placed so far had waited. It includes pods that fit on a single node; as
            in kube-scheduler, these are placed without a choice.
    """

    def __init__(self, inputs: Inputs, seed: int) -> None:
        start_ns = arrivals.start_time_ns(inputs.manifest)
        self.state = ClusterState()
        self.question: Question | None = None
        self.result: SimulationResult | None = None
        self.waited_ns = 0
        self._answer = -1
        self._problem: BaseException | None = None
        self._abandoned = False
        self._asked, self._answered = threading.Semaphore(0), threading.Semaphore(0)
        self._queue: WatchedQueue | None = None
        runs = arrivals.run_times(inputs.trace)
        registry = in_tree_registry().with_plugins(EqualScores)
        scheduler = assemble_scheduler(
            _configuration(),
            registry,
            feature_gates=FeatureGates(),
            seed=seed,
            start_ns=start_ns,
            record_level=RecordLevel.SUMMARY,
            pick=self._pick,
            state=self.state,
            queue_type=WatchedQueue,
            sampling=False,
        )
        assert isinstance(scheduler.queue, WatchedQueue)
        self._queue = scheduler.queue
        self._queue.before_next = self._count_wait
        options = ClusterOptions(kubelet=KubeletOptions(run_of=(lambda pod: runs.get(pod.key)) if runs else None))
        cluster = VirtualCluster(RandomStreams(seed), options)
        self._simulator = Simulator(scheduler, cluster, seed=seed, start_ns=start_ns)
        for time_ns, operation in arrivals.operations(inputs, start_ns):
            self._simulator.at(time_ns, operation)
        self._thread = threading.Thread(target=self._run, name="bayplan-episode", daemon=True)

    def start(self) -> None:
        """Run the simulation until the first question."""
        self._thread.start()
        self._wait()

    def answer(self, row: int) -> Question | None:
        """Place the pod on a row, and run until the next question; return it, or None at the end."""
        self._answer = row
        self._answered.release()
        self._wait()
        return self.question

    def close(self) -> None:
        """End the simulation if it waits for an answer."""
        if self._thread.is_alive():
            self._abandoned = True
            self._answered.release()
            self._thread.join()

    def _wait(self) -> None:
        if not self._asked.acquire(timeout=SWITCH_TIMEOUT_S):
            raise TimeoutError("the simulation takes longer than ten minutes for one step")
        if self._problem is not None:
            raise self._problem

    def _run(self) -> None:
        try:
            self._simulator.run()
            self.result = self._simulator.result()
        except Abandoned:
            return
        except BaseException as problem:
            self._problem = problem
        finally:
            self.question = None
            self._asked.release()

    def _count_wait(self) -> None:
        """Add the waiting time of the last cycle's pod, if that was placed."""
        assert self._queue is not None
        last, self._queue.current = self._queue.current, None
        if last is not None and last.key in self.state.pods and last.initial_attempt_ns is not None:
            self.waited_ns += self._simulator.now_ns - last.initial_attempt_ns

    def _pick(self, state: ClusterState, rows: Ties) -> int:
        """Pass a question to the agent and return its answer. The scheduler calls this in the simulation's thread."""
        queue = self._queue
        assert queue is not None
        assert queue.current is not None
        pod, now_ns = queue.current.pod, self._simulator.now_ns
        arrived_ns = queue.current.initial_attempt_ns or now_ns
        self.question = Question(pod, np.array([int(row) for row in rows], dtype=np.intp), arrived_ns, now_ns)
        self._asked.release()
        self._answered.acquire()
        if self._abandoned:
            raise Abandoned
        return self._answer


def _configuration() -> SchedulerConfiguration:
    entry = [{"name": EqualScores.name}]
    plugins = {"score": {"disabled": [{"name": "*"}], "enabled": entry}, "preScore": {"disabled": [{"name": "*"}]}}
    return load_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
        },
        extension_points_of=in_tree_registry().with_plugins(EqualScores).extension_points_for_configuration,
    )
