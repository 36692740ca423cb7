"""The pending bindings of a scheduler: whether they are too many, and which of them the watch will never confirm.

A binding is pending until the watch reports the pod on its node. If a watch was lost, and the pod was bound and deleted in
the meantime, the new list lacks the pod; then the response of the API to the binding counts.
"""

from __future__ import annotations

from collections import deque

from bayplan.engine.actions import Action
from bayplan.engine.binding_cycle import Binding
from bayplan.engine.queued_pod import key_of, uid_of
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.pod import Pod

MAX_PENDING_BINDINGS = 2000
"""Maximum number of unconfirmed bindings. At this number no cycle starts, which keeps the queue of requests short."""

RESUMED_AFTER = 64
"""Number of bindings that must end before cycles start again, because counting takes time."""


class PendingBindings:
    """Observes the pending bindings of a scheduler, which may be replaced. Used on the engine's thread, except `note`."""

    def __init__(self) -> None:
        self._resumes_at = -1
        self._uncounted = 0
        self._written: deque[Pod] = deque()
        self._unconfirmed: dict[str, Binding] = {}

    def check_backlog(self, scheduler: Scheduler) -> bool:
        """Return whether too many bindings are pending to start another cycle. Called before each cycle.

        Pods with volumes or devices don't count: they may wait ten minutes for a provisioner, and others must not wait for
        them. Since all are counted at most once in `RESUMED_AFTER` cycles, or when few places are left, this is fast.
        """
        pending = scheduler.bindings.pending
        if len(pending) < MAX_PENDING_BINDINGS:
            self._resumes_at, self._uncounted = -1, 0
            return False
        if len(pending) > self._resumes_at >= 0:
            return True
        if self._uncounted > 0:
            self._uncounted -= 1
            return False
        free = MAX_PENDING_BINDINGS - sum(not binding.pre_bind for binding in pending.values())
        self._uncounted = free - 1
        self._resumes_at = len(pending) - RESUMED_AFTER if free <= 0 else -1
        return free <= 0

    def note(self, pod: Pod) -> None:
        """Note that the API has accepted the binding of a pod. Called on any thread."""
        self._written.append(pod)

    def finish_deleted(self, scheduler: Scheduler, now_ns: int) -> list[Action]:
        """Finish the accepted bindings of pods that no longer exist; return the actions for the host.

        The pods get the event Scheduled, as in kube-scheduler, which doesn't wait for the watch.
        """
        bindings, unconfirmed = scheduler.bindings, self._unconfirmed
        while self._written:
            pod = self._written.popleft()
            binding = bindings.pending.get(key_of(pod))
            if binding is not None and binding.queued.uid == uid_of(pod):
                unconfirmed[key_of(pod)] = binding
        actions: list[Action] = []
        for key, binding in list(unconfirmed.items()):
            known = scheduler.pods.get(key)
            if bindings.pending.get(key) is not binding:
                del unconfirmed[key]
            elif known is None or uid_of(known) != binding.queued.uid:
                del unconfirmed[key]
                actions += bindings.succeeded(key, binding.queued.pod, now_ns)
        return actions
