"""What controllers did, as events for people: which write is told of which object, in the words of kube-controller-manager.

Controllers of `bayplan.cluster` tell nothing themselves; what they did can be seen from what they wrote.
"""

from __future__ import annotations

from bayplan.apiserver.bridge.event_recorder import WARNING, EventRecorder
from bayplan.apiserver.bridge.object_writer import AwaitsAnswers, WriteRefused
from bayplan.base.errors import InputError
from bayplan.cluster.controllers.controller import Controller
from bayplan.cluster.controllers.job_status import COMPLETE, FAILED, SUSPENDED, find_condition, finish_condition
from bayplan.cluster.controllers.node_lifecycle import NodeLifecycleController
from bayplan.cluster.store import ObjectStore
from bayplan.cluster.volume_controller import PROVISIONED_BY
from bayplan.objects.kinds import find_kind
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.objects.workloads import CronJob, Job, ReplicaSet, StatefulSet

_COMPONENTS = {
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replication-controller",
    "StatefulSet": "statefulset-controller",
    "DaemonSet": "daemonset-controller",
    "Job": "job-controller",
}
_DEPLOYMENTS, _CRON_JOBS, _JOBS = "deployment-controller", "cronjob-controller", "job-controller"
_STATEFUL = "statefulset-controller"
_NODES, _TAINTS, _BUDGETS = "node-controller", "taint-eviction-controller", "controllermanager"


