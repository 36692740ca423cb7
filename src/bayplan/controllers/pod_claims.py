"""Creation of the resource claims that pods request through templates; lost claims are recreated.

The other half of upstream's claim controller, which releases unused claims, is `resource_claims`. Not implemented:
claims of pod groups, which are behind a disabled gate. Source: pkg/controller/resourceclaim v1.36.3,
https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.cluster.naming import NameGenerator
from bayplan.cluster.owned_pods import is_active
from bayplan.cluster.store import DELETED, ChangeEvent
from bayplan.controllers.controller import Controller, ControllerTools
from bayplan.objects.meta import ObjectMeta, OwnerReference
from bayplan.objects.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from bayplan.objects.resource import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate

POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a generated claim: the name of the entry of ``spec.resourceClaims`` that it was created for."""

MAX_USERS = 256
"""Maximum number of consumers in the `reservedFor` list of a claim."""

_MAX_PREFIX_LENGTH = 57


class PodClaimController(Controller):
    """Reconciles pods that have resource claims.

    A finished pod gets no new claims; upstream recreates them and deletes them again.

    Args:
        tools: see `ControllerTools`.
        names: generates the names of claims.
    """

    kind = Pod
    watches = (ResourceClaim, ResourceClaimTemplate)

    def __init__(self, tools: ControllerTools, names: NameGenerator) -> None:
        super().__init__(tools)
        self._names = names
        self._has_claims = False

    @property
    def watches_pods(self) -> bool:
        """Whether any claim or claim template was ever observed; until then the controller needs no events of pods."""
        return self._has_claims

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the keys of a pod with claims, of pods that name a changed template, or of a pod that lost a claim."""
        item = event.object
        if isinstance(item, Pod):
            return (item.key,) if item.spec.resource_claims and event.type != DELETED else ()
        self._has_claims = True
        namespace = item.metadata.namespace
        if isinstance(item, ResourceClaimTemplate):
            return [pod.key for pod in self.store.pods.values() if _names_template(pod, namespace, item.metadata.name)]
        owner = item.metadata.controller()
        is_lost = event.type == DELETED and owner is not None and owner.kind == "Pod"
        return (f"{namespace}/{owner.name}",) if is_lost and owner is not None else ()

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Create the missing claims of a pod; reserve allocated claims for a pod that was bound without the scheduler.

        Raises:
            InputError: a template does not exist.
        """
        pod = self.store.pods.get(key)
        if pod is None or not is_active(pod):
            return None
        noted = {status.name: status for status in pod.status.resource_claim_statuses}
        made: dict[str, PodResourceClaimStatus] = {}
        for entry in pod.spec.resource_claims:
            name = self._missing(pod, entry, noted.get(entry.name))
            if name is not None:
                claim = self._made_before(pod, entry) or self._make(pod, entry, name, now_ns)
                made[entry.name] = PodResourceClaimStatus(name=entry.name, resource_claim_name=claim.metadata.name)
        if made:
            # Replace only the statuses of these entries.
            statuses = tuple({**noted, **made}.values())
            pod = self.writer.update(replace(pod, status=replace(pod.status, resource_claim_statuses=statuses)))
        if pod.spec.node_name:
            self._reserve(pod)
        return None

    def _missing(self, pod: Pod, entry: PodResourceClaim, noted: PodResourceClaimStatus | None) -> str | None:
        """Return the template name of an entry whose claim must be created, else None."""
        if entry.resource_claim_template_name is None:
            return None
        if noted is None:
            return entry.resource_claim_template_name
        if noted.resource_claim_name is None:
            # A status without a claim name means that no claim is needed.
            return None
        claim = self.store.get(ResourceClaim, f"{pod.metadata.namespace}/{noted.resource_claim_name}")
        return None if claim is not None and _is_for(pod, claim) else entry.resource_claim_template_name

    def _made_before(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaim | None:
        for claim in self.store.dependents(pod.metadata.uid, ResourceClaim):
            if _is_for(pod, claim) and claim.metadata.annotations.get(POD_CLAIM_ANNOTATION) == entry.name:
                return claim
        return None

    def _make(self, pod: Pod, entry: PodResourceClaim, name: str, now_ns: int) -> ResourceClaim:
        namespace = pod.metadata.namespace
        template = self.store.get(ResourceClaimTemplate, f"{namespace}/{name}")
        if template is None:
            what = f"ResourceClaimTemplate {namespace}/{name} of pod {pod.metadata.name} does not exist"
            raise InputError(what)
        prefix = _name_prefix(pod.metadata.name, entry.name)
        metadata = ObjectMeta(
            name=self._names.generate(prefix, namespace, self.store.keys(ResourceClaim)),
            generate_name=prefix,
            namespace=namespace,
            labels=template.spec.metadata.labels,
            annotations={**template.spec.metadata.annotations, POD_CLAIM_ANNOTATION: entry.name},
            owner_references=(
                OwnerReference(
                    api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
                ),
            ),
        )
        return self.writer.create(ResourceClaim(metadata=metadata, spec=template.spec.spec), now_ns)

    def _reserve(self, pod: Pod) -> None:
        """Add a pod that the scheduler did not bind to the consumers of its allocated claims."""
        noted = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        for entry in pod.spec.resource_claims:
            name = entry.resource_claim_name or noted.get(entry.name)
            claim = self.store.get(ResourceClaim, f"{pod.metadata.namespace}/{name}") if name else None
            if claim is None or claim.status.allocation is None or len(claim.status.reserved_for) >= MAX_USERS:
                continue
            users = claim.status.reserved_for
            if all(user.uid != pod.metadata.uid for user in users):
                user = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
                self.writer.update(replace(claim, status=replace(claim.status, reserved_for=(*users, user))))


def _names_template(pod: Pod, namespace: str, template: str) -> bool:
    claims = pod.spec.resource_claims
    return (
        bool(claims)
        and pod.metadata.namespace == namespace
        and any(entry.resource_claim_template_name == template for entry in claims)
    )


def _is_for(pod: Pod, claim: ResourceClaim) -> bool:
    owner = claim.metadata.controller()
    return owner is not None and owner.uid == pod.metadata.uid


def _name_prefix(pod: str, entry: str) -> str:
    """Return the ``generateName`` of a claim; if it is too long, pod and entry are truncated in proportion."""
    prefix = f"{pod}-{entry}-"
    length = len(prefix)
    if length <= _MAX_PREFIX_LENGTH:
        return prefix
    shortened = f"{pod[: len(pod) * _MAX_PREFIX_LENGTH // length]}-"
    return shortened + entry[: len(entry) * _MAX_PREFIX_LENGTH // length]
