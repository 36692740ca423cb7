"""The pods of a StatefulSet and their claims: ordinals, names, labels, volumes, and owners of claims.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from bayplan.controllers.controller import Controller
from bayplan.controllers.pod_factory import PreparedTemplate, controller_reference
from bayplan.controllers.revisions import REVISION_LABEL
from bayplan.controllers.writer import WARNING, AwaitsAnswers, WriteRejected
from bayplan.objects.meta import ObjectMeta, OwnerReference
from bayplan.objects.pod import Pod, PodSpec, Volume
from bayplan.objects.selectors import join_errors
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.objects.volumes import PersistentVolumeClaimVolumeSource
from bayplan.objects.workloads import StatefulSet

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


def ordinal_of(pod_name: str) -> int:
    """Return the ordinal at the end of a pod's name, or -1 if it has none."""
    _, dash, digits = pod_name.rpartition("-")
    if not dash or not digits.isascii() or not digits.isdecimal() or int(digits) >= 2**31:
        return -1
    return int(digits)


def first_ordinal(item: StatefulSet) -> int:
    """Return the ordinal of the first pod."""
    return item.spec.ordinals.start if item.spec.ordinals is not None else 0


def claim_name(template: PersistentVolumeClaim, pod_name: str) -> str:
    """Return the name of the claim that a pod gets from a claim template: ``<template>-<set>-<ordinal>``."""
    return f"{template.metadata.name}-{pod_name}"