class Narrator:
    """Tells what controllers did.

    Args:
        store: typed objects.
        recorder: of events.

    Attributes:
        actor: the controller that is at work, or None.
    """

    def __init__(self, store: ObjectStore, recorder: EventRecorder) -> None:
        self._store = store
        self._recorder = recorder
        self.actor: Controller | None = None

    def added(self, item: KubernetesObject) -> None:
        """Tell of an object that a controller made."""
        owner = self._owner(item)
        record, name = self._recorder.record, item.metadata.name
        if isinstance(item, Pod) and owner is not None:
            component = _COMPONENTS.get(type(owner).__name__)
            if isinstance(owner, StatefulSet):
                text = f"create Pod {name} in StatefulSet {owner.metadata.name} successful"
                record(owner, "SuccessfulCreate", text, _STATEFUL)
            elif component is not None:
                record(owner, "SuccessfulCreate", f"Created pod: {name}", component)
        elif isinstance(item, ReplicaSet) and owner is not None:
            if item.spec.replicas:
                text = f"Scaled up replica set {name} from 0 to {item.spec.replicas}"
                record(owner, "ScalingReplicaSet", text, _DEPLOYMENTS)
        elif isinstance(item, Job) and owner is not None:
            record(owner, "SuccessfulCreate", f"Created job {name}", _CRON_JOBS)
        elif isinstance(item, PersistentVolumeClaim):
            self._tell_set(item)
        elif isinstance(item, PersistentVolume) and PROVISIONED_BY in item.metadata.annotations:
            self._tell_claim(item)

    def _tell_set(self, claim: PersistentVolumeClaim) -> None:
        """Tell the StatefulSet of a claim that was made for one of its pods."""
        namespace, name = claim.metadata.namespace, claim.metadata.name
        for owner in self._store.all(StatefulSet) if self._is(StatefulSet) else ():
            for template in owner.spec.volume_claim_templates:
                prefix = f"{template.metadata.name}-{owner.metadata.name}-"
                if owner.metadata.namespace == namespace and name.startswith(prefix):
                    pod = name.removeprefix(f"{template.metadata.name}-")
                    text = f"create Claim {name} Pod {pod} in StatefulSet {owner.metadata.name} success"
                    self._recorder.record(owner, "SuccessfulCreate", text, _STATEFUL)
                    return

    def _tell_claim(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        key = f"{reference.namespace}/{reference.name}" if reference is not None else ""
        claim = self._store.get(PersistentVolumeClaim, key)
        if claim is not None:
            text = f"Successfully provisioned volume {volume.metadata.name}"
            component = volume.metadata.annotations[PROVISIONED_BY]
            self._recorder.record(claim, "ProvisioningSucceeded", text, component)

    def refused(self, item: KubernetesObject, problem: WriteRefused) -> None:
        """Tell of an object that a controller could not make, unless webhooks just have to be asked first."""
        if isinstance(problem, AwaitsAnswers):
            return
        owner = self._owner(item)
        component = _COMPONENTS.get(type(owner).__name__) if owner is not None else None
        if isinstance(item, Pod) and owner is not None and component is not None:
            text = f"Error creating: {problem.problem.message}"
            if isinstance(owner, StatefulSet):
                name = f"{item.metadata.name} in StatefulSet {owner.metadata.name}"
                text = f"create Pod {name} failed error: {problem.problem.message}"
            self._recorder.record(owner, "FailedCreate", text, component, type_=WARNING)

    def updated(self, old: KubernetesObject, new: KubernetesObject) -> None:
        """Tell of an object that a controller changed."""
        if isinstance(old, ReplicaSet) and isinstance(new, ReplicaSet):
            self._tell_scaling(old, new)
        elif isinstance(old, Job) and isinstance(new, Job):
            self._tell_progress(old, new)
        elif isinstance(old, CronJob) and isinstance(new, CronJob):
            self._tell_completed(old, new)
        elif isinstance(new, PodDisruptionBudget) and isinstance(old, PodDisruptionBudget):
            fresh = new.status.observed_generation != old.status.observed_generation
            if fresh and new.status.expected_pods == 0:
                self._recorder.record(new, "NoPods", "No matching pods found", _BUDGETS)

    def _tell_scaling(self, old: ReplicaSet, new: ReplicaSet) -> None:
        before, after = old.spec.replicas or 0, new.spec.replicas or 0
        owner = self._owner(new)
        if before != after and owner is not None:
            direction = "up" if after > before else "down"
            text = f"Scaled {direction} replica set {new.metadata.name} from {before} to {after}"
            self._recorder.record(owner, "ScalingReplicaSet", text, _DEPLOYMENTS)

    def _tell_progress(self, old: Job, new: Job) -> None:
        ended = finish_condition(new)
        if ended is not None and finish_condition(old) is None:
            if ended.type == COMPLETE:
                self._recorder.record(new, "Completed", "Job completed", _JOBS)
            elif ended.type == FAILED:
                self._recorder.record(new, ended.reason, ended.message, _JOBS, type_=WARNING)
        suspended = find_condition(new, SUSPENDED) is not None
        if suspended and find_condition(old, SUSPENDED) is None:
            self._recorder.record(new, "Suspended", "Job suspended", _JOBS)
        elif not suspended and find_condition(old, SUSPENDED) is not None:
            self._recorder.record(new, "Resumed", "Job resumed", _JOBS)

    def _tell_completed(self, old: CronJob, new: CronJob) -> None:
        left = {reference.uid for reference in new.status.active}
        for reference in old.status.active:
            job = self._store.get(Job, f"{new.metadata.namespace}/{reference.name}")
            if reference.uid in left:
                continue
            ended = finish_condition(job) if job is not None else None
            if ended is not None:
                text = f"Saw completed job: {reference.name}, condition: {ended.type}"
                self._recorder.record(new, "SawCompletedJob", text, _CRON_JOBS)
            elif job is None:
                self._recorder.record(new, "MissingJob", f"Active job went missing: {reference.name}", _CRON_JOBS)

    def deleted(self, item: KubernetesObject) -> None:
        """Tell of an object that a controller deleted."""
        owner, name = self._owner(item), item.metadata.name
        if isinstance(item, Pod) and isinstance(self.actor, NodeLifecycleController):
            self._recorder.record(item, "TaintManagerEviction", f"Marking for deletion Pod {item.key}", _TAINTS)
        elif isinstance(item, Pod) and owner is not None and self._is(type(owner)):
            component = _COMPONENTS.get(type(owner).__name__)
            if isinstance(owner, StatefulSet):
                text = f"delete Pod {name} in StatefulSet {owner.metadata.name} successful"
                self._recorder.record(owner, "SuccessfulDelete", text, _STATEFUL)
            elif component is not None:
                self._recorder.record(owner, "SuccessfulDelete", f"Deleted pod: {name}", component)
        elif isinstance(item, Job) and owner is not None and self._is(CronJob):
            self._recorder.record(owner, "SuccessfulDelete", f"Deleted job {name}", _CRON_JOBS)

    def _is(self, kind: type[KubernetesObject]) -> bool:
        """Say whether the controller of a kind of workload is at work."""
        return self.actor is not None and self.actor.kind is kind

    def failed(self, kind: type[KubernetesObject], key: str, problem: InputError) -> None:
        """Tell of an object that a controller could make nothing of."""
        item = self._store.get(CronJob, key) if kind is CronJob else None
        if item is not None and not isinstance(problem, WriteRefused):
            text = f'unparseable schedule: "{item.spec.schedule}" : {problem}'
            self._recorder.record(item, "UnparseableSchedule", text, _CRON_JOBS, type_=WARNING)

    def registered(self, node: Node) -> None:
        """Tell that controllers know of a node."""
        name = node.metadata.name
        text = f"Node {name} event: Registered Node {name} in Controller"
        self._recorder.record(node, "RegisteredNode", text, _NODES)

    def _owner(self, item: KubernetesObject) -> KubernetesObject | None:
        reference = item.metadata.controller()
        kind = find_kind(reference.api_version, reference.kind) if reference is not None else None
        if reference is None or kind is None:
            return None
        owner = self._store.get(kind.struct, f"{item.metadata.namespace}/{reference.name}")
        return owner if owner is not None and owner.metadata.uid == reference.uid else None
