"""A trial: make changes, schedule pods and read the results; then undo parts of it, or everything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import msgspec

from bayplan.answers.dependent_pods import HELPED_BY_PODS, is_helped
from bayplan.answers.displaced_pods import as_waiting, is_recreated
from bayplan.answers.instant_host import Change, InstantHost
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.engine.actions import Action, CycleReport, Nominate
from bayplan.engine.decision import Decision
from bayplan.engine.queued_pod import key_of, uid_of
from bayplan.engine.records import Outcome, RecordLevel, Records
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.noted_calls import noting_pod
from bayplan.framework.profile import Profile
from bayplan.framework.status import Status
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.state.object_catalog import ObjectCatalog

PATIENCE_NS = 240 * SECOND_NS
"""Virtual time that `Trial.settle` waits for backoffs and permits: less than the 5 min after which pods are retried anyway."""

MAX_RETRIES = 5
"""Maximum number of rounds of `Trial.retry_outdated`: each may make messages of the previous one outdated."""

WAITS_AT_PERMIT = "it waits at Permit"
"""The message of a pod that a Permit plugin holds back."""

Make = Callable[[Collection[str]], Scheduler]
"""Returns another scheduler for the state of a trial. It examines all nodes, and some plugins are disabled."""


def nothing() -> None:
    """Do nothing: the checkpoint of questions without a time limit."""


class Placement(msgspec.Struct, frozen=True):
    """A pod and its node; "" if the pod waits."""

    pod: str
    node: str


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an attempt.

    Attributes:
        placed: the pods in question, in order.
        displaced: the pods that lost their nodes because of the changes or preemption.
        victims: the keys of the pods that the pods in question preempted.
        ended: the keys of the terminating pods for whose end the pods in question waited.
    """

    placed: Sequence[Placement]
    displaced: Sequence[Placement] = ()
    victims: Sequence[str] = ()
    ended: Sequence[str] = ()

    @property
    def count(self) -> int:
        """Return how many of the pods in question have a node."""
        return sum(bool(each.node) for each in self.placed)

    @property
    def fits(self) -> bool:
        """Return whether all pods in question have a node."""
        return self.count == len(self.placed)


