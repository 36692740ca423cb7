"""Copies of pods: further copies of a workload, and replacements for pods whose node was removed.

A copy has the same requests and constraints as its model. Claims that belong to a single pod (from StatefulSets,
ephemeral volumes, resource claim templates) are created for each copy; other claims are shared with the model. New claims
of a class that provisions volumes at once are bound to a volume that every node can reach, others are unbound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec.structs import replace

from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.workloads import Found, Objects, find_workload, template_of
from bayplan.base.errors import InputError
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.owned_pods import is_active, is_daemon_pod
from bayplan.cluster.store import ObjectStore
from bayplan.cluster.volume_controller import bound_claim, provisioned_volume
from bayplan.controllers.daemon_nodes import pinned_spec
from bayplan.controllers.pod_claims import POD_CLAIM_ANNOTATION
from bayplan.controllers.stateful_pods import claim_name, first_ordinal, with_identity
from bayplan.objects.meta import KubernetesObject, ObjectMeta, OwnerReference
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.pod import Pod, PodResourceClaimStatus, PodStatus
from bayplan.objects.policy import LimitRange, PriorityClass, ResourceQuota
from bayplan.objects.resource import ResourceClaim, ResourceClaimTemplate
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus, StorageClass
from bayplan.objects.volumes import Volume
from bayplan.objects.workloads import PodTemplateSpec, StatefulSet
from bayplan.plugins.pod_claims import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    claim_of_ephemeral,
    class_of_claim,
)

T = TypeVar("T", bound=KubernetesObject)

PENDING = PodStatus(phase="Pending")

_BINDING = (BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE)


class ClusterObjects(Objects, Protocol):
    """The objects of a cluster, and its time."""

    now_ns: int


class PodCopier:
    """Copies one pod.

    Args:
        model: the pod; its node and status are not copied.
        objects: a lookup of the pod's claims.
    """

    def __init__(self, model: Pod, objects: ObjectLookup) -> None:
        self.model = model
        self._objects = objects
        spec = model.spec
        self.spec = replace(spec, node_name="") if spec.node_name else spec
        owner = model.metadata.controller()
        self._own_claims = owner is not None and owner.kind == "StatefulSet"
        self._is_plain = not spec.resource_claims and not any(
            volume.ephemeral is not None or (self._own_claims and volume.persistent_volume_claim is not None)
            for volume in spec.volumes
        )

    def copy(self, name: str, uid: str = "") -> list[KubernetesObject]:
        """Return the objects of a copy: its claims, then the pod."""
        before = self.model.metadata
        metadata = ObjectMeta(
            name=name,
            generate_name=before.generate_name,
            namespace=before.namespace,
            uid=uid or f"copy-of-{before.namespace}/{name}",
            labels=before.labels,
            annotations=before.annotations,
            creation_timestamp=before.creation_timestamp,
            owner_references=before.owner_references,
        )
        pod = Pod(metadata=metadata, spec=self.spec, status=PENDING)
        return [pod] if self._is_plain else self._with_claims(pod)

    def _with_claims(self, pod: Pod) -> list[KubernetesObject]:
        found: list[KubernetesObject] = []
        volumes = []
        for volume in pod.spec.volumes:
            source = volume.persistent_volume_claim
            template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
            if template is not None:
                metadata = ObjectMeta(
                    name=claim_of_ephemeral(pod.metadata.name, volume.name),
                    namespace=pod.metadata.namespace,
                    labels=template.metadata.labels,
                    annotations=template.metadata.annotations,
                    owner_references=(_owner(pod),),
                )
                found += self._new_claim(PersistentVolumeClaim(metadata=metadata, spec=template.spec))
            elif source is not None and self._own_claims:
                volume, claim = self._own_claim(pod, volume, source.claim_name)
                found += self._new_claim(claim) if claim is not None else []
            volumes.append(volume)
        statuses = []
        for entry in pod.spec.resource_claims:
            if entry.resource_claim_template_name is None:
                continue
            key = f"{pod.metadata.namespace}/{entry.resource_claim_template_name}"
            template_item = self._objects.get(ResourceClaimTemplate, key)
            if template_item is None:
                raise InputError(
                    f"Pod {self.model.key} refers to ResourceClaimTemplate {key}, which is not in the source",
                    hint="a dump that includes resourceclaimtemplates",
                )
            name = f"{pod.metadata.name}-{entry.name}"
            metadata = ObjectMeta(
                name=name,
                namespace=pod.metadata.namespace,
                uid=f"claim-{pod.metadata.uid}-{entry.name}",
                annotations={POD_CLAIM_ANNOTATION: entry.name},
                owner_references=(_owner(pod),),
            )
            found.append(ResourceClaim(metadata=metadata, spec=template_item.spec.spec))
            statuses.append(PodResourceClaimStatus(name=entry.name, resource_claim_name=name))
        spec = replace(pod.spec, volumes=tuple(volumes))
        status = replace(pod.status, resource_claim_statuses=tuple(statuses))
        return [*found, replace(pod, spec=spec, status=status)]

    def _own_claim(self, pod: Pod, volume: Volume, claim_name: str) -> tuple[Volume, PersistentVolumeClaim | None]:
        """Return the volume of a StatefulSet's copy with the claim of that copy, and the claim if it has to be created."""
        before, after = f"-{self.model.metadata.name}", f"-{pod.metadata.name}"
        if not claim_name.endswith(before) or before == after:
            return volume, None
        name = claim_name.removesuffix(before) + after
        source = volume.persistent_volume_claim
        assert source is not None
        renamed = replace(volume, persistent_volume_claim=replace(source, claim_name=name))
        namespace = pod.metadata.namespace
        if self._objects.get(PersistentVolumeClaim, f"{namespace}/{name}") is not None:
            return renamed, None
        model = self._objects.get(PersistentVolumeClaim, f"{namespace}/{claim_name}")
        if model is None:
            return renamed, None
        annotations = {key: value for key, value in model.metadata.annotations.items() if key not in _BINDING}
        metadata = ObjectMeta(name=name, namespace=namespace, labels=model.metadata.labels, annotations=annotations)
        return renamed, PersistentVolumeClaim(metadata=metadata, spec=replace(model.spec, volume_name=""))

    def _new_claim(self, claim: PersistentVolumeClaim) -> list[KubernetesObject]:
        """Return a newly created claim, with its volume if the class provisions volumes immediately."""
        metadata = replace(claim.metadata, uid=f"claim-{claim.key}")
        claim = replace(claim, metadata=metadata, status=PersistentVolumeClaimStatus(phase="Pending"))
        storage_class = self._objects.get(StorageClass, class_of_claim(claim))
        if (
            storage_class is None
            or claim.spec.volume_name
            or storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
            or storage_class.provisioner in ("", NO_PROVISIONER)
        ):
            return [claim]
        volume = provisioned_volume(claim, storage_class, self._objects, None)
        return [volume, bound_claim(claim, volume)]


