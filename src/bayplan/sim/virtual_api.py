"""Writes to a virtual cluster: set the fields that an API server sets, and keep those that belong to the server.

This is the part of an API server that a virtual cluster needs: defaults, admission, generated names, generations. The
API server in `bayplan.apiserver` has rules of its own for documents, and stores the results through this module as
typed objects.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.job_labels import label_job
from bayplan.cluster.kubelet import VirtualKubelet
from bayplan.cluster.naming import NameGenerator
from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.store import Kind, ObjectStore, object_key
from bayplan.objects.defaults import default_object
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodCondition
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.objects.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

T = TypeVar("T", bound=KubernetesObject)

_WORKLOADS: frozenset[Kind] = frozenset(
    (CronJob, DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet)
)
_WITH_GENERATION = _WORKLOADS | {Pod, PodDisruptionBudget}

# Annotations that the Deployment controller would only write again if they were lost.
_CONTROLLER_ANNOTATIONS = "deployment.kubernetes.io/"

_GATED = PodCondition(
    type="PodScheduled",
    status="False",
    reason="SchedulingGated",
    message="Scheduling is blocked due to non-empty scheduling gates",
)


class Arrival:
    """Writes objects to a store.

    Args:
        store: the store.
        kubelet: the kubelet, which receives pods that arrive on an existing node, and the pods of a new node.
        admission: the admission of new pods.
        names: generates names from prefixes.
    """

    def __init__(
        self, store: ObjectStore, kubelet: VirtualKubelet, admission: PodAdmission, names: NameGenerator
    ) -> None:
        self._store = store
        self._kubelet = kubelet
        self._admission = admission
        self._names = names

    def apply(self, item: KubernetesObject, now_ns: int) -> None:
        """Create an object, or change the existing object with its kind and key. See `VirtualCluster.apply`."""
        if isinstance(item, Pod):
            item = self._named(item)
            pod = self._store.pods.get(object_key(item.metadata))
            if pod is None:
                self._create_pod(item, now_ns)
            else:
                self._change_pod(pod, item, now_ns)
            return
        item = self._named(default_object(item))
        old = self._store.get(type(item), object_key(item.metadata))
        if old is not None:
            self._change(old, item)
        elif isinstance(item, Job):
            self._store.add(label_job(item, self._store), now_ns)
        else:
            self._store.add(_first_generation(item), now_ns)
            if isinstance(item, Node):
                self._take_pods_of(item, now_ns)

    def put(self, item: KubernetesObject, now_ns: int) -> None:
        """Store a version of an object unchanged. See `VirtualCluster.put`."""
        old = self._store.get(type(item), object_key(item.metadata))
        if old is None:
            self._store.add(self._taken(item, "", now_ns), now_ns)
            if isinstance(item, Node):
                self._take_pods_of(item, now_ns)
            return
        before = old.metadata
        metadata = replace(
            item.metadata,
            uid=before.uid,
            resource_version=before.resource_version,
            creation_timestamp=item.metadata.creation_timestamp or before.creation_timestamp,
        )
        item = replace(item, metadata=metadata)
        if _ends(old, item):
            self._store.remove(type(item), object_key(metadata))
        elif item != old:
            node_before = old.spec.node_name if isinstance(old, Pod) else ""
            self._store.update(self._taken(item, node_before, now_ns))

    def _taken(self, item: KubernetesObject, node_before: str, now_ns: int) -> KubernetesObject:
        """Pass a pod that has just arrived on an existing node to the node's kubelet, and return the kubelet's version.

        Return other objects unchanged.
        """
        if not isinstance(item, Pod) or not item.spec.node_name or item.spec.node_name == node_before:
            return item
        if item.spec.node_name not in self._store.nodes:
            return item
        if not item.metadata.uid:
            item = replace(item, metadata=replace(item.metadata, uid=self._store.new_uid()))
        return self._kubelet.add_pod(item, now_ns)

    def _named(self, item: T) -> T:
        """Return an object with a name, generated from its prefix if it has none; pods also get a namespace."""
        metadata = item.metadata
        namespace = metadata.namespace or ("default" if isinstance(item, Pod) else "")
        if metadata.name or not metadata.generate_name:
            return (
                item
                if namespace == metadata.namespace
                else replace(item, metadata=replace(metadata, namespace=namespace))
            )
        name = self._names.generate(metadata.generate_name, namespace, self._store.keys(type(item)))
        return replace(item, metadata=replace(metadata, name=name, namespace=namespace))

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _create_pod(self, pod: Pod, now_ns: int) -> None:
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        if not metadata.uid:
            spec = self._admission.admit(pod)
            if self._admission.policies.has_quotas(metadata.namespace):
                self._admission.charge(replace(pod, spec=spec))
            metadata = replace(metadata, uid=self._store.new_uid(), generation=metadata.generation or 1)
        if not status.phase:
            conditions = status.conditions
            if spec.scheduling_gates and not conditions:
                conditions = (_GATED,)
            status = replace(status, phase="Pending", conditions=conditions)
        pod = replace(pod, metadata=metadata, spec=spec, status=status)
        if spec.node_name and spec.node_name in self._store.nodes:
            pod = self._kubelet.add_pod(pod, now_ns)
        self._store.add(pod, now_ns)

    def _change_pod(self, old: Pod, new: Pod, now_ns: int) -> None:
        spec = new.spec if new.metadata.uid else self._admission.admit(new)
        arrives = bool(spec.node_name) and not old.spec.node_name
        if not spec.node_name and old.spec.node_name:
            spec = replace(spec, node_name=old.spec.node_name)
        new = _merged(old, replace(new, spec=spec))
        if new == old:
            return
        if arrives and spec.node_name in self._store.nodes:
            new = self._kubelet.add_pod(new, now_ns)
        self._update(old, new)

    def _take_pods_of(self, node: Node, now_ns: int) -> None:
        """Pass pods that were bound to a new node before it existed to the node's kubelet."""
        for pod in self._store.pods_on(node.metadata.name):
            taken = self._kubelet.add_pod(pod, now_ns)
            if taken is not pod:
                self._store.update(taken)

    # --- other kinds --------------------------------------------------------------------------------------------------

    def _change(self, old: KubernetesObject, new: KubernetesObject) -> None:
        if isinstance(old, Job) and isinstance(new, Job):
            # The selector and the labels of its pods were set when the Job was created, and cannot change.
            template = replace(new.spec.template, metadata=old.spec.template.metadata)
            spec = replace(new.spec, selector=old.spec.selector, template=template)
            new = replace(new, spec=spec)
        new = _merged(old, new)
        if new != old:
            self._update(old, new)

    # --- both ---------------------------------------------------------------------------------------------------------

    def _update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        """Store a new version of an object; remove an object that only its finalizers have preserved."""
        if _ends(old, new):
            self._store.remove(type(new), object_key(new.metadata))
        else:
            self._store.update(new)


