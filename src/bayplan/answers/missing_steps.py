"""Steps that create the objects that a pod refers to and the cluster lacks: volumes, volume claims and resource claims."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from bayplan.analysis.filter_matrix import VOLUME_PLUGINS
from bayplan.answers.pod_diagnosis import PodDiagnosis
from bayplan.answers.steps import Step, StepKind
from bayplan.answers.trial import Trial
from bayplan.objects.meta import KubernetesObject, ObjectMeta, ObjectReference, OwnerReference
from bayplan.objects.pod import Pod, PodResourceClaimStatus
from bayplan.objects.resource import ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from bayplan.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
)
from bayplan.plugins.pod_claims import claim_name_of


def missing_steps(diagnosis: PodDiagnosis, trial: Trial) -> Iterator[Step]:
    """Yield a step that creates missing volumes and their claims, a step that creates missing resource claims, and both in one."""
    volumes, devices = _missing_volumes(diagnosis, trial), _missing_devices(diagnosis, trial)
    if volumes is not None:
        yield volumes
    if devices is not None:
        yield devices
    if volumes is not None and devices is not None:
        yield Step(
            StepKind.CREATE,
            f"{volumes.text} and {devices.text.removeprefix('create ')}",
            "VolumeBinding",
            adds=(*volumes.adds, *devices.adds),
            edit_pod=devices.edit_pod,
            parts=(volumes.text, devices.text),
        )


def _missing_volumes(diagnosis: PodDiagnosis, trial: Trial) -> Step | None:
    """Return a step that creates the volumes that the pod's claims lack, and missing claims; None if no volume is missing."""
    if not set(diagnosis.matrix.everywhere) & VOLUME_PLUGINS:
        return None
    pod = diagnosis.pod
    namespace, shown, objects = pod.metadata.namespace, list[str](), list[KubernetesObject]()
    for volume in pod.spec.volumes:
        name = claim_name_of(pod.metadata.name, volume)
        claim = trial.catalog.get(PersistentVolumeClaim, f"{namespace}/{name}") if name else None
        bound_to = claim.spec.volume_name if claim is not None else ""
        if not name or (bound_to and trial.catalog.get(PersistentVolume, bound_to) is not None):
            continue
        if ("PersistentVolumeClaim" if claim is None else "PersistentVolume") in trial.unread:
            # The source could not read this kind, so the cluster may have the object.
            return None
        key = f"PersistentVolumeClaim {namespace}/{name}"
        shown.append(f"{key} with a volume" if claim is None else f"a volume for {key}")
        found, made = bound_pair(claim, namespace, name, bound_to or f"pv-for-{namespace}-{name}")
        if claim is None and volume.ephemeral is not None:
            owner = OwnerReference(
                api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
            )
            made = replace(made, metadata=replace(made.metadata, owner_references=(owner,)))
        objects += (found, made)
    return (
        Step(StepKind.CREATE, f"create {' and '.join(shown)}", "VolumeBinding", adds=tuple(objects)) if shown else None
    )


def _missing_devices(diagnosis: PodDiagnosis, trial: Trial) -> Step | None:
    """Return a step that creates the missing ResourceClaims of the pod; None if there are none.

    The requests of a claim that a user has to create are unknown, so the trial uses a claim without requests.
    """
    pod = diagnosis.pod
    if "ResourceClaim" in trial.unread:
        return None
    made_for = {each.name for each in pod.status.resource_claim_statuses}
    shown, objects, statuses = list[str](), list[KubernetesObject](), list[PodResourceClaimStatus]()
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name:
            key = f"{pod.metadata.namespace}/{entry.resource_claim_name}"
            if trial.catalog.get(ResourceClaim, key) is None and f"ResourceClaim {key}" not in shown:
                shown.append(f"ResourceClaim {key}")
                metadata = ObjectMeta(
                    name=entry.resource_claim_name, namespace=pod.metadata.namespace, uid=f"uid-{key}"
                )
                objects.append(ResourceClaim(metadata=metadata))
        elif entry.resource_claim_template_name and entry.name not in made_for:
            key = f"{pod.metadata.namespace}/{entry.resource_claim_template_name}"
            template = trial.catalog.get(ResourceClaimTemplate, key)
            name = f"{pod.metadata.name}-{entry.name}"
            shown.append(f"ResourceClaim {pod.metadata.namespace}/{name} from the template {key}")
            owner = OwnerReference(
                api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
            )
            metadata = ObjectMeta(
                name=name, namespace=pod.metadata.namespace, uid=f"uid-{name}", owner_references=(owner,)
            )
            spec = ResourceClaimSpec() if template is None else template.spec.spec
            objects.append(ResourceClaim(metadata=metadata, spec=spec))
            statuses.append(PodResourceClaimStatus(name=entry.name, resource_claim_name=name))
    if not shown:
        return None
    edit = partial(_with_claims, tuple(statuses)) if statuses else None
    return Step(
        StepKind.CREATE, f"create {' and '.join(shown)}", "DynamicResources", adds=tuple(objects), edit_pod=edit
    )


def _with_claims(statuses: tuple[PodResourceClaimStatus, ...], pod: Pod) -> Pod:
    status = replace(pod.status, resource_claim_statuses=(*pod.status.resource_claim_statuses, *statuses))
    return replace(pod, status=status)


def bound_pair(
    claim: PersistentVolumeClaim | None, namespace: str, name: str, volume_name: str
) -> tuple[PersistentVolume, PersistentVolumeClaim]:
    """Return a volume that every node can reach, and a claim bound to it: a copy of `claim`, or a new one."""
    found = claim or PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"{namespace}-{name}")
    )
    reference = ObjectReference(
        api_version="v1", kind="PersistentVolumeClaim", namespace=namespace, name=name, uid=found.metadata.uid
    )
    volume = PersistentVolume(
        metadata=ObjectMeta(name=volume_name),
        spec=PersistentVolumeSpec(
            capacity=found.spec.resources.requests or {"storage": "1Gi"},
            access_modes=found.spec.access_modes or ("ReadWriteOnce",),
            claim_ref=reference,
            storage_class_name=found.spec.storage_class_name or "",
        ),
        status=PersistentVolumeStatus(phase="Bound"),
    )
    annotations = {**found.metadata.annotations, "pv.kubernetes.io/bind-completed": "yes"}
    bound = replace(
        found,
        metadata=replace(found.metadata, annotations=annotations),
        spec=replace(found.spec, volume_name=volume_name),
        status=replace(found.status, phase="Bound"),
    )
    return volume, bound
