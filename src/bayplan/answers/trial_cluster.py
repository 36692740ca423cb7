"""A fork for trials: make changes, schedule, read the result, undo the changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from bayplan.answers.instant_host import Change
from bayplan.answers.trial import nothing
from bayplan.base.errors import InputError
from bayplan.engine.actions import Evict
from bayplan.engine.decision import Decision
from bayplan.engine.queued_pod import key_of
from bayplan.engine.records import RecordLevel, Records
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.profile import Profile
from bayplan.framework.status import Code, Status
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodStatus
from bayplan.objects.resource import ResourceClaim
from bayplan.state.cluster_state import ClusterState

MakeScheduler = Callable[[ClusterState, Collection[str]], Scheduler]
"""Returns a scheduler over a state, all nodes examined, with some plugins switched off."""


class Placement(msgspec.Struct, frozen=True):
    """A pod and its node, "" if it waits."""

    pod: str
    node: str


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a trial.

    Attributes:
        placed: the pods in question, in order.
        displaced: the pods that the changes took off their nodes.
        victims: pods that were preempted by the pods in question.
    """

    placed: Sequence[Placement]
    displaced: Sequence[Placement] = ()
    victims: Sequence[str] = ()

    @property
    def count(self) -> int:
        """Return the number of the pods in question that have a node."""
        return sum(bool(each.node) for each in self.placed)

    @property
    def fits(self) -> bool:
        """Return whether all of them have one."""
        return self.count == len(self.placed)


