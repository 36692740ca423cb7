"""The cluster that questions are about: its objects, its state, and a scheduler for each trial."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Protocol, TypedDict, TypeVar, Unpack

from bayplan.answers.trial import Trial, nothing
from bayplan.base.counted_nouns import format_count
from bayplan.cluster.owned_pods import is_finished
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState

T = TypeVar("T", bound=KubernetesObject)


class MakeOptions(TypedDict, total=False):
    """Options for making a scheduler, with the defaults of `bayplan.engine.assemble.assemble_scheduler`."""

    seed: int
    start_ns: int
    record_level: RecordLevel
    state: ClusterState | None
    queue_type: type[SchedulingQueue]
    sampling: bool


class SchedulerFactory(Protocol):
    """Creates configured schedulers, e.g. `bayplan.app.scheduler_setup.SchedulerSetup`."""

    def make(self, *, without: Collection[str] = (), **options: Unpack[MakeOptions]) -> Scheduler:
        """Return a scheduler for `state`, by default an empty cluster.

        `without`: names of plugins to disable. Without `sampling`, the scheduler examines all nodes.
        """
        ...


class QuestionCluster:
    """The current cluster. Questions never change it: they run trials, whose changes are undone.

    Args:
        objects: nodes, pods and all other objects that scheduling reads, defaulted; if an object occurs twice, the last
            one counts.
        scheduler: creates the schedulers.
        now_ns: the time of the cluster, in nanoseconds since 1970.
        seed: the seed for tie-breaking.
        checkpoint: called between the cycles of a trial; may raise an exception to end the question.

    Attributes:
        state: the state; only trials write to it.
        objects: all objects, by kind and key.
        waiting: pods without a node that are neither finished nor terminating, by key.
    """

    def __init__(
        self,
        objects: Iterable[KubernetesObject],
        scheduler: SchedulerFactory,
        *,
        now_ns: int = 0,
        seed: int = 0,
        checkpoint: Callable[[], None] = nothing,
    ) -> None:
        self.scheduler = scheduler
        self.checkpoint = checkpoint
        self.now_ns = now_ns
        self.seed = seed
        self.objects: dict[type[KubernetesObject], dict[str, KubernetesObject]] = {}
        for item in objects:
            self.objects.setdefault(type(item), {})[item.key] = item
        self.state = scheduler.make(record_level=RecordLevel.OFF).state
        self.waiting: dict[str, Pod] = {}
        self._fill()

    def _fill(self) -> None:
        state = self.state
        for node in self.all(Node):
            state.add_node(node)
        for kind, items in self.objects.items():
            if kind is not Node and kind is not Pod:
                for key, item in items.items():
                    state.catalog.put(key, item)
        row_of = state.nodes.row_of
        for pod in self.all(Pod):
            if is_finished(pod):
                continue
            if pod.spec.node_name:
                row = row_of.get(pod.spec.node_name)
                if row is not None:
                    state.place(state.pod_info(pod), row)
            elif pod.metadata.deletion_timestamp is None:
                self.waiting[pod.key] = pod

    def all(self, kind: type[T]) -> Sequence[T]:
        """Return the objects of a kind, in the order of the source."""
        return list(self.objects.get(kind, {}).values())  # type: ignore[arg-type]

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object by its key, or None."""
        return self.objects.get(kind, {}).get(key)  # type: ignore[return-value]

    def node_of(self, key: str) -> str:
        """Return the node of a pod; "" if it has none."""
        info = self.state.pods.get(key)
        return "" if info is None else self.state.nodes.names[info.row] or ""

    def is_new(self, item: KubernetesObject) -> bool:
        """Return whether the cluster has no object of this kind and key."""
        return item.key not in self.objects.get(type(item), {})

    def add_missing(self, items: Iterable[KubernetesObject]) -> None:
        """Add objects that a question needs and the cluster lacks: workloads, pods to copy, and the objects they refer to."""
        for item in items:
            self.objects.setdefault(type(item), {})[item.key] = item
            if not isinstance(item, Pod | Node):
                self.state.catalog.put(item.key, item)

    def terminating_note(self) -> list[str]:
        """Return an assumption about terminating pods on nodes, which count until they are gone; [] if there are none."""
        count = sum(info.pod.metadata.deletion_timestamp is not None for info in self.state.pods.values())
        counts = "counts on its node" if count == 1 else "count on their nodes"
        return [f"{format_count(count, 'terminating pod')} still {counts}"] if count else []

    def with_scheduler(self, scheduler: SchedulerFactory) -> QuestionCluster:
        """Return the same cluster with another scheduler. Both share the state, so run their trials one at a time."""
        other = copy(self)
        other.scheduler = scheduler
        return other

    @contextmanager
    def trial(
        self, *, preempts: bool = False, records: RecordLevel = RecordLevel.OFF, seed: int | None = None
    ) -> Iterator[Trial]:
        """Yield a scheduler on this cluster, and undo all its changes at the end. Trials can't be nested.

        The scheduler examines all nodes, even if kube-scheduler would examine a sample: answers must not depend on
        where its search starts. Waiting pods are not in the queue, but filters count nominated pods on their nominated nodes.

        Args:
            preempts: whether pods may preempt other pods.
            records: the level of decision records.
            seed: the seed for tie-breaking; by default that of the cluster.
        """
        with self.state.trial() as state:

            def make(without: Collection[str]) -> Scheduler:
                return self.scheduler.make(
                    seed=self.seed if seed is None else seed,
                    start_ns=self.now_ns,
                    record_level=records,
                    state=state,
                    sampling=False,
                    without=without,
                )

            yield Trial(
                make(()),
                self.now_ns,
                make,
                preempts=preempts,
                waiting=self.waiting.values(),
                checkpoint=self.checkpoint,
            )