class StatefulPods:
    """Creates the pods of StatefulSets, and their claims.

    Args:
        controller: the controller of the pods; it records events about created objects.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._store = controller.store
        self._writer = controller.writer

    def create(
        self, item: StatefulSet, prepared: PreparedTemplate, revision_name: str, ordinal: int, now_ns: int
    ) -> Pod | None:
        """Create a pod and its missing claims, and return the pod; None if one of its claims is being deleted."""
        name = f"{item.metadata.name}-{ordinal}"
        if any(claim.metadata.deletion_timestamp is not None for claim in self._claims(item, name)):
            return None
        labels = {
            **prepared.labels,
            REVISION_LABEL: revision_name,
            POD_NAME_LABEL: name,
            POD_INDEX_LABEL: str(ordinal),
        }
        spec = with_identity(prepared.spec, item, name)
        record, set_name = self._controller.record, item.metadata.name
        is_taken = False
        try:
            self.create_missing_claims(item, name, now_ns)
            is_taken = f"{item.metadata.namespace}/{name}" in self._store.pods
            pod = self._controller.pods.create(prepared, now_ns, name=name, spec=spec, labels=labels)
        except AwaitsAnswers:
            raise
        except WriteRejected as refusal:
            # Upstream is silent about a pod of the same name that does not belong to the set.
            if not is_taken:
                text = f"Create Pod {name} in StatefulSet {set_name} failed error: {refusal.message}"
                record(item, "FailedCreate", text, type_=WARNING)
            raise
        record(item, "SuccessfulCreate", f"Create Pod {name} in StatefulSet {set_name} successful")
        self.own_claims(item, pod, condemned=False)
        return pod

    def fix_identity(self, item: StatefulSet, pod: Pod, ordinal: int, now_ns: int) -> None:
        """Set the labels and claims that a pod gets when it is created; adopted pods lack them.

        Raises:
            WriteRejected: a write is rejected, for example because the volumes of a pod can't change. The set then waits
                until somebody deletes the pod, as in upstream.
        """
        metadata, name = pod.metadata, pod.metadata.name
        has_volumes = not item.spec.volume_claim_templates or _has_claims(item, pod)
        if metadata.labels.get(POD_NAME_LABEL) == name and has_volumes:
            return
        spec = pod.spec
        if not has_volumes:
            spec = replace(spec, volumes=with_identity(spec, item, name).volumes)
        labels = {**metadata.labels, POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}
        record, set_name = self._controller.record, item.metadata.name
        try:
            if not has_volumes:
                self.create_missing_claims(item, name, now_ns)
            self._writer.update(replace(pod, metadata=replace(metadata, labels=labels), spec=spec))
        except AwaitsAnswers:
            raise
        except WriteRejected as refusal:
            text = f"Update Pod {name} in StatefulSet {set_name} failed error: {refusal.message}"
            record(item, "FailedUpdate", text, type_=WARNING)
            raise
        record(item, "SuccessfulUpdate", f"Update Pod {name} in StatefulSet {set_name} successful")

    def create_missing_claims(self, item: StatefulSet, pod_name: str, now_ns: int) -> None:
        """Create the claims of a pod that do not exist yet.

        Raises:
            WriteRejected: claims are rejected; all others are created.
        """
        namespace, set_name = item.metadata.namespace, item.metadata.name
        problems: list[str] = []
        for template in item.spec.volume_claim_templates:
            name = claim_name(template, pod_name)
            if self._store.get(PersistentVolumeClaim, f"{namespace}/{name}") is not None:
                continue
            selector = item.spec.selector
            labels: Mapping[str, str] = selector.match_labels if selector is not None else {}
            metadata = ObjectMeta(
                name=name,
                namespace=namespace,
                labels={**template.metadata.labels, **labels},
                annotations=template.metadata.annotations,
            )
            status = replace(template.status, phase=template.status.phase or "Pending")
            try:
                self._writer.create(PersistentVolumeClaim(metadata=metadata, spec=template.spec, status=status), now_ns)
            except AwaitsAnswers:
                raise
            except WriteRejected as refusal:
                problems.append(f"failed to create PVC {name}: {refusal.message}")
                text = (
                    f"Create Claim {name} for Pod {pod_name} in StatefulSet {set_name} failed error: {refusal.message}"
                )
                self._controller.record(item, "FailedCreate", text, type_=WARNING)
                continue
            text = f"Create Claim {name} Pod {pod_name} in StatefulSet {set_name} success"
            self._controller.record(item, "SuccessfulCreate", text)
        if problems:
            raise WriteRejected(f"Claims of Pod {namespace}/{pod_name}", join_errors(problems))

    def own_claims(self, item: StatefulSet, pod: Pod, *, condemned: bool) -> None:
        """Set the owner of a pod's claims to the set or the pod, by the set's retention policy.

        Retained claims have no owner. Claims that are deleted with the set are owned by it. Claims that are deleted
        when the set scales down are owned by the pod once it is condemned.
        """
        policy = item.spec.persistent_volume_claim_retention_policy
        with_set = policy is not None and policy.when_deleted == "Delete"
        with_pod = policy is not None and policy.when_scaled == "Delete"
        owners: tuple[OwnerReference, ...] = ()
        if with_pod and condemned:
            owners = (controller_reference(pod),)
        elif with_set:
            owners = (controller_reference(item),)
        ours = (item.metadata.uid, pod.metadata.uid)
        for claim in self._claims(item, pod.metadata.name):
            metadata = claim.metadata
            foreign = tuple(owner for owner in metadata.owner_references if owner.uid not in ours)
            if any(owner.controller for owner in foreign):
                continue
            if foreign + owners != metadata.owner_references:
                self._writer.update(replace(claim, metadata=replace(metadata, owner_references=foreign + owners)))

    def _claims(self, item: StatefulSet, pod_name: str) -> list[PersistentVolumeClaim]:
        namespace = item.metadata.namespace
        names = [claim_name(template, pod_name) for template in item.spec.volume_claim_templates]
        found = [self._store.get(PersistentVolumeClaim, f"{namespace}/{name}") for name in names]
        return [claim for claim in found if claim is not None]


def _has_claims(item: StatefulSet, pod: Pod) -> bool:
    """Return whether the volumes of a pod have all claims of its set."""
    claims = {volume.name: volume.persistent_volume_claim for volume in pod.spec.volumes}
    for template in item.spec.volume_claim_templates:
        found = claims.get(template.metadata.name)
        if found is None or found.claim_name != claim_name(template, pod.metadata.name):
            return False
    return True


def with_identity(spec: PodSpec, item: StatefulSet, name: str) -> PodSpec:
    """Return the spec of one pod: with its host name and subdomain, and claims instead of the template's volumes."""
    templates = item.spec.volume_claim_templates
    if not templates:
        return replace(spec, hostname=name, subdomain=item.spec.service_name)
    claimed = [template.metadata.name for template in templates]
    own = tuple(
        Volume(
            name=template.metadata.name,
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim_name(template, name)),
        )
        for template in templates
    )
    others = tuple(volume for volume in spec.volumes if volume.name not in claimed)
    return replace(spec, hostname=name, subdomain=item.spec.service_name, volumes=own + others)
