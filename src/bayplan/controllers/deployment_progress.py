"""The Progressing condition of Deployments: whether a rollout progresses, is complete, is paused, or has timed out.

The Deployment controller of the virtual cluster does not need it; users and ``kubectl rollout status`` read it.
Progress is derived from the counts in the status, as upstream does. The time of the last progress is stored only in
memory, so the deadline starts again after a restart.

Source: pkg/controller/deployment/progress.go v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.controller import Controller, ControllerTools
from bayplan.controllers.deployment import REVISION_ANNOTATION, REVISION_HISTORY_ANNOTATION
from bayplan.controllers.rollout_arithmetic import desired_replicas
from bayplan.objects.meta import Condition
from bayplan.objects.workloads import Deployment, DeploymentStatus, ReplicaSet

PROGRESSING = "Progressing"

_AVAILABLE = "NewReplicaSetAvailable"
_TIMED_OUT = "ProgressDeadlineExceeded"
_PAUSED, _RESUMED = "DeploymentPaused", "DeploymentResumed"
_NEVER = 2**31 - 1


@dataclass(slots=True)
class _Rollout:
    """The last observed state of a Deployment.

    Attributes:
        replica_set: the uid of its newest ReplicaSet; "" before the first reconcile.
        status: the status of the Deployment.
        moved_ns: the time of the last progress.
    """

    replica_set: str
    status: DeploymentStatus
    moved_ns: int


class DeploymentProgress(Controller):
    """Reconciles the Progressing condition of Deployments."""

    kind = Deployment
    watches = (Deployment, ReplicaSet)

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._rollouts: dict[str, _Rollout] = {}
        # The uids of the ReplicaSets that had a controller when they were first observed: they were not adopted since.
        self._created: set[str] = set()

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the key of the changed Deployment, or nothing if it was deleted or a ReplicaSet changed."""
        if event.kind is ReplicaSet:
            metadata = event.object.metadata
            if event.new is None:
                self._created.discard(metadata.uid)
            elif event.old is None and metadata.controller() is not None:
                self._created.add(metadata.uid)
            return ()
        if event.new is None:
            self._rollouts.pop(event.object.metadata.uid, None)
            return ()
        if event.old is None and isinstance(event.new, Deployment):
            self._rollouts[event.new.metadata.uid] = _Rollout("", event.new.status, 0)
        return (event.object.key,)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Write the condition if it changes; return the time at which a stalled rollout exceeds its deadline, or None."""
        item = self.store.get(Deployment, key)
        if item is None or item.metadata.deletion_timestamp is not None:
            return None
        known = next((each for each in item.status.conditions if each.type == PROGRESSING), None)
        seconds = item.spec.progress_deadline_seconds
        if seconds is None or seconds == _NEVER:
            if known is not None:
                self._write(item, None)
            return None
        if item.status.observed_generation < item.metadata.generation:
            # The Deployment controller has not processed this generation yet; its write of the status causes the next
            # call.
            return None
        if item.spec.paused or (known is not None and known.reason == _PAUSED):
            self._pause(item, known, now_ns)
            return None
        replica_set = self._newest(item)
        if replica_set is None:
            return None
        return self._follow(item, replica_set, known, seconds * SECOND_NS, now_ns)

    def _pause(self, item: Deployment, known: Condition | None, now_ns: int) -> None:
        if known is not None and known.reason == _TIMED_OUT:
            return
        reason, text = (_PAUSED, "paused") if item.spec.paused else (_RESUMED, "resumed")
        rollout = self._rollouts.get(item.metadata.uid)
        if rollout is not None:
            rollout.moved_ns = now_ns
        self._set(item, known, "Unknown", reason, f"Deployment is {text}", now_ns)

    def _follow(
        self, item: Deployment, replica_set: ReplicaSet, known: Condition | None, deadline_ns: int, now_ns: int
    ) -> int | None:
        uid, status, name = item.metadata.uid, item.status, replica_set.metadata.name
        before = self._rollouts.get(uid)
        is_new = before is not None and before.replica_set not in ("", replica_set.metadata.uid)
        if before is None or is_new:
            before = _Rollout(replica_set.metadata.uid, status, now_ns)
        elif not before.replica_set:
            before = _Rollout(replica_set.metadata.uid, before.status, now_ns)
        moved = _moves(before.status, status)
        rollout = _Rollout(before.replica_set, status, now_ns if moved else before.moved_ns)
        self._rollouts[uid] = rollout
        # If the Deployment returns to an older ReplicaSet or adopts one, the condition stays until there is progress.
        is_older = REVISION_HISTORY_ANNOTATION in replica_set.metadata.annotations
        is_created = replica_set.metadata.uid in self._created and not is_older
        reason = known.reason if known is not None and not (is_new and is_created) else ""
        if reason == _AVAILABLE and status.replicas == status.updated_replicas:
            return None
        desired = desired_replicas(item)
        if status.updated_replicas == status.replicas == status.available_replicas == desired:
            text = f'ReplicaSet "{name}" has successfully progressed.'
            self._set(item, known, "True", _AVAILABLE, text, now_ns)
            return None
        if moved:
            self._set(item, known, "True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.', now_ns)
        elif not reason:
            made, text = ("NewReplicaSetCreated", "Created") if is_created else ("FoundNewReplicaSet", "Found")
            self._set(item, known, "True", made, f'{text} new replica set "{name}"', now_ns)
        elif reason in (_TIMED_OUT, _AVAILABLE):
            return None
        elif now_ns >= rollout.moved_ns + deadline_ns:
            self._set(item, known, "False", _TIMED_OUT, f'ReplicaSet "{name}" has timed out progressing.', now_ns)
            return None
        return rollout.moved_ns + deadline_ns

    def _set(
        self, item: Deployment, known: Condition | None, status: str, reason: str, message: str, now_ns: int
    ) -> None:
        if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
            return
        since = known.last_transition_time if known is not None and known.status == status else None
        condition = Condition(
            type=PROGRESSING,
            status=status,
            reason=reason,
            message=message,
            last_transition_time=since or format_time(now_ns),
        )
        self._write(item, condition)

    def _write(self, item: Deployment, condition: Condition | None) -> None:
        others = tuple(each for each in item.status.conditions if each.type != PROGRESSING)
        conditions = others if condition is None else (*others, condition)
        self.writer.update(replace(item, status=replace(item.status, conditions=conditions)))

    def _newest(self, item: Deployment) -> ReplicaSet | None:
        """Return the ReplicaSet of the Deployment's current revision, or None."""
        revision = item.metadata.annotations.get(REVISION_ANNOTATION)
        for each in self.store.dependents(item.metadata.uid, ReplicaSet):
            if each.metadata.annotations.get(REVISION_ANNOTATION) == revision:
                return each
        return None


def _moves(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    """Return whether new pods were created, or became ready or available, or old pods were deleted."""
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )
