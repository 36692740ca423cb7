"""The cluster that questions are about: its objects, its columns and a scheduler for each trial."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from bayplan.answers.trial import Trial, nothing
from bayplan.cluster.owned_pods import is_finished
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState

T = TypeVar("T", bound=KubernetesObject)


class SchedulerMaker(Protocol):
    """A scheduler that is configured, e.g. `bayplan.app.scheduler_setup.SchedulerSetup`."""

    def make(
        self,
        *,
        seed: int = 0,
        start_ns: int = 0,
        record_level: RecordLevel = RecordLevel.SUMMARY,
        state: ClusterState | None = None,
        queue_type: type[SchedulingQueue] = SchedulingQueue,
        sampling: bool = True,
        without: Collection[str] = (),
    ) -> Scheduler:
        """Return a scheduler for a state or an empty cluster, `without` some plugins; without `sampling` it examines all nodes."""
        ...


class QuestionCluster:
    """The current cluster. Questions never change it: they try things in trials, which are undone.

    Args:
        objects: nodes, pods and everything else that scheduling reads, defaulted; if an object occurs twice, the last one
            counts.
        scheduler: creates the scheduler that decides.
        now_ns: time of the cluster, nanoseconds since 1970.
        seed: the seed for tie-breaking.
        checkpoint: the function to call between cycles of a trial; it may raise to end the question.

    Attributes:
        state: the columns; written by trials only.
        objects: everything by kind and key.
        waiting: pods without a node that are neither finished nor being deleted, by key.
    """

    def __init__(
        self,
        objects: Iterable[KubernetesObject],
        scheduler: SchedulerMaker,
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
                    state.put_object(key, item)
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
        """Return an object, or None."""
        return self.objects.get(kind, {}).get(key)  # type: ignore[return-value]

    def node_of(self, key: str) -> str:
        """Return the node of a pod; "" if it has none."""
        info = self.state.pods.get(key)
        return "" if info is None else self.state.nodes.names[info.row] or ""

    def is_new(self, item: KubernetesObject) -> bool:
        """Return whether the cluster has no object of this kind and key."""
        return item.key not in self.objects.get(type(item), {})

    def know(self, items: Iterable[KubernetesObject]) -> None:
        """Add objects of the question that do not exist yet: workloads and pods to copy, and the objects that these refer to."""
        for item in items:
            self.objects.setdefault(type(item), {})[item.key] = item
            if not isinstance(item, Pod | Node):
                self.state.put_object(item.key, item)

    def asked_by(self, scheduler: SchedulerMaker) -> QuestionCluster:
        """Return the same cluster with another scheduler; the two share their columns, so use their trials one at a time."""
        other = object.__new__(QuestionCluster)
        other.__dict__.update(self.__dict__)
        other.scheduler = scheduler
        return other

    @contextmanager
    def trial(
        self, *, preempts: bool = False, records: RecordLevel = RecordLevel.OFF, seed: int | None = None
    ) -> Iterator[Trial]:
        """Yield a scheduler on this cluster; all its changes are undone at the end. Trials don't nest.

        All nodes are examined, even if kube-scheduler would stop at a sample: answers must not depend on where its search began.

        Waiting pods are not in its queue; nominated pods count on their node.

        Args:
            preempts: whether pods may preempt other pods.
            records: the level of decision records.
            seed: instead of the cluster's.
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