class TrialHost:
    """Makes changes and takes them back. Bindings stay unfinished, so that plugins give back what they reserved.

    Args:
        scheduler: the scheduler of the fork.
        now_ns: the time.
    """

    def __init__(self, scheduler: Scheduler, now_ns: int) -> None:
        self._scheduler = scheduler
        self._now_ns = now_ns
        self._journal: list[Change] | None = None

    def begin(self) -> None:
        """Record all changes from this point, for `undo`."""
        self._journal = []

    def handle(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """Make one change; the scheduler's resulting requests are not executed."""
        if self._journal is not None:
            self._journal.append((old, new))
        self._scheduler.handle(old, new, self._now_ns)

    def undo(self) -> None:
        """Release what pods have reserved, then undo all changes since `begin`, the last one first."""
        scheduler, now_ns = self._scheduler, self._now_ns
        for key in [waiting.queued.key for waiting in scheduler.waiting_pods]:
            scheduler.reject_waiting_pod(key, Status(Code.UNSCHEDULABLE, ("tried only",)), now_ns)
        for key in list(scheduler.bindings.pending):
            scheduler.binding_failed(key, "tried only", now_ns)
        journal, self._journal = self._journal or [], None
        for old, new in reversed(journal):
            scheduler.handle(new, old, now_ns)


class TrialCluster:
    """A cluster in which all changes are undone.

    Args:
        state: a fork that no other code writes to.
        make: see `MakeScheduler`.
        waiting: all waiting pods; those nominated to a node are counted there, the rest is left out.
        now_ns: the time.
        checkpoint: the function to call between cycles; it may raise to end the question.

    Attributes:
        state: as given.
        nodes, catalog: its parts.
        trials: number of trials made.
    """

    def __init__(
        self,
        state: ClusterState,
        make: MakeScheduler,
        waiting: Iterable[Pod],
        now_ns: int = 0,
        checkpoint: Callable[[], None] = nothing,
    ) -> None:
        self.state = state
        self._checkpoint = checkpoint
        self.catalog = state.catalog
        self.trials = 0
        self._make = make
        self._now_ns = now_ns
        self._scheduler = make(state, ())
        self._host = TrialHost(self._scheduler, now_ns)
        self._others: dict[frozenset[str], Scheduler] = {}
        self._nominated = [pod for pod in waiting if pod.status.nominated_node_name]
        self._nominate(self._scheduler)

    def _nominate(self, scheduler: Scheduler) -> None:
        for pod in self._nominated:
            # Counted, and never tried: it must not take part in the queue.
            scheduler.pods[key_of(pod)] = pod
            scheduler.queue.nominator.add(pod)

    @property
    def profiles(self) -> Collection[str]:
        """Return the names of the schedulers that are configured."""
        return self._scheduler.profiles

    def nodes(self) -> list[Node]:
        """Return the nodes, in row order."""
        return [node for node in self.state.nodes.nodes if node is not None]

    def node(self, name: str) -> Node | None:
        """Return a node, or None."""
        row = self.state.nodes.row_of.get(name)
        return None if row is None else self.state.nodes.nodes[row]

    def pods_on(self, name: str) -> list[Pod]:
        """Return the pods on a node."""
        return [info.pod for info in self.state.pods_on[self.state.nodes.row_of[name]].values()]

    def bound(self, key: str) -> Pod | None:
        """Return a pod that has a node, or None."""
        info = self.state.pods.get(key)
        return None if info is None else info.pod

    # --- asking -------------------------------------------------------------------------------------------------------

    def profile(self, pod: Pod) -> Profile:
        """Return the profile that is in charge of a pod.

        Raises:
            InputError: there is none of that name.
        """
        found = self._scheduler.profiles.get(pod.spec.scheduler_name)
        if found is None:
            names = ", ".join(self._scheduler.profiles)
            raise InputError(
                f"Pod {pod.key} $.spec.schedulerName", got=f"'{pod.spec.scheduler_name}'", wanted=f"one of {names}"
            )
        return found

    def gate(self, pod: Pod) -> Status | None:
        """Return the status of the PreEnqueue plugin that keeps a pod out of the queue; None if it may be scheduled."""
        for plugin in self.profile(pod).pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if not status.ok:
                return status.by(plugin.name)
        return None

    def decide(self, pod: Pod, without: Collection[str] = ()) -> Decision | None:
        """Return the decision about a pod in the current cluster, as if some plugins were disabled. The pod is not placed.

        None if a PreEnqueue plugin keeps it out of the queue.
        """
        self._checkpoint()
        scheduler = self._without(frozenset(without))
        before, scheduler.records = scheduler.records, Records(RecordLevel.FULL)
        try:
            self._add(scheduler, pod)
            report = scheduler.schedule_one(self._now_ns)
            return None if report is None else scheduler.records.decision(0)
        finally:
            scheduler.records = before
            self._withdraw(scheduler, pod)

    def decide_after(self, pod: Pod, changes: Sequence[Change], without: Collection[str] = ()) -> Decision | None:
        """Return the decision about a pod after some changes, which are undone."""
        host = self._host
        host.begin()
        try:
            for old, new in changes:
                host.handle(old, new)
                if isinstance(old, Pod) and new is None and old.spec.node_name:
                    self._free_devices(old)
            return self.decide(pod, without)
        finally:
            host.undo()

    def _without(self, plugins: frozenset[str]) -> Scheduler:
        if not plugins:
            return self._scheduler
        if plugins not in self._others:
            self._others[plugins] = self._make(self.state, plugins)
            self._nominate(self._others[plugins])
        return self._others[plugins]

    def _add(self, scheduler: Scheduler, pod: Pod) -> None:
        """Put a pod into the queue. One that is nominated has been counted without being there."""
        scheduler.pods.pop(key_of(pod), None)
        scheduler.queue.unnominate(pod)
        scheduler.handle(None, pod, self._now_ns)

    def _withdraw(self, scheduler: Scheduler, pod: Pod) -> None:
        """Remove a pod from a scheduler, whether it found a node or not."""
        self._stop_waiting(pod, scheduler)
        if key_of(pod) in scheduler.bindings.pending:
            scheduler.binding_failed(key_of(pod), "tried only", self._now_ns)
        scheduler.handle(pod, None, self._now_ns)
        self._nominate(scheduler)

    def _stop_waiting(self, pod: Pod, scheduler: Scheduler | None = None) -> None:
        profile = (scheduler or self._scheduler).profiles.get(pod.spec.scheduler_name)
        for plugin in profile.pre_enqueue if profile is not None else ():
            plugin.stop_waiting(pod)

    # --- trying -------------------------------------------------------------------------------------------------------

    def attempt(self, pods: Sequence[Pod], changes: Sequence[Change] = (), *, preempts: bool = False) -> TrialResult:
        """Make changes, schedule pods, then the pods that the changes took off their nodes; undo everything.

        Args:
            pods: waiting ones, in their changed form.
            changes: the changes, in order. A pod with a node that is deleted comes back without one, if a controller would
                recreate it.
            preempts: whether the pods may preempt others, which are then scheduled again, too.
        """
        self.trials += 1
        host = self._host
        host.begin()
        try:
            displaced = [old for old, new in changes if isinstance(old, Pod) and new is None and old.spec.node_name]
            for old, new in changes:
                host.handle(old, new)
            for pod in displaced:
                self._free_devices(pod)
            for pod in pods:
                self._scheduler.pods.pop(key_of(pod), None)
                self._scheduler.queue.unnominate(pod)
                host.handle(None, pod)
            victims = self._run(len(pods), preempts=preempts)
            placed = [Placement(pod.key, self._node_of(pod.key)) for pod in pods]
            gone = [*displaced, *victims]
            for pod in gone:
                if comes_back(pod):
                    host.handle(None, as_waiting(pod))
            self._run(len(gone), preempts=False)
            moved = [Placement(pod.key, self._node_of(pod.key)) for pod in gone]
            return TrialResult(placed=placed, displaced=moved, victims=[pod.key for pod in victims])
        finally:
            for pod in pods:
                self._stop_waiting(pod)
            host.undo()
            self._nominate(self._scheduler)

    @contextmanager
    def after(self, pods: Sequence[Pod]) -> Iterator[None]:
        """Schedule some pods for the duration of a block, which may only run queries."""
        host = self._host
        host.begin()
        try:
            for pod in pods:
                host.handle(None, pod)
            self._run(len(pods), preempts=False)
            yield
        finally:
            host.undo()

    def _run(self, pods: int, *, preempts: bool) -> list[Pod]:
        """Schedule until no pod is ready; return the preempted pods."""
        scheduler, victims = self._scheduler, list[Pod]()
        # A preempting pod is tried again, and a plugin may wake other pods, so the number of cycles is limited.
        for _ in range(3 * pods + 3):
            self._checkpoint()
            report = scheduler.schedule_one(self._now_ns)
            if report is None:
                break
            leaving = [scheduler.pods.get(key_of(each.pod)) for each in report.actions if isinstance(each, Evict)]
            if not preempts or not leaving:
                continue
            for victim in leaving:
                if victim is not None:
                    self._host.handle(victim, None)
                    victims.append(victim)
                    self._free_devices(victim)
            self._stop_waiting(report.pod)
            scheduler.queue.activate([scheduler.pods[key_of(report.pod)]], self._now_ns)
        return victims

    def _free_devices(self, pod: Pod) -> None:
        """Remove a deleted pod from its claims' reservations; claims without other users release their devices."""
        for claim in list(self.catalog.all(ResourceClaim)):
            if claim.metadata.namespace != pod.metadata.namespace:
                continue
            left = tuple(
                user
                for user in claim.status.reserved_for
                if user.name != pod.metadata.name or user.uid != pod.metadata.uid
            )
            if len(left) == len(claim.status.reserved_for):
                continue
            status = replace(claim.status, reserved_for=left)
            if not left:
                status = replace(status, allocation=None, devices=())
            self._host.handle(claim, replace(claim, status=status))

    def _node_of(self, key: str) -> str:
        """Return the node that a pod got; "" if it waits, including for a permit."""
        if self._scheduler.waiting_pods.get(key) is not None:
            return ""
        info = self.state.pods.get(key)
        return "" if info is None else self.state.nodes.names[info.row] or ""


def comes_back(pod: Pod) -> bool:
    """Return whether a controller recreates a deleted pod; those of DaemonSets belong to their node."""
    owner = pod.metadata.controller()
    return owner is not None and owner.kind not in ("DaemonSet", "Node")


def stays_on_node(pod: Pod) -> bool:
    """Return whether a pod can't leave its node: the pods of DaemonSets come back there, static pods never go."""
    owner = pod.metadata.controller()
    return owner is not None and owner.kind in ("DaemonSet", "Node")


def is_sibling(pod: Pod, other: Pod) -> bool:
    """Return whether one controller makes both pods."""
    owner, others = pod.metadata.controller(), other.metadata.controller()
    if owner is None or others is None or pod.metadata.namespace != other.metadata.namespace:
        return False
    return (owner.kind, owner.name) == (others.kind, others.name)


def as_waiting(pod: Pod) -> Pod:
    """Return a pod as its controller recreates it: without a node, and with the same claims."""
    status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
    metadata = replace(pod.metadata, deletion_timestamp=None, resource_version="")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=status)