def _first_generation(item: T) -> T:
    if type(item) not in _WITH_GENERATION or item.metadata.generation:
        return item
    return replace(item, metadata=replace(item.metadata, generation=1))


def _ends(old: KubernetesObject, new: KubernetesObject) -> bool:
    """Return whether a new version of a terminating object has no finalizers left. Running pods end on their node."""
    if not old.metadata.finalizers or new.metadata.finalizers or new.metadata.deletion_timestamp is None:
        return False
    return not isinstance(new, Pod) or not new.spec.node_name or is_finished(new)


def _merged(old: T, new: T) -> T:
    """Return the new version of an object, with the server's fields from the old version.

    Other missing fields come from the old version, too, unless the new version has the object's uid: then it was read
    from the cluster and changed, so what it lacks was removed.
    """
    before, metadata = old.metadata, new.metadata
    owners, finalizers = metadata.owner_references, metadata.finalizers
    if metadata.uid != before.uid:
        owners, finalizers = owners or before.owner_references, finalizers or before.finalizers
    changes: dict[str, Any] = {}
    generation = before.generation
    if hasattr(old, "spec"):
        spec_before, spec = old.spec, getattr(new, "spec", None)
        if spec == spec_before:
            # Keep the same object: a comparison by identity then shows that nothing has changed.
            changes["spec"] = spec_before
        elif type(old) in _WITH_GENERATION:
            generation += 1
    if hasattr(old, "status"):
        status = getattr(new, "status", None)
        if type(old) in _WORKLOADS or status is None or status == type(status)():
            changes["status"] = old.status
    noted = {name: text for name, text in before.annotations.items() if name.startswith(_CONTROLLER_ANNOTATIONS)}
    annotations = {**noted, **metadata.annotations} if noted else metadata.annotations
    changes["metadata"] = replace(
        metadata,
        uid=before.uid,
        generate_name=before.generate_name,
        resource_version=before.resource_version,
        generation=generation,
        labels=before.labels if metadata.labels == before.labels else metadata.labels,
        annotations=before.annotations if annotations == before.annotations else annotations,
        creation_timestamp=before.creation_timestamp,
        deletion_timestamp=before.deletion_timestamp,
        deletion_grace_period_seconds=before.deletion_grace_period_seconds,
        owner_references=owners,
        finalizers=finalizers,
    )
    return replace(new, **changes)