class Trial(InstantHost):
    """A cluster to try changes on.

    Args:
        scheduler: a scheduler whose state no other code writes to in the meantime. The caller discards it, or undoes
            its writes.
        now_ns: the virtual time at which the trial starts.
        make: see `Make`.
        preempts: whether pods may preempt other pods; otherwise no PostFilter plugin runs.
        waiting: all waiting pods. Nominated pods count on their nodes; the rest is ignored.
        checkpoint: called between cycles; may raise an exception to end the trial.
        unread: the kinds whose objects are unknown.

    Attributes:
        unread: the argument of this name.
        nominated: the pods that filters count on their nominated nodes, by key. They are not scheduled until
            they are `put`.
        ended: the terminating pods that are gone, because a pod was nominated to their node, by key in order.
        trials: the number of attempts made.
        others_made: the number of schedulers with disabled plugins made for `decide`, which reuses them.
        last_decision: the number of the last record about each pod, by key, if records are enabled.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        now_ns: int,
        make: Make,
        *,
        preempts: bool = False,
        waiting: Iterable[Pod] = (),
        checkpoint: Callable[[], None] = nothing,
        unread: Collection[str] = (),
    ) -> None:
        super().__init__(scheduler, now_ns)
        self.unread = unread
        self.nominated: dict[str, Pod] = {}
        self.ended: dict[str, None] = {}
        self.trials = 0
        self.last_decision: dict[str, int] = {}
        self._tried_at: dict[str, int] = {}
        self._make = make
        self._preempts = preempts
        self._checkpoint = checkpoint
        self._end_ns = now_ns + PATIENCE_NS
        self.others_made = 0
        self._others: dict[frozenset[str], Trial] = {}
        self._post_filters = {name: profile.post_filter for name, profile in scheduler.profiles.items()}
        self._nominate(pod for pod in waiting if self._counts(pod))

    def _counts(self, pod: Pod) -> bool:
        """Return whether a waiting pod is nominated by this scheduler, which nominates no gated pods."""
        spec = pod.spec
        is_own = spec.scheduler_name in self.profiles and not spec.scheduling_gates
        return is_own and bool(pod.status.nominated_node_name)

    def _nominate(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            # The nomination must count without the pod being scheduled, so do not add the pod to the queue.
            self.nominated[key_of(pod)] = self.scheduler.pods[key_of(pod)] = pod
            self.scheduler.queue.nominator.add(pod)

    def put(self, item: KubernetesObject) -> None:
        """Add an object, or replace the existing one of its kind and key."""
        if isinstance(item, Pod) and item.key in self.nominated:
            self._withdraw(item.key)
        super().put(item)

    def update_nominated(self, pod: Pod) -> None:
        """Replace a pod that only counts on its nominated node. It still stays out of the queue."""
        self._withdraw(pod.key)
        self._nominate([pod])

    def _withdraw(self, key: str) -> None:
        """Remove a pod that only counts on its nominated node."""
        self.scheduler.queue.nominator.remove(uid_of(self.nominated.pop(key)))
        del self.scheduler.pods[key]

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Undo all changes of the block when it ends; see `InstantHost.undone`."""
        before, ended = dict(self.nominated), dict(self.ended)
        try:
            with super().undone():
                yield
        finally:
            self.ended = ended
            self._nominate(pod for key, pod in before.items() if key not in self.nominated)
            self._restore_nominations()

    def remove_pod(self, key: str) -> Pod | None:
        """Remove a pod, which may be one that only counts on its nominated node. Return it, or None if it does not exist."""
        self.nominated.pop(key, None)
        return super().remove_pod(key)

    def _restore_nominations(self) -> None:
        """Nominate again the pods whose nominations a preempting pod has cleared: the scheduler reports no event about that.

        Undoing a removal puts a pod into the queue, where it must not stay.
        """
        queue = self.scheduler.queue
        for key, pod in self.nominated.items():
            if queue.get(key) is not None:
                queue.delete(pod)
            if queue.nominator.node_by_uid.get(uid_of(pod)) != pod.status.nominated_node_name:
                queue.nominator.add(pod)

    def execute(self, actions: Iterable[Action]) -> None:
        """Execute the scheduler's actions, except changes of nominated pods that must stay out of the queue."""
        super().execute(
            action for action in actions if not (isinstance(action, Nominate) and key_of(action.pod) in self.nominated)
        )

    @property
    def catalog(self) -> ObjectCatalog:
        """Return the objects other than nodes and pods."""
        return self.state.catalog

    @property
    def profiles(self) -> Collection[str]:
        """Return the names of the configured schedulers, as in `spec.schedulerName`."""
        return self.scheduler.profiles

    # --- scheduling ---------------------------------------------------------------------------------------------------

    def begin_records(self, level: RecordLevel) -> None:
        """Record all following decisions at this level, and drop earlier records."""
        self.scheduler.records = Records(level)
        self.last_decision = {}

    def place(self, items: Iterable[KubernetesObject]) -> str:
        """Add objects, the last of which is a pod, and schedule until no pod is ready. Return the pod's node, or ""."""
        key = ""
        for item in items:
            self.put(item)
            key = item.key
        self.settle()
        return self.placed.get(key, "")

    def settle(self, *, preempts: bool | None = None) -> None:
        """Schedule until no pod is ready. Advance virtual time for backoffs and permits.

        Args:
            preempts: whether pods may preempt other pods; by default as in the whole trial.
        """
        scheduler = self.scheduler
        # For a pod that fits nowhere, the search for victims takes most of the time.
        self._enable_post_filters((self._preempts if preempts is None else preempts) and self._may_preempt())
        while True:
            while (report := scheduler.schedule_one(self.now_ns)) is not None:
                self._take(report)
                self._checkpoint()
            if not len(scheduler.waiting_pods) and next(iter(scheduler.queue.backing_off()), None) is None:
                return
            wakeup_ns = scheduler.next_wakeup_ns(self.now_ns)
            if wakeup_ns is None or wakeup_ns > self._end_ns:
                return
            self.now_ns = wakeup_ns
            self.execute(scheduler.tick(wakeup_ns))

    def retry_outdated(self) -> None:
        """Schedule again, without preemption, the waiting pods whose last attempt precedes other changes.

        Their messages then hold now. kube-scheduler does the same every few minutes, even without an event that could
        help these pods.
        """
        scheduler = self.scheduler
        for _ in range(MAX_RETRIES):
            at_permit = {waiting.key for waiting in scheduler.waiting_pods}
            outdated = [
                pod
                for key, pod in scheduler.pods.items()
                if not pod.spec.node_name
                and self._tried_at.get(key, self.changes) < self.changes
                and key not in at_permit
                and key not in self.nominated
            ]
            if not outdated:
                return
            for pod in outdated:
                self.remove_pod(pod.key)
            self.add_all(outdated)
            self.settle(preempts=False)

    def waiting_message(self, pod: Pod) -> str:
        """Return why a pod has no node: the message of its last attempt or, if it was never tried, of what holds it back."""
        message = self.messages.get(pod.key, "")
        if message or pod.spec.scheduler_name not in self.profiles:
            return message
        if any(waiting.key == pod.key for waiting in self.scheduler.waiting_pods):
            return WAITS_AT_PERMIT
        gate = self.gate(pod)
        return gate.message if gate is not None else ""

    def _enable_post_filters(self, enabled: bool) -> None:
        for name, profile in self.scheduler.profiles.items():
            profile.post_filter = self._post_filters[name] if enabled else ()

    def _may_preempt(self) -> bool:
        """Return whether PostFilter may help a queued pod: it has a higher priority than another pod, or resource claims."""
        queue = self.scheduler.queue
        queued = [*chain(queue.active(), queue.backing_off(), queue.unschedulable())]
        if any(each.pod.spec.resource_claims for each in queued):
            # DynamicResources releases the devices of a claim that are on the wrong node.
            return True
        wanted = [each.pod.spec.priority or 0 for each in queued]
        return bool(wanted) and (min(wanted) < max(wanted) or self.state.has_pods_below(max(wanted)))

    def _take(self, report: CycleReport) -> None:
        key = key_of(report.pod)
        if self.scheduler.records.level:
            self.last_decision[key] = len(self.scheduler.records) - 1
        self._tried_at[key] = self.changes
        if report.outcome is not Outcome.SCHEDULED:
            self.messages[key] = report.message
        self.execute(report.actions)
        if report.outcome is not Outcome.SCHEDULED:
            self._end_terminating(report.pod)

    def _end_terminating(self, pod: Pod) -> None:
        """Remove the terminating pods of lower priority from the node that a pod is nominated to.

        The scheduler does not evict them again, and the nominated pod waits for their end.
        """
        node = self.scheduler.queue.nominator.node_by_uid.get(uid_of(pod), "")
        if node not in self.state.nodes.row_of:
            return
        for other in self.pods_on(node):
            priority = other.spec.priority or 0
            if other.metadata.deletion_timestamp is not None and priority < (pod.spec.priority or 0):
                self.ended[other.key] = None
                self.remove_pod(other.key)

    # --- single attempts, which leave nothing behind ------------------------------------------------------------------

    def attempt(self, pods: Sequence[Pod], changes: Sequence[Change] = (), *, preempts: bool = False) -> TrialResult:
        """Make changes, schedule pods, then schedule the pods that lost their nodes. Undo everything.

        Args:
            pods: the waiting pods, in their changed form.
            changes: the changes, in order. A deleted pod with a node is scheduled again if a controller would recreate
                it.
            preempts: whether the pods may preempt other pods, which are then scheduled again too.
        """
        self.trials += 1
        with self.undone():
            gone, evicted, ended = self._change(changes), len(self.evictions), len(self.ended)
            self.add_all(pods)
            self.settle(preempts=preempts)
            self._retry(pods, preempts=preempts)
            victims = [each.pod for each in self.evictions[evicted:]]
            placed = [Placement(pod.key, self.placed.get(pod.key, "")) for pod in pods]
            gone += [self.victims[key] for key in victims]
            self.add_all(as_waiting(pod) for pod in gone if is_recreated(pod))
            self.settle(preempts=False)
            moved = [Placement(pod.key, self.placed.get(pod.key, "")) for pod in gone]
            return TrialResult(placed=placed, displaced=moved, victims=victims, ended=[*self.ended][ended:])

    def _retry(self, pods: Sequence[Pod], *, preempts: bool) -> None:
        """Schedule again the pods that need other pods nearby or an even spread, as long as this places any.

        As bindings stay unfinished (see `InstantHost.undone`), no event retries them when another pod gets its node.
        """
        known = set[str]()
        while len(pods) > 1:
            placed = [pod for pod in pods if pod.key not in known and self.placed.get(pod.key)]
            known.update(pod.key for pod in placed)
            left = [pod for pod in pods if self.needs_others(pod.key) and is_helped(pod, placed)]
            if not left:
                return
            for pod in left:
                self.remove_pod(pod.key)
                self.put(pod)
            self.settle(preempts=preempts)

    def needs_others(self, key: str) -> bool:
        """Return whether the placement of another pod may help a pod that was just scheduled without success.

        It does not, for example, if no node has enough free amounts.
        """
        queued = self.scheduler.queue.get(key)
        return queued is not None and not HELPED_BY_PODS.isdisjoint(queued.unschedulable_plugins)

    def _change(self, changes: Iterable[Change]) -> list[Pod]:
        """Make changes. Return the pods that lose their nodes."""
        gone: list[Pod] = []
        for old, new in changes:
            if isinstance(old, Pod) and new is None:
                self.remove_pod(old.key)
                gone += [old] if old.spec.node_name else []
            else:
                self.handle(old, new)
        return gone

    @contextmanager
    def after(self, pods: Sequence[Pod]) -> Iterator[None]:
        """Schedule some pods, and undo this when the block ends."""
        with self.undone():
            self.add_all(pods)
            self.settle(preempts=False)
            yield

    def decide(self, pod: Pod, without: Collection[str] = ()) -> Decision | None:
        """Return the decision about a pod in the current cluster with some plugins disabled, without placing the pod.

        None if a PreEnqueue plugin keeps the pod out of the queue.
        """
        self._checkpoint()
        trial = self._without(frozenset(without))
        scheduler, before = trial.scheduler, trial.scheduler.records
        scheduler.records = Records(RecordLevel.FULL)
        trial._enable_post_filters(True)
        try:
            with trial.undone():
                trial.put(pod)
                report = scheduler.schedule_one(self.now_ns)
                return None if report is None else scheduler.records.decision(0)
        finally:
            scheduler.records = before

    def decide_after(self, pod: Pod, changes: Sequence[Change], without: Collection[str] = ()) -> Decision | None:
        """Return the decision about a pod after some changes, which are undone again."""
        with self.undone():
            self._change(changes)
            return self.decide(pod, without)

    def _without(self, plugins: frozenset[str]) -> Trial:
        if not plugins:
            return self
        # With 5,000 nodes, a further decision takes 1 ms, and 6 to 14 ms by a new scheduler, which filters all nodes again.
        other = self._others.get(plugins)
        if other is None:
            self.others_made += 1
            other = self._others[plugins] = Trial(self._make(plugins), self.now_ns, self._make, unread=self.unread)
        other._copy_nominations(self.scheduler)
        return other

    def _copy_nominations(self, scheduler: Scheduler) -> None:
        """Count the pods that another scheduler of the same state has nominated, and no others."""
        source = scheduler.queue.nominator
        wanted = {
            key: pod
            for node in source
            for key in source.on_node(node).values()
            if (pod := scheduler.pods.get(key)) is not None and pod.status.nominated_node_name == node
        }
        if wanted == self.nominated:
            return
        for key in [*self.nominated]:
            self._withdraw(key)
        self._nominate(wanted.values())

    def profile(self, pod: Pod) -> Profile:
        """Return the profile that schedules a pod.

        Raises:
            InputError: no profile has the pod's scheduler name.
        """
        found = self.scheduler.profiles.get(pod.spec.scheduler_name)
        if found is None:
            names = ", ".join(self.scheduler.profiles)
            raise InputError(
                f"Pod {pod.key} $.spec.schedulerName",
                got=f"'{pod.spec.scheduler_name}'",
                wanted=f"one of {names}",
                hint="--config FILE with a profile of this name",
            )
        return found

    def gate(self, pod: Pod) -> Status | None:
        """Return the status of the PreEnqueue plugin that keeps a pod out of the queue; None if it enters the queue."""
        for plugin in self.profile(pod).pre_enqueue:
            status = noting_pod(plugin, plugin.pre_enqueue)(pod)
            if not status.ok:
                return status.by(plugin.name)
        return None