class _WithClaims:
    """The objects of a lookup, and claims that don't exist, as models of new ones."""

    def __init__(self, objects: ObjectLookup, claims: Iterable[PersistentVolumeClaim]) -> None:
        self._objects = objects
        self._claims = {claim.key: claim for claim in claims}

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object by its key, or None."""
        claim = self._claims.get(key) if kind is PersistentVolumeClaim else None
        return claim if isinstance(claim, kind) else self._objects.get(kind, key)


def _claims_of_template(item: StatefulSet, pod_name: str) -> list[PersistentVolumeClaim]:
    """Return the claims of a pod of a StatefulSet, as its templates describe them."""
    namespace = item.metadata.namespace or "default"
    return [
        replace(template, metadata=replace(template.metadata, name=claim_name(template, pod_name), namespace=namespace))
        for template in item.spec.volume_claim_templates
    ]


def _owner(pod: Pod) -> OwnerReference:
    return OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)


# --- pods that come back ----------------------------------------------------------------------------------------------


def replacement(pod: Pod, objects: ObjectLookup) -> list[KubernetesObject]:
    """Return the objects of the pod that replaces a deleted one: its claims, then the pod.

    The replacement keeps the name, so that it can be compared with the deleted pod; most controllers would generate a
    new name.
    """
    return PodCopier(pod, objects).copy(pod.metadata.name, f"{pod.metadata.uid}-again")


def replacement_of_victim(pod: Pod, objects: ObjectLookup) -> list[KubernetesObject]:
    """Return the objects of the pod that replaces an evicted one whose node still exists; [] if nothing recreates it.

    A DaemonSet creates its pod again for the same node.
    """
    if is_recreated_elsewhere(pod):
        return replacement(pod, objects)
    if not is_daemon_pod(pod) or not is_active(pod):
        return []
    return replacement(replace(pod, spec=pinned_spec(pod.spec, pod.spec.node_name)), objects)


# --- more copies of a workload ----------------------------------------------------------------------------------------


def check_has_replicas(found: Found) -> None:
    """Raise if a workload is a DaemonSet, or a pod of one: the nodes determine how many pods it has.

    Raises:
        InputError: the workload is a DaemonSet.
    """
    if found.kind == "DaemonSet" or any(map(is_daemon_pod, found.pods[:1])):
        raise InputError(
            "workload",
            got=f"{found.label}, which has one pod on each of its nodes",
            wanted="a workload whose number of pods can change, not a DaemonSet",
            hint="what-if add-nodes=COUNT:SHAPE for more nodes",
        )


class Template:
    """Creates further copies of a workload.

    Args:
        found: the workload.
        cluster: the cluster with the workload; its priority classes, limit ranges and quotas apply.
        numbers: the numbers of the next copies by name without number, shared by all templates whose copies are in one
            cluster; None for a template alone.

    Attributes:
        pod: the pod that is copied.
        label: the name of the workload.
        comes_from: the origin of the copied pod, for the assumptions of an answer.
        provisions: whether volumes are provisioned for copies before they are scheduled.

    Raises:
        InputError: the workload is a DaemonSet or has neither pods nor a template, or admission rejects its pods.
    """

    def __init__(self, found: Found, cluster: ClusterObjects, numbers: dict[str, int] | None = None) -> None:
        check_has_replicas(found)
        self.label = found.label
        self._cluster = cluster
        objects: ObjectLookup = cluster
        template = template_of(found.item) if found.item is not None else None
        if found.pods:
            self.pod = max(found.pods, key=lambda pod: pod.metadata.creation_timestamp or "")
            self.comes_from = f"pod {self.pod.key}"
            if not self.pod.metadata.uid:
                # The pod was never in a cluster, so apply the API server's defaults and admission.
                self.pod = replace(self.pod, spec=admission_of(cluster).admit(self.pod))
        elif found.item is not None and template is not None:
            self.pod, objects = self._from_template(found.item, template)
            self.comes_from = "its template"
        else:
            raise InputError(f"{found.label}: the source has neither its pods nor its template, so it can't be copied")
        self._copier = PodCopier(self.pod, objects)
        self._base = f"{found.name}-copy"
        owner = self.pod.metadata.controller()
        if owner is not None and owner.kind == "StatefulSet":
            self._base = owner.name
        self._first = first_ordinal(found.item) if isinstance(found.item, StatefulSet) else 0
        self._numbers: dict[str, int] = {} if numbers is None else numbers
        self.provisions = any(isinstance(item, PersistentVolume) for item in self._copier.copy(self._base))

    def _from_template(self, item: KubernetesObject, template: PodTemplateSpec) -> tuple[Pod, ObjectLookup]:
        """Return a pod of a workload that has none, and the lookup of its claims."""
        kind, name = type(item).__name__, f"{item.metadata.name}-0"
        spec = template.spec
        objects: ObjectLookup = self._cluster
        if isinstance(item, StatefulSet):
            # No copy has this name, so that each gets new claims.
            name = f"{item.metadata.name}-template"
            spec = with_identity(spec, item, name)
            objects = _WithClaims(self._cluster, _claims_of_template(item, name))
        metadata = ObjectMeta(
            name=name,
            namespace=item.metadata.namespace or "default",
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=(
                OwnerReference(
                    api_version="apps/v1", kind=kind, name=item.metadata.name, uid=item.metadata.uid, controller=True
                ),
            ),
        )
        pod = Pod(metadata=metadata, spec=spec)
        return replace(pod, spec=admission_of(self._cluster).admit(pod)), objects

    def next(self) -> list[KubernetesObject]:
        """Return the objects of the next copy, the pod last. No pod of the cluster, and no other copy, has its name."""
        key = f"{self.pod.metadata.namespace}/{self._base}"
        number = self._numbers.get(key, self._first)
        while self._cluster.get(Pod, f"{key}-{number}") is not None:
            number += 1
        self._numbers[key] = number + 1
        return self._copier.copy(f"{self._base}-{number}")

    def begin(self) -> None:
        """Restart the numbering of copies. Call it for all templates that share their numbers."""
        self._numbers.clear()


def templates_of(workloads: Iterable[str], cluster: ClusterObjects) -> list[Template]:
    """Return a template of each workload; no two copies have the same name.

    Raises:
        InputError: a workload does not exist or can't be copied, or two of the names mean the same workload.
    """
    numbers = dict[str, int]()
    names = dict[str, str]()
    found = []
    for name in workloads:
        workload = find_workload(name, cluster)
        if (other := names.get(workload.label)) is not None:
            got = f"'{other}' and '{name}', which are the same workload"
            raise InputError("workloads", got=got, wanted="different workloads", hint=f"{workload.label}=2")
        names[workload.label] = name
        found.append(Template(workload, cluster, numbers))
    return found


def admission_of(
    cluster: ClusterObjects, namespaces: Sequence[str] = (), pods: Iterable[Pod] | None = None
) -> PodAdmission:
    """Return pod admission with a cluster's priority classes and limit ranges and, in `namespaces`, its quotas and their usage.

    `pods`: the pods that use the quotas; by default those of the cluster.
    """
    store = ObjectStore(RandomStreams(0).stream("questions.uids"))
    for item in (*cluster.all(PriorityClass), *cluster.all(LimitRange)):
        store.add(item, cluster.now_ns)
    for quota in cluster.all(ResourceQuota) if namespaces else ():
        store.add(quota, cluster.now_ns)
    if namespaces and any(True for _ in cluster.all(ResourceQuota)):
        wanted = frozenset(namespaces)
        for pod in cluster.all(Pod) if pods is None else pods:
            if pod.metadata.namespace in wanted:
                store.add(pod, cluster.now_ns)
    return PodAdmission(store)


def quota_namespaces(cluster: ClusterObjects) -> Mapping[str, None]:
    """Return the namespaces that have quotas, as keys."""
    return {item.metadata.namespace: None for item in cluster.all(ResourceQuota)}
