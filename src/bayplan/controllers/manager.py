"""The controller manager: turns change events into reconciles, in one fixed order.

Events queue keys (see `bayplan.controllers.work_queue`), so the order of all controller actions depends only on the order
of earlier writes.

Controllers do not run during a host's write. Work waits until the host advances time (`run`), so that all pods bound at
one instant cause one reconcile of their owner, not thousands. `next_wakeup` reports whether work is waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayplan.base.errors import InputError, InvariantError
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.store import ADDED, DELETED, MODIFIED, ChangeEvent, Kind, ObjectStore, changes_owners
from bayplan.controllers.controller import Controller, ControllerTools, PartialFailure
from bayplan.controllers.cron_job import CronJobController
from bayplan.controllers.daemon_set import DaemonSetController
from bayplan.controllers.deployment import DeploymentController
from bayplan.controllers.job import JobController
from bayplan.controllers.node_lifecycle import NodeLifecycleController
from bayplan.controllers.pod_gc import PodGarbageCollector, is_stranded
from bayplan.controllers.replica_set import ReplicaSetController, ReplicationControllerController
from bayplan.controllers.stateful_set import StatefulSetController
from bayplan.controllers.work_queue import Work, WorkQueue
from bayplan.controllers.writer import ANSWER_WAIT_NS, AwaitsAnswers
from bayplan.objects.meta import OwnerReference
from bayplan.objects.pod import Pod
from bayplan.objects.policy import LimitRange, PriorityClass, ResourceQuota

_MAX_RECONCILES_AT_ONCE = 100_000


class ControllerManager:
    """Runs controllers on the objects of a store.

    Args:
        store: the shared store; the manager reads its journal.
        controllers: the controllers of workloads, one for each kind; results depend on their order.
        others: the controllers that only receive events of the kinds they watch.
        garbage_collector: the garbage collector, notified of every deletion.
        pod_gc: one of `others`; notified of pods on nodes that do not exist, and of unscheduled pods in deletion.
        node_lifecycle: one of `others`; notified of pods bound to nodes with NoExecute taints.
        admission: notified when priority classes change.
        sync_delay_ns: the delay until controllers observe a change; 0 lets them act at the same instant.
        retries: whether to retry failures with increasing delays, and continue after an exception other than
            `InputError`. For servers; a simulation retries when something changes, and a bug ends it.

    Attributes:
        problems: the exceptions other than `InputError` with which the last reconcile of an object ended, or that an
            event caused after it, by ``Controller key``: bugs in Bayplan.
    """

    def __init__(
        self,
        store: ObjectStore,
        controllers: Sequence[Controller],
        *,
        others: Sequence[Controller],
        garbage_collector: Controller,
        pod_gc: PodGarbageCollector,
        node_lifecycle: NodeLifecycleController,
        admission: PodAdmission,
        sync_delay_ns: int = 0,
        retries: bool = False,
    ) -> None:
        self._store = store
        self._by_kind: dict[Kind, Controller] = {item.kind: item for item in controllers}
        self._by_owner: dict[str, Controller] = {item.kind.__name__: item for item in controllers}
        self._others = tuple(others)
        self._pod_watchers = [item for item in others if item.watches_pods]
        self._watchers: dict[Kind, list[Controller]] = {}
        for controller in (*controllers, *others):
            for kind in controller.watches:
                self._watchers.setdefault(kind, []).append(controller)
        self._garbage_collector = garbage_collector
        self._pod_gc = pod_gc
        self._node_lifecycle = node_lifecycle
        self._admission = admission
        self._sync_delay_ns = sync_delay_ns
        self._position = 0
        self._work = WorkQueue()
        self._retries = retries
        self.problems: dict[str, Exception] = {}
        self._failed: dict[Work, InputError] = {}

    @property
    def failures(self) -> dict[str, InputError]:
        """The failed reconciles, by ``Kind key``."""
        return {f"{controller.kind.__name__} {key}": problem for (controller, key), problem in self._failed.items()}

    # --- events -------------------------------------------------------------------------------------------------------

    def follow(self, now_ns: int) -> None:
        """Queue the reconciles that the writes since the last call require. The host calls this after every write."""
        self._observe_journal()
        self._work.schedule(now_ns + self._sync_delay_ns)

    def close(self, now_ns: int) -> None:
        """Process the last writes of a journal before the host replaces it with an empty journal."""
        self.follow(now_ns)
        self._position = 0

    def _observe_journal(self) -> None:
        # This runs on every write, and most writes are of pods without an owner, so pods are checked first.
        journal = self._store.journal()
        policies = self._admission.policies if self._admission.policies.counts else None
        for position in range(self._position, len(journal)):
            event = journal[position]
            item = event.new
            if isinstance(item, Pod):
                if policies is not None and policies.frees_quota(event):
                    for work in self._failed:
                        self._work.add(work)
                self._observe_pod(event, item)
            else:
                self._observe(event)
        self._position = len(journal)

    def _observe_pod(self, event: ChangeEvent, pod: Pod) -> None:
        """Queue the reconciles that a new version of a pod requires."""
        node_name = pod.spec.node_name
        if node_name:
            if node_name not in self._store.nodes:
                self._work.add((self._pod_gc, node_name))
            elif node_name in self._node_lifecycle.evicting:
                self._work.add((self._node_lifecycle, node_name))
        elif is_stranded(pod):
            self._work.add((self._pod_gc, pod.key))
        old = event.old
        if pod.metadata.owner_references or (isinstance(old, Pod) and old.metadata.owner_references):
            self._notify_owners(event)
        if self._pod_watchers:
            self._notify_watchers(event, self._pod_watchers)

    def _observe(self, event: ChangeEvent) -> None:
        """Queue the reconciles that an event of a deleted pod, or of another kind, requires."""
        item = event.object
        kind = event.kind
        # The object's own controller runs first: a ReplicaSet that was scaled down deletes its pods before its
        # Deployment uses the room for new pods.
        own = self._by_kind.get(kind)
        if own is not None and _needs_reconcile(event):
            self._work.add((own, item.key))
        self._notify_owners(event)
        if kind is PriorityClass or kind is LimitRange or kind is ResourceQuota:
            self._admission.forget()
            for work in self._failed:
                self._work.add(work)
        if kind is Pod:
            if self._admission.policies.frees_quota(event):
                for work in self._failed:
                    self._work.add(work)
            self._notify_watchers(event, self._pod_watchers)
        else:
            self._notify_watchers(event, self._watchers.get(kind, ()))
            self._pod_watchers = [item for item in self._others if item.watches_pods]
        if event.type == DELETED or item.metadata.finalizers:
            self._notify_watchers(event, (self._garbage_collector,))

    def _notify_owners(self, event: ChangeEvent) -> None:
        """Notify the controlling owners; to an owner that lost or got the object, it was deleted or added."""
        old, new = event.old, event.new
        if old is None or new is None or not changes_owners(old, new):
            for owner in event.object.metadata.owner_references:
                self._notify_owner(event, owner)
            return
        before, after = old.metadata.owner_references, new.metadata.owner_references
        known, wanted = ({owner.uid for owner in owners if owner.controller} for owners in (before, after))
        left = ChangeEvent(DELETED, event.kind, old, None, event.resource_version)
        joined = ChangeEvent(ADDED, event.kind, None, new, event.resource_version)
        for owner in before:
            if owner.uid not in wanted:
                self._notify_owner(left, owner)
        for owner in after:
            self._notify_owner(event if owner.uid in known else joined, owner)

    def _notify_owner(self, event: ChangeEvent, owner: OwnerReference) -> None:
        if owner.controller and owner.kind in self._by_owner:
            controller = self._by_owner[owner.kind]
            key = f"{event.object.metadata.namespace}/{owner.name}"
            if controller.follows_pods and event.kind is Pod:
                try:
                    controller.pod_changed(key, event)
                except Exception as problem:
                    self.report(_name((controller, key)), problem)
            self._work.add((controller, key))

    def _notify_watchers(self, event: ChangeEvent, watchers: Iterable[Controller]) -> None:
        for watcher in watchers:
            try:
                for key in watcher.keys_for(event):
                    self._work.add((watcher, key))
            except Exception as problem:
                self.report(_name((watcher, event.object.key)), problem)

    def enqueue(self, controller: Controller, key: str, now_ns: int) -> None:
        """Queue a reconcile that is not caused by an event, due now."""
        self._work.add((controller, key))
        self._work.schedule(now_ns)

    # --- reconcile ----------------------------------------------------------------------------------------------------

    def next_wakeup(self) -> int | None:
        """Return the next time (ns) at which `run` has work, in the queue or from an alarm, or None."""
        return self._work.next_wakeup()

    def run(self, now_ns: int) -> None:
        """Reconcile until no reconcile is due at this time.

        Raises:
            InvariantError: controllers trigger each other forever: a bug in Bayplan.
        """
        queue = self._work
        queue.wake(now_ns)
        if queue.due_ns is None or queue.due_ns > now_ns:
            return
        queue.due_ns = None
        budget = _MAX_RECONCILES_AT_ONCE + 100 * len(queue)
        while len(queue):
            budget -= 1
            if budget < 0:
                raise InvariantError(
                    f"controllers still have work after too many steps at {now_ns} ns; next: {queue.pop()}"
                )
            self._process_next(now_ns)

    def step(self, now_ns: int) -> bool:
        """Execute one due reconcile; return whether there was one. For hosts that process requests in between."""
        queue = self._work
        queue.wake(now_ns)
        busy = bool(len(queue))
        if busy:
            self._process_next(now_ns)
        queue.due_ns = None
        queue.schedule(now_ns)
        return busy

    def _process_next(self, now_ns: int) -> None:
        work = self._work.pop()
        if self.problems:
            self.problems.pop(_name(work), None)
        try:
            self._reconcile(work, now_ns)
        except InputError as problem:
            self._note_failure(work, problem, now_ns)
        except Exception as problem:
            self.report(_name(work), problem)
            self._work.retry(work, now_ns)
        self._observe_journal()

    def report(self, name: str, problem: Exception) -> None:
        """Report an exception of a controller at an object, ``Controller key``.

        On a server, a bug of one controller must not stop the others, nor the API. In a simulation, it is raised.
        """
        if not self._retries:
            raise problem
        # Imported here, because simulations rarely need it.
        import logging

        logging.getLogger("bayplan.controllers").error("controller %s", name, exc_info=problem)
        self.problems[name] = problem

    def _reconcile(self, work: Work, now_ns: int) -> None:
        controller, key = work
        if controller.ownership is not None and controller.ownership.claim(controller.kind, key, now_ns):
            # The controller learns of the adopted and released objects from the events of these writes.
            self._work.add_at(work, now_ns)
            return
        result = controller.reconcile(key, now_ns)
        if isinstance(result, PartialFailure):
            self._note_failure(work, result.problem, now_ns)
            again_ns = result.again_ns
        else:
            self._work.reset_delay(work)
            self._failed.pop(work, None)
            again_ns = result
        if again_ns is not None:
            self._work.add_at(work, again_ns)

    def _note_failure(self, work: Work, problem: InputError, now_ns: int) -> None:
        controller, key = work
        self._failed[work] = problem
        controller.failed(key, problem)
        if self._retries:
            if isinstance(problem, AwaitsAnswers):
                self._work.add_at(work, now_ns + ANSWER_WAIT_NS)
            else:
                self._work.retry(work, now_ns)


def workload_controllers(tools: ControllerTools) -> list[Controller]:
    """Return the controllers of workloads, in their fixed order; results depend on it."""
    return [
        CronJobController(tools),
        JobController(tools),
        DeploymentController(tools),
        ReplicaSetController(tools),
        ReplicationControllerController(tools),
        StatefulSetController(tools),
        DaemonSetController(tools),
    ]


def _name(work: Work) -> str:
    return f"{type(work[0]).__name__} {work[1]}"


def _needs_reconcile(event: ChangeEvent) -> bool:
    """Return whether an object's own controller must process an event: any write that changes more than the status."""
    old, new = event.old, event.new
    if event.type != MODIFIED or old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (
        getattr(old, "spec", None) is not getattr(new, "spec", None)
        or before.deletion_timestamp != after.deletion_timestamp
        or before.annotations is not after.annotations
        or before.labels is not after.labels
    )
