"""The controller of ReplicationControllers: a ReplicaSet's rules under the older name."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.controllers.replica_set import ReplicaController
from bayplan.objects.workloads import PodTemplateSpec, ReplicationController

_NO_TEMPLATE = PodTemplateSpec()


class ReplicationControllerController(ReplicaController[ReplicationController]):
    """Reconcile ReplicationControllers."""

    kind = ReplicationController
    component = "replication-controller"

    def find(self, key: str) -> ReplicationController | None:
        """Return a ReplicationController, or None."""
        return self.store.get(ReplicationController, key)

    def wanted(self, item: ReplicationController) -> tuple[int, int, PodTemplateSpec]:
        """Return replicas (1 by default), ``minReadySeconds`` and template; without a template it asks for no pods."""
        spec = item.spec
        if spec.template is None:
            return 0, spec.min_ready_seconds, _NO_TEMPLATE
        return 1 if spec.replicas is None else spec.replicas, spec.min_ready_seconds, spec.template

    def write_status(
        self, item: ReplicationController, replicas: int, ready: int, available: int, terminating: int
    ) -> None:
        """Store the status if it changed. It does not count terminating pods."""
        status = replace(
            item.status,
            replicas=replicas,
            fully_labeled_replicas=replicas,
            ready_replicas=ready,
            available_replicas=available,
            observed_generation=item.metadata.generation,
        )
        if status != item.status:
            self.writer.update(replace(item, status=status))
