"""The ReplicaSet controller: maintains ``spec.replicas`` active pods, created from the template.

The same rules apply to ReplicationControllers (`ReplicaController` is the base of both). A reconcile that has nothing
to create or delete costs the same for 10 pods as for 10,000: it reads sizes that the store maintains.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.base.go_text.times import format_time
from bayplan.cluster.owned_pods import OwnedPods
from bayplan.controllers.availability import count_available
from bayplan.controllers.controller import Controller, ReconcileResult, RejectedWrites
from bayplan.controllers.pod_ranking import rank_for_deletion
from bayplan.controllers.writer import AwaitsAnswers, WriteRejected
from bayplan.objects.meta import Condition
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import PodTemplateSpec, ReplicaSet, ReplicationController

R = TypeVar("R", ReplicaSet, ReplicationController)

REPLICA_FAILURE = "ReplicaFailure"
"""The type of the condition that states why pods can't be created or deleted."""


class PodCounts(NamedTuple):
    """The numbers of pods in a status."""

    active: int
    ready: int
    available: int
    terminating: int


class ReplicaController(Controller, Generic[R]):
    """Maintains a number of pods; the base class of the controllers of ReplicaSets and ReplicationControllers."""

    @abstractmethod
    def find(self, key: str) -> R | None:
        """Return the object with this key, or None."""

    @abstractmethod
    def wanted(self, item: R) -> tuple[int, int, PodTemplateSpec]:
        """Return an object's requested replicas, its ``minReadySeconds`` and its template."""

    @abstractmethod
    def write_status(self, item: R, counts: PodCounts, conditions: tuple[Condition, ...]) -> None:
        """Write the status of an object if it changed."""

    def related_pods(self, item: R, owned: OwnedPods) -> list[Pod]:
        """Return the pods that count per node when pods are ranked for deletion."""
        return list(owned)

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Create or delete pods until their number matches the request, then write the status."""
        item = self.find(key)
        if item is None:
            return None
        uid = item.metadata.uid
        replicas, min_ready_seconds, template = self.wanted(item)
        owned = self.store.owned_pods(uid)
        # The status reports the state before this reconcile; the pods' own events trigger the next count.
        active = len(owned.active)
        available, soonest = count_available(owned, min_ready_seconds, now_ns)
        counts = PodCounts(active, len(owned.ready), available, len(owned.terminating))
        rejected = RejectedWrites()
        if item.metadata.deletion_timestamp is None:
            self._manage(item, owned, replicas, template, rejected, now_ns)
            if abs(active - replicas) > self.burst:
                soonest = now_ns
        conditions = item.status.conditions
        if not isinstance(rejected.problem, AwaitsAnswers):
            conditions = _with_failure(conditions, rejected.problem, active < replicas, now_ns)
        self.write_status(item, counts, conditions)
        return rejected.result(soonest, now_ns)

    def _manage(
        self,
        item: R,
        owned: OwnedPods,
        replicas: int,
        template: PodTemplateSpec,
        rejected: RejectedWrites,
        now_ns: int,
    ) -> None:
        active = len(owned.active)
        if active < replicas:
            # The next pods are like the first, so they are not tried after a rejection.
            with rejected:
                prepared = self.pods.prepare(item, template)
                for _ in range(min(replicas - active, self.burst)):
                    self.create_pod(item, prepared, now_ns)
        elif active > replicas:
            surplus = self._surplus(item, owned, active - replicas, now_ns)
            self.write_each(item.key, surplus, lambda pod: self.delete_pod(item, pod, now_ns), rejected)

    def _surplus(self, item: R, owned: OwnedPods, count: int, now_ns: int) -> list[Pod]:
        pods = list(owned.active.values())
        if count < len(pods):
            pods = rank_for_deletion(pods, self.related_pods(item, owned), now_ns)
        return pods[:count]


class ReplicaSetController(ReplicaController[ReplicaSet]):
    """Reconciles ReplicaSets."""

    kind = ReplicaSet
    component = "replicaset-controller"

    def find(self, key: str) -> ReplicaSet | None:
        """Return a ReplicaSet, or None."""
        return self.store.get(ReplicaSet, key)

    def wanted(self, item: ReplicaSet) -> tuple[int, int, PodTemplateSpec]:
        """Return replicas (1 by default), ``minReadySeconds`` and template."""
        spec = item.spec
        return 1 if spec.replicas is None else spec.replicas, spec.min_ready_seconds, spec.template

    def related_pods(self, item: ReplicaSet, owned: OwnedPods) -> list[Pod]:
        """Return the pods of all ReplicaSets of the same Deployment."""
        deployment = item.metadata.controller()
        if deployment is None:
            return list(owned)
        siblings = self.store.dependents(deployment.uid, ReplicaSet)
        return [pod for sibling in siblings for pod in self.store.owned_pods(sibling.metadata.uid)]

    def write_status(self, item: ReplicaSet, counts: PodCounts, conditions: tuple[Condition, ...]) -> None:
        """Write the status if it changed."""
        status = replace(
            item.status,
            replicas=counts.active,
            fully_labeled_replicas=counts.active,
            ready_replicas=counts.ready,
            available_replicas=counts.available,
            terminating_replicas=counts.terminating,
            observed_generation=item.metadata.generation,
            conditions=conditions,
        )
        if status != item.status:
            self.writer.update(replace(item, status=status))


def _with_failure(
    conditions: tuple[Condition, ...], problem: InputError | None, is_creation: bool, now_ns: int
) -> tuple[Condition, ...]:
    """Return conditions with `REPLICA_FAILURE` if a creation or deletion of a pod was rejected, else without it.

    A condition that exists is not changed, even if there is another problem now, as upstream.
    """
    is_known = any(each.type == REPLICA_FAILURE for each in conditions)
    if problem is None:
        return tuple(each for each in conditions if each.type != REPLICA_FAILURE) if is_known else conditions
    if is_known:
        return conditions
    failure = Condition(
        type=REPLICA_FAILURE,
        status="True",
        reason="FailedCreate" if is_creation else "FailedDelete",
        message=problem.message if isinstance(problem, WriteRejected) else str(problem),
        last_transition_time=format_time(now_ns),
    )
    return (*conditions, failure)


_NO_TEMPLATE = PodTemplateSpec()


class ReplicationControllerController(ReplicaController[ReplicationController]):
    """Reconciles ReplicationControllers."""

    kind = ReplicationController
    component = "replication-controller"

    def find(self, key: str) -> ReplicationController | None:
        """Return a ReplicationController, or None."""
        return self.store.get(ReplicationController, key)

    def wanted(self, item: ReplicationController) -> tuple[int, int, PodTemplateSpec]:
        """Return replicas (1 by default), ``minReadySeconds`` and template; 0 replicas without a template."""
        spec = item.spec
        if spec.template is None:
            return 0, spec.min_ready_seconds, _NO_TEMPLATE
        return 1 if spec.replicas is None else spec.replicas, spec.min_ready_seconds, spec.template

    def write_status(self, item: ReplicationController, counts: PodCounts, conditions: tuple[Condition, ...]) -> None:
        """Write the status if it changed; it has no field for terminating pods."""
        status = replace(
            item.status,
            replicas=counts.active,
            fully_labeled_replicas=counts.active,
            ready_replicas=counts.ready,
            available_replicas=counts.available,
            observed_generation=item.metadata.generation,
            conditions=conditions,
        )
        if status != item.status:
            self.writer.update(replace(item, status=status))
